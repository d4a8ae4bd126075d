/* The loop of an answer, with a language model that follows a script: what is reused of a sequence, what ends an
 * answer, its text as it comes, and what is refused. */
#include "answers/scripted_lm.h"
#include "lm/held.h"
#include "prompt/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

/* What a test works with: the random model's words, and a generator whose model follows the script. */
typedef struct stage {
    bench words;
    qvl_lm lm;
    int32_t script[MOST];
    qvl_generator *generator;
    qvl_generate_options options;
    char pieces[512]; /* what the token callback got, "|" between pieces */
    int64_t stop_after;
} stage;

static const qvl_tokenizer *tokenizer_of(const stage *s) {
    return qvl_prompter_tokenizer(s->words.prompter);
}

/* The script: the tokens of a text, special ones too. */
static void set_script(stage *s, const char *text) {
    qvl_tokens tokens;
    assert_int_equal(qvl_tokenize(tokenizer_of(s), text, strlen(text), NULL, &tokens, NULL), QVL_OK);
    assert_true(tokens.count <= MOST);
    memcpy(s->script, tokens.ids, tokens.count * sizeof *s->script);
    scripted_lm_init(&s->lm, s->script, (int64_t)tokens.count);
    qvl_tokens_free(&tokens);
}

static void open_stage(stage *s, const char *script, int64_t max_length) {
    *s = (stage){.words = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, NULL), .stop_after = -1};
    set_script(s, script);
    qvl_sequence_options sequence;
    qvl_sequence_options_init(&sequence);
    sequence.max_length = max_length;
    qvl_error error;
    if (qvl_generator_open(&s->lm, s->words.prompter, &sequence, &s->generator, &error))
        fail_msg("%s", error.message);
    qvl_generate_options_init(&s->options);
}

static void close_stage(stage *s) {
    qvl_generator_close(&s->generator);
    close_bench(&s->words);
}

/* The script starts again. */
static void say_next(stage *s, const char *script) {
    qvl_generator_close(&s->generator);
    set_script(s, script);
    assert_int_equal(qvl_generator_open(&s->lm, s->words.prompter, NULL, &s->generator, NULL), QVL_OK);
}

static bool keep_piece(const qvl_answer_token *token, void *user) {
    stage *s = user;
    assert_int_equal(strlen(token->text), token->byte_count);
    snprintf(s->pieces + strlen(s->pieces), sizeof s->pieces - strlen(s->pieces), "%s|", token->text);
    return s->stop_after < 0 || s->stop_after-- > 0;
}

static qvl_answer answer_of(stage *s, const qvl_prompt *prompt) {
    qvl_answer answer;
    qvl_error error;
    s->pieces[0] = 0;
    s->options.token = keep_piece;
    s->options.token_user = s;
    if (qvl_generate(s->generator, prompt, &s->options, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

static qvl_prompt question(const stage *s) {
    return plan_chat(&s->words, "[{\"role\":\"user\",\"content\":\"What is it?\"}]", NULL);
}

/* ---- what ends an answer */

static void test_stop_tokens(void **state) {
    (void)state;
    static const char *const ends[] = {"<|im_end|>", "<|endoftext|>"};
    for (int i = 0; i < 2; i++) {
        stage s;
        char script[64], calls[64];
        snprintf(script, sizeof script, "the model%s", ends[i]);
        open_stage(&s, script, 0);
        qvl_prompt p = question(&s);
        qvl_answer a = answer_of(&s, &p);
        assert_string_equal(a.text, "the model");
        assert_int_equal(a.finish, QVL_FINISH_TOKEN);
        assert_int_equal(a.count,
                         s.lm.script_count); /* the stop token is one of the answer's ids, not of its text */
        assert_memory_equal(a.ids, s.script, (size_t)a.count * sizeof *a.ids);
        assert_int_equal(a.prompt_tokens, p.length);
        assert_int_equal(a.reused_tokens, 0);
        assert_null(a.logprobs);
        assert_null(a.top);
        /* The stop token itself never goes through the model. */
        snprintf(calls, sizeof calls, "prefill 0 %lld, step %d, ", (long long)p.length, s.script[0]);
        assert_memory_equal(s.lm.calls, calls, strlen(calls));
        qvl_generator_info info;
        qvl_generator_get_info(s.generator, &info);
        assert_int_equal(info.held, p.length + a.count - 1);
        assert_int_equal(info.max_length, 4096);
        qvl_answer_free(&a);
        qvl_prompt_free(&p);
        close_stage(&s);
    }
}

static void test_length(void **state) {
    (void)state;
    stage s;
    open_stage(&s, "the model of the picture", 0);
    qvl_prompt p = question(&s);
    s.options.max_new_tokens = 2;
    qvl_answer a = answer_of(&s, &p);
    assert_int_equal(a.finish, QVL_FINISH_LENGTH);
    assert_int_equal(a.count, 2);
    qvl_answer_free(&a);
    close_stage(&s);
    /* A full sequence ends an answer, too: 3 entries are left for it. */
    open_stage(&s, "the model of the picture", p.length + 3);
    a = answer_of(&s, &p);
    assert_int_equal(a.finish, QVL_FINISH_LENGTH);
    assert_int_equal(a.count, 3);
    qvl_answer_free(&a);
    qvl_prompt_free(&p);
    close_stage(&s);
}

/* A stop string ends the answer before it, however its letters lie in tokens; text that could begin one waits. */
static void test_stop_strings(void **state) {
    (void)state;
    static const struct {
        const char *script, *stops[3], *text;
        qvl_finish finish;
    } cases[] = {
        {"one two three<|im_end|>", {"two"}, "one ", QVL_FINISH_STRING},
        {"one two three<|im_end|>", {"e two thr", "wo"}, "one t", QVL_FINISH_STRING},
        {"one two three<|im_end|>", {"three!", "threes"}, "one two three", QVL_FINISH_TOKEN},
        {"aaaaab<|im_end|>", {"aab"}, "aaa", QVL_FINISH_STRING},
        {"a\xc3\xbc\xe6\x97\xa5z<|im_end|>", {"\xe6\x97\xa5"}, "a\xc3\xbc", QVL_FINISH_STRING},
        {"one<|im_end|>", {"o"}, "", QVL_FINISH_STRING},
        {"one<|im_end|>", {"<|im_end|>"}, "one", QVL_FINISH_TOKEN}, /* special tokens have no text */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        open_stage(&s, cases[i].script, 0);
        qvl_prompt p = question(&s);
        s.options.stop = cases[i].stops;
        while (s.options.stop_count < 3 && cases[i].stops[s.options.stop_count]) s.options.stop_count++;
        qvl_answer a = answer_of(&s, &p);
        assert_string_equal(a.text, cases[i].text);
        assert_int_equal(a.text_length, strlen(cases[i].text));
        assert_int_equal(a.finish, cases[i].finish);
        /* The pieces joined are the text. */
        char joined[512];
        size_t count = 0;
        for (const char *c = s.pieces; *c; c++)
            if (*c != '|') joined[count++] = *c;
        joined[count] = 0;
        assert_string_equal(joined, cases[i].text);
        qvl_answer_free(&a);
        qvl_prompt_free(&p);
        close_stage(&s);
    }
}

/* Pieces are whole characters; one that never ends is U+FFFD, at the end. */
static void test_pieces(void **state) {
    (void)state;
    stage s;
    open_stage(&s,
               "a\xe6\x97\xa5"
               "b<|im_end|>",
               0);
    assert_int_equal(s.lm.script_count, 6);
    qvl_prompt p = question(&s);
    qvl_answer a = answer_of(&s, &p);
    assert_string_equal(s.pieces, "a|||\xe6\x97\xa5|b||");
    assert_string_equal(a.text, "a\xe6\x97\xa5"
                                "b");
    qvl_answer_free(&a);
    say_next(&s, "a\xe6\x97\xa5"
                 "b<|im_end|>");
    s.options.max_new_tokens = 3;
    a = answer_of(&s, &p);
    assert_string_equal(s.pieces, "a||\xef\xbf\xbd|");
    assert_string_equal(a.text, "a\xef\xbf\xbd");
    qvl_answer_free(&a);
    qvl_prompt_free(&p);
    close_stage(&s);
}

/* ---- interruption */

static bool stop_progress(int64_t done, int64_t total, void *user) {
    int64_t *left = user;
    (void)done, (void)total;
    return (*left)-- > 0;
}

static void test_cancelled(void **state) {
    (void)state;
    stage s;
    qvl_generator_info info;
    open_stage(&s, "the model of<|im_end|>", 0);
    qvl_prompt p = question(&s);
    s.stop_after = 1; /* by the token callback, at the second token */
    qvl_answer a = answer_of(&s, &p);
    assert_int_equal(a.finish, QVL_FINISH_CANCELLED);
    assert_string_equal(qvl_finish_name(a.finish), "cancelled");
    assert_int_equal(a.count, 2);
    assert_string_equal(a.text, "the model");
    qvl_answer_free(&a);
    /* By progress: in the prompt, and in the first step. Each goes over two layers. */
    for (int64_t left = 0; left < 4; left++) {
        say_next(&s, "the model of<|im_end|>");
        s.stop_after = -1;
        int64_t calls = left;
        s.options.progress = stop_progress;
        s.options.progress_user = &calls;
        a = answer_of(&s, &p);
        assert_int_equal(a.finish, QVL_FINISH_CANCELLED);
        assert_int_equal(a.count, left < 2 ? 0 : 1);
        assert_string_equal(a.text, left < 2 ? "" : "the");
        qvl_generator_get_info(s.generator, &info);
        assert_int_equal(info.held, left < 2 ? 0 : p.length);
        qvl_answer_free(&a);
    }
    qvl_prompt_free(&p);
    close_stage(&s);
}

/* ---- errors */

static void assert_refused(const stage *s, const qvl_prompt *p, qvl_status status, const char *part) {
    qvl_answer answer;
    qvl_error error = {0};
    assert_int_equal(qvl_generate(s->generator, p, &s->options, &answer, &error), status);
    assert_has(error.message, part);
    assert_null(answer.ids);
    assert_null(answer.text);
    assert_int_equal(answer.count, 0);
}

static void test_errors(void **state) {
    (void)state;
    stage s;
    char part[256];
    open_stage(&s, "the model of the picture<|im_end|>", 0);
    qvl_prompt p = question(&s);
    s.options.max_new_tokens = 4096;
    snprintf(part, sizeof part,
             "the prompt has %lld tokens and the answer may have 4096, together %lld; the sequence "
             "has 4096 entries, which leaves %lld",
             (long long)p.length, (long long)p.length + 4096, (long long)(4096 - p.length));
    assert_refused(&s, &p, QVL_ERROR_LIMIT, part);
    assert_int_equal(qvl_generate_check(s.generator, &p, &s.options, NULL), QVL_ERROR_LIMIT);
    s.options.max_new_tokens = -1;
    assert_refused(&s, &p, QVL_ERROR_ARGUMENT, "max_new_tokens is -1");
    s.options.max_new_tokens = 0;
    s.options.top_logprobs = 21;
    assert_refused(&s, &p, QVL_ERROR_ARGUMENT, "top_logprobs 21");
    s.options.top_logprobs = 0;
    s.options.stop = (const char *const[]){"a", ""};
    s.options.stop_count = 2;
    assert_refused(&s, &p, QVL_ERROR_ARGUMENT, "stop string 2 of 2 is empty");
    s.options.stop = (const char *const[]){"a\xff"};
    s.options.stop_count = 1;
    assert_refused(&s, &p, QVL_ERROR_ARGUMENT, "stop string 1 of 1 is not UTF-8");
    s.options.stop_count = 0;
    s.options.sampling.top_p = 2;
    assert_refused(&s, &p, QVL_ERROR_ARGUMENT, "top_p is 2");
    s.options.sampling.top_p = 1;
    assert_string_equal(s.lm.calls, ""); /* before any work */
    /* A failure in the middle: no answer, and the generator goes on from what it holds. */
    s.lm.nan_at = 1;
    assert_refused(&s, &p, QVL_ERROR_NUMERIC, "the logit of token 0 is");
    say_next(&s, "the model of the picture<|im_end|>");
    s.lm.fail_step = 2;
    s.lm.fail_at_step = QVL_ERROR_NUMERIC;
    assert_refused(&s, &p, QVL_ERROR_NUMERIC, "the step fails");
    qvl_generator_info info;
    qvl_generator_get_info(s.generator, &info);
    assert_int_equal(info.held, p.length + 1);
    s.lm.fail_step = -1;
    qvl_answer a = answer_of(&s, &p);
    assert_int_equal(a.reused_tokens, p.length - 1);
    assert_int_equal(a.finish, QVL_FINISH_TOKEN);
    qvl_answer_free(&a);
    close_stage(&s);
    /* No room for one token. */
    open_stage(&s, "the<|im_end|>", p.length);
    snprintf(part, sizeof part, "the prompt has %lld tokens; a sequence of %lld entries has no room",
             (long long)p.length, (long long)p.length);
    assert_refused(&s, &p, QVL_ERROR_LIMIT, part);
    qvl_prompt_free(&p);
    close_stage(&s);
}

/* ---- what is reused */

static void assert_calls(stage *s, const char *format, long long a, long long b) {
    char calls[256];
    snprintf(calls, sizeof calls, format, a, b);
    if (strncmp(s->lm.calls, calls, strlen(calls)) != 0)
        fail_msg("'%s' does not begin with '%s'", s->lm.calls, calls);
    s->lm.calls[0] = 0;
}

/* The second turn reads what follows the answer, and nothing else. */
static void test_second_turn(void **state) {
    (void)state;
    stage s;
    open_stage(&s, "the model<|im_end|>of<|im_end|>", 0);
    qvl_prompt p = question(&s);
    qvl_answer a = answer_of(&s, &p);
    int64_t held = p.length + a.count - 1;
    qvl_answer_free(&a);
    assert_calls(&s, "prefill 0 %lld, ", p.length, 0);
    qvl_prompt second = plan_chat(
        &s.words,
        "[{\"role\":\"user\",\"content\":\"What is it?\"},{\"role\":\"assistant\",\"content\":\"the model\"},"
        "{\"role\":\"user\",\"content\":\"Of what?\"}]",
        NULL);
    a = answer_of(&s, &second);
    assert_string_equal(a.text, "of");
    assert_int_equal(a.prompt_tokens, second.length);
    assert_int_equal(a.reused_tokens, held);
    assert_int_equal(a.difference, QVL_DIFFERENCE_NONE);
    assert_calls(&s, "prefill %lld %lld, ", held, second.length); /* nothing is cut off */
    qvl_answer_free(&a);
    /* Back to the first turn: the same prompt again, of which the last entry is read for its logits. */
    scripted_lm_init(&s.lm, s.script, 5);
    say_next(&s, "the<|im_end|>the<|im_end|>");
    a = answer_of(&s, &p);
    qvl_answer_free(&a);
    s.lm.calls[0] = 0;
    a = answer_of(&s, &p);
    assert_int_equal(a.reused_tokens, p.length - 1);
    assert_calls(&s, "truncate %lld 0, prefill %lld", p.length - 1, p.length - 1);
    qvl_answer_free(&a);
    qvl_prompt_free(&second);
    qvl_prompt_free(&p);
    close_stage(&s);
}

#define TWO_PICTURES                                                                                              \
    "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"a\"},"                   \
    "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"What is it?\"}]}]"

/* A plan with keys of the test's own: a letter each. */
static qvl_prompt pictures_of(const stage *s, const char *keys) {
    picture pictures[2];
    qvl_medium media[2];
    for (uint32_t i = 0; i < 2; i++) {
        make_picture(&pictures[i], 96, 64, i);
        media[i] = pictures[i].medium;
    }
    qvl_prompt p = plan_media(&s->words, TWO_PICTURES, media, 2, NULL);
    for (size_t i = 0; i < 2; i++) {
        memset(p.items[i].key, keys[i], QVL_KEY_HEX - 1);
        if (keys[i] == '-') p.items[i].key[0] = 0;
        free_picture(&pictures[i]);
    }
    return p;
}

static void test_pictures(void **state) {
    (void)state;
    static const struct {
        const char *first, *second;
        int cut; /* at which picture; 2: at neither */
    } cases[] = {{"ab", "ab", 2}, {"ab", "ac", 1}, {"ab", "cb", 0}, {"ab", "ba", 0},
                 {"aa", "aa", 2}, {"a-", "a-", 1}, {"-b", "-b", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        open_stage(&s, "the<|im_end|>the<|im_end|>", 0);
        qvl_prompt first = pictures_of(&s, cases[i].first), second = pictures_of(&s, cases[i].second);
        qvl_answer a = answer_of(&s, &first);
        qvl_answer_free(&a);
        s.lm.calls[0] = 0;
        a = answer_of(&s, &second);
        int64_t want = cases[i].cut < 2 ? second.items[cases[i].cut].first.index : second.length - 1, delta;
        assert_int_equal(a.reused_tokens, want);
        assert_int_equal(a.difference, cases[i].cut < 2 ? QVL_DIFFERENCE_MEDIA : QVL_DIFFERENCE_NONE);
        assert_int_equal(qvl_prompt_delta_at(&second, (qvl_entry){want}, &delta, NULL), QVL_OK);
        if (cases[i].cut != 0) assert_true(delta < 0);
        assert_calls(&s, "truncate %lld %lld, ", want, delta);
        qvl_answer_free(&a);
        qvl_prompt_free(&first);
        qvl_prompt_free(&second);
        close_stage(&s);
    }
}

/* An end inside a picture goes back to before it, its wrapper and time stamps included. */
static void test_held(void **state) {
    (void)state;
    int64_t ids[10] = {1, 2, 3, 4, 4, 4, 5, 6, 7, 8}, others[10];
    qvl_difference why;
    qvl_prompt_item item = {.kind = QVL_MEDIUM_IMAGE, .first = {2}, .last = {6}, .key = "k"}, other_item = item;
    qvl_prompt p = {.length = 10, .input_ids = ids, .item_count = 1, .items = &item}, other = p;
    qvl_held held = {0};
    assert_int_equal(qvl_held_common(&held, &p, &why), 0);
    assert_int_equal(qvl_held_reserve(&held, &p, 2, NULL), QVL_OK);
    qvl_held_add(&held, &p);
    qvl_held_push(&held, 9);
    assert_int_equal(held.count, 11);
    assert_int_equal(qvl_held_common(&held, &p, &why), 9); /* the last entry is always read */
    assert_int_equal(why, QVL_DIFFERENCE_NONE);
    other.input_ids = others;
    other.items = &other_item;
    for (int64_t at = 0; at < 10; at++) {
        memcpy(others, ids, sizeof ids);
        others[at] = 77;
        assert_int_equal(qvl_held_common(&held, &other, &why), at > 2 && at <= 6 ? 2 : at < 9 ? at : 9);
        assert_int_equal(why, at < 9 ? QVL_DIFFERENCE_TEXT : QVL_DIFFERENCE_NONE);
    }
    memcpy(others, ids, sizeof ids);
    other.length = 6; /* it ends inside */
    assert_int_equal(qvl_held_common(&held, &other, &why), 2);
    other.length = 10;
    other_item.kind = QVL_MEDIUM_VIDEO;
    assert_int_equal(qvl_held_common(&held, &other, &why), 2);
    assert_int_equal(why, QVL_DIFFERENCE_MEDIA);
    other_item = item;
    other_item.last.index = 7;
    assert_int_equal(qvl_held_common(&held, &other, &why), 2);
    /* Cut before the picture, then the prompt again. */
    qvl_held_truncate(&held, 2);
    assert_int_equal(held.item_count, 0);
    assert_int_equal(qvl_held_common(&held, &p, &why), 2);
    qvl_held_add(&held, &p);
    assert_int_equal(held.item_count, 1);
    assert_int_equal(qvl_held_common(&held, &p, &why), 9);
    qvl_held_truncate(&held, 7);
    assert_int_equal(held.item_count, 1);
    qvl_held_free(&held);
}

/* ---- what comes with the tokens */

static void test_logprobs(void **state) {
    (void)state;
    stage s;
    open_stage(&s, "the model<|im_end|>", 0);
    qvl_prompt p = question(&s);
    s.options.logprobs = true;
    s.options.top_logprobs = 3;
    qvl_answer a = answer_of(&s, &p);
    assert_int_equal(a.top_count, 3);
    double sum = 0.0;
    for (int id = 0; id < 512; id++) sum += exp(id == s.script[0] ? 10.0 : id % 7 - 4.0);
    assert_true(fabs((double)a.logprobs[0] - (10.0 - log(sum))) < 1e-6);
    for (int64_t i = 0; i < a.count; i++) {
        assert_int_equal(a.top[3 * i].id, s.script[i]); /* the most likely one was said */
        assert_true(a.top[3 * i].logprob == a.logprobs[i]);
        assert_true(a.top[3 * i + 1].logprob < a.logprobs[i] &&
                    a.top[3 * i + 1].logprob == a.top[3 * i + 2].logprob);
        assert_true(a.top[3 * i + 1].id < a.top[3 * i + 2].id);
    }
    assert_true(a.first_token_seconds >= a.prefill_seconds && a.decode_seconds >= 0);
    qvl_answer_free(&a);
    qvl_prompt_free(&p);
    close_stage(&s);
}

/* What stands for pictures never comes out, however likely it is; what ends an answer does. */
static void test_never(void **state) {
    (void)state;
    static const char *const never[] = {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>",
                                        "<|vision_pad|>"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        stage s;
        char script[64];
        snprintf(script, sizeof script, "the%s<|im_end|>", never[i]);
        open_stage(&s, script, 0);
        qvl_prompt p = question(&s);
        qvl_answer a = answer_of(&s, &p);
        assert_int_equal(a.count, 3);
        assert_int_equal(a.ids[0], s.script[0]);
        assert_int_equal(a.ids[1], 6); /* the next best: the first of those with 6 % 7 */
        assert_int_equal(a.ids[2], s.script[2]);
        qvl_answer_free(&a);
        qvl_prompt_free(&p);
        close_stage(&s);
    }
}

/* The penalty sees the prompt's tokens, and those said. */
static void test_penalties(void **state) {
    (void)state;
    stage s;
    open_stage(&s, "zzzz<|im_end|>", 0);
    qvl_prompt p = question(&s);
    s.options.sampling.presence_penalty = 9;
    s.options.max_new_tokens = 3;
    qvl_answer a = answer_of(&s, &p);
    assert_int_equal(a.ids[0], s.script[0]);
    assert_int_equal(a.ids[1], 6); /* 10 - 9 is less than 2 */
    assert_int_equal(a.ids[2], 13);
    qvl_answer_free(&a);
    qvl_prompt_free(&p);
    close_stage(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_tokens), cmocka_unit_test(test_length),    cmocka_unit_test(test_stop_strings),
        cmocka_unit_test(test_pieces),      cmocka_unit_test(test_cancelled), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_second_turn), cmocka_unit_test(test_pictures),  cmocka_unit_test(test_held),
        cmocka_unit_test(test_logprobs),    cmocka_unit_test(test_never),     cmocka_unit_test(test_penalties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
