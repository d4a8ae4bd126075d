/* The disk tier: what was committed is there and right, whoever dies; what is damaged is not handed out; what cannot
 * be used is a note. */
#define _GNU_SOURCE
#include "cache/support.h"

#include "base/file.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)

static bool put(qvl_store *store, const qvl_features_shape *shape, uint64_t number) {
    uint8_t key[QVL_SHA256_BYTES];
    make_key(number, key);
    qvl_features f = make_features(shape, number);
    bool good = qvl_store_put(store, key, &f);
    qvl_features_free(&f);
    return good;
}

/* Whether it is there; what is there must be right. */
static bool get(qvl_store *store, const qvl_features_shape *shape, uint64_t number) {
    uint8_t key[QVL_SHA256_BYTES];
    make_key(number, key);
    qvl_features f;
    if (!qvl_store_get(store, key, shape, &f)) return false;
    if (!are_features(&f, shape, number)) fail_msg("entry %llu is wrong", (unsigned long long)number);
    qvl_features_free(&f);
    return true;
}

static qvl_store_totals totals_of(qvl_store *store) {
    qvl_store_totals totals;
    assert_int_equal(qvl_store_count(store, &totals, NULL), QVL_OK);
    return totals;
}

static void test_entries_outlive_the_process(void **state) {
    (void)state;
    const qvl_features_shape f32 = {QVL_F32, 5, 32, 0};
    const char *folder = scratch("outlive");
    qvl_store *store = open_store(folder, 64 * MB, NULL);
    assert_false(get(store, &small_shape, 1));
    assert_true(put(store, &small_shape, 1));
    assert_true(put(store, &small_shape, 1)); /* there already */
    assert_true(put(store, &f32, 2));
    assert_true(get(store, &small_shape, 1));
    qvl_store_close(&store);
    store = open_store(folder, 64 * MB, NULL);
    assert_true(get(store, &small_shape, 1));
    assert_true(get(store, &f32, 2));
    assert_false(get(store, &small_shape, 3));
    assert_int_equal(totals_of(store).entries, 2);
    assert_int_equal(totals_of(store).bytes, 64 + 3 * 3 * 64 * 2 + 64 + 5 * 32 * 4);
    struct stat st;
    char path[600];
    snprintf(path, sizeof path, "%s/features-1", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    snprintf(path, sizeof path, "%s/features-1/data.mdb", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    qvl_store_close(&store);
}

/* An entry of other features than those wanted (a key that stands for something else) is no hit and goes. */
static void test_shapes_must_fit(void **state) {
    (void)state;
    qvl_store *store = open_store(scratch("shapes"), 64 * MB, NULL);
    const qvl_features_shape others[] = {
        {QVL_F32, 3, 64, 2}, {QVL_BF16, 4, 64, 2}, {QVL_BF16, 3, 32, 2}, {QVL_BF16, 3, 64, 1}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(put(store, &small_shape, 1));
        assert_false(get(store, &others[i], 1));
        assert_false(get(store, &small_shape, 1));
        assert_int_equal(totals_of(store).dropped, i + 1);
    }
    qvl_store_close(&store);
}

/* ---- damage */

/* Flips one bit of the file, so far behind every place where the bytes stand (old pages keep them, too). */
static void damage(const char *folder, const void *bytes, size_t count, int offset) {
    char path[600];
    snprintf(path, sizeof path, "%s/features-1/data.mdb", folder);
    uint8_t *file;
    size_t size;
    assert_int_equal(qvl_file_read(path, SIZE_MAX / 2, &file, &size, NULL), QVL_OK);
    int fd = open(path, O_WRONLY), found = 0;
    assert_true(fd >= 0);
    for (uint8_t *at = file; (at = memmem(at, size - (size_t)(at - file), bytes, count)) != NULL; at++, found++) {
        uint8_t flipped = at[offset] ^ 0x10;
        assert_int_equal(pwrite(fd, &flipped, 1, at + offset - file), 1);
    }
    assert_true(found > 0);
    close(fd);
    free(file);
}

static void test_damaged_entries_go(void **state) {
    (void)state;
    const char *folder = scratch("damage");
    qvl_store *store = open_store(folder, 64 * MB, NULL);
    for (uint64_t i = 0; i < 8; i++) assert_true(put(store, &small_shape, i));
    qvl_store_close(&store);
    for (uint64_t i = 0; i < 4; i++) { /* in embeds, in either deepstack array, in the digest */
        qvl_features f = make_features(&small_shape, i);
        const void *const places[3] = {f.embeds, f.deepstack[0], f.deepstack[1]};
        if (i < 3)
            damage(folder, (const char *)places[i] + 32, 16, 0);
        else
            damage(folder, f.embeds, 16, -1);
        qvl_features_free(&f);
    }
    store = open_store(folder, 64 * MB, NULL);
    assert_false(get(store, &small_shape, 0));
    assert_false(get(store, &small_shape, 1));
    assert_int_equal(totals_of(store).entries, 6);
    int64_t good, bad;
    assert_int_equal(qvl_store_verify(store, &good, &bad, NULL), QVL_OK);
    assert_int_equal(good, 4);
    assert_int_equal(bad, 2);
    assert_int_equal(totals_of(store).entries, 4);
    for (uint64_t i = 0; i < 4; i++) assert_false(get(store, &small_shape, i));
    for (uint64_t i = 4; i < 8; i++) assert_true(get(store, &small_shape, i));
    assert_true(put(store, &small_shape, 0)); /* encoded again */
    assert_true(get(store, &small_shape, 0));
    qvl_store_close(&store);
}

/* ---- room */

static int64_t file_size(const char *folder) {
    char path[600];
    struct stat st;
    snprintf(path, sizeof path, "%s/features-1/data.mdb", folder);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void test_budget_and_order(void **state) {
    (void)state;
    const qvl_features_shape large = {QVL_F32, 100, 256, 1}; /* 200 KiB */
    const char *folder = scratch("budget");
    notes heard = {.count = 0};
    qvl_store *store = open_store(folder, 8 * MB, &heard);
    for (uint64_t i = 0; i < 30; i++) assert_true(put(store, &large, i));
    for (uint64_t i = 30; i < 400; i++) {
        assert_true(get(store, &large, 7)); /* used all the time: it stays */
        assert_true(put(store, &large, i));
        assert_true(get(store, &large, i));
        assert_true(totals_of(store).bytes <= 7 * MB);
    }
    assert_true(get(store, &large, 7));
    assert_false(get(store, &large, 8));
    assert_true(file_size(folder) <= 8 * MB);
    assert_true(totals_of(store).entries > 20);
    assert_int_equal(heard.count, 0);
    /* An entry of half the budget or more is not kept, and nothing goes for it. */
    const qvl_features_shape huge = {QVL_F32, 1000, 1024, 0};
    int64_t before = totals_of(store).entries;
    assert_false(put(store, &huge, 1000));
    assert_int_equal(totals_of(store).entries, before);
    assert_int_equal(heard.count, 0);
    qvl_store_close(&store);
    /* With a smaller budget the next entry makes room. */
    store = open_store(folder, 2 * MB, NULL);
    put(store, &large, 2000);
    assert_true(totals_of(store).bytes <= 2 * MB);
    qvl_store_close(&store);
}

/* Sizes of all kinds: gaps in the file are no end of it. */
static void test_mixed_sizes(void **state) {
    (void)state;
    notes heard = {.count = 0};
    qvl_store *store = open_store(scratch("mixed"), 16 * MB, &heard);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 300; i++) {
        const qvl_features_shape shape = {QVL_F32, 1 + (int64_t)(i * 7919 % 700), 512, (int32_t)(i % 3)};
        assert_true(put(store, &shape, i));
        kept += get(store, &shape, i);
    }
    assert_int_equal(kept, 300);
    if (heard.count) fail_msg("%s", heard.text);
    qvl_store_close(&store);
}

static void test_clear_gives_space_back(void **state) {
    (void)state;
    const qvl_features_shape large = {QVL_F32, 100, 256, 1};
    const char *folder = scratch("clear");
    qvl_store *store = open_store(folder, 64 * MB, NULL);
    for (uint64_t i = 0; i < 50; i++) assert_true(put(store, &large, i));
    assert_true(file_size(folder) > 10 * MB);
    assert_int_equal(qvl_store_clear(store, NULL), QVL_OK);
    assert_true(file_size(folder) < MB);
    assert_int_equal(totals_of(store).entries, 0);
    for (uint64_t i = 0; i < 50; i++) assert_false(get(store, &large, i));
    assert_true(put(store, &large, 1));
    assert_true(get(store, &large, 1));
    qvl_store_close(&store);
}

/* ---- what cannot be used */

static void expect_no_store(const char *folder, qvl_status status, const char *word) {
    qvl_store *store;
    qvl_error error = {0};
    assert_int_equal(qvl_store_open(folder, 64 * MB, NULL, NULL, &store, &error), status);
    assert_null(store);
    if (!strstr(error.message, word)) fail_msg("message is: %s", error.message);
}

static void test_one_process_opens_once(void **state) {
    (void)state;
    const char *folder = scratch("once");
    qvl_store *store = open_store(folder, 64 * MB, NULL);
    expect_no_store(folder, QVL_ERROR_ARGUMENT, "open already");
    assert_true(put(store, &small_shape, 1)); /* and that did no harm */
    assert_true(get(store, &small_shape, 1));
    qvl_store_close(&store);
    store = open_store(folder, 64 * MB, NULL);
    qvl_store_close(&store);
}

static void test_unusable_folders(void **state) {
    (void)state;
    char path[600];
    expect_no_store("/proc/nowhere/cache", QVL_ERROR_IO, "/proc/nowhere/cache");
    const char *plain = scratch("plain-file");
    FILE *file = fopen(plain, "w");
    assert_non_null(file);
    fclose(file);
    expect_no_store(plain, QVL_ERROR_IO, "plain-file");
    /* Open to others: they could have put anything there. */
    const char *open_to_all = scratch("open-to-all");
    qvl_store *store = open_store(open_to_all, 64 * MB, NULL);
    qvl_store_close(&store);
    snprintf(path, sizeof path, "%s/features-1", open_to_all);
    assert_int_equal(chmod(path, 0770), 0);
    expect_no_store(open_to_all, QVL_ERROR_IO, "only its owner");
    /* No database at all. */
    const char *garbage = scratch("garbage");
    store = open_store(garbage, 64 * MB, NULL);
    qvl_store_close(&store);
    snprintf(path, sizeof path, "%s/features-1/data.mdb", garbage);
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 3000; i++) fputs("not lmdb ", file);
    fclose(file);
    expect_no_store(garbage, QVL_ERROR_IO, "cannot open the cache");
}

/* A disk that is full, here as a limit on the size of files: reading goes on, with one note. */
static void test_full_disk(void **state) {
    (void)state;
    const qvl_features_shape large = {QVL_F32, 100, 256, 1};
    const char *folder = scratch("full");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        notes heard = {.count = 0};
        qvl_store *store = open_store(folder, 64 * MB, &heard);
        struct rlimit limit = {1 << 20, 1 << 20};
        signal(SIGXFSZ, SIG_IGN);
        bool good = put(store, &large, 0) && setrlimit(RLIMIT_FSIZE, &limit) == 0;
        int failures = 0;
        for (uint64_t i = 1; i < 20; i++) failures += !put(store, &large, i);
        good = good && failures > 10 && get(store, &large, 0) && heard.count == 1;
        qvl_store_close(&store);
        _exit(good ? 0 : 1 + heard.count);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    qvl_store *store = open_store(folder, 64 * MB, NULL);
    assert_true(get(store, &large, 0));
    assert_true(put(store, &large, 1));
    qvl_store_close(&store);
}

/* ---- death */

/* Where a writer is, in memory that outlives it. The calls of LMDB pass through here (tests.cmake). */
typedef enum place { OUTSIDE, IN_TRANSACTION, IN_COMMIT } place;
static _Atomic place *writer_place;

int __real_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn);
int __real_mdb_txn_commit(MDB_txn *txn);
void __real_mdb_txn_abort(MDB_txn *txn);
int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
void __wrap_mdb_txn_abort(MDB_txn *txn);

static void go_to(place where) {
    if (writer_place) *writer_place = where;
}

int __wrap_mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **txn) {
    int code = __real_mdb_txn_begin(env, parent, flags, txn);
    if (!code && !(flags & MDB_RDONLY)) go_to(IN_TRANSACTION);
    return code;
}

int __wrap_mdb_txn_commit(MDB_txn *txn) {
    go_to(IN_COMMIT);
    int code = __real_mdb_txn_commit(txn);
    go_to(OUTSIDE);
    return code;
}

void __wrap_mdb_txn_abort(MDB_txn *txn) {
    __real_mdb_txn_abort(txn);
    go_to(OUTSIDE);
}

/* Puts entries first, first + 1, ... and says after each that it is committed. Never returns. */
static void write_until_killed(const char *folder, const qvl_features_shape *shape, uint64_t first, int say,
                               _Atomic place *where) {
    qvl_store *store;
    writer_place = where;
    if (qvl_store_open(folder, 512 * MB, NULL, NULL, &store, NULL)) _exit(3);
    for (uint64_t i = first;; i++) {
        if (!put(store, shape, i)) _exit(4);
        if (write(say, &i, sizeof i) != sizeof i) _exit(5);
    }
}

static void sleep_ns(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* How many entries the writer has committed. */
static void hear(int said, uint64_t first, uint64_t *committed) {
    uint64_t number;
    while (read(said, &number, sizeof number) == sizeof number) *committed = number - first + 1;
}

/* 200 times a writer is killed at a random moment, while another one goes on undisturbed. */
static void test_kills_during_writes(void **state) {
    (void)state;
    enum { KILLS = 200, STRIDE = 1000 };
    const qvl_features_shape shape = {QVL_BF16, 40, 256, 1}; /* 40 KiB: many pages */
    const char *folder = scratch("kills");
    qvl_store *reader = open_store(folder, 512 * MB, NULL);
    uint64_t committed[KILLS] = {0}, total = 0;
    unsigned seed = 20261129;
    int unannounced = 0, found_at[3] = {0};
    _Atomic place *where = mmap(NULL, sizeof *where, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(where, MAP_FAILED);
    for (uint64_t k = 0; k < KILLS; k++) {
        int said[2];
        assert_int_equal(pipe2(said, O_NONBLOCK), 0);
        *where = OUTSIDE;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_until_killed(folder, &shape, k * STRIDE, said[1], where);
        close(said[1]);
        /* While it opens, or some time into one of its first writes. */
        seed = seed * 1103515245 + 12345;
        uint64_t wanted = seed >> 16 & 3;
        for (int i = 0; i < 10000 && committed[k] < wanted; i++, sleep_ns(200000))
            hear(said[0], k * STRIDE, &committed[k]);
        sleep_ns((long)(seed >> 18 & 1023) * 8000);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        found_at[*where]++;
        hear(said[0], k * STRIDE, &committed[k]);
        close(said[0]);
        /* All that it said is there and right, and what comes after, if it is there, is right too. */
        for (uint64_t i = 0; i < committed[k]; i++) assert_true(get(reader, &shape, k * STRIDE + i));
        unannounced += get(reader, &shape, k * STRIDE + committed[k]);
        total += committed[k];
        assert_true(put(reader, &small_shape, ((uint64_t)1 << 40) + k)); /* the lock of the dead is free */
    }
    printf("%llu entries by %d killed writers, %d more that were committed and not announced\n",
           (unsigned long long)total, KILLS, unannounced);
    printf("killed between begin and commit: %d, in a commit: %d, elsewhere: %d\n", found_at[IN_TRANSACTION],
           found_at[IN_COMMIT], found_at[OUTSIDE]);
    assert_true(total > KILLS);
    /* Or nothing was tested: a kill elsewhere cannot harm. */
    assert_true(found_at[IN_TRANSACTION] + found_at[IN_COMMIT] >= KILLS / 10);
    assert_true(found_at[IN_COMMIT] > 0);
    munmap((void *)(uintptr_t)where, sizeof *where);
    qvl_store_close(&reader);
    reader = open_store(folder, 512 * MB, NULL);
    for (uint64_t k = 0; k < KILLS; k++) {
        for (uint64_t i = 0; i < committed[k]; i++) assert_true(get(reader, &shape, k * STRIDE + i));
        assert_true(get(reader, &small_shape, ((uint64_t)1 << 40) + k));
    }
    int64_t good, bad;
    assert_int_equal(qvl_store_verify(reader, &good, &bad, NULL), QVL_OK);
    assert_int_equal(bad, 0);
    assert_true(good >= (int64_t)total + KILLS);
    qvl_store_close(&reader);
}

/* Two processes write to one folder that is too small for both, and read what the other writes. */
static void test_two_processes(void **state) {
    (void)state;
    enum { ENTRIES = 300 };
    const qvl_features_shape shape = {QVL_BF16, 40, 256, 1};
    const char *folder = scratch("two");
    pid_t children[2];
    for (int c = 0; c < 2; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        if (children[c]) continue;
        qvl_store *store;
        notes heard = {.count = 0};
        if (qvl_store_open(folder, 8 * MB, take_note, &heard, &store, NULL)) _exit(3);
        int mine = 0;
        for (uint64_t i = 0; i < ENTRIES; i++) {
            mine += put(store, &shape, 2 * i + (uint64_t)c) && get(store, &shape, 2 * i + (uint64_t)c);
            get(store, &shape, 2 * i + (uint64_t)!c); /* right, if it is there */
        }
        qvl_store_close(&store);
        _exit(mine > ENTRIES * 9 / 10 && heard.count == 0 ? 0 : 1);
    }
    for (int c = 0; c < 2; c++) {
        int status;
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    qvl_store *store = open_store(folder, 8 * MB, NULL);
    int64_t good, bad;
    assert_int_equal(qvl_store_verify(store, &good, &bad, NULL), QVL_OK);
    assert_int_equal(bad, 0);
    assert_true(good > 20); /* the budget holds about 190, less what a reader of old pages keeps */
    qvl_store_close(&store);
}

/* Reads the store as it is now, until a byte comes or its end. Returns when the reading has begun. */
static pid_t keep_reading(const char *folder, int stop) {
    int begun[2];
    char path[600], byte = 0;
    snprintf(path, sizeof path, "%s/features-1", folder);
    assert_int_equal(pipe(begun), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        MDB_env *env;
        MDB_txn *txn;
        if (mdb_env_create(&env) || mdb_env_open(env, path, MDB_RDONLY | MDB_NOTLS, 0600)) _exit(3);
        if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) || write(begun[1], &byte, 1) != 1) _exit(4);
        if (read(stop, &byte, 1) != 1) _exit(5);
        mdb_txn_abort(txn);
        mdb_env_close(env);
        _exit(0);
    }
    close(begun[1]);
    assert_int_equal(read(begun[0], &byte, 1), 1);
    close(begun[0]);
    return child;
}

/* What another process reads cannot be written anew, so that there comes to be no room: until it ends, in whatever way. */
static void test_slow_readers(void **state) {
    (void)state;
    const qvl_features_shape shape = {QVL_BF16, 40, 256, 1};
    for (int killed = 0; killed < 2; killed++) {
        const char *folder = scratch(killed ? "killed_reader" : "slow_reader");
        notes heard = {.count = 0};
        qvl_store *store = open_store(folder, 8 * MB, &heard);
        uint64_t i = 0;
        int stop[2], status;
        for (; i < 50; i++) assert_true(put(store, &shape, i));
        assert_int_equal(pipe(stop), 0);
        pid_t child = keep_reading(folder, stop[0]);
        while (i < 2000 && put(store, &shape, i)) i++;
        assert_true(i < 2000);
        assert_false(put(store, &shape, i));
        if (killed)
            assert_int_equal(kill(child, SIGKILL), 0);
        else
            assert_int_equal(write(stop[1], "", 1), 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (uint64_t end = i + 200; i < end; i++) assert_true(put(store, &shape, i) && get(store, &shape, i));
        assert_int_equal(heard.count, 0);
        qvl_store_close(&store);
        close(stop[0]);
        close(stop[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_outlive_the_process),
        cmocka_unit_test(test_shapes_must_fit),
        cmocka_unit_test(test_damaged_entries_go),
        cmocka_unit_test(test_budget_and_order),
        cmocka_unit_test(test_mixed_sizes),
        cmocka_unit_test(test_clear_gives_space_back),
        cmocka_unit_test(test_one_process_opens_once),
        cmocka_unit_test(test_unusable_folders),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_kills_during_writes),
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_slow_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
