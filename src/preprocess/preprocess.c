/* Pictures to patch rows: size -> resample -> normalise -> rows, one picture after the other into one array. */
#include "base/memory.h"
#include "base/options.h"
#include "model/model.h"
#include "preprocess/geometry.h"
#include "preprocess/patches.h"
#include "preprocess/resample.h"

#include <string.h>

static int64_t patch_columns(const qvl_vision_config *c) {
    return (int64_t)c->in_channels * c->temporal_patch_size * c->patch_size * c->patch_size;
}

static qvl_filter filter_of(qvl_preset preset) {
    return preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
}

static qvl_status check_preset(qvl_preset preset, qvl_error *error) {
    if (qvl_preset_name(preset)) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "preset %d is unknown; allowed are 0 (transformers) to 2 (mlx)",
                    (int)preset);
}

void qvl_patches_free(qvl_patches *patches) {
    if (!patches) return;
    qvl_free(patches->values);
    qvl_free(patches->items);
    *patches = (qvl_patches){0};
}

/* Makes room for more rows behind those that are there. */
static qvl_status grow(qvl_patches *patches, int64_t more, qvl_error *error) {
    int64_t rows;
    size_t count;
    if (__builtin_add_overflow(patches->rows, more, &rows) || rows > INT32_MAX ||
        !qvl_mul_size((size_t)rows, (size_t)patches->cols, &count))
        return qvl_fail(error, QVL_ERROR_LIMIT, "the pictures make more than %d patch rows", INT32_MAX);
    float *values = qvl_alloc(count, sizeof(float));
    if (!values) return qvl_fail_memory(error, "patch rows", count, sizeof(float));
    if (patches->rows) memcpy(values, patches->values, (size_t)(patches->rows * patches->cols) * sizeof(float));
    qvl_free(patches->values);
    patches->values = values;
    patches->rows = rows;
    return QVL_OK;
}

/* Where pictures come from: decoded images, or inputs that are read one at a time. */
typedef struct picture_source {
    const qvl_image *images;
    const qvl_input *inputs;
    size_t count;
} picture_source;

static qvl_status check_image(const qvl_image *image, qvl_error *error) {
    if (image->pixels && image->width >= 1 && image->height >= 1) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "a picture of %lld x %lld pixels%s cannot be preprocessed",
                    (long long)image->width, (long long)image->height, image->pixels ? "" : " without pixels");
}

/* Resizes (without options: takes the size as it is) and appends one picture. */
static qvl_status append(const qvl_model *model, const qvl_image *image, const qvl_preprocess_options *options,
                         const float (*table)[256], qvl_patches *patches, qvl_item *item, qvl_error *error) {
    const qvl_vision_config *vision = &model->config.vision;
    int64_t width = image->width, height = image->height, before = patches->rows;
    qvl_image resized = {0};
    qvl_status status = check_image(image, error);
    if (!status && options)
        status = qvl_target_size(&model->config, options, image->width, image->height, &width, &height, error);
    if (!status) status = qvl_picture_grid(vision, width, height, item, error);
    if (!status && (width != image->width || height != image->height)) {
        status = qvl_resample(model->pool, image, width, height, filter_of(options->preset), &resized, error);
        image = &resized;
    }
    if (!status) status = grow(patches, item->grid.t * item->grid.h * item->grid.w, error);
    if (!status) qvl_patch_rows(model->pool, image, vision, table, patches->values + before * patches->cols);
    qvl_image_free(&resized);
    return status;
}

static qvl_status preprocess(const qvl_model *model, picture_source source, const qvl_preprocess_options *options,
                             qvl_preset preset, qvl_patches *patches, qvl_error *error) {
    *patches = (qvl_patches){.cols = patch_columns(&model->config.vision)};
    float table[3][256];
    qvl_status status = check_preset(preset, error);
    if (!status && source.count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no pictures given");
    if (status) goto fail;
    qvl_normalise_table(&model->config.processor, preset, table);
    patches->items = qvl_calloc(source.count, sizeof *patches->items);
    if (!patches->items) {
        status = qvl_fail_memory(error, "items", source.count, sizeof *patches->items);
        goto fail;
    }
    for (size_t i = 0; i < source.count; i++) {
        qvl_image read = {0};
        if (source.inputs) {
            status = qvl_image_read(&source.inputs[i], options->max_source_pixels, &read, error);
            if (status) goto fail;
        }
        const qvl_image *image = source.inputs ? &read : &source.images[i];
        status = append(model, image, options, (const float(*)[256])table, patches, &patches->items[i], error);
        patches->items[i].source_width = image->width;
        patches->items[i].source_height = image->height;
        qvl_image_free(&read);
        if (status && source.inputs && source.inputs[i].name)
            qvl_error_prefix(error, status, source.inputs[i].name);
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
