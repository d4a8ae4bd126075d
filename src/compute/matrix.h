/* Reading matrices as they lie, for the backends. */
#ifndef QVL_COMPUTE_MATRIX_H
#define QVL_COMPUTE_MATRIX_H

#include "compute/decoder.h"

/* count values of F32, BF16 or F16 that lie side by side, as float. */
void qvl_read_run(const uint8_t *data, qvl_dtype dtype, size_t first, int64_t count, float *out);

/* Which projection the task-th panel belongs to, where each has ceil(n / width) of them: its number, and in *panel the
 * panel's within it. */
static inline int qvl_find_panel(const qvl_projection *projections, int64_t width, int64_t task, int64_t *panel) {
    int i = 0;
    for (;; i++) {
        int64_t panels = (projections[i].w->n + width - 1) / width;
        if (task < panels) break;
        task -= panels;
    }
    *panel = task;
    return i;
}

#endif
