/* Frames chosen, sizes and labels of clips against transformers 5.23.0 (video_frames.json, tools/oracle/video_fixtures.py),
 * against the vectors of preprocess.md, and under the rules of the original system (preset mlx). */
#include "preprocess/frames.h"
#include "preprocess/geometry.h"
#include "preprocess/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool flag(const cJSON *object, const char *key) {
    return cJSON_IsTrue(member(object, key));
}

static double number(const cJSON *object, const char *key) {
    return member(object, key)->valuedouble;
}

/* The settings of a case as a folder has them. */
static qvl_config folder_of(const cJSON *entry) {
    qvl_config config = test_config();
    config.vision.temporal_patch_size = (int32_t)integer(entry, "temporal");
    config.video.processor.limits = (qvl_limits){integer(entry, "min_pixels"), integer(entry, "max_pixels")};
    config.video.sample = true;
    config.video.fps = number(entry, "fps");
    config.video.num_frames = integer(entry, "num_frames");
    config.video.min_frames = integer(entry, "min_frames");
    config.video.max_frames = integer(entry, "max_frames");
    config.video.frame_cap = flag(entry, "cap");
    config.video.max_frame_tokens = integer(entry, "max_frame_tokens");
    return config;
}

/* The same as a caller gives them, over a folder that says something else. false: fps null is a folder's only. */
static bool options_of(const cJSON *entry, qvl_config *config, qvl_preprocess_options *options) {
    qvl_clip_options *o = &options->clip;
    o->fps = config->video.fps;
    o->num_frames = config->video.num_frames;
    if (!o->num_frames) {
        o->min_frames = config->video.min_frames;
        o->max_frames = config->video.max_frames;
    }
    o->min_pixels = config->video.processor.limits.min_pixels;
    o->max_pixels = config->video.processor.limits.max_pixels;
    o->frame_cap = flag(entry, "cap") ? QVL_FRAME_CAP_ON : QVL_FRAME_CAP_OFF;
    o->max_frame_tokens = config->video.max_frame_tokens;
    config->video = (qvl_video_config){.processor = {.limits = {123456, 234567}},
                                       .sample = true,
                                       .fps = 7,
                                       .min_frames = 17,
                                       .max_frames = 18,
                                       .frame_cap = !flag(entry, "cap"),
                                       .max_frame_tokens = 19};
    return o->fps != 0 || o->num_frames;
}

static void assert_labels(const cJSON *entry, const qvl_picks *picks) {
    size_t temporal = (size_t)integer(entry, "temporal"), groups = (picks->count + temporal - 1) / temporal,
           used = 0;
    double *labels = calloc(groups, sizeof *labels);
    char *text = calloc(groups + 1, 32);
    assert_non_null(labels);
    assert_non_null(text);
    qvl_group_seconds(picks->seconds, picks->count, temporal, labels);
    for (size_t g = 0; g < groups; g++)
        used += (size_t)snprintf(text + used, 32, "%s%.1f", g ? " " : "", labels[g]);
    assert_sha256(text, used, string(entry, "labels_sha256"), text);
    free(text);
    free(labels);
}

static void check_case(const cJSON *entry, const qvl_config *config, qvl_preprocess_options *options) {
    const qvl_input input = {0};
    qvl_clip_options own;
    qvl_error error = {0};
    options->clip.single_frame = QVL_SINGLE_FRAME_REFUSE;
    assert_int_equal(qvl_clip_options_take(options, &input, &own, &error), QVL_OK);
    qvl_frame_choice choice = qvl_frame_choice_of(&config->video, options->preset, &own);
    qvl_timeline line = {.count = integer(entry, "frames"), .rate = number(entry, "rate")};
    qvl_picks picks;
    assert_int_equal(qvl_frames_pick(&choice, &line, &picks, &error), QVL_OK);
    assert_int_equal(picks.count, integer(entry, "count"));
    assert_sha256(picks.indices, picks.count * sizeof *picks.indices, string(entry, "indices_sha256"), "indices");
    assert_labels(entry, &picks);

    const cJSON *size = member(entry, "size");
    qvl_clip_shape shape = {(int64_t)picks.count, integer(entry, "width"), integer(entry, "height")};
    int64_t width, height;
    qvl_limits limits;
    qvl_status status = qvl_clip_size(config, options, &own, shape, &width, &height, &limits, &error);
    if (cJSON_IsNull(size)) {
        assert_int_equal(status, QVL_ERROR_LIMIT);
    } else {
        assert_int_equal(status, QVL_OK);
        assert_int_equal(width, integer_at(size, 0));
        assert_int_equal(height, integer_at(size, 1));
    }
    qvl_picks_free(&picks);
}

static void transformers_cases(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_frames.json");
    assert_string_equal(string(member(fixture, "versions"), "transformers"), "5.23.0");
    const cJSON *list = member(fixture, "cases"), *entry;
    int count = 0, by_options = 0;
    cJSON_ArrayForEach(entry, list) {
        qvl_config config = folder_of(entry);
        qvl_preprocess_options options;
        qvl_preprocess_options_init(&options);
        check_case(entry, &config, &options);
        count++;
        qvl_preprocess_options_init(&options);
        if (!options_of(entry, &config, &options)) continue;
        check_case(entry, &config, &options);
        by_options++;
    }
    assert_true(count >= 500 && by_options >= 400);
    cJSON_Delete(fixture);
}

/* preprocess.md's own, measured with 5.17: sizes. */
static void vector_sizes(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_vectors.json");
    const cJSON *entry;
    int sizes = 0;
    cJSON_ArrayForEach(entry, member(fixture, "video_smart_resize")) {
        qvl_config config = test_config();
        qvl_preprocess_options options;
        qvl_preprocess_options_init(&options);
        options.clip.single_frame = QVL_SINGLE_FRAME_REFUSE;
        config.video.processor.limits = (qvl_limits){integer_at(entry, 3), integer_at(entry, 4)};
        const cJSON *out = cJSON_GetArrayItem(entry, 5);
        qvl_clip_shape shape = {integer_at(entry, 0), integer_at(entry, 2), integer_at(entry, 1)};
        qvl_limits limits;
        int64_t width, height;
        qvl_status status = qvl_clip_size(&config, &options, &options.clip, shape, &width, &height, &limits, NULL);
        assert_int_equal(status, cJSON_IsString(out) ? QVL_ERROR_LIMIT : QVL_OK);
        if (!status) {
            assert_int_equal(height, integer_at(out, 0));
            assert_int_equal(width, integer_at(out, 1));
        }
        sizes++;
    }
    assert_true(sizes >= 20);
    cJSON_Delete(fixture);
}

/* The same: indices and stamps. */
static void vector_frames(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_vectors.json");
    const cJSON *entry;
    const qvl_frame_choice choice = {.fps = 2, .min_frames = 4, .max_frames = 768};
    cJSON_ArrayForEach(entry, member(fixture, "sample_frames")) {
        qvl_timeline line = {.count = integer(entry, "total"), .rate = number(entry, "fps")};
        qvl_picks picks;
        assert_int_equal(qvl_frames_pick(&choice, &line, &picks, NULL), QVL_OK);
        assert_int_equal(picks.count, integer(entry, "count"));
        assert_sha256(picks.indices, picks.count * sizeof *picks.indices, string(entry, "indices_sha256_i64"),
                      "vector");
        double labels[400];
        char text[32];
        qvl_group_seconds(picks.seconds, picks.count, 2, labels);
        const cJSON *stamps = member(entry, "stamps_first"), *stamp;
        int g = 0;
        cJSON_ArrayForEach(stamp, stamps) {
            snprintf(text, sizeof text, "%.1f", labels[g++]);
            assert_string_equal(text, cJSON_GetStringValue(stamp));
        }
        snprintf(text, sizeof text, "%.1f", labels[(picks.count + 1) / 2 - 1]);
        assert_string_equal(text, string(entry, "stamps_last"));
        qvl_picks_free(&picks);
    }
    cJSON_Delete(fixture);
}

/* ---- rules that are easy to get wrong */

static qvl_picks pick(qvl_frame_choice choice, qvl_timeline line) {
    qvl_picks picks;
    qvl_error error = {0};
    if (choice.min_frames == 0) choice.min_frames = choice.preset == QVL_PRESET_MLX ? 1 : 4;
    if (choice.max_frames == 0) choice.max_frames = 768;
    assert_int_equal(qvl_frames_pick(&choice, &line, &picks, &error), QVL_OK);
    return picks;
}

static void assert_picks(qvl_picks picks, const int64_t *indices, size_t count) {
    assert_int_equal(picks.count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(picks.indices[i], indices[i]);
    qvl_picks_free(&picks);
}

#define PICKS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void counts_by_rate(void **state) {
    (void)state;
    const qvl_frame_choice two = {.fps = 2};
    assert_picks(pick(two, (qvl_timeline){.count = 100, .rate = 30}), PICKS(0, 20, 40, 59, 79, 99));
    assert_picks(pick(two, (qvl_timeline){.count = 10, .rate = 30}), PICKS(0, 3, 6, 9));
    assert_picks(pick(two, (qvl_timeline){.count = 5, .rate = 25}), PICKS(0, 1, 3, 4));
    assert_picks(pick(two, (qvl_timeline){.count = 1, .rate = 25}), PICKS(0));
    assert_picks(pick(two, (qvl_timeline){.count = 3, .rate = 0.1}), PICKS(0, 1, 2));
    /* The folder says fps null: every frame counts, and a short clip is stretched to the minimum. */
    assert_picks(pick((qvl_frame_choice){0}, (qvl_timeline){.count = 2, .rate = 25}), PICKS(0, 0, 1, 1));
    assert_picks(pick((qvl_frame_choice){.all = true}, (qvl_timeline){.count = 2, .rate = 25}), PICKS(0, 1));
    assert_picks(pick((qvl_frame_choice){.num_frames = 3}, (qvl_timeline){.count = 9, .rate = 9}), PICKS(0, 4, 8));
    qvl_picks most = pick(two, (qvl_timeline){.count = 40000, .rate = 30});
    assert_int_equal(most.count, 768);
    assert_int_equal(most.indices[767], 39999);
    qvl_picks_free(&most);
}

/* Times k / fps; the frame that is shown then, and the label of the time itself. */
static void mlx_times(void **state) {
    (void)state;
    const qvl_frame_choice two = {.preset = QVL_PRESET_MLX, .fps = 2};
    const qvl_timeline thirty = {.count = 100, .rate = 30, .duration = 100 / 30.0};
    qvl_picks picks = pick(two, thirty);
    for (size_t i = 0; i < picks.count; i++) assert_true(picks.seconds[i] == (double)i / 2);
    assert_picks(picks, PICKS(0, 15, 30, 45, 60, 75, 90));
    assert_picks(pick(two, (qvl_timeline){.count = 3, .rate = 30, .duration = 0.1}), PICKS(0));
    const double ntsc = 30000.0 / 1001; /* at half a second frame 15 is still to come: it is shown at 0.5005 */
    assert_picks(pick(two, (qvl_timeline){.count = 40, .rate = ntsc, .duration = 40 / ntsc}), PICKS(0, 14, 29));
    /* A clip of exactly a second has no frame at its end. */
    assert_picks(pick(two, (qvl_timeline){.count = 10, .rate = 10, .duration = 1}), PICKS(0, 5));
    /* Bounds move the times apart or together; the clip is covered all the same. */
    qvl_frame_choice bounded = two;
    bounded.max_frames = 4;
    picks = pick(bounded, thirty);
    assert_true(fabs(picks.fps - 1.2) < 1e-12);
    assert_picks(picks, PICKS(0, 25, 50, 75));
    bounded = (qvl_frame_choice){.preset = QVL_PRESET_MLX, .num_frames = 2};
    assert_picks(pick(bounded, thirty), PICKS(0, 50));
}

static int64_t limited_side(qvl_preset preset, qvl_limits of_folder, int64_t frames, int64_t width, int64_t height,
                            int64_t *other) {
    qvl_config config = test_config();
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.preset = preset;
    qvl_limits limits;
    int64_t out_width = 0;
    config.video.processor.limits = of_folder;
    qvl_clip_shape shape = {frames, width, height};
    if (qvl_clip_size(&config, &options, &options.clip, shape, &out_width, other, &limits, NULL)) return -1;
    return out_width;
}

static int64_t clip_side(qvl_preset preset, int64_t frames, int64_t width, int64_t height, int64_t *other) {
    return limited_side(preset, (qvl_limits){4096, 25165824}, frames, width, height, other);
}

static void mlx_sizes(void **state) {
    (void)state;
    int64_t height;
    /* Frames are counted up to whole groups, where transformers rounds half to even. */
    const qvl_limits small = {131072, 786432};
    assert_int_equal(limited_side(QVL_PRESET_TRANSFORMERS, small, 5, 160, 160, &height), 192);
    assert_int_equal(limited_side(QVL_PRESET_MLX, small, 5, 160, 160, &height), 160);
    assert_int_equal(clip_side(QVL_PRESET_TRANSFORMERS, 4, 31, 64, &height), 32);
    assert_int_equal(clip_side(QVL_PRESET_MLX, 4, 31, 64, &height), -1);
    assert_int_equal(clip_side(QVL_PRESET_MLX, 4, 32, 64, &height), 32);
    assert_int_equal(clip_side(QVL_PRESET_MLX, 1, 64, 64, &height), 64);
}

static void single_frames(void **state) {
    (void)state;
    int64_t one, two;
    /* One frame is sized as the two that it becomes. */
    assert_int_equal(clip_side(QVL_PRESET_TRANSFORMERS, 1, 5000, 3000, &one),
                     clip_side(QVL_PRESET_TRANSFORMERS, 2, 5000, 3000, &two));
    assert_int_equal(one, two);
    qvl_config config = test_config();
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    config.video.processor.limits = (qvl_limits){4096, 25165824};
    options.clip.single_frame = QVL_SINGLE_FRAME_REFUSE;
    qvl_limits limits;
    qvl_error error;
    for (int exact = 0; exact < 2; exact++) {
        options.width = options.height = exact ? 64 : 0;
        assert_int_equal(qvl_clip_size(&config, &options, &options.clip, (qvl_clip_shape){1, 64, 64}, &one, &two,
                                       &limits, &error),
                         QVL_ERROR_LIMIT);
        assert_non_null(strstr(error.message, "has 1 frame;"));
    }
}

static void refuse(qvl_clip_options clip, qvl_input input, const char *part) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.clip = clip;
    qvl_clip_options own;
    qvl_error error = {0};
    assert_int_equal(qvl_clip_options_take(&options, &input, &own, &error), QVL_ERROR_ARGUMENT);
    if (!strstr(error.message, part)) fail_msg("\"%s\" does not say \"%s\"", error.message, part);
}

static void impossible_options(void **state) {
    (void)state;
    const qvl_input plain = {0};
    refuse((qvl_clip_options){.fps = 2, .num_frames = 8}, plain, "fps (2) and num_frames (8) exclude each other");
    refuse((qvl_clip_options){0}, (qvl_input){.fps = 2, .num_frames = 8}, "exclude each other");
    refuse((qvl_clip_options){.fps = -1}, plain, "fps is -1");
    refuse((qvl_clip_options){.fps = NAN}, plain, "fps is nan");
    refuse((qvl_clip_options){.num_frames = -1}, plain, "num_frames is -1");
    refuse((qvl_clip_options){.min_frames = 5, .max_frames = 4}, plain, "min_frames is 5, above max_frames, 4");
    refuse((qvl_clip_options){.num_frames = 5, .max_frames = 4}, plain, "leaves nothing for min_frames");
    refuse((qvl_clip_options){.assumed_rate = 1e9}, plain, "assumed_rate is 1e+09");
    refuse((qvl_clip_options){.times = (qvl_clip_times)7}, plain, "times 7");
    /* What an input says comes first, whole. */
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.clip.fps = 3;
    options.clip.max_frames = 9;
    qvl_clip_options own;
    assert_int_equal(qvl_clip_options_take(&options, &(qvl_input){.num_frames = 5}, &own, NULL), QVL_OK);
    assert_true(own.fps == 0 && own.num_frames == 5 && own.max_frames == 0);
}

static void frames_without_end(void **state) {
    (void)state;
    qvl_config config = test_config();
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    config.video.processor.limits = (qvl_limits){4096, 25165824};
    qvl_limits limits;
    int64_t width, height;
    const qvl_clip_shape huge = {QVL_MAX_FRAMES, QVL_MAX_SIDE, QVL_MAX_SIDE};
    assert_int_equal(qvl_clip_size(&config, &options, &options.clip, huge, &width, &height, &limits, NULL),
                     QVL_ERROR_LIMIT);
    options.clip.frame_cap = QVL_FRAME_CAP_ON;
    options.clip.max_frame_tokens = INT64_MAX / 2;
    assert_int_equal(qvl_clip_size(&config, &options, &options.clip, huge, &width, &height, &limits, NULL),
                     QVL_ERROR_ARGUMENT);
    qvl_picks picks;
    const qvl_frame_choice choice = {.fps = 1e6, .min_frames = 1, .max_frames = QVL_MAX_FRAMES};
    qvl_timeline line = {.count = QVL_MAX_FRAMES + 1, .rate = 1e-6};
    assert_int_equal(qvl_frames_pick(&choice, &line, &picks, NULL), QVL_ERROR_LIMIT);
    line.count = 3;
    assert_int_equal(qvl_frames_pick(&choice, &line, &picks, NULL), QVL_OK);
    assert_int_equal(picks.count, 3);
    qvl_picks_free(&picks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformers_cases), cmocka_unit_test(vector_sizes),
        cmocka_unit_test(vector_frames),      cmocka_unit_test(counts_by_rate),
        cmocka_unit_test(mlx_times),          cmocka_unit_test(mlx_sizes),
        cmocka_unit_test(single_frames),      cmocka_unit_test(impossible_options),
        cmocka_unit_test(frames_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
