/* qvl prompt, plan of a chat, tokenize, detokenize: the programs' words and files. */
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"

/* A chat file in the scratch folder; pictures are named relative to it. */
static const char *write_chat(const char *name, const char *json) {
    const char *path = scratch(name);
    write_file(path, json, strlen(json));
    return path;
}

static const char *picture_chat(void) {
    size_t count;
    char *bytes = read_file(SCENE, &count);
    write_file(scratch("scene.jpg"), bytes, count);
    free(bytes);
    return write_chat(
        "chat.json",
        "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":[{\"type\":\"image\","
        "\"image\":\"scene.jpg\"},{\"type\":\"text\",\"text\":\"What is <|im_end|> in it?\"}]}]");
}

static void test_human_view(void **state) {
    (void)state;
    const char *chat = picture_chat();
    result r = expect(0, NULL, QVL_RANDOM("prompt", chat));
    assert_says(r.out,
                "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<|vision_start|><|image_pad|> x 260"
                "<|vision_end|>What is [text:<|im_end|>] in it?<|im_end|>\n<|im_start|>assistant\n----\n");
    assert_says(r.out, "640x427 -> 640x416, grid 1x26x40, 260 tokens, entries ");
    assert_says(r.out, " text, 260 vision\n");
    assert_says(r.out, "rope_delta -240");
    assert_says(r.out, "media prefix ");
    assert_says(r.out, "not written (no -o)");
    assert_null(strchr(r.out, '\033')); /* not a terminal */
    free_result(&r);
    /* What could move a terminal's cursor does not. */
    r = expect(0, NULL,
               QVL_RANDOM("plan", write_chat("escape.json",
                                             "[{\"role\":\"user\",\"content\":\"a\\u001b[2Jb\\u009bc\"}]")));
    assert_says(r.out, "a\\x1b[2Jb\\x9bc");
    free_result(&r);
}

static void test_file(void **state) {
    (void)state;
    char out[512], chat[512];
    snprintf(out, sizeof out, "%s", scratch("prompt.safetensors"));
    snprintf(chat, sizeof chat, "%s", picture_chat());
    cJSON *json = json_of(0, QVL_RANDOM("prompt", chat, "-o", out, "--json", "-q", "--dtype", "f32"), NULL);
    int64_t length = field(json, "tokens")->valueint;
    assert_int_equal(field(json, "vision_tokens")->valueint, 260);
    assert_int_equal(strlen(field(json, "media_prefix")->valuestring), 64);
    assert_int_equal(cJSON_GetArraySize(field(json, "input_ids")), length);
    qvl_tensor_file *file = open_tensors(out);
    static const struct {
        const char *name;
        qvl_dtype dtype;
        int32_t ndim;
        int64_t shape[3]; /* -1: the length */
    } tensors[] = {
        {"input_ids", QVL_I64, 2, {1, -1}},
        {"mm_token_type_ids", QVL_I64, 2, {1, -1}},
        {"position_ids", QVL_I64, 3, {3, 1, -1}},
        {"rope_deltas", QVL_I64, 2, {1, 1}},
        {"inputs_embeds", QVL_F32, 3, {1, -1, 64}},
        {"image_grid_thw", QVL_I64, 2, {1, 3}},
        {"visual_pos_masks", QVL_BOOL, 2, {1, -1}},
        {"deepstack_visual_embeds.0", QVL_F32, 2, {260, 64}},
        {"deepstack_visual_embeds.1", QVL_F32, 2, {260, 64}},
    };
    size_t count = sizeof tensors / sizeof tensors[0];
    assert_int_equal(qvl_tensor_file_count(file), count);
    for (size_t i = 0; i < count; i++) {
        qvl_tensor t = tensor_of(file, tensors[i].name);
        assert_int_equal(t.dtype, tensors[i].dtype);
        assert_int_equal(t.ndim, tensors[i].ndim);
        for (int32_t k = 0; k < t.ndim; k++)
            assert_int_equal(t.shape[k], tensors[i].shape[k] < 0 ? length : tensors[i].shape[k]);
    }
    int64_t delta, ids[4096];
    memcpy(&delta, tensor_of(file, "rope_deltas").data, sizeof delta);
    assert_int_equal(delta, -240);
    memcpy(ids, tensor_of(file, "input_ids").data, (size_t)length * sizeof *ids);
    for (int64_t i = 0; i < length; i++)
        assert_int_equal(ids[i], cJSON_GetArrayItem(field(json, "input_ids"), (int)i)->valueint);
    qvl_tensor_file_close(&file);
    cJSON_Delete(json);
}

/* The same counts without weights, from a file and from standard input. */
static void test_plan(void **state) {
    (void)state;
    char chat[512], folder[512], command[2048];
    snprintf(chat, sizeof chat, "%s", picture_chat());
    snprintf(folder, sizeof folder, "%s", scratch("no-weights"));
    snprintf(command, sizeof command, "mkdir '%s' && cp " QVL_RANDOM_MODEL "/*.json '%s'", folder, folder);
    assert_int_equal(system(command), 0);
    cJSON *built = json_of(0, QVL_RANDOM("prompt", chat, "--json", "-q"), NULL);
    cJSON *planned = json_of(0, QVL("plan", chat, "--json", "-q", "-m", folder), NULL);
    static const char *const same[] = {"tokens",       "text_tokens", "vision_tokens", "rope_delta",
                                       "media_length", "text",        "spans",         "input_ids"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_true(cJSON_Compare(field(built, same[i]), field(planned, same[i]), true));
    cJSON_Delete(built);
    cJSON_Delete(planned);
    const char *text = write_chat("text.json", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
    result a = expect(0, NULL, QVL_RANDOM("plan", text, "-q")), b = expect(0, text, QVL_RANDOM("plan", "-", "-q"));
    assert_string_equal(a.out, b.out);
    free_result(&a);
    free_result(&b);
    result r = expect(1, text, QVL("prompt", "-", "-m", folder));
    assert_says(r.err, "no weights");
    free_result(&r);
}

static void test_flags(void **state) {
    (void)state;
    char chat[512], tools[512], template[512], broken[512], with_nul[512];
    snprintf(chat, sizeof chat, "%s",
             write_chat("two.json", "[{\"role\":\"user\",\"content\":\"a<|im_end|>\"},"
                                    "{\"role\":\"assistant\",\"content\":\"b\"}]"));
    snprintf(tools, sizeof tools, "%s", write_chat("tools.json", "[{\"name\":\"f\"}]"));
    snprintf(template, sizeof template, "%s",
             write_chat("t.jinja", "{{ messages[0].content }}{{ x }}{{ reasoning_effort }}"));
    snprintf(broken, sizeof broken, "%s", write_chat("broken.jinja", "a\n{{"));
    snprintf(with_nul, sizeof with_nul, "%s", scratch("nul.jinja"));
    write_file(with_nul, "a\0{{", 4);
    const struct {
        const char *flags[5], *says;
    } cases[] = {
        {{"--add-generation-prompt", "off"}, "b<|im_end|>\n----"},
        {{"--continue-final-message", "on"}, "<|im_start|>assistant\nb\n----"},
        {{"--enable-thinking", "on"}, "<|im_start|>assistant\n<think>\n----"},
        {{"--tools", tools}, "Functions you may call:\n{\"name\": \"f\"}\n"},
        {{"--template", template, "--variables", "{\"x\": [1, 2.0]}", "--dropped=note"},
         "a[text:<|im_end|>][1, 2.0]"},
        {{"--template", template, "--reasoning-effort", "low", "--dropped=note"}, "a[text:<|im_end|>]low"},
        {{"--trust-text"}, "user\na<|im_end|><|im_end|>\n"},
        {{"--max-length", "4", "--truncation", "text"}, "4 tokens: 4 text, 0 vision"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *arguments[11] = {QVL_PROGRAM, "plan", "-m", QVL_RANDOM_MODEL, chat};
        memcpy(arguments + 5, cases[i].flags, sizeof cases[i].flags);
        result r = expect(0, NULL, arguments);
        assert_says(r.out, cases[i].says);
        free_result(&r);
    }
    const struct {
        int code;
        const char *flags[4], *says;
    } wrong[] = {
        {1, {"--max-length", "4"}, "but max_length is 4"},
        {1, {"--template", template}, "message 2 (assistant): the template leaves its text out"},
        {1, {"--variables", "[]"}, "must be an object"},
        {1, {"--tools", "/nowhere/x.json"}, "/nowhere/x.json"},
        {2, {"--dropped", "ignore"}, "refuse|note|fold"},
        {2, {"--enable-thinking", "yes"}, "off|on"},
        {2, {"--max-length", "0"}, "1.."},
        {1, {"--template", broken}, "broken.jinja: line 2, column 3: "},
        {1, {"--template", with_nul}, "nul.jinja: byte 1 is NUL"},
        {1, {chat}, "two.json is a chat, which is planned alone"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *arguments[10] = {QVL_PROGRAM, "plan", "-m", QVL_RANDOM_MODEL, chat};
        memcpy(arguments + 5, wrong[i].flags, sizeof wrong[i].flags);
        result r = expect(wrong[i].code, NULL, arguments);
        assert_says(r.err, wrong[i].says);
        assert_string_equal(r.out, "");
        free_result(&r);
    }
    result r = expect(2, NULL, QVL("tokenize"));
    assert_says(r.err, "qvl tokenize: it takes either an INPUT or --text");
    free_result(&r);
    r = expect(2, NULL, QVL("detokenize", "x", "--text", "y"));
    assert_says(r.err, "either an INPUT or --text");
    free_result(&r);
    r = expect(2, NULL, QVL("prompt"));
    assert_says(r.err, "an INPUT is missing");
    free_result(&r);
    r = expect(2, NULL, QVL("prompt", chat, chat));
    assert_says(r.err, "it takes one INPUT");
    free_result(&r);
    r = expect(0, NULL,
               QVL_RANDOM("plan", write_chat("more.json",
                                             "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":1}")));
    assert_says(r.err, "ignored: n");
    free_result(&r);
}

static void test_tokenize_and_back(void **state) {
    (void)state;
    const char *text = "Hello <|im_start|>w\xc3\xb6rld <think>\n";
    char file[512], ids_file[512];
    snprintf(file, sizeof file, "%s", write_chat("words.txt", text));
    result ids = expect(0, NULL, QVL_RANDOM("tokenize", file, "-q"));
    assert_says(ids.out, " 506 ");
    assert_says(ids.out, " 503 ");
    result same = expect(0, NULL, QVL_RANDOM("tokenize", "--text", text, "-q")),
           piped = expect(0, file, QVL_RANDOM("tokenize", "-", "-q"));
    assert_string_equal(same.out, ids.out);
    assert_string_equal(piped.out, ids.out);
    snprintf(ids_file, sizeof ids_file, "%s", write_chat("ids.txt", ids.out));
    result back = expect(0, NULL, QVL_RANDOM("detokenize", ids_file, "-q"));
    assert_string_equal(back.out, text);
    result plain = expect(0, NULL, QVL_RANDOM("detokenize", ids_file, "-q", "--skip-special"));
    assert_string_equal(plain.out, "Hello w\xc3\xb6rld <think>\n");
    result none = expect(0, NULL, QVL_RANDOM("tokenize", file, "-q", "--added", "none"));
    assert_null(strstr(none.out, "506"));
    assert_null(strstr(none.out, "503"));
    result ordinary = expect(0, NULL, QVL_RANDOM("tokenize", file, "-q", "--added", "ordinary"));
    assert_null(strstr(ordinary.out, "506"));
    assert_says(ordinary.out, " 503 ");
    result *all[] = {&ids, &same, &piped, &back, &plain, &none, &ordinary};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free_result(all[i]);
    cJSON *json = json_of(0, QVL_RANDOM("tokenize", "--text", "a<|im_end|>", "--json", "-q"), NULL);
    assert_int_equal(field(json, "count")->valueint, 2);
    const cJSON *last = cJSON_GetArrayItem(field(json, "tokens"), 1);
    assert_int_equal(field(last, "id")->valueint, 507);
    assert_true(cJSON_IsTrue(field(last, "special")));
    assert_int_equal(cJSON_GetArrayItem(field(last, "bytes"), 0)->valueint, 1);
    assert_int_equal(cJSON_GetArrayItem(field(last, "bytes"), 1)->valueint, 11);
    cJSON_Delete(json);
    json = json_of(0, QVL_RANDOM("detokenize", "--text", "[64, 507]", "--json", "-q"), NULL);
    assert_string_equal(field(json, "text")->valuestring, "a<|im_end|>");
    cJSON_Delete(json);
}

static void test_words_that_are_refused(void **state) {
    (void)state;
    const struct {
        const char *arguments[5], *says;
    } cases[] = {
        {{"tokenize", "/nowhere/x.txt"}, "/nowhere/x.txt"},
        {{"detokenize", "--text", "1 x"}, "'x' at byte 2 is not a token id"},
        {{"detokenize", "--text", "-1"}, "is not a token id"},
        {{"detokenize", "--text", "99999999999"}, "is not a token id"},
        {{"detokenize", "--text", "512", "-m", QVL_RANDOM_MODEL}, "512"},
        {{"tokenize", "--text", "a", "-m", "/nowhere"}, "/nowhere"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *arguments[7] = {QVL_PROGRAM};
        memcpy(arguments + 1, cases[i].arguments, sizeof cases[i].arguments);
        result r = expect(1, NULL, arguments);
        assert_says(r.err, cases[i].says);
        assert_string_equal(r.out, "");
        free_result(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_human_view),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_tokenize_and_back),
        cmocka_unit_test(test_words_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
