/* A folder in the temporary directory for one test, and what the tests of src/model share. */
#ifndef QVL_TEST_FOLDER_H
#define QVL_TEST_FOLDER_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qvl.h"

typedef struct test_folder {
    char path[64];
    char file[384]; /* the last result of folder_file */
} test_folder;

static inline void folder_open(test_folder *folder) {
    strcpy(folder->path, "/tmp/qvl-test-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static inline const char *folder_file(test_folder *folder, const char *name) {
    snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, name);
    return folder->file;
}

static inline void folder_write(test_folder *folder, const char *name, const void *bytes, size_t count) {
    FILE *f = fopen(folder_file(folder, name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static inline void folder_write_text(test_folder *folder, const char *name, const char *text) {
    folder_write(folder, name, text, strlen(text));
}

/* Removes a folder with its files and the folders in it; returns how many entries it had. */
static inline int folder_remove(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char file[512];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%.200s/%.255s", path, e->d_name);
        if (unlink(file) != 0) folder_remove(file);
        count++;
    }
    closedir(dir);
    assert_int_equal(rmdir(path), 0);
    return count;
}

/* Removes the files and the folder; returns how many files there were. */
static inline int folder_close(test_folder *folder) {
    return folder_remove(folder->path);
}

/* The status is an error of the wanted kind and its message says the wanted thing. */
static inline void assert_failure(qvl_status status, const qvl_error *error, qvl_status wanted, const char *says) {
    if (status != wanted || !strstr(error->message, says))
        fail_msg("wanted %s \"...%s...\", got %s \"%s\"", qvl_status_name(wanted), says, qvl_status_name(status),
                 status ? error->message : "");
    assert_int_equal(error->status, status);
}

static inline void assert_ok(qvl_status status, const qvl_error *error) {
    if (status) fail_msg("unexpected failure: %s: %s", qvl_status_name(status), error->message);
}

#endif
