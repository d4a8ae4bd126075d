/* The flags that say how files become RGB: what they do to the rows, and that summary, JSON and file name them. */
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define MEDIA QVL_FIXTURES "/media/"

/* The first value of the rows that qvl preprocess writes: -1 for 0, 1 for 255. */
static float first_value(const char *const *arguments, const char *path) {
    result r = expect(0, NULL, arguments);
    free_result(&r);
    qvl_tensor_file *file = open_tensors(path);
    qvl_tensor rows = tensor_of(file, "pixel_values");
    float value;
    memcpy(&value, rows.data, sizeof value);
    qvl_tensor_file_close(&file);
    return value;
}

/* 64 x 64 grey of 16 bits, 0x1234 everywhere: a TIFF of one strip, written here. */
static const char *write_gray16(void) {
    static const uint8_t head[] = {
        'I', 'I', '*', 0, 8, 0, 0, 0, 8, 0, 0,    1, 3, 0, 1,    0, 0, 0, 64, 0,  0, 0, 1,   1, 3, 0, 1,    0,
        0,   0,   64,  0, 0, 0, 2, 1, 3, 0, 1,    0, 0, 0, 16,   0, 0, 0, 3,  1,  3, 0, 1,   0, 0, 0, 1,    0,
        0,   0,   6,   1, 3, 0, 1, 0, 0, 0, 1,    0, 0, 0, 0x11, 1, 4, 0, 1,  0,  0, 0, 110, 0, 0, 0, 0x15, 1,
        3,   0,   1,   0, 0, 0, 1, 0, 0, 0, 0x17, 1, 4, 0, 1,    0, 0, 0, 0,  32, 0, 0, 0,   0, 0, 0};
    static uint8_t file[110 + 8192];
    _Static_assert(sizeof head == 110, "the strip stands behind the header");
    memcpy(file, head, sizeof head);
    for (size_t i = sizeof head; i < sizeof file; i += 2) {
        file[i] = 0x34;
        file[i + 1] = 0x12;
    }
    const char *path = scratch("gray16.tif");
    write_file(path, file, sizeof file);
    return path;
}

static void test_gray16(void **state) {
    (void)state;
    const char *gray = write_gray16(), *out = scratch("rows.safetensors");
    float scaled = first_value(QVL_RANDOM("preprocess", gray, "-o", out), out);
    float white = first_value(QVL_RANDOM("preprocess", gray, "-o", out, "--gray16", "saturate"), out);
    float plain = first_value(QVL_RANDOM("preprocess", gray, "-o", out, "--policy", "reference"), out);
    float undone =
        first_value(QVL_RANDOM("preprocess", gray, "-o", out, "--policy=reference", "--gray16=scale"), out);
    assert_true(scaled > -0.8592f && scaled < -0.8588f); /* 0x12 */
    assert_true(white == 1.0f && plain == 1.0f && undone == scaled);
}

static void test_alpha(void **state) {
    (void)state;
    const char *clear = MEDIA "frame_rgba.webp", *out = scratch("rows.safetensors"); /* clear at the corner */
    assert_true(first_value(QVL_RANDOM("preprocess", clear, "-o", out, "--size", "32x32"), out) == 1.0f);
    assert_true(first_value(QVL_RANDOM("preprocess", clear, "-o", out, "--size", "32x32", "--alpha", "drop"),
                            out) == -1.0f);
    float grey =
        first_value(QVL_RANDOM("preprocess", clear, "-o", out, "--size", "32x32", "--alpha", "#80ff00"), out);
    assert_true(grey > 0 && grey < 0.01f);
}

static void test_what_is_said(void **state) {
    (void)state;
    const char *out = scratch("rows.safetensors");
    result r = expect(
        0, NULL, QVL_RANDOM("preprocess", MEDIA "exif_6_be.jpg", "--orientation", "ignore", "--alpha", "#0A0b0c"));
    assert_says(r.out, "policies: orientation ignore, alpha #0a0b0c, gray16 scale\n");
    assert_says(r.out, "exif_6_be.jpg: JPEG ");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("encode", MEDIA "exif_6_be.jpg", "--policy", "reference", "--json", "-o", out));
    cJSON *json = cJSON_Parse(r.out);
    const cJSON *policies = cJSON_GetObjectItem(json, "policies");
    assert_non_null(policies);
    assert_string_equal(cJSON_GetObjectItem(policies, "orientation")->valuestring, "ignore");
    assert_string_equal(cJSON_GetObjectItem(policies, "alpha")->valuestring, "drop");
    assert_string_equal(cJSON_GetObjectItem(policies, "gray16")->valuestring, "saturate");
    const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "items"), 0);
    assert_int_equal(cJSON_GetObjectItem(item, "orientation")->valueint, 6);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(item, "turned_upright")));
    cJSON_Delete(json);
    free_result(&r);
    size_t count;
    char *file = read_file(out, &count); /* the header is text, behind its length */
    assert_says(file + 8, "\"alpha\":\"drop\"");
    assert_says(file + 8, "\"gray16\":\"saturate\"");
    assert_says(file + 8, "\"orientation\":\"ignore\"");
    free(file);
}

static void test_refusals(void **state) {
    (void)state;
    const char *jpeg = MEDIA "rgb_444.jpg";
    result r = expect(1, NULL, QVL_RANDOM("preprocess", jpeg, "--max-source-pixels", "1960"));
    assert_says(r.err, "size is 53 x 37 pixels; the limit is 1960 pixels");
    free_result(&r);
    static const char *const wrong[][3] = {
        {"--policy", "pillow", "allowed is default or reference"},
        {"--orientation", "none", "allowed is apply or ignore"},
        {"--alpha", "#12345", "allowed is white, drop or a colour such as #7f7f7f"},
        {"--alpha", "#12345g", "allowed is white, drop or a colour"},
        {"--gray16", "high", "allowed is scale or saturate"},
        {"--max-source-pixels", "0", "allowed is a whole number in 1.."},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        r = expect(2, NULL, QVL("preprocess", jpeg, wrong[i][0], wrong[i][1]));
        assert_says(r.err, wrong[i][2]);
        free_result(&r);
    }
    r = expect(2, NULL, QVL("plan", jpeg, "--alpha", "drop", "--policy", "default")); /* would undo it silently */
    assert_says(r.err, "before --orientation, --alpha and --gray16, which it would undo");
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gray16),
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
