/* The sampler: what transformers leaves of random logits (fixtures/sampler.json, by tools/oracle/sampler_fixtures.py),
 * the draw, and what is refused. */
#include "lm/sampler.h"

#include "../tools/random_model/generator.h"
#include "base/exp.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- fixtures */

static cJSON *read_cases(void) {
    FILE *file = fopen(QVL_FIXTURES "/sampler.json", "rb");
    if (!file) fail_msg("no " QVL_FIXTURES "/sampler.json");
    static char text[1 << 20];
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = 0;
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    return root;
}

static double number(const cJSON *json, const char *key, double otherwise) {
    const cJSON *item = cJSON_GetObjectItem(json, key);
    return item ? item->valuedouble : otherwise;
}

static qvl_sampling sampling_of(const cJSON *json) {
    qvl_sampling s;
    qvl_sampling_init(&s);
    s.do_sample = !cJSON_IsFalse(cJSON_GetObjectItem(json, "do_sample"));
    s.temperature = number(json, "temperature", s.temperature);
    s.top_k = (int32_t)number(json, "top_k", s.top_k);
    s.top_p = number(json, "top_p", s.top_p);
    s.min_p = number(json, "min_p", s.min_p);
    s.repetition_penalty = number(json, "repetition_penalty", s.repetition_penalty);
    s.presence_penalty = number(json, "presence_penalty", s.presence_penalty);
    return s;
}

static float *logits_of(const cJSON *json, int64_t vocab) {
    float scale = (float)number(json, "scale", 0), *x = malloc((size_t)vocab * sizeof *x);
    assert_non_null(x);
    demo_fill(cJSON_GetObjectItem(json, "name")->valuestring, 0, vocab, x);
    bool steps = cJSON_IsTrue(cJSON_GetObjectItem(json, "steps"));
    for (int64_t i = 0; i < vocab; i++) x[i] = steps ? floorf(4.0f * x[i]) * (scale / 4.0f) : scale * x[i];
    return x;
}

/* A token is said by letting the sampler choose it: every other logit is -infinity. */
static void say(qvl_sampler *s, int32_t id) {
    float *only = malloc((size_t)s->vocab * sizeof *only);
    const uint8_t *never = s->never;
    int32_t got = -1;
    for (int64_t i = 0; i < s->vocab; i++) only[i] = -INFINITY;
    only[id] = 0.0f;
    s->never = NULL;
    assert_int_equal(qvl_sampler_next(s, only, &got, NULL), QVL_OK);
    assert_int_equal(got, id);
    s->never = never;
    free(only);
}

static void run_case(const cJSON *json, const float *logits, qvl_sampler *s) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "prompt")) {
        int64_t id = (int64_t)item->valuedouble;
        qvl_sampler_prompt(s, &id, 1);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "said")) say(s, item->valueint);
    qvl_error error;
    if (qvl_sampler_distribution(s, logits, &error)) fail_msg("%s", error.message);
    const cJSON *kept = cJSON_GetObjectItem(json, "kept"), *p = cJSON_GetObjectItem(json, "probabilities");
    const char *name = cJSON_GetObjectItem(json, "name")->valuestring;
    if (s->kept_count != cJSON_GetArraySize(kept))
        fail_msg("%s: %lld tokens are left, not %d", name, (long long)s->kept_count, cJSON_GetArraySize(kept));
    double sum = 0.0;
    for (int64_t i = 0; i < s->kept_count; i++) sum += s->weights[i];
    const cJSON *probability = p->child;
    int64_t i = 0;
    cJSON_ArrayForEach(item, kept) {
        double got = s->weights[i] / sum, want = probability->valuedouble;
        if (s->kept[i] != item->valueint)
            fail_msg("%s: token %d is left, not %d", name, s->kept[i], item->valueint);
        if (fabs(got - want) > 1e-11 * want)
            fail_msg("%s: token %d has %.9g, not %.9g", name, s->kept[i], got, want);
        probability = probability->next;
        i++;
    }
}

static void test_transformers(void **state) {
    (void)state;
    cJSON *root = read_cases();
    const cJSON *json;
    int count = 0;
    cJSON_ArrayForEach(json, cJSON_GetObjectItem(root, "cases")) {
        int64_t vocab = (int64_t)number(json, "vocab", 0);
        float *logits = logits_of(json, vocab);
        uint8_t *never = calloc((size_t)vocab, 1);
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "never")) never[item->valueint] = 1;
        qvl_sampling sampling = sampling_of(json);
        qvl_sampler s;
        assert_int_equal(qvl_sampling_check(&sampling, NULL), QVL_OK);
        assert_int_equal(qvl_sampler_open(vocab, &sampling, never, &s, NULL), QVL_OK);
        run_case(json, logits, &s);
        qvl_sampler_close(&s);
        free(never);
        free(logits);
        count++;
    }
    assert_int_equal(count, 35);
    cJSON_Delete(root);
}

/* ---- ties */

static qvl_sampling sampled(void) {
    qvl_sampling s;
    qvl_sampling_init(&s);
    s.do_sample = true;
    return s;
}

static void assert_kept(const qvl_sampling *sampling, const float *logits, int64_t vocab, const char *want) {
    qvl_sampler s;
    char got[256] = "";
    assert_int_equal(qvl_sampler_open(vocab, sampling, NULL, &s, NULL), QVL_OK);
    assert_int_equal(qvl_sampler_distribution(&s, logits, NULL), QVL_OK);
    for (int64_t i = 0; i < s.kept_count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%d ", s.kept[i]);
    assert_string_equal(got, want);
    qvl_sampler_close(&s);
}

static void test_ties(void **state) {
    (void)state;
    static const float logits[6] = {1, 2, 2, 1, 2, 2};
    qvl_sampling s = sampled();
    s.do_sample = false;
    assert_kept(&s, logits, 6, "1 ");
    s.do_sample = true;
    s.temperature = 0;
    assert_kept(&s, logits, 6, "1 ");
    s.temperature = 1;
    s.top_k = 2; /* equals of the second stay */
    assert_kept(&s, logits, 6, "1 2 4 5 ");
    s.top_p = 0.5; /* of four equals the two with the lowest ids */
    assert_kept(&s, logits, 6, "1 2 ");
    s.top_p = 0;
    assert_kept(&s, logits, 6, "1 ");
    s.top_k = 0;
    s.top_p = 1;
    s.min_p = 1;
    assert_kept(&s, logits, 6, "1 2 4 5 ");
}

/* ---- the draw */

/* The published first outputs of SplitMix64 from the state 1234567, as numbers in [0, 1). */
static void test_generator(void **state) {
    (void)state;
    static const uint64_t outputs[5] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                        4593380528125082431u, 16408922859458223821u};
    enum { VOCAB = 1000 };
    static const float logits[VOCAB];
    qvl_sampling sampling = sampled();
    sampling.seed = 1234567;
    qvl_sampler s;
    assert_int_equal(qvl_sampler_open(VOCAB, &sampling, NULL, &s, NULL), QVL_OK);
    for (int i = 0; i < 5; i++) {
        int32_t id;
        assert_int_equal(qvl_sampler_next(&s, logits, &id, NULL), QVL_OK);
        assert_int_equal(id, (int32_t)((double)(outputs[i] >> 11) * 0x1p-53 * VOCAB));
    }
    qvl_sampler_close(&s);
}

/* Frequencies of 50,000 draws: chi-squared over the kept tokens within its mean plus four deviations. The seeds are
 * fixed, so this passes always or never. */
static void test_frequencies(void **state) {
    (void)state;
    enum { VOCAB = 257, DRAWS = 50000 };
    float logits[VOCAB];
    demo_fill("frequencies", 0, VOCAB, logits);
    for (int i = 0; i < VOCAB; i++) logits[i] *= 4.0f;
    for (uint64_t seed = 0; seed < 3; seed++) {
        qvl_sampling sampling = sampled();
        sampling.seed = seed;
        sampling.temperature = 0.8;
        sampling.top_k = 60;
        sampling.top_p = 0.9;
        qvl_sampler s;
        int counts[VOCAB] = {0};
        assert_int_equal(qvl_sampler_open(VOCAB, &sampling, NULL, &s, NULL), QVL_OK);
        for (int i = 0; i < DRAWS; i++) {
            int32_t id;
            assert_int_equal(qvl_sampler_next(&s, logits, &id, NULL), QVL_OK);
            counts[id]++;
        }
        double sum = 0.0, chi = 0.0;
        int seen = 0;
        for (int64_t i = 0; i < s.kept_count; i++) sum += s.weights[i];
        for (int64_t i = 0; i < s.kept_count; i++) {
            double want = DRAWS * s.weights[i] / sum, difference = counts[s.kept[i]] - want;
            chi += difference * difference / want;
            seen += counts[s.kept[i]];
        }
        assert_int_equal(seen, DRAWS);
        double freedom = (double)s.kept_count - 1;
        assert_true(freedom > 20);
        if (fabs(chi - freedom) > 4 * sqrt(2 * freedom))
            fail_msg("chi squared %g, degrees of freedom %g", chi, freedom);
        qvl_sampler_close(&s);
    }
}

static void test_seeds(void **state) {
    (void)state;
    enum { VOCAB = 64, COUNT = 40 };
    static const float logits[VOCAB];
    int32_t ids[3][COUNT];
    for (int run = 0; run < 3; run++) {
        qvl_sampling sampling = sampled();
        sampling.seed = run == 2 ? 8 : 7;
        qvl_sampler s;
        assert_int_equal(qvl_sampler_open(VOCAB, &sampling, NULL, &s, NULL), QVL_OK);
        for (int i = 0; i < COUNT; i++) assert_int_equal(qvl_sampler_next(&s, logits, &ids[run][i], NULL), QVL_OK);
        qvl_sampler_close(&s);
    }
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_memory_not_equal(ids[0], ids[2], sizeof ids[0]);
}

/* ---- what is refused */

static void assert_refused(const float *logits, const uint8_t *never, double temperature, const char *part) {
    qvl_sampling sampling = sampled();
    sampling.temperature = temperature;
    qvl_error error;
    for (int greedy = 0; greedy < 2; greedy++) {
        qvl_sampler s;
        int32_t id = -1;
        sampling.do_sample = !greedy;
        assert_int_equal(qvl_sampler_open(4, &sampling, never, &s, NULL), QVL_OK);
        assert_int_equal(qvl_sampler_next(&s, logits, &id, &error), QVL_ERROR_NUMERIC);
        if (!strstr(error.message, part)) fail_msg("'%s' is not in: %s", part, error.message);
        qvl_sampler_close(&s);
        if (temperature < 1) break; /* which greedy does not know */
    }
}

static void test_not_finite(void **state) {
    (void)state;
    static const uint8_t never[4] = {0, 0, 1, 0}, all[4] = {1, 1, 1, 1};
    assert_refused((float[]){0, NAN, 0, 0}, NULL, 1, "the logit of token 1 is");
    assert_refused((float[]){0, 0, NAN, 0}, never, 1, "the logit of token 2 is");
    assert_refused((float[]){0, 0, 0, INFINITY}, NULL, 1, "the logit of token 3 is inf");
    assert_refused((float[]){-INFINITY, -INFINITY, -INFINITY, -INFINITY}, NULL, 1, "no token of the 4");
    assert_refused((float[]){0, 0, 0, 0}, all, 1, "no token of the 4");
    assert_refused((float[]){0, 1e30f, 0, 0}, NULL, 1e-10, "temperature 1e-10");
}

static void assert_bad(qvl_sampling s, const char *part) {
    qvl_error error;
    assert_int_equal(qvl_sampling_check(&s, &error), QVL_ERROR_ARGUMENT);
    if (!strstr(error.message, part)) fail_msg("'%s' is not in: %s", part, error.message);
}

static void test_ranges(void **state) {
    (void)state;
    qvl_sampling s;
    qvl_sampling_init(&s);
    assert_int_equal(qvl_sampling_check(&s, NULL), QVL_OK);
#define WITH(field, value) (s.field = (value), s)
    assert_bad(WITH(temperature, -0.5), "temperature is -0.5; allowed is 0");
    assert_bad(WITH(temperature, NAN), "temperature");
    s.temperature = 1;
    assert_bad(WITH(top_k, -1), "top_k is -1");
    s.top_k = 0;
    assert_bad(WITH(top_p, 1.5), "top_p is 1.5");
    assert_bad(WITH(top_p, NAN), "top_p");
    s.top_p = 1;
    assert_bad(WITH(min_p, -0.1), "min_p is -0.1");
    s.min_p = 0;
    assert_bad(WITH(repetition_penalty, 0), "repetition_penalty is 0");
    s.repetition_penalty = 1;
    assert_bad(WITH(presence_penalty, INFINITY), "presence_penalty is inf");
#undef WITH
}

/* ---- log-probabilities, and the exponential */

static void test_logprobs(void **state) {
    (void)state;
    static const float logits[5] = {1, 3, -2, 3, 0.5f};
    double sum = exp(1) + exp(3) + exp(-2) + exp(3) + exp(0.5);
    qvl_logprob top[7];
    double log_sum = qvl_logprobs(logits, 5, top, 3);
    assert_true(fabs(log_sum - log(sum)) < 1e-14);
    static const int32_t order[7] = {1, 3, 0, 4, 2, -1, -1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(top[i].id, order[i]);
        assert_true(fabs((double)top[i].logprob - ((double)logits[order[i]] - log_sum)) < 1e-6);
    }
    qvl_logprobs(logits, 5, top, 7);
    for (int i = 0; i < 7; i++) assert_int_equal(top[i].id, order[i]);
    assert_true(qvl_logprobs(logits, 5, NULL, 0) == log_sum);
}

static void test_exp(void **state) {
    (void)state;
    assert_true(qvl_exp(0) == 1.0 && qvl_exp(-709) == 0.0 && qvl_exp(710) == HUGE_VAL && isnan(qvl_exp(NAN)));
    assert_true(qvl_exp(1) == 0x1.5bf0a8b14576ap+1 && qvl_exp(-0.5) == 0x1.368b2fc6f960ap-1);
    for (int i = -708000; i <= 709000; i += 7) {
        double x = i * 1e-3 + 1e-7, want = exp(x), got = qvl_exp(x);
        if (fabs(got - want) > 2 * 0x1p-52 * want) fail_msg("e^%.17g is %.17g, not %.17g", x, got, want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformers), cmocka_unit_test(test_ties),     cmocka_unit_test(test_generator),
        cmocka_unit_test(test_frequencies),  cmocka_unit_test(test_seeds),    cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_ranges),       cmocka_unit_test(test_logprobs), cmocka_unit_test(test_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
