/* Three-axis positions of a sequence: transformers' get_rope_index for Qwen3-VL and later (docs/PROMPT.md).
 * Pure. */
#ifndef QVL_PROMPT_MROPE_H
#define QVL_PROMPT_MROPE_H

#include "base/error.h"

/* types [length]: 0 text, 1 image, 2 video. grids: of the runs of 1 and 2, in order of the sequence; a video
 * has a run, and so a grid with t = 1, for each of its temporal groups. h and w are multiples of merge.
 * positions [3, length]: t, h, w. *delta: the position of an entry n >= length is n + *delta on all axes. A run
 * that does not have the tokens of its grid, and grids left over, are errors: two pictures with nothing between
 * them make one run. length 0 is one too. */
qvl_status qvl_mrope(const int64_t *types, int64_t length, const qvl_grid *grids, size_t grid_count, int64_t merge,
                     int64_t *positions, int64_t *delta, qvl_error *error);

#endif
