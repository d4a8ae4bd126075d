/* Four tables: features (key -> header and arrays), uses (number -> key and size, in order of last use), numbers (key
 * -> number) and totals. One transaction changes them together. */
#define _GNU_SOURCE
#include "cache/store_lmdb.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The layout of tables and values: raised when either changes. */
#define FOLDER "features-1"
#define MAGIC "qvlfeat1"

typedef struct header {
    char magic[8];
    uint32_t dtype, deepstack_count;
    int64_t tokens, width;
    uint8_t digest[QVL_SHA256_BYTES]; /* of the key, of what stands before this, and of the arrays */
} header;

_Static_assert(sizeof(header) == 64, "a header has no padding");

typedef struct totals {
    uint64_t entries, bytes, next; /* next: number of the next use */
} totals;

/* A use. Its key in the table is the number, most significant byte first, so that the oldest is the first. */
typedef struct use {
    uint8_t key[QVL_SHA256_BYTES];
    uint64_t bytes;
} use;

struct qvl_store {
    char *folder;
    size_t map;     /* bytes of the file at most */
    uint64_t limit; /* bytes of values at most; the rest is for tables and gaps */
    int users;      /* file whose locks say which processes use the store */
    MDB_env *env;
    MDB_dbi features, uses, numbers, totals;
    pthread_rwlock_t in_use; /* written to while env is opened anew */
    qvl_log_fn log;
    void *log_user;
    atomic_bool noted, full;
    atomic_bool crowded; /* the last entry found no room: old pages are still being read */
    atomic_llong dropped;
};

/* ---- notes */

static void note(qvl_store *store, const char *what, int code) {
    if (atomic_exchange(&store->noted, true) || !store->log) return;
    char line[1024];
    snprintf(line, sizeof line, "the cache in %.700s: %s: %s", store->folder, what, mdb_strerror(code));
    store->log(line, store->log_user);
}

/* ---- opening */

static struct flock lock_of(short type, off_t at) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

/* Processes of different containers may have the same number. */
static off_t process_byte(void) {
    struct stat st;
    off_t space = stat("/proc/self/ns/pid", &st) == 0 ? (off_t)(st.st_ino & 0x3fffffff) : 0;
    return (space << 24) + getpid();
}

/* Byte 0 of the file is locked by all who use the store together, a byte of its own by each process alone: LMDB breaks
 * when a process opens the same file twice, and this tells. The locks end with their process. */
static qvl_status lock_users(qvl_store *store, qvl_error *error) {
    char *path = qvl_path_join(store->folder, "users");
    if (!path) return qvl_fail_memory(error, "file name", strlen(store->folder), 1);
    store->users = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    qvl_status status = QVL_OK;
    struct flock own = lock_of(F_WRLCK, process_byte()), together = lock_of(F_RDLCK, 0);
    if (store->users < 0)
        status = qvl_fail(error, QVL_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    else if (fcntl(store->users, F_OFD_SETLK, &own) == 0 && fcntl(store->users, F_OFD_SETLKW, &together) == 0)
        status = QVL_OK;
    else if (errno == EAGAIN || errno == EACCES)
        status = qvl_fail(error, QVL_ERROR_ARGUMENT,
                          "this process has the cache in %s open already; one qvl_cache serves all sessions",
                          store->folder);
    else
        status = qvl_fail(error, QVL_ERROR_IO, "cannot lock %s: %s", path, strerror(errno));
    qvl_free(path);
    return status;
}

/* Nobody else may put anything in the folder: what it holds is handed out as features. */
static qvl_status make_own_folder(const char *parent, char **path, qvl_error *error) {
    *path = qvl_path_join(parent, FOLDER);
    if (!*path) return qvl_fail_memory(error, "file name", strlen(parent), 1);
    qvl_status status = qvl_folder_make(parent, error);
    if (!status) status = qvl_folder_make(*path, error);
    if (status) return status;
    struct stat st;
    if (lstat(*path, &st) != 0)
        return qvl_fail(error, QVL_ERROR_IO, "cannot look at %s: %s", *path, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return qvl_fail(error, QVL_ERROR_IO, "%s is not a folder that only its owner, this user, may enter",
                        *path);
    return QVL_OK;
}

static int open_tables(qvl_store *store) {
    MDB_txn *txn;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (code) return code;
    const struct {
        const char *name;
        MDB_dbi *table;
    } tables[] = {{"features", &store->features},
                  {"uses", &store->uses},
                  {"numbers", &store->numbers},
                  {"totals", &store->totals}};
    for (size_t i = 0; i < 4 && !code; i++) code = mdb_dbi_open(txn, tables[i].name, MDB_CREATE, tables[i].table);
    if (!code) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}

/* Data is on disk before a commit returns; that it is the newest may be lost with the machine, not with a process. */
static int open_env(qvl_store *store) {
    int code = mdb_env_create(&store->env), dead;
    if (!code) code = mdb_env_set_maxdbs(store->env, 4);
    if (!code) code = mdb_env_set_maxreaders(store->env, 1024);
    if (!code) code = mdb_env_set_mapsize(store->env, store->map);
    if (!code) code = mdb_env_open(store->env, store->folder, MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMETASYNC, 0600);
    if (!code) code = mdb_reader_check(store->env, &dead);
    if (!code) code = open_tables(store);
    if (code) {
        mdb_env_close(store->env);
        store->env = NULL;
    }
    return code;
}

qvl_status qvl_store_open(const char *folder, int64_t budget, qvl_log_fn log, void *log_user, qvl_store **out,
                          qvl_error *error) {
    *out = NULL;
    qvl_store *store = qvl_calloc(1, sizeof *store);
    if (!store) return qvl_fail_memory(error, "cache", 1, sizeof *store);
    store->users = -1;
    store->log = log;
    store->log_user = log_user;
    pthread_rwlock_init(&store->in_use, NULL);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    store->map = (size_t)budget / page * page;
    store->limit = (uint64_t)budget / 8 * 7;
    qvl_status status = make_own_folder(folder, &store->folder, error);
    if (!status) status = lock_users(store, error);
    int code = status ? 0 : open_env(store);
    if (code)
        status =
            qvl_fail(error, QVL_ERROR_IO, "cannot open the cache in %s: %s", store->folder, mdb_strerror(code));
    if (status) qvl_store_close(&store);
    *out = store;
    return status;
}

void qvl_store_close(qvl_store **pointer) {
    if (!pointer || !*pointer) return;
    qvl_store *store = *pointer;
    *pointer = NULL;
    if (store->env) mdb_env_close(store->env);
    if (store->users >= 0) close(store->users);
    pthread_rwlock_destroy(&store->in_use);
    qvl_free(store->folder);
    qvl_free(store);
}

/* ---- transactions */

static int begin(qvl_store *store, unsigned flags, MDB_txn **txn) {
    for (int attempt = 0;; attempt++) {
        pthread_rwlock_rdlock(&store->in_use);
        int code = store->env ? mdb_txn_begin(store->env, NULL, flags, txn) : MDB_INVALID;
        if (!code) return 0;
        pthread_rwlock_unlock(&store->in_use);
        if (code != MDB_MAP_RESIZED || attempt) return code;
        /* Another process has a larger budget. */
        pthread_rwlock_wrlock(&store->in_use);
        if (store->env) mdb_env_set_mapsize(store->env, 0);
        pthread_rwlock_unlock(&store->in_use);
    }
}

static void end(qvl_store *store, MDB_txn *txn) {
    mdb_txn_abort(txn);
    pthread_rwlock_unlock(&store->in_use);
}

static int commit(qvl_store *store, MDB_txn *txn) {
    int code = mdb_txn_commit(txn);
    pthread_rwlock_unlock(&store->in_use);
    return code;
}

static MDB_val value_of(const void *bytes, size_t count) {
    return (MDB_val){count, (void *)(uintptr_t)bytes};
}

static int read_totals(const qvl_store *store, MDB_txn *txn, totals *t) {
    MDB_val name = value_of("totals", 6), value;
    *t = (totals){0};
    int code = mdb_get(txn, store->totals, &name, &value);
    if (code == MDB_NOTFOUND) return 0;
    if (!code && value.mv_size != sizeof *t) return MDB_CORRUPTED;
    if (!code) memcpy(t, value.mv_data, sizeof *t);
    return code;
}

static int write_totals(const qvl_store *store, MDB_txn *txn, const totals *t) {
    MDB_val name = value_of("totals", 6), value = value_of(t, sizeof *t);
    return mdb_put(txn, store->totals, &name, &value, 0);
}

static void print_number(uint64_t number, uint8_t text[8]) {
    for (int i = 0; i < 8; i++) text[i] = (uint8_t)(number >> (56 - 8 * i));
}

static uint64_t scan_number(const uint8_t text[8]) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number = number << 8 | text[i];
    return number;
}

/* Makes an entry the one used last. */
static int add_use(const qvl_store *store, MDB_txn *txn, const use *u, totals *t) {
    uint8_t number[8];
    print_number(t->next++, number);
    MDB_val key = value_of(u->key, sizeof u->key), at = value_of(number, 8), what = value_of(u, sizeof *u);
    int code = mdb_put(txn, store->uses, &at, &what, 0);
    return code ? code : mdb_put(txn, store->numbers, &key, &at, 0);
}

/* The number of an entry's last use; MDB_NOTFOUND: there is no such entry. */
static int find_use(const qvl_store *store, MDB_txn *txn, const uint8_t *key, uint8_t number[8]) {
    MDB_val name = value_of(key, QVL_SHA256_BYTES), at;
    int code = mdb_get(txn, store->numbers, &name, &at);
    if (!code && at.mv_size != 8) return MDB_CORRUPTED;
    if (!code) memcpy(number, at.mv_data, 8);
    return code;
}

static int remove_entry(const qvl_store *store, MDB_txn *txn, const uint8_t number[8], totals *t) {
    MDB_val at = value_of(number, 8), what;
    use u;
    int code = mdb_get(txn, store->uses, &at, &what);
    if (!code && what.mv_size != sizeof u) return MDB_CORRUPTED;
    if (code) return code;
    memcpy(&u, what.mv_data, sizeof u);
    MDB_val key = value_of(u.key, sizeof u.key);
    code = mdb_del(txn, store->features, &key, NULL);
    if (!code) code = mdb_del(txn, store->numbers, &key, NULL);
    if (!code) code = mdb_del(txn, store->uses, &at, NULL);
    t->entries--;
    t->bytes -= u.bytes;
    return code;
}

/* Removes the entries used longest ago until values take no more than this. */
static int shrink_to(const qvl_store *store, MDB_txn *txn, uint64_t bytes, totals *t) {
    while (t->bytes > bytes) {
        MDB_cursor *cursor;
        MDB_val at, what;
        uint8_t number[8];
        int code = mdb_cursor_open(txn, store->uses, &cursor);
        if (code) return code;
        code = mdb_cursor_get(cursor, &at, &what, MDB_FIRST);
        if (!code) memcpy(number, at.mv_data, 8);
        mdb_cursor_close(cursor);
        if (!code) code = remove_entry(store, txn, number, t);
        if (code) return code;
    }
    return 0;
}

/* ---- values */

static const void *array_of(const qvl_features *f, int32_t index) {
    return index ? f->deepstack[index - 1] : f->embeds;
}

static header header_of(const qvl_features *f) {
    header h = {.dtype = (uint32_t)f->dtype,
                .deepstack_count = (uint32_t)f->deepstack_count,
                .tokens = f->tokens,
                .width = f->width};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    return h;
}

static bool digest_of(const uint8_t *key, const header *h, const qvl_features *f, uint8_t *digest) {
    qvl_part parts[3 + QVL_MAX_DEEPSTACK] = {{key, QVL_SHA256_BYTES}, {h, offsetof(header, digest)}};
    size_t count = 2;
    for (int32_t i = 0; i <= f->deepstack_count; i++)
        parts[count++] = (qvl_part){array_of(f, i), qvl_features_array_bytes(f)};
    return qvl_sha256_parts(parts, count, digest, NULL) == QVL_OK;
}

/* Views of a value's arrays, if it is as long as its header says. */
static bool parse(const MDB_val *value, header *h, qvl_features *f) {
    if (value->mv_size < sizeof *h) return false;
    memcpy(h, value->mv_data, sizeof *h);
    int64_t count, bytes;
    size_t bits = qvl_dtype_bits((qvl_dtype)h->dtype), rest = value->mv_size - sizeof *h;
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->deepstack_count > QVL_MAX_DEEPSTACK || bits < 8 ||
        h->tokens < 1 || h->width < 1 || !qvl_mul_i64(h->tokens, h->width, &count) ||
        !qvl_mul_i64(count, (int64_t)(bits / 8), &bytes) || (uint64_t)bytes > rest ||
        (size_t)bytes * (1 + (size_t)h->deepstack_count) != rest)
        return false;
    *f = (qvl_features){.dtype = (qvl_dtype)h->dtype,
                        .tokens = h->tokens,
                        .width = h->width,
                        .deepstack_count = (int32_t)h->deepstack_count};
    char *at = (char *)value->mv_data + sizeof *h;
    f->embeds = at;
    for (int32_t i = 0; i < f->deepstack_count; i++) f->deepstack[i] = at + (size_t)(i + 1) * (size_t)bytes;
    return true;
}

static bool same_shape(const qvl_features *f, const qvl_features_shape *shape) {
    return f->dtype == shape->dtype && f->tokens == shape->tokens && f->width == shape->width &&
           f->deepstack_count == shape->deepstack_count;
}

/* ---- reading */

static void drop(qvl_store *store, const uint8_t *key) {
    MDB_txn *txn;
    totals t;
    uint8_t number[8];
    atomic_fetch_add(&store->dropped, 1);
    int code = begin(store, 0, &txn);
    if (!code) {
        code = find_use(store, txn, key, number);
        if (!code) code = read_totals(store, txn, &t);
        if (!code) code = remove_entry(store, txn, number, &t);
        if (!code) code = write_totals(store, txn, &t);
        if (code)
            end(store, txn);
        else
            code = commit(store, txn);
    }
    if (code && code != MDB_NOTFOUND) note(store, "a bad entry could not be dropped", code);
}

/* An entry that many others were used after is put to the front. Those of the newer half stay: a hit that writes
 * waits for the disk. */
static void touch(qvl_store *store, const uint8_t *key, const uint8_t number[8], const totals *seen) {
    if (seen->next - scan_number(number) <= seen->entries / 2 + 1) return;
    MDB_txn *txn;
    if (begin(store, 0, &txn)) return;
    totals t;
    use u;
    uint8_t now[8];
    MDB_val at = value_of(number, 8), what;
    int code = find_use(store, txn, key, now);
    if (!code && memcmp(now, number, 8) != 0) code = MDB_NOTFOUND; /* somebody else did it */
    if (!code) code = read_totals(store, txn, &t);
    if (!code) code = mdb_get(txn, store->uses, &at, &what);
    if (!code && what.mv_size != sizeof u) code = MDB_CORRUPTED;
    if (!code) {
        memcpy(&u, what.mv_data, sizeof u);
        code = mdb_del(txn, store->uses, &at, NULL);
    }
    if (!code) code = add_use(store, txn, &u, &t);
    if (!code) code = write_totals(store, txn, &t);
    if (code)
        end(store, txn);
    else
        code = commit(store, txn);
    if (code && code != MDB_NOTFOUND) note(store, "the use of an entry could not be noted down", code);
}

/* Copies the arrays out of the file; only the copy is checked and used. */
static bool copy_out(const qvl_features *view, const qvl_features_shape *shape, qvl_features *features) {
    if (qvl_features_alloc(shape, features, NULL)) return false;
    for (int32_t i = 0; i <= view->deepstack_count; i++)
        memcpy((void *)(uintptr_t)array_of(features, i), array_of(view, i), qvl_features_array_bytes(view));
    return true;
}

bool qvl_store_get(qvl_store *store, const uint8_t key[QVL_SHA256_BYTES], const qvl_features_shape *shape,
                   qvl_features *features) {
    MDB_txn *txn;
    *features = (qvl_features){0};
    int code = begin(store, MDB_RDONLY, &txn);
    if (code) {
        note(store, "it cannot be read", code);
        return false;
    }
    MDB_val name = value_of(key, QVL_SHA256_BYTES), value;
    header h;
    totals t;
    uint8_t number[8], digest[QVL_SHA256_BYTES];
    qvl_features view;
    bool good = false, copied = false;
    code = mdb_get(txn, store->features, &name, &value);
    if (!code) code = find_use(store, txn, key, number);
    if (!code) code = read_totals(store, txn, &t);
    if (!code) good = parse(&value, &h, &view) && same_shape(&view, shape);
    if (good) copied = copy_out(&view, shape, features);
    end(store, txn);
    if (code && code != MDB_NOTFOUND) note(store, "it cannot be read", code);
    if (code || (good && !copied)) return false;
    good = good && digest_of(key, &h, features, digest) && memcmp(digest, h.digest, sizeof digest) == 0;
    if (good) {
        touch(store, key, number, &t);
    } else {
        qvl_features_free(features);
        drop(store, key);
    }
    return good;
}

/* ---- writing */

static int write_entry(qvl_store *store, MDB_txn *txn, const uint8_t *key, const header *h, const qvl_features *f,
                       totals *t) {
    size_t bytes = qvl_features_array_bytes(f), size = sizeof *h + qvl_features_bytes(f);
    MDB_val name = value_of(key, QVL_SHA256_BYTES), value = {size, NULL};
    int code = shrink_to(store, txn, store->limit - size, t);
    if (!code) code = mdb_put(txn, store->features, &name, &value, MDB_RESERVE | MDB_NOOVERWRITE);
    if (code) return code;
    char *at = value.mv_data;
    memcpy(at, h, sizeof *h);
    for (int32_t i = 0; i <= f->deepstack_count; i++)
        memcpy(at + sizeof *h + (size_t)i * bytes, array_of(f, i), bytes);
    use u = {.bytes = size};
    memcpy(u.key, key, sizeof u.key);
    code = add_use(store, txn, &u, t);
    t->entries++;
    t->bytes += size;
    return code ? code : write_totals(store, txn, t);
}

/* 0, or MDB_KEYEXIST where the entry is there already. */
static int put_once(qvl_store *store, const uint8_t *key, const header *h, const qvl_features *f) {
    MDB_txn *txn;
    totals t;
    uint8_t number[8];
    int code = begin(store, 0, &txn);
    if (code) return code;
    code = find_use(store, txn, key, number);
    code = code == MDB_NOTFOUND ? 0 : code ? code : MDB_KEYEXIST;
    if (!code) code = read_totals(store, txn, &t);
    if (!code) code = write_entry(store, txn, key, h, f, &t);
    if (!code) return commit(store, txn);
    end(store, txn);
    return code;
}

/* The pages that a killed reader saw are kept until then. */
static int forget_dead_readers(qvl_store *store) {
    int dead = 0;
    pthread_rwlock_rdlock(&store->in_use);
    int code = store->env ? mdb_reader_check(store->env, &dead) : 0;
    pthread_rwlock_unlock(&store->in_use);
    return code;
}

/* Values need room in one piece, and what is removed is room only two commits later: so if there is none, much is
 * removed at once. */
static int make_room(qvl_store *store, uint64_t bytes) {
    MDB_txn *txn;
    totals t;
    int code = forget_dead_readers(store);
    for (int commits = 0; commits < 2 && !code; commits++) {
        code = begin(store, 0, &txn);
        if (code) return code;
        code = read_totals(store, txn, &t);
        if (!code) code = shrink_to(store, txn, bytes, &t);
        if (!code) code = write_totals(store, txn, &t);
        if (code)
            end(store, txn);
        else
            code = commit(store, txn);
    }
    return code;
}

bool qvl_store_put(qvl_store *store, const uint8_t key[QVL_SHA256_BYTES], const qvl_features *features) {
    header h = header_of(features);
    uint64_t size = sizeof h + qvl_features_bytes(features);
    if (atomic_load(&store->full) || size > store->limit / 2 || !digest_of(key, &h, features, h.digest))
        return false;
    int code = put_once(store, key, &h, features);
    for (uint64_t part = atomic_load(&store->crowded) ? 8 : 2; code == MDB_MAP_FULL && part <= 8; part *= 2) {
        code = make_room(store, store->limit / part);
        if (!code) code = put_once(store, key, &h, features);
    }
    if (code != MDB_KEYEXIST) atomic_store(&store->crowded, code == MDB_MAP_FULL);
    if (!code || code == MDB_KEYEXIST) return true;
    if (code == MDB_MAP_FULL) return false; /* a later one may find room */
    atomic_store(&store->full, true);
    note(store, "nothing more is written to it", code);
    return false;
}

/* ---- all entries */

qvl_status qvl_store_count(qvl_store *store, qvl_store_totals *found, qvl_error *error) {
    MDB_txn *txn;
    totals t;
    *found = (qvl_store_totals){.dropped = atomic_load(&store->dropped)};
    int code = begin(store, MDB_RDONLY, &txn);
    if (!code) {
        code = read_totals(store, txn, &t);
        end(store, txn);
    }
    if (code)
        return qvl_fail(error, QVL_ERROR_IO, "cannot read the cache in %s: %s", store->folder, mdb_strerror(code));
    found->entries = (int64_t)t.entries;
    found->bytes = (int64_t)t.bytes;
    return QVL_OK;
}

/* The first entry behind key (all zero and !after: the first of all), and whether it is good. */
static int check_next(qvl_store *store, uint8_t key[QVL_SHA256_BYTES], bool after, bool *good) {
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val name = value_of(key, QVL_SHA256_BYTES), value;
    int code = begin(store, MDB_RDONLY, &txn);
    if (code) return code;
    code = mdb_cursor_open(txn, store->features, &cursor);
    if (!code) {
        code = mdb_cursor_get(cursor, &name, &value, MDB_SET_RANGE);
        if (!code && after && memcmp(name.mv_data, key, QVL_SHA256_BYTES) == 0)
            code = mdb_cursor_get(cursor, &name, &value, MDB_NEXT);
        mdb_cursor_close(cursor);
    }
    if (!code && name.mv_size != QVL_SHA256_BYTES) code = MDB_CORRUPTED;
    if (!code) {
        header h;
        qvl_features view;
        uint8_t digest[QVL_SHA256_BYTES];
        memcpy(key, name.mv_data, QVL_SHA256_BYTES);
        *good = parse(&value, &h, &view) && digest_of(key, &h, &view, digest) &&
                memcmp(digest, h.digest, sizeof digest) == 0;
    }
    end(store, txn);
    return code;
}

qvl_status qvl_store_verify(qvl_store *store, int64_t *good, int64_t *bad, qvl_error *error) {
    uint8_t key[QVL_SHA256_BYTES] = {0};
    bool fine, after = false;
    int code;
    *good = *bad = 0;
    while ((code = check_next(store, key, after, &fine)) == 0) {
        after = true;
        if (fine) {
            ++*good;
            continue;
        }
        ++*bad;
        drop(store, key);
    }
    if (code == MDB_NOTFOUND) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_IO, "cannot read the cache in %s: %s", store->folder, mdb_strerror(code));
}

static int drop_all(qvl_store *store) {
    MDB_txn *txn;
    int code = begin(store, 0, &txn);
    if (code) return code;
    const MDB_dbi tables[] = {store->features, store->uses, store->numbers, store->totals};
    for (size_t i = 0; i < 4 && !code; i++) code = mdb_drop(txn, tables[i], 0);
    if (!code) return commit(store, txn);
    end(store, txn);
    return code;
}

/* LMDB never makes a file smaller: it is made anew, if all of its users are here. Whoever opens the store waits. */
static int renew(qvl_store *store) {
    struct flock alone = lock_of(F_WRLCK, 0), together = lock_of(F_RDLCK, 0);
    int code = 0;
    pthread_rwlock_wrlock(&store->in_use);
    if (fcntl(store->users, F_OFD_SETLK, &alone) == 0) {
        static const char *const names[] = {"data.mdb", "lock.mdb"};
        if (store->env) mdb_env_close(store->env);
        store->env = NULL;
        for (size_t i = 0; i < 2; i++) {
            char *path = qvl_path_join(store->folder, names[i]);
            if (path) unlink(path);
            qvl_free(path);
        }
        code = open_env(store);
        fcntl(store->users, F_OFD_SETLK, &together);
    }
    pthread_rwlock_unlock(&store->in_use);
    return code;
}

qvl_status qvl_store_clear(qvl_store *store, qvl_error *error) {
    int code = drop_all(store);
    if (!code) code = renew(store);
    atomic_store(&store->full, false);
    if (!code) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_IO, "cannot clear the cache in %s: %s", store->folder, mdb_strerror(code));
}
