#include "prompt/pictures.h"

#include "base/memory.h"
#include "preprocess/geometry.h"
#include "preprocess/resample.h"
#include "prompt/identity.h"
#include "vision/position.h"

#include <math.h>
#include <string.h>

static const qvl_input *picture_of(const qvl_source *source) {
    if (source->input.name) return &source->input;
    return source->medium ? source->medium->input : NULL;
}

/* Messages begin with the source's name. (Those about reading a picture do by themselves.) */
static qvl_status named(const qvl_source *source, qvl_status status, qvl_error *error) {
    return status ? qvl_error_prefix(error, status, source->name) : QVL_OK;
}

/* ---- sizes */

static qvl_status measure_picture(const qvl_model *model, const qvl_source *source,
                                  const qvl_preprocess_options *options, qvl_item *item, qvl_error *error) {
    const qvl_input *input = picture_of(source);
    qvl_preprocess_options own = qvl_picture_options(options, input);
    qvl_image image;
    qvl_status status = qvl_check_preset(own.preset, error);
    if (!status) status = qvl_image_probe(input, &own.media, &image, error);
    if (status) return status;
    return named(source, qvl_picture_place(&model->config, &own, &image, item, error), error);
}

/* Patch rows or features that the caller made: one item, and its grid. */
static qvl_status measure_given(const qvl_model *model, const qvl_medium *medium, qvl_item *item,
                                qvl_error *error) {
    const qvl_patches *p = medium->patches;
    const qvl_features *f = medium->features;
    size_t count = p ? p->item_count : f->item_count;
    if (count != 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "its %s are of %zu items; a medium is one",
                        p ? "patch rows" : "features", count);
    *item = p ? p->items[0] : f->items[0];
    qvl_positions positions = {0};
    qvl_status status = qvl_positions_count(&model->config.vision, &item->grid, 1, &positions, error);
    if (status) return status;
    item->tokens = positions.tokens;
    int64_t rows = p ? p->rows : f->tokens, wanted = p ? positions.rows : positions.tokens;
    if (rows != wanted)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "it has %lld %s, but its grid of %lld x %lld x %lld makes %lld",
                        (long long)rows, p ? "patch rows" : "features", (long long)item->grid.t,
                        (long long)item->grid.h, (long long)item->grid.w, (long long)wanted);
    return QVL_OK;
}

static qvl_status check_timestamps(const qvl_medium *medium, const qvl_item *item, qvl_error *error) {
    if ((int64_t)medium->timestamp_count != item->grid.t || !medium->timestamps)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "it has %zu timestamps, but its grid has %lld temporal groups",
                        medium->timestamp_count, (long long)item->grid.t);
    for (size_t i = 0; i < medium->timestamp_count; i++)
        if (!isfinite(medium->timestamps[i]) || fabs(medium->timestamps[i]) > 1e9)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "its timestamp %zu is %g seconds", i,
                            medium->timestamps[i]);
    return QVL_OK;
}

static qvl_status check_medium(const qvl_source *source, qvl_error *error) {
    const qvl_medium *m = source->medium;
    if (m && (m->input != NULL) + (m->patches != NULL) + (m->features != NULL) != 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "a medium is one of input, patches and features");
    if (source->kind == QVL_MEDIUM_VIDEO && picture_of(source))
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                        "a video from pixels is not read yet: give its patch rows or features");
    return QVL_OK;
}

qvl_status qvl_source_measure(const qvl_model *model, const qvl_source *source,
                              const qvl_preprocess_options *options, qvl_measured *measured, qvl_error *error) {
    const qvl_medium *medium = source->medium;
    *measured = (qvl_measured){0};
    qvl_status status = check_medium(source, error);
    if (!status && picture_of(source)) return measure_picture(model, source, options, &measured->item, error);
    if (!status) status = measure_given(model, medium, &measured->item, error);
    if (!status && source->kind == QVL_MEDIUM_VIDEO) {
        measured->timestamps = medium->timestamps;
        status = check_timestamps(medium, &measured->item, error);
    }
    return named(source, status, error);
}

/* ---- features */

/* Reads and resizes; the size must be what the header promised. */
static qvl_status read_resized(const qvl_model *model, const qvl_source *source,
                               const qvl_preprocess_options *options, const qvl_item *planned, qvl_image *image,
                               qvl_error *error) {
    const qvl_input *input = picture_of(source);
    qvl_preprocess_options own = qvl_picture_options(options, input);
    qvl_image read;
    qvl_item item;
    qvl_status status = qvl_image_read(input, &own.media, &read, error);
    if (status) return status;
    status = qvl_picture_place(&model->config, &own, &read, &item, error);
    if (!status && (item.width != planned->width || item.height != planned->height))
        status = qvl_fail(error, QVL_ERROR_IO, "it changed while it was read");
    if (!status && item.width == read.width && item.height == read.height) {
        *image = read;
        return QVL_OK;
    }
    qvl_filter filter = own.preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
    if (!status) status = qvl_resample(model->pool, &read, item.width, item.height, filter, image, error);
    qvl_image_free(&read);
    return named(source, status, error);
}

static qvl_status encode_picture(qvl_session *session, const qvl_source *source, const qvl_measured *measured,
                                 const qvl_preprocess_options *options, const qvl_encode_options *encode,
                                 qvl_features *features, char key[QVL_KEY_HEX], qvl_error *error) {
    const qvl_model *model = qvl_session_model(session);
    qvl_image image = {0};
    qvl_patches patches = {0};
    qvl_status status = read_resized(model, source, options, &measured->item, &image, error);
    if (status) return status;
    const uint8_t *pixels[1] = {image.pixels};
    qvl_frames frames = {.pixels = pixels, .count = 1, .width = image.width, .height = image.height};
    status = qvl_frames_key(&frames, &model->config, options->preset, measured->item.grid, key, error);
    if (!status) status = qvl_patchify(model, &image, 1, options->preset, &patches, error);
    qvl_image_free(&image);
    if (!status) status = qvl_vision_encode(session, &patches, encode, features, error);
    qvl_patches_free(&patches);
    return named(source, status, error);
}

static qvl_status given_key(const qvl_medium *medium, char key[QVL_KEY_HEX], qvl_error *error) {
    if (medium->key) {
        size_t digits = strspn(medium->key, "0123456789abcdef");
        if (digits != QVL_KEY_HEX - 1 || medium->key[digits])
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "its key \"%.80s\" is not 64 digits and letters a to f",
                            medium->key);
        memcpy(key, medium->key, QVL_KEY_HEX);
        return QVL_OK;
    }
    return medium->patches ? qvl_patches_key(medium->patches, key, error)
                           : qvl_features_key(medium->features, key, error);
}

static qvl_status check_features(const qvl_model *model, const qvl_features *f, qvl_error *error) {
    qvl_dtype dtype = qvl_compute_dtype(model->compute);
    const qvl_vision_config *v = &model->config.vision;
    if (f->dtype == dtype && f->width == v->out_hidden_size && f->deepstack_count == v->deepstack_count)
        return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_ARGUMENT,
        "its features are %s of width %lld with %d deepstack arrays; this model's are %s of width %d with %d",
        qvl_dtype_name(f->dtype), (long long)f->width, f->deepstack_count, qvl_dtype_name(dtype),
        v->out_hidden_size, v->deepstack_count);
}

static qvl_status take_given(qvl_session *session, const qvl_source *source, const qvl_encode_options *encode,
                             qvl_features *features, bool *borrowed, char key[QVL_KEY_HEX], qvl_error *error) {
    const qvl_medium *medium = source->medium;
    qvl_status status = given_key(medium, key, error);
    if (!status && medium->patches) status = qvl_vision_encode(session, medium->patches, encode, features, error);
    if (!status && medium->features) {
        status = check_features(qvl_session_model(session), medium->features, error);
        *borrowed = !status;
        if (!status) *features = *medium->features;
    }
    return named(source, status, error);
}

qvl_status qvl_source_encode(qvl_session *session, const qvl_source *source, const qvl_measured *measured,
                             const qvl_preprocess_options *options, const qvl_encode_options *encode,
                             qvl_features *features, bool *borrowed, char key[QVL_KEY_HEX], qvl_error *error) {
    *features = (qvl_features){0};
    *borrowed = false;
    if (picture_of(source))
        return encode_picture(session, source, measured, options, encode, features, key, error);
    return take_given(session, source, encode, features, borrowed, key, error);
}
