/* Normalise and cut RGB8 into patch rows. */
#ifndef QVL_PREPROCESS_PATCHES_H
#define QVL_PREPROCESS_PATCHES_H

#include "base/pool.h"
#include "model/config.h"

/* table[c][byte]: the f32 value of a byte of channel c under a preset. */
void qvl_normalise_table(const qvl_processor_config *processor, qvl_preset preset, float table[3][256]);

/* Rows of one temporal group. frames: count of them, 1..temporal_patch_size, of one size whose sides are multiples of
 * patch x merge; the last one fills the rest of the temporal patch, so that a still picture is one frame.
 * rows: [width/p * height/p, C*tp*p*p], written completely. */
void qvl_patch_rows(qvl_pool *pool, const qvl_image *frames, size_t count, const qvl_vision_config *vision,
                    const float table[3][256], float *rows);

#endif
