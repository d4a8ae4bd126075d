/* The same tower saved in every naming generation, layout and number of files gives the same bits of features and
 * the same fingerprint: report 83 as a user sees it. */
#define _GNU_SOURCE
#include "vision/towers.h"

#include "../tools/random_model/generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char scratch[] = "/tmp/qvl-test-XXXXXX";

static int make_scratch(void **state) {
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

/* Writes the folder anew. flags: of random_model. */
static const char *write_folder(const char *flags) {
    static char folder[64];
    char command[1024];
    snprintf(folder, sizeof folder, "%s/model", scratch);
    snprintf(command, sizeof command, "rm -rf '%s' && '%s' --shape tiny-vl %s '%s'", folder, QVL_RANDOM_MODEL_TOOL,
             flags, folder);
    assert_int_equal(system(command), 0);
    return folder;
}

/* Everything a run gives, one array behind the other. */
typedef struct outcome {
    char fingerprint[QVL_FINGERPRINT_HEX];
    size_t bytes;
    uint8_t *features;
} outcome;

static outcome encode(const char *folder, qvl_dtype dtype) {
    qvl_item items[2] = {{.grid = {1, 4, 6}}, {.grid = {2, 4, 4}}};
    qvl_patches patches = {.rows = 24 + 32, .cols = 96, .item_count = 2, .items = items};
    qvl_model *model = open_model(folder, dtype, 2, QVL_CPU_ALL);
    qvl_session *session = NULL;
    qvl_features features;
    qvl_error error = {0};
    outcome o;
    patches.values = malloc((size_t)(patches.rows * patches.cols) * sizeof(float));
    demo_fill("pixel_values", 0, patches.rows * patches.cols, patches.values);
    if (qvl_session_open(model, &session, &error) ||
        qvl_vision_encode(session, &patches, NULL, &features, &error) ||
        qvl_model_fingerprint(model, NULL, o.fingerprint, &error))
        fail_msg("%s", error.message);
    assert_int_equal(features.deepstack_count, 2);
    size_t one = (size_t)(features.tokens * features.width) * qvl_dtype_bits(dtype) / 8;
    o.bytes = 3 * one;
    o.features = malloc(o.bytes);
    memcpy(o.features, features.embeds, one);
    memcpy(o.features + one, features.deepstack[0], one);
    memcpy(o.features + 2 * one, features.deepstack[1], one);
    free(patches.values);
    qvl_features_free(&features);
    qvl_session_close(&session);
    qvl_model_close(&model);
    return o;
}

static void assert_same(const outcome *a, const outcome *b) {
    assert_string_equal(a->fingerprint, b->fingerprint);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->features, b->features, a->bytes);
}

static void report_83_same_tower_under_every_name(void **state) {
    (void)state;
    static const char *const namings[] = {"hf", "visual", "mlx", "stray", "flat", "sidecar"};
    static const char *const layouts[] = {"hf", "mlx", "flat"};
    for (int stored = 0; stored < 2; stored++) {
        outcome first[2];
        char flags[128];
        for (size_t k = 0; k < 6 * 3 * 2; k++) {
            snprintf(flags, sizeof flags, "--dtype %s --naming %s --layout %s --shards %d",
                     stored ? "f32" : "bf16", namings[k / 6], layouts[k % 3], k / 3 % 2 ? 4 : 1);
            const char *folder = write_folder(flags);
            for (int computed = 0; computed < 2; computed++) {
                outcome o = encode(folder, computed ? QVL_F32 : QVL_BF16);
                if (k == 0) {
                    first[computed] = o;
                    continue;
                }
                assert_same(&first[computed], &o);
                free(o.features);
            }
        }
        assert_string_equal(first[0].fingerprint,
                            first[1].fingerprint); /* of what is stored, not of how it is used */
        free(first[0].features);
        free(first[1].features);
    }
}

/* The comparison above can fail: another model has other features and another fingerprint. */
static void test_another_tower_differs(void **state) {
    (void)state;
    outcome a = encode(write_folder("--init quarter"), QVL_F32),
            b = encode(write_folder("--init scaled"), QVL_F32);
    assert_string_not_equal(a.fingerprint, b.fingerprint);
    assert_int_equal(a.bytes, b.bytes);
    assert_int_not_equal(memcmp(a.features, b.features, a.bytes), 0);
    free(a.features);
    free(b.features);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_83_same_tower_under_every_name),
        cmocka_unit_test(test_another_tower_differs),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
