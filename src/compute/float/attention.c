/* softmax(scale q k^T) v within segments, with a running maximum over tiles of keys (tiles count from the
 * segment's first key, so a row's sums never depend on where the segment lies).
 *
 * Layout of qvl_heads, all float, values rounded in bf16 mode:
 *   q  [heads][rows][head_dim]
 *   k  [heads][panels][head_dim][32]  a panel is 32 keys of one segment (a segment unit, context.h), zero beyond its end
 *   v  [heads][rows][value_width]     head_dim rounded up to 16, zero beyond head_dim */
#include "compute/float/layout.h"

#include "base/bf16.h"

#include <math.h>
#include <string.h>

#define QUERY_BLOCK 48
#define KEY_TILE 512

typedef struct heads_layout {
    int64_t panels, value_width;
    int64_t q_head, k_head, v_head; /* floats per head */
    float *q, *k, *v;
} heads_layout;

static heads_layout layout_of(const qvl_heads *heads, const qvl_segments *segments) {
    heads_layout l = {0};
    l.panels = qvl_segment_units(segments, heads->rows, QVL_PANEL);
    l.value_width = qvl_ceil_div(heads->head_dim, 16) * 16;
    l.q_head = heads->rows * heads->head_dim;
    l.k_head = l.panels * heads->head_dim * QVL_PANEL;
    l.v_head = heads->rows * l.value_width;
    l.q = heads->data;
    l.k = l.q ? l.q + heads->heads * l.q_head : NULL;
    l.v = l.q ? l.k + heads->heads * l.k_head : NULL;
    return l;
}

size_t qvl_float_heads_bytes(int64_t rows, int64_t heads, int64_t head_dim, const qvl_segments *segments) {
    qvl_heads shape = {.rows = rows, .heads = heads, .head_dim = head_dim};
    heads_layout l = layout_of(&shape, segments);
    return (size_t)heads * (size_t)(l.q_head + l.k_head + l.v_head) * sizeof(float);
}

/* ---- from rows of [q k v] to heads */

typedef struct split_job {
    const qvl_compute *compute;
    const float *qkv; /* [rows, 3, heads, head_dim] */
    const float *cosine, *sine;
    const qvl_segments *segments;
    const qvl_heads *heads;
    heads_layout layout;
} split_job;

static void split_row_of_head(const split_job *job, int64_t row, int64_t head, int64_t segment, float *scratch) {
    const heads_layout *l = &job->layout;
    const qvl_kernels *kernels = job->compute->kernels;
    int64_t hd = job->heads->head_dim, half = hd / 2, width = job->heads->heads * hd;
    const float *x = job->qkv + row * 3 * width + head * hd;
    const float *c = job->cosine + row * half, *s = job->sine + row * half;
    float *q = l->q + head * l->q_head + row * hd;
    float *v = l->v + head * l->v_head + row * l->value_width;
    qvl_rotate(half, x, c, s, q);
    qvl_rotate(half, x + width, c, s, scratch);
    memcpy(v, x + 2 * width, (size_t)hd * sizeof(float));
    memset(v + hd, 0, (size_t)(l->value_width - hd) * sizeof(float));
    if (job->compute->round) {
        kernels->round_bf16(hd, q, q);
        kernels->round_bf16(hd, scratch, scratch);
        kernels->round_bf16(hd, v, v);
    }
    int64_t start = job->segments->start[segment], end = job->segments->start[segment + 1], key = row - start;
    float *panel = l->k + head * l->k_head +
                   (qvl_segment_unit(job->segments, segment, QVL_PANEL) + key / QVL_PANEL) * hd * QVL_PANEL;
    int64_t lane = key % QVL_PANEL;
    for (int64_t d = 0; d < hd; d++) panel[d * QVL_PANEL + lane] = scratch[d];
    if (row == end - 1)
        for (int64_t d = 0; d < hd; d++)
            memset(panel + d * QVL_PANEL + lane + 1, 0, (size_t)(QVL_PANEL - 1 - lane) * sizeof(float));
}

static void split_rows(void *user, int64_t task, int worker) {
    const split_job *job = user;
    float *scratch = qvl_pool_scratch(job->compute->pool, worker);
    int64_t first = task * QVL_PANEL, rows = job->heads->rows;
    int64_t end = first + QVL_PANEL < rows ? first + QVL_PANEL : rows;
    int64_t first_segment = qvl_segment_of_row(job->segments, first);
    for (int64_t head = 0; head < job->heads->heads; head++) {
        int64_t segment = first_segment;
        for (int64_t row = first; row < end; row++) {
            while (row >= job->segments->start[segment + 1]) segment++;
            split_row_of_head(job, row, head, segment, scratch);
        }
    }
}

size_t qvl_float_qkv_scratch(const qvl_compute *compute, int64_t rows, int64_t heads, int64_t head_dim) {
    (void)compute;
    return (size_t)rows * 3 * (size_t)heads * (size_t)head_dim;
}

void qvl_float_matmul_qkv(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, const float *cosine,
                          const float *sine, const qvl_segments *segments, float *scratch, qvl_heads *out) {
    qvl_float_product(compute, a, w, QVL_EPILOGUE_STORE, scratch, NULL);
    split_job job = {compute, scratch, cosine, sine, segments, out, layout_of(out, segments)};
    qvl_pool_run(compute->pool, qvl_ceil_div(out->rows, QVL_PANEL), split_rows, &job);
}

void qvl_float_heads_read(const qvl_heads *in, const qvl_segments *segments, float *q, float *k, float *v) {
    heads_layout l = layout_of(in, segments);
    int64_t hd = in->head_dim, segment = 0;
    for (int64_t row = 0; row < in->rows; row++) {
        while (row >= segments->start[segment + 1]) segment++;
        int64_t start = segments->start[segment], key = row - start;
        for (int64_t head = 0; head < in->heads; head++) {
            const float *panel =
                l.k + head * l.k_head +
                (qvl_segment_unit(segments, segment, QVL_PANEL) + key / QVL_PANEL) * hd * QVL_PANEL;
            size_t to = (size_t)((row * in->heads + head) * hd);
            memcpy(q + to, l.q + head * l.q_head + row * hd, (size_t)hd * sizeof(float));
            memcpy(v + to, l.v + head * l.v_head + row * l.value_width, (size_t)hd * sizeof(float));
            for (int64_t d = 0; d < hd; d++) k[to + (size_t)d] = panel[d * QVL_PANEL + key % QVL_PANEL];
        }
    }
}

/* ---- attention of one block of queries of one head */

typedef struct attention_job {
    const qvl_compute *compute;
    const qvl_heads *heads;
    const qvl_segments *segments;
    heads_layout layout;
    float factor; /* scale * log2(e) */
    float *out;   /* [rows, heads * head_dim] */
    int64_t slots;
} attention_job;

typedef struct query_block {
    int64_t head, first, rows;   /* rows of the whole call */
    int64_t keys;                /* of the segment */
    const float *panels, *value; /* the segment's first panel and row */
} query_block;

/* scores[rows, KEY_TILE] of the tile's keys, which start on a panel. */
static void tile_scores(const attention_job *job, const query_block *b, int64_t key, int64_t keys, float *scores) {
    int64_t hd = job->heads->head_dim;
    const float *q = job->layout.q + b->head * job->layout.q_head + b->first * hd;
    for (int64_t j = 0; j < keys; j += QVL_PANEL)
        job->compute->kernels->product(b->rows, QVL_PANEL, hd, q, hd, b->panels + (key + j) * hd, QVL_PANEL,
                                       scores + j, KEY_TILE, false, (qvl_ahead){0});
}

/* Folds a tile into the running maximum, sum and values of each row; scores become softmax numerators. A row whose
 * scores are not finite gets the sum NaN, which makes its output NaN. */
static void fold_tile(const attention_job *job, const query_block *b, int64_t keys, float *scores, float *top,
                      float *sum, float *values) {
    const qvl_kernels *kernels = job->compute->kernels;
    for (int64_t i = 0; i < b->rows; i++) {
        float tile_top = kernels->maximum(keys, scores + i * KEY_TILE);
        float new_top = tile_top > top[i] ? tile_top : top[i];
        if (!isfinite(new_top)) {
            sum[i] = NAN;
            new_top = 0.0f;
        }
        float decay = top[i];
        kernels->exponentials(1, &decay, new_top, job->factor, false);
        float tile_sum =
            kernels->exponentials(keys, scores + i * KEY_TILE, new_top, job->factor, job->compute->round);
        sum[i] = sum[i] * decay + tile_sum;
        top[i] = new_top;
        kernels->scale(job->layout.value_width, values + i * job->layout.value_width, decay);
    }
}

static void tile_values(const attention_job *job, const query_block *b, int64_t key, int64_t keys,
                        const float *scores, float *values) {
    int64_t width = job->layout.value_width;
    const float *v = b->value + key * width;
    for (int64_t j = 0; j < width;) {
        int64_t columns = width - j >= QVL_PANEL ? QVL_PANEL : 16;
        job->compute->kernels->product(b->rows, columns, keys, scores, KEY_TILE, v + j, width, values + j, width,
                                       key > 0, (qvl_ahead){0});
        j += columns;
    }
}

static void attend(const attention_job *job, const query_block *b, float *scratch) {
    int64_t hd = job->heads->head_dim, width = job->layout.value_width, all = job->heads->heads * hd;
    float *scores = scratch, *values = scores + QUERY_BLOCK * KEY_TILE, *top = values + QUERY_BLOCK * width;
    float *sum = top + QUERY_BLOCK;
    for (int64_t i = 0; i < b->rows; i++) top[i] = -INFINITY, sum[i] = 0.0f;
    memset(values, 0, (size_t)(b->rows * width) * sizeof(float));
    for (int64_t key = 0; key < b->keys; key += KEY_TILE) {
        int64_t keys = b->keys - key < KEY_TILE ? b->keys - key : KEY_TILE;
        tile_scores(job, b, key, keys, scores);
        fold_tile(job, b, keys, scores, top, sum, values);
        tile_values(job, b, key, keys, scores, values);
    }
    for (int64_t i = 0; i < b->rows; i++) {
        float *out = job->out + (b->first + i) * all + b->head * hd;
        job->compute->kernels->scale(hd, values + i * width, 1.0f / sum[i]);
        if (job->compute->round)
            job->compute->kernels->round_bf16(hd, values + i * width, out);
        else
            memcpy(out, values + i * width, (size_t)hd * sizeof(float));
    }
}

/* Block slots are numbered like panels: segment s that starts at row r has slots from r/QUERY_BLOCK + s on; a slot
 * between two segments may be empty. */
static void attend_slot(void *user, int64_t task, int worker) {
    const attention_job *job = user;
    const heads_layout *l = &job->layout;
    int64_t slot = task % job->slots, head = task / job->slots, hd = job->heads->head_dim;
    int64_t s = qvl_segment_of_unit(job->segments, slot, QUERY_BLOCK);
    int64_t start = job->segments->start[s], end = job->segments->start[s + 1];
    int64_t first = start + (slot - qvl_segment_unit(job->segments, s, QUERY_BLOCK)) * QUERY_BLOCK;
    if (first >= end) return;
    query_block b = {head,
                     first,
                     end - first < QUERY_BLOCK ? end - first : QUERY_BLOCK,
                     end - start,
                     l->k + head * l->k_head + qvl_segment_unit(job->segments, s, QVL_PANEL) * hd * QVL_PANEL,
                     l->v + head * l->v_head + start * l->value_width};
    attend(job, &b, qvl_pool_scratch(job->compute->pool, worker));
}

void qvl_float_attention(qvl_compute *compute, const qvl_heads *qkv, const qvl_segments *segments,
                         qvl_operand *out) {
    attention_job job = {compute,
                         qkv,
                         segments,
                         layout_of(qkv, segments),
                         qkv->scale * QVL_LOG2E,
                         out->data,
                         qvl_segment_units(segments, qkv->rows, QUERY_BLOCK)};
    qvl_pool_run(compute->pool, job.slots * qkv->heads, attend_slot, &job);
}
