/* The kernels of Gated DeltaNet over vectors of 16 lanes. The file that includes this has included the operations of
 * its instruction set (v16_*.h) and defines DELTA_KERNELS, the table to fill. */
#ifndef QVL_COMPUTE_CPU_DELTA_SIMD_H
#define QVL_COMPUTE_CPU_DELTA_SIMD_H

#include "compute/cpu/delta_kernels.h"
#include "compute/cpu/v16_math.h"

#include <math.h>

static void convolve(int64_t n, int64_t width, const float *const *rows, const float *taps, int64_t stride,
                     float *y) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 s = v16_set(0.0f);
        for (int64_t j = 0; j < width; j++) s = v16_fma(v16_load(taps + j * stride + i), v16_load(rows[j] + i), s);
        v16_store(y + i, silu(s));
    }
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16 s = v16_set(0.0f);
        for (int64_t j = 0; j < width; j++)
            s = v16_fma(v16_load_mask(taps + j * stride + i, mask), v16_load_mask(rows[j] + i, mask), s);
        v16_store_mask(y + i, mask, silu(s));
    }
}

INLINE float sum_of_squares(int64_t n, const float *x) {
    int64_t i = 0;
    v16 s = v16_set(0.0f);
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_load(x + i);
        s = v16_fma(v, v, s);
    }
    if (i < n) {
        v16 v = v16_load_mask(x + i, m16_first((int)(n - i)));
        s = v16_fma(v, v, s);
    }
    return v16_sum(s);
}

static void l2_norm(int64_t n, const float *x, float factor, float *y) {
    v16 inverse = v16_set(factor / sqrtf(sum_of_squares(n, x) + QVL_L2_EPS));
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_mul(v16_load(x + i), inverse));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16_store_mask(y + i, mask, v16_mul(v16_load_mask(x + i, mask), inverse));
    }
}

INLINE v16 gated(v16 x, v16 inverse, v16 weight, v16 gate) {
    return v16_mul(v16_mul(v16_mul(x, inverse), weight), silu(gate));
}

static void gated_norm(int64_t n, float *x, const float *weight, const float *gate, float eps) {
    v16 inverse = v16_set(1.0f / sqrtf(sum_of_squares(n, x) / (float)n + eps));
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(x + i, gated(v16_load(x + i), inverse, v16_load(weight + i), v16_load(gate + i)));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16 y = gated(v16_load_mask(x + i, mask), inverse, v16_load_mask(weight + i, mask),
                      v16_load_mask(gate + i, mask));
        v16_store_mask(x + i, mask, y);
    }
}

INLINE v16 through_sigmoid(v16 x, v16 gate) {
    v16 zero = v16_set(0.0f), one = v16_set(1.0f);
    v16 passed = v16_div(x, v16_add(one, exponential(v16_sub(zero, gate))));
    return v16_fma(gate, zero, passed);
}

static void sigmoid_gate(int64_t n, float *x, const float *gate) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(x + i, through_sigmoid(v16_load(x + i), v16_load(gate + i)));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16_store_mask(x + i, mask, through_sigmoid(v16_load_mask(x + i, mask), v16_load_mask(gate + i, mask)));
    }
}

static void correction(int64_t n, const float *v, float decay, const float *read, const float *sum, float beta,
                       float *y) {
    v16 d = v16_set(decay), b = v16_set(beta);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 change = v16_sub(v16_fnma(d, v16_load(read + i), v16_load(v + i)), v16_load(sum + i));
        v16_store(y + i, v16_mul(b, change));
    }
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16 rest = v16_fnma(d, v16_load_mask(read + i, mask), v16_load_mask(v + i, mask));
        v16_store_mask(y + i, mask, v16_mul(b, v16_sub(rest, v16_load_mask(sum + i, mask))));
    }
}

static void add_scaled(int64_t n, float factor, const float *x, float *y) {
    v16 f = v16_set(factor);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(y + i, v16_fma(f, v16_load(x + i), v16_load(y + i)));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16_store_mask(y + i, mask, v16_fma(f, v16_load_mask(x + i, mask), v16_load_mask(y + i, mask)));
    }
}

const qvl_delta_kernels DELTA_KERNELS = {
    .convolve = convolve,
    .l2_norm = l2_norm,
    .gated_norm = gated_norm,
    .sigmoid_gate = sigmoid_gate,
    .correction = correction,
    .add_scaled = add_scaled,
};

#endif
