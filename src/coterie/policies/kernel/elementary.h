/* ln, exp, 2ˣ and ln Γ with the same bits on every processor: those of the C library differ where it uses fused
 * multiply-add. Plain series, a few units in the last place; arguments are finite. */
#ifndef COTERIE_ELEMENTARY_H
#define COTERIE_ELEMENTARY_H

/* ln x; -inf for 0, NaN below */
double natural_log(double x);

/* eˣ */
double exponential(double x);

/* 2ˣ, exact for whole x */
double power_of_two(double x);

/* ln Γ(x) for x > 0 */
double log_gamma(double x);

#endif
