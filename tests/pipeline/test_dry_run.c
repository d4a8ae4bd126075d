/* The dry run: what it counts, by hand; that it is what encoding then does; what it refuses, and how cheaply. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONFIGS QVL_SOURCE_DIR "/tests/fixtures/configs/"
#define MEDIA QVL_SOURCE_DIR "/tests/fixtures/media/"

static qvl_preprocess_options defaults(void) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    return options;
}

static void assert_value(double found, double expected) {
    if (fabs(found - expected) > 1e-9 * fabs(expected)) fail_msg("%.17g is not %.17g", found, expected);
}

/* ---- what it counts */

/* Counted by hand for 27 blocks of 1152 with an MLP of 4304, out 5120: a patch and a block take
 * 2 (1152 3456 + 1152 1152 + 2 1152 4304) = 30,449,664 in linear layers. */
static void work_of_a_large_tower(void **state) {
    (void)state;
    static const struct {
        int64_t side;
        double teraflop[4]; /* linear, attention, patch embedding, merger: to four digits after the point */
        double total;
    } cases[] = {{512, {0.8419, 0.1305, 0.0036, 0.0230}, 0.9989},
                 {1024, {3.3675, 2.0874, 0.0145, 0.0918}, 5.5611}};
    qvl_model *qwen35 = open_folder(CONFIGS "qwen3.5-27b", QVL_OPEN_CONFIG);
    qvl_model *deep = open_folder(CONFIGS "qwen3-vl-32b", QVL_OPEN_CONFIG);
    for (size_t i = 0; i < 2; i++) {
        double n = (double)(cases[i].side * cases[i].side / 256);
        qvl_grid grid = {1, cases[i].side / 16, cases[i].side / 16};
        qvl_work work, deep_work;
        assert_int_equal(qvl_vision_work(qwen35, &grid, 1, &work, NULL), QVL_OK);
        assert_value(work.linear, 27 * n * 30449664);
        assert_value(work.attention, 27 * 4 * n * n * 1152);
        assert_value(work.patch_embed, 2 * n * 1536 * 1152);
        assert_value(work.mergers, n / 4 * 2 * 4608 * (4608 + 5120));
        assert_value(work.total, work.linear + work.attention + work.patch_embed + work.mergers);
        const double found[4] = {work.linear, work.attention, work.patch_embed, work.mergers};
        for (int k = 0; k < 4; k++) assert_true(fabs(1e-12 * found[k] - cases[i].teraflop[k]) <= 0.5001e-4);
        assert_true(fabs(1e-12 * work.total - cases[i].total) <= 0.5001e-4);
        assert_int_equal(qvl_vision_work(deep, &grid, 1, &deep_work, NULL), QVL_OK);
        assert_value(deep_work.mergers, 4 * work.mergers);
        assert_value(deep_work.linear, work.linear);
    }
    qvl_model_close(&deep);
    qvl_model_close(&qwen35);
}

static void work_of_videos_and_lists(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    const qvl_grid grids[2] = {{3, 6, 4}, {1, 6, 4}};
    qvl_work video, still, both, wrong = {1, 1, 1, 1, 1};
    assert_int_equal(qvl_vision_work(model, &grids[0], 1, &video, NULL), QVL_OK);
    assert_int_equal(qvl_vision_work(model, &grids[1], 1, &still, NULL), QVL_OK);
    assert_int_equal(qvl_vision_work(model, grids, 2, &both, NULL), QVL_OK);
    assert_value(video.attention, 3 * still.attention); /* groups do not see each other */
    assert_value(video.total, 3 * still.total);
    assert_value(both.total, video.total + still.total);
    const qvl_grid impossible = {1, 3, 4};
    qvl_error error = {0};
    assert_int_equal(qvl_vision_work(model, &impossible, 1, &wrong, &error), QVL_ERROR_ARGUMENT);
    assert_true(wrong.total == 0);
    double seconds = 0;
    assert_int_equal(qvl_bench_floor(model, &impossible, 1, &seconds, &error), QVL_ERROR_ARGUMENT);
    assert_int_equal(qvl_bench_floor(model, grids, 2, &seconds, &error), QVL_OK);
    assert_true(seconds > 0);
    qvl_model_close(&model);
}

static void memory_by_hand(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    qvl_input inputs[2] = {make_rgb(640, 427), make_rgb(320, 320)};
    qvl_plan p = plan(model, inputs, 2, NULL);
    size_t scratch;
    assert_int_equal(qvl_vision_scratch(model, &p.items[0].item.grid, 1, &scratch, NULL), QVL_OK);
    assert_int_equal(p.rows, 26 * 40 + 20 * 20);
    assert_int_equal(p.tokens, p.rows / 4);
    assert_int_equal(p.memory.scratch, scratch);
    assert_int_equal(p.memory.patches, 26 * 40 * 1536 * 4);
    assert_int_equal(p.memory.features, p.tokens * 64 * 2 * 3); /* bf16, two deepstack arrays */
    /* The first picture is resized: its pixels, and those of 640 x 416. One side keeps its size: no other copy. */
    assert_int_equal(p.memory.pictures, 3 * (640 * 427 + 640 * 416));
    /* The tower runs; others are read or lie ready; the first one's features are copied, and one array moves. */
    int64_t tower = p.memory.patches + p.memory.scratch + p.memory.features;
    int64_t ahead = p.memory.pictures + 2 * 3 * 640 * 416;
    assert_int_equal(p.memory.peak, p.memory.weights + tower + ahead + 260 * 64 * 2 * 3 + p.tokens * 64 * 2);
    qvl_plan one = plan(model, inputs, 1, NULL);
    assert_int_equal(one.memory.peak,
                     one.memory.weights + one.memory.patches + one.memory.scratch + one.memory.features);
    qvl_plan_free(&one);
    assert_value(p.work.total, p.items[0].work.total + p.items[1].work.total);
    qvl_plan_free(&p);
    qvl_model_close(&model);
    for (size_t i = 0; i < 2; i++) free_picture(&inputs[i]);
}

/* Weights are counted from the configuration: bf16 takes two bytes a parameter, and what stays f32 a little more.
 */
static void memory_of_weights(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_HEADERS);
    qvl_input input = make_png_header(64, 64);
    qvl_plan p = plan(model, &input, 1, NULL);
    int64_t parameters = qvl_model_get_info(model)->parameter_count;
    assert_true(p.memory.weights > 2 * parameters && p.memory.weights < 3 * parameters);
    qvl_plan_free(&p);
    qvl_model_close(&model);
}

/* ---- it is what encoding does */

static void assert_plan_is_encode(qvl_session *session, const qvl_model *model, const qvl_input *inputs,
                                  size_t count, const qvl_preprocess_options *options) {
    qvl_plan p = plan(model, inputs, count, options);
    qvl_features f = encode(session, inputs, count, options);
    assert_int_equal(f.item_count, count);
    assert_int_equal(f.tokens, p.tokens);
    for (size_t i = 0; i < count; i++) assert_same_item(&p.items[i].item, &f.items[i]);
    qvl_features_free(&f);
    qvl_plan_free(&p);
}

static void plan_equals_encode(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {640, 427}, {33, 700}, {1380, 245}, {16, 2048}, {511, 513}};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS),
              *planning = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    qvl_session *session = open_session(model);
    qvl_input inputs[SIZES + 3];
    for (size_t i = 0; i < SIZES; i++) inputs[i] = make_rgb(sizes[i][0], sizes[i][1]);
    inputs[SIZES] = (qvl_input){.kind = QVL_INPUT_FILE, .name = QVL_SOURCE_DIR "/examples/scene.jpg"};
    inputs[SIZES + 1] = (qvl_input){.kind = QVL_INPUT_FILE, .name = MEDIA "rgba_8_interlaced.png"};
    inputs[SIZES + 2] = (qvl_input){.kind = QVL_INPUT_FILE, .name = MEDIA "rgb_progressive_420.jpg"};
    qvl_preprocess_options options[5];
    for (int i = 0; i < 5; i++) options[i] = defaults();
    options[1].preset = QVL_PRESET_MLX;
    options[1].max_pixels = 70000;
    options[2].min_tokens = 5;
    options[2].max_tokens = 33;
    options[3].width = 96;
    options[3].height = 64;
    options[4].min_pixels = 1;
    for (int i = 0; i < 5; i++) assert_plan_is_encode(session, planning, inputs, SIZES + 3, &options[i]);
    for (size_t i = 0; i < SIZES; i++) free_picture(&inputs[i]);
    qvl_session_close(&session);
    qvl_model_close(&planning);
    qvl_model_close(&model);
}

static void limits_of_one_picture(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS);
    qvl_session *session = open_session(model);
    qvl_input inputs[3];
    for (size_t i = 0; i < 3; i++) inputs[i] = make_rgb(640, 480);
    inputs[1].limits.max_pixels = 70000;
    inputs[2].limits = (qvl_limits){500000, 600000};
    qvl_preprocess_options options = defaults();
    options.max_tokens = 200;
    qvl_plan p = plan(model, inputs, 3, &options);
    const qvl_limits expected[3] = {{65536, 204800}, {65536, 70000}, {500000, 600000}};
    const int64_t tokens[3] = {192, 63, 520};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(p.items[i].limits.min_pixels, expected[i].min_pixels);
        assert_int_equal(p.items[i].limits.max_pixels, expected[i].max_pixels);
        assert_int_equal(p.items[i].item.tokens, tokens[i]);
    }
    qvl_plan_free(&p);
    assert_plan_is_encode(session, model, inputs, 3, &options);
    for (size_t i = 0; i < 3; i++) free_picture(&inputs[i]);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

/* ---- what it refuses */

/* Plan and preprocessing must refuse with the same words. */
static void expect_refused(const qvl_model *model, const qvl_input *inputs, size_t count,
                           const qvl_preprocess_options *options, qvl_status status, const char *words) {
    qvl_plan p;
    qvl_patches patches;
    qvl_error planned = {0}, preprocessed = {0};
    assert_int_equal(qvl_plan_inputs(model, inputs, count, options, &p, &planned), status);
    assert_int_equal(qvl_preprocess_inputs(model, inputs, count, options, &patches, &preprocessed), status);
    assert_string_equal(planned.message, preprocessed.message);
    assert_says(planned.message, words);
    assert_null(p.items);
    assert_int_equal(p.item_count, 0);
    assert_int_equal(p.memory.peak, 0);
}

static void refusals_are_those_of_encoding(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    qvl_input good = make_rgb(64, 64), strip = make_rgb(499, 1);
    strip.name = "strip";
    const qvl_input two[2] = {good, strip};
    qvl_input text = {.kind = QVL_INPUT_BYTES, .name = "text", .bytes = "no picture", .byte_count = 10};
    qvl_input page = {.kind = QVL_INPUT_BYTES, .name = "page", .bytes = "<html></html>", .byte_count = 13};
    qvl_input missing = {.kind = QVL_INPUT_FILE, .name = "/nowhere/a.png"};
    qvl_preprocess_options options = defaults();
    expect_refused(model, two, 2, NULL, QVL_ERROR_LIMIT, "strip: ");
    expect_refused(model, two, 2, NULL, QVL_ERROR_LIMIT, "aspect ratio is 499, above the limit of 200");
    expect_refused(model, &text, 1, NULL, QVL_ERROR_FORMAT,
                   "text: neither a picture nor a video qvl reads: first bytes 6e 6f ");
    expect_refused(model, &text, 1, NULL, QVL_ERROR_FORMAT, "AVIF without alpha; of videos MP4, QuickTime, ");
    expect_refused(model, &page, 1, NULL, QVL_ERROR_UNSUPPORTED, "page: HTML is not supported; qvl reads JPEG, ");
    expect_refused(model, &page, 1, NULL, QVL_ERROR_UNSUPPORTED, "; of videos MP4, QuickTime, ");
    expect_refused(model, &missing, 1, NULL, QVL_ERROR_IO, "/nowhere/a.png");
    expect_refused(model, &good, 0, NULL, QVL_ERROR_ARGUMENT, "no pictures given");
    options.preset = (qvl_preset)7;
    expect_refused(model, &good, 1, &options, QVL_ERROR_ARGUMENT, "preset 7 is unknown");
    options = defaults();
    options.width = options.height = 100;
    expect_refused(model, &good, 1, &options, QVL_ERROR_ARGUMENT, "both must be multiples of 32");
    options = defaults();
    options.min_pixels = 20000000;
    expect_refused(model, &good, 1, &options, QVL_ERROR_ARGUMENT, "20000000");
    options = defaults();
    options.size = 1;
    expect_refused(model, &good, 1, &options, QVL_ERROR_ARGUMENT, "init function");
    good.limits.max_pixels = -1;
    expect_refused(model, &good, 1, NULL, QVL_ERROR_ARGUMENT, "max_pixels is -1");
    good.limits = (qvl_limits){0, 100};
    expect_refused(model, &good, 1, NULL, QVL_ERROR_ARGUMENT, "maximum of 100 pixels");
    good.limits = (qvl_limits){0};
    free_picture(&good);
    free_picture(&strip);
    qvl_model_close(&model);
}

/* What could only be refused while working is refused here; nothing of the size is allocated. */
static void sizes_beyond_all_memory(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    qvl_preprocess_options options = defaults();
    const qvl_input header = make_png_header(40000, 40000);
    qvl_plan p;
    qvl_error error = {0};
    assert_int_equal(qvl_plan_inputs(model, &header, 1, NULL, &p, &error), QVL_ERROR_LIMIT);
    assert_says(error.message, "178956970");
    const qvl_input small = make_png_header(64, 64);
    options.width = options.height = 1000000;
    options.width -= options.width % 32;
    options.height -= options.height % 32;
    assert_int_equal(qvl_plan_inputs(model, &small, 1, &options, &p, &error), QVL_ERROR_LIMIT);
    assert_says(error.message, "more than 2147483647 patch rows");
    options.width = options.height = 32 * 20000; /* 1.6e9 rows, 25 TB of features and scratch: planned, not done */
    p = plan(model, &small, 1, &options);
    assert_true(p.memory.peak > (int64_t)10000 << 30);
    qvl_plan_free(&p);
    const qvl_input two[2] = {small, small};
    assert_int_equal(qvl_plan_inputs(model, two, 2, &options, &p, &error), QVL_ERROR_LIMIT);
    qvl_model_close(&model);
}

/* A header is enough: the rest of the file may be missing. */
static void headers_are_enough(void **state) {
    (void)state;
    qvl_model *model = open_folder(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG);
    const qvl_input header = make_png_header(12000, 12000);
    qvl_plan p = plan(model, &header, 1, NULL);
    assert_string_equal(p.items[0].item.stored.format, "PNG");
    assert_int_equal(p.items[0].item.width, 4096);
    assert_int_equal(p.tokens, 16384);
    assert_true(p.memory.pictures >= 3LL * 12000 * 12000);
    qvl_plan_free(&p);
    qvl_plan_free(&p);
    qvl_plan_free(NULL);
    qvl_patches patches;
    qvl_error error = {0};
    assert_int_equal(qvl_preprocess_inputs(model, &header, 1, NULL, &patches, &error), QVL_ERROR_FORMAT);
    qvl_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_a_large_tower),
        cmocka_unit_test(work_of_videos_and_lists),
        cmocka_unit_test(memory_by_hand),
        cmocka_unit_test(memory_of_weights),
        cmocka_unit_test(plan_equals_encode),
        cmocka_unit_test(limits_of_one_picture),
        cmocka_unit_test(refusals_are_those_of_encoding),
        cmocka_unit_test(sizes_beyond_all_memory),
        cmocka_unit_test(headers_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
