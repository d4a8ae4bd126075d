#include "lm/tensors.h"

#include "base/bf16.h"
#include "base/memory.h"
#include "compute/delta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 160

struct qvl_text_entry {
    const char *name; /* after the prefix */
    qvl_tensor tensor;
    const char *path;
    bool used;
};

/* ------------------------------------------------------------------------------------------------------- names */

/* What stands before "layers.0." and before "lm_head.", by generation: Hugging Face, MLX, older exports and text-only
 * ones, others, repackaged. */
static const struct {
    const char *text, *head;
} namings[] = {
    {"model.language_model.", ""},
    {"language_model.model.", "language_model."},
    {"model.", ""},
    {"language_model.", ""},
    {"", ""},
};
enum { NAMINGS = sizeof namings / sizeof namings[0] };

static const char *const parts[] = {"embed_tokens.", "layers.", "norm.", "lm_head."};

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* The name after the prefix, or NULL where it is no tensor of a language model under that generation. */
static const char *strip(const char *tensor, int naming) {
    const char *text = namings[naming].text, *head = namings[naming].head;
    if (starts_with(tensor, head) && starts_with(tensor + strlen(head), "lm_head.")) return tensor + strlen(head);
    if (!starts_with(tensor, text)) return NULL;
    const char *rest = tensor + strlen(text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (starts_with(rest, parts[i])) return rest;
    return NULL;
}

static bool is_text(const char *tensor) {
    for (int i = 0; i < NAMINGS; i++)
        if (strip(tensor, i)) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------- finding them */

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const qvl_text_entry *)a)->name, ((const qvl_text_entry *)b)->name);
}

/* The generation is that of the embeddings. */
static qvl_status find_naming(const qvl_text_tensors *t, int *naming) {
    *naming = -1;
    for (int32_t f = 0; f < t->files.count; f++)
        for (size_t i = 0; i < t->files.files[f].count; i++)
            for (int n = 0; n < NAMINGS; n++) {
                const char *rest = strip(t->files.files[f].tensors[i].name, n);
                if (!rest || strcmp(rest, "embed_tokens.weight") != 0) continue;
                if (*naming >= 0 && *naming != n)
                    return qvl_fail(t->error, QVL_ERROR_MODEL,
                                    "%s has two language models: tensors under \"%s\" and under \"%s\"", t->folder,
                                    namings[*naming].text, namings[n].text);
                *naming = n;
            }
    if (*naming >= 0) return QVL_OK;
    return qvl_fail(t->error, QVL_ERROR_MODEL,
                    "no language model in %s (looked for %sembed_tokens.weight, %sembed_tokens.weight, "
                    "%sembed_tokens.weight and so on)",
                    t->folder, namings[0].text, namings[1].text, namings[2].text);
}

static qvl_status collect(qvl_text_tensors *t) {
    int naming;
    qvl_status status = find_naming(t, &naming);
    if (status) return status;
    t->prefix = namings[naming].text;
    t->head_prefix = namings[naming].head;
    size_t most = 0, n = 0;
    for (int32_t f = 0; f < t->files.count; f++) most += t->files.files[f].count;
    t->entries = qvl_calloc(most, sizeof *t->entries);
    if (!t->entries) return qvl_fail_memory(t->error, "text tensors", most, sizeof *t->entries);
    for (int32_t f = 0; f < t->files.count; f++) {
        const qvl_safetensors *file = &t->files.files[f];
        for (size_t i = 0; i < file->count; i++) {
            const char *rest = strip(file->tensors[i].name, naming);
            if (rest) t->entries[n++] = (qvl_text_entry){rest, file->tensors[i], file->path, false};
        }
    }
    t->count = n;
    qsort(t->entries, n, sizeof *t->entries, compare_entries);
    for (size_t i = 1; i < n; i++)
        if (strcmp(t->entries[i - 1].name, t->entries[i].name) == 0)
            return qvl_fail(t->error, QVL_ERROR_MODEL, "tensor %.200s is there twice, in %.300s and %.300s",
                            t->entries[i].tensor.name, t->entries[i - 1].path, t->entries[i].path);
    return QVL_OK;
}

qvl_status qvl_text_tensors_find(const char *folder, qvl_tower_files *files, qvl_text_tensors *t,
                                 qvl_error *error) {
    *t = (qvl_text_tensors){.folder = folder, .files = *files, .error = error};
    *files = (qvl_tower_files){0};
    qvl_status status = collect(t);
    if (status) qvl_text_tensors_close(t);
    return status;
}

qvl_status qvl_text_tensors_open(const char *folder, qvl_text_tensors *t, qvl_error *error) {
    qvl_tower_files files = {0};
    *t = (qvl_text_tensors){0};
    qvl_status status = qvl_tensor_files_open(folder, is_text, &files, error);
    if (!status) return qvl_text_tensors_find(folder, &files, t, error);
    qvl_tower_files_close(&files);
    return status;
}

void qvl_text_tensors_close(qvl_text_tensors *t) {
    for (size_t i = 0; i < t->vector_count; i++) qvl_free(t->vectors[i]);
    qvl_free(t->vectors);
    qvl_free(t->entries);
    qvl_tower_files_close(&t->files);
    *t = (qvl_text_tensors){0};
}

static int compare_name_with_entry(const void *name, const void *entry) {
    return strcmp(name, ((const qvl_text_entry *)entry)->name);
}

static qvl_text_entry *find(const qvl_text_tensors *t, const char *name) {
    if (!t->count) return NULL;
    return bsearch(name, t->entries, t->count, sizeof *t->entries, compare_name_with_entry);
}

bool qvl_text_has(const qvl_text_tensors *t, const char *name) {
    return find(t, name) != NULL;
}

/* ---------------------------------------------------------------------------------------------- taking them out */

static bool is_float(qvl_dtype dtype) {
    return dtype == QVL_F32 || dtype == QVL_BF16 || dtype == QVL_F16;
}

static void print_shape(const int64_t *shape, int32_t ndim, char text[160]) {
    size_t used = (size_t)snprintf(text, 160, "[");
    for (int32_t i = 0; i < ndim; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text + used, 160 - used, "]");
}

static bool has_shape(const qvl_tensor *tensor, int32_t ndim, const int64_t *shape) {
    return tensor->ndim == ndim && memcmp(tensor->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static void refuse_shape(qvl_text_tensors *t, const qvl_text_entry *e, int32_t ndim, const int64_t *shape) {
    char found[160], wanted[160];
    print_shape(e->tensor.shape, e->tensor.ndim, found);
    print_shape(shape, ndim, wanted);
    t->status = qvl_fail(t->error, QVL_ERROR_MODEL, "%s: tensor %.200s has shape %s; config.json asks for %s",
                         e->path, e->tensor.name, found, wanted);
}

/* The tensor of this name, marked as used; NULL after a failure. */
static qvl_text_entry *want(qvl_text_tensors *t, const char *name) {
    if (t->status) return NULL;
    qvl_text_entry *e = find(t, name);
    if (!e) {
        t->status = qvl_fail(t->error, QVL_ERROR_MODEL, "%s has no tensor %s%.200s", t->folder, t->prefix, name);
        return NULL;
    }
    int64_t elements = 1;
    for (int32_t i = 0; i < e->tensor.ndim && elements;
         i++) /* what does not fit has a 0 behind it: it is in the file */
        if (!qvl_mul_i64(elements, e->tensor.shape[i], &elements)) elements = 0;
    if (!e->used) t->bytes += elements * (int64_t)qvl_dtype_bits(e->tensor.dtype) / 8;
    e->used = true;
    return e;
}

static void note_type(qvl_text_tensors *t, const qvl_matrix *m) {
    char type[64];
    if (m->bits)
        snprintf(type, sizeof type, "%s (MLX, %d bits)", qvl_dtype_name(m->dtype), m->bits);
    else
        snprintf(type, sizeof type, "%s", qvl_dtype_name(m->dtype));
    if (!t->types[0])
        memcpy(t->types, type, sizeof type);
    else if (strcmp(t->types, type) != 0)
        snprintf(t->types, sizeof t->types, "mixed");
}

/* Scales or biases of a quantised matrix or stack; leading: its dimensions but the last. */
static const uint8_t *want_groups(qvl_text_tensors *t, const char *name, const char *part,
                                  const qvl_tensor *weight, int64_t k, qvl_matrix *m) {
    char full[MAX_NAME + 16];
    snprintf(full, sizeof full, "%s.%s", name, part);
    if (t->status) return NULL;
    if (!find(t, full)) {
        t->status =
            qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                     "%s is %s, quantised, but there is no %s%.200s: qvl reads MLX's affine quantisation with "
                     "scales and biases",
                     weight->name, qvl_dtype_name(weight->dtype), t->prefix, full);
        return NULL;
    }
    qvl_text_entry *e = want(t, full);
    int32_t last = weight->ndim - 1;
    int64_t groups = e->tensor.ndim == weight->ndim ? e->tensor.shape[last] : 0, group = groups ? k / groups : 0;
    bool fits = groups && memcmp(e->tensor.shape, weight->shape, (size_t)last * sizeof *weight->shape) == 0 &&
                group * groups == k && (group == 32 || group == 64 || group == 128) && is_float(e->tensor.dtype) &&
                (!m->group || (m->group == group && m->scale_dtype == e->tensor.dtype));
    if (!fits) {
        char found[160];
        print_shape(e->tensor.shape, e->tensor.ndim, found);
        t->status =
            qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                     "%s: tensor %.200s is %s %s; for rows of %lld values qvl reads F32, BF16 or F16, groups of "
                     "32, 64 or 128, alike for scales and biases",
                     e->path, e->tensor.name, qvl_dtype_name(e->tensor.dtype), found, (long long)k);
        return NULL;
    }
    m->group = (int32_t)group;
    m->scale_dtype = e->tensor.dtype;
    return e->tensor.data;
}

/* A weight [leading.., n, k] as one matrix of all rows; leading: NULL or the number of a stack. */
static void take_matrix(qvl_text_tensors *t, const char *name, const int64_t *leading, int64_t n, int64_t k,
                        qvl_matrix *m) {
    char full[MAX_NAME + 16];
    snprintf(full, sizeof full, "%s.weight", name);
    qvl_text_entry *e = want(t, full);
    if (!e) return;
    const qvl_tensor *w = &e->tensor;
    int64_t shape[3] = {leading ? *leading : n, leading ? n : k, k};
    int32_t ndim = leading ? 3 : 2;
    *m = (qvl_matrix){.n = n, .k = k, .dtype = w->dtype, .stride = k, .data = w->data};
    if (w->dtype == QVL_U32) {
        if (k % 32) {
            t->status = qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                                 "%s: tensor %.200s is U32, quantised, for rows of %lld values; qvl reads rows of "
                                 "whole groups of 32, 64 or 128",
                                 e->path, w->name, (long long)k);
            return;
        }
        for (int32_t bits = 4; bits <= 8; bits += 4)
            if (w->ndim == ndim && w->shape[ndim - 1] == k * bits / 32) m->bits = bits;
        shape[ndim - 1] = m->bits ? w->shape[ndim - 1] : k / 8;
    } else if (!is_float(w->dtype)) {
        t->status =
            qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                     "%s: tensor %.200s has dtype %s; qvl reads F32, BF16, F16 and MLX's affine quantisation",
                     e->path, w->name, qvl_dtype_name(w->dtype));
        return;
    }
    if (!has_shape(w, ndim, shape) || (w->dtype == QVL_U32 && !m->bits)) {
        refuse_shape(t, e, ndim, shape);
        return;
    }
    if (m->bits) {
        m->scales = want_groups(t, name, "scales", w, k, m);
        m->biases = want_groups(t, name, "biases", w, k, m);
    }
    t->parameters += (leading ? *leading : 1) * n * k;
    note_type(t, m);
}

void qvl_text_matrix(qvl_text_tensors *t, const char *name, int64_t n, int64_t k, qvl_matrix *m) {
    take_matrix(t, name, NULL, n, k, m);
}

bool qvl_text_head(qvl_text_tensors *t, int64_t n, int64_t k, qvl_matrix *m) {
    if (!qvl_text_has(t, "lm_head.weight")) return false;
    take_matrix(t, "lm_head", NULL, n, k, m);
    return true;
}

static bool keep_vector(qvl_text_tensors *t, float *values) {
    if (t->vector_count == t->vector_capacity) {
        size_t capacity = t->vector_capacity ? 2 * t->vector_capacity : 64;
        float **grown = qvl_alloc(capacity, sizeof *grown);
        if (!grown) return false;
        if (t->vector_count) memcpy(grown, t->vectors, t->vector_count * sizeof *grown);
        qvl_free(t->vectors);
        t->vectors = grown;
        t->vector_capacity = capacity;
    }
    t->vectors[t->vector_count++] = values;
    return true;
}

/* n values of an entry that is all of floats, in memory that lives as long as t; NULL after a failure. */
static float *take_values(qvl_text_tensors *t, const qvl_text_entry *e, int64_t n) {
    if (!is_float(e->tensor.dtype)) {
        t->status = qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                             "%s: tensor %.200s has dtype %s; it must be F32, BF16 or F16", e->path,
                             e->tensor.name, qvl_dtype_name(e->tensor.dtype));
        return NULL;
    }
    float *values = qvl_alloc((size_t)n, sizeof *values);
    if (!values || !keep_vector(t, values)) {
        qvl_free(values);
        t->status = qvl_fail_memory(t->error, "weights of norms and convolutions", (size_t)n, sizeof *values);
        return NULL;
    }
    t->parameters += n;
    return values;
}

const float *qvl_text_vector(qvl_text_tensors *t, const char *name, int64_t n, float offset) {
    qvl_text_entry *e = want(t, name);
    if (!e) return NULL;
    if (!has_shape(&e->tensor, 1, &n)) {
        refuse_shape(t, e, 1, &n);
        return NULL;
    }
    float *values = take_values(t, e, n);
    if (!values) return NULL;
    qvl_matrix row = {.n = 1, .k = n, .dtype = e->tensor.dtype, .stride = n, .data = e->tensor.data};
    qvl_matrix_read(&row, 0, 0, n, values);
    for (int64_t i = 0; i < n; i++) values[i] += offset;
    return values;
}

bool qvl_text_conv_is_mlx(const qvl_text_tensors *t, const char *name) {
    const qvl_text_entry *e = find(t, name);
    return e && e->tensor.ndim == 3 && e->tensor.shape[2] == 1 && e->tensor.shape[1] != 1;
}

/* Both layouts have a channel's taps side by side. */
const float *qvl_text_conv(qvl_text_tensors *t, const char *name, int64_t channels, int64_t width) {
    const int64_t shape[3] = {channels, 1, width}, mlx[3] = {channels, width, 1};
    qvl_text_entry *e = want(t, name);
    if (!e) return NULL;
    if (!has_shape(&e->tensor, 3, shape) && !has_shape(&e->tensor, 3, mlx)) {
        refuse_shape(t, e, 3, shape);
        return NULL;
    }
    float *values = take_values(t, e, channels * width);
    if (!values) return NULL;
    qvl_matrix taps = {
        .n = channels, .k = width, .dtype = e->tensor.dtype, .stride = width, .data = e->tensor.data};
    for (int64_t c = 0; c < channels; c++) {
        float row[QVL_CONV_MAX_WIDTH];
        qvl_matrix_read(&taps, c, 0, width, row);
        for (int64_t j = 0; j < width; j++) values[j * channels + c] = row[j];
    }
    return values;
}

/* ------------------------------------------------------------------------------------------------------ experts */

/* Expert number `expert` of a stack, rows first.. of it. */
static qvl_matrix slice(const qvl_matrix *all, int64_t rows_each, int64_t expert, int64_t first, int64_t n) {
    qvl_matrix m = *all;
    int64_t row = expert * rows_each + first;
    m.n = n;
    if (m.bits) {
        size_t groups = (size_t)row * (size_t)(m.k / m.group) * (qvl_dtype_bits(m.scale_dtype) / 8);
        m.data += (size_t)row * (size_t)m.k * (size_t)m.bits / 8;
        m.scales += groups;
        m.biases += groups;
    } else {
        m.data += (size_t)row * (size_t)m.k * (qvl_dtype_bits(m.dtype) / 8);
    }
    return m;
}

/* Expert number `expert` of a stack [E, k, columns], columns first.. of it. */
static qvl_matrix slice_columns(const qvl_tensor *w, int64_t expert, int64_t k, int64_t columns, int64_t first,
                                int64_t n) {
    size_t at = (size_t)(expert * k * columns + first) * (qvl_dtype_bits(w->dtype) / 8);
    return (qvl_matrix){.n = n,
                        .k = k,
                        .dtype = w->dtype,
                        .by_columns = true,
                        .stride = columns,
                        .data = (const uint8_t *)w->data + at};
}

static void stacks_of_mlx(qvl_text_tensors *t, const char *layer, int64_t count, int64_t width, int64_t hidden,
                          qvl_experts *out) {
    const struct {
        const char *part;
        int64_t n, k;
        qvl_matrix *matrices;
    } stacks[] = {{"gate_proj", width, hidden, out->gate},
                  {"up_proj", width, hidden, out->up},
                  {"down_proj", hidden, width, out->down}};
    for (size_t i = 0; i < 3; i++) {
        char name[MAX_NAME];
        qvl_matrix all = {0};
        snprintf(name, sizeof name, "%s.switch_mlp.%s", layer, stacks[i].part);
        take_matrix(t, name, &count, stacks[i].n, stacks[i].k, &all);
        for (int64_t e = 0; e < count && !t->status; e++)
            stacks[i].matrices[e] = slice(&all, stacks[i].n, e, 0, stacks[i].n);
    }
}

/* A stack of Hugging Face. *by_columns: the last two axes are exchanged. */
static const qvl_tensor *want_stack(qvl_text_tensors *t, const char *name, const int64_t shape[3], bool *is_rows,
                                    bool *is_columns) {
    const int64_t exchanged[3] = {shape[0], shape[2], shape[1]};
    qvl_text_entry *e = want(t, name);
    if (!e) return NULL;
    *is_rows = has_shape(&e->tensor, 3, shape);
    *is_columns = has_shape(&e->tensor, 3, exchanged);
    if (!*is_rows && !*is_columns) {
        refuse_shape(t, e, 3, shape);
        return NULL;
    }
    if (!is_float(e->tensor.dtype)) {
        t->status = qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                             "%s: tensor %.200s has dtype %s; qvl reads stacks of F32, BF16 and F16", e->path,
                             e->tensor.name, qvl_dtype_name(e->tensor.dtype));
        return NULL;
    }
    return &e->tensor;
}

/* Both stacks lie the same way; where one could be either, the other cannot. */
static void stacks_of_hugging_face(qvl_text_tensors *t, const char *layer, int64_t count, int64_t width,
                                   int64_t hidden, qvl_experts *out) {
    char name[MAX_NAME];
    bool both_rows, both_columns, down_rows, down_columns;
    snprintf(name, sizeof name, "%s.experts.gate_up_proj", layer);
    const qvl_tensor *both =
        want_stack(t, name, (const int64_t[]){count, 2 * width, hidden}, &both_rows, &both_columns);
    snprintf(name, sizeof name, "%s.experts.down_proj", layer);
    const qvl_tensor *down =
        want_stack(t, name, (const int64_t[]){count, hidden, width}, &down_rows, &down_columns);
    if (!both || !down) return;
    if (!(both_rows && down_rows) && !(both_columns && down_columns)) {
        t->status = qvl_fail(t->error, QVL_ERROR_MODEL,
                             "%s: %s and %s do not lie the same way: one has its last two axes exchanged",
                             t->folder, both->name, down->name);
        return;
    }
    bool rows = both_rows && down_rows;
    qvl_matrix all_both = {.k = hidden, .dtype = both->dtype, .stride = hidden, .data = both->data};
    qvl_matrix all_down = {.k = width, .dtype = down->dtype, .stride = width, .data = down->data};
    for (int64_t e = 0; e < count; e++) {
        out->gate[e] =
            rows ? slice(&all_both, 2 * width, e, 0, width) : slice_columns(both, e, hidden, 2 * width, 0, width);
        out->up[e] = rows ? slice(&all_both, 2 * width, e, width, width)
                          : slice_columns(both, e, hidden, 2 * width, width, width);
        out->down[e] =
            rows ? slice(&all_down, hidden, e, 0, hidden) : slice_columns(down, e, width, hidden, 0, hidden);
    }
    t->parameters += 3 * count * width * hidden;
    note_type(t, &out->gate[0]);
    note_type(t, &out->down[0]);
}

static void find_experts(qvl_text_tensors *t, const char *layer, int64_t count, int64_t width, int64_t hidden,
                         qvl_experts *out) {
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s.switch_mlp.gate_proj.weight", layer);
    if (qvl_text_has(t, name)) {
        stacks_of_mlx(t, layer, count, width, hidden, out);
        return;
    }
    snprintf(name, sizeof name, "%s.experts.0.gate_proj.weight", layer);
    if (!qvl_text_has(t, name)) {
        stacks_of_hugging_face(t, layer, count, width, hidden, out);
        return;
    }
    for (int64_t e = 0; e < count; e++) {
        snprintf(name, sizeof name, "%s.experts.%lld.gate_proj", layer, (long long)e);
        qvl_text_matrix(t, name, width, hidden, &out->gate[e]);
        snprintf(name, sizeof name, "%s.experts.%lld.up_proj", layer, (long long)e);
        qvl_text_matrix(t, name, width, hidden, &out->up[e]);
        snprintf(name, sizeof name, "%s.experts.%lld.down_proj", layer, (long long)e);
        qvl_text_matrix(t, name, hidden, width, &out->down[e]);
    }
}

void qvl_text_experts(qvl_text_tensors *t, const char *layer, int64_t count, int64_t width, int64_t hidden,
                      qvl_experts *out) {
    int64_t before = t->bytes;
    find_experts(t, layer, count, width, hidden, out);
    t->expert_bytes += t->bytes - before;
}

/* --------------------------------------------------------------------------------------------------------- end */

/* Older files carry the rotary frequencies, which are computed here. */
static bool is_ignored(const char *name) {
    const char *end = "rotary_emb.inv_freq";
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

qvl_status qvl_text_tensors_finish(qvl_text_tensors *t) {
    for (size_t i = 0; i < t->count && !t->status; i++) {
        const qvl_text_entry *e = &t->entries[i];
        if (!e->used && starts_with(e->name, "layers.") && !is_ignored(e->name))
            t->status = qvl_fail(t->error, QVL_ERROR_UNSUPPORTED,
                                 "%s: tensor %.200s (%s) is no part of a language model as qvl computes it",
                                 e->path, e->tensor.name, qvl_dtype_name(e->tensor.dtype));
    }
    qvl_free(t->entries);
    t->entries = NULL;
    t->count = 0;
    return t->status;
}
