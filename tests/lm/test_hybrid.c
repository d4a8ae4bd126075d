/* The hybrid family against transformers: stages, states, logits, cached decoding, f32 and bf16. */
#include "compute/delta.h"
#include "lm/hybrid.h"
#include "lm/lm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOUND 1e-10 /* of f32, any stage */

static double nmse_of(const float *x, const qvl_tensor *reference) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < tensor_count(reference); i++) {
        double b = tensor_value(reference, i), d = (double)x[i] - b;
        error += d * d;
        power += b * b;
    }
    return error / power;
}

static double worse(double a, double b) {
    return a > b || a != a ? a : b;
}

/* The state of linear layer `slot` against every step-th row of the fixture's. */
static double state_nmse(const qvl_sequence *sequence, int64_t slot, const qvl_tensor *want) {
    const qvl_delta_shape *shape = &sequence->linear.shape.delta;
    int64_t dk = shape->key_dim, dv = shape->value_dim, step = dk / want->shape[1];
    float *s = malloc((size_t)(shape->value_heads * dk * dv) * sizeof *s), *kept = s;
    qvl_delta_state_read(sequence->lm->compute, shape, qvl_linear_state_delta(&sequence->linear, slot),
                         sequence->length, s);
    for (int64_t row = 0; row < shape->value_heads * dk; row += step, kept += dv)
        memmove(kept, s + row * dv, (size_t)dv * sizeof *s);
    double nmse = nmse_of(s, want);
    free(s);
    return nmse;
}

/* Every array of the case that is a stage or a state. */
static int compare_case(const lm_case *c, const char *name, const hybrid_run *run, const qvl_sequence *sequence,
                        double *worst) {
    size_t prefix = strlen(name);
    int compared = 0;
    for (size_t i = 0; i < qvl_tensor_file_count(c->fixture); i++) {
        qvl_tensor want = qvl_tensor_file_get(c->fixture, i);
        if (strncmp(want.name, name, prefix) != 0 || want.name[prefix] != '/' || want.dtype != QVL_F32) continue;
        const char *stage = want.name + prefix + 1, *state = strstr(stage, ".state");
        if (strcmp(stage, "decode_logits") == 0) continue;
        double nmse;
        if (state) {
            int64_t layer = strtol(stage + strlen("layers."), NULL, 10);
            nmse = state_nmse(sequence, layer - layer / 4, &want); /* three of four layers are linear */
        } else {
            int64_t width;
            const float *x = hybrid_stage(run, stage, &width);
            assert_int_equal(width * run->row_count, tensor_count(&want));
            nmse = nmse_of(x, &want);
        }
        if (!(nmse <= BOUND)) fail_msg("%s has NMSE %.2e", want.name, nmse);
        *worst = worse(nmse, *worst);
        compared++;
    }
    return compared;
}

static void check_argmax(const lm_case *c, const char *name, const hybrid_run *run) {
    qvl_tensor want = hybrid_tensor(c, name, "argmax");
    for (int64_t i = 0; i < tensor_count(&want); i++)
        if (run->argmax[i] != ((const int64_t *)want.data)[i])
            fail_msg("%s: argmax of entry %lld is %lld, transformers says %lld", name, (long long)i,
                     (long long)run->argmax[i], (long long)((const int64_t *)want.data)[i]);
}

/* Greedy steps through the state and the cache. */
static double check_decode(const lm_case *c, const char *name, qvl_sequence *sequence, float *logits) {
    qvl_tensor tokens = hybrid_tensor(c, name, "decode"), after = hybrid_tensor(c, name, "decode_logits");
    int64_t vocab = after.shape[1];
    double worst = 0;
    for (int64_t i = 0; i < tensor_count(&tokens); i++) {
        int64_t token = largest_of(logits, vocab);
        assert_int_equal(token, ((const int64_t *)tokens.data)[i]);
        qvl_error error;
        if (qvl_sequence_step(sequence, token, NULL, logits, &error)) fail_msg("%s", error.message);
        qvl_tensor want = after;
        want.shape[0] = 1;
        want.data = (const float *)after.data + i * vocab;
        worst = worse(nmse_of(logits, &want), worst);
    }
    assert_true(worst <= BOUND);
    return worst;
}

static void check_positions(const lm_case *c, const char *name, const qvl_prompt *prompt) {
    qvl_tensor want = hybrid_tensor(c, name, "positions"), rows = hybrid_tensor(c, name, "rows");
    qvl_tensor delta = hybrid_tensor(c, name, "delta");
    int64_t count = tensor_count(&rows);
    for (int64_t i = 0; i < 3 * count; i++)
        assert_int_equal(
            prompt->position_ids[i / count * prompt->length + ((const int64_t *)rows.data)[i % count]],
            ((const int64_t *)want.data)[i]);
    assert_int_equal(prompt->rope_delta, *(const int64_t *)delta.data);
}

/* f32: returns nothing, fails where anything is further than BOUND. */
static void check_exact(const lm_case *c, const char *name, uint32_t cpu_mask, int wanted) {
    speaker s = open_speaker(c->folder, QVL_F32, 2, cpu_mask);
    qvl_prompt prompt = hybrid_prompt(c, name, &s);
    check_positions(c, name, &prompt);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    qvl_tensor rows = hybrid_tensor(c, name, "rows");
    hybrid_run run;
    float *logits = hybrid_prefill(sequence, &prompt, &rows, &run);
    double worst = 0;
    int compared = compare_case(c, name, &run, sequence, &worst);
    assert_int_equal(compared, wanted);
    check_argmax(c, name, &run);
    double decode = check_decode(c, name, sequence, logits);
    printf("%s %s, %lld tokens: %d arrays, worst %.1e, decode %.1e\n", qvl_model_get_info(s.model)->kernels, name,
           (long long)prompt.length, compared, worst, decode);
    free(logits);
    hybrid_run_free(&run);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

static void test_tiny(void **state) {
    (void)state;
    static const char *const shapes[] = {"tiny-35", "tiny-35moe"};
    static const uint32_t masks[] = {QVL_CPU_ALL, QVL_CPU_AVX2, QVL_CPU_SCALAR};
    for (int i = 0; i < 2; i++) {
        lm_case c = open_hybrid(shapes[i]);
        /* 4 layers, 3 x core, gated, state, 1 x attn, norm, logits */
        for (int m = 0; m < 3; m++) check_exact(&c, "vectors", masks[m], 4 + 9 + 1 + 2);
        close_case(&c);
    }
}

/* Stretched frequencies of the part of a head that turns, every number of the stretch given. */
static void test_yarn(void **state) {
    (void)state;
    lm_case c = open_hybrid_of("tiny-35-yarn", "tiny-35");
    edit_case(&c,
              "s/\"rope_type\":.*\"default\"/\"rope_type\": \"yarn\", \"factor\": 2.5, \"attention_factor\": 1.3, "
              "\"original_max_position_embeddings\": 64, \"beta_fast\": 4, \"beta_slow\": 0.02/");
    check_exact(&c, "vectors", QVL_CPU_ALL, 3);
    close_case(&c);
}

/* The anchors of language_model.md 12, made by another version of transformers. */
static void test_published_anchors(void **state) {
    (void)state;
    static const struct {
        const char *shape;
        double sum;
        int64_t decode[3];
    } anchors[] = {{"tiny-35", 55.2749399, {58, 11, 3}}, {"tiny-35moe", -156.944316, {58, 22, 52}}};
    for (int i = 0; i < 2; i++) {
        lm_case c = open_hybrid(anchors[i].shape);
        speaker s = open_speaker(c.folder, QVL_F32, 1, QVL_CPU_ALL);
        qvl_prompt prompt = hybrid_prompt(&c, "vectors", &s);
        qvl_sequence *sequence = open_sequence(s.lm, 0);
        qvl_tensor rows = hybrid_tensor(&c, "vectors", "rows");
        hybrid_run run;
        float *logits = hybrid_prefill(sequence, &prompt, &rows, &run);
        int64_t width;
        const float *all = hybrid_stage(&run, "logits", &width);
        double sum = 0;
        for (int64_t j = 0; j < 73 * width; j++) sum += (double)all[j];
        assert_true(fabs(sum - anchors[i].sum) < 2e-3);
        for (int step = 0; step < 3; step++) {
            assert_int_equal(largest_of(logits, 64), anchors[i].decode[step]);
            assert_int_equal(qvl_sequence_step(sequence, anchors[i].decode[step], NULL, logits, NULL), QVL_OK);
        }
        free(logits);
        hybrid_run_free(&run);
        qvl_sequence_close(&sequence);
        qvl_prompt_free(&prompt);
        close_speaker(&s);
        close_case(&c);
    }
}

/* ---- the larger models: 8 layers, head sizes of published ones, prompts of 1 to 3,000 tokens, pictures, video */

static const char *const mid_cases[] = {"one", "words", "media", "long"};

static void check_mid(const char *shape) {
    lm_case c = open_hybrid(shape);
    printf("%s\n", shape);
    for (int i = 0; i < 4; i++) check_exact(&c, mid_cases[i], QVL_CPU_ALL, 4 + 2 + 2);
    close_case(&c);
}

static void test_mid(void **state) {
    (void)state;
    check_mid("mid-35");
}

static void test_mid_experts(void **state) {
    (void)state;
    check_mid("mid-35moe");
}

static const char *const measured[] = {"layers.0", "layers.3", "layers.6", "layers.7", "norm", "logits"};
enum { MEASURED = sizeof measured / sizeof measured[0] };

/* The stages of a whole run at every row of the prompt. */
static void run_all(const lm_case *c, const char *name, qvl_dtype dtype, hybrid_run *run, int64_t *count) {
    speaker s = open_speaker(c->folder, dtype, 2, QVL_CPU_ALL);
    qvl_prompt prompt = hybrid_prompt(c, name, &s);
    qvl_sequence *sequence = open_sequence(s.lm, 0);
    int64_t *every = malloc((size_t)prompt.length * sizeof *every);
    for (int64_t i = 0; i < prompt.length; i++) every[i] = i;
    qvl_tensor rows = {.dtype = QVL_I64, .ndim = 1, .shape = {prompt.length}, .data = every};
    free(hybrid_prefill(sequence, &prompt, &rows, run));
    *count = prompt.length;
    run->rows = NULL;
    free(every);
    qvl_sequence_close(&sequence);
    qvl_prompt_free(&prompt);
    close_speaker(&s);
}

/* design: bf16 is no further from the f32 reference than transformers' own bf16 run. */
static void check_bf16(const lm_case *c, const char *name) {
    hybrid_run exact, half;
    int64_t rows;
    run_all(c, name, QVL_F32, &exact, &rows);
    run_all(c, name, QVL_BF16, &half, &rows);
    for (int i = 0; i < MEASURED; i++) {
        char part[32];
        int64_t width;
        snprintf(part, sizeof part, "%s/bf16", measured[i]);
        qvl_tensor theirs = hybrid_tensor(c, name, part);
        const float *a = hybrid_stage(&half, measured[i], &width);
        qvl_tensor b = {.dtype = QVL_F32, .ndim = 2, .shape = {rows, width}};
        b.data = hybrid_stage(&exact, measured[i], &width);
        double mine = nmse_of(a, &b), allowed = *(const double *)theirs.data;
        printf("  %s %-9s bf16 %.2e (transformers %.2e)\n", name, measured[i], mine, allowed);
        assert_true(mine <= allowed);
    }
    hybrid_run_free(&exact);
    hybrid_run_free(&half);
}

static void test_bf16(void **state) {
    (void)state;
    lm_case dense = open_hybrid("mid-35"), experts = open_hybrid("mid-35moe");
    for (int i = 0; i < 4; i++) {
        check_bf16(&dense, mid_cases[i]);
        check_bf16(&experts, mid_cases[i]);
    }
    close_case(&dense);
    close_case(&experts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny), cmocka_unit_test(test_yarn),        cmocka_unit_test(test_published_anchors),
        cmocka_unit_test(test_mid),  cmocka_unit_test(test_mid_experts), cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
