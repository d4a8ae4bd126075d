/* Videos on the command line: what plan, preprocess, encode and prompt say and write about them, and flags that take effect
 * or are refused. */
#include "base/memory.h"
#include "cli/program.h"
#include "media/clips.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define DEMO QVL_SOURCE_DIR "/models/demo"

static char clip_path[4096];

/* 48 frames at 24 a second. */
static void make_clip_file(void) {
    const clip_spec spec = {.frames = 48, .rate = {24, 1}, .muxer = "mp4"};
    bytes clip = make_clip(&spec);
    snprintf(clip_path, sizeof clip_path, "%s", scratch("clip.mp4"));
    write_file(clip_path, clip.data, clip.count);
    qvl_free(clip.data);
}

static const cJSON *first_item(const cJSON *json) {
    return cJSON_GetArrayItem(field(json, "items"), 0);
}

static void plans(void **state) {
    (void)state;
    result r = expect(0, NULL, QVL("plan", clip_path, "-m", DEMO, "-q"));
    assert_says(r.out, "h264 64x48 -> 64x64, grid 2x4x4, 8 tokens");
    assert_says(r.out, "4 of 48 frames at 24 a second, taken at 2 a second: 0 16 31 47");
    assert_says(r.out, "2 groups of 4 tokens, at 0.3 1.6 seconds");
    free_result(&r);
    cJSON *json = run_json(QVL("plan", clip_path, SCENE, "-m", DEMO, "-q", "--json", "--fps", "3"));
    const cJSON *item = first_item(json), *clip = field(item, "clip");
    assert_ints(field(clip, "indices"), (const int[]){0, 9, 19, 28, 38, 47}, 6);
    assert_int_equal(cJSON_GetArraySize(field(clip, "labels")), 3);
    assert_string_equal(cJSON_GetArrayItem(field(clip, "labels"), 0)->valuestring, "0.2");
    assert_true(field(clip, "rate")->valuedouble == 24 && field(clip, "fps")->valuedouble == 3);
    assert_int_equal(field(clip, "tokens_per_group")->valueint * 3, field(item, "tokens")->valueint);
    assert_true(cJSON_IsNull(field(cJSON_GetArrayItem(field(json, "items"), 1), "clip")));
    cJSON_Delete(json);
}

static void assert_file(const char *path, const char *name, int64_t rows) {
    qvl_tensor_file *file = open_tensors(path);
    assert_int_equal(tensor_of(file, name).shape[0], rows);
    qvl_tensor_file_close(&file);
}

/* A clip, then a picture: pictures come first in the file, and each is what it is alone. */
static void preprocesses(void **state) {
    (void)state;
    char both[4096], clip[4096], scene[4096];
    snprintf(both, sizeof both, "%s", scratch("both.safetensors"));
    snprintf(clip, sizeof clip, "%s", scratch("alone.safetensors"));
    snprintf(scene, sizeof scene, "%s", scratch("scene.safetensors"));
    run(QVL("preprocess", clip_path, SCENE, "-m", DEMO, "-q", "-o", both));
    run(QVL("preprocess", clip_path, "-m", DEMO, "-q", "-o", clip));
    run(QVL("preprocess", SCENE, "-m", DEMO, "-q", "-o", scene));
    qvl_tensor_file *b = open_tensors(both), *c = open_tensors(clip), *s = open_tensors(scene);
    assert_int_equal(qvl_tensor_file_count(b), 5);
    assert_int_equal(qvl_tensor_file_count(c), 3);
    static const char *const of_clips[] = {"pixel_values_videos", "video_grid_thw", "video_timestamps"};
    for (int i = 0; i < 3; i++) {
        qvl_tensor x = tensor_of(b, of_clips[i]), y = tensor_of(c, of_clips[i]);
        assert_same_tensor(&x, &y);
    }
    qvl_tensor x = tensor_of(b, "pixel_values"), y = tensor_of(s, "pixel_values");
    assert_same_tensor(&x, &y);
    qvl_tensor stamps = tensor_of(b, "video_timestamps");
    double first;
    memcpy(&first, stamps.data, sizeof first);
    assert_int_equal(stamps.dtype, QVL_F64);
    assert_true(first == (0 + 16 / 24.0) / 2);
    qvl_tensor_file_close(&b);
    qvl_tensor_file_close(&c);
    qvl_tensor_file_close(&s);
}

static void encodes(void **state) {
    (void)state;
    char both[4096], clip[4096];
    snprintf(both, sizeof both, "%s", scratch("features.safetensors"));
    snprintf(clip, sizeof clip, "%s", scratch("clip_features.safetensors"));
    run(QVL("encode", clip_path, SCENE, "-m", DEMO, "-q", "-o", both));
    run(QVL("encode", clip_path, "-m", DEMO, "-q", "-o", clip));
    qvl_tensor_file *b = open_tensors(both), *c = open_tensors(clip);
    static const char *const names[] = {"video_embeds", "deepstack_video_embeds.0", "deepstack_video_embeds.1",
                                        "video_grid_thw", "video_timestamps"};
    for (int i = 0; i < 5; i++) {
        qvl_tensor x = tensor_of(b, names[i]), y = tensor_of(c, names[i]);
        assert_same_tensor(&x, &y);
    }
    assert_int_equal(tensor_of(b, "image_embeds").shape[0], 260);
    assert_int_equal(tensor_of(b, "deepstack_image_embeds.1").shape[0], 260);
    qvl_tensor ignored;
    assert_false(qvl_tensor_file_find(c, "image_embeds", &ignored));
    qvl_tensor_file_close(&b);
    qvl_tensor_file_close(&c);
}

static void flags_take_effect(void **state) {
    (void)state;
    static const struct {
        const char *flag, *value;
        int tokens, frames; /* of the first clip */
    } cases[] = {
        {"--fps", "1", 8, 4},         {"--fps", "24", 96, 48},      {"--fps", "24000/1001", 96, 47},
        {"--num-frames", "5", 12, 5}, {"--min-frames", "9", 20, 9}, {"--video-min-pixels", "100000", 60, 4},
        {"--size", "128x64", 16, 4},  {"--preset", "mlx", 8, 4},    {"--single-frame", "refuse", 8, 4},
        {"--frame-cap", "on", 8, 4},  {"--times", "rate", 8, 4},    {"--assume-fps", "3", 8, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *json = run_json(QVL("plan", clip_path, "-m", DEMO, "-q", "--json", cases[i].flag, cases[i].value));
        const cJSON *item = first_item(json);
        int frames = cJSON_GetArraySize(field(field(item, "clip"), "indices"));
        if (frames != cases[i].frames || field(item, "tokens")->valueint != cases[i].tokens)
            fail_msg("%s %s: %d frames, %d tokens", cases[i].flag, cases[i].value, frames,
                     field(item, "tokens")->valueint);
        cJSON_Delete(json);
    }
}

static void flags_that_are_refused(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *flag, *says;
    } cases[] = {
        {2, "--fps=0", "--fps is '0'; allowed is frames a second"},
        {2, "--fps=1/0", "--fps is '1/0'"},
        {2, "--fps=nan", "--fps is 'nan'"},
        {2, "--num-frames=0", "--num-frames is '0'"},
        {2, "--single-frame=drop", "allowed is repeat|refuse"},
        {2, "--frames=3", "unknown flag --frames=3"},
        {1, "--video-max-pixels=1000", "is above its maximum of 1000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = expect(cases[i].code, NULL, QVL("plan", clip_path, "-m", DEMO, cases[i].flag));
        assert_says(r.err, cases[i].says);
        free_result(&r);
    }
    result r = expect(1, NULL, QVL("plan", clip_path, "-m", DEMO, "--fps=2", "--num-frames=4"));
    assert_says(r.err, "fps (2) and num_frames (4) exclude each other");
    free_result(&r);
    r = expect(1, NULL, QVL("plan", clip_path, "-m", DEMO, "--min-frames=800", "--max-frames=9"));
    assert_says(r.err, "min_frames is 800, above max_frames, 9");
    free_result(&r);
}

/* report_59: what a chat with a video costs, and that it adds up: pads, labels, text. */
static void chats(void **state) {
    (void)state;
    char chat[8192], path[4096], out[4096];
    snprintf(chat, sizeof chat,
             "[{\"role\":\"user\",\"content\":[{\"type\":\"video\",\"video\":\"%s\",\"fps\":3},"
             "{\"type\":\"image\",\"image\":\"%s\"},{\"type\":\"text\",\"text\":\"What moves?\"}]}]",
             clip_path, SCENE);
    snprintf(path, sizeof path, "%s", scratch("chat.json"));
    snprintf(out, sizeof out, "%s", scratch("prompt.safetensors"));
    write_file(path, chat, strlen(chat));
    cJSON *json = run_json(QVL("plan", path, "-m", DEMO, "-q", "--json"));
    const cJSON *item = first_item(json), *clip = field(item, "clip");
    assert_string_equal(field(item, "kind")->valuestring, "video");
    int tokens = 0, vision = 0;
    const cJSON *span;
    cJSON_ArrayForEach(span, field(json, "spans")) {
        tokens += field(span, "tokens")->valueint;
        if (strcmp(field(span, "kind")->valuestring, "video") == 0) vision += field(span, "tokens")->valueint;
    }
    assert_int_equal(tokens, field(json, "tokens")->valueint);
    assert_int_equal(vision, field(item, "tokens")->valueint);
    assert_int_equal(vision, 3 * field(clip, "tokens_per_group")->valueint);
    assert_says(field(json, "text")->valuestring, "<|vision_start|><0.2 seconds><|vision_start|><|video_pad|>");
    cJSON_Delete(json);
    run(QVL("prompt", path, "-m", DEMO, "-q", "-o", out));
    assert_file(out, "video_grid_thw", 1);
    assert_file(out, "image_grid_thw", 1);
    result r = expect(0, NULL, QVL("prompt", path, "-m", DEMO, "-q", "--video-layout", "bare"));
    assert_says(r.out, "user\n<0.2 seconds><|vision_start|><|video_pad|> x 4<|vision_end|>");
    assert_says(r.out, "6 of 48 frames at 24 a second");
    free_result(&r);
}

int main(void) {
    make_clip_file();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(preprocesses),
        cmocka_unit_test(encodes),
        cmocka_unit_test(flags_take_effect),
        cmocka_unit_test(flags_that_are_refused),
        cmocka_unit_test(chats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
