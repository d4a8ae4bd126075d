#define _GNU_SOURCE
#include "cache.h"

#include "open.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)1 << 20)

static bool make_folder(const char *path) {
    struct stat status;
    if (mkdir(path, 0700) == 0) return true;
    return errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The standard asks for absolute paths; others are ignored. */
static bool is_absolute(const char *path) {
    return path && path[0] == '/';
}

bool cli_cache_folder(char *path, size_t size) {
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    if (!is_absolute(base)) {
        base = getenv("HOME");
        below = "/.cache";
    }
    if (!is_absolute(base)) return false;
    int n = snprintf(path, size, "%s%s", base, below);
    if (n < 0 || (size_t)n + sizeof "/qvl" > size || !make_folder(path)) return false;
    memcpy(path + n, "/qvl", sizeof "/qvl");
    return make_folder(path);
}

static bool caching(const cli_options *options) {
    return !options->no_cache && !options->profile && !options->taps;
}

qvl_status cli_use_cache(const cli_options *options, qvl_session *session, qvl_cache **cache, qvl_error *error) {
    char folder[4096];
    *cache = NULL;
    if (!caching(options) || !cli_cache_folder(folder, sizeof folder)) return QVL_OK;
    qvl_cache_options open;
    qvl_cache_options_init(&open);
    open.folder = folder;
    if (!options->quiet) open.log = cli_print_note;
    qvl_status status = qvl_cache_open(&open, cache, error);
    return status ? status : qvl_session_use_cache(session, *cache, error);
}

const char *cli_cache_word(const cli_options *options, const qvl_item *item) {
    const qvl_origin *o = &item->origin;
    int64_t found = o->memory + o->disk;
    if (!caching(options) || !(found + o->encoded)) return NULL;
    return !o->encoded ? "hit" : found ? "part" : "miss";
}

static bool cache_path(char *path, size_t size, const char *name) {
    char folder[4096];
    if (!cli_cache_folder(folder, sizeof folder)) return false;
    int n = snprintf(path, size, "%s/%s", folder, name);
    return n > 0 && (size_t)n < size;
}

cJSON *cli_cache_read(const char *name) {
    char path[4352];
    FILE *file = cache_path(path, sizeof path, name) ? fopen(path, "rb") : NULL;
    if (!file) return NULL;
    char *text = malloc(MOST_BYTES);
    size_t count = text ? fread(text, 1, MOST_BYTES, file) : 0;
    cJSON *json = count < MOST_BYTES ? cJSON_ParseWithLength(text, count) : NULL;
    free(text);
    fclose(file);
    return json;
}

bool cli_cache_write(const char *name, const cJSON *json) {
    char path[4352];
    qvl_error error;
    char *text = cache_path(path, sizeof path, name) ? cJSON_Print(json) : NULL;
    bool good = text && !cli_write_text(path, text, &error);
    cJSON_free(text);
    return good;
}
