/* The operations of compute.h against plain double arithmetic, in both dtypes, for 1 to 3 threads. */
#include "base/bf16.h"
#include "base/memory.h"
#include "compute/compute.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compute/contexts.h"

static uint32_t random_state = 12345;

static float random_value(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (float)((double)random_state / 2147483648.0 - 1.0);
}

static float *random_array(size_t n) {
    float *x = qvl_alloc(n, sizeof(float));
    for (size_t i = 0; i < n; i++) x[i] = random_value();
    return x;
}

/* What a factor of a product is in this dtype. */
static double factor(float x, qvl_dtype dtype) {
    return dtype == QVL_BF16 ? (double)qvl_f32_from_bf16(qvl_bf16_from_f32(x)) : (double)x;
}

static const mode modes[] = {
    {QVL_F32, QVL_CPU_SCALAR},
    {QVL_F32, QVL_CPU_AVX2},
    {QVL_F32, QVL_CPU_ALL},
    {QVL_BF16, QVL_CPU_AVX2},
    {QVL_BF16, QVL_CPU_AVX2 | QVL_CPU_AVX512},
    {QVL_BF16, QVL_CPU_AVX2 | QVL_CPU_AVX512 | QVL_CPU_AVX512BF16},
    {QVL_BF16, QVL_CPU_ALL},
};
#define MODES (sizeof modes / sizeof modes[0])

static double nmse(const float *x, const double *reference, size_t n) {
    double e = 0, p = 0;
    for (size_t i = 0; i < n; i++) {
        e += ((double)x[i] - reference[i]) * ((double)x[i] - reference[i]);
        p += reference[i] * reference[i];
    }
    return e / p;
}

typedef struct product_case {
    int64_t rows, n, k;
} product_case;

/* All four products of one size; the results are returned for comparison between thread counts. */
static void run_products(context *c, product_case p, const float *x, const float *w, const float *bias,
                         float *out) {
    qvl_operand a = {p.rows, p.k, qvl_alloc(qvl_operand_bytes(c->compute, p.rows, p.k), 1)};
    qvl_operand g = {p.rows, p.n, qvl_alloc(qvl_operand_bytes(c->compute, p.rows, p.n), 1)};
    qvl_weight weight = {p.n, p.k, qvl_alloc(qvl_weight_bytes(c->compute, p.n, p.k), 1), bias};
    size_t size = (size_t)(p.rows * p.n);
    qvl_weight_pack(c->compute, w, QVL_F32, &weight);
    qvl_operand_load(c->compute, x, &a);
    qvl_matmul(c->compute, &a, &weight, out);
    for (size_t i = 0; i < size; i++) out[size + i] = (float)i * 0.01f;
    qvl_matmul_add(c->compute, &a, &weight, out + size);
    qvl_matmul_gelu(c->compute, &a, &weight, QVL_GELU_TANH, &g);
    qvl_operand_read(c->compute, &g, out + 2 * size);
    qvl_matmul_gelu(c->compute, &a, &weight, QVL_GELU_ERF, &g);
    qvl_operand_read(c->compute, &g, out + 3 * size);
    qvl_free(a.data);
    qvl_free(g.data);
    qvl_free(weight.packed);
}

static void expected_products(product_case p, qvl_dtype dtype, const float *x, const float *w, const float *bias,
                              double *want) {
    size_t size = (size_t)(p.rows * p.n);
    for (int64_t i = 0; i < p.rows; i++)
        for (int64_t j = 0; j < p.n; j++) {
            double s = (double)bias[j];
            for (int64_t l = 0; l < p.k; l++) s += factor(x[i * p.k + l], dtype) * factor(w[j * p.k + l], dtype);
            size_t at = (size_t)(i * p.n + j);
            want[at] = s;
            want[size + at] = (double)((float)at * 0.01f) + s;
            want[2 * size + at] = 0.5 * s * (1 + tanh(sqrt(2 / acos(-1.0)) * (s + 0.044715 * s * s * s)));
            want[3 * size + at] = 0.5 * s * erfc(-s / sqrt(2.0));
        }
}

static void test_products(void **state) {
    (void)state;
    static const product_case cases[] = {{1, 1, 1},        {2, 31, 5},     {3, 33, 255},  {145, 193, 257},
                                         {12, 192, 256},   {13, 200, 600}, {300, 40, 72}, {7, 400, 1030},
                                         {40, 1300, 2500}, {700, 100, 64}};
    for (size_t m = 0; m < MODES; m++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            product_case p = cases[i];
            qvl_dtype dtype = modes[m].dtype;
            size_t size = (size_t)(p.rows * p.n) * 4;
            float *x = random_array((size_t)(p.rows * p.k)), *w = random_array((size_t)(p.n * p.k));
            float *bias = random_array((size_t)p.n), *first = random_array(size), *other = random_array(size);
            double *want = malloc(size * sizeof(double));
            expected_products(p, dtype, x, w, bias, want);
            for (int threads = 1; threads <= 3; threads++) {
                context c = open_context(threads, modes[m]);
                run_products(&c, p, x, w, bias, threads == 1 ? first : other);
                close_context(&c);
                if (threads > 1) assert_memory_equal(first, other, size * sizeof(float));
            }
            /* Sums stay f32; the two operands that GELU writes are rounded to bf16 in bf16 mode: 2^-8 of a value at most.
             */
            double plain = nmse(first, want, size / 2), gelu = nmse(first + size / 2, want + size / 2, size / 2);
            if (!(plain < 1e-12 && gelu < (dtype == QVL_BF16 ? 1.6e-5 : 1e-12)))
                fail_msg("%lld x %lld x %lld, mode %zu: NMSE %.3g, after GELU %.3g", (long long)p.rows,
                         (long long)p.n, (long long)p.k, m, plain, gelu);
            qvl_free(x);
            qvl_free(w);
            qvl_free(bias);
            qvl_free(first);
            qvl_free(other);
            free(want);
        }
}

/* Plain attention in double on what qvl_heads_read gives: what goes in is checked by test_rotation. */
static void expected_attention(int64_t heads, int64_t hd, const qvl_segments *s, const float *q, const float *k,
                               const float *v, double scale, double *out) {
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t row = s->start[i]; row < s->start[i + 1]; row++) {
                double sum = 0, top = -INFINITY, *o = out + (row * heads + h) * hd;
                for (int64_t key = s->start[i]; key < s->start[i + 1]; key++) {
                    double dot = 0;
                    for (int64_t d = 0; d < hd; d++)
                        dot += (double)q[(row * heads + h) * hd + d] * (double)k[(key * heads + h) * hd + d];
                    double score = dot * scale, new_top = fmax(top, score), decay = exp(top - new_top);
                    double p = exp(score - new_top);
                    for (int64_t d = 0; d < hd; d++)
                        o[d] = o[d] * decay + p * (double)v[(key * heads + h) * hd + d];
                    sum = sum * decay + p;
                    top = new_top;
                }
                for (int64_t d = 0; d < hd; d++) o[d] /= sum;
            }
}

typedef struct attention_case {
    int64_t heads, hd;
    int64_t lengths[6]; /* of segments, ended by 0 */
    float size;         /* of the inputs: large scores make softmax one-hot */
    float growth;       /* of the inputs from row to row: the largest score rises on the way through the keys */
} attention_case;

static void run_attention(context *c, const attention_case *a, const qvl_segments *s, const float *x,
                          const float *w, const float *bias, const float *cosine, const float *sine, float *parts,
                          float *out) {
    int64_t rows = s->start[s->count], d = a->heads * a->hd;
    qvl_operand in = {rows, d, qvl_alloc(qvl_operand_bytes(c->compute, rows, d), 1)}, result = in;
    result.data = qvl_alloc(qvl_operand_bytes(c->compute, rows, d), 1);
    qvl_weight weight = {3 * d, d, qvl_alloc(qvl_weight_bytes(c->compute, 3 * d, d), 1), bias};
    qvl_heads heads = {rows, a->heads, a->hd, 1.0f / sqrtf((float)a->hd),
                       qvl_alloc(qvl_heads_bytes(c->compute, rows, a->heads, a->hd, s), 1)};
    float *scratch = qvl_alloc(qvl_matmul_qkv_scratch(c->compute, rows, a->heads, a->hd), sizeof(float));
    memset(heads.data, 0xff,
           qvl_heads_bytes(c->compute, rows, a->heads, a->hd, s)); /* NaN where nothing is written */
    qvl_weight_pack(c->compute, w, QVL_F32, &weight);
    qvl_operand_load(c->compute, x, &in);
    qvl_matmul_qkv(c->compute, &in, &weight, cosine, sine, s, scratch, &heads);
    qvl_heads_read(c->compute, &heads, s, parts, parts + rows * d, parts + 2 * rows * d);
    qvl_attention(c->compute, &heads, s, &result);
    qvl_operand_read(c->compute, &result, out);
    qvl_free(in.data);
    qvl_free(result.data);
    qvl_free(weight.packed);
    qvl_free(heads.data);
    qvl_free(scratch);
}

static void check_rotation(const attention_case *a, int64_t rows, qvl_dtype dtype, const float *x, const float *w,
                           const float *bias, const float *cosine, const float *sine, const float *parts) {
    int64_t d = a->heads * a->hd, half = a->hd / 2;
    double error = 0, power = 0;
    for (int64_t row = 0; row < rows; row += 7)
        for (int64_t j = 0; j < 3 * d; j++) {
            int64_t part = j / d, in_head = j % d % a->hd;
            double value[2];
            for (int other = 0; other < 2; other++) {
                int64_t partner = other ? (in_head < half ? j + half : j - half) : j;
                double s = (double)bias[partner];
                for (int64_t l = 0; l < d; l++)
                    s += factor(x[row * d + l], dtype) * factor(w[partner * d + l], dtype);
                value[other] = s;
            }
            double co = (double)cosine[row * half + in_head % half],
                   si = (double)sine[row * half + in_head % half];
            double want = part == 2 ? value[0] : value[0] * co + (in_head < half ? -value[1] : value[1]) * si;
            double got = (double)parts[part * rows * d + row * d + j % d];
            error += (got - want) * (got - want);
            power += want * want;
        }
    assert_true(error / power < (dtype == QVL_BF16 ? 1.6e-5 : 1e-12));
}

static void check_attention_case(const attention_case *a, mode m) {
    qvl_dtype dtype = m.dtype;
    int64_t start[7] = {0};
    qvl_segments s = {.start = start};
    while (a->lengths[s.count]) {
        start[s.count + 1] = start[s.count] + a->lengths[s.count];
        s.count++;
    }
    int64_t rows = start[s.count], d = a->heads * a->hd;
    size_t size = (size_t)(rows * d);
    float *x = random_array(size), *w = random_array((size_t)(3 * d * d)), *bias = random_array((size_t)(3 * d));
    float *cosine = random_array((size_t)(rows * a->hd / 2)), *sine = random_array((size_t)(rows * a->hd / 2));
    for (size_t i = 0; i < size; i++) x[i] *= a->size * (1.0f + a->growth * (float)(i / (size_t)d));
    float *parts = random_array(3 * size), *first = random_array(size), *other = random_array(size);
    double *want = calloc(size, sizeof(double));
    for (int threads = 1; threads <= 3; threads++) {
        context c = open_context(threads, m);
        run_attention(&c, a, &s, x, w, bias, cosine, sine, parts, threads == 1 ? first : other);
        close_context(&c);
        if (threads > 1) assert_memory_equal(first, other, size * sizeof(float));
    }
    check_rotation(a, rows, dtype, x, w, bias, cosine, sine, parts);
    expected_attention(a->heads, a->hd, &s, parts, parts + size, parts + 2 * size, 1 / sqrt((double)a->hd), want);
    double found = nmse(first, want, size), largest = a->size * (1 + a->growth * (double)rows);
    double bound = dtype == QVL_BF16 ? 1e-5 : 1e-12 * fmax(1.0, largest * 10);
    if (!(found < bound)) fail_msg("head width %lld: NMSE %.3g, allowed %.3g", (long long)a->hd, found, bound);
    qvl_free(x);
    qvl_free(w);
    qvl_free(bias);
    qvl_free(cosine);
    qvl_free(sine);
    qvl_free(parts);
    qvl_free(first);
    qvl_free(other);
    free(want);
}

static void test_attention(void **state) {
    (void)state;
    static const attention_case cases[] = {
        {2, 16, {24, 16, 16, 4, 0}, 0.5f, 0}, {1, 72, {33, 1, 2, 100, 0}, 0.2f, 0},
        {3, 64, {49, 47, 0}, 0.2f, 0},        {1, 80, {513, 511, 4, 0}, 0.2f, 0},
        {2, 128, {64, 0}, 0.1f, 0},           {1, 4, {1200, 0}, 1.0f, 0},
        {1, 72, {520, 40, 0}, 3.0f, 0},       {2, 20, {31, 32, 33, 0}, 1.0f, 0},
        {1, 72, {300, 90, 0}, 0.2f, 0.05f},   {1, 64, {300, 90, 0}, 0.2f, 0.05f},
        {1, 80, {300, 90, 0}, 0.2f, 0.05f},
    };
    for (size_t m = 0; m < MODES; m++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_attention_case(&cases[i], modes[m]);
}

static void test_layer_norm_and_gather(void **state) {
    (void)state;
    context c = open_context(2, modes[2]);
    int64_t rows = 36, cols = 72;
    float *x = random_array((size_t)(rows * cols)), *w = random_array(72), *b = random_array(72);
    qvl_operand out = {rows / 4, 4 * cols, qvl_alloc(qvl_operand_bytes(c.compute, rows / 4, 4 * cols), 1)};
    float *y = random_array((size_t)(rows * cols));
    qvl_layer_norm(c.compute, x, rows, cols, w, b, 1e-6f, 4, &out);
    qvl_operand_read(c.compute, &out, y);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, var = 0;
        for (int64_t j = 0; j < cols; j++) mean += (double)x[r * cols + j] / (double)cols;
        for (int64_t j = 0; j < cols; j++) var += pow((double)x[r * cols + j] - mean, 2) / (double)cols;
        for (int64_t j = 0; j < cols; j++) {
            double want = ((double)x[r * cols + j] - mean) / sqrt(var + 1e-6) * (double)w[j] + (double)b[j];
            assert_true(fabs((double)y[r * cols + j] - want) < 2e-6);
        }
    }
    int32_t indices[2][4] = {{0, 1, 2, 3}, {3, 3, 0, 0}};
    float weights[2][4] = {{0.25f, 0.25f, 0.25f, 0.25f}, {1.0f, 0.0f, 0.5f, 0.0f}};
    float *stream = random_array(2 * 72), before[2 * 72];
    memcpy(before, stream, sizeof before);
    qvl_gather_add(c.compute, x, (const int32_t(*)[4])indices, (const float(*)[4])weights, 2, 72, stream);
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < 72; j++) {
            double want = (double)before[r * 72 + j];
            for (int i = 0; i < 4; i++) want += (double)weights[r][i] * (double)x[indices[r][i] * 72 + j];
            assert_true(fabs((double)stream[r * 72 + j] - want) < 1e-6);
        }
    float odd[5] = {1, 2, INFINITY, 4, NAN};
    assert_int_equal(qvl_first_nonfinite(c.compute, odd, 5), 2);
    assert_int_equal(qvl_first_nonfinite(c.compute, odd, 2), -1);
    assert_int_equal(qvl_first_nonfinite(c.compute, odd + 3, 2), 1);
    qvl_free(x);
    qvl_free(w);
    qvl_free(b);
    qvl_free(y);
    qvl_free(out.data);
    qvl_free(stream);
    close_context(&c);
}

/* Weights packed from F16 and from unaligned memory are the same numbers. */
static void test_pack_sources(void **state) {
    (void)state;
    context c = open_context(1, modes[2]);
    uint8_t raw[2 * 12 + 1];
    float values[12], bias[4] = {0};
    for (uint16_t i = 0; i < 12; i++) {
        uint16_t half = (uint16_t)(0x3c00 + i * 37); /* 1.0 and up */
        memcpy(raw + 1 + 2 * i, &half, 2);
        values[i] = qvl_f32_from_f16(half);
    }
    assert_true(values[0] == 1.0f && qvl_f32_from_f16(0x0001) == 0x1p-24f && isinf(qvl_f32_from_f16(0xfc00)));
    qvl_weight a = {4, 3, qvl_calloc(qvl_weight_bytes(c.compute, 4, 3), 1), bias}, b = a;
    b.packed = qvl_calloc(qvl_weight_bytes(c.compute, 4, 3), 1);
    qvl_weight_pack(c.compute, raw + 1, QVL_F16, &a);
    qvl_weight_pack(c.compute, values, QVL_F32, &b);
    assert_memory_equal(a.packed, b.packed, qvl_weight_bytes(c.compute, 4, 3));
    qvl_free(a.packed);
    qvl_free(b.packed);
    close_context(&c);
}

/* Heads of 72 are 96 dimensions of q and k and 80 of v to tiles. */
static void test_ceilings(void **state) {
    (void)state;
    for (size_t m = 0; m < MODES; m++) {
        context c = open_context(2, modes[m]);
        const char *kernels = qvl_compute_kernels(c.compute);
        bool tiles = strcmp(kernels, "avx512bf16") == 0 || strcmp(kernels, "amx") == 0;
        double seconds, wanted = tiles ? 176.0 / 144.0 : 1.0;
        assert_true(fabs(qvl_attention_padding(c.compute, 72) - wanted) < 1e-12);
        assert_true(qvl_attention_padding(c.compute, 64) == 1.0);
        assert_true(qvl_peak_flops(c.compute, QVL_PEAK_REGISTERS, &seconds) > 0 && seconds > 0);
        assert_true(qvl_peak_flops(c.compute, QVL_PEAK_LOADED, &seconds) > 0 && seconds > 0);
        close_context(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_layer_norm_and_gather),
                                       cmocka_unit_test(test_pack_sources), cmocka_unit_test(test_ceilings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
