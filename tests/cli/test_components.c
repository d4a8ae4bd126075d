/* Principal components of features and their levels: few tokens, equal ones, equal variances, and known answers.
 * tools/oracle/map_oracle.py compares maps with numpy's singular value decomposition. */
#include "components.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { K = CLI_COMPONENTS };

/* Owner: the caller, free(). [K, tokens] */
static double *components_of(float *values, int64_t tokens, int64_t width) {
    qvl_features features = {.dtype = QVL_F32, .tokens = tokens, .width = width, .embeds = values};
    double *scores = malloc((size_t)tokens * K * sizeof *scores);
    assert_non_null(scores);
    assert_true(cli_find_components(&features, scores));
    for (int64_t i = 0; i < K * tokens; i++) assert_true(isfinite(scores[i]));
    return scores;
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void assert_near(double a, double b, double far) {
    if (!(fabs(a - b) <= far)) fail_msg("%.17g is not %.17g", a, b);
}

static void assert_zero(const double *scores, int64_t count) {
    for (int64_t i = 0; i < count; i++) assert_true(scores[i] == 0.0);
}

static float random_value(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static float *random_values(int64_t count, uint32_t seed) {
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) values[i] = random_value(&seed);
    return values;
}

static void test_few_tokens(void **state) {
    (void)state;
    float one[] = {3, 4, 5}, two[] = {0, 1, 7, 2, 1, 3}, three[] = {0, 0, 5, 1, 2, 5, 4, 8, 5};
    double *scores = components_of(one, 1, 3);
    assert_zero(scores, K);
    free(scores);
    /* Both lie as far out: the first is on the positive side. */
    scores = components_of(two, 2, 3);
    assert_near(scores[0], sqrt(0.5), 1e-15);
    assert_near(scores[1], -sqrt(0.5), 1e-15);
    assert_zero(scores + 2, 4);
    free(scores);
    /* On a line, at 0, 1 and 4: -5/3, -2/3 and 7/3 from its middle. */
    scores = components_of(three, 3, 3);
    double length = sqrt(25.0 + 4.0 + 49.0);
    assert_near(scores[0], -5.0 / length, 1e-12);
    assert_near(scores[1], -2.0 / length, 1e-12);
    assert_near(scores[2], 7.0 / length, 1e-12);
    assert_zero(scores + 3, 6);
    free(scores);
}

static void test_equal_tokens(void **state) {
    (void)state;
    enum { TOKENS = 40, WIDTH = 24 };
    static float values[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++) values[i] = 1e30f / (float)(1 + i % WIDTH);
    double *scores = components_of(values, TOKENS, WIDTH);
    assert_zero(scores, K * TOKENS);
    free(scores);
    memset(values, 0, sizeof values);
    scores = components_of(values, TOKENS, WIDTH);
    assert_zero(scores, K * TOKENS);
    free(scores);
}

/* Three known patterns over the tokens, each along a direction of its own, on top of a large mean; smaller ones below
 * them. In bfloat16 the same, where all values have seven bits. */
static void test_known_components(void **state) {
    (void)state;
    enum { TOKENS = 64, WIDTH = 5 };
    static const float spread[WIDTH] = {2, 7, 1, 4, 0};
    static const int order[K] = {1, 3, 0}, bit[WIDTH] = {1, 2, 4, 8, 16};
    static float values[TOKENS * WIDTH];
    static uint16_t halves[TOKENS * WIDTH];
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++) {
            float value = 64.0f + (t & bit[c] ? spread[c] : -spread[c]);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            values[t * WIDTH + c] = value;
            halves[t * WIDTH + c] = (uint16_t)(bits >> 16);
        }
    double *scores = components_of(values, TOKENS, WIDTH), other[K * TOKENS];
    for (int k = 0; k < K; k++)
        for (int t = 0; t < TOKENS; t++) /* token 0 is as far out as all, so positive */
            assert_near(scores[k * TOKENS + t], (t & bit[order[k]] ? -1.0 : 1.0) / 8.0, 1e-12);
    qvl_features features = {.dtype = QVL_BF16, .tokens = TOKENS, .width = WIDTH, .embeds = halves};
    assert_true(cli_find_components(&features, other));
    assert_memory_equal(other, scores, sizeof other);
    free(scores);
}

/* All directions vary alike: any three will do, but the same ones every time. */
static void test_equal_variances(void **state) {
    (void)state;
    enum { TOKENS = 32 };
    static float values[TOKENS * TOKENS];
    for (int t = 0; t < TOKENS; t++) values[t * TOKENS + t] = 3.0f;
    double *scores = components_of(values, TOKENS, TOKENS), *again = components_of(values, TOKENS, TOKENS);
    assert_memory_equal(scores, again, K * TOKENS * sizeof *scores);
    for (int j = 0; j < K; j++)
        for (int k = 0; k < K; k++)
            assert_near(dot(scores + j * TOKENS, scores + k * TOKENS, TOKENS), j == k, 1e-12);
    free(scores);
    free(again);
}

/* What the Gram matrix of centred values makes of v: its eigenvalue comes back, how far off it is in *off. */
static double apply(const float *values, int64_t tokens, int64_t width, const double *v, double *off) {
    double *sums = calloc((size_t)width, sizeof *sums), *mean = calloc((size_t)width, sizeof *mean);
    double *image = calloc((size_t)tokens, sizeof *image);
    assert_true(sums && mean && image);
    for (int64_t i = 0; i < tokens * width; i++) mean[i % width] += (double)values[i] / (double)tokens;
    for (int64_t i = 0; i < tokens * width; i++)
        sums[i % width] += v[i / width] * ((double)values[i] - mean[i % width]);
    for (int64_t i = 0; i < tokens * width; i++)
        image[i / width] += sums[i % width] * ((double)values[i] - mean[i % width]);
    double value = dot(image, v, tokens);
    for (int64_t t = 0; t < tokens; t++) image[t] -= value * v[t];
    *off = sqrt(dot(image, image, tokens));
    free(sums);
    free(mean);
    free(image);
    return value;
}

/* Values without structure are the hardest: variances close to each other, in more directions than the basis gets, or in
 * fewer than there are tokens. */
static void test_no_structure(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{2, 9},  {4, 4},    {5, 40},    {40, 3},
                                        {70, 1}, {100, 30}, {400, 300}, {300, 700}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t tokens = shapes[i][0], width = shapes[i][1];
        float *values = random_values(tokens * width, (uint32_t)i);
        double *scores = components_of(values, tokens, width), before = INFINITY, first = 0.0, off;
        int64_t rank = tokens - 1 < width ? tokens - 1 : width;
        for (int k = 0; k < K; k++) {
            double *v = scores + k * tokens, sum = 0.0, most = 0.0;
            if (k >= rank) {
                assert_zero(v, tokens);
                continue;
            }
            double value = apply(values, tokens, width, v, &off);
            if (k == 0) first = value;
            assert_true(off < 1e-5 * first && value <= before * (1.0 + 1e-9));
            for (int j = 0; j <= k; j++) assert_near(dot(v, scores + j * tokens, tokens), j == k, 1e-10);
            for (int64_t t = 0; t < tokens; t++) {
                sum += v[t];
                if (fabs(v[t]) > fabs(most)) most = v[t];
            }
            assert_near(sum, 0.0, 1e-10);
            assert_true(most > 0.0 || tokens == 2);
            before = value;
        }
        free(scores);
        free(values);
    }
}

static void assert_levels(const double *scores, int64_t count, const int *expected) {
    uint8_t levels[64 * K] = {0};
    assert_true(cli_scale_component(scores, count, levels));
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(levels[K * i], expected[i]);
        assert_int_equal(levels[K * i + 1], 0); /* of other components */
    }
}

static void test_levels(void **state) {
    (void)state;
    assert_levels((double[]){0.0, 0.0, 0.0}, 3, (int[]){128, 128, 128});
    assert_levels((double[]){0.5}, 1, (int[]){128});
    assert_levels((double[]){0.7, -0.7}, 2, (int[]){255, 0});
    /* The percentiles of five scores lie at 0.04 and 3.96: 255 (x - 0.04) / 3.92. */
    assert_levels((double[]){1, 4, 0, 2, 3}, 5, (int[]){62, 255, 0, 128, 193});
    /* One token apart from all others, but for rounding: the percentiles are of no use. */
    uint8_t levels[400 * K];
    double many[400] = {0};
    many[300] = 1.0;
    many[20] = 1e-16;
    assert_true(cli_scale_component(many, 400, levels));
    for (int i = 0; i < 400; i++) assert_int_equal(levels[K * i], i == 300 ? 255 : 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_tokens),       cmocka_unit_test(test_equal_tokens),
        cmocka_unit_test(test_known_components), cmocka_unit_test(test_equal_variances),
        cmocka_unit_test(test_no_structure),     cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
