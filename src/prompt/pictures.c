#include "prompt/pictures.h"

#include "cache/content.h"
#include "preprocess/geometry.h"
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

static qvl_status measure_input(const qvl_model *model, const qvl_source *source,
                                const qvl_preprocess_options *options, const qvl_patience *patience,
                                qvl_item *item, qvl_error *error) {
    qvl_reading reading = source->kind == QVL_MEDIUM_VIDEO ? QVL_READ_VIDEO : QVL_READ_IMAGE;
    qvl_reader *reader;
    const qvl_input *input = picture_of(source);
    qvl_status status = qvl_reader_open(model, NULL, input, reading, options, patience, &reader, error);
    if (status) return input->name ? status : named(source, status, error); /* else it has the input's name */
    status = qvl_item_copy(qvl_reader_item(reader), item, error);
    qvl_reader_close(&reader);
    return status;
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
    qvl_positions positions = {0};
    qvl_status status = qvl_item_copy(p ? &p->items[0] : &f->items[0], item, error);
    if (!status) status = qvl_positions_count(&model->config.vision, &item->grid, 1, &positions, error);
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
    return QVL_OK;
}

qvl_status qvl_source_measure(const qvl_model *model, const qvl_source *source,
                              const qvl_preprocess_options *options, const qvl_patience *patience,
                              qvl_measured *measured, qvl_error *error) {
    const qvl_medium *medium = source->medium;
    *measured = (qvl_measured){0};
    qvl_status status = check_medium(source, error);
    if (!status && picture_of(source)) {
        status = measure_input(model, source, options, patience, &measured->item, error);
        if (!status && measured->item.clip) measured->timestamps = measured->item.clip->timestamps;
        return status;
    }
    if (!status) status = measure_given(model, medium, &measured->item, error);
    if (!status && source->kind == QVL_MEDIUM_VIDEO) {
        bool own = !medium->timestamps && measured->item.clip; /* preprocessed here, its times with it */
        measured->timestamps = own ? measured->item.clip->timestamps : medium->timestamps;
        if (!own) status = check_timestamps(medium, &measured->item, error);
    }
    return named(source, status, error);
}

/* ---- features */

static qvl_status given_key(const qvl_medium *medium, char key[QVL_KEY_HEX], qvl_error *error) {
    if (!medium->key)
        return medium->patches ? qvl_patches_key(medium->patches, key, error)
                               : qvl_features_key(medium->features, key, error);
    if (!qvl_sha256_is_hex(medium->key))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "its key \"%.80s\" is not 64 digits and letters a to f",
                        medium->key);
    memcpy(key, medium->key, QVL_KEY_HEX);
    return QVL_OK;
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

qvl_encode_source qvl_source_to_encode(const qvl_source *source, const qvl_measured *measured) {
    const qvl_medium *medium = source->medium;
    qvl_encode_source to = {.name = source->name, .input = picture_of(source), .planned = &measured->item};
    to.reading = source->kind == QVL_MEDIUM_VIDEO ? QVL_READ_VIDEO : QVL_READ_IMAGE;
    if (to.input) return to;
    to.patches = medium->patches;
    to.features = medium->features;
    return to;
}

qvl_status qvl_source_accept(const qvl_model *model, const qvl_source *source, const qvl_features *features,
                             char key[QVL_KEY_HEX], qvl_error *error) {
    qvl_status status = given_key(source->medium, key, error);
    if (!status) status = check_features(model, features, error);
    return named(source, status, error);
}
