/* A config.json up to a zero byte, then any bytes as the one file of its folder: the language model is refused with a
 * message, or all its matrices lie inside the bytes, and can be read. */
#include "lm/lm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { LAYERS = 8, WIDEST = 4096 }; /* what is read of a large model */

static void check(bool holds) {
    if (!holds) abort();
}

static void check_failure(qvl_status status, const qvl_error *error) {
    check(error->status == status && error->message[0]);
}

/* false: no tensors of a language model. */
static bool find(const uint8_t *bytes, size_t count, qvl_text_tensors *t, qvl_error *error) {
    qvl_tower_files files = {.files = calloc(1, sizeof *files.files), .count = 1, .source = QVL_SINGLE_FILE};
    if (!files.files) return false;
    if (qvl_safetensors_parse(bytes, count, "folder/model.safetensors", files.files, error)) {
        free(files.files);
        return false;
    }
    *error = (qvl_error){0};
    qvl_status status = qvl_text_tensors_find("folder", &files, t, error);
    if (status) check_failure(status, error);
    return !status;
}

/* ---- one matrix after the other */

static void read_matrix(const qvl_text_tensors *t, const qvl_matrix *m) {
    static float row[WIDEST];
    if (t->status) return;
    for (int64_t r = 0; r < m->n; r++)
        for (int64_t at = 0; at < m->k; at += WIDEST)
            qvl_matrix_read(m, r, at, m->k - at < WIDEST ? m->k - at : WIDEST, row);
}

static void walk_matrix(qvl_text_tensors *t, const char *layer, const char *part, int64_t n, int64_t k) {
    char name[128];
    qvl_matrix m = {0};
    snprintf(name, sizeof name, "%s.%s", layer, part);
    qvl_text_matrix(t, name, n, k, &m);
    read_matrix(t, &m);
}

static void walk_experts(const qvl_text_config *c, const char *layer, qvl_text_tensors *t) {
    char name[64];
    size_t count = (size_t)c->experts;
    qvl_matrix *all = calloc(3 * count, sizeof *all);
    if (!all) return;
    qvl_experts experts = {all, all + count, all + 2 * count};
    snprintf(name, sizeof name, "%s.mlp", layer);
    qvl_text_experts(t, name, c->experts, c->expert_intermediate_size, c->hidden_size, &experts);
    for (size_t i = 0; i < 3 * count; i++) read_matrix(t, all + i);
    free(all);
}

static void walk_linear(const qvl_text_config *c, const char *layer, qvl_text_tensors *t) {
    const qvl_hybrid_config *l = &c->hybrid;
    int64_t values = (int64_t)l->value_heads * l->value_dim, h = c->hidden_size;
    int64_t channels = 2 * (int64_t)l->key_heads * l->key_dim + values;
    char name[64];
    walk_matrix(t, layer, "linear_attn.in_proj_qkv", channels, h);
    walk_matrix(t, layer, "linear_attn.in_proj_z", values, h);
    walk_matrix(t, layer, "linear_attn.out_proj", h, values);
    snprintf(name, sizeof name, "%s.linear_attn.conv1d.weight", layer);
    const float *taps = qvl_text_conv(t, name, channels, l->conv_width);
    check(!taps == (t->status != QVL_OK));
}

static void walk(const qvl_text_config *c, qvl_text_tensors *t) {
    int64_t h = c->hidden_size, q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    for (int32_t i = 0; i < c->layers && i < LAYERS; i++) {
        char layer[32];
        snprintf(layer, sizeof layer, "layers.%d", i);
        if (c->experts) {
            walk_experts(c, layer, t);
        } else {
            walk_matrix(t, layer, "mlp.gate_proj", c->intermediate_size, h);
            walk_matrix(t, layer, "mlp.down_proj", h, c->intermediate_size);
        }
        if (c->hybrid.on && c->hybrid.linear[i]) {
            walk_linear(c, layer, t);
            continue;
        }
        walk_matrix(t, layer, "self_attn.q_proj", c->hybrid.on ? 2 * q : q, h);
        walk_matrix(t, layer, "self_attn.k_proj", kv, h);
        walk_matrix(t, layer, "self_attn.o_proj", h, q);
    }
}

/* ---- all of a model */

static void take_all(const qvl_text_config *config, const uint8_t *bytes, size_t count) {
    qvl_lm lm = {.config = *config, .family = config->hybrid.on ? &qvl_family_hybrid : &qvl_family_qwen3};
    qvl_error error = {0};
    if (!find(bytes, count, &lm.tensors, &error)) return;
    qvl_status status = qvl_lm_take_tensors(&lm, &error);
    if (status) {
        check_failure(status, &error);
    } else {
        check(lm.norm && lm.tensors.parameters > 0 && lm.tensors.bytes > 0);
        check(lm.tensors.bytes <= (int64_t)count && lm.tensors.expert_bytes <= lm.tensors.bytes);
        check(lm.cache_layers + lm.linear.layers == config->layers);
        read_matrix(&lm.tensors, &lm.embeddings);
        read_matrix(&lm.tensors, &lm.head);
    }
    lm.family->release(&lm);
    qvl_text_tensors_close(&lm.tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const uint8_t *end = memchr(bytes, 0, count);
    qvl_text_config config;
    qvl_text_tensors tensors;
    qvl_error error = {0};
    if (!end || qvl_text_config_parse(bytes, (size_t)(end - bytes), "folder/config.json", &config, &error))
        return 0;
    count -= (size_t)(end + 1 - bytes);
    bytes = end + 1;
    error = (qvl_error){0};
    if (!find(bytes, count, &tensors, &error)) return 0;
    walk(&config, &tensors);
    if (tensors.status) check_failure(tensors.status, &error);
    qvl_text_tensors_close(&tensors);
    take_all(&config, bytes, count);
    return 0;
}
