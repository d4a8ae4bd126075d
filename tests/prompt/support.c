#define _GNU_SOURCE
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- models */

bench open_bench(const char *folder, qvl_open_level level, qvl_dtype dtype, const char *template_text) {
    bench b = {0};
    qvl_error error = {0};
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = level;
    options.dtype = dtype;
    options.threads = 1;
    if (qvl_model_open(folder, &options, &b.model, &error)) fail_msg("%s", error.message);
    if (level == QVL_OPEN_WEIGHTS && qvl_session_open(b.model, &b.session, &error)) fail_msg("%s", error.message);
    qvl_prompter_options prompter;
    qvl_prompter_options_init(&prompter);
    prompter.template_text = template_text;
    if (qvl_prompter_open(b.model, &prompter, &b.prompter, &error)) fail_msg("%s", error.message);
    return b;
}

void close_bench(bench *b) {
    qvl_prompter_close(&b->prompter);
    qvl_session_close(&b->session);
    qvl_model_close(&b->model);
}

char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    char *text = NULL;
    size_t size = 0;
    ssize_t count = getdelim(&text, &size, EOF, file);
    assert_true(count >= 0);
    fclose(file);
    return text;
}

char *published_template(const char *name) {
    const char *data = getenv("QVL_DATA");
    char path[1024];
    snprintf(path, sizeof path, "%s/templates/%s", data ? data : QVL_SOURCE_DIR "/../shared/data", name);
    return read_text(path);
}

/* ---- chats */

static void keep(const char *message, void *user) {
    notes *kept = user;
    size_t used = strlen(kept->text);
    snprintf(kept->text + used, sizeof kept->text - used, "%s\n", message);
}

qvl_prompt_options noting(notes *kept) {
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    *kept = (notes){0};
    options.log = keep;
    options.log_user = kept;
    return options;
}

qvl_chat chat_of(const char *json, const qvl_medium *media, size_t count) {
    return (qvl_chat){.json = json,
                      .byte_count = strlen(json),
                      .name = "chat",
                      .folder = QVL_SOURCE_DIR "/examples",
                      .media = media,
                      .media_count = count};
}

qvl_prompt plan_media(const bench *b, const char *json, const qvl_medium *media, size_t count,
                      const qvl_prompt_options *options) {
    qvl_prompt prompt;
    qvl_error error = {0};
    qvl_chat chat = chat_of(json, media, count);
    if (qvl_prompt_plan(b->prompter, &chat, options, &prompt, &error)) fail_msg("%s\n%s", json, error.message);
    return prompt;
}

qvl_prompt plan_chat(const bench *b, const char *json, const qvl_prompt_options *options) {
    return plan_media(b, json, NULL, 0, options);
}

qvl_prompt build_media(const bench *b, const char *json, const qvl_medium *media, size_t count,
                       const qvl_prompt_options *options) {
    qvl_prompt prompt;
    qvl_error error = {0};
    qvl_chat chat = chat_of(json, media, count);
    if (qvl_prompt_build(b->session, b->prompter, &chat, options, &prompt, &error))
        fail_msg("%s\n%s", json, error.message);
    return prompt;
}

void refuse_chat(const bench *b, const char *json, const qvl_medium *media, size_t count,
                 const qvl_prompt_options *options, qvl_status status, const char *const *says) {
    qvl_prompt prompt;
    qvl_error error = {0};
    qvl_chat chat = chat_of(json, media, count);
    qvl_status found = qvl_prompt_plan(b->prompter, &chat, options, &prompt, &error);
    if (found != status)
        fail_msg("%s\nwanted %s, got %s: %s", json, qvl_status_name(status), qvl_status_name(found),
                 error.message);
    static const qvl_prompt empty;
    assert_memory_equal(&prompt, &empty, sizeof empty);
    for (; *says; says++) assert_has(error.message, *says);
}

/* ---- pictures and videos */

void make_picture(picture *p, int64_t width, int64_t height, uint32_t seed) {
    size_t count = 3 * (size_t)width * (size_t)height;
    uint8_t *pixels = malloc(count);
    assert_non_null(pixels);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)(seed >> 24);
    }
    p->input = (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = width, .height = height};
    p->medium = (qvl_medium){.kind = QVL_MEDIUM_IMAGE, .name = "noise", .input = &p->input};
}

void free_picture(picture *p) {
    free((void *)(uintptr_t)p->input.bytes);
    p->input.bytes = NULL;
}

void make_clip(clip *c, const qvl_model *model, qvl_grid grid, double first, double step) {
    const qvl_model_info *info = qvl_model_get_info(model);
    int64_t rows = grid.t * grid.h * grid.w;
    int64_t cols = (int64_t)info->in_channels * info->temporal_patch_size * info->patch_size * info->patch_size;
    float *values = malloc((size_t)(rows * cols) * sizeof *values);
    assert_non_null(values);
    uint32_t seed = (uint32_t)(grid.t * 10000 + grid.h * 100 + grid.w);
    for (int64_t i = 0; i < rows * cols; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)seed * 0x1p-31f;
    }
    *c = (clip){.item = {.grid = grid}};
    c->patches = (qvl_patches){.rows = rows, .cols = cols, .values = values, .item_count = 1, .items = &c->item};
    for (int64_t g = 0; g < grid.t; g++) c->timestamps[g] = first + step * (double)g;
    c->medium = (qvl_medium){.kind = QVL_MEDIUM_VIDEO,
                             .name = "clip",
                             .patches = &c->patches,
                             .timestamps = c->timestamps,
                             .timestamp_count = (size_t)grid.t};
}

void free_clip(clip *c) {
    free(c->patches.values);
    c->patches.values = NULL;
}

/* ---- looking at prompts */

int32_t id_of(const bench *b, const char *content) {
    qvl_token token;
    if (!qvl_token_find(qvl_prompter_tokenizer(b->prompter), content, &token)) fail_msg("no token %s", content);
    return token.id;
}

int64_t count_id(const qvl_prompt *p, int32_t id) {
    int64_t count = 0;
    for (int64_t i = 0; i < p->length; i++) count += p->input_ids[i] == id;
    return count;
}

int64_t count_special(const bench *b, const qvl_prompt *p) {
    int64_t count = 0;
    for (int64_t i = 0; i < p->length; i++) {
        qvl_token token;
        assert_true(qvl_token_get(qvl_prompter_tokenizer(b->prompter), (int32_t)p->input_ids[i], &token));
        count += token.special;
    }
    return count;
}

char *decode(const bench *b, const qvl_prompt *p) {
    int32_t *ids = malloc((size_t)p->length * sizeof *ids);
    assert_non_null(ids);
    for (int64_t i = 0; i < p->length; i++) ids[i] = (int32_t)p->input_ids[i];
    qvl_text text;
    qvl_error error = {0};
    if (qvl_detokenize(qvl_prompter_tokenizer(b->prompter), ids, (size_t)p->length, false, &text, &error))
        fail_msg("%s", error.message);
    free(ids);
    char *copy = strdup(text.bytes);
    qvl_text_free(&text);
    return copy;
}

void assert_text(const qvl_prompt *p, const char *text) {
    assert_string_equal(p->text, text);
    assert_int_equal(p->text_length, strlen(text));
}

void assert_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in: %s", part, text);
}

void assert_lacks(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("'%s' is in: %s", part, text);
}

void assert_same_prompt(const qvl_prompt *a, const qvl_prompt *b) {
    assert_int_equal(a->length, b->length);
    size_t bytes = (size_t)a->length * sizeof *a->input_ids;
    assert_memory_equal(a->input_ids, b->input_ids, bytes);
    assert_memory_equal(a->token_types, b->token_types, bytes);
    assert_memory_equal(a->position_ids, b->position_ids, 3 * bytes);
    assert_int_equal(a->rope_delta, b->rope_delta);
    assert_string_equal(a->text, b->text);
}
