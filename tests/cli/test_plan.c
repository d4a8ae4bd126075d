/* qvl plan: what it says, that encoding says and does the same, that memory is as planned, and the time estimate
 * from the last bench. */
#define _GNU_SOURCE
#include "cli/pictures.h"
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define CHART QVL_SOURCE_DIR "/examples/chart.png"

/* ---- helpers */

static const cJSON *item_of(const cJSON *json, int index) {
    const cJSON *item = cJSON_GetArrayItem(field(json, "items"), index);
    assert_non_null(item);
    return item;
}

static void assert_size(const cJSON *json, int index, int width, int height, int tokens) {
    const cJSON *item = item_of(json, index);
    assert_ints(field(item, "size"), (int[]){width, height}, 2);
    assert_ints(field(item, "grid_thw"), (int[]){1, height / 16, width / 16}, 3);
    assert_int_equal(field(item, "tokens")->valueint, tokens);
    assert_int_equal(field(item, "patch_rows")->valueint, 4 * tokens);
}

/* The first picture of a plan, with some flags. */
static void expect_plan(const char *const *arguments, int width, int height, int tokens) {
    cJSON *json = run_json(arguments);
    assert_size(json, 0, width, height, tokens);
    cJSON_Delete(json);
}

static const char *picture(uint32_t width, uint32_t height) {
    char name[40];
    snprintf(name, sizeof name, "%ux%u.png", width, height);
    const char *path = scratch(name);
    if (access(path, F_OK) != 0) write_png(path, width, height);
    return path;
}

static void copy_random(const char *folder, const char *name) {
    char path[600];
    size_t count;
    snprintf(path, sizeof path, QVL_RANDOM_MODEL "/%s", name);
    char *bytes = read_file(path, &count);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, count);
    free(bytes);
}

/* A folder with the random model's configuration and, if it is not NULL, a file of that name and text. */
static const char *make_folder(const char *name, const char *file, const char *text) {
    const char *folder = scratch(name);
    char path[600];
    assert_int_equal(mkdir(folder, 0777), 0);
    copy_random(folder, "config.json");
    if (!file) return folder;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    write_file(path, text, strlen(text));
    return folder;
}

/* ---- what it says */

static void test_text(void **state) {
    (void)state;
    const char *turned = scratch("turned.jpg");
    write_turned_jpeg(turned, SCENE, 6);
    result r = expect(0, NULL, QVL_RANDOM("plan", SCENE, turned, "--threads", "1", "--cpu-mask", "scalar"));
    assert_says(r.out, "scene.jpg: JPEG 640x427 -> 640x416, grid 1x26x40, 260 tokens\n");
    assert_says(
        r.out, "turned.jpg: JPEG 640x427 turned upright (orientation 6) to 427x640 -> 416x640, grid 1x40x26, 260");
    assert_says(r.out, "preset transformers; policies: orientation apply, alpha white, gray16 scale\n");
    assert_says(r.out, "520 tokens, 2080 patch rows, ");
    assert_says(r.out,
                "limits       65536 (preprocessor_config.json) to 16777216 (preprocessor_config.json) pixels, "
                "about 64 to 16384 tokens\n");
    assert_says(r.out, "work         linear layers 545 MFLOP, attention 2.22 GFLOP, ");
    assert_says(r.out, "memory       weights 1.12 MB, patch rows 6.39 MB, ");
    assert_says(r.out, "bf16 with scalar kernels, 1 thread\n");
    assert_says(r.out, "no estimate: run qvl bench\n");
    assert_string_equal(r.err, "");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("plan", turned, "--policy", "reference", "--alpha", "#102030"));
    assert_says(r.out, "turned.jpg: JPEG 640x427 -> 640x416, grid 1x26x40");
    assert_says(r.out, "policies: orientation ignore, alpha #102030, gray16 saturate\n");
    free_result(&r);
    r = expect(0, NULL, QVL("plan", SCENE, "--size", "64x32"));
    assert_says(r.out, "limits       none, --size gives the size\n");
    assert_says(r.err, "the demo model");
    free_result(&r);
}

static void test_json(void **state) {
    (void)state;
    cJSON *json = run_json(QVL_RANDOM("plan", CHART, SCENE, "--json", "--preset", "mlx"));
    assert_string_equal(field(json, "preset")->valuestring, "mlx");
    assert_string_equal(field(json, "model")->valuestring, QVL_RANDOM_MODEL);
    const cJSON *policies = field(json, "policies");
    assert_string_equal(field(policies, "orientation")->valuestring, "apply");
    assert_string_equal(field(policies, "alpha")->valuestring, "white");
    assert_string_equal(field(policies, "gray16")->valuestring, "scale");
    assert_size(json, 0, 384, 288, 108);
    assert_size(json, 1, 640, 416, 260);
    const cJSON *chart = item_of(json, 0), *flop = field(chart, "flop");
    assert_string_equal(field(chart, "input")->valuestring, CHART);
    assert_string_equal(field(chart, "format")->valuestring, "PNG");
    assert_ints(field(chart, "stored_size"), (int[]){400, 300}, 2);
    assert_ints(field(chart, "source_size"), (int[]){400, 300}, 2);
    assert_int_equal(field(chart, "orientation")->valueint, 1);
    assert_true(cJSON_IsFalse(field(chart, "turned_upright")));
    /* By hand: 432 patches; 4 blocks of 2*432*(4*64^2 + 2*64*128) and of 4*432^2*64, three mergers. */
    assert_true(field(flop, "linear")->valuedouble == 4 * 2.0 * 432 * (4 * 4096 + 2 * 8192));
    assert_true(field(flop, "attention")->valuedouble == 4 * 4.0 * 432 * 432 * 64);
    assert_true(field(flop, "patch_embed")->valuedouble == 2.0 * 432 * 1536 * 64);
    assert_true(field(flop, "mergers")->valuedouble == 3 * 2.0 * 108 * 256 * 320);
    assert_int_equal(field(json, "tokens")->valueint, 368);
    assert_int_equal(field(json, "patch_rows")->valueint, 1472);
    assert_int_equal(field(field(json, "memory"), "patches")->valueint, 1040 * 1536 * 4); /* the larger one */
    assert_true(cJSON_IsNull(field(json, "estimate")));
    cJSON_Delete(json);
}

/* Of members that plan and another command both print. */
static void assert_same_members(const cJSON *planned, const cJSON *done) {
    static const char *const members[] = {"model",   "model_type", "preset", "policies",   "dtype", "kernels",
                                          "threads", "items",      "tokens", "patch_rows", "flop",  "memory"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!cJSON_Compare(field(planned, members[i]), field(done, members[i]), true))
            fail_msg("%s is not what was planned", members[i]);
    const cJSON *a = cJSON_GetObjectItem(planned, "limits"), *b = cJSON_GetObjectItem(done, "limits");
    assert_true((!a && !b) || cJSON_Compare(a, b, true));
}

static void test_plan_equals_encode(void **state) {
    (void)state;
    char sideways[512], small[512], strip[512];
    snprintf(sideways, sizeof sideways, "%s", scratch("sideways.jpg"));
    write_turned_jpeg(sideways, SCENE, 8);
    snprintf(small, sizeof small, "%s", picture(3, 7));
    snprintf(strip, sizeof strip, "%s", picture(1380, 245));
    static const char *const flags[][2] = {
        {"--dtype", "f32"},   {"--max-pixels", "70000"}, {"--image-max-tokens", "100"},
        {"--size", "96x160"}, {"--policy", "reference"}, {"--preset", "transformers-pil"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *const *f = flags[i];
        cJSON *planned = run_json(QVL_RANDOM("plan", SCENE, CHART, sideways, small, strip, "--json", f[0], f[1]));
        cJSON *encoded = run_json(
            QVL_RANDOM("encode", SCENE, CHART, sideways, small, strip, "--json", "--no-cache", f[0], f[1]));
        assert_same_members(planned, encoded);
        cJSON_Delete(encoded);
        if (strcmp(f[0], "--dtype") != 0) { /* preprocess has no type to compute in */
            cJSON *rows =
                run_json(QVL_RANDOM("preprocess", SCENE, CHART, sideways, small, strip, "--json", f[0], f[1]));
            assert_same_members(planned, rows);
            assert_int_equal(cJSON_GetArrayItem(field(rows, "pixel_values_shape"), 0)->valueint,
                             field(planned, "patch_rows")->valueint);
            cJSON_Delete(rows);
        }
        cJSON_Delete(planned);
    }
}

/* Only headers are read: a file that is cut behind its header is planned, and refused by encode. */
static void test_headers_only(void **state) {
    (void)state;
    size_t count;
    char cut[512];
    char *scene = read_file(SCENE, &count);
    snprintf(cut, sizeof cut, "%s", scratch("cut.jpg"));
    write_file(cut, scene, count / 2);
    free(scene);
    expect_plan(QVL_RANDOM("plan", cut, "--json"), 640, 416, 260);
    result r = expect(1, NULL, QVL_RANDOM("encode", cut));
    assert_says(r.err, cut);
    assert_string_equal(r.out, "");
    free_result(&r);
    r = expect(1, NULL, QVL_RANDOM("plan", cut, scratch("missing.png")));
    assert_says(r.err, "missing.png");
    assert_string_equal(r.out, "");
    free_result(&r);
}

static void test_no_weights_and_standard_input(void **state) {
    (void)state;
    const char *folder = make_folder("no-weights", NULL, NULL);
    copy_random(folder, "preprocessor_config.json");
    result r = expect(0, NULL, QVL("plan", SCENE, "-m", folder));
    assert_says(r.out, "260 tokens");
    assert_string_equal(r.err, "");
    free_result(&r);
    r = expect(0, SCENE, QVL_RANDOM("plan", "-"));
    assert_says(r.out, "-: JPEG 640x427 -> 640x416, grid 1x26x40, 260 tokens");
    free_result(&r);
    r = expect(0, SCENE, QVL_RANDOM("encode", "-"));
    assert_says(r.out, "-: JPEG 640x427 -> 640x416, grid 1x26x40, 260 tokens");
    free_result(&r);
    r = expect(1, NULL, QVL_RANDOM("plan", "-"));
    assert_says(r.err, "standard input: empty");
    free_result(&r);
}

/* ---- memory */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* The resident memory of the program at its peak, over what was planned. */
static double peak_over_plan(const char *folder, const char *size) {
    cJSON *json = run_json(QVL("plan", SCENE, "-m", folder, "--size", size, "--json"));
    double planned = field(field(json, "memory"), "peak")->valuedouble;
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL("encode", SCENE, "-m", folder, "--size", size, "--no-cache"));
    double ratio = (double)r.peak_bytes / planned;
    printf("%s: %.1f MB at the peak, planned %.1f\n", size, 1e-6 * (double)r.peak_bytes, 1e-6 * planned);
    free_result(&r);
    return ratio;
}

/* A tower of the largest published width, two blocks deep. The program itself takes about 20 MB. */
static void test_memory_as_planned(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* sanitizers have memory of their own */
    const char *folder = scratch("large");
    result r = expect(0, NULL, ARGUMENTS(QVL_RANDOM_MODEL_TOOL, "--shape", "qwen3.5-27b", "--depth", "2", folder));
    free_result(&r);
    static const char *const sizes[] = {"512x512", "1024x1024"};
    for (size_t i = 0; i < 2; i++) {
        double ratio = peak_over_plan(folder, sizes[i]);
        assert_true(ratio > 0.9 && ratio < 1.25);
    }
}

/* ---- time */

static const cJSON *estimate_of(cJSON *json) {
    return field(json, "estimate");
}

static void test_estimate(void **state) {
    (void)state;
    char cache[512], file[600];
    snprintf(cache, sizeof cache, "%s", scratch("estimate-cache"));
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    snprintf(file, sizeof file, "%s/qvl/rates.json", cache);
    cJSON *bench = run_json(QVL_RANDOM("bench", "256x256", "64x64", "--runs", "1", "--json", "--threads", "1"));
    double rate = field(cJSON_GetArrayItem(field(bench, "sizes"), 0), "tflop_per_second")->valuedouble;
    cJSON_Delete(bench);
    struct stat status;
    snprintf(file, sizeof file, "%s/qvl", cache);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(count_files(file), 1);
    snprintf(file, sizeof file, "%s/qvl/rates.json", cache);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);

    cJSON *json = run_json(QVL_RANDOM("plan", SCENE, "--json", "--threads", "1"));
    const cJSON *estimate = estimate_of(json);
    assert_ints(field(estimate, "measured_size"), (int[]){256, 256}, 2);
    double found = field(estimate, "tflop_per_second")->valuedouble;
    double seconds = 1e-12 * field(field(json, "flop"), "total")->valuedouble / rate;
    assert_true(found > 0.999 * rate && found < 1.001 * rate);
    found = field(estimate, "tower_seconds")->valuedouble;
    assert_true(found > 0.999 * seconds && found < 1.001 * seconds);
    cJSON_Delete(json);
    json = run_json(QVL_RANDOM("plan", SCENE, "--json", "--threads", "1", "--size", "32x64"));
    assert_ints(field(estimate_of(json), "measured_size"), (int[]){64, 64}, 2);
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL_RANDOM("plan", SCENE, "--threads", "1"));
    assert_says(r.out, "s in the tower, at the ");
    assert_says(r.out, "TFLOP/s of the last bench with 256x256\n");
    free_result(&r);

    /* Measured for one thread, bf16 and these kernels only; a bench adds, and takes nothing away. */
    static const char *const others[][2] = {{"--threads", "3"}, {"--dtype", "f32"}, {"--cpu-mask", "scalar"}};
    for (size_t i = 0; i < 3; i++) {
        json = run_json(QVL_RANDOM("plan", SCENE, "--json", "--threads=1", others[i][0], others[i][1]));
        assert_true(cJSON_IsNull(estimate_of(json)));
        cJSON_Delete(json);
    }
    r = expect(0, NULL, QVL_RANDOM("bench", "32x32", "--runs", "1", "--threads=1", "--dtype", "f32"));
    free_result(&r);
    json = run_json(QVL_RANDOM("plan", SCENE, "--json", "--threads", "1", "--dtype", "f32"));
    assert_ints(field(estimate_of(json), "measured_size"), (int[]){32, 32}, 2);
    cJSON_Delete(json);
    json = run_json(QVL_RANDOM("plan", SCENE, "--json", "--threads", "1"));
    assert_ints(field(estimate_of(json), "measured_size"), (int[]){256, 256}, 2);
    cJSON_Delete(json);
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch("cache"), 1), 0);
}

/* Replaces what is remembered; plan must then have no estimate, and no complaint. */
static void expect_no_estimate(const char *file, const char *text, size_t count) {
    write_file(file, text, count);
    result r = expect(0, NULL, QVL_RANDOM("plan", SCENE, "-q", "--threads", "1"));
    assert_says(r.out, "no estimate: run qvl bench");
    assert_string_equal(r.err, "");
    free_result(&r);
}

static void test_records_that_do_not_count(void **state) {
    (void)state;
    char cache[512], file[600];
    snprintf(cache, sizeof cache, "%s", scratch("other-cache"));
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    snprintf(file, sizeof file, "%s/qvl/rates.json", cache);
    result r = expect(0, NULL, QVL_RANDOM("bench", "64x64", "--runs", "1", "--threads", "1"));
    free_result(&r);
    size_t count;
    char *good = read_file(file, &count);
    char *machine = strstr(good, " processors"); /* another machine has another number of them */
    assert_non_null(machine);
    machine[-1] = machine[-1] == '9' ? '8' : '9';
    expect_no_estimate(file, good, count);
    machine[-1] = '0';
    expect_no_estimate(file, good, count / 2);
    static const char *const broken[] = {
        "", "{}", "[]", "null", "{\"records\": 3}", "{\"records\": [1, {}, null]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        expect_no_estimate(file, broken[i], strlen(broken[i]));
    /* The next bench replaces it. */
    r = expect(0, NULL, QVL_RANDOM("bench", "64x64", "--runs", "1", "--threads", "1"));
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("plan", SCENE, "--threads", "1"));
    assert_says(r.out, "of the last bench with 64x64");
    free_result(&r);
    free(good);
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch("cache"), 1), 0);
}

/* Without a place to remember, measuring works all the same. */
static void test_nowhere_to_remember(void **state) {
    (void)state;
    char home[512];
    snprintf(home, sizeof home, "%s", scratch("home"));
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0); /* not absolute: ignored */
    const char *old = getenv("HOME");
    char *kept = old ? strdup(old) : NULL;
    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    result r = expect(0, NULL, QVL_RANDOM("bench", "64x64", "--runs", "1"));
    assert_says(r.out, "64x64");
    assert_says(r.err, "not remembered");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("plan", SCENE));
    assert_says(r.out, "no estimate");
    free_result(&r);
    assert_int_equal(mkdir(home, 0755), 0);
    assert_int_equal(setenv("HOME", home, 1), 0);
    r = expect(0, NULL, QVL_RANDOM("bench", "64x64", "--runs", "1", "-q"));
    assert_string_equal(r.err, "");
    free_result(&r);
    assert_int_equal(access(scratch("home/.cache/qvl/rates.json"), R_OK), 0);
    if (kept)
        setenv("HOME", kept, 1);
    else
        unsetenv("HOME");
    free(kept);
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch("cache"), 1), 0);
}

/* ---- what users ran into (user reports, by number) */

static void report_1_cost_before_encoding(void **state) {
    (void)state;
    const char *photo = picture(4032, 3024);
    cJSON *json = run_json(QVL_RANDOM("plan", photo, "--json"));
    assert_size(json, 0, 4032, 3008, 11844);
    cJSON_Delete(json);
    expect_plan(QVL_RANDOM("plan", photo, "--json", "--max-pixels", "1048576"), 1152, 864, 972);
    expect_plan(QVL_RANDOM("plan", photo, "--json", "--image-max-tokens", "1024"), 1152, 864, 972);
    /* Encoding says what it costs before it starts, if that is much. */
    char copy[512];
    snprintf(copy, sizeof copy, "%s", photo);
    const char *many[4 + 16 + 1] = {QVL_PROGRAM, "encode", "-m", QVL_RANDOM_MODEL};
    for (size_t i = 0; i < 15; i++) many[4 + i] = SCENE;
    result r = expect(0, NULL, many);
    assert_string_equal(r.err, "");
    free_result(&r);
    many[4 + 15] = SCENE; /* 4096 tokens are passed */
    r = expect(0, NULL, many);
    assert_says(r.err, "note: 4160 tokens, ");
    assert_says(r.err, "; --image-max-tokens makes pictures smaller\n");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("encode", copy, "--image-max-tokens", "1024"));
    assert_string_equal(r.err, "");
    assert_says(r.out, "4032x3024 -> 1152x864, grid 1x54x72, 972 tokens");
    free_result(&r);
}

static void report_5_refusal(void **state) {
    (void)state;
    expect_plan(QVL_RANDOM("plan", picture(1, 1), "--json"), 256, 256, 64);
    static const char *const commands[] = {"plan", "preprocess", "encode"};
    for (size_t i = 0; i < 3; i++) {
        result r = expect(1, NULL, QVL_RANDOM(commands[i], SCENE, picture(499, 1)));
        assert_says(r.err, "499x1.png: picture is 499 x 1: its aspect ratio is 499, above the limit of 200\n");
        assert_string_equal(r.out, "");
        free_result(&r);
    }
}

/* By the folder's file and by flag, under the old and the new names; the last one set wins, a flag beats the file. */
static void report_8_limits_are_applied(void **state) {
    (void)state;
    char old_names[512], new_names[512];
    snprintf(old_names, sizeof old_names, "%s",
             make_folder("old-names", "preprocessor_config.json",
                         "{\"min_pixels\": 1024, \"max_pixels\": 70000, \"image_mean\": [0.5, 0.5, 0.5], "
                         "\"image_std\": [0.5, 0.5, 0.5]}"));
    snprintf(
        new_names, sizeof new_names, "%s",
        make_folder("new-names", "preprocessor_config.json",
                    "{\"size\": {\"shortest_edge\": 1024, \"longest_edge\": 70000}, \"image_mean\": [0.5, 0.5, "
                    "0.5], \"image_std\": [0.5, 0.5, 0.5]}"));
    expect_plan(QVL("plan", SCENE, "--json", "-m", old_names), 320, 192, 60);
    expect_plan(QVL("plan", SCENE, "--json", "-m", new_names), 320, 192, 60);
    static const char *const flags[] = {"--max-pixels", "--longest-edge"};
    for (size_t i = 0; i < 2; i++)
        expect_plan(QVL("plan", SCENE, "--json", "-m", new_names, flags[i], "200000"), 544, 352, 187);
    expect_plan(QVL_RANDOM("plan", SCENE, "--json", "--max-pixels", "90000", "--longest-edge", "70000"), 320, 192,
                60);
    expect_plan(QVL_RANDOM("plan", SCENE, "--json", "--longest-edge", "90000", "--max-pixels", "70000"), 320, 192,
                60);
    expect_plan(QVL_RANDOM("plan", SCENE, "--json", "--shortest-edge", "400000"), 800, 544, 425);
    expect_plan(QVL_RANDOM("plan", SCENE, "--json", "--min-pixels", "400000"), 800, 544, 425);
    cJSON *json = run_json(QVL("plan", SCENE, "--json", "-m", new_names, "--max-pixels", "200000"));
    const cJSON *limits = field(json, "limits");
    assert_int_equal(field(limits, "min_pixels")->valueint, 1024);
    assert_string_equal(field(limits, "min_source")->valuestring, "preprocessor_config.json");
    assert_int_equal(field(limits, "max_pixels")->valueint, 200000);
    assert_string_equal(field(limits, "max_source")->valuestring, "option");
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL("plan", SCENE, "-m", old_names, "--min-pixels", "2048"));
    assert_says(r.out, "2048 (option) to 70000 (preprocessor_config.json) pixels");
    free_result(&r);
    r = expect(
        0, NULL,
        QVL("plan", SCENE, "-m",
            make_folder("misspelt", "preprocessor_config.json", "{\"max_pixel\": 70000, \"min_pixels\": 1024}")));
    assert_says(r.out, "to 1003520 (preprocessor_config.json) pixels");
    assert_says(r.err, "max_pixel is not a limit that is read");
    free_result(&r);
}

static void report_11_original_and_final_size(void **state) {
    (void)state;
    char wide[512];
    snprintf(wide, sizeof wide, "%s", picture(1500, 300));
    static const char *const commands[] = {"plan", "preprocess", "encode"};
    for (size_t i = 0; i < 3; i++) {
        cJSON *json = run_json(QVL_RANDOM(commands[i], SCENE, wide, "--json"));
        assert_ints(field(item_of(json, 0), "source_size"), (int[]){640, 427}, 2);
        assert_size(json, 0, 640, 416, 260);
        assert_ints(field(item_of(json, 1), "source_size"), (int[]){1500, 300}, 2);
        assert_size(json, 1, 1504, 288, 423);
        cJSON_Delete(json);
    }
}

static void report_14_limits_in_three_places(void **state) {
    (void)state;
#define HALVES "\"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.5, 0.5, 0.5]"
    static const char *const places[][3] = {
        {"size-table", "preprocessor_config.json",
         "{\"size\": {\"shortest_edge\": 65536, \"longest_edge\": 16777216}, " HALVES "}"},
        {"flat-numbers", "preprocessor_config.json",
         "{\"min_pixels\": 65536, \"max_pixels\": 16777216, " HALVES "}"},
        {"nested", "processor_config.json",
         "{\"image_processor\": {\"size\": {\"shortest_edge\": 65536, \"longest_edge\": 16777216}, " HALVES "}}"},
    };
    char pixels[512];
    snprintf(pixels, sizeof pixels, "%s", picture(224, 150));
    for (size_t i = 0; i < 3; i++) {
        const char *folder = make_folder(places[i][0], places[i][1], places[i][2]);
        result r = expect(0, NULL, QVL("plan", pixels, "-m", folder));
        assert_says(r.out, "224x150 -> 320x224, grid 1x14x20, 70 tokens");
        assert_says(r.out, places[i][1]);
        assert_string_equal(r.err, "");
        free_result(&r);
    }
    const char *none = make_folder("no-limits", NULL, NULL);
    result r = expect(0, NULL, QVL("plan", pixels, "-m", none));
    assert_says(r.out, "class default");
    assert_says(r.err, "note: no preprocessor file in ");
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_plan_equals_encode),
        cmocka_unit_test(test_headers_only),
        cmocka_unit_test(test_no_weights_and_standard_input),
        cmocka_unit_test(test_memory_as_planned),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_records_that_do_not_count),
        cmocka_unit_test(test_nowhere_to_remember),
        cmocka_unit_test(report_1_cost_before_encoding),
        cmocka_unit_test(report_5_refusal),
        cmocka_unit_test(report_8_limits_are_applied),
        cmocka_unit_test(report_11_original_and_final_size),
        cmocka_unit_test(report_14_limits_in_three_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
