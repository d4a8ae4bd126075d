#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

qvl_model *open_folder(const char *folder, qvl_open_level level) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = level;
    options.threads = 1;
    qvl_model *model;
    qvl_error error = {0};
    if (qvl_model_open(folder, &options, &model, &error)) fail_msg("%s", error.message);
    return model;
}

qvl_session *open_session(qvl_model *model) {
    qvl_session *session;
    qvl_error error = {0};
    if (qvl_session_open(model, &session, &error)) fail_msg("%s", error.message);
    return session;
}

/* ---- pictures */

qvl_input make_rgb(int64_t width, int64_t height) {
    size_t count = 3 * (size_t)width * (size_t)height;
    uint8_t *pixels = malloc(count);
    assert_non_null(pixels);
    uint32_t seed = (uint32_t)(width * 31 + height);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)(seed >> 24);
    }
    return (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = width, .height = height};
}

void free_picture(qvl_input *input) {
    free((void *)(uintptr_t)input->bytes);
    *input = (qvl_input){0};
}

static void put_u32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The check sum of PNG chunks. */
static uint32_t crc32_of(const uint8_t *bytes, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

qvl_input make_png_header(uint32_t width, uint32_t height) {
    enum { BYTES = 8 + 25 + 8 };
    static uint8_t storage[64][BYTES];
    static unsigned next;
    static const uint8_t start[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    static const uint8_t depth_and_rgb[] = {8, 2, 0, 0, 0};
    uint8_t *png = storage[next++ % 64];
    memcpy(png, start, sizeof start);
    put_u32(png + 16, width);
    put_u32(png + 20, height);
    memcpy(png + 24, depth_and_rgb, sizeof depth_and_rgb);
    put_u32(png + 29, crc32_of(png + 12, 17));
    put_u32(png + 33, 1000); /* then a data chunk begins */
    memcpy(png + 37, "IDAT", 4);
    return (qvl_input){.kind = QVL_INPUT_BYTES, .bytes = png, .byte_count = BYTES};
}

/* ---- calls */

qvl_plan plan(const qvl_model *model, const qvl_input *inputs, size_t count,
              const qvl_preprocess_options *options) {
    qvl_plan result;
    qvl_error error = {0};
    if (qvl_plan_inputs(model, inputs, count, options, &result, &error)) fail_msg("%s", error.message);
    assert_int_equal(result.item_count, count);
    return result;
}

qvl_features encode(qvl_session *session, const qvl_input *inputs, size_t count,
                    const qvl_preprocess_options *options) {
    qvl_features features;
    qvl_error error = {0};
    if (qvl_encode(session, inputs, count, options, NULL, &features, &error)) fail_msg("%s", error.message);
    return features;
}

void assert_same_item(const qvl_item *a, const qvl_item *b) {
    assert_int_equal(a->grid.t, b->grid.t);
    assert_int_equal(a->grid.h, b->grid.h);
    assert_int_equal(a->grid.w, b->grid.w);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->source_width, b->source_width);
    assert_int_equal(a->source_height, b->source_height);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_string_equal(a->stored.format, b->stored.format);
    assert_int_equal(a->stored.width, b->stored.width);
    assert_int_equal(a->stored.height, b->stored.height);
    assert_int_equal(a->stored.orientation, b->stored.orientation);
    assert_int_equal(a->stored.oriented, b->stored.oriented);
}

void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in: %s", part, text);
}
