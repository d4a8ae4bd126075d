#define _POSIX_C_SOURCE 199309L
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

double qvl_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void qvl_lap(qvl_profile *profile, qvl_stage stage, double *since) {
    double now = qvl_seconds();
    profile->seconds[stage] += now - *since;
    *since = now;
}

const char *qvl_stage_name(qvl_stage stage) {
    static const char *const names[QVL_STAGE_COUNT] = {"read", "resize",    "rows",       "embed", "norm",
                                                       "qkv",  "attention", "projection", "mlp",   "mergers"};
    return (unsigned)stage < QVL_STAGE_COUNT ? names[stage] : NULL;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double qvl_median(double *x, int64_t n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}
