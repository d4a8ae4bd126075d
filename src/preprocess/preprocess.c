/* Pictures to patch rows: size -> resample -> normalise -> rows, one picture after the other into one array. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/options.h"
#include "preprocess/clip.h"
#include "preprocess/geometry.h"
#include "preprocess/patches.h"
#include "preprocess/resample.h"

#include <string.h>

static qvl_filter filter_of(qvl_preset preset) {
    return preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
}

void qvl_patches_free(qvl_patches *patches) {
    if (!patches) return;
    qvl_free(patches->values);
    qvl_items_free(patches->items, patches->item_count);
    *patches = (qvl_patches){0};
}

/* Patch rows while they are made. */
typedef struct assembly {
    const qvl_model *model;
    float table[3][256];
    qvl_patches *patches;
    int64_t capacity;     /* rows there is room for */
    qvl_profile *profile; /* may be NULL */
    double lap;           /* when the last stage ended */
} assembly;

/* Makes room for more rows behind those that are there: for twice as many, so that many pictures are not copied
 * many times, else just for them. Memory that is never written to costs nothing. */
static qvl_status grow(assembly *to, int64_t more, qvl_error *error) {
    qvl_patches *patches = to->patches;
    int64_t rows;
    size_t row = (size_t)patches->cols * sizeof(float), bytes;
    if (__builtin_add_overflow(patches->rows, more, &rows) || rows > INT32_MAX ||
        !qvl_mul_size((size_t)rows, row, &bytes))
        return qvl_fail(error, QVL_ERROR_LIMIT, "the pictures make more than %d patch rows", INT32_MAX);
    if (rows > to->capacity) {
        int64_t capacity = rows > 2 * to->capacity ? rows : 2 * to->capacity;
        float *values = qvl_alloc((size_t)capacity, row);
        if (!values) values = qvl_alloc((size_t)(capacity = rows), row);
        if (!values) return qvl_fail_memory(error, "patch rows", (size_t)rows, row);
        if (patches->rows) memcpy(values, patches->values, (size_t)patches->rows * row);
        qvl_free(patches->values);
        patches->values = values;
        to->capacity = capacity;
    }
    patches->rows = rows;
    return QVL_OK;
}

/* Where pictures come from: decoded images, or inputs that are read one at a time. */
typedef struct picture_source {
    const qvl_image *images;
    const qvl_input *inputs;
    size_t count;
} picture_source;

/* Time since the last lap was spent on `stage`. */
static void lap(assembly *to, qvl_stage stage) {
    if (to->profile) qvl_lap(to->profile, stage, &to->lap);
}

static qvl_status check_image(const qvl_image *image, qvl_error *error) {
    if (image->pixels && image->width >= 1 && image->height >= 1) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "a picture of %lld x %lld pixels%s cannot be preprocessed",
                    (long long)image->width, (long long)image->height, image->pixels ? "" : " without pixels");
}

/* Resizes (without options: takes the size as it is) and appends one picture. */
static qvl_status append(assembly *to, const qvl_image *image, const qvl_preprocess_options *options,
                         qvl_item *item, qvl_error *error) {
    const qvl_model *model = to->model;
    qvl_patches *patches = to->patches;
    int64_t before = patches->rows;
    qvl_image resized = {0};
    qvl_status status = check_image(image, error);
    if (!status) status = qvl_picture_place(&model->config, options, image, item, error);
    if (!status && (item->width != image->width || item->height != image->height)) {
        status = qvl_resample(model->pool, image, item->width, item->height, filter_of(options->preset), &resized,
                              error);
        image = &resized;
    }
    lap(to, QVL_STAGE_RESIZE);
    if (!status) status = grow(to, item->grid.t * item->grid.h * item->grid.w, error);
    if (!status)
        qvl_patch_rows(model->pool, image, 1, &model->config.vision, (const float(*)[256])to->table,
                       patches->values + before * patches->cols);
    qvl_image_free(&resized);
    lap(to, QVL_STAGE_ROWS);
    return status;
}

/* Reads, resizes and appends one picture or clip, a group's pixels in memory at a time. */
static qvl_status append_input(assembly *to, const qvl_input *input, const qvl_preprocess_options *options,
                               qvl_item *item, qvl_error *error) {
    const qvl_model *model = to->model;
    qvl_reader *reader;
    float table[3][256];
    int64_t at = to->patches->rows;
    qvl_status status = qvl_reader_open(model, model->pool, input, QVL_READ_ANY, options, NULL, &reader, error);
    if (status) return status;
    const qvl_item *planned = qvl_reader_item(reader);
    qvl_normalise_table(qvl_item_processor(&model->config, planned), qvl_item_preset(options->preset, planned),
                        table);
    int64_t rows = planned->grid.h * planned->grid.w;
    status = qvl_item_copy(planned, item, error);
    for (int64_t g = 0; g < planned->grid.t && !status; g++) {
        qvl_group group;
        status = qvl_reader_next(reader, &group, error);
        to->lap = qvl_seconds(); /* the reader counts its own time */
        /* Room for all is made when the first group is there: then a decoder's memory is not held beside it. */
        if (!status && g == 0) status = grow(to, planned->grid.t * rows, error);
        if (!status) {
            float *out = to->patches->values + (at + g * rows) * to->patches->cols;
            qvl_patch_rows(model->pool, group.frames, group.frame_count, &model->config.vision,
                           (const float(*)[256])table, out);
        }
        qvl_group_free(&group);
        lap(to, QVL_STAGE_ROWS);
    }
    qvl_reader_close(&reader);
    if (status) qvl_item_clear(item);
    return status;
}

static qvl_status preprocess(const qvl_model *model, picture_source source, const qvl_preprocess_options *options,
                             qvl_preset preset, qvl_patches *patches, qvl_error *error) {
    *patches = (qvl_patches){.cols = qvl_patch_columns(&model->config.vision)};
    assembly to = {
        .model = model, .patches = patches, .profile = options ? options->profile : NULL, .lap = qvl_seconds()};
    qvl_status status = qvl_check_preset(preset, error);
    if (!status && source.count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no pictures given");
    if (status) goto fail;
    qvl_normalise_table(&model->config.processor, preset, to.table);
    patches->items = qvl_calloc(source.count, sizeof *patches->items);
    if (!patches->items) {
        status = qvl_fail_memory(error, "items", source.count, sizeof *patches->items);
        goto fail;
    }
    for (size_t i = 0; i < source.count; i++) {
        qvl_item *item = &patches->items[i];
        if (source.inputs)
            status = append_input(&to, &source.inputs[i], options, item, error);
        else
            status = append(&to, &source.images[i], options, item, error);
        if (status) goto fail;
        patches->item_count = i + 1;
    }
    return QVL_OK;
fail:
    qvl_patches_free(patches);
    return status;
}

static qvl_status preprocess_with(const qvl_model *model, picture_source source,
                                  const qvl_preprocess_options *given, qvl_patches *patches, qvl_error *error) {
    qvl_preprocess_options options;
    qvl_preprocess_options_init(&options);
    *patches = (qvl_patches){0};
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    return status ? status : preprocess(model, source, &options, options.preset, patches, error);
}

qvl_status qvl_preprocess(const qvl_model *model, const qvl_image *images, size_t count,
                          const qvl_preprocess_options *options, qvl_patches *patches, qvl_error *error) {
    return preprocess_with(model, (picture_source){.images = images, .count = count}, options, patches, error);
}

qvl_status qvl_preprocess_inputs(const qvl_model *model, const qvl_input *inputs, size_t count,
                                 const qvl_preprocess_options *options, qvl_patches *patches, qvl_error *error) {
    return preprocess_with(model, (picture_source){.inputs = inputs, .count = count}, options, patches, error);
}

qvl_status qvl_patchify(const qvl_model *model, const qvl_image *images, size_t count, qvl_preset preset,
                        qvl_patches *patches, qvl_error *error) {
    return preprocess(model, (picture_source){.images = images, .count = count}, NULL, preset, patches, error);
}
