/* What a thing is, as SHA-256: the key of a picture's content, and the identity of a prompt up to its last
 * picture. Keys serve caches: equal keys mean equal features, equal identities equal cache entries. Texts that
 * are hashed are listed in docs/PROMPT.md. */
#ifndef QVL_PROMPT_IDENTITY_H
#define QVL_PROMPT_IDENTITY_H

#include "base/hash.h"
#include "model/config.h"

/* The frames of one item as they are cut into patches, resized: count of them, each height rows of 3 * width
 * bytes. */
typedef struct qvl_frames {
    const uint8_t *const *pixels;
    size_t count;
    int64_t width, height;
} qvl_frames;

/* Content, size, and everything between the pixels and the patch rows: preset, grid, patch sizes, normalisation.
 * Policies and limits show in the pixels and the size. */
qvl_status qvl_frames_key(const qvl_frames *frames, const qvl_config *config, qvl_preset preset, qvl_grid grid,
                          char key[QVL_SHA256_HEX], qvl_error *error);
/* Of patch rows, and of features, that came without their pixels. One item each. */
qvl_status qvl_patches_key(const qvl_patches *patches, char key[QVL_SHA256_HEX], qvl_error *error);
qvl_status qvl_features_key(const qvl_features *features, char key[QVL_SHA256_HEX], qvl_error *error);

#endif
