/* What must not change a bit: how a prompt is cut into chunks, how many threads there are, which other sequences run, which
 * instruction set computes f32; and that copies and cuts leave what they should. */
#include "lm/prompts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const shapes[] = {"lm-test", "lm-test-moe"};

typedef struct mode {
    qvl_dtype dtype;
    uint32_t cpu_mask;
} mode;

static const mode modes[] = {
    {QVL_F32, QVL_CPU_ALL},
    {QVL_BF16, QVL_CPU_AVX2},
    {QVL_BF16, QVL_CPU_AVX2 | QVL_CPU_AVX512 | QVL_CPU_AVX512BF16},
    {QVL_BF16, QVL_CPU_ALL},
};
#define MODES (sizeof modes / sizeof modes[0])

static void assert_same(const float *a, const float *b, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            fail_msg("%s: logit %lld is %.9g, not %.9g", what, (long long)i, (double)b[i], (double)a[i]);
}

/* Keeps the first logits; later ones must be the same, and are freed. */
static void expect_same(float **first, float *logits, int64_t n, const char *what) {
    if (!*first) {
        *first = logits;
        return;
    }
    assert_same(*first, logits, n, what);
    free(logits);
}

/* Logits after a prefill in chunks and three steps. */
static float *chunked(const speaker *s, const qvl_prompt *prompt, int64_t chunk) {
    qvl_sequence *sequence = open_sequence(s->lm, chunk);
    float *logits = prefill(sequence, prompt, NULL);
    for (int64_t token = 7; token < 10; token++)
        assert_int_equal(qvl_sequence_step(sequence, token, NULL, logits, NULL), QVL_OK);
    assert_int_equal(qvl_sequence_length(sequence), prompt->length + 3);
    assert_int_equal(qvl_sequence_rope_delta(sequence), prompt->rope_delta);
    qvl_sequence_close(&sequence);
    return logits;
}

static void compare_chunks(const speaker *s, const qvl_prompt *prompt, const int64_t *chunks, size_t count,
                           const char *what) {
    int64_t vocab = qvl_lm_get_info(s->lm)->vocab_size;
    float *whole = chunked(s, prompt, 4096);
    for (size_t i = 0; i < count; i++) {
        char text[160];
        snprintf(text, sizeof text, "%s, chunks of %lld", what, (long long)chunks[i]);
        float *parts = chunked(s, prompt, chunks[i]);
        assert_same(whole, parts, vocab, text);
        free(parts);
    }
    free(whole);
}

static void test_chunks(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        lm_case c = open_case(shapes[k]);
        for (size_t m = 0; m < MODES; m++) {
            char what[48];
            snprintf(what, sizeof what, "%s, mode %zu", shapes[k], m);
            speaker s = open_speaker(c.folder, modes[m].dtype, 1, modes[m].cpu_mask);
            qvl_prompt prompt = case_prompt(&c, s.lm);
            qvl_prompt head = prompt_head(&prompt, 60);
            compare_chunks(&s, &head, (const int64_t[]){1, 7}, 2, what);
            qvl_prompt_free(&prompt);
            close_speaker(&s);
        }
        close_case(&c);
    }
}

/* Logits after a prefill of `first` entries, the rest of the prompt token by token, and three steps. */
static float *stepped(const speaker *s, const qvl_prompt *prompt, int64_t first) {
    qvl_sequence *sequence = open_sequence(s->lm, 0);
    qvl_prompt head = prompt_head(prompt, first);
    float *logits = prefill(sequence, &head, NULL);
    for (int64_t i = first; i < prompt->length + 3; i++) {
        int64_t token = i < prompt->length ? prompt->input_ids[i] : 7 + i - prompt->length;
        assert_int_equal(qvl_sequence_step(sequence, token, NULL, logits, NULL), QVL_OK);
    }
    assert_int_equal(qvl_sequence_rope_delta(sequence), prompt->rope_delta);
    qvl_sequence_close(&sequence);
    return logits;
}

/* Pictures and a video, then text, which can also come token by token. media: entries up to the last picture's. */
static void check_long(const lm_case *c, const mode *m, int64_t length, const int64_t *chunks, size_t count,
                       int64_t media) {
    speaker s = open_speaker(c->folder, m->dtype, 1, m->cpu_mask); /* many small passes: threads would wait */
    qvl_prompt prompt = longer_prompt(c, s.lm, length);
    char what[128];
    snprintf(what, sizeof what, "%.80s, mask %x, %lld entries", c->folder, m->cpu_mask, (long long)length);
    assert_int_equal(prompt.length, length);
    compare_chunks(&s, &prompt, chunks, count, what);
    if (media) {
        float *whole = chunked(&s, &prompt, 4096), *steps = stepped(&s, &prompt, media);
        assert_same(whole, steps, qvl_lm_get_info(s.lm)->vocab_size, "token by token");
        free(whole);
        free(steps);
    }
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

static const char more_positions[] = "s/\"max_position_embeddings\":[^,}]*/\"max_position_embeddings\": 8192/";

static void test_long_prompts(void **state) {
    (void)state;
    static const int64_t chunks[] = {1, 7, 64, 1000};
    const char *const names[] = {"tiny-vl", "tiny-vlmoe"};
    for (size_t k = 0; k < 2; k++) {
        lm_case c = open_case(names[k]);
        edit_case(&c, more_positions);
        for (size_t m = 0; m < MODES; m++) check_long(&c, &modes[m], 1100, chunks, 4, 73);
        close_case(&c);
    }
    lm_case c = open_case("lm-test");
    check_long(&c, &modes[0], 1100, chunks + 2, 2, 0);
    check_long(&c, &modes[3], 1100, chunks + 1, 3, 460);
    close_case(&c);
}

/* Keys of more than one span of causal attention (16 chunks of 256), and passes that begin at any entry of one. */
static void test_beyond_a_span(void **state) {
    (void)state;
    lm_case c = open_case("tiny-vl");
    edit_case(&c, more_positions);
    for (size_t m = 0; m < MODES; m++) check_long(&c, &modes[m], 4231, (const int64_t[]){25, 1000}, 2, 0);
    close_case(&c);
}

static void test_threads(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        lm_case c = open_case(shapes[k]);
        for (int dtype = 0; dtype < 2; dtype++) {
            float *first = NULL;
            for (int threads = 1; threads <= 3; threads++) {
                speaker s = open_speaker(c.folder, dtype ? QVL_BF16 : QVL_F32, threads, QVL_CPU_ALL);
                qvl_prompt prompt = case_prompt(&c, s.lm), head = prompt_head(&prompt, 100);
                float *logits = chunked(&s, &head, 70);
                expect_same(&first, logits, qvl_lm_get_info(s.lm)->vocab_size, "threads");
                qvl_prompt_free(&prompt);
                close_speaker(&s);
            }
            free(first);
        }
        close_case(&c);
    }
}

/* f32 has the same bits on every instruction set; in bf16 the sets without tiles agree. */
static void test_instruction_sets(void **state) {
    (void)state;
    static const uint32_t masks[] = {QVL_CPU_SCALAR, QVL_CPU_AVX2, QVL_CPU_AVX2 | QVL_CPU_AVX512};
    const char *const names[] = {"tiny-vl", "tiny-vlmoe"};
    for (size_t k = 0; k < 2; k++) {
        lm_case c = open_case(names[k]);
        for (int dtype = 0; dtype < 2; dtype++) {
            float *first = NULL;
            for (size_t i = 0; i < 3; i++) {
                speaker s = open_speaker(c.folder, dtype ? QVL_BF16 : QVL_F32, 2, masks[i]);
                qvl_prompt prompt = case_prompt(&c, s.lm);
                float *logits = chunked(&s, &prompt, 30);
                expect_same(&first, logits, 64, "instruction sets");
                qvl_prompt_free(&prompt);
                close_speaker(&s);
            }
            free(first);
        }
        close_case(&c);
    }
}

/* Two sequences that take turns are each what they are alone. */
static void test_interleaved(void **state) {
    (void)state;
    lm_case c = open_case("lm-test");
    speaker s = open_speaker(c.folder, QVL_BF16, 2, QVL_CPU_ALL);
    qvl_prompt prompt = case_prompt(&c, s.lm), head;
    int64_t vocab = qvl_lm_get_info(s.lm)->vocab_size;
    qvl_sequence *a = open_sequence(s.lm, 50), *b = open_sequence(s.lm, 0);
    float *alone = chunked(&s, &prompt, 50), *x = prefill(a, &prompt, NULL), *y;
    head = prompt_head(&prompt, 177);
    y = prefill(b, &head, NULL);
    for (int64_t token = 7; token < 10; token++) {
        assert_int_equal(qvl_sequence_step(a, token, NULL, x, NULL), QVL_OK);
        assert_int_equal(qvl_sequence_step(b, token * 3, NULL, y, NULL), QVL_OK);
    }
    assert_same(alone, x, vocab, "a beside b");
    qvl_sequence_close(&a);
    qvl_sequence *again = open_sequence(s.lm, 0);
    float *z = prefill(again, &head, NULL);
    for (int64_t token = 7; token < 10; token++)
        assert_int_equal(qvl_sequence_step(again, token * 3, NULL, z, NULL), QVL_OK);
    assert_same(z, y, vocab, "b beside a");
    free(alone);
    free(x);
    free(y);
    free(z);
    qvl_sequence_close(&again);
    qvl_sequence_close(&b);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
    close_case(&c);
}

/* A copy and its original go their own ways; a cut sequence goes on as one that never was longer. */
static void test_fork_and_truncate(void **state) {
    (void)state;
    lm_case c = open_case("lm-test");
    for (int dtype = 0; dtype < 2; dtype++) {
        speaker s = open_speaker(c.folder, dtype ? QVL_BF16 : QVL_F32, 2, QVL_CPU_ALL);
        qvl_prompt prompt = case_prompt(&c, s.lm), head;
        int64_t vocab = qvl_lm_get_info(s.lm)->vocab_size;
        float *alone = chunked(&s, &prompt, 0);
        qvl_sequence *a = open_sequence(s.lm, 0), *b = NULL;
        head = prompt_head(&prompt, 300); /* ends inside of a page */
        free(prefill(a, &head, NULL));
        assert_int_equal(qvl_sequence_fork(a, &b, NULL), QVL_OK);
        assert_int_equal(qvl_sequence_length(b), 300);
        float *logits = malloc(sizeof(float) * (size_t)vocab), *copy = malloc(sizeof(float) * (size_t)vocab);
        for (int64_t token = 100; token < 120; token++)
            assert_int_equal(qvl_sequence_step(b, token, NULL, copy, NULL), QVL_OK);
        /* The original, then the copy cut back, take what is left of the prompt. */
        free(prefill(a, &prompt, NULL));
        for (int64_t token = 7; token < 10; token++)
            assert_int_equal(qvl_sequence_step(a, token, NULL, logits, NULL), QVL_OK);
        assert_same(alone, logits, vocab, "the original");
        qvl_sequence_close(&a);
        assert_int_equal(qvl_sequence_truncate(b, 300, head.rope_delta, NULL), QVL_OK);
        free(prefill(b, &prompt, NULL));
        for (int64_t token = 7; token < 10; token++)
            assert_int_equal(qvl_sequence_step(b, token, NULL, copy, NULL), QVL_OK);
        assert_same(alone, copy, vocab, "the copy");
        qvl_error error;
        assert_int_equal(qvl_sequence_truncate(b, 1000, 0, &error), QVL_ERROR_ARGUMENT);
        assert_string_equal(error.message, "a sequence of 463 entries cannot be cut to 1000");
        assert_int_equal(qvl_sequence_truncate(b, 0, 0, NULL), QVL_OK);
        free(prefill(b, &prompt, NULL));
        for (int64_t token = 7; token < 10; token++)
            assert_int_equal(qvl_sequence_step(b, token, NULL, copy, NULL), QVL_OK);
        assert_same(alone, copy, vocab, "from the start again");
        free(logits);
        free(copy);
        free(alone);
        qvl_sequence_close(&b);
        qvl_prompt_free(&prompt);
        close_speaker(&s);
    }
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),           cmocka_unit_test(test_long_prompts),
        cmocka_unit_test(test_beyond_a_span),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_instruction_sets), cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_fork_and_truncate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
