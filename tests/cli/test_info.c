/* qvl info: what it says of folders of every kind, and the fingerprint with its place in the user's cache. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static cJSON *info(const char *folder, bool fingerprint) {
    result r = expect(0, NULL,
                      fingerprint ? QVL("info", "-m", folder, "--json", "--fingerprint")
                                  : QVL("info", "-m", folder, "--json"));
    cJSON *json = cJSON_Parse(r.out);
    assert_non_null(json);
    free_result(&r);
    return json;
}

static const char *tensors_field(const cJSON *json, const char *key) {
    const cJSON *tensors = cJSON_GetObjectItem(json, "tensors");
    return cJSON_GetStringValue(cJSON_GetObjectItem(tensors, key));
}

static void write_model(const char *folder, const char *naming, const char *layout, const char *shards) {
    result r = expect(0, NULL,
                      ARGUMENTS(QVL_RANDOM_MODEL_TOOL, "--shape", "tiny-vl", "--naming", naming, "--layout",
                                layout, "--shards", shards, folder));
    free_result(&r);
}

static void test_folders_of_every_kind(void **state) {
    (void)state;
    static const struct {
        const char *naming, *layout, *shards, *prefix, *said_layout, *source, *line;
    } folders[] = {
        {"hf", "hf", "1", "model.visual.", "hugging-face", "model.safetensors",
         "57 under model.visual., BF16, hugging-face layout"},
        {"visual", "flat", "2", "visual.", "flat", "model.safetensors.index.json", "57 under visual., BF16, flat"},
        {"mlx", "mlx", "1", "vision_tower.", "mlx", "model.safetensors",
         "57 under vision_tower., BF16, mlx layout"},
        {"stray", "hf", "1", "model.language_model.visual.", "hugging-face", "model.safetensors",
         "57 under model.language_model.visual., BF16"},
        {"flat", "hf", "1", "", "hugging-face", "model.safetensors", "57 without a prefix, BF16, hugging-face"},
        {"sidecar", "mlx", "1", "vision_tower.", "mlx", "optiq/optiq_vision.safetensors",
         "1 file, found through optiq/optiq_vision.safetensors"},
    };
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *folder = scratch(folders[i].naming);
        write_model(folder, folders[i].naming, folders[i].layout, folders[i].shards);
        cJSON *json = info(folder, false);
        assert_string_equal(tensors_field(json, "prefix"), folders[i].prefix);
        assert_string_equal(tensors_field(json, "layout"), folders[i].said_layout);
        assert_string_equal(tensors_field(json, "source"), folders[i].source);
        assert_string_equal(tensors_field(json, "dtype"), "BF16");
        assert_null(tensors_field(json, "fingerprint")); /* only when it is asked for */
        cJSON_Delete(json);
        result r = expect(0, NULL, QVL("info", "-m", folder));
        assert_says(r.out, folders[i].line);
        assert_null(strstr(r.out, "fingerprint"));
        free_result(&r);
    }
}

/* Sets or, with NULL, unsets. */
static void environment(const char *name, const char *value) {
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* The inode of the one file in a folder. */
static ino_t only_file(const char *folder) {
    ino_t found = 0;
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        found = e->d_ino;
        count++;
    }
    closedir(dir);
    assert_int_equal(count, 1);
    return found;
}

static void test_fingerprint(void **state) {
    (void)state;
    const char *folder = scratch("fingerprinted");
    char cache[600], weights[600], first[80];
    struct stat st;
    write_model(folder, "mlx", "mlx", "1");
    environment("XDG_CACHE_HOME", scratch("cache"));
    cJSON *json = info(folder, true);
    snprintf(first, sizeof first, "%s", tensors_field(json, "fingerprint"));
    assert_int_equal(strlen(first), 64);
    cJSON_Delete(json);
    snprintf(cache, sizeof cache, "%s/qvl", getenv("XDG_CACHE_HOME"));
    assert_int_equal(stat(cache, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(count_files(cache), 1);

    /* Again: from memory, or its file would be a new one. */
    ino_t remembered = only_file(cache);
    result r = expect(0, NULL, QVL("info", "-m", folder, "--fingerprint"));
    assert_says(r.out, first);
    free_result(&r);
    assert_true(only_file(cache) == remembered);

    /* The weights change and their time is set back, as rsync -t or cp -p may do it: that is noticed. */
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    assert_int_equal(stat(weights, &st), 0);
    size_t count;
    char *bytes = read_file(weights, &count);
    bytes[count - 1] ^= 1;
    write_file(weights, bytes, count);
    free(bytes);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, weights, times, 0), 0);
    json = info(folder, true);
    assert_string_not_equal(tensors_field(json, "fingerprint"), first);
    cJSON_Delete(json);
    assert_true(only_file(cache) != remembered);

    /* Another place to remember, by $HOME: nothing is known there, so the file is read. A relative XDG_CACHE_HOME
     * does not count. */
    environment("XDG_CACHE_HOME", "relative");
    environment("HOME", scratch("home"));
    assert_int_equal(mkdir(getenv("HOME"), 0777), 0);
    json = info(folder, true);
    assert_string_not_equal(tensors_field(json, "fingerprint"), first);
    cJSON_Delete(json);
    snprintf(cache, sizeof cache, "%s/.cache/qvl", getenv("HOME"));
    assert_int_equal(count_files(cache), 1);

    /* No place at all is no obstacle. */
    environment("XDG_CACHE_HOME", NULL);
    environment("HOME", NULL);
    json = info(folder, true);
    assert_string_not_equal(tensors_field(json, "fingerprint"), first);
    cJSON_Delete(json);
}

static void test_no_fingerprint(void **state) {
    (void)state;
    const char *folder = scratch("no-tower");
    char file[600];
    write_model(folder, "hf", "hf", "1");
    snprintf(file, sizeof file, "%s/model.safetensors", folder);
    write_file(file, "\x02\0\0\0\0\0\0\0{}", 10);
    result r = expect(1, NULL, QVL("info", "-m", folder, "--fingerprint", "--json"));
    assert_says(r.err, "no vision tower tensors in ");
    assert_says(r.out, "\"vision\"");
    assert_null(strstr(r.out, "fingerprint"));
    free_result(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders_of_every_kind),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_no_fingerprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
