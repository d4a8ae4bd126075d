/* The token embeddings of a folder: rows of embed_tokens, read where they lie in the mapped file. Nothing else
 * of the language model is looked at, and no more of the table than the rows asked for. */
#ifndef QVL_MODEL_EMBEDDINGS_H
#define QVL_MODEL_EMBEDDINGS_H

#include "model/weights_files.h"

/* weight is [rows, width] of F32, BF16 or F16; or MLX's affine quantisation, told by its type: U32 [rows, width
 * * bits / 32], the lowest bits of a word first, with scales and biases [rows, width / group] of one of those
 * types. */
typedef struct qvl_embeddings {
    qvl_tower_files files;
    qvl_tensor weight, scales, biases; /* in the files; the latter two only if bits is not 0 */
    int32_t bits, group;               /* 4 or 8; 0: not quantised */
    int64_t rows, width;
} qvl_embeddings;

/* Finds the table under any of its names. width is what the tower's features have: the two are spliced.
 * Owner: the caller, qvl_embeddings_close, which accepts a zeroed struct. */
qvl_status qvl_embeddings_open(const char *folder, int64_t width, qvl_embeddings *table, qvl_error *error);
void qvl_embeddings_close(qvl_embeddings *table);

/* Rows ids[0 .. count-1] to out [count, width], F32 or BF16. Values are exactly the file's; quantised ones are
 * what MLX computes: the product with the scale and the sum with the bias, each rounded to the type of the
 * scales. An id outside the table is an error. May be called by several threads at once. */
qvl_status qvl_embeddings_gather(const qvl_embeddings *table, const int64_t *ids, size_t count, qvl_dtype dtype,
                                 void *out, qvl_error *error);

#endif
