/* AVX-512 with VBMI and VNNI: eight taps of three channels in one multiply-add, four rows under the same weights. */
#include "preprocess/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS 4
#define TAP_BYTES 32 /* read per 8 taps; 24 of them count */

/* 24 bytes of 8 pixels to pairs of 16-bit values: lane l gets red, green and blue of pixels 2l and 2l+1. */
INLINE __m512i pairs_of_pixels(const uint8_t *p, __m512i order) {
    const __mmask64 low_bytes = 0x0555055505550555u; /* six values a lane; the upper bytes are zero */
    __m512i bytes = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_maskz_permutexvar_epi8(low_bytes, order, bytes);
}

static __m512i pixel_order(void) {
    uint8_t order[64] = {0};
    for (int lane = 0; lane < 4; lane++)
        for (int channel = 0; channel < 3; channel++) {
            order[16 * lane + 4 * channel] = (uint8_t)(6 * lane + channel);
            order[16 * lane + 4 * channel + 2] = (uint8_t)(6 * lane + 3 + channel);
        }
    return _mm512_loadu_si512(order);
}

INLINE __m128i sum_of_lanes(__m512i x) {
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Output i of `rows` rows: three bytes and one of no meaning. */
INLINE void make_pixels(const qvl_axis *a, int64_t i, int rows, bool two_parts, const uint8_t *in,
                        size_t in_stride, __m512i order, __m128i half, __m128i shift, uint8_t pixels[ROWS][4]) {
    __m512i high[ROWS], low[ROWS];
    for (int r = 0; r < rows; r++) high[r] = low[r] = _mm512_setzero_si512();
    const uint8_t *p = in + 3 * a->first[i];
    int64_t groups = (a->count[i] + QVL_TAPS - 1) / QVL_TAPS;
    for (int64_t g = 0; g < groups; g++, p += 3 * QVL_TAPS) {
        size_t at = (size_t)((i * a->groups + g) * QVL_TAP_VALUES);
        __m512i w = _mm512_loadu_si512(a->high + at), wl = two_parts ? _mm512_loadu_si512(a->low + at) : w;
        for (int r = 0; r < rows; r++) {
            __m512i x = pairs_of_pixels(p + (size_t)r * in_stride, order);
            high[r] = _mm512_dpwssd_epi32(high[r], x, w);
            if (two_parts) low[r] = _mm512_dpwssd_epi32(low[r], x, wl);
        }
    }
    __m128i sums[ROWS];
    for (int r = 0; r < rows; r++) {
        __m512i all = two_parts ? _mm512_add_epi32(_mm512_slli_epi32(high[r], QVL_LOW_BITS), low[r]) : high[r];
        sums[r] = _mm_sra_epi32(_mm_add_epi32(sum_of_lanes(all), half), shift);
    }
    for (int r = rows; r < ROWS; r++) sums[r] = _mm_setzero_si128();
    __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(sums[0], sums[1]), _mm_packs_epi32(sums[2], sums[3]));
    _mm_storeu_si128((__m128i *)(void *)pixels, bytes);
}

INLINE void horizontal_rows(const qvl_axis *a, int rows, bool two_parts, const uint8_t *in, size_t in_stride,
                            const uint8_t *in_end, uint8_t *out, size_t out_stride) {
    __m512i order = pixel_order();
    __m128i half = _mm_set1_epi32((int32_t)1 << (a->precision - 1)), shift = _mm_cvtsi32_si128(a->precision);
    const uint8_t *last_row = in + (size_t)(rows - 1) * in_stride;
    for (int64_t i = 0; i < a->out; i++) {
        int64_t groups = (a->count[i] + QVL_TAPS - 1) / QVL_TAPS;
        int64_t reach = 3 * (a->first[i] + (groups - 1) * QVL_TAPS) + TAP_BYTES;
        if (reach > in_end - last_row) {
            for (int r = 0; r < rows; r++)
                qvl_horizontal_pixel(a, i, in + (size_t)r * in_stride, out + (size_t)r * out_stride + 3 * i);
            continue;
        }
        uint8_t pixels[ROWS][4];
        make_pixels(a, i, rows, two_parts, in, in_stride, order, half, shift, pixels);
        for (int r = 0; r < rows; r++) memcpy(out + (size_t)r * out_stride + 3 * i, pixels[r], 3);
    }
}

static void horizontal(const qvl_axis *a, int64_t rows, const uint8_t *in, size_t in_stride, const uint8_t *in_end,
                       uint8_t *out, size_t out_stride) {
    for (; rows >= ROWS; rows -= ROWS, in += ROWS * in_stride, out += ROWS * out_stride) {
        if (a->wide)
            horizontal_rows(a, ROWS, true, in, in_stride, in_end, out, out_stride);
        else
            horizontal_rows(a, ROWS, false, in, in_stride, in_end, out, out_stride);
    }
    for (; rows > 0; rows--, in += in_stride, out += out_stride) {
        if (a->wide)
            horizontal_rows(a, 1, true, in, in_stride, in_end, out, out_stride);
        else
            horizontal_rows(a, 1, false, in, in_stride, in_end, out, out_stride);
    }
}

/* 64 columns from pairs of rows. Weights of more than 16 bits are split as in a horizontal pass. */
INLINE void vertical_64(const uint8_t *in, size_t stride, const int32_t *w, int64_t count, int precision,
                        bool two_parts, __mmask64 columns, uint8_t *out) {
    __m512i high[4], low[4], zero = _mm512_setzero_si512();
    for (int j = 0; j < 4; j++) high[j] = low[j] = zero;
    for (int64_t k = 0; k < count; k += 2) {
        bool two = k + 1 < count;
        __m512i a = _mm512_maskz_loadu_epi8(columns, in + (size_t)k * stride);
        __m512i b = two ? _mm512_maskz_loadu_epi8(columns, in + (size_t)(k + 1) * stride) : zero;
        int32_t w0 = w[k], w1 = two ? w[k + 1] : 0;
        int32_t h0 = two_parts ? w0 >> QVL_LOW_BITS : w0, h1 = two_parts ? w1 >> QVL_LOW_BITS : w1;
        __m512i wh = _mm512_set1_epi32((int32_t)((uint32_t)(h0 & 0xffff) | (uint32_t)h1 << 16));
        const int32_t mask = (1 << QVL_LOW_BITS) - 1;
        __m512i wl = _mm512_set1_epi32((w0 & mask) | (w1 & mask) << 16);
        __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
        for (int j = 0; j < 4; j++) {
            /* bytes a b a b ... of 8 columns a lane, to 16-bit pairs of 4 */
            __m512i x = j % 2 ? _mm512_unpackhi_epi8(ab[j / 2], zero) : _mm512_unpacklo_epi8(ab[j / 2], zero);
            high[j] = _mm512_dpwssd_epi32(high[j], x, wh);
            if (two_parts) low[j] = _mm512_dpwssd_epi32(low[j], x, wl);
        }
    }
    __m512i half = _mm512_set1_epi32((int32_t)1 << (precision - 1));
    __m128i shift = _mm_cvtsi32_si128(precision);
    for (int j = 0; j < 4; j++) {
        if (two_parts) high[j] = _mm512_add_epi32(_mm512_slli_epi32(high[j], QVL_LOW_BITS), low[j]);
        high[j] = _mm512_sra_epi32(_mm512_add_epi32(high[j], half), shift);
    }
    /* Packing works lane by lane, as unpacking did: the columns come out in order. */
    __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(high[0], high[1]), _mm512_packs_epi32(high[2], high[3]));
    _mm512_mask_storeu_epi8(out, columns, bytes);
}

static void vertical(const qvl_axis *a, int64_t i, const uint8_t *in, size_t stride, size_t n, uint8_t *out) {
    const int32_t *w = a->weights + i * a->capacity;
    for (size_t x = 0; x < n; x += 64) {
        __mmask64 columns = n - x < 64 ? ((uint64_t)1 << (n - x)) - 1 : ~(uint64_t)0;
        if (a->wide)
            vertical_64(in + x, stride, w, a->count[i], a->precision, true, columns, out + x);
        else
            vertical_64(in + x, stride, w, a->count[i], a->precision, false, columns, out + x);
    }
}

const qvl_resample_kernels qvl_resample_avx512 = {"avx512", horizontal, vertical};
