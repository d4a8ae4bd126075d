/* What users of other tools ran into with videos (section E of the reports: report_N here is report N there), and clips
 * whose frames carry their number: the labels say what is seen. The size of a clip that takes frames x pixels beyond
 * memory comes from frames that are planned, not read. */
#include "base/memory.h"
#include "media/clips.h"
#include "preprocess/clip.h"
#include "qvl.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static qvl_model *model;

static qvl_preprocess_options defaults(void) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    return options;
}

static qvl_input input_of(const bytes *clip) {
    return (qvl_input){.kind = QVL_INPUT_BYTES, .name = "clip", .bytes = clip->data, .byte_count = clip->count};
}

/* A list of frames of one size that are never read: planning looks at their size only. */
static qvl_plan plan_frames(size_t count, int64_t width, int64_t height, double rate) {
    static const uint8_t pixel;
    qvl_input *frames = calloc(count, sizeof *frames);
    assert_non_null(frames);
    for (size_t i = 0; i < count; i++)
        frames[i] = (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = &pixel, .width = width, .height = height};
    const qvl_input list = {
        .kind = QVL_INPUT_FRAMES, .name = "list", .frames = frames, .frame_count = count, .rate = rate};
    qvl_plan planned;
    qvl_error error = {0};
    if (qvl_plan_inputs(model, &list, 1, NULL, &planned, &error)) fail_msg("%s", error.message);
    free(frames);
    return planned;
}

/* Every frame of every group shows the number that the item says, and every label is the mean of its frames' times.
 * times: of all frames of the clip, in seconds; NULL: number / rate. Returns the groups. */
static int64_t check_numbers(const bytes *clip, const qvl_preprocess_options *options, const double *times) {
    qvl_input input = input_of(clip);
    qvl_reader *reader;
    qvl_error error = {0};
    if (qvl_reader_open(model, NULL, &input, QVL_READ_ANY, options, NULL, &reader, &error))
        fail_msg("%s", error.message);
    const qvl_item *item = qvl_reader_item(reader);
    const qvl_clip_info *info = item->clip;
    assert_non_null(info);
    assert_int_equal(item->grid.t, info->group_count);
    assert_int_equal(info->group_count, (info->frame_count + 1) / 2);
    qvl_group group;
    for (int64_t g = 0; g < info->group_count; g++) {
        assert_int_equal(qvl_reader_next(reader, &group, &error), QVL_OK);
        double sum = 0;
        for (int64_t k = 0; k < 2; k++) {
            int64_t at = 2 * g + k < info->frame_count ? 2 * g + k : info->frame_count - 1;
            int64_t number = info->indices[at];
            if ((size_t)k < group.frame_count) assert_int_equal(seen_number(&group.frames[k]), number);
            sum += times ? times[number] : (double)number / info->rate;
        }
        assert_true(fabs(group.seconds - sum / 2) < 1e-9);
        assert_true(group.seconds == info->timestamps[g]);
        qvl_group_free(&group);
    }
    int64_t groups = info->group_count;
    qvl_reader_close(&reader);
    return groups;
}

static qvl_item item_of(const bytes *clip, const qvl_preprocess_options *options) {
    const qvl_input input = input_of(clip);
    qvl_plan planned;
    qvl_error error = {0};
    if (qvl_plan_inputs(model, &input, 1, options, &planned, &error)) fail_msg("%s", error.message);
    qvl_item copy;
    assert_int_equal(qvl_item_copy(&planned.items[0].item, &copy, NULL), QVL_OK);
    qvl_plan_free(&planned);
    return copy;
}

static void refuse(const bytes *clip, const qvl_preprocess_options *options, qvl_status status, const char *part) {
    const qvl_input input = input_of(clip);
    qvl_plan planned;
    qvl_error error = {0};
    assert_int_equal(qvl_plan_inputs(model, &input, 1, options, &planned, &error), status);
    if (!strstr(error.message, part)) fail_msg("\"%s\" does not say \"%s\"", error.message, part);
}

/* ---- numbers seen */

/* mlx: the label is of the times k / fps, and what is seen then is the last frame that has begun. */
static void check_mlx(const bytes *clip, const qvl_preprocess_options *options) {
    qvl_input input = input_of(clip);
    qvl_reader *reader;
    qvl_error error = {0};
    if (qvl_reader_open(model, NULL, &input, QVL_READ_ANY, options, NULL, &reader, &error))
        fail_msg("%s", error.message);
    const qvl_clip_info *info = qvl_reader_item(reader)->clip;
    qvl_group group;
    int64_t at = 0;
    for (int64_t g = 0; g < info->group_count; g++) {
        assert_int_equal(qvl_reader_next(reader, &group, &error), QVL_OK);
        for (size_t k = 0; k < group.frame_count; k++, at++) {
            assert_true(info->seconds[at] == (double)at / 2);
            int seen = seen_number(&group.frames[k]);
            assert_true(seen / info->rate <= info->seconds[at] && (seen + 1) / info->rate > info->seconds[at]);
        }
        qvl_group_free(&group);
    }
    assert_int_equal(at, info->frame_count);
    qvl_reader_close(&reader);
}

static void labels_say_what_is_seen(void **state) {
    (void)state;
    static const clip_spec specs[] = {
        {.frames = 60},
        {.frames = 75, .rate = {30000, 1001}, .muxer = "mp4"},
        {.frames = 50, .options = "bf=3", .gop = 40},
        {.frames = 40, .options = "profile=high10", .format = AV_PIX_FMT_YUV420P10},
        {.frames = 30, .width = 66, .height = 50, .rate = {10, 1}},
        {.frames = 33, .encoder = "libvpx", .muxer = "webm", .rate = {15, 1}},
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        bytes clip = make_clip(&specs[i]);
        qvl_preprocess_options options = defaults();
        for (int way = 0; way < 4; way++) {
            options.clip = (qvl_clip_options){0};
            if (way == 1) options.clip.fps = 5;
            if (way == 2) options.clip.num_frames = 7;
            options.preset = way == 3 ? QVL_PRESET_MLX : QVL_PRESET_TRANSFORMERS;
            if (way < 3)
                assert_true(check_numbers(&clip, &options, NULL) >= 2);
            else
                check_mlx(&clip, &options);
        }
        qvl_free(clip.data);
    }
}

/* Frames far apart, then close together: the average rate says nothing about when one is shown. */
static void a_varying_rate_has_true_times(void **state) {
    (void)state;
    static const int64_t thousandths[12] = {0, 1000, 2000, 3000, 4000, 4040, 4080, 4120, 4160, 4200, 4240, 4280};
    const clip_spec spec = {.frames = 12, .times = thousandths};
    bytes clip = make_clip(&spec);
    double times[12];
    for (int i = 0; i < 12; i++) times[i] = (double)thousandths[i] / 1000;
    qvl_preprocess_options options = defaults();
    check_numbers(&clip, &options, times);
    qvl_item item = item_of(&clip, &options);
    assert_true(item.clip->variable_rate);
    qvl_item_clear(&item);
    options.clip.times = QVL_TIMES_RATE; /* as transformers has it */
    check_numbers(&clip, &options, NULL);
    qvl_free(clip.data);
}

/* ---- reports */

/* 1 to 9 frames; the size rule counts them half to even. */
static void report_49(void **state) {
    (void)state;
    for (size_t count = 1; count <= 9; count++) {
        qvl_plan planned = plan_frames(count, 64, 64, 2);
        assert_int_equal(planned.items[0].item.grid.t, (count + 1) / 2);
        qvl_plan_free(&planned);
        const clip_spec spec = {.frames = (int)count};
        bytes clip = make_clip(&spec);
        qvl_preprocess_options options = defaults();
        options.clip.num_frames = (int64_t)count;
        assert_int_equal(check_numbers(&clip, &options, NULL), (count + 1) / 2);
        qvl_free(clip.data);
    }
    qvl_plan five = plan_frames(5, 2240, 2240, 2), six = plan_frames(6, 2240, 2240, 2);
    assert_int_equal(five.items[0].item.width, 2240);
    assert_int_equal(five.tokens, 14700);
    assert_int_equal(six.items[0].item.width, 2048);
    assert_int_equal(six.tokens, 12288);
    qvl_plan_free(&five);
    qvl_plan_free(&six);
}

/* Clips shorter than a step of sampling give the frames they have, never none. */
static void report_50(void **state) {
    (void)state;
    for (int frames = 1; frames <= 4; frames++)
        for (int fps = 1; fps <= 2; fps++) {
            const clip_spec spec = {.frames = frames};
            bytes clip = make_clip(&spec);
            qvl_preprocess_options options = defaults();
            options.clip.fps = fps;
            qvl_item item = item_of(&clip, &options);
            assert_int_equal(item.clip->frame_count, frames);
            assert_int_equal(item.grid.t, (frames + 1) / 2);
            qvl_item_clear(&item);
            options.clip.single_frame = QVL_SINGLE_FRAME_REFUSE;
            if (frames == 1) refuse(&clip, &options, QVL_ERROR_LIMIT, "clip: the clip has 1 frame;");
            qvl_free(clip.data);
        }
    const clip_spec tenth = {.frames = 3, .rate = {30, 1}}, nine_tenths = {.frames = 27, .rate = {30, 1}};
    const clip_spec *const shorts[] = {&tenth, &nine_tenths};
    for (int i = 0; i < 2; i++)
        for (int preset = 0; preset < 3; preset++) {
            bytes clip = make_clip(shorts[i]);
            qvl_preprocess_options options = defaults();
            options.preset = (qvl_preset)preset;
            options.clip.fps = 1;
            qvl_item item = item_of(&clip, &options);
            bool mlx = options.preset == QVL_PRESET_MLX; /* which takes what is shown at 0, and no more */
            assert_int_equal(item.clip->frame_count, mlx ? 1 : i ? 4 : 3);
            qvl_item_clear(&item);
            qvl_free(clip.data);
        }
}

static void assert_labels(const qvl_clip_info *clip, const char *expected) {
    char text[256];
    size_t used = 0;
    text[0] = 0;
    for (int64_t g = 0; g < clip->group_count; g++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.1f", g ? " " : "", clip->timestamps[g]);
    assert_string_equal(text, expected);
}

/* Eight frames that were picked from 380 at 30 a second. */
static void report_52(void **state) {
    (void)state;
    const int64_t picks[8] = {0, 54, 108, 162, 217, 271, 325, 379};
    uint8_t pixels[64 * 64 * 3] = {0};
    qvl_input frames[8], list = {.kind = QVL_INPUT_FRAMES, .name = "list", .frames = frames, .frame_count = 8};
    for (int i = 0; i < 8; i++)
        frames[i] = (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = 64, .height = 64};
    list.indices = picks;
    list.rate = 30;
    qvl_plan planned;
    qvl_error error = {0};
    assert_int_equal(qvl_plan_inputs(model, &list, 1, NULL, &planned, &error), QVL_OK);
    assert_labels(planned.items[0].item.clip, "0.9 4.5 8.1 11.7");
    qvl_plan_free(&planned);
    double seconds[8];
    for (int i = 0; i < 8; i++) seconds[i] = (double)picks[i] / 30;
    list.indices = NULL;
    list.rate = 0;
    list.seconds = seconds;
    assert_int_equal(qvl_plan_inputs(model, &list, 1, NULL, &planned, &error), QVL_OK);
    assert_labels(planned.items[0].item.clip, "0.9 4.5 8.1 11.7");
    qvl_plan_free(&planned);
    list.seconds = NULL;
    assert_int_equal(qvl_plan_inputs(model, &list, 1, NULL, &planned, &error), QVL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "list: its frame rate is unknown"));
}

/* Frame 300 of a clip at 30 a second is at 10 s, whatever rate it is sampled at. */
static void report_53(void **state) {
    (void)state;
    const clip_spec spec = {.frames = 301, .rate = {30, 1}, .gop = 60};
    bytes clip = make_clip(&spec);
    const double rates[] = {0.5, 1, 2, 7};
    for (int i = 0; i < 4; i++) {
        qvl_preprocess_options options = defaults();
        options.clip.fps = rates[i];
        check_numbers(&clip, &options, NULL);
        qvl_item item = item_of(&clip, &options);
        int64_t last = item.clip->frame_count - 1;
        assert_int_equal(item.clip->indices[last], 300);
        assert_true(item.clip->seconds[last] == 10);
        qvl_item_clear(&item);
    }
    qvl_free(clip.data);
}

/* Labels are those of the frames really used, in every cell of rate, count, least and most. */
static void report_55(void **state) {
    (void)state;
    const clip_spec spec = {.frames = 120, .rate = {24, 1}, .still = true};
    bytes clip = make_clip(&spec);
    const double rates[] = {0, 0.5, 4};
    const int64_t counts[] = {0, 5, 32}, bounds[] = {0, 6, 20};
    for (int f = 0; f < 3; f++)
        for (int n = 0; n < 3; n++)
            for (int low = 0; low < 3; low++)
                for (int high = 0; high < 3; high++) {
                    qvl_preprocess_options options = defaults();
                    qvl_clip_options *o = &options.clip;
                    o->fps = rates[f];
                    o->num_frames = counts[n];
                    o->min_frames = bounds[low];
                    o->max_frames = bounds[high];
                    if ((f && n) || (n && (low || high)) || (low && high && low > high)) {
                        refuse(&clip, &options, QVL_ERROR_ARGUMENT, "_frames");
                        continue;
                    }
                    qvl_item item = item_of(&clip, &options);
                    const qvl_clip_info *c = item.clip;
                    assert_int_equal(c->group_count, (c->frame_count + 1) / 2);
                    if (n) assert_int_equal(c->frame_count, counts[n]);
                    if (low) assert_true(c->frame_count >= bounds[low]);
                    if (high) assert_true(c->frame_count <= bounds[high]);
                    for (int64_t g = 0; g < c->group_count; g++) {
                        int64_t last = 2 * g + 1 < c->frame_count ? 2 * g + 1 : 2 * g;
                        double mean = ((double)c->indices[2 * g] / 24 + (double)c->indices[last] / 24) / 2;
                        assert_true(c->timestamps[g] == mean);
                    }
                    qvl_item_clear(&item);
                }
    qvl_free(clip.data);
}

/* A minute at 0.5, 1 and 2 frames a second: 30, 60 and 120 frames. */
static void report_56(void **state) {
    (void)state;
    const clip_spec spec = {.frames = 60 * 24, .rate = {24, 1}, .still = true, .gop = 240};
    bytes clip = make_clip(&spec);
    int64_t before = 0;
    const double rates[] = {0.5, 1, 2};
    for (int i = 0; i < 3; i++) {
        qvl_preprocess_options options = defaults();
        options.clip.fps = rates[i];
        qvl_item item = item_of(&clip, &options);
        assert_int_equal(item.clip->frame_count, 30 << i);
        assert_int_equal(item.tokens, (15 << i) * item.grid.h * item.grid.w / 4);
        assert_true(item.tokens > before);
        before = item.tokens;
        qvl_item_clear(&item);
    }
    qvl_free(clip.data);
}

/* 60 frames of 720 x 1280: 30 groups of 52 x 30 patches, 11,700 tokens. */
static void report_59(void **state) {
    (void)state;
    qvl_plan planned = plan_frames(60, 720, 1280, 1);
    const qvl_item *item = &planned.items[0].item;
    assert_int_equal(item->grid.t, 30);
    assert_int_equal(item->grid.h, 52);
    assert_int_equal(item->grid.w, 30);
    assert_int_equal(item->tokens, 11700);
    assert_int_equal(item->tokens, item->clip->group_count * (item->grid.h * item->grid.w / 4));
    qvl_plan_free(&planned);
}

/* The display matrix turns frames and grids, and is reported. */
static void report_61(void **state) {
    (void)state;
    static const int32_t one = 1 << 16, w = 1 << 30;
    const int32_t matrices[4][9] = {{one, 0, 0, 0, one, 0, 0, 0, w},
                                    {0, one, 0, -one, 0, 0, 0, 0, w},
                                    {-one, 0, 0, 0, -one, 0, 0, 0, w},
                                    {0, -one, 0, one, 0, 0, 0, 0, w}};
    for (int i = 0; i < 4; i++) {
        const clip_spec spec = {.frames = 8, .width = 96, .height = 64, .muxer = "mp4", .matrix = matrices[i]};
        bytes clip = make_clip(&spec);
        qvl_preprocess_options options = defaults();
        qvl_item item = item_of(&clip, &options);
        bool sideways = i % 2 == 1;
        assert_int_equal(item.source_width, sideways ? 64 : 96);
        assert_int_equal(item.grid.w, sideways ? 4 : 6);
        assert_int_equal(item.grid.h, sideways ? 6 : 4);
        assert_int_equal(item.stored.width, 96);
        assert_int_equal(item.stored.oriented, i != 0);
        qvl_item_clear(&item);
        options.media.orientation = QVL_ORIENTATION_IGNORE;
        item = item_of(&clip, &options);
        assert_int_equal(item.source_width, 96);
        assert_false(item.stored.oriented);
        qvl_item_clear(&item);
        qvl_free(clip.data);
    }
}

/* ---- the whole way */

/* A clip and a picture in one call: the same bits as each alone. */
static void clips_are_encoded(void **state) {
    (void)state;
    qvl_model *whole;
    qvl_session *session;
    qvl_error error = {0};
    assert_int_equal(qvl_model_open(QVL_RANDOM_MODEL, NULL, &whole, &error), QVL_OK);
    assert_int_equal(qvl_session_open(whole, &session, &error), QVL_OK);
    const clip_spec spec = {.frames = 30};
    bytes clip = make_clip(&spec);
    uint8_t *pixels = calloc(64 * 96, 3);
    assert_non_null(pixels);
    const qvl_input inputs[2] = {input_of(&clip),
                                 {.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = 96, .height = 64}};
    qvl_features both, alone;
    assert_int_equal(qvl_encode(session, inputs, 2, NULL, NULL, &both, &error), QVL_OK);
    assert_int_equal(both.item_count, 2);
    assert_non_null(both.items[0].clip);
    assert_null(both.items[1].clip);
    assert_true(both.items[0].clip->timestamps[0] > 0);
    size_t row = (size_t)both.width * qvl_dtype_bits(both.dtype) / 8, at = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qvl_encode(session, &inputs[i], 1, NULL, NULL, &alone, &error), QVL_OK);
        assert_memory_equal((const char *)both.embeds + at * row, alone.embeds, (size_t)alone.tokens * row);
        at += (size_t)alone.tokens;
        qvl_features_free(&alone);
    }
    /* All groups of a clip in one run of the tower give the same bits again. */
    qvl_patches patches;
    assert_int_equal(qvl_preprocess_inputs(whole, inputs, 2, NULL, &patches, &error), QVL_OK);
    assert_int_equal(qvl_vision_encode(session, &patches, NULL, &alone, &error), QVL_OK);
    assert_int_equal(alone.tokens, both.tokens);
    assert_memory_equal(alone.embeds, both.embeds, (size_t)both.tokens * row);
    qvl_patches_free(&patches); /* the features' items stay whole */
    assert_int_equal(alone.items[0].clip->group_count, alone.items[0].grid.t);
    qvl_features_free(&alone);
    qvl_features_free(&both);
    free(pixels);
    qvl_free(clip.data);
    qvl_session_close(&session);
    qvl_model_close(&whole);
}

static bool answer(int64_t done, int64_t total, void *user) {
    (void)done, (void)total;
    return *(bool *)user;
}

/* A clip that must be decoded to know its frames, with settings that are refused once they are known: who gives up
 * before hears nothing of those. */
static void clips_are_called_off_while_they_are_opened(void **state) {
    (void)state;
    qvl_model *whole;
    qvl_session *session;
    qvl_prompter *prompter;
    qvl_error error = {0};
    assert_int_equal(qvl_model_open(QVL_RANDOM_MODEL, NULL, &whole, &error), QVL_OK);
    assert_int_equal(qvl_session_open(whole, &session, &error), QVL_OK);
    assert_int_equal(qvl_prompter_open(whole, NULL, &prompter, &error), QVL_OK);
    const clip_spec spec = {.muxer = "avi", .encoder = "mpeg4", .options = "bf=2", .frames = 60};
    bytes clip = make_clip(&spec);
    const qvl_input input = input_of(&clip);
    const qvl_medium medium = {.kind = QVL_MEDIUM_VIDEO, .name = "clip", .input = &input};
    static const char json[] = "[{\"role\":\"user\",\"content\":[{\"type\":\"video\"}]}]";
    const qvl_chat chat = {
        .json = json, .byte_count = sizeof json - 1, .name = "chat", .media = &medium, .media_count = 1};
    qvl_encode_options encode;
    qvl_prompt_options options;
    qvl_encode_options_init(&encode);
    qvl_prompt_options_init(&options);
    options.preprocess.clip.fps = 2;
    options.preprocess.clip.num_frames = 4;
    for (int patient = 0; patient < 2; patient++) {
        bool yes = patient;
        qvl_status wanted = patient ? QVL_ERROR_ARGUMENT : QVL_ERROR_CANCELLED;
        qvl_features features;
        qvl_prompt prompt;
        encode.progress = options.progress = answer;
        encode.progress_user = options.progress_user = &yes;
        assert_int_equal(qvl_encode(session, &input, 1, &options.preprocess, &encode, &features, &error), wanted);
        assert_int_equal(qvl_prompt_plan(prompter, &chat, &options, &prompt, &error), wanted);
        assert_int_equal(qvl_prompt_build(session, prompter, &chat, &options, &prompt, &error), wanted);
    }
    qvl_free(clip.data);
    qvl_prompter_close(&prompter);
    qvl_session_close(&session);
    qvl_model_close(&whole);
}

int main(void) {
    const qvl_model_options options = {
        .size = sizeof options, .level = QVL_OPEN_CONFIG, .cpu_mask = QVL_CPU_ALL, .dtype = QVL_BF16};
    if (qvl_model_open(QVL_RANDOM_MODEL, &options, &model, NULL)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_say_what_is_seen),
        cmocka_unit_test(a_varying_rate_has_true_times),
        cmocka_unit_test(report_49),
        cmocka_unit_test(report_50),
        cmocka_unit_test(report_52),
        cmocka_unit_test(report_53),
        cmocka_unit_test(report_55),
        cmocka_unit_test(report_56),
        cmocka_unit_test(report_59),
        cmocka_unit_test(report_61),
        cmocka_unit_test(clips_are_encoded),
        cmocka_unit_test(clips_are_called_off_while_they_are_opened),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    qvl_model_close(&model);
    return failed;
}
