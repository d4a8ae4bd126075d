#include "feature_file.h"

#include "clips.h"
#include "open.h"

#include <stdio.h>
#include <stdlib.h>

/* What a file has of one kind, pictures or clips. */
typedef struct kind_tensors {
    const char *embeds, *deepstack, *grids;
    size_t first, count; /* items */
    int64_t start, tokens;
    char names[QVL_MAX_DEEPSTACK][40];
} kind_tensors;

static const void *row_of(const qvl_features *features, const void *array, int64_t row) {
    size_t bytes = (size_t)features->width * qvl_dtype_bits(features->dtype) / 8;
    return (const char *)array + (size_t)row * bytes;
}

static size_t list_kind(const qvl_features *f, const int64_t *grids, kind_tensors *kind, qvl_tensor *tensors) {
    size_t count = 0;
    if (!kind->count) return 0;
    tensors[count++] =
        cli_tensor(kind->embeds, f->dtype, kind->tokens, f->width, row_of(f, f->embeds, kind->start));
    for (int32_t i = 0; i < f->deepstack_count; i++) {
        snprintf(kind->names[i], sizeof kind->names[i], "%s.%d", kind->deepstack, i);
        tensors[count++] =
            cli_tensor(kind->names[i], f->dtype, kind->tokens, f->width, row_of(f, f->deepstack[i], kind->start));
    }
    tensors[count++] = cli_tensor(kind->grids, QVL_I64, (int64_t)kind->count, 3, grids + 3 * kind->first);
    return count;
}

qvl_status cli_save_features(const char *path, const qvl_features *features, const qvl_model_info *info,
                             const qvl_preprocess_options *preprocess, const char *made_from, qvl_error *error) {
    const char *const more[] = {"made_from", made_from};
    cli_kinds kinds = cli_count_kinds(features->items, features->item_count);
    int64_t *grids = cli_grids(features->items, features->item_count);
    double *seconds = cli_timestamps(features->items, features->item_count);
    kind_tensors pictures = {.embeds = "image_embeds",
                             .deepstack = "deepstack_image_embeds",
                             .grids = "image_grid_thw",
                             .count = kinds.pictures,
                             .tokens = kinds.tokens};
    kind_tensors clips = {.embeds = "video_embeds",
                          .deepstack = "deepstack_video_embeds",
                          .grids = "video_grid_thw",
                          .first = kinds.pictures,
                          .count = kinds.clips,
                          .start = kinds.tokens,
                          .tokens = features->tokens - kinds.tokens};
    qvl_tensor tensors[5 + 2 * QVL_MAX_DEEPSTACK];
    qvl_status status = grids && (seconds || !kinds.clips) ? QVL_OK : cli_no_memory(error);
    if (!status) {
        size_t count = list_kind(features, grids, &pictures, tensors);
        count += list_kind(features, grids, &clips, tensors + count);
        if (kinds.clips) tensors[count++] = cli_tensor("video_timestamps", QVL_F64, kinds.groups, 0, seconds);
        status = cli_save_with(path, tensors, count, info, preprocess, more, made_from ? 1 : 0, error);
    }
    free(grids);
    free(seconds);
    return status;
}
