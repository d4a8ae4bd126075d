/* Normalisation tables and patch rows: hashes of the references, the order of rows and columns element by element,
 * and the whole way from picture to rows. */
#include "preprocess/geometry.h"
#include "preprocess/patches.h"
#include "preprocess/resample.h"
#include "preprocess/support.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Rows of a picture of any size, resized the horizontal pass first (as torch, and as Pillow before 13). The caller
 * frees them (qvl_free). */
static float *picture_rows(const qvl_config *config, const qvl_image *in, qvl_preset preset, qvl_item *item) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    int64_t width, height;
    assert_int_equal(qvl_target_size(config, &options, in->width, in->height, &width, &height, NULL), QVL_OK);
    assert_int_equal(qvl_picture_grid(&config->vision, width, height, item, NULL), QVL_OK);
    qvl_filter filter = preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
    qvl_image out = resample_across_then_down(in, width, height, filter);
    float table[3][256];
    qvl_normalise_table(&config->processor, preset, table);
    float *rows = qvl_alloc((size_t)(item->grid.h * item->grid.w), 1536 * sizeof *rows);
    assert_non_null(rows);
    qvl_patch_rows(NULL, &out, 1, &config->vision, (const float(*)[256])table, rows);
    qvl_image_free(&out);
    return rows;
}

static void table_hashes(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("preprocess_vectors.json");
    qvl_config config = test_config();
    float table[3][256];
    for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_MLX; preset++) {
        const char *name = qvl_preset_name((qvl_preset)preset);
        qvl_normalise_table(&config.processor, (qvl_preset)preset, table);
        for (int c = 0; c < 3; c++) {
            assert_sha256(table[c], sizeof table[c], string(member(fixture, "normalise_tables"), name), name);
            assert_true(table[c][0] == -1 && table[c][255] == 1);
        }
    }
    cJSON_Delete(fixture);
}

/* Each channel has its own mean and std; the numbers are what numpy gives for the same operations. */
static void channels_have_their_own_table(void **state) {
    (void)state;
    qvl_config config = test_config();
    config.processor.mean[1] = 0.25f;
    config.processor.std[2] = 2.0f;
    float table[3][256];
    for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_MLX; preset++) {
        qvl_normalise_table(&config.processor, (qvl_preset)preset, table);
        assert_true(table[0][0] == -1.0f && table[0][255] == 1.0f);
        assert_true(table[1][0] == -0.5f && table[1][255] == 1.5f);
        assert_true(table[2][0] == -0.25f && table[2][255] == 0.25f);
    }
}

/* Measured with Pillow 12.3; Pillow 13 and more pictures are in test_reference_fixtures.c. */
static void reference_pixel_values(void **state) {
    (void)state;
    cJSON *fixture = load_fixture("preprocess_vectors.json");
    qvl_config config = test_config();
    const cJSON *list = member(fixture, "image_pixel_values"), *entry;
    assert_int_equal(cJSON_GetArraySize(list), 5);
    cJSON_ArrayForEach(entry, list) {
        const cJSON *from = member(entry, "src"), *grid = member(entry, "grid_thw");
        qvl_image in = make_picture("formula", integer_at(from, 1), integer_at(from, 0), 0);
        for (int preset = QVL_PRESET_TRANSFORMERS; preset <= QVL_PRESET_TRANSFORMERS_PIL; preset++) {
            qvl_item item = {0};
            float *rows = picture_rows(&config, &in, (qvl_preset)preset, &item);
            assert_int_equal(item.grid.h, integer_at(grid, 1));
            assert_int_equal(item.grid.w, integer_at(grid, 2));
            size_t count = (size_t)(item.grid.h * item.grid.w) * 1536 * sizeof *rows;
            const char *key = preset == QVL_PRESET_TRANSFORMERS ? "fast_sha256" : "pil_sha256";
            assert_sha256(rows, count, string(entry, key), key);
            qvl_free(rows);
        }
        qvl_image_free(&in);
    }
    cJSON_Delete(fixture);
}

/* The definition, written as plainly as preprocess.md has it, for a shape where no two sizes are equal. */
static void order_of_rows_and_columns(void **state) {
    (void)state;
    enum { P = 4, M = 3, FRAMES = 2, GRID_H = 6, GRID_W = 9, COLS = 3 * FRAMES * P * P };
    qvl_vision_config vision = {.patch_size = P, .spatial_merge_size = M, .temporal_patch_size = FRAMES};
    vision.in_channels = 3;
    qvl_image in = make_picture("noise", GRID_W * P, GRID_H * P, 4);
    float table[3][256];
    for (int c = 0; c < 3; c++)
        for (int byte = 0; byte < 256; byte++) table[c][byte] = (float)(1000 * c + byte);
    static float rows[GRID_H * GRID_W * COLS];
    qvl_patch_rows(NULL, &in, 1, &vision, (const float(*)[256])table, rows);
    int r = 0;
    for (int by = 0; by < GRID_H / M; by++)
        for (int bx = 0; bx < GRID_W / M; bx++)
            for (int my = 0; my < M; my++)
                for (int mx = 0; mx < M; mx++, r++)
                    for (int col = 0; col < COLS; col++) {
                        int c = col / (FRAMES * P * P), y = col / P % P, x = col % P;
                        int pixel = (P * (M * by + my) + y) * GRID_W * P + P * (M * bx + mx) + x;
                        assert_true(rows[r * COLS + col] == (float)(1000 * c + in.pixels[3 * pixel + c]));
                    }
    assert_int_equal(r, GRID_H * GRID_W);
    qvl_image_free(&in);
}

static void guards_and_any_pool(void **state) {
    (void)state;
    qvl_config config = test_config();
    float table[3][256];
    qvl_normalise_table(&config.processor, QVL_PRESET_MLX, table);
    const size_t guard = 64, count = 10 * 6 * 1536, all = count + 2 * guard;
    qvl_image in = make_picture("noise", 160, 96, 6);
    uint32_t *first = qvl_alloc(all, sizeof *first), *other = qvl_alloc(all, sizeof *other);
    assert_true(first && other);
    for (int threads = 0; threads <= 3; threads++) { /* 0: no pool */
        uint32_t *memory = threads ? other : first;
        memset(memory, 0xa5, all * sizeof *memory);
        qvl_pool *pool = NULL;
        if (threads) assert_int_equal(qvl_pool_open(threads, &pool, NULL), QVL_OK);
        qvl_patch_rows(pool, &in, 1, &config.vision, (const float(*)[256])table, (float *)(memory + guard));
        qvl_pool_close(&pool);
        for (size_t i = 0; i < guard; i++) {
            assert_int_equal(memory[i], 0xa5a5a5a5u);
            assert_int_equal(memory[guard + count + i], 0xa5a5a5a5u);
        }
        for (size_t i = 0; i < count; i++) assert_int_not_equal(memory[guard + i], 0xa5a5a5a5u);
        assert_memory_equal(memory, first, all * sizeof *memory);
    }
    qvl_free(first);
    qvl_free(other);
    qvl_image_free(&in);
}

/* Nothing below 41 x 41 is refused, and every value is a normalised one. */
static void report_4_all_small_pictures(void **state) {
    (void)state;
    qvl_config config = test_config();
    config.processor.limits = class_limits;
    for (int64_t height = 1; height <= 40; height++)
        for (int64_t width = 1; width <= 40; width++) {
            qvl_image in = make_picture("noise", width, height, 41 * height + width);
            qvl_item item = {0};
            float *rows = picture_rows(&config, &in, (qvl_preset)((height + width) % 3), &item);
            assert_true(item.grid.h >= 2 && item.grid.w >= 2 && item.tokens == item.grid.h * item.grid.w / 4);
            for (int64_t i = 0; i < item.grid.h * item.grid.w * 1536; i++)
                assert_true(rows[i] >= -1 && rows[i] <= 1);
            qvl_free(rows);
            qvl_image_free(&in);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_hashes),           cmocka_unit_test(channels_have_their_own_table),
        cmocka_unit_test(reference_pixel_values), cmocka_unit_test(order_of_rows_and_columns),
        cmocka_unit_test(guards_and_any_pool),    cmocka_unit_test(report_4_all_small_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
