/* What a thing shows, as SHA-256: keys of content for the caches of features and of prompts. Equal keys mean equal
 * patch rows. Names, places and times are never in them. The texts that are hashed are listed in docs/CACHE.md. */
#ifndef QVL_CACHE_CONTENT_H
#define QVL_CACHE_CONTENT_H

#include "base/hash.h"
#include "preprocess/clip.h"

/* Frames as they are cut into patches, resized: count of them, each height rows of 3 * width bytes. */
typedef struct qvl_frames {
    const uint8_t *const *pixels;
    size_t count;
    int64_t width, height;
} qvl_frames;

/* Content, size, and everything between the pixels and the patch rows: preset, grid, patch sizes, normalisation.
 * Policies and limits show in the pixels and the size. */
qvl_status qvl_frames_key(const qvl_frames *frames, const qvl_vision_config *vision,
                          const qvl_processor_config *processor, qvl_preset preset, qvl_grid grid,
                          char key[QVL_SHA256_HEX], qvl_error *error);
/* The same of one temporal group of an item. */
qvl_status qvl_group_key(const qvl_group *group, const qvl_item *item, const qvl_config *config, qvl_preset preset,
                         char key[QVL_SHA256_HEX], qvl_error *error);
/* Of an item by the keys of its groups, grid.t of them. A picture has the key of its group. */
qvl_status qvl_item_key(const char (*groups)[QVL_SHA256_HEX], qvl_grid grid, char key[QVL_SHA256_HEX],
                        qvl_error *error);
/* Of patch rows, and of features, that came without their pixels. One item each. */
qvl_status qvl_patches_key(const qvl_patches *patches, char key[QVL_SHA256_HEX], qvl_error *error);
qvl_status qvl_features_key(const qvl_features *features, char key[QVL_SHA256_HEX], qvl_error *error);

#endif
