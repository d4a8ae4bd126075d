/* A language model: opened, described, closed. */
#include "lm/lm.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

static const qvl_family *const families[] = {&qvl_family_qwen3, &qvl_family_hybrid};

void qvl_lm_options_init(qvl_lm_options *options) {
    *options = (qvl_lm_options){.size = sizeof *options};
}

static qvl_status find_family(qvl_lm *lm, qvl_error *error) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        for (const char *const *type = families[i]->model_types; *type; type++)
            if (strcmp(*type, lm->config.model_type) == 0) lm->family = families[i];
    if (lm->family) return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_UNSUPPORTED,
        "%s: model_type is \"%.60s\", whose language model qvl does not compute; it computes qwen3_vl, "
        "qwen3_vl_moe, qwen3_5 and qwen3_5_moe",
        lm->model->folder, lm->config.model_type);
}

static qvl_status check_tower(const qvl_lm *lm, qvl_error *error) {
    const qvl_vision_config *v = &lm->model->config.vision;
    if (v->out_hidden_size != lm->config.hidden_size)
        return qvl_fail(
            error, QVL_ERROR_MODEL,
            "%s: the tower's features are %d wide (out_hidden_size), the language model is %d (hidden_size)",
            lm->model->folder, v->out_hidden_size, lm->config.hidden_size);
    if (v->deepstack_count > lm->config.layers)
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: %d deepstack features for %d layers", lm->model->folder,
                        v->deepstack_count, lm->config.layers);
    return QVL_OK;
}

qvl_status qvl_lm_take_tensors(qvl_lm *lm, qvl_error *error) {
    const qvl_text_config *c = &lm->config;
    qvl_text_tensors *t = &lm->tensors;
    lm->norm_offset = lm->family->norm_offset ? lm->family->norm_offset(lm) : 0.0f;
    qvl_text_matrix(t, "embed_tokens", c->vocab_size, c->hidden_size, &lm->embeddings);
    lm->info.tied = !qvl_text_head(t, c->vocab_size, c->hidden_size, &lm->head);
    if (lm->info.tied) lm->head = lm->embeddings;
    lm->norm = qvl_text_vector(t, "norm.weight", c->hidden_size, lm->norm_offset);
    if (t->status) return t->status;
    qvl_status status = lm->family->open(lm, error);
    return status ? status : qvl_text_tensors_finish(t);
}

static int64_t matrix_bytes(const qvl_matrix *m) {
    int64_t bits = m->bits ? m->bits : (int64_t)qvl_dtype_bits(m->dtype), bytes = m->n * m->k * bits / 8;
    if (m->bits) bytes += 2 * m->n * (m->k / m->group) * (int64_t)(qvl_dtype_bits(m->scale_dtype) / 8);
    return bytes;
}

static void fill_info(qvl_lm *lm) {
    const qvl_text_config *c = &lm->config;
    qvl_lm_info *info = &lm->info;
    qvl_kv_cache cache;
    qvl_kv_cache_init(lm->compute, lm->cache_layers, c->kv_heads, c->head_dim, &cache);
    info->model_type = c->model_type;
    info->layers = c->layers;
    info->hidden_size = c->hidden_size;
    info->intermediate_size = c->intermediate_size;
    info->heads = c->heads;
    info->kv_heads = c->kv_heads;
    info->head_dim = c->head_dim;
    info->vocab_size = c->vocab_size;
    info->max_positions = c->max_positions;
    info->experts = c->experts;
    info->experts_per_token = c->experts ? c->experts_per_token : 0;
    info->expert_intermediate_size = c->experts ? c->expert_intermediate_size : 0;
    info->rope_theta = c->rope_theta;
    info->weight_types = lm->tensors.types;
    info->tensor_prefix = lm->tensors.prefix;
    info->parameter_count = lm->tensors.parameters;
    info->weight_bytes = lm->tensors.bytes;
    info->decode_bytes = info->weight_bytes - (info->tied ? 0 : matrix_bytes(&lm->embeddings));
    if (c->experts)
        info->decode_bytes -= lm->tensors.expert_bytes / c->experts * (c->experts - c->experts_per_token);
    info->cache_bytes = (int64_t)(qvl_kv_cache_bytes(&cache, QVL_KV_PAGE) / QVL_KV_PAGE);
    info->linear_layers = (int32_t)lm->linear.layers;
    info->state_bytes = qvl_linear_shape_bytes(&lm->linear);
    info->cache_dtype = qvl_compute_dtype(lm->compute);
}

qvl_status qvl_lm_open(const qvl_model *model, const qvl_lm_options *given, qvl_lm **out, qvl_error *error) {
    *out = NULL;
    qvl_lm_options options;
    qvl_lm_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (status) return status;
    qvl_lm *lm = qvl_calloc(1, sizeof *lm);
    if (!lm) return qvl_fail_memory(error, "language model", 1, sizeof *lm);
    lm->model = model;
    lm->compute = model->compute;
    status = qvl_text_config_read(model->folder, &lm->config, error);
    if (!status) status = find_family(lm, error);
    if (!status) status = check_tower(lm, error);
    if (!status) status = qvl_text_tensors_open(model->folder, &lm->tensors, error);
    if (!status) status = qvl_lm_take_tensors(lm, error);
    if (status) {
        qvl_lm_close(&lm);
        return status;
    }
    lm->tensors.error = NULL; /* the caller's may not last */
    qvl_rotary_init(&lm->config, &lm->rotary);
    fill_info(lm);
    *out = lm;
    return QVL_OK;
}

void qvl_lm_close(qvl_lm **pointer) {
    if (!pointer || !*pointer) return;
    qvl_lm *lm = *pointer;
    *pointer = NULL;
    if (lm->family) lm->family->release(lm);
    qvl_text_tensors_close(&lm->tensors);
    qvl_free(lm);
}

const qvl_lm_info *qvl_lm_get_info(const qvl_lm *lm) {
    return &lm->info;
}
