/* bfloat16 and float16 as 16-bit patterns. */
#ifndef QVL_BASE_BF16_H
#define QVL_BASE_BF16_H

#include "qvl.h"

#include <math.h>
#include <string.h>

static inline uint32_t qvl_bits_from_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float qvl_f32_from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static inline float qvl_f32_from_bf16(uint16_t h) {
    return qvl_f32_from_bits((uint32_t)h << 16);
}

/* Round to nearest, ties to even; NaN stays NaN (quiet). */
static inline uint16_t qvl_bf16_from_f32(float x) {
    uint32_t u = qvl_bits_from_f32(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* To the nearest float16, ties to even, as a float. */
static inline float qvl_round_to_f16(float x) {
    float magnitude = fabsf(x);
    if (!(magnitude < 65520.0f)) return isnan(x) ? x : copysignf(INFINITY, x); /* beyond the largest and a half */
    int exponent;
    frexpf(magnitude, &exponent);
    int last = exponent - 11 < -24 ? -24 : exponent - 11; /* of the bits that stay */
    return copysignf(ldexpf(rintf(ldexpf(magnitude, -last)), last), x);
}

/* To the nearest value of F32, BF16 or F16. */
static inline float qvl_round_to(qvl_dtype dtype, float x) {
    if (dtype == QVL_F32) return x;
    return dtype == QVL_BF16 ? qvl_f32_from_bf16(qvl_bf16_from_f32(x)) : qvl_round_to_f16(x);
}

/* Exact: every float16 is a float32. */
static inline float qvl_f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f) return qvl_f32_from_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent) return qvl_f32_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    float magnitude = (float)mantissa * 0x1p-24f;
    return qvl_f32_from_bits(sign | qvl_bits_from_f32(magnitude));
}

#endif
