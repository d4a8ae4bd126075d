#define _GNU_SOURCE
#include "cli/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- files */

static char folder[64];

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void scratch_path(char path[512], const char *name) {
    if (!folder[0]) {
        strcpy(folder, "/tmp/qvl-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        atexit(remove_folder);
        /* What the program remembers goes there, too. */
        char cache[512];
        snprintf(cache, sizeof cache, "%s/cache", folder);
        assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    }
    snprintf(path, 512, "%s/%s", folder, name);
}

const char *scratch(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    scratch_path(path, name);
    return path;
}

int count_files(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

char *read_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    bytes[size] = 0;
    if (count) *count = size;
    return bytes;
}

void write_file(const char *path, const void *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void assert_same_file(const char *a, const char *b) {
    size_t a_count, b_count;
    char *a_bytes = read_file(a, &a_count), *b_bytes = read_file(b, &b_count);
    if (a_count != b_count || memcmp(a_bytes, b_bytes, a_count) != 0) fail_msg("%s and %s differ", a, b);
    free(a_bytes);
    free(b_bytes);
}

/* ---- programs */

static void redirect(int fd, const char *path, int flags) {
    int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, fd) < 0) _exit(126);
    close(file);
}

result run_program(const char *const *arguments, const char *input) {
    char out[512], err[512];
    scratch_path(out, "stdout");
    scratch_path(err, "stderr");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        redirect(STDIN_FILENO, input ? input : "/dev/null", O_RDONLY);
        redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
        redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    int status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    result r = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                .peak_bytes = 1024 * (int64_t)usage.ru_maxrss};
    r.out = read_file(out, NULL);
    r.err = read_file(err, NULL);
    if (r.code < 0) fail_msg("%s %s ended by signal %d: %s", arguments[0], arguments[1], WTERMSIG(status), r.err);
    return r;
}

void free_result(result *r) {
    free(r->out);
    free(r->err);
    *r = (result){0};
}

result expect(int code, const char *input, const char *const *arguments) {
    result r = run_program(arguments, input);
    if (r.code == code) return r;
    for (; *arguments; arguments++) fprintf(stderr, "%s ", *arguments);
    fail_msg("exit code %d instead of %d\nstdout: %s\nstderr: %s", r.code, code, r.out, r.err);
    return r;
}

void run(const char *const *arguments) {
    result r = expect(0, NULL, arguments);
    free_result(&r);
}

cJSON *json_of(int code, const char *const *arguments, const char *input) {
    result r = expect(code, input, arguments);
    cJSON *json = cJSON_Parse(r.out);
    if (!json) fail_msg("this is no JSON: %s", r.out);
    free_result(&r);
    return json;
}

cJSON *run_json(const char *const *arguments) {
    return json_of(0, arguments, NULL);
}

const cJSON *field(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!value) fail_msg("there is no %s", key);
    return value;
}

void assert_ints(const cJSON *array, const int *expected, int count) {
    assert_int_equal(cJSON_GetArraySize(array), count);
    for (int i = 0; i < count; i++) assert_int_equal(cJSON_GetArrayItem(array, i)->valueint, expected[i]);
}

void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in: %s", part, text);
}

/* ---- tensors */

qvl_tensor_file *open_tensors(const char *path) {
    qvl_tensor_file *file;
    qvl_error error;
    if (qvl_tensor_file_open(path, &file, &error)) fail_msg("%s", error.message);
    return file;
}

qvl_tensor tensor_of(const qvl_tensor_file *file, const char *name) {
    qvl_tensor tensor = {0};
    if (!qvl_tensor_file_find(file, name, &tensor)) fail_msg("there is no tensor %s", name);
    return tensor;
}

size_t tensor_bytes(const qvl_tensor *tensor) {
    size_t bytes = qvl_dtype_bits(tensor->dtype) / 8;
    for (int32_t i = 0; i < tensor->ndim; i++) bytes *= (size_t)tensor->shape[i];
    return bytes;
}

void assert_same_tensor(const qvl_tensor *a, const qvl_tensor *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim &&
                memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
    if (!same || memcmp(a->data, b->data, tensor_bytes(a)) != 0) fail_msg("%s and %s differ", a->name, b->name);
}
