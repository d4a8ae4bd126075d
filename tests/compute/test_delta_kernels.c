/* The kernels of Gated DeltaNet of every instruction set against the scalar specification, bit for bit: odd sizes,
 * unaligned starts, special values, and guard bytes around everything written. The seed is printed. */
#include "base/bf16.h"
#include "compute/cpu/delta_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 16 /* floats */
#define MAX 700

static uint64_t random_state;

static uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static float random_value(void) {
    float unit = ((float)random_bits() - 0x1p31f) * 0x1p-31f;
    switch (random_bits() % 32) {
    case 0:
        return 0.0f;
    case 1:
        return -0.0f;
    case 2:
        return unit * 2048.0f;
    case 3:
        return unit * 0x1p-30f;
    default:
        return unit;
    }
}

static void fill(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = random_value();
}

typedef struct instruction_set {
    const char *name;
    const qvl_delta_kernels *kernels;
} instruction_set;

/* Those of this processor beside scalar. */
static int fast_kernels(instruction_set sets[2]) {
    int count = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets[count++] = (instruction_set){"avx2", &qvl_delta_kernels_avx2};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        sets[count++] = (instruction_set){"avx512", &qvl_delta_kernels_avx512};
    return count;
}

/* Inputs of one call; y is written between guards. */
typedef struct call {
    int64_t n, width;
    float x[MAX + 4], weight[MAX + 4], gate[MAX + 4];
    float rows[8][MAX + 4], taps[8][MAX + 4];
    float y[MAX + 4 + 2 * GUARD];
    int64_t shift; /* of every start */
} call;

typedef void (*kernel_fn)(const qvl_delta_kernels *k, call *c, float *y);

static void call_convolve(const qvl_delta_kernels *k, call *c, float *y) {
    const float *rows[8];
    for (int64_t j = 0; j < c->width; j++) rows[j] = c->rows[j] + c->shift;
    memcpy(y, rows[c->width - 1], (size_t)c->n * sizeof(float)); /* in place, as the operation does */
    rows[c->width - 1] = y;
    k->convolve(c->n, c->width, rows, c->taps[0] + c->shift, MAX + 4, y);
}

static void call_l2_norm(const qvl_delta_kernels *k, call *c, float *y) {
    k->l2_norm(c->n, c->x + c->shift, 0.25f, y);
}

static void call_gated_norm(const qvl_delta_kernels *k, call *c, float *y) {
    memcpy(y, c->x, (size_t)c->n * sizeof(float));
    k->gated_norm(c->n, y, c->weight + c->shift, c->gate + c->shift, 1e-6f);
}

static void call_sigmoid_gate(const qvl_delta_kernels *k, call *c, float *y) {
    memcpy(y, c->x, (size_t)c->n * sizeof(float));
    k->sigmoid_gate(c->n, y, c->gate + c->shift);
}

static void call_correction(const qvl_delta_kernels *k, call *c, float *y) {
    k->correction(c->n, c->x + c->shift, c->weight[0], c->gate + c->shift, c->rows[0] + c->shift, c->weight[1], y);
}

static void call_add_scaled(const qvl_delta_kernels *k, call *c, float *y) {
    memcpy(y, c->x, (size_t)c->n * sizeof(float));
    k->add_scaled(c->n, c->weight[0], c->gate + c->shift, y);
}

static void fill_call(call *c, int round) {
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 127, 128, 256, 500};
    size_t count = sizeof sizes / sizeof sizes[0];
    c->n = (size_t)round < count ? sizes[round] : 1 + (int64_t)(random_bits() % MAX);
    c->width = 1 + (int64_t)(random_bits() % 8);
    c->shift = (int64_t)(random_bits() % 4);
    fill(c->x, MAX + 4);
    fill(c->weight, MAX + 4);
    fill(c->gate, MAX + 4);
    fill(c->rows[0], 8 * (MAX + 4));
    fill(c->taps[0], 8 * (MAX + 4));
    if (round % 5 == 0) memset(c->x, 0, sizeof c->x);
    if (round % 7 == 3) c->x[c->shift + c->n / 2] = NAN, c->rows[0][c->shift] = INFINITY;
    if (round % 7 == 5) c->gate[c->shift + c->n / 2] = NAN;
    if (round % 7 == 6) c->gate[c->shift] = INFINITY, c->gate[c->shift + c->n - 1] = -INFINITY;
}

static void compare(const char *what, kernel_fn run) {
    static call c;
    instruction_set sets[2];
    int count = fast_kernels(sets);
    for (int round = 0; round < 120; round++) {
        fill_call(&c, round);
        float want[MAX + 4], *y = c.y + GUARD + c.shift;
        run(&qvl_delta_kernels_scalar, &c, want);
        for (int s = 0; s < count; s++) {
            memset(c.y, 0xa5, sizeof c.y);
            run(sets[s].kernels, &c, y);
            for (int64_t i = 0; i < c.n; i++) {
                if (isnan(want[i]) && isnan(y[i])) continue; /* payloads may differ */
                if (qvl_bits_from_f32(want[i]) != qvl_bits_from_f32(y[i]))
                    fail_msg("%s %s, size %lld, element %lld: %.9g, scalar %.9g", sets[s].name, what,
                             (long long)c.n, (long long)i, (double)y[i], (double)want[i]);
            }
            const uint8_t *bytes = (const uint8_t *)c.y;
            size_t first = (size_t)(y - c.y) * sizeof(float), end = first + (size_t)c.n * sizeof(float);
            for (size_t i = 0; i < sizeof c.y; i++)
                if ((i < first || i >= end) && bytes[i] != 0xa5)
                    fail_msg("%s %s, size %lld wrote outside", sets[s].name, what, (long long)c.n);
        }
    }
}

static void test_kernels(void **state) {
    (void)state;
    compare("convolve", call_convolve);
    compare("l2_norm", call_l2_norm);
    compare("gated_norm", call_gated_norm);
    compare("sigmoid_gate", call_sigmoid_gate);
    compare("correction", call_correction);
    compare("add_scaled", call_add_scaled);
}

/* The specification itself against double precision. */
static void test_scalar_is_accurate(void **state) {
    (void)state;
    double worst_silu = 0, worst_gate = 0;
    for (int i = -60000; i <= 60000; i++) {
        float x = (float)i * 1e-3f, one = 1.0f, y = 1.0f;
        const float *row = &x;
        qvl_delta_kernels_scalar.sigmoid_gate(1, &y, &x);
        double want = 1 / (1 + exp(-(double)x));
        worst_gate = fmax(worst_gate, fabs((double)y / want - 1));
        qvl_delta_kernels_scalar.convolve(1, 1, &row, &one, 1, &y);
        worst_silu = fmax(worst_silu, fabs((double)y - (double)x * want) / fmax(1e-30, fabs((double)x * want)));
    }
    printf("relative error: sigmoid %.3g, silu %.3g\n", worst_gate, worst_silu);
    assert_true(worst_gate < 3e-7);
    assert_true(worst_silu < 3e-7);
}

/* A gate that is not finite is never passed over. */
static void test_gate_shows_nonfinite(void **state) {
    (void)state;
    float bad[3] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float x = 1.0f;
        qvl_delta_kernels_scalar.sigmoid_gate(1, &x, &bad[i]);
        assert_true(isnan(x));
    }
}

int main(int argc, char **argv) {
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 20260101;
    printf("seed %llu\n", (unsigned long long)random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_scalar_is_accurate),
        cmocka_unit_test(test_gate_shows_nonfinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
