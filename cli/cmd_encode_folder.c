/* qvl encode FOLDER -o OUT: every picture and video below FOLDER to a file of its own below OUT. A result that is there
 * and was made from the same file in the same way is left as it is, so a run that was broken off goes on where it
 * stopped. What cannot be encoded is listed at the end. Two files are under way at a time: one is read while the
 * other is encoded. */
#define _GNU_SOURCE
#include "cache.h"
#include "commands.h"
#include "feature_file.h"
#include "made_from.h"
#include "open.h"
#include "progress.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { WORKERS = 2 };

typedef struct refused {
    size_t file;
    char *message;
} refused;

typedef struct folder_run {
    const cli_options *options;
    const char *in, *out;
    char **files; /* relative to in */
    size_t count, capacity;
    size_t others; /* files that are neither pictures nor videos by their names */
    qvl_model *model;
    qvl_session *sessions[WORKERS];
    qvl_cache *cache;
    char *settings; /* cli_describe_settings */
    double seconds;
    pthread_mutex_t lock; /* of what follows */
    size_t next;          /* file to begin with */
    size_t done, encoded, kept, hits;
    refused *bad;
    size_t bad_count;
    qvl_error error; /* what ended the run, if anything did */
    cli_progress progress;
} folder_run;

/* ---- the files */

static bool is_medium(const char *name) {
    static const char *const endings[] = {".jpg",  ".jpeg", ".png",  ".webp", ".gif", ".bmp", ".tif",
                                          ".tiff", ".avif", ".mp4",  ".m4v",  ".mov", ".mkv", ".webm",
                                          ".avi",  ".mpg",  ".mpeg", ".ts",   NULL};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && endings[i]; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

static char *joined(const char *folder, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Takes path. */
static bool add_file(folder_run *run, char *path) {
    if (run->count == run->capacity) {
        size_t capacity = 2 * run->capacity + 64;
        char **grown = realloc(run->files, capacity * sizeof *grown);
        if (!grown) {
            free(path);
            return false;
        }
        run->files = grown;
        run->capacity = capacity;
    }
    run->files[run->count++] = path;
    return true;
}

static qvl_status walk(folder_run *run, const char *below, int depth, qvl_error *error);

/* Hidden ones are not looked at, links to folders not followed. */
static qvl_status visit(folder_run *run, const char *below, const struct dirent *entry, int depth,
                        qvl_error *error) {
    if (entry->d_name[0] == '.') return QVL_OK;
    char *path = *below ? joined(below, entry->d_name) : strdup(entry->d_name);
    char *whole = path ? joined(run->in, path) : NULL;
    struct stat st, link;
    qvl_status status = QVL_OK;
    if (!whole) {
        status = cli_no_memory(error);
    } else if (lstat(whole, &link) != 0 || stat(whole, &st) != 0) {
        run->others++;
    } else if (S_ISDIR(st.st_mode)) {
        if (S_ISDIR(link.st_mode)) status = walk(run, path, depth + 1, error);
        if (status == QVL_ERROR_IO) { /* listed at the end, as a bad file is */
            status = add_file(run, path) ? QVL_OK : cli_no_memory(error);
            path = NULL;
        }
    } else if (!S_ISREG(st.st_mode) || !is_medium(path)) {
        run->others++;
    } else {
        if (!add_file(run, path)) status = cli_no_memory(error);
        path = NULL;
    }
    free(path);
    free(whole);
    return status;
}

static qvl_status walk(folder_run *run, const char *below, int depth, qvl_error *error) {
    enum { DEEPEST = 64 };
    struct dirent **entries;
    char *path = joined(run->in, below);
    if (!path) return cli_no_memory(error);
    int count = depth < DEEPEST ? scandir(path, &entries, NULL, alphasort) : -1;
    if (count < 0)
        cli_fail(error, QVL_ERROR_IO, "cannot read the folder %.800s: %s", path,
                 depth < DEEPEST ? strerror(errno) : "it is too deep");
    free(path);
    if (count < 0) return error->status;
    qvl_status status = QVL_OK;
    for (int i = 0; i < count; i++) {
        if (!status) status = visit(run, below, entries[i], depth, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- one file */

static qvl_status make_folders(char *path, qvl_error *error) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int code = mkdir(path, 0777) == 0 ? 0 : errno;
        if (code && code != EEXIST)
            cli_fail(error, QVL_ERROR_IO, "cannot make the folder %.800s: %s", path, strerror(code));
        *slash = '/';
        if (code && code != EEXIST) return error->status;
    }
    return QVL_OK;
}

static qvl_status refuse_file(folder_run *run, size_t file, const qvl_error *reason, qvl_error *error) {
    pthread_mutex_lock(&run->lock);
    char *message = strdup(reason->message);
    refused *grown = message ? realloc(run->bad, (run->bad_count + 1) * sizeof *grown) : NULL;
    if (grown) {
        run->bad = grown;
        run->bad[run->bad_count++] = (refused){file, message};
    }
    pthread_mutex_unlock(&run->lock);
    if (grown) return QVL_OK;
    free(message);
    return cli_no_memory(error);
}

static void count_file(folder_run *run, const qvl_origin *origin) {
    pthread_mutex_lock(&run->lock);
    run->encoded += origin != NULL;
    run->kept += origin == NULL;
    run->hits += origin && origin->encoded == 0;
    pthread_mutex_unlock(&run->lock);
}

/* A source that cannot be encoded is remembered; a result that cannot be written ends the run. made_from may be
 * NULL. */
static qvl_status encode_file(folder_run *run, qvl_session *session, size_t file, const char *source,
                              const char *made_from, char *target, qvl_error *error) {
    const cli_options *o = run->options;
    qvl_features features;
    qvl_error reason = {0};
    const qvl_input input = {.kind = QVL_INPUT_FILE, .name = source};
    if (made_from && cli_is_made(target, made_from)) {
        count_file(run, NULL);
        return QVL_OK;
    }
    if (qvl_encode(session, &input, 1, &o->preprocess, NULL, &features, &reason))
        return refuse_file(run, file, &reason, error);
    qvl_status status = make_folders(target, error);
    if (!status)
        status =
            cli_save_features(target, &features, qvl_model_get_info(run->model), &o->preprocess, made_from, error);
    if (!status) count_file(run, &features.items[0].origin);
    qvl_features_free(&features);
    return status;
}

static qvl_status encode_one(folder_run *run, qvl_session *session, size_t file, qvl_error *error) {
    char *source = joined(run->in, run->files[file]), *target = NULL;
    if (source && asprintf(&target, "%s/%s.safetensors", run->out, run->files[file]) < 0) target = NULL;
    char *made_from = source ? cli_made_from(run->settings, source) : NULL;
    qvl_status status = source && target ? encode_file(run, session, file, source, made_from, target, error)
                                         : cli_no_memory(error);
    free(made_from);
    free(source);
    free(target);
    return status;
}

typedef struct worker {
    folder_run *run;
    qvl_session *session;
    pthread_t thread;
} worker;

static void *work(void *user) {
    const worker *w = user;
    folder_run *run = w->run;
    qvl_error error = {0};
    for (;;) {
        pthread_mutex_lock(&run->lock);
        cli_progress_step((int64_t)run->done, (int64_t)run->count, &run->progress);
        size_t file = run->error.status ? run->count : run->next;
        run->next = file + 1;
        pthread_mutex_unlock(&run->lock);
        if (file >= run->count) return NULL;
        qvl_status status = encode_one(run, w->session, file, &error);
        pthread_mutex_lock(&run->lock);
        run->done++;
        if (status && !run->error.status) run->error = error;
        pthread_mutex_unlock(&run->lock);
    }
}

static int by_file(const void *a, const void *b) {
    const refused *x = a, *y = b;
    return (x->file > y->file) - (x->file < y->file);
}

/* Signals are for the main thread, as with the library's own threads. */
static bool start(worker *w) {
    sigset_t all, before;
    sigfillset(&all);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}; /* of the thread itself */
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    bool started = pthread_create(&w->thread, NULL, work, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* The first worker is this thread. */
static qvl_status encode_all(folder_run *run, qvl_error *error) {
    worker workers[WORKERS];
    bool started[WORKERS] = {false};
    for (int i = 0; i < WORKERS; i++) workers[i] = (worker){.run = run, .session = run->sessions[i]};
    for (int i = 1; i < WORKERS; i++) started[i] = start(&workers[i]);
    work(&workers[0]);
    for (int i = 1; i < WORKERS; i++)
        if (started[i]) pthread_join(workers[i].thread, NULL);
    if (run->bad_count) qsort(run->bad, run->bad_count, sizeof *run->bad, by_file);
    if (run->error.status) *error = run->error;
    return run->error.status;
}

/* ---- the whole */

static qvl_status prepare(folder_run *run, qvl_error *error) {
    const cli_options *o = run->options;
    if (!o->output)
        return cli_fail(error, QVL_ERROR_ARGUMENT, "%.800s is a folder: -o must name the folder of the results",
                        run->in);
    if (o->taps || o->profile)
        return cli_fail(error, QVL_ERROR_ARGUMENT, "%.800s is a folder: --taps and --profile are for one call",
                        run->in);
    qvl_status status = walk(run, "", 0, error);
    if (!status && !run->count)
        status = cli_fail(error, QVL_ERROR_ARGUMENT, "there are no pictures or videos in %.800s", run->in);
    cli_progress_say(&run->progress, "opening the model");
    if (!status) status = cli_open_model(o, QVL_OPEN_WEIGHTS, &run->model, error);
    for (int i = 0; i < WORKERS && !status; i++) status = qvl_session_open(run->model, &run->sessions[i], error);
    if (!status) status = cli_use_cache(o, run->sessions[0], &run->cache, error);
    for (int i = 1; i < WORKERS && !status; i++)
        status = qvl_session_use_cache(run->sessions[i], run->cache, error);
    if (!status) status = cli_describe_settings(o, run->model, &run->settings, error);
    return status;
}

static int report(const folder_run *run) {
    const cli_options *o = run->options;
    int code = run->bad_count ? CLI_REFUSED : CLI_DONE;
    if (!o->json) {
        printf("%zu encoded (%zu of them found in the cache), %zu there before, %zu refused, %.1f s\n",
               run->encoded, run->hits, run->kept, run->bad_count, run->seconds);
        if (run->others) printf("%zu files are neither pictures nor videos by their names\n", run->others);
        printf("results are in %s\n", run->out);
        if (run->bad_count) fprintf(stderr, "qvl: %zu of %zu files were refused:\n", run->bad_count, run->count);
        for (size_t i = 0; i < run->bad_count; i++) fprintf(stderr, "qvl: %s\n", run->bad[i].message);
        return code;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "folder", run->in);
    cJSON_AddStringToObject(json, "output", run->out);
    cJSON_AddNumberToObject(json, "encoded", (double)run->encoded);
    cJSON_AddNumberToObject(json, "cache_hits", (double)run->hits);
    cJSON_AddNumberToObject(json, "there_before", (double)run->kept);
    cJSON_AddNumberToObject(json, "other_files", (double)run->others);
    cJSON_AddNumberToObject(json, "seconds", run->seconds);
    cJSON *list = cJSON_AddArrayToObject(json, "refused");
    for (size_t i = 0; i < run->bad_count; i++) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "input", run->files[run->bad[i].file]);
        cJSON_AddStringToObject(entry, "message", run->bad[i].message);
        cJSON_AddItemToArray(list, entry);
    }
    int printed = cli_print_json(json);
    return printed ? printed : code;
}

static void release(folder_run *run) {
    for (size_t i = 0; i < run->count; i++) free(run->files[i]);
    for (size_t i = 0; i < run->bad_count; i++) free(run->bad[i].message);
    free(run->files);
    free(run->bad);
    free(run->settings);
    for (int i = 0; i < WORKERS; i++) qvl_session_close(&run->sessions[i]);
    qvl_cache_close(&run->cache);
    qvl_model_close(&run->model);
    pthread_mutex_destroy(&run->lock);
}

int cli_encode_folder(const cli_options *options) {
    folder_run run = {.options = options, .in = options->inputs[0], .out = options->output};
    qvl_error error = {0};
    pthread_mutex_init(&run.lock, NULL);
    cli_progress_init(&run.progress, options->quiet);
    double start = cli_seconds();
    qvl_status status = prepare(&run, &error);
    if (!status) status = encode_all(&run, &error);
    run.seconds = cli_seconds() - start;
    cli_progress_clear(&run.progress);
    int code = status ? cli_refuse(&error) : report(&run);
    release(&run);
    return code;
}
