/* rates.json: {"records": [{KEY, "size": [w, h], "patches": n, "tflop_per_second": r}, ...]}, the newest last. KEY
 * is the members machine, version, dtype, kernels, threads and tower; a record counts where all are equal. */
#define _GNU_SOURCE
#include "rates.h"

#include "cache.h"
#include "output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "rates.json"
#define MOST_RECORDS 256

/* "MODEL OF THE PROCESSOR, N processors": the same machine, or one just like it. */
static void describe_machine(char *text, size_t size) {
    char line[256], model[160] = "unknown processor";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %159[^\n]", model) == 1) break;
    if (file) fclose(file);
    snprintf(text, size, "%s, %ld processors", model, sysconf(_SC_NPROCESSORS_ONLN));
}

/* A record's key, as an object of its own. Depth is not in it: blocks are alike. */
static cJSON *make_key(const qvl_model_info *info) {
    char machine[256], tower[64];
    describe_machine(machine, sizeof machine);
    snprintf(tower, sizeof tower, "%d/%d/%d", info->hidden_size, info->num_heads, info->intermediate_size);
    cJSON *key = cJSON_CreateObject();
    cJSON_AddStringToObject(key, "machine", machine);
    cJSON_AddStringToObject(key, "version", qvl_version());
    cJSON_AddStringToObject(key, "dtype", cli_dtype_name(info->compute_dtype));
    cJSON_AddStringToObject(key, "kernels", info->kernels);
    cJSON_AddNumberToObject(key, "threads", info->threads);
    cJSON_AddStringToObject(key, "tower", tower);
    return key;
}

static bool has_key(const cJSON *record, const cJSON *key) {
    const cJSON *member;
    cJSON_ArrayForEach(member, key) {
        if (!cJSON_Compare(member, cJSON_GetObjectItemCaseSensitive(record, member->string), true)) return false;
    }
    return key->child != NULL;
}

/* false where the record makes no sense. */
static bool read_rate(const cJSON *record, cli_rate *rate) {
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(record, "size");
    const cJSON *patches = cJSON_GetObjectItemCaseSensitive(record, "patches");
    const cJSON *speed = cJSON_GetObjectItemCaseSensitive(record, "tflop_per_second");
    const cJSON *width = cJSON_GetArrayItem(size, 0), *height = cJSON_GetArrayItem(size, 1);
    if (!cJSON_IsNumber(width) || !cJSON_IsNumber(height) || !cJSON_IsNumber(patches) || !cJSON_IsNumber(speed))
        return false;
    *rate = (cli_rate){width->valueint, height->valueint, patches->valueint, speed->valuedouble};
    return rate->patches > 0 && rate->teraflops_per_second > 0 && isfinite(rate->teraflops_per_second);
}

/* The list in json, made if it is not there. */
static cJSON *records_of(cJSON *json) {
    cJSON *records = cJSON_GetObjectItemCaseSensitive(json, "records");
    if (cJSON_IsArray(records)) return records;
    cJSON_DeleteItemFromObjectCaseSensitive(json, "records");
    return cJSON_AddArrayToObject(json, "records");
}

/* Takes out records with this key and size, unreadable ones, and the oldest of too many. */
static void forget(cJSON *records, const cJSON *key, const cli_rate *rate) {
    cJSON *record = records->child;
    int spare = cJSON_GetArraySize(records) - MOST_RECORDS;
    while (record) {
        cJSON *next = record->next;
        cli_rate old;
        if (spare-- >= 0 || !read_rate(record, &old) ||
            (has_key(record, key) && old.width == rate->width && old.height == rate->height))
            cJSON_Delete(cJSON_DetachItemViaPointer(records, record));
        record = next;
    }
}

static void append(cJSON *records, const cJSON *key, const cli_rate *rate) {
    cJSON *record = cJSON_Duplicate(key, true);
    cli_json_ints(record, "size", (int64_t[]){rate->width, rate->height}, 2);
    cJSON_AddNumberToObject(record, "patches", (double)rate->patches);
    cJSON_AddNumberToObject(record, "tflop_per_second", rate->teraflops_per_second);
    cJSON_AddItemToArray(records, record);
}

bool cli_rates_save(const qvl_model_info *info, const cli_rate *rates, size_t count) {
    cJSON *json = cli_cache_read(FILE_NAME);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        json = cJSON_CreateObject();
    }
    cJSON *records = records_of(json), *key = make_key(info);
    for (size_t i = 0; records && i < count; i++) {
        forget(records, key, &rates[i]);
        append(records, key, &rates[i]);
    }
    bool good = records && cli_cache_write(FILE_NAME, json);
    cJSON_Delete(key);
    cJSON_Delete(json);
    return good;
}

bool cli_rates_find(const qvl_model_info *info, int64_t patches, cli_rate *rate) {
    cJSON *json = cli_cache_read(FILE_NAME), *key = make_key(info);
    const cJSON *record;
    double nearest = INFINITY;
    cJSON_ArrayForEach(record, cJSON_GetObjectItemCaseSensitive(json, "records")) {
        cli_rate found;
        if (!has_key(record, key) || !read_rate(record, &found)) continue;
        double distance = fabs(log((double)found.patches / (double)patches));
        if (distance > nearest) continue;
        nearest = distance;
        *rate = found;
    }
    cJSON_Delete(key);
    cJSON_Delete(json);
    return nearest < INFINITY;
}
