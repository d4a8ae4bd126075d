/* Kernels of Gated DeltaNet, in the manner of kernels.h: delta_scalar.c is the specification, every other file gives
 * its bits. Sums over a row run over the 16 lanes of kernels.h. */
#ifndef QVL_COMPUTE_CPU_DELTA_KERNELS_H
#define QVL_COMPUTE_CPU_DELTA_KERNELS_H

#include <stdint.h>

typedef struct qvl_delta_kernels {
    /* y = silu(s), s = 0, then s = fma(taps[j][i], rows[j][i], s) for j ascending. rows: width pointers to n values,
     * the oldest first; taps[j] = taps + j * stride. y may be rows[width - 1]. */
    void (*convolve)(int64_t n, int64_t width, const float *const *rows, const float *taps, int64_t stride,
                     float *y);
    /* y = x * (factor / sqrt(sum of squares + 1e-6)) */
    void (*l2_norm)(int64_t n, const float *x, float factor, float *y);
    /* x = (x * (1 / sqrt(mean of squares + eps)) * weight) * silu(gate) */
    void (*gated_norm)(int64_t n, float *x, const float *weight, const float *gate, float eps);
    /* x = x * sigmoid(gate); NaN where gate is not finite. */
    void (*sigmoid_gate)(int64_t n, float *x, const float *gate);
    /* y = beta * (fma(-decay, read, v) - sum) */
    void (*correction)(int64_t n, const float *v, float decay, const float *read, const float *sum, float beta,
                       float *y);
    /* y = fma(factor, x, y) */
    void (*add_scaled)(int64_t n, float factor, const float *x, float *y);
} qvl_delta_kernels;

extern const qvl_delta_kernels qvl_delta_kernels_scalar, qvl_delta_kernels_avx2, qvl_delta_kernels_avx512;

#define QVL_L2_EPS 1e-6f

#endif
