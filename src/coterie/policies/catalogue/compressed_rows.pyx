"""The compressed copy of a catalogue's vectors, row by row: what a search reads first."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int8_t, int64_t

from coterie.policies.catalogue.compressed cimport CODES_AT_A_TIME, compress

cnp.import_array()


cdef double sum_of_squares(double total, const double *x, Py_ssize_t d) noexcept nogil:
    """Add the squares of a row to a number, from first to last."""
    cdef Py_ssize_t i
    for i in range(d):
        total += x[i] * x[i]
    return total


cdef class CompressedRows:
    """Codes of one byte a number, and the step, error and length of every row.

    `squares` are zᵀz of every row for z = x and for z = (1, x), with the rounding of `linalg.quadratic`.
    `most_norm` is at least the length of the longest vector that was ever put.
    """

    def __init__(self, Py_ssize_t dim):
        self.dim, self.stride = dim, (dim + CODES_AT_A_TIME - 1) // CODES_AT_A_TIME * CODES_AT_A_TIME
        self._arrays = {
            "codes": np.zeros((0, self.stride), np.int8),
            "steps": np.zeros(0, np.float32),
            "errors": np.zeros(0, np.float32),
            "norms": np.zeros(0, np.float32),
            "squares": np.zeros((0, 2)),
        }
        self.bind()

    cdef int bind(self) except -1:
        self.codes = <int8_t *> cnp.PyArray_DATA(self._arrays["codes"])
        self.steps = <float *> cnp.PyArray_DATA(self._arrays["steps"])
        self.errors = <float *> cnp.PyArray_DATA(self._arrays["errors"])
        self.norms = <float *> cnp.PyArray_DATA(self._arrays["norms"])
        self.squares = <double *> cnp.PyArray_DATA(self._arrays["squares"])
        return 0

    @property
    def nbytes(self):
        """Bytes of all arrays."""
        return sum([array.nbytes for array in self._arrays.values()])

    def arrays(self):
        """The arrays by name; views."""
        return dict(self._arrays)

    def reserve(self, Py_ssize_t n):
        """Make room for n rows in all."""
        for name, array in self._arrays.items():
            more = np.zeros((n - len(array), *array.shape[1:]), array.dtype)
            self._arrays[name] = np.concatenate([array, more])
        self.bind()

    def put(self, const int64_t[::1] rows, const double[:, ::1] vectors):
        """Compress vectors into these rows."""
        cdef Py_ssize_t k
        cdef int64_t row
        with nogil:
            for k in range(rows.shape[0]):
                row = rows[k]
                compress(
                    &vectors[k, 0], self.dim, self.stride, self.codes + row * self.stride,
                    self.steps + row, self.errors + row, self.norms + row
                )
                self.most_norm = max(self.most_norm, self.norms[row])
                self.squares[2 * row] = sum_of_squares(0.0, &vectors[k, 0], self.dim)
                self.squares[2 * row + 1] = sum_of_squares(1.0, &vectors[k, 0], self.dim)

    def move(self, to, rows):
        """Copy rows to other places."""
        for array in self._arrays.values():
            array[to] = array[rows]
