#include "cache/content.h"

#include "base/listing.h"
#include "base/memory.h"
#include "vision/features.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(QVL_KEY_HEX == QVL_SHA256_HEX, "a key is a SHA-256");

qvl_status qvl_frames_key(const qvl_frames *frames, const qvl_vision_config *vision,
                          const qvl_processor_config *processor, qvl_preset preset, qvl_grid grid,
                          char key[QVL_SHA256_HEX], qvl_error *error) {
    const qvl_vision_config *v = vision;
    const qvl_processor_config *p = processor;
    qvl_listing l = qvl_listing_open(frames->count + 4, error);
    qvl_listing_put(&l, "qvl item 1\npreset %s, patches %d x %d x %d, merged %d\n", qvl_preset_name(preset),
                    v->temporal_patch_size, v->patch_size, v->patch_size, v->spatial_merge_size);
    qvl_listing_put(&l, "rescaled %a, mean %a %a %a, std %a %a %a\n", p->rescale_factor, (double)p->mean[0],
                    (double)p->mean[1], (double)p->mean[2], (double)p->std[0], (double)p->std[1],
                    (double)p->std[2]);
    qvl_listing_put(&l, "grid %" PRId64 " %" PRId64 " %" PRId64 ", %zu of RGB8 %" PRId64 " x %" PRId64 "\n",
                    grid.t, grid.h, grid.w, frames->count, frames->width, frames->height);
    for (size_t i = 0; i < frames->count; i++)
        qvl_listing_digest(&l, "frame", frames->pixels[i], 3 * (size_t)frames->width * (size_t)frames->height);
    return qvl_listing_close(&l, key);
}

qvl_status qvl_group_key(const qvl_group *group, const qvl_item *item, const qvl_config *config, qvl_preset preset,
                         char key[QVL_SHA256_HEX], qvl_error *error) {
    key[0] = 0;
    const uint8_t **pixels = qvl_alloc(group->frame_count, sizeof *pixels);
    if (!pixels) return qvl_fail_memory(error, "frames", group->frame_count, sizeof *pixels);
    for (size_t i = 0; i < group->frame_count; i++) pixels[i] = group->frames[i].pixels;
    const qvl_frames frames = {pixels, group->frame_count, item->width, item->height};
    qvl_status status =
        qvl_frames_key(&frames, &config->vision, qvl_item_processor(config, item), qvl_item_preset(preset, item),
                       (qvl_grid){1, item->grid.h, item->grid.w}, key, error);
    qvl_free(pixels);
    return status;
}

qvl_status qvl_item_key(const char (*groups)[QVL_SHA256_HEX], qvl_grid grid, char key[QVL_SHA256_HEX],
                        qvl_error *error) {
    if (grid.t == 1) {
        memcpy(key, groups[0], QVL_SHA256_HEX);
        return QVL_OK;
    }
    qvl_listing l = qvl_listing_open((size_t)grid.t + 2, error);
    qvl_listing_put(&l, "qvl video 1\ngrid %" PRId64 " %" PRId64 " %" PRId64 "\n", grid.t, grid.h, grid.w);
    for (int64_t i = 0; i < grid.t; i++) qvl_listing_put(&l, "group %s\n", groups[i]);
    return qvl_listing_close(&l, key);
}

qvl_status qvl_patches_key(const qvl_patches *patches, char key[QVL_SHA256_HEX], qvl_error *error) {
    qvl_grid grid = patches->items[0].grid;
    qvl_listing l = qvl_listing_open(3, error);
    qvl_listing_put(&l, "qvl patch rows 1\ngrid %" PRId64 " %" PRId64 " %" PRId64 ", rows of %" PRId64 "\n",
                    grid.t, grid.h, grid.w, patches->cols);
    qvl_listing_digest(&l, "values", patches->values,
                       (size_t)patches->rows * (size_t)patches->cols * sizeof(float));
    return qvl_listing_close(&l, key);
}

qvl_status qvl_features_key(const qvl_features *features, char key[QVL_SHA256_HEX], qvl_error *error) {
    qvl_grid grid = features->items[0].grid;
    size_t bytes = qvl_features_array_bytes(features);
    qvl_listing l = qvl_listing_open(4 + QVL_MAX_DEEPSTACK, error);
    qvl_listing_put(&l, "qvl features 1\ngrid %" PRId64 " %" PRId64 " %" PRId64 ", %s, rows of %" PRId64 "\n",
                    grid.t, grid.h, grid.w, qvl_dtype_name(features->dtype), features->width);
    qvl_listing_digest(&l, "embeds", features->embeds, bytes);
    for (int32_t i = 0; i < features->deepstack_count; i++)
        qvl_listing_digest(&l, "deepstack", features->deepstack[i], bytes);
    return qvl_listing_close(&l, key);
}
