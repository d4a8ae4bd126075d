/* Chats to prompts: the forms of JSON, sources of pictures, options, truncation, identity. */
#define _GNU_SOURCE
#include "cache/content.h"
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bench demo;

static int set_up(void **state) {
    (void)state;
    demo = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_F32, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_bench(&demo);
    return 0;
}

static qvl_prompt_options defaults(void) {
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    return options;
}

#define USER "<|im_start|>user\n"
#define END "<|im_end|>\n"
#define ANSWER "<|im_start|>assistant\n"
#define IMAGE "<|vision_start|><|image_pad|><|vision_end|>"

static void expect(const char *json, const qvl_prompt_options *options, const char *text) {
    qvl_prompt p = plan_chat(&demo, json, options);
    assert_text(&p, text);
    qvl_prompt_free(&p);
}

/* ---- what a chat looks like */

static void test_forms(void **state) {
    (void)state;
    expect("[{\"role\":\"user\",\"content\":\"a\"}]", NULL, USER "a" END ANSWER);
    expect(" \n[ {\"role\":\"user\",\"content\":\"a\"} ]\n", NULL, USER "a" END ANSWER);
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", NULL, USER "a" END ANSWER);
    expect(
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"name\":null}],\"temperature\":0.5,"
        "\"add_generation_prompt\":false}",
        NULL, USER "a" END);
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"enable_thinking\":true}", NULL,
           USER "a" END ANSWER "<think>\n");
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"chat_template_kwargs\":{\"enable_thinking\":"
           "true}}",
           NULL, USER "a" END ANSWER "<think>\n");
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"n\":1.0,\"b\":[true,null]}]}",
           NULL,
           "<|im_start|>system\nFunctions you may call:\n{\"n\": 1.0, \"b\": [true, null]}\nTo call one: "
           "<tool_call>\n"
           "{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call>" END USER "a" END ANSWER);
}

static void test_options_before_the_chat(void **state) {
    (void)state;
    const char *chat =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"enable_thinking\":true,\"tools\":[1]}";
    qvl_prompt_options options = defaults();
    options.enable_thinking = 0;
    options.add_generation_prompt = 1;
    options.tools_json = "[]";
    expect(chat, &options, USER "a" END ANSWER);
    options.add_generation_prompt = 0;
    expect(chat, &options, USER "a" END);
    options = defaults();
    options.variables_json = "{\"enable_thinking\": false, \"tools\": null}";
    expect(chat, &options, USER "a" END ANSWER);
    bench b =
        open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16,
                   "{{ eos_token }} {{ reasoning_effort }} {{ preserve_thinking }} {{ x.y }} {{ bos_token }}.");
    options = defaults();
    options.reasoning_effort = "low";
    options.preserve_thinking = 1;
    options.variables_json = "{\"x\": {\"y\": 1.50}}";
    qvl_prompt p = plan_chat(&b, "[]", &options);
    assert_text(&p, "<|im_end|> low True 1.5 .");
    qvl_prompt_free(&p);
    close_bench(&b);
}

static void test_notes(void **state) {
    (void)state;
    notes kept;
    qvl_prompt_options options = noting(&kept);
    expect(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"temperature\":1,\"stream\":false,\"tools\":null}",
        &options, USER "a" END ANSWER);
    assert_string_equal(kept.text, "chat: not for the prompt, ignored: temperature, stream\n");
}

static void test_malformed_chats(void **state) {
    (void)state;
    static const struct {
        const char *json;
        qvl_status status;
        const char *says;
    } cases[] = {
        {"", QVL_ERROR_FORMAT, "chat"},
        {"[", QVL_ERROR_FORMAT, "not JSON"},
        {"[{\"role\":\"user\",}]", QVL_ERROR_FORMAT, "byte 16"},
        {"{}", QVL_ERROR_FORMAT, "no messages"},
        {"{\"messages\":{}}", QVL_ERROR_FORMAT, "no messages"},
        {"{\"list\":[]}", QVL_ERROR_FORMAT, "no messages"},
        {"[1]", QVL_ERROR_FORMAT, "message 1 is not an object with a role"},
        {"[{\"content\":\"a\"}]", QVL_ERROR_FORMAT, "message 1 is not an object with a role"},
        {"[{\"role\":\"user\",\"content\":1}]", QVL_ERROR_FORMAT, "message 1 (user): content is 1"},
        {"[{\"role\":\"user\",\"content\":{}}]", QVL_ERROR_FORMAT, "content is an object"},
        {"[{\"role\":\"user\",\"content\":[\"a\"]}]", QVL_ERROR_FORMAT, "part 1 is \"a\""},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", QVL_ERROR_FORMAT,
         "its text is nothing; it must"},
        {"[{\"role\":\"user\",\"content\":[{\"text\":5}]}]", QVL_ERROR_FORMAT, "its text is 5"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"text\":\"a\"}]}]", QVL_ERROR_FORMAT,
         "part 1 has a picture and text; each"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]", QVL_ERROR_UNSUPPORTED,
         "\"input_audio\""},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":7}]}]", QVL_ERROR_FORMAT, "image is 7"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":\"\"}]}]", QVL_ERROR_ARGUMENT,
         "empty image"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"min_pixels\":-1}]}]", QVL_ERROR_FORMAT,
         "min_pixels is -1"},
        {"[{\"role\":\"robot\",\"content\":\"a\"}]", QVL_ERROR_ARGUMENT, "not robot"},
        {"{\"messages\":[],\"chat_template_kwargs\":[]}", QVL_ERROR_FORMAT, "chat_template_kwargs is a list"},
        {"{\"messages\":[],\"chat_template_kwargs\":{\"messages\":[]}}", QVL_ERROR_FORMAT,
         "messages are no variable: chat_template_kwargs"},
        {"{\"messages\":[],\"tools\":{}}", QVL_ERROR_FORMAT, "chat: tools is an object; it must be a list"},
        {"{\"messages\":[],\"documents\":5}", QVL_ERROR_FORMAT, "documents is 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse_chat(&demo, cases[i].json, NULL, 0, NULL, cases[i].status, SAYS(cases[i].says));
    const char *fine = "[{\"role\":\"user\",\"content\":\"a\"}]";
    qvl_prompt_options options = defaults();
    options.tools_json = "{}";
    refuse_chat(&demo, fine, NULL, 0, &options, QVL_ERROR_FORMAT, SAYS("the tools must be a list"));
    options = defaults();
    options.variables_json = "[]";
    refuse_chat(&demo, fine, NULL, 0, &options, QVL_ERROR_FORMAT, SAYS("the variables must be an object"));
    options.variables_json = "{\"messages\": []}";
    refuse_chat(&demo, fine, NULL, 0, &options, QVL_ERROR_FORMAT, SAYS("messages are no variable: the variables"));
    options = defaults();
    options.max_length = -1;
    refuse_chat(&demo, fine, NULL, 0, &options, QVL_ERROR_ARGUMENT, SAYS("max_length -1"));
    options = defaults();
    options.size = 0;
    refuse_chat(&demo, fine, NULL, 0, &options, QVL_ERROR_ARGUMENT, SAYS("init function"));
}

/* What tables make of messages: members that a row has no use for are null. */
static void test_null_members(void **state) {
    (void)state;
    picture noise;
    make_picture(&noise, 64, 64, 1);
    qvl_prompt p = plan_media(&demo,
                              "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":null,\"text\":null},"
                              "{\"type\":\"text\",\"image\":null,\"video_url\":null,\"text\":\"a\"}]}]",
                              &noise.medium, 1, NULL);
    assert_text(&p, USER IMAGE "a" END ANSWER);
    qvl_prompt_free(&p);
    free_picture(&noise);
}

/* ---- sources */

/* scene.jpg, cut to its first bytes, is a valid picture no more; whole it has 260 tokens. */
static char *base64_of(const char *path, bool padding, size_t line) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static uint8_t bytes[1 << 17];
    size_t count = fread(bytes, 1, sizeof bytes, file), used = 0;
    fclose(file);
    assert_true(count > 0 && count < sizeof bytes);
    char *text = malloc(count * 3 + 16);
    assert_non_null(text);
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) group |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) group |= bytes[i + 2];
        size_t left = count - i < 3 ? count - i : 3;
        for (size_t k = 0; k < 4; k++) {
            if (line && used % line == line - 1) text[used++] = k % 2 ? ' ' : '\t';
            if (k <= left)
                text[used++] = digits[group >> (18 - 6 * k) & 63];
            else if (padding)
                text[used++] = '=';
        }
    }
    text[used] = 0;
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    return text;
}

static void expect_scene(const char *part_start, const char *data, const char *part_end) {
    size_t size = strlen(part_start) + strlen(data) + strlen(part_end) + 128;
    char *json = malloc(size);
    snprintf(json, size, "[{\"role\":\"user\",\"content\":[%s%s%s]}]", part_start, data, part_end);
    qvl_prompt p = plan_chat(&demo, json, NULL);
    assert_int_equal(p.vision_tokens, 260);
    assert_text(&p, USER IMAGE END ANSWER);
    qvl_prompt_free(&p);
    free(json);
}

static void test_data_urls(void **state) {
    (void)state;
    for (int padding = 0; padding < 2; padding++) {
        for (size_t line = 0; line < 80; line += 76) {
            char *data = base64_of(QVL_SOURCE_DIR "/examples/scene.jpg", padding, line);
            expect_scene("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/jpeg;base64,", data, "\"}}");
            expect_scene("{\"type\":\"image\",\"image\":\"data:image/png;base64,", data,
                         "\"}"); /* type not believed */
            expect_scene("{\"type\":\"image\",\"image\":\"DATA:;name=a.png;BASE64,", data, "\"}");
            expect_scene("{\"type\":\"image\",\"base64\":\"", data, "\"}");
            free(data);
        }
    }
}

static void test_files(void **state) {
    (void)state;
    expect_scene("{\"type\":\"image\",\"image\":\"", "scene.jpg", "\"}");
    expect_scene("{\"type\":\"image\",\"image\":\"", "../examples/./scene.jpg", "\"}");
    expect_scene("{\"type\":\"image\",\"image\":\"", QVL_SOURCE_DIR "/examples/scene.jpg", "\"}");
    expect_scene("{\"type\":\"image\",\"image\":\"file://", QVL_SOURCE_DIR "/examples/sc%65ne.jpg", "\"}");
    /* A part's own limits. */
    qvl_prompt p =
        plan_chat(&demo,
                  "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":\"scene.jpg\",\"max_pixels\":"
                  "66000},{\"type\":\"image\",\"image\":\"scene.jpg\"}]}]",
                  NULL);
    assert_true(p.items[0].item.tokens <= 64);
    assert_int_equal(p.items[1].item.tokens, 260);
    assert_string_equal(p.items[0].name, QVL_SOURCE_DIR "/examples/scene.jpg");
    assert_int_equal(p.items[1].message, 0);
    assert_int_equal(p.items[1].part, 1);
    qvl_prompt_free(&p);
}

static void refuse_source(const char *part, qvl_status status, const char *says) {
    char json[1024];
    snprintf(json, sizeof json, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},%s]}]", part);
    refuse_chat(&demo, json, NULL, 0, NULL, status, SAYS(says));
}

static void test_sources_that_are_refused(void **state) {
    (void)state;
    refuse_source("{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://example.org/a.png\"}}",
                  QVL_ERROR_UNSUPPORTED, "message 1 (user), part 2 is at https://example.org/a.png");
    refuse_source("{\"type\":\"image\",\"image\":\"s3://bucket/a.png\"}", QVL_ERROR_UNSUPPORTED,
                  "fetches nothing");
    refuse_source("{\"type\":\"image\",\"image\":\"absent.png\"}", QVL_ERROR_IO, "examples/absent.png");
    refuse_source("{\"type\":\"image\",\"image\":\"file:///absent%20a%1\"}", QVL_ERROR_IO, "/absent a%1:");
    refuse_source("{\"type\":\"image\",\"image\":\"file:///absent%\"}", QVL_ERROR_IO, "/absent%:");
    refuse_source("{\"type\":\"image\",\"image\":\"file:///absent%1Z%00\"}", QVL_ERROR_IO, "/absent%1Z%00:");
    refuse_source("{\"type\":\"image\",\"image\":\"make_pictures.py\"}", QVL_ERROR_FORMAT, "make_pictures.py");
    refuse_source("{\"type\":\"image\",\"image\":\"data:image/png,abc\"}", QVL_ERROR_UNSUPPORTED, "not in base64");
    refuse_source("{\"type\":\"image\",\"image\":\"data:image/png\"}", QVL_ERROR_FORMAT, "no comma");
    refuse_source("{\"type\":\"image\",\"image\":\"data:;base64,\"}", QVL_ERROR_FORMAT, "is empty");
    refuse_source("{\"type\":\"image\",\"image\":\"data:;base64,AAAA_AAA\"}", QVL_ERROR_FORMAT, "character 4");
    refuse_source("{\"type\":\"image\",\"image\":\"data:;base64,AAAAA\"}", QVL_ERROR_FORMAT, "cut short");
    refuse_source("{\"type\":\"image\",\"image\":\"data:;base64,AAA==\"}", QVL_ERROR_FORMAT, "cut short");
    refuse_source("{\"type\":\"image\",\"image\":\"data:;base64,AA=A\"}", QVL_ERROR_FORMAT, "character 3");
    refuse_source("{\"type\":\"video\",\"video\":\"a.mp4\"}", QVL_ERROR_IO, "examples/a.mp4");
    refuse_source("{\"type\":\"video_url\",\"video_url\":{\"url\":\"a.mp4\"}}", QVL_ERROR_IO, "examples/a.mp4");
    qvl_chat chat =
        chat_of("[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":\"chart.png\"}]}]", NULL, 0);
    qvl_prompt prompt;
    qvl_error error = {0};
    chat.no_files = true;
    assert_int_equal(qvl_prompt_plan(demo.prompter, &chat, NULL, &prompt, &error), QVL_ERROR_ARGUMENT);
    assert_has(error.message, "files are not allowed");
    chat.folder = NULL; /* relative to the current folder, where it is not */
    chat.no_files = false;
    assert_int_equal(qvl_prompt_plan(demo.prompter, &chat, NULL, &prompt, &error), QVL_ERROR_IO);
}

/* ---- the caller's media */

static const char one_image[] =
    "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"q\"}]}]";
static const char one_video[] =
    "[{\"role\":\"user\",\"content\":[{\"type\":\"video\"},{\"type\":\"text\",\"text\":\"q\"}]}]";

/* Pixels, patch rows and features of the same picture give the same prompt. */
static void test_patches_and_features(void **state) {
    (void)state;
    picture noise;
    qvl_patches patches;
    qvl_features features;
    qvl_error error = {0};
    make_picture(&noise, 300, 200, 9);
    assert_int_equal(qvl_preprocess_inputs(demo.model, &noise.input, 1, NULL, &patches, &error), QVL_OK);
    assert_int_equal(qvl_vision_encode(demo.session, &patches, NULL, &features, &error), QVL_OK);
    qvl_medium media[3] = {noise.medium, noise.medium, noise.medium};
    media[1].input = media[2].input = NULL;
    media[1].patches = &patches;
    media[2].features = &features;
    qvl_prompt p[3];
    for (int i = 0; i < 3; i++) p[i] = build_media(&demo, one_image, &media[i], 1, NULL);
    size_t row = (size_t)p[0].width * sizeof(float);
    for (int i = 1; i < 3; i++) {
        assert_same_prompt(&p[0], &p[i]);
        assert_memory_equal(p[0].inputs_embeds, p[i].inputs_embeds, (size_t)p[0].length * row);
        for (int k = 0; k < 2; k++)
            assert_memory_equal(p[0].deepstack[k], p[i].deepstack[k], (size_t)p[0].vision_tokens * row);
        assert_string_not_equal(p[0].items[0].key, p[i].items[0].key);
    }
    media[2].key = p[0].items[0].key;
    qvl_prompt named = build_media(&demo, one_image, &media[2], 1, NULL);
    assert_string_equal(named.items[0].key, p[0].items[0].key);
    qvl_prompt_free(&named);
    for (int i = 0; i < 3; i++) qvl_prompt_free(&p[i]);

    qvl_prompt prompt;
    media[2].key = "short";
    qvl_chat chat = chat_of(one_image, &media[2], 1);
    assert_int_equal(qvl_prompt_build(demo.session, demo.prompter, &chat, NULL, &prompt, &error),
                     QVL_ERROR_ARGUMENT);
    assert_has(error.message, "key \"short\"");
    features.deepstack_count = 1;
    media[2].key = NULL;
    assert_int_equal(qvl_prompt_build(demo.session, demo.prompter, &chat, NULL, &prompt, &error),
                     QVL_ERROR_ARGUMENT);
    assert_has(error.message, "with 1 deepstack arrays");
    features.deepstack_count = 2;
    features.tokens--;
    refuse_chat(&demo, one_image, &media[2], 1, NULL, QVL_ERROR_ARGUMENT, SAYS("noise: it has 69 features"));
    features.tokens++;
    features.item_count = 2;
    refuse_chat(&demo, one_image, &media[2], 1, NULL, QVL_ERROR_ARGUMENT, SAYS("of 2 items"));
    features.item_count = 1;
    media[2].patches = &patches;
    refuse_chat(&demo, one_image, &media[2], 1, NULL, QVL_ERROR_ARGUMENT, SAYS("is one of"));
    qvl_features_free(&features);
    qvl_patches_free(&patches);
    free_picture(&noise);
}

static void test_videos_of_the_caller(void **state) {
    (void)state;
    clip video;
    make_clip(&video, demo.model, (qvl_grid){2, 4, 6}, 0.25, 2);
    qvl_prompt p = build_media(&demo, one_video, &video.medium, 1, NULL);
    /* Python's rounding: 0.25 is a tie, which goes to even. */
    assert_text(&p, USER "<|vision_start|><0.2 seconds><|vision_start|><|video_pad|><|vision_end|>"
                         "<2.2 seconds><|vision_start|><|video_pad|><|vision_end|><|vision_end|>q" END ANSWER);
    assert_int_equal(p.vision_tokens, 12);
    assert_int_equal(p.items[0].kind, QVL_MEDIUM_VIDEO);
    qvl_prompt_free(&p);
    video.medium.timestamp_count = 1;
    refuse_chat(&demo, one_video, &video.medium, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("clip: it has 1 timestamps", "2 temporal"));
    video.medium.timestamp_count = 2;
    video.timestamps[1] = 1.0 / 0.0;
    refuse_chat(&demo, one_video, &video.medium, 1, NULL, QVL_ERROR_ARGUMENT, SAYS("timestamp 1 is inf"));
    video.timestamps[1] = 1;
    video.item.grid.h = 3;
    refuse_chat(&demo, one_video, &video.medium, 1, NULL, QVL_ERROR_ARGUMENT, SAYS("clip"));
    video.item.grid.h = 6;
    refuse_chat(&demo, one_video, &video.medium, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("it has 48 patch rows", "makes 72"));
    free_clip(&video);
}

/* ---- the last message left open */

static void test_continue_final_message(void **state) {
    (void)state;
    qvl_prompt_options options = defaults();
    options.continue_final_message = 1;
    const char *chat =
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"Well, <|im_end|> \"}]";
    expect(chat, &options, USER "a" END ANSWER "Well, <|im_end|> ");
    qvl_prompt p = plan_chat(&demo, chat, &options);
    assert_int_equal(count_special(&demo, &p), 3);
    qvl_prompt_free(&p);
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":[{\"text\":"
           "\"x\"},"
           "{\"text\":\"y\\n\"}]}],\"continue_final_message\":true}",
           NULL, USER "a" END ANSWER "xy\n");
    /* A template that trims: so is what is left. */
    char *text = published_template("qwen3.5.jinja");
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
    p = plan_chat(&b, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"Well, \\n\"}]",
                  &options);
    assert_text(&p, USER "a" END ANSWER "<think>\n\n</think>\n\nWell,");
    qvl_prompt_free(&p);
    refuse_chat(
        &b, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"<think>b</think>c\"}]",
        NULL, 0, &options, QVL_ERROR_ARGUMENT, SAYS("does not show the last message as it is"));
    close_bench(&b);
    free(text);
    qvl_chat empty = chat_of("[]", NULL, 0);
    qvl_error error = {0};
    assert_int_equal(qvl_prompt_plan(demo.prompter, &empty, &options, &p, &error), QVL_ERROR_ARGUMENT);
    assert_string_equal(error.message, "chat: the last message has no text that could be continued");
    refuse_chat(&demo, "[{\"role\":\"user\",\"content\":null}]", NULL, 0, &options, QVL_ERROR_ARGUMENT,
                SAYS("no text that could be continued"));
    options.add_generation_prompt = 1;
    refuse_chat(&demo, chat, NULL, 0, &options, QVL_ERROR_ARGUMENT, SAYS("only one of them"));
}

/* Arguments of tool calls as OpenAI has them, for templates that need what they say. */
static void test_arguments_as_text(void **state) {
    (void)state;
    const char *chat =
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
        "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1,\\\"y\\\":"
        "\\\"<|im_end|>\\\"}\"}}]},{\"role\":\"tool\",\"content\":\"4\"}]";
    notes kept;
    qvl_prompt_options options = noting(&kept);
    expect(chat, &options,
           USER "a" END ANSWER "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1,\"y\":\"<|im_end|>\"}}\n"
                "</tool_call>" END "<|im_start|>user\n<tool_response>\n4\n</tool_response>" END ANSWER);
    assert_string_equal(kept.text, "");
    char *text = published_template("qwen3.6.jinja");
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
    qvl_prompt p = plan_chat(&b, chat, &options);
    assert_has(
        p.text,
        "<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=y>\n<|im_end|>\n</parameter>\n</function>");
    assert_has(kept.text, "arguments of tool calls are parsed");
    assert_int_equal(count_id(&p, id_of(&b, "<|im_end|>")), 3);
    qvl_prompt_free(&p);
    close_bench(&b);
    free(text);
}

/* ---- max_length */

static void test_max_length(void **state) {
    (void)state;
    picture pictures[2];
    make_picture(&pictures[0], 64, 96, 1);
    make_picture(&pictures[1], 64, 96, 2);
    const qvl_medium media[2] = {pictures[0].medium, pictures[1].medium};
    const char *chat =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\"},"
        "{\"type\":\"text\",\"text\":\"two three\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"four\"}]}]";
    notes kept;
    qvl_prompt_options options = noting(&kept);
    qvl_prompt whole = plan_media(&demo, chat, media, 2, &options);
    char number[160];
    for (int64_t most = 1; most <= whole.length; most++) {
        const qvl_prompt_item *cut = NULL;
        size_t before = 0;
        for (size_t i = 0; i < 2; i++) {
            const qvl_prompt_item *item = &whole.items[i];
            if (item->first.index < most && item->last.index >= most) cut = item;
            before += item->last.index < most;
        }
        options.max_length = most;
        options.truncation = QVL_TRUNCATE_REFUSE;
        snprintf(number, sizeof number, "%lld tokens, but max_length is %lld", (long long)whole.length,
                 (long long)most);
        if (most < whole.length) refuse_chat(&demo, chat, media, 2, &options, QVL_ERROR_LIMIT, SAYS(number));
        options.truncation = QVL_TRUNCATE_TEXT;
        if (cut) {
            snprintf(number, sizeof number, "entries %lld to %lld of %lld", (long long)cut->first.index,
                     (long long)cut->last.index, (long long)whole.length);
            refuse_chat(&demo, chat, media, 2, &options, QVL_ERROR_LIMIT, SAYS("cut noise in two", number));
            options.truncation = QVL_TRUNCATE_MEDIA;
        }
        qvl_prompt p = plan_media(&demo, chat, media, 2, &options);
        assert_int_equal(p.length, cut ? cut->first.index : most);
        assert_int_equal(p.item_count, before);
        assert_memory_equal(p.input_ids, whole.input_ids, (size_t)p.length * sizeof *p.input_ids);
        for (int axis = 0; axis < 3; axis++)
            assert_memory_equal(p.position_ids + axis * p.length, whole.position_ids + axis * whole.length,
                                (size_t)p.length * sizeof *p.position_ids);
        assert_memory_equal(p.text, whole.text, p.text_length);
        int64_t tokens = 0;
        size_t at = 0;
        for (size_t i = 0; i < p.span_count; i++) {
            assert_int_equal(p.spans[i].start, at);
            at = p.spans[i].end;
            tokens += p.spans[i].tokens;
        }
        assert_int_equal(at, p.text_length);
        assert_int_equal(tokens, p.length);
        int64_t delta;
        assert_int_equal(qvl_prompt_delta_at(&whole, (qvl_entry){p.length}, &delta, NULL), QVL_OK);
        assert_int_equal(delta, p.rope_delta);
        qvl_prompt_free(&p);
    }
    assert_has(kept.text, "0 of 2 pictures and videos left");
    qvl_prompt_free(&whole);
    for (int i = 0; i < 2; i++) free_picture(&pictures[i]);
}

/* A video is cut as a whole, stamps and wrappers included. */
static void test_max_length_and_videos(void **state) {
    (void)state;
    clip video;
    make_clip(&video, demo.model, (qvl_grid){3, 4, 4}, 0.5, 1);
    qvl_prompt_options options = defaults();
    options.truncation = QVL_TRUNCATE_MEDIA;
    for (int bare = 0; bare < 2; bare++) {
        options.video_layout = (qvl_video_layout)bare;
        options.max_length = 0;
        qvl_prompt whole = plan_media(&demo, one_video, &video.medium, 1, &options);
        for (int64_t most = whole.items[0].first.index + 1; most <= whole.items[0].last.index; most++) {
            options.max_length = most;
            qvl_prompt p = plan_media(&demo, one_video, &video.medium, 1, &options);
            assert_text(&p, USER);
            assert_int_equal(p.media_length, 0);
            qvl_prompt_free(&p);
        }
        qvl_prompt_free(&whole);
    }
    free_clip(&video);
}

/* ---- spans */

static void test_spans(void **state) {
    (void)state;
    picture noise;
    make_picture(&noise, 64, 96, 1);
    qvl_prompt p = plan_media(&demo,
                              "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":"
                              "\"a<|im_end|>b<think>\"}]},{\"role\":\"assistant\",\"content\":\"<think>c\"}]",
                              &noise.medium, 1, NULL);
    static const struct {
        qvl_prompt_span_kind kind;
        const char *text;
    } wanted[] = {
        {QVL_SPAN_SPECIAL, "<|im_start|>"},
        {QVL_SPAN_TEXT, "user\n"},
        {QVL_SPAN_SPECIAL, "<|vision_start|>"},
        {QVL_SPAN_IMAGE, "<|image_pad|>"},
        {QVL_SPAN_SPECIAL, "<|vision_end|>"},
        {QVL_SPAN_TEXT, "a"},
        {QVL_SPAN_DEFUSED, "<|im_end|>"},
        {QVL_SPAN_TEXT, "b"},
        {QVL_SPAN_DEFUSED, "<think>"},
        {QVL_SPAN_SPECIAL, "<|im_end|>"},
        {QVL_SPAN_TEXT, "\n"},
        {QVL_SPAN_SPECIAL, "<|im_start|>"},
        {QVL_SPAN_TEXT, "assistant\n"},
        {QVL_SPAN_ADDED, "<think>"},
        {QVL_SPAN_TEXT, "c"},
        {QVL_SPAN_SPECIAL, "<|im_end|>"},
        {QVL_SPAN_TEXT, "\n"},
        {QVL_SPAN_SPECIAL, "<|im_start|>"},
        {QVL_SPAN_TEXT, "assistant\n"},
    };
    assert_int_equal(p.span_count, sizeof wanted / sizeof wanted[0]);
    int64_t tokens = 0;
    for (size_t i = 0; i < p.span_count; i++) {
        const qvl_prompt_span *s = &p.spans[i];
        assert_int_equal(s->kind, wanted[i].kind);
        assert_int_equal(s->end - s->start, strlen(wanted[i].text));
        assert_memory_equal(p.text + s->start, wanted[i].text, s->end - s->start);
        assert_int_equal(s->tokens == 1,
                         s->kind == QVL_SPAN_SPECIAL || s->kind == QVL_SPAN_ADDED || s->tokens == 1);
        tokens += s->tokens;
    }
    assert_int_equal(p.spans[3].tokens, p.items[0].item.tokens);
    assert_int_equal(tokens, p.length);
    qvl_prompt_free(&p);
    free_picture(&noise);
}

/* ---- plans and builds */

static void test_plan_is_the_prompt(void **state) {
    (void)state;
    picture noise;
    make_picture(&noise, 100, 220, 1);
    bench headless = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, NULL);
    qvl_prompt a = plan_media(&headless, one_image, &noise.medium, 1, NULL);
    qvl_prompt b = build_media(&demo, one_image, &noise.medium, 1, NULL);
    assert_same_prompt(&a, &b);
    assert_null(a.inputs_embeds);
    assert_string_equal(a.items[0].key, "");
    assert_non_null(b.inputs_embeds);
    char hex[QVL_KEY_HEX], fingerprint[QVL_FINGERPRINT_HEX];
    qvl_error error = {0};
    assert_int_equal(qvl_model_fingerprint(demo.model, NULL, fingerprint, &error), QVL_OK);
    assert_int_equal(qvl_prompt_identity(demo.model, &a, fingerprint, hex, &error), QVL_ERROR_ARGUMENT);
    assert_has(error.message, "not a plan");
    /* A session of another model, and none for embeddings. */
    qvl_prompt prompt;
    qvl_chat chat = chat_of(one_image, &noise.medium, 1);
    assert_int_equal(qvl_prompt_build(demo.session, headless.prompter, &chat, NULL, &prompt, &error),
                     QVL_ERROR_ARGUMENT);
    assert_has(error.message, "another model");
    qvl_prompt_free(&a);
    qvl_prompt_free(&b);
    close_bench(&headless);
    free_picture(&noise);
}

/* Text rows are the table's, in either compute type. */
static void test_rows_of_the_table(void **state) {
    (void)state;
    qvl_tensor_file *file;
    qvl_tensor table;
    qvl_error error = {0};
    assert_int_equal(qvl_tensor_file_open(QVL_RANDOM_MODEL "/model.safetensors", &file, &error), QVL_OK);
    assert_true(qvl_tensor_file_find(file, "model.language_model.embed_tokens.weight", &table));
    assert_int_equal(table.dtype, QVL_BF16);
    bench narrow = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_BF16, NULL);
    const char *chat = "[{\"role\":\"user\",\"content\":\"What do you see in it?\"}]";
    qvl_prompt f = build_media(&demo, chat, NULL, 0, NULL), h = build_media(&narrow, chat, NULL, 0, NULL);
    assert_int_equal(f.dtype, QVL_F32);
    assert_int_equal(h.dtype, QVL_BF16);
    assert_int_equal(f.deepstack_count, 0);
    const uint16_t *rows = table.data;
    for (int64_t i = 0; i < f.length; i++) {
        const uint16_t *row = rows + f.input_ids[i] * f.width;
        assert_memory_equal((uint16_t *)h.inputs_embeds + i * f.width, row, (size_t)f.width * 2);
        for (int64_t k = 0; k < f.width; k++) {
            uint32_t bits = (uint32_t)row[k] << 16;
            assert_memory_equal((float *)f.inputs_embeds + i * f.width + k, &bits, 4);
        }
    }
    qvl_prompt_free(&f);
    qvl_prompt_free(&h);
    close_bench(&narrow);
    qvl_tensor_file_close(&file);
}

/* ---- identity */

static void identity_of(const bench *b, const char *json, const qvl_medium *media, size_t count,
                        const qvl_prompt_options *options, char hex[QVL_KEY_HEX]) {
    char fingerprint[QVL_FINGERPRINT_HEX];
    qvl_error error = {0};
    qvl_prompt p = build_media(b, json, media, count, options);
    assert_int_equal(qvl_model_fingerprint(b->model, NULL, fingerprint, &error), QVL_OK);
    if (qvl_prompt_identity(b->model, &p, fingerprint, hex, &error)) fail_msg("%s", error.message);
    qvl_prompt_free(&p);
}

static void test_identity(void **state) {
    (void)state;
    enum { MOST = 16 };
    char found[MOST][QVL_KEY_HEX], same[QVL_KEY_HEX];
    int n = 0;
    picture a, b, c;
    make_picture(&a, 320, 192, 1);
    make_picture(&b, 320, 192, 2);
    make_picture(&c, 320, 192, 1);
    ((uint8_t *)(uintptr_t)c.input.bytes)[3 * (100 * 320 + 77) + 1] ^= 0x80; /* one pixel of a */
    const qvl_medium ab[2] = {a.medium, b.medium}, ba[2] = {b.medium, a.medium};
    const char *two =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"image\"},{\"type\":\"text\","
        "\"text\":\"q\"}]}]";
    const char *later =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"something else\"}]},"
        "{\"role\":\"assistant\",\"content\":\"x\"}]";
    const char *earlier =
        "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"image\"},"
        "{\"type\":\"text\",\"text\":\"q\"}]}]";
    qvl_prompt_options options = defaults();
    identity_of(&demo, one_image, &a.medium, 1, NULL, found[n++]);
    identity_of(&demo, one_image, &b.medium, 1, NULL, found[n++]);
    identity_of(&demo, one_image, &c.medium, 1, NULL, found[n++]);
    identity_of(&demo, earlier, &a.medium, 1, NULL, found[n++]);
    identity_of(&demo, two, ab, 2, NULL, found[n++]);
    identity_of(&demo, two, ba, 2, NULL, found[n++]);
    options.preprocess.width = 256;
    options.preprocess.height = 160;
    identity_of(&demo, one_image, &a.medium, 1, &options, found[n++]);
    options = defaults();
    options.preprocess.preset = QVL_PRESET_MLX;
    identity_of(&demo, one_image, &a.medium, 1, &options, found[n++]);
    qvl_input clear = {.kind = QVL_INPUT_FILE, .name = QVL_FIXTURES "/media/rgba_8.png"};
    qvl_medium medium = {.kind = QVL_MEDIUM_IMAGE, .input = &clear};
    options = defaults();
    identity_of(&demo, one_image, &medium, 1, &options, found[n++]);
    options.preprocess.media.alpha = QVL_ALPHA_DROP;
    identity_of(&demo, one_image, &medium, 1, &options, found[n++]);
    bench narrow = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_BF16, NULL);
    identity_of(&narrow, one_image, &a.medium, 1, NULL, found[n++]);
    close_bench(&narrow);
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++) {
        assert_int_equal(strlen(found[i]), 64);
        for (int k = 0; k < i; k++) assert_string_not_equal(found[i], found[k]);
    }
    /* What comes behind the last picture does not matter; where there is none, there is no identity. */
    identity_of(&demo, later, &a.medium, 1, NULL, same);
    assert_string_equal(same, found[0]);
    identity_of(&demo, "[{\"role\":\"user\",\"content\":\"a\"}]", NULL, 0, NULL, same);
    assert_string_equal(same, "");
    qvl_prompt p = build_media(&demo, one_image, &a.medium, 1, NULL);
    qvl_error error = {0};
    assert_int_equal(qvl_prompt_identity(demo.model, &p, "not a fingerprint", same, &error), QVL_ERROR_ARGUMENT);
    assert_has(error.message, "not a fingerprint");
    qvl_prompt_free(&p);
    free_picture(&a);
    free_picture(&b);
    free_picture(&c);
}

/* Every part of an identity by itself. */
static void test_parts_of_an_identity(void **state) {
    (void)state;
    picture a;
    char fingerprint[QVL_FINGERPRINT_HEX], whole[QVL_KEY_HEX], other[QVL_KEY_HEX];
    qvl_error error = {0};
    make_picture(&a, 64, 96, 1);
    qvl_prompt p = build_media(&demo, one_image, &a.medium, 1, NULL);
    assert_int_equal(qvl_model_fingerprint(demo.model, NULL, fingerprint, &error), QVL_OK);
    assert_int_equal(qvl_prompt_identity(demo.model, &p, fingerprint, whole, &error), QVL_OK);
    int64_t last = p.media_length - 1, *parts[] = {&p.input_ids[0],    &p.input_ids[last],
                                                   &p.position_ids[3], &p.position_ids[p.length + last],
                                                   &p.rope_delta,      &p.position_ids[2 * p.length + last]};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ++*parts[i];
        assert_int_equal(qvl_prompt_identity(demo.model, &p, fingerprint, other, &error), QVL_OK);
        assert_string_not_equal(whole, other);
        --*parts[i];
    }
    char *letters[] = {&p.items[0].key[5], &fingerprint[60]};
    for (size_t i = 0; i < 2; i++) {
        char kept = *letters[i];
        *letters[i] = kept == 'a' ? 'b' : 'a';
        assert_int_equal(qvl_prompt_identity(demo.model, &p, fingerprint, other, &error), QVL_OK);
        assert_string_not_equal(whole, other);
        *letters[i] = kept;
    }
    p.input_ids[last + 1]++; /* behind the picture */
    p.position_ids[last + 1]++;
    assert_int_equal(qvl_prompt_identity(demo.model, &p, fingerprint, other, &error), QVL_OK);
    assert_string_equal(whole, other);
    qvl_prompt_free(&p);
    free_picture(&a);
}

/* Every part of a picture's key by itself. */
static void test_parts_of_a_key(void **state) {
    (void)state;
    enum { CASES = 11 };
    uint8_t pixels[3 * 64 * 32] = {0}, changed[3 * 64 * 32] = {0};
    const uint8_t *frames[2] = {pixels, pixels}, *others[2] = {pixels, changed};
    changed[sizeof changed - 1] = 1;
    qvl_config config = {
        .vision = {.patch_size = 16, .temporal_patch_size = 2, .spatial_merge_size = 2},
        .processor = {.mean = {0.5f, 0.5f, 0.5f}, .std = {0.5f, 0.5f, 0.5f}, .rescale_factor = 1.0 / 255}};
    qvl_config mean = config, rescale = config, merge = config;
    mean.processor.mean[1] = 0.25f;
    rescale.processor.rescale_factor = 1.0 / 256;
    merge.vision.spatial_merge_size = 1;
    const struct {
        qvl_frames frames;
        const qvl_config *config;
        qvl_preset preset;
        qvl_grid grid;
    } cases[CASES] = {
        {{frames, 1, 64, 32}, &config, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{frames, 2, 64, 32}, &config, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{others, 2, 64, 32}, &config, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{others + 1, 1, 64, 32}, &config, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{frames, 1, 32, 64}, &config, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{frames, 1, 64, 32}, &config, QVL_PRESET_TRANSFORMERS, {1, 4, 2}},
        {{frames, 1, 64, 32}, &config, QVL_PRESET_TRANSFORMERS_PIL, {1, 2, 4}},
        {{frames, 1, 64, 32}, &config, QVL_PRESET_MLX, {1, 2, 4}},
        {{frames, 1, 64, 32}, &mean, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{frames, 1, 64, 32}, &rescale, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
        {{frames, 1, 64, 32}, &merge, QVL_PRESET_TRANSFORMERS, {1, 2, 4}},
    };
    char keys[CASES][QVL_KEY_HEX];
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(qvl_frames_key(&cases[i].frames, &cases[i].config->vision, &cases[i].config->processor,
                                        cases[i].preset, cases[i].grid, keys[i], NULL),
                         QVL_OK);
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
    }
}

/* ---- progress */

typedef struct watch {
    int64_t last, total, calls, stop_at;
} watch;

static bool look(int64_t done, int64_t total, void *user) {
    watch *w = user;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls != w->stop_at;
}

static void test_progress(void **state) {
    (void)state;
    picture a;
    make_picture(&a, 100, 60, 1);
    const qvl_medium media[2] = {a.medium, a.medium};
    const char *two = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"image\"}]}]";
    qvl_prompt_options options = defaults();
    watch w = {0};
    options.progress = look;
    options.progress_user = &w;
    qvl_prompt p = build_media(&demo, two, media, 2, &options);
    assert_true(w.calls > 4);
    assert_int_equal(w.last, w.total);
    qvl_prompt_free(&p);
    int64_t calls = w.calls;
    w = (watch){.stop_at = calls / 2 + 2}; /* in the second picture */
    qvl_chat chat = chat_of(two, media, 2);
    qvl_error error = {0};
    assert_int_equal(qvl_prompt_build(demo.session, demo.prompter, &chat, &options, &p, &error),
                     QVL_ERROR_CANCELLED);
    static const qvl_prompt empty;
    assert_memory_equal(&p, &empty, sizeof empty);
    free_picture(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_options_before_the_chat),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_malformed_chats),
        cmocka_unit_test(test_null_members),
        cmocka_unit_test(test_data_urls),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sources_that_are_refused),
        cmocka_unit_test(test_patches_and_features),
        cmocka_unit_test(test_videos_of_the_caller),
        cmocka_unit_test(test_continue_final_message),
        cmocka_unit_test(test_arguments_as_text),
        cmocka_unit_test(test_max_length),
        cmocka_unit_test(test_max_length_and_videos),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_plan_is_the_prompt),
        cmocka_unit_test(test_rows_of_the_table),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_parts_of_an_identity),
        cmocka_unit_test(test_parts_of_a_key),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
