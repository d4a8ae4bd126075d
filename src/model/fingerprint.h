/* Which weights a tower has, whatever names, files and layout they are stored in.
 *
 * The fingerprint is the SHA-256 of a text: the line "qvl tower fingerprint 1", then one line for each tensor of
 * the tower, sorted by the bytes of NAME. Every line ends with one newline.
 *
 *     NAME DTYPE [SHAPE] DIGEST
 *
 * NAME    without the prefix of the naming generation: "blocks.0.attn.proj.bias"
 * DTYPE   as safetensors spells it: "BF16", "F16" or "F32"
 * SHAPE   dimensions in decimal, joined by ", ": that of Hugging Face, [d, C, t, p, p] for patch_embed.proj.weight
 * DIGEST  SHA-256 of the tensor's bytes, little-endian, row-major in that shape, as 64 lower-case hex digits
 *
 * rotary_pos_emb.inv_freq is no part of the tower. The configuration is not in it either: heads and deepstack
 * indexes are not weights. tools/oracle/fingerprint.py is the same in Python. qvl_model_fingerprint is in qvl.h.
 */
#ifndef QVL_MODEL_FINGERPRINT_H
#define QVL_MODEL_FINGERPRINT_H

#include "base/pool.h"
#include "model/weights.h"

/* Reads every byte of the tower. pool may be NULL. */
qvl_status qvl_fingerprint_compute(const qvl_raw_tower *tower, qvl_pool *pool, char hex[QVL_FINGERPRINT_HEX],
                                   qvl_error *error);

#endif
