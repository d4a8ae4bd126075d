/* An exponential that gives the same bits on every machine, which the C library's does not promise. */
#ifndef QVL_BASE_EXP_H
#define QVL_BASE_EXP_H

/* e^x within two units in the last place for -708 <= x <= 709; 0 below, infinity above, NaN for NaN. Multiplications
 * and additions in double precision only. */
double qvl_exp(double x);

#endif
