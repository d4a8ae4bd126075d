/* Rotary embedding of three axes, interleaved (language_model.md 1 and 10). */
#ifndef QVL_LM_ROTARY_H
#define QVL_LM_ROTARY_H

#include "lm/text_config.h"

#define QVL_MAX_ROTARY 512 /* of head_dim */

typedef struct qvl_rotary {
    int32_t half;                        /* frequencies */
    float frequency[QVL_MAX_ROTARY / 2]; /* radians per position */
    uint8_t axis[QVL_MAX_ROTARY / 2];    /* 0 t, 1 h, 2 w: whose position turns it */
    float factor;                        /* of cosine and sine */
} qvl_rotary;

void qvl_rotary_init(const qvl_text_config *config, qvl_rotary *rotary);
/* The row of cosines and sines, [half] each, of a position. */
void qvl_rotary_row(const qvl_rotary *rotary, const int64_t position[3], float *cosine, float *sine);

#endif
