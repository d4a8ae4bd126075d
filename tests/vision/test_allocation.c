/* Every allocation of opening a model, planning, encoding a picture and saving the features, or of computing and
 * remembering a fingerprint, is made to fail once: each failure is a reported error, nothing leaks, and the next try
 * works. cJSON's, libjpeg's and libpng's allocations fail too. */
#define _GNU_SOURCE
#include "base/failing_allocation.h"
#include "qvl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void ignore_tap(const qvl_tensor *tensor, void *user) {
    (void)tensor;
    (void)user;
}

/* What is tried again and again. out: a file that must not be there after a failure. */
typedef struct attempt {
    qvl_status (*run)(const struct attempt *a, const char *out, qvl_error *error);
    const char *input;
    bool taps;
    const char *forget; /* a folder that is removed before each try; NULL: none */
} attempt;

static qvl_status encode_and_save(const attempt *a, const char *out, qvl_error *error) {
    const char *picture = a->input;
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.threads = 2;
    qvl_model *model = NULL;
    qvl_session *session = NULL;
    qvl_features features = {0};
    qvl_status status = qvl_model_open(QVL_RANDOM_MODEL, &options, &model, error);
    if (!status) status = qvl_session_open(model, &session, error);
    if (!status) {
        qvl_input inputs[2] = {{.kind = QVL_INPUT_FILE, .name = picture},
                               {.kind = QVL_INPUT_FILE, .name = picture}};
        qvl_encode_options encode;
        qvl_encode_options_init(&encode);
        qvl_preprocess_options preprocess;
        qvl_preprocess_options_init(&preprocess);
        preprocess.max_pixels = 65536;
        encode.tap = a->taps ? ignore_tap : NULL;
        qvl_plan plan;
        status = qvl_plan_inputs(model, inputs, 2, &preprocess, &plan, error);
        qvl_plan_free(&plan);
        if (!status) status = qvl_encode(session, inputs, 2, &preprocess, &encode, &features, error);
    }
    if (!status) {
        qvl_tensor t = {.name = "image_embeds",
                        .dtype = features.dtype,
                        .ndim = 2,
                        .shape = {features.tokens, features.width},
                        .data = features.embeds};
        const char *metadata[] = {"version", qvl_version()};
        status = qvl_tensors_save(out, &t, 1, metadata, 1, error);
    }
    qvl_features_free(&features);
    qvl_session_close(&session);
    qvl_model_close(&model);
    return status;
}

/* A folder in MLX's layout, its fingerprint not remembered yet. */
static qvl_status open_and_fingerprint(const attempt *a, const char *out, qvl_error *error) {
    (void)out;
    char hex[QVL_FINGERPRINT_HEX];
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.threads = 2;
    qvl_model *model = NULL;
    qvl_status status = qvl_model_open(a->input, &options, &model, error);
    if (!status) status = qvl_model_fingerprint(model, a->forget, hex, error);
    if (status == QVL_OK) assert_int_equal(strlen(hex), 64);
    qvl_model_close(&model);
    return status;
}

static void prepare(const attempt *a, const char *out) {
    char command[320];
    unlink(out);
    if (!a->forget) return;
    snprintf(command, sizeof command, "rm -rf '%s'", a->forget);
    assert_int_equal(system(command), 0);
}

static void fail_each_allocation(const attempt *a, long least) {
    char out[] = "/tmp/qvl-allocation-XXXXXX";
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    qvl_error error = {0};
    prepare(a, out);
    assert_int_equal(a->run(a, out, &error), QVL_OK); /* what stays allocated, stays from here */
    long before = live_allocations(), failed = 0;
    for (long n = 1;; n++) {
        prepare(a, out);
        memset(&error, 0, sizeof error);
        allocation_fails_after(n - 1);
        qvl_status status = a->run(a, out, &error);
        bool all_failed = allocation_failure_is_due();
        if (live_allocations() != before)
            fail_msg("allocation %ld failed: %ld blocks leaked (%s)", n, live_allocations() - before,
                     error.message);
        if (all_failed) { /* there are fewer allocations than n */
            assert_int_equal(status, QVL_OK);
            break;
        }
        if (status == QVL_OK) continue; /* one that the C library or a codec can do without */
        failed++;
        if (status != QVL_ERROR_MEMORY || !error.message[0])
            fail_msg("allocation %ld failed: status %s, message '%s'", n, qvl_status_name(status), error.message);
        if (access(out, F_OK) == 0) fail_msg("allocation %ld failed, but the file is there", n);
    }
    printf("%s: %ld allocations failed in turn\n", a->input, failed);
    assert_true(failed > least);
    unlink(out);
}

static void test_jpeg(void **state) {
    (void)state;
    fail_each_allocation(&(attempt){encode_and_save, QVL_SOURCE_DIR "/examples/scene.jpg", false, NULL}, 100);
}

static void test_png_with_taps(void **state) {
    (void)state;
    fail_each_allocation(&(attempt){encode_and_save, QVL_SOURCE_DIR "/examples/chart.png", true, NULL}, 100);
}

static void test_fingerprint_of_mlx_folder(void **state) {
    (void)state;
    char scratch[] = "/tmp/qvl-allocation-XXXXXX", folder[64], memory[80], command[512];
    assert_non_null(mkdtemp(scratch));
    snprintf(folder, sizeof folder, "%s/model", scratch);
    snprintf(command, sizeof command, "'%s' --shape tiny-vl --naming sidecar '%s'", QVL_RANDOM_MODEL_TOOL, folder);
    assert_int_equal(system(command), 0);
    snprintf(memory, sizeof memory, "%s/memory", folder);
    fail_each_allocation(&(attempt){open_and_fingerprint, folder, false, memory}, 30);
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jpeg), cmocka_unit_test(test_png_with_taps),
                                       cmocka_unit_test(test_fingerprint_of_mlx_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
