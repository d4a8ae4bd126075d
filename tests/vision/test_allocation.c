/* Every allocation of opening a model, planning, encoding a picture and saving the features, or of computing and
 * remembering a fingerprint, is made to fail once: each failure is a reported error, nothing leaks, and the next try
 * works. The C library's own malloc family is interposed for the whole process, so that cJSON's, libjpeg's and
 * libpng's allocations fail too. Not built with sanitizers, which bring their own. */
#define _GNU_SOURCE
#include "qvl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

static atomic_long countdown = -1; /* allocations until one fails; negative: none does */
static atomic_long live;

static bool fails(void) {
    long left = atomic_load(&countdown);
    if (left < 0) return false;
    if (atomic_fetch_sub(&countdown, 1) != 1) return false;
    errno = ENOMEM;
    return true;
}

/* Seen by the shared libraries too. */
#define EXPORTED __attribute__((visibility("default")))

static void *counted(void *pointer) {
    if (pointer) atomic_fetch_add(&live, 1);
    return pointer;
}

EXPORTED void *malloc(size_t size) {
    return fails() ? NULL : counted(__libc_malloc(size));
}
EXPORTED void *calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__libc_calloc(count, size));
}
EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}
EXPORTED void *realloc(void *pointer, size_t size) {
    if (fails()) return NULL;
    void *grown = __libc_realloc(pointer, size);
    if (!pointer && grown) atomic_fetch_add(&live, 1);
    return grown;
}
EXPORTED void free(void *pointer) {
    if (pointer) atomic_fetch_sub(&live, 1);
    __libc_free(pointer);
}

static void ignore_tap(const qvl_tensor *tensor, void *user) {
    (void)tensor;
    (void)user;
}

/* What is tried again and again. out: a file that must not be there after a failure. */
typedef struct attempt {
    qvl_status (*run)(const struct attempt *a, const char *out, qvl_error *error);
    const char *input;
    bool taps;
} attempt;

static qvl_status encode_and_save(const attempt *a, const char *out, qvl_error *error) {
    const char *picture = a->input;
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.threads = 2;
    qvl_model *model = NULL;
    qvl_session *session = NULL;
    qvl_features features = {0};
    qvl_status status = qvl_model_open(QVL_SOURCE_DIR "/models/demo", &options, &model, error);
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
    char memory[300], command[320], hex[QVL_FINGERPRINT_HEX];
    snprintf(memory, sizeof memory, "%s/memory", a->input);
    snprintf(command, sizeof command, "rm -rf '%s'", memory);
    long left = atomic_exchange(&countdown, -1);
    assert_int_equal(system(command), 0);
    atomic_store(&countdown, left);
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.threads = 2;
    qvl_model *model = NULL;
    qvl_status status = qvl_model_open(a->input, &options, &model, error);
    if (!status) status = qvl_model_fingerprint(model, memory, hex, error);
    if (status == QVL_OK) assert_int_equal(strlen(hex), 64);
    qvl_model_close(&model);
    return status;
}

static void fail_each_allocation(const attempt *a, long least) {
    char out[] = "/tmp/qvl-allocation-XXXXXX";
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    qvl_error error = {0};
    assert_int_equal(a->run(a, out, &error), QVL_OK); /* what stays allocated, stays from here */
    unlink(out);
    long before = atomic_load(&live), failed = 0;
    for (long n = 1;; n++) {
        unlink(out);
        memset(&error, 0, sizeof error);
        atomic_store(&countdown, n);
        qvl_status status = a->run(a, out, &error);
        long left = atomic_exchange(&countdown, -1);
        if (atomic_load(&live) != before)
            fail_msg("allocation %ld failed: %ld blocks leaked (%s)", n, atomic_load(&live) - before,
                     error.message);
        if (left > 0) { /* fewer allocations than n: all have failed once */
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
    fail_each_allocation(&(attempt){encode_and_save, QVL_SOURCE_DIR "/examples/scene.jpg", false}, 100);
}

static void test_png_with_taps(void **state) {
    (void)state;
    fail_each_allocation(&(attempt){encode_and_save, QVL_SOURCE_DIR "/examples/chart.png", true}, 100);
}

static void test_fingerprint_of_mlx_folder(void **state) {
    (void)state;
    char scratch[] = "/tmp/qvl-allocation-XXXXXX", folder[64], command[512];
    assert_non_null(mkdtemp(scratch));
    snprintf(folder, sizeof folder, "%s/model", scratch);
    snprintf(command, sizeof command, "'%s' --shape tiny-vl --naming sidecar '%s'", QVL_DEMO_MODEL_TOOL, folder);
    assert_int_equal(system(command), 0);
    fail_each_allocation(&(attempt){open_and_fingerprint, folder, false}, 30);
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jpeg), cmocka_unit_test(test_png_with_taps),
                                       cmocka_unit_test(test_fingerprint_of_mlx_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
