#include "model/embeddings.h"

#include "base/bf16.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- finding it */

/* By generation: Hugging Face, MLX, older exports and text-only ones, repackaged. */
static const char *const table_names[] = {
    "model.language_model.embed_tokens",
    "language_model.model.embed_tokens",
    "model.embed_tokens",
    "language_model.embed_tokens",
    "embed_tokens",
};
enum { NAMES = sizeof table_names / sizeof table_names[0] };

static bool is_table(const char *tensor) {
    for (int i = 0; i < NAMES; i++) {
        size_t length = strlen(table_names[i]);
        if (strncmp(tensor, table_names[i], length) == 0 && tensor[length] == '.') return true;
    }
    return false;
}

/* In any of the files; false where there is none. */
static bool find(const qvl_tower_files *files, const char *table, const char *part, qvl_tensor *found) {
    char name[80];
    snprintf(name, sizeof name, "%s.%s", table, part);
    for (int32_t i = 0; i < files->count; i++) {
        const qvl_tensor *tensor = qvl_safetensors_find(&files->files[i], name);
        if (!tensor) continue;
        *found = *tensor;
        return true;
    }
    return false;
}

static bool is_float(qvl_dtype dtype) {
    return dtype == QVL_F32 || dtype == QVL_BF16 || dtype == QVL_F16;
}

static qvl_status refuse_shape(const qvl_tensor *tensor, int64_t width, qvl_error *error) {
    return qvl_fail(
        error, QVL_ERROR_MODEL,
        "%s is %s of %d dimensions, [%lld, %lld ...]; it must have rows of %lld values, as wide as the "
        "tower's features",
        tensor->name, qvl_dtype_name(tensor->dtype), tensor->ndim, (long long)tensor->shape[0],
        (long long)tensor->shape[1], (long long)width);
}

/* Scales or biases: one for each group of a row. */
static qvl_status check_groups(const qvl_embeddings *table, const qvl_tensor *groups, qvl_error *error) {
    int64_t per_row = groups->ndim == 2 ? groups->shape[1] : 0;
    bool fits = is_float(groups->dtype) && groups->dtype == table->scales.dtype && per_row > 0 &&
                groups->shape[0] == table->rows && table->width % per_row == 0 &&
                per_row == table->scales.shape[1];
    if (fits) return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_MODEL,
        "%s is %s [%lld, %lld]; it must be F32, BF16 or F16, with %lld rows whose length divides %lld, "
        "alike for scales and biases",
        groups->name, qvl_dtype_name(groups->dtype), (long long)groups->shape[0], (long long)per_row,
        (long long)table->rows, (long long)table->width);
}

static qvl_status take_quantised(const char *name, qvl_embeddings *table, qvl_error *error) {
    const qvl_tensor *weight = &table->weight;
    for (int32_t bits = 4; bits <= 8; bits += 4)
        if (weight->shape[1] * 32 == table->width * bits) table->bits = bits;
    if (!table->bits)
        return qvl_fail(
            error, QVL_ERROR_UNSUPPORTED,
            "%s is U32 [%lld, %lld], quantised: for rows of %lld values qvl reads 4 or 8 bits each, %lld "
            "or %lld words",
            weight->name, (long long)weight->shape[0], (long long)weight->shape[1], (long long)table->width,
            (long long)table->width / 8, (long long)table->width / 4);
    if (!find(&table->files, name, "scales", &table->scales) ||
        !find(&table->files, name, "biases", &table->biases))
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s is quantised, but %s.scales and %s.biases are not both there: qvl reads MLX's affine "
                        "quantisation",
                        weight->name, name, name);
    qvl_status status = check_groups(table, &table->scales, error);
    if (!status) status = check_groups(table, &table->biases, error);
    if (!status) table->group = (int32_t)(table->width / table->scales.shape[1]);
    return status;
}

static qvl_status take(const char *name, qvl_embeddings *table, qvl_error *error) {
    const qvl_tensor *weight = &table->weight;
    if (weight->ndim != 2 || weight->shape[0] < 1) return refuse_shape(weight, table->width, error);
    table->rows = weight->shape[0];
    if (weight->dtype == QVL_U32) return take_quantised(name, table, error);
    if (!is_float(weight->dtype))
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "%s is %s; qvl reads F32, BF16, F16 and MLX's affine quantisation (U32)", weight->name,
                        qvl_dtype_name(weight->dtype));
    return weight->shape[1] == table->width ? QVL_OK : refuse_shape(weight, table->width, error);
}

qvl_status qvl_embeddings_open(const char *folder, int64_t width, qvl_embeddings *table, qvl_error *error) {
    *table = (qvl_embeddings){.width = width};
    const char *name = NULL;
    qvl_status status = qvl_tensor_files_open(folder, is_table, &table->files, error);
    for (int i = 0; i < NAMES && !status; i++) {
        qvl_tensor weight;
        if (!find(&table->files, table_names[i], "weight", &weight)) continue;
        if (name)
            status = qvl_fail(error, QVL_ERROR_MODEL, "%s has two token embeddings, %s.weight and %s.weight",
                              folder, name, table_names[i]);
        name = table_names[i];
        table->weight = weight;
    }
    if (!status && !name)
        status = qvl_fail(error, QVL_ERROR_MODEL,
                          "no token embeddings in %s (looked for %s.weight, %s.weight, %s.weight and so on)",
                          folder, table_names[0], table_names[1], table_names[2]);
    if (!status) {
        status = take(name, table, error);
        if (status) qvl_error_prefix(error, status, folder);
    }
    if (status) qvl_embeddings_close(table);
    return status;
}

void qvl_embeddings_close(qvl_embeddings *table) {
    qvl_tower_files_close(&table->files);
    *table = (qvl_embeddings){0};
}

/* ---------------------------------------------------------------------------------------------- reading rows */

/* Element of a tensor in a file, which has no alignment. */
static float element(const qvl_tensor *tensor, int64_t index) {
    if (tensor->dtype == QVL_F32) {
        float value;
        memcpy(&value, (const char *)tensor->data + 4 * index, 4);
        return value;
    }
    uint16_t bits;
    memcpy(&bits, (const char *)tensor->data + 2 * index, 2);
    return tensor->dtype == QVL_BF16 ? qvl_f32_from_bf16(bits) : qvl_f32_from_f16(bits);
}

static void put(qvl_dtype dtype, void *out, int64_t index, float value) {
    if (dtype == QVL_F32)
        ((float *)out)[index] = value;
    else
        ((uint16_t *)out)[index] = qvl_bf16_from_f32(value);
}

static void dequantise_row(const qvl_embeddings *table, int64_t row, qvl_dtype dtype, void *out) {
    int64_t per_word = 32 / table->bits, words = table->width / per_word, groups = table->width / table->group;
    const char *packed = (const char *)table->weight.data + 4 * row * words;
    uint32_t mask = (1u << table->bits) - 1;
    for (int64_t group = 0; group < groups; group++) {
        float scale = element(&table->scales, row * groups + group);
        float bias = element(&table->biases, row * groups + group);
        for (int64_t i = group * table->group; i < (group + 1) * table->group; i++) {
            uint32_t word;
            memcpy(&word, packed + 4 * (i / per_word), 4);
            float value = (float)(word >> (i % per_word * table->bits) & mask);
            put(dtype, out, i,
                qvl_round_to(table->scales.dtype, qvl_round_to(table->scales.dtype, scale * value) + bias));
        }
    }
}

static void copy_row(const qvl_embeddings *table, int64_t row, qvl_dtype dtype, void *out) {
    size_t bytes = (size_t)table->width * qvl_dtype_bits(dtype) / 8;
    if (table->bits) {
        dequantise_row(table, row, dtype, out);
    } else if (table->weight.dtype == dtype) {
        memcpy(out, (const char *)table->weight.data + (size_t)row * bytes, bytes);
    } else {
        for (int64_t i = 0; i < table->width; i++)
            put(dtype, out, i, element(&table->weight, row * table->width + i));
    }
}

qvl_status qvl_embeddings_gather(const qvl_embeddings *table, const int64_t *ids, size_t count, qvl_dtype dtype,
                                 void *out, qvl_error *error) {
    size_t bytes = (size_t)table->width * qvl_dtype_bits(dtype) / 8;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= table->rows)
            return qvl_fail(error, QVL_ERROR_MODEL, "token %zu has the id %lld, but %s has %lld rows", i,
                            (long long)ids[i], table->weight.name, (long long)table->rows);
        copy_row(table, ids[i], dtype, (char *)out + i * bytes);
    }
    return QVL_OK;
}
