/* The operations of Gated DeltaNet: against double arithmetic, against transformers' two forms of the rule, and the
 * promise that a row's bits do not depend on how the sequence is cut, on threads, or on the instruction set. */
#include "../tools/random_model/generator.h"
#include "base/memory.h"
#include "compute/delta.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct context {
    qvl_pool *pool;
    qvl_compute *compute;
} context;

static context open_context(int threads, qvl_dtype dtype, uint32_t cpu_mask) {
    context c;
    assert_int_equal(qvl_pool_open(threads, &c.pool, NULL), QVL_OK);
    assert_int_equal(qvl_compute_open(c.pool, dtype, cpu_mask, &c.compute, NULL), QVL_OK);
    return c;
}

static void close_context(context *c) {
    qvl_compute_close(&c->compute);
    qvl_pool_close(&c->pool);
}

static float *named(const char *prefix, const char *name, int64_t count) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    float *x = qvl_alloc((size_t)count, sizeof *x);
    demo_fill(full, 0, count, x);
    return x;
}

/* ---- one case of the rule: inputs as delta_fixtures.py makes them */

typedef struct rule_case {
    qvl_delta_shape shape;
    int64_t rows;
    float *mixed, *log_decay, *beta; /* as qvl_delta_rule takes them */
    float *out, *s;                  /* results of run_case */
} rule_case;

static double log_decay_of(const char *name, double x) {
    if (strcmp(name, "strong") == 0) return -15.0 * (1 + x);
    if (strcmp(name, "mixed") == 0) return x > 0.9 ? -600.0 : -0.02 * (1 + x);
    return -0.05 * (1 + x);
}

static void make_case(const char *name, int64_t rows, qvl_delta_shape shape, rule_case *c) {
    int64_t keys = shape.key_heads * shape.key_dim, values = shape.value_heads * shape.value_dim;
    int64_t channels = 2 * keys + values, gates = rows * shape.value_heads;
    *c = (rule_case){.shape = shape, .rows = rows};
    float *q = named(name, "q", rows * keys), *k = named(name, "k", rows * keys),
          *v = named(name, "v", rows * values);
    c->mixed = qvl_alloc((size_t)(rows * channels), sizeof(float));
    for (int64_t t = 0; t < rows; t++) {
        memcpy(c->mixed + t * channels, q + t * keys, (size_t)keys * sizeof(float));
        memcpy(c->mixed + t * channels + keys, k + t * keys, (size_t)keys * sizeof(float));
        memcpy(c->mixed + t * channels + 2 * keys, v + t * values, (size_t)values * sizeof(float));
    }
    c->log_decay = named(name, "g", gates);
    c->beta = named(name, "beta", gates);
    for (int64_t i = 0; i < gates; i++) {
        c->log_decay[i] = (float)log_decay_of(name, (double)c->log_decay[i]);
        c->beta[i] = (float)((1 + (double)c->beta[i]) / 2);
    }
    c->out = qvl_alloc((size_t)(rows * values), sizeof(float));
    c->s = qvl_alloc((size_t)(shape.value_heads * shape.key_dim * shape.value_dim), sizeof(float));
    qvl_free(q);
    qvl_free(k);
    qvl_free(v);
}

static void free_case(rule_case *c) {
    qvl_free(c->mixed);
    qvl_free(c->log_decay);
    qvl_free(c->beta);
    qvl_free(c->out);
    qvl_free(c->s);
}

/* All rows in calls of `step` rows (the last may be shorter). Returns the state. */
static float *run_case(const context *x, rule_case *c, int64_t step) {
    int64_t values = c->shape.value_heads * c->shape.value_dim;
    int64_t channels = 2 * c->shape.key_heads * c->shape.key_dim + values, heads = c->shape.value_heads;
    float *state = qvl_calloc((size_t)qvl_delta_state_floats(&c->shape), sizeof *state);
    for (int64_t t = 0; t < c->rows; t += step) {
        int64_t n = c->rows - t < step ? c->rows - t : step;
        qvl_delta_rule(x->compute, &c->shape, c->mixed + t * channels, c->log_decay + t * heads,
                       c->beta + t * heads, n, t, state, c->out + t * values);
    }
    qvl_delta_state_read(x->compute, &c->shape, state, c->rows, c->s);
    return state;
}

static double distance(const float *x, const double *reference, int64_t count) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)x[i] - reference[i]) * ((double)x[i] - reference[i]);
        power += reference[i] * reference[i];
    }
    return error / power;
}

/* The recurrence as language_model.md has it, in double. out [rows, Hv, dv], s [Hv, dk, dv]. */
static void recurrence(const rule_case *c, double *out, double *s) {
    int64_t dk = c->shape.key_dim, dv = c->shape.value_dim, heads = c->shape.value_heads;
    int64_t keys = c->shape.key_heads * dk, channels = 2 * keys + heads * dv;
    memset(s, 0, (size_t)(heads * dk * dv) * sizeof *s);
    for (int64_t t = 0; t < c->rows; t++)
        for (int64_t h = 0; h < heads; h++) {
            const float *q = c->mixed + t * channels + h / (heads / c->shape.key_heads) * dk, *k = q + keys;
            const float *v = c->mixed + t * channels + 2 * keys + h * dv;
            double qq = 1e-6, kk = 1e-6, decay = exp((double)c->log_decay[t * heads + h]),
                   *state = s + h * dk * dv;
            for (int64_t i = 0; i < dk; i++) qq += (double)q[i] * (double)q[i], kk += (double)k[i] * (double)k[i];
            for (int64_t j = 0; j < dv; j++) {
                double read = 0, result = 0;
                for (int64_t i = 0; i < dk; i++) {
                    state[i * dv + j] *= decay;
                    read += state[i * dv + j] * (double)k[i] / sqrt(kk);
                }
                double d = (double)c->beta[t * heads + h] * ((double)v[j] - read);
                for (int64_t i = 0; i < dk; i++) {
                    state[i * dv + j] += (double)k[i] / sqrt(kk) * d;
                    result += state[i * dv + j] * (double)q[i] / sqrt(qq);
                }
                out[(t * heads + h) * dv + j] = result / sqrt((double)dk);
            }
        }
}

static void check_against_double(const char *name, int64_t rows, qvl_delta_shape shape, const context *x) {
    rule_case c;
    make_case(name, rows, shape, &c);
    int64_t outs = rows * shape.value_heads * shape.value_dim;
    int64_t states = shape.value_heads * shape.key_dim * shape.value_dim;
    double *out = qvl_alloc((size_t)outs, sizeof *out), *s = qvl_alloc((size_t)states, sizeof *s);
    recurrence(&c, out, s);
    qvl_free(run_case(x, &c, rows));
    double d = distance(c.out, out, outs), e = distance(c.s, s, states);
    double bound = rows < 15 ? 1e-10 : 2e-13; /* the k . q of a row or two may nearly vanish */
    if (!(d < bound && e < 2e-13))
        fail_msg("%s, %lld rows of %lld x %lld: out %.3g, state %.3g", name, (long long)rows,
                 (long long)shape.key_dim, (long long)shape.value_dim, d, e);
    qvl_free(out);
    qvl_free(s);
    free_case(&c);
}

static void test_rule_is_the_recurrence(void **state) {
    (void)state;
    static const char *const names[] = {"mild", "strong", "mixed"};
    static const qvl_delta_shape shapes[] = {{1, 1, 1, 1},  {2, 2, 8, 8},     {1, 3, 17, 15}, {2, 4, 16, 33},
                                             {2, 8, 24, 7}, {1, 2, 128, 128}, {1, 1, 200, 96}};
    static const int64_t rows[] = {1, 2, 15, 16, 17, 63, 64, 65, 128, 131, 200};
    context x = open_context(2, QVL_F32, QVL_CPU_ALL);
    for (size_t n = 0; n < 3; n++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                check_against_double(names[n], rows[r], shapes[s], &x);
    close_context(&x);
}

/* ---- how a sequence is cut cannot be seen */

static void check_same(const rule_case *c, const rule_case *d, const char *what, int64_t number) {
    size_t outs = (size_t)(c->rows * c->shape.value_heads * c->shape.value_dim) * sizeof(float);
    size_t states = (size_t)(c->shape.value_heads * c->shape.key_dim * c->shape.value_dim) * sizeof(float);
    if (memcmp(c->out, d->out, outs) != 0 || memcmp(c->s, d->s, states) != 0)
        fail_msg("%s %lld changes bits (%lld x %lld)", what, (long long)number, (long long)c->shape.key_dim,
                 (long long)c->shape.value_dim);
}

static void test_cuts_are_not_seen(void **state) {
    (void)state;
    static const qvl_delta_shape shapes[] = {{2, 4, 8, 8}, {1, 3, 20, 40}, {2, 2, 128, 128}};
    static const int64_t steps[] = {1, 2, 7, 15, 16, 17, 32, 63, 64, 65, 127, 129, 1000};
    context one = open_context(1, QVL_F32, QVL_CPU_ALL), two = open_context(2, QVL_BF16, QVL_CPU_ALL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        rule_case whole, cut;
        make_case("mild", 330, shapes[i], &whole);
        make_case("mild", 330, shapes[i], &cut);
        float *first = run_case(&one, &whole, 330);
        size_t kept = (size_t)qvl_delta_saved_floats(&shapes[i], 330);
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            float *then = run_case(&two, &cut, steps[s]); /* other threads, other dtype: the rule is f32 */
            check_same(&whole, &cut, "a step of", steps[s]);
            float *saved = qvl_alloc(2 * kept, sizeof *saved);
            qvl_delta_save(&shapes[i], first, 330, saved);
            qvl_delta_save(&shapes[i], then, 330, saved + kept);
            assert_memory_equal(saved, saved + kept, kept * sizeof *saved); /* also the unfinished chunk */
            qvl_free(saved);
            qvl_free(then);
        }
        qvl_free(first);
        free_case(&whole);
        free_case(&cut);
    }
    close_context(&one);
    close_context(&two);
}

/* A call within a chunk leaves the position before it as it was; a saved state is all that counts. */
static void test_undo_and_save(void **state) {
    (void)state;
    static const qvl_delta_shape shape = {2, 4, 24, 40};
    enum { ROWS = 3 * QVL_DELTA_CHUNK + 5, CHANNELS = 2 * 2 * 24 + 4 * 40, VALUES = 4 * 40 };
    context x = open_context(2, QVL_F32, QVL_CPU_ALL);
    rule_case want, got;
    make_case("mild", ROWS, shape, &want);
    make_case("mild", ROWS, shape, &got);
    qvl_free(run_case(&x, &want, ROWS));
    size_t floats = (size_t)qvl_delta_state_floats(&shape);
    float *now = qvl_calloc(floats, sizeof *now), *other = qvl_calloc(floats, sizeof *other);
    for (int64_t t = 0; t < ROWS; t++) {
        int64_t most = qvl_delta_undoable(t), wrong = most < ROWS - t ? most : ROWS - t;
        qvl_delta_rule(x.compute, &shape, got.mixed, got.log_decay + 3, got.beta, wrong, t, now,
                       got.out + t * VALUES);
        float *saved = qvl_alloc((size_t)qvl_delta_saved_floats(&shape, t), sizeof *saved);
        qvl_delta_save(&shape, now, t, saved);
        qvl_delta_load(&shape, saved, t, other);
        qvl_free(saved);
        float *swap = now;
        now = other;
        other = swap;
        qvl_delta_rule(x.compute, &shape, got.mixed + t * CHANNELS, got.log_decay + t * 4, got.beta + t * 4, 1, t,
                       now, got.out + t * VALUES);
    }
    qvl_delta_state_read(x.compute, &shape, now, ROWS, got.s);
    check_same(&want, &got, "undo and save", 0);
    qvl_free(now);
    qvl_free(other);
    free_case(&want);
    free_case(&got);
    close_context(&x);
}

static void test_instruction_sets_agree(void **state) {
    (void)state;
    static const qvl_delta_shape shape = {2, 6, 40, 56};
    static const uint32_t masks[] = {QVL_CPU_AVX2, QVL_CPU_ALL};
    context scalar = open_context(3, QVL_F32, QVL_CPU_SCALAR);
    rule_case want, got;
    make_case("strong", 150, shape, &want);
    make_case("strong", 150, shape, &got);
    qvl_free(run_case(&scalar, &want, 1));
    for (size_t i = 0; i < 2; i++) {
        context fast = open_context(2, QVL_F32, masks[i]);
        qvl_free(run_case(&fast, &got, 150));
        check_same(&want, &got, "instruction set", (int64_t)i);
        close_context(&fast);
    }
    free_case(&want);
    free_case(&got);
    close_context(&scalar);
}

/* ---- transformers */

static qvl_tensor find(const qvl_tensor_file *fixture, const char *name, const char *part) {
    char key[64];
    snprintf(key, sizeof key, "%s/%s", name, part);
    qvl_tensor t;
    if (!qvl_tensor_file_find(fixture, key, &t)) fail_msg("the fixture has no %s", key);
    return t;
}

static double at(const qvl_tensor *t, int64_t i) {
    return t->dtype == QVL_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

/* Sampled rows of width floats against tensor t; per head if the sample repeats in each of `groups` groups. */
static double sampled(const float *x, int64_t width, const int64_t *rows, int64_t count, const qvl_tensor *t) {
    double error = 0, power = 0;
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < width; j++) {
            double a = (double)x[rows[r] * width + j], b = at(t, r * width + j);
            error += (a - b) * (a - b);
            power += b * b;
        }
    return error / power;
}

static void compare_with_transformers(const qvl_tensor_file *fixture, const char *name, const context *x,
                                      double chunk_bound) {
    qvl_tensor shape = find(fixture, name, "shape"), rows = find(fixture, name, "rows");
    const int64_t *n = shape.data;
    rule_case c;
    make_case(name, n[0], (qvl_delta_shape){n[1], n[2], n[3], n[4]}, &c);
    qvl_free(run_case(x, &c, n[0]));
    int64_t state_rows[4096], kept = 0;
    for (int64_t h = 0; h < n[2]; h++)
        for (int64_t i = 0; i < n[3]; i += 5) state_rows[kept++] = h * n[3] + i;
    const struct {
        const char *out, *s;
        double bound;
    } references[] = {{"out", "s", 2e-13}, {"recurrent", "recurrent/s", 2e-13}, {"chunk", "chunk/s", chunk_bound}};
    for (size_t i = 0; i < 3; i++) {
        qvl_tensor out = find(fixture, name, references[i].out), s = find(fixture, name, references[i].s);
        double d = sampled(c.out, n[2] * n[4], rows.data, rows.shape[0], &out);
        double e = sampled(c.s, n[4], state_rows, kept, &s);
        printf("%s to %s: out %.2g, state %.2g\n", name, references[i].out, d, e);
        assert_true(d < references[i].bound && e < references[i].bound);
    }
    free_case(&c);
}

/* In "mixed" transformers' chunked form is itself 4e-9 from float64: it sums log decays of -600 in f32. */
static void test_transformers(void **state) {
    (void)state;
    qvl_tensor_file *fixture = NULL;
    qvl_error error = {0};
    if (qvl_tensor_file_open(QVL_FIXTURES "/delta_rule.safetensors", &fixture, &error))
        fail_msg("%s", error.message);
    context x = open_context(2, QVL_F32, QVL_CPU_ALL);
    compare_with_transformers(fixture, "mild", &x, 2e-13);
    compare_with_transformers(fixture, "strong", &x, 1e-11);
    compare_with_transformers(fixture, "mixed", &x, 1e-8);
    close_context(&x);
    qvl_tensor_file_close(&fixture);
}

/* A value that is not finite stays: nothing later looks sound. */
static void test_nonfinite_stays(void **state) {
    (void)state;
    static const qvl_delta_shape shape = {1, 1, 16, 16};
    context x = open_context(1, QVL_F32, QVL_CPU_ALL);
    for (int what = 0; what < 4; what++) {
        rule_case c;
        make_case("mild", 100, shape, &c);
        float *places[] = {c.mixed + 10 * 48 + 20, c.mixed + 10 * 48 + 40, c.log_decay + 10, c.beta + 10};
        *places[what] = what % 2 ? INFINITY : NAN;
        qvl_free(run_case(&x, &c, 100));
        for (int64_t t = 10; t < 100; t++) {
            bool finite = true;
            for (int64_t j = 0; j < 16; j++) finite = finite && isfinite(c.out[t * 16 + j]);
            if (finite) fail_msg("kind %d: row %lld is finite", what, (long long)t);
        }
        free_case(&c);
    }
    close_context(&x);
}

/* ---- around the rule */

static void test_convolution(void **state) {
    (void)state;
    static const int64_t channels[] = {1, 31, 300, 520};
    for (size_t i = 0; i < 4; i++)
        for (int64_t width = 1; width <= 5; width++)
            for (int64_t step = 1; step <= 41; step += step < 5 ? 1 : 36) {
                context x = open_context(2, QVL_F32, QVL_CPU_ALL);
                int64_t n = channels[i], rows = 41;
                float *in = named("conv", "x", rows * n), *y = named("conv", "x", rows * n);
                float *taps = named("conv", "taps", width * n), *kept = qvl_calloc((size_t)(5 * n), sizeof(float));
                for (int64_t t = 0; t < rows; t += step)
                    qvl_causal_convolution(x.compute, y + t * n, rows - t < step ? rows - t : step, n, taps, width,
                                           kept);
                for (int64_t t = 0; t < rows; t++)
                    for (int64_t c = 0; c < n; c++) {
                        double s = 0;
                        for (int64_t j = 0; j < width; j++) {
                            int64_t row = t - width + 1 + j;
                            s += row < 0 ? 0 : (double)taps[j * n + c] * (double)in[row * n + c];
                        }
                        assert_true(fabs((double)y[t * n + c] - s / (1 + exp(-s))) < 1e-6);
                    }
                if (width > 1)
                    assert_memory_equal(kept, in + (rows - width + 1) * n,
                                        (size_t)((width - 1) * n) * sizeof(float));
                qvl_free(in);
                qvl_free(y);
                qvl_free(taps);
                qvl_free(kept);
                close_context(&x);
            }
}

static void test_gates(void **state) {
    (void)state;
    enum { ROWS = 7, HEADS = 5 };
    float *a = named("gates", "a", ROWS * HEADS), *b = named("gates", "b", ROWS * HEADS);
    float *rate = named("gates", "A", HEADS), *bias = named("gates", "dt", HEADS);
    a[3] = 80.0f;
    a[4] = -90.0f;
    b[3] = -80.0f;
    float decay[ROWS * HEADS], beta[ROWS * HEADS];
    qvl_delta_gates(a, b, rate, bias, ROWS, HEADS, decay, beta);
    for (int i = 0; i < ROWS * HEADS; i++) {
        double want = -exp((double)rate[i % HEADS]) * log1p(exp((double)a[i] + (double)bias[i % HEADS]));
        assert_true(fabs((double)decay[i] / want - 1) < 1e-7);
        assert_true(fabs((double)beta[i] * (1 + exp(-(double)b[i])) - 1) < 1e-7);
    }
    qvl_delta_gates(a, b, rate, bias, ROWS, HEADS, a, b);
    assert_memory_equal(a, decay, sizeof decay);
    assert_memory_equal(b, beta, sizeof beta);
    qvl_free(a);
    qvl_free(b);
    qvl_free(rate);
    qvl_free(bias);
}

static void check_gated_norm(qvl_dtype dtype, uint32_t cpu_mask, double bound) {
    enum { ROWS = 35, HEADS = 3, DIM = 24, COLS = HEADS * DIM };
    context x = open_context(2, dtype, cpu_mask);
    float *in = named("norm", "x", ROWS * COLS), *o = named("norm", "x", ROWS * COLS);
    float *gate = named("norm", "z", ROWS * COLS), *weight = named("norm", "w", DIM), y[ROWS * COLS];
    void *data = qvl_calloc(qvl_operand_bytes(x.compute, ROWS, COLS), 1);
    qvl_operand out = {ROWS, COLS, data};
    qvl_gated_norm(x.compute, o, gate, weight, HEADS, DIM, 1e-6f, &out);
    qvl_operand_read(x.compute, &out, y);
    double error = 0, power = 0;
    for (int i = 0; i < ROWS * HEADS; i++) {
        double mean = 0;
        for (int j = 0; j < DIM; j++) mean += (double)in[i * DIM + j] * (double)in[i * DIM + j] / DIM;
        for (int j = 0; j < DIM; j++) {
            double z = (double)gate[i * DIM + j];
            double want = (double)in[i * DIM + j] / sqrt(mean + 1e-6) * (double)weight[j] * z / (1 + exp(-z));
            error += (want - (double)y[i * DIM + j]) * (want - (double)y[i * DIM + j]);
            power += want * want;
        }
    }
    assert_true(error / power < bound);
    qvl_free(in);
    qvl_free(o);
    qvl_free(gate);
    qvl_free(weight);
    qvl_free(data);
    close_context(&x);
}

static void test_gated_norm(void **state) {
    (void)state;
    check_gated_norm(QVL_F32, QVL_CPU_SCALAR, 1e-13);
    check_gated_norm(QVL_F32, QVL_CPU_ALL, 1e-13);
    check_gated_norm(QVL_BF16, QVL_CPU_AVX2, 1e-5);
    check_gated_norm(QVL_BF16, QVL_CPU_ALL, 1e-5);
}

static void test_sigmoid_gate(void **state) {
    (void)state;
    enum { COUNT = 9001 };
    context x = open_context(3, QVL_F32, QVL_CPU_ALL);
    float *in = named("gate", "x", COUNT), *y = named("gate", "x", COUNT), *gate = named("gate", "g", COUNT);
    qvl_sigmoid_gate(x.compute, y, gate, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabs((double)y[i] - (double)in[i] / (1 + exp(-(double)gate[i]))) < 1e-7);
    qvl_free(in);
    qvl_free(y);
    qvl_free(gate);
    close_context(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_is_the_recurrence),
        cmocka_unit_test(test_cuts_are_not_seen),
        cmocka_unit_test(test_undo_and_save),
        cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_nonfinite_stays),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_gated_norm),
        cmocka_unit_test(test_sigmoid_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
