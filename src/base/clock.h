/* Time for profiles and benchmarks; no result depends on it. */
#ifndef QVL_BASE_CLOCK_H
#define QVL_BASE_CLOCK_H

#include "qvl.h"

/* Of a clock that only goes forward. */
double qvl_seconds(void);

/* Adds the time since *since to a stage; *since becomes now. */
void qvl_lap(qvl_profile *profile, qvl_stage stage, double *since);

/* The median of n >= 1 times, which are sorted by it. */
double qvl_median(double *x, int64_t n);

#endif
