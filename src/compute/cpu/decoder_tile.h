/* The decoder's kernels over bf16 tiles that every instruction set of tiles has in common. The file that includes this
 * has included tile_avx512.h and defines score_keys and add_values (score_fn, values_fn) on its own instructions. */
#ifndef QVL_COMPUTE_CPU_DECODER_TILE_H
#define QVL_COMPUTE_CPU_DECODER_TILE_H

#include "compute/cpu/decoder_kernels.h"

/* ---- matrices to rows of bf16 */

typedef __m512i b32; /* 32 bf16 */

INLINE b32 round_pair(v16 low, v16 high) {
    return (b32)_mm512_cvtne2ps_pbh(high, low);
}

/* 32 values of F32, BF16 or F16 that lie side by side, those of the mask, else zeros. */
INLINE b32 load_32(qvl_dtype dtype, const uint8_t *values, __mmask32 mask) {
    if (dtype == QVL_BF16) return _mm512_maskz_loadu_epi16(mask, (const void *)values);
    if (dtype == QVL_F16) {
        __m512i halves = _mm512_maskz_loadu_epi16(mask, (const void *)values);
        return round_pair(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                          _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)));
    }
    const float *floats = (const float *)(const void *)values;
    return round_pair(_mm512_maskz_loadu_ps((__mmask16)mask, floats),
                      _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), floats + 16));
}

INLINE v16 round_to_type(qvl_dtype dtype, v16 x) {
    if (dtype == QVL_BF16) return v16_round_bf16(x);
    if (dtype == QVL_F16)
        return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return x;
}

INLINE v16 broadcast_value(qvl_dtype dtype, const uint8_t *values, int64_t at) {
    if (dtype == QVL_F32) {
        float value;
        memcpy(&value, values + 4 * at, 4);
        return v16_set(value);
    }
    uint16_t bits;
    memcpy(&bits, values + 2 * at, 2);
    if (dtype == QVL_BF16) return _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)bits << 16)));
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)bits));
}

/* 32 values of one group. */
INLINE b32 load_quantised(const qvl_matrix *w, qvl_dtype scale_dtype, int64_t row, int64_t column) {
    const uint8_t *packed = w->data + (row * w->stride + column) * w->bits / 8;
    __m256i bytes;
    if (w->bits == 8) {
        bytes = _mm256_loadu_si256((const __m256i *)(const void *)packed);
    } else {
        __m128i both = _mm_loadu_si128((const __m128i *)(const void *)packed), low4 = _mm_set1_epi8(15);
        __m128i even = _mm_and_si128(both, low4), odd = _mm_and_si128(_mm_srli_epi16(both, 4), low4);
        bytes = _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
    }
    int64_t at = row * (w->k / w->group) + column / w->group;
    v16 scale = broadcast_value(scale_dtype, w->scales, at), bias = broadcast_value(scale_dtype, w->biases, at);
    v16 low = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes)));
    v16 high = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(bytes, 1)));
    low = round_to_type(scale_dtype, v16_add(round_to_type(scale_dtype, v16_mul(scale, low)), bias));
    high = round_to_type(scale_dtype, v16_add(round_to_type(scale_dtype, v16_mul(scale, high)), bias));
    return round_pair(low, high);
}

INLINE __mmask32 columns_of_step(int64_t k, int64_t step) {
    int64_t left = k - step * 32;
    return left >= 32 ? 0xffffffffu : (__mmask32)((1u << left) - 1u);
}

/* Two columns of W lie behind each other as rows of 16 and more: they are zipped, and the tile turned. */
INLINE void expand_columns(qvl_dtype dtype, const qvl_matrix *w, int64_t first_row, int64_t rows, int64_t step,
                           uint16_t *out, int64_t ld) {
    size_t size = dtype == QVL_F32 ? 4 : 2;
    for (int64_t r = 0; r < rows; r += 16) {
        __mmask32 mask = rows - r < 16 ? (__mmask32)((1u << (rows - r)) - 1u) : 0xffffu;
        v16 pairs[16];
        for (int64_t pair = 0; pair < 16; pair++) {
            int64_t column = step * 32 + 2 * pair;
            size_t at = (size_t)(column * w->stride + first_row + r) * size;
            b32 low = load_32(dtype, w->data + at, column < w->k ? mask : 0);
            b32 high = load_32(dtype, w->data + at + (size_t)w->stride * size, column + 1 < w->k ? mask : 0);
            __m512i zipped =
                _mm512_or_si512(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(low)),
                                _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(high)), 16));
            pairs[pair] = _mm512_castsi512_ps(zipped);
        }
        transpose_16(pairs);
        for (int64_t i = 0; i < 16 && r + i < rows; i++)
            v16_store((float *)(void *)(out + (r + i) * ld), pairs[i]);
    }
}

INLINE void expand_type(qvl_dtype dtype, const qvl_matrix *w, int64_t first_row, int64_t rows, int64_t first_step,
                        int64_t steps, uint16_t *out, int64_t ld) {
    size_t size = dtype == QVL_F32 ? 4 : 2;
    for (int64_t s = 0; s < steps; s++, out += 32) {
        int64_t step = first_step + s;
        if (w->by_columns && !w->bits) {
            expand_columns(dtype, w, first_row, rows, step, out, ld);
            continue;
        }
        __mmask32 mask = columns_of_step(w->k, step);
        for (int64_t r = 0; r < rows; r++) {
            int64_t row = first_row + r;
            const uint8_t *values = w->data + (size_t)(row * w->stride + step * 32) * size;
            b32 v = w->bits ? load_quantised(w, dtype, row, step * 32) : load_32(dtype, values, mask);
            _mm512_storeu_si512((void *)(out + r * ld), v);
        }
    }
}

/* One specialised loop per type. */
static void expand(const qvl_matrix *w, int64_t first_row, int64_t rows, int64_t first_step, int64_t steps,
                   uint16_t *out, int64_t ld) {
    switch (w->bits ? w->scale_dtype : w->dtype) {
    case QVL_BF16:
        expand_type(QVL_BF16, w, first_row, rows, first_step, steps, out, ld);
        break;
    case QVL_F16:
        expand_type(QVL_F16, w, first_row, rows, first_step, steps, out, ld);
        break;
    default:
        expand_type(QVL_F32, w, first_row, rows, first_step, steps, out, ld);
        break;
    }
}

/* ---- from sums to rows */

static void finish_sums(bool add, int64_t rows, int64_t columns, const float *sums, float *out, int64_t ldo) {
    for (int64_t i = 0; i < rows; i++, out += ldo, sums += QVL_DOT_COLUMNS)
        for (int64_t j = 0; j < columns; j += 16) {
            m16 mask = m16_first(columns - j < 16 ? (int)(columns - j) : 16);
            v16 v = v16_load(sums + j);
            if (add) v = v16_add(v16_load_mask(out + j, mask), v);
            v16_store_mask(out + j, mask, v);
        }
}

/* ---- attention */

static void right_tiles(const float *rows, int64_t ld, float factor, uint16_t *out) {
    v16 f = v16_set(factor);
    for (int64_t step = 0; step < ld / 32; step++, out += QVL_TILE) {
        v16 a[16];
        for (int64_t i = 0; i < 16; i++) {
            const float *x = rows + i * ld + step * 32;
            a[i] = _mm512_castsi512_ps(round_pair(v16_mul(v16_load(x), f), v16_mul(v16_load(x + 16), f)));
        }
        transpose_16(a);
        for (int i = 0; i < 16; i++) v16_store((float *)(void *)(out + i * 32), a[i]);
    }
}

/* Folds what was summed by itself into a state; queries without keys in it stay as they are. */
INLINE void join_states(int64_t dims, v16 top, v16 sum, const float *values, m16 has_keys,
                        const qvl_tile_state *state) {
    v16 old_top = v16_load(state->top), new_top = v16_max(top, old_top);
    v16 a = _mm512_mask_blend_ps(has_keys, v16_set(1.0f), fast_exp2(v16_sub(old_top, new_top)));
    v16 b = _mm512_maskz_mov_ps(has_keys, fast_exp2(v16_sub(top, new_top)));
    v16_store(state->top, _mm512_mask_blend_ps(has_keys, old_top, new_top));
    v16_store(state->sum, v16_fma(_mm512_maskz_mov_ps(has_keys, sum), b, v16_mul(v16_load(state->sum), a)));
    for (int64_t d = 0; d < dims; d++) {
        v16 part = _mm512_maskz_mov_ps(has_keys, v16_load(values + d * 16));
        v16_store(state->values + d * 16, v16_fma(part, b, v16_mul(v16_load(state->values + d * 16), a)));
    }
}

/* Softmax of the chunk by itself, from zero. Powers are those of chunked_attention. */
static void attend(const qvl_tile_chunk *c, bool first, qvl_tile_state *state, float *scratch) {
    qvl_tile_attention shape = {.keys = c->keys, .head_dim = c->head_dim};
    int64_t dims = (c->head_dim + 15) / 16 * 16, pairs = (c->keys + 31) / 32 * 16;
    float *scores = scratch, *values = first ? state->values : scores + CHUNK_KEYS * 16;
    uint16_t *numerator = (uint16_t *)(scratch + CHUNK_KEYS * 16 + dims * 16);
    __m512i seen = _mm512_loadu_si512((const void *)c->seen);
    v16 top = v16_set(-INFINITY), sum = v16_set(0.0f), none = v16_set(-INFINITY);
    score_keys(&shape, c->q, c->k, (c->keys + 15) / 16, scores);
    for (int64_t i = 0; i < c->keys; i++) {
        m16 sees = _mm512_cmpgt_epi32_mask(seen, _mm512_set1_epi32((int)i));
        v16 s = _mm512_mask_blend_ps(sees, none, v16_load(scores + i * 16));
        v16_store(scores + i * 16, s);
        top = v16_max(s, top);
    }
    m16 has_keys = _mm512_cmpgt_epi32_mask(seen, _mm512_setzero_si512());
    v16 subtracted = _mm512_maskz_mov_ps(has_keys, top); /* -infinity is no number to subtract */
    for (int64_t pair = 0; pair < pairs; pair++)
        some_numerators(scores + pair * 32, c->keys - 2 * pair, subtracted, &sum, numerator + pair * 32);
    for (int64_t d = 0; d < dims; d++) v16_store(values + d * 16, v16_set(0.0f));
    add_values(&shape, c->v, pairs, numerator, values);
    if (first) {
        v16_store(state->top, top);
        v16_store(state->sum, sum);
    } else {
        join_states(dims, top, sum, values, has_keys, state);
    }
}

static void join(int64_t head_dim, const qvl_tile_state *later, const int32_t *seen, qvl_tile_state *state) {
    m16 has_keys = _mm512_cmpgt_epi32_mask(_mm512_loadu_si512((const void *)seen), _mm512_setzero_si512());
    join_states((head_dim + 15) / 16 * 16, v16_load(later->top), v16_load(later->sum), later->values, has_keys,
                state);
}

static void result(int64_t head_dim, const qvl_tile_state *state, float *out) {
    int64_t tiles = (head_dim + 15) / 16;
    v16 scale = reciprocal_of_sums(v16_load(state->sum), v16_load(state->top));
    for (int64_t t = 0; t < tiles; t++) transpose_scaled(state->values + t * 256, scale, out + t * 16, tiles * 16);
}

#endif
