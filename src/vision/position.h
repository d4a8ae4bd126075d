/* Where a patch is: segments of attention, taps of the learned position table, rotary angles. All in the
 * merge-block order of patch rows (preprocess.md 9): block row, block column, row and column inside the block. */
#ifndef QVL_VISION_POSITION_H
#define QVL_VISION_POSITION_H

#include "base/memory.h"
#include "compute/compute.h"
#include "model/config.h"

typedef struct qvl_positions {
    int64_t rows, tokens;
    qvl_segments segments;
    int64_t *segment_start; /* [segments.count + 1] */
    int32_t (*indices)[4];  /* [rows] entries of the table: row taps a,b x column taps a,b */
    float (*weights)[4];    /* [rows] */
    float *cosine, *sine;   /* [rows, head_dim / 2] */
    float *angles;          /* [2, side, head_dim / 4]: cosine and sine by coordinate, scratch of the filling */
    int64_t side;           /* largest h or w */
} qvl_positions;

/* Checks the grids (t, h, w >= 1; h and w multiples of merge; rows below 2^31) and counts rows, tokens, segments.
 */
qvl_status qvl_positions_count(const qvl_vision_config *config, const qvl_grid *grids, size_t count,
                               qvl_positions *positions, qvl_error *error);
/* Takes the arrays from the arena (which may only be planning). */
void qvl_positions_take(const qvl_vision_config *config, qvl_positions *positions, qvl_arena *arena);
/* Fills them. */
void qvl_positions_fill(const qvl_vision_config *config, const qvl_grid *grids, size_t count,
                        qvl_positions *positions);

#endif
