#define _GNU_SOURCE
#include "taps.h"

#include <stdlib.h>
#include <string.h>

static bool grow(cli_taps *taps) {
    if (taps->count < taps->capacity) return true;
    size_t capacity = taps->capacity ? 2 * taps->capacity : 64;
    qvl_tensor *tensors = realloc(taps->tensors, capacity * sizeof *tensors);
    if (!tensors) return false;
    taps->tensors = tensors;
    taps->capacity = capacity;
    return true;
}

void cli_taps_add(const qvl_tensor *tensor, void *user) {
    cli_taps *taps = user;
    size_t bytes = qvl_dtype_bits(tensor->dtype) / 8;
    for (int32_t i = 0; i < tensor->ndim; i++) bytes *= (size_t)tensor->shape[i];
    char *name = strdup(tensor->name);
    void *data = malloc(bytes);
    if (taps->failed || !name || !data || !grow(taps)) {
        taps->failed = true;
        free(name);
        free(data);
        return;
    }
    memcpy(data, tensor->data, bytes);
    qvl_tensor *copy = &taps->tensors[taps->count++];
    *copy = *tensor;
    copy->name = name;
    copy->data = data;
}

void cli_taps_free(cli_taps *taps) {
    for (size_t i = 0; i < taps->count; i++) {
        free((void *)(uintptr_t)taps->tensors[i].name);
        free((void *)(uintptr_t)taps->tensors[i].data);
    }
    free(taps->tensors);
    *taps = (cli_taps){0};
}
