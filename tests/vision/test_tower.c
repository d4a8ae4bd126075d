/* The tower against transformers 5.23.0 (float32, CPU), every stage of four tiny models and the shape "demo" of random_model. */
#include "vision/towers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* design: each stage within NMSE 1e-11 of the reference in f32. The worst row may have less power than the mean.
 */
#define BOUND 1e-11
#define WORST_BOUND 1e-10

typedef struct tiny_model {
    const char *shape, *init, *dtype, *fixture;
    const char *cases[5];
} tiny_model;

static const tiny_model models[] = {
    {"tiny-vl", "quarter", "f32", "tower_tiny_vl", {"image", "video", "mixed", "odd", NULL}},
    {"tiny-35", "quarter", "f32", "tower_tiny_35", {"image", "video", "mixed", "odd", NULL}},
    {"tiny-vlmoe", "quarter", "f32", "tower_tiny_vlmoe", {"image", "video", "mixed", "odd", NULL}},
    {"tiny-35moe", "quarter", "f32", "tower_tiny_35moe", {"image", "video", "mixed", "odd", NULL}},
    {"demo", "scaled", "bf16", "tower_demo", {"small", "image", "video", NULL}},
};

static qvl_tensor_file *open_fixture(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s.safetensors", QVL_FIXTURES, name);
    qvl_tensor_file *file = NULL;
    qvl_error error = {0};
    if (qvl_tensor_file_open(path, &file, &error)) fail_msg("%s", error.message);
    return file;
}

/* Compares every array the fixture has for this case; returns how many. */
static int compare_case(const qvl_tensor_file *fixture, const char *name, const stages *found, double *worst) {
    size_t prefix = strlen(name);
    int compared = 0;
    for (size_t i = 0; i < qvl_tensor_file_count(fixture); i++) {
        qvl_tensor reference = qvl_tensor_file_get(fixture, i);
        if (strncmp(reference.name, name, prefix) != 0 || reference.name[prefix] != '/') continue;
        const char *stage = reference.name + prefix + 1;
        if (strchr(stage, '/') || strcmp(stage, "grid_thw") == 0) continue;
        const qvl_tensor *x = find_stage(found, stage);
        if (!x) fail_msg("the tower has no stage %s", stage);
        assert_int_equal(x->ndim, reference.ndim);
        for (int d = 0; d < x->ndim; d++) assert_int_equal(x->shape[d], reference.shape[d]);
        distance d = tensor_distance(x, &reference);
        if (!(d.nmse <= BOUND && d.worst <= WORST_BOUND))
            fail_msg("%s: NMSE %.3g (bound %.3g), worst row %lld %.3g", reference.name, d.nmse, BOUND,
                     (long long)d.worst_row, d.worst);
        if (d.nmse > *worst) *worst = d.nmse;
        compared++;
    }
    return compared;
}

static void check_model(const tiny_model *m, uint32_t cpu_mask) {
    qvl_model *model = open_model(make_model_folder(m->shape, m->init, m->dtype), QVL_F32, 2, cpu_mask);
    qvl_tensor_file *fixture = open_fixture(m->fixture);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(model, &session, NULL), QVL_OK);
    double worst = 0;
    int compared = 0;
    for (const char *const *name = m->cases; *name; name++) {
        stages found = {.count = 0};
        qvl_encode_options options;
        qvl_encode_options_init(&options);
        options.tap = keep_stage;
        options.tap_user = &found;
        qvl_patches patches = case_patches(fixture, *name, model);
        qvl_features features;
        qvl_error error = {0};
        if (qvl_vision_encode(session, &patches, &options, &features, &error)) fail_msg("%s", error.message);
        int here = compare_case(fixture, *name, &found, &worst);
        assert_true(here >= 1 + features.deepstack_count);
        compared += here;
        qvl_tensor embeds = features_tensor(&features, -1);
        const qvl_tensor *merged = find_stage(&found, "merged");
        assert_memory_equal(embeds.data, merged->data, (size_t)tensor_count(merged) * sizeof(float));
        qvl_features_free(&features);
        free(patches.values);
        free(patches.items);
        free_stages(&found);
    }
    printf("%s %s: %d stages, worst NMSE %.2g\n", m->shape, qvl_model_get_info(model)->kernels, compared, worst);
    assert_true(compared >= 20);
    qvl_session_close(&session);
    qvl_tensor_file_close(&fixture);
    qvl_model_close(&model);
}

static void test_stages_equal_transformers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        check_model(&models[i], QVL_CPU_ALL);
        check_model(&models[i], QVL_CPU_AVX2);
        check_model(&models[i], QVL_CPU_SCALAR);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stages_equal_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
