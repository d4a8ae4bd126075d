#include "preprocess/support.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

const qvl_limits real_limits = {65536, 16777216}, class_limits = {3136, 1003520};

cJSON *load_fixture(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", QVL_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("missing fixture %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long count = ftell(file);
    assert_true(count > 0);
    rewind(file);
    char *text = qvl_alloc((size_t)count, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)count, file), count);
    fclose(file);
    cJSON *root = cJSON_ParseWithLength(text, (size_t)count);
    qvl_free(text);
    if (!root) fail_msg("%s is not JSON", path);
    return root;
}

const cJSON *member(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!value) fail_msg("fixture has no member %s", key);
    return value;
}

static int64_t whole(const cJSON *value) {
    assert_true(cJSON_IsNumber(value));
    assert_true((double)(int64_t)value->valuedouble == value->valuedouble);
    return (int64_t)value->valuedouble;
}

int64_t integer(const cJSON *object, const char *key) {
    return whole(member(object, key));
}

int64_t integer_at(const cJSON *array, int index) {
    return whole(cJSON_GetArrayItem(array, index));
}

const char *string(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(member(object, key));
    assert_non_null(text);
    return text;
}

static uint8_t noise_byte(uint64_t seed, uint64_t index) {
    uint64_t z = ((seed << 32) + index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (uint8_t)(z >> 56);
}

static int64_t ramp_value(int64_t c, int64_t y, int64_t x, int64_t width, int64_t height) {
    int64_t red = 255 * x / (width > 1 ? width - 1 : 1), green = 255 * y / (height > 1 ? height - 1 : 1);
    return c == 0 ? red : c == 1 ? green : 255 - (red + green) / 2;
}

static uint8_t formula_byte(int64_t y, int64_t x, int64_t c) {
    return (uint8_t)((7 * x + 13 * y + 29 * c + x * y % 251 + 11 * ((x / 5) ^ (y / 3)) % 256) % 256);
}

typedef enum kind { FORMULA, LINES, CHECKERBOARD, WHITE_PIXEL, RAMP, NOISE, EXTREMES, KINDS } kind;

static kind kind_named(const char *name) {
    static const char *const names[KINDS] = {"formula", "lines", "checkerboard", "white_pixel",
                                             "ramp",    "noise", "extremes"};
    for (int i = 0; i < KINDS; i++)
        if (strcmp(name, names[i]) == 0) return (kind)i;
    fail_msg("unknown kind of picture %s", name);
    return KINDS;
}

static uint8_t picture_byte(kind what, const qvl_image *image, int64_t seed, int64_t y, int64_t x, int64_t c) {
    uint64_t index = (uint64_t)((y * image->width + x) * 3 + c);
    switch (what) {
    case FORMULA:
        return formula_byte(y, x, c);
    case LINES:
        return x % 4 == 0 ? 255 : 0;
    case CHECKERBOARD:
        return (x + y) % 2 ? 255 : 0;
    case WHITE_PIXEL:
        return y == image->height / 2 && x == image->width / 2 ? 255 : 0;
    case RAMP:
        return (uint8_t)ramp_value(c, y, x, image->width, image->height);
    case NOISE:
        return noise_byte((uint64_t)seed, index);
    default:
        return noise_byte((uint64_t)seed, index) < 128 ? 0 : 255;
    }
}

qvl_image make_picture(const char *name, int64_t width, int64_t height, int64_t seed) {
    kind what = kind_named(name);
    qvl_image image = {.width = width, .height = height, .pixels = qvl_alloc((size_t)(width * height), 3)};
    assert_non_null(image.pixels);
    uint8_t *out = image.pixels;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++) *out++ = picture_byte(what, &image, seed, y, x, c);
    return image;
}

qvl_image case_picture(const cJSON *entry) {
    return make_picture(string(entry, "kind"), integer(entry, "width"), integer(entry, "height"),
                        integer(entry, "seed"));
}

qvl_image resample(qvl_pool *pool, const qvl_image *in, int64_t width, int64_t height, qvl_filter filter) {
    qvl_image out;
    qvl_error error;
    if (qvl_resample(pool, in, width, height, filter, &out, &error) != QVL_OK) fail_msg("%s", error.message);
    assert_int_equal(out.width, width);
    assert_int_equal(out.height, height);
    return out;
}

qvl_image resample_across_then_down(const qvl_image *in, int64_t width, int64_t height, qvl_filter filter) {
    qvl_image between = resample(NULL, in, width, in->height, filter);
    qvl_image out = resample(NULL, &between, width, height, filter);
    qvl_image_free(&between);
    return out;
}

void sha256_hex(const void *bytes, size_t count, char hex[65]) {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256(bytes, count, digest);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void assert_sha256(const void *bytes, size_t count, const char *expected, const char *what) {
    char hex[65];
    sha256_hex(bytes, count, hex);
    if (strcmp(hex, expected) != 0) fail_msg("%s: hash is %s, expected %s", what, hex, expected);
}

void assert_picture(const qvl_image *image, const char *expected, const char *what) {
    assert_sha256(image->pixels, (size_t)(image->width * image->height * 3), expected, what);
}

qvl_config test_config(void) {
    qvl_config config = {.model_type = "qwen3_vl"};
    config.vision.in_channels = 3;
    config.vision.patch_size = 16;
    config.vision.temporal_patch_size = 2;
    config.vision.spatial_merge_size = 2;
    config.processor.limits = real_limits;
    snprintf(config.processor.source, sizeof config.processor.source, "preprocessor_config.json");
    for (int c = 0; c < 3; c++) config.processor.mean[c] = config.processor.std[c] = 0.5f;
    config.processor.rescale_factor = 0.00392156862745098;
    return config;
}
