/* The command line itself: help, version, every kind of wrong usage and of refused input. Exit codes are 0, 1, 2;
 * a refusal names the file and leaves nothing behind. */
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"

static void test_help(void **state) {
    (void)state;
    static const char *const commands[] = {"info", "plan", "preprocess", "encode", "box", "check", "bench"};
    result r = expect(0, NULL, QVL("--help"));
    assert_string_equal(r.err, "");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_says(r.out, commands[i]);
        result help = expect(0, NULL, QVL(commands[i], "--help"));
        assert_says(help.out, "usage: qvl ");
        assert_says(help.out, "--json");
        assert_string_equal(help.err, "");
        free_result(&help);
    }
    free_result(&r);
    r = expect(0, NULL, QVL("encode", "-h"));
    assert_says(r.out, "--taps FILE");
    assert_says(r.out, "--size WxH");
    free_result(&r);
    r = expect(2, NULL, ARGUMENTS(QVL_PROGRAM));
    assert_string_equal(r.out, "");
    assert_says(r.err, "usage: qvl COMMAND");
    free_result(&r);
}

static void test_version(void **state) {
    (void)state;
    char expected[64];
    snprintf(expected, sizeof expected, "qvl %s\n", qvl_version());
    result r = expect(0, NULL, QVL("--version"));
    assert_string_equal(r.out, expected);
    free_result(&r);
}

typedef struct refusal {
    const char *arguments[10];
    const char *says;
} refusal;

/* Each must exit with the code and say its message on stderr, and nothing on stdout. */
static void assert_refused(const refusal *cases, size_t count, int code) {
    for (size_t i = 0; i < count; i++) {
        const char *arguments[12] = {QVL_PROGRAM};
        memcpy(arguments + 1, cases[i].arguments, sizeof cases[i].arguments);
        result r = expect(code, NULL, arguments);
        assert_string_equal(r.out, "");
        assert_says(r.err, cases[i].says);
        free_result(&r);
    }
}

static void test_usage_errors(void **state) {
    (void)state;
    static const refusal cases[] = {
        {{"encoed", SCENE}, "did you mean encode?"},
        {{"frobnicate"}, "unknown command frobnicate\n"},
        {{"encode", SCENE, "--tap", "x"}, "unknown flag --tap; did you mean --taps?"},
        {{"encode", SCENE, "--thread=2"}, "unknown flag --thread=2"},
        {{"encode", SCENE, "--preset-name", "mlx"}, "did you mean --preset?"},
        {{"encode", SCENE, "--zzzzzzzzz"}, "unknown flag --zzzzzzzzz\n"},
        {{"encode", SCENE, "-x"}, "unknown flag -x"},
        {{"info", "--taps", "x"}, "--taps is a flag of other commands"},
        {{"check", "-m", QVL_RANDOM_MODEL}, "--model is a flag of other commands"},
        {{"encode", SCENE, "--threads"}, "--threads needs a value: N"},
        {{"encode", SCENE, "--threads", "x"}, "--threads is 'x'; allowed is a whole number in 0..256"},
        {{"encode", SCENE, "--threads", ""}, "--threads is ''"},
        {{"encode", SCENE, "--threads", "2.5"}, "--threads is '2.5'"},
        {{"encode", SCENE, "--threads", "-1"}, "--threads is '-1'"},
        {{"encode", SCENE, "--threads", "257"}, "--threads is '257'"},
        {{"encode", SCENE, "--threads=99999999999999999999"}, "--threads is '9999999"},
        {{"encode", SCENE, "--preset", "torch"}, "allowed is transformers, transformers-pil or mlx"},
        {{"encode", SCENE, "--preset="}, "--preset is ''"},
        {{"encode", SCENE, "--dtype", "f16"}, "--dtype is 'f16'; allowed is bf16 or f32"},
        {{"encode", SCENE, "--size", "512"}, "--size is '512'; allowed is WIDTHxHEIGHT"},
        {{"encode", SCENE, "--size", "0x512"}, "--size is '0x512'"},
        {{"encode", SCENE, "--size", "64x-64"}, "--size is '64x-64'"},
        {{"encode", SCENE, "--size", "64x64x3"}, "--size is '64x64x3'"},
        {{"encode", SCENE, "--size", "64x1000001"}, "--size is '64x1000001'"},
        {{"encode", SCENE, "--min-pixels", "0"}, "--min-pixels is '0'"},
        {{"encode", SCENE, "--image-max-tokens", "many"}, "--image-max-tokens is 'many'"},
        {{"encode", SCENE, "--cpu-mask", "neon"},
         "--cpu-mask is 'neon'; allowed is scalar, avx2, avx512, avx512bf16, amx or all"},
        {{"encode", SCENE, "--cpu-mask", "avx2,"}, "--cpu-mask is 'avx2,'"},
        {{"encode", SCENE, "--cpu-mask", "0x100000000"}, "--cpu-mask is '0x100000000'"},
        {{"encode", SCENE, "--json=yes"}, "--json is 'yes'; allowed is nothing"},
        {{"encode", SCENE, "-o", ""}, "--output is ''"},
        {{"bench", "--runs", "0"}, "--runs is '0'"},
        {{"encode"}, "an INPUT is missing"},
        {{"preprocess", "--quiet"}, "an INPUT is missing"},
        {{"info", SCENE}, "it takes no INPUT"},
        {{"check", SCENE}, "it takes no INPUT"},
        {{"encode", "-", "-"}, "standard input (-) can be read only once"},
        {{"encode", SCENE, "--min-pixels", "2000", "--max-pixels", "1000"}, "--min-pixels is larger"},
        {{"encode", SCENE, "--image-min-tokens", "9", "--image-max-tokens", "8"}, "--image-min-tokens is larger"},
        {{"encode", SCENE, "--min-pixels", "2000", "--image-max-tokens", "8"}, "pixels or in tokens, not both"},
        {{"encode", SCENE, "--size", "64x64", "--max-pixels", "99999"}, "--size leaves nothing"},
        {{"encode", SCENE, "-o", "-"}, "-o needs a file"},
        {{"encode", SCENE, "--taps", "-"}, "--taps needs a file"},
        {{"encode", SCENE, "-o", SCENE}, "-o names an INPUT"},
        {{"encode", SCENE, "--taps", SCENE}, "--taps names an INPUT"},
        {{"encode", SCENE, "-o", "same", "--taps", "same"}, "name the same file"},
        {{"bench", "512"}, "'512' is no size"},
    };
    assert_refused(cases, sizeof cases / sizeof *cases, 2);
}

static void test_refused_inputs(void **state) {
    (void)state;
    size_t count;
    char *scene = read_file(SCENE, &count);
    char damaged[512], text[512], empty[512], folder[512], missing[512];
    snprintf(damaged, sizeof damaged, "%s", scratch("damaged.jpg"));
    snprintf(text, sizeof text, "%s", scratch("text.png"));
    snprintf(empty, sizeof empty, "%s", scratch("empty.jpg"));
    snprintf(folder, sizeof folder, "%s", scratch("a-folder"));
    snprintf(missing, sizeof missing, "%s", scratch("missing.jpg"));
    write_file(damaged, scene, count / 2);
    write_file(text, "no picture", 10);
    write_file(empty, "", 0);
    free(scene);
    assert_int_equal(mkdir(folder, 0777), 0);
    const refusal cases[] = {
        {{"encode", damaged}, damaged},
        {{"preprocess", damaged}, damaged},
        {{"encode", SCENE, damaged}, damaged},
        {{"encode", text}, text},
        {{"encode", empty}, empty},
        {{"encode", folder}, folder},
        {{"encode", missing}, missing},
        {{"encode", SCENE, missing}, missing},
        {{"encode", "-"}, "standard input"},
        {{"encode", SCENE, "--size", "100x64"}, "100"},
        {{"encode", SCENE, "-m", missing}, missing},
        {{"encode", SCENE, "-m", folder}, folder},
        {{"info", "-m", folder}, folder},
        {{"bench", "-m", folder}, folder},
        {{"bench", "100x100"}, "100"},
        {{"encode", SCENE, "-o", "/nowhere/features.safetensors"}, "/nowhere/features.safetensors"},
        {{"encode", SCENE, "--taps", "/nowhere/taps.safetensors"}, "/nowhere/taps.safetensors"},
        {{"encode", SCENE, "-o", folder}, folder},
    };
    assert_refused(cases, sizeof cases / sizeof *cases, 1);
}

static void test_refusal_leaves_nothing(void **state) {
    (void)state;
    char folder[512], output[600], kept[600], bad[600];
    snprintf(folder, sizeof folder, "%s", scratch("outputs"));
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(output, sizeof output, "%s/new.safetensors", folder);
    snprintf(kept, sizeof kept, "%s/kept.safetensors", folder);
    snprintf(bad, sizeof bad, "%s", scratch("bad.png"));
    write_file(bad, "\x89PNG\r\n\x1a\n", 8);
    write_file(kept, "kept", 4);
    static const char *const commands[] = {"preprocess", "encode"};
    for (size_t i = 0; i < 2; i++) {
        result r = expect(1, NULL, QVL(commands[i], SCENE, bad, "-o", output));
        free_result(&r);
        r = expect(1, NULL, QVL(commands[i], bad, SCENE, "-o", kept));
        free_result(&r);
    }
    assert_int_equal(count_files(folder), 1);
    size_t count;
    char *bytes = read_file(kept, &count);
    assert_int_equal(count, 4);
    assert_memory_equal(bytes, "kept", 4);
    free(bytes);
}

static void copy_random_file(const char *folder, const char *name) {
    char path[600];
    size_t count;
    snprintf(path, sizeof path, QVL_RANDOM_MODEL "/%s", name);
    char *bytes = read_file(path, &count);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, count);
    free(bytes);
}

/* A folder without weights is described, preprocesses, and is refused for encoding. Without limits the class
 * defaults serve, and a note says so. */
static void test_folder_without_weights(void **state) {
    (void)state;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("no-weights"));
    assert_int_equal(mkdir(folder, 0777), 0);
    copy_random_file(folder, "config.json");
    result r = expect(0, NULL, QVL("preprocess", SCENE, "-m", folder));
    assert_says(r.err, "note: ");
    assert_says(r.err, "default");
    free_result(&r);
    copy_random_file(folder, "preprocessor_config.json");
    r = expect(0, NULL, QVL("preprocess", SCENE, "-m", folder));
    assert_says(r.out, "grid 1x26x40");
    assert_string_equal(r.err, "");
    free_result(&r);
    r = expect(1, NULL, QVL("encode", SCENE, "-m", folder));
    assert_says(r.err, folder);
    free_result(&r);
    r = expect(1, NULL, QVL("info", "-m", folder));
    assert_says(r.out, "qwen3_vl");
    assert_says(r.err, folder);
    free_result(&r);
}

/* What cannot be printed is no success. */
static void test_full_output(void **state) {
    (void)state;
    result r = run_program(ARGUMENTS("/bin/sh", "-c", QVL_PROGRAM " info --json >/dev/full"), NULL);
    assert_int_equal(r.code, 1);
    assert_says(r.err, "standard output");
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_usage_errors),
        cmocka_unit_test(test_refused_inputs),
        cmocka_unit_test(test_refusal_leaves_nothing),
        cmocka_unit_test(test_folder_without_weights),
        cmocka_unit_test(test_full_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
