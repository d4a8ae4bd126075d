/* What cannot be done is refused clearly, before work where that is possible, and leaves everything as it was; every
 * allocation that fails is reported, and nothing leaks. */
#include "base/failing_allocation.h"
#include "lm/prompts.h"
#include "lm/text_config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER_SIZE 512

static void refuse_to_open(const char *folder, qvl_status status, const char *message) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = QVL_OPEN_CONFIG;
    options.threads = 1;
    qvl_model *model = NULL;
    qvl_lm *lm = NULL;
    qvl_error error;
    if (qvl_model_open(folder, &options, &model, &error)) fail_msg("%s", error.message);
    qvl_status got = qvl_lm_open(model, NULL, &lm, &error);
    if (got != status || !strstr(error.message, message))
        fail_msg("%s: %s, not %s: %s", qvl_status_name(got), error.message, qvl_status_name(status), message);
    assert_null(lm);
    qvl_model_close(&model);
}

static void test_configuration(void **state) {
    (void)state;
    const struct {
        const char *edit;
        qvl_status status;
        const char *message;
    } cases[] = {
        {"s/\"num_hidden_layers\":[^,]*,//", QVL_ERROR_MODEL, "text_config has no num_hidden_layers"},
        {"s/\"mrope_section\":.*\\[4, 2, 2\\]/\"mrope_section\": [4, 2, 3]/", QVL_ERROR_MODEL,
         "mrope_section must be a list of three numbers whose sum is 8"},
        {"s/\"rope_type\":.*\"default\"/\"rope_type\": \"dynamic\"/", QVL_ERROR_UNSUPPORTED,
         "rope_type is \"dynamic\"; qvl computes \"default\" and \"yarn\""},
        {"s/\"vocab_size\":[^,}]*/\"vocab_size\": 65/", QVL_ERROR_MODEL,
         "tensor model.language_model.embed_tokens.weight has shape [64, 24]; config.json asks for [65, 24]"},
        {"s/\"num_key_value_heads\":[^,}]*/\"num_key_value_heads\": 3/", QVL_ERROR_MODEL,
         "4 heads are not a multiple of the 3 key-value heads"},
        {"s/\"num_hidden_layers\":[^,}]*/\"num_hidden_layers\": 4/", QVL_ERROR_MODEL,
         "has no tensor model.language_model.layers.3.input_layernorm.weight"},
        {"s/\"num_hidden_layers\":[^,}]*/\"num_hidden_layers\": 2/", QVL_ERROR_UNSUPPORTED,
         "tensor model.language_model.layers.2."},
        {"s/\"model_type\":.*\"qwen3_vl\"/\"model_type\": \"qwen9\"/", QVL_ERROR_UNSUPPORTED,
         "model_type is \"qwen9\""},
    };
    const char *folder = make_model_folder("tiny-vl", "quarter", "f32");
    char original[FOLDER_SIZE];
    snprintf(original, sizeof original, "%s", folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *copy = copy_folder(original);
        edit_config(copy, cases[i].edit);
        refuse_to_open(copy, cases[i].status, cases[i].message);
    }
}

/* Rewrites the folder's tensors with one left out, renamed or turned into another type. */
static void rewrite(const char *folder, const char *name, const char *new_name, qvl_dtype dtype) {
    char path[FOLDER_SIZE + 32];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    qvl_tensor_file *file = NULL;
    assert_int_equal(qvl_tensor_file_open(path, &file, NULL), QVL_OK);
    size_t count = qvl_tensor_file_count(file), kept = 0;
    qvl_tensor *tensors = calloc(count, sizeof *tensors);
    for (size_t i = 0; i < count; i++) {
        qvl_tensor t = qvl_tensor_file_get(file, i);
        if (strcmp(t.name, name) == 0) {
            if (!new_name) continue;
            t.name = new_name;
            t.dtype = dtype;
        }
        tensors[kept++] = t;
    }
    qvl_error error;
    if (qvl_tensors_save(path, tensors, kept, NULL, 0, &error)) fail_msg("%s", error.message);
    free(tensors);
    qvl_tensor_file_close(&file);
}

static void test_tensors(void **state) {
    (void)state;
    char original[FOLDER_SIZE];
    snprintf(original, sizeof original, "%s", make_model_folder("tiny-vl", "quarter", "f32"));
    const char *name = "model.language_model.layers.1.mlp.up_proj.weight";
    const char *copy = copy_folder(original);
    rewrite(copy, name, NULL, QVL_F32);
    refuse_to_open(copy, QVL_ERROR_MODEL, "has no tensor model.language_model.layers.1.mlp.up_proj.weight");
    copy = copy_folder(original);
    rewrite(copy, name, "model.language_model.layers.1.mlp.up_proj.odd", QVL_F32);
    refuse_to_open(copy, QVL_ERROR_MODEL, "has no tensor model.language_model.layers.1.mlp.up_proj.weight");
    copy = copy_folder(original);
    rewrite(copy, name, name, QVL_I32);
    refuse_to_open(copy, QVL_ERROR_UNSUPPORTED,
                   "up_proj.weight has dtype I32; qvl reads F32, BF16, F16 and MLX's affine quantisation");
    copy = copy_folder(original);
    rewrite(copy, name, name, QVL_U32);
    refuse_to_open(
        copy, QVL_ERROR_UNSUPPORTED,
        "up_proj.weight is U32, quantised, for rows of 24 values; qvl reads rows of whole groups of 32");
    copy = copy_folder(original);
    rewrite(copy, "lm_head.weight", NULL, QVL_F32); /* tied: opens */
    speaker s = open_speaker(copy, QVL_F32, 1, QVL_CPU_ALL);
    assert_true(qvl_lm_get_info(s.lm)->tied);
    close_speaker(&s);
    copy = copy_folder(original);
    rewrite(copy, "model.language_model.embed_tokens.weight", NULL, QVL_F32);
    refuse_to_open(copy, QVL_ERROR_MODEL, "no language model in ");
}

static void test_lengths(void **state) {
    (void)state;
    lm_case c = open_case("tiny-vl");
    speaker s = open_speaker(c.folder, QVL_F32, 1, QVL_CPU_ALL);
    qvl_prompt prompt = case_prompt(&c, s.lm);
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    qvl_sequence *sequence = NULL;
    qvl_error error;
    options.max_length = 513;
    assert_int_equal(qvl_sequence_open(s.lm, &options, &sequence, &error), QVL_ERROR_LIMIT);
    assert_string_equal(error.message, "513 entries are more than the 512 of the model (max_position_embeddings)");
    options.max_length = 74;
    assert_int_equal(qvl_sequence_open(s.lm, &options, &sequence, &error), QVL_OK);
    float logits[64];
    assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 1, NULL, logits, &error), QVL_ERROR_ARGUMENT);
    assert_string_equal(error.message, "entries 1 to 72 of a prompt cannot follow the 0 of the sequence");
    assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 0, NULL, logits, &error), QVL_OK);
    assert_int_equal(qvl_sequence_step(sequence, 5, NULL, logits, &error), QVL_OK);
    assert_int_equal(qvl_sequence_step(sequence, 5, NULL, logits, &error), QVL_ERROR_LIMIT);
    assert_string_equal(error.message, "75 entries are more than the 74 that the sequence was opened for");
    assert_int_equal(qvl_sequence_length(sequence), 74);
    assert_int_equal(qvl_sequence_step(sequence, 64, NULL, logits, &error), QVL_ERROR_ARGUMENT);
    assert_string_equal(error.message, "token 64 is not among the 64 of the model");
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
    close_case(&c);
}

static bool stop_late(int64_t done, int64_t total, void *user) {
    (void)user;
    return done < total / 2;
}

/* A stopped call, and one that meets what is not finite, leave a sequence as it was. */
static void test_interrupted(void **state) {
    (void)state;
    lm_case c = open_case("lm-test");
    for (int dtype = 0; dtype < 2; dtype++) {
        speaker s = open_speaker(c.folder, dtype ? QVL_BF16 : QVL_F32, 2, QVL_CPU_ALL);
        int64_t vocab = qvl_lm_get_info(s.lm)->vocab_size;
        qvl_prompt prompt = case_prompt(&c, s.lm), head = prompt_head(&prompt, 130);
        qvl_sequence *sequence = open_sequence(s.lm, 0), *other = open_sequence(s.lm, 0);
        free(prefill(sequence, &head, NULL));
        float *want = prefill(other, &prompt, NULL), *logits = malloc(sizeof(float) * (size_t)vocab);
        qvl_decode_options options;
        qvl_decode_options_init(&options);
        options.progress = stop_late;
        qvl_error error;
        assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 130, &options, logits, &error),
                         QVL_ERROR_CANCELLED);
        assert_int_equal(qvl_sequence_length(sequence), 130);
        int64_t h = prompt.width, at = 200 * h + 3;
        float kept = dtype ? 0.0f : ((float *)prompt.inputs_embeds)[at];
        uint16_t kept_half = dtype ? ((uint16_t *)prompt.inputs_embeds)[at] : 0;
        if (dtype)
            ((uint16_t *)prompt.inputs_embeds)[at] = 0x7fc0;
        else
            ((float *)prompt.inputs_embeds)[at] = NAN;
        assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 130, NULL, logits, &error), QVL_ERROR_NUMERIC);
        assert_non_null(strstr(error.message, "outputs of layer 0 are not finite: entry "));
        assert_int_equal(qvl_sequence_length(sequence), 130);
        if (dtype)
            ((uint16_t *)prompt.inputs_embeds)[at] = kept_half;
        else
            ((float *)prompt.inputs_embeds)[at] = kept;
        assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 130, NULL, logits, &error), QVL_OK);
        assert_memory_equal(logits, want, sizeof(float) * (size_t)vocab);
        free(want);
        free(logits);
        qvl_sequence_close(&other);
        qvl_sequence_close(&sequence);
        qvl_prompt_free(&prompt);
        close_speaker(&s);
    }
    close_case(&c);
}

/* ---- routers that put out what is no number */

/* Rewrites the folder with `count` values of a tensor, from its element `first` on, set to one. */
static void set_values(const char *folder, const char *name, int64_t first, int64_t count, float value) {
    char path[FOLDER_SIZE + 32];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    qvl_tensor_file *file = NULL;
    assert_int_equal(qvl_tensor_file_open(path, &file, NULL), QVL_OK);
    size_t tensors = qvl_tensor_file_count(file), found = 0;
    qvl_tensor *all = calloc(tensors, sizeof *all);
    float *changed = NULL;
    for (size_t i = 0; i < tensors; i++) {
        all[i] = qvl_tensor_file_get(file, i);
        if (strcmp(all[i].name, name) != 0) continue;
        size_t bytes = (size_t)tensor_count(&all[i]) * sizeof *changed;
        assert_int_equal(all[i].dtype, QVL_F32);
        changed = memcpy(malloc(bytes), all[i].data, bytes);
        for (int64_t k = first; k < first + count; k++) changed[k] = value;
        all[i].data = changed;
        found++;
    }
    assert_int_equal(found, 1);
    qvl_error error;
    if (qvl_tensors_save(path, all, tensors, NULL, 0, &error)) fail_msg("%s", error.message);
    free(changed);
    free(all);
    qvl_tensor_file_close(&file);
}

static void expect_numeric(const lm_case *c, const char *folder, qvl_dtype dtype, uint32_t cpu_mask) {
    speaker s = open_speaker(folder, dtype, 1, cpu_mask);
    qvl_prompt prompt = case_prompt(c, s.lm);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    float logits[64];
    qvl_error error;
    assert_int_equal(qvl_sequence_prefill(sequence, &prompt, 0, NULL, logits, &error), QVL_ERROR_NUMERIC);
    if (!strstr(error.message, "outputs of layer 1 are not finite: entry ")) fail_msg("%s", error.message);
    assert_int_equal(qvl_sequence_length(sequence), 0);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

/* A probability that is no number reaches the layer's output on every path: no maximum or clamp swallows it. */
static void test_router(void **state) {
    (void)state;
    static const uint32_t masks[] = {QVL_CPU_SCALAR, QVL_CPU_AVX2, QVL_CPU_ALL};
    const struct {
        int64_t first, count; /* of [6, 24] */
        float value;
    } cases[] = {{2 * 24 + 5, 1, NAN}, {0, 6 * 24, NAN}, {5 * 24, 24, INFINITY}, {3 * 24, 24, 3e38f}};
    lm_case c = open_case("tiny-vlmoe");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *copy = copy_folder(c.folder);
        set_values(copy, "model.language_model.layers.1.mlp.gate.weight", cases[i].first, cases[i].count,
                   cases[i].value);
        for (size_t m = 0; m < 3; m++) {
            expect_numeric(&c, copy, QVL_F32, masks[m]);
            expect_numeric(&c, copy, QVL_BF16, masks[m]);
        }
    }
    close_case(&c);
}

/* ---- every allocation fails once */

static qvl_status whole_life(const lm_case *c, const qvl_model *model, const qvl_prompt *prompt,
                             qvl_error *error) {
    (void)c;
    qvl_lm *lm = NULL;
    qvl_sequence *sequence = NULL, *copy = NULL;
    float logits[64];
    qvl_status status = qvl_lm_open(model, NULL, &lm, error);
    if (!status) status = qvl_sequence_open(lm, NULL, &sequence, error);
    if (!status) status = qvl_sequence_prefill(sequence, prompt, 0, NULL, logits, error);
    if (!status) status = qvl_sequence_fork(sequence, &copy, error);
    if (!status) status = qvl_sequence_step(copy, 5, NULL, logits, error);
    qvl_sequence_close(&copy);
    qvl_sequence_close(&sequence);
    qvl_lm_close(&lm);
    return status;
}

static void test_allocation(void **state) {
    (void)state;
    static const char *const shapes[] = {"tiny-vl", "tiny-vlmoe"};
    for (size_t k = 0; k < 2; k++) {
        lm_case c = open_case(shapes[k]);
        speaker s = open_speaker(c.folder, QVL_F32, 1, QVL_CPU_ALL);
        qvl_prompt prompt = case_prompt(&c, s.lm);
        qvl_error error = {0};
        assert_int_equal(whole_life(&c, s.model, &prompt, &error), QVL_OK);
        long before = live_allocations(), failed = 0;
        for (long n = 0;; n++) {
            allocation_fails_after(n);
            qvl_status status = whole_life(&c, s.model, &prompt, &error);
            int due = allocation_failure_is_due();
            if (live_allocations() != before)
                fail_msg("allocation %ld failed: %ld blocks leaked (%s)", n, live_allocations() - before,
                         error.message);
            if (due) break;
            if (status != QVL_OK && status != QVL_ERROR_MEMORY)
                fail_msg("allocation %ld failed: %s (%s)", n, qvl_status_name(status), error.message);
            failed += status != QVL_OK;
        }
        printf("%s: %ld allocations failed in turn\n", shapes[k], failed);
        assert_true(failed > 50);
        qvl_prompt_free(&prompt);
        close_speaker(&s);
        close_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_configuration), cmocka_unit_test(test_tensors),
                                       cmocka_unit_test(test_lengths),       cmocka_unit_test(test_interrupted),
                                       cmocka_unit_test(test_router),        cmocka_unit_test(test_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
