/* pixel_values_videos of clips against transformers 5.23.0 fed the same frames (video_values.json,
 * tools/oracle/video_fixtures.py), to the last bit; group by group the same as whole; what lists of frames may be. */
#include "base/memory.h"
#include "preprocess/clip.h"
#include "preprocess/frames.h"
#include "preprocess/patches.h"
#include "preprocess/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double number(const cJSON *object, const char *key) {
    return member(object, key)->valuedouble;
}

/* A model as far as preprocessing looks at it. */
static qvl_model model_of(const cJSON *entry) {
    qvl_model model = {.config = test_config()};
    qvl_video_config *video = &model.config.video;
    model.config.vision.temporal_patch_size = (int32_t)integer(entry, "temporal");
    video->processor = model.config.processor;
    video->processor.limits = (qvl_limits){integer(entry, "min_pixels"), integer(entry, "max_pixels")};
    *video = (qvl_video_config){.processor = video->processor,
                                .sample = true,
                                .fps = number(entry, "fps"),
                                .num_frames = integer(entry, "num_frames"),
                                .min_frames = 4,
                                .max_frames = 768,
                                .max_frame_tokens = 768};
    model.config.processor.mean[0] = 7; /* of pictures: not to be used */
    return model;
}

/* The frames that the reference took. */
typedef struct list {
    qvl_image images[64];
    qvl_input frames[64], input;
    int64_t indices[64];
} list;

static void make_list(const cJSON *entry, list *l) {
    const cJSON *indices = member(entry, "indices");
    int count = cJSON_GetArraySize(indices);
    assert_true(count >= 1 && count <= 64);
    for (int i = 0; i < count; i++) {
        l->indices[i] = integer_at(indices, i);
        l->images[i] = make_picture(string(entry, "kind"), integer(entry, "width"), integer(entry, "height"),
                                    100 + l->indices[i]);
        l->frames[i] = (qvl_input){.kind = QVL_INPUT_RGB8,
                                   .bytes = l->images[i].pixels,
                                   .width = l->images[i].width,
                                   .height = l->images[i].height};
    }
    l->input = (qvl_input){.kind = QVL_INPUT_FRAMES,
                           .name = "frames",
                           .frames = l->frames,
                           .frame_count = (size_t)count,
                           .indices = l->indices,
                           .rate = number(entry, "rate")};
}

static void free_list(list *l) {
    for (size_t i = 0; i < l->input.frame_count; i++) qvl_image_free(&l->images[i]);
}

static void check_choice(const cJSON *entry, const qvl_model *model) {
    if (number(entry, "fps") == 0 && integer(entry, "num_frames") == 0) return; /* the reference took all */
    qvl_frame_choice choice =
        qvl_frame_choice_of(&model->config.video, QVL_PRESET_TRANSFORMERS, &(qvl_clip_options){0});
    qvl_timeline line = {.count = integer(entry, "frames"), .rate = number(entry, "rate")};
    qvl_picks picks;
    assert_int_equal(qvl_frames_pick(&choice, &line, &picks, NULL), QVL_OK);
    assert_int_equal(picks.count, cJSON_GetArraySize(member(entry, "indices")));
    for (size_t i = 0; i < picks.count; i++)
        assert_int_equal(picks.indices[i], integer_at(member(entry, "indices"), (int)i));
    qvl_picks_free(&picks);
}

static void transformers_values(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_values.json");
    const cJSON *entry;
    int count = 0;
    cJSON_ArrayForEach(entry, member(fixture, "cases")) {
        qvl_model model = model_of(entry);
        list l;
        qvl_patches patches;
        qvl_error error = {0};
        check_choice(entry, &model);
        make_list(entry, &l);
        for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_TRANSFORMERS_PIL; preset++) {
            qvl_preprocess_options options;
            qvl_preprocess_options_init(&options);
            options.preset = (qvl_preset)preset; /* videos have no other path there */
            if (qvl_preprocess_inputs(&model, &l.input, 1, &options, &patches, &error))
                fail_msg("%s", error.message);
            const cJSON *grid = member(entry, "grid");
            assert_int_equal(patches.items[0].grid.t, integer_at(grid, 0));
            assert_int_equal(patches.items[0].grid.h, integer_at(grid, 1));
            assert_int_equal(patches.items[0].grid.w, integer_at(grid, 2));
            assert_int_equal(patches.rows, integer_at(member(entry, "shape"), 0));
            assert_int_equal(patches.cols, integer_at(member(entry, "shape"), 1));
            assert_sha256(patches.values, (size_t)(patches.rows * patches.cols) * sizeof(float),
                          string(entry, "sha256"), qvl_preset_name(options.preset));
            qvl_patches_free(&patches);
        }
        free_list(&l);
        count++;
    }
    assert_true(count >= 20);
    cJSON_Delete(fixture);
}

/* preprocess.md's clip: frame k is the formula's picture with k added. */
static void vector_values(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_vectors.json");
    const cJSON *vector = member(fixture, "video_pixel_values");
    qvl_model model = {.config = test_config()};
    model.config.video = (qvl_video_config){.processor = model.config.processor, .sample = true};
    model.config.video.processor.limits = (qvl_limits){4096, 25165824};
    qvl_image images[5];
    qvl_input frames[5];
    for (int k = 0; k < 5; k++) {
        images[k] = make_picture("formula", 150, 100, 0);
        for (int i = 0; i < 150 * 100 * 3; i++) images[k].pixels[i] = (uint8_t)(images[k].pixels[i] + k);
        frames[k] = (qvl_input){.kind = QVL_INPUT_RGB8, .bytes = images[k].pixels, .width = 150, .height = 100};
    }
    qvl_input input = {.kind = QVL_INPUT_FRAMES, .frames = frames, .frame_count = 5, .rate = 24};
    qvl_patches patches;
    assert_int_equal(qvl_preprocess_inputs(&model, &input, 1, NULL, &patches, NULL), QVL_OK);
    assert_sha256(patches.values, (size_t)(patches.rows * patches.cols) * sizeof(float), string(vector, "sha256"),
                  "vector");
    /* Frames without metadata, at the 24 a second that transformers assumes. */
    const double stamps[3] = {0.5 / 24, 2.5 / 24, 4 / 24.0};
    for (int g = 0; g < 3; g++) {
        double off = patches.items[0].clip->timestamps[g] - stamps[g];
        assert_true(off < 1e-12 && off > -1e-12);
    }
    qvl_patches_free(&patches);
    for (int k = 0; k < 5; k++) qvl_image_free(&images[k]);
    cJSON_Delete(fixture);
}

/* What a reader hands out group by group is what the whole call makes; pictures are clips of one group. */
static void groups_one_by_one(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_values.json");
    const cJSON *entry = cJSON_GetArrayItem(member(fixture, "cases"), 9); /* nine frames */
    qvl_model model = model_of(entry);
    list l;
    make_list(entry, &l);
    qvl_input inputs[2] = {l.input, l.frames[0]};
    model.config.processor.mean[0] = 0.5f;
    qvl_patches whole;
    assert_int_equal(qvl_preprocess_inputs(&model, inputs, 2, NULL, &whole, NULL), QVL_OK);
    const float *rows = whole.values;
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    for (int i = 0; i < 2; i++) {
        qvl_reader *reader;
        qvl_group group;
        assert_int_equal(qvl_reader_open(&model, NULL, &inputs[i], QVL_READ_ANY, &options, NULL, &reader, NULL),
                         QVL_OK);
        const qvl_item *item = qvl_reader_item(reader);
        assert_true((item->clip != NULL) == (i == 0));
        int64_t count = item->grid.h * item->grid.w, groups = item->grid.t;
        assert_int_equal(groups, i ? 1 : 5);
        float table[3][256];
        qvl_normalise_table(qvl_item_processor(&model.config, item), options.preset, table);
        float *own = qvl_alloc((size_t)(count * whole.cols), sizeof *own);
        assert_non_null(own);
        for (int64_t g = 0; g < groups; g++) {
            assert_int_equal(qvl_reader_next(reader, &group, NULL), QVL_OK);
            assert_int_equal(group.index, g);
            assert_int_equal(group.frame_count, i || g == 4 ? 1 : 2);
            if (!i) assert_true(group.seconds == item->clip->timestamps[g]);
            qvl_patch_rows(NULL, group.frames, group.frame_count, &model.config.vision, (const float(*)[256])table,
                           own);
            assert_memory_equal(own, rows, (size_t)(count * whole.cols) * sizeof *own);
            rows += count * whole.cols;
            qvl_group_free(&group);
        }
        assert_int_equal(qvl_reader_next(reader, &group, NULL), QVL_OK);
        assert_int_equal(group.frame_count, 0);
        qvl_free(own);
        qvl_reader_close(&reader);
    }
    assert_ptr_equal(rows, whole.values + whole.rows * whole.cols);
    qvl_patches_free(&whole);
    free_list(&l);
    cJSON_Delete(fixture);
}

static void refuse(const qvl_model *model, const qvl_input *input, const qvl_preprocess_options *options,
                   qvl_status status, const char *part) {
    qvl_patches patches;
    qvl_error error = {0};
    assert_int_equal(qvl_preprocess_inputs(model, input, 1, options, &patches, &error), status);
    if (!strstr(error.message, part)) fail_msg("\"%s\" does not say \"%s\"", error.message, part);
    assert_null(patches.values);
}

static void lists_that_are_refused(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("video_values.json");
    const cJSON *entry = cJSON_GetArrayItem(member(fixture, "cases"), 4);
    qvl_model model = model_of(entry);
    list l;
    make_list(entry, &l);
    qvl_input input = l.input;
    input.frame_count = 0;
    refuse(&model, &input, NULL, QVL_ERROR_ARGUMENT, "frames: a list of frames is empty");
    input.frame_count = 4;
    input.rate = 0;
    refuse(&model, &input, NULL, QVL_ERROR_ARGUMENT, "frames: its frame rate is unknown");
    input.rate = -1;
    refuse(&model, &input, NULL, QVL_ERROR_ARGUMENT, "its rate is -1");
    input.rate = 24;
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    options.clip.max_frames = 2;
    refuse(&model, &input, &options, QVL_ERROR_ARGUMENT, "max_frames is 2, but a list of frames is used whole");
    qvl_preprocess_options_init(&options);
    options.clip.min_pixels = 200;
    options.clip.max_pixels = 100;
    refuse(&model, &input, &options, QVL_ERROR_ARGUMENT, "minimum of 200 pixels (option) is above");
    l.frames[3].width = 199;
    refuse(&model, &input, NULL, QVL_ERROR_ARGUMENT, "frame 3 is 199 x 120, but the first one is 200 x 120");
    l.frames[3] = input; /* a list in a list */
    refuse(&model, &input, NULL, QVL_ERROR_ARGUMENT, "a list of frames is a clip, not a picture");
    free_list(&l);
    cJSON_Delete(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformers_values),
        cmocka_unit_test(vector_values),
        cmocka_unit_test(groups_one_by_one),
        cmocka_unit_test(lists_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
