#include "weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int demo_complain(const char *what, const char *value) {
    fprintf(stderr, "random_model: %s: %s\n", what, value);
    return 1;
}

int demo_write_json(const char *folder, const char *name, cJSON *json) {
    char *text = json ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = text ? fopen(path, "w") : NULL;
    bool good = file && fputs(text, file) >= 0 && fputc('\n', file) >= 0;
    if (file && fclose(file) != 0) good = false;
    cJSON_free(text);
    return good ? 0 : demo_complain("cannot write", path);
}

static size_t tensor_bytes(const demo_tensor *tensor, qvl_dtype dtype) {
    return (size_t)demo_tensor_elements(tensor) * (qvl_dtype_bits(dtype) / 8);
}

/* The values of one tensor in memory of their own. */
static void *make_values(const demo_shape *shape, const demo_tensor *tensor, qvl_dtype dtype) {
    demo_rule rule = demo_value_rule(shape->init, demo_family_zero_centred(shape->family), tensor->name,
                                     tensor->shape, tensor->ndim);
    void *values = malloc(tensor_bytes(tensor, dtype));
    int64_t count = demo_tensor_elements(tensor);
    if (values && dtype == QVL_F32) demo_fill_f32(tensor->name, rule, 0, count, values);
    if (values && dtype == QVL_BF16) demo_fill_bf16(tensor->name, rule, 0, count, values);
    return values;
}

static int write_tensors(const char *path, const demo_tensor *tensors, size_t count, const demo_output *o) {
    qvl_tensor *views = calloc(count, sizeof *views);
    demo_tensor *written = calloc(count, sizeof *written);
    void **values = calloc(count, sizeof *values);
    bool memory = views && written && values;
    for (size_t i = 0; memory && i < count; i++) {
        demo_tensor *tensor = &written[i];
        *tensor = demo_rename(&tensors[i], o->naming);
        values[i] = make_values(o->shape, &tensors[i], o->dtype);
        memory = values[i] && demo_lay_out(tensor, o->layout, values[i], qvl_dtype_bits(o->dtype) / 8);
        views[i] = (qvl_tensor){.name = tensor->name, .dtype = o->dtype, .ndim = tensor->ndim, .data = values[i]};
        memcpy(views[i].shape, tensor->shape, (size_t)tensor->ndim * sizeof *views[i].shape);
    }
    qvl_error error = {.message = "not enough memory"};
    const char *const metadata[] = {"format", o->naming->format};
    bool good = memory && qvl_tensors_save(path, views, count, metadata, 1, &error) == QVL_OK;
    for (size_t i = 0; values && i < count; i++) free(values[i]);
    free(values);
    free(written);
    free(views);
    return good ? 0 : demo_complain(path, error.message);
}

/* The end of the run of tensors that makes one shard: about an equal share of the bytes. */
static size_t shard_end(const demo_tensor *tensors, size_t count, qvl_dtype dtype, size_t start, size_t share) {
    size_t bytes = 0, end = start;
    while (end < count && (end == start || bytes < share)) bytes += tensor_bytes(&tensors[end++], dtype);
    return end;
}

static int write_shards(const char *folder, const demo_tensor *tensors, size_t count, const demo_output *o) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += tensor_bytes(&tensors[i], o->dtype);
    cJSON *index = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(index, "metadata");
    cJSON_AddNumberToObject(metadata, "total_size", (double)total);
    cJSON *map = cJSON_AddObjectToObject(index, "weight_map");
    int failed = 0;
    for (size_t k = 0, start = 0; k < o->shards && !failed; k++) {
        size_t left = o->shards - 1 - k; /* every later shard keeps at least one tensor */
        size_t end = left ? shard_end(tensors, count - left, o->dtype, start, total / o->shards) : count;
        char name[64], path[4096];
        snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", k + 1, o->shards);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        failed = write_tensors(path, tensors + start, end - start, o);
        for (size_t i = start; i < end; i++)
            cJSON_AddStringToObject(map, demo_rename(&tensors[i], o->naming).name, name);
        start = end;
    }
    if (failed) {
        cJSON_Delete(index);
        return failed;
    }
    return demo_write_json(folder, "model.safetensors.index.json", index);
}

static int write_sidecar(const char *folder, const demo_tensor *tensors, size_t count, const demo_output *o) {
    char path[4096];
    snprintf(path, sizeof path, "%s/" DEMO_SIDECAR_FOLDER, folder);
    if (mkdir(path, 0777) != 0) return demo_complain(path, strerror(errno));
    snprintf(path, sizeof path, "%s/" DEMO_SIDECAR_FOLDER "/" DEMO_SIDECAR_FILE, folder);
    return write_tensors(path, tensors, count, o);
}

/* The tensors that are not in the sidecar. */
static int write_main(const char *folder, const demo_tensor *tensors, size_t count, const demo_output *o) {
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (o->shards > count) return demo_complain("more shards than tensors", o->shape->name);
    if (o->shards > 1) return write_shards(folder, tensors, count, o);
    return write_tensors(path, tensors, count, o);
}

static size_t count_vision(const demo_tensor *tensors, size_t count) {
    size_t n = 0;
    while (n < count && strncmp(tensors[n].name, "model.visual.", strlen("model.visual.")) == 0) n++;
    return n;
}

int demo_write_weights(const char *folder, const demo_output *o) {
    demo_tensor *tensors;
    size_t count;
    if (!demo_list_tensors(o->shape, &tensors, &count)) return demo_complain(folder, "not enough memory");
    size_t aside = o->naming->sidecar ? count_vision(tensors, count) : 0; /* the tower comes first */
    int failed = aside ? write_sidecar(folder, tensors, aside, o) : 0;
    if (!failed && aside < count) failed = write_main(folder, tensors + aside, count - aside, o);
    free(tensors);
    return failed;
}
