/* The cache at the command line: hits and misses that are said, qvl cache, and folders of pictures. */
#define _GNU_SOURCE
#include "cli/program.h"

#include <cjson/cJSON.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCENE QVL_SOURCE_DIR "/examples/scene.jpg"
#define CHART QVL_SOURCE_DIR "/examples/chart.png"

static int number(const cJSON *json, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, key);
    assert_true(cJSON_IsNumber(value));
    return value->valueint;
}

/* What item `index` says about the cache; "" for null. */
static void expect_words(const char *const *arguments, const char *first, const char *second) {
    cJSON *json = run_json(arguments);
    const char *const words[2] = {first, second};
    for (int i = 0; i < 2 && words[i]; i++) {
        const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "items"), i);
        const cJSON *word = cJSON_GetObjectItemCaseSensitive(item, "cache");
        assert_non_null(word);
        assert_string_equal(cJSON_IsString(word) ? word->valuestring : "", words[i]);
    }
    cJSON_Delete(json);
}

static void clear(void) {
    result r = expect(0, NULL, QVL("cache", "clear"));
    free_result(&r);
}

static void test_encode_says_hit_or_miss(void **state) {
    (void)state;
    char first[512], second[512], third[512];
    snprintf(first, sizeof first, "%s", scratch("first.safetensors"));
    snprintf(second, sizeof second, "%s", scratch("second.safetensors"));
    snprintf(third, sizeof third, "%s", scratch("third.safetensors"));
    clear();
    result r = expect(0, NULL, QVL_RANDOM("encode", SCENE, "-o", first));
    assert_says(r.out, "260 tokens, cache miss\n");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("encode", SCENE, "-o", second));
    assert_says(r.out, "260 tokens, cache hit\n");
    free_result(&r);
    r = expect(0, NULL, QVL_RANDOM("encode", SCENE, "-o", third, "--no-cache"));
    assert_says(r.out, "260 tokens\n");
    free_result(&r);
    assert_same_file(first, second);
    assert_same_file(first, third);
    expect_words(QVL_RANDOM("encode", CHART, SCENE, "--json"), "miss", "hit");
    expect_words(QVL_RANDOM("encode", CHART, SCENE, "--json", "--no-cache"), "", "");
    expect_words(QVL_RANDOM("encode", CHART, SCENE, "--json", "--profile"), "", "");
    expect_words(QVL_RANDOM("encode", CHART, SCENE, "--json", "--dtype", "f32"), "miss", "miss");
    expect_words(QVL_RANDOM("encode", SCENE, "--json", "--cpu-mask", "scalar"), "miss", NULL);
    expect_words(QVL_RANDOM("encode", SCENE, "--json", "--cpu-mask", "scalar"), "hit", NULL);
}

static void test_prompt_uses_the_same(void **state) {
    (void)state;
    static const char chat[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": \"" SCENE
                               "\"}, {\"type\": \"image\", \"image\": \"" CHART "\"}]}]";
    char path[512];
    snprintf(path, sizeof path, "%s", scratch("chat.json"));
    write_file(path, chat, sizeof chat - 1);
    clear();
    expect_words(QVL_RANDOM("encode", SCENE, "--json"), "miss", NULL);
    expect_words(QVL_RANDOM("prompt", path, "--json"), "hit", "miss");
    expect_words(QVL_RANDOM("prompt", path, "--json"), "hit", "hit");
    expect_words(QVL_RANDOM("prompt", path, "--json", "--no-cache"), "", "");
    result r = expect(0, NULL, QVL_RANDOM("prompt", path));
    assert_says(r.out, ", cache hit\n");
    free_result(&r);
}

static void test_cache_command(void **state) {
    (void)state;
    clear();
    cJSON *json = run_json(QVL("cache", "stats", "--json"));
    assert_int_equal(number(json, "entries"), 0);
    cJSON_Delete(json);
    expect_words(QVL_RANDOM("encode", CHART, SCENE, "--json"), "miss", "miss");
    json = run_json(QVL("cache", "stats", "--json"));
    assert_int_equal(number(json, "entries"), 2);
    assert_true(number(json, "bytes") > 260 * 64 * 2 * 3);
    cJSON_Delete(json);
    result r = expect(0, NULL, QVL("cache", "verify"));
    assert_says(r.out, "2 entries are good, 0 were damaged");
    free_result(&r);
    r = expect(0, NULL, QVL("cache", "path"));
    char *end = strchr(r.out, '\n');
    assert_non_null(end);
    *end = 0;
    struct stat st;
    assert_int_equal(stat(r.out, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_says(r.out, "/qvl");
    free_result(&r);
    r = expect(2, NULL, QVL("cache", "empty"));
    assert_says(r.err, "'empty' is none of stats, verify, clear, path");
    free_result(&r);
    clear();
    expect_words(QVL_RANDOM("encode", CHART, "--json"), "miss", NULL);
}

/* A cache folder that cannot be used: a note, and the same result. */
static void test_unusable_cache(void **state) {
    (void)state;
    char kept[512], plain[512];
    snprintf(kept, sizeof kept, "%s", getenv("XDG_CACHE_HOME"));
    snprintf(plain, sizeof plain, "%s", scratch("broken"));
    assert_int_equal(mkdir(plain, 0700), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", plain, 1), 0);
    char path[600];
    snprintf(path, sizeof path, "%s/qvl", plain);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/qvl/features-1", plain);
    write_file(path, "no folder", 9);
    result r = expect(0, NULL, QVL_RANDOM("encode", SCENE));
    assert_says(r.err, "note: nothing is cached on disk: ");
    free_result(&r);
    r = expect(1, NULL, QVL("cache", "stats"));
    assert_says(r.err, "cannot be used");
    free_result(&r);
    assert_int_equal(setenv("XDG_CACHE_HOME", kept, 1), 0);
}

/* ---- folders */

static void copy(const char *from, const char *folder, const char *name) {
    char path[700];
    size_t count;
    char *bytes = read_file(from, &count);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, count);
    free(bytes);
}

/* Two good pictures, one in a folder below, one cut, and a text. */
static void fill(const char *folder) {
    char below[600];
    snprintf(below, sizeof below, "%s/below", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(below, 0700), 0);
    copy(SCENE, folder, "b.jpg");
    copy(CHART, below, "a.png");
    size_t count;
    char *bytes = read_file(SCENE, &count), path[600];
    snprintf(path, sizeof path, "%s/cut.jpg", folder);
    write_file(path, bytes, count / 3);
    free(bytes);
    snprintf(path, sizeof path, "%s/notes.txt", folder);
    write_file(path, "text", 4);
}

static void test_folder(void **state) {
    (void)state;
    char in[512], out[512], one[600], alone[512];
    snprintf(in, sizeof in, "%s", scratch("pictures"));
    snprintf(out, sizeof out, "%s", scratch("results"));
    snprintf(alone, sizeof alone, "%s", scratch("alone.safetensors"));
    snprintf(one, sizeof one, "%s/below/a.png.safetensors", out);
    fill(in);
    clear();
    cJSON *json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json"), NULL);
    assert_int_equal(number(json, "encoded"), 2);
    assert_int_equal(number(json, "there_before"), 0);
    assert_int_equal(number(json, "other_files"), 1);
    const cJSON *refused = cJSON_GetObjectItemCaseSensitive(json, "refused");
    assert_int_equal(cJSON_GetArraySize(refused), 1);
    const cJSON *entry = cJSON_GetArrayItem(refused, 0);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(entry, "input")->valuestring, "cut.jpg");
    assert_says(cJSON_GetObjectItemCaseSensitive(entry, "message")->valuestring, "damaged JPEG");
    cJSON_Delete(json);
    assert_int_equal(count_files(out), 2); /* b.jpg's and the folder below */
    /* The features are those of a call for the picture alone. */
    result r = expect(0, NULL, QVL_RANDOM("encode", CHART, "-o", alone));
    free_result(&r);
    qvl_tensor_file *files[2] = {open_tensors(one), open_tensors(alone)};
    assert_int_equal(qvl_tensor_file_count(files[0]), qvl_tensor_file_count(files[1]));
    for (size_t i = 0; i < qvl_tensor_file_count(files[0]); i++) {
        qvl_tensor a = qvl_tensor_file_get(files[0], i), b = qvl_tensor_file_get(files[1], i);
        assert_string_equal(a.name, b.name);
        assert_same_tensor(&a, &b);
    }
    qvl_tensor_file_close(&files[0]);
    qvl_tensor_file_close(&files[1]);
    /* Again: nothing to do. Other settings, a newer source, a result that is gone or damaged: encoded again. */
    json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json"), NULL);
    assert_int_equal(number(json, "encoded"), 0);
    assert_int_equal(number(json, "there_before"), 2);
    cJSON_Delete(json);
    json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json", "--dtype", "f32"), NULL);
    assert_int_equal(number(json, "encoded"), 2);
    cJSON_Delete(json);
    json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json"), NULL);
    assert_int_equal(number(json, "encoded"), 2);
    assert_int_equal(number(json, "cache_hits"), 2);
    cJSON_Delete(json);
    assert_int_equal(truncate(one, 300), 0);
    json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json"), NULL);
    assert_int_equal(number(json, "encoded"), 1);
    cJSON_Delete(json);
    copy(CHART, in, "b.jpg"); /* in spite of its name a PNG */
    json = json_of(1, QVL_RANDOM("encode", in, "-o", out, "--json"), NULL);
    assert_int_equal(number(json, "encoded"), 1);
    assert_int_equal(number(json, "cache_hits"), 1);
    cJSON_Delete(json);
    r = expect(1, NULL, QVL_RANDOM("encode", in, "-o", out));
    assert_says(r.out, "0 encoded (0 of them found in the cache), 2 there before, 1 refused");
    assert_says(r.err, "qvl: 1 of 3 files were refused:\nqvl: ");
    assert_says(r.err, "cut.jpg: damaged JPEG");
    free_result(&r);
}

static void test_impossible_folders(void **state) {
    (void)state;
    char in[512];
    snprintf(in, sizeof in, "%s", scratch("empty"));
    assert_int_equal(mkdir(in, 0700), 0);
    result r = expect(1, NULL, QVL_RANDOM("encode", in, "-o", scratch("nothing")));
    assert_says(r.err, "there are no pictures or videos in ");
    free_result(&r);
    r = expect(1, NULL, QVL_RANDOM("encode", in));
    assert_says(r.err, "-o must name the folder of the results");
    free_result(&r);
    copy(SCENE, in, "a.jpg");
    r = expect(1, NULL, QVL_RANDOM("encode", in, "-o", "/proc/nowhere"));
    assert_says(r.err, "/proc/nowhere");
    free_result(&r);
}

/* How many threads a process has beside its main one; each must leave Ctrl-C to that. */
static int count_threads(pid_t process) {
    char path[128], line[256];
    int others = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    assert_non_null(tasks);
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == process) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)process, task->d_name);
        FILE *status = fopen(path, "r");
        if (!status) continue; /* it ended meanwhile */
        while (fgets(line, sizeof line, status)) {
            if (strncmp(line, "SigBlk:", 7) != 0) continue;
            if (!(strtoull(line + 7, NULL, 16) >> (SIGINT - 1) & 1)) fail_msg("a thread takes SIGINT: %s", line);
            others++;
        }
        fclose(status);
    }
    closedir(tasks);
    return others;
}

/* Killed in the middle: every result that is there is whole, and the next run makes the rest. */
static void test_killed_and_resumed(void **state) {
    (void)state;
    enum { FILES = 40 };
    char in[512], out[512];
    snprintf(in, sizeof in, "%s", scratch("many"));
    snprintf(out, sizeof out, "%s", scratch("many-out"));
    assert_int_equal(mkdir(in, 0700), 0);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%02d.jpg", i);
        copy(SCENE, in, name);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(126);
        execl(QVL_PROGRAM, QVL_PROGRAM, "encode", in, "-m", QVL_RANDOM_MODEL, "-o", out, "--no-cache",
              (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 6000 && (access(out, F_OK) != 0 || count_files(out) < 5); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_true(count_threads(child) >= 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    int there = 0;
    for (int i = 0; i < FILES; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%02d.jpg.safetensors", out, i);
        if (access(path, F_OK) != 0) continue;
        qvl_tensor_file *file = open_tensors(path);
        qvl_tensor_file_close(&file);
        there++;
    }
    assert_true(there >= 3);
    cJSON *json = run_json(QVL_RANDOM("encode", in, "-o", out, "--json", "--no-cache"));
    assert_int_equal(number(json, "there_before"), there);
    assert_int_equal(number(json, "encoded"), FILES - there);
    cJSON_Delete(json);
}

int main(void) {
    scratch("here"); /* sets XDG_CACHE_HOME */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode_says_hit_or_miss),
        cmocka_unit_test(test_prompt_uses_the_same),
        cmocka_unit_test(test_cache_command),
        cmocka_unit_test(test_unusable_cache),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_impossible_folders),
        cmocka_unit_test(test_killed_and_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
