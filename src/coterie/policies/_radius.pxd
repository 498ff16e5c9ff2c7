"""The radius f(T) inside which an estimate is trusted, as seven numbers; see `coterie.theory.Radius`."""

from libc.math cimport sqrt
from libc.stdint cimport int64_t

from coterie.policies._elementary cimport natural_log


cdef struct Radius:
    # f(T) = (√(base + slope·ln(1 + scale·T)) + shift) / √(floor + growth·T) + offset
    double base
    double slope
    double scale
    double shift
    double floor
    double growth
    double offset


cdef inline double radius(Radius *shape, int64_t pulls) noexcept nogil:
    """f(T) for a user or cluster with T pulls."""
    cdef double top = sqrt(shape.base + shape.slope * natural_log(1.0 + shape.scale * pulls)) + shape.shift
    return top / sqrt(shape.floor + shape.growth * pulls) + shape.offset


cdef inline double arrival_radius(int64_t t) noexcept nogil:
    """F(t) = √((1 + ln(1 + t)) / (1 + t)), by which rates of arrival are compared   (Li et al. 2019)."""
    return sqrt((1.0 + natural_log(1.0 + t)) / (1.0 + t))


cdef inline Radius radius_of(object shape) except *:
    """The seven numbers of f as a record."""
    cdef Radius r
    r.base, r.slope, r.scale, r.shift, r.floor, r.growth, r.offset = shape
    return r
