/* Every allocation of opening a prompter and building a prompt with three pictures and a video is made to fail
 * once: each failure is a reported error and nothing leaks, so that a failure at the third picture leaves
 * nothing behind. Not built with sanitizers, which bring their own allocation. */
#define _GNU_SOURCE
#include "base/failing_allocation.h"
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct attempt {
    const qvl_model *model;
    qvl_session *session;
    const qvl_prompter *prompter; /* NULL: it is opened in the attempt */
    qvl_chat chat;
    qvl_prompt_options options;
} attempt;

static qvl_status run(const attempt *a, qvl_error *error) {
    qvl_prompter *own = NULL;
    qvl_prompt prompt = {0};
    qvl_status status = a->prompter ? QVL_OK : qvl_prompter_open(a->model, NULL, &own, error);
    const qvl_prompter *prompter = a->prompter ? a->prompter : own;
    if (!status) status = qvl_prompt_build(a->session, prompter, &a->chat, &a->options, &prompt, error);
    if (status) {
        static const qvl_prompt empty;
        assert_memory_equal(&prompt, &empty, sizeof empty);
    }
    qvl_prompt_free(&prompt);
    qvl_prompter_close(&own);
    return status;
}

static void fail_each_allocation(const attempt *a, long least) {
    qvl_error error = {0};
    if (run(a, &error)) fail_msg("%s", error.message); /* what stays allocated, stays from here */
    long before = live_allocations(), failed = 0;
    for (long n = 0;; n++) {
        error = (qvl_error){0};
        allocation_fails_after(n);
        qvl_status status = run(a, &error);
        bool due = allocation_failure_is_due();
        if (live_allocations() != before)
            fail_msg("allocation %ld failed: %ld blocks leaked (%s)", n, live_allocations() - before,
                     error.message);
        if (due) { /* all have failed once */
            assert_int_equal(status, QVL_OK);
            break;
        }
        if (status == QVL_OK) continue; /* one that something can do without */
        failed++;
        if (status != QVL_ERROR_MEMORY || !error.message[0])
            fail_msg("allocation %ld failed: status %s, message '%s'", n, qvl_status_name(status), error.message);
    }
    printf("%ld allocations failed in turn\n", failed);
    assert_true(failed > least);
}

static const char conversation[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Late "
    "<|im_end|>\"},{\"role\":\"user\",\"content\":[{\"type\":\"image\"},"
    "{\"type\":\"text\",\"text\":\"a "
    "<|im_start|>\"},{\"type\":\"video\"},{\"type\":\"image_url\",\"image_url\":\"scene.jpg\"}]},"
    "{\"role\":\"assistant\",\"reasoning\":\"hm\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{"
    "\"x\":1.0}}}]},"
    "{\"role\":\"tool\",\"content\":[{\"type\":\"image\"}]},{\"role\":\"system\",\"content\":[{\"text\":\"more\"}]"
    "}],"
    "\"tools\":[{\"type\":\"function\"}],\"stream\":true}";

static void test_prompt(void **state) {
    (void)state;
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_F32, NULL);
    picture pictures[2];
    clip video;
    for (uint32_t i = 0; i < 2; i++) make_picture(&pictures[i], 40 + 30 * i, 50, i);
    make_clip(&video, b.model, (qvl_grid){2, 4, 4}, 0.5, 1);
    const qvl_medium media[3] = {pictures[0].medium, video.medium, pictures[1].medium};
    attempt a = {
        .model = b.model, .session = b.session, .prompter = b.prompter, .chat = chat_of(conversation, media, 3)};
    qvl_prompt_options_init(&a.options);
    a.options.preprocess.min_pixels = a.options.preprocess.max_pixels = 4096;
    a.options.dropped = QVL_DROPPED_FOLD;
    a.options.variables_json = "{\"x\": [1, 2.0]}";
    fail_each_allocation(&a, 200);
    free_clip(&video);
    for (int i = 0; i < 2; i++) free_picture(&pictures[i]);
    close_bench(&b);
}

/* A template that needs arguments of tool calls parsed, and looks into text: every rendering there can be. */
static void test_renderings(void **state) {
    (void)state;
    char *text = published_template("qwen3.6.jinja");
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_F32, text);
    attempt a = {
        .model = b.model,
        .session = b.session,
        .prompter = b.prompter,
        .chat =
            chat_of("[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":"
                    "{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1.0}\"}}]},{\"role\":\"user\",\"content\":"
                    "\"<tool_response>4</tool_response>\"},{\"role\":\"assistant\",\"content\":\"Well\"}]",
                    NULL, 0)};
    qvl_prompt_options_init(&a.options);
    a.options.continue_final_message = 1;
    fail_each_allocation(&a, 100);
    close_bench(&b);
    free(text);
}

static void test_prompter(void **state) {
    (void)state;
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_WEIGHTS, QVL_F32, NULL);
    attempt a = {.model = b.model,
                 .session = b.session,
                 .chat = chat_of("[{\"role\":\"user\",\"content\":\"a\"}]", NULL, 0)};
    qvl_prompt_options_init(&a.options);
    fail_each_allocation(&a, 200);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prompt), cmocka_unit_test(test_renderings),
                                       cmocka_unit_test(test_prompter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
