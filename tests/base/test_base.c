/* Errors, checked sizes, the arena, files that are whole or not at all, and the thread pool. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/pool.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_errors(void **state) {
    (void)state;
    qvl_error error = {0};
    assert_int_equal(qvl_fail(&error, QVL_ERROR_LIMIT, "%d is over %d", 5, 4), QVL_ERROR_LIMIT);
    assert_string_equal(error.message, "5 is over 4");
    assert_int_equal(qvl_fail(NULL, QVL_ERROR_IO, "nobody listens"), QVL_ERROR_IO);
    qvl_fail(&error, QVL_ERROR_IO, "a name with %s in it", "\n\x1b[31m");
    assert_string_equal(error.message, "a name with ??[31m in it");
    qvl_error_prefix(&error, QVL_ERROR_FORMAT, "file.png");
    assert_int_equal(error.status, QVL_ERROR_FORMAT);
    assert_memory_equal(error.message, "file.png: a name", 16);
    char longer[4000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    qvl_fail(&error, QVL_ERROR_IO, "%s", longer);
    assert_true(strlen(error.message) == sizeof error.message - 1);
    qvl_error_prefix(&error, QVL_ERROR_IO, longer);
    assert_true(strlen(error.message) < sizeof error.message);
    assert_string_equal(qvl_status_name(QVL_ERROR_NUMERIC), "numeric");
    assert_string_equal(qvl_status_name((qvl_status)99), "unknown");
}

static void test_dtypes(void **state) {
    (void)state;
    assert_int_equal(qvl_dtype_bits(QVL_BF16), 16);
    assert_int_equal(qvl_dtype_bits(QVL_F4), 4);
    assert_int_equal(qvl_dtype_bits((qvl_dtype)77), 0);
    assert_string_equal(qvl_dtype_name(QVL_F8_E4M3), "F8_E4M3");
    assert_string_equal(qvl_dtype_name((qvl_dtype)-1), "?");
}

static void test_sizes(void **state) {
    (void)state;
    size_t s = 7;
    int64_t i = 7;
    assert_false(qvl_mul_size(SIZE_MAX, 2, &s));
    assert_false(qvl_add_size(SIZE_MAX, 1, &s));
    assert_false(qvl_mul_i64(INT64_MAX, 2, &i));
    assert_false(qvl_mul_i64(-1, 2, &i));
    assert_true(qvl_mul_i64(3, 4, &i) && i == 12);
    assert_null(qvl_alloc(SIZE_MAX / 2, 3));
    assert_null(qvl_alloc(0, 3));
    assert_null(qvl_alloc(SIZE_MAX - 10, 1));
    uint8_t *p = qvl_calloc(100, 3);
    assert_int_equal((uintptr_t)p % QVL_ALIGN, 0);
    for (int j = 0; j < 300; j++) assert_int_equal(p[j], 0);
    qvl_free(p);
    qvl_free(NULL);
}

static void test_arena(void **state) {
    (void)state;
    qvl_arena plan = {0};
    assert_null(qvl_arena_take(&plan, 10, 4));
    assert_null(qvl_arena_take(&plan, 1, 1));
    assert_int_equal(plan.used, 128);
    assert_false(plan.overflow);
    qvl_arena arena = {.base = qvl_alloc(plan.used, 1), .capacity = plan.used};
    assert_ptr_equal(qvl_arena_take(&arena, 10, 4), arena.base);
    assert_ptr_equal(qvl_arena_take(&arena, 1, 1), arena.base + 64);
    assert_null(qvl_arena_take(&arena, 1, 1));
    assert_true(arena.overflow);
    qvl_free(arena.base);
    qvl_arena huge = {0};
    qvl_arena_take(&huge, SIZE_MAX, 2);
    assert_true(huge.overflow);
}

static int files_in(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void test_files(void **state) {
    (void)state;
    char folder[] = "/tmp/qvl-base-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = qvl_path_join(folder, "a"), *missing = qvl_path_join(folder, "no/such");
    qvl_error error = {0};
    qvl_writer writer;
    assert_int_equal(qvl_writer_open(&writer, path, &error), QVL_OK);
    qvl_writer_put(&writer, "hello", 5);
    assert_false(qvl_file_exists(path)); /* not there before it is whole */
    assert_int_equal(qvl_writer_commit(&writer, &error), QVL_OK);
    assert_int_equal(files_in(folder), 1);

    uint8_t *bytes = NULL;
    size_t count = 0;
    assert_int_equal(qvl_file_read(path, 5, &bytes, &count, &error), QVL_OK);
    assert_int_equal(count, 5);
    assert_string_equal((char *)bytes, "hello");
    qvl_free(bytes);
    assert_int_equal(qvl_file_read(path, 4, &bytes, &count, &error), QVL_ERROR_LIMIT);
    assert_non_null(strstr(error.message, path));

    qvl_map map;
    assert_int_equal(qvl_map_open(path, &map, &error), QVL_OK);
    assert_memory_equal(map.bytes, "hello", 5);
    qvl_map_close(&map);
    assert_int_equal(qvl_map_open(folder, &map, &error), QVL_ERROR_IO);
    assert_int_equal(qvl_map_open(missing, &map, &error), QVL_ERROR_IO);
    assert_int_equal(qvl_file_read(missing, 10, &bytes, &count, &error), QVL_ERROR_IO);
    assert_non_null(strstr(error.message, "No such file"));

    assert_int_equal(qvl_writer_open(&writer, path, &error), QVL_OK);
    qvl_writer_put(&writer, "other", 5);
    qvl_writer_abort(&writer); /* the old file stays, nothing else does */
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(qvl_writer_open(&writer, missing, &error), QVL_ERROR_IO);
    assert_int_equal(qvl_writer_open(&writer, folder, &error), QVL_ERROR_IO);
    assert_int_equal(qvl_writer_open(&writer, "/dev/null", &error), QVL_ERROR_IO);
    unlink(path);
    rmdir(folder);
    qvl_free(path);
    qvl_free(missing);
}

typedef struct tally {
    atomic_int seen[1000];
    atomic_int bad_worker;
    int threads;
    qvl_pool *pool;
} tally;

static void mark(void *user, int64_t task, int worker) {
    tally *t = user;
    atomic_fetch_add(&t->seen[task], 1);
    if (worker < 0 || worker >= t->threads) atomic_fetch_add(&t->bad_worker, 1);
    uint8_t *scratch = qvl_pool_scratch(t->pool, worker);
    scratch[0] = (uint8_t)task;
    scratch[QVL_WORKER_SCRATCH - 1] = (uint8_t)task;
}

static void *run_many(void *user) {
    tally *t = user;
    for (int i = 0; i < 50; i++) qvl_pool_run(t->pool, 1000, mark, t);
    return NULL;
}

/* Runs that follow each other at once, each with its own data: a helper that comes late must not work on the last one's. */
typedef struct short_run {
    atomic_int seen[3];
    int64_t tasks;
} short_run;

static void mark_one(void *user, int64_t task, int worker) {
    (void)worker;
    short_run *run = user;
    if (task < run->tasks) atomic_fetch_add(&run->seen[task], 1);
}

static void mark_other(void *user, int64_t task, int worker) {
    (void)worker;
    short_run *run = user;
    if (task < run->tasks) atomic_fetch_add(&run->seen[task], 100);
}

static void test_short_runs(void **state) {
    (void)state;
    qvl_pool *pool;
    assert_int_equal(qvl_pool_open(5, &pool, NULL), QVL_OK);
    for (int i = 0; i < 4000; i++) {
        short_run run = {.tasks = i % 4};
        qvl_pool_run(pool, run.tasks, i % 2 ? mark_one : mark_other, &run);
        for (int64_t k = 0; k < 3; k++) assert_int_equal(run.seen[k], k < run.tasks ? (i % 2 ? 1 : 100) : 0);
    }
    qvl_pool_close(&pool);
}

static void test_pool(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        static tally t;
        memset(&t, 0, sizeof t);
        t.threads = threads;
        assert_int_equal(qvl_pool_open(threads, &t.pool, NULL), QVL_OK);
        assert_int_equal(qvl_pool_threads(t.pool), threads);
        for (int64_t tasks = 0; tasks <= 1000; tasks += 37) {
            memset(t.seen, 0, sizeof t.seen);
            qvl_pool_run(t.pool, tasks, mark, &t);
            for (int64_t i = 0; i < 1000; i++) assert_int_equal(t.seen[i], i < tasks);
        }
        memset(t.seen, 0, sizeof t.seen);
        pthread_t other[3]; /* several owners take turns */
        for (int i = 0; i < 3; i++) pthread_create(&other[i], NULL, run_many, &t);
        run_many(&t);
        for (int i = 0; i < 3; i++) pthread_join(other[i], NULL);
        for (int64_t i = 0; i < 1000; i++) assert_int_equal(t.seen[i], 200);
        assert_int_equal(t.bad_worker, 0);
        qvl_pool_close(&t.pool);
        assert_null(t.pool);
        qvl_pool_close(&t.pool);
    }
    qvl_error error = {0};
    qvl_pool *pool = NULL;
    assert_int_equal(qvl_pool_open(257, &pool, &error), QVL_ERROR_ARGUMENT);
    assert_int_equal(qvl_pool_open(-1, &pool, &error), QVL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "-1"));
    assert_true(qvl_online_processors() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_dtypes), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_arena),      cmocka_unit_test(test_files),  cmocka_unit_test(test_pool),
        cmocka_unit_test(test_short_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
