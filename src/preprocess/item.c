/* Items own the times of their clips: one block each. */
#include "preprocess/clip.h"

#include "base/memory.h"

#include <string.h>

const qvl_processor_config *qvl_item_processor(const qvl_config *config, const qvl_item *item) {
    return item->clip ? &config->video.processor : &config->processor;
}

qvl_preset qvl_item_preset(qvl_preset preset, const qvl_item *item) {
    return item->clip && preset == QVL_PRESET_TRANSFORMERS_PIL ? QVL_PRESET_TRANSFORMERS : preset;
}

qvl_status qvl_clip_info_make(const qvl_clip_info *source, const qvl_clip_info **made, qvl_error *error) {
    size_t frames = (size_t)source->frame_count, groups = (size_t)source->group_count;
    size_t bytes = sizeof *source + frames * sizeof *source->indices + (frames + groups) * sizeof(double);
    *made = NULL;
    qvl_clip_info *info = qvl_alloc(bytes, 1);
    if (!info) return qvl_fail_memory(error, "times of a clip", bytes, 1);
    int64_t *indices = (int64_t *)(info + 1);
    double *seconds = (double *)(indices + frames), *timestamps = seconds + frames;
    memcpy(indices, source->indices, frames * sizeof *indices);
    memcpy(seconds, source->seconds, frames * sizeof *seconds);
    memcpy(timestamps, source->timestamps, groups * sizeof *timestamps);
    *info = *source;
    info->indices = indices;
    info->seconds = seconds;
    info->timestamps = timestamps;
    *made = info;
    return QVL_OK;
}

void qvl_item_clear(qvl_item *item) {
    qvl_free((void *)(uintptr_t)item->clip);
    *item = (qvl_item){0};
}

qvl_status qvl_item_copy(const qvl_item *item, qvl_item *copy, qvl_error *error) {
    *copy = *item;
    if (!item->clip) return QVL_OK;
    qvl_status status = qvl_clip_info_make(item->clip, &copy->clip, error);
    if (status) *copy = (qvl_item){0};
    return status;
}

void qvl_items_free(qvl_item *items, size_t count) {
    for (size_t i = 0; i < count; i++) qvl_item_clear(&items[i]);
    qvl_free(items);
}
