# optimize: 2
"""linalg.c for Python: used outside of rounds, by tests, and by benchmarks of plain arithmetic."""

import numpy as np

from libc.stdint cimport int64_t


def dot_product(const double[::1] a, const double[::1] b):
    """aᵀb."""
    return dot(&a[0], &b[0], a.shape[0])


def squared_distance(const double[::1] a, const double[::1] b):
    """‖a − b‖²."""
    return distance2(&a[0], &b[0], a.shape[0])


def near(const double[:, ::1] rows, Py_ssize_t row, double reach):
    """How many rows are within reach of one: the bare comparison of a user with all."""
    cdef Py_ssize_t other, count = 0
    with nogil:
        for other in range(rows.shape[0]):
            count += distance2(&rows[row, 0], &rows[other, 0], rows.shape[1]) < reach * reach
    return count


def applied(const double[:, ::1] matrix, const double[::1] x):
    """Ax."""
    out = np.empty(x.shape[0])
    cdef double[::1] found = out
    apply(&matrix[0, 0], &x[0], &found[0], x.shape[0])
    return out


def quadratic_form(const double[:, ::1] matrix, const double[::1] x):
    """xᵀAx."""
    return quadratic(&matrix[0, 0], &x[0], x.shape[0])


def quadratic_forms(const double[:, ::1] matrix, const double[:, ::1] rows, double[::1] out):
    """xᵀAx of every row, several at a time."""
    with nogil:
        quadratics(&matrix[0, 0], &rows[0, 0], NULL, rows.shape[0], rows.shape[1], &out[0])


def plain_quadratic_forms(const double[:, ::1] matrix, const double[:, ::1] rows, double[::1] out):
    """The same one by one, as anybody would write it in C: Ax, then xᵀ(Ax)."""
    work = np.empty(rows.shape[1])
    cdef double[::1] product = work
    cdef Py_ssize_t k
    with nogil:
        for k in range(rows.shape[0]):
            apply(&matrix[0, 0], &rows[k, 0], &product[0], rows.shape[1])
            out[k] = dot(&rows[k, 0], &product[0], rows.shape[1])


def products(const double[::1] theta, const double[:, ::1] rows):
    """xᵀθ of every row."""
    out = np.empty(rows.shape[0])
    cdef double[::1] found = out
    means(&theta[0], &rows[0, 0], NULL, rows.shape[0], rows.shape[1], &found[0])
    return out


def absorbed(double[:, ::1] inverse, double[::1] moment, double[::1] estimate, const double[::1] x, double reward):
    """Add (x, reward) to a ridge regression in place; returns xᵀA⁻¹x."""
    cdef double[::1] gain = np.empty(x.shape[0])
    return absorb(&inverse[0, 0], &moment[0], &estimate[0], &x[0], reward, &gain[0], x.shape[0])


def eigenvalue_bound(const double[:, ::1] matrix):
    """An upper bound of the largest eigenvalue."""
    cdef double[::1] work = np.empty(2 * matrix.shape[0])
    return largest_eigenvalue(&matrix[0, 0], &work[0], matrix.shape[0])


def eliminated(double[:, ::1] upper, double[::1] moment, double floor):
    """ln|A|, bᵀA⁻¹b and A⁻¹b of a matrix given by its upper half, which is used up."""
    cdef double logdet, explained
    out = np.empty(moment.shape[0])
    cdef double[::1] solution = out
    eliminate(&upper[0, 0], &moment[0], moment.shape[0], floor, &logdet, &explained)
    back_substitute(&upper[0, 0], &moment[0], &solution[0], moment.shape[0])
    return logdet, explained, out


def inverted(const double[:, ::1] matrix, double floor):
    """A⁻¹."""
    cdef Py_ssize_t d = matrix.shape[0]
    out = np.array(matrix)
    cdef double[:, ::1] inverse = out
    cdef double[::1] work = np.empty(d * d + d)
    invert(&inverse[0, 0], &work[0], d, floor)
    return out


def folded(const double[:, ::1] rows, double[::1] x):
    """LᵀL of rows = (L 0)Qᵀ, Qᵀx, and x turned there and back."""
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1]
    gram, there, back = np.empty((n, n)), np.array(x), np.array(x)
    cdef double[:, ::1] turned = np.array(rows)
    cdef double[:, ::1] beside = np.empty((2, n))
    cdef double[:, ::1] small = gram
    cdef double[::1] first = there
    cdef double[::1] second = back
    reduce_rows(&turned[0, 0], &beside[0, 0], &beside[1, 0], n, d)
    reduced_gram(&turned[0, 0], &beside[0, 0], &small[0, 0], n, d)
    turn(&turned[0, 0], &beside[1, 0], &first[0], n, d)
    turn(&turned[0, 0], &beside[1, 0], &second[0], n, d)
    turn_back(&turned[0, 0], &beside[1, 0], &second[0], n, d)
    return gram, there, back


def cholesky_factor(const double[:, ::1] matrix):
    """The lower L with A = LLᵀ."""
    out = np.zeros((matrix.shape[0], matrix.shape[0]))
    cdef double[:, ::1] factor = out
    cdef double[::1] work = np.empty((matrix.shape[0] + 1) * matrix.shape[0])
    cholesky(&matrix[0, 0], &factor[0, 0], &work[0], matrix.shape[0])
    return out


def elementary(double x):
    """ln x, eˣ, 2ˣ and ln Γ(x)."""
    return natural_log(x), exponential(x), power_of_two(x), log_gamma(x)
