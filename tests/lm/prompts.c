#define _GNU_SOURCE
#include "lm/prompts.h"

#include "../tools/random_model/generator.h"
#include "base/bf16.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER_SIZE 512

lm_case open_case(const char *shape) {
    return open_case_of(shape, shape);
}

lm_case open_case_of(const char *fixture, const char *shape) {
    bool tiny = strncmp(shape, "tiny", 4) == 0;
    lm_case c = {.init = tiny ? "quarter" : "scaled", .stored = tiny ? "f32" : "bf16", .deepstack = tiny ? 2 : 3};
    char path[256];
    snprintf(path, sizeof path, QVL_FIXTURES "/lm_%s.safetensors", fixture);
    for (char *p = path + strlen(QVL_FIXTURES); *p; p++)
        if (*p == '-') *p = '_';
    qvl_error error;
    if (qvl_tensor_file_open(path, &c.fixture, &error)) fail_msg("%s", error.message);
    c.folder = strdup(make_model_folder(shape, c.init, c.stored));
    return c;
}

const char *copy_folder(const char *folder) {
    static char path[FOLDER_SIZE];
    char command[4 * FOLDER_SIZE];
    if (strlen(folder) > FOLDER_SIZE / 2) fail_msg("%s is too long", folder);
    snprintf(path, sizeof path, "%.300s-copy", folder);
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%.300s' '%s'", path, folder, path);
    assert_int_equal(system(command), 0);
    return path;
}

void edit_config(const char *folder, const char *edit) {
    char command[2048];
    snprintf(command, sizeof command, "sed -i -e '%s' '%s/config.json'", edit, folder);
    assert_int_equal(system(command), 0);
}

void edit_case(lm_case *c, const char *edit) {
    char *folder = strdup(copy_folder(c->folder));
    edit_config(folder, edit);
    free((char *)(uintptr_t)c->folder);
    c->folder = folder;
}

void close_case(lm_case *c) {
    qvl_tensor_file_close(&c->fixture);
    free((char *)(uintptr_t)c->folder);
}

speaker open_speaker(const char *folder, qvl_dtype dtype, int threads, uint32_t cpu_mask) {
    speaker s = {.model = open_model(folder, dtype, threads, cpu_mask)};
    qvl_error error;
    if (qvl_lm_open(s.model, NULL, &s.lm, &error)) fail_msg("%s", error.message);
    return s;
}

void close_speaker(speaker *s) {
    qvl_lm_close(&s->lm);
    qvl_model_close(&s->model);
}

const qvl_tensor *want_tensor(const lm_case *c, const char *name, qvl_tensor *tensor) {
    if (!qvl_tensor_file_find(c->fixture, name, tensor)) fail_msg("the fixture has no %s", name);
    return tensor;
}

static int64_t *copy_integers(const lm_case *c, const char *name, int64_t *count) {
    qvl_tensor t;
    want_tensor(c, name, &t);
    *count = tensor_count(&t);
    int64_t *out = qvl_alloc((size_t)*count, sizeof *out);
    memcpy(out, t.data, (size_t)*count * sizeof *out);
    return out;
}

void put_values(qvl_dtype dtype, void *out, int64_t at, const float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (dtype == QVL_F32)
            ((float *)out)[at + i] = values[i];
        else
            ((uint16_t *)out)[at + i] = qvl_bf16_from_f32(values[i]);
    }
}

static void fill_formula(const char *name, int64_t rows, int64_t width, qvl_dtype dtype, void *out) {
    float *row = malloc((size_t)width * sizeof *row);
    for (int64_t r = 0; r < rows; r++) {
        demo_fill(name, r * width, width, row);
        put_values(dtype, out, r * width, row, width);
    }
    free(row);
}

/* Text behind what is there, up to `length` entries. */
static void add_text(qvl_prompt *p, int64_t length, int64_t vocab) {
    int64_t old = p->length, *arrays[3] = {p->input_ids, p->token_types, p->position_ids}, next = 0;
    for (int64_t i = 0; i < 3 * old; i++)
        if (p->position_ids[i] >= next) next = p->position_ids[i] + 1;
    p->input_ids = qvl_calloc((size_t)length, sizeof(int64_t));
    p->token_types = qvl_calloc((size_t)length, sizeof(int64_t));
    p->position_ids = qvl_calloc(3 * (size_t)length, sizeof(int64_t));
    for (int64_t i = 0; i < length; i++) {
        p->input_ids[i] = i < old ? arrays[0][i] : (i * 7919 + 13) % (vocab - 8);
        p->token_types[i] = i < old ? arrays[1][i] : 0;
        for (int axis = 0; axis < 3; axis++)
            p->position_ids[axis * length + i] = i < old ? arrays[2][axis * old + i] : next + i - old;
    }
    for (int i = 0; i < 3; i++) qvl_free(arrays[i]);
    p->length = length;
}

qvl_prompt case_prompt(const lm_case *c, const qvl_lm *lm) {
    return longer_prompt(c, lm, 0);
}

qvl_prompt longer_prompt(const lm_case *c, const qvl_lm *lm, int64_t length) {
    const qvl_lm_info *info = qvl_lm_get_info(lm);
    int64_t h = info->hidden_size, count, largest = 0;
    qvl_prompt p = {.dtype = info->cache_dtype, .width = h};
    p.input_ids = copy_integers(c, "input_ids", &p.length);
    p.token_types = copy_integers(c, "token_types", &count);
    p.position_ids = copy_integers(c, "position_ids", &count);
    assert_int_equal(count, 3 * p.length);
    if (length > p.length) add_text(&p, length, info->vocab_size);
    for (int64_t i = 0; i < 3 * p.length; i++)
        if (p.position_ids[i] > largest) largest = p.position_ids[i];
    p.rope_delta = largest + 1 - p.length;
    size_t size = qvl_dtype_bits(p.dtype) / 8;
    p.inputs_embeds = qvl_alloc((size_t)(p.length * h), size);
    float *row = malloc((size_t)h * sizeof *row);
    const char *name = "model.language_model.embed_tokens.weight";
    int64_t shape[2] = {info->vocab_size, h};
    demo_rule rule =
        demo_value_rule(strcmp(c->init, "quarter") == 0 ? DEMO_QUARTER : DEMO_SCALED, false, name, shape, 2);
    for (int64_t i = 0; i < p.length; i++) {
        if (p.token_types[i]) {
            demo_fill("lm.vision", p.vision_tokens++ * h, h, row);
        } else {
            demo_fill_f32(name, rule, p.input_ids[i] * h, h, row);
            if (strcmp(c->stored, "bf16") == 0)
                for (int64_t d = 0; d < h; d++) row[d] = qvl_f32_from_bf16(qvl_bf16_from_f32(row[d]));
        }
        put_values(p.dtype, p.inputs_embeds, i * h, row, h);
    }
    free(row);
    for (; p.deepstack_count < c->deepstack; p.deepstack_count++) {
        char feature[32];
        snprintf(feature, sizeof feature, "lm.deepstack.%d", p.deepstack_count);
        p.deepstack[p.deepstack_count] = qvl_alloc((size_t)(p.vision_tokens * h), size);
        fill_formula(feature, p.vision_tokens, h, p.dtype, p.deepstack[p.deepstack_count]);
    }
    return p;
}

qvl_prompt prompt_head(const qvl_prompt *prompt, int64_t length) {
    static int64_t positions[3 * 65536];
    qvl_prompt head = *prompt;
    head.length = length;
    head.position_ids = positions;
    int64_t largest = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int64_t i = 0; i < length; i++) {
            int64_t at = prompt->position_ids[axis * prompt->length + i];
            positions[axis * length + i] = at;
            if (at > largest) largest = at;
        }
    head.rope_delta = largest + 1 - length;
    return head;
}

qvl_sequence *open_sequence(const qvl_lm *lm, int64_t chunk) {
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    if (chunk) options.chunk = chunk;
    qvl_sequence *sequence = NULL;
    qvl_error error;
    if (qvl_sequence_open(lm, &options, &sequence, &error)) fail_msg("%s", error.message);
    return sequence;
}

float *prefill(qvl_sequence *sequence, const qvl_prompt *prompt, stages *taps) {
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    options.tap = taps ? keep_stage : NULL;
    options.tap_user = taps;
    float *logits = malloc(sizeof(float) * 65536);
    qvl_error error;
    if (qvl_sequence_prefill(sequence, prompt, qvl_sequence_length(sequence), &options, logits, &error))
        fail_msg("%s", error.message);
    return logits;
}

qvl_tensor join_stage(const stages *s, const char *name) {
    qvl_tensor joined = {0};
    float *out = NULL;
    int64_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const qvl_tensor *t = &s->tensors[i];
        if (strcmp(t->name, name) != 0) continue;
        int64_t rows = joined.shape[0], n = tensor_count(t);
        joined = *t;
        joined.shape[0] += rows;
        out = realloc(out, (size_t)(count + n) * sizeof *out);
        memcpy(out + count, t->data, (size_t)n * sizeof *out);
        count += n;
    }
    if (!out) fail_msg("no stage %s", name);
    joined.data = out;
    return joined;
}
