/* What users of other systems ran into (user reports, by number), through the whole pipeline with the random model.
 * Those about sizes alone are in tests/preprocess/test_geometry.c, those about the program in tests/cli. */
#include "pipeline/pipeline.h"
#include "preprocess/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    qvl_model *model;
    qvl_session *session;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    f.session = open_session(f.model);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    qvl_session_close(&f->session);
    qvl_model_close(&f->model);
    return 0;
}

static qvl_preprocess_options defaults(void) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    return options;
}

/* Encodes, and checks that each item is the planned one and every feature was written. */
static void encode_as_planned(const fixture *f, const qvl_input *inputs, size_t count,
                              const qvl_preprocess_options *options) {
    qvl_plan p = plan(f->model, inputs, count, options);
    qvl_features features = encode(f->session, inputs, count, options);
    assert_int_equal(features.item_count, count);
    assert_int_equal(features.tokens, p.tokens);
    for (size_t i = 0; i < count; i++) assert_same_item(&p.items[i].item, &features.items[i]);
    qvl_features_free(&features);
    qvl_plan_free(&p);
}

static void expect_plan(const fixture *f, uint32_t width, uint32_t height, const qvl_preprocess_options *options,
                        int64_t out_width, int64_t out_height, int64_t tokens) {
    const qvl_input header = make_png_header(width, height);
    qvl_plan p = plan(f->model, &header, 1, options);
    const qvl_item *item = &p.items[0].item;
    assert_int_equal(item->source_width, width);
    assert_int_equal(item->source_height, height);
    assert_int_equal(item->width, out_width);
    assert_int_equal(item->height, out_height);
    assert_int_equal(item->grid.t, 1);
    assert_int_equal(item->grid.h, out_height / 16);
    assert_int_equal(item->grid.w, out_width / 16);
    assert_int_equal(item->tokens, tokens);
    assert_int_equal(p.tokens, tokens);
    assert_int_equal(p.rows, 4 * tokens);
    qvl_plan_free(&p);
}

/* ---- A. sizes */

static void report_1_cost_is_known_before(void **state) {
    const fixture *f = *state;
    qvl_preprocess_options lower = defaults();
    lower.max_pixels = 1024 * 1024;
    expect_plan(f, 4032, 3024, NULL, 4032, 3008, 11844);
    expect_plan(f, 4032, 3024, &lower, 1152, 864, 972);
    const qvl_input photo = make_png_header(4032, 3024);
    qvl_plan whole = plan(f->model, &photo, 1, NULL), less = plan(f->model, &photo, 1, &lower);
    double ratio = 11844.0 / 972.0; /* attention grows with the square of it, the rest with it */
    assert_true(fabs(whole.work.attention / less.work.attention / (ratio * ratio) - 1) < 1e-9);
    assert_true(fabs(whole.work.linear / less.work.linear / ratio - 1) < 1e-9);
    assert_true(whole.memory.peak > 5 * less.memory.peak); /* the less the picture itself weighs, the more */
    qvl_plan_free(&whole);
    qvl_plan_free(&less);
}

static void report_2_ties(void **state) {
    expect_plan(*state, 2048, 16, NULL, 2912, 32, 91);
    expect_plan(*state, 272, 272, NULL, 256, 256, 64);
    expect_plan(*state, 432, 432, NULL, 448, 448, 196);
}

/* Every size of 1 to 40 on each side is planned, every third goes through the whole pipeline. (That of all of them
 * to patch rows is tests/preprocess/test_patches.c.) */
static void report_4_small_sides(void **state) {
    const fixture *f = *state;
    enum { MOST = 40 };
    expect_plan(f, 28, 26, NULL, 288, 256, 72);
    expect_plan(f, 332, 27, NULL, 928, 96, 87);
    expect_plan(f, 257, 27, NULL, 800, 96, 75);
    for (int64_t height = 1; height <= MOST; height++) {
        qvl_input row[MOST], third[MOST];
        size_t thirds = 0;
        for (int64_t width = 1; width <= MOST; width++) {
            row[width - 1] = make_rgb(width, height);
            if ((width + height) % 3 == 0) third[thirds++] = row[width - 1];
        }
        qvl_plan p = plan(f->model, row, MOST, NULL);
        for (size_t i = 0; i < MOST; i++) assert_true(p.items[i].item.tokens >= 64);
        qvl_plan_free(&p);
        encode_as_planned(f, third, thirds, NULL);
        for (size_t i = 0; i < MOST; i++) free_picture(&row[i]);
    }
}

/* A picture that is refused spoils nothing: the same session goes on. */
static void report_5_one_pixel_and_a_strip(void **state) {
    const fixture *f = *state;
    expect_plan(f, 1, 1, NULL, 256, 256, 64);
    qvl_input pixel = make_rgb(1, 1), strip = make_rgb(499, 1), good = make_rgb(96, 80);
    strip.name = "strip.png";
    const qvl_input three[3] = {good, strip, pixel};
    qvl_features before = encode(f->session, &good, 1, NULL), refused, after;
    for (int i = 0; i < 3; i++) {
        qvl_error error = {0};
        assert_int_equal(qvl_encode(f->session, i ? &strip : three, i ? 1 : 3, NULL, NULL, &refused, &error),
                         QVL_ERROR_LIMIT);
        assert_says(error.message,
                    "strip.png: picture is 499 x 1: its aspect ratio is 499, above the limit of 200");
        assert_null(refused.embeds);
        after = encode(f->session, &good, 1, NULL);
        assert_memory_equal(after.embeds, before.embeds, (size_t)(before.tokens * before.width) * 2);
        qvl_features_free(&after);
    }
    encode_as_planned(f, &pixel, 1, NULL);
    qvl_features_free(&before);
    free_picture(&pixel);
    free_picture(&strip);
    free_picture(&good);
}

static void report_7_elongated(void **state) {
    const fixture *f = *state;
    expect_plan(f, 6400, 32, NULL, 6400, 32, 200);
    expect_plan(f, 200, 1, NULL, 3648, 32, 114);
    expect_plan(f, 1380, 245, NULL, 1376, 256, 344);
    static const uint32_t refused[][2] = {{6401, 32}, {201, 1}};
    static const char *const words[] = {"ratio is 200.03125, above the limit of 200", "ratio is 201, above"};
    for (size_t i = 0; i < 2; i++) {
        const qvl_input header = make_png_header(refused[i][0], refused[i][1]);
        qvl_plan p;
        qvl_error error = {0};
        assert_int_equal(qvl_plan_inputs(f->model, &header, 1, NULL, &p, &error), QVL_ERROR_LIMIT);
        assert_says(error.message, words[i]);
    }
    qvl_input strip = make_rgb(200, 1);
    encode_as_planned(f, &strip, 1, NULL);
    free_picture(&strip);
}

/* What the pipeline makes of 640 x 160 vertical lines is what torch and Pillow make of them, pixel for pixel. */
static void report_10_swapped_sides(void **state) {
    const fixture *f = *state;
    static const char *const files[] = {"torch_resize.json", "pillow_resize.json"};
    for (int preset = 0; preset < 2; preset++) {
        cJSON *reference = load_fixture(files[preset]);
        const cJSON *entry, *lines = NULL;
        cJSON_ArrayForEach(entry, member(reference, "cases")) {
            if (strcmp(string(entry, "kind"), "lines") == 0 && integer(entry, "width") == 640) lines = entry;
        }
        assert_non_null(lines);
        qvl_image in = case_picture(lines), resized;
        qvl_preprocess_options options = defaults();
        options.preset = (qvl_preset)preset;
        options.width = integer(lines, "out_width");
        options.height = integer(lines, "out_height");
        assert_int_equal(qvl_resize(&in, options.width, options.height, options.preset, 2, &resized, NULL),
                         QVL_OK);
        assert_picture(&resized, string(lines, "sha256"), files[preset]);
        qvl_patches whole, direct;
        assert_int_equal(qvl_preprocess(f->model, &in, 1, &options, &whole, NULL), QVL_OK);
        assert_int_equal(qvl_patchify(f->model, &resized, 1, options.preset, &direct, NULL), QVL_OK);
        assert_int_equal(whole.rows, direct.rows);
        assert_memory_equal(whole.values, direct.values, (size_t)(whole.rows * whole.cols) * sizeof(float));
        qvl_patches_free(&whole);
        qvl_patches_free(&direct);
        qvl_image_free(&in);
        qvl_image_free(&resized);
        cJSON_Delete(reference);
    }
}

/* Buffers of whatever size it takes, growing and shrinking from call to call in one session. */
static void report_16_any_size(void **state) {
    const fixture *f = *state;
    static const int64_t squares[] = {64, 1024, 100, 720, 333, 1023, 256, 512};
    static const int64_t named[][2] = {{1105, 621}, {1280, 720}, {1584, 1584}};
    qvl_preprocess_options options = defaults();
    options.min_pixels = 1;
    for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++) {
        qvl_input picture = make_rgb(squares[i], squares[i]);
        encode_as_planned(f, &picture, 1, &options);
        free_picture(&picture);
    }
    for (int64_t side = 64; side <= 4096; side += 96) {
        qvl_input wide = make_rgb(side, 64), tall = make_rgb(64, side);
        encode_as_planned(f, &wide, 1, &options);
        encode_as_planned(f, &tall, 1, &options);
        free_picture(&wide);
        free_picture(&tall);
    }
    for (size_t i = 0; i < 3; i++) {
        qvl_input picture = make_rgb(named[i][0], named[i][1]);
        encode_as_planned(f, &picture, 1, NULL);
        free_picture(&picture);
    }
    expect_plan(f, 1584, 1584, NULL, 1600, 1600, 2500);
}

static void report_16_any_count(void **state) {
    const fixture *f = *state;
    enum { MOST = 32 };
    qvl_input pictures[MOST];
    qvl_preprocess_options options = defaults();
    options.min_pixels = 1;
    for (int64_t i = 0; i < MOST; i++) pictures[i] = make_rgb(64 + 7 * i, 150 - 4 * i);
    for (size_t count = 1; count <= MOST; count++) encode_as_planned(f, pictures, count, &options);
    for (size_t i = 0; i < MOST; i++) free_picture(&pictures[i]);
}

static bool stop_at_once(int64_t done, int64_t total, void *user) {
    (void)done, (void)total, (void)user;
    return false;
}

/* The largest picture the folder allows: its rows and all buffers of the tower, up to the first block. */
static void report_16_largest_square(void **state) {
    const fixture *f = *state;
    qvl_input picture = make_rgb(4096, 4096);
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.progress = stop_at_once;
    qvl_features features;
    qvl_error error = {0};
    assert_int_equal(qvl_encode(f->session, &picture, 1, NULL, &options, &features, &error), QVL_ERROR_CANCELLED);
    expect_plan(f, 4096, 4096, NULL, 4096, 4096, 16384);
    free_picture(&picture);
}

/* As many features as places for them, whatever the number of pictures: the number is known before. */
static void report_17_places_and_features(void **state) {
    const fixture *f = *state;
    qvl_input three[3] = {make_rgb(100, 300), make_rgb(640, 480), make_rgb(33, 32)};
    qvl_plan p = plan(f->model, three, 3, NULL);
    int64_t places = 0;
    for (size_t i = 0; i < 3; i++) places += p.items[i].item.tokens;
    assert_int_equal(p.tokens, places);
    qvl_features features = encode(f->session, three, 3, NULL);
    assert_int_equal(features.tokens, places);
    qvl_features_free(&features);
    qvl_plan_free(&p);
    for (size_t i = 0; i < 3; i++) free_picture(&three[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_1_cost_is_known_before),
        cmocka_unit_test(report_2_ties),
        cmocka_unit_test(report_4_small_sides),
        cmocka_unit_test(report_5_one_pixel_and_a_strip),
        cmocka_unit_test(report_7_elongated),
        cmocka_unit_test(report_10_swapped_sides),
        cmocka_unit_test(report_16_any_size),
        cmocka_unit_test(report_16_any_count),
        cmocka_unit_test(report_16_largest_square),
        cmocka_unit_test(report_17_places_and_features),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
