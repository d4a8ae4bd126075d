/* The commands' results: equal to the library's, the same for any number of threads, complete, and readable. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define CHART QVL_SOURCE_DIR "/examples/chart.png"
#define BUNDLED QVL_SOURCE_DIR "/models/demo"

/* ---- helpers */

static qvl_model *open_random(qvl_open_level level, qvl_dtype dtype) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = level;
    options.dtype = dtype;
    qvl_model *model;
    qvl_error error;
    if (qvl_model_open(QVL_RANDOM_MODEL, &options, &model, &error)) fail_msg("%s", error.message);
    return model;
}

static const qvl_input two_pictures[2] = {{.kind = QVL_INPUT_FILE, .name = SCENE},
                                          {.kind = QVL_INPUT_FILE, .name = CHART}};

/* ---- preprocess */

static void test_preprocess_is_the_library(void **state) {
    (void)state;
    qvl_model *model = open_random(QVL_OPEN_CONFIG, QVL_BF16);
    for (int preset = 0; preset < 3; preset++) {
        qvl_preprocess_options options;
        qvl_preprocess_options_init(&options);
        options.preset = (qvl_preset)preset;
        options.max_pixels = 100000;
        qvl_patches patches;
        qvl_error error;
        assert_int_equal(qvl_preprocess_inputs(model, two_pictures, 2, &options, &patches, &error), QVL_OK);
        const char *path = scratch("patches.safetensors");
        run(QVL_RANDOM("preprocess", SCENE, CHART, "--preset", qvl_preset_name(options.preset),
                       "--max-pixels=100000", "-o", path));
        qvl_tensor_file *file = open_tensors(path);
        assert_int_equal(qvl_tensor_file_count(file), 2);
        qvl_tensor values = tensor_of(file, "pixel_values"), grid = tensor_of(file, "image_grid_thw");
        const qvl_tensor expected = {"library", QVL_F32, 2, {patches.rows, patches.cols}, patches.values};
        assert_same_tensor(&values, &expected);
        const int64_t grids[6] = {1, patches.items[0].grid.h, patches.items[0].grid.w,
                                  1, patches.items[1].grid.h, patches.items[1].grid.w};
        const qvl_tensor expected_grid = {"library", QVL_I64, 2, {2, 3}, grids};
        assert_same_tensor(&grid, &expected_grid);
        qvl_tensor_file_close(&file);
        qvl_patches_free(&patches);
    }
    qvl_model_close(&model);
}

static void test_standard_input(void **state) {
    (void)state;
    const char *from_file = scratch("file.safetensors"), *from_stdin = scratch("stdin.safetensors");
    run(QVL_RANDOM("preprocess", CHART, "-o", from_file));
    result r = expect(0, CHART, QVL_RANDOM("preprocess", "-", "-o", from_stdin));
    assert_says(r.out, "-: PNG 400x300 -> 384x288, grid 1x18x24, 108 tokens");
    free_result(&r);
    assert_same_file(from_file, from_stdin);
}

static void test_limits(void **state) {
    (void)state;
    static const struct {
        const char *flag, *value;
        int size[2];
    } cases[] = {
        {"--size", "96x64", {96, 64}},
        {"--max-pixels", "70000", {320, 192}},
        {"--min-pixels", "400000", {800, 544}},
        {"--image-max-tokens", "70", {320, 192}},
        {"--image-min-tokens", "400", {800, 544}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *json = run_json(QVL_RANDOM("preprocess", SCENE, "--json", cases[i].flag, cases[i].value));
        const cJSON *item = cJSON_GetArrayItem(field(json, "items"), 0);
        assert_ints(field(item, "size"), cases[i].size, 2);
        assert_int_equal(field(json, "tokens")->valueint, cases[i].size[0] * cases[i].size[1] / 1024);
        cJSON_Delete(json);
    }
}

/* ---- encode */

static void assert_features(const qvl_tensor_file *file, const qvl_features *features) {
    qvl_tensor expected = {"library", features->dtype, 2, {features->tokens, features->width}, features->embeds};
    qvl_tensor found = tensor_of(file, "image_embeds");
    assert_same_tensor(&found, &expected);
    for (int32_t i = 0; i < features->deepstack_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "deepstack_image_embeds.%d", i);
        found = tensor_of(file, name);
        expected.data = features->deepstack[i];
        assert_same_tensor(&found, &expected);
    }
    found = tensor_of(file, "image_grid_thw");
    assert_int_equal(found.dtype, QVL_I64);
    assert_int_equal(qvl_tensor_file_count(file), 2 + (size_t)features->deepstack_count);
}

static void test_encode_is_the_library(void **state) {
    (void)state;
    for (int dtype = QVL_F32; dtype <= QVL_BF16; dtype++) {
        qvl_model *model = open_random(QVL_OPEN_WEIGHTS, (qvl_dtype)dtype);
        qvl_session *session;
        qvl_features features;
        qvl_error error;
        assert_int_equal(qvl_session_open(model, &session, &error), QVL_OK);
        if (qvl_encode(session, two_pictures, 2, NULL, NULL, &features, &error)) fail_msg("%s", error.message);
        assert_int_equal(features.dtype, dtype);
        const char *path = scratch("features.safetensors");
        run(QVL_RANDOM("encode", SCENE, CHART, "--dtype", dtype == QVL_F32 ? "f32" : "bf16", "-o", path));
        qvl_tensor_file *file = open_tensors(path);
        assert_features(file, &features);
        qvl_tensor_file_close(&file);
        qvl_features_free(&features);
        qvl_session_close(&session);
        qvl_model_close(&model);
    }
}

static void test_encode_is_reproducible(void **state) {
    (void)state;
    const char *first = scratch("first.safetensors"), *again = scratch("again.safetensors");
    run(QVL_RANDOM("encode", SCENE, CHART, "-o", first));
    run(QVL_RANDOM("encode", SCENE, CHART, "-o", again));
    assert_same_file(first, again);
    static const char *const threads[] = {"1", "2", "3"};
    for (size_t i = 0; i < 3; i++) {
        run(QVL_RANDOM("encode", SCENE, CHART, "-o", again, "--threads", threads[i]));
        assert_same_file(first, again);
    }
}

/* Two pictures in one call give the rows that each gives alone. */
static void test_encode_alone_or_in_company(void **state) {
    (void)state;
    const char *both_path = scratch("both.safetensors"), *one_path = scratch("one.safetensors");
    run(QVL_RANDOM("encode", SCENE, CHART, "-o", both_path));
    qvl_tensor_file *both_file = open_tensors(both_path);
    qvl_tensor both = tensor_of(both_file, "image_embeds");
    const char *rows = both.data;
    static const char *const inputs[] = {SCENE, CHART};
    for (size_t i = 0; i < 2; i++) {
        run(QVL_RANDOM("encode", inputs[i], "-o", one_path));
        qvl_tensor_file *one_file = open_tensors(one_path);
        qvl_tensor one = tensor_of(one_file, "image_embeds");
        assert_memory_equal(rows, one.data, tensor_bytes(&one));
        rows += tensor_bytes(&one);
        qvl_tensor_file_close(&one_file);
    }
    assert_ptr_equal(rows, (const char *)both.data + tensor_bytes(&both));
    qvl_tensor_file_close(&both_file);
}

static void assert_shape(const qvl_tensor_file *file, const char *name, int64_t rows, int64_t cols) {
    qvl_tensor tensor = tensor_of(file, name);
    assert_int_equal(tensor.ndim, 2);
    assert_int_equal(tensor.shape[0], rows);
    assert_int_equal(tensor.shape[1], cols);
}

static void test_taps(void **state) {
    (void)state;
    const char *taps = scratch("taps.safetensors"), *features = scratch("features.safetensors");
    run(QVL_RANDOM("encode", CHART, "--dtype", "f32", "-o", features, "--taps", taps));
    qvl_tensor_file *file = open_tensors(taps), *result_file = open_tensors(features);
    assert_shape(file, "patch_embed", 432, 64);
    assert_shape(file, "pos_embed", 432, 64);
    assert_shape(file, "hidden", 432, 64);
    static const char *const inner[] = {"norm1", "norm2", "attn"};
    for (int block = 0; block < 4; block++) {
        char name[40];
        snprintf(name, sizeof name, "blocks.%d", block);
        assert_shape(file, name, 432, 64);
        for (size_t i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "blocks.%d.%s", block, inner[i]);
            assert_shape(file, name, 432, 64);
        }
        snprintf(name, sizeof name, "blocks.%d.mlp", block);
        assert_shape(file, name, 432, 128);
        for (const char *part = "qkv"; *part; part++) {
            snprintf(name, sizeof name, "blocks.%d.%c", block, *part);
            assert_int_equal(tensor_of(file, name).shape[2], 32);
        }
    }
    qvl_tensor merged = tensor_of(file, "merged"), embeds = tensor_of(result_file, "image_embeds");
    assert_same_tensor(&merged, &embeds);
    qvl_tensor deep = tensor_of(file, "deepstack.1"),
               deep_embeds = tensor_of(result_file, "deepstack_image_embeds.1");
    assert_same_tensor(&deep, &deep_embeds);
    qvl_tensor_file_close(&file);
    qvl_tensor_file_close(&result_file);
}

/* ---- what is said */

static void test_json(void **state) {
    (void)state;
    const char *path = scratch("features.safetensors");
    cJSON *json = run_json(QVL_RANDOM("encode", SCENE, CHART, "--json", "-o", path, "--threads", "2"));
    assert_string_equal(field(json, "model_type")->valuestring, "qwen3_vl");
    assert_string_equal(field(json, "preset")->valuestring, "transformers");
    assert_string_equal(field(json, "dtype")->valuestring, "bf16");
    assert_string_equal(field(json, "output")->valuestring, path);
    assert_int_equal(field(json, "tokens")->valueint, 260 + 108);
    assert_int_equal(field(json, "width")->valueint, 64);
    assert_int_equal(field(json, "deepstack")->valueint, 2);
    assert_int_equal(field(json, "threads")->valueint, 2);
    assert_true(field(field(json, "seconds"), "encode")->valuedouble > 0);
    const cJSON *items = field(json, "items"), *first = cJSON_GetArrayItem(items, 0);
    assert_int_equal(cJSON_GetArraySize(items), 2);
    assert_string_equal(field(first, "input")->valuestring, SCENE);
    assert_ints(field(first, "source_size"), (int[]){640, 427}, 2);
    assert_ints(field(first, "size"), (int[]){640, 416}, 2);
    assert_ints(field(first, "grid_thw"), (int[]){1, 26, 40}, 3);
    assert_int_equal(field(first, "tokens")->valueint, 260);
    cJSON_Delete(json);
}

static void test_info(void **state) {
    (void)state;
    cJSON *json = run_json(QVL_RANDOM("info", "--json", "--cpu-mask", "scalar", "--threads", "3"));
    assert_string_equal(field(json, "folder")->valuestring, QVL_RANDOM_MODEL);
    const cJSON *vision = field(json, "vision"), *tensors = field(json, "tensors");
    assert_int_equal(field(vision, "depth")->valueint, 4);
    assert_int_equal(field(vision, "hidden_size")->valueint, 64);
    assert_ints(field(vision, "deepstack_visual_indexes"), (int[]){0, 2}, 2);
    assert_string_equal(field(tensors, "prefix")->valuestring, "model.visual.");
    assert_string_equal(field(tensors, "dtype")->valuestring, "BF16");
    assert_int_equal(field(tensors, "count")->valueint, 3 + 12 * 4 + 6 + 6 * 2);
    assert_int_equal(field(field(json, "images"), "min_pixels")->valueint, 65536);
    assert_int_equal(field(field(json, "images"), "max_pixels")->valueint, 16777216);
    assert_string_equal(field(field(json, "compute"), "kernels")->valuestring, "scalar");
    assert_int_equal(field(field(json, "compute"), "threads")->valueint, 3);
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL_RANDOM("info"));
    assert_says(r.out, "4 blocks of 64, 2 heads of 32");
    assert_says(r.out, "preprocessor_config.json");
    free_result(&r);
}

static void test_bench(void **state) {
    (void)state;
    cJSON *json = run_json(QVL_RANDOM("bench", "64x96", "64x64", "--runs", "2", "--json"));
    const cJSON *sizes = field(json, "sizes"), *first = cJSON_GetArrayItem(sizes, 0);
    assert_int_equal(cJSON_GetArraySize(sizes), 2);
    assert_int_equal(field(first, "patches")->valueint, 24);
    assert_int_equal(field(first, "tokens")->valueint, 6);
    /* By hand: 24 patches; 4 blocks of 2*24*(4*64^2 + 2*64*128) linear and 4*24^2*64 attention, patch embedding
     * 2*24*1536*64, three mergers of 2*6*256*(256 + 64). */
    double work =
        4 * (2.0 * 24 * (4 * 4096 + 2 * 8192) + 4.0 * 576 * 64) + 2.0 * 24 * 1536 * 64 + 3 * 2.0 * 6 * 256 * 320;
    double reported = 1e12 * field(first, "tflop")->valuedouble;
    assert_true(reported > work - 1 && reported < work + 1);
    assert_true(field(first, "tower_seconds")->valuedouble > 0);
    /* On a machine busy with other tests nothing bounds the shares. */
    assert_true(field(first, "floor_seconds")->valuedouble > 0 && field(first, "floor_share")->valuedouble > 0);
    assert_true(field(first, "preprocess_seconds")->valuedouble > 0);
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, field(json, "kernel_times")) {
        int steady = field(kernel, "steady_runs")->valueint;
        assert_true(field(kernel, "share")->valuedouble > 0 && steady >= 0 && steady <= 2);
    }
    cJSON_Delete(json);
}

static void test_notes_and_quiet(void **state) {
    (void)state;
    result r = expect(0, NULL, QVL("encode", CHART));
    assert_says(r.err, "the demo model");
    assert_null(strchr(r.err, '\x1b')); /* no progress line: stderr is a file */
    assert_says(r.out, "not written (no -o)");
    free_result(&r);
    r = expect(0, NULL, QVL("encode", CHART, "--quiet"));
    assert_string_equal(r.err, "");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("encode", CHART));
    assert_string_equal(r.err, "");
    free_result(&r);
}

/* With a terminal as stderr there is a progress line, and it is gone at the end. */
static void test_progress_on_a_terminal(void **state) {
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    char name[128];
    assert_int_equal(ptsname_r(terminal, name, sizeof name), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int err = open(name, O_RDWR | O_NOCTTY), out = open("/dev/null", O_WRONLY);
        if (dup2(err, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(126);
        execl(QVL_PROGRAM, QVL_PROGRAM, "encode", CHART, "-m", QVL_RANDOM_MODEL, (char *)NULL);
        _exit(127);
    }
    static char text[65536];
    size_t used = 0;
    ssize_t n;
    /* Reading fails once the child, the only one with the other end open, has ended. */
    while (used < sizeof text - 1 && (n = read(terminal, text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = 0;
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(terminal);
    assert_says(text, "encoding [");
    assert_true(used > 4);
    assert_string_equal(text + used - 4, "\r\x1b[K");
}

/* ---- check */

static void copy_file(const char *from, const char *to) {
    size_t count;
    char *bytes = read_file(from, &count);
    write_file(to, bytes, count);
    free(bytes);
}

static void test_check(void **state) {
    (void)state;
    cJSON *json = run_json(QVL("check", "--json", "--quiet"));
    assert_true(cJSON_IsTrue(field(json, "ok")));
    const cJSON *group;
    int groups = 0;
    cJSON_ArrayForEach(group, field(json, "groups")) {
        groups++;
        assert_true(field(group, "cases")->valueint > 0);
        assert_int_equal(field(group, "failed")->valueint, 0);
    }
    assert_int_equal(groups, 9);
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL("check", "--cpu-mask", "scalar", "--threads", "1"));
    assert_says(r.out, "scalar kernels, 1 threads");
    assert_says(r.out, "hold to transformers 5.23.0");
    free_result(&r);
}

/* An installed tree of its own, in which one expectation after the other is wrong. */
static void test_check_fails(void **state) {
    (void)state;
    static const char *const folders[] = {
        "tree", "tree/bin", "tree/share", "tree/share/qvl", "tree/share/qvl/demo", "tree/share/qvl/demo/check"};
    for (size_t i = 0; i < 6; i++) assert_int_equal(mkdir(scratch(folders[i]), 0777), 0);
    char program[512], check[512];
    snprintf(program, sizeof program, "%s", scratch("tree/bin/qvl"));
    snprintf(check, sizeof check, "%s", scratch("tree/share/qvl/demo/check/check.json"));
    copy_file(QVL_PROGRAM, program);
    assert_int_equal(chmod(program, 0755), 0);
    static const char *const files[] = {"config.json", "preprocessor_config.json", "model.safetensors",
                                        "check/tower.safetensors", "check/rgb_420.jpg"};
    for (size_t i = 0; i < 5; i++) {
        char from[512], to[512];
        snprintf(from, sizeof from, BUNDLED "/%s", files[i]);
        snprintf(to, sizeof to, "tree/share/qvl/demo/%s", files[i]);
        copy_file(from, scratch(to));
    }
    static const struct {
        const char *group, *says;
    } cases[] = {
        {"{\"kind\": \"picture\", \"cases\": [{\"file\": \"rgb_420.jpg\", \"size\": [53, 37], \"sha256\": "
         "\"00\"}]}",
         "rgb_420.jpg"},
        {"{\"kind\": \"picture\", \"cases\": [{\"file\": \"none.jpg\"}]}", "none.jpg"},
        {"{\"kind\": \"smart_resize\", \"factor\": 32, \"cases\": "
         "[{\"size\": [1, 1], \"limits\": [65536, 16777216], \"result\": [288, 256]}]}",
         "smart_resize"},
        {"{\"kind\": \"resize\", \"preset\": \"mlx\", \"cases\": "
         "[{\"size\": [9, 9], \"to\": [5, 5], \"sha256\": \"00\"}]}",
         "resize"},
        {"{\"kind\": \"pixel_values\", \"preset\": \"mlx\", \"cases\": "
         "[{\"size\": [9, 9], \"grid\": [16, 16], \"sha256\": \"00\"}]}",
         "pixel_values"},
        {"{\"kind\": \"tower\", \"dtype\": \"bf16\", \"file\": \"tower.safetensors\", \"cases\": "
         "[{\"stage\": \"merged\", \"bound\": 1e-11}]}",
         "allowed is 1e-11"},
        {"{\"kind\": \"tower\", \"dtype\": \"f32\", \"file\": \"gone\", \"cases\": [{\"stage\": \"merged\"}]}",
         "gone"},
        {"{\"kind\": \"tower\", \"dtype\": \"f32\", \"file\": \"tower.safetensors\", \"cases\": "
         "[{\"stage\": \"no such\", \"bound\": 1}]}",
         "no such"},
        {"{\"kind\": \"dance\", \"cases\": [{}]}", "unknown kind"},
        {"{\"kind\": \"picture\", \"cases\": []}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        int n = snprintf(text, sizeof text, "{\"groups\": [%s]}", cases[i].group);
        write_file(check, text, (size_t)n);
        result r = expect(1, NULL, ARGUMENTS(program, "check"));
        assert_says(r.out, "FAILED");
        assert_says(r.err, cases[i].says);
        free_result(&r);
    }
    write_file(check, "{}", 2);
    result r = expect(1, NULL, ARGUMENTS(program, "check"));
    assert_says(r.err, "check.json");
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_preprocess_is_the_library),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_encode_is_the_library),
        cmocka_unit_test(test_encode_is_reproducible),
        cmocka_unit_test(test_encode_alone_or_in_company),
        cmocka_unit_test(test_taps),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_notes_and_quiet),
        cmocka_unit_test(test_progress_on_a_terminal),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_check_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
