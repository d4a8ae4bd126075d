/* Models: opened and closed. */
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
    info->video_limits = model->config.video.processor.limits;
    info->video_limits_source = model->config.video.processor.source;
    info->video_fps = model->config.video.sample ? model->config.video.fps : 0;
    info->video_min_frames = model->config.video.min_frames;
    info->video_max_frames = model->config.video.max_frames;
    memcpy(info->image_mean, p->mean, sizeof info->image_mean);
    memcpy(info->image_std, p->std, sizeof info->image_std);
    info->rescale_factor = p->rescale_factor;
    p = &model->config.video.processor;
    memcpy(info->video_mean, p->mean, sizeof info->video_mean);
    memcpy(info->video_std, p->std, sizeof info->video_std);
    info->video_rescale_factor = p->rescale_factor;
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
    qvl_gate_open(&model->admission, 1);
    qvl_gate_open(&model->readers, 1);
    pthread_mutex_init(&model->fingerprint_lock, NULL);
    model->log = options.log;
    model->log_user = options.log_user;
    model->folder = qvl_strdup(folder);
    status = model->folder ? QVL_OK : qvl_fail_memory(error, "folder name", strlen(folder), 1);
    if (!status) status = qvl_config_read(folder, options.log, options.log_user, &model->config, error);
    if (!status) status = qvl_pool_open(options.threads, &model->pool, error);
    if (!status) status = qvl_compute_open(model->pool, options.dtype, options.cpu_mask, &model->compute, error);
    if (!status) {
        fill_info(model);
        model->readers.places = model->info.threads;
    }
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
    qvl_gate_close(&model->admission);
    qvl_gate_close(&model->readers);
    pthread_mutex_destroy(&model->fingerprint_lock);
    qvl_free(model->file_ids);
    qvl_free(model->folder);
    qvl_free(model);
}

const qvl_model_info *qvl_model_get_info(const qvl_model *model) {
    return &model->info;
}
