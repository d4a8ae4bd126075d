/* One run of the tower, read top to bottom: patch embedding, position embedding, blocks (attention and MLP, each
 * normalised before and added after), mergers. All memory is planned first; blocks reuse two operand buffers. */
#include "vision/tower.h"

#include "base/clock.h"
#include "base/memory.h"
#include "vision/features.h"
#include "vision/position.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EPSILON 1e-6f

/* The MLP runs over this many rows at a time, so that its wide intermediate stays small. With taps it runs whole:
 * the values are the same, a row knows no other. */
#define MLP_ROWS 2048

typedef struct tower_run {
    const qvl_vision_config *config;
    const qvl_tower *tower;
    qvl_compute *compute;
    const qvl_tower_call *call;
    qvl_positions positions;
    int64_t rows, tokens, mlp_rows;
    float *hidden;      /* [rows, d], the residual stream */
    void *left, *right; /* operand buffers: what a norm writes, what attention and GELU write */
    void *heads;
    float *qkv;          /* scratch of the qkv product */
    float *merged;       /* [tokens, out_hidden] */
    float *tapped;       /* stages read back for the tap */
    int64_t done, total; /* progress */
    double lap;          /* when the last stage ended; only kept with a profile */
} tower_run;

static int64_t patch_columns(const qvl_vision_config *c) {
    return (int64_t)c->in_channels * c->temporal_patch_size * c->patch_size * c->patch_size;
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Takes every buffer from the arena; with an arena without memory this only counts. */
static void take_buffers(tower_run *r, bool tap, qvl_arena *arena) {
    const qvl_vision_config *c = r->config;
    const qvl_compute *compute = r->compute;
    int64_t d = c->hidden_size, merge2 = (int64_t)c->spatial_merge_size * c->spatial_merge_size;
    int64_t wide = c->intermediate_size > d ? c->intermediate_size : d;
    size_t rows = (size_t)r->rows;
    r->mlp_rows = tap || r->rows < MLP_ROWS ? r->rows : MLP_ROWS;
    size_t merger_operand = qvl_operand_bytes(compute, r->tokens, merge2 * d);
    size_t row_operand = qvl_operand_bytes(compute, r->rows, d);

    qvl_positions_take(c, &r->positions, arena);
    r->hidden = qvl_arena_take(arena, rows * (size_t)d, sizeof(float));
    r->left = qvl_arena_take(
        arena,
        max_size(max_size(qvl_operand_bytes(compute, r->rows, patch_columns(c)), row_operand), merger_operand), 1);
    r->right = qvl_arena_take(
        arena,
        max_size(max_size(qvl_operand_bytes(compute, r->mlp_rows, c->intermediate_size), row_operand),
                 merger_operand),
        1);
    r->heads = qvl_arena_take(
        arena, qvl_heads_bytes(compute, r->rows, c->num_heads, c->head_dim, &r->positions.segments), 1);
    r->qkv =
        qvl_arena_take(arena, qvl_matmul_qkv_scratch(compute, r->rows, c->num_heads, c->head_dim), sizeof(float));
    r->merged = qvl_arena_take(arena, (size_t)r->tokens * (size_t)c->out_hidden_size, sizeof(float));
    r->tapped = tap ? qvl_arena_take(arena, rows * (size_t)(wide > 3 * d ? wide : 3 * d), sizeof(float)) : NULL;
}

/* Time since the last lap was spent on `stage`. */
static void lap(tower_run *r, qvl_stage stage) {
    if (r->call->options.profile) qvl_lap(r->call->options.profile, stage, &r->lap);
}

/* ---- taps */

static void tap(const tower_run *r, const char *name, const float *data, int64_t rows, int64_t a, int64_t b) {
    if (!r->call->options.tap) return;
    qvl_tensor t = {.name = name, .dtype = QVL_F32, .ndim = b ? 3 : 2, .shape = {rows, a, b}, .data = data};
    r->call->options.tap(&t, r->call->options.tap_user);
}

static void tap_operand(const tower_run *r, int block, const char *part, const qvl_operand *operand) {
    if (!r->call->options.tap) return;
    char name[64];
    snprintf(name, sizeof name, "blocks.%d.%s", block, part);
    qvl_operand_read(r->compute, operand, r->tapped);
    tap(r, name, r->tapped, operand->rows, operand->cols, 0);
}

static void tap_heads(const tower_run *r, int block, const qvl_heads *heads) {
    if (!r->call->options.tap) return;
    static const char *const parts[3] = {"q", "k", "v"};
    int64_t size = r->rows * r->config->hidden_size;
    qvl_heads_read(r->compute, heads, &r->positions.segments, r->tapped, r->tapped + size, r->tapped + 2 * size);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.%s", block, parts[i]);
        tap(r, name, r->tapped + i * size, r->rows, heads->heads, heads->head_dim);
    }
}

/* ---- stages */

static void embed_patches(tower_run *r) {
    const qvl_vision_config *c = r->config;
    int64_t d = c->hidden_size;
    qvl_operand x = {r->rows, patch_columns(c), r->left};
    qvl_operand_load(r->compute, r->call->patches, &x);
    qvl_matmul(r->compute, &x, &r->tower->patch_embed, r->hidden);
    tap(r, "patch_embed", r->hidden, r->rows, d, 0);
    if (r->call->options.tap) {
        memset(r->tapped, 0, (size_t)(r->rows * d) * sizeof(float));
        qvl_gather_add(r->compute, r->tower->pos_embed, (const int32_t(*)[4])r->positions.indices,
                       (const float(*)[4])r->positions.weights, r->rows, d, r->tapped);
        tap(r, "pos_embed", r->tapped, r->rows, d, 0);
    }
    qvl_gather_add(r->compute, r->tower->pos_embed, (const int32_t(*)[4])r->positions.indices,
                   (const float(*)[4])r->positions.weights, r->rows, d, r->hidden);
    tap(r, "hidden", r->hidden, r->rows, d, 0);
}

/* hidden += proj(attention(qkv(norm1(hidden)))) */
static void attend(tower_run *r, int index) {
    const qvl_vision_config *c = r->config;
    const qvl_tower_block *b = &r->tower->blocks[index];
    const qvl_segments *segments = &r->positions.segments;
    qvl_operand x = {r->rows, c->hidden_size, r->left}, y = {r->rows, c->hidden_size, r->right};
    qvl_heads heads = {r->rows, c->num_heads, c->head_dim, (float)(1.0 / sqrt((double)c->head_dim)), r->heads};
    qvl_layer_norm(r->compute, r->hidden, r->rows, c->hidden_size, b->norm1.weight, b->norm1.bias, EPSILON, 1, &x);
    tap_operand(r, index, "norm1", &x);
    lap(r, QVL_STAGE_NORM);
    qvl_matmul_qkv(r->compute, &x, &b->qkv, r->positions.cosine, r->positions.sine, segments, r->qkv, &heads);
    tap_heads(r, index, &heads);
    lap(r, QVL_STAGE_QKV);
    qvl_attention(r->compute, &heads, segments, &y);
    tap_operand(r, index, "attn", &y);
    lap(r, QVL_STAGE_ATTENTION);
    qvl_matmul_add(r->compute, &y, &b->proj, r->hidden);
    lap(r, QVL_STAGE_PROJECTION);
}

/* hidden += fc2(gelu(fc1(norm2(hidden)))) */
static void transform(tower_run *r, int index) {
    const qvl_vision_config *c = r->config;
    const qvl_tower_block *b = &r->tower->blocks[index];
    for (int64_t first = 0; first < r->rows; first += r->mlp_rows) {
        int64_t rows = r->rows - first < r->mlp_rows ? r->rows - first : r->mlp_rows;
        float *hidden = r->hidden + first * c->hidden_size;
        qvl_operand x = {rows, c->hidden_size, r->left}, y = {rows, c->intermediate_size, r->right};
        qvl_layer_norm(r->compute, hidden, rows, c->hidden_size, b->norm2.weight, b->norm2.bias, EPSILON, 1, &x);
        tap_operand(r, index, "norm2", &x);
        lap(r, QVL_STAGE_NORM);
        qvl_matmul_gelu(r->compute, &x, &b->fc1, QVL_GELU_TANH, &y);
        tap_operand(r, index, "mlp", &y);
        qvl_matmul_add(r->compute, &y, &b->fc2, hidden);
        lap(r, QVL_STAGE_MLP);
    }
}

/* One merger over the stream: name is the tap's, out receives [tokens, out_hidden] in the compute dtype. The main
 * merger normalises rows of d and then joins merge^2 of them, a deepstack merger joins first. */
static qvl_status merge(tower_run *r, const qvl_merger *m, bool join_first, const char *name, void *out,
                        qvl_error *error) {
    const qvl_vision_config *c = r->config;
    int64_t group = (int64_t)c->spatial_merge_size * c->spatial_merge_size, d = c->hidden_size;
    qvl_operand x = {r->tokens, group * d, r->left}, y = {r->tokens, group * d, r->right};
    if (join_first)
        qvl_layer_norm(r->compute, r->hidden, r->tokens, group * d, m->norm.weight, m->norm.bias, EPSILON, 1, &x);
    else
        qvl_layer_norm(r->compute, r->hidden, r->rows, d, m->norm.weight, m->norm.bias, EPSILON, group, &x);
    qvl_matmul_gelu(r->compute, &x, &m->fc1, QVL_GELU_ERF, &y);
    qvl_matmul(r->compute, &y, &m->fc2, r->merged);
    tap(r, name, r->merged, r->tokens, c->out_hidden_size, 0);
    int64_t count = r->tokens * c->out_hidden_size, bad = qvl_first_nonfinite(r->compute, r->merged, count);
    if (bad >= 0)
        return qvl_fail(error, QVL_ERROR_NUMERIC, "%s features are not finite: token %lld, element %lld", name,
                        (long long)(bad / c->out_hidden_size), (long long)(bad % c->out_hidden_size));
    qvl_store(r->compute, r->merged, count, qvl_compute_dtype(r->compute), out);
    lap(r, QVL_STAGE_MERGERS);
    return QVL_OK;
}

static qvl_status step(tower_run *r, qvl_error *error) {
    r->done++;
    if (r->call->options.progress && !r->call->options.progress(r->done, r->total, r->call->options.progress_user))
        return qvl_fail(error, QVL_ERROR_CANCELLED, "encoding was cancelled after %lld of %lld steps",
                        (long long)r->done, (long long)r->total);
    return QVL_OK;
}

static qvl_status run_stages(tower_run *r, qvl_error *error) {
    const qvl_vision_config *c = r->config;
    qvl_features *features = r->call->features;
    qvl_status status;
    if (r->call->patches) embed_patches(r);
    lap(r, QVL_STAGE_EMBED);
    if ((status = step(r, error))) return status;
    int32_t level = 0;
    for (int32_t i = 0; i < c->depth; i++) {
        char name[32];
        attend(r, i);
        transform(r, i);
        snprintf(name, sizeof name, "blocks.%d", i);
        tap(r, name, r->hidden, r->rows, c->hidden_size, 0);
        if (features && level < c->deepstack_count && c->deepstack_indexes[level] == i) {
            snprintf(name, sizeof name, "deepstack.%d", level);
            status = merge(r, &r->tower->deepstack[level], true, name, features->deepstack[level], error);
            if (status) return status;
            level++;
        }
        if ((status = step(r, error))) return status;
    }
    if (!features) return QVL_OK;
    return merge(r, &r->tower->merger, false, "merged", features->embeds, error);
}

/* ---- entry points */

static qvl_status plan(tower_run *r, const qvl_grid *grids, size_t count, bool with_taps, size_t *bytes,
                       qvl_error *error) {
    qvl_status status = qvl_positions_count(r->config, grids, count, &r->positions, error);
    if (status) return status;
    r->rows = r->positions.rows;
    r->tokens = r->positions.tokens;
    qvl_arena planning = {0};
    take_buffers(r, with_taps, &planning);
    if (planning.overflow)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%lld patch rows need more memory than can be addressed",
                        (long long)r->rows);
    *bytes = planning.used;
    return QVL_OK;
}

qvl_status qvl_tower_scratch_bytes(const qvl_vision_config *config, const qvl_compute *compute,
                                   const qvl_grid *grids, size_t grid_count, bool with_taps, size_t *bytes,
                                   qvl_error *error) {
    *bytes = 0;
    tower_run r = {.config = config, .compute = (qvl_compute *)(uintptr_t)compute};
    return plan(&r, grids, grid_count, with_taps, bytes, error);
}

static qvl_status alloc_features(const tower_run *r, qvl_features *features, qvl_error *error) {
    const qvl_vision_config *c = r->config;
    const qvl_features_shape shape = {qvl_compute_dtype(r->compute), r->tokens, c->out_hidden_size,
                                      c->deepstack_count};
    return qvl_features_alloc(&shape, features, error);
}

qvl_status qvl_tower_run(const qvl_tower *tower, qvl_compute *compute, qvl_scratch *scratch,
                         const qvl_tower_call *call, qvl_error *error) {
    tower_run r = {.config = &tower->config, .tower = tower, .compute = compute, .call = call};
    size_t bytes = 0;
    qvl_status status = plan(&r, call->grids, call->grid_count, call->options.tap != NULL, &bytes, error);
    if (status) return status;
    if (bytes > scratch->capacity) {
        qvl_free(scratch->base);
        scratch->capacity = 0;
        scratch->base = qvl_alloc(bytes, 1);
        if (!scratch->base) return qvl_fail_memory(error, "scratch of the tower", bytes, 1);
        scratch->capacity = bytes;
    }
    qvl_arena arena = {.base = scratch->base, .capacity = scratch->capacity};
    take_buffers(&r, call->options.tap != NULL, &arena);
    if (call->hidden) r.hidden = call->hidden;
    r.total = tower->config.depth + 1;
    r.lap = qvl_seconds();
    qvl_positions_fill(&tower->config, call->grids, call->grid_count, &r.positions);
    if (call->features) status = alloc_features(&r, call->features, error);
    if (!status) status = run_stages(&r, error);
    if (status && call->features) qvl_features_free(call->features);
    return status;
}
