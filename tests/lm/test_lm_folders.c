/* The same model in every form that folders have: names, types, layouts of experts, MLX's quantisation. Forms that hold the
 * same values give the same bits. */
#include "base/bf16.h"
#include "lm/prompts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER_SIZE 512

/* ---- a folder with other tensors */

typedef struct writer {
    qvl_tensor tensors[4096];
    size_t count;
} writer;

static void add(writer *w, const char *name, qvl_dtype dtype, int32_t ndim, const int64_t *shape, void *data) {
    qvl_tensor *t = &w->tensors[w->count++];
    char *copy = malloc(strlen(name) + 1);
    strcpy(copy, name);
    *t = (qvl_tensor){.name = copy, .dtype = dtype, .ndim = ndim, .data = data};
    memcpy(t->shape, shape, (size_t)ndim * sizeof *shape);
}

static const char *write_folder(const char *original, const char *suffix, writer *w) {
    static char path[FOLDER_SIZE];
    char command[6 * FOLDER_SIZE];
    snprintf(path, sizeof path, "%.300s-%s", original, suffix);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s' && cp '%.300s'/*.json '%s'", path, path, original,
             path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/model.safetensors", path);
    qvl_error error;
    if (qvl_tensors_save(command, w->tensors, w->count, NULL, 0, &error)) fail_msg("%s", error.message);
    for (size_t i = 0; i < w->count; i++) {
        free((char *)(uintptr_t)w->tensors[i].name);
        free((void *)(uintptr_t)w->tensors[i].data);
    }
    free(w);
    return path;
}

static float *floats_of(const qvl_tensor *t) {
    int64_t n = tensor_count(t);
    float *out = malloc((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (float)tensor_value(t, i);
    return out;
}

/* Changes the tensors of the language model; true if it added what stands for t. */
typedef bool (*change_fn)(writer *w, const qvl_tensor *t);

static const char *change_folder(const char *original, const char *suffix, change_fn change) {
    char path[FOLDER_SIZE + 32];
    snprintf(path, sizeof path, "%s/model.safetensors", original);
    qvl_tensor_file *file = NULL;
    assert_int_equal(qvl_tensor_file_open(path, &file, NULL), QVL_OK);
    writer *w = calloc(1, sizeof *w);
    for (size_t i = 0; i < qvl_tensor_file_count(file); i++) {
        qvl_tensor t = qvl_tensor_file_get(file, i);
        bool text = strstr(t.name, "language_model") || strncmp(t.name, "lm_head", 7) == 0;
        if (text && change(w, &t)) continue;
        size_t bytes = (size_t)tensor_count(&t) * qvl_dtype_bits(t.dtype) / 8;
        add(w, t.name, t.dtype, t.ndim, t.shape, memcpy(malloc(bytes), t.data, bytes));
    }
    qvl_tensor_file_close(&file);
    return write_folder(original, suffix, w);
}

/* ---- running */

static float *run_folder(const lm_case *c, const char *folder, qvl_dtype dtype, uint32_t mask, int64_t length) {
    speaker s = open_speaker(folder, dtype, 2, mask);
    qvl_prompt prompt = case_prompt(c, s.lm), head = prompt_head(&prompt, length);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    float *logits = prefill(sequence, &head, NULL);
    assert_int_equal(qvl_sequence_step(sequence, 5, NULL, logits, NULL), QVL_OK);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
    return logits;
}

static const struct {
    qvl_dtype dtype;
    uint32_t mask;
} modes[] = {{QVL_F32, QVL_CPU_ALL}, {QVL_F32, QVL_CPU_SCALAR}, {QVL_BF16, QVL_CPU_AVX2}, {QVL_BF16, QVL_CPU_ALL}};
#define MODES (sizeof modes / sizeof modes[0])

static void assert_equal_folders(const lm_case *c, const char *a, const char *b, const char *what) {
    for (size_t m = 0; m < MODES; m++) {
        float *x = run_folder(c, a, modes[m].dtype, modes[m].mask, 40);
        float *y = run_folder(c, b, modes[m].dtype, modes[m].mask, 40);
        if (memcmp(x, y, 64 * sizeof *x) != 0) fail_msg("%s: other logits in mode %zu", what, m);
        free(x);
        free(y);
    }
}

/* ---- names */

static void test_names(void **state) {
    (void)state;
    static const char *const namings[] = {"visual", "mlx", "stray", "flat"};
    static const char *const prefixes[] = {"model.", "language_model.model.", "model.language_model.", ""};
    lm_case c = open_case("tiny-vl");
    for (size_t i = 0; i < 4; i++) {
        char folder[FOLDER_SIZE], command[3 * FOLDER_SIZE];
        snprintf(folder, sizeof folder, "%s-%s", c.folder, namings[i]);
        snprintf(command, sizeof command, "'%s' --shape tiny-vl --init quarter --dtype f32 --naming %s '%s'",
                 QVL_RANDOM_MODEL_TOOL, namings[i], folder);
        assert_int_equal(system(command), 0);
        speaker s = open_speaker(folder, QVL_F32, 1, QVL_CPU_ALL);
        assert_string_equal(qvl_lm_get_info(s.lm)->tensor_prefix, prefixes[i]);
        close_speaker(&s);
        float *a = run_folder(&c, c.folder, QVL_F32, QVL_CPU_ALL, 73);
        float *b = run_folder(&c, folder, QVL_F32, QVL_CPU_ALL, 73);
        assert_memory_equal(a, b, 64 * sizeof *a);
        free(a);
        free(b);
    }
    close_case(&c);
}

/* ---- experts */

static bool exchange_axes(writer *w, const qvl_tensor *t) {
    if (!strstr(t->name, ".experts.")) return false;
    int64_t e = t->shape[0], n = t->shape[1], k = t->shape[2];
    float *in = floats_of(t), *out = malloc((size_t)(e * n * k) * sizeof *out);
    for (int64_t i = 0; i < e; i++)
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < k; j++) out[(i * k + j) * n + r] = in[(i * n + r) * k + j];
    free(in);
    add(w, t->name, QVL_F32, 3, (const int64_t[]){e, k, n}, out);
    return true;
}

/* Rows first.. of every expert of a stack [E, n, k], as [E, count, k]. */
static float *rows_of_experts(const qvl_tensor *t, int64_t first, int64_t count) {
    int64_t n = t->shape[1], k = t->shape[2];
    float *in = floats_of(t), *out = malloc((size_t)(t->shape[0] * count * k) * sizeof *out);
    for (int64_t e = 0; e < t->shape[0]; e++)
        memcpy(out + e * count * k, in + (e * n + first) * k, (size_t)(count * k) * sizeof *out);
    free(in);
    return out;
}

static void add_part(writer *w, const qvl_tensor *t, bool stacked, const char *part, int64_t first,
                     int64_t count) {
    char layer[96], name[160];
    snprintf(layer, sizeof layer, "%.*s", (int)(strstr(t->name, ".experts.") - t->name), t->name);
    int64_t k = t->shape[2];
    float *all = rows_of_experts(t, first, count);
    if (stacked) {
        snprintf(name, sizeof name, "%s.switch_mlp.%s.weight", layer, part);
        add(w, name, QVL_F32, 3, (const int64_t[]){t->shape[0], count, k}, all);
        return;
    }
    for (int64_t e = 0; e < t->shape[0]; e++) {
        size_t bytes = (size_t)(count * k) * sizeof *all;
        snprintf(name, sizeof name, "%s.experts.%lld.%s.weight", layer, (long long)e, part);
        add(w, name, QVL_F32, 2, (const int64_t[]){count, k}, memcpy(malloc(bytes), all + e * count * k, bytes));
    }
    free(all);
}

static bool split_experts(writer *w, const qvl_tensor *t, bool stacked) {
    if (strstr(t->name, ".experts.gate_up_proj")) {
        add_part(w, t, stacked, "gate_proj", 0, t->shape[1] / 2);
        add_part(w, t, stacked, "up_proj", t->shape[1] / 2, t->shape[1] / 2);
        return true;
    }
    if (!strstr(t->name, ".experts.down_proj")) return false;
    add_part(w, t, stacked, "down_proj", 0, t->shape[1]);
    return true;
}

static bool stack_as_mlx(writer *w, const qvl_tensor *t) {
    return split_experts(w, t, true);
}

static bool one_by_one(writer *w, const qvl_tensor *t) {
    return split_experts(w, t, false);
}

static void test_experts(void **state) {
    (void)state;
    lm_case c = open_case("tiny-vlmoe");
    assert_equal_folders(&c, c.folder, change_folder(c.folder, "exchanged", exchange_axes), "exchanged axes");
    assert_equal_folders(&c, c.folder, change_folder(c.folder, "mlx", stack_as_mlx), "MLX's stacks");
    assert_equal_folders(&c, c.folder, change_folder(c.folder, "single", one_by_one), "single experts");
    close_case(&c);
}

/* ---- types */

static bool is_matrix(const qvl_tensor *t) {
    return t->ndim == 2;
}

/* Values that float16 holds exactly, as f32. */
static float *coarse(const qvl_tensor *t) {
    float *x = floats_of(t);
    for (int64_t i = 0; i < tensor_count(t); i++) x[i] = qvl_round_to_f16(qvl_round_to(QVL_BF16, x[i]));
    return x;
}

static bool as_coarse_f32(writer *w, const qvl_tensor *t) {
    if (!is_matrix(t)) return false;
    add(w, t->name, QVL_F32, t->ndim, t->shape, coarse(t));
    return true;
}

static uint16_t f16_bits(float x) { /* of values that it holds */
    for (uint32_t bits = 0; bits < 65536; bits++)
        if (qvl_f32_from_f16((uint16_t)bits) == x) return (uint16_t)bits;
    fail_msg("%g is no float16", (double)x);
    return 0;
}

static bool as_f16(writer *w, const qvl_tensor *t) {
    if (!is_matrix(t) || !strstr(t->name, "layers.1.self_attn")) return as_coarse_f32(w, t);
    float *x = coarse(t);
    uint16_t *out = malloc((size_t)tensor_count(t) * sizeof *out);
    for (int64_t i = 0; i < tensor_count(t); i++) out[i] = f16_bits(x[i]);
    free(x);
    add(w, t->name, QVL_F16, t->ndim, t->shape, out);
    return true;
}

static bool as_bf16(writer *w, const qvl_tensor *t) {
    if (!is_matrix(t)) return false;
    float *x = coarse(t);
    uint16_t *out = malloc((size_t)tensor_count(t) * sizeof *out);
    for (int64_t i = 0; i < tensor_count(t); i++) out[i] = qvl_bf16_from_f32(x[i]);
    free(x);
    add(w, t->name, QVL_BF16, t->ndim, t->shape, out);
    return true;
}

static void test_types(void **state) {
    (void)state;
    lm_case c = open_case("tiny-vl");
    char plain[FOLDER_SIZE];
    snprintf(plain, sizeof plain, "%s", change_folder(c.folder, "coarse", as_coarse_f32));
    assert_equal_folders(&c, plain, change_folder(c.folder, "f16", as_f16), "float16");
    assert_equal_folders(&c, plain, change_folder(c.folder, "bf16", as_bf16), "bfloat16");
    close_case(&c);
}

/* ---- MLX's quantisation: packed, and as the values that it means */

static uint32_t quant(int64_t i, int bits) {
    return (uint32_t)((i * 2654435761u) >> 13) & ((1u << bits) - 1u);
}

static float group_scale(int64_t group) {
    return qvl_round_to(QVL_BF16, 0.01f + 0.0001f * (float)(group % 37));
}

static float group_bias(int64_t group) {
    return qvl_round_to(QVL_BF16, -0.08f - 0.0003f * (float)(group % 41));
}

static int bits_of(const qvl_tensor *t) {
    if (t->ndim != 2 || t->shape[1] % 64) return 0;
    return strstr(t->name, "mlp.down_proj") || strstr(t->name, "embed_tokens") ? 8 : 4;
}

static bool as_quantised(writer *w, const qvl_tensor *t) {
    int bits = bits_of(t);
    if (!bits) return false;
    int64_t n = tensor_count(t), words = n * bits / 32, groups = n / 64, columns = t->shape[1];
    uint32_t *packed = calloc((size_t)words, sizeof *packed);
    uint16_t *scales = malloc((size_t)groups * sizeof *scales), *biases = malloc((size_t)groups * sizeof *biases);
    for (int64_t i = 0; i < n; i++) packed[i * bits / 32] |= quant(i, bits) << (i * bits % 32);
    for (int64_t g = 0; g < groups; g++) {
        scales[g] = qvl_bf16_from_f32(group_scale(g) / (bits == 8 ? 16.0f : 1.0f));
        biases[g] = qvl_bf16_from_f32(group_bias(g));
    }
    char name[160];
    add(w, t->name, QVL_U32, 2, (const int64_t[]){t->shape[0], columns * bits / 32}, packed);
    snprintf(name, sizeof name, "%.*sscales", (int)strlen(t->name) - 6, t->name);
    add(w, name, QVL_BF16, 2, (const int64_t[]){t->shape[0], columns / 64}, scales);
    snprintf(name, sizeof name, "%.*sbiases", (int)strlen(t->name) - 6, t->name);
    add(w, name, QVL_BF16, 2, (const int64_t[]){t->shape[0], columns / 64}, biases);
    return true;
}

static bool as_dequantised(writer *w, const qvl_tensor *t) {
    int bits = bits_of(t);
    if (!bits) return false;
    int64_t n = tensor_count(t);
    float *out = malloc((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        float scale = qvl_round_to(QVL_BF16, group_scale(i / 64) / (bits == 8 ? 16.0f : 1.0f));
        float product = qvl_round_to(QVL_BF16, scale * (float)quant(i, bits));
        out[i] = qvl_round_to(QVL_BF16, product + group_bias(i / 64));
    }
    add(w, t->name, QVL_F32, 2, t->shape, out);
    return true;
}

static void test_quantised(void **state) {
    (void)state;
    lm_case c = open_case("lm-test");
    char plain[FOLDER_SIZE];
    snprintf(plain, sizeof plain, "%s", change_folder(c.folder, "values", as_dequantised));
    const char *packed = change_folder(c.folder, "quantised", as_quantised);
    speaker s = open_speaker(packed, QVL_F32, 1, QVL_CPU_ALL);
    assert_string_equal(qvl_lm_get_info(s.lm)->weight_types, "mixed");
    close_speaker(&s);
    assert_equal_folders(&c, plain, packed, "MLX's quantisation");
    close_case(&c);
}

/* ---- quantised rows that fill no whole words */

enum { ODD = 36 };
static int64_t odd_words; /* of a row of down_proj */

/* An MLP of ODD values, its last matrix quantised by the look of its types and names. */
static bool as_odd(writer *w, const qvl_tensor *t) {
    if (strstr(t->name, "mlp.gate_proj") || strstr(t->name, "mlp.up_proj")) {
        add(w, t->name, QVL_F32, 2, (const int64_t[]){ODD, t->shape[1]}, floats_of(t));
        return true;
    }
    if (!strstr(t->name, "mlp.down_proj")) return false;
    static const char *const parts[] = {"scales", "biases"};
    char name[160];
    int64_t n = t->shape[0];
    add(w, t->name, QVL_U32, 2, (const int64_t[]){n, odd_words}, calloc((size_t)(n * odd_words), 4));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%.*s%s", (int)strlen(t->name) - 6, t->name, parts[i]);
        add(w, name, QVL_BF16, 2, (const int64_t[]){n, 1}, calloc((size_t)n, 2));
    }
    return true;
}

/* 36 values of 4 bits are four words and a half, of 8 bits nine words, but no whole group. */
static void test_odd_rows(void **state) {
    (void)state;
    lm_case c = open_case("tiny-vl");
    for (odd_words = 4; odd_words <= 9; odd_words += odd_words == 4 ? 1 : 4) {
        const char *folder = change_folder(c.folder, "odd", as_odd);
        edit_config(folder, "s/\"intermediate_size\":[^,}]*40/\"intermediate_size\": 36/");
        qvl_model *model = open_model(folder, QVL_F32, 1, QVL_CPU_ALL);
        qvl_lm *lm = NULL;
        qvl_error error;
        assert_int_equal(qvl_lm_open(model, NULL, &lm, &error), QVL_ERROR_UNSUPPORTED);
        if (!strstr(error.message, "layers.0.mlp.down_proj.weight is U32, quantised, for rows of 36 values"))
            fail_msg("%s", error.message);
        qvl_model_close(&model);
    }
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_experts),
                                       cmocka_unit_test(test_types), cmocka_unit_test(test_quantised),
                                       cmocka_unit_test(test_odd_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
