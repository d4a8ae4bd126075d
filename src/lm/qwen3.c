/* Qwen3-VL, dense and with experts: the layers as language_model.md 1 and 2 write them.
 *
 *   h += o(attention(rotate(norm(q)), rotate(norm(k)), v)),  q, k, v = projections of norm(h)
 *   h += down(silu(gate(y)) * up(y)),  y = norm(h);  or the weighted sum of a few such experts
 *
 * What deepstack adds to the first layers' outputs is added between layers, in pass.c. */
#include "lm/lm.h"

#include <stdio.h>

typedef struct qwen3_layer {
    const float *input_norm; /* [hidden_size] */
    qvl_lm_attention attention;
    qvl_feed_forward feed_forward;
} qwen3_layer;

static qvl_status open_layers(qvl_lm *lm, qvl_error *error) {
    const qvl_text_config *c = &lm->config;
    qwen3_layer *layers = qvl_calloc((size_t)c->layers, sizeof *layers);
    if (!layers) return qvl_fail_memory(error, "layers", (size_t)c->layers, sizeof *layers);
    lm->layers = layers;
    lm->cache_layers = c->layers;
    for (int32_t i = 0; i < c->layers; i++) {
        char layer[32], name[64];
        snprintf(layer, sizeof layer, "layers.%d", i);
        snprintf(name, sizeof name, "%s.input_layernorm.weight", layer);
        layers[i].input_norm = qvl_text_vector(&lm->tensors, name, c->hidden_size, lm->norm_offset);
        qvl_lm_attention_open(lm, layer, &layers[i].attention);
        qvl_feed_forward_open(lm, layer, &layers[i].feed_forward);
    }
    return lm->tensors.status;
}

static void release_layers(qvl_lm *lm) {
    qwen3_layer *layers = lm->layers;
    for (int32_t i = 0; layers && i < lm->config.layers; i++) qvl_feed_forward_release(&layers[i].feed_forward);
    qvl_free(layers);
    lm->layers = NULL;
}

static void run_layer(qvl_pass *p, int32_t index) {
    const qvl_text_config *c = p->config;
    const qwen3_layer *layer = (const qwen3_layer *)p->lm->layers + index;
    qvl_rms_norm(p->compute, p->hidden, p->rows, c->hidden_size, layer->input_norm, c->eps, p->normed);
    qvl_pass_tap(p, index, "norm1", p->normed, c->hidden_size, 0);
    qvl_lm_attention_run(p, &layer->attention, index, index);
    qvl_feed_forward_run(p, &layer->feed_forward, index);
}

static const char *const model_types[] = {"qwen3_vl", "qwen3_vl_moe", NULL};

const qvl_family qvl_family_qwen3 = {
    .model_types = model_types,
    .open = open_layers,
    .release = release_layers,
    .layer = run_layer,
};
