/* The language model's tensors of a folder, found under any naming generation and read where they lie. Strict as the
 * tower's reader: what is missing, of another shape or type, or left over under a layer's name is an error that names
 * it. Names here are what follows the prefix: "layers.0.mlp.gate_proj". */
#ifndef QVL_LM_TENSORS_H
#define QVL_LM_TENSORS_H

#include "compute/decoder.h"
#include "model/weights_files.h"

typedef struct qvl_text_entry qvl_text_entry;

typedef struct qvl_text_tensors {
    const char *folder;
    qvl_tower_files files;
    const char *prefix, *head_prefix; /* "model.language_model." and "", ...; static */
    qvl_text_entry *entries;          /* by name */
    size_t count;
    float **vectors; /* what vector() made */
    size_t vector_count, vector_capacity;
    char types[64]; /* of matrices: "BF16", "U32 (MLX, 4 bits)", ... or "mixed" */
    int64_t parameters, bytes;
    int64_t expert_bytes; /* of those, of experts */
    qvl_status status;    /* of the first failure; from then on the functions below do nothing */
    qvl_error *error;     /* may be NULL */
} qvl_text_tensors;

/* Owner: the caller, qvl_text_tensors_close, which accepts a zeroed struct. */
qvl_status qvl_text_tensors_open(const char *folder, qvl_text_tensors *tensors, qvl_error *error);
void qvl_text_tensors_close(qvl_text_tensors *tensors);
/* The same of files that are open; they are the tensors' from then on, *files is emptied. */
qvl_status qvl_text_tensors_find(const char *folder, qvl_tower_files *files, qvl_text_tensors *tensors,
                                 qvl_error *error);

/* Whether there is a tensor of exactly this name. */
bool qvl_text_has(const qvl_text_tensors *tensors, const char *name);

/* name.weight [n, k] of F32, BF16 or F16, or MLX's 4 or 8 bits with name.scales and name.biases. */
void qvl_text_matrix(qvl_text_tensors *tensors, const char *name, int64_t n, int64_t k, qvl_matrix *matrix);
/* lm_head; returns false where there is none: the embeddings serve (language_model.md 11). */
bool qvl_text_head(qvl_text_tensors *tensors, int64_t n, int64_t k, qvl_matrix *matrix);
/* name [n] as float, plus `offset`; lives as long as tensors. NULL after a failure. */
const float *qvl_text_vector(qvl_text_tensors *tensors, const char *name, int64_t n, float offset);

/* The weights of a causal depthwise convolution, name [channels, 1, width] or, in MLX's layout, [channels, width, 1], as
 * float [width, channels]; lives as long as tensors. NULL after a failure. */
const float *qvl_text_conv(qvl_text_tensors *tensors, const char *name, int64_t channels, int64_t width);
/* Whether it is there in MLX's layout. */
bool qvl_text_conv_is_mlx(const qvl_text_tensors *tensors, const char *name);

/* The experts of a layer: gate and up [width, hidden], down [hidden, width], each [count]. layer: "layers.0.mlp".
 * Known are the stacks of Hugging Face, told by their shapes ([E, 2 width, hidden] and [E, hidden, width], or the last
 * two axes exchanged), those of MLX (switch_mlp.gate_proj and so on) and single experts (experts.0.gate_proj). */
typedef struct qvl_experts {
    qvl_matrix *gate, *up, *down;
} qvl_experts;
void qvl_text_experts(qvl_text_tensors *tensors, const char *layer, int64_t count, int64_t width, int64_t hidden,
                      qvl_experts *experts);

/* Fails if tensors of layers were left over. Gives back what was not used. */
qvl_status qvl_text_tensors_finish(qvl_text_tensors *tensors);

#endif
