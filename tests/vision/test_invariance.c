/* The same bits for any number of threads, any company, any order, any way in; and what refuses to run. */
#include "vision/towers.h"

#include "../tools/random_model/generator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const qvl_grid grids[] = {{1, 4, 6}, {2, 4, 4}, {1, 2, 2}, {3, 6, 4}, {1, 10, 14}, {1, 2, 50}};
#define ITEMS (sizeof grids / sizeof grids[0])

static qvl_patches make_patches(const size_t *order, size_t count) {
    qvl_patches p = {.cols = 96, .item_count = count, .items = calloc(count, sizeof *p.items)};
    for (size_t i = 0; i < count; i++) {
        qvl_grid g = grids[order[i]];
        p.items[i].grid = g;
        p.rows += g.t * g.h * g.w;
    }
    p.values = malloc((size_t)(p.rows * p.cols) * sizeof(float));
    float *out = p.values;
    for (size_t i = 0; i < count; i++) {
        qvl_grid g = grids[order[i]];
        char name[32];
        snprintf(name, sizeof name, "item.%zu", order[i]);
        demo_fill(name, 0, g.t * g.h * g.w * p.cols, out);
        out += g.t * g.h * g.w * p.cols;
    }
    return p;
}

static void drop_patches(qvl_patches *p) {
    free(p->values);
    free(p->items);
}

static qvl_features encode(qvl_model *model, const size_t *order, size_t count) {
    qvl_patches p = make_patches(order, count);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    qvl_features f;
    qvl_error error = {0};
    if (qvl_vision_encode(session, &p, &options, &f, &error)) fail_msg("%s", error.message);
    qvl_session_close(&session);
    drop_patches(&p);
    return f;
}

/* Item `position` of f against item 0 of alone, all levels, bit for bit. */
static void assert_same_item(const qvl_features *f, size_t position, const qvl_features *alone) {
    int64_t before = 0;
    for (size_t i = 0; i < position; i++) before += f->items[i].tokens;
    size_t row = (size_t)f->width * qvl_dtype_bits(f->dtype) / 8;
    size_t bytes = (size_t)alone->tokens * row;
    assert_int_equal(f->items[position].tokens, alone->tokens);
    assert_memory_equal((const char *)f->embeds + (size_t)before * row, alone->embeds, bytes);
    for (int level = 0; level < f->deepstack_count; level++)
        assert_memory_equal((const char *)f->deepstack[level] + (size_t)before * row, alone->deepstack[level],
                            bytes);
}

static void test_threads_company_order(void **state) {
    (void)state;
    static const size_t orders[][ITEMS] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 4, 3}};
    const char *folder = make_model_folder("tiny-vl", "quarter", "f32");
    for (int dtype = QVL_F32; dtype <= QVL_BF16; dtype++) {
        qvl_model *first = open_model(folder, (qvl_dtype)dtype, 1, QVL_CPU_ALL);
        qvl_features alone[ITEMS];
        for (size_t i = 0; i < ITEMS; i++) alone[i] = encode(first, &i, 1);
        for (int threads = 1; threads <= 3; threads++) {
            qvl_model *model = open_model(folder, (qvl_dtype)dtype, threads, QVL_CPU_ALL);
            for (size_t o = 0; o < 3; o++) {
                qvl_features f = encode(model, orders[o], ITEMS);
                for (size_t i = 0; i < ITEMS; i++) assert_same_item(&f, i, &alone[orders[o][i]]);
                qvl_features_free(&f);
            }
            qvl_model_close(&model);
        }
        for (size_t i = 0; i < ITEMS; i++) qvl_features_free(&alone[i]);
        qvl_model_close(&first);
    }
}

static qvl_features encode_demo(qvl_dtype dtype, uint32_t cpu_mask, const char **kernels) {
    qvl_model *model = open_model(make_model_folder("demo", "scaled", "bf16"), dtype, 2, cpu_mask);
    qvl_session *session = NULL;
    qvl_features found;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    qvl_item item = {.grid = {2, 6, 4}};
    qvl_patches p = {.rows = 48, .cols = 1536, .item_count = 1, .items = &item};
    p.values = malloc((size_t)(p.rows * p.cols) * sizeof(float));
    demo_fill("pixels", 0, p.rows * p.cols, p.values);
    assert_int_equal(qvl_vision_encode(session, &p, NULL, &found, NULL), QVL_OK);
    free(p.values);
    *kernels = qvl_model_get_info(model)->kernels;
    qvl_session_close(&session);
    qvl_model_close(&model);
    return found;
}

/* docs/NUMERICS.md promises equal bits for the instruction sets of float arithmetic, and closeness for those that have
 * their own bf16 products. */
static void test_instruction_sets_agree(void **state) {
    (void)state;
    static const uint32_t masks[] = {QVL_CPU_SCALAR, QVL_CPU_AVX2, QVL_CPU_AVX2 | QVL_CPU_AVX512};
    const char *kernels;
    for (int dtype = QVL_F32; dtype <= QVL_BF16; dtype++) {
        qvl_features scalar = encode_demo((qvl_dtype)dtype, masks[0], &kernels);
        for (int m = 1; m < 3; m++) {
            qvl_features found = encode_demo((qvl_dtype)dtype, masks[m], &kernels);
            assert_same_item(&found, 0, &scalar);
            qvl_features_free(&found);
        }
        qvl_features best = encode_demo((qvl_dtype)dtype, QVL_CPU_ALL, &kernels);
        for (int level = -1; level < best.deepstack_count; level++) {
            qvl_tensor x = features_tensor(&best, level), reference = features_tensor(&scalar, level);
            distance d = tensor_distance(&x, &reference);
            printf("%s %s against scalar: NMSE %.2g\n", qvl_dtype_name((qvl_dtype)dtype), kernels, d.nmse);
            assert_true(d.nmse <= (dtype == QVL_BF16 ? 5e-5 : 0.0));
        }
        qvl_features_free(&best);
        qvl_features_free(&scalar);
    }
}

/* The chain from given hidden states equals the same stretch of a whole run; without mergers it gives the stream.
 */
static void test_blocks_from_hidden(void **state) {
    (void)state;
    qvl_model *model = open_model(make_model_folder("tiny-vl", "quarter", "f32"), QVL_F32, 2, QVL_CPU_ALL);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    static const size_t order[] = {3, 0};
    qvl_patches p = make_patches(order, 2);
    stages found = {.count = 0};
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.tap = keep_stage;
    options.tap_user = &found;
    qvl_features whole, part;
    assert_int_equal(qvl_vision_encode(session, &p, &options, &whole, NULL), QVL_OK);
    const qvl_tensor *start = find_stage(&found, "hidden"), *end = find_stage(&found, "blocks.2");
    size_t bytes = (size_t)tensor_count(start) * sizeof(float);
    float *hidden = malloc(bytes);
    qvl_grid g[2] = {grids[3], grids[0]};
    qvl_encode_options plain;
    qvl_encode_options_init(&plain);
    memcpy(hidden, start->data, bytes);
    assert_int_equal(qvl_vision_blocks(session, hidden, g, 2, &plain, NULL, NULL), QVL_OK);
    assert_memory_equal(hidden, end->data, bytes);
    memcpy(hidden, start->data, bytes);
    assert_int_equal(qvl_vision_blocks(session, hidden, g, 2, &plain, &part, NULL), QVL_OK);
    assert_int_equal(part.item_count, 2);
    assert_memory_equal(part.embeds, whole.embeds, (size_t)(whole.tokens * whole.width) * sizeof(float));
    free(hidden);
    qvl_features_free(&whole);
    qvl_features_free(&part);
    free_stages(&found);
    drop_patches(&p);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

static bool stop_at_two(int64_t done, int64_t total, void *user) {
    assert_true(done >= 1 && done <= total);
    *(int64_t *)user = done;
    return done < 2;
}

static bool go_on(int64_t done, int64_t total, void *user) {
    assert_true(done == *(int64_t *)user + 1 && done <= total);
    *(int64_t *)user = done;
    return true;
}

static void test_progress_and_cancellation(void **state) {
    (void)state;
    qvl_model *model = open_model(make_model_folder("tiny-vl", "quarter", "f32"), QVL_F32, 2, QVL_CPU_ALL);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    static const size_t order[] = {0};
    qvl_patches p = make_patches(order, 1);
    int64_t seen = 0;
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.progress = stop_at_two;
    options.progress_user = &seen;
    qvl_features f;
    qvl_error error = {0};
    assert_int_equal(qvl_vision_encode(session, &p, &options, &f, &error), QVL_ERROR_CANCELLED);
    assert_int_equal(seen, 2);
    assert_null(f.embeds);
    assert_non_null(strstr(error.message, "cancelled"));
    seen = 0;
    options.progress = go_on;
    assert_int_equal(qvl_vision_encode(session, &p, &options, &f, &error), QVL_OK);
    assert_int_equal(seen, qvl_model_get_info(model)->depth + 1);
    qvl_features_free(&f);
    drop_patches(&p);
    qvl_session_close(&session);
    qvl_model_close(&model);
}

/* A non-finite input may not become finite features: one NaN, infinities, and values that overflow inside. */
static void test_nonfinite_is_an_error(void **state) {
    (void)state;
    static const float poison[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (int mode = 0; mode < 6; mode++) {
        static const uint32_t masks[] = {QVL_CPU_SCALAR, QVL_CPU_AVX2, QVL_CPU_ALL};
        qvl_model *model = open_model(make_model_folder("tiny-vl", "quarter", "f32"),
                                      mode % 2 ? QVL_BF16 : QVL_F32, 1, masks[mode / 2]);
        qvl_session *session = NULL;
        assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
        for (size_t i = 0; i < 4; i++) {
            static const size_t order[] = {0, 4};
            qvl_patches p = make_patches(order, 2);
            for (int64_t j = 0; j < 96; j++) p.values[3 * 96 + j] = poison[i];
            qvl_encode_options options;
            qvl_encode_options_init(&options);
            qvl_features f;
            qvl_error error = {0};
            assert_int_equal(qvl_vision_encode(session, &p, &options, &f, &error), QVL_ERROR_NUMERIC);
            assert_non_null(strstr(error.message, "not finite"));
            assert_null(f.embeds);
            drop_patches(&p);
        }
        qvl_session_close(&session);
        qvl_model_close(&model);
    }
}

static void expect_refusal(qvl_session *session, qvl_patches *p, const char *word) {
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    qvl_features f;
    qvl_error error = {0};
    assert_int_not_equal(qvl_vision_encode(session, p, &options, &f, &error), QVL_OK);
    if (!strstr(error.message, word)) fail_msg("message is: %s", error.message);
    assert_null(f.embeds);
}

static void test_impossible_patches(void **state) {
    (void)state;
    qvl_model *model = open_model(make_model_folder("tiny-vl", "quarter", "f32"), QVL_F32, 1, QVL_CPU_ALL);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    float values[96 * 4] = {0};
    qvl_item item = {.grid = {1, 2, 2}};
    qvl_patches good = {.rows = 4, .cols = 96, .values = values, .item_count = 1, .items = &item}, p = good;
    p.cols = 95;
    expect_refusal(session, &p, "95 columns");
    p = good;
    p.rows = 3;
    expect_refusal(session, &p, "3 are given");
    item.grid = (qvl_grid){1, 1, 4};
    p = good;
    expect_refusal(session, &p, "multiples of 2");
    item.grid = (qvl_grid){INT64_MAX, 2, 2};
    expect_refusal(session, &p, "impossible");
    item.grid = (qvl_grid){-1, -2, 2};
    expect_refusal(session, &p, "impossible");
    p.item_count = 0;
    p.rows = 0;
    expect_refusal(session, &p, "no patch rows");
    qvl_session_close(&session);
    qvl_model_close(&model);
}

/* The planned scratch grows with the call and is what the header promises: asked for before any work. */
static void test_scratch_is_planned(void **state) {
    (void)state;
    qvl_model *model = open_model(make_model_folder("tiny-vl", "quarter", "f32"), QVL_BF16, 1, QVL_CPU_ALL);
    size_t one = 0, two = 0;
    qvl_grid g[2] = {{1, 32, 32}, {1, 32, 32}};
    assert_int_equal(qvl_vision_scratch(model, g, 1, &one, NULL), QVL_OK);
    assert_int_equal(qvl_vision_scratch(model, g, 2, &two, NULL), QVL_OK);
    assert_true(one > 0 && two > one && two < 3 * one);
    g[0].h = 3;
    qvl_error error = {0};
    assert_int_equal(qvl_vision_scratch(model, g, 1, &one, &error), QVL_ERROR_ARGUMENT);
    qvl_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_company_order), cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_blocks_from_hidden),    cmocka_unit_test(test_progress_and_cancellation),
        cmocka_unit_test(test_nonfinite_is_an_error), cmocka_unit_test(test_impossible_patches),
        cmocka_unit_test(test_scratch_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
