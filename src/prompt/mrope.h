/* Three-axis positions of a sequence: transformers' get_rope_index for Qwen3-VL and later (docs/PROMPT.md). Pure. */
#ifndef QVL_PROMPT_MROPE_H
#define QVL_PROMPT_MROPE_H

#include "base/error.h"

/* One run of pads: the grid that it stands for, which has one temporal group (a video has a run for each of its own).
 */
typedef struct qvl_run_grid {
    int64_t h, w; /* patches, multiples of merge */
} qvl_run_grid;

/* types [length]: 0 text, 1 image, 2 video. grids: of the runs of 1 and 2, in order of the sequence. positions
 * [3, length]: t, h, w. *delta: the position of an entry n >= length is n + *delta on all axes.
 * A run that does not have the tokens of its grid, and grids left over, are errors: two pictures with nothing between
 * them make one run. length 0 is one too. */
qvl_status qvl_mrope(const int64_t *types, int64_t length, const qvl_run_grid *grids, size_t grid_count,
                     int64_t merge, int64_t *positions, int64_t *delta, qvl_error *error);

#endif
