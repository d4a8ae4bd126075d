/* Finds the files of a folder that hold the vision tower. An index is not trusted: what it says is compared with
 * the folder and with the files, so that a stale one is named instead of half a tower being read. */
#include "model/weights_files.h"

#include "base/json.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INDEX ((size_t)64 << 20)

/* ------------------------------------------------------------------------------------------------------- names */

static const struct {
    const char *prefix, *describe;
} namings[] = {
    [QVL_NAMING_MODEL_VISUAL] = {"model.visual.", "under model.visual."},
    [QVL_NAMING_VISUAL] = {"visual.", "under visual."},
    [QVL_NAMING_VISION_TOWER] = {"vision_tower.", "under vision_tower."},
    [QVL_NAMING_STRAY] = {"model.language_model.visual.", "under model.language_model.visual."},
    [QVL_NAMING_FLAT] = {"", "without a prefix"},
};

/* The parts of a tower: how its tensors start when nothing is before them. A text model may lie beside them. */
static const char *const parts[] = {"patch_embed.",           "pos_embed.",     "blocks.", "merger.",
                                    "deepstack_merger_list.", "rotary_pos_emb."};

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

qvl_naming qvl_naming_of(const char *tensor) {
    for (int i = 0; i < QVL_NAMING_FLAT; i++)
        if (starts_with(tensor, namings[i].prefix)) return (qvl_naming)i;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (starts_with(tensor, parts[i])) return QVL_NAMING_FLAT;
    return QVL_NAMING_NONE;
}

const char *qvl_naming_prefix(qvl_naming naming) {
    return namings[naming].prefix;
}

const char *qvl_naming_describe(qvl_naming naming) {
    return namings[naming].describe;
}

static bool is_towers(const char *tensor) {
    return qvl_naming_of(tensor) != QVL_NAMING_NONE;
}

qvl_status qvl_fail_no_tower(const char *where, qvl_error *error) {
    return qvl_fail(error, QVL_ERROR_MODEL,
                    "no vision tower tensors in %s (looked for %s*, %s*, %s*, %s*, and for %s*, %s* and so on "
                    "without a prefix)",
                    where, namings[QVL_NAMING_MODEL_VISUAL].prefix, namings[QVL_NAMING_VISUAL].prefix,
                    namings[QVL_NAMING_VISION_TOWER].prefix, namings[QVL_NAMING_STRAY].prefix, parts[0], parts[2]);
}

/* ------------------------------------------------------------------------------------------------------- files */

/* Opens one file of the folder as the next of files->files, which has room. */
static qvl_status open_file(const char *folder, const char *name, qvl_tower_files *files, qvl_error *error) {
    char *path = qvl_path_join(folder, name);
    if (!path) return qvl_fail_memory(error, "file name", strlen(name), 1);
    qvl_status status = qvl_safetensors_open(path, &files->files[files->count], error);
    if (!status) files->count++;
    qvl_free(path);
    return status;
}

static qvl_status open_single(const char *folder, const char *name, qvl_tower_files *files, qvl_error *error) {
    files->source = name;
    files->files = qvl_calloc(1, sizeof *files->files);
    if (!files->files) return qvl_fail_memory(error, "tensor files", 1, sizeof *files->files);
    return open_file(folder, name, files, error);
}

/* An index being followed. */
typedef struct shard_index {
    const char *folder, *path;
    const cJSON *map; /* tensor name -> shard */
    bool (*wanted)(const char *tensor);
    qvl_error *error;
} shard_index;

/* A shard lies in the folder itself: an index must not point elsewhere. */
static qvl_status check_shard(const shard_index *x, const cJSON *item) {
    if (!cJSON_IsString(item) || !*item->valuestring) {
        char found[QVL_JSON_DESCRIPTION];
        qvl_json_describe(item, found);
        return qvl_fail(x->error, QVL_ERROR_FORMAT, "%s: the file of %.200s is %s; it must be a file name",
                        x->path, item->string, found);
    }
    const char *shard = item->valuestring;
    if (strchr(shard, '/') || strcmp(shard, "..") == 0)
        return qvl_fail(x->error, QVL_ERROR_FORMAT, "%s: the file of %.200s is \"%.200s\", outside the folder",
                        x->path, item->string, shard);
    char *path = qvl_path_join(x->folder, shard);
    if (!path) return qvl_fail_memory(x->error, "file name", strlen(shard), 1);
    bool exists = qvl_file_exists(path);
    qvl_free(path);
    if (exists) return QVL_OK;
    return qvl_fail(x->error, QVL_ERROR_MODEL, "%s: %.200s should be in %.200s, which is not in the folder",
                    x->path, item->string, shard);
}

static int compare_strings(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Opens the shards that the index names for wanted tensors, each once, in order of name. */
static qvl_status open_shards(const shard_index *x, qvl_tower_files *files) {
    size_t most = (size_t)cJSON_GetArraySize(x->map), count = 0, unique = 0;
    const char **names = qvl_alloc(most + 1, sizeof *names);
    qvl_status status = QVL_OK;
    if (!names) return qvl_fail_memory(x->error, "shard names", most, sizeof *names);
    const cJSON *item;
    cJSON_ArrayForEach(item, x->map) {
        if (!x->wanted(item->string)) continue;
        status = check_shard(x, item);
        if (status) goto done;
        names[count++] = item->valuestring;
    }
    if (count == 0) goto done;
    qsort(names, count, sizeof *names, compare_strings);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) names[unique++] = names[i];
    files->files = qvl_calloc(unique, sizeof *files->files);
    if (!files->files) status = qvl_fail_memory(x->error, "tensor files", unique, sizeof *files->files);
    for (size_t i = 0; i < unique && !status; i++) status = open_file(x->folder, names[i], files, x->error);
done:
    qvl_free(names);
    return status;
}

static int compare_shard_with_file(const void *shard, const void *file) {
    const char *path = ((const qvl_safetensors *)file)->path, *slash = strrchr(path, '/');
    return strcmp(shard, slash ? slash + 1 : path);
}

/* A shard that was replaced without its index is found here. */
static qvl_status check_tensors(const shard_index *x, const qvl_tower_files *files) {
    const cJSON *item;
    cJSON_ArrayForEach(item, x->map) {
        if (!x->wanted(item->string)) continue;
        const qvl_safetensors *file = bsearch(item->valuestring, files->files, (size_t)files->count,
                                              sizeof *files->files, compare_shard_with_file);
        if (!file || !qvl_safetensors_find(file, item->string))
            return qvl_fail(x->error, QVL_ERROR_MODEL, "%s: %.200s should be in %.200s, which has no such tensor",
                            x->path, item->string, item->valuestring);
    }
    return QVL_OK;
}

static qvl_status open_indexed(const char *folder, const char *path, bool (*wanted)(const char *tensor),
                               qvl_tower_files *files, qvl_error *error) {
    cJSON *root;
    shard_index x = {.folder = folder, .path = path, .wanted = wanted, .error = error};
    files->source = QVL_INDEX_FILE;
    qvl_status status = qvl_json_read(path, MAX_INDEX, &root, error);
    if (!status) status = qvl_json_object(root, "weight_map", path, &x.map, error);
    if (!status && !x.map) status = qvl_fail(error, QVL_ERROR_FORMAT, "%s has no weight_map", path);
    if (!status) status = open_shards(&x, files);
    if (!status) status = check_tensors(&x, files);
    cJSON_Delete(root);
    return status;
}

/* A single file goes before an index, as in transformers. */
qvl_status qvl_tensor_files_open(const char *folder, bool (*wanted)(const char *tensor), qvl_tower_files *files,
                                 qvl_error *error) {
    *files = (qvl_tower_files){0};
    char *single = qvl_path_join(folder, QVL_SINGLE_FILE);
    char *indexed = qvl_path_join(folder, QVL_INDEX_FILE);
    qvl_status status;
    if (!single || !indexed)
        status = qvl_fail_memory(error, "file names", 2, strlen(folder));
    else if (qvl_file_exists(single))
        status = open_single(folder, QVL_SINGLE_FILE, files, error);
    else if (qvl_file_exists(indexed))
        status = open_indexed(folder, indexed, wanted, files, error);
    else
        status = qvl_fail(error, QVL_ERROR_MODEL, "no weights in %s: neither %s nor %s is there, nor %s", folder,
                          QVL_SINGLE_FILE, QVL_INDEX_FILE, QVL_SIDECAR_FILE);
    qvl_free(single);
    qvl_free(indexed);
    if (status) qvl_tower_files_close(files);
    return status;
}

/* A sidecar is made for folders whose own files lack the tower or hold it quantised: it goes first. */
qvl_status qvl_tower_files_open(const char *folder, qvl_tower_files *files, qvl_error *error) {
    *files = (qvl_tower_files){0};
    char *sidecar = qvl_path_join(folder, QVL_SIDECAR_FILE);
    if (!sidecar) return qvl_fail_memory(error, "file name", strlen(folder), 1);
    bool aside = qvl_file_exists(sidecar);
    qvl_free(sidecar);
    qvl_status status = aside ? open_single(folder, QVL_SIDECAR_FILE, files, error)
                              : qvl_tensor_files_open(folder, is_towers, files, error);
    if (!status && files->count == 0) status = qvl_fail_no_tower(folder, error);
    if (status) qvl_tower_files_close(files);
    return status;
}

void qvl_tower_files_close(qvl_tower_files *files) {
    for (int32_t i = 0; i < files->count; i++) qvl_safetensors_close(&files->files[i]);
    qvl_free(files->files);
    *files = (qvl_tower_files){0};
}
