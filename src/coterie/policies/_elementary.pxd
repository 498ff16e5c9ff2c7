"""ln, exp, 2ˣ and ln Γ with the same bits on every processor; see elementary.h."""

cdef extern from "elementary.h" nogil:
    double natural_log(double x)
    double exponential(double x)
    double power_of_two(double x)
    double log_gamma(double x)
