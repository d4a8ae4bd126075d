/* What is behind a qvl_lm, and one pass of rows through its layers. A family of models is one file that fills a
 * qvl_family; attention.c, mlp.c and the rest are what families share. */
#ifndef QVL_LM_LM_H
#define QVL_LM_LM_H

#include "base/memory.h"
#include "lm/kv_cache.h"
#include "lm/linear_state.h"
#include "lm/rotary.h"
#include "lm/tensors.h"
#include "model/model.h"

typedef struct qvl_pass qvl_pass;

/* The layers of a kind of model. */
typedef struct qvl_family {
    const char *const *model_types; /* of config.json; ends with NULL */
    /* Finds the tensors of all layers and fills lm->layers, which release frees; cache_layers says how many layers have
     * keys and values. Norms and head are not the family's. */
    qvl_status (*open)(qvl_lm *lm, qvl_error *error);
    void (*release)(qvl_lm *lm);
    /* What is added to the weights of norms: 1 where the folder has them zero-centred. NULL: 0. */
    float (*norm_offset)(const qvl_lm *lm);
    /* hidden = layer(hidden) over the rows of the pass. */
    void (*layer)(qvl_pass *pass, int32_t index);
    /* Buffers of the pass beyond those of qvl_pass, from its arena, as pass->extra; may be NULL. */
    void (*take)(qvl_pass *pass, qvl_arena *arena);
} qvl_family;

extern const qvl_family qvl_family_qwen3, qvl_family_hybrid;

struct qvl_lm {
    const qvl_model *model;
    qvl_compute *compute;
    const qvl_family *family;
    qvl_text_config config;
    qvl_rotary rotary;
    qvl_text_tensors tensors;
    qvl_matrix embeddings, head; /* [vocab_size, hidden_size]; the same where tied */
    const float *norm;           /* [hidden_size] */
    void *layers;                /* the family's */
    int64_t cache_layers;
    qvl_linear_shape linear; /* layers 0: none is linear attention */
    float norm_offset;
    qvl_lm_info info;
};

struct qvl_sequence {
    const qvl_lm *lm;
    qvl_kv_cache cache;
    qvl_linear_state linear;
    int64_t length, rope_delta, max_length, chunk;
    uint8_t *scratch; /* of passes: grows to the largest seen */
    size_t scratch_bytes;
};

/* Fills everything that comes from lm->tensors, which were found, for lm->config and lm->family. Every tensor is
 * checked and has its place after it. */
qvl_status qvl_lm_take_tensors(qvl_lm *lm, qvl_error *error);

/* ---- one pass: rows entries, first.. of the sequence, through all layers */

struct qvl_pass {
    const qvl_lm *lm;
    qvl_compute *compute;
    const qvl_text_config *config;
    const qvl_kv_cache *cache;
    const qvl_linear_state *linear;
    const qvl_decode_options *options;
    int64_t first, rows;
    float *hidden;               /* [rows, hidden_size]: the residual stream */
    float *normed;               /* [rows, hidden_size]: what a norm writes */
    float *cosine, *sine;        /* [rows, rotary / 2] */
    void *operand;               /* of [rows, the widest left factor] */
    float *q, *k, *v;            /* [rows, heads or kv_heads, head_dim] */
    float *attended;             /* [rows, heads * head_dim] */
    float *packed, *output_gate; /* of gated attention: [rows, heads, 2 head_dim], [rows, heads * head_dim] */
    float *attention_scratch;
    float *gate, *up;            /* [rows, the widest MLP] */
    struct qvl_routing *routing; /* NULL: dense */
    float *logits;               /* [rows, vocab_size] with a tap, else [vocab_size] */
    void *extra;
};

/* The operand of x [rows, cols], in pass->operand. */
qvl_operand qvl_pass_operand(qvl_pass *pass, const float *x, int64_t rows, int64_t cols);
/* Shows a stage "layers.INDEX.PART" (PART NULL: "layers.INDEX") [rows, a] or, with b, [rows, a, b]. */
void qvl_pass_tap(const qvl_pass *pass, int32_t index, const char *part, const float *data, int64_t a, int64_t b);

/* ---- attention.c: causal attention with grouped keys and values */

typedef struct qvl_lm_attention {
    bool gated; /* q has a head's query rows, then the rows of its output gate */
    qvl_matrix q, k, v, o;
    const float *q_norm, *k_norm; /* [head_dim] */
} qvl_lm_attention;

/* Tensors "LAYER.self_attn.*"; layer: "layers.0". */
void qvl_lm_attention_open(qvl_lm *lm, const char *layer, qvl_lm_attention *attention);
/* hidden += o(attend(rotate(norm(q)), rotate(norm(k)), v)) of pass->normed; cache_layer: which of the cache's layers. */
void qvl_lm_attention_run(qvl_pass *pass, const qvl_lm_attention *attention, int32_t index, int64_t cache_layer);

/* ---- mlp.c */

typedef struct qvl_mlp {
    qvl_matrix gate, up, down;
} qvl_mlp;

typedef struct qvl_moe {
    qvl_matrix router; /* [experts, hidden_size] */
    qvl_experts experts;
    bool has_shared; /* an expert that every row goes to, weighted by the sigmoid of */
    qvl_mlp shared;
    qvl_matrix shared_gate; /* [1, hidden_size] */
} qvl_moe;

/* The second half of a layer of any family: h += mlp(norm(h)), dense or with experts as config.json says. */
typedef struct qvl_feed_forward {
    const float *norm; /* [hidden_size] */
    qvl_mlp mlp;       /* dense */
    qvl_moe moe;       /* with experts */
} qvl_feed_forward;

/* Tensors "LAYER.post_attention_layernorm" and "LAYER.mlp.*"; layer: "layers.0". */
void qvl_feed_forward_open(qvl_lm *lm, const char *layer, qvl_feed_forward *f);
void qvl_feed_forward_release(qvl_feed_forward *f);
void qvl_feed_forward_run(qvl_pass *pass, const qvl_feed_forward *f, int32_t index);

/* Tensors "NAME.gate_proj" and so on. */
void qvl_mlp_open(qvl_lm *lm, const char *name, int64_t width, qvl_mlp *mlp);
/* hidden += down(silu(gate(normed)) * up(normed)) */
void qvl_mlp_run(qvl_pass *pass, const qvl_mlp *mlp, int32_t index);

/* Tensors "NAME.gate" and the experts. QVL_ERROR_MEMORY through lm->tensors.status. */
void qvl_moe_open(qvl_lm *lm, const char *name, qvl_moe *moe);
void qvl_moe_release(qvl_moe *moe);
/* hidden += sum over each row's experts, in their order, of weight * expert(normed) */
void qvl_moe_run(qvl_pass *pass, const qvl_moe *moe, int32_t index);
void qvl_routing_take(qvl_pass *pass, qvl_arena *arena);

/* ---- pass.c */

/* What goes through the layers: rows of a prompt, or the embedding of one token. */
typedef struct qvl_rows {
    int64_t first, count;
    const qvl_prompt *prompt; /* entries first.. of it; NULL: */
    int64_t token;            /* at position[3] */
    int64_t position[3];
} qvl_rows;

/* Bytes of scratch of a pass of `rows` rows when the sequence has `length` entries after it; SIZE_MAX if they do not fit
 * size_t. */
size_t qvl_pass_bytes(const qvl_lm *lm, int64_t rows, int64_t length, const qvl_decode_options *options);
/* Runs the layers; keys and values are stored in the cache, which has room. logits: of the last row, or NULL.
 * done and total: of progress, in rows times layers. */
qvl_status qvl_pass_run(qvl_sequence *sequence, const qvl_rows *rows, const qvl_decode_options *options,
                        int64_t done, int64_t total, float *logits, qvl_error *error);

#endif
