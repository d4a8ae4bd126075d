/* The element-wise formulas of the specification. fmaf rounds once, on any processor. */
#ifndef QVL_COMPUTE_CPU_SCALAR_MATH_H
#define QVL_COMPUTE_CPU_SCALAR_MATH_H

#include "base/bf16.h"
#include "compute/cpu/kernels.h"

#include <math.h>

static inline float round_to_bf16(float x) {
    return qvl_f32_from_bf16(qvl_bf16_from_f32(x));
}

/* 2^y, where r is y - n for the integer n nearest to the clamped y. */
static inline float exp2_from_parts(float y, float n, float r) {
    float p = qvl_exp2_coefficients[7];
    for (int i = 6; i >= 0; i--) p = fmaf(p, r, qvl_exp2_coefficients[i]);
    float power = qvl_f32_from_bits((uint32_t)((int32_t)n + 127) << 23);
    return y < QVL_EXP2_MIN ? 0.0f : p * power;
}

static inline float clamp_exponent(float y) {
    float low = y > QVL_EXP2_MIN ? y : QVL_EXP2_MIN;
    return low < QVL_EXP2_MAX ? low : QVL_EXP2_MAX;
}

/* 2^(d * factor) */
static inline float exp2_scaled(float d, float factor) {
    float y = d * factor;
    float n = rintf(clamp_exponent(y));
    float r = fmaf(d, factor, -n);
    r = r > -0.5f ? r : -0.5f;
    r = r < 0.5f ? r : 0.5f;
    return exp2_from_parts(y, n, r);
}

/* e^x */
static inline float exponential(float x) {
    float y = x * QVL_LOG2E;
    float n = rintf(clamp_exponent(y));
    float r = fmaf(x, QVL_LOG2E_LOW, fmaf(x, QVL_LOG2E, -n));
    r = r > -0.5f ? r : -0.5f;
    r = r < 0.5f ? r : 0.5f;
    return exp2_from_parts(y, n, r);
}

static inline float silu(float x) {
    return x / (1.0f + exponential(-x));
}

static inline float sum_lanes(const float lanes[QVL_LANES]) {
    float s[QVL_LANES];
    for (int i = 0; i < QVL_LANES; i++) s[i] = lanes[i];
    for (int half = QVL_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) s[i] = s[i] + s[i + half];
    return s[0];
}

#endif
