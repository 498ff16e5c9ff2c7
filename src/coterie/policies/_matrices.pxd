"""Products and eigenvectors of small dense matrices; see matrices.h."""

cdef extern from "matrices.h" nogil:
    void multiply(const double *a, const double *b, double *out, size_t d)
    void multiply_transposed(const double *a, const double *b, double *out, double *work, size_t d)
    void congruent(const double *p, const double *a, double *out, double *work, size_t d)
    void add_outers(double *upper, const double *const *vectors, size_t n, size_t d)
    void mirror(double *matrix, size_t d)
    void combine_upper(
        const double *first, const double *second, double sign, double weight, double *out, size_t d
    )
    void add_gram(double *c, const double *y, double *work, size_t d)
    void invert_sums(
        const double *common, const double *const *own, double *const *out, double *work, size_t d, double floor
    )
    void transpose(const double *a, double *out, size_t d)
    void invert_lower(const double *lower, double *out, size_t d)
    void eigen(double *matrix, double *vectors, size_t d)
