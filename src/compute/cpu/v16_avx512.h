/* 16 lanes of float in AVX-512 F, BW, DQ, VL: one register. For files built with those sets. */
#ifndef QVL_COMPUTE_CPU_V16_AVX512_H
#define QVL_COMPUTE_CPU_V16_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 v16;
typedef __mmask16 m16;

#define V16 static inline __attribute__((always_inline))

V16 m16 m16_first(int count) {
    return (m16)((1u << count) - 1u);
}
V16 v16 v16_set(float x) {
    return _mm512_set1_ps(x);
}
V16 v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
V16 v16 v16_load_mask(const float *p, m16 mask) {
    return _mm512_maskz_loadu_ps(mask, p);
}
V16 void v16_store(float *p, v16 x) {
    _mm512_storeu_ps(p, x);
}
V16 void v16_store_mask(float *p, m16 mask, v16 x) {
    _mm512_mask_storeu_ps(p, mask, x);
}
V16 v16 v16_keep(m16 mask, v16 x) {
    return _mm512_maskz_mov_ps(mask, x);
}
V16 v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}
V16 v16 v16_sub(v16 a, v16 b) {
    return _mm512_sub_ps(a, b);
}
V16 v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}
V16 v16 v16_div(v16 a, v16 b) {
    return _mm512_div_ps(a, b);
}
/* a > b ? a : b, so b where a is NaN. */
V16 v16 v16_max(v16 a, v16 b) {
    return _mm512_max_ps(a, b);
}
V16 v16 v16_min(v16 a, v16 b) {
    return _mm512_min_ps(a, b);
}
/* a b + c, a b - c, c - a b: one rounding each. */
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}
V16 v16 v16_fms(v16 a, v16 b, v16 c) {
    return _mm512_fmsub_ps(a, b, c);
}
V16 v16 v16_fnma(v16 a, v16 b, v16 c) {
    return _mm512_fnmadd_ps(a, b, c);
}
V16 v16 v16_abs(v16 x) {
    return _mm512_abs_ps(x);
}
V16 v16 v16_round(v16 x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* 2^n for integers n in -126..127 */
V16 v16 v16_power_of_2(v16 n) {
    __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
}
V16 v16 v16_zero_where_less(v16 x, v16 a, v16 b) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ), x);
}
V16 v16 v16_where_positive(v16 x, v16 yes, v16 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), no, yes);
}
V16 float v16_sum(v16 x) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
V16 v16 v16_round_bf16(v16 x) {
    __m512i u = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_ps(_mm512_and_si512(r, _mm512_set1_epi32((int)0xffff0000u)));
}
V16 v16 v16_widen_bf16(const uint16_t *p) {
    __m512i u = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
}

/* Transposes 16 x 16 values of 32 bits. */
V16 void transpose_16(v16 a[16]) {
    v16 b[16];
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            __m512d low = _mm512_castps_pd(b[i + j]), high = _mm512_castps_pd(b[i + j + 2]);
            a[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            a[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
        a[i + 4] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88);
        a[i + 8] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd);
        a[i + 12] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd);
    }
}

/* The sums of 16 vectors: of each ((0+2)+(1+3)) within quarters, then quarters (0+1)+(2+3). */
V16 v16 sums_of_16(v16 a[16]) {
    for (int i = 0; i < 8; i++)
        a[i] = v16_add(_mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 4; i++) {
        __m512d low = _mm512_castps_pd(a[2 * i]), high = _mm512_castps_pd(a[2 * i + 1]);
        a[i] = v16_add(_mm512_castpd_ps(_mm512_unpacklo_pd(low, high)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(low, high)));
    }
    for (int i = 0; i < 2; i++)
        a[i] = v16_add(_mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88),
                       _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));
    return v16_add(_mm512_shuffle_f32x4(a[0], a[1], 0x88), _mm512_shuffle_f32x4(a[0], a[1], 0xdd));
}

#endif
