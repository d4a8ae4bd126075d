/* Every allocation of opening a generator and of two answers is made to fail once: each failure is a reported error, and
 * nothing leaks. The language model follows a script. Not built with sanitizers, which bring their own malloc. */
#include "answers/scripted_lm.h"
#include "base/failing_allocation.h"
#include "prompt/support.h"

#include <stdio.h>
#include <string.h>

static qvl_status answer_twice(const bench *b, qvl_lm *lm, const qvl_prompt *first, const qvl_prompt *second,
                               qvl_error *error) {
    qvl_generator *generator;
    qvl_generate_options options;
    qvl_answer answer;
    const int32_t *script = lm->script;
    scripted_lm_init(lm, script, 200);
    qvl_status status = qvl_generator_open(lm, b->prompter, NULL, &generator, error);
    if (!status) status = qvl_generate_options_read(b->prompter, &options, error);
    if (!status) {
        options.max_new_tokens = 90; /* arrays and text grow */
        options.logprobs = true;
        options.top_logprobs = 2;
        options.stop = (const char *const[]){"never said"};
        options.stop_count = 1;
        status = qvl_generate(generator, first, &options, &answer, error);
    }
    if (!status) {
        assert_int_equal(answer.count, 90);
        qvl_answer_free(&answer);
        status = qvl_generate(generator, second, &options, &answer, error);
    }
    if (!status) {
        assert_true(answer.reused_tokens > 0);
        qvl_answer_free(&answer);
    }
    qvl_generator_close(&generator);
    return status;
}

static void test_all(void **state) {
    (void)state;
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_F32, NULL);
    qvl_prompt first = plan_chat(&b, "[{\"role\":\"user\",\"content\":\"What is it?\"}]", NULL),
               second =
                   plan_chat(&b, "[{\"role\":\"user\",\"content\":\"What is it, and what is behind it?\"}]", NULL);
    static int32_t script[200];
    qvl_lm lm;
    qvl_tokens letter;
    assert_int_equal(qvl_tokenize(qvl_prompter_tokenizer(b.prompter), "abcdef", 6, NULL, &letter, NULL), QVL_OK);
    for (int i = 0; i < 200; i++) script[i] = letter.ids[0];
    qvl_tokens_free(&letter);
    scripted_lm_init(&lm, script, 200);
    qvl_error error = {0};
    assert_int_equal(answer_twice(&b, &lm, &first, &second, &error), QVL_OK);
    long before = live_allocations(), at = 0;
    for (;; at++) {
        allocation_fails_after(at);
        memset(&error, 0, sizeof error);
        qvl_status status = answer_twice(&b, &lm, &first, &second, &error);
        bool failed = !allocation_failure_is_due();
        assert_int_equal(live_allocations(), before);
        if (!failed) {
            assert_int_equal(status, QVL_OK);
            break;
        }
        if (status != QVL_ERROR_MEMORY && status != QVL_ERROR_IO) fail_msg("allocation %ld: %d", at, status);
        assert_true(strlen(error.message) > 0);
    }
    assert_in_range(at, 20, 2000);
    qvl_prompt_free(&first);
    qvl_prompt_free(&second);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
