#define _GNU_SOURCE
#include "lm/hybrid.h"

#include "../tools/random_model/generator.h"
#include "base/bf16.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

lm_case open_hybrid(const char *shape) {
    return open_hybrid_of(shape, shape);
}

lm_case open_hybrid_of(const char *fixture, const char *shape) {
    bool tiny = strncmp(shape, "tiny", 4) == 0;
    lm_case c = {.init = tiny ? "quarter" : "scaled", .stored = tiny ? "f32" : "bf16"};
    char path[256];
    snprintf(path, sizeof path, QVL_FIXTURES "/hybrid_%s.safetensors", fixture);
    for (char *p = path + strlen(QVL_FIXTURES); *p; p++)
        if (*p == '-') *p = '_';
    qvl_error error;
    if (qvl_tensor_file_open(path, &c.fixture, &error)) fail_msg("%s", error.message);
    c.folder = strdup(make_model_folder(shape, c.init, c.stored));
    return c;
}

qvl_tensor hybrid_tensor(const lm_case *c, const char *name, const char *part) {
    char key[96];
    qvl_tensor t;
    snprintf(key, sizeof key, "%s/%s", name, part);
    want_tensor(c, key, &t);
    return t;
}

/* ---- prompts */

static int64_t read_grids(const lm_case *c, const char *name, const char *part, qvl_grid grids[8]) {
    char key[96];
    qvl_tensor t;
    snprintf(key, sizeof key, "%s/%s", name, part);
    if (!qvl_tensor_file_find(c->fixture, key, &t)) return 0;
    const int64_t *g = t.data;
    for (int64_t i = 0; i < t.shape[0]; i++) grids[i] = (qvl_grid){g[3 * i], g[3 * i + 1], g[3 * i + 2]};
    return t.shape[0];
}

/* Encodes item number `item` of a prompt, images counted before videos. */
static qvl_features encode_item(qvl_session *session, const qvl_model *model, const char *name, int item,
                                const char *kind, qvl_grid grid) {
    const qvl_model_info *info = qvl_model_get_info(model);
    qvl_item place = {.grid = grid};
    qvl_patches patches = {.rows = grid.t * grid.h * grid.w, .item_count = 1, .items = &place};
    patches.cols = (int64_t)info->in_channels * info->temporal_patch_size * info->patch_size * info->patch_size;
    patches.values = malloc((size_t)(patches.rows * patches.cols) * sizeof(float));
    char formula[64];
    if (strcmp(name, "vectors") == 0)
        snprintf(formula, sizeof formula, strcmp(kind, "image") == 0 ? "pixel_values" : "pixel_values_videos");
    else
        snprintf(formula, sizeof formula, "%s.%d", name, item);
    demo_fill(formula, 0, patches.rows * patches.cols, patches.values);
    qvl_features features;
    qvl_error error;
    if (qvl_vision_encode(session, &patches, NULL, &features, &error)) fail_msg("%s", error.message);
    free(patches.values);
    return features;
}

/* Features of one type of items to the prompt's entries of that type, in order. */
static void put_features(qvl_prompt *p, const lm_case *c, const char *name, const speaker *s, int64_t type,
                         int first_item) {
    qvl_grid grids[8];
    const char *kind = type == 1 ? "image" : "video";
    int64_t count = read_grids(c, name, type == 1 ? "image_grid_thw" : "video_grid_thw", grids), entry = 0;
    size_t row = (size_t)p->width * qvl_dtype_bits(p->dtype) / 8;
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(s->model, &session, NULL), QVL_OK);
    for (int64_t i = 0; i < count; i++) {
        qvl_features f = encode_item(session, s->model, name, first_item + (int)i, kind, grids[i]);
        assert_int_equal(f.dtype, p->dtype);
        for (int64_t token = 0; token < f.tokens; entry++) {
            assert_true(entry < p->length);
            if (p->token_types[entry] != type) continue;
            memcpy((char *)p->inputs_embeds + (size_t)entry * row, (const char *)f.embeds + (size_t)token * row,
                   row);
            token++;
        }
        qvl_features_free(&f);
    }
    qvl_session_close(&session);
}

static void put_tokens(qvl_prompt *p, const lm_case *c, int64_t vocab) {
    const char *name = "model.language_model.embed_tokens.weight";
    int64_t h = p->width, shape[2] = {vocab, h};
    demo_rule rule =
        demo_value_rule(strcmp(c->init, "quarter") == 0 ? DEMO_QUARTER : DEMO_SCALED, true, name, shape, 2);
    float *row = malloc((size_t)h * sizeof *row);
    for (int64_t i = 0; i < p->length; i++) {
        if (p->token_types[i]) continue;
        demo_fill_f32(name, rule, p->input_ids[i] * h, h, row);
        if (strcmp(c->stored, "bf16") == 0)
            for (int64_t d = 0; d < h; d++) row[d] = qvl_f32_from_bf16(qvl_bf16_from_f32(row[d]));
        put_values(p->dtype, p->inputs_embeds, i * h, row, h);
    }
    free(row);
}

qvl_prompt hybrid_prompt(const lm_case *c, const char *name, const speaker *s) {
    const qvl_lm_info *info = qvl_lm_get_info(s->lm);
    qvl_tensor ids = hybrid_tensor(c, name, "ids"), types = hybrid_tensor(c, name, "types");
    qvl_prompt p = {.dtype = info->cache_dtype, .width = info->hidden_size, .length = tensor_count(&ids)};
    size_t bytes = (size_t)p.length * sizeof(int64_t);
    p.input_ids = qvl_alloc(bytes, 1);
    p.token_types = qvl_alloc(bytes, 1);
    p.position_ids = qvl_alloc(3 * bytes, 1);
    memcpy(p.input_ids, ids.data, bytes);
    memcpy(p.token_types, types.data, bytes);
    for (int64_t i = 0; i < p.length; i++) p.vision_tokens += p.token_types[i] != 0;
    qvl_grid images[8], videos[8];
    int64_t image_count = read_grids(c, name, "image_grid_thw", images);
    int64_t video_count = read_grids(c, name, "video_grid_thw", videos);
    qvl_error error;
    if (qvl_rope_index(p.token_types, p.length, images, (size_t)image_count, videos, (size_t)video_count, 2,
                       p.position_ids, &p.rope_delta, &error))
        fail_msg("%s", error.message);
    p.inputs_embeds = qvl_alloc((size_t)(p.length * p.width), qvl_dtype_bits(p.dtype) / 8);
    put_tokens(&p, c, info->vocab_size);
    put_features(&p, c, name, s, 1, 0);
    put_features(&p, c, name, s, 2, (int)image_count);
    return p;
}

/* ---- runs */

int64_t largest_of(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void keep_rows(const qvl_tensor *t, void *user) {
    hybrid_run *run = user;
    const float *x = t->data;
    int64_t width = tensor_count(t) / t->shape[0];
    int i = 0;
    while (i < run->stage_count && strcmp(run->stages[i].name, t->name) != 0) i++;
    if (i == run->stage_count) {
        assert_true(i < (int)(sizeof run->stages / sizeof run->stages[0]));
        run->stage_count++;
        snprintf(run->stages[i].name, sizeof run->stages[i].name, "%s", t->name);
        run->stages[i].width = width;
        run->stages[i].values = malloc((size_t)(run->row_count * width) * sizeof(float));
    }
    for (int64_t r = 0; r < run->row_count; r++)
        if (run->rows[r] >= run->next && run->rows[r] < run->next + t->shape[0])
            memcpy(run->stages[i].values + run->stages[i].kept++ * width, x + (run->rows[r] - run->next) * width,
                   (size_t)width * sizeof(float));
    if (strcmp(t->name, "logits") != 0) return;
    for (int64_t r = 0; r < t->shape[0]; r++) run->argmax[run->next + r] = largest_of(x + r * width, width);
    run->next += t->shape[0];
}

float *hybrid_prefill(qvl_sequence *sequence, const qvl_prompt *prompt, const qvl_tensor *rows, hybrid_run *run) {
    *run =
        (hybrid_run){.rows = rows->data, .row_count = tensor_count(rows), .next = qvl_sequence_length(sequence)};
    run->argmax = calloc((size_t)prompt->length, sizeof *run->argmax);
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    options.tap = keep_rows;
    options.tap_user = run;
    float *logits = malloc(65536 * sizeof *logits);
    qvl_error error;
    if (qvl_sequence_prefill(sequence, prompt, run->next, &options, logits, &error)) fail_msg("%s", error.message);
    assert_int_equal(run->next, prompt->length);
    return logits;
}

const float *hybrid_stage(const hybrid_run *run, const char *name, int64_t *width) {
    for (int i = 0; i < run->stage_count; i++)
        if (strcmp(run->stages[i].name, name) == 0) {
            assert_int_equal(run->stages[i].kept, run->row_count);
            *width = run->stages[i].width;
            return run->stages[i].values;
        }
    fail_msg("there is no stage %s", name);
    return NULL;
}

void hybrid_run_free(hybrid_run *run) {
    for (int i = 0; i < run->stage_count; i++) free(run->stages[i].values);
    free(run->argmax);
}
