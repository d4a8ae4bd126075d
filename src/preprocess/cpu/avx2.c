/* AVX2: four taps of three channels in one multiply-add. */
#include "preprocess/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define TAP_BYTES 32 /* within what is read per 8 taps: 16 bytes at 0 and at 12 */

/* 12 bytes of 4 pixels to pairs of 16-bit values: lane l gets red, green and blue of pixels 2l and 2l+1. */
INLINE __m256i pairs_of_pixels(const uint8_t *p) {
    const __m256i order =
        _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, /* pixels 0, 1 */
                         6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
}

INLINE __m256i load(const int16_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE void make_pixel(const qvl_axis *a, int64_t i, bool two_parts, const uint8_t *in, __m128i half,
                       __m128i shift, uint8_t *out) {
    __m256i high = _mm256_setzero_si256(), low = high;
    const uint8_t *p = in + 3 * a->first[i];
    int64_t halves = (a->count[i] + QVL_TAPS / 2 - 1) / (QVL_TAPS / 2);
    size_t at = (size_t)(i * a->groups * QVL_TAP_VALUES);
    for (int64_t h = 0; h < halves; h++, p += 3 * QVL_TAPS / 2, at += QVL_TAP_VALUES / 2) {
        __m256i x = pairs_of_pixels(p);
        high = _mm256_add_epi32(high, _mm256_madd_epi16(x, load(a->high + at)));
        if (two_parts) low = _mm256_add_epi32(low, _mm256_madd_epi16(x, load(a->low + at)));
    }
    if (two_parts) high = _mm256_add_epi32(_mm256_slli_epi32(high, QVL_LOW_BITS), low);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    sum = _mm_sra_epi32(_mm_add_epi32(sum, half), shift);
    sum = _mm_packs_epi32(sum, sum);
    int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    memcpy(out, &bytes, 3);
}

INLINE void horizontal_row(const qvl_axis *a, bool two_parts, const uint8_t *in, const uint8_t *in_end,
                           uint8_t *out) {
    __m128i half = _mm_set1_epi32((int32_t)1 << (a->precision - 1)), shift = _mm_cvtsi32_si128(a->precision);
    for (int64_t i = 0; i < a->out; i++) {
        int64_t groups = (a->count[i] + QVL_TAPS - 1) / QVL_TAPS;
        if (3 * (a->first[i] + (groups - 1) * QVL_TAPS) + TAP_BYTES > in_end - in)
            qvl_horizontal_pixel(a, i, in, out + 3 * i);
        else
            make_pixel(a, i, two_parts, in, half, shift, out + 3 * i);
    }
}

static void horizontal(const qvl_axis *a, int64_t rows, const uint8_t *in, size_t in_stride, const uint8_t *in_end,
                       uint8_t *out, size_t out_stride) {
    for (int64_t y = 0; y < rows; y++, in += in_stride, out += out_stride) {
        if (a->wide)
            horizontal_row(a, true, in, in_end, out);
        else
            horizontal_row(a, false, in, in_end, out);
    }
}

/* Two weights as the 16-bit pair of every lane. */
INLINE __m256i weight_pair(int32_t w0, int32_t w1) {
    return _mm256_set1_epi32((int32_t)((uint32_t)(w0 & 0xffff) | (uint32_t)w1 << 16));
}

/* 32 columns from pairs of rows. */
INLINE void vertical_32(const qvl_axis *a, int64_t i, bool two_parts, const uint8_t *in, size_t stride,
                        uint8_t *out) {
    const int32_t *w = a->weights + i * a->capacity, mask = (1 << QVL_LOW_BITS) - 1;
    __m256i high[4], low[4], zero = _mm256_setzero_si256();
    for (int j = 0; j < 4; j++) high[j] = low[j] = zero;
    for (int64_t k = 0; k < a->count[i]; k += 2) {
        bool two = k + 1 < a->count[i];
        const uint8_t *row = in + (size_t)k * stride;
        __m256i x0 = _mm256_loadu_si256((const __m256i *)(const void *)row);
        __m256i x1 = two ? _mm256_loadu_si256((const __m256i *)(const void *)(row + stride)) : zero;
        int32_t w0 = w[k], w1 = two ? w[k + 1] : 0;
        __m256i wh = two_parts ? weight_pair(w0 >> QVL_LOW_BITS, w1 >> QVL_LOW_BITS) : weight_pair(w0, w1);
        __m256i wl = weight_pair(w0 & mask, w1 & mask);
        __m256i both[2] = {_mm256_unpacklo_epi8(x0, x1), _mm256_unpackhi_epi8(x0, x1)};
        for (int j = 0; j < 4; j++) {
            __m256i x = j % 2 ? _mm256_unpackhi_epi8(both[j / 2], zero) : _mm256_unpacklo_epi8(both[j / 2], zero);
            high[j] = _mm256_add_epi32(high[j], _mm256_madd_epi16(x, wh));
            if (two_parts) low[j] = _mm256_add_epi32(low[j], _mm256_madd_epi16(x, wl));
        }
    }
    __m256i half = _mm256_set1_epi32((int32_t)1 << (a->precision - 1));
    __m128i shift = _mm_cvtsi32_si128(a->precision);
    for (int j = 0; j < 4; j++) {
        if (two_parts) high[j] = _mm256_add_epi32(_mm256_slli_epi32(high[j], QVL_LOW_BITS), low[j]);
        high[j] = _mm256_sra_epi32(_mm256_add_epi32(high[j], half), shift);
    }
    /* Packing works lane by lane, as unpacking did: the columns come out in order. */
    __m256i bytes =
        _mm256_packus_epi16(_mm256_packs_epi32(high[0], high[1]), _mm256_packs_epi32(high[2], high[3]));
    _mm256_storeu_si256((__m256i *)(void *)out, bytes);
}

static void vertical(const qvl_axis *a, int64_t i, const uint8_t *in, size_t stride, size_t n, uint8_t *out) {
    size_t x = 0;
    for (; x + 32 <= n; x += 32) {
        if (a->wide)
            vertical_32(a, i, true, in + x, stride, out + x);
        else
            vertical_32(a, i, false, in + x, stride, out + x);
    }
    if (x < n) qvl_resample_scalar.vertical(a, i, in + x, stride, n - x, out + x);
}

const qvl_resample_kernels qvl_resample_avx2 = {"avx2", horizontal, vertical};
