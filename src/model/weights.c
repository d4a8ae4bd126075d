/* Finds the vision tower's tensors in a folder and checks every one against the configuration: names, shapes and
 * types must fit exactly, so that no tower runs with a part that was silently left out. */
#include "model/weights.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX ((size_t)64 << 20)
#define MAX_NAME 256

/* Naming generations: what comes before "blocks.0.norm1.weight". No one may be the start of another. */
static const char *const prefixes[] = {"model.visual.", "visual."};
#define PREFIX_COUNT (sizeof prefixes / sizeof prefixes[0])

/* Tensors that only quantised weights have beside them. */
static const char *const quantised_suffixes[] = {
    ".scales",      ".biases",           ".weight_scale", ".weight_scale_inv", ".weight_scale_2",
    ".qweight",     ".qzeros",           ".g_idx",        ".weight_packed",    ".weight_zero_point",
    ".input_scale", ".activation_scale", ".absmax",       ".quant_map",
};

/* A tensor of the tower as it lies in a file. */
typedef struct entry {
    const char *name; /* after the prefix */
    const qvl_tensor *tensor;
    const qvl_safetensors *file;
    bool used;
} entry;

/* The search for the tensors. Once status is not QVL_OK, want_* do nothing. */
typedef struct search {
    const char *folder;
    const qvl_vision_config *config;
    qvl_raw_tower *tower;
    const char *prefix;
    entry *entries; /* sorted by name */
    size_t count;
    size_t wanted, missing;
    char first_missing[MAX_NAME];
    qvl_status status;
    qvl_error *error;
} search;

/* The prefix a tensor's name starts with, or -1. */
static int prefix_of(const char *name) {
    for (size_t i = 0; i < PREFIX_COUNT; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return (int)i;
    return -1;
}

static bool ends_with(const char *name, const char *suffix) {
    size_t a = strlen(name), b = strlen(suffix);
    return a >= b && strcmp(name + a - b, suffix) == 0;
}

static int compare_strings(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* --------------------------------------------------------------------------------------------- opening files */

static qvl_status fail_no_tower(const search *s) {
    return qvl_fail(s->error, QVL_ERROR_MODEL, "no vision tower tensors in %s (looked for %s* and %s*)", s->folder,
                    prefixes[0], prefixes[1]);
}

/* Opens one file of the folder as the next of tower->files, which has room. */
static qvl_status open_file(search *s, const char *name) {
    char *path = qvl_path_join(s->folder, name);
    if (!path) return qvl_fail_memory(s->error, "file name", strlen(name), 1);
    qvl_raw_tower *tower = s->tower;
    qvl_status status = qvl_safetensors_open(path, &tower->files[tower->file_count], s->error);
    if (!status) tower->file_count++;
    qvl_free(path);
    return status;
}

static qvl_status open_single(search *s) {
    s->tower->files = qvl_calloc(1, sizeof *s->tower->files);
    if (!s->tower->files) return qvl_fail_memory(s->error, "tensor files", 1, sizeof *s->tower->files);
    return open_file(s, "model.safetensors");
}

/* A shard lies in the folder itself: an index must not point elsewhere. */
static qvl_status check_shard(const search *s, const cJSON *item, const char *index) {
    if (!cJSON_IsString(item) || !*item->valuestring) {
        char found[QVL_JSON_DESCRIPTION];
        qvl_json_describe(item, found);
        return qvl_fail(s->error, QVL_ERROR_FORMAT, "%s: the file of %.200s is %s; it must be a file name", index,
                        item->string, found);
    }
    const char *shard = item->valuestring;
    if (strchr(shard, '/') || strcmp(shard, "..") == 0)
        return qvl_fail(s->error, QVL_ERROR_FORMAT, "%s: the file of %.200s is \"%.200s\", outside the folder",
                        index, item->string, shard);
    char *path = qvl_path_join(s->folder, shard);
    if (!path) return qvl_fail_memory(s->error, "file name", strlen(shard), 1);
    bool exists = qvl_file_exists(path);
    qvl_free(path);
    if (exists) return QVL_OK;
    return qvl_fail(s->error, QVL_ERROR_MODEL, "%s: %.200s should be in %.200s, which is not in the folder", index,
                    item->string, shard);
}

/* Opens the shards that the index names for tensors of the tower, each once, in order of name. */
static qvl_status open_shards(search *s, const cJSON *map, const char *index) {
    size_t most = (size_t)cJSON_GetArraySize(map), count = 0, unique = 0;
    const char **names = qvl_alloc(most + 1, sizeof *names);
    qvl_status status = QVL_OK;
    if (!names) return qvl_fail_memory(s->error, "shard names", most, sizeof *names);
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        if (prefix_of(item->string) < 0) continue;
        status = check_shard(s, item, index);
        if (status) goto done;
        names[count++] = item->valuestring;
    }
    if (count == 0) {
        status = fail_no_tower(s);
        goto done;
    }
    qsort(names, count, sizeof *names, compare_strings);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) names[unique++] = names[i];
    s->tower->files = qvl_calloc(unique, sizeof *s->tower->files);
    if (!s->tower->files) status = qvl_fail_memory(s->error, "tensor files", unique, sizeof *s->tower->files);
    for (size_t i = 0; i < unique && !status; i++) status = open_file(s, names[i]);
done:
    qvl_free(names);
    return status;
}

static int compare_shard_with_file(const void *shard, const void *file) {
    const char *path = ((const qvl_safetensors *)file)->path, *slash = strrchr(path, '/');
    return strcmp(shard, slash ? slash + 1 : path);
}

/* A shard that was replaced without its index is found here. */
static qvl_status check_index(const search *s, const cJSON *map, const char *index) {
    const qvl_raw_tower *tower = s->tower;
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        if (prefix_of(item->string) < 0) continue;
        const qvl_safetensors *file = bsearch(item->valuestring, tower->files, (size_t)tower->file_count,
                                              sizeof *tower->files, compare_shard_with_file);
        if (!file || !qvl_safetensors_find(file, item->string))
            return qvl_fail(s->error, QVL_ERROR_MODEL, "%s: %.200s should be in %.200s, which has no such tensor",
                            index, item->string, item->valuestring);
    }
    return QVL_OK;
}

static qvl_status open_indexed(search *s, const char *index) {
    cJSON *root;
    const cJSON *map = NULL;
    qvl_status status = qvl_json_read(index, MAX_INDEX, &root, s->error);
    if (!status) status = qvl_json_object(root, "weight_map", index, &map, s->error);
    if (!status && !map) status = qvl_fail(s->error, QVL_ERROR_FORMAT, "%s has no weight_map", index);
    if (!status) status = open_shards(s, map, index);
    if (!status) status = check_index(s, map, index);
    cJSON_Delete(root);
    return status;
}

/* A single file goes before an index, as in transformers. */
static qvl_status open_files(search *s) {
    char *single = qvl_path_join(s->folder, "model.safetensors");
    char *index = qvl_path_join(s->folder, "model.safetensors.index.json");
    qvl_status status;
    if (!single || !index)
        status = qvl_fail_memory(s->error, "file names", 2, strlen(s->folder));
    else if (qvl_file_exists(single))
        status = open_single(s);
    else if (qvl_file_exists(index))
        status = open_indexed(s, index);
    else
        status = qvl_fail(s->error, QVL_ERROR_MODEL,
                          "no weights in %s: neither model.safetensors nor model.safetensors.index.json is there",
                          s->folder);
    qvl_free(single);
    qvl_free(index);
    return status;
}

/* ----------------------------------------------------------------------------------- the tower's tensors in them
 */

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* Decides the prefix: the one that tensors have. */
static qvl_status find_prefix(search *s) {
    int chosen = -1;
    for (int32_t f = 0; f < s->tower->file_count; f++) {
        const qvl_safetensors *file = &s->tower->files[f];
        for (size_t i = 0; i < file->count; i++) {
            int prefix = prefix_of(file->tensors[i].name);
            if (prefix < 0) continue;
            if (chosen >= 0 && prefix != chosen)
                return qvl_fail(s->error, QVL_ERROR_MODEL,
                                "%s has two towers: tensors under %s and under %s (%.200s)", s->folder,
                                prefixes[chosen], prefixes[prefix], file->tensors[i].name);
            chosen = prefix;
            s->count++;
        }
    }
    if (chosen < 0) return fail_no_tower(s);
    s->prefix = prefixes[chosen];
    return QVL_OK;
}

static qvl_status collect_entries(search *s) {
    qvl_status status = find_prefix(s);
    if (status) return status;
    size_t length = strlen(s->prefix), n = 0;
    s->entries = qvl_calloc(s->count, sizeof *s->entries);
    if (!s->entries) return qvl_fail_memory(s->error, "tower tensors", s->count, sizeof *s->entries);
    for (int32_t f = 0; f < s->tower->file_count; f++) {
        const qvl_safetensors *file = &s->tower->files[f];
        for (size_t i = 0; i < file->count; i++)
            if (strncmp(file->tensors[i].name, s->prefix, length) == 0)
                s->entries[n++] = (entry){file->tensors[i].name + length, &file->tensors[i], file, false};
    }
    qsort(s->entries, n, sizeof *s->entries, compare_entries);
    for (size_t i = 1; i < n; i++)
        if (strcmp(s->entries[i - 1].name, s->entries[i].name) == 0)
            return qvl_fail(s->error, QVL_ERROR_MODEL, "tensor %.200s is in two files, %.300s and %.300s",
                            s->entries[i].tensor->name, s->entries[i - 1].file->path, s->entries[i].file->path);
    return QVL_OK;
}

/* Older files carry the rotary frequencies, which are computed here. */
static bool is_ignored(const entry *e) {
    return strcmp(e->name, "rotary_pos_emb.inv_freq") == 0;
}

static bool is_float(qvl_dtype dtype) {
    return dtype == QVL_F32 || dtype == QVL_BF16 || dtype == QVL_F16;
}

/* First of all, so that a quantised tower is called that and not a shape mismatch. */
static qvl_status check_dtypes(search *s) {
    for (size_t i = 0; i < s->count; i++) {
        entry *e = &s->entries[i];
        if (is_ignored(e)) {
            e->used = true;
            continue;
        }
        if (!is_float(e->tensor->dtype))
            return qvl_fail(s->error, QVL_ERROR_UNSUPPORTED,
                            "%s: tensor %.200s has dtype %s; qvl reads towers in F32, BF16 and F16", e->file->path,
                            e->tensor->name, qvl_dtype_name(e->tensor->dtype));
        for (size_t k = 0; k < sizeof quantised_suffixes / sizeof quantised_suffixes[0]; k++)
            if (ends_with(e->name, quantised_suffixes[k]))
                return qvl_fail(s->error, QVL_ERROR_UNSUPPORTED,
                                "%s: tensor %.200s (%s) belongs to quantised weights, which qvl does not read",
                                e->file->path, e->tensor->name, qvl_dtype_name(e->tensor->dtype));
    }
    return QVL_OK;
}

/* ------------------------------------------------------------------------------------ what the tower must have */

static int compare_name_with_entry(const void *name, const void *e) {
    return strcmp(name, ((const entry *)e)->name);
}

/* "[1152, 3, 2, 16, 16]" */
static void print_shape(const int64_t *shape, int32_t ndim, char text[160]) {
    size_t used = (size_t)snprintf(text, 160, "[");
    for (int32_t i = 0; i < ndim; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    snprintf(text + used, 160 - used, "]");
}

static bool same_shape(const qvl_tensor *tensor, int32_t ndim, const int64_t *shape) {
    return tensor->ndim == ndim && memcmp(tensor->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static void note_dtype(qvl_raw_tower *tower, qvl_dtype dtype) {
    const char *name = qvl_dtype_name(dtype);
    if (tower->tensor_count == 0)
        snprintf(tower->dtype, sizeof tower->dtype, "%s", name);
    else if (strcmp(tower->dtype, name) != 0)
        snprintf(tower->dtype, sizeof tower->dtype, "mixed");
}

/* name is what follows the prefix. */
static void want(search *s, const char *name, int32_t ndim, const int64_t *shape, qvl_tensor *tensor) {
    if (s->status) return;
    s->wanted++;
    entry *e = bsearch(name, s->entries, s->count, sizeof *s->entries, compare_name_with_entry);
    if (!e) {
        if (s->missing++ == 0) snprintf(s->first_missing, sizeof s->first_missing, "%s%s", s->prefix, name);
        return;
    }
    e->used = true;
    if (!same_shape(e->tensor, ndim, shape)) {
        char found[160], wanted[160];
        print_shape(e->tensor->shape, e->tensor->ndim, found);
        print_shape(shape, ndim, wanted);
        s->status = qvl_fail(s->error, QVL_ERROR_MODEL, "%s: tensor %.200s has shape %s; config.json asks for %s",
                             e->file->path, e->tensor->name, found, wanted);
        return;
    }
    *tensor = *e->tensor;
    note_dtype(s->tower, tensor->dtype);
    s->tower->tensor_count++;
    int64_t elements = 1;
    for (int32_t i = 0; i < ndim; i++) elements *= shape[i]; /* below 2^31: see config.c */
    s->tower->parameter_count += elements;
}

static void want_norm(search *s, const char *base, int64_t width, qvl_raw_norm *norm) {
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s.weight", base);
    want(s, name, 1, &width, &norm->weight);
    snprintf(name, sizeof name, "%s.bias", base);
    want(s, name, 1, &width, &norm->bias);
}

static void want_linear(search *s, const char *base, int64_t out, int64_t in, qvl_raw_linear *linear) {
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s.weight", base);
    want(s, name, 2, (const int64_t[]){out, in}, &linear->weight);
    snprintf(name, sizeof name, "%s.bias", base);
    want(s, name, 1, &out, &linear->bias);
}

/* The same [d, C, t, p, p] with its channels last is how MLX stores it. */
static void want_patch_embed(search *s) {
    const qvl_vision_config *c = s->config;
    const char *name = "patch_embed.proj.weight";
    const int64_t d = c->hidden_size, t = c->temporal_patch_size, p = c->patch_size, channels = c->in_channels;
    const int64_t shape[] = {d, channels, t, p, p}, mlx[] = {d, t, p, p, channels};
    const entry *e = bsearch(name, s->entries, s->count, sizeof *s->entries, compare_name_with_entry);
    if (e && !same_shape(e->tensor, 5, shape) && same_shape(e->tensor, 5, mlx)) {
        char found[160], wanted[160];
        print_shape(mlx, 5, found);
        print_shape(shape, 5, wanted);
        s->status =
            qvl_fail(s->error, QVL_ERROR_UNSUPPORTED,
                     "%s: tensor %.200s has shape %s, the layout of MLX; qvl reads %s, that of Hugging Face",
                     e->file->path, e->tensor->name, found, wanted);
        return;
    }
    want(s, name, 5, shape, &s->tower->patch_embed.weight);
    want(s, "patch_embed.proj.bias", 1, &d, &s->tower->patch_embed.bias);
}

static void want_block(search *s, int32_t number, qvl_raw_block *block) {
    const int64_t d = s->config->hidden_size, wide = s->config->intermediate_size;
    char base[64];
    snprintf(base, sizeof base, "blocks.%d.norm1", number);
    want_norm(s, base, d, &block->norm1);
    snprintf(base, sizeof base, "blocks.%d.norm2", number);
    want_norm(s, base, d, &block->norm2);
    snprintf(base, sizeof base, "blocks.%d.attn.qkv", number);
    want_linear(s, base, 3 * d, d, &block->qkv);
    snprintf(base, sizeof base, "blocks.%d.attn.proj", number);
    want_linear(s, base, d, d, &block->proj);
    snprintf(base, sizeof base, "blocks.%d.mlp.linear_fc1", number);
    want_linear(s, base, wide, d, &block->fc1);
    snprintf(base, sizeof base, "blocks.%d.mlp.linear_fc2", number);
    want_linear(s, base, d, wide, &block->fc2);
}

/* norm_width: d before the rows of a block are joined (main merger), merge^2 * d after (deepstack). */
static void want_merger(search *s, const char *merger_name, int64_t norm_width, qvl_raw_merger *merger) {
    const qvl_vision_config *c = s->config;
    const int64_t merged = (int64_t)c->hidden_size * c->spatial_merge_size * c->spatial_merge_size;
    char base[64];
    snprintf(base, sizeof base, "%s.norm", merger_name);
    want_norm(s, base, norm_width, &merger->norm);
    snprintf(base, sizeof base, "%s.linear_fc1", merger_name);
    want_linear(s, base, merged, merged, &merger->fc1);
    snprintf(base, sizeof base, "%s.linear_fc2", merger_name);
    want_linear(s, base, c->out_hidden_size, merged, &merger->fc2);
}

static void want_all(search *s) {
    const qvl_vision_config *c = s->config;
    qvl_raw_tower *tower = s->tower;
    const int64_t d = c->hidden_size, merged = d * c->spatial_merge_size * c->spatial_merge_size;
    want_patch_embed(s);
    want(s, "pos_embed.weight", 2, (const int64_t[]){c->num_position_embeddings, d}, &tower->pos_embed);
    for (int32_t i = 0; i < c->depth; i++) want_block(s, i, &tower->blocks[i]);
    want_merger(s, "merger", d, &tower->merger);
    for (int32_t i = 0; i < c->deepstack_count; i++) {
        char name[48];
        snprintf(name, sizeof name, "deepstack_merger_list.%d", i);
        want_merger(s, name, merged, &tower->deepstack[i]);
    }
}

/* Missing and unused together: a renamed tensor is one of each. */
static qvl_status check_complete(search *s) {
    size_t unused = 0;
    const entry *first_unused = NULL;
    for (size_t i = 0; i < s->count; i++) {
        if (s->entries[i].used) continue;
        if (unused++ == 0) first_unused = &s->entries[i];
    }
    if (s->missing && unused)
        return qvl_fail(s->error, QVL_ERROR_MODEL,
                        "%s: %zu of %zu tower tensors are missing, first %.200s; %zu are not of this tower, first "
                        "%.200s",
                        s->folder, s->missing, s->wanted, s->first_missing, unused, first_unused->tensor->name);
    if (s->missing)
        return qvl_fail(s->error, QVL_ERROR_MODEL, "%s: %zu of %zu tower tensors are missing, first %.200s",
                        s->folder, s->missing, s->wanted, s->first_missing);
    if (unused)
        return qvl_fail(s->error, QVL_ERROR_MODEL,
                        "%s: %zu tensors under %s are not of the tower that config.json describes, first %.200s",
                        s->folder, unused, s->prefix, first_unused->tensor->name);
    return QVL_OK;
}

/* ------------------------------------------------------------------------------------------------ open, close */

qvl_status qvl_raw_tower_open(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error) {
    *tower = (qvl_raw_tower){0};
    search s = {.folder = folder, .config = config, .tower = tower, .error = error};
    qvl_status status = open_files(&s);
    if (!status) status = collect_entries(&s);
    if (!status) status = check_dtypes(&s);
    if (status) goto done;
    tower->blocks = qvl_calloc((size_t)config->depth, sizeof *tower->blocks);
    if (!tower->blocks) {
        status = qvl_fail_memory(error, "tower blocks", (size_t)config->depth, sizeof *tower->blocks);
        goto done;
    }
    want_all(&s);
    status = s.status;
    if (!status) status = check_complete(&s);
    if (!status) snprintf(tower->prefix, sizeof tower->prefix, "%s", s.prefix);
done:
    qvl_free(s.entries);
    if (status) qvl_raw_tower_close(tower);
    return status;
}

void qvl_raw_tower_close(qvl_raw_tower *tower) {
    for (int32_t i = 0; i < tower->file_count; i++) qvl_safetensors_close(&tower->files[i]);
    qvl_free(tower->files);
    qvl_free(tower->blocks);
    *tower = (qvl_raw_tower){0};
}
