/* What text_config of config.json says of hybrid models beyond other language models. */
#ifndef QVL_LM_HYBRID_CONFIG_H
#define QVL_LM_HYBRID_CONFIG_H

#include "base/json.h"

#define QVL_MAX_TEXT_LAYERS 1024

typedef struct qvl_hybrid_config {
    bool on;                          /* false: every layer is full attention without an output gate */
    bool linear[QVL_MAX_TEXT_LAYERS]; /* which layers are linear attention */
    int32_t linear_layers;            /* how many */
    int32_t key_heads, value_heads;   /* of linear attention; the second a multiple of the first */
    int32_t key_dim, value_dim, conv_width;
    int32_t shared_intermediate_size; /* of the expert that every token goes to; 0: dense */
} qvl_hybrid_config;

/* layers, hidden_size: at most QVL_MAX_TEXT_LAYERS, and checked. experts: whether there are any. where is for messages.
 * Refuses by name and value what is not computed. */
qvl_status qvl_hybrid_config_read(const cJSON *text, const char *where, int32_t layers, int32_t hidden_size,
                                  bool experts, qvl_hybrid_config *config, qvl_error *error);

#endif
