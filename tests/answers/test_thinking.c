/* Thinking, with a language model that follows a script and a published template: told apart from the answer however it
 * begins and ends, fed back as the template wants it, and reached by the switches of the template. */
#include "answers/scripted_lm.h"
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct stage {
    bench words;
    char *template;
    qvl_lm lm;
    int32_t script[MOST];
    qvl_generator *generator;
    char thoughts[512], said[512]; /* pieces of the two, "|" between them */
} stage;

/* The script: the tokens of a text, special ones too. */
static void open_stage(stage *s, const char *template, const char *script) {
    *s = (stage){.template = published_template(template)};
    s->words = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, s->template);
    qvl_tokens tokens;
    const qvl_tokenizer *tokenizer = qvl_prompter_tokenizer(s->words.prompter);
    assert_int_equal(qvl_tokenize(tokenizer, script, strlen(script), NULL, &tokens, NULL), QVL_OK);
    assert_true(tokens.count <= MOST);
    memcpy(s->script, tokens.ids, tokens.count * sizeof *s->script);
    scripted_lm_init(&s->lm, s->script, (int64_t)tokens.count);
    qvl_tokens_free(&tokens);
    qvl_error error;
    if (qvl_generator_open(&s->lm, s->words.prompter, NULL, &s->generator, &error)) fail_msg("%s", error.message);
}

static void close_stage(stage *s) {
    qvl_generator_close(&s->generator);
    close_bench(&s->words);
    free(s->template);
}

static bool keep_piece(const qvl_answer_token *token, void *user) {
    stage *s = user;
    char *to = token->thinking ? s->thoughts : s->said;
    assert_int_equal(strlen(token->text), token->byte_count);
    if (token->byte_count) snprintf(to + strlen(to), sizeof s->said - strlen(to), "%s|", token->text);
    return true;
}

static qvl_answer answer_of(stage *s, const qvl_prompt *prompt, int64_t tokens, const char *stop) {
    qvl_generate_options options;
    qvl_generate_options_init(&options);
    options.token = keep_piece;
    options.token_user = s;
    options.max_new_tokens = tokens;
    options.stop = &stop;
    options.stop_count = stop ? 1 : 0;
    s->thoughts[0] = s->said[0] = 0;
    qvl_answer answer;
    qvl_error error;
    if (qvl_generate(s->generator, prompt, &options, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

static qvl_prompt question(const stage *s, int32_t enable) {
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.enable_thinking = enable;
    return plan_chat(&s->words, "[{\"role\":\"user\",\"content\":\"What is it?\"}]", &options);
}

/* Without the bars that keep_piece puts between pieces. */
static void assert_pieces(const char *pieces, const char *text) {
    char joined[512];
    size_t n = 0;
    for (const char *p = pieces; *p; p++)
        if (*p != '|') joined[n++] = *p;
    joined[n] = 0;
    assert_string_equal(joined, text);
}

typedef struct expectation {
    const char *template, *script;
    int32_t enable;
    int64_t tokens; /* 0: all of the script */
    const char *stop, *reasoning, *text;
} expectation;

static const expectation expectations[] = {
    /* The template opens the thinking; newlines round the marks are of neither part. */
    {"qwen3.5.jinja", "first the picture\n</think>\n\nthe model<|im_end|>", 1, 0, NULL, "first the picture",
     "the model"},
    {"qwen3.8.jinja", "first the picture\n</think>\n\nthe model<|im_end|>", -1, 0, NULL, "first the picture",
     "the model"},
    /* It closes it at once: everything is the answer, newlines at its beginning too. */
    {"qwen3.5.jinja", "\nthe model<|im_end|>", 0, 0, NULL, NULL, "\nthe model"},
    /* Thinking that never ends is no answer. */
    {"qwen3.5.jinja", "first the picture of the model", 1, 3, NULL, "", ""},
    {"qwen3.5.jinja", "first the picture<|im_end|>", 1, 0, NULL, "first the picture", ""},
    /* Nothing thought. */
    {"qwen3.5.jinja", "\n</think>\n\nthe model<|im_end|>", 1, 0, NULL, NULL, "the model"},
    /* The model opens it itself; a second time it is text. */
    {"qwen3-vl-instruct.jinja", "<think>\nfirst\n</think>\nthe <think> model</think><|im_end|>", -1, 0, NULL,
     "first", "the <think> model</think>"},
    /* Without a mark before it, the closing one is text. */
    {"qwen3-vl-instruct.jinja", "first</think>the model<|im_end|>", -1, 0, NULL, NULL, "first</think>the model"},
    /* A stop string is looked for in each part, and never across the mark. */
    {"qwen3.5.jinja", "the picture</think>the model of<|im_end|>", 1, 0, "rethe", "the picture", "the model of"},
    {"qwen3.5.jinja", "the picture</think>the model of<|im_end|>", 1, 0, "del", "the picture", "the mo"},
    {"qwen3.5.jinja", "the picture</think>the model of<|im_end|>", 1, 0, "ict", "the p", ""},
};

static void test_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const expectation *e = &expectations[i];
        stage s;
        open_stage(&s, e->template, e->script);
        qvl_prompt p = question(&s, e->enable);
        qvl_answer a = answer_of(&s, &p, e->tokens, e->stop);
        if (strcmp(a.text, e->text) != 0) fail_msg("%s: \"%s\"", e->script, a.text);
        assert_int_equal(a.text_length, strlen(a.text));
        if (!e->reasoning)
            assert_null(a.reasoning);
        else if (*e->reasoning || !e->tokens) {
            assert_non_null(a.reasoning);
            assert_string_equal(a.reasoning, e->reasoning);
            assert_int_equal(a.reasoning_length, strlen(a.reasoning));
        } else { /* cut off: whatever there is, all of it thought */
            assert_true(a.reasoning_length > 0);
        }
        assert_pieces(s.said, a.text);
        if (a.reasoning) assert_memory_equal(s.thoughts, a.reasoning, 1);
        if (a.reasoning && !strchr(e->script, '\n')) assert_pieces(s.thoughts, a.reasoning);
        qvl_answer_free(&a);
        qvl_prompt_free(&p);
        close_stage(&s);
    }
}

/* What a client gets from an answer it puts into the next chat: with preserve_thinking the next prompt goes on exactly
 * where the sequence stands, without it the thoughts are left out and reading starts at the answer's header. */
static void test_fed_back(void **state) {
    (void)state;
    static const char script[] = "first the picture\n</think>\n\nthe model<|im_end|>the<|im_end|>";
    for (int32_t preserve = 0; preserve <= 1; preserve++) {
        stage s;
        char json[512];
        open_stage(&s, "qwen3.6.jinja", script);
        qvl_prompt p = question(&s, 1);
        qvl_answer a = answer_of(&s, &p, 0, NULL);
        snprintf(json, sizeof json,
                 "[{\"role\":\"user\",\"content\":\"What is "
                 "it?\"},{\"role\":\"assistant\",\"reasoning_content\":\"%s\","
                 "\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"Why?\"}]",
                 a.reasoning, a.text);
        qvl_prompt_options options;
        qvl_prompt_options_init(&options);
        options.preserve_thinking = preserve;
        qvl_prompt next = plan_chat(&s.words, json, &options);
        if (preserve)
            assert_has(next.text, "<think>\nfirst the picture\n</think>\n\nthe model<|im_end|>");
        else
            assert_lacks(next.text, "first the picture");
        qvl_answer b = answer_of(&s, &next, 0, NULL);
        int64_t held = p.length + a.count - 1; /* the stop token never went through the model */
        if (preserve)
            assert_int_equal(b.reused_tokens, held);
        else
            assert_true(b.reused_tokens < p.length && b.reused_tokens >= p.length - 4);
        qvl_answer_free(&a);
        qvl_answer_free(&b);
        qvl_prompt_free(&p);
        qvl_prompt_free(&next);
        close_stage(&s);
    }
}

static void test_switches_reach_the_template(void **state) {
    (void)state;
    char *text = published_template("qwen3.8.jinja");
    bench words = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, text);
    static const char chat[] = "[{\"role\":\"user\",\"content\":\"What is it?\"}]";
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.reasoning_effort = "low";
    qvl_prompt p = plan_chat(&words, chat, &options);
    assert_has(p.text, "Reasoning effort is set to low");
    assert_has(p.text, "<|im_start|>assistant\n<think>\n");
    assert_lacks(p.text, "</think>");
    qvl_prompt_free(&p);
    options.enable_thinking = 0;
    p = plan_chat(&words, chat, &options);
    assert_has(p.text, "<|im_start|>assistant\n<think>\n\n</think>\n\n");
    qvl_prompt_free(&p);
    close_bench(&words);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_fed_back),
        cmocka_unit_test(test_switches_reach_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
