/* Chats and folders that want to take time: work grows with what is given, not with its square. */
#define _GNU_SOURCE
#include "prompt/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* before, then part with the numbers 0 to count - 1, apart by commas, then after. Owner: the caller, free(). */
static char *numbered(const char *before, const char *part, int count, const char *after) {
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    fputs(before, stream);
    for (int i = 0; i < count; i++) {
        if (i) fputc(',', stream);
        fprintf(stream, part, i);
    }
    fputs(after, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

/* Each variable is looked for among the others, so there is a limit to them. */
static void test_many_variables(void **state) {
    (void)state;
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, NULL);
    static const char before[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"chat_template_kwargs\":{";
    char *json = numbered(before, "\"k%d\":1", 1000, "}}");
    qvl_prompt p = plan_chat(&b, json, NULL);
    qvl_prompt_free(&p);
    free(json);
    json = numbered(before, "\"k%d\":1", 1001, "}}");
    refuse_chat(&b, json, NULL, 0, NULL, QVL_ERROR_LIMIT,
                SAYS("chat_template_kwargs has 1001 members; at most 1000"));
    free(json);
    close_bench(&b);
}

enum { SYSTEMS = 50000 };

static char *late_systems(void) {
    return numbered("[{\"role\":\"user\",\"content\":\"a\"},",
                    "{\"role\":\"system\",\"content\":\"rule number %d of very many of its kind\"}", SYSTEMS, "]");
}

static void test_folding_many(void **state) {
    (void)state;
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, NULL);
    char *json = late_systems();
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.dropped = QVL_DROPPED_FOLD;
    double start = cpu_seconds();
    qvl_prompt p = plan_chat(&b, json, &options);
    double seconds = cpu_seconds() - start;
    assert_has(p.text, "<|im_start|>system\nrule number 0 of very many of its kind\n\nrule number 1 of");
    assert_has(p.text, "\n\nrule number 49999 of very many of its kind<|im_end|>\n<|im_start|>user\na");
    if (seconds > 20) fail_msg("folding took %.1f s", seconds);
    qvl_prompt_free(&p);
    free(json);
    close_bench(&b);
}

static void count_lines(const char *message, void *user) {
    assert_has(message, "leaves its text out");
    ++*(int *)user;
}

/* What is dropped is told of so many messages only. */
static void test_dropping_many(void **state) {
    (void)state;
    int lines = 0;
    char *text = published_template("qwen3-vl-instruct.jinja"), *json = late_systems();
    bench b = open_bench(QVL_RANDOM_MODEL, QVL_OPEN_CONFIG, QVL_BF16, text);
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.dropped = QVL_DROPPED_NOTE;
    options.log = count_lines;
    options.log_user = &lines;
    double start = cpu_seconds();
    qvl_prompt p = plan_chat(&b, json, &options);
    double seconds = cpu_seconds() - start;
    assert_text(&p, "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(lines, 64);
    if (seconds > 20) fail_msg("looking for what is dropped took %.1f s", seconds);
    qvl_prompt_free(&p);
    close_bench(&b);
    free(json);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_variables),
        cmocka_unit_test(test_folding_many),
        cmocka_unit_test(test_dropping_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
