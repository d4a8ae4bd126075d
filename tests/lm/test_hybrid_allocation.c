/* Every allocation of opening a hybrid model, reading a prompt with snapshots, copying, cutting back and decoding is made
 * to fail once: each failure is a reported error or a snapshot less, nothing leaks, and the sequence is as it was. Not
 * built with sanitizers, which bring their own allocation. */
#include "base/failing_allocation.h"
#include "lm/hybrid.h"
#include "lm/lm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct attempt {
    qvl_model *model;
    qvl_prompt prompt, head;
    float want[64]; /* the logits of what run does when nothing fails */
} attempt;

/* Reads 40 entries, then the rest with marks; goes back to one; reads again in a copy; one step. */
static qvl_status talk(const attempt *a, const qvl_lm *lm, float logits[64], qvl_error *error) {
    static const int64_t marks[] = {50, 60};
    qvl_sequence *q = NULL, *copy = NULL;
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    options.marks = marks;
    options.mark_count = 2;
    qvl_status status = qvl_sequence_open(lm, NULL, &q, error);
    if (!status) status = qvl_sequence_prefill(q, &a->head, 0, NULL, NULL, error);
    if (!status) {
        status = qvl_sequence_prefill(q, &a->prompt, 40, &options, NULL, error);
        if (status) assert_int_equal(qvl_sequence_length(q), 40);
    }
    if (!status) status = qvl_sequence_truncate(q, qvl_sequence_reachable(q, 60), a->prompt.rope_delta, error);
    if (!status) status = qvl_sequence_fork(q, &copy, error);
    if (!status) status = qvl_sequence_prefill(copy, &a->prompt, qvl_sequence_length(copy), NULL, NULL, error);
    if (!status) status = qvl_sequence_step(copy, 7, NULL, logits, error);
    qvl_sequence_close(&q);
    qvl_sequence_close(&copy);
    return status;
}

static qvl_status run(const attempt *a, float logits[64], qvl_error *error) {
    qvl_lm *lm = NULL;
    qvl_status status = qvl_lm_open(a->model, NULL, &lm, error);
    if (!status) status = talk(a, lm, logits, error);
    qvl_lm_close(&lm);
    return status;
}

static void test_allocations(void **state) {
    (void)state;
    lm_case c = open_hybrid("tiny-35moe");
    speaker s = open_speaker(c.folder, QVL_F32, 1, QVL_CPU_ALL);
    attempt a = {.model = s.model, .prompt = hybrid_prompt(&c, "vectors", &s)};
    a.head = prompt_head(&a.prompt, 40);
    qvl_error error = {0};
    if (run(&a, a.want, &error)) fail_msg("%s", error.message);
    long before = live_allocations(), failed = 0, without = 0;
    for (long n = 0;; n++) {
        float logits[64] = {0};
        error = (qvl_error){0};
        allocation_fails_after(n);
        qvl_status status = run(&a, logits, &error);
        bool due = allocation_failure_is_due();
        if (live_allocations() != before)
            fail_msg("allocation %ld failed: %ld blocks leaked (%s)", n, live_allocations() - before,
                     error.message);
        if (status == QVL_OK) {
            assert_memory_equal(logits, a.want, sizeof logits); /* also with a snapshot less */
            if (due) break;
            without++;
            continue;
        }
        failed++;
        if (status != QVL_ERROR_MEMORY || !error.message[0])
            fail_msg("allocation %ld failed: status %s, message '%s'", n, qvl_status_name(status), error.message);
    }
    printf("%ld allocations failed in turn, %ld could be done without\n", failed, without);
    assert_true(failed > 100 && without >= 4); /* two snapshots, two blocks each */
    qvl_prompt_free(&a.prompt);
    close_speaker(&s);
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
