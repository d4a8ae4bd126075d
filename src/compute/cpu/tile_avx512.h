/* What the tile kernels of every instruction set share: AVX-512 arithmetic around the products. For files built
 * with AVX-512 F, BW, DQ, VL and BF16.
 *
 * Results here end as bf16 (relative steps of 2^-8), so powers of two come from a polynomial of degree 4 (relative
 * error below 3e-6) and quotients from a reciprocal estimate with one Newton step. */
#ifndef QVL_COMPUTE_CPU_TILE_AVX512_H
#define QVL_COMPUTE_CPU_TILE_AVX512_H

#include "compute/cpu/tile_kernels.h"
#include "compute/cpu/v16_avx512.h"

#include "compute/cpu/v16_math.h"

#include <math.h>
#include <string.h>

#define BLOCK_FLOATS (3 * 32 * 16) /* sums of 32 rows x 48 columns, [3 column tiles][32 rows][16] */

/* 2^y: 0 far below, infinity far above. */
INLINE v16 fast_exp2(v16 y) {
    v16 r = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF); /* y - floor(y) */
    v16 p = v16_fma(r, v16_set(0.0135341652f), v16_set(0.0520114658f));
    p = v16_fma(p, r, v16_set(0.241442754f));
    p = v16_fma(p, r, v16_set(0.693003835f));
    p = v16_fma(p, r, v16_set(1.00000259f));
    return _mm512_scalef_ps(p, y);
}

/* 1/d for d in 1..2^126 */
INLINE v16 fast_reciprocal(v16 d) {
    v16 r = _mm512_rcp14_ps(d);
    return v16_mul(r, v16_fnma(d, r, v16_set(2.0f)));
}

/* x / (1 + 2^t), t = slope log2(e) (x + 0.044715 x^3). NaN goes through: it is min's second operand. */
INLINE v16 fast_gelu_tanh(v16 x) {
    const float slope = QVL_GELU_SLOPE * QVL_LOG2E;
    v16 t = v16_mul(x, v16_fma(v16_mul(x, x), v16_set(slope * QVL_GELU_CUBIC), v16_set(slope)));
    v16 e = fast_exp2(v16_min(v16_set(120.0f), t));
    return v16_mul(x, fast_reciprocal(v16_add(e, v16_set(1.0f))));
}

INLINE void store_bf16_16(uint16_t *out, v16 x) {
    _mm256_storeu_si256((__m256i *)(void *)out, (__m256i)_mm512_cvtneps_pbh(x));
}

INLINE void store_bf16_32(uint16_t *out, v16 low, v16 high) {
    _mm512_storeu_si512((void *)out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

static void round_to_bf16(int64_t n, const float *x, uint16_t *out) {
    for (int64_t i = 0; i < n; i += 16) store_bf16_16(out + i, v16_load(x + i));
}

/* x/2 erfc(-x/sqrt 2) through erfc(z) = t 2^(P(t - 1/2) - z^2 log2(e)), t = 1/(1 + z/2), P to 1e-6. */
INLINE v16 fast_gelu_erf(v16 x) {
    v16 z = v16_mul(v16_abs(x), v16_set(QVL_SQRT_HALF)), half = v16_set(0.5f);
    v16 t = fast_reciprocal(v16_fma(z, half, v16_set(1.0f)));
    v16 s = v16_sub(t, half);
    v16 p = v16_fma(s, v16_set(-0.276076796f), v16_set(0.139569212f));
    p = v16_fma(p, s, v16_set(0.386892986f));
    p = v16_fma(p, s, v16_set(-0.225568717f));
    p = v16_fma(p, s, v16_set(-0.540153058f));
    p = v16_fma(p, s, v16_set(0.273139419f));
    p = v16_fma(p, s, v16_set(1.94082117f));
    p = v16_fma(p, s, v16_set(-0.969193726f));
    v16 square = v16_mul(z, v16_set(QVL_LOG2E));
    v16 h = v16_mul(v16_mul(x, half), v16_mul(t, fast_exp2(v16_fnma(square, z, p))));
    return v16_where_positive(x, v16_sub(x, h), h);
}

/* ---- weights of a product */

INLINE const char *weights_at(const qvl_tile_product *p, int64_t panel, int64_t step) {
    return (const char *)((uintptr_t)p->b + (uintptr_t)((panel * p->steps + step) * 3 * QVL_TILE) * sizeof *p->b);
}

/* What is read after the slice from `step` on of panel first_panel + panel: slices go over all panels of a block.
 * Behind the last one lies what the next block begins with, if it has the same rows. */
INLINE const char *weights_after(const qvl_tile_product *p, int64_t first_panel, int64_t panels, int64_t panel,
                                 int64_t step) {
    if (panel + 1 < panels) return weights_at(p, first_panel + panel + 1, step);
    if (step + p->slice < p->steps) return weights_at(p, first_panel, step + p->slice);
    return weights_at(p, first_panel + panels, 0);
}

/* ---- the end of a product: one row of a finished block of sums */

/* Where the rows of one column panel go. */
typedef struct panel_finish {
    const qvl_tile_product *p;
    int64_t column; /* of all n */
    m16 mask[3];    /* columns of the panel that exist */
    v16 bias[3];
} panel_finish;

INLINE panel_finish finish_of_panel(const qvl_tile_product *p, int64_t panel) {
    panel_finish f = {.p = p, .column = panel * QVL_PANEL_COLUMNS};
    for (int j = 0; j < 3; j++) {
        int64_t left = p->n - f.column - 16 * j;
        f.mask[j] = m16_first(left < 0 ? 0 : left < 16 ? (int)left : 16);
        f.bias[j] = v16_load_mask(p->bias + f.column + 16 * j, f.mask[j]);
    }
    return f;
}

INLINE float *stream_at(const qvl_tile_product *p, int64_t row, int64_t column) {
    return p->stream + (row - p->first_row) * p->stream_stride + (column - p->first_column);
}

INLINE void finish_to_stream(const panel_finish *f, bool add, const float *sums, int64_t row) {
    float *out = stream_at(f->p, row, f->column);
    for (int j = 0; j < 3; j++) {
        v16 v = v16_add(v16_load(sums + j * 512), f->bias[j]);
        if (add) v = v16_add(v16_load_mask(out + 16 * j, f->mask[j]), v);
        v16_store_mask(out + 16 * j, f->mask[j], v);
    }
}

/* Columns of the panel beyond n have no bias and no weights: they become the operand's zeros. */
INLINE void finish_to_operand(const panel_finish *f, bool tanh_form, const float *sums, int64_t row) {
    v16 v[3];
    for (int j = 0; j < 3; j++) {
        v[j] = v16_add(v16_load(sums + j * 512), f->bias[j]);
        v[j] = tanh_form ? fast_gelu_tanh(v[j]) : fast_gelu_erf(v[j]);
    }
    uint16_t *out = f->p->operand + qvl_tile_offset(f->p->operand_steps, row, f->column / 32);
    bool more = f->column / 32 + 1 < f->p->operand_steps;
    if (f->column % 32 == 0) {
        store_bf16_32(out, v[0], v[1]);
        if (more) store_bf16_16(out + 2 * QVL_TILE, v[2]);
    } else {
        store_bf16_16(out + 16, v[0]);
        if (more) store_bf16_32(out + 2 * QVL_TILE, v[1], v[2]);
    }
}

/* sums: of row `row % 32`, in a block. Rows beyond the product's are left out. */
INLINE void finish_row(qvl_epilogue kind, const panel_finish *f, const float *sums, int64_t row) {
    if (row >= f->p->rows) return;
    switch (kind) {
    case QVL_EPILOGUE_STORE:
        finish_to_stream(f, false, sums, row);
        break;
    case QVL_EPILOGUE_ADD:
        finish_to_stream(f, true, sums, row);
        break;
    case QVL_EPILOGUE_TANH:
        finish_to_operand(f, true, sums, row);
        break;
    case QVL_EPILOGUE_ERF:
        finish_to_operand(f, false, sums, row);
        break;
    }
}

/* ---- softmax numerators */

/* 2^y to 8e-5 and half a step of bf16 above, so that cutting to bf16 rounds: to nearest, ties up. */
INLINE v16 numerator_exp2(v16 y) {
    v16 r = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF);
    v16 p = v16_fma(r, v16_set(0.0780244995f), v16_set(0.226067188f));
    p = v16_fma(p, r, v16_set(0.695833529f));
    p = v16_fma(p, r, v16_set(0.999925219f + 0x1p-8f));
    return _mm512_scalef_ps(p, y);
}

/* Two rows of scores (keys 2i and 2i+1, lanes are queries) to numerators 2^s, stored as the pair row of a right tile. */
INLINE __m512i numerators(v16 s0, v16 s1, uint16_t *pair) {
    __m512i even = _mm512_srli_epi32(_mm512_castps_si512(numerator_exp2(s0)), 16);
    __m512i odd = _mm512_castps_si512(numerator_exp2(s1));
    __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaau, even, odd);
    _mm512_storeu_si512((void *)pair, both);
    return both;
}

/* sum + both rows of the pair, as they were rounded. */
INLINE v16 add_numerators(v16 sum, __m512i pair) {
    return _mm512_dpbf16_ps(sum, (__m512bh)pair, (__m512bh)_mm512_set1_epi32(0x3f803f80));
}

/* The same of scores less top, added to sum, where only `count` of the two rows exist: the others become zeros. */
INLINE void some_numerators(const float *scores, int64_t count, v16 top, v16 *sum, uint16_t *pair) {
    v16 none = v16_set(-INFINITY);
    *sum = add_numerators(*sum, numerators(count > 0 ? v16_sub(v16_load(scores), top) : none,
                                           count > 1 ? v16_sub(v16_load(scores + 16), top) : none, pair));
}

/* ---- from rows to tiles */

/* x[at..]; at may be negative where the mask leaves out the lanes before x. */
INLINE v16 load_lanes(const float *x, int64_t at, m16 mask) {
    return v16_load_mask((const float *)((uintptr_t)x + (uintptr_t)at * sizeof *x), mask);
}

/* How 16 dimensions of a head of `dim` rotate: lanes of its first half pair with lanes half a head behind, the
 * others with lanes half a head before. */
typedef struct rotation {
    int64_t at, half;
    m16 inside, low, high;
} rotation;

INLINE rotation rotation_at(int64_t at, int64_t dim) {
    int64_t half = dim / 2, left = dim - at, low = half - at;
    rotation r = {.at = at, .half = half};
    r.inside = m16_first(left < 0 ? 0 : left < 16 ? (int)left : 16);
    r.low = m16_first(low < 0 ? 0 : low < 16 ? (int)low : 16);
    r.high = (m16)(r.inside & ~r.low);
    return r;
}

/* Lanes of the first half from x[first..], the others from x[at - half..]. */
INLINE v16 load_halves(const rotation *r, const float *x, int64_t first) {
    if (!r->high) return load_lanes(x, first, r->low);
    v16 others = load_lanes(x, r->at - r->half, r->high);
    return r->low ? _mm512_or_ps(load_lanes(x, first, r->low), others) : others;
}

/* x cosine + partner (-sine or sine): the roundings of qvl_rotate. */
INLINE v16 rotate(const rotation *r, const float *x, v16 cosine, v16 sine) {
    v16 partner = load_halves(r, x, r->at + r->half);
    return v16_add(v16_mul(load_lanes(x, r->at, r->inside), cosine), v16_mul(partner, sine));
}

/* Fetches row i of the tile so many tiles behind an address, to be written. */
INLINE void fetch_line(uintptr_t tiles, int64_t tile, int64_t i) {
    __builtin_prefetch((const void *)(tiles + (uintptr_t)(tile * QVL_TILE + i * 32) * sizeof(uint16_t)), 1);
}

/* Row i of q, k or v as bf16, 32 dimensions a time to row i of a left tile. Returns 16 sums of squares of q or k. */
INLINE v16 split_row(const qvl_tile_split *s, qvl_qkv_part part, int64_t dim, int64_t i, uint16_t *tiles) {
    const float *x = s->rows + i * s->row_stride, *cosine = s->cosine + i * (dim / 2),
                *sine = s->sine + i * (dim / 2);
    v16 squares = v16_set(0.0f);
    for (int64_t step = 0; step < (dim + 31) / 32; step++) {
        v16 y[2];
        for (int h = 0; h < 2; h++) {
            rotation r = rotation_at(step * 32 + h * 16, dim);
            if (part == QVL_PART_V) {
                y[h] = load_lanes(x, r.at, r.inside);
                if (dim % 16 && r.at == dim / 16 * 16) /* one, behind the last dimension */
                    y[h] = _mm512_mask_mov_ps(y[h], (m16)(1u << dim % 16), v16_set(1.0f));
                continue;
            }
            v16 c = load_halves(&r, cosine, r.at), sn = load_halves(&r, sine, r.at);
            y[h] = rotate(&r, x, c, _mm512_mask_xor_ps(sn, r.low, sn, v16_set(-0.0f)));
            if (part == QVL_PART_Q) y[h] = v16_mul(y[h], v16_set(s->factor));
            squares = v16_fma(y[h], y[h], squares);
        }
        store_bf16_32(tiles + step * QVL_TILE + i * 32, y[0], y[1]);
        if (part != QVL_PART_V) fetch_line(s->next, step, i);
    }
    for (int64_t tile = 0; part == QVL_PART_V && tile < (dim + 15) / 16; tile++) fetch_line(s->next, tile, i);
    return squares;
}

/* The largest sum of 16 vectors' lanes, in an order of its own: it only has to bound scores. NaN if there is one. */
INLINE float largest_sum(v16 of[16]) {
    v16 sums = sums_of_16(of);
    return _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q) ? NAN : _mm512_reduce_max_ps(sums);
}

/* A left tile, rows x pairs of columns, to pairs of columns x rows: a right tile. */
INLINE void turn_tile(const uint16_t *rows, v16 pairs[16]) {
    for (int i = 0; i < 16; i++) pairs[i] = v16_load((const float *)(const void *)(rows + i * 32));
    transpose_16(pairs);
}

/* Pairs of dimensions x 16 keys to value rows: 16 keys of one dimension. */
INLINE void store_values_of(const v16 pairs[16], int64_t step, int64_t dims, uint16_t *v) {
    for (int p = 0; p < 16 && step * 32 + 2 * p < dims; p++) {
        uint16_t *out = v + (step * 2 + p / 8) * QVL_TILE + p % 8 * 2 * 32;
        __m512i both = _mm512_castps_si512(pairs[p]);
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi32_epi16(both));
        _mm256_storeu_si256((__m256i *)(void *)(out + 32), _mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
    }
}

INLINE float split_16_rows(const qvl_tile_split *s, qvl_qkv_part part, int64_t dim, int64_t count,
                           float *scratch) {
    const int64_t steps = (dim + 31) / 32;
    uint16_t *tiles = part == QVL_PART_K ? s->out : (uint16_t *)scratch;
    v16 squares[16];
    for (int64_t i = 0; i < 16; i++) {
        squares[i] = v16_set(0.0f);
        if (i < count)
            squares[i] = split_row(s, part, dim, i, tiles);
        else
            for (int64_t step = 0; step < steps; step++) memset(tiles + step * QVL_TILE + i * 32, 0, 64);
    }
    for (int64_t step = 0; step < steps && part != QVL_PART_K; step++) {
        v16 pairs[16];
        turn_tile(tiles + step * QVL_TILE, pairs);
        if (part == QVL_PART_V)
            store_values_of(pairs, step, (dim + 15) / 16 * 16, s->out);
        else
            for (int p = 0; p < 16; p++) v16_store((float *)(void *)(s->out + step * QVL_TILE + p * 32), pairs[p]);
    }
    return part == QVL_PART_V ? 0.0f : largest_sum(squares);
}

INLINE float split_part(const qvl_tile_split *s, int64_t dim, int64_t count, float *scratch) {
    switch (s->part) {
    case QVL_PART_Q:
        return split_16_rows(s, QVL_PART_Q, dim, count, scratch);
    case QVL_PART_K:
        return split_16_rows(s, QVL_PART_K, dim, count, scratch);
    case QVL_PART_V:
        break;
    }
    return split_16_rows(s, QVL_PART_V, dim, count, scratch);
}

/* The published towers' widths are constants, so that masks and loops are. */
static float split_rows(const qvl_tile_split *s, int64_t count, float *scratch) {
    if (s->head_dim == 72) return split_part(s, 72, count, scratch);
    if (s->head_dim == 64) return split_part(s, 64, count, scratch);
    return split_part(s, s->head_dim, count, scratch);
}

/* Two rows to one of pairs, rounded. */
INLINE v16 pair_of_rows(v16 even, v16 odd) {
    __m256i low = (__m256i)_mm512_cvtneps_pbh(even), high = (__m256i)_mm512_cvtneps_pbh(odd);
    return _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16)));
}

/* in [16][16] to out rows ldo apart, transposed, each lane i of in times scale[i]. */
INLINE void transpose_scaled(const float *in, v16 scale, float *out, int64_t ldo) {
    v16 a[16];
    for (int i = 0; i < 16; i++) a[i] = v16_mul(v16_load(in + 16 * i), scale);
    transpose_16(a);
    for (int i = 0; i < 16; i++) v16_store(out + i * ldo, a[i]);
}

/* The sums' reciprocals; NaN where the largest score is not finite, so that the row's values are not either. */
INLINE v16 reciprocal_of_sums(v16 sum, v16 top) {
    v16 r = v16_div(v16_set(1.0f), sum);
    m16 bad = _mm512_fpclass_ps_mask(top, 0x99); /* NaN or infinite */
    return _mm512_mask_blend_ps(bad, r, v16_set(NAN));
}

/* values [dimensions][16 queries], times scale, to rows of an operand. */
INLINE void put_queries(const float *values, v16 scale, int64_t head_dim, const qvl_tile_rows *out) {
    int64_t inside = out->column % 32;
    for (int64_t d = 0; d < head_dim; d += 32) {
        v16 pairs[16]; /* of dimensions, lanes are queries; then of queries */
        for (int64_t p = 0; p < 16; p++) {
            const float *two = values + (d + 2 * p) * 16;
            pairs[p] = d + 2 * p < head_dim
                           ? pair_of_rows(v16_mul(v16_load(two), scale), v16_mul(v16_load(two + 16), scale))
                           : v16_set(0.0f);
        }
        transpose_16(pairs);
        int64_t left = head_dim - d;
        __mmask32 all = left < 32 ? (1u << left) - 1u : 0xffffffffu;
        for (int64_t i = 0; i < out->count; i++) {
            uint16_t *to = out->data + qvl_tile_offset(out->steps, out->row + i, (out->column + d) / 32) + inside;
            __mmask32 here = all & (0xffffffffu >> inside); /* the others begin the next step */
            _mm512_mask_storeu_epi16((void *)to, here, _mm512_castps_si512(pairs[i]));
            if (all != here)
                _mm512_mask_storeu_epi16((void *)(to + 2 * QVL_TILE - 32), all & ~here,
                                         _mm512_castps_si512(pairs[i]));
        }
    }
}

/* ---- attention in chunks of keys with a running maximum: right for any scores */

#define CHUNK_KEYS 256

/* scores[keys][16 queries] of `tiles` tiles of 16 keys. */
typedef void (*score_fn)(const qvl_tile_attention *a, const uint16_t *q, const uint16_t *k, int64_t tiles,
                         float *scores);
/* values[value_tiles * 16][16 queries] += v of the chunk x numerators; numerators are zero up to a multiple of 32
 * keys. */
typedef void (*values_fn)(const qvl_tile_attention *a, const uint16_t *v, int64_t pairs, const uint16_t *numerator,
                          float *values);

INLINE void chunked_attention(const qvl_tile_attention *a, int64_t tile, const qvl_tile_rows *out, float *scratch,
                              score_fn score, values_fn add_values) {
    int64_t dim_steps = (a->head_dim + 31) / 32, value_tiles = (a->head_dim + 15) / 16;
    const uint16_t *q = a->q + tile * dim_steps * QVL_TILE;
    float *scores = scratch, *values = scores + CHUNK_KEYS * 16;
    uint16_t *numerator = (uint16_t *)(values + value_tiles * 256);
    v16 top = v16_set(-INFINITY), sum = v16_set(0.0f);
    for (int64_t i = 0; i < value_tiles * 16; i++) v16_store(values + i * 16, v16_set(0.0f));
    for (int64_t key = 0; key < a->keys; key += CHUNK_KEYS) {
        int64_t keys = a->keys - key < CHUNK_KEYS ? a->keys - key : CHUNK_KEYS;
        score(a, q, a->k + key * dim_steps * 32, (keys + 15) / 16, scores);
        v16 new_top = top;
        for (int64_t i = 0; i < keys; i++) new_top = v16_max(v16_load(scores + i * 16), new_top);
        /* The first chunk has nothing to keep, and its old top is no number to subtract from. */
        v16 decay = key ? fast_exp2(v16_sub(top, new_top)) : v16_set(0.0f);
        sum = v16_mul(sum, decay);
        for (int64_t i = 0; i < value_tiles * 16; i++)
            v16_store(values + i * 16, v16_mul(v16_load(values + i * 16), decay));
        int64_t pairs = (keys + 31) / 32 * 16;
        for (int64_t pair = 0; pair < pairs; pair++)
            some_numerators(scores + pair * 32, keys - 2 * pair, new_top, &sum, numerator + pair * 32);
        add_values(a, a->v + key / 32 * value_tiles * QVL_TILE, pairs, numerator, values);
        top = new_top;
    }
    put_queries(values, reciprocal_of_sums(sum, top), a->head_dim, out);
}

#endif
