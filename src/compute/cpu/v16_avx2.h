/* 16 lanes of float in AVX2 and FMA: two registers, lanes 0..7 and 8..15. For files built with those sets. */
#ifndef QVL_COMPUTE_CPU_V16_AVX2_H
#define QVL_COMPUTE_CPU_V16_AVX2_H

#include <immintrin.h>
#include <stdint.h>

typedef struct v16 {
    __m256 low, high;
} v16;
typedef struct m16 {
    __m256i low, high;
} m16;

#define V16 static inline __attribute__((always_inline))
#define PAIR(expression_low, expression_high) ((v16){(expression_low), (expression_high)})

V16 m16 m16_first(int count) {
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), n = _mm256_set1_epi32(count);
    return (m16){_mm256_cmpgt_epi32(n, lane), _mm256_cmpgt_epi32(n, _mm256_add_epi32(lane, _mm256_set1_epi32(8)))};
}
V16 v16 v16_set(float x) {
    return PAIR(_mm256_set1_ps(x), _mm256_set1_ps(x));
}
V16 v16 v16_load(const float *p) {
    return PAIR(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
V16 v16 v16_load_mask(const float *p, m16 mask) {
    return PAIR(_mm256_maskload_ps(p, mask.low), _mm256_maskload_ps(p + 8, mask.high));
}
V16 void v16_store(float *p, v16 x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
}
V16 void v16_store_mask(float *p, m16 mask, v16 x) {
    _mm256_maskstore_ps(p, mask.low, x.low);
    _mm256_maskstore_ps(p + 8, mask.high, x.high);
}
V16 v16 v16_keep(m16 mask, v16 x) {
    return PAIR(_mm256_and_ps(_mm256_castsi256_ps(mask.low), x.low),
                _mm256_and_ps(_mm256_castsi256_ps(mask.high), x.high));
}
V16 v16 v16_add(v16 a, v16 b) {
    return PAIR(_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high));
}
V16 v16 v16_sub(v16 a, v16 b) {
    return PAIR(_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high));
}
V16 v16 v16_mul(v16 a, v16 b) {
    return PAIR(_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high));
}
V16 v16 v16_div(v16 a, v16 b) {
    return PAIR(_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high));
}
/* a > b ? a : b, so b where a is NaN. */
V16 v16 v16_max(v16 a, v16 b) {
    return PAIR(_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high));
}
V16 v16 v16_min(v16 a, v16 b) {
    return PAIR(_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high));
}
/* a b + c, a b - c, c - a b: one rounding each. */
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    return PAIR(_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high));
}
V16 v16 v16_fms(v16 a, v16 b, v16 c) {
    return PAIR(_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high));
}
V16 v16 v16_fnma(v16 a, v16 b, v16 c) {
    return PAIR(_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high));
}
V16 v16 v16_abs(v16 x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return PAIR(_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high));
}
V16 v16 v16_round(v16 x) {
    return PAIR(_mm256_round_ps(x.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                _mm256_round_ps(x.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
V16 __m256 power_of_2(__m256 n) {
    __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
/* 2^n for integers n in -126..127 */
V16 v16 v16_power_of_2(v16 n) {
    return PAIR(power_of_2(n.low), power_of_2(n.high));
}
V16 v16 v16_zero_where_less(v16 x, v16 a, v16 b) {
    return PAIR(_mm256_and_ps(_mm256_cmp_ps(a.low, b.low, _CMP_NLT_UQ), x.low),
                _mm256_and_ps(_mm256_cmp_ps(a.high, b.high, _CMP_NLT_UQ), x.high));
}
V16 v16 v16_where_positive(v16 x, v16 yes, v16 no) {
    __m256 zero = _mm256_setzero_ps();
    return PAIR(_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(x.low, zero, _CMP_GT_OQ)),
                _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(x.high, zero, _CMP_GT_OQ)));
}
V16 float v16_sum(v16 x) {
    __m256 h = _mm256_add_ps(x.low, x.high);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
V16 __m256 round_bf16_half(__m256 x) {
    __m256i u = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    r = _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(r), _mm256_castsi256_ps(quiet), nan));
    return _mm256_castsi256_ps(_mm256_and_si256(r, _mm256_set1_epi32((int)0xffff0000u)));
}
V16 v16 v16_round_bf16(v16 x) {
    return PAIR(round_bf16_half(x.low), round_bf16_half(x.high));
}
V16 __m256 widen_half(const uint16_t *p) {
    __m256i u = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}
V16 v16 v16_widen_bf16(const uint16_t *p) {
    return PAIR(widen_half(p), widen_half(p + 8));
}
V16 void transpose_8(__m256 a[8]) {
    __m256 b[8];
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            __m256d low = _mm256_castps_pd(b[i + j]), high = _mm256_castps_pd(b[i + j + 2]);
            a[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
            a[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
        }
    for (int i = 0; i < 4; i++) {
        __m256 low = a[i], high = a[i + 4];
        a[i] = _mm256_permute2f128_ps(low, high, 0x20);
        a[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
    }
}
/* Transposes 16 x 16 values of 32 bits. */
V16 void transpose_16(v16 a[16]) {
    __m256 quarters[2][2][8]; /* [rows][columns] */
    for (int i = 0; i < 8; i++) {
        quarters[0][0][i] = a[i].low;
        quarters[0][1][i] = a[i].high;
        quarters[1][0][i] = a[i + 8].low;
        quarters[1][1][i] = a[i + 8].high;
    }
    for (int i = 0; i < 4; i++) transpose_8(quarters[i / 2][i % 2]);
    for (int i = 0; i < 8; i++) {
        a[i] = PAIR(quarters[0][0][i], quarters[1][0][i]);
        a[i + 8] = PAIR(quarters[0][1][i], quarters[1][1][i]);
    }
}

#endif
