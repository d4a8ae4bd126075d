#define _GNU_SOURCE
#include "output.h"

#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int cli_print_json(cJSON *object) {
    char *text = cJSON_Print(object);
    cJSON_Delete(object);
    if (!text) {
        fputs("qvl: not enough memory\n", stderr);
        return CLI_REFUSED;
    }
    puts(text);
    cJSON_free(text);
    return CLI_DONE;
}

void cli_json_ints(cJSON *object, const char *key, const int64_t *values, int count) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (int i = 0; i < count; i++) cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[i]));
}

const char *cli_dtype_name(qvl_dtype dtype) {
    return dtype == QVL_F32 ? "f32" : "bf16";
}

void cli_print_items(char *const *names, const qvl_item *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const qvl_item *item = &items[i];
        printf("%s: %lldx%lld -> %lldx%lld, grid %lldx%lldx%lld, %lld tokens\n", names[i],
               (long long)item->source_width, (long long)item->source_height, (long long)item->width,
               (long long)item->height, (long long)item->grid.t, (long long)item->grid.h, (long long)item->grid.w,
               (long long)item->tokens);
    }
}

void cli_json_items(cJSON *object, char *const *names, const qvl_item *items, size_t count) {
    cJSON *array = cJSON_AddArrayToObject(object, "items");
    for (size_t i = 0; i < count; i++) {
        const qvl_item *item = &items[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "input", names[i]);
        cli_json_ints(entry, "source_size", (int64_t[]){item->source_width, item->source_height}, 2);
        cli_json_ints(entry, "size", (int64_t[]){item->width, item->height}, 2);
        cli_json_ints(entry, "grid_thw", (int64_t[]){item->grid.t, item->grid.h, item->grid.w}, 3);
        cJSON_AddNumberToObject(entry, "tokens", (double)item->tokens);
        cJSON_AddItemToArray(array, entry);
    }
}

int64_t cli_total_tokens(const qvl_item *items, size_t count) {
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) total += items[i].tokens;
    return total;
}

int64_t *cli_grids(const qvl_item *items, size_t count) {
    int64_t *grids = calloc(count, 3 * sizeof *grids);
    for (size_t i = 0; grids && i < count; i++) {
        grids[3 * i] = items[i].grid.t;
        grids[3 * i + 1] = items[i].grid.h;
        grids[3 * i + 2] = items[i].grid.w;
    }
    return grids;
}

qvl_tensor cli_tensor(const char *name, qvl_dtype dtype, int64_t rows, int64_t cols, const void *data) {
    qvl_tensor tensor = {.name = name, .dtype = dtype, .ndim = cols ? 2 : 1, .shape = {rows, cols}, .data = data};
    return tensor;
}

qvl_status cli_save(const char *path, const qvl_tensor *tensors, size_t count, const qvl_model_info *info,
                    qvl_preset preset, qvl_error *error) {
    const char *const metadata[] = {
        "format",      "pt",
        "kernels",     info->kernels,
        "model_type",  info->model_type,
        "preset",      qvl_preset_name(preset),
        "qvl_version", qvl_version(),
    };
    return qvl_tensors_save(path, tensors, count, metadata, sizeof metadata / sizeof *metadata / 2, error);
}

qvl_input *cli_inputs(const cli_options *options) {
    qvl_input *inputs = calloc(options->input_count, sizeof *inputs);
    for (size_t i = 0; inputs && i < options->input_count; i++)
        inputs[i] = (qvl_input){.kind = QVL_INPUT_FILE, .name = options->inputs[i]};
    return inputs;
}

qvl_status cli_check_writable(const char *path, qvl_error *error) {
    if (!path) return QVL_OK;
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int n = !slash          ? snprintf(folder, sizeof folder, ".")
            : slash == path ? snprintf(folder, sizeof folder, "/")
                            : snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (n >= 0 && (size_t)n < sizeof folder && access(folder, W_OK) == 0) return QVL_OK;
    return cli_fail(error, QVL_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}
