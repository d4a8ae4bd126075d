/* Writes safetensors as the reference serialiser lays them out: wide elements first, then by name, behind a header
 * padded to 8 bytes, so that every tensor is aligned for its type. */
#include "model/safetensors.h"

#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Growing text. After a failed allocation puts do nothing. */
typedef struct text {
    char *bytes;
    size_t used, capacity;
    bool failed;
} text;

static void put_bytes(text *t, const char *bytes, size_t count) {
    if (t->failed) return;
    if (count > t->capacity - t->used) {
        size_t capacity = t->capacity * 2 + count + 4096;
        char *grown = qvl_alloc(capacity, 1);
        if (!grown) {
            t->failed = true;
            return;
        }
        if (t->used) memcpy(grown, t->bytes, t->used);
        qvl_free(t->bytes);
        t->bytes = grown;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
}

static void put(text *t, const char *string) {
    put_bytes(t, string, strlen(string));
}

static void put_integer(text *t, size_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", value);
    put(t, digits);
}

static void put_quoted(text *t, const char *string) {
    put(t, "\"");
    for (const char *c = string; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        char escape[8];
        if (byte < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", byte);
            put(t, escape);
        } else {
            if (byte == '"' || byte == '\\') put(t, "\\");
            put_bytes(t, c, 1);
        }
    }
    put(t, "\"");
}

/* Bytes of a tensor's data. False if its description is impossible; overflow counts as that. */
static bool tensor_size(const qvl_tensor *tensor, size_t *bytes) {
    size_t bits = qvl_dtype_bits(tensor->dtype);
    if (bits == 0 || tensor->ndim < 0 || tensor->ndim > QVL_MAX_DIMS) return false;
    bool empty = false;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0) return false;
        empty = empty || tensor->shape[i] == 0;
    }
    for (int32_t i = 0; i < tensor->ndim && !empty; i++)
        if (!qvl_mul_size(bits, (size_t)tensor->shape[i], &bits)) return false;
    if (empty) bits = 0;
    *bytes = bits / 8;
    return bits % 8 == 0;
}

static int compare_for_file(const void *a, const void *b) {
    const qvl_tensor *x = *(const qvl_tensor *const *)a, *y = *(const qvl_tensor *const *)b;
    size_t wide_x = qvl_dtype_bits(x->dtype), wide_y = qvl_dtype_bits(y->dtype);
    if (wide_x != wide_y) return wide_x > wide_y ? -1 : 1;
    return strcmp(x->name, y->name);
}

static qvl_status check_tensor(const qvl_tensor *tensor, const char *path, qvl_error *error) {
    size_t bytes;
    if (!tensor->name) return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: a tensor has no name", path);
    if (strcmp(tensor->name, "__metadata__") == 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: a tensor is named __metadata__", path);
    if (!tensor_size(tensor, &bytes))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "cannot write %s: tensor %.200s has an impossible dtype or shape", path, tensor->name);
    if (bytes && !tensor->data)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: tensor %.200s has no data", path,
                        tensor->name);
    return QVL_OK;
}

static qvl_status check_arguments(const char *path, const qvl_tensor *tensors, size_t count,
                                  const char *const *metadata, size_t metadata_pairs, qvl_error *error) {
    if ((count && !tensors) || (metadata_pairs && !metadata))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: tensors or metadata are NULL", path);
    for (size_t i = 0; i < count; i++) {
        qvl_status status = check_tensor(&tensors[i], path, error);
        if (status) return status;
    }
    for (size_t i = 0; i < metadata_pairs; i++)
        if (!metadata[2 * i] || !metadata[2 * i + 1])
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: metadata pair %zu has a NULL", path, i);
    return QVL_OK;
}

static void put_entry(text *t, const qvl_tensor *tensor, size_t begin, size_t end) {
    put_quoted(t, tensor->name);
    put(t, ":{\"dtype\":\"");
    put(t, qvl_dtype_name(tensor->dtype));
    put(t, "\",\"shape\":[");
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (i) put(t, ",");
        put_integer(t, (size_t)tensor->shape[i]);
    }
    put(t, "],\"data_offsets\":[");
    put_integer(t, begin);
    put(t, ",");
    put_integer(t, end);
    put(t, "]}");
}

/* order: the tensors as they will lie in the file. */
static qvl_status build_header(const qvl_tensor *const *order, size_t count, const char *const *metadata,
                               size_t metadata_pairs, const char *path, text *t, qvl_error *error) {
    put(t, "{");
    if (metadata_pairs) {
        put(t, "\"__metadata__\":{");
        for (size_t i = 0; i < metadata_pairs; i++) {
            if (i) put(t, ",");
            put_quoted(t, metadata[2 * i]);
            put(t, ":");
            put_quoted(t, metadata[2 * i + 1]);
        }
        put(t, "}");
    }
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes, end;
        if (!tensor_size(order[i], &bytes) || !qvl_add_size(begin, bytes, &end))
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "cannot write %s: the tensors are too large together",
                            path);
        if (i || metadata_pairs) put(t, ",");
        put_entry(t, order[i], begin, end);
        begin = end;
    }
    put(t, "}");
    while (t->used % 8 != 0 && !t->failed) put(t, " ");
    if (t->failed) return qvl_fail_memory(error, "safetensors header", t->used, 2);
    if (t->used > QVL_SAFETENSORS_MAX_HEADER)
        return qvl_fail(error, QVL_ERROR_LIMIT, "cannot write %s: the header has %zu bytes; the limit is %zu",
                        path, t->used, QVL_SAFETENSORS_MAX_HEADER);
    return QVL_OK;
}

/* What is written can be read: names that are there twice or are not UTF-8 are found by parsing the header. */
static qvl_status check_header(const char *path, const text *header, qvl_error *error) {
    cJSON *root;
    qvl_status status = qvl_json_parse(header->bytes, header->used, path, &root, error);
    cJSON_Delete(root);
    if (status == QVL_ERROR_FORMAT) status = qvl_error_prefix(error, QVL_ERROR_ARGUMENT, "cannot write");
    return status;
}

static qvl_status write_file(const char *path, const text *header, const qvl_tensor *const *order, size_t count,
                             qvl_error *error) {
    qvl_writer writer;
    qvl_status status = qvl_writer_open(&writer, path, error);
    if (status) return status;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header->used >> (8 * i));
    qvl_writer_put(&writer, length, sizeof length);
    qvl_writer_put(&writer, header->bytes, header->used);
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        if (tensor_size(order[i], &bytes)) qvl_writer_put(&writer, order[i]->data, bytes);
    }
    return qvl_writer_commit(&writer, error);
}

qvl_status qvl_tensors_save(const char *path, const qvl_tensor *tensors, size_t count, const char *const *metadata,
                            size_t metadata_pairs, qvl_error *error) {
    if (!path) return qvl_fail(error, QVL_ERROR_ARGUMENT, "qvl_tensors_save: path is NULL");
    qvl_status status = check_arguments(path, tensors, count, metadata, metadata_pairs, error);
    if (status) return status;
    text header = {0};
    const qvl_tensor **order = qvl_alloc(count + 1, sizeof *order);
    if (!order) return qvl_fail_memory(error, "tensor order", count, sizeof *order);
    for (size_t i = 0; i < count; i++) order[i] = &tensors[i];
    if (count) qsort(order, count, sizeof *order, compare_for_file);
    status = build_header(order, count, metadata, metadata_pairs, path, &header, error);
    if (!status) status = check_header(path, &header, error);
    if (!status) status = write_file(path, &header, order, count, error);
    qvl_free(header.bytes);
    qvl_free(order);
    return status;
}
