#include "elementary.h"

#include <math.h>

static const double LN2_HIGH = 0x1.62e42fefa38p-1, LN2_LOW = 0x1.ef35793c7673p-45; /* ln 2, its first 40 bits and the rest */

static const double ODD[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};

/* x = m·2ᵉ with m in [√½, √2); ln m = 2 artanh s with s = (m − 1)/(m + 1), by its series in s² */
double natural_log(double x) {
    int e;
    if (!(x > 0.0)) return x == 0.0 ? -INFINITY : NAN;
    if (isinf(x)) return x;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) m *= 2.0, e -= 1;
    double s = (m - 1.0) / (m + 1.0), z = s * s, series = 0.0;
    for (int k = 11; k >= 0; k--) series = (series + ODD[k]) * z;
    return e * LN2_HIGH + (2.0 * s + (2.0 * s * series + e * LN2_LOW));
}

/* eʳ for |r| ≤ ½ ln 2, by its series */
static double small_exponential(double r) {
    double series = 1.0;
    for (int k = 14; k >= 1; k--) series = 1.0 + series * r / k;
    return series;
}

double exponential(double x) {
    if (isnan(x)) return x;
    if (x > 709.78) return INFINITY;
    if (x < -745.2) return 0.0;
    double n = nearbyint(x / (LN2_HIGH + LN2_LOW));
    return ldexp(small_exponential((x - n * LN2_HIGH) - n * LN2_LOW), (int)n);
}

double power_of_two(double x) {
    if (isnan(x)) return x;
    if (x > 1024.0) return INFINITY;
    if (x < -1080.0) return 0.0;
    double n = nearbyint(x);
    return ldexp(small_exponential((x - n) * (LN2_HIGH + LN2_LOW)), (int)n);
}

/* Stirling's series from 10 on; below, Γ(x) = Γ(x + n)/(x(x + 1)…(x + n − 1)) */
double log_gamma(double x) {
    double product = 1.0;
    for (; x < 10.0; x += 1.0) product *= x;
    double z = 1.0 / (x * x);
    double series = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360))))) / x;
    return (x - 0.5) * natural_log(x) - x + 0.91893853320467274178 + series - natural_log(product);
}
