/* qvl encode FOLDER: a result is made anew whenever a setting changed, whichever it is, and left where none did. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "cli/program.h"
#include "media/clips.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char in[512], out[512];

/* A folder of one clip, 12 frames at 12 a second. */
static void make_inputs(void) {
    const clip_spec spec = {.frames = 12, .rate = {12, 1}, .muxer = "mp4"};
    bytes clip = make_clip(&spec);
    char path[600];
    snprintf(in, sizeof in, "%s", scratch("clips"));
    snprintf(out, sizeof out, "%s", scratch("results"));
    assert_int_equal(mkdir(in, 0700), 0);
    snprintf(path, sizeof path, "%s/clip.mp4", in);
    write_file(path, clip.data, clip.count);
    qvl_free(clip.data);
}

/* Whether the clip was encoded; else its result was there. */
static bool encoded(const char *model, const char *flag, const char *value) {
    const char *arguments[] = {QVL_PROGRAM, "encode", in, "-m", model, "-o", out, "--json", flag, value, NULL};
    cJSON *json = run_json(arguments);
    int made = field(json, "encoded")->valueint, kept = field(json, "there_before")->valueint;
    cJSON_Delete(json);
    assert_int_equal(made + kept, 1);
    return made;
}

/* Every flag that can change a result, with a value that is not the default. */
static const struct {
    const char *flag, *value;
} settings[] = {
    {"--preset", "mlx"},
    {"--dtype", "f32"},
    {"--min-pixels", "3000"},
    {"--max-pixels", "2000000"},
    {"--shortest-edge", "3001"},
    {"--longest-edge", "2000001"},
    {"--image-min-tokens", "5"},
    {"--image-max-tokens", "5000"},
    {"--policy", "reference"},
    {"--orientation", "ignore"},
    {"--alpha", "drop"},
    {"--gray16", "saturate"},
    {"--max-source-pixels", "1000000"},
    {"--size", "64x64"},
    {"--fps", "3"},
    {"--num-frames", "6"},
    {"--min-frames", "6"},
    {"--max-frames", "4"},
    {"--video-min-pixels", "40000"},
    {"--video-max-pixels", "16000"},
    {"--frame-cap", "on"},
    {"--max-frame-tokens", "3"},
    {"--single-frame", "refuse"},
    {"--assume-fps", "3"},
    {"--times", "rate"},
    {"--animation", "clip"},
    {"--cpu-mask", "scalar"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void every_setting(void **state) {
    (void)state;
    assert_true(encoded(QVL_RANDOM_MODEL, NULL, NULL));
    assert_false(encoded(QVL_RANDOM_MODEL, NULL, NULL));
    for (size_t i = 0; i < SETTINGS; i++) {
        if (!encoded(QVL_RANDOM_MODEL, settings[i].flag, settings[i].value))
            fail_msg("a result of no flag passed for one of %s", settings[i].flag);
        if (encoded(QVL_RANDOM_MODEL, settings[i].flag, settings[i].value))
            fail_msg("%s: made again without a change", settings[i].flag);
        if (!encoded(QVL_RANDOM_MODEL, NULL, NULL))
            fail_msg("a result of %s passed for one of no flag", settings[i].flag);
    }
    assert_true(encoded(QVL_RANDOM_MODEL, "--fps", "3"));
    assert_true(encoded(QVL_RANDOM_MODEL, "--fps", "4"));
}

static void other_flags_change_nothing(void **state) {
    (void)state;
    encoded(QVL_RANDOM_MODEL, NULL, NULL);
    assert_false(encoded(QVL_RANDOM_MODEL, "--threads", "1"));
    assert_false(encoded(QVL_RANDOM_MODEL, "--no-cache", NULL));
    assert_false(encoded(QVL_RANDOM_MODEL, "--quiet", NULL));
}

/* Names for one setting: what counts is the last one, whatever the order of the table. */
static void one_setting_of_two_names(void **state) {
    (void)state;
    static const char *const orders[2][2] = {{"--min-pixels=3000", "--shortest-edge=9000"},
                                             {"--shortest-edge=9000", "--min-pixels=3000"}};
    for (int i = 0; i < 2; i++) assert_true(encoded(QVL_RANDOM_MODEL, orders[i][0], orders[i][1]));
    assert_false(encoded(QVL_RANDOM_MODEL, "--min-pixels", "3000"));
}

/* No flag of encode is in neither list: one that is new must be put into the right one. */
static void no_flag_is_forgotten(void **state) {
    (void)state;
    static const char *const aside[] = {"--model",   "--output",   "--taps", "--map",   "--threads",
                                        "--profile", "--no-cache", "--json", "--quiet", "--help"};
    result r = expect(0, NULL, QVL("encode", "--help"));
    size_t seen = 0;
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        char *name = strncmp(line, "  -", 3) == 0 ? strstr(line, "--") : NULL;
        if (!name) continue;
        name[strcspn(name, " ")] = 0;
        int known = 0;
        for (size_t i = 0; i < SETTINGS; i++) known += strcmp(name, settings[i].flag) == 0;
        for (size_t i = 0; i < sizeof aside / sizeof *aside; i++) known += strcmp(name, aside[i]) == 0;
        if (known != 1) fail_msg("%s is in %d of the lists", name, known);
        seen++;
    }
    assert_int_equal(seen, SETTINGS + sizeof aside / sizeof *aside);
    free_result(&r);
}

/* The model, with one file of settings of its own. */
static void settings_of_the_folder(void **state) {
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors", "preprocessor_config.json",
                                        "video_preprocessor_config.json"};
    char folder[512], from[600], to[600];
    snprintf(folder, sizeof folder, "%s", scratch("model"));
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < 4; i++) {
        snprintf(from, sizeof from, QVL_RANDOM_MODEL "/%s", files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    encoded(folder, NULL, NULL);
    assert_false(encoded(folder, NULL, NULL));
    size_t count;
    char *text = read_file(to, &count), changed[2000];
    char *mean = strstr(text, "[0.5, 0.5, 0.5]");
    assert_non_null(mean);
    snprintf(changed, sizeof changed, "%.*s[0.25, 0.5, 0.5]%s", (int)(mean - text), text, strchr(mean, ']') + 1);
    free(text);
    assert_int_equal(unlink(to), 0);
    write_file(to, changed, strlen(changed));
    assert_true(encoded(folder, NULL, NULL));
    assert_false(encoded(folder, NULL, NULL));
    /* What only has the name of a file of settings is none. */
    snprintf(to, sizeof to, "%s/folder.config.json", folder);
    assert_int_equal(mkdir(to, 0700), 0);
    snprintf(to, sizeof to, "%s/pipe.config.json", folder);
    assert_int_equal(mkfifo(to, 0600), 0);
    snprintf(to, sizeof to, "%s/link.config.json", folder);
    assert_int_equal(symlink("nowhere", to), 0);
    assert_false(encoded(folder, NULL, NULL));
}

int main(void) {
    make_inputs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(other_flags_change_nothing),
        cmocka_unit_test(one_setting_of_two_names),
        cmocka_unit_test(no_flag_is_forgotten),
        cmocka_unit_test(settings_of_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
