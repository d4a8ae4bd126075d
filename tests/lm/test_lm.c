/* Decoder stages, logits and cached decoding against transformers, in f32 and bf16. */
#include "../tools/random_model/generator.h"
#include "lm/prompts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOUND 1e-10 /* of f32, any stage */

static int64_t argmax(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void check_argmax(const lm_case *c, const char *name, const qvl_tensor *logits) {
    qvl_tensor want;
    want_tensor(c, name, &want);
    assert_int_equal(tensor_count(&want), logits->shape[0]);
    for (int64_t i = 0; i < logits->shape[0]; i++) {
        int64_t got = argmax((const float *)logits->data + i * logits->shape[1], logits->shape[1]);
        if (got != ((const int64_t *)want.data)[i])
            fail_msg("entry %lld: argmax %lld, %s says %lld", (long long)i, (long long)got, name,
                     (long long)((const int64_t *)want.data)[i]);
    }
}

/* Greedy steps through the cache: equal tokens, logits within the bound. */
static double check_greedy(const lm_case *c, qvl_sequence *sequence, float *logits, int64_t vocab) {
    qvl_tensor tokens, rows;
    want_tensor(c, "greedy", &tokens);
    want_tensor(c, "greedy_logits", &rows);
    double worst = 0;
    for (int64_t step = 0; step < tensor_count(&tokens); step++) {
        int64_t token = argmax(logits, vocab);
        assert_int_equal(token, ((const int64_t *)tokens.data)[step]);
        qvl_error error;
        if (qvl_sequence_step(sequence, token, NULL, logits, &error)) fail_msg("%s", error.message);
        qvl_tensor got = {.dtype = QVL_F32, .ndim = 2, .shape = {1, vocab}, .data = logits};
        qvl_tensor want = {
            .dtype = QVL_F32, .ndim = 2, .shape = {1, vocab}, .data = (const float *)rows.data + step * vocab};
        double nmse = tensor_distance(&got, &want).nmse;
        worst = nmse > worst ? nmse : worst;
    }
    return worst;
}

static void check_stages(const lm_case *c, const char *shape, size_t stages_wanted) {
    speaker s = open_speaker(c->folder, QVL_F32, 2, QVL_CPU_ALL);
    qvl_prompt prompt = case_prompt(c, s.lm);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    stages *taps = calloc(1, sizeof *taps);
    float *logits = prefill(sequence, &prompt, taps);
    double worst = 0;
    size_t compared = 0;
    const char *worst_name = "";
    for (size_t i = 0; i < qvl_tensor_file_count(c->fixture); i++) {
        qvl_tensor want = qvl_tensor_file_get(c->fixture, i);
        const qvl_tensor *got = find_stage(taps, want.name);
        if (!got) continue;
        assert_int_equal(got->ndim, want.ndim);
        assert_memory_equal(got->shape, want.shape, (size_t)want.ndim * sizeof *want.shape);
        double nmse = tensor_distance(got, &want).nmse;
        if (!(nmse <= BOUND)) fail_msg("%s: %s has NMSE %.2e", shape, want.name, nmse);
        if (nmse > worst) worst = nmse, worst_name = got->name;
        compared++;
    }
    assert_int_equal(compared, stages_wanted);
    printf("%s: %zu stages, worst %.1e (%s)\n", shape, compared, worst, worst_name);
    check_argmax(c, "argmax", find_stage(taps, "logits"));
    double greedy = check_greedy(c, sequence, logits, 64);
    printf("%s: greedy tokens equal, logits %.1e\n", shape, greedy);
    assert_true(greedy <= BOUND);
    free(logits);
    free_stages(taps);
    free(taps);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

static void check_tiny(const char *shape, size_t stages_wanted) {
    lm_case c = open_case(shape);
    check_stages(&c, shape, stages_wanted);
    close_case(&c);
}

static void test_tiny(void **state) {
    (void)state;
    check_tiny("tiny-vl", 3 * 8 + 2);
    check_tiny("tiny-vlmoe", 2 * 7 + 2);
}

/* Stretched frequencies, at positions beyond the original length. */
static void test_yarn(void **state) {
    (void)state;
    lm_case c = open_case_of("tiny-vl-yarn", "tiny-vl");
    edit_case(&c, "s/\"rope_type\":.*\"default\"/\"rope_type\": \"yarn\", \"factor\": 4, "
                  "\"original_max_position_embeddings\": 2048/");
    check_stages(&c, "tiny-vl with yarn", 3 * 3 + 2);
    close_case(&c);
}

/* ---- the published vectors: the same prompt with the tower's own features */

static void check_statistics(const lm_case *c, const char *name, const qvl_tensor *got) {
    qvl_tensor want;
    char key[64];
    snprintf(key, sizeof key, "vectors/%s", name);
    want_tensor(c, key, &want);
    const double *w = want.data;
    const float *x = got->data;
    int64_t n = tensor_count(got);
    double sum = 0, sizes = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i], sizes += fabs((double)x[i]);
    assert_true(fabs(sum - w[0]) < 1e-6 * w[1]);
    assert_true(fabs(sizes - w[1]) < 1e-6 * w[1]);
    for (int i = 0; i < 6; i++) assert_true(fabs((double)x[i] - w[2 + i]) < 2e-5);
    for (int i = 0; i < 4; i++) assert_true(fabs((double)x[n - 4 + i] - w[8 + i]) < 2e-5);
}

static qvl_features encode_formula(qvl_session *session, const char *name, qvl_grid grid) {
    qvl_item item = {.grid = grid};
    qvl_patches patches = {.rows = grid.t * grid.h * grid.w, .cols = 96, .item_count = 1, .items = &item};
    patches.values = malloc((size_t)(patches.rows * patches.cols) * sizeof(float));
    demo_fill(name, 0, patches.rows * patches.cols, patches.values);
    qvl_features features;
    qvl_error error;
    if (qvl_vision_encode(session, &patches, NULL, &features, &error)) fail_msg("%s", error.message);
    free(patches.values);
    return features;
}

/* Puts the features of a picture and a video in the place of the formula's. */
static void put_features(qvl_prompt *p, const qvl_features *image, const qvl_features *video) {
    int64_t h = p->width, vision = 0;
    for (int64_t i = 0; i < p->length; i++) {
        if (!p->token_types[i]) continue;
        const qvl_features *f = vision < image->tokens ? image : video;
        int64_t row = vision < image->tokens ? vision : vision - image->tokens;
        memcpy((float *)p->inputs_embeds + i * h, (const float *)f->embeds + row * h, (size_t)h * sizeof(float));
        for (int j = 0; j < p->deepstack_count; j++)
            memcpy((float *)p->deepstack[j] + vision * h, (const float *)f->deepstack[j] + row * h,
                   (size_t)h * sizeof(float));
        vision++;
    }
    assert_int_equal(vision, image->tokens + video->tokens);
}

static void check_vectors(const char *shape, int layers) {
    lm_case c = open_case(shape);
    speaker s = open_speaker(c.folder, QVL_F32, 2, QVL_CPU_ALL);
    qvl_prompt prompt = case_prompt(&c, s.lm);
    qvl_session *session = NULL;
    assert_int_equal(qvl_session_open(s.model, &session, NULL), QVL_OK);
    qvl_features image = encode_formula(session, "pixel_values", (qvl_grid){1, 4, 6});
    qvl_features video = encode_formula(session, "pixel_values_videos", (qvl_grid){2, 4, 4});
    put_features(&prompt, &image, &video);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    stages *taps = calloc(1, sizeof *taps);
    float *logits = prefill(sequence, &prompt, taps);
    for (int i = 0; i < layers; i++) {
        char stage[32], name[32];
        snprintf(stage, sizeof stage, "layers.%d", i);
        snprintf(name, sizeof name, "dec%d", i);
        check_statistics(&c, name, find_stage(taps, stage));
    }
    check_statistics(&c, "logits", find_stage(taps, "logits"));
    check_argmax(&c, "vectors/argmax", find_stage(taps, "logits"));
    qvl_tensor tokens, last;
    want_tensor(&c, "vectors/decode", &tokens);
    want_tensor(&c, "vectors/logits_last", &last);
    for (int64_t i = 0; i < 64; i++) assert_true(fabs((double)logits[i] - tensor_value(&last, i)) < 2e-5);
    for (int64_t step = 0; step < tensor_count(&tokens); step++) {
        assert_int_equal(argmax(logits, 64), ((const int64_t *)tokens.data)[step]);
        assert_int_equal(qvl_sequence_step(sequence, argmax(logits, 64), NULL, logits, NULL), QVL_OK);
    }
    free(logits);
    free_stages(taps);
    free(taps);
    qvl_features_free(&image);
    qvl_features_free(&video);
    qvl_sequence_close(&sequence);
    qvl_session_close(&session);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
    close_case(&c);
}

static void test_vectors(void **state) {
    (void)state;
    check_vectors("tiny-vl", 3);
    check_vectors("tiny-vlmoe", 2);
}

/* ---- larger models */

/* The rows of a stage that the fixture has. */
static double sampled_nmse(const lm_case *c, const char *name, const qvl_tensor *stage) {
    qvl_tensor want, rows;
    want_tensor(c, name, &want);
    want_tensor(c, "rows", &rows);
    int64_t width = stage->shape[1];
    double e = 0, p = 0;
    for (int64_t r = 0; r < want.shape[0]; r++)
        for (int64_t i = 0; i < width; i++) {
            double x = tensor_value(stage, ((const int64_t *)rows.data)[r] * width + i);
            double ref = tensor_value(&want, r * width + i);
            e += (x - ref) * (x - ref);
            p += ref * ref;
        }
    return e / p;
}

static stages *run_stages(const lm_case *c, qvl_dtype dtype, bool greedy) {
    speaker s = open_speaker(c->folder, dtype, 2, QVL_CPU_ALL);
    qvl_prompt prompt = case_prompt(c, s.lm);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    stages *taps = calloc(1, sizeof *taps);
    float *logits = prefill(sequence, &prompt, taps);
    if (greedy) {
        double worst = check_greedy(c, sequence, logits, qvl_lm_get_info(s.lm)->vocab_size);
        printf("  greedy tokens equal, logits %.1e\n", worst);
        assert_true(worst <= BOUND);
    }
    free(logits);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
    return taps;
}

static void check_large(const char *shape) {
    lm_case c = open_case(shape);
    printf("%s\n", shape);
    stages *exact = run_stages(&c, QVL_F32, true), *half = run_stages(&c, QVL_BF16, false);
    check_argmax(&c, "argmax", find_stage(exact, "logits"));
    for (int i = 0; i <= 8; i++) {
        char name[32], key[48];
        snprintf(name, sizeof name, i < 8 ? "layers.%d" : "logits", i);
        snprintf(key, sizeof key, "%s/bf16_nmse", name);
        qvl_tensor theirs;
        want_tensor(&c, key, &theirs);
        const qvl_tensor *stage = find_stage(exact, name);
        double nmse = sampled_nmse(&c, name, stage), bf16 = tensor_distance(find_stage(half, name), stage).nmse;
        double allowed = *(const double *)theirs.data;
        printf("  %-9s f32 %.1e, bf16 %.2e (transformers %.2e)\n", name, nmse, bf16, allowed);
        assert_true(nmse <= BOUND);
        assert_true(bf16 <= allowed);
    }
    free_stages(exact);
    free_stages(half);
    free(exact);
    free(half);
    close_case(&c);
}

static void test_large(void **state) {
    (void)state;
    check_large("lm-test");
    check_large("lm-test-moe");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiny), cmocka_unit_test(test_yarn),
                                       cmocka_unit_test(test_vectors), cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
