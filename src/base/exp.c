#include "base/exp.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 1 / k!, from k = 13 down: with |r| <= ln 2 / 2 the first term left out is below 2^-57. */
static const double taylor[] = {1.0 / 6227020800.0,
                                1.0 / 479001600.0,
                                1.0 / 39916800.0,
                                1.0 / 3628800.0,
                                1.0 / 362880.0,
                                1.0 / 40320.0,
                                1.0 / 5040.0,
                                1.0 / 720.0,
                                1.0 / 120.0,
                                1.0 / 24.0,
                                1.0 / 6.0,
                                1.0 / 2.0,
                                1.0,
                                1.0};

double qvl_exp(double x) {
    /* ln 2 in two parts; the first ends in 21 zero bits, so that n times it is exact. */
    static const double log2e = 0x1.71547652b82fep+0, ln2_high = 0x1.62e42fee00000p-1,
                        ln2_low = 0x1.a39ef35793c76p-33;
    if (x != x) return x;
    if (x < -708.0) return 0.0;
    if (x > 709.0) return HUGE_VAL;
    double n = floor(x * log2e + 0.5);
    double r = (x - n * ln2_high) - n * ln2_low;
    double sum = 0.0;
    for (size_t i = 0; i < sizeof taylor / sizeof *taylor; i++) sum = sum * r + taylor[i];
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}
