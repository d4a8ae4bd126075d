/* Causal attention with grouped keys and values; in hybrid models a gate on its output. */
#include "lm/lm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qvl_lm_attention_open(qvl_lm *lm, const char *layer, qvl_lm_attention *a) {
    const qvl_text_config *c = &lm->config;
    qvl_text_tensors *t = &lm->tensors;
    int64_t h = c->hidden_size, q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    char name[96];
    a->gated = c->hybrid.on;
    snprintf(name, sizeof name, "%s.self_attn.q_proj", layer);
    qvl_text_matrix(t, name, a->gated ? 2 * q : q, h, &a->q);
    snprintf(name, sizeof name, "%s.self_attn.k_proj", layer);
    qvl_text_matrix(t, name, kv, h, &a->k);
    snprintf(name, sizeof name, "%s.self_attn.v_proj", layer);
    qvl_text_matrix(t, name, kv, h, &a->v);
    snprintf(name, sizeof name, "%s.self_attn.o_proj", layer);
    qvl_text_matrix(t, name, h, q, &a->o);
    snprintf(name, sizeof name, "%s.self_attn.q_norm.weight", layer);
    a->q_norm = qvl_text_vector(t, name, c->head_dim, lm->norm_offset);
    snprintf(name, sizeof name, "%s.self_attn.k_norm.weight", layer);
    a->k_norm = qvl_text_vector(t, name, c->head_dim, lm->norm_offset);
}

static void split_row(void *user, int64_t row, int worker) {
    (void)worker;
    const qvl_pass *p = user;
    size_t hd = (size_t)p->config->head_dim;
    for (int64_t head = row * p->config->heads; head < (row + 1) * p->config->heads; head++) {
        memcpy(p->q + (size_t)head * hd, p->packed + (size_t)head * 2 * hd, hd * sizeof(float));
        memcpy(p->output_gate + (size_t)head * hd, p->packed + ((size_t)head * 2 + 1) * hd, hd * sizeof(float));
    }
}

void qvl_lm_attention_run(qvl_pass *p, const qvl_lm_attention *a, int32_t index, int64_t cache_layer) {
    const qvl_text_config *c = p->config;
    int64_t hd = c->head_dim, width = c->heads * hd;
    float scale = (float)(1.0 / sqrt((double)hd));
    qvl_kv kv = qvl_kv_cache_layer(p->cache, cache_layer);

    qvl_operand x = qvl_pass_operand(p, p->normed, p->rows, c->hidden_size);
    qvl_project(p->compute, &x,
                (qvl_projection[]){
                    {&a->q, a->gated ? p->packed : p->q, false}, {&a->k, p->k, false}, {&a->v, p->v, false}},
                3);
    if (a->gated) qvl_pool_run(p->lm->model->pool, p->rows, split_row, p);
    qvl_norm_rotate(p->compute, p->q, p->rows, c->heads, hd, a->q_norm, c->eps, p->cosine, p->sine, c->rotary);
    qvl_norm_rotate(p->compute, p->k, p->rows, c->kv_heads, hd, a->k_norm, c->eps, p->cosine, p->sine, c->rotary);
    qvl_pass_tap(p, index, "q", p->q, c->heads, hd);
    qvl_pass_tap(p, index, "k", p->k, c->kv_heads, hd);
    qvl_pass_tap(p, index, "v", p->v, c->kv_heads, hd);

    qvl_kv_store(p->compute, &kv, p->first, p->rows, p->k, p->v);
    qvl_causal_attention(p->compute, &kv, p->q, p->first, p->rows, c->heads, scale, p->attention_scratch,
                         p->attended);
    if (a->gated) qvl_sigmoid_gate(p->compute, p->attended, p->output_gate, p->rows * width);
    qvl_pass_tap(p, index, "attn", p->attended, width, 0);
    qvl_operand y = qvl_pass_operand(p, p->attended, p->rows, width);
    qvl_project(p->compute, &y, &(qvl_projection){&a->o, p->hidden, true}, 1);
}
