/* The decoder's kernels over vectors of 16 lanes. The file that includes this has included the operations of its
 * instruction set (v16_*.h) and defines DECODER_KERNELS, the table to fill. */
#ifndef QVL_COMPUTE_CPU_DECODER_SIMD_H
#define QVL_COMPUTE_CPU_DECODER_SIMD_H

#include "compute/cpu/decoder_kernels.h"
#include "compute/cpu/v16_math.h"

#include <math.h>

static void rms_norm(int64_t n, const float *x, const float *weight, float eps, float *y) {
    int64_t whole = n / 16 * 16;
    m16 mask = m16_first((int)(n - whole));
    v16 squares = v16_set(0.0f);
    for (int64_t i = 0; i < whole; i += 16) {
        v16 v = v16_load(x + i);
        squares = v16_fma(v, v, squares);
    }
    if (whole < n) {
        v16 v = v16_load_mask(x + whole, mask);
        squares = v16_fma(v, v, squares);
    }
    v16 inverse = v16_set(1.0f / sqrtf(v16_sum(squares) / (float)n + eps));
    for (int64_t i = 0; i < whole; i += 16)
        v16_store(y + i, v16_mul(v16_mul(v16_load(x + i), inverse), v16_load(weight + i)));
    if (whole < n) {
        v16 v = v16_mul(v16_mul(v16_load_mask(x + whole, mask), inverse), v16_load_mask(weight + whole, mask));
        v16_store_mask(y + whole, mask, v);
    }
}

static void swiglu(int64_t n, float *gate, const float *up) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) v16_store(gate + i, v16_mul(silu(v16_load(gate + i)), v16_load(up + i)));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16_store_mask(gate + i, mask, v16_mul(silu(v16_load_mask(gate + i, mask)), v16_load_mask(up + i, mask)));
    }
}

static void merge(int64_t n, float *x, float a, const float *y, float b) {
    int64_t i = 0;
    v16 va = v16_set(a), vb = v16_set(b);
    for (; i + 16 <= n; i += 16) v16_store(x + i, v16_fma(v16_load(y + i), vb, v16_mul(v16_load(x + i), va)));
    if (i < n) {
        m16 mask = m16_first((int)(n - i));
        v16 v = v16_mul(v16_load_mask(x + i, mask), va);
        v16_store_mask(x + i, mask, v16_fma(v16_load_mask(y + i, mask), vb, v));
    }
}

static void interleave(int64_t n, const float *in, int64_t ld, float *out) {
    for (int half = 0; half < 2; half++) {
        const float *rows = in + half * 16 * ld;
        float *to = out + half * 16;
        int64_t i = 0;
        for (; i + 16 <= n; i += 16) {
            v16 a[16];
            for (int r = 0; r < 16; r++) a[r] = v16_load(rows + r * ld + i);
            transpose_16(a);
            for (int c = 0; c < 16; c++) v16_store(to + (i + c) * 32, a[c]);
        }
        if (i < n) {
            m16 mask = m16_first((int)(n - i));
            v16 a[16];
            for (int r = 0; r < 16; r++) a[r] = v16_load_mask(rows + r * ld + i, mask);
            transpose_16(a);
            for (int c = 0; c < (int)(n - i); c++) v16_store(to + (i + c) * 32, a[c]);
        }
    }
}

const qvl_decoder_kernels DECODER_KERNELS = {
    .rms_norm = rms_norm,
    .swiglu = swiglu,
    .merge = merge,
    .interleave = interleave,
};

#endif
