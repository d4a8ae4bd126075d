/* What a hybrid sequence knows: the same however its entries came, undone by failed calls, copied, and cut back to
 * snapshots within their budget. All comparisons are of bits. */
#include "base/memory.h"
#include "lm/hybrid.h"
#include "lm/lm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 512 };

/* A model and one of the fixture's prompts. */
typedef struct scene {
    lm_case c;
    speaker s;
    qvl_prompt prompt;
    int64_t vocab;
} scene;

static scene open_scene(const char *shape, const char *name, qvl_dtype dtype) {
    scene x = {.c = open_hybrid(shape)};
    x.s = open_speaker(x.c.folder, dtype, 1, QVL_CPU_ALL); /* many small passes: threads would wait */
    x.prompt = hybrid_prompt(&x.c, name, &x.s);
    x.vocab = qvl_lm_get_info(x.s.lm)->vocab_size;
    return x;
}

static void close_scene(scene *x) {
    qvl_prompt_free(&x->prompt);
    close_speaker(&x->s);
    close_case(&x->c);
}

/* What is compared: the logits of the last entry, and the state. */
typedef struct knowledge {
    float logits[VOCAB];
    float *saved;
    size_t count;
} knowledge;

static knowledge knowledge_of(const qvl_sequence *q, const float *logits, int64_t vocab) {
    const qvl_linear_shape *shape = &q->linear.shape;
    int64_t delta = qvl_delta_saved_floats(&shape->delta, q->length);
    knowledge k = {.count = (size_t)(shape->layers * (shape->conv_floats + delta))};
    memcpy(k.logits, logits, (size_t)vocab * sizeof(float));
    k.saved = calloc(k.count, sizeof(float));
    float *out = k.saved;
    for (int64_t i = 0; i < shape->layers; i++) {
        memcpy(out, qvl_linear_state_conv(&q->linear, i), (size_t)shape->conv_floats * sizeof(float));
        qvl_delta_save(&shape->delta, qvl_linear_state_delta(&q->linear, i), q->length, out + shape->conv_floats);
        out += shape->conv_floats + delta;
    }
    return k;
}

static void assert_same(const knowledge *a, const knowledge *b, const char *what, int64_t number) {
    assert_int_equal(a->count, b->count);
    if (memcmp(a->logits, b->logits, sizeof a->logits) != 0)
        fail_msg("%s %lld: other logits", what, (long long)number);
    if (memcmp(a->saved, b->saved, a->count * sizeof(float)) != 0)
        fail_msg("%s %lld: another state", what, (long long)number);
}

static knowledge prefill_all(qvl_sequence *q, const scene *x) {
    float *logits = prefill(q, &x->prompt, NULL);
    knowledge k = knowledge_of(q, logits, x->vocab);
    free(logits);
    return k;
}

static knowledge take_step(qvl_sequence *q, const scene *x, int64_t token) {
    float logits[VOCAB];
    qvl_error error;
    if (qvl_sequence_step(q, token, NULL, logits, &error)) fail_msg("%s", error.message);
    return knowledge_of(q, logits, x->vocab);
}

/* ---- chunks */

static void check_chunks(const char *shape, const char *name, qvl_dtype dtype, int64_t length) {
    static const int64_t chunks[] = {1, 63, 64, 65, 1000};
    scene x = open_scene(shape, name, dtype);
    qvl_prompt whole = x.prompt;
    if (length && length < whole.length) x.prompt = prompt_head(&whole, length);
    qvl_sequence *first = open_sequence(x.s.lm, 4096);
    knowledge want = prefill_all(first, &x);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        qvl_sequence *q = open_sequence(x.s.lm, chunks[i]);
        knowledge got = prefill_all(q, &x);
        assert_same(&want, &got, "chunks of", chunks[i]);
        free(got.saved);
        qvl_sequence_close(&q);
    }
    printf("%s %s %s: %lld entries in chunks of 1 to 1000 and whole, equal bits\n", shape, name,
           qvl_dtype_name(dtype), (long long)x.prompt.length);
    free(want.saved);
    qvl_sequence_close(&first);
    x.prompt = whole;
    close_scene(&x);
}

static void test_chunks(void **state) {
    (void)state;
    check_chunks("tiny-35", "vectors", QVL_F32, 0);
    check_chunks("tiny-35moe", "vectors", QVL_F32, 0);
    check_chunks("mid-35", "media", QVL_F32, 0);
    check_chunks("mid-35moe", "media", QVL_F32, 0);
    check_chunks("mid-35", "media", QVL_BF16, 0);
    check_chunks("mid-35", "long", QVL_F32, 1100);
    check_chunks("mid-35", "long", QVL_BF16, 1100);
}

/* Token by token, each step an argument of its own, equals a prefill of the same tokens. */
static void check_steps(const char *shape, qvl_dtype dtype, int64_t length) {
    scene x = open_scene(shape, "long", dtype);
    qvl_prompt all = x.prompt;
    x.prompt = prompt_head(&all, length); /* before the picture */
    qvl_sequence *whole = open_sequence(x.s.lm, 0), *steps = open_sequence(x.s.lm, 0);
    int64_t last = x.prompt.length - 1;
    for (int64_t i = 0; i < last; i++) {
        assert_int_equal(x.prompt.token_types[i], 0);
        assert_int_equal(qvl_sequence_step(steps, x.prompt.input_ids[i], NULL, NULL, NULL), QVL_OK);
    }
    knowledge want = prefill_all(whole, &x), got = take_step(steps, &x, x.prompt.input_ids[last]);
    assert_same(&want, &got, "steps, dtype", dtype);
    x.prompt = all;
    free(want.saved);
    free(got.saved);
    qvl_sequence_close(&whole);
    qvl_sequence_close(&steps);
    close_scene(&x);
}

static void test_steps(void **state) {
    (void)state;
    check_steps("mid-35", QVL_F32, 1100);
    check_steps("mid-35", QVL_BF16, 1100);
    check_steps("mid-35moe", QVL_F32, 300);
}

/* ---- calls that fail */

static bool stop_after(int64_t done, int64_t total, void *user) {
    (void)done, (void)total;
    return --*(int *)user > 0;
}

static void check_cancelled(qvl_sequence *q, const qvl_prompt *rest, int layers) {
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    const int64_t marks[] = {q->length + 1};
    options.progress = stop_after;
    options.progress_user = &layers;
    options.marks = marks;
    options.mark_count = 1;
    float logits[VOCAB];
    int64_t length = q->length;
    qvl_status status = rest ? qvl_sequence_prefill(q, rest, length, &options, logits, NULL)
                             : qvl_sequence_step(q, 7, &options, logits, NULL);
    assert_int_equal(status, QVL_ERROR_CANCELLED);
    assert_int_equal(q->length, length);
    assert_int_equal(qvl_sequence_reachable(q, length - 1), 0); /* no snapshot of what was undone */
}

/* Stopped at every layer of the first passes, from different lengths: then everything goes on as if nothing was. */
static void test_cancelled_calls(void **state) {
    (void)state;
    static const int64_t cuts[] = {0, 5, 31, 32, 63, 90, 191};
    scene x = open_scene("mid-35", "words", QVL_F32);
    qvl_sequence *whole = open_sequence(x.s.lm, 0);
    knowledge want = prefill_all(whole, &x);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        qvl_sequence *q = open_sequence(x.s.lm, 40);
        if (cuts[i]) {
            qvl_prompt head = prompt_head(&x.prompt, cuts[i]);
            free(prefill(q, &head, NULL));
        }
        for (int layers = 1; layers <= 14; layers += 3) check_cancelled(q, &x.prompt, layers);
        for (int layers = 1; layers <= 8 && cuts[i]; layers += 2) check_cancelled(q, NULL, layers);
        knowledge got = prefill_all(q, &x);
        assert_same(&want, &got, "cancelled at", cuts[i]);
        free(got.saved);
        qvl_sequence_close(&q);
    }
    free(want.saved);
    qvl_sequence_close(&whole);
    close_scene(&x);
}

/* A second prefill keeps a copy of the state for as long as it may fail, and no longer. */
static void test_copy_goes(void **state) {
    (void)state;
    scene x = open_scene("mid-35", "words", QVL_F32);
    qvl_sequence *q = open_sequence(x.s.lm, 0);
    qvl_prompt head = prompt_head(&x.prompt, 90);
    free(prefill(q, &head, NULL));
    check_cancelled(q, &x.prompt, 3);
    assert_null(q->linear.undo);
    free(prefill(q, &x.prompt, NULL));
    assert_null(q->linear.undo);
    qvl_sequence_close(&q);
    close_scene(&x);
}

/* ---- snapshots */

static qvl_sequence *open_budget(const qvl_lm *lm, int64_t bytes) {
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    options.snapshot_bytes = bytes;
    qvl_sequence *q = NULL;
    assert_int_equal(qvl_sequence_open(lm, &options, &q, NULL), QVL_OK);
    return q;
}

static void prefill_marked(qvl_sequence *q, const qvl_prompt *prompt, const int64_t *marks, size_t count) {
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    options.marks = marks;
    options.mark_count = count;
    float logits[VOCAB];
    qvl_error error;
    if (qvl_sequence_prefill(q, prompt, q->length, &options, logits, &error)) fail_msg("%s", error.message);
}

static void test_cut_back(void **state) {
    (void)state;
    static const int64_t marks[] = {150, 0, 64, 100, 101, 200, 999};
    scene x = open_scene("mid-35", "words", QVL_F32);
    qvl_sequence *whole = open_sequence(x.s.lm, 0), *q = open_sequence(x.s.lm, 70);
    knowledge want = prefill_all(whole, &x), got;
    prefill_marked(q, &x.prompt, marks, sizeof marks / sizeof *marks);
    static const int64_t reached[][2] = {{200, 200}, {199, 150}, {150, 150}, {149, 101}, {100, 100},
                                         {99, 64},   {64, 64},   {63, 0},    {0, 0}};
    for (size_t i = 0; i < sizeof reached / sizeof *reached; i++)
        assert_int_equal(qvl_sequence_reachable(q, reached[i][0]), reached[i][1]);
    qvl_error error;
    assert_int_equal(qvl_sequence_truncate(q, 149, 0, &error), QVL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cannot be cut to 149"));
    assert_non_null(strstr(error.message, "at 101"));
    assert_int_equal(q->length, 200);
    static const int64_t ways[] = {150, 100, 64, 0}; /* each from the whole prompt again */
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(qvl_sequence_truncate(q, ways[i], 0, &error), QVL_OK);
        assert_int_equal(qvl_sequence_reachable(q, ways[i]), ways[i]);
        got = prefill_all(q, &x);
        assert_same(&want, &got, "cut back to", ways[i]);
        free(got.saved);
        assert_int_equal(qvl_sequence_reachable(q, 199), ways[i]); /* what was kept behind is gone */
    }
    free(want.saved);
    qvl_sequence_close(&whole);
    qvl_sequence_close(&q);
    close_scene(&x);
}

static void test_budget(void **state) {
    (void)state;
    scene x = open_scene("mid-35", "words", QVL_F32);
    qvl_sequence *q = open_budget(x.s.lm, INT64_C(1) << 30);
    int64_t marks[] = {32, 64, 96, 128, 160};
    prefill_marked(q, &x.prompt, marks, 5);
    size_t each = q->linear.bytes / 5; /* alike at whole chunks */
    assert_true(each * 5 == q->linear.bytes && each > 0);
    int64_t bytes = qvl_sequence_bytes(q);
    qvl_sequence_close(&q);
    /* Room for two and a half: the two used last stay. */
    q = open_budget(x.s.lm, (int64_t)(each * 5 / 2));
    prefill_marked(q, &x.prompt, marks, 5);
    assert_int_equal(q->linear.bytes, 2 * each);
    assert_int_equal(qvl_sequence_bytes(q), bytes - (int64_t)(3 * each));
    assert_int_equal(qvl_sequence_reachable(q, 199), 160);
    assert_int_equal(qvl_sequence_reachable(q, 159), 128);
    assert_int_equal(qvl_sequence_reachable(q, 127), 0);
    qvl_sequence_close(&q);
    /* No room for one: none, and nothing fails. */
    for (int64_t budget = 0; budget < (int64_t)each; budget += (int64_t)each - 1) {
        q = open_budget(x.s.lm, budget);
        prefill_marked(q, &x.prompt, marks, 5);
        assert_int_equal(q->linear.count, 0);
        assert_int_equal(qvl_sequence_reachable(q, 199), 0);
        qvl_sequence_close(&q);
    }
    close_scene(&x);
}

/* A copy has the snapshots, too, and goes its own way; the original may go first. */
static void test_fork(void **state) {
    (void)state;
    static const int64_t marks[] = {40, 150};
    scene x = open_scene("mid-35", "words", QVL_F32);
    qvl_sequence *q = open_sequence(x.s.lm, 0), *copy = NULL, *alone = open_sequence(x.s.lm, 0);
    prefill_marked(q, &x.prompt, marks, 2);
    free(prefill(alone, &x.prompt, NULL));
    assert_int_equal(qvl_sequence_fork(q, &copy, NULL), QVL_OK);
    for (int64_t i = 0; i < 40; i++) {
        knowledge a = take_step(q, &x, i), b = take_step(copy, &x, 2 * i + 1), c = take_step(alone, &x, i);
        assert_same(&a, &c, "step", i);
        free(a.saved);
        free(b.saved);
        free(c.saved);
    }
    qvl_sequence_close(&q);
    assert_int_equal(qvl_sequence_truncate(copy, 40, 0, NULL), QVL_OK);
    knowledge got = prefill_all(copy, &x);
    qvl_sequence_close(&alone);
    alone = open_sequence(x.s.lm, 0);
    knowledge want = prefill_all(alone, &x);
    assert_same(&want, &got, "copy", 40);
    free(want.saved);
    free(got.saved);
    qvl_sequence_close(&copy);
    qvl_sequence_close(&alone);
    close_scene(&x);
}

/* Two conversations in turns, each as if alone. */
static void test_interleaved(void **state) {
    (void)state;
    scene x = open_scene("mid-35moe", "words", QVL_F32);
    qvl_sequence *q[3];
    knowledge last[3];
    for (int i = 0; i < 3; i++) {
        q[i] = open_sequence(x.s.lm, 0);
        qvl_prompt head = prompt_head(&x.prompt, i == 1 ? 120 : 77);
        free(prefill(q[i], &head, NULL));
        last[i] = (knowledge){.count = 0};
    }
    for (int64_t step = 0; step < 35; step++)
        for (int i = 0; i < 2; i++) {
            free(last[i].saved);
            last[i] = take_step(q[i], &x, 3 * step + i);
        }
    for (int64_t step = 0; step < 35; step++) {
        free(last[2].saved);
        last[2] = take_step(q[2], &x, 3 * step);
    }
    assert_same(&last[0], &last[2], "in company", 0);
    for (int i = 0; i < 3; i++) {
        free(last[i].saved);
        qvl_sequence_close(&q[i]);
    }
    close_scene(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_cancelled_calls),
        cmocka_unit_test(test_copy_goes),
        cmocka_unit_test(test_cut_back),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_interleaved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
