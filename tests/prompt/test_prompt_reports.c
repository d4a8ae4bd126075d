/* What users of other systems ran into with prompts (user reports, by number), with the random model. Report 47
 * is in test_mrope.c too, 16 and 17 in tests/pipeline. */
#define _GNU_SOURCE
#include "prompt/support.h"

#include <cjson/cJSON.h>
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

static bench with_template(const char *name) {
    char *text = published_template(name);
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
    free(text);
    return b;
}

static const char *const published[] = {"qwen3-vl-instruct.jinja", "qwen3-vl-thinking.jinja", "qwen3.5.jinja",
                                        "qwen3.5-small.jinja",     "qwen3.6.jinja",           "qwen3.8.jinja"};
enum { PUBLISHED = 6 };

static void make_pictures(picture *p, qvl_medium *media, size_t count) {
    for (size_t i = 0; i < count; i++) {
        make_picture(&p[i], 64 + 40 * (int64_t)i, 90 - 7 * (int64_t)i, (uint32_t)i);
        media[i] = p[i].medium;
    }
}

/* More slots than images, and the other ways round: one error that lists both by message. */
static void report_34_slots_and_images_by_message(void **state) {
    (void)state;
    picture pictures[2];
    qvl_medium media[2];
    make_pictures(pictures, media, 2);
    const char *two = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"}]},"
                      "{\"role\":\"assistant\",\"content\":\"b\"},"
                      "{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"c\"}]}]";
    const char *one =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"}]}]";
    const char *none = "[{\"role\":\"user\",\"content\":\"a\"}]";
    refuse_chat(&demo, two, media, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("2 image slots for 1 image", "from the caller: 1 image",
                     "message 1 (user): 1 image slot and 1 image;",
                     "message 3 (user): 1 image slot and 0 images"));
    refuse_chat(&demo, one, media, 2, NULL, QVL_ERROR_ARGUMENT,
                SAYS("1 image slot for 2 images", "from the caller: 2 images",
                     "message 1 (user): 1 image slot and 1 image"));
    refuse_chat(&demo, none, media, 1, NULL, QVL_ERROR_ARGUMENT, SAYS("0 image slots for 1 image"));
    refuse_chat(&demo, one, NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("1 image slot for 0 images"));
    /* A stale marker of an earlier turn, in text that is trusted. */
    qvl_prompt_options trusting;
    qvl_prompt_options_init(&trusting);
    trusting.trust_text = true;
    const char *stale =
        "[{\"role\":\"user\",\"content\":\"<|vision_start|><|image_pad|><|vision_end|>x\"},"
        "{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]";
    refuse_chat(&demo, stale, media, 1, &trusting, QVL_ERROR_ARGUMENT,
                SAYS("2 image slots for 1 image", "message 1 (user): 1 image slot and 0 images",
                     "message 3 (user): 1 image slot and 1 image"));
    /* An image, but the template writes nothing for it. */
    bench b =
        open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, "{% for m in messages %}{{ m.role }}{% endfor %}");
    refuse_chat(&b, one, media, 1, NULL, QVL_ERROR_ARGUMENT, SAYS("leaves its text out"));
    const char *bare = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]";
    refuse_chat(&b, bare, media, 1, NULL, QVL_ERROR_ARGUMENT,
                SAYS("0 image slots for 1 image", "message 1 (user): 0 image slots and 1 image"));
    close_bench(&b);
    /* Both kinds. */
    clip video;
    make_clip(&video, demo.model, (qvl_grid){2, 4, 4}, 0.5, 1);
    const qvl_medium mixed[2] = {video.medium, media[0]};
    refuse_chat(
        &demo, none, mixed, 2, NULL, QVL_ERROR_ARGUMENT,
        SAYS("0 image slots for 1 image and 0 video slots for 1 video", "from the caller: 1 image, 1 video"));
    free_clip(&video);
    for (int i = 0; i < 2; i++) free_picture(&pictures[i]);
}

/* Instruct leaves pictures of assistants out: the numbers differ, and that is said. */
static void report_34_pictures_that_a_template_drops(void **state) {
    (void)state;
    bench b = with_template("qwen3-vl-instruct.jinja");
    picture noise;
    qvl_medium medium;
    make_pictures(&noise, &medium, 1);
    refuse_chat(
        &b, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"image\"}]}]",
        &medium, 1, NULL, QVL_ERROR_ARGUMENT,
        SAYS("0 image slots for 1 image", "message 2 (assistant): 0 image slots and 1 image"));
    free_picture(&noise);
    close_bench(&b);
}

/* As many pads as the grids make, for any sizes and counts. */
static void report_35_pads_are_grids(void **state) {
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 60; round++) {
        enum { MOST = 6 };
        picture pictures[MOST];
        qvl_medium media[MOST];
        char json[2048] = "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}";
        size_t count = (size_t)round % (MOST + 1);
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            make_picture(&pictures[i], 16 + (int64_t)(seed >> 8) % 500, 16 + (int64_t)(seed >> 20) % 500, seed);
            media[i] = pictures[i].medium;
            strcat(json, ",{\"type\":\"image\"}");
        }
        strcat(json, "]}]");
        qvl_prompt_options options;
        qvl_prompt_options_init(&options);
        options.preprocess.min_pixels = 1024;
        qvl_prompt p = plan_media(&demo, json, media, count, &options);
        int64_t tokens = 0;
        for (size_t i = 0; i < count; i++) {
            qvl_grid g = p.items[i].item.grid;
            assert_int_equal(p.items[i].item.tokens, g.t * g.h * g.w / 4);
            tokens += g.t * g.h * g.w / 4;
        }
        assert_int_equal(count_id(&p, id_of(&demo, "<|image_pad|>")), tokens);
        assert_int_equal(p.vision_tokens, tokens);
        assert_int_equal(p.item_count, count);
        qvl_prompt_free(&p);
        for (size_t i = 0; i < count; i++) free_picture(&pictures[i]);
    }
}

/* ---- 37: another vocabulary */

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void save_json(const char *folder, const char *name, cJSON *json) {
    char path[512], *text = cJSON_Print(json);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, text);
    cJSON_free(text);
    cJSON_Delete(json);
}

/* Ids come from the folder: the same chat with image_pad and object_ref_start changed about, under a model_type
 * that nobody has heard of. */
static void report_37_ids_from_the_folder(void **state) {
    (void)state;
    char folder[] = "/tmp/qvl-prompt-XXXXXX", path[512];
    assert_non_null(mkdtemp(folder));
    char *tokenizer = read_text(QVL_RANDOM_MODEL "/tokenizer.json"),
         *config = read_text(QVL_RANDOM_MODEL "/config.json");
    char *settings = read_text(QVL_RANDOM_MODEL "/tokenizer_config.json");
    cJSON *json = cJSON_Parse(tokenizer);
    cJSON *tokens = cJSON_GetObjectItem(json, "added_tokens");
    cJSON *reference = cJSON_GetObjectItem(cJSON_GetArrayItem(tokens, 0), "content");
    cJSON *pad = cJSON_GetObjectItem(cJSON_GetArrayItem(tokens, 24), "content");
    assert_string_equal(pad->valuestring, "<|image_pad|>");
    char *content = pad->valuestring;
    pad->valuestring = reference->valuestring;
    reference->valuestring = content;
    save_json(folder, "tokenizer.json", json);
    json = cJSON_Parse(settings);
    cJSON_DeleteItemFromObject(json, "added_tokens_decoder");
    save_json(folder, "tokenizer_config.json", json);
    json = cJSON_Parse(config);
    cJSON_SetNumberValue(cJSON_GetObjectItem(json, "image_token_id"), 486);
    cJSON_ReplaceItemInObject(json, "model_type", cJSON_CreateString("qwen9_vl"));
    save_json(folder, "config.json", json);
    char *processor = read_text(QVL_RANDOM_MODEL "/preprocessor_config.json");
    save_json(folder, "preprocessor_config.json", cJSON_Parse(processor));
    free(processor);
    free(tokenizer);
    free(config);
    free(settings);

    bench b = open_bench(folder, QVL_OPEN_CONFIG, QVL_BF16, NULL);
    picture noise;
    qvl_medium medium;
    make_pictures(&noise, &medium, 1);
    const char *chat =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"}]}]";
    qvl_prompt p = plan_media(&b, chat, &medium, 1, NULL), q = plan_media(&demo, chat, &medium, 1, NULL);
    assert_int_equal(p.length, q.length);
    for (int64_t i = 0; i < p.length; i++)
        assert_int_equal(p.input_ids[i], q.input_ids[i] == 510 ? 486 : q.input_ids[i]);
    assert_memory_equal(p.token_types, q.token_types, (size_t)p.length * sizeof *p.token_types);
    assert_memory_equal(p.position_ids, q.position_ids, 3 * (size_t)p.length * sizeof *p.position_ids);
    qvl_prompt_free(&p);
    qvl_prompt_free(&q);
    close_bench(&b);

    /* Two files of the folder that contradict each other. */
    config = read_text(QVL_RANDOM_MODEL "/config.json");
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, config);
    free(config);
    qvl_model *model;
    qvl_prompter *prompter;
    qvl_model_options options;
    qvl_error error = {0};
    qvl_model_options_init(&options);
    options.level = QVL_OPEN_CONFIG;
    assert_int_equal(qvl_model_open(folder, &options, &model, &error), QVL_OK);
    assert_int_equal(qvl_prompter_open(model, NULL, &prompter, &error), QVL_ERROR_MODEL);
    assert_has(error.message, "image_token_id 510, but the tokenizer's <|image_pad|> is 486");
    assert_null(prompter);
    qvl_model_close(&model);
    free_picture(&noise);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "config.json",
                                            "preprocessor_config.json"};
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    remove(folder);
}

/* A later system message: no text is lost in silence. */
static void report_38_late_system_messages(void **state) {
    (void)state;
    const char *chat =
        "[{\"role\":\"system\",\"content\":\"First rule.\"},{\"role\":\"user\",\"content\":\"Question one.\"},"
        "{\"role\":\"system\",\"content\":\"Late rule.\"},{\"role\":\"assistant\",\"content\":\"Answer.\"},"
        "{\"role\":\"user\",\"content\":\"Question two.\"}]";
    static const char *const texts[] = {"First rule.", "Question one.", "Late rule.", "Answer.", "Question two."};
    for (int i = 0; i < PUBLISHED; i++) {
        bench b = with_template(published[i]);
        notes kept;
        qvl_prompt_options options = noting(&kept);
        if (i == 0) { /* Instruct is silent about it; Thinking keeps it; the others refuse in their own words */
            refuse_chat(&b, chat, NULL, 0, &options, QVL_ERROR_ARGUMENT,
                        SAYS("message 3 (system)", "leaves its text out", "fold"));
            options.dropped = QVL_DROPPED_NOTE;
            qvl_prompt p = plan_chat(&b, chat, &options);
            assert_lacks(p.text, "Late rule.");
            assert_has(kept.text, "message 3 (system): the template leaves its text out");
            qvl_prompt_free(&p);
        } else if (i >= 2) {
            refuse_chat(&b, chat, NULL, 0, &options, QVL_ERROR_ARGUMENT,
                        SAYS("System message must be at the beginning."));
        }
        options.dropped = i == 1 ? QVL_DROPPED_REFUSE : QVL_DROPPED_FOLD;
        qvl_prompt p = plan_chat(&b, chat, &options);
        for (int t = 0; t < 5; t++) assert_has(p.text, texts[t]);
        if (i != 1) assert_has(p.text, "First rule.\n\nLate rule.");
        qvl_prompt_free(&p);
        close_bench(&b);
    }
}

static void report_38_unknown_roles(void **state) {
    (void)state;
    bench b = with_template("qwen3-vl-instruct.jinja");
    const char *chat =
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"developer\",\"content\":\"Be brief.\"}]";
    refuse_chat(&b, chat, NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("message 2 (developer)", "leaves its text out"));
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.dropped = QVL_DROPPED_FOLD;
    qvl_prompt p = plan_chat(&b, chat, &options);
    assert_has(p.text, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\na<|im_end|>\n");
    qvl_prompt_free(&p);
    close_bench(&b);
}

/* Histories without a user's question: the template's own message. */
static void report_40_no_user_query(void **state) {
    (void)state;
    const char *tools = "[{\"role\":\"tool\",\"content\":\"4\"},{\"role\":\"tool\",\"content\":\"5\"}]";
    const char *assistant = "[{\"role\":\"assistant\",\"content\":\"Hello.\"}]";
    for (int i = 2; i < PUBLISHED; i++) {
        bench b = with_template(published[i]);
        refuse_chat(&b, tools, NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("No user query found in messages."));
        refuse_chat(&b, assistant, NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("No user query found in messages."));
        refuse_chat(&b, "[]", NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("No messages provided."));
        close_bench(&b);
    }
    bench b = with_template(published[0]);
    qvl_prompt p = plan_chat(&b, tools, NULL);
    assert_text(&p, "<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<tool_response>\n5\n</tool_response>"
                    "<|im_end|>\n<|im_start|>assistant\n");
    qvl_prompt_free(&p);
    close_bench(&b);
    refuse_chat(&demo, "[]", NULL, 0, NULL, QVL_ERROR_ARGUMENT, SAYS("There are no messages."));
}

/* Content as a string and as parts: the same ids for text; and all the spellings of pictures. */
static void report_41_strings_and_parts(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"\"What is it?\"", "[{\"type\":\"text\",\"text\":\"What is it?\"}]"},
        {"\"What is it?\"",
         "[{\"type\":\"text\",\"text\":\"What \"},{\"type\":\"input_text\",\"text\":\"is it?\"}]"},
        {"\"\"", "[]"},
        {"\"\"", "null"},
        {"\"\"", "[{\"text\":\"\"}]"},
    };
    static const char *const pictures[] = {
        "{\"type\":\"image\"}",
        "{\"type\":\"image\",\"image\":\"scene.jpg\"}",
        "{\"image\":\"scene.jpg\"}",
        "{\"type\":\"image\",\"url\":\"scene.jpg\"}",
        "{\"type\":\"image\",\"path\":\"scene.jpg\"}",
        "{\"type\":\"image_url\",\"image_url\":\"scene.jpg\"}",
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"scene.jpg\",\"detail\":\"high\"}}",
        "{\"type\":\"input_image\",\"image_url\":\"scene.jpg\"}",
        "{\"image_url\":{\"url\":\"scene.jpg\"}}",
    };
    qvl_input file = {.kind = QVL_INPUT_FILE, .name = QVL_SOURCE_DIR "/examples/scene.jpg"};
    qvl_medium medium = {.kind = QVL_MEDIUM_IMAGE, .input = &file};
    char a[512], b[512];
    for (int t = -1; t < PUBLISHED; t++) {
        bench own = t < 0 ? demo : with_template(published[t]);
        for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
            snprintf(a, sizeof a, "[{\"role\":\"user\",\"content\":%s},{\"role\":\"user\",\"content\":\"q\"}]",
                     same[i][0]);
            snprintf(b, sizeof b, "[{\"role\":\"user\",\"content\":%s},{\"role\":\"user\",\"content\":\"q\"}]",
                     same[i][1]);
            qvl_prompt p = plan_chat(&own, a, NULL), q = plan_chat(&own, b, NULL);
            assert_same_prompt(&p, &q);
            qvl_prompt_free(&p);
            qvl_prompt_free(&q);
        }
        qvl_prompt first = {0};
        for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
            snprintf(a, sizeof a, "[{\"role\":\"user\",\"content\":[%s,{\"type\":\"text\",\"text\":\"q\"}]}]",
                     pictures[i]);
            qvl_prompt p = plan_media(&own, a, &medium, i == 0, NULL);
            assert_int_equal(p.item_count, 1);
            assert_int_equal(p.vision_tokens, 260);
            if (i == 0)
                first = p;
            else {
                assert_same_prompt(&p, &first);
                qvl_prompt_free(&p);
            }
        }
        qvl_prompt_free(&first);
        if (t >= 0) close_bench(&own);
    }
}

/* ---- 43, 44: order and company. Rows of a prompt against those of an item encoded alone. */

static void assert_rows_alone(const qvl_prompt *p, size_t i, const qvl_medium *medium) {
    qvl_features features;
    qvl_error error = {0};
    const qvl_prompt_item *item = &p->items[i];
    qvl_status status = medium->input ? qvl_encode(demo.session, medium->input, 1, NULL, NULL, &features, &error)
                                      : qvl_vision_encode(demo.session, medium->patches, NULL, &features, &error);
    if (status) fail_msg("%s", error.message);
    assert_int_equal(features.tokens, item->item.tokens);
    size_t row = (size_t)features.width * sizeof(float);
    int64_t used = 0, vision = 0;
    for (int64_t e = 0; e < item->first.index; e++) vision += p->token_types[e] != 0;
    for (int64_t e = item->first.index; e <= item->last.index; e++) {
        if (!p->token_types[e]) continue;
        assert_int_equal(p->token_types[e], medium->kind);
        assert_memory_equal((char *)p->inputs_embeds + (size_t)e * row,
                            (char *)features.embeds + (size_t)used * row, row);
        used++;
    }
    assert_int_equal(used, features.tokens);
    assert_int_equal(p->deepstack_count, 2);
    for (int32_t k = 0; k < 2; k++)
        assert_memory_equal((char *)p->deepstack[k] + (size_t)vision * row, features.deepstack[k],
                            (size_t)used * row);
    qvl_features_free(&features);
}

static void check_order(const char *parts, const qvl_medium *media, size_t count, const size_t *order) {
    char json[512];
    snprintf(json, sizeof json, "[{\"role\":\"user\",\"content\":[%s,{\"type\":\"text\",\"text\":\"q\"}]}]",
             parts);
    qvl_prompt p = build_media(&demo, json, media, count, NULL);
    assert_int_equal(p.item_count, count);
    for (size_t i = 0; i < count; i++) assert_rows_alone(&p, i, &media[order[i]]);
    qvl_prompt_free(&p);
}

static void report_43_videos_and_images_keep_their_places(void **state) {
    (void)state;
    picture pictures[2];
    qvl_medium images[2];
    clip video;
    make_pictures(pictures, images, 2);
    make_clip(&video, demo.model, (qvl_grid){3, 4, 6}, 0.3, 1.1);
    const qvl_medium media[3] = {images[0], video.medium, images[1]};
    check_order("{\"type\":\"video\"},{\"type\":\"image\"}", media, 2, (size_t[]){1, 0});
    check_order("{\"type\":\"image\"},{\"type\":\"video\"},{\"type\":\"image\"}", media, 3, (size_t[]){0, 1, 2});
    check_order(
        "{\"type\":\"video\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"and\"},{\"type\":\"image\"}",
        media, 3, (size_t[]){1, 0, 2});
    free_clip(&video);
    for (int i = 0; i < 2; i++) free_picture(&pictures[i]);
}

static void report_44_pictures_in_company(void **state) {
    (void)state;
    picture pictures[3];
    qvl_medium media[3];
    make_pictures(pictures, media, 3);
    check_order("{\"type\":\"image\"},{\"type\":\"image\"},{\"type\":\"image\"}", media, 3, (size_t[]){0, 1, 2});
    for (int i = 0; i < 3; i++) free_picture(&pictures[i]);
}

/* Time, start, pads, end for every group, inside of the template's wrappers; and the older layout without them. */
static void report_46_time_before_the_marker(void **state) {
    (void)state;
    clip video;
    make_clip(&video, demo.model, (qvl_grid){3, 6, 10}, 0.3, 1);
    video.timestamps[1] = 1.5;
    video.timestamps[2] = 2.4375; /* what the measured case has before it is rounded */
    const char *chat =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"video\"},{\"type\":\"text\",\"text\":\"q\"}]}]";
    qvl_prompt p = plan_media(&demo, chat, &video.medium, 1, NULL);
    assert_text(&p, "<|im_start|>user\n<|vision_start|>"
                    "<0.3 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "<1.5 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "<2.4 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "<|vision_end|>q<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(count_id(&p, id_of(&demo, "<|video_pad|>")), 45);
    assert_int_equal(p.input_ids[p.items[0].first.index], id_of(&demo, "<|vision_start|>"));
    assert_int_equal(p.input_ids[p.items[0].last.index], id_of(&demo, "<|vision_end|>"));
    assert_int_equal(p.input_ids[p.items[0].last.index - 1], id_of(&demo, "<|vision_end|>"));
    qvl_prompt_free(&p);
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.video_layout = QVL_VIDEO_BARE;
    p = plan_media(&demo, chat, &video.medium, 1, &options);
    assert_text(&p, "<|im_start|>user\n"
                    "<0.3 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "<1.5 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "<2.4 seconds><|vision_start|><|video_pad|><|vision_end|>"
                    "q<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(p.vision_tokens, 45);
    qvl_prompt_free(&p);
    free_clip(&video);
}

/* One timed block for each group. */
static void report_47_one_block_a_group(void **state) {
    (void)state;
    static const int64_t counts[] = {2, 3, 16};
    for (int i = 0; i < 3; i++) {
        clip video;
        make_clip(&video, demo.model, (qvl_grid){counts[i], 4, 6}, 0.5, 1.1);
        qvl_prompt p =
            plan_media(&demo, "[{\"role\":\"user\",\"content\":[{\"type\":\"video\"}]}]", &video.medium, 1, NULL);
        int64_t blocks = 0, stamps = 0;
        for (int64_t e = 1; e < p.length; e++) blocks += p.token_types[e] == 2 && p.token_types[e - 1] == 0;
        for (const char *at = p.text; (at = strstr(at, " seconds>")); at++) stamps++;
        assert_int_equal(blocks, counts[i]);
        assert_int_equal(stamps, counts[i]);
        assert_int_equal(p.rope_delta, -3 * counts[i]); /* six tokens of a group take three positions */
        qvl_prompt_free(&p);
        free_clip(&video);
    }
}

/* Entries and positions: 480x640 takes 300 entries and 20 positions. */
static void report_64_entries_and_positions(void **state) {
    (void)state;
    picture first, second;
    make_picture(&first, 480, 640, 1);
    make_picture(&second, 640, 320, 2);
    const qvl_medium media[2] = {first.medium, second.medium};
    qvl_prompt p =
        plan_media(&demo,
                   "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\"},"
                   "{\"type\":\"text\",\"text\":\"and then there is\"},{\"type\":\"image\"},"
                   "{\"type\":\"text\",\"text\":\"!\"}]}]",
                   media, 2, NULL);
    const qvl_prompt_item *a = &p.items[0], *b = &p.items[1];
    assert_int_equal(a->item.tokens, 300);
    assert_int_equal(b->item.tokens, 200);
    qvl_position start = qvl_prompt_position(&p, (qvl_entry){a->first.index + 1});
    qvl_position end = qvl_prompt_position(&p, a->last);
    assert_int_equal(start.t, a->first.index + 1);
    assert_int_equal(end.t, start.t + 20);
    assert_int_equal(end.h, end.t);
    start = qvl_prompt_position(&p, (qvl_entry){b->first.index + 1});
    assert_int_equal(start.t, b->first.index + 1 - 280);
    assert_int_equal(qvl_prompt_position(&p, b->last).w, start.w + 20);
    assert_int_equal(p.rope_delta, -280 - 180);
    qvl_position next = qvl_prompt_position(&p, (qvl_entry){p.length});
    assert_int_equal(next.t, p.length - 460);
    assert_int_equal(next.t, qvl_prompt_position(&p, (qvl_entry){p.length - 1}).t + 1);
    /* Cut in the middle of the second text and gone on with. */
    qvl_entry middle = {a->last.index + 3};
    int64_t delta;
    qvl_error error = {0};
    assert_int_equal(qvl_prompt_delta_at(&p, middle, &delta, &error), QVL_OK);
    assert_int_equal(delta, -280);
    assert_int_equal(middle.index + delta, qvl_prompt_position(&p, (qvl_entry){middle.index - 1}).t + 1);
    assert_int_equal(qvl_prompt_delta_at(&p, (qvl_entry){a->first.index}, &delta, &error), QVL_OK);
    assert_int_equal(delta, 0);
    assert_int_equal(qvl_prompt_delta_at(&p, (qvl_entry){p.length}, &delta, &error), QVL_OK);
    assert_int_equal(delta, p.rope_delta);
    assert_int_equal(qvl_prompt_delta_at(&p, (qvl_entry){a->first.index + 40}, &delta, &error),
                     QVL_ERROR_ARGUMENT);
    assert_has(error.message, "is inside noise");
    assert_int_equal(qvl_prompt_delta_at(&p, (qvl_entry){p.length + 1}, &delta, &error), QVL_ERROR_ARGUMENT);
    qvl_prompt_free(&p);
    free_picture(&first);
    free_picture(&second);
}

/* A key is more than pixel bytes: the shape, limits, presets; and it is the picture's own, wherever it stands. */
static void key_of(const bench *b, const qvl_medium *medium, const qvl_prompt_options *options,
                   char key[QVL_KEY_HEX]) {
    qvl_prompt p = build_media(b, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", medium, 1, options);
    memcpy(key, p.items[0].key, QVL_KEY_HEX);
    assert_int_equal(strlen(key), QVL_KEY_HEX - 1);
    qvl_prompt_free(&p);
}

static void report_67_keys_tell_everything_apart(void **state) {
    (void)state;
    enum { KEYS = 6 };
    char keys[KEYS][QVL_KEY_HEX], again[QVL_KEY_HEX];
    picture wide, tall;
    make_picture(&wide, 384, 192, 3);
    make_picture(&tall, 192, 384, 3); /* the same bytes */
    assert_memory_equal(wide.input.bytes, tall.input.bytes, 3 * 384 * 192);
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    key_of(&demo, &wide.medium, NULL, keys[0]);
    key_of(&demo, &tall.medium, NULL, keys[1]);
    options.preprocess.max_pixels = 66000;
    key_of(&demo, &wide.medium, &options, keys[2]);
    options.preprocess.max_pixels = 0;
    options.preprocess.preset = QVL_PRESET_MLX;
    key_of(&demo, &wide.medium, &options, keys[3]);
    /* The same file with two policies for what is transparent. */
    qvl_input file = {.kind = QVL_INPUT_FILE, .name = QVL_FIXTURES "/media/rgba_8.png"};
    qvl_medium clear = {.kind = QVL_MEDIUM_IMAGE, .input = &file};
    qvl_prompt_options_init(&options);
    key_of(&demo, &clear, &options, keys[4]);
    options.preprocess.media.alpha = QVL_ALPHA_DROP;
    key_of(&demo, &clear, &options, keys[5]);
    for (int i = 0; i < KEYS; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
    key_of(&demo, &wide.medium, NULL, again);
    assert_string_equal(again, keys[0]);
    free_picture(&wide);
    free_picture(&tall);
}

/* One key an item, which does not depend on its place; the identity of a prompt does. */
static void report_68_a_key_for_each_picture(void **state) {
    (void)state;
    picture pictures[2];
    qvl_medium media[2], swapped[2];
    make_pictures(pictures, media, 2);
    swapped[0] = media[1];
    swapped[1] = media[0];
    const char *one =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"q\"}]}]";
    const char *two = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"image\"},"
                      "{\"type\":\"text\",\"text\":\"q\"}]}]";
    qvl_prompt a = build_media(&demo, one, media, 1, NULL), ab = build_media(&demo, two, media, 2, NULL);
    qvl_prompt ba = build_media(&demo, two, swapped, 2, NULL);
    assert_string_equal(a.items[0].key, ab.items[0].key);
    assert_string_equal(ab.items[0].key, ba.items[1].key);
    assert_string_equal(ab.items[1].key, ba.items[0].key);
    assert_string_not_equal(ab.items[0].key, ab.items[1].key);
    qvl_prompt_free(&a);
    qvl_prompt_free(&ab);
    qvl_prompt_free(&ba);
    for (int i = 0; i < 2; i++) free_picture(&pictures[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_34_slots_and_images_by_message),
        cmocka_unit_test(report_34_pictures_that_a_template_drops),
        cmocka_unit_test(report_35_pads_are_grids),
        cmocka_unit_test(report_37_ids_from_the_folder),
        cmocka_unit_test(report_38_late_system_messages),
        cmocka_unit_test(report_38_unknown_roles),
        cmocka_unit_test(report_40_no_user_query),
        cmocka_unit_test(report_41_strings_and_parts),
        cmocka_unit_test(report_43_videos_and_images_keep_their_places),
        cmocka_unit_test(report_44_pictures_in_company),
        cmocka_unit_test(report_46_time_before_the_marker),
        cmocka_unit_test(report_47_one_block_a_group),
        cmocka_unit_test(report_64_entries_and_positions),
        cmocka_unit_test(report_67_keys_tell_everything_apart),
        cmocka_unit_test(report_68_a_key_for_each_picture),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
