/* smart_resize against the Python function's numbers, the rules of options, and the size reports of users. */
#include "preprocess/geometry.h"
#include "preprocess/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const qvl_limits wide = {1, INT64_MAX};

static void expect_size_of_factor(int64_t factor, int64_t width, int64_t height, qvl_limits limits,
                                  int64_t out_width, int64_t out_height) {
    int64_t h, w;
    qvl_error error;
    if (qvl_smart_resize(height, width, factor, limits, &h, &w, &error) != QVL_OK)
        fail_msg("%lld x %lld: %s", (long long)width, (long long)height, error.message);
    if (w != out_width || h != out_height)
        fail_msg("%lld x %lld became %lld x %lld, expected %lld x %lld", (long long)width, (long long)height,
                 (long long)w, (long long)h, (long long)out_width, (long long)out_height);
}

static void expect_size(int64_t width, int64_t height, qvl_limits limits, int64_t out_width, int64_t out_height) {
    expect_size_of_factor(32, width, height, limits, out_width, out_height);
}

static void expect_refused(int64_t width, int64_t height, int64_t factor, qvl_limits limits, qvl_status expected,
                           const char *words) {
    int64_t h = 7, w = 7;
    qvl_error error = {0};
    assert_int_equal(qvl_smart_resize(height, width, factor, limits, &h, &w, &error), expected);
    assert_int_equal(error.status, expected);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
    assert_int_equal(h, 0);
    assert_int_equal(w, 0);
    assert_int_equal(qvl_smart_resize(height, width, factor, limits, &h, &w, NULL), expected);
}

/* Final size, grid and tokens of a picture under options. */
static void expect_picture(const qvl_preprocess_options *options, int64_t width, int64_t height, int64_t out_width,
                           int64_t out_height, int64_t tokens) {
    qvl_config config = test_config();
    int64_t w, h;
    qvl_item item = {.source_width = width, .source_height = height};
    assert_int_equal(qvl_target_size(&config, options, width, height, &w, &h, NULL), QVL_OK);
    assert_int_equal(w, out_width);
    assert_int_equal(h, out_height);
    assert_int_equal(qvl_picture_grid(&config.vision, w, h, &item, NULL), QVL_OK);
    assert_int_equal(item.grid.t, 1);
    assert_int_equal(item.grid.h, out_height / 16);
    assert_int_equal(item.grid.w, out_width / 16);
    assert_int_equal(item.tokens, tokens);
    assert_int_equal(item.width, out_width);
    assert_int_equal(item.height, out_height);
    assert_int_equal(item.source_width, width);
    assert_int_equal(item.source_height, height);
}

static qvl_preprocess_options defaults(void) {
    qvl_preprocess_options options;
    memset(&options, 0xff, sizeof options);
    qvl_preprocess_options_init(&options);
    return options;
}

/* ---- the Python function's numbers */

/* Entries [height, width, min, max, [height, width] or "error"]. */
static void check_entries(const cJSON *list, int64_t factor, int least) {
    assert_true(cJSON_GetArraySize(list) >= least);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list) {
        int64_t height = integer_at(entry, 0), width = integer_at(entry, 1);
        qvl_limits limits = {integer_at(entry, 2), integer_at(entry, 3)};
        const cJSON *size = cJSON_GetArrayItem(entry, 4);
        if (cJSON_IsString(size))
            expect_refused(width, height, factor, limits, QVL_ERROR_LIMIT, "above the limit of 200");
        else
            expect_size_of_factor(factor, width, height, limits, integer_at(size, 1), integer_at(size, 0));
    }
}

static void reference_vectors(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("preprocess_vectors.json");
    check_entries(member(fixture, "image_smart_resize"), 32, 52);
    check_entries(member(fixture, "large_sizes"), 32, 400);
    check_entries(member(fixture, "sizes_of_factor_28"), 28, 300);
    cJSON_Delete(fixture);
}

static void all_small_sizes(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("preprocess_vectors.json");
    const cJSON *table;
    int tables = 0;
    cJSON_ArrayForEach(table, member(fixture, "small_sizes")) {
        qvl_limits limits = {integer(table, "min_pixels"), integer(table, "max_pixels")};
        const cJSON *size = member(table, "sizes")->child;
        for (int64_t height = 1; height <= 40; height++)
            for (int64_t width = 1; width <= 40; width++, size = size->next) {
                assert_non_null(size);
                expect_size(width, height, limits, integer_at(size, 1), integer_at(size, 0));
            }
        assert_null(size);
        tables++;
    }
    assert_int_equal(tables, 2);
    cJSON_Delete(fixture);
}

/* ---- what users ran into (user reports, by number) */

static void report_1_phone_photo(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 4032, 3024, 4032, 3008, 11844);
    options.max_pixels = 1024 * 1024;
    expect_picture(&options, 4032, 3024, 1152, 864, 972);
    options.max_pixels = 0;
    options.max_tokens = 1024; /* the same area in merged tokens */
    expect_picture(&options, 4032, 3024, 1152, 864, 972);
}

static void report_2_ties_round_to_even(void **state) {
    (void)state;
    static const int64_t sides[][2] = {{272, 256}, {304, 320}, {336, 320}, {368, 384}, {400, 384}, {432, 448}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        expect_size(sides[i][0], sides[i][0], real_limits, sides[i][1], sides[i][1]);
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 2048, 16, 2912, 32, 91);
}

static void report_4_sides_below_the_factor(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 28, 26, 288, 256, 72);
    expect_picture(&options, 332, 27, 928, 96, 87);
    expect_picture(&options, 257, 27, 800, 96, 75);
}

static void report_5_one_pixel(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 1, 1, 256, 256, 64);
    expect_refused(499, 1, 32, real_limits, QVL_ERROR_LIMIT, "aspect ratio is 499, above the limit of 200");
}

static void report_7_elongated(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 6400, 32, 6400, 32, 200);
    expect_picture(&options, 200, 1, 3648, 32, 114);
    expect_picture(&options, 1, 200, 32, 3648, 114);
    expect_picture(&options, 1380, 245, 1376, 256, 344);
    expect_refused(6401, 32, 32, real_limits, QVL_ERROR_LIMIT,
                   "picture is 6401 x 32: its aspect ratio is 200.03125, above the limit of 200");
    expect_refused(201, 1, 32, real_limits, QVL_ERROR_LIMIT, "aspect ratio is 201, above the limit of 200");
    expect_refused(1, 201, 32, real_limits, QVL_ERROR_LIMIT, "picture is 1 x 201: its aspect ratio is 201");
}

static void report_14_limits_of_the_folder(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_picture(&options, 150, 224, 224, 320, 70);
    expect_size(150, 224, class_limits, 160, 224);
}

static void report_20_same_size_in_both_processors(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_MLX; preset++) {
        options.preset = (qvl_preset)preset;
        expect_picture(&options, 2048, 1365, 2048, 1376, 2752);
    }
}

/* ---- impossible numbers */

static void absurd_sizes(void **state) {
    (void)state;
    const int64_t most = (int64_t)1 << 31;
    expect_refused(0, 5, 32, real_limits, QVL_ERROR_ARGUMENT, "width is 0");
    expect_refused(5, 0, 32, real_limits, QVL_ERROR_ARGUMENT, "height is 0");
    expect_refused(-1, 5, 32, real_limits, QVL_ERROR_ARGUMENT, "width is -1");
    expect_refused(5, INT64_MIN, 32, real_limits, QVL_ERROR_ARGUMENT, "height is -9223372036854775808");
    expect_refused(most + 1, most, 32, real_limits, QVL_ERROR_LIMIT,
                   "width is 2147483649; allowed are 1 to 2147483648");
    expect_refused(most, INT64_MAX, 32, real_limits, QVL_ERROR_LIMIT, "height is 9223372036854775807");
    expect_size(most, most, real_limits, 4096, 4096);
    expect_size(most, most, wide, most, most);
}

static void absurd_factors_and_limits(void **state) {
    (void)state;
    expect_refused(5, 5, 0, real_limits, QVL_ERROR_ARGUMENT, "factor is 0");
    expect_refused(5, 5, -32, real_limits, QVL_ERROR_ARGUMENT, "factor is -32");
    expect_refused(5, 5, INT64_MAX, real_limits, QVL_ERROR_ARGUMENT, "factor is 9223372036854775807");
    expect_refused(5, 5, 32, (qvl_limits){0, 1}, QVL_ERROR_ARGUMENT, "pixel limits are 0 to 1");
    expect_refused(5, 5, 32, (qvl_limits){1, -1}, QVL_ERROR_ARGUMENT, "pixel limits are 1 to -1");
    expect_refused(200, 1, 32, (qvl_limits){INT64_MAX, INT64_MAX}, QVL_ERROR_LIMIT,
                   "min_pixels of 9223372036854775807 would resize the picture of 200 x 1");
    expect_refused(5, 5, 1 << 20, (qvl_limits){INT64_MAX, INT64_MAX}, QVL_ERROR_LIMIT, "at most 2147483648");
}

/* ---- options */

static void default_options(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    assert_int_equal(options.size, sizeof options);
    assert_int_equal(options.preset, QVL_PRESET_TRANSFORMERS);
    assert_int_equal(options.media.max_pixels, 178956970);
    assert_int_equal(options.min_pixels, 0);
    assert_int_equal(options.max_pixels, 0);
    assert_int_equal(options.min_tokens, 0);
    assert_int_equal(options.max_tokens, 0);
    assert_int_equal(options.width, 0);
    assert_int_equal(options.height, 0);
}

static void preset_names(void **state) {
    (void)state;
    assert_string_equal(qvl_preset_name(QVL_PRESET_TRANSFORMERS), "transformers");
    assert_string_equal(qvl_preset_name(QVL_PRESET_TRANSFORMERS_PIL), "transformers-pil");
    assert_string_equal(qvl_preset_name(QVL_PRESET_MLX), "mlx");
    assert_null(qvl_preset_name((qvl_preset)3));
}

static void expect_limits(const qvl_preprocess_options *options, int64_t least, int64_t most) {
    qvl_config config = test_config();
    qvl_limits limits;
    assert_int_equal(qvl_effective_limits(&config, options, &limits, NULL), QVL_OK);
    assert_int_equal(limits.min_pixels, least);
    assert_int_equal(limits.max_pixels, most);
}

static void expect_options_refused(const qvl_preprocess_options *options, const char *words) {
    qvl_config config = test_config();
    qvl_error error = {0};
    int64_t w = 7, h = 7;
    assert_int_equal(qvl_target_size(&config, options, 640, 480, &w, &h, &error), QVL_ERROR_ARGUMENT);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
    assert_int_equal(w, 0);
    assert_int_equal(h, 0);
}

static void each_limit_works_alone(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    expect_limits(&options, 65536, 16777216);
    options.min_pixels = 100;
    expect_limits(&options, 100, 16777216);
    options = defaults();
    options.max_pixels = 70000;
    expect_limits(&options, 65536, 70000);
    options = defaults();
    options.min_tokens = 3;
    expect_limits(&options, 3072, 16777216);
    options.max_pixels = 4000;
    expect_limits(&options, 3072, 4000);
    options = defaults();
    options.max_tokens = 64;
    expect_limits(&options, 65536, 65536);
}

static void contradictory_limits(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    options.min_pixels = 5000;
    options.min_tokens = 5;
    expect_options_refused(&options, "min_pixels (5000) and min_tokens (5) both set the same limit");
    options = defaults();
    options.max_pixels = 6000;
    options.max_tokens = 6;
    expect_options_refused(&options, "max_pixels (6000) and max_tokens (6) both set the same limit");
    options = defaults();
    options.max_pixels = 50000; /* below the folder's minimum */
    expect_options_refused(&options, "minimum of 65536 pixels (preprocessor_config.json) is above the maximum of "
                                     "50000 pixels (option)");
    options = defaults();
    options.min_tokens = 20000;
    expect_options_refused(&options, "minimum of 20480000 pixels (option) is above the maximum of 16777216");
}

static void impossible_limits(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    options.min_pixels = -1;
    expect_options_refused(&options, "min_pixels is -1");
    options = defaults();
    options.max_tokens = -2;
    expect_options_refused(&options, "max_tokens is -2");
    options = defaults();
    options.max_tokens = INT64_MAX / 1024 + 1;
    expect_options_refused(&options, "max_tokens is 9007199254740992, too many");
}

static void folder_that_contradicts_itself(void **state) {
    (void)state;
    qvl_config config = test_config();
    config.processor.limits = (qvl_limits){2000, 1000};
    qvl_preprocess_options options = defaults();
    qvl_limits limits = {7, 7};
    qvl_error error = {0};
    assert_int_equal(qvl_effective_limits(&config, &options, &limits, &error), QVL_ERROR_MODEL);
    assert_non_null(strstr(error.message, "2000"));
    assert_non_null(strstr(error.message, "1000"));
    assert_int_equal(limits.min_pixels, 0);
}

static void exact_size(void **state) {
    (void)state;
    qvl_preprocess_options options = defaults();
    options.width = 320;
    options.height = 32;
    expect_picture(&options, 640, 480, 320, 32, 10);
    expect_picture(&options, 5000, 1, 320, 32, 10); /* no ratio rule: the caller decides */
    options.min_pixels = 100;
    expect_options_refused(&options, "size 320 x 32 leaves nothing for pixel or token limits");
    options.min_pixels = 0;
    options.max_tokens = 100;
    expect_options_refused(&options, "size 320 x 32 leaves nothing for pixel or token limits");
    options = defaults();
    options.width = 320;
    expect_options_refused(&options, "size is 320 x 0; width and height must be given together");
    options.height = 100;
    expect_options_refused(&options, "size is 320 x 100; both must be multiples of 32");
    options.height = -32;
    expect_options_refused(&options, "size is 320 x -32");
}

static void exact_size_is_bounded(void **state) {
    (void)state;
    qvl_config config = test_config();
    qvl_preprocess_options options = defaults();
    options.width = options.height = (int64_t)1 << 40;
    int64_t w, h;
    assert_int_equal(qvl_target_size(&config, &options, 64, 64, &w, &h, NULL), QVL_ERROR_LIMIT);
    options.width = options.height = 64;
    assert_int_equal(qvl_target_size(&config, &options, 0, 64, &w, &h, NULL), QVL_ERROR_ARGUMENT);
    assert_int_equal(qvl_target_size(&config, &options, 64, -1, &w, &h, NULL), QVL_ERROR_ARGUMENT);
}

static void other_patch_sizes(void **state) {
    (void)state;
    qvl_config config = test_config();
    config.vision.patch_size = 14;
    config.vision.spatial_merge_size = 3;
    qvl_item item = {0};
    assert_int_equal(qvl_picture_grid(&config.vision, 84, 126, &item, NULL), QVL_OK);
    assert_int_equal(item.grid.h, 9);
    assert_int_equal(item.grid.w, 6);
    assert_int_equal(item.tokens, 6);
    qvl_preprocess_options options = defaults();
    options.min_tokens = 10;
    qvl_limits limits;
    assert_int_equal(qvl_effective_limits(&config, &options, &limits, NULL), QVL_OK);
    assert_int_equal(limits.min_pixels, 10 * 42 * 42);
}

static void grid_needs_whole_blocks(void **state) {
    (void)state;
    qvl_config config = test_config();
    qvl_error error = {0};
    qvl_item item = {0};
    assert_int_equal(qvl_picture_grid(&config.vision, 100, 150, &item, &error), QVL_ERROR_ARGUMENT);
    assert_string_equal(error.message,
                        "picture is 100 x 150; both sides must be multiples of 32 (patch 16 x merge 2)");
    assert_int_equal(qvl_picture_grid(&config.vision, 64, 48, &item, &error), QVL_ERROR_ARGUMENT);
    assert_int_equal(qvl_picture_grid(&config.vision, 0, 64, &item, &error), QVL_ERROR_ARGUMENT);
    assert_int_equal(item.tokens, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_vectors),
        cmocka_unit_test(all_small_sizes),
        cmocka_unit_test(report_1_phone_photo),
        cmocka_unit_test(report_2_ties_round_to_even),
        cmocka_unit_test(report_4_sides_below_the_factor),
        cmocka_unit_test(report_5_one_pixel),
        cmocka_unit_test(report_7_elongated),
        cmocka_unit_test(report_14_limits_of_the_folder),
        cmocka_unit_test(report_20_same_size_in_both_processors),
        cmocka_unit_test(absurd_sizes),
        cmocka_unit_test(absurd_factors_and_limits),
        cmocka_unit_test(default_options),
        cmocka_unit_test(preset_names),
        cmocka_unit_test(each_limit_works_alone),
        cmocka_unit_test(contradictory_limits),
        cmocka_unit_test(impossible_limits),
        cmocka_unit_test(folder_that_contradicts_itself),
        cmocka_unit_test(exact_size),
        cmocka_unit_test(exact_size_is_bounded),
        cmocka_unit_test(other_patch_sizes),
        cmocka_unit_test(grid_needs_whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
