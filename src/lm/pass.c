/* Rows of a sequence through all layers, read top to bottom: embeddings, angles, layers, deepstack, norm, head. */
#include "lm/lm.h"

#include "base/bf16.h"

#include <stdio.h>
#include <string.h>

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Takes every buffer from the arena; with an arena without memory this only counts. length: of the sequence after the
 * pass. */
static void take_buffers(qvl_pass *p, int64_t length, qvl_arena *arena) {
    const qvl_text_config *c = p->config;
    size_t rows = (size_t)p->rows, hidden = rows * (size_t)c->hidden_size;
    int64_t q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    int64_t inner =
        larger(larger(c->intermediate_size, c->expert_intermediate_size), c->hybrid.shared_intermediate_size);
    p->hidden = qvl_arena_take(arena, hidden, sizeof(float));
    p->normed = qvl_arena_take(arena, hidden, sizeof(float));
    p->cosine = qvl_arena_take(arena, rows * (size_t)(c->rotary / 2), sizeof(float));
    p->sine = qvl_arena_take(arena, rows * (size_t)(c->rotary / 2), sizeof(float));
    int64_t widest = larger(larger(c->hidden_size, q), inner);
    p->operand = qvl_arena_take(arena, qvl_operand_bytes(p->compute, p->rows, widest), 1);
    p->q = qvl_arena_take(arena, rows * (size_t)q, sizeof(float));
    p->k = qvl_arena_take(arena, rows * (size_t)kv, sizeof(float));
    p->v = qvl_arena_take(arena, rows * (size_t)kv, sizeof(float));
    p->attended = qvl_arena_take(arena, rows * (size_t)q, sizeof(float));
    if (c->hybrid.on) {
        p->packed = qvl_arena_take(arena, 2 * rows * (size_t)q, sizeof(float));
        p->output_gate = qvl_arena_take(arena, rows * (size_t)q, sizeof(float));
    }
    p->attention_scratch =
        qvl_arena_take(arena, qvl_causal_scratch(p->compute, c->kv_heads, c->head_dim, length), sizeof(float));
    p->gate = qvl_arena_take(arena, rows * (size_t)inner, sizeof(float));
    p->up = qvl_arena_take(arena, rows * (size_t)inner, sizeof(float));
    if (c->experts) qvl_routing_take(p, arena);
    p->logits = qvl_arena_take(arena, (p->options->tap ? rows : 1) * (size_t)c->vocab_size, sizeof(float));
    if (p->lm->family->take) p->lm->family->take(p, arena);
}

qvl_operand qvl_pass_operand(qvl_pass *p, const float *x, int64_t rows, int64_t cols) {
    qvl_operand operand = {rows, cols, p->operand};
    qvl_operand_load(p->compute, x, &operand);
    return operand;
}

/* ---- taps */

static void tap(const qvl_pass *p, const char *name, const float *data, int64_t a, int64_t b) {
    if (!p->options->tap) return;
    qvl_tensor t = {.name = name, .dtype = QVL_F32, .ndim = b ? 3 : 2, .shape = {p->rows, a, b}, .data = data};
    p->options->tap(&t, p->options->tap_user);
}

void qvl_pass_tap(const qvl_pass *p, int32_t index, const char *part, const float *data, int64_t a, int64_t b) {
    if (!p->options->tap) return;
    char name[64];
    snprintf(name, sizeof name, part ? "layers.%d.%s" : "layers.%d", index, part);
    tap(p, name, data, a, b);
}

/* ---- what goes in */

static void widen(const void *values, qvl_dtype dtype, int64_t first, int64_t count, float *out) {
    qvl_matrix row = {.n = 1, .k = count, .dtype = dtype, .stride = count, .data = values};
    row.data += (size_t)first * qvl_dtype_bits(dtype) / 8;
    qvl_matrix_read(&row, 0, 0, count, out);
}

static void embed(qvl_pass *p, const qvl_rows *rows) {
    int64_t h = p->config->hidden_size;
    if (rows->prompt) {
        widen(rows->prompt->inputs_embeds, rows->prompt->dtype, p->first * h, p->rows * h, p->hidden);
    } else {
        qvl_matrix_read(&p->lm->embeddings, rows->token, 0, h, p->hidden);
        qvl_dtype dtype = qvl_compute_dtype(p->compute); /* as a prompt's embeddings are */
        for (int64_t i = 0; i < h; i++) p->hidden[i] = qvl_round_to(dtype, p->hidden[i]);
    }
    tap(p, "embed", p->hidden, h, 0);
}

static void turn(qvl_pass *p, const qvl_rows *rows) {
    int64_t half = p->lm->rotary.half;
    for (int64_t r = 0; r < p->rows; r++) {
        int64_t position[3];
        for (int axis = 0; axis < 3; axis++)
            position[axis] = rows->prompt ? rows->prompt->position_ids[axis * rows->prompt->length + p->first + r]
                                          : rows->position[axis];
        qvl_rotary_row(&p->lm->rotary, position, p->cosine + r * half, p->sine + r * half);
    }
}

/* hidden[vision rows] += level's features */
static void add_deepstack(qvl_pass *p, const qvl_prompt *prompt, int32_t level) {
    int64_t h = p->config->hidden_size, vision = 0;
    for (int64_t i = 0; i < p->first; i++) vision += prompt->token_types[i] != 0;
    for (int64_t r = 0; r < p->rows; r++) {
        if (!prompt->token_types[p->first + r]) continue;
        float *feature = p->normed, *row = p->hidden + r * h;
        widen(prompt->deepstack[level], prompt->dtype, vision++ * h, h, feature);
        for (int64_t i = 0; i < h; i++) row[i] += feature[i];
    }
}

/* ---- layers and what comes out */

static qvl_status check_finite(const qvl_pass *p, const char *what, const float *x, int64_t rows, int64_t cols,
                               qvl_error *error) {
    int64_t bad = qvl_first_nonfinite(p->compute, x, rows * cols);
    if (bad < 0) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_NUMERIC, "%s are not finite: entry %lld, element %lld", what,
                    (long long)(p->first + p->rows - rows + bad / cols), (long long)(bad % cols));
}

static qvl_status run_layers(qvl_pass *p, const qvl_rows *rows, int64_t done, int64_t total, qvl_error *error) {
    const qvl_text_config *c = p->config;
    for (int32_t i = 0; i < c->layers; i++) {
        p->lm->family->layer(p, i);
        qvl_pass_tap(p, i, NULL, p->hidden, c->hidden_size, 0);
        char what[48];
        snprintf(what, sizeof what, "outputs of layer %d", i);
        qvl_status status = check_finite(p, what, p->hidden, p->rows, c->hidden_size, error);
        if (status) return status;
        if (rows->prompt && i < rows->prompt->deepstack_count) add_deepstack(p, rows->prompt, i);
        done += p->rows;
        if (p->options->progress && !p->options->progress(done, total, p->options->progress_user))
            return qvl_fail(error, QVL_ERROR_CANCELLED,
                            "the language model was stopped after layer %d of entries %lld to %lld", i,
                            (long long)p->first, (long long)(p->first + p->rows - 1));
    }
    return QVL_OK;
}

/* Logits of the last row, of all rows for a tap. */
static qvl_status take_logits(qvl_pass *p, float *logits, qvl_error *error) {
    const qvl_text_config *c = p->config;
    if (!logits && !p->options->tap) return QVL_OK;
    int64_t rows = p->options->tap ? p->rows : 1;
    const float *hidden = p->hidden + (p->rows - rows) * c->hidden_size;
    qvl_rms_norm(p->compute, hidden, rows, c->hidden_size, p->lm->norm, c->eps, p->normed);
    tap(p, "norm", p->normed, c->hidden_size, 0);
    qvl_operand x = qvl_pass_operand(p, p->normed, rows, c->hidden_size);
    qvl_project(p->compute, &x, &(qvl_projection){&p->lm->head, p->logits, false}, 1);
    tap(p, "logits", p->logits, c->vocab_size, 0);
    qvl_status status = check_finite(p, "logits", p->logits, rows, c->vocab_size, error);
    if (!status && logits)
        memcpy(logits, p->logits + (rows - 1) * c->vocab_size, (size_t)c->vocab_size * sizeof *logits);
    return status;
}

/* ---- entry points */

static qvl_pass make_pass(const qvl_lm *lm, int64_t rows, const qvl_decode_options *options) {
    return (qvl_pass){.lm = lm, .compute = lm->compute, .config = &lm->config, .rows = rows, .options = options};
}

size_t qvl_pass_bytes(const qvl_lm *lm, int64_t rows, int64_t length, const qvl_decode_options *options) {
    qvl_pass p = make_pass(lm, rows, options);
    qvl_arena planning = {0};
    take_buffers(&p, length, &planning);
    return planning.overflow ? SIZE_MAX : planning.used;
}

qvl_status qvl_pass_run(qvl_sequence *sequence, const qvl_rows *rows, const qvl_decode_options *options,
                        int64_t done, int64_t total, float *logits, qvl_error *error) {
    qvl_pass p = make_pass(sequence->lm, rows->count, options);
    qvl_arena arena = {.base = sequence->scratch, .capacity = sequence->scratch_bytes};
    p.cache = &sequence->cache;
    p.linear = &sequence->linear;
    p.first = rows->first;
    take_buffers(&p, rows->first + rows->count, &arena);
    if (arena.overflow) return qvl_fail_memory(error, "scratch of the language model", 1, sequence->scratch_bytes);
    embed(&p, rows);
    turn(&p, rows);
    qvl_status status = run_layers(&p, rows, done, total, error);
    return status ? status : take_logits(&p, logits, error);
}
