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

static char clip_path[512], large_path[512], single_path[512], uneven_path[512];

static void make_file(const char *name, const clip_spec *spec, char path[512]) {
    bytes clip = make_clip(spec);
    snprintf(path, 512, "%s", scratch(name));
    write_file(path, clip.data, clip.count);
    qvl_free(clip.data);
}

static void make_files(void) {
    static const int64_t uneven[] = {0, 40, 80, 120, 160, 200, 240, 640, 1040, 1440, 1840, 2240};
    make_file("clip.mp4", &(clip_spec){.frames = 48, .rate = {24, 1}, .muxer = "mp4"}, clip_path);
    make_file("large.mp4",
              &(clip_spec){.frames = 12, .rate = {12, 1}, .width = 320, .height = 256, .muxer = "mp4"},
              large_path);
    make_file("single.mp4", &(clip_spec){.frames = 1, .rate = {24, 1}, .muxer = "mp4"}, single_path);
    make_file("uneven.mkv", &(clip_spec){.frames = 12, .times = uneven}, uneven_path);
}

static const cJSON *first_item(const cJSON *json) {
    return cJSON_GetArrayItem(field(json, "items"), 0);
}

static void plans(void **state) {
    (void)state;
    result r = expect(0, NULL, QVL_RANDOM("plan", clip_path, "-q"));
    assert_says(r.out, "h264 64x48 -> 64x64, grid 2x4x4, 8 tokens");
    assert_says(r.out, "4 of 48 frames at 24 a second, taken at 2 a second: 0 16 31 47");
    assert_says(r.out, "2 groups of 4 tokens, at 0.3 1.6 seconds");
    free_result(&r);
    cJSON *json = run_json(QVL_RANDOM("plan", clip_path, SCENE, "-q", "--json", "--fps", "3"));
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
    run(QVL_RANDOM("preprocess", clip_path, SCENE, "-q", "-o", both));
    run(QVL_RANDOM("preprocess", clip_path, "-q", "-o", clip));
    run(QVL_RANDOM("preprocess", SCENE, "-q", "-o", scene));
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
    run(QVL_RANDOM("encode", clip_path, SCENE, "-q", "-o", both));
    run(QVL_RANDOM("encode", clip_path, "-q", "-o", clip));
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

/* Each row's flag changes what is said of its clip: without it that is not said. */
static void flags_take_effect(void **state) {
    (void)state;
    static const struct {
        const char *clip, *with, *flag, *says;
    } cases[] = {
        {clip_path, "-q", "--fps=3", "6 of 48 frames at 24 a second, taken at 3 a second: 0 9 19 28 38 47"},
        {clip_path, "-q", "--fps=24", "48 of 48 frames at 24 a second"},
        {clip_path, "-q", "--fps=24000/1001", "47 of 48 frames at 24 a second"},
        {clip_path, "-q", "--num-frames=5", "5 of 48 frames at 24 a second"},
        {clip_path, "-q", "--min-frames=9", "9 of 48 frames at 24 a second"},
        {clip_path, "--fps=4", "--max-frames=6", "6 of 48 frames at 24 a second"},
        {clip_path, "-q", "--video-min-pixels=100000", "grid 2x10x12, 60 tokens"},
        {clip_path, "-q", "--size=128x64", "64x48 -> 128x64, grid 2x4x8, 16 tokens"},
        {clip_path, "-q", "--preset=mlx", "taken at 2 a second: 0 12 24 36\n"},
        {large_path, "-q", "--video-max-pixels=100000", "320x256 -> 160x128, grid 2x8x10, 40 tokens"},
        {large_path, "--max-frame-tokens=9", "--frame-cap=on", "320x256 -> 96x64, grid 2x4x6, 12 tokens"},
        {large_path, "--frame-cap=on", "--max-frame-tokens=9", "320x256 -> 96x64, grid 2x4x6, 12 tokens"},
        {uneven_path, "-q", "--times=rate", "2 groups of 4 tokens, at 0.4 1.8 seconds"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result without = expect(0, NULL, QVL_RANDOM("plan", cases[i].clip, "-q", cases[i].with));
        result r = expect(0, NULL, QVL_RANDOM("plan", cases[i].clip, "-q", cases[i].with, cases[i].flag));
        if (strstr(without.out, cases[i].says)) fail_msg("%s changes nothing", cases[i].flag);
        assert_says(r.out, cases[i].says);
        free_result(&without);
        free_result(&r);
    }
}

/* Flags that decide between a result and a refusal. */
static void flags_that_refuse_or_let_pass(void **state) {
    (void)state;
    static const char list[] = "[{\"role\":\"user\",\"content\":[{\"type\":\"video\",\"video\":[\"" SCENE
                               "\",\"" SCENE "\",\"" SCENE "\"]}]}]";
    char chat[512];
    snprintf(chat, sizeof chat, "%s", scratch("list.json"));
    write_file(chat, list, sizeof list - 1);
    const struct {
        const char *input, *flag, *says;
        int code, code_without;
    } cases[] = {
        {single_path, "--single-frame=refuse", "the clip has 1 frame", 1, 0},
        {chat, "--assume-fps=4", "<0.1 seconds>", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result without = expect(cases[i].code_without, NULL, QVL_RANDOM("plan", cases[i].input, "-q"));
        result r = expect(cases[i].code, NULL, QVL_RANDOM("plan", cases[i].input, "-q", cases[i].flag));
        assert_says(cases[i].code ? r.err : r.out, cases[i].says);
        free_result(&without);
        free_result(&r);
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
        result r = expect(cases[i].code, NULL, QVL_RANDOM("plan", clip_path, cases[i].flag));
        assert_says(r.err, cases[i].says);
        free_result(&r);
    }
    result r = expect(1, NULL, QVL_RANDOM("plan", clip_path, "--fps=2", "--num-frames=4"));
    assert_says(r.err, "fps (2) and num_frames (4) exclude each other");
    free_result(&r);
    r = expect(1, NULL, QVL_RANDOM("plan", clip_path, "--min-frames=800", "--max-frames=9"));
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
    cJSON *json = run_json(QVL_RANDOM("plan", path, "-q", "--json"));
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
    run(QVL_RANDOM("prompt", path, "-q", "-o", out));
    assert_file(out, "video_grid_thw", 1);
    assert_file(out, "image_grid_thw", 1);
    result r = expect(0, NULL, QVL_RANDOM("prompt", path, "-q", "--video-layout", "bare"));
    assert_says(r.out, "user\n<0.2 seconds><|vision_start|><|video_pad|> x 4<|vision_end|>");
    assert_says(r.out, "6 of 48 frames at 24 a second");
    free_result(&r);
}

int main(void) {
    make_files();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(preprocesses),
        cmocka_unit_test(encodes),
        cmocka_unit_test(flags_take_effect),
        cmocka_unit_test(flags_that_refuse_or_let_pass),
        cmocka_unit_test(flags_that_are_refused),
        cmocka_unit_test(chats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
