/* Every kernel of every instruction set against the scalar specification, bit for bit: odd sizes, odd strides,
 * unaligned starts, special values, and guard bytes around everything written. The seed is printed. */
#include "base/bf16.h"
#include "compute/cpu/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 64
#define MAX 8192

static uint64_t random_state;

static uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static int64_t random_below(int64_t n) {
    return (int64_t)(random_bits() % (uint32_t)n);
}

static float random_value(void) {
    switch (random_bits() % 16) {
    case 0:
        return 0.0f;
    case 1:
        return -0.0f;
    case 2:
        return ((float)random_bits() - 0x1p31f) * 0x1p-20f; /* up to 2048 */
    case 3:
        return ((float)random_bits() - 0x1p31f) * 0x1p-60f;
    default:
        return ((float)random_bits() - 0x1p31f) * 0x1p-31f;
    }
}

static void fill(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = random_value();
}

/* The instruction sets of this processor beside scalar. */
static const qvl_kernels *const *fast_kernels(int *count) {
    static const qvl_kernels *found[2];
    *count = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found[(*count)++] = &qvl_kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        found[(*count)++] = &qvl_kernels_avx512;
    return found;
}

/* An output area whose surroundings must survive. */
typedef struct guarded {
    uint8_t *block;
    float *data;
    size_t bytes;
} guarded;

static guarded make_guarded(int64_t floats, int64_t shift) {
    guarded g = {.bytes = (size_t)(floats + shift) * sizeof(float)};
    g.block = malloc(g.bytes + 2 * GUARD);
    memset(g.block, 0xa5, g.bytes + 2 * GUARD);
    g.data = (float *)(void *)(g.block + GUARD) + shift;
    return g;
}

static void check_guarded(const guarded *g, const qvl_kernels *k) {
    for (size_t i = 0; i < GUARD; i++)
        if (g->block[i] != 0xa5 || g->block[GUARD + g->bytes + i] != 0xa5) fail_msg("%s wrote outside", k->name);
}

static void assert_same(const guarded *a, const guarded *b, const char *what, const qvl_kernels *k, int64_t n) {
    if (memcmp(a->block, b->block, a->bytes + 2 * GUARD) != 0) {
        const float *x = (const float *)(const void *)(a->block + GUARD);
        const float *y = (const float *)(const void *)(b->block + GUARD);
        for (size_t i = 0; i < a->bytes / sizeof(float); i++)
            if (qvl_bits_from_f32(x[i]) != qvl_bits_from_f32(y[i]))
                fail_msg("%s %s, size %lld, element %zu: %.9g, scalar %.9g", k->name, what, (long long)n, i,
                         (double)y[i], (double)x[i]);
        fail_msg("%s %s wrote outside", k->name, what);
    }
}

static int64_t odd_size(int round) {
    static const int64_t sizes[] = {1,  2,  7,  8,  9,  15, 16,  17,   31,   32,  33,
                                    48, 63, 64, 65, 72, 80, 127, 1152, 4304, 4608};
    size_t count = sizeof sizes / sizeof sizes[0];
    return (size_t)round < count ? sizes[round] : 1 + random_below(700);
}

static void test_product(void **state) {
    (void)state;
    int count;
    const qvl_kernels *const *fast = fast_kernels(&count);
    for (int round = 0; round < 60; round++) {
        int64_t rows = round < 30 ? round + 1 : 1 + random_below(60), k = odd_size(round) % 600 + 1;
        int64_t cols = random_bits() % 2 ? 16 : 32, lda = k + random_below(5), ldb = cols + random_below(3) * 16;
        int64_t ldc = cols + random_below(9);
        float *a = malloc((size_t)(rows * lda) * sizeof(float)), *b = malloc((size_t)(k * ldb) * sizeof(float));
        fill(a, rows * lda);
        fill(b, k * ldb);
        bool add = random_bits() % 2;
        qvl_ahead next = {random_bits() % 2 ? b : NULL, random_below(1 << 16)};
        int64_t shift = random_below(3);
        guarded want = make_guarded(rows * ldc, shift);
        fill(want.data, rows * ldc);
        for (int i = 0; i < count; i++) {
            guarded got = make_guarded(rows * ldc, shift);
            memcpy(got.data, want.data, (size_t)(rows * ldc) * sizeof(float));
            guarded reference = make_guarded(rows * ldc, shift);
            memcpy(reference.data, want.data, (size_t)(rows * ldc) * sizeof(float));
            qvl_kernels_scalar.product(rows, cols, k, a, lda, b, ldb, reference.data, ldc, add, next);
            fast[i]->product(rows, cols, k, a, lda, b, ldb, got.data, ldc, add, next);
            assert_same(&reference, &got, "product", fast[i], k);
            free(got.block);
            free(reference.block);
        }
        free(want.block);
        free(a);
        free(b);
    }
}

static void test_finish(void **state) {
    (void)state;
    int count;
    const qvl_kernels *const *fast = fast_kernels(&count);
    for (int round = 0; round < 40; round++)
        for (int kind = QVL_EPILOGUE_STORE; kind <= QVL_EPILOGUE_ERF; kind++)
            for (int i = 0; i < count; i++) {
                int64_t cols = odd_size(round), rows = 1 + random_below(3), ldc = cols + random_below(5);
                int64_t ldo = cols + random_below(5), shift = random_below(3);
                bool rounding = random_bits() % 2;
                float *c = malloc((size_t)(rows * ldc) * sizeof(float)),
                      *bias = malloc((size_t)cols * sizeof(float));
                fill(c, rows * ldc);
                fill(bias, cols);
                if (round % 4 == 0) c[random_below(cols)] = NAN, c[random_below(cols)] = INFINITY;
                if (round % 4 == 1) c[random_below(cols)] = -INFINITY, c[random_below(cols)] = 3e38f;
                guarded want = make_guarded(rows * ldo, shift), got = make_guarded(rows * ldo, shift);
                fill(want.data, rows * ldo);
                memcpy(got.data, want.data, (size_t)(rows * ldo) * sizeof(float));
                qvl_kernels_scalar.finish((qvl_epilogue)kind, rounding, rows, cols, c, ldc, bias, want.data, ldo);
                fast[i]->finish((qvl_epilogue)kind, rounding, rows, cols, c, ldc, bias, got.data, ldo);
                /* NaN payloads may differ between instruction sets; that it is NaN may not. */
                for (int64_t j = 0; j < rows * ldo; j++)
                    if (isnan(want.data[j]) && isnan(got.data[j])) want.data[j] = got.data[j] = NAN;
                assert_same(&want, &got, "finish", fast[i], cols);
                free(c);
                free(bias);
                free(want.block);
                free(got.block);
            }
}

static void test_layer_norm(void **state) {
    (void)state;
    int count;
    const qvl_kernels *const *fast = fast_kernels(&count);
    for (int round = 0; round < 80; round++)
        for (int i = 0; i < count; i++) {
            int64_t n = odd_size(round), shift = random_below(3);
            float *x = malloc((size_t)(3 * n) * sizeof(float));
            fill(x, 3 * n);
            if (round % 5 == 0)
                for (int64_t j = 0; j < n; j++) x[j] = 1.5f; /* no variance */
            bool rounding = random_bits() % 2;
            guarded want = make_guarded(n, shift), got = make_guarded(n, shift);
            qvl_kernels_scalar.layer_norm(n, x, x + n, x + 2 * n, 1e-6f, rounding, want.data);
            fast[i]->layer_norm(n, x, x + n, x + 2 * n, 1e-6f, rounding, got.data);
            assert_same(&want, &got, "layer_norm", fast[i], n);
            free(x);
            free(want.block);
            free(got.block);
        }
}

static void test_softmax_parts(void **state) {
    (void)state;
    int count;
    const qvl_kernels *const *fast = fast_kernels(&count);
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < count; i++) {
            int64_t n = odd_size(round % 60) % 600 + 1, shift = random_below(3);
            guarded want = make_guarded(n, shift), got = make_guarded(n, shift);
            for (int64_t j = 0; j < n; j++) want.data[j] = random_value() * (round % 3 ? 30.0f : 3000.0f);
            if (round % 7 == 0) want.data[random_below(n)] = NAN;
            if (round % 11 == 0) want.data[random_below(n)] = -INFINITY;
            memcpy(got.data, want.data, (size_t)n * sizeof(float));
            float top = qvl_kernels_scalar.maximum(n, want.data), factor = 0.17f;
            assert_true(qvl_bits_from_f32(top) == qvl_bits_from_f32(fast[i]->maximum(n, got.data)) || top == 0.0f);
            bool rounding = random_bits() % 2;
            float a = qvl_kernels_scalar.exponentials(n, want.data, top, factor, rounding);
            float b = fast[i]->exponentials(n, got.data, top, factor, rounding);
            assert_same(&want, &got, "exponentials", fast[i], n);
            assert_int_equal(qvl_bits_from_f32(a), qvl_bits_from_f32(b));
            qvl_kernels_scalar.scale(n, want.data, 0.3f);
            fast[i]->scale(n, got.data, 0.3f);
            assert_same(&want, &got, "scale", fast[i], n);
            free(want.block);
            free(got.block);
        }
}

static void test_bf16(void **state) {
    (void)state;
    int count;
    const qvl_kernels *const *fast = fast_kernels(&count);
    for (int i = 0; i < count; i++) {
        for (int64_t n = 1; n < 70; n++) {
            guarded want = make_guarded(n, 1), got = make_guarded(n, 1);
            float x[70];
            uint16_t h[70];
            for (int64_t j = 0; j < n; j++)
                x[j] = qvl_f32_from_bits(random_bits()), h[j] = (uint16_t)random_bits();
            qvl_kernels_scalar.round_bf16(n, x, want.data);
            fast[i]->round_bf16(n, x, got.data);
            assert_same(&want, &got, "round_bf16", fast[i], n);
            qvl_kernels_scalar.widen_bf16(n, h, want.data);
            fast[i]->widen_bf16(n, h, got.data);
            assert_same(&want, &got, "widen_bf16", fast[i], n);
            check_guarded(&got, fast[i]);
            free(want.block);
            free(got.block);
        }
    }
}

/* The specification itself against double precision. */
static void test_scalar_is_accurate(void **state) {
    (void)state;
    double worst_tanh = 0, worst_erf = 0, worst_exp = 0;
    float zero = 0.0f;
    for (int i = -200000; i <= 200000; i++) {
        float x = (float)i * 1e-4f, y;
        qvl_kernels_scalar.finish(QVL_EPILOGUE_TANH, false, 1, 1, &x, 1, &zero, &y, 1);
        double d = (double)x, want = 0.5 * d * (1 + tanh(sqrt(2 / acos(-1.0)) * (d + 0.044715 * d * d * d)));
        worst_tanh = fmax(worst_tanh, fabs((double)y - want) / fmax(1e-3, fabs(d)));
        qvl_kernels_scalar.finish(QVL_EPILOGUE_ERF, false, 1, 1, &x, 1, &zero, &y, 1);
        want = 0.5 * d * erfc(-d / sqrt(2.0));
        worst_erf = fmax(worst_erf, fabs((double)y - want) / fmax(1e-3, fabs(d)));
        if (i <= 0) {
            float p = x;
            qvl_kernels_scalar.exponentials(1, &p, 0.0f, 1.0f, false);
            worst_exp = fmax(worst_exp, fabs((double)p / exp2(d) - 1));
        }
    }
    printf("error: gelu tanh %.3g, gelu erf %.3g (of |x|), 2^x %.3g (relative)\n", worst_tanh, worst_erf,
           worst_exp);
    assert_true(worst_tanh < 1.5e-7);
    assert_true(worst_erf < 1.5e-7);
    assert_true(worst_exp < 1.5e-7);
}

int main(int argc, char **argv) {
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 20260101;
    printf("seed %llu\n", (unsigned long long)random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),    cmocka_unit_test(test_finish),
        cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_softmax_parts),
        cmocka_unit_test(test_bf16),       cmocka_unit_test(test_scalar_is_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
