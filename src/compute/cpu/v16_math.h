/* The element-wise formulas of scalar.c over 16 lanes, with the same bits. The file that includes this has
 * included the v16 operations of its instruction set. */
#ifndef QVL_COMPUTE_CPU_V16_MATH_H
#define QVL_COMPUTE_CPU_V16_MATH_H

#include "compute/cpu/kernels.h"

#define INLINE static inline __attribute__((always_inline))

INLINE v16 v16_clamp(v16 x, float low, float high) {
    return v16_min(v16_max(x, v16_set(low)), v16_set(high));
}

INLINE v16 exp2_from_parts(v16 y, v16 n, v16 r) {
    v16 p = v16_set(qvl_exp2_coefficients[7]);
    for (int i = 6; i >= 0; i--) p = v16_fma(p, r, v16_set(qvl_exp2_coefficients[i]));
    return v16_zero_where_less(v16_mul(p, v16_power_of_2(n)), y, v16_set(QVL_EXP2_MIN));
}

INLINE v16 exp2_scaled(v16 d, v16 factor) {
    v16 y = v16_mul(d, factor);
    v16 n = v16_round(v16_clamp(y, QVL_EXP2_MIN, QVL_EXP2_MAX));
    v16 r = v16_clamp(v16_fms(d, factor, n), -0.5f, 0.5f);
    return exp2_from_parts(y, n, r);
}

INLINE v16 exponential(v16 x) {
    v16 log2e = v16_set(QVL_LOG2E);
    v16 y = v16_mul(x, log2e);
    v16 n = v16_round(v16_clamp(y, QVL_EXP2_MIN, QVL_EXP2_MAX));
    v16 r = v16_fma(x, v16_set(QVL_LOG2E_LOW), v16_fms(x, log2e, n));
    return exp2_from_parts(y, n, v16_clamp(r, -0.5f, 0.5f));
}

INLINE v16 silu(v16 x) {
    return v16_div(x, v16_add(v16_set(1.0f), exponential(v16_sub(v16_set(0.0f), x))));
}

INLINE v16 gelu_tanh(v16 x) {
    v16 one = v16_set(1.0f);
    v16 inner = v16_mul(v16_fma(v16_mul(x, x), v16_set(QVL_GELU_CUBIC), one), x);
    return v16_div(x, v16_add(one, exponential(v16_mul(inner, v16_set(QVL_GELU_SLOPE)))));
}

INLINE v16 gelu_erf(v16 x) {
    v16 one = v16_set(1.0f), half = v16_set(0.5f);
    v16 z = v16_mul(v16_abs(x), v16_set(QVL_SQRT_HALF));
    v16 t = v16_div(one, v16_fma(z, half, one));
    v16 s = v16_sub(t, half);
    v16 p = v16_set(qvl_erfc_coefficients[QVL_ERFC_TERMS - 1]);
    for (int i = QVL_ERFC_TERMS - 2; i >= 0; i--) p = v16_fma(p, s, v16_set(qvl_erfc_coefficients[i]));
    v16 erfc = v16_mul(t, exponential(v16_fnma(z, z, p)));
    v16 h = v16_mul(x, half);
    return v16_where_positive(x, v16_fnma(h, erfc, x), v16_mul(h, erfc));
}

#endif
