/* qvl cache: the features that encode and prompt keep. */
#include "cache.h"
#include "commands.h"
#include "open.h"
#include "output.h"

#include <stdio.h>
#include <string.h>

static int print_path(const cli_options *options, const char *folder) {
    if (!options->json) return puts(folder) < 0 ? CLI_REFUSED : CLI_DONE;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "folder", folder);
    return cli_print_json(json);
}

static qvl_status show_stats(const cli_options *options, qvl_cache *cache, const char *folder, qvl_error *error) {
    qvl_cache_stats stats;
    char used[32], budget[32];
    qvl_status status = qvl_cache_get_stats(cache, &stats, error);
    if (status) return status;
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "folder", folder);
        cJSON_AddNumberToObject(json, "entries", (double)stats.disk_entries);
        cJSON_AddNumberToObject(json, "bytes", (double)stats.disk_bytes);
        cJSON_AddNumberToObject(json, "budget", (double)stats.disk_budget);
        cli_print_json(json);
    } else {
        printf("%s: %lld entries, %s of %s\n", folder, (long long)stats.disk_entries,
               cli_bytes(stats.disk_bytes, used), cli_bytes(stats.disk_budget, budget));
    }
    return QVL_OK;
}

static qvl_status verify(const cli_options *options, qvl_cache *cache, const char *folder, qvl_error *error) {
    int64_t good, bad;
    qvl_status status = qvl_cache_verify(cache, &good, &bad, error);
    if (status) return status;
    if (options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "folder", folder);
        cJSON_AddNumberToObject(json, "good", (double)good);
        cJSON_AddNumberToObject(json, "dropped", (double)bad);
        cli_print_json(json);
    } else {
        printf("%s: %lld entries are good, %lld were damaged and are dropped\n", folder, (long long)good,
               (long long)bad);
    }
    return QVL_OK;
}

static qvl_status clear(const cli_options *options, qvl_cache *cache, const char *folder, qvl_error *error) {
    qvl_status status = qvl_cache_clear(cache, error);
    if (!status && options->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "folder", folder);
        cli_print_json(json);
    } else if (!status) {
        printf("%s: cleared\n", folder);
    }
    return status;
}

/* Here, unlike elsewhere, a cache that cannot be used is an error. */
static qvl_status open_cache(const char *folder, qvl_cache **cache, qvl_error *error) {
    qvl_cache_options open;
    qvl_cache_stats stats;
    qvl_cache_options_init(&open);
    open.folder = folder;
    open.log = cli_print_note;
    qvl_status status = qvl_cache_open(&open, cache, error);
    if (!status) status = qvl_cache_get_stats(*cache, &stats, error);
    if (!status && !stats.disk)
        status = cli_fail(error, QVL_ERROR_IO, "the cache in %.900s cannot be used", folder);
    return status;
}

int cmd_cache(const cli_options *options) {
    static const struct {
        const char *name;
        qvl_status (*run)(const cli_options *options, qvl_cache *cache, const char *folder, qvl_error *error);
    } actions[] = {{"stats", show_stats}, {"verify", verify}, {"clear", clear}};
    const char *action = options->inputs[0];
    char folder[4096];
    qvl_error error = {0};
    qvl_cache *cache = NULL;
    if (!cli_cache_folder(folder, sizeof folder)) {
        cli_fail(&error, QVL_ERROR_IO,
                 "there is no cache folder: neither XDG_CACHE_HOME nor HOME names one that can be made");
        return cli_refuse(&error);
    }
    if (strcmp(action, "path") == 0) return print_path(options, folder);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(action, actions[i].name) != 0) continue;
        qvl_status status = open_cache(folder, &cache, &error);
        if (!status) status = actions[i].run(options, cache, folder, &error);
        qvl_cache_close(&cache);
        return status ? cli_refuse(&error) : CLI_DONE;
    }
    fprintf(stderr, "qvl cache: '%s' is none of stats, verify, clear, path\nTry 'qvl cache --help'.\n", action);
    return CLI_USAGE;
}
