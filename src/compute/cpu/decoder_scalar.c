/* The specification of the decoder's kernels. */
#include "compute/cpu/decoder_kernels.h"
#include "compute/cpu/scalar_math.h"

static void rms_norm(int64_t n, const float *x, const float *weight, float eps, float *y) {
    float squares[QVL_LANES] = {0};
    for (int64_t i = 0; i < n; i++) squares[i % QVL_LANES] = fmaf(x[i], x[i], squares[i % QVL_LANES]);
    float inverse = 1.0f / sqrtf(sum_lanes(squares) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * inverse * weight[i];
}

static void swiglu(int64_t n, float *gate, const float *up) {
    for (int64_t i = 0; i < n; i++) gate[i] = silu(gate[i]) * up[i];
}

static void merge(int64_t n, float *x, float a, const float *y, float b) {
    for (int64_t i = 0; i < n; i++) x[i] = fmaf(y[i], b, x[i] * a);
}

static void interleave(int64_t n, const float *in, int64_t ld, float *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = 0; r < 32; r++) out[i * 32 + r] = in[r * ld + i];
}

const qvl_decoder_kernels qvl_decoder_kernels_scalar = {
    .rms_norm = rms_norm,
    .swiglu = swiglu,
    .merge = merge,
    .interleave = interleave,
};
