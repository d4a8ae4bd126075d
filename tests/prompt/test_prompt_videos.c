/* Videos in conversations: lists of frames from the chat and from the caller, labels, both layouts, settings of a part,
 * and what is refused. */
#include "prompt/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bench demo;

#define USER "<|im_start|>user\n"
#define END "<|im_end|>\n"
#define ANSWER "<|im_start|>assistant\n"
#define GROUP(second) "<" second " seconds><|vision_start|><|video_pad|><|vision_end|>"

/* Eight frames of noise with a rate and numbers. */
typedef struct frames {
    picture pictures[8];
    qvl_input list[8], input;
    int64_t indices[8];
    qvl_medium medium;
} frames;

static void make_frames(frames *f, size_t count, int64_t width, int64_t height, double rate) {
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < count; i++) {
        make_picture(&f->pictures[i], width, height, (uint32_t)i + 1);
        f->list[i] = f->pictures[i].input;
        f->indices[i] = 10 * (int64_t)i;
    }
    f->input = (qvl_input){.kind = QVL_INPUT_FRAMES,
                           .name = "frames",
                           .frames = f->list,
                           .frame_count = count,
                           .indices = f->indices,
                           .rate = rate};
    f->medium = (qvl_medium){.kind = QVL_MEDIUM_VIDEO, .name = "frames", .input = &f->input};
}

static void free_frames(frames *f) {
    for (size_t i = 0; i < f->input.frame_count; i++) free_picture(&f->pictures[i]);
}

static const char one_video[] =
    "[{\"role\":\"user\",\"content\":[{\"type\":\"video\"},{\"type\":\"text\",\"text\":\"q\"}]}]";

static void test_frames_of_the_caller(void **state) {
    (void)state;
    frames f;
    make_frames(&f, 3, 64, 64, 10);
    qvl_prompt p = build_media(&demo, one_video, &f.medium, 1, NULL);
    assert_text(&p, USER "<|vision_start|>" GROUP("0.5") GROUP("2.0") "<|vision_end|>q" END ANSWER);
    const qvl_prompt_item *item = &p.items[0];
    assert_int_equal(item->kind, QVL_MEDIUM_VIDEO);
    assert_int_equal(item->item.grid.t, 2);
    assert_non_null(item->item.clip);
    assert_int_equal(item->item.clip->indices[2], 20);
    assert_true(item->item.clip->timestamps[1] == 2.0);
    assert_int_equal(strlen(item->key), 64);
    qvl_prompt planned = plan_media(&demo, one_video, &f.medium, 1, NULL);
    assert_same_prompt(&p, &planned);
    qvl_prompt_free(&planned);
    qvl_prompt_free(&p);

    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.video_layout = QVL_VIDEO_BARE;
    p = plan_media(&demo, one_video, &f.medium, 1, &options);
    assert_text(&p, USER GROUP("0.5") GROUP("2.0") "q" END ANSWER);
    qvl_prompt_free(&p);

    f.input.rate = 0;
    refuse_chat(&demo, one_video, &f.medium, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("frames: its frame rate is unknown"));
    options.preprocess.clip.assumed_rate = 20;
    p = plan_media(&demo, one_video, &f.medium, 1, &options);
    assert_text(&p, USER GROUP("0.2") GROUP("1.0") "q" END ANSWER); /* 0.25 goes to even */
    assert_true(p.items[0].item.clip->rate_assumed);
    qvl_prompt_free(&p);
    free_frames(&f);
}

/* The patches of a clip bring their times along, and give the same embeddings as the frames. */
static void test_patches_of_the_caller(void **state) {
    (void)state;
    frames f;
    make_frames(&f, 5, 96, 64, 4);
    qvl_patches patches;
    qvl_error error = {0};
    assert_int_equal(qvl_preprocess_inputs(demo.model, &f.input, 1, NULL, &patches, &error), QVL_OK);
    const qvl_medium medium = {.kind = QVL_MEDIUM_VIDEO, .name = "rows", .patches = &patches};
    qvl_prompt a = build_media(&demo, one_video, &f.medium, 1, NULL);
    qvl_prompt b = build_media(&demo, one_video, &medium, 1, NULL);
    assert_same_prompt(&a, &b);
    size_t row = (size_t)a.width * qvl_dtype_bits(a.dtype) / 8;
    assert_memory_equal(a.inputs_embeds, b.inputs_embeds, (size_t)a.length * row);
    for (int32_t k = 0; k < a.deepstack_count; k++)
        assert_memory_equal(a.deepstack[k], b.deepstack[k], (size_t)a.vision_tokens * row);
    qvl_prompt_free(&a);
    qvl_prompt_free(&b);
    qvl_patches_free(&patches);
    free_frames(&f);
}

static void test_a_picture_as_a_video(void **state) {
    (void)state;
    const char *const chat = "[{\"role\":\"user\",\"content\":[{\"type\":\"video\",\"video\":\"chart.png\"}]}]";
    qvl_prompt p = plan_chat(&demo, chat, NULL);
    assert_text(&p, USER "<|vision_start|>" GROUP("0.0") "<|vision_end|>" END ANSWER);
    assert_int_equal(p.items[0].item.clip->frame_count, 1);
    qvl_prompt_free(&p);
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.preprocess.clip.single_frame = QVL_SINGLE_FRAME_REFUSE;
    refuse_chat(&demo, chat, NULL, 0, &options, QVL_ERROR_LIMIT, SAYS("chart.png", "has 1 frame;"));
}

static void plan_list(const char *part, const char *text) {
    char chat[1024];
    snprintf(chat, sizeof chat, "[{\"role\":\"user\",\"content\":[{%s}]}]", part);
    qvl_prompt p = plan_chat(&demo, chat, NULL);
    assert_text(&p, text);
    qvl_prompt_free(&p);
}

static void refuse_list(const char *part, qvl_status status, const char *says) {
    char chat[1024];
    snprintf(chat, sizeof chat, "[{\"role\":\"user\",\"content\":[{%s}]}]", part);
    refuse_chat(&demo, chat, NULL, 0, NULL, status, SAYS(says));
}

#define LIST "\"type\":\"video\",\"video\":[\"chart.png\",{\"url\":\"chart.png\"},\"chart.png\"]"

static void test_lists_in_a_chat(void **state) {
    (void)state;
    plan_list(LIST ",\"rate\":2", USER "<|vision_start|>" GROUP("0.2") GROUP("1.0") "<|vision_end|>" END ANSWER);
    plan_list(LIST ",\"rate\":2,\"indices\":[0,10,30]",
              USER "<|vision_start|>" GROUP("2.5") GROUP("15.0") "<|vision_end|>" END ANSWER);
    plan_list(LIST ",\"seconds\":[0.5,1,7]",
              USER "<|vision_start|>" GROUP("0.8") GROUP("7.0") "<|vision_end|>" END ANSWER);
    refuse_list(LIST, QVL_ERROR_ARGUMENT, "frame rate is unknown");
    refuse_list(LIST ",\"rate\":2,\"fps\":1", QVL_ERROR_ARGUMENT, "never sampled again");
    refuse_list(LIST ",\"rate\":0", QVL_ERROR_FORMAT, "rate is 0");
    refuse_list(LIST ",\"rate\":2,\"indices\":[0,10]", QVL_ERROR_FORMAT, "indices must be a list of 3 numbers");
    refuse_list(LIST ",\"rate\":2,\"indices\":[0,10,9]", QVL_ERROR_ARGUMENT, "has the number 9, after 10");
    refuse_list(LIST ",\"rate\":2,\"indices\":[0,1.5,9]", QVL_ERROR_FORMAT, "one of indices is");
    refuse_list(LIST ",\"seconds\":[0,2,1]", QVL_ERROR_ARGUMENT, "is at 1 seconds, after 2");
    refuse_list(LIST ",\"seconds\":[-1,2,3]", QVL_ERROR_ARGUMENT, "is at -1 seconds");
    refuse_list("\"type\":\"video\",\"video\":[]", QVL_ERROR_ARGUMENT, "video is an empty list");
    refuse_list("\"type\":\"video\",\"video\":[\"chart.png\",3],\"rate\":1", QVL_ERROR_FORMAT, "frame 1 of video");
    refuse_list("\"type\":\"video\",\"video\":[\"chart.png\",\"absent.png\"],\"rate\":1", QVL_ERROR_IO,
                "absent.png");
    refuse_list("\"type\":\"image\",\"image\":[\"chart.png\"]", QVL_ERROR_FORMAT, "image is a list");
}

static void test_mixed_sizes(void **state) {
    (void)state;
    frames f;
    make_frames(&f, 3, 64, 64, 10);
    f.list[2].height = 32;
    refuse_chat(&demo, one_video, &f.medium, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("frames: frame 2 is 64 x 32, but the first one is 64 x 64"));
    f.input.frame_count = 0;
    refuse_chat(&demo, one_video, &f.medium, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("frames: a list of frames is empty"));
    f.input.frame_count = 3;
    free_frames(&f);
}

/* An image and a video in one conversation, either one first: each takes its own place. */
static void test_every_order(void **state) {
    (void)state;
    frames f;
    make_frames(&f, 2, 64, 64, 10);
    picture noise;
    make_picture(&noise, 64, 64, 9);
    const qvl_medium media[2] = {f.medium, noise.medium};
    const char *const parts[2] = {"{\"type\":\"video\"}", "{\"type\":\"image\"}"};
    for (int first = 0; first < 2; first++) {
        char chat[512];
        snprintf(chat, sizeof chat, "[{\"role\":\"user\",\"content\":[%s,%s]}]", parts[first], parts[1 - first]);
        qvl_prompt p = build_media(&demo, chat, media, 2, NULL);
        assert_int_equal(p.item_count, 2);
        assert_int_equal(p.items[0].kind, first ? QVL_MEDIUM_IMAGE : QVL_MEDIUM_VIDEO);
        assert_int_equal(p.items[1].kind, first ? QVL_MEDIUM_VIDEO : QVL_MEDIUM_IMAGE);
        int64_t seen = 0;
        for (int64_t i = 0; i < p.length; i++) seen += p.token_types[i] != 0;
        assert_int_equal(seen, p.items[0].item.tokens + p.items[1].item.tokens);
        for (int i = 0; i < 2; i++)
            for (int64_t e = p.items[i].first.index; e <= p.items[i].last.index; e++)
                assert_true(p.token_types[e] == 0 || p.token_types[e] == (int64_t)p.items[i].kind);
        qvl_prompt_free(&p);
    }
    free_picture(&noise);
    free_frames(&f);
}

int main(void) {
    demo = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_BF16, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_the_caller), cmocka_unit_test(test_patches_of_the_caller),
        cmocka_unit_test(test_a_picture_as_a_video), cmocka_unit_test(test_lists_in_a_chat),
        cmocka_unit_test(test_mixed_sizes),          cmocka_unit_test(test_every_order),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_bench(&demo);
    return failed;
}
