/* Reads safetensors as strictly as the format says. Nothing from the header is trusted before it is compared with
 * the size of the file, and the tensors must cover the bytes behind the header exactly. */
#include "model/safetensors.h"

#include "base/json.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Offsets of one tensor, sorted to find overlaps and holes. */
typedef struct span {
    int64_t begin, end;
    const char *name;
} span;

static bool dtype_from_name(const char *name, qvl_dtype *dtype) {
    for (int i = QVL_F32; i <= QVL_F8_E5M2FNUZ; i++) {
        if (strcmp(name, qvl_dtype_name((qvl_dtype)i)) == 0) {
            *dtype = (qvl_dtype)i;
            return true;
        }
    }
    return false;
}

static uint64_t read_u64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* The header's bytes, without having looked inside. */
static qvl_status find_header(const uint8_t *bytes, size_t count, const char *path, const uint8_t **header,
                              size_t *length, qvl_error *error) {
    if (count < 8)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s has %zu bytes; a safetensors file starts with 8 bytes of header length", path, count);
    static const char pointer[] = "version https://git-lfs";
    if (count >= sizeof pointer - 1 && memcmp(bytes, pointer, sizeof pointer - 1) == 0)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s is a Git LFS pointer, not the file that it points to ('git lfs pull' fetches it)",
                        path);
    uint64_t n = read_u64(bytes);
    if (n < 2)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: the header length is %" PRIu64 "; the shortest header has 2",
                        path, n);
    if (n > count - 8)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: the header length is %" PRIu64 ", but the file has only %zu bytes after it", path, n,
                        count - 8);
    if (n > QVL_SAFETENSORS_MAX_HEADER)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%s: the header length is %" PRIu64 "; the limit is %zu", path, n,
                        QVL_SAFETENSORS_MAX_HEADER);
    if (bytes[8] != '{')
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: the header starts with byte 0x%02x; it must be '{'", path,
                        bytes[8]);
    *header = bytes + 8;
    *length = (size_t)n;
    return QVL_OK;
}

static qvl_status check_metadata(const cJSON *metadata, const char *path, qvl_error *error) {
    if (cJSON_IsNull(metadata)) return QVL_OK; /* as the reference reader has it */
    char found[QVL_JSON_DESCRIPTION];
    qvl_json_describe(metadata, found);
    if (!cJSON_IsObject(metadata))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: __metadata__ is %s; it must be an object", path, found);
    const cJSON *item;
    cJSON_ArrayForEach(item, metadata) {
        qvl_json_describe(item, found);
        if (!cJSON_IsString(item))
            return qvl_fail(error, QVL_ERROR_FORMAT, "%s: __metadata__ has %s for \"%.100s\"; it must be a string",
                            path, found, item->string);
    }
    return QVL_OK;
}

static qvl_status read_shape(const cJSON *shape, const char *path, qvl_tensor *tensor, qvl_error *error) {
    if (!cJSON_IsArray(shape))
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s has no shape list", path, tensor->name);
    const cJSON *item;
    int32_t ndim = 0;
    cJSON_ArrayForEach(item, shape) {
        if (ndim == QVL_MAX_DIMS)
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: tensor %.200s has more than %d dimensions", path,
                            tensor->name, QVL_MAX_DIMS);
        if (!qvl_json_integer(item, 0, INT64_MAX, &tensor->shape[ndim])) {
            char found[QVL_JSON_DESCRIPTION];
            qvl_json_describe(item, found);
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: tensor %.200s has %s in its shape; it must be a non-negative integer", path,
                            tensor->name, found);
        }
        ndim++;
    }
    tensor->ndim = ndim;
    return QVL_OK;
}

static qvl_status read_offsets(const cJSON *offsets, const char *path, const char *name, int64_t data_size,
                               span *where, qvl_error *error) {
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s has no data_offsets list of two", path, name);
    const cJSON *begin = offsets->child, *end = begin->next;
    if (!qvl_json_integer(begin, 0, INT64_MAX, &where->begin) ||
        !qvl_json_integer(end, 0, INT64_MAX, &where->end)) {
        char a[QVL_JSON_DESCRIPTION], b[QVL_JSON_DESCRIPTION];
        qvl_json_describe(begin, a);
        qvl_json_describe(end, b);
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: tensor %.200s has data_offsets %s, %s; they must be non-negative integers", path,
                        name, a, b);
    }
    if (where->begin > where->end)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: tensor %.200s ends before it begins: data_offsets %" PRId64 ", %" PRId64, path, name,
                        where->begin, where->end);
    if (where->end > data_size)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: tensor %.200s ends at byte %" PRId64 " of the data, which has %" PRId64
                        " bytes: the file is cut short",
                        path, name, where->end, data_size);
    where->name = name;
    return QVL_OK;
}

/* The bytes between the offsets must be what shape and dtype need, in whole bytes. */
static qvl_status check_size(const qvl_tensor *tensor, const span *where, const char *path, qvl_error *error) {
    int64_t bits = (int64_t)qvl_dtype_bits(tensor->dtype);
    bool fits = true, empty = false;
    for (int32_t i = 0; i < tensor->ndim; i++) empty = empty || tensor->shape[i] == 0;
    for (int32_t i = 0; i < tensor->ndim && fits && !empty; i++) fits = qvl_mul_i64(bits, tensor->shape[i], &bits);
    if (empty) bits = 0;
    if (!fits)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s has a shape whose product overflows", path,
                        tensor->name);
    if (bits % 8 != 0)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s (%s) has %" PRId64 " bits, not whole bytes",
                        path, tensor->name, qvl_dtype_name(tensor->dtype), bits);
    if (where->end - where->begin != bits / 8)
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%s: tensor %.200s has %" PRId64 " bytes of data; its shape and type %s need %" PRId64,
                        path, tensor->name, where->end - where->begin, qvl_dtype_name(tensor->dtype), bits / 8);
    return QVL_OK;
}

/* Other keys of an entry are ignored, as the reference reader does. */
static qvl_status read_entry(const cJSON *entry, const char *path, const uint8_t *data, int64_t data_size,
                             qvl_tensor *tensor, span *where, qvl_error *error) {
    char found[QVL_JSON_DESCRIPTION];
    tensor->name = entry->string;
    if (!cJSON_IsObject(entry)) {
        qvl_json_describe(entry, found);
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s is %s; it must be an object", path,
                        tensor->name, found);
    }
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    if (!cJSON_IsString(dtype)) {
        qvl_json_describe(dtype, found);
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensor %.200s has %s as its dtype; it must be a string",
                        path, tensor->name, found);
    }
    if (!dtype_from_name(dtype->valuestring, &tensor->dtype))
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%s: tensor %.200s has the unknown dtype \"%.40s\"", path,
                        tensor->name, dtype->valuestring);
    qvl_status status = read_shape(cJSON_GetObjectItemCaseSensitive(entry, "shape"), path, tensor, error);
    if (status) return status;
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    status = read_offsets(offsets, path, tensor->name, data_size, where, error);
    if (status) return status;
    tensor->data = data + where->begin;
    return check_size(tensor, where, path, error);
}

static int compare_spans(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* In order of their offsets the tensors must follow one another from byte 0 to the end of the file. */
static qvl_status check_coverage(span *spans, size_t count, int64_t data_size, const char *path,
                                 qvl_error *error) {
    int64_t end = 0;
    if (count) qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin < end)
            return qvl_fail(error, QVL_ERROR_FORMAT, "%s: tensors %.200s and %.200s overlap", path,
                            spans[i - 1].name, spans[i].name);
        if (spans[i].begin > end)
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: a hole of %" PRId64 " bytes in the data before tensor %.200s", path,
                            spans[i].begin - end, spans[i].name);
        end = spans[i].end;
    }
    if (end != data_size)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%s: %" PRId64 " stray bytes behind the last tensor", path,
                        data_size - end);
    return QVL_OK;
}

static int compare_names(const void *a, const void *b) {
    const qvl_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The entries of a parsed header into file->tensors, checked and sorted. */
static qvl_status read_entries(const cJSON *root, const char *path, const uint8_t *data, int64_t data_size,
                               qvl_safetensors *file, qvl_error *error) {
    size_t entries = (size_t)cJSON_GetArraySize(root);
    if (entries == 0) return check_coverage(NULL, 0, data_size, path, error);
    span *spans = qvl_alloc(entries, sizeof *spans);
    file->tensors = qvl_calloc(entries, sizeof *file->tensors);
    qvl_status status = QVL_OK;
    if (!spans || !file->tensors) {
        status = qvl_fail_memory(error, "tensors of a safetensors file", entries, sizeof *file->tensors);
        goto done;
    }
    const cJSON *entry;
    cJSON_ArrayForEach(entry, root) {
        if (strcmp(entry->string, "__metadata__") == 0) {
            status = check_metadata(entry, path, error);
        } else {
            status =
                read_entry(entry, path, data, data_size, &file->tensors[file->count], &spans[file->count], error);
            file->count++;
        }
        if (status) goto done;
    }
    status = check_coverage(spans, file->count, data_size, path, error);
    if (!status) qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
done:
    qvl_free(spans);
    return status;
}

qvl_status qvl_safetensors_parse(const uint8_t *bytes, size_t count, const char *path, qvl_safetensors *file,
                                 qvl_error *error) {
    *file = (qvl_safetensors){0};
    const uint8_t *header = NULL;
    size_t length = 0;
    cJSON *root = NULL;
    qvl_status status = find_header(bytes, count, path, &header, &length, error);
    if (status) return status;
    file->path = qvl_strdup(path);
    if (!file->path) {
        status = qvl_fail_memory(error, "file name", strlen(path) + 1, 1);
        goto fail;
    }
    status = qvl_json_parse(header, length, path, &root, error);
    if (status) goto fail;
    file->storage = root;
    status = read_entries(root, path, header + length, (int64_t)(count - 8 - length), file, error);
    if (status) goto fail;
    return QVL_OK;
fail:
    qvl_safetensors_close(file);
    return status;
}

qvl_status qvl_safetensors_open(const char *path, qvl_safetensors *file, qvl_error *error) {
    *file = (qvl_safetensors){0};
    qvl_map map;
    qvl_status status = qvl_map_open(path, &map, error);
    if (status) return status;
    status = qvl_safetensors_parse(map.bytes, map.count, path, file, error);
    if (status) {
        qvl_map_close(&map);
        return status;
    }
    file->map = map;
    return QVL_OK;
}

void qvl_safetensors_close(qvl_safetensors *file) {
    cJSON_Delete(file->storage);
    qvl_free(file->tensors);
    qvl_free(file->path);
    qvl_map_close(&file->map);
    *file = (qvl_safetensors){0};
}

static int compare_name_with_tensor(const void *name, const void *tensor) {
    return strcmp(name, ((const qvl_tensor *)tensor)->name);
}

const qvl_tensor *qvl_safetensors_find(const qvl_safetensors *file, const char *name) {
    if (file->count == 0) return NULL;
    return bsearch(name, file->tensors, file->count, sizeof *file->tensors, compare_name_with_tensor);
}

/* ------------------------------------------------------------------------------------------------ public face */

struct qvl_tensor_file {
    qvl_safetensors safetensors;
};

qvl_status qvl_tensor_file_open(const char *path, qvl_tensor_file **file, qvl_error *error) {
    if (!file) return qvl_fail(error, QVL_ERROR_ARGUMENT, "qvl_tensor_file_open: file is NULL");
    *file = NULL;
    if (!path) return qvl_fail(error, QVL_ERROR_ARGUMENT, "qvl_tensor_file_open: path is NULL");
    qvl_tensor_file *opened = qvl_calloc(1, sizeof *opened);
    if (!opened) return qvl_fail_memory(error, "tensor file", 1, sizeof *opened);
    qvl_status status = qvl_safetensors_open(path, &opened->safetensors, error);
    if (status) {
        qvl_free(opened);
        return status;
    }
    *file = opened;
    return QVL_OK;
}

void qvl_tensor_file_close(qvl_tensor_file **file) {
    if (!file || !*file) return;
    qvl_safetensors_close(&(*file)->safetensors);
    qvl_free(*file);
    *file = NULL;
}

size_t qvl_tensor_file_count(const qvl_tensor_file *file) {
    return file->safetensors.count;
}

qvl_tensor qvl_tensor_file_get(const qvl_tensor_file *file, size_t index) {
    return file->safetensors.tensors[index];
}

bool qvl_tensor_file_find(const qvl_tensor_file *file, const char *name, qvl_tensor *tensor) {
    const qvl_tensor *found = qvl_safetensors_find(&file->safetensors, name);
    if (found) *tensor = *found;
    return found != NULL;
}
