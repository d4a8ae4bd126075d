/* Finds the vision tower's tensors in a folder and checks every one against the configuration: names, shapes and
 * types must fit exactly, so that no tower runs with a part that was silently left out. */
#include "model/weights.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 256

/* Tensors that only quantised weights have beside them, and whose they are. */
static const struct {
    const char *suffix, *scheme;
} quantised[] = {
    {".scales", "MLX, GPTQ or AWQ"},
    {".biases", "MLX"},
    {".qweight", "GPTQ or AWQ"},
    {".qzeros", "GPTQ or AWQ"},
    {".g_idx", "GPTQ or compressed-tensors"},
    {".weight_scale", "fp8 or compressed-tensors"},
    {".weight_scale_inv", "fp8 with block scales"},
    {".weight_scale_2", "NVFP4"},
    {".weight_packed", "compressed-tensors"},
    {".weight_shape", "compressed-tensors"},
    {".weight_zero_point", "compressed-tensors"},
    {".input_scale", "fp8 or compressed-tensors"},
    {".activation_scale", "fp8"},
    {".absmax", "bitsandbytes"},
    {".quant_map", "bitsandbytes"},
    {".nested_absmax", "bitsandbytes"},
    {".nested_quant_map", "bitsandbytes"},
    {".quant_state.bitsandbytes__nf4", "bitsandbytes"},
    {".quant_state.bitsandbytes__fp4", "bitsandbytes"},
    {".SCB", "bitsandbytes"},
    {".weight_format", "bitsandbytes"},
};

/* A tensor of the tower as it lies in a file. */
typedef struct entry {
    const char *name;  /* after the prefix */
    qvl_tensor tensor; /* under its full name */
    const qvl_safetensors *file;
    bool used;
} entry;

/* The search for the tensors. Once status is not QVL_OK, want_* do nothing. */
typedef struct search {
    const char *folder;
    const qvl_vision_config *config;
    qvl_raw_tower *tower;
    qvl_naming naming;
    entry *entries; /* sorted by name */
    size_t count;
    size_t wanted, missing;
    char first_missing[MAX_NAME];
    qvl_status status;
    qvl_error *error;
} search;

static bool ends_with(const char *name, const char *suffix) {
    size_t a = strlen(name), b = strlen(suffix);
    return a >= b && strcmp(name + a - b, suffix) == 0;
}

/* ----------------------------------------------------------------------------------- the tower's tensors in them
 */

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* Decides the naming generation: the one that tensors have. */
static qvl_status find_naming(search *s) {
    const qvl_tower_files *files = &s->tower->files;
    s->naming = QVL_NAMING_NONE;
    for (int32_t f = 0; f < files->count; f++) {
        const qvl_safetensors *file = &files->files[f];
        for (size_t i = 0; i < file->count; i++) {
            qvl_naming naming = qvl_naming_of(file->tensors[i].name);
            if (naming == QVL_NAMING_NONE) continue;
            if (s->naming != QVL_NAMING_NONE && naming != s->naming)
                return qvl_fail(s->error, QVL_ERROR_MODEL, "%s has two towers: tensors %s and %s (%.200s)",
                                s->folder, qvl_naming_describe(s->naming), qvl_naming_describe(naming),
                                file->tensors[i].name);
            s->naming = naming;
            s->count++;
        }
    }
    if (s->naming != QVL_NAMING_NONE) return QVL_OK;
    bool sidecar = files->source && strcmp(files->source, QVL_SIDECAR_FILE) == 0;
    return qvl_fail_no_tower(sidecar ? files->files[0].path : s->folder, s->error);
}

static qvl_status collect_entries(search *s) {
    qvl_status status = find_naming(s);
    if (status) return status;
    const qvl_tower_files *files = &s->tower->files;
    size_t length = strlen(qvl_naming_prefix(s->naming)), n = 0;
    s->entries = qvl_calloc(s->count, sizeof *s->entries);
    if (!s->entries) return qvl_fail_memory(s->error, "tower tensors", s->count, sizeof *s->entries);
    for (int32_t f = 0; f < files->count; f++) {
        const qvl_safetensors *file = &files->files[f];
        for (size_t i = 0; i < file->count; i++)
            if (qvl_naming_of(file->tensors[i].name) != QVL_NAMING_NONE)
                s->entries[n++] = (entry){file->tensors[i].name + length, file->tensors[i], file, false};
    }
    qsort(s->entries, n, sizeof *s->entries, compare_entries);
    for (size_t i = 1; i < n; i++)
        if (strcmp(s->entries[i - 1].name, s->entries[i].name) == 0)
            return qvl_fail(s->error, QVL_ERROR_MODEL, "tensor %.200s is in two files, %.300s and %.300s",
                            s->entries[i].tensor.name, s->entries[i - 1].file->path, s->entries[i].file->path);
    return QVL_OK;
}

/* Older files carry the rotary frequencies, which are computed here. */
static bool is_ignored(const entry *e) {
    return strcmp(e->name, "rotary_pos_emb.inv_freq") == 0;
}

static bool is_float(qvl_dtype dtype) {
    return dtype == QVL_F32 || dtype == QVL_BF16 || dtype == QVL_F16;
}

/* The first tensor that only quantised weights have, or NULL. */
static const entry *find_quantised(const search *s, const char **scheme) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < sizeof quantised / sizeof quantised[0]; k++)
            if (ends_with(s->entries[i].name, quantised[k].suffix)) {
                *scheme = quantised[k].scheme;
                return &s->entries[i];
            }
    return NULL;
}

/* First of all, so that a quantised tower is called that and not a shape mismatch. */
static qvl_status check_dtypes(search *s) {
    static const char reads[] = "qvl reads towers in F32, BF16 and F16";
    const entry *odd = NULL;
    for (size_t i = 0; i < s->count; i++) {
        entry *e = &s->entries[i];
        e->used = is_ignored(e);
        if (!odd && !e->used && !is_float(e->tensor.dtype)) odd = e;
    }
    const char *scheme = NULL;
    const entry *mark = find_quantised(s, &scheme);
    if (odd && mark)
        return qvl_fail(s->error, QVL_ERROR_UNSUPPORTED,
                        "%s: tensor %.200s has dtype %s: it is quantised (%s, to which %.200s belongs); %s",
                        odd->file->path, odd->tensor.name, qvl_dtype_name(odd->tensor.dtype), scheme,
                        mark->tensor.name, reads);
    if (odd)
        return qvl_fail(s->error, QVL_ERROR_UNSUPPORTED, "%s: tensor %.200s has dtype %s; %s", odd->file->path,
                        odd->tensor.name, qvl_dtype_name(odd->tensor.dtype), reads);
    if (mark)
        return qvl_fail(s->error, QVL_ERROR_UNSUPPORTED,
                        "%s: tensor %.200s (%s) belongs to quantised weights (%s); %s", mark->file->path,
                        mark->tensor.name, qvl_dtype_name(mark->tensor.dtype), scheme, reads);
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

static entry *find_entry(const search *s, const char *name) {
    if (s->count == 0) return NULL;
    return bsearch(name, s->entries, s->count, sizeof *s->entries, compare_name_with_entry);
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
    entry *e = find_entry(s, name);
    if (!e) {
        if (s->missing++ == 0)
            snprintf(s->first_missing, sizeof s->first_missing, "%s%s", qvl_naming_prefix(s->naming), name);
        return;
    }
    e->used = true;
    if (!same_shape(&e->tensor, ndim, shape)) {
        char found[160], wanted[160];
        print_shape(e->tensor.shape, e->tensor.ndim, found);
        print_shape(shape, ndim, wanted);
        s->status = qvl_fail(s->error, QVL_ERROR_MODEL, "%s: tensor %.200s has shape %s; config.json asks for %s",
                             e->file->path, e->tensor.name, found, wanted);
        return;
    }
    *tensor = e->tensor;
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

/* ---- the patch embedding, which comes in three layouts */

/* [d, t, p, p, C] -> [d, C, t, p, p], element by element of `size` bytes. pixels = t * p * p. */
static void move_channels(const uint8_t *from, int64_t d, int64_t pixels, int64_t channels, size_t size,
                          uint8_t *to) {
    for (int64_t row = 0; row < d; row++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < pixels; i++) {
                memcpy(to, from + (size_t)((row * pixels + i) * channels + c) * size, size);
                to += size;
            }
}

/* A copy of MLX's tensor in the order of Hugging Face. */
static qvl_status reorder_mlx(search *s, entry *e) {
    const qvl_vision_config *c = s->config;
    const int64_t pixels = (int64_t)c->temporal_patch_size * c->patch_size * c->patch_size;
    const size_t size = qvl_dtype_bits(e->tensor.dtype) / 8;
    const size_t count = (size_t)(c->hidden_size * pixels * c->in_channels); /* below 2^31: see config.c */
    s->tower->reordered = qvl_alloc(count, size);
    if (!s->tower->reordered) return qvl_fail_memory(s->error, "patch embedding", count, size);
    move_channels(e->tensor.data, c->hidden_size, pixels, c->in_channels, size, s->tower->reordered);
    e->tensor.data = s->tower->reordered;
    return QVL_OK;
}

static void set_shape(qvl_tensor *tensor, int32_t ndim, const int64_t *shape) {
    tensor->ndim = ndim;
    memset(tensor->shape, 0, sizeof tensor->shape);
    memcpy(tensor->shape, shape, (size_t)ndim * sizeof *shape);
}

/* Makes the entry what Hugging Face would have stored. shape: that of Hugging Face. */
static qvl_status take_layout(search *s, entry *e, const int64_t shape[5]) {
    const int64_t mlx[] = {shape[0], shape[2], shape[3], shape[4], shape[1]};
    const int64_t flat[] = {shape[0], shape[1] * shape[2] * shape[3] * shape[4]};
    bool is_hf = same_shape(&e->tensor, 5, shape), is_mlx = same_shape(&e->tensor, 5, mlx);
    if (is_hf && is_mlx)
        return qvl_fail(
            s->error, QVL_ERROR_UNSUPPORTED,
            "%s: tensor %.200s: with patches of 3 x 3 pixels and 3 frames the layouts of Hugging Face and "
            "MLX have the same shape and cannot be told apart",
            e->file->path, e->tensor.name);
    if (is_hf) {
        s->tower->layout = "hugging-face";
        return QVL_OK;
    }
    if (is_mlx || same_shape(&e->tensor, 2, flat)) {
        s->tower->layout = is_mlx ? "mlx" : "flat";
        set_shape(&e->tensor, 5, shape);
        return is_mlx ? reorder_mlx(s, e) : QVL_OK;
    }
    char found[160], texts[3][160];
    print_shape(e->tensor.shape, e->tensor.ndim, found);
    print_shape(shape, 5, texts[0]);
    print_shape(mlx, 5, texts[1]);
    print_shape(flat, 2, texts[2]);
    return qvl_fail(s->error, QVL_ERROR_MODEL,
                    "%s: tensor %.200s has shape %s; config.json asks for %s (as Hugging Face), %s (as MLX) or %s "
                    "(flat)",
                    e->file->path, e->tensor.name, found, texts[0], texts[1], texts[2]);
}

static void want_patch_embed(search *s) {
    const qvl_vision_config *c = s->config;
    const char *name = "patch_embed.proj.weight";
    const int64_t d = c->hidden_size;
    const int64_t shape[] = {d, c->in_channels, c->temporal_patch_size, c->patch_size, c->patch_size};
    entry *e = find_entry(s, name);
    if (e) s->status = take_layout(s, e, shape);
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
                        s->folder, s->missing, s->wanted, s->first_missing, unused, first_unused->tensor.name);
    if (s->missing)
        return qvl_fail(s->error, QVL_ERROR_MODEL, "%s: %zu of %zu tower tensors are missing, first %.200s",
                        s->folder, s->missing, s->wanted, s->first_missing);
    if (unused)
        return qvl_fail(s->error, QVL_ERROR_MODEL,
                        "%s: %zu tensors %s are not of the tower that config.json describes, first %.200s",
                        s->folder, unused, qvl_naming_describe(s->naming), first_unused->tensor.name);
    return QVL_OK;
}

/* ------------------------------------------------------------------------------------------------ open, close */

/* The tower is complete: its tensors once more as a list. */
static qvl_status list_tensors(const search *s) {
    qvl_raw_tower *tower = s->tower;
    tower->tensors = qvl_calloc(s->wanted, sizeof *tower->tensors);
    if (!tower->tensors) return qvl_fail_memory(s->error, "tower tensors", s->wanted, sizeof *tower->tensors);
    int32_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (is_ignored(&s->entries[i])) continue;
        tower->tensors[n] = s->entries[i].tensor;
        tower->tensors[n++].name = s->entries[i].name;
    }
    return QVL_OK;
}

qvl_status qvl_raw_tower_find(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error) {
    search s = {.folder = folder, .config = config, .tower = tower, .error = error};
    qvl_status status = collect_entries(&s);
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
    if (!status) status = list_tensors(&s);
    if (!status) tower->prefix = qvl_naming_prefix(s.naming);
done:
    qvl_free(s.entries);
    return status;
}

qvl_status qvl_raw_tower_open(const char *folder, const qvl_vision_config *config, qvl_raw_tower *tower,
                              qvl_error *error) {
    *tower = (qvl_raw_tower){0};
    qvl_status status = qvl_tower_files_open(folder, &tower->files, error);
    if (!status) status = qvl_raw_tower_find(folder, config, tower, error);
    if (status) qvl_raw_tower_close(tower);
    return status;
}

void qvl_raw_tower_close(qvl_raw_tower *tower) {
    qvl_tower_files_close(&tower->files);
    qvl_free(tower->reordered);
    qvl_free(tower->tensors);
    qvl_free(tower->blocks);
    *tower = (qvl_raw_tower){0};
}
