#define _GNU_SOURCE
#include "vision/towers.h"

#include "../tools/random_model/generator.h"
#include "base/bf16.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char temporary[64];

static void remove_temporary(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", temporary);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", temporary);
}

const char *make_model_folder(const char *shape, const char *init, const char *dtype) {
    static char path[256];
    char command[1024];
    if (!temporary[0]) {
        snprintf(temporary, sizeof temporary, "/tmp/qvl-test-XXXXXX");
        assert_non_null(mkdtemp(temporary));
        atexit(remove_temporary);
    }
    snprintf(path, sizeof path, "%s/%s-%s-%s", temporary, shape, init, dtype);
    if (access(path, F_OK) == 0) return path;
    snprintf(command, sizeof command, "'%s' --shape %s --init %s --dtype %s '%s' >/dev/null",
             QVL_RANDOM_MODEL_TOOL, shape, init, dtype, path);
    assert_int_equal(system(command), 0);
    return path;
}

qvl_model *open_model(const char *folder, qvl_dtype dtype, int threads, uint32_t cpu_mask) {
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.dtype = dtype;
    options.threads = threads;
    options.cpu_mask = cpu_mask;
    qvl_model *model = NULL;
    qvl_error error = {0};
    if (qvl_model_open(folder, &options, &model, &error)) fail_msg("%s", error.message);
    return model;
}

qvl_patches case_patches(const qvl_tensor_file *fixture, const char *name, const qvl_model *model) {
    const qvl_model_info *info = qvl_model_get_info(model);
    char key[64];
    qvl_tensor grid;
    snprintf(key, sizeof key, "%s/grid_thw", name);
    if (!qvl_tensor_file_find(fixture, key, &grid)) fail_msg("the fixture has no %s", key);
    qvl_patches p = {0};
    p.item_count = (size_t)grid.shape[0];
    p.items = calloc(p.item_count, sizeof *p.items);
    p.cols = (int64_t)info->in_channels * info->temporal_patch_size * info->patch_size * info->patch_size;
    const int64_t *g = grid.data;
    for (size_t i = 0; i < p.item_count; i++) {
        p.items[i].grid = (qvl_grid){g[3 * i], g[3 * i + 1], g[3 * i + 2]};
        p.rows += g[3 * i] * g[3 * i + 1] * g[3 * i + 2];
    }
    p.values = malloc((size_t)(p.rows * p.cols) * sizeof(float));
    float *out = p.values;
    for (size_t i = 0; i < p.item_count; i++) {
        qvl_grid q = p.items[i].grid;
        int64_t count = q.t * q.h * q.w * p.cols;
        if (strcmp(name, "image") == 0)
            snprintf(key, sizeof key, "pixel_values");
        else if (strcmp(name, "video") == 0)
            snprintf(key, sizeof key, "pixel_values_videos");
        else
            snprintf(key, sizeof key, "%s.%zu", name, i);
        demo_fill(key, 0, count, out);
        out += count;
    }
    return p;
}

void keep_stage(const qvl_tensor *tensor, void *user) {
    stages *s = user;
    assert_true(s->count < sizeof s->tensors / sizeof s->tensors[0]);
    qvl_tensor *copy = &s->tensors[s->count++];
    *copy = *tensor;
    copy->name = strdup(tensor->name);
    size_t bytes = (size_t)tensor_count(tensor) * qvl_dtype_bits(tensor->dtype) / 8;
    void *data = malloc(bytes);
    memcpy(data, tensor->data, bytes);
    copy->data = data;
}

const qvl_tensor *find_stage(const stages *s, const char *name) {
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0) return &s->tensors[i];
    return NULL;
}

void free_stages(stages *s) {
    for (size_t i = 0; i < s->count; i++) {
        free((void *)(uintptr_t)s->tensors[i].name);
        free((void *)(uintptr_t)s->tensors[i].data);
    }
    s->count = 0;
}

int64_t tensor_count(const qvl_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

double tensor_value(const qvl_tensor *t, int64_t i) {
    switch (t->dtype) {
    case QVL_F32:
        return ((const float *)t->data)[i];
    case QVL_F64:
        return ((const double *)t->data)[i];
    case QVL_BF16:
        return qvl_f32_from_bf16(((const uint16_t *)t->data)[i]);
    case QVL_I64:
        return (double)((const int64_t *)t->data)[i];
    default:
        fail_msg("no test reads %s", qvl_dtype_name(t->dtype));
        return 0;
    }
}

distance tensor_distance(const qvl_tensor *x, const qvl_tensor *reference) {
    int64_t count = tensor_count(x), rows = x->shape[0], width = count / rows;
    if (count != tensor_count(reference)) fail_msg("%s has %lld elements", reference->name, (long long)count);
    distance d = {0};
    double error = 0, power = 0;
    for (int64_t r = 0; r < rows; r++) {
        double row_error = 0, row_power = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            double a = tensor_value(x, i), b = tensor_value(reference, i);
            row_error += (a - b) * (a - b);
            row_power += b * b;
        }
        error += row_error;
        power += row_power;
        if (!(row_error / row_power <= d.worst)) {
            d.worst = row_error / row_power;
            d.worst_row = r;
        }
    }
    d.nmse = error / power;
    return d;
}

qvl_tensor features_tensor(const qvl_features *features, int level) {
    return (qvl_tensor){.name = level < 0 ? "merged" : "deepstack",
                        .dtype = features->dtype,
                        .ndim = 2,
                        .shape = {features->tokens, features->width},
                        .data = level < 0 ? features->embeds : features->deepstack[level]};
}
