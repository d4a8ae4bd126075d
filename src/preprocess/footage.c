#include "preprocess/footage.h"

#include "base/file.h"
#include "base/memory.h"
#include "media/media.h"

#include <string.h>

#define HEAD_BYTES 1024   /* enough to know a video by */
#define DECODER_FRAMES 16 /* a decoder holds about so many, of 3/2 bytes a pixel */

/* ---- what an input is */

/* Files that are not regular (pipes, standard input) are taken whole, to be looked at and then read. */
static qvl_status hold_stream(qvl_footage *f, qvl_error *error) {
    size_t count;
    qvl_status status = qvl_file_read(f->input->name, QVL_MAX_FILE_BYTES, &f->bytes, &count, error);
    if (status) return status;
    f->held = *f->input;
    f->held.kind = QVL_INPUT_BYTES;
    f->held.bytes = f->bytes;
    f->held.byte_count = count;
    f->input = &f->held;
    return QVL_OK;
}

static qvl_status find_video(qvl_footage *f, bool *is_video, qvl_error *error) {
    *is_video = false;
    if (f->input->kind == QVL_INPUT_FILE && f->input->name) {
        qvl_map map;
        if (!qvl_map_open(f->input->name, &map, NULL)) {
            *is_video = qvl_video_sniff(map.bytes, map.count < HEAD_BYTES ? map.count : HEAD_BYTES, &f->media);
            qvl_map_close(&map);
            return QVL_OK;
        }
        qvl_status status = hold_stream(f, error);
        if (status) return status;
    }
    if (f->input->kind != QVL_INPUT_BYTES || !f->input->bytes) return QVL_OK;
    size_t count = f->input->byte_count;
    *is_video = qvl_video_sniff(f->input->bytes, count < HEAD_BYTES ? count : HEAD_BYTES, &f->media);
    return QVL_OK;
}

static const char *name_of(const qvl_footage *f) {
    return f->input->name ? f->input->name : f->is_clip ? "clip in memory" : "picture in memory";
}

/* ---- opening */

static qvl_status open_video(qvl_footage *f, const qvl_patience *patience, qvl_error *error) {
    qvl_status status =
        qvl_video_open(f->input, &f->media, f->model->log, f->model->log_user, patience, &f->video, error);
    if (status) return status;
    const qvl_video_info *info = qvl_video_get_info(f->video);
    f->count = info->frame_count;
    f->shape = (qvl_image){.width = info->width, .height = info->height};
    f->shape.stored =
        (qvl_stored){.format = info->codec,
                     .width = info->stored_width,
                     .height = info->stored_height,
                     .orientation = info->orientation,
                     .oriented = info->oriented,
                     .decode_bytes = DECODER_FRAMES * 3 / 2 * info->stored_width * info->stored_height};
    return QVL_OK;
}

static qvl_status check_size(const qvl_footage *f, size_t frame, const qvl_image *image, qvl_error *error) {
    if (image->width == f->shape.width && image->height == f->shape.height) return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_ARGUMENT,
        "%.400s: frame %zu is %lld x %lld, but the first one is %lld x %lld; frames must have one size",
        name_of(f), frame, (long long)image->width, (long long)image->height, (long long)f->shape.width,
        (long long)f->shape.height);
}

/* "clip: frame 3: frame.png: damaged": the frame's own message, placed. */
static qvl_status place(const qvl_footage *f, qvl_status status, qvl_error *error) {
    return f->input->kind == QVL_INPUT_FRAMES && f->input->name ? qvl_error_prefix(error, status, f->input->name)
                                                                : status;
}

static qvl_status open_list(qvl_footage *f, qvl_error *error) {
    const qvl_input *input = f->input;
    if (!input->frames || input->frame_count < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: a list of frames is empty; it takes at least one",
                        name_of(f));
    if (input->frame_count > (size_t)QVL_MAX_FRAMES)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%.400s: %zu frames are more than %lld", name_of(f),
                        input->frame_count, (long long)QVL_MAX_FRAMES);
    f->count = (int64_t)input->frame_count;
    for (size_t i = 0; i < input->frame_count; i++) {
        qvl_image image;
        qvl_status status = qvl_image_probe(&input->frames[i], &f->media, &image, error);
        if (status) return place(f, status, error);
        if (i == 0) f->shape = image;
        status = check_size(f, i, &image, error);
        if (status) return status;
    }
    return QVL_OK;
}

static qvl_status check_reading(const qvl_footage *f, qvl_reading reading, qvl_error *error) {
    if (reading != QVL_READ_IMAGE || !f->is_clip) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%.400s: it is a video where a picture is wanted", name_of(f));
}

qvl_status qvl_footage_open(const qvl_model *model, const qvl_input *input, qvl_reading reading,
                            const qvl_media_options *media, const qvl_patience *patience, qvl_footage *f,
                            qvl_error *error) {
    *f = (qvl_footage){.model = model, .input = input, .media = *media, .count = 1};
    bool is_video = false;
    if (reading == QVL_READ_VIDEO) f->media.animation = QVL_ANIMATION_CLIP;
    if (reading == QVL_READ_IMAGE) f->media.animation = QVL_ANIMATION_FIRST;
    qvl_status status = find_video(f, &is_video, error);
    if (status) return status;
    f->is_clip = is_video || input->kind == QVL_INPUT_FRAMES || reading == QVL_READ_VIDEO;
    status = check_reading(f, reading, error);
    if (status) return status;
    if (is_video) return open_video(f, patience, error);
    if (input->kind == QVL_INPUT_FRAMES) return open_list(f, error);
    return reading == QVL_READ_IMAGE ? qvl_image_probe(f->input, &f->media, &f->shape, error)
                                     : qvl_image_probe_medium(f->input, &f->media, &f->shape, error);
}

void qvl_footage_close(qvl_footage *f) {
    qvl_video_close(&f->video);
    qvl_free(f->bytes);
    *f = (qvl_footage){0};
}

/* ---- frames */

qvl_status qvl_footage_frame(qvl_footage *f, int64_t frame, qvl_image *image, qvl_error *error) {
    qvl_status status;
    *image = (qvl_image){0};
    if (f->video)
        status = qvl_video_frame(f->video, frame, image, error);
    else if (f->input->kind == QVL_INPUT_FRAMES)
        status = place(f, qvl_image_read(&f->input->frames[frame], &f->media, image, error), error);
    else
        status = qvl_image_read(f->input, &f->media, image, error);
    if (status) return status;
    if (image->width == f->shape.width && image->height == f->shape.height) return QVL_OK;
    status = f->video ? check_size(f, (size_t)frame, image, error)
                      : qvl_fail(error, QVL_ERROR_IO, "%.400s: it changed while it was read", name_of(f));
    qvl_image_free(image);
    return status;
}
