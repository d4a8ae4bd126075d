/* Three-axis positions: the published vectors, the shapes of the rule, and what is refused. */
#include "prompt/mrope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 512 };

static void assert_says(const qvl_error *error, const char *part) {
    if (!strstr(error->message, part)) fail_msg("'%s' is not in: %s", part, error->message);
}

/* Appends a run. */
static int64_t put(int64_t *types, int64_t at, int64_t type, int64_t count) {
    for (int64_t i = 0; i < count; i++) types[at + i] = type;
    return at + count;
}

/* Ids and positions of the four published tiny models, which are the same: text, a picture of 4 x 6 patches,
 * text, a video of two groups of 4 x 4 patches, text. Pads are 60 and 61. */
static void test_published_vectors(void **state) {
    (void)state;
    enum { LENGTH = 73 };
    static const int64_t ids[LENGTH] = {1,  2,  3,  58, 60, 60, 60, 60, 60, 60, 59, 4,  5,  6,  58, 61, 61, 61, 61,
                                        59, 7,  8,  58, 61, 61, 61, 61, 59, 9,  20, 31, 42, 53, 7,  18, 29, 40, 51,
                                        5,  16, 27, 38, 49, 3,  14, 25, 36, 47, 1,  12, 23, 34, 45, 56, 10, 21, 32,
                                        43, 54, 8,  19, 30, 41, 52, 6,  17, 28, 39, 50, 4,  15, 26, 37};
    static const int64_t start[3][28] = {
        {0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 7, 8, 9, 10, 11, 12, 12, 12, 12, 14, 15, 16, 17, 18, 18, 18, 18, 20},
        {0, 1, 2, 3, 4, 4, 4, 5, 5, 5, 7, 8, 9, 10, 11, 12, 12, 13, 13, 14, 15, 16, 17, 18, 18, 19, 19, 20},
        {0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17, 18, 19, 18, 19, 20}};
    int64_t types[LENGTH], positions[3 * LENGTH], delta;
    for (int i = 0; i < LENGTH; i++) types[i] = ids[i] == 60 ? 1 : ids[i] == 61 ? 2 : 0;
    qvl_grid image = {1, 4, 6}, video = {2, 4, 4};
    qvl_error error = {0};
    if (qvl_rope_index(types, LENGTH, &image, 1, &video, 1, 2, positions, &delta, &error))
        fail_msg("%s", error.message);
    assert_int_equal(delta, -7);
    for (int axis = 0; axis < 3; axis++) {
        assert_memory_equal(positions + axis * LENGTH, start[axis], sizeof start[axis]);
        for (int i = 28; i < LENGTH; i++) assert_int_equal(positions[axis * LENGTH + i], i - 7);
    }
}

static void test_text_alone(void **state) {
    (void)state;
    int64_t types[40] = {0}, positions[3 * 40], delta = 99;
    assert_int_equal(qvl_mrope(types, 40, NULL, 0, 2, positions, &delta, NULL), QVL_OK);
    assert_int_equal(delta, 0);
    for (int i = 0; i < 3 * 40; i++) assert_int_equal(positions[i], i % 40);
}

/* After a picture the next position is that of its beginning plus its longer side in merged patches, however many
 * entries it took; at the end of a prompt too. */
static void test_what_a_picture_takes(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, advance;
    } cases[] = {{2, 2, 1}, {4, 6, 3}, {6, 4, 3}, {2, 40, 20}, {40, 2, 20}, {14, 14, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t types[MOST], positions[3 * MOST], delta, tokens = cases[i].h * cases[i].w / 4;
        int64_t length = put(types, put(types, put(types, 0, 0, 5), 1, tokens), 0, 2);
        qvl_grid grid = {1, cases[i].h, cases[i].w};
        assert_int_equal(qvl_mrope(types, length, &grid, 1, 2, positions, &delta, NULL), QVL_OK);
        for (int axis = 0; axis < 3; axis++) {
            assert_int_equal(positions[axis * length + 5], 5);
            assert_int_equal(positions[axis * length + 5 + tokens], 5 + cases[i].advance);
        }
        assert_int_equal(delta, cases[i].advance - tokens);
        assert_int_equal(qvl_mrope(types, length - 2, &grid, 1, 2, positions, &delta, NULL), QVL_OK);
        assert_int_equal(delta, cases[i].advance - tokens);
        /* Rows go down, columns to the right. */
        length -= 2;
        assert_int_equal(positions[length + 5 + cases[i].w / 2 - 1], 5);
        assert_int_equal(positions[2 * length + 5 + cases[i].w / 2 - 1], 5 + cases[i].w / 2 - 1);
        assert_int_equal(positions[length + length - 1], 5 + cases[i].h / 2 - 1);
    }
}

/* Report 47: a video is as many runs as it has groups, each with positions of its own. */
static void report_47_groups_of_a_video(void **state) {
    (void)state;
    static const int64_t counts[] = {2, 3, 16};
    for (size_t i = 0; i < 3; i++) {
        int64_t types[MOST], positions[3 * MOST], delta, length = 0, at = 0;
        for (int64_t g = 0; g < counts[i]; g++)
            length = put(types, put(types, put(types, length, 0, 3), 2, 6), 0, 1);
        qvl_grid video = {counts[i], 4, 6};
        assert_int_equal(qvl_rope_index(types, length, NULL, 0, &video, 1, 2, positions, &delta, NULL), QVL_OK);
        for (int64_t g = 0; g < counts[i]; g++, at += 10)
            for (int k = 0; k < 6; k++) {
                assert_int_equal(positions[at + 3 + k], 7 * g + 3);
                assert_int_equal(positions[length + at + 3 + k], 7 * g + 3 + k / 3);
                assert_int_equal(positions[2 * length + at + 3 + k], 7 * g + 3 + k % 3);
            }
        assert_int_equal(delta, -3 * counts[i]);
    }
}

/* An image grid with groups, which transformers' rule allows: the first axis counts them. */
static void test_groups_of_an_image(void **state) {
    (void)state;
    int64_t types[8] = {1, 1, 1, 1, 1, 1, 0, 0}, positions[3 * 8], delta;
    static const int64_t t[8] = {0, 0, 1, 1, 2, 2, 2, 3}, w[8] = {0, 1, 0, 1, 0, 1, 2, 3};
    qvl_error error = {0};
    qvl_grid grid = {3, 2, 4};
    if (qvl_rope_index(types, 8, &grid, 1, NULL, 0, 2, positions, &delta, &error)) fail_msg("%s", error.message);
    assert_memory_equal(positions, t, sizeof t);
    assert_memory_equal(positions + 16, w, sizeof w);
    assert_int_equal(delta, -4);
}

static void refuse(const int64_t *types, int64_t length, const qvl_grid *images, size_t image_count,
                   const qvl_grid *videos, size_t video_count, int64_t merge, const char *says) {
    int64_t positions[3 * MOST], delta;
    qvl_error error = {0};
    assert_int_equal(
        qvl_rope_index(types, length, images, image_count, videos, video_count, merge, positions, &delta, &error),
        QVL_ERROR_ARGUMENT);
    assert_says(&error, says);
}

static void test_refusals(void **state) {
    (void)state;
    int64_t types[MOST] = {0};
    qvl_grid two[2] = {{1, 4, 4}, {1, 4, 4}}, odd = {1, 3, 4}, none = {0, 4, 4}, huge = {1, INT64_MAX - 1, 4};
    put(types, 2, 1, 8); /* two pictures with nothing between */
    refuse(types, 12, two, 2, NULL, 0, 2, "nothing between");
    put(types, 6, 0, 4);
    refuse(types, 12, two, 2, NULL, 0, 2, "use 1 and 0");
    refuse(types, 12, two, 1, two, 1, 2, "use 1 and 0");
    refuse(types, 12, NULL, 0, NULL, 0, 2, "no grid");
    refuse(types, 12, NULL, 0, two, 1, 2, "no grid");
    refuse(types, 12, &odd, 1, NULL, 0, 2, "impossible");
    refuse(types, 12, &none, 1, NULL, 0, 2, "impossible");
    refuse(types, 12, &huge, 1, NULL, 0, 2, "makes");
    refuse(types, 12, two, 1, NULL, 0, 0, "impossible");
    refuse(types, 0, NULL, 0, NULL, 0, 2, "without tokens");
    put(types, 5, 0, 1); /* a pad too few */
    refuse(types, 12, two, 1, NULL, 0, 2, "has 3, but");
    types[7] = 3;
    refuse(types, 12, two, 1, NULL, 0, 2, "token type 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),    cmocka_unit_test(test_text_alone),
        cmocka_unit_test(test_what_a_picture_takes), cmocka_unit_test(report_47_groups_of_a_video),
        cmocka_unit_test(test_groups_of_an_image),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
