/* What the benchmark of a language model counts: the products that its layers have, the bytes that a step reads. */
#include "lm/prompts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROWS = 20 };

static void check_counts(const char *shape, int64_t elements) {
    speaker s = open_speaker(make_model_folder(shape, "quarter", "f32"), QVL_BF16, 1, QVL_CPU_ALL);
    const qvl_lm_info *info = qvl_lm_get_info(s.lm);
    qvl_lm_times times;
    qvl_error error;
    if (qvl_bench_lm(s.lm, ROWS, 2, &times, &error)) fail_msg("%s", error.message);
    assert_int_equal((int64_t)times.product_flops, 2 * ROWS * elements);
    /* Of the states S, 4 heads of 8 x 8 f32 each, and a part of what there is room for beside them. */
    int64_t states = times.step_bytes - info->decode_bytes - ROWS * info->cache_bytes;
    assert_true(states >= info->linear_layers * 4 * 8 * 8 * 4 && states <= info->state_bytes);
    assert_true((states > 0) == (info->linear_layers > 0) && (states < info->state_bytes) == (states > 0));
    assert_true(times.product_seconds > 0 && times.packed_seconds > 0 && times.prefill_seconds > 0);
    assert_true(times.step_seconds > 0 && times.read_rate > 0);
    close_speaker(&s);
}

/* Weights of one layer of the commoner kind. 24 wide: 4 heads and 2 key-value heads of 16, or linear attention with 64
 * channels, 32 values and 4 value heads. */
static void test_counts(void **state) {
    (void)state;
    const int64_t full = 24 * (64 + 32 + 32 + 64), linear = 24 * (64 + 32 + 4 + 4 + 32);
    check_counts("tiny-vl", full + 3 * 24 * 40);
    check_counts("tiny-vlmoe", full + 3 * 24 * 16);
    check_counts("tiny-35", linear + 3 * 24 * 40);
    check_counts("tiny-35moe", linear + 3 * 24 * (16 + 12));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
