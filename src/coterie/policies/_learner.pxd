"""What every family of policies is to the compiled loops: a class with `view`, `absorb`, `review` and `label`."""

from libc.stdint cimport int64_t

from coterie.policies._choice cimport ArmChoice


cdef class Learner(ArmChoice):
    cdef int welcome(self, Py_ssize_t known) except -1
    cdef int absorb(self, Py_ssize_t user, const double *x, double reward) except -1 nogil
    cdef int review(self, Py_ssize_t user) except -1 nogil
    cdef int label(self, int64_t *out) except -1 nogil
    cdef int learn(
        self, Py_ssize_t user, const double *xs, const double *rewards, Py_ssize_t n, Py_ssize_t shown
    ) except -1 nogil
