/* Open, close, and the whole pipeline. */
#include "base/memory.h"
#include "base/options.h"
#include "model/model.h"
#include "vision/tower.h"

#include <string.h>

const char *qvl_version(void) {
    return "0.1.0";
}

/* ---- options */

void qvl_model_options_init(qvl_model_options *options) {
    *options = (qvl_model_options){.size = sizeof *options, .dtype = QVL_BF16, .cpu_mask = QVL_CPU_ALL};
}

void qvl_encode_options_init(qvl_encode_options *options) {
    *options = (qvl_encode_options){.size = sizeof *options};
}

/* ---- model */

static void fill_info(qvl_model *model) {
    const qvl_vision_config *v = &model->config.vision;
    const qvl_processor_config *p = &model->config.processor;
    qvl_model_info *info = &model->info;
    info->folder = model->folder;
    info->model_type = model->config.model_type;
    info->depth = v->depth;
    info->hidden_size = v->hidden_size;
    info->num_heads = v->num_heads;
    info->head_dim = v->head_dim;
    info->intermediate_size = v->intermediate_size;
    info->out_hidden_size = v->out_hidden_size;
    info->in_channels = v->in_channels;
    info->patch_size = v->patch_size;
    info->temporal_patch_size = v->temporal_patch_size;
    info->spatial_merge_size = v->spatial_merge_size;
    info->num_position_embeddings = v->num_position_embeddings;
    info->deepstack_count = v->deepstack_count;
    memcpy(info->deepstack_indexes, v->deepstack_indexes, sizeof info->deepstack_indexes);
    info->rope_theta = v->rope_theta;
    info->image_limits = p->limits;
    info->image_limits_source = p->source;
    memcpy(info->image_mean, p->mean, sizeof info->image_mean);
    memcpy(info->image_std, p->std, sizeof info->image_std);
    info->rescale_factor = p->rescale_factor;
    info->compute_dtype = qvl_compute_dtype(model->compute);
    info->kernels = qvl_compute_kernels(model->compute);
    info->threads = qvl_pool_threads(model->pool);
}

static qvl_status note_tensors(qvl_model *model, const qvl_raw_tower *raw, qvl_error *error) {
    int32_t files = raw->files.count;
    model->file_ids = qvl_calloc((size_t)files, sizeof *model->file_ids);
    if (!model->file_ids) return qvl_fail_memory(error, "files of a model", (size_t)files, sizeof(qvl_file_id));
    for (int32_t i = 0; i < files; i++) model->file_ids[i] = raw->files.files[i].map.id;
    memcpy(model->tensor_dtype, raw->dtype, sizeof model->tensor_dtype);
    model->info.tensor_source = raw->files.source;
    model->info.tensor_prefix = raw->prefix;
    model->info.tensor_layout = raw->layout;
    model->info.tensor_dtype = model->tensor_dtype;
    model->info.tensor_count = raw->tensor_count;
    model->info.file_count = files;
    model->info.parameter_count = raw->parameter_count;
    return QVL_OK;
}

static qvl_status open_tensors(qvl_model *model, bool pack, qvl_error *error) {
    qvl_raw_tower raw = {0};
    qvl_status status = qvl_raw_tower_open(model->folder, &model->config.vision, &raw, error);
    if (status) return status;
    status = note_tensors(model, &raw, error);
    if (!status && pack)
        status = qvl_tower_pack(model->compute, &model->config.vision, &raw, &model->tower, error);
    qvl_raw_tower_close(&raw);
    return status;
}

qvl_status qvl_model_open(const char *folder, const qvl_model_options *given, qvl_model **out, qvl_error *error) {
    *out = NULL;
    qvl_model_options options;
    qvl_model_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (status) return status;
    qvl_model *model = qvl_calloc(1, sizeof *model);
    if (!model) return qvl_fail_memory(error, "model", 1, sizeof *model);
    model->log = options.log;
    model->log_user = options.log_user;
    model->folder = qvl_strdup(folder);
    status = model->folder ? QVL_OK : qvl_fail_memory(error, "folder name", strlen(folder), 1);
    if (!status) status = qvl_config_read(folder, options.log, options.log_user, &model->config, error);
    if (!status) status = qvl_pool_open(options.threads, &model->pool, error);
    if (!status) status = qvl_compute_open(model->pool, options.dtype, options.cpu_mask, &model->compute, error);
    if (!status) fill_info(model);
    if (!status && options.level != QVL_OPEN_CONFIG)
        status = open_tensors(model, options.level == QVL_OPEN_WEIGHTS, error);
    if (status) {
        qvl_model_close(&model);
        return status;
    }
    *out = model;
    return QVL_OK;
}

void qvl_model_close(qvl_model **pointer) {
    if (!pointer || !*pointer) return;
    qvl_model *model = *pointer;
    *pointer = NULL;
    qvl_tower_free(model->tower);
    qvl_compute_close(&model->compute);
    qvl_pool_close(&model->pool);
    qvl_free(model->file_ids);
    qvl_free(model->folder);
    qvl_free(model);
}

const qvl_model_info *qvl_model_get_info(const qvl_model *model) {
    return &model->info;
}

/* ---- session */

struct qvl_session {
    qvl_model *model;
    qvl_scratch scratch;
};

qvl_status qvl_session_open(qvl_model *model, qvl_session **out, qvl_error *error) {
    *out = NULL;
    if (!model->tower)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%s was opened without weights; a session needs QVL_OPEN_WEIGHTS", model->folder);
    qvl_session *session = qvl_calloc(1, sizeof *session);
    if (!session) return qvl_fail_memory(error, "session", 1, sizeof *session);
    session->model = model;
    *out = session;
    return QVL_OK;
}

const qvl_model *qvl_session_model(const qvl_session *session) {
    return session->model;
}

void qvl_session_close(qvl_session **session) {
    if (!session || !*session) return;
    qvl_free((*session)->scratch.base);
    qvl_free(*session);
    *session = NULL;
}

/* ---- the tower */

static qvl_status check_patches(const qvl_model *model, const qvl_patches *patches, qvl_error *error) {
    const qvl_vision_config *v = &model->config.vision;
    int64_t cols = (int64_t)v->in_channels * v->temporal_patch_size * v->patch_size * v->patch_size, rows = 0;
    if (patches->cols != cols)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "patch rows have %lld columns; this model's have %lld",
                        (long long)patches->cols, (long long)cols);
    for (size_t i = 0; i < patches->item_count; i++) {
        qvl_grid g = patches->items[i].grid;
        int64_t area, item;
        if (!qvl_mul_i64(g.h, g.w, &area) || !qvl_mul_i64(area, g.t, &item) || item > INT32_MAX - rows)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "grid %zu is (%lld, %lld, %lld), which is impossible", i,
                            (long long)g.t, (long long)g.h, (long long)g.w);
        rows += item;
    }
    if (rows != patches->rows)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the grids make %lld patch rows, but %lld are given",
                        (long long)rows, (long long)patches->rows);
    return QVL_OK;
}

/* Runs the tower. The features, if wanted, get a copy of the items with their tokens counted. */
static qvl_status run_tower(qvl_session *session, qvl_tower_call *call, const qvl_item *items,
                            const qvl_encode_options *given, qvl_error *error) {
    qvl_model *model = session->model;
    int64_t merge = model->config.vision.spatial_merge_size;
    size_t count = call->grid_count;
    qvl_encode_options_init(&call->options);
    qvl_status status = qvl_options_take(&call->options, sizeof call->options, given, error);
    if (!status && count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no patch rows given");
    if (status) return status;
    qvl_item *copy = qvl_calloc(count, sizeof *copy);
    if (!copy) return qvl_fail_memory(error, "items", count, sizeof *copy);
    status = qvl_tower_run(model->tower, model->compute, &session->scratch, call, error);
    if (status || !call->features) {
        qvl_free(copy);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        qvl_grid g = call->grids[i];
        if (items) copy[i] = items[i];
        copy[i].grid = g;
        copy[i].tokens = g.t * g.h * g.w / (merge * merge);
    }
    call->features->items = copy;
    call->features->item_count = count;
    return QVL_OK;
}

qvl_status qvl_vision_encode(qvl_session *session, const qvl_patches *patches, const qvl_encode_options *options,
                             qvl_features *features, qvl_error *error) {
    *features = (qvl_features){0};
    qvl_status status = check_patches(session->model, patches, error);
    if (status) return status;
    size_t count = patches->item_count;
    qvl_grid *grids = qvl_alloc(count + 1, sizeof *grids);
    if (!grids) return qvl_fail_memory(error, "grids", count, sizeof *grids);
    for (size_t i = 0; i < count; i++) grids[i] = patches->items[i].grid;
    qvl_tower_call call = {.patches = patches->values, .grids = grids, .grid_count = count, .features = features};
    status = run_tower(session, &call, patches->items, options, error);
    qvl_free(grids);
    return status;
}

qvl_status qvl_vision_blocks(qvl_session *session, float *hidden, const qvl_grid *grids, size_t grid_count,
                             const qvl_encode_options *options, qvl_features *features, qvl_error *error) {
    if (features) *features = (qvl_features){0};
    qvl_tower_call call = {.hidden = hidden, .grids = grids, .grid_count = grid_count, .features = features};
    return run_tower(session, &call, NULL, options, error);
}

qvl_status qvl_vision_scratch(const qvl_model *model, const qvl_grid *grids, size_t grid_count, size_t *bytes,
                              qvl_error *error) {
    return qvl_tower_scratch_bytes(&model->config.vision, model->compute, grids, grid_count, false, bytes, error);
}

/* ---- the whole pipeline */

qvl_status qvl_encode(qvl_session *session, const qvl_input *inputs, size_t count,
                      const qvl_preprocess_options *preprocess, const qvl_encode_options *options,
                      qvl_features *features, qvl_error *error) {
    *features = (qvl_features){0};
    qvl_patches patches = {0};
    qvl_status status = qvl_preprocess_inputs(session->model, inputs, count, preprocess, &patches, error);
    if (!status) status = qvl_vision_encode(session, &patches, options, features, error);
    qvl_patches_free(&patches);
    return status;
}
