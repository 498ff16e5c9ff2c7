"""A few vectors in as many coordinates as they are; see reflections.h."""

cdef extern from "reflections.h" nogil:
    void reduce_rows(double *rows, double *diagonal, double *betas, size_t n, size_t d)
    void reduced_gram(const double *rows, const double *diagonal, double *out, size_t n, size_t d)
    void turn(const double *rows, const double *betas, double *x, size_t n, size_t d)
    void turn_back(const double *rows, const double *betas, double *x, size_t n, size_t d)
