/* text_config of config.json: the sizes of a language model. */
#ifndef QVL_LM_TEXT_CONFIG_H
#define QVL_LM_TEXT_CONFIG_H

#include "lm/hybrid_config.h"

/* How rotary frequencies are stretched beyond the length a model was trained for (language_model.md 10). */
typedef struct qvl_yarn {
    bool on;
    double factor, beta_fast, beta_slow, original_max_positions, attention_factor;
} qvl_yarn;

/* All sizes are checked: positive, every matrix below 2^31 elements. */
typedef struct qvl_text_config {
    char model_type[64]; /* of the root */
    int32_t layers, hidden_size, intermediate_size, heads, kv_heads, head_dim, vocab_size;
    int64_t max_positions;
    float eps;
    float rope_theta;
    int32_t rotary;      /* dimensions of a head that turn; even */
    int32_t sections[3]; /* of the rotary/2 frequencies: those of t, h and w, interleaved */
    qvl_yarn yarn;
    int32_t experts, experts_per_token, expert_intermediate_size; /* experts 0: dense */
    qvl_hybrid_config hybrid;
} qvl_text_config;

/* Refuses by name and value what is not computed. file is for messages. */
qvl_status qvl_text_config_read(const char *folder, qvl_text_config *config, qvl_error *error);
/* The parser behind it, for bytes that are already in memory. */
qvl_status qvl_text_config_parse(const void *bytes, size_t count, const char *file, qvl_text_config *config,
                                 qvl_error *error);

#endif
