#define _POSIX_C_SOURCE 199309L
#include "base/clock.h"

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
