/* The specification of the kernels of Gated DeltaNet. */
#include "compute/cpu/delta_kernels.h"
#include "compute/cpu/scalar_math.h"

static void convolve(int64_t n, int64_t width, const float *const *rows, const float *taps, int64_t stride,
                     float *y) {
    for (int64_t i = 0; i < n; i++) {
        float s = 0.0f;
        for (int64_t j = 0; j < width; j++) s = fmaf(taps[j * stride + i], rows[j][i], s);
        y[i] = silu(s);
    }
}

static float sum_of_squares(int64_t n, const float *x) {
    float lanes[QVL_LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i % QVL_LANES] = fmaf(x[i], x[i], lanes[i % QVL_LANES]);
    return sum_lanes(lanes);
}

static void l2_norm(int64_t n, const float *x, float factor, float *y) {
    float inverse = factor / sqrtf(sum_of_squares(n, x) + QVL_L2_EPS);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * inverse;
}

static void gated_norm(int64_t n, float *x, const float *weight, const float *gate, float eps) {
    float inverse = 1.0f / sqrtf(sum_of_squares(n, x) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] * inverse * weight[i] * silu(gate[i]);
}

static void sigmoid_gate(int64_t n, float *x, const float *gate) {
    for (int64_t i = 0; i < n; i++) {
        float passed = x[i] / (1.0f + exponential(-gate[i]));
        x[i] = fmaf(gate[i], 0.0f, passed);
    }
}

static void correction(int64_t n, const float *v, float decay, const float *read, const float *sum, float beta,
                       float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = beta * (fmaf(-decay, read[i], v[i]) - sum[i]);
}

static void add_scaled(int64_t n, float factor, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(factor, x[i], y[i]);
}

const qvl_delta_kernels qvl_delta_kernels_scalar = {
    .convolve = convolve,
    .l2_norm = l2_norm,
    .gated_norm = gated_norm,
    .sigmoid_gate = sigmoid_gate,
    .correction = correction,
    .add_scaled = add_scaled,
};
