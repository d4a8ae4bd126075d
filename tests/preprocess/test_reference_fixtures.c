/* Resizes and pixel values against what the references gave: torch, torchvision and transformers on a machine that
 * has them (torch_*.json, tools/oracle/torch_preprocess_fixtures.py), transformers' Pillow backend with Pillow 13
 * (pillow_*.json, tools/oracle/preprocess_fixtures.py). */
#include "preprocess/geometry.h"
#include "preprocess/patches.h"
#include "preprocess/resample.h"
#include "preprocess/support.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_resizes(const char *name, qvl_filter filter) {
    cJSON *fixture = load_fixture(name);
    const cJSON *list = member(fixture, "cases"), *entry;
    assert_true(cJSON_GetArraySize(list) >= 320);
    cJSON_ArrayForEach(entry, list) {
        qvl_image in = case_picture(entry);
        int64_t width = integer(entry, "out_width"), height = integer(entry, "out_height");
        qvl_image out = resample(NULL, &in, width, height, filter);
        char what[160];
        snprintf(what, sizeof what, "%s: %s %lld x %lld to %lld x %lld", name, string(entry, "kind"),
                 (long long)in.width, (long long)in.height, (long long)width, (long long)height);
        assert_picture(&out, string(entry, "sha256"), what);
        qvl_image_free(&in);
        qvl_image_free(&out);
    }
    cJSON_Delete(fixture);
}

static void torch_resize(void **state) {
    (void)state;
    check_resizes("torch_resize.json", QVL_FILTER_TORCH);
}

static void pillow_resize(void **state) {
    (void)state;
    check_resizes("pillow_resize.json", QVL_FILTER_PILLOW);
}

static qvl_config case_config(const cJSON *entry) {
    qvl_config config = test_config();
    config.processor.limits = (qvl_limits){integer(entry, "min_pixels"), integer(entry, "max_pixels")};
    config.processor.rescale_factor = member(entry, "rescale_factor")->valuedouble;
    for (int c = 0; c < 3; c++) {
        config.processor.mean[c] = (float)cJSON_GetArrayItem(member(entry, "mean"), c)->valuedouble;
        config.processor.std[c] = (float)cJSON_GetArrayItem(member(entry, "std"), c)->valuedouble;
    }
    return config;
}

/* resize: NULL for the preset's own. */
typedef qvl_image (*resize_fn)(const qvl_image *in, int64_t width, int64_t height, qvl_filter filter);

static void check_pixel_values(const cJSON *entry, qvl_preset preset, resize_fn resize, const char *expected) {
    qvl_config config = case_config(entry);
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    qvl_image in = case_picture(entry);
    qvl_item item = {0};
    int64_t width, height;
    assert_int_equal(qvl_target_size(&config, &options, in.width, in.height, &width, &height, NULL), QVL_OK);
    assert_int_equal(qvl_picture_grid(&config.vision, width, height, &item, NULL), QVL_OK);
    const cJSON *grid = member(entry, "grid"), *shape = member(entry, "shape");
    assert_int_equal(item.grid.t, integer_at(grid, 0));
    assert_int_equal(item.grid.h, integer_at(grid, 1));
    assert_int_equal(item.grid.w, integer_at(grid, 2));
    assert_int_equal(item.grid.h * item.grid.w, integer_at(shape, 0));
    assert_int_equal(1536, integer_at(shape, 1));

    qvl_filter filter = preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
    qvl_image out = resize ? resize(&in, width, height, filter) : resample(NULL, &in, width, height, filter);
    float table[3][256];
    qvl_normalise_table(&config.processor, preset, table);
    size_t count = (size_t)(item.grid.h * item.grid.w) * 1536;
    float *rows = qvl_alloc(count, sizeof *rows);
    assert_non_null(rows);
    qvl_patch_rows(NULL, &out, 1, &config.vision, (const float(*)[256])table, rows);
    char what[120];
    snprintf(what, sizeof what, "%s: %s %lld x %lld seed %lld", qvl_preset_name(preset), string(entry, "kind"),
             (long long)in.width, (long long)in.height, (long long)integer(entry, "seed"));
    assert_sha256(rows, count * sizeof *rows, expected, what);
    qvl_free(rows);
    qvl_image_free(&in);
    qvl_image_free(&out);
}

static void torch_pixel_values(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("torch_pixel_values.json");
    const cJSON *list = member(fixture, "cases"), *entry;
    assert_true(cJSON_GetArraySize(list) >= 48);
    /* That machine's Pillow may be older than 13: then its horizontal pass came first. */
    long pillow = strtol(string(member(fixture, "versions"), "pillow"), NULL, 10);
    resize_fn resize = pillow < 13 ? resample_across_then_down : NULL;
    cJSON_ArrayForEach(entry, list) {
        check_pixel_values(entry, QVL_PRESET_TRANSFORMERS, NULL, string(entry, "torch_sha256"));
        check_pixel_values(entry, QVL_PRESET_TRANSFORMERS_PIL, resize, string(entry, "pil_sha256"));
    }
    cJSON_Delete(fixture);
}

static void pillow_pixel_values(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("pillow_pixel_values.json");
    const cJSON *list = member(fixture, "cases"), *entry;
    assert_true(cJSON_GetArraySize(list) >= 48);
    cJSON_ArrayForEach(entry, list)
        check_pixel_values(entry, QVL_PRESET_TRANSFORMERS_PIL, NULL, string(entry, "sha256"));
    cJSON_Delete(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_resize),
        cmocka_unit_test(pillow_resize),
        cmocka_unit_test(torch_pixel_values),
        cmocka_unit_test(pillow_pixel_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
