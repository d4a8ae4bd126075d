/* Qwen3.5, 3.6 and 3.8, dense and with experts: the layers as language_model.md 3 to 6 write them.
 *
 *   h += mixer(norm(h)), mixer: linear attention (Gated DeltaNet), or full attention with an output gate
 *   h += mlp(norm(h)), mlp: dense, or a few experts of many and one that every row goes to
 *
 * Linear attention of y = norm(h):
 *   m, z, b, a = projections of y
 *   q, k, v    = silu(causal convolution of m over time)
 *   o          = delta rule of q, k, v under the decay exp(-exp(A) softplus(a + dt)) and the rate sigmoid(b)
 *   h         += out(norm(o) silu(z))
 *
 * Norms are zero-centred in Hugging Face's files: their weight is 1 + w. MLX's files hold 1 + w already, and are told by
 * the layout of the convolution's weights, [channels, width, 1] instead of [channels, 1, width]. The gated norm of
 * linear attention has plain weights everywhere. */
#include "lm/lm.h"

#include <stdio.h>

typedef struct linear_layer {
    qvl_matrix qkv, z, b, a, out;
    const float *taps; /* [width, channels] */
    const float *a_log, *dt_bias, *norm;
} linear_layer;

typedef struct hybrid_layer {
    const float *input_norm; /* [hidden_size] */
    bool is_linear;
    int64_t slot; /* which of the linear layers, or of the layers with keys and values, it is */
    linear_layer linear;
    qvl_lm_attention full;
    qvl_feed_forward feed_forward;
} hybrid_layer;

static int64_t values_of(const qvl_text_config *c) {
    return (int64_t)c->hybrid.value_heads * c->hybrid.value_dim;
}

static int64_t channels_of(const qvl_text_config *c) {
    return 2 * (int64_t)c->hybrid.key_heads * c->hybrid.key_dim + values_of(c);
}

static qvl_linear_shape linear_shape(const qvl_lm *lm) {
    const qvl_hybrid_config *c = &lm->config.hybrid;
    return (qvl_linear_shape){.layers = c->linear_layers,
                              .conv_floats = ((c->conv_width - 1) * channels_of(&lm->config) + 15) / 16 * 16,
                              .delta = {c->key_heads, c->value_heads, c->key_dim, c->value_dim}};
}

/* ---- opening */

static float norm_offset(const qvl_lm *lm) {
    for (int32_t i = 0; i < lm->config.layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.linear_attn.conv1d.weight", i);
        if (qvl_text_has(&lm->tensors, name)) return qvl_text_conv_is_mlx(&lm->tensors, name) ? 0.0f : 1.0f;
    }
    return 1.0f;
}

/* All layers are in the form of the first: norms have one form. */
static void check_form(qvl_lm *lm, const char *conv) {
    static const char *const forms[] = {"MLX's", "Hugging Face's"};
    bool raw = lm->norm_offset != 0.0f, here = !qvl_text_conv_is_mlx(&lm->tensors, conv);
    if (raw != here)
        lm->tensors.status = qvl_fail(
            lm->tensors.error, QVL_ERROR_MODEL,
            "%s: %s%s is in %s layout and layers before it are in %s: whether norms are zero-centred is unclear",
            lm->tensors.folder, lm->tensors.prefix, conv, forms[here], forms[raw]);
}

static void open_linear(qvl_lm *lm, const char *layer, linear_layer *l) {
    const qvl_text_config *c = &lm->config;
    qvl_text_tensors *t = &lm->tensors;
    int64_t h = c->hidden_size, values = values_of(c), channels = channels_of(c), heads = c->hybrid.value_heads;
    const struct {
        const char *part;
        int64_t n, k;
        qvl_matrix *matrix;
    } matrices[] = {{"in_proj_qkv", channels, h, &l->qkv},
                    {"in_proj_z", values, h, &l->z},
                    {"in_proj_b", heads, h, &l->b},
                    {"in_proj_a", heads, h, &l->a},
                    {"out_proj", h, values, &l->out}};
    char name[96];
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        snprintf(name, sizeof name, "%s.linear_attn.%s", layer, matrices[i].part);
        qvl_text_matrix(t, name, matrices[i].n, matrices[i].k, matrices[i].matrix);
    }
    snprintf(name, sizeof name, "%s.linear_attn.conv1d.weight", layer);
    l->taps = qvl_text_conv(t, name, channels, c->hybrid.conv_width);
    if (l->taps) check_form(lm, name);
    snprintf(name, sizeof name, "%s.linear_attn.A_log", layer);
    l->a_log = qvl_text_vector(t, name, heads, 0.0f);
    snprintf(name, sizeof name, "%s.linear_attn.dt_bias", layer);
    l->dt_bias = qvl_text_vector(t, name, heads, 0.0f);
    snprintf(name, sizeof name, "%s.linear_attn.norm.weight", layer);
    l->norm = qvl_text_vector(t, name, c->hybrid.value_dim, 0.0f);
}

static void open_layer(qvl_lm *lm, int32_t index, hybrid_layer *l) {
    const qvl_text_config *c = &lm->config;
    char layer[32], name[64];
    snprintf(layer, sizeof layer, "layers.%d", index);
    snprintf(name, sizeof name, "%s.input_layernorm.weight", layer);
    l->input_norm = qvl_text_vector(&lm->tensors, name, c->hidden_size, lm->norm_offset);
    if (l->is_linear)
        open_linear(lm, layer, &l->linear);
    else
        qvl_lm_attention_open(lm, layer, &l->full);
    qvl_feed_forward_open(lm, layer, &l->feed_forward);
}

static qvl_status open_layers(qvl_lm *lm, qvl_error *error) {
    const qvl_text_config *c = &lm->config;
    hybrid_layer *layers = qvl_calloc((size_t)c->layers, sizeof *layers);
    if (!layers) return qvl_fail_memory(error, "layers", (size_t)c->layers, sizeof *layers);
    lm->layers = layers;
    lm->linear = linear_shape(lm);
    int64_t linear = 0;
    for (int32_t i = 0; i < c->layers; i++) {
        layers[i].is_linear = c->hybrid.linear[i];
        layers[i].slot = layers[i].is_linear ? linear++ : lm->cache_layers++;
        open_layer(lm, i, &layers[i]);
    }
    return lm->tensors.status;
}

static void release_layers(qvl_lm *lm) {
    hybrid_layer *layers = lm->layers;
    for (int32_t i = 0; layers && i < lm->config.layers; i++) qvl_feed_forward_release(&layers[i].feed_forward);
    qvl_free(layers);
    lm->layers = NULL;
}

/* ---- running */

typedef struct linear_buffers {
    float *mixed;        /* [rows, channels] */
    float *z, *out;      /* [rows, values] */
    float *decay, *beta; /* [rows, value heads] */
    void *operand;       /* of [rows, values] */
} linear_buffers;

static void take(qvl_pass *p, qvl_arena *arena) {
    const qvl_text_config *c = p->config;
    size_t rows = (size_t)p->rows, values = (size_t)values_of(c), heads = (size_t)c->hybrid.value_heads;
    linear_buffers *place = qvl_arena_take(arena, 1, sizeof *place), b;
    b.mixed = qvl_arena_take(arena, rows * (size_t)channels_of(c), sizeof(float));
    b.z = qvl_arena_take(arena, rows * values, sizeof(float));
    b.out = qvl_arena_take(arena, rows * values, sizeof(float));
    b.decay = qvl_arena_take(arena, rows * heads, sizeof(float));
    b.beta = qvl_arena_take(arena, rows * heads, sizeof(float));
    b.operand = qvl_arena_take(arena, qvl_operand_bytes(p->compute, p->rows, (int64_t)values), 1);
    if (place) *place = b;
    p->extra = place;
}

static void run_linear(qvl_pass *p, const hybrid_layer *layer, int32_t index) {
    const qvl_text_config *c = p->config;
    const linear_layer *l = &layer->linear;
    const linear_buffers *b = p->extra;
    const qvl_delta_shape *shape = &p->lm->linear.delta;
    int64_t heads = shape->value_heads;
    qvl_operand x = qvl_pass_operand(p, p->normed, p->rows, c->hidden_size);
    qvl_project(
        p->compute, &x,
        (qvl_projection[]){
            {&l->qkv, b->mixed, false}, {&l->z, b->z, false}, {&l->b, b->beta, false}, {&l->a, b->decay, false}},
        4);
    qvl_causal_convolution(p->compute, b->mixed, p->rows, channels_of(c), l->taps, c->hybrid.conv_width,
                           qvl_linear_state_conv(p->linear, layer->slot));
    qvl_pass_tap(p, index, "conv", b->mixed, channels_of(c), 0);
    qvl_delta_gates(b->decay, b->beta, l->a_log, l->dt_bias, p->rows, heads, b->decay, b->beta);
    qvl_pass_tap(p, index, "decay", b->decay, heads, 0);
    qvl_pass_tap(p, index, "beta", b->beta, heads, 0);
    qvl_delta_rule(p->compute, shape, b->mixed, b->decay, b->beta, p->rows, p->first,
                   qvl_linear_state_delta(p->linear, layer->slot), b->out);
    qvl_pass_tap(p, index, "core", b->out, values_of(c), 0);
    qvl_operand gated = {p->rows, values_of(c), b->operand};
    qvl_gated_norm(p->compute, b->out, b->z, l->norm, heads, shape->value_dim, c->eps, &gated);
    qvl_pass_tap(p, index, "gated", b->out, values_of(c), 0);
    qvl_project(p->compute, &gated, &(qvl_projection){&l->out, p->hidden, true}, 1);
}

static void run_layer(qvl_pass *p, int32_t index) {
    const qvl_text_config *c = p->config;
    const hybrid_layer *layer = (const hybrid_layer *)p->lm->layers + index;
    qvl_rms_norm(p->compute, p->hidden, p->rows, c->hidden_size, layer->input_norm, c->eps, p->normed);
    qvl_pass_tap(p, index, "norm1", p->normed, c->hidden_size, 0);
    if (layer->is_linear)
        run_linear(p, layer, index);
    else
        qvl_lm_attention_run(p, &layer->full, index, layer->slot);
    qvl_feed_forward_run(p, &layer->feed_forward, index);
}

static const char *const model_types[] = {"qwen3_5", "qwen3_5_moe", NULL};

const qvl_family qvl_family_hybrid = {
    .model_types = model_types,
    .norm_offset = norm_offset,
    .open = open_layers,
    .release = release_layers,
    .layer = run_layer,
    .take = take,
};
