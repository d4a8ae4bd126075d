/* Rows of embed_tokens: under every name, of every type, in shards, quantised; and what is refused. */
#define _GNU_SOURCE
#include "base/bf16.h"
#include "model/embeddings.h"
#include "model/test_folder.h"

#include <math.h>

enum { ROWS = 7, WIDTH = 64 };

/* A table as it is saved: up to three tensors. */
typedef struct table {
    qvl_tensor tensors[8];
    size_t count;
} table;

static void add(table *t, const char *name, qvl_dtype dtype, int64_t rows, int64_t cols, const void *data) {
    t->tensors[t->count++] =
        (qvl_tensor){.name = name, .dtype = dtype, .ndim = 2, .shape = {rows, cols}, .data = data};
}

static void save(test_folder *folder, const char *file, const qvl_tensor *tensors, size_t count) {
    qvl_error error;
    assert_ok(qvl_tensors_save(folder_file(folder, file), tensors, count, NULL, 0, &error), &error);
}

static void open_table(const test_folder *folder, qvl_embeddings *embeddings) {
    qvl_error error = {0};
    assert_ok(qvl_embeddings_open(folder->path, WIDTH, embeddings, &error), &error);
    assert_int_equal(embeddings->rows, ROWS);
    assert_int_equal(embeddings->width, WIDTH);
}

static void gather(const qvl_embeddings *embeddings, qvl_dtype dtype, const int64_t *ids, size_t count,
                   void *out) {
    qvl_error error = {0};
    assert_ok(qvl_embeddings_gather(embeddings, ids, count, dtype, out, &error), &error);
}

static float value(int64_t row, int64_t column) {
    return (float)(row * 100 + column) / 64.0f - 3.0f; /* exact in bf16 only now and then */
}

static void fill(float *values) {
    for (int64_t i = 0; i < ROWS * WIDTH; i++) values[i] = value(i / WIDTH, i % WIDTH);
}

static void test_every_name(void **state) {
    (void)state;
    static const char *const names[] = {"model.language_model.embed_tokens.weight",
                                        "language_model.model.embed_tokens.weight", "model.embed_tokens.weight",
                                        "language_model.embed_tokens.weight", "embed_tokens.weight"};
    static float values[ROWS * WIDTH];
    fill(values);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        test_folder folder;
        table t = {0};
        folder_open(&folder);
        add(&t, names[i], QVL_F32, ROWS, WIDTH, values);
        add(&t, "model.embed_tokens_other.weight", QVL_F32, ROWS, WIDTH, values);
        add(&t, "lm_head.weight", QVL_F32, ROWS, WIDTH, values);
        save(&folder, "model.safetensors", t.tensors, t.count);
        qvl_embeddings embeddings;
        open_table(&folder, &embeddings);
        float out[3 * WIDTH];
        gather(&embeddings, QVL_F32, (int64_t[]){6, 0, 6}, 3, out);
        assert_memory_equal(out, values + 6 * WIDTH, WIDTH * sizeof *out);
        assert_memory_equal(out + WIDTH, values, WIDTH * sizeof *out);
        assert_memory_equal(out + 2 * WIDTH, out, WIDTH * sizeof *out);
        qvl_embeddings_close(&embeddings);
        folder_close(&folder);
    }
}

/* F32, BF16 and F16 to F32 (exact) and to BF16 (nearest even). */
static void test_every_type(void **state) {
    (void)state;
    static const qvl_dtype types[] = {QVL_F32, QVL_BF16, QVL_F16};
    /* 1, 1 + 2^-8 (half way: to even), 1 + 3 * 2^-8 (half way: up), -0, the smallest f16, 65504 */
    static const uint16_t f16[6] = {0x3c00, 0x3c04, 0x3c0c, 0x8000, 0x0001, 0x7bff};
    static float f32[ROWS * WIDTH];
    static uint16_t halves[ROWS * WIDTH];
    for (size_t k = 0; k < 3; k++) {
        test_folder folder;
        table t = {0};
        folder_open(&folder);
        for (size_t i = 0; i < ROWS * WIDTH; i++) {
            f32[i] = qvl_f32_from_f16(f16[i % 6]);
            halves[i] = types[k] == QVL_F16 ? f16[i % 6] : qvl_bf16_from_f32(f32[i]);
        }
        add(&t, "embed_tokens.weight", types[k], ROWS, WIDTH, types[k] == QVL_F32 ? (void *)f32 : halves);
        save(&folder, "model.safetensors", t.tensors, 1);
        qvl_embeddings embeddings;
        open_table(&folder, &embeddings);
        float wide[WIDTH];
        uint16_t narrow[WIDTH];
        gather(&embeddings, QVL_F32, (int64_t[]){3}, 1, wide);
        gather(&embeddings, QVL_BF16, (int64_t[]){3}, 1, narrow);
        for (size_t i = 0; i < WIDTH; i++) {
            float stored = f32[3 * WIDTH + i];
            float wanted = types[k] == QVL_BF16 ? qvl_f32_from_bf16(qvl_bf16_from_f32(stored)) : stored;
            assert_int_equal(qvl_bits_from_f32(wide[i]), qvl_bits_from_f32(wanted));
            assert_int_equal(narrow[i], qvl_bf16_from_f32(stored));
        }
        qvl_embeddings_close(&embeddings);
        folder_close(&folder);
    }
}

/* The table lies in a shard among others; quantised, its three tensors may lie in several. */
static void test_shards(void **state) {
    (void)state;
    static float values[ROWS * WIDTH];
    static uint32_t packed[ROWS * WIDTH / 8];
    fill(values);
    test_folder folder;
    folder_open(&folder);
    qvl_tensor weight = {.name = "language_model.model.embed_tokens.weight",
                         .dtype = QVL_U32,
                         .ndim = 2,
                         .shape = {ROWS, WIDTH / 8},
                         .data = packed};
    qvl_tensor scales = {.name = "language_model.model.embed_tokens.scales",
                         .dtype = QVL_F32,
                         .ndim = 2,
                         .shape = {ROWS, 2},
                         .data = values};
    qvl_tensor biases = scales;
    biases.name = "language_model.model.embed_tokens.biases";
    qvl_tensor other = {.name = "lm_head.weight", .dtype = QVL_F32, .ndim = 1, .shape = {3}, .data = values};
    save(&folder, "a.safetensors", &weight, 1);
    save(&folder, "b.safetensors", (const qvl_tensor[]){biases, scales}, 2);
    save(&folder, "c.safetensors", &other, 1);
    folder_write_text(&folder, "model.safetensors.index.json",
                      "{\"weight_map\":{\"language_model.model.embed_tokens.weight\":\"a.safetensors\","
                      "\"language_model.model.embed_tokens.scales\":\"b.safetensors\","
                      "\"language_model.model.embed_tokens.biases\":\"b.safetensors\","
                      "\"lm_head.weight\":\"c.safetensors\"}}");
    qvl_embeddings embeddings;
    open_table(&folder, &embeddings);
    assert_int_equal(embeddings.files.count, 2); /* not the third */
    assert_int_equal(embeddings.bits, 4);
    assert_int_equal(embeddings.group, 32);
    qvl_embeddings_close(&embeddings);
    folder_close(&folder);
}

/* Rounds to the nearest multiple of a unit that double arithmetic can do: the rule written another way. */
static float round_f16(double x) {
    if (x == 0) return (float)x;
    int exponent;
    frexp(x, &exponent);
    double unit = ldexp(1, exponent - 11 < -24 ? -24 : exponent - 11);
    return (float)(nearbyint(x / unit) * unit);
}

static float rounded(qvl_dtype dtype, double x) {
    if (dtype == QVL_F32) return (float)x;
    return dtype == QVL_F16 ? round_f16(x) : qvl_f32_from_bf16(qvl_bf16_from_f32((float)x));
}

static void put(qvl_dtype dtype, void *data, size_t i, float x) {
    uint16_t bits;
    if (dtype == QVL_F32) {
        memcpy((char *)data + 4 * i, &x, 4);
        return;
    }
    if (dtype == QVL_BF16) {
        bits = qvl_bf16_from_f32(x);
    } else { /* x is a normal float16 */
        uint32_t u = qvl_bits_from_f32(x);
        bits = (uint16_t)((u >> 16 & 0x8000u) | (((u >> 23 & 0xffu) - 112) << 10) | (u >> 13 & 0x3ffu));
        assert_true(qvl_f32_from_f16(bits) == x);
    }
    memcpy((char *)data + 2 * i, &bits, 2);
}

/* MLX's affine quantisation, 4 and 8 bits, groups of 32 and 64, scales of every type: each of the two
 * operations is rounded to the type of the scales. (embeddings_oracle.py compares with MLX itself.) */
static void check_quantised(int bits, int group, qvl_dtype dtype) {
    enum { MOST_GROUPS = WIDTH / 32 };
    static uint32_t words[ROWS * WIDTH / 4];
    static char scales[ROWS * MOST_GROUPS * 4], biases[ROWS * MOST_GROUPS * 4];
    float scale[ROWS * MOST_GROUPS], bias[ROWS * MOST_GROUPS], out[WIDTH];
    int groups = WIDTH / group, per_word = 32 / bits;
    uint32_t seed = 12345;
    for (size_t i = 0; i < ROWS * WIDTH / 4; i++) words[i] = seed = seed * 1664525u + 1013904223u;
    for (int i = 0; i < ROWS * groups; i++) {
        scale[i] = rounded(dtype, 0.01 + i * 0.0037);
        bias[i] = rounded(dtype, -0.9 + i * 0.113);
        put(dtype, scales, (size_t)i, scale[i]);
        put(dtype, biases, (size_t)i, bias[i]);
    }
    test_folder folder;
    table t = {0};
    folder_open(&folder);
    add(&t, "model.embed_tokens.weight", QVL_U32, ROWS, WIDTH / per_word, words);
    add(&t, "model.embed_tokens.scales", dtype, ROWS, groups, scales);
    add(&t, "model.embed_tokens.biases", dtype, ROWS, groups, biases);
    save(&folder, "model.safetensors", t.tensors, t.count);
    qvl_embeddings embeddings;
    open_table(&folder, &embeddings);
    assert_int_equal(embeddings.bits, bits);
    assert_int_equal(embeddings.group, group);
    for (int64_t row = 0; row < ROWS; row++) {
        gather(&embeddings, QVL_F32, &row, 1, out);
        for (int64_t i = 0; i < WIDTH; i++) {
            uint32_t word = words[row * (WIDTH / per_word) + i / per_word];
            double q = word >> (i % per_word * bits) & ((1u << bits) - 1);
            int64_t g = row * groups + i / group;
            float wanted = rounded(dtype, (double)rounded(dtype, (double)scale[g] * q) + (double)bias[g]);
            assert_int_equal(qvl_bits_from_f32(out[i]), qvl_bits_from_f32(wanted));
        }
    }
    qvl_embeddings_close(&embeddings);
    folder_close(&folder);
}

static void test_quantised(void **state) {
    (void)state;
    static const qvl_dtype types[] = {QVL_F32, QVL_BF16, QVL_F16};
    for (size_t k = 0; k < 3; k++)
        for (int bits = 4; bits <= 8; bits += 4)
            for (int group = 32; group <= 64; group += 32) check_quantised(bits, group, types[k]);
}

static void refuse(const qvl_tensor *tensors, size_t count, qvl_status status, const char *says) {
    test_folder folder;
    folder_open(&folder);
    save(&folder, "model.safetensors", tensors, count);
    qvl_embeddings embeddings;
    qvl_error error = {0};
    assert_failure(qvl_embeddings_open(folder.path, WIDTH, &embeddings, &error), &error, status, says);
    assert_null(embeddings.files.files);
    folder_close(&folder);
}

static qvl_tensor of(const char *name, qvl_dtype dtype, int64_t rows, int64_t cols) {
    static const uint64_t zeros[ROWS * WIDTH];
    return (qvl_tensor){.name = name, .dtype = dtype, .ndim = 2, .shape = {rows, cols}, .data = zeros};
}

static void test_refusals(void **state) {
    (void)state;
    const char *weight = "model.embed_tokens.weight", *scales = "model.embed_tokens.scales";
    const char *biases = "model.embed_tokens.biases";
    qvl_tensor packed = of(weight, QVL_U32, ROWS, WIDTH / 8);
    const struct {
        qvl_tensor tensors[3];
        size_t count;
        qvl_status status;
        const char *says;
    } cases[] = {
        {{of("lm_head.weight", QVL_F32, ROWS, WIDTH)}, 1, QVL_ERROR_MODEL, "no token embeddings"},
        {{of(weight, QVL_F32, ROWS, WIDTH - 1)}, 1, QVL_ERROR_MODEL, "rows of 64 values"},
        {{of(weight, QVL_F8_E4M3, ROWS, WIDTH)}, 1, QVL_ERROR_UNSUPPORTED, "F8_E4M3"},
        {{of(weight, QVL_F32, ROWS, WIDTH), of("embed_tokens.weight", QVL_F32, ROWS, WIDTH)},
         2,
         QVL_ERROR_MODEL,
         "two token embeddings"},
        {{packed}, 1, QVL_ERROR_UNSUPPORTED, "scales"},
        {{packed, of(scales, QVL_U8, ROWS, 2)}, 2, QVL_ERROR_UNSUPPORTED, "biases"},
        {{packed, of(scales, QVL_BF16, ROWS, 3), of(biases, QVL_BF16, ROWS, 3)}, 3, QVL_ERROR_MODEL, "divides 64"},
        {{packed, of(scales, QVL_BF16, ROWS - 1, 2), of(biases, QVL_BF16, ROWS, 2)}, 3, QVL_ERROR_MODEL, "7 rows"},
        {{packed, of(scales, QVL_BF16, ROWS, 2), of(biases, QVL_F32, ROWS, 2)}, 3, QVL_ERROR_MODEL, "alike"},
        {{of(weight, QVL_U32, ROWS, WIDTH / 16), of(scales, QVL_BF16, ROWS, 2), of(biases, QVL_BF16, ROWS, 2)},
         3,
         QVL_ERROR_UNSUPPORTED,
         "4 or 8 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i].tensors, cases[i].count, cases[i].status, cases[i].says);
    qvl_tensor flat = of(weight, QVL_F32, ROWS, WIDTH);
    flat.ndim = 1;
    refuse(&flat, 1, QVL_ERROR_MODEL, "1 dimensions");
}

static void test_ids_outside(void **state) {
    (void)state;
    test_folder folder;
    folder_open(&folder);
    qvl_tensor t = of("embed_tokens.weight", QVL_F32, ROWS, WIDTH);
    save(&folder, "model.safetensors", &t, 1);
    qvl_embeddings embeddings;
    qvl_error error = {0};
    float out[2 * WIDTH];
    open_table(&folder, &embeddings);
    assert_failure(qvl_embeddings_gather(&embeddings, (int64_t[]){0, ROWS}, 2, QVL_F32, out, &error), &error,
                   QVL_ERROR_MODEL, "token 1 has the id 7");
    assert_failure(qvl_embeddings_gather(&embeddings, (int64_t[]){-1}, 1, QVL_F32, out, &error), &error,
                   QVL_ERROR_MODEL, "the id -1");
    qvl_embeddings_close(&embeddings);
    folder_close(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name), cmocka_unit_test(test_every_type), cmocka_unit_test(test_shards),
        cmocka_unit_test(test_quantised),  cmocka_unit_test(test_refusals),   cmocka_unit_test(test_ids_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
