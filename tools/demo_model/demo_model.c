/* demo_model: writes a Hugging Face folder with weights made from the tensors' names. The folder is written under
 * a temporary name and renamed, so it is whole or not there. */
#define _GNU_SOURCE
#include "configs.h"
#include "generator.h"
#include "shapes.h"

#include "qvl.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    const char *shape, *init, *folder;
    qvl_dtype dtype;
    long depth, shards;
} options;

static int usage(FILE *out) {
    fputs("usage: demo_model [--shape NAME] [--dtype bf16|f32] [--init scaled|quarter] [--depth N] [--shards N] "
          "OUT_FOLDER\n"
          "Writes a Hugging Face folder of that shape with random, reproducible weights.\n"
          "  --shape NAME   default demo; the names are below\n"
          "  --dtype TYPE   of the tensors, default bf16\n"
          "  --init RULE    default quarter for the tiny shapes, scaled for the others\n"
          "  --depth N      only the first N vision blocks\n"
          "  --shards N     N safetensors files and an index; memory needed is that of one file\n"
          "demo and tiny-* are written whole, the others as their vision tower only.\nshapes:\n",
          out);
    const char *name;
    for (size_t i = 0; (name = demo_shape_name(i)); i++) fprintf(out, "  %s\n", name);
    return out == stdout ? 0 : 2;
}

static int complain(const char *what, const char *value) {
    fprintf(stderr, "demo_model: %s: %s\n", what, value);
    return 1;
}

/* ---- command line */

static bool parse_count(const char *text, long max, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return *text && !*end && *value >= 1 && *value <= max;
}

static bool parse_option(const char *name, const char *value, options *o) {
    if (strcmp(name, "--shape") == 0) {
        o->shape = value;
        return true;
    }
    if (strcmp(name, "--init") == 0) {
        o->init = value;
        return strcmp(value, "scaled") == 0 || strcmp(value, "quarter") == 0;
    }
    if (strcmp(name, "--dtype") == 0) {
        o->dtype = strcmp(value, "f32") == 0 ? QVL_F32 : QVL_BF16;
        return strcmp(value, "f32") == 0 || strcmp(value, "bf16") == 0;
    }
    if (strcmp(name, "--depth") == 0) return parse_count(value, 1000, &o->depth);
    if (strcmp(name, "--shards") == 0) return parse_count(value, 999, &o->shards);
    return false;
}

static bool parse_options(int argc, char **argv, options *o) {
    *o = (options){.shape = "demo", .dtype = QVL_BF16, .shards = 1};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (o->folder) return false;
            o->folder = argv[i];
        } else {
            if (i + 1 == argc || !parse_option(argv[i], argv[i + 1], o)) {
                fprintf(stderr, "demo_model: bad option: %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
                return false;
            }
            i++;
        }
    }
    return o->folder != NULL;
}

static int choose_shape(const options *o, demo_shape *shape) {
    if (!demo_shape_find(o->shape, shape)) return complain("no such shape", o->shape);
    if (o->init) shape->init = strcmp(o->init, "quarter") == 0 ? DEMO_QUARTER : DEMO_SCALED;
    if (o->depth > shape->vision.depth) return complain("the shape has fewer blocks than --depth", o->shape);
    if (o->depth) demo_shape_shorten(shape, (int)o->depth);
    return 0;
}

/* ---- files */

static int write_json(const char *folder, const char *name, cJSON *json) {
    char *text = json ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = text ? fopen(path, "w") : NULL;
    bool good = file && fputs(text, file) >= 0 && fputc('\n', file) >= 0;
    if (file && fclose(file) != 0) good = false;
    cJSON_free(text);
    return good ? 0 : complain("cannot write", path);
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

static int write_tensors(const char *path, const demo_shape *shape, const demo_tensor *tensors, size_t count,
                         qvl_dtype dtype) {
    qvl_tensor *views = calloc(count, sizeof *views);
    void **values = calloc(count, sizeof *values);
    bool memory = views && values;
    for (size_t i = 0; memory && i < count; i++) {
        values[i] = make_values(shape, &tensors[i], dtype);
        memory = values[i] != NULL;
        views[i] =
            (qvl_tensor){.name = tensors[i].name, .dtype = dtype, .ndim = tensors[i].ndim, .data = values[i]};
        memcpy(views[i].shape, tensors[i].shape, (size_t)tensors[i].ndim * sizeof *views[i].shape);
    }
    qvl_error error = {.message = "not enough memory"};
    const char *const metadata[] = {"format", "pt"};
    bool good = memory && qvl_tensors_save(path, views, count, metadata, 1, &error) == QVL_OK;
    for (size_t i = 0; values && i < count; i++) free(values[i]);
    free(values);
    free(views);
    return good ? 0 : complain(path, error.message);
}

/* The end of the run of tensors that makes one shard: about an equal share of the bytes. */
static size_t shard_end(const demo_tensor *tensors, size_t count, qvl_dtype dtype, size_t start, size_t share) {
    size_t bytes = 0, end = start;
    while (end < count && (end == start || bytes < share)) bytes += tensor_bytes(&tensors[end++], dtype);
    return end;
}

static int write_shards(const char *folder, const demo_shape *shape, const demo_tensor *tensors, size_t count,
                        const options *o) {
    size_t total = 0, shards = (size_t)o->shards;
    for (size_t i = 0; i < count; i++) total += tensor_bytes(&tensors[i], o->dtype);
    cJSON *index = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(index, "metadata");
    cJSON_AddNumberToObject(metadata, "total_size", (double)total);
    cJSON *map = cJSON_AddObjectToObject(index, "weight_map");
    int failed = 0;
    for (size_t k = 0, start = 0; k < shards && !failed; k++) {
        size_t left = shards - 1 - k; /* every later shard keeps at least one tensor */
        size_t end = left ? shard_end(tensors, count - left, o->dtype, start, total / shards) : count;
        char name[64], path[4096];
        snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", k + 1, shards);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        failed = write_tensors(path, shape, tensors + start, end - start, o->dtype);
        for (size_t i = start; i < end; i++) cJSON_AddStringToObject(map, tensors[i].name, name);
        start = end;
    }
    if (failed) {
        cJSON_Delete(index);
        return failed;
    }
    return write_json(folder, "model.safetensors.index.json", index);
}

static int write_weights(const char *folder, const demo_shape *shape, const options *o) {
    demo_tensor *tensors;
    size_t count;
    if (!demo_list_tensors(shape, &tensors, &count)) return complain(folder, "not enough memory");
    int failed;
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if ((size_t)o->shards > count)
        failed = complain("more shards than tensors", o->shape);
    else if (o->shards > 1)
        failed = write_shards(folder, shape, tensors, count, o);
    else
        failed = write_tensors(path, shape, tensors, count, o->dtype);
    free(tensors);
    return failed;
}

static int write_folder(const char *folder, const demo_shape *shape, const options *o) {
    const char *dtype = o->dtype == QVL_F32 ? "float32" : "bfloat16";
    if (write_json(folder, "config.json", demo_config(shape, dtype))) return 1;
    if (write_json(folder, "generation_config.json", demo_generation_config(shape))) return 1;
    if (write_json(folder, "preprocessor_config.json", demo_image_processor(shape))) return 1;
    if (write_json(folder, "video_preprocessor_config.json", demo_video_processor(shape))) return 1;
    return write_weights(folder, shape, o);
}

/* A folder this program made: files only. */
static void remove_folder(const char *folder) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(folder);
}

/* Nothing is there, or an empty folder. Asked before the work; rename() refuses the rest. */
static bool is_free(const char *path) {
    if (access(path, F_OK) != 0) return true;
    DIR *directory = opendir(path);
    if (!directory) return false;
    const struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) empty = false;
    closedir(directory);
    return empty;
}

int main(int argc, char **argv) {
    options o;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return usage(stdout);
    if (!parse_options(argc, argv, &o)) return usage(stderr);
    demo_shape shape;
    if (choose_shape(&o, &shape)) return 2;
    if (!is_free(o.folder)) return complain("it exists and is not an empty folder", o.folder);
    int length = (int)strlen(o.folder);
    while (length > 1 && o.folder[length - 1] == '/') length--;
    char temporary[2048];
    int n = snprintf(temporary, sizeof temporary, "%.*s.tmp-%ld", length, o.folder, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof temporary) return complain("the folder's name is too long", o.folder);
    if (mkdir(temporary, 0777) != 0) return complain(temporary, strerror(errno));
    int failed = write_folder(temporary, &shape, &o);
    if (!failed && rename(temporary, o.folder) != 0) failed = complain(o.folder, strerror(errno));
    if (failed) remove_folder(temporary);
    return failed;
}
