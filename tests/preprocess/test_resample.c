/* The bytes of a resize against Pillow's and torch's (hashes), the same bytes for any pool, and nothing read or
 * written outside the pictures. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "preprocess/resample.h"
#include "preprocess/support.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_resize(const qvl_image *in, int64_t width, int64_t height, qvl_filter filter,
                          const char *expected) {
    char what[120];
    snprintf(what, sizeof what, "%s %lld x %lld to %lld x %lld", filter == QVL_FILTER_TORCH ? "torch" : "Pillow",
             (long long)in->width, (long long)in->height, (long long)width, (long long)height);
    qvl_image out = resample(NULL, in, width, height, filter);
    assert_picture(&out, expected, what);
    qvl_image_free(&out);
}

static size_t picture_bytes(const qvl_image *image) {
    return (size_t)(image->width * image->height * 3);
}

/* ---- against the references */

/* Pillow's hashes here are of 12.3, where the horizontal pass always was the first; Pillow 13's are in
 * pillow_resize.json. */
static void reference_vectors(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("preprocess_vectors.json");
    const cJSON *list = member(fixture, "resize"), *entry;
    assert_int_equal(cJSON_GetArraySize(list), 13);
    cJSON_ArrayForEach(entry, list) {
        const cJSON *from = member(entry, "src"), *to = member(entry, "dst");
        qvl_image in = make_picture("formula", integer_at(from, 1), integer_at(from, 0), 0);
        assert_picture(&in, string(entry, "src_sha256"), "the formula picture");
        int64_t width = integer_at(to, 1), height = integer_at(to, 0);
        qvl_image pillow = resample_across_then_down(&in, width, height, QVL_FILTER_PILLOW);
        assert_picture(&pillow, string(entry, "pil_sha256"), "Pillow 12.3");
        qvl_image_free(&pillow);
        expect_resize(&in, width, height, QVL_FILTER_TORCH, string(entry, "torch_u8_cpu_sha256"));
        qvl_image_free(&in);
    }
    cJSON_Delete(fixture);
}

/* The cases of one kind of picture; all kinds are in test_reference_fixtures.c. Returns how many there were. */
static int check_pillow_cases(const char *kind) {
    cJSON *fixture = load_fixture("pillow_resize.json");
    const cJSON *entry;
    int count = 0;
    cJSON_ArrayForEach(entry, member(fixture, "cases")) {
        if (strcmp(string(entry, "kind"), kind) != 0) continue;
        qvl_image in = case_picture(entry);
        expect_resize(&in, integer(entry, "out_width"), integer(entry, "out_height"), QVL_FILTER_PILLOW,
                      string(entry, "sha256"));
        qvl_image_free(&in);
        count++;
    }
    cJSON_Delete(fixture);
    return count;
}

static void report_10_swapped_sides(void **state) {
    (void)state;
    assert_true(check_pillow_cases("lines") >= 5);
    /* Vertical lines stay vertical: doubling the height of a 640 x 160 picture of them repeats one row. */
    qvl_image in = make_picture("lines", 640, 160, 0), out = resample(NULL, &in, 640, 320, QVL_FILTER_TORCH);
    for (int64_t y = 0; y < 320; y++) assert_memory_equal(out.pixels + y * 640 * 3, in.pixels, 640 * 3);
    qvl_image_free(&in);
    qvl_image_free(&out);
}

static void report_19_the_right_filter(void **state) {
    (void)state;
    assert_true(check_pillow_cases("noise") >= 100);
    assert_true(check_pillow_cases("checkerboard") >= 5);
    assert_true(check_pillow_cases("white_pixel") >= 5);
    assert_true(check_pillow_cases("ramp") >= 5);
}

/* The two references are both official and differ; how far is part of the record. */
static void report_20_distance_of_the_references(void **state) {
    (void)state;
    qvl_image in = make_picture("noise", 2048, 1365, 20);
    qvl_image pillow = resample(NULL, &in, 2048, 1376, QVL_FILTER_PILLOW);
    qvl_image torch = resample(NULL, &in, 2048, 1376, QVL_FILTER_TORCH);
    int64_t differing = 0;
    int largest = 0;
    for (size_t i = 0; i < picture_bytes(&pillow); i++) {
        int difference = abs(pillow.pixels[i] - torch.pixels[i]);
        differing += difference != 0;
        if (difference > largest) largest = difference;
    }
    assert_int_equal(largest, 1);
    assert_int_equal(differing, 30786); /* of 8,454,144: 0.36 percent */
    qvl_image_free(&in);
    qvl_image_free(&pillow);
    qvl_image_free(&torch);
}

/* ---- properties */

static void unchanged_size_is_a_copy(void **state) {
    (void)state;
    qvl_image in = make_picture("noise", 37, 23, 1);
    for (int filter = QVL_FILTER_PILLOW; filter <= QVL_FILTER_TORCH; filter++) {
        qvl_image out = resample(NULL, &in, 37, 23, (qvl_filter)filter);
        assert_ptr_not_equal(out.pixels, in.pixels);
        assert_memory_equal(out.pixels, in.pixels, picture_bytes(&in));
        qvl_image_free(&out);
    }
    qvl_image_free(&in);
}

static void flat_pictures_stay_flat(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 40, 30}, {3, 500, 97, 1}, {640, 480, 7, 5}, {2000, 1, 11, 9}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int level = 0; level < 256; level += 15)
            for (int filter = QVL_FILTER_PILLOW; filter <= QVL_FILTER_TORCH; filter++) {
                qvl_image in = make_picture("formula", sizes[i][0], sizes[i][1], 0);
                memset(in.pixels, level, picture_bytes(&in));
                qvl_image out = resample(NULL, &in, sizes[i][2], sizes[i][3], (qvl_filter)filter);
                for (size_t j = 0; j < picture_bytes(&out); j++) assert_int_equal(out.pixels[j], level);
                qvl_image_free(&in);
                qvl_image_free(&out);
            }
}

static void expect_order(int64_t width, int64_t height, int64_t out_width, int64_t out_height, qvl_filter filter,
                         bool across_first) {
    qvl_image in = make_picture("extremes", width, height, 5);
    qvl_image whole = resample(NULL, &in, out_width, out_height, filter);
    qvl_image across = resample_across_then_down(&in, out_width, out_height, filter);
    qvl_image half = resample(NULL, &in, width, out_height, filter);
    qvl_image down = resample(NULL, &half, out_width, out_height, filter);
    assert_memory_not_equal(across.pixels, down.pixels, picture_bytes(&whole)); /* or the test says nothing */
    assert_memory_equal(whole.pixels, across_first ? across.pixels : down.pixels, picture_bytes(&whole));
    qvl_image *all[] = {&in, &whole, &across, &half, &down};
    for (int i = 0; i < 5; i++) qvl_image_free(all[i]);
}

/* Pillow 13 starts with the vertical pass where the height shrinks by more than twice what the width does. */
static void order_of_the_passes(void **state) {
    (void)state;
    expect_order(211, 97, 64, 160, QVL_FILTER_PILLOW, true);
    expect_order(97, 211, 160, 64, QVL_FILTER_PILLOW, false);
    expect_order(97, 211, 160, 64, QVL_FILTER_TORCH, true);
    expect_order(100, 100, 90, 80, QVL_FILTER_PILLOW, true); /* exactly twice */
    expect_order(100, 100, 90, 79, QVL_FILTER_PILLOW, false);
    expect_order(100, 100, 90, 79, QVL_FILTER_TORCH, true);
    expect_order(100, 100, 110, 110, QVL_FILTER_PILLOW, true);
    expect_order(100, 100, 120, 99, QVL_FILTER_PILLOW, false);
}

static void same_bytes_for_any_pool(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{300, 200, 512, 352}, {1, 1, 64, 96},    {999, 7, 32, 33},
                                       {64, 700, 64, 64},    {700, 64, 64, 64}, {50, 900, 1, 13},
                                       {3, 2000, 32, 640}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int filter = QVL_FILTER_PILLOW; filter <= QVL_FILTER_TORCH; filter++) {
            qvl_image in = make_picture("noise", sizes[i][0], sizes[i][1], (int64_t)i);
            qvl_image alone = resample(NULL, &in, sizes[i][2], sizes[i][3], (qvl_filter)filter);
            for (int threads = 1; threads <= 3; threads++) {
                qvl_pool *pool = NULL;
                assert_int_equal(qvl_pool_open(threads, &pool, NULL), QVL_OK);
                qvl_image out = resample(pool, &in, sizes[i][2], sizes[i][3], (qvl_filter)filter);
                assert_memory_equal(out.pixels, alone.pixels, picture_bytes(&alone));
                qvl_image_free(&out);
                qvl_pool_close(&pool);
            }
            qvl_image_free(&in);
            qvl_image_free(&alone);
        }
}

/* The picture fills whole pages between two that may not be touched, and may itself only be read. */
static void nothing_outside_is_read_or_written(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{4096, 1}, {1, 4096}, {64, 64}, {8, 512}};
    static const int64_t targets[][2] = {{1, 1}, {33, 31}, {640, 96}, {5, 500}};
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)4096 * 3;
    assert_int_equal(bytes % page, 0);
    uint8_t *map = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + page, bytes, PROT_READ | PROT_WRITE), 0);
    qvl_image noise = make_picture("noise", 4096, 1, 9);
    memcpy(map + page, noise.pixels, bytes);
    qvl_image_free(&noise);
    assert_int_equal(mprotect(map + page, bytes, PROT_READ), 0);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            for (int filter = QVL_FILTER_PILLOW; filter <= QVL_FILTER_TORCH; filter++) {
                qvl_image in = {.width = sizes[i][0], .height = sizes[i][1], .pixels = map + page};
                qvl_image out = resample(NULL, &in, targets[j][0], targets[j][1], (qvl_filter)filter);
                qvl_image_free(&out);
            }
    assert_int_equal(munmap(map, bytes + 2 * page), 0);
}

/* ---- the public call */

static void presets_choose_the_filter(void **state) {
    (void)state;
    qvl_image in = make_picture("noise", 301, 203, 3);
    for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_MLX; preset++) {
        qvl_filter filter = preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
        qvl_image expected = resample(NULL, &in, 224, 96, filter), out;
        for (int32_t threads = 0; threads <= 3; threads++) {
            assert_int_equal(qvl_resize(&in, 224, 96, (qvl_preset)preset, threads, &out, NULL), QVL_OK);
            assert_memory_equal(out.pixels, expected.pixels, picture_bytes(&expected));
            qvl_image_free(&out);
        }
        qvl_image_free(&expected);
    }
    qvl_image_free(&in);
}

static void expect_refused(qvl_image in, int64_t width, int64_t height, int preset, int threads, qvl_status status,
                           const char *words) {
    qvl_image out = {.width = 1, .height = 1, .pixels = (uint8_t *)1};
    qvl_error error = {0};
    assert_int_equal(qvl_resize(&in, width, height, (qvl_preset)preset, threads, &out, &error), status);
    if (!strstr(error.message, words)) fail_msg("'%s' does not say '%s'", error.message, words);
    assert_int_equal(out.width, 0);
    assert_int_equal(out.height, 0);
    assert_null(out.pixels);
}

static void impossible_resizes(void **state) {
    (void)state;
    uint8_t pixel[3] = {1, 2, 3};
    qvl_image one = {.width = 1, .height = 1, .pixels = pixel};
    const int64_t most = (int64_t)1 << 31;
    expect_refused(one, 0, 5, 0, 1, QVL_ERROR_ARGUMENT, "resize to 0 x 5");
    expect_refused(one, 5, -1, 0, 1, QVL_ERROR_ARGUMENT, "resize to 5 x -1");
    expect_refused(one, most + 1, 1, 0, 1, QVL_ERROR_LIMIT, "sides may have at most 2147483648");
    expect_refused(one, 1, INT64_MAX, 0, 1, QVL_ERROR_LIMIT, "9223372036854775807");
    expect_refused(one, most, most, 0, 1, QVL_ERROR_LIMIT, "less than 2^63 bytes");
    expect_refused((qvl_image){.width = 0, .height = 0, .pixels = NULL}, 5, 5, 0, 1, QVL_ERROR_ARGUMENT,
                   "without pixels");
    expect_refused((qvl_image){.width = 0, .height = 1, .pixels = pixel}, 5, 5, 0, 1, QVL_ERROR_ARGUMENT,
                   "nothing to resize");
    expect_refused((qvl_image){.width = 1, .height = -4, .pixels = pixel}, 5, 5, 0, 1, QVL_ERROR_ARGUMENT,
                   "nothing to resize");
    expect_refused((qvl_image){.width = INT64_MAX, .height = INT64_MAX, .pixels = pixel}, 5, 5, 0, 1,
                   QVL_ERROR_LIMIT, "resize from");
    expect_refused(one, 5, 5, 3, 1, QVL_ERROR_ARGUMENT, "preset is 3; allowed are 0 to 2");
    expect_refused(one, 5, 5, 0, 257, QVL_ERROR_ARGUMENT, "threads is 257");
}

/* A tall picture goes through bands when its width changes as well. Horizontal first, each axis by itself gives the
 * same bytes. */
static void large_pictures_in_bands(void **state) {
    (void)state;
    enum { WIDTH = 24, HEIGHT = 15000, OUT_WIDTH = 1100, OUT_HEIGHT = 700 };
    qvl_image in = make_picture("formula", WIDTH, HEIGHT, 0), across, apart, together;
    for (qvl_preset preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_TRANSFORMERS_PIL; preset++)
        for (int64_t height = OUT_HEIGHT; height <= HEIGHT + 1; height += HEIGHT + 1 - OUT_HEIGHT) {
            if (preset != QVL_PRESET_TRANSFORMERS && height < HEIGHT)
                continue; /* Pillow shrinks the height first */
            qvl_error error;
            if (qvl_resize(&in, OUT_WIDTH, HEIGHT, preset, 2, &across, &error)) fail_msg("%s", error.message);
            if (qvl_resize(&across, OUT_WIDTH, height, preset, 2, &apart, &error)) fail_msg("%s", error.message);
            if (qvl_resize(&in, OUT_WIDTH, height, preset, 2, &together, &error)) fail_msg("%s", error.message);
            assert_memory_equal(apart.pixels, together.pixels, (size_t)(OUT_WIDTH * height * 3));
            qvl_image_free(&across);
            qvl_image_free(&apart);
            qvl_image_free(&together);
        }
    qvl_image_free(&in);
}

/* ---- instruction sets */

/* A picture that ends where readable memory ends: a kernel that reads further is stopped by the processor. */
static qvl_image picture_at_page_end(int64_t width, int64_t height, unsigned seed, void **map, size_t *mapped) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)(width * height * 3);
    size_t pages = (bytes + page - 1) / page * page;
    *mapped = pages + page;
    *map = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*map != MAP_FAILED);
    assert_int_equal(mprotect((char *)*map + pages, page, PROT_NONE), 0);
    uint8_t *pixels = (uint8_t *)*map + pages - bytes;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        pixels[i] = seed >> 28 < 4 ? 0 : seed >> 28 > 11 ? 255 : (uint8_t)(seed >> 20); /* extremes overshoot */
    }
    return (qvl_image){.width = width, .height = height, .pixels = pixels};
}

static void instruction_sets_agree(void **state) {
    (void)state;
    const qvl_resample_kernels *fastest = qvl_resample_choose(), *kernels[2] = {fastest, fastest};
    if (__builtin_cpu_supports("avx2")) kernels[1] = &qvl_resample_avx2;
    static const int64_t sides[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 40, 63, 64, 65, 100, 131, 300};
    unsigned seed = 7;
    for (int round = 0; round < 400; round++) {
        int64_t size[4];
        for (int i = 0; i < 4; i++) {
            seed = seed * 1664525u + 1013904223u;
            size[i] = sides[(seed >> 16) % (sizeof sides / sizeof sides[0])];
        }
        void *map;
        size_t mapped;
        qvl_image in = picture_at_page_end(size[0], size[1], seed, &map, &mapped), want, got;
        qvl_filter filter = round % 2 ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
        assert_int_equal(qvl_resample_with(&qvl_resample_scalar, NULL, &in, size[2], size[3], filter, &want, NULL),
                         QVL_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(qvl_resample_with(kernels[k], NULL, &in, size[2], size[3], filter, &got, NULL),
                             QVL_OK);
            if (memcmp(want.pixels, got.pixels, picture_bytes(&want)) != 0)
                fail_msg("%s differs: %lld x %lld to %lld x %lld, filter %d", kernels[k]->name, (long long)size[0],
                         (long long)size[1], (long long)size[2], (long long)size[3], (int)filter);
            qvl_image_free(&got);
        }
        qvl_image_free(&want);
        munmap(map, mapped);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(reference_vectors),
        cmocka_unit_test(report_10_swapped_sides),
        cmocka_unit_test(report_19_the_right_filter),
        cmocka_unit_test(report_20_distance_of_the_references),
        cmocka_unit_test(unchanged_size_is_a_copy),
        cmocka_unit_test(flat_pictures_stay_flat),
        cmocka_unit_test(order_of_the_passes),
        cmocka_unit_test(same_bytes_for_any_pool),
        cmocka_unit_test(nothing_outside_is_read_or_written),
        cmocka_unit_test(presets_choose_the_filter),
        cmocka_unit_test(impossible_resizes),
        cmocka_unit_test(large_pictures_in_bands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
