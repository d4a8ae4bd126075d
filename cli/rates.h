/* How fast the tower was in the last `qvl bench` of this machine, for estimates. */
#ifndef CLI_RATES_H
#define CLI_RATES_H

#include "qvl.h"

/* One size that was measured. */
typedef struct cli_rate {
    int64_t width, height; /* of the picture, in pixels */
    int64_t patches;
    double teraflops_per_second;
} cli_rate;

/* Remembers count rates of this machine, the model's tower and how it computes. What was measured before for the
 * same is replaced size by size. false: nothing could be written. */
bool cli_rates_save(const qvl_model_info *info, const cli_rate *rates, size_t count);

/* The rate of the size nearest to patches, measured on this machine with a tower of the same width, kernels, dtype
 * and threads. false where there is none. */
bool cli_rates_find(const qvl_model_info *info, int64_t patches, cli_rate *rate);

#endif
