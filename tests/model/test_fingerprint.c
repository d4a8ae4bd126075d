/* The fingerprint of a tower: what it is made of, what changes it, and how it is remembered. */
#define _GNU_SOURCE
#include "model/checkpoint.h"

#include "base/hash.h"
#include "model/fingerprint.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sys/stat.h>

/* What tools/oracle/fingerprint.py makes of the random model. */
#define RANDOM_FINGERPRINT "62ed3795504690a760578ad6de294da602e7d3a10872c8de8327b722ccfa5b84"

/* ---------------------------------------------------------------------------------------------------- the value
 */

static void hash(const void *bytes, size_t count, char hex[65]) {
    unsigned char digest[32];
    assert_int_equal(EVP_Digest(bytes, count, digest, NULL, EVP_sha256(), NULL), 1);
    for (int i = 0; i < 32; i++) sprintf(hex + 2 * i, "%02x", digest[i]);
}

static void compute(const char *folder, int threads, char hex[QVL_FINGERPRINT_HEX]) {
    qvl_raw_tower tower;
    qvl_pool *pool;
    qvl_error error;
    assert_ok(qvl_raw_tower_open(folder, &checkpoint_config, &tower, &error), &error);
    assert_ok(qvl_pool_open(threads, &pool, &error), &error);
    assert_ok(qvl_fingerprint_compute(&tower, pool, hex, &error), &error);
    assert_int_equal(strlen(hex), 64);
    qvl_pool_close(&pool);
    qvl_raw_tower_close(&tower);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const qvl_tensor *)a)->name, ((const qvl_tensor *)b)->name);
}

/* The definition of fingerprint.h once more, written down the simple way. */
static void define(const checkpoint *c, char hex[65]) {
    qvl_tensor sorted[TOWER_TENSORS];
    char text[TOWER_TENSORS * 160 + 64];
    memcpy(sorted, c->tensors, sizeof sorted);
    qsort(sorted, TOWER_TENSORS, sizeof sorted[0], compare_names);
    size_t used = (size_t)sprintf(text, "qvl tower fingerprint 1\n");
    for (size_t i = 0; i < TOWER_TENSORS; i++) {
        const qvl_tensor *t = &sorted[i];
        size_t bytes = 4;
        char digest[65];
        used += (size_t)sprintf(text + used, "%s F32 [", t->name);
        for (int32_t k = 0; k < t->ndim; k++) {
            used += (size_t)sprintf(text + used, k ? ", %d" : "%d", (int)t->shape[k]);
            bytes *= (size_t)t->shape[k];
        }
        hash(t->data, bytes, digest);
        used += (size_t)sprintf(text + used, "] %s\n", digest);
    }
    assert_true(used < sizeof text);
    hash(text, used, hex);
}

/* The standard's own examples. */
static void test_sha256(void **state) {
    (void)state;
    static const struct {
        const char *text, *hex;
    } examples[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < 3; i++) {
        uint8_t digest[QVL_SHA256_BYTES];
        char hex[QVL_SHA256_HEX];
        qvl_error error;
        assert_ok(qvl_sha256(examples[i].text, strlen(examples[i].text), digest, &error), &error);
        qvl_sha256_print(digest, hex);
        assert_string_equal(hex, examples[i].hex);
    }
}

static void test_definition(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    char wanted[65], found[QVL_FINGERPRINT_HEX];
    checkpoint_build(&c, "");
    define(&c, wanted);
    checkpoint_add(&c, "", "rotary_pos_emb.inv_freq", 1, (const int64_t[]){2}); /* no part of it */
    folder_open(&folder);
    checkpoint_save_single(&folder, &c);
    for (int threads = 1; threads <= 4; threads++) {
        compute(folder.path, threads, found);
        assert_string_equal(found, wanted);
    }
    folder_close(&folder);
    checkpoint_free(&c);
}

static void test_every_form(void **state) {
    (void)state;
    static const char *const prefixes[] = {"model.visual.", "visual.", "vision_tower.",
                                           "model.language_model.visual.", ""};
    static const char *const layouts[] = {"hugging-face", "mlx", "flat"};
    char first[QVL_FINGERPRINT_HEX] = "", found[QVL_FINGERPRINT_HEX];
    for (size_t p = 0; p < 5; p++)
        for (size_t l = 0; l < 3; l++)
            for (int sidecar = 0; sidecar < 2; sidecar++) {
                checkpoint c;
                test_folder folder;
                checkpoint_build(&c, prefixes[p]);
                checkpoint_lay_out(&c, layouts[l]);
                folder_open(&folder);
                if (sidecar)
                    checkpoint_save_sidecar(&folder, &c);
                else
                    checkpoint_save_single(&folder, &c);
                compute(folder.path, 2, found);
                if (!*first) strcpy(first, found);
                assert_string_equal(found, first);
                folder_close(&folder);
                checkpoint_free(&c);
            }
}

/* Any bit of any tensor, any type; but nothing outside the tower. */
static void test_what_changes_it(void **state) {
    (void)state;
    checkpoint c;
    test_folder folder;
    static char seen[2 * TOWER_TENSORS + 1][QVL_FINGERPRINT_HEX];
    size_t count = 0;
    checkpoint_build(&c, "model.visual.");
    folder_open(&folder);
    checkpoint_save_single(&folder, &c);
    compute(folder.path, 2, seen[count++]);
    for (size_t i = 0; i < TOWER_TENSORS; i++) {
        uint8_t *bytes = (uint8_t *)c.data[i];
        bytes[i % 4] ^= (uint8_t)(1u << (i % 8));
        checkpoint_save_single(&folder, &c);
        compute(folder.path, 2, seen[count++]);
        bytes[i % 4] ^= (uint8_t)(1u << (i % 8));
        c.tensors[i].dtype = i % 2 ? QVL_F16 : QVL_BF16; /* and in the same bytes, for one more */
        checkpoint_save_single(&folder, &c);
        compute(folder.path, 2, seen[count++]);
        c.tensors[i].dtype = QVL_F32;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) assert_string_not_equal(seen[i], seen[k]);

    c.tensors[5].dtype = QVL_F16;
    checkpoint_save_single(&folder, &c);
    compute(folder.path, 2, seen[1]);
    c.tensors[5].dtype = QVL_BF16;
    checkpoint_save_single(&folder, &c);
    compute(folder.path, 2, seen[2]);
    assert_string_not_equal(seen[1], seen[2]);
    c.tensors[5].dtype = QVL_F32;
    c.data[TOWER_TENSORS][0] = 99; /* the language model */
    checkpoint_save_single(&folder, &c);
    compute(folder.path, 2, seen[1]);
    assert_string_equal(seen[1], seen[0]);
    folder_close(&folder);
    checkpoint_free(&c);
}

/* --------------------------------------------------------------------------------------------------- the memory
 */

typedef struct notes {
    int count;
    char last[1200];
} notes;

static void take_note(const char *message, void *user) {
    notes *n = user;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", message);
}

static qvl_model *open_model(const char *folder, qvl_open_level level, notes *n) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = level;
    options.threads = 2;
    options.log = n ? take_note : NULL;
    options.log_user = n;
    qvl_model *model;
    qvl_error error;
    assert_ok(qvl_model_open(folder, &options, &model, &error), &error);
    return model;
}

/* The fingerprint of a folder, opened for it alone. */
static void ask(const char *folder, const char *memory, char hex[QVL_FINGERPRINT_HEX]) {
    qvl_error error;
    qvl_model *model = open_model(folder, QVL_OPEN_HEADERS, NULL);
    assert_ok(qvl_model_fingerprint(model, memory, hex, &error), &error);
    qvl_model_close(&model);
}

/* A folder with a model in it, and the name of a memory that is not there yet. */
typedef struct place {
    test_folder folder;
    char weights[384], memory[384];
    checkpoint c;
} place;

static void place_open(place *p) {
    folder_open(&p->folder);
    folder_write_text(&p->folder, "config.json", checkpoint_config_json);
    folder_write_text(&p->folder, "preprocessor_config.json",
                      "{\"image_mean\":[0,0,0],\"image_std\":[1,1,1],\"min_pixels\":1,\"max_pixels\":9}");
    strcpy(p->memory, folder_file(&p->folder, "memory"));
    strcpy(p->weights, folder_file(&p->folder, "model.safetensors"));
    checkpoint_build(&p->c, "model.visual.");
    checkpoint_save_single(&p->folder, &p->c);
}

static void place_close(place *p) {
    checkpoint_free(&p->c);
    folder_close(&p->folder);
}

/* The one file of the memory. */
static const char *memory_file(const place *p) {
    static char path[512];
    int count = 0;
    DIR *dir = opendir(p->memory);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (e->d_name[0] != '.' && ++count) snprintf(path, sizeof path, "%.200s/%.250s", p->memory, e->d_name);
    closedir(dir);
    assert_int_equal(count, 1);
    return path;
}

/* Flips a bit of the file's last byte and sets its time of writing back, as cp -p or rsync -t onto it would. */
static void change_unseen(const char *path) {
    struct stat st;
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
    assert_int_equal(futimens(fd, (const struct timespec[]){st.st_atim, st.st_mtim}), 0);
    close(fd);
}

static void touch(const char *path, int seconds, int nanoseconds) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    times[1].tv_sec += seconds;
    times[1].tv_nsec = (times[1].tv_nsec + nanoseconds) % 1000000000;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Puts another fingerprint into a file of the memory, sealed as it must be. */
static void plant(const char *path, char planted[QVL_FINGERPRINT_HEX]) {
    enum { LINE = QVL_FINGERPRINT_HEX };
    uint8_t *text;
    size_t count;
    qvl_error error;
    assert_ok(qvl_file_read(path, 1 << 16, &text, &count, &error), &error);
    assert_true(count > 2 * LINE);
    hash("another", 7, planted);
    memcpy(text + count - 2 * LINE, planted, LINE - 1);
    hash(text, count - LINE, (char *)text + count - LINE); /* its NUL falls where the newline was */
    text[count - 1] = '\n';
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
    free(text);
}

static void test_second_call_reads_nothing(void **state) {
    (void)state;
    place p;
    char first[QVL_FINGERPRINT_HEX], found[QVL_FINGERPRINT_HEX], planted[QVL_FINGERPRINT_HEX];
    struct stat st;
    place_open(&p);
    ask(p.folder.path, NULL, first);
    assert_int_not_equal(stat(p.memory, &st), 0); /* NULL: nothing is remembered */
    ask(p.folder.path, p.memory, found);
    assert_string_equal(found, first);
    assert_int_equal(stat(p.memory, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    memory_file(&p);

    plant(memory_file(&p), planted);
    ask(p.folder.path, p.memory, found);
    assert_string_equal(found, planted); /* from memory, or it would be the right one */
    place_close(&p);
}

/* Time, size, identity: each makes the old entry useless, and the new one takes its place where the file is the
 * same. */
static void test_changed_files_are_read(void **state) {
    (void)state;
    place p;
    char first[QVL_FINGERPRINT_HEX], found[QVL_FINGERPRINT_HEX];
    place_open(&p);
    ask(p.folder.path, p.memory, first);
    static const int steps[][2] = {{0, 1}, {1, 0}, {-5, 0}, {0, 999999}, {0, 0}};
    for (size_t i = 0; i < 5; i++) {
        change_unseen(p.weights);
        if (steps[i][0] || steps[i][1]) touch(p.weights, steps[i][0], steps[i][1]);
        ask(p.folder.path, p.memory, found);
        assert_string_not_equal(found, first);
        memory_file(&p); /* still one */
        strcpy(first, found);
    }
    char other[400];
    snprintf(other, sizeof other, "%s.new", p.weights);
    assert_int_equal(rename(p.weights, other), 0);
    p.c.data[7][1] = -1;
    checkpoint_save_single(&p.folder, &p.c);
    ask(p.folder.path, p.memory, found);
    assert_string_not_equal(found, first);
    place_close(&p);
}

static void test_shards_are_all_looked_at(void **state) {
    (void)state;
    place p;
    char first[QVL_FINGERPRINT_HEX], found[QVL_FINGERPRINT_HEX], text[8192];
    place_open(&p);
    ask(p.folder.path, NULL, first);
    unlink(p.weights);
    size_t used = (size_t)sprintf(text, "{\"weight_map\":{\"x\":\"y\"");
    for (size_t i = 0; i < TOWER_TENSORS; i++)
        used += (size_t)sprintf(text + used, ",\"%s\":\"%zu.safetensors\"", p.c.tensors[i].name, i / 13);
    strcpy(text + used, "}}");
    folder_write_text(&p.folder, "model.safetensors.index.json", text);
    for (size_t k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "%zu.safetensors", k);
        checkpoint_save(&p.folder, name, p.c.tensors + 13 * k, 13);
    }
    ask(p.folder.path, p.memory, found);
    assert_string_equal(found, first);
    change_unseen(folder_file(&p.folder, "1.safetensors"));
    ask(p.folder.path, p.memory, found);
    assert_string_not_equal(found, first);
    place_close(&p);
}

static void assert_rewritten(place *p, const uint8_t *bytes, size_t count, const uint8_t *good, size_t good_count,
                             const char *wanted) {
    char path[512], found[QVL_FINGERPRINT_HEX];
    uint8_t *now;
    size_t now_count;
    qvl_error error;
    strcpy(path, memory_file(p));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
    ask(p->folder.path, p->memory, found);
    assert_string_equal(found, wanted);
    assert_ok(qvl_file_read(memory_file(p), 1 << 16, &now, &now_count, &error), &error);
    assert_int_equal(now_count, good_count);
    assert_memory_equal(now, good, good_count);
    free(now);
}

static void test_damaged_memory(void **state) {
    (void)state;
    place p;
    char first[QVL_FINGERPRINT_HEX];
    uint8_t *good;
    size_t count;
    qvl_error error;
    place_open(&p);
    ask(p.folder.path, p.memory, first);
    assert_ok(qvl_file_read(memory_file(&p), 1 << 16, &good, &count, &error), &error);
    assert_true(count > 150 && count < 300);
    uint8_t *bad = calloc(1, count + 4096);
    for (size_t i = 0; i < count; i++) {
        memcpy(bad, good, count);
        bad[i] ^= (uint8_t)(1u << (i % 8));
        assert_rewritten(&p, bad, count, good, count, first);
    }
    memcpy(bad, good, count);
    for (size_t cut = 0; cut < count; cut += 7) assert_rewritten(&p, bad, cut, good, count, first);
    assert_rewritten(&p, bad, count + 1, good, count, first);
    assert_rewritten(&p, bad, count + 4096, good, count, first);
    free(bad);
    free(good);
    place_close(&p);
}

/* ------------------------------------------------------------------------------------------------- what can fail
 */

static void test_memory_that_cannot_be(void **state) {
    (void)state;
    place p;
    notes n = {0};
    char first[QVL_FINGERPRINT_HEX], found[QVL_FINGERPRINT_HEX], deep[512];
    qvl_error error = {0};
    place_open(&p);
    ask(p.folder.path, NULL, first);
    qvl_model *model = open_model(p.folder.path, QVL_OPEN_HEADERS, &n);
    assert_int_equal(n.count, 0);
    folder_write_text(&p.folder, "memory", "a file");
    assert_ok(qvl_model_fingerprint(model, p.memory, found, &error), &error);
    assert_string_equal(found, first);
    assert_int_equal(n.count, 1);
    assert_non_null(strstr(n.last, "the fingerprint is not remembered: cannot make the folder "));
    unlink(p.memory);
    snprintf(deep, sizeof deep, "%s/below", p.memory); /* the parent is missing */
    assert_ok(qvl_model_fingerprint(model, deep, found, &error), &error);
    assert_string_equal(found, first);
    assert_int_equal(n.count, 2);
    assert_failure(qvl_model_fingerprint(model, "", found, &error), &error, QVL_ERROR_ARGUMENT,
                   "the name of the folder that remembers fingerprints is empty");
    assert_string_equal(found, "");
    qvl_model_close(&model);

    model = open_model(p.folder.path, QVL_OPEN_CONFIG, NULL);
    assert_failure(qvl_model_fingerprint(model, p.memory, found, &error), &error, QVL_ERROR_ARGUMENT,
                   "was opened without its tensors; a fingerprint needs QVL_OPEN_HEADERS");
    qvl_model_close(&model);
    place_close(&p);
}

/* The packed weights are of the files as they were: another fingerprint would be a lie. */
static void test_changed_since_open(void **state) {
    (void)state;
    place p;
    char found[QVL_FINGERPRINT_HEX];
    qvl_error error = {0};
    place_open(&p);
    qvl_model *model = open_model(p.folder.path, QVL_OPEN_WEIGHTS, NULL);
    touch(p.weights, 0, 1);
    assert_failure(qvl_model_fingerprint(model, p.memory, found, &error), &error, QVL_ERROR_IO,
                   " were written to, or their names, times or rights changed, since the model was opened");
    assert_string_equal(found, "");
    unlink(p.weights);
    assert_failure(qvl_model_fingerprint(model, NULL, found, &error), &error, QVL_ERROR_MODEL, "no weights in ");
    qvl_model_close(&model);
    place_close(&p);
}

static void test_random_model(void **state) {
    (void)state;
    char found[QVL_FINGERPRINT_HEX];
    ask(QVL_RANDOM_MODEL, NULL, found);
    assert_string_equal(found, RANDOM_FINGERPRINT);
}

/* One model, several threads, one memory. */
typedef struct asker {
    const qvl_model *model;
    const char *memory;
    char hex[QVL_FINGERPRINT_HEX];
    qvl_status status;
} asker;

static void *ask_in_thread(void *user) {
    asker *a = user;
    for (int i = 0; i < 20 && !a->status; i++)
        a->status = qvl_model_fingerprint(a->model, a->memory, a->hex, NULL);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    place p;
    char first[QVL_FINGERPRINT_HEX];
    pthread_t ids[4];
    asker askers[4];
    place_open(&p);
    ask(p.folder.path, NULL, first);
    qvl_model *model = open_model(p.folder.path, QVL_OPEN_HEADERS, NULL);
    for (int i = 0; i < 4; i++) {
        askers[i] = (asker){.model = model, .memory = i == 3 ? NULL : p.memory};
        assert_int_equal(pthread_create(&ids[i], NULL, ask_in_thread, &askers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
        assert_int_equal(askers[i].status, QVL_OK);
        assert_string_equal(askers[i].hex, first);
    }
    memory_file(&p);
    qvl_model_close(&model);
    place_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_what_changes_it),
        cmocka_unit_test(test_second_call_reads_nothing),
        cmocka_unit_test(test_changed_files_are_read),
        cmocka_unit_test(test_shards_are_all_looked_at),
        cmocka_unit_test(test_damaged_memory),
        cmocka_unit_test(test_memory_that_cannot_be),
        cmocka_unit_test(test_changed_since_open),
        cmocka_unit_test(test_random_model),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
