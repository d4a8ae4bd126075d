/* Pure sizes: what a picture is resized to, and the grid it becomes. No pixels here. */
#ifndef QVL_PREPROCESS_GEOMETRY_H
#define QVL_PREPROCESS_GEOMETRY_H

#include "model/config.h"

/* Pixels along a side, of any picture: the product of two fits int64. */
#define QVL_MAX_SIDE ((int64_t)1 << 31)

qvl_status qvl_check_preset(qvl_preset preset, qvl_error *error);

/* The final size of a picture of width x height under the folder's limits and the caller's options, which are
 * checked here (contradictory or impossible limits, a --size that is no multiple of patch x merge). */
qvl_status qvl_target_size(const qvl_config *config, const qvl_preprocess_options *options, int64_t width,
                           int64_t height, int64_t *out_width, int64_t *out_height, qvl_error *error);

/* The limits in force after options are applied. */
qvl_status qvl_effective_limits(const qvl_config *config, const qvl_preprocess_options *options,
                                qvl_limits *limits, qvl_error *error);

/* The size of a clip's frames under the folder's limits and its own options (frames.h); width and height of options
 * come before both. frames: as many as are taken, padding aside, >= 1. *limits: those in force, zero for an exact
 * size; limits->max_pixels has the cap of a frame in it. */
typedef struct qvl_clip_shape {
    int64_t frames, width, height;
} qvl_clip_shape;
qvl_status qvl_clip_size(const qvl_config *config, const qvl_preprocess_options *options,
                         const qvl_clip_options *own, qvl_clip_shape shape, int64_t *out_width,
                         int64_t *out_height, qvl_limits *limits, qvl_error *error);

/* Values of one patch row. */
int64_t qvl_patch_columns(const qvl_vision_config *vision);

/* The options for one picture: its own limits replace those of the call, in pixels or in tokens. */
qvl_preprocess_options qvl_picture_options(const qvl_preprocess_options *options, const qvl_input *input);

/* Everything a picture's item says; of image only the sizes and where it comes from are read. options NULL: it is
 * not resized. */
qvl_status qvl_picture_place(const qvl_config *config, const qvl_preprocess_options *options,
                             const qvl_image *image, qvl_item *item, qvl_error *error);

/* Fills item's grid, tokens, width and height for a picture whose sides are multiples of patch x merge; otherwise
 * refused. The source size is left as it is. */
qvl_status qvl_picture_grid(const qvl_vision_config *vision, int64_t width, int64_t height, qvl_item *item,
                            qvl_error *error);

#endif
