/* qvl ask: its inputs, its words and its numbers. */
#include "cli/models.h"
#include "cli/pictures.h"
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"

static const char *model; /* that never ends an answer by itself */

static int open_model(void **state) {
    (void)state;
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", make_endless_model("endless"));
    model = folder;
    return 0;
}

#define ASK(...) QVL("ask", "-m", model, __VA_ARGS__)

/* What it says on standard output. Owner: the caller, free(). */
static char *text_of(const char *const *arguments, const char *input) {
    result r = expect(0, input, arguments);
    char *text = r.out;
    free(r.err);
    return text;
}

static void assert_same_text(const char *const *a, const char *a_input, const char *const *b,
                             const char *b_input) {
    char *one = text_of(a, a_input), *other = text_of(b, b_input);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

static void test_answer(void **state) {
    (void)state;
    result r = expect(0, NULL, ASK(SCENE, "What is on the table?", "--max-new-tokens", "12"));
    assert_says(r.err, "note: prompt of 286 tokens, 0 reused, 286 read in ");
    assert_says(r.err, "; first token after ");
    assert_says(r.err, "; 12 tokens at ");
    assert_says(r.err, ", ended by the limit of its length\n");
    cJSON *json = json_of(0, ASK(SCENE, "What is on the table?", "--max-new-tokens", "12", "--json"), NULL);
    const cJSON *usage = field(json, "usage"), *details = field(usage, "prompt_tokens_details"), *timings;
    char line[4096];
    snprintf(line, sizeof line, "%s\n", field(json, "text")->valuestring);
    assert_string_equal(r.out, line);
    assert_int_equal(cJSON_GetArraySize(field(json, "ids")), 12);
    assert_string_equal(field(json, "finish_reason")->valuestring, "length");
    assert_int_equal(field(usage, "prompt_tokens")->valueint, 286);
    assert_int_equal(field(usage, "completion_tokens")->valueint, 12);
    assert_int_equal(field(usage, "total_tokens")->valueint, 298);
    assert_int_equal(field(details, "cached_tokens")->valueint, 0);
    assert_int_equal(field(details, "vision_tokens")->valueint, 260);
    timings = field(json, "timings");
    double first = field(timings, "first_token_seconds")->valuedouble;
    assert_true(first >=
                field(timings, "prompt_seconds")->valuedouble + field(timings, "prefill_seconds")->valuedouble);
    assert_true(field(timings, "tokens_per_second")->valuedouble > 0 &&
                field(timings, "open_seconds")->valuedouble > 0);
    assert_true(cJSON_IsFalse(field(field(json, "sampling"), "do_sample")));
    assert_null(cJSON_GetObjectItem(json, "logprobs"));
    cJSON_Delete(json);
    free_result(&r);
    r = expect(0, NULL, ASK("Hello", "--max-new-tokens", "2", "-q"));
    assert_string_equal(r.err, "");
    free_result(&r);
}

/* What usage says about the cache and a picture; NULL: nothing. */
static void assert_cached(const cJSON *json, int picture, int tokens, const char *word) {
    const cJSON *entry = cJSON_GetArrayItem(field(field(json, "usage"), "media"), picture);
    const cJSON *cache = field(entry, "cache");
    assert_int_equal(field(entry, "tokens")->valueint, tokens);
    if (!word) assert_true(cJSON_IsNull(cache));
    if (word) assert_string_equal(cache->valuestring, word);
}

/* Each picture is spoken of by itself. */
static void test_cache_of_two(void **state) {
    (void)state;
    char one[512], other[512], note[1200];
    snprintf(one, sizeof one, "%s", scratch("one.png"));
    snprintf(other, sizeof other, "%s", scratch("other.png"));
    write_png(one, 320, 256);
    write_png(other, 512, 160);
    result r = expect(0, NULL, ASK(one, "What is it?", "--max-new-tokens", "2"));
    snprintf(note, sizeof note, "note: %s: 80 tokens, encoded\nnote: prompt of ", one);
    assert_says(r.err, note);
    free_result(&r);
    cJSON *json = json_of(0, ASK(one, other, "What are they?", "--json", "-q", "--max-new-tokens", "2"), NULL);
    assert_string_equal(field(cJSON_GetArrayItem(field(field(json, "usage"), "media"), 1), "input")->valuestring,
                        other);
    assert_cached(json, 0, 80, "hit");
    assert_cached(json, 1, 80, "miss");
    cJSON_Delete(json);
    write_png(other, 640, 128);
    r = expect(0, NULL, ASK(one, other, "What are they?", "--max-new-tokens", "2"));
    snprintf(note, sizeof note, "note: %s: 80 tokens, found in the cache; %s: 80 tokens, encoded\n", one, other);
    assert_says(r.err, note);
    free_result(&r);
    r = expect(0, NULL, ASK("Hello", "--max-new-tokens", "2"));
    assert_int_equal(strncmp(r.err, "note: prompt of ", 16), 0);
    free_result(&r);
}

/* A chat file may name pictures as it likes; the terminal gets no control bytes of it. */
static void test_name_with_controls(void **state) {
    (void)state;
    static const char chat[] = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":"
                               "\"red\\u001b[31m\\u007f.png\"},{\"type\":\"text\",\"text\":\"Hello\"}]}]";
    write_png(scratch("red\033[31m\177.png"), 320, 256);
    const char *path = scratch("controls.json");
    write_file(path, chat, strlen(chat));
    result r = expect(0, NULL, ASK(path, "--max-new-tokens", "2"));
    assert_says(r.err, "red?[31m?.png: 80 tokens, ");
    assert_null(strchr(r.err, '\033'));
    free_result(&r);
    r = expect(0, NULL, QVL("prompt", "-m", model, path));
    assert_says(r.out, "red?[31m?.png: 320x256 -> ");
    assert_null(strchr(r.out, '\033'));
    free_result(&r);
}

/* What the cache has is not encoded again, and says the same. */
static void test_cache(void **state) {
    (void)state;
    const char *picture = scratch("cached.png");
    write_png(picture, 320, 200);
#define ONCE picture, "What is it?", "--json", "-q", "--max-new-tokens", "6"
    cJSON *first = json_of(0, ASK(ONCE), NULL), *second = json_of(0, ASK(ONCE), NULL),
          *third = json_of(0, ASK(ONCE, "--no-cache"), NULL);
    assert_int_equal(field(field(first, "tower"), "encoded")->valueint, 1);
    assert_int_equal(field(field(second, "tower"), "encoded")->valueint, 0);
    assert_int_equal(field(field(second, "tower"), "cached")->valueint, 1);
    assert_int_equal(field(field(third, "tower"), "encoded")->valueint, 1);
    assert_cached(first, 0, 77, "miss");
    assert_cached(second, 0, 77, "hit");
    assert_cached(third, 0, 77, NULL);
    assert_string_equal(field(first, "text")->valuestring, field(second, "text")->valuestring);
    assert_string_equal(field(first, "text")->valuestring, field(third, "text")->valuestring);
    cJSON_Delete(first);
    cJSON_Delete(second);
    cJSON_Delete(third);
}

/* The question, the picture and the chat may each come from standard input. */
static void test_inputs(void **state) {
    (void)state;
    const char *chat = scratch("chat.json"), *question = scratch("question.txt");
    static const char json[] = "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":\"" SCENE
                               "\"},{\"type\":\"text\",\"text\":\"What is it?\"}]}]";
    write_file(chat, json, sizeof json - 1);
    write_file(question, "What is it?\n", 12);
#define LIMIT "-q", "--max-new-tokens", "8"
    assert_same_text(ASK(SCENE, "What is it?", LIMIT), NULL, ASK(SCENE, "-", LIMIT), question);
    assert_same_text(ASK(SCENE, "What is it?", LIMIT), NULL, ASK("-", "What is it?", LIMIT), SCENE);
    assert_same_text(ASK(SCENE, "What is it?", LIMIT), NULL, ASK(chat, LIMIT), NULL);
    assert_same_text(ASK(chat, LIMIT), NULL, ASK("-", LIMIT), chat);
    assert_same_text(ASK("What is it?", LIMIT), NULL, ASK("-", LIMIT), question);
    /* The system message is part of the prompt. */
    cJSON *with = json_of(0, ASK("a", LIMIT, "--json", "--system", "Be brief."), NULL),
          *without = json_of(0, ASK("a", LIMIT, "--json"), NULL);
    assert_true(field(field(with, "usage"), "prompt_tokens")->valueint >
                field(field(without, "usage"), "prompt_tokens")->valueint);
    cJSON_Delete(with);
    cJSON_Delete(without);
}

static void test_sampling(void **state) {
    (void)state;
#define WARM "-q", "--max-new-tokens", "24", "--temperature", "1.5", "--top-k", "0"
    assert_same_text(ASK("Hello", WARM, "--seed", "1"), NULL, ASK("Hello", WARM, "--seed", "1", "--threads", "1"),
                     NULL);
    char *texts[4] = {text_of(ASK("Hello", WARM, "--seed", "1"), NULL),
                      text_of(ASK("Hello", WARM, "--seed", "2"), NULL), text_of(ASK("Hello", WARM), NULL),
                      text_of(ASK("Hello", WARM), NULL)};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(texts[i], texts[k]);
    for (int i = 0; i < 4; i++) free(texts[i]);
    /* The seed of the last answer is told, so that it can be had again. */
    cJSON *json = json_of(0, ASK("Hello", WARM, "--json"), NULL);
    char seed[32];
    snprintf(seed, sizeof seed, "%.0f", field(field(json, "sampling"), "seed")->valuedouble);
    cJSON *again = json_of(0, ASK("Hello", WARM, "--json", "--seed", seed), NULL);
    assert_string_equal(field(json, "text")->valuestring, field(again, "text")->valuestring);
    cJSON_Delete(json);
    cJSON_Delete(again);
    /* Greedy is what temperature 0, top-k 1, top-p 0 and min-p 1 give. */
#define SOME "-q", "--max-new-tokens", "8"
    assert_same_text(ASK("Hello", SOME), NULL, ASK("Hello", SOME, "--greedy"), NULL);
    assert_same_text(ASK("Hello", SOME), NULL, ASK("Hello", SOME, "--temperature", "0"), NULL);
    assert_same_text(ASK("Hello", SOME), NULL, ASK("Hello", SOME, "--top-k", "1"), NULL);
    assert_same_text(ASK("Hello", SOME), NULL, ASK("Hello", SOME, "--top-p", "0"), NULL);
    assert_same_text(ASK("Hello", SOME), NULL, ASK("Hello", SOME, "--min-p", "1"), NULL);
    /* A penalty that no token withstands twice. */
    json = json_of(0, ASK("Hello", "--json", "--max-new-tokens", "64", "--presence-penalty", "1000"), NULL);
    const cJSON *a, *b;
    cJSON_ArrayForEach(a, field(json, "ids")) {
        for (b = a->next; b; b = b->next) assert_int_not_equal(a->valueint, b->valueint);
    }
    cJSON_Delete(json);
}

static void test_logprobs_and_stops(void **state) {
    (void)state;
    cJSON *json = json_of(0, ASK("Hello", "--json", "--max-new-tokens", "6", "--logprobs", "3"), NULL);
    const cJSON *entry;
    assert_int_equal(cJSON_GetArraySize(field(json, "logprobs")), 6);
    int i = 0;
    cJSON_ArrayForEach(entry, field(json, "logprobs")) {
        const cJSON *top = field(entry, "top_logprobs");
        assert_int_equal(field(entry, "id")->valueint, cJSON_GetArrayItem(field(json, "ids"), i++)->valueint);
        assert_int_equal(cJSON_GetArraySize(top), 3);
        assert_int_equal(field(top->child, "id")->valueint, field(entry, "id")->valueint); /* greedy */
        assert_true(field(top->child, "logprob")->valuedouble == field(entry, "logprob")->valuedouble);
        assert_true(field(entry, "logprob")->valuedouble < 0);
        assert_true(cJSON_GetArraySize(field(entry, "bytes")) > 0 && field(entry, "token"));
    }
    /* Stopped at what the answer says itself: its last letters. */
    const char *text = field(json, "text")->valuestring;
    size_t length = strlen(text);
    while (length > 1 && ((unsigned char)text[length - 1] & 0xc0) == 0x80) length--;
    const char *stop = text + length - 1;
    cJSON *cut = json_of(
        0, ASK("Hello", "--json", "--max-new-tokens", "6", "--stop", "no such text", "--stop", stop), NULL);
    assert_string_equal(field(cut, "finish_reason")->valuestring, "stop");
    size_t end = (size_t)(strstr(text, stop) - text);
    assert_int_equal(strlen(field(cut, "text")->valuestring), end);
    assert_memory_equal(field(cut, "text")->valuestring, text, end);
    cJSON_Delete(cut);
    cJSON_Delete(json);
}

static void assert_refused(int code, const char *const *arguments, const char *part) {
    result r = expect(code, NULL, arguments);
    assert_string_equal(r.out, "");
    assert_says(r.err, part);
    free_result(&r);
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused(1, ASK(SCENE),
                   "the last argument is the question, but " SCENE " is a file: is the question missing?");
    assert_refused(1, ASK("nothing.png", "What?"), "nothing.png");
    assert_refused(
        1, ASK("a", "--max-new-tokens", "32768"),
        "the answer may have 32768, together 32783; the sequence has 32768 entries, which leaves 32753");
    assert_refused(2, ASK("a", "--greedy", "--top-p", "0.5"), "--greedy leaves nothing for");
    assert_refused(2, ASK("a", "--top-p", "1.5"), "--top-p is '1.5'; allowed is a number in 0..1");
    assert_refused(2, ASK("a", "--temperature", "nan"), "--temperature is 'nan'");
    assert_refused(2, ASK("a", "--logprobs", "3"), "--logprobs needs --json");
    assert_refused(2, ASK("a", "--stop", ""), "--stop is ''");
    assert_refused(2, ASK("-q"), "an INPUT is missing");
    const char *chat = scratch("refused.json");
    write_file(chat, "[]", 2);
    assert_refused(1, ASK(chat, "--system", "Be brief."), "--system goes with a question");
    assert_refused(1, ASK(chat), "There are no messages.");
}

/* Greedy, in f32, transformers' generate() says the same, token for token (tools/oracle/answer_fixtures.py). */
static void test_transformers(void **state) {
    (void)state;
    const char *folder = make_model("plain", &(model_change){0});
    char *text = read_file(QVL_FIXTURES "/answers.json", NULL);
    cJSON *fixture = cJSON_Parse(text);
    const cJSON *wanted;
    int count = 0;
    cJSON_ArrayForEach(wanted, field(fixture, "cases")) {
        char penalty[32];
        snprintf(penalty, sizeof penalty, "%g", field(wanted, "repetition_penalty")->valuedouble);
        const char *question = field(wanted, "question")->valuestring;
        bool picture = cJSON_IsTrue(field(wanted, "picture"));
        cJSON *json =
            json_of(0,
                    QVL("ask", "-m", folder, "--dtype", "f32", "--json", "-q", "--max-new-tokens", "60",
                        "--repetition-penalty", penalty, picture ? SCENE : question, picture ? question : NULL),
                    NULL);
        if (!cJSON_Compare(field(json, "ids"), field(wanted, "ids"), true))
            fail_msg("\"%s\"%s, penalty %s: other tokens", question, picture ? " about the picture" : "", penalty);
        cJSON_Delete(json);
        count++;
    }
    assert_int_equal(count, 8);
    cJSON_Delete(fixture);
    free(text);
}

/* What is wrong with a folder is said, and nothing else. */
static void test_bad_models(void **state) {
    (void)state;
    const char *missing =
        make_model("missing", &(model_change){.without = "model.language_model.layers.1.mlp.up_proj.weight"});
    assert_refused(1, QVL("ask", "-m", missing, "Hello", "-q"), "layers.1.mlp.up_proj.weight");
    const char *broken = make_model("broken", &(model_change){.broken = "model.language_model.norm.weight"});
    assert_refused(1, QVL("ask", "-m", broken, "Hello", "-q"), "finite");
}

/* A stop token ends the bundled model's answers, and its folder says how long they may be. */
static void test_bundled_model(void **state) {
    (void)state;
    cJSON *json = json_of(0, QVL("ask", SCENE, "What is it?", "--json", "-q"), NULL);
    assert_in_range(field(field(json, "usage"), "completion_tokens")->valueint, 1, 4096);
    cJSON_Delete(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_of_two),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_logprobs_and_stops),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_bad_models),
        cmocka_unit_test(test_bundled_model),
        cmocka_unit_test(test_name_with_controls),
    };
    return cmocka_run_group_tests(tests, open_model, NULL);
}
