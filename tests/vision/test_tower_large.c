/* Published sizes against transformers on a GPU: f32 with TF32 off, and the rule for bf16: qvl's bf16 is no
 * further from the f32 reference than transformers' own bf16 run of the same weights. */
#include "vision/towers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* design: 1e-11. Measured distance of the reference's own f32 to f64 on these sizes: about 1e-12 to 2e-12. */
#define BOUND 1e-11
#define WORST_BOUND 1e-10

typedef struct large_model {
    const char *shape, *fixture;
    const char *cases[3];
    int arrays; /* that the fixture holds for all cases */
} large_model;

static const large_model models[] = {
    {"qwen3.5-0.8b", "tower_S", {"image", NULL}, 1},
    {"qwen3-vl-2b", "tower_M", {"image", NULL}, 4},
    {"qwen3-vl-30b-a3b", "tower_L", {"image", "video", NULL}, 18},
};

static qvl_tensor take_rows(const qvl_tensor *x, const qvl_tensor *rows) {
    int64_t width = tensor_count(x) / x->shape[0], count = rows->shape[0];
    size_t element = qvl_dtype_bits(x->dtype) / 8;
    char *data = malloc((size_t)(count * width) * element);
    for (int64_t i = 0; i < count; i++)
        memcpy(data + (size_t)(i * width) * element,
               (const char *)x->data + (size_t)(((const int64_t *)rows->data)[i] * width) * element,
               (size_t)width * element);
    qvl_tensor t = *x;
    t.shape[0] = count;
    t.data = data;
    return t;
}

/* The smallest of the reference's own bf16 distances: the strictest reading of the rule. */
static double own_bf16(const qvl_tensor_file *fixture, const char *name, const char *which) {
    char key[128];
    qvl_tensor numbers;
    snprintf(key, sizeof key, "%s/%s", name, which);
    if (!qvl_tensor_file_find(fixture, key, &numbers)) fail_msg("the fixture has no %s", key);
    double least = tensor_value(&numbers, 0);
    for (int64_t i = 1; i < tensor_count(&numbers); i++)
        least = tensor_value(&numbers, i) < least ? tensor_value(&numbers, i) : least;
    return least;
}

static void check_array(const qvl_tensor_file *fixture, const qvl_tensor *reference, const qvl_tensor *x,
                        bool bf16) {
    distance d = tensor_distance(x, reference);
    double bound = bf16 ? own_bf16(fixture, reference->name, "bf16_nmse") : BOUND;
    double worst = bf16 ? own_bf16(fixture, reference->name, "bf16_worst") : WORST_BOUND;
    printf("  %-22s NMSE %.3g of %.3g, worst row %.3g of %.3g\n", reference->name, d.nmse, bound, d.worst, worst);
    if (!(d.nmse <= bound)) fail_msg("%s: NMSE %.3g, allowed %.3g", reference->name, d.nmse, bound);
    if (!bf16 && !(d.worst <= worst))
        fail_msg("%s: worst row %.3g, allowed %.3g", reference->name, d.worst, worst);
}

/* Every array of a case: CASE/stage whole, or CASE/stage/rows at the rows listed beside it. */
static int compare_case(const qvl_tensor_file *fixture, const char *name, const stages *found,
                        const qvl_features *features, bool bf16) {
    size_t prefix = strlen(name);
    int compared = 0;
    for (size_t i = 0; i < qvl_tensor_file_count(fixture); i++) {
        qvl_tensor reference = qvl_tensor_file_get(fixture, i);
        if (strncmp(reference.name, name, prefix) != 0 || reference.name[prefix] != '/') continue;
        char stage[64];
        snprintf(stage, sizeof stage, "%s", reference.name + prefix + 1);
        char *slash = strchr(stage, '/');
        if (reference.dtype != QVL_F32 || (slash && strcmp(slash, "/rows") != 0)) continue;
        if (slash) *slash = 0;
        qvl_tensor x = *find_stage(found, stage);
        bool tokens = strcmp(stage, "merged") == 0 || strncmp(stage, "deepstack", 9) == 0;
        if (tokens) /* what the caller gets, rounded to the compute dtype */
            x = features_tensor(features, stage[0] == 'm' ? -1 : stage[10] - '0');
        qvl_tensor sampled = x;
        if (slash) {
            char key[64];
            qvl_tensor rows;
            snprintf(key, sizeof key, "%s/%s", name, tokens ? "token_rows" : "rows");
            if (!qvl_tensor_file_find(fixture, key, &rows)) fail_msg("the fixture has no %s", key);
            sampled = take_rows(&x, &rows);
        }
        check_array(fixture, &reference, &sampled, bf16);
        if (slash) free((void *)(uintptr_t)sampled.data);
        compared++;
    }
    return compared;
}

static void check_model(const large_model *m, qvl_dtype dtype) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s.safetensors", QVL_FIXTURES, m->fixture);
    qvl_tensor_file *fixture = NULL;
    qvl_error error = {0};
    if (qvl_tensor_file_open(path, &fixture, &error)) fail_msg("%s", error.message);
    qvl_model *model = open_model(make_model_folder(m->shape, "scaled", "bf16"), dtype, 0, QVL_CPU_ALL);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    printf("%s %s\n", m->shape, qvl_dtype_name(dtype));
    int compared = 0;
    for (const char *const *name = m->cases; *name; name++) {
        static stages found;
        qvl_encode_options options;
        qvl_encode_options_init(&options);
        options.tap = keep_stage;
        options.tap_user = &found;
        qvl_patches patches = case_patches(fixture, *name, model);
        qvl_features features;
        if (qvl_vision_encode(session, &patches, &options, &features, &error)) fail_msg("%s", error.message);
        compared += compare_case(fixture, *name, &found, &features, dtype == QVL_BF16);
        qvl_features_free(&features);
        free(patches.values);
        free(patches.items);
        free_stages(&found);
    }
    assert_int_equal(compared, m->arrays);
    qvl_session_close(&session);
    qvl_tensor_file_close(&fixture);
    qvl_model_close(&model);
}

static void test_f32(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) check_model(&models[i], QVL_F32);
}

static void test_bf16(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) check_model(&models[i], QVL_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
