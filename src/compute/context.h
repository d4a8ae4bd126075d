/* What the files of compute/ share. */
#ifndef QVL_COMPUTE_CONTEXT_H
#define QVL_COMPUTE_CONTEXT_H

#include "compute/compute.h"
#include "compute/cpu/kernels.h"

struct qvl_compute {
    qvl_pool *pool;
    const qvl_kernels *kernels;
    qvl_dtype dtype;
    bool round; /* bf16 mode: operands are rounded */
};

/* Weights are packed in panels of 32 output columns, [panel][k][32], zero beyond n; bf16 bits or float. Operands
 * are float row-major without padding, their values already rounded in bf16 mode. */
#define QVL_PANEL 32

/* Sums over k run in chunks of 256: each chunk from zero, chunk sums added in order. */
#define QVL_K_CHUNK 256

static inline int64_t qvl_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
