/* A gigabyte is read once: the result is remembered in a small file, under the identity of the files it came from.
 */
#define _GNU_SOURCE
#include "model/fingerprint.h"

#include "base/hash.h"
#include "base/memory.h"
#include "model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(QVL_FINGERPRINT_HEX == QVL_SHA256_HEX, "a fingerprint is a SHA-256");

/* --------------------------------------------------------------------------------------------------- computing */

/* The digest of one tensor. */
typedef struct job {
    const qvl_tensor *tensor;
    size_t bytes;
    uint8_t digest[QVL_SHA256_BYTES];
    qvl_status status;
} job;

static void digest_tensor(void *user, int64_t task, int worker) {
    (void)worker;
    job *j = (job *)user + task;
    j->status = qvl_sha256(j->tensor->data, j->bytes, j->digest, NULL);
}

/* The long ones first, so that no thread is left with one at the end. */
static int compare_sizes(const void *a, const void *b) {
    const job *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* Back into the order of the tower's list, which is that of the names. */
static int compare_tensors(const void *a, const void *b) {
    const job *x = a, *y = b;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static size_t tensor_bytes(const qvl_tensor *tensor) {
    size_t bytes = qvl_dtype_bits(tensor->dtype) / 8;
    for (int32_t i = 0; i < tensor->ndim; i++) bytes *= (size_t)tensor->shape[i]; /* in a file, so no overflow */
    return bytes;
}

#define LINE_WITHOUT_NAME 224 /* a dtype, five dimensions of 20 digits, a digest, punctuation */

static size_t print_line(const job *j, char *text, size_t size) {
    const qvl_tensor *t = j->tensor;
    char hex[QVL_SHA256_HEX];
    size_t used = (size_t)snprintf(text, size, "%s %s [", t->name, qvl_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->ndim; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "", t->shape[i]);
    qvl_sha256_print(j->digest, hex);
    return used + (size_t)snprintf(text + used, size - used, "] %s\n", hex);
}

/* jobs: done, in order of name. */
static qvl_status digest_list(const job *jobs, size_t count, char hex[QVL_FINGERPRINT_HEX], qvl_error *error) {
    static const char head[] = "qvl tower fingerprint 1\n";
    size_t size = sizeof head, used = sizeof head - 1;
    for (size_t i = 0; i < count; i++) size += strlen(jobs[i].tensor->name) + LINE_WITHOUT_NAME;
    char *text = qvl_alloc(size, 1);
    if (!text) return qvl_fail_memory(error, "list of tensors", size, 1);
    memcpy(text, head, used);
    for (size_t i = 0; i < count; i++) used += print_line(&jobs[i], text + used, size - used);
    uint8_t digest[QVL_SHA256_BYTES];
    qvl_status status = qvl_sha256(text, used, digest, error);
    if (!status) qvl_sha256_print(digest, hex);
    qvl_free(text);
    return status;
}

qvl_status qvl_fingerprint_compute(const qvl_raw_tower *tower, qvl_pool *pool, char hex[QVL_FINGERPRINT_HEX],
                                   qvl_error *error) {
    size_t count = (size_t)tower->tensor_count;
    qvl_status status = QVL_OK;
    hex[0] = 0;
    job *jobs = qvl_calloc(count, sizeof *jobs);
    if (!jobs) return qvl_fail_memory(error, "digests of tensors", count, sizeof *jobs);
    for (size_t i = 0; i < count; i++)
        jobs[i] = (job){.tensor = &tower->tensors[i], .bytes = tensor_bytes(&tower->tensors[i])};
    qsort(jobs, count, sizeof *jobs, compare_sizes);
    qvl_pool_run(pool, (int64_t)count, digest_tensor, jobs);
    qsort(jobs, count, sizeof *jobs, compare_tensors);
    for (size_t i = 0; i < count && !status; i++)
        if (jobs[i].status)
            status = qvl_fail(error, jobs[i].status, "OpenSSL could not compute the SHA-256 of %s",
                              jobs[i].tensor->name);
    if (!status) status = digest_list(jobs, count, hex, error);
    qvl_free(jobs);
    return status;
}

/* ------------------------------------------------------------------------------------------------- remembering */

/* A file of the memory: four parts, compared byte by byte, so that anything damaged is simply not what is expected.
 *
 *     a line that names the format
 *     DEVICE INODE SIZE WRITTEN CHANGED of each file, a line each; both times as SECONDS.NANOSECONDS
 *     the fingerprint
 *     the SHA-256 of all that
 *
 * Its name is made from devices and inodes alone: a file that was written to takes the place of its old entry. */
typedef struct memory {
    char *path;
    char *text;   /* the first two parts; room for the others */
    size_t known; /* bytes of them */
} memory;

#define MEMORY_TAIL (2 * QVL_SHA256_HEX)
#define ID_LINE 160 /* seven integers of 20 digits, punctuation */

static size_t print_id(const qvl_file_id *id, bool name_only, char *text) {
    if (name_only) return (size_t)snprintf(text, ID_LINE, "%" PRIu64 " %" PRIu64 "\n", id->device, id->inode);
    return (size_t)snprintf(
        text, ID_LINE, "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 ".%09" PRId64 " %" PRId64 ".%09" PRId64 "\n",
        id->device, id->inode, id->size, id->seconds, id->nanoseconds, id->changed_seconds,
        id->changed_nanoseconds);
}

static void memory_close(memory *m) {
    qvl_free(m->path);
    qvl_free(m->text);
    *m = (memory){0};
}

static qvl_status memory_open(const char *folder, const qvl_file_id *ids, int32_t count, memory *m,
                              qvl_error *error) {
    static const char head[] = "qvl fingerprint memory 2\n";
    size_t size = sizeof head + (size_t)count * ID_LINE + MEMORY_TAIL;
    uint8_t digest[QVL_SHA256_BYTES];
    char hex[QVL_SHA256_HEX], name[64];
    *m = (memory){.text = qvl_alloc(size, 1)};
    if (!m->text) return qvl_fail_memory(error, "memory of a fingerprint", size, 1);
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) used += print_id(&ids[i], true, m->text + used);
    qvl_status status = qvl_sha256(m->text, used, digest, error);
    if (!status) {
        qvl_sha256_print(digest, hex);
        snprintf(name, sizeof name, "fingerprint-%.32s", hex);
        m->path = qvl_path_join(folder, name);
        if (!m->path) status = qvl_fail_memory(error, "file name", strlen(folder), 1);
    }
    if (status) {
        memory_close(m);
        return status;
    }
    memcpy(m->text, head, sizeof head - 1);
    m->known = sizeof head - 1;
    for (int32_t i = 0; i < count; i++) m->known += print_id(&ids[i], false, m->text + m->known);
    return QVL_OK;
}

/* The digest of the first count bytes of text as a line behind them. */
static qvl_status seal(char *text, size_t count, qvl_error *error) {
    uint8_t digest[QVL_SHA256_BYTES];
    qvl_status status = qvl_sha256(text, count, digest, error);
    if (status) return status;
    qvl_sha256_print(digest, text + count);
    text[count + QVL_SHA256_HEX - 1] = '\n';
    return QVL_OK;
}

static bool is_hex(const char *text) {
    for (int i = 0; i < QVL_SHA256_HEX - 1; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) return false;
    return true;
}

/* Whether the fingerprint is remembered. What is missing, of other files or damaged is not. */
static bool recall(memory *m, char hex[QVL_FINGERPRINT_HEX]) {
    uint8_t *found;
    size_t count, whole = m->known + MEMORY_TAIL;
    if (qvl_file_read(m->path, whole, &found, &count, NULL)) return false;
    bool good = count == whole && memcmp(found, m->text, m->known) == 0;
    if (good) {
        memcpy(m->text + m->known, found + m->known, QVL_SHA256_HEX);
        good = is_hex(m->text + m->known) && !seal(m->text, m->known + QVL_SHA256_HEX, NULL) &&
               memcmp(found, m->text, whole) == 0;
    }
    if (good) memcpy(hex, m->text + m->known, QVL_SHA256_HEX);
    if (good) hex[QVL_SHA256_HEX - 1] = 0;
    qvl_free(found);
    return good;
}

static qvl_status remember(memory *m, const char *folder, const char *hex, qvl_error *error) {
    qvl_writer writer;
    memcpy(m->text + m->known, hex, QVL_SHA256_HEX - 1);
    m->text[m->known + QVL_SHA256_HEX - 1] = '\n';
    qvl_status status = seal(m->text, m->known + QVL_SHA256_HEX, error);
    if (!status) status = qvl_folder_make(folder, error);
    if (!status) status = qvl_writer_open(&writer, m->path, error);
    if (status) return status;
    qvl_writer_put(&writer, m->text, m->known + MEMORY_TAIL);
    return qvl_writer_commit(&writer, error);
}

/* ---------------------------------------------------------------------------------------------------- the model
 */

static bool same_file(const qvl_file_id *a, const qvl_file_id *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->seconds == b->seconds &&
           a->nanoseconds == b->nanoseconds && a->changed_seconds == b->changed_seconds &&
           a->changed_nanoseconds == b->changed_nanoseconds;
}

/* File systems keep time in ticks of up to 10 ms. A file changed in this very tick could be written to again
 * without a trace after it was read; so wait until a later write must show. */
static void wait_for_next_tick(const qvl_file_id *ids, int32_t count) {
    const int64_t tick = 20000000;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wait = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t seconds = ids[i].changed_seconds;
        if (seconds < now.tv_sec - 1 || seconds > now.tv_sec) continue;
        int64_t age = (now.tv_sec - seconds) * 1000000000 + now.tv_nsec - ids[i].changed_nanoseconds;
        if (age >= 0 && age < tick && tick - age > wait) wait = tick - age;
    }
    if (wait) nanosleep(&(struct timespec){.tv_nsec = (long)wait}, NULL);
}

/* Reads the weights again: an open model holds no files. They must be those it was opened with, all the time. */
static qvl_status compute(const qvl_model *model, char hex[QVL_FINGERPRINT_HEX], qvl_error *error) {
    qvl_raw_tower tower;
    qvl_status status = qvl_raw_tower_open(model->folder, &model->config.vision, &tower, error);
    if (status) return status;
    bool same = tower.files.count == model->info.file_count;
    for (int32_t i = 0; i < tower.files.count && same; i++)
        same = same_file(&tower.files.files[i].map.id, &model->file_ids[i]);
    if (same) status = qvl_fingerprint_compute(&tower, model->pool, hex, error);
    for (int32_t i = 0; i < tower.files.count && same && !status; i++) {
        qvl_file_id now;
        same = !qvl_file_identify(tower.files.files[i].path, &now, NULL) && same_file(&now, &model->file_ids[i]);
    }
    qvl_raw_tower_close(&tower);
    if (same && !status) return QVL_OK;
    hex[0] = 0;
    if (status) return status;
    return qvl_fail(
        error, QVL_ERROR_IO,
        "the weights in %s were written to, or their names, times or rights changed, since the model was opened",
        model->folder);
}

static void note_not_remembered(const qvl_model *model, const qvl_error *reason) {
    if (!model->log) return;
    char line[1200];
    snprintf(line, sizeof line, "the fingerprint is not remembered: %s", reason->message);
    model->log(line, model->log_user);
}

qvl_status qvl_model_fingerprint(const qvl_model *model, const char *memory_folder, char hex[QVL_FINGERPRINT_HEX],
                                 qvl_error *error) {
    hex[0] = 0;
    if (!model->file_ids)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%s was opened without its tensors; a fingerprint needs QVL_OPEN_HEADERS", model->folder);
    if (!memory_folder) return compute(model, hex, error);
    if (!*memory_folder)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the name of the folder that remembers fingerprints is empty");
    memory m;
    qvl_status status = memory_open(memory_folder, model->file_ids, model->info.file_count, &m, error);
    if (status) return status;
    if (!recall(&m, hex)) {
        qvl_error reason = {0};
        wait_for_next_tick(model->file_ids, model->info.file_count);
        status = compute(model, hex, error);
        if (!status && remember(&m, memory_folder, hex, &reason)) note_not_remembered(model, &reason);
    }
    memory_close(&m);
    return status;
}
