/* The decoder's operations: kernels of every instruction set against the scalar specification, products and attention
 * against plain double arithmetic, a row alone against the same row in company. Odd sizes, unaligned weights, guard bytes.
 * The seed is printed. */
#include "base/bf16.h"
#include "base/memory.h"
#include "compute/context.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compute/contexts.h"

static uint32_t random_state;

static uint32_t random_bits(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static float random_value(void) {
    return ((float)random_bits() - 8388608.0f) / 8388608.0f;
}

static float *random_array(int64_t n) {
    float *x = qvl_alloc((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = random_value();
    return x;
}

/* ---- kernels */

#define GUARD 8

static void check_guard(const float *x, int64_t n, const char *what) {
    for (int64_t i = 0; i < GUARD; i++)
        if (x[n + i] != 77.0f) fail_msg("%s wrote behind its end", what);
}

static float *guarded(const float *from, int64_t n) {
    float *x = qvl_alloc((size_t)(n + GUARD), sizeof *x);
    if (from) memcpy(x, from, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < GUARD; i++) x[n + i] = 77.0f;
    return x;
}

static void test_kernels(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 33, 64, 100, 128, 257, 1000};
    const qvl_decoder_kernels *fast[2];
    int count = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) fast[count++] = &qvl_decoder_kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        fast[count++] = &qvl_decoder_kernels_avx512;
    const qvl_decoder_kernels *scalar = &qvl_decoder_kernels_scalar;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int i = 0; i < count; i++) {
            int64_t n = sizes[s], ld = n + 3;
            float *x = random_array(n), *y = random_array(n), *rows = random_array(32 * ld);
            float *a = guarded(NULL, n), *b = guarded(NULL, n);
            scalar->rms_norm(n, x, y, 1e-6f, a);
            fast[i]->rms_norm(n, x, y, 1e-6f, b);
            assert_memory_equal(a, b, (size_t)(n + GUARD) * sizeof *a);
            for (int64_t j = 0; j < n; j++) x[j] *= 50.0f;
            memcpy(a, x, (size_t)n * sizeof *a);
            memcpy(b, x, (size_t)n * sizeof *a);
            scalar->swiglu(n, a, y);
            fast[i]->swiglu(n, b, y);
            assert_memory_equal(a, b, (size_t)(n + GUARD) * sizeof *a);
            scalar->merge(n, a, 0.3f, y, -1.7f);
            fast[i]->merge(n, b, 0.3f, y, -1.7f);
            assert_memory_equal(a, b, (size_t)(n + GUARD) * sizeof *a);
            check_guard(b, n, "merge");
            float *turned = guarded(NULL, 32 * n), *want = guarded(NULL, 32 * n);
            scalar->interleave(n, rows, ld, want);
            fast[i]->interleave(n, rows, ld, turned);
            assert_memory_equal(want, turned, (size_t)(32 * n + GUARD) * sizeof *want);
            float *all[] = {x, y, rows, a, b, turned, want};
            for (size_t j = 0; j < sizeof all / sizeof all[0]; j++) qvl_free(all[j]);
        }
}

/* ---- contexts */

static const mode modes[] = {
    {QVL_F32, QVL_CPU_SCALAR},
    {QVL_F32, QVL_CPU_AVX2},
    {QVL_F32, QVL_CPU_ALL},
    {QVL_BF16, QVL_CPU_SCALAR},
    {QVL_BF16, QVL_CPU_AVX2 | QVL_CPU_AVX512},
    {QVL_BF16, QVL_CPU_AVX2 | QVL_CPU_AVX512 | QVL_CPU_AVX512BF16},
    {QVL_BF16, QVL_CPU_ALL},
};
#define MODES (sizeof modes / sizeof modes[0])

static double factor(float x, qvl_dtype dtype) {
    return (double)qvl_round_to(dtype, x);
}

/* ---- products with matrices of every kind */

typedef enum kind { AS_F32, AS_BF16, AS_F16, BY_COLUMNS, QUANT4, QUANT8, KINDS } kind;

typedef struct matrix_memory {
    qvl_matrix m;
    uint8_t *data;
    uint16_t scales[4096], biases[4096];
} matrix_memory;

static uint16_t half_bits(kind k) { /* any finite value of size about one */
    uint32_t bits = random_bits();
    if (k == AS_F16) return (uint16_t)((bits & 0x83ffu) | 0x3400u);
    return (uint16_t)((bits & 0x80ffu) | 0x3e00u);
}

static matrix_memory *make_matrix(kind kd, int64_t n, int64_t k) {
    matrix_memory *w = calloc(1, sizeof *w);
    int64_t stride = kd == BY_COLUMNS  ? n + 5
                     : kd < BY_COLUMNS ? k + 3
                                       : k,
            elements = stride * (kd == BY_COLUMNS ? k : n);
    bool quantised = kd >= QUANT4;
    int bits = kd == QUANT4 ? 4 : kd == QUANT8 ? 8 : 0;
    size_t bytes = (size_t)elements * 4 + 16;
    w->data = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) w->data[i] = (uint8_t)random_bits();
    w->m = (qvl_matrix){.n = n, .k = k, .stride = stride, .bits = bits, .by_columns = kd == BY_COLUMNS};
    w->m.data = w->data + (quantised ? 0 : 2); /* unaligned for floats */
    w->m.dtype = quantised ? QVL_U32 : kd == AS_F32 ? QVL_F32 : kd == AS_F16 ? QVL_F16 : QVL_BF16;
    if (kd == AS_F32)
        for (int64_t i = 0; i < elements; i++) {
            float x = random_value();
            memcpy(w->data + 2 + 4 * i, &x, 4);
        }
    if (kd == AS_BF16 || kd == AS_F16 || kd == BY_COLUMNS)
        for (int64_t i = 0; i < elements; i++) {
            uint16_t h = half_bits(kd);
            memcpy(w->data + 2 + 2 * i, &h, 2);
        }
    if (quantised) {
        w->m.group = 32;
        w->m.scale_dtype = kd == QUANT4 ? QVL_BF16 : QVL_F16;
        for (int64_t i = 0; i < n * k / 32; i++)
            w->scales[i] = half_bits(AS_BF16), w->biases[i] = half_bits(AS_BF16);
        if (kd == QUANT8)
            for (int64_t i = 0; i < n * k / 32; i++)
                w->scales[i] = half_bits(AS_F16), w->biases[i] = half_bits(AS_F16);
        w->m.scales = (const uint8_t *)w->scales;
        w->m.biases = (const uint8_t *)w->biases;
    }
    return w;
}

static void load(qvl_compute *c, const float *x, qvl_operand *o) {
    o->data = qvl_calloc(qvl_operand_bytes(c, o->rows, o->cols), 1);
    qvl_operand_load(c, x, o);
}

static void check_project(mode m, kind kd, int64_t rows, int64_t n, int64_t k) {
    context c = open_context(2, m), single = open_context(1, m);
    matrix_memory *w = make_matrix(kd, n, k);
    float *x = random_array(rows * k), *y = guarded(NULL, rows * n), *alone = guarded(NULL, n),
          *row = random_array(k);
    for (int64_t i = 0; i < rows * n; i++) y[i] = 0.5f;
    qvl_operand a = {rows, k, NULL};
    load(c.compute, x, &a);
    qvl_project(c.compute, &a, &(qvl_projection){&w->m, y, true}, 1);
    check_guard(y, rows * n, "project");
    double e = 0, p = 0;
    for (int64_t r = 0; r<rows; r += rows> 40 ? 17 : 1) {
        qvl_operand one = {1, k, NULL};
        load(single.compute, x + r * k, &one);
        for (int64_t j = 0; j < n; j++) alone[j] = 0.5f;
        qvl_project(single.compute, &one, &(qvl_projection){&w->m, alone, true}, 1);
        check_guard(alone, n, "project");
        if (memcmp(alone, y + r * n, (size_t)n * sizeof *y) != 0)
            fail_msg("row %lld of %lld alone is another (kind %d, n %lld, k %lld)", (long long)r, (long long)rows,
                     (int)kd, (long long)n, (long long)k);
        qvl_free(one.data);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.5;
            qvl_matrix_read(&w->m, j, 0, k, row);
            for (int64_t l = 0; l < k; l++) sum += factor(x[r * k + l], m.dtype) * factor(row[l], m.dtype);
            e += ((double)y[r * n + j] - sum) * ((double)y[r * n + j] - sum);
            p += sum * sum;
        }
    }
    if (!(e / p < 1e-11))
        fail_msg("kind %d, n %lld, k %lld: NMSE %.2e", (int)kd, (long long)n, (long long)k, e / p);
    qvl_free(a.data);
    qvl_free(x);
    qvl_free(y);
    qvl_free(alone);
    qvl_free(row);
    free(w->data);
    free(w);
    close_context(&c);
    close_context(&single);
}

static void test_project(void **state) {
    (void)state;
    for (size_t i = 0; i < MODES; i++)
        for (int kd = 0; kd < KINDS; kd++) {
            int64_t k = kd >= QUANT4 ? 32 : 1;
            check_project(modes[i], (kind)kd, 1, 7, 32 * k);
            check_project(modes[i], (kind)kd, 3, 49, kd >= QUANT4 ? 96 : 77);
            check_project(modes[i], (kind)kd, 9, 101, kd >= QUANT4 ? 288 : 300);
            check_project(modes[i], (kind)kd, 45, 55, kd >= QUANT4 ? 2112 : 2101);
        }
    check_project(modes[MODES - 1], AS_BF16, 300, 130, 1100);
    check_project(modes[MODES - 1], AS_BF16, 265, 97, 4200);
    check_project(modes[2], AS_BF16, 1030, 33, 300);
}

/* ---- attention */

typedef struct attention_case {
    int64_t length, heads, kv_heads, head_dim;
} attention_case;

static void fill_pages(qvl_compute *c, qvl_kv *kv, int64_t length, uint8_t **pages, float *k, float *v) {
    size_t bytes = qvl_kv_page_bytes(c, kv->kv_heads, kv->head_dim);
    for (int64_t i = 0; i * QVL_KV_PAGE < length; i++) pages[i] = qvl_calloc(bytes + 64, 1);
    kv->pages = pages;
    kv->offset = 64;
    qvl_kv_store(c, kv, 0, length, k, v);
}

static double reference_error(const attention_case *t, qvl_dtype dtype, int64_t row, const float *q,
                              const float *k, const float *v, const float *got) {
    int64_t hd = t->head_dim, group = t->heads / t->kv_heads;
    double e = 0, p = 0, *score = malloc((size_t)(row + 1) * sizeof *score);
    for (int64_t h = 0; h < t->heads; h++) {
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i <= row; i++) {
            score[i] = 0;
            for (int64_t d = 0; d < hd; d++)
                score[i] += factor(q[(row * t->heads + h) * hd + d], dtype) *
                            factor(k[(i * t->kv_heads + h / group) * hd + d], dtype);
            score[i] /= sqrt((double)hd);
            top = fmax(top, score[i]);
        }
        for (int64_t i = 0; i <= row; i++) sum += score[i] = exp(score[i] - top);
        for (int64_t d = 0; d < hd; d++) {
            double value = 0;
            for (int64_t i = 0; i <= row; i++)
                value += score[i] / sum * factor(v[(i * t->kv_heads + h / group) * hd + d], dtype);
            double x = (double)got[h * hd + d];
            e += (x - value) * (x - value);
            p += value * value;
        }
    }
    free(score);
    return e / p;
}

static void check_attention(mode m, attention_case t) {
    context c = open_context(2, m), single = open_context(1, m);
    int64_t hd = t.head_dim, width = t.heads * hd;
    float *q = random_array(t.length * width), *k = random_array(t.length * t.kv_heads * hd);
    float *v = random_array(t.length * t.kv_heads * hd), *out = guarded(NULL, t.length * width);
    float *alone = guarded(NULL, width), scale = (float)(1.0 / sqrt((double)hd));
    for (int64_t i = 0; i < t.length * width; i++) q[i] *= 4.0f;
    uint8_t *pages[64] = {0};
    qvl_kv kv = {.kv_heads = t.kv_heads, .head_dim = hd};
    fill_pages(c.compute, &kv, t.length, pages, k, v);
    size_t floats = qvl_causal_scratch(c.compute, t.kv_heads, hd, t.length);
    float *scratch = qvl_alloc(floats + 1, sizeof *scratch);
    int64_t first = t.length > 600 ? t.length - 70 : 0; /* rows of one call */
    qvl_causal_attention(c.compute, &kv, q + first * width, first, t.length - first, t.heads, scale, NULL,
                         out + first * width);
    check_guard(out, t.length * width, "attention");
    double worst = 0;
    for (int64_t row = first; row<t.length; row += t.length> 100 ? 23 : 1) {
        qvl_causal_attention(single.compute, &kv, q + row * width, row, 1, t.heads, scale, scratch, alone);
        check_guard(alone, width, "attention");
        if (memcmp(alone, out + row * width, (size_t)width * sizeof *out) != 0)
            fail_msg("entry %lld alone is another (%lld heads of %lld)", (long long)row, (long long)t.heads,
                     (long long)hd);
        worst = fmax(worst, reference_error(&t, m.dtype, row, q, k, v, out + row * width));
    }
    if (!(worst < (m.dtype == QVL_F32 ? 1e-11 : 1e-4)))
        fail_msg("%lld entries, %lld heads of %lld: NMSE %.2e", (long long)t.length, (long long)t.heads,
                 (long long)hd, worst);
    float *k2 = random_array(3 * t.kv_heads * hd), *v2 = random_array(3 * t.kv_heads * hd);
    int64_t count = t.length < 3 ? t.length : 3;
    qvl_kv_read(c.compute, &kv, t.length - count, count, k2, v2);
    for (int64_t i = 0; i < count * t.kv_heads * hd; i++) {
        int64_t from = (t.length - count) * t.kv_heads * hd + i;
        assert_true(k2[i] == (float)factor(k[from], m.dtype) && v2[i] == (float)factor(v[from], m.dtype));
    }
    float *all[] = {q, k, v, out, alone, scratch, k2, v2};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) qvl_free(all[i]);
    for (int i = 0; i < 64; i++) qvl_free(pages[i]);
    close_context(&c);
    close_context(&single);
}

static void test_attention(void **state) {
    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        check_attention(modes[i], (attention_case){1, 2, 1, 16});
        check_attention(modes[i], (attention_case){50, 6, 2, 20});
        check_attention(modes[i], (attention_case){300, 4, 4, 72});
        check_attention(modes[i], (attention_case){530, 5, 1, 128});
    }
    /* More than one span. */
    check_attention(modes[2], (attention_case){4500, 4, 2, 32});
    check_attention(modes[MODES - 1], (attention_case){4500, 4, 2, 32});
    check_attention(modes[MODES - 1], (attention_case){8400, 2, 1, 64});
}

int main(int argc, char **argv) {
    random_state = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20260701u;
    printf("seed %u\n", random_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_project),
                                       cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
