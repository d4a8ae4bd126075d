/* Sizes are exact: the doubles below are evaluated in the order, and with the rounding, of the Python reference.
 * Sides are at most QVL_MAX_SIDE and factors at most MAX_FACTOR, so that every product of two sides fits int64. */
#include "preprocess/geometry.h"

#include "base/memory.h"
#include "media/media.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_FACTOR ((int64_t)1 << 20)
#define MAX_RATIO 200.0

const char *qvl_preset_name(qvl_preset preset) {
    switch (preset) {
    case QVL_PRESET_TRANSFORMERS:
        return "transformers";
    case QVL_PRESET_TRANSFORMERS_PIL:
        return "transformers-pil";
    case QVL_PRESET_MLX:
        return "mlx";
    }
    return NULL;
}

qvl_status qvl_check_preset(qvl_preset preset, qvl_error *error) {
    if (qvl_preset_name(preset)) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "preset %d is unknown; allowed are 0 (transformers) to 2 (mlx)",
                    (int)preset);
}

void qvl_preprocess_options_init(qvl_preprocess_options *options) {
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->preset = QVL_PRESET_TRANSFORMERS;
    qvl_media_options_init(&options->media);
}

/* a / b correctly rounded, as Python divides integers, for a, b in 1..2^63-1. Beyond 2^53 the double of an integer
 * is already rounded, and dividing it would round twice. */
static double quotient(int64_t a, int64_t b) {
    const int64_t exact = (int64_t)1 << 53;
    if (a <= exact && b <= exact) return (double)a / (double)b;
    uint64_t divisor = (uint64_t)b;
    uint64_t digits = (uint64_t)a / divisor, rest = (uint64_t)a % divisor;
    int shift = 0;
    while (rest && digits < (uint64_t)1 << 60) {
        rest *= 2;
        digits = digits * 2 + (rest >= divisor);
        if (rest >= divisor) rest -= divisor;
        shift++;
    }
    return ldexp((double)(digits | (rest != 0)), -shift); /* the last digit stands for all that follow */
}

/* count is whole. */
static int64_t multiple(double count, int64_t factor) {
    return (int64_t)count * factor;
}

static int64_t at_least(int64_t value, int64_t least) {
    return value < least ? least : value;
}

static qvl_status check_side(const char *what, int64_t side, qvl_error *error) {
    if (side >= 1 && side <= QVL_MAX_SIDE) return QVL_OK;
    return qvl_fail(error, side < 1 ? QVL_ERROR_ARGUMENT : QVL_ERROR_LIMIT,
                    "picture %s is %" PRId64 "; allowed are 1 to %" PRId64, what, side, QVL_MAX_SIDE);
}

static qvl_status check_smart_resize(int64_t height, int64_t width, int64_t factor, qvl_limits limits,
                                     qvl_error *error) {
    qvl_status status = check_side("width", width, error);
    if (status == QVL_OK) status = check_side("height", height, error);
    if (status != QVL_OK) return status;
    if (factor < 1 || factor > MAX_FACTOR)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "resize factor is %" PRId64 "; allowed are 1 to %" PRId64,
                        factor, MAX_FACTOR);
    if (limits.min_pixels < 1 || limits.max_pixels < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "pixel limits are %" PRId64 " to %" PRId64 "; both must be at least 1", limits.min_pixels,
                        limits.max_pixels);
    double longer = (double)(height > width ? height : width), shorter = (double)(height > width ? width : height);
    if (longer / shorter > MAX_RATIO)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "picture is %" PRId64 " x %" PRId64 ": its aspect ratio is %.10g, above the limit of %g",
                        width, height, longer / shorter, MAX_RATIO);
    return QVL_OK;
}

qvl_status qvl_smart_resize(int64_t height, int64_t width, int64_t factor, qvl_limits limits, int64_t *out_height,
                            int64_t *out_width, qvl_error *error) {
    *out_height = *out_width = 0;
    qvl_status status = check_smart_resize(height, width, factor, limits, error);
    if (status != QVL_OK) return status;

    double h = (double)height, w = (double)width, f = (double)factor;
    int64_t new_height = multiple(rint(h / f), factor), new_width = multiple(rint(w / f), factor);
    if (new_height * new_width > limits.max_pixels) {
        double beta = sqrt(quotient(height * width, limits.max_pixels));
        new_height = at_least(multiple(floor(h / beta / f), factor), factor);
        new_width = at_least(multiple(floor(w / beta / f), factor), factor);
    } else if (new_height * new_width < limits.min_pixels) { /* so does a side that rounded to 0 */
        double beta = sqrt(quotient(limits.min_pixels, height * width));
        new_height = multiple(ceil(h * beta / f), factor);
        new_width = multiple(ceil(w * beta / f), factor);
    }
    if (new_height > QVL_MAX_SIDE || new_width > QVL_MAX_SIDE)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "min_pixels of %" PRId64 " would resize the picture of %" PRId64 " x %" PRId64
                        " to %" PRId64 " x %" PRId64 "; sides may have at most %" PRId64,
                        limits.min_pixels, width, height, new_width, new_height, QVL_MAX_SIDE);
    *out_height = new_height;
    *out_width = new_width;
    return QVL_OK;
}

static int64_t factor_of(const qvl_vision_config *vision) {
    return (int64_t)vision->patch_size * vision->spatial_merge_size;
}

/* One side of the limits. pixels and tokens are the options for it, 0 where unset; side is "min" or "max". */
static qvl_status override_limit(const char *side, int64_t pixels, int64_t tokens, int64_t factor, int64_t *limit,
                                 qvl_error *error) {
    if (pixels < 0 || tokens < 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s_%s is %" PRId64 "; it must be positive, or 0 for unset",
                        side, pixels < 0 ? "pixels" : "tokens", pixels < 0 ? pixels : tokens);
    if (pixels && tokens)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%s_pixels (%" PRId64 ") and %s_tokens (%" PRId64 ") both set the same limit; give one",
                        side, pixels, side, tokens);
    if (pixels) *limit = pixels;
    if (tokens && (!qvl_mul_i64(factor, factor, limit) || !qvl_mul_i64(*limit, tokens, limit)))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s_tokens is %" PRId64 ", too many to count their pixels",
                        side, tokens);
    return QVL_OK;
}

qvl_status qvl_effective_limits(const qvl_config *config, const qvl_preprocess_options *options,
                                qvl_limits *limits, qvl_error *error) {
    int64_t factor = factor_of(&config->vision);
    qvl_limits merged = config->processor.limits;
    memset(limits, 0, sizeof *limits);
    qvl_status status =
        override_limit("min", options->min_pixels, options->min_tokens, factor, &merged.min_pixels, error);
    if (status == QVL_OK)
        status =
            override_limit("max", options->max_pixels, options->max_tokens, factor, &merged.max_pixels, error);
    if (status != QVL_OK) return status;
    if (merged.min_pixels > merged.max_pixels) {
        bool min_given = options->min_pixels || options->min_tokens;
        bool max_given = options->max_pixels || options->max_tokens;
        const char *source = config->processor.source;
        return qvl_fail(error, min_given || max_given ? QVL_ERROR_ARGUMENT : QVL_ERROR_MODEL,
                        "the minimum of %" PRId64 " pixels (%s) is above the maximum of %" PRId64 " pixels (%s)",
                        merged.min_pixels, min_given ? "option" : source, merged.max_pixels,
                        max_given ? "option" : source);
    }
    *limits = merged;
    return QVL_OK;
}

/* The size the caller asks for, instead of smart_resize. */
static qvl_status check_exact_size(const qvl_preprocess_options *options, int64_t factor, qvl_error *error) {
    int64_t width = options->width, height = options->height;
    if (width <= 0 || height <= 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "size is %" PRId64 " x %" PRId64
                        "; width and height must be given together, both positive",
                        width, height);
    if (options->min_pixels || options->max_pixels || options->min_tokens || options->max_tokens)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "size %" PRId64 " x %" PRId64
                        " leaves nothing for pixel or token limits to decide; give one",
                        width, height);
    if (width % factor || height % factor)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "size is %" PRId64 " x %" PRId64 "; both must be multiples of %" PRId64 " (patch x merge)",
                        width, height, factor);
    if (width > QVL_MAX_SIDE || height > QVL_MAX_SIDE)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "size is %" PRId64 " x %" PRId64 "; sides may have at most %" PRId64, width, height,
                        QVL_MAX_SIDE);
    return QVL_OK;
}

qvl_status qvl_target_size(const qvl_config *config, const qvl_preprocess_options *options, int64_t width,
                           int64_t height, int64_t *out_width, int64_t *out_height, qvl_error *error) {
    int64_t factor = factor_of(&config->vision);
    *out_width = *out_height = 0;
    if (options->width || options->height) {
        qvl_status status = check_exact_size(options, factor, error);
        if (status == QVL_OK) status = check_side("width", width, error);
        if (status == QVL_OK) status = check_side("height", height, error);
        if (status != QVL_OK) return status;
        *out_width = options->width;
        *out_height = options->height;
        return QVL_OK;
    }
    qvl_limits limits;
    qvl_status status = qvl_effective_limits(config, options, &limits, error);
    if (status != QVL_OK) return status;
    return qvl_smart_resize(height, width, factor, limits, out_height, out_width, error);
}

/* ---- clips */

/* a * b * c, or a message. */
static qvl_status volume(qvl_clip_shape shape, int64_t *product, qvl_error *error) {
    if (qvl_mul_i64(shape.height, shape.width, product) && qvl_mul_i64(*product, shape.frames, product))
        return QVL_OK;
    return qvl_fail(error, QVL_ERROR_LIMIT,
                    "%" PRId64 " frames of %" PRId64 " x %" PRId64 " are too many to count", shape.frames,
                    shape.width, shape.height);
}

/* What a frame's cap leaves of max_pixels: transformers' resize of Qwen3VLVideoProcessor. */
static qvl_status cap_frames(int64_t tokens, int64_t factor, int64_t frames, qvl_limits *limits,
                             qvl_error *error) {
    int64_t cap, total, share = limits->max_pixels / frames;
    int64_t least = (int64_t)((double)limits->min_pixels * 1.05);
    if (!qvl_mul_i64(factor * factor, tokens, &cap))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "max_frame_tokens is %" PRId64 ", too many to count their pixels", tokens);
    if (!qvl_mul_i64(at_least(cap < share ? cap : share, least), frames, &total))
        return qvl_fail(error, QVL_ERROR_LIMIT, "%" PRId64 " frames of at least %" PRId64 " pixels are too many",
                        frames, least);
    limits->max_pixels = total;
    return QVL_OK;
}

static qvl_status clip_limits(const qvl_config *config, const qvl_clip_options *own, int64_t frames,
                              qvl_limits *limits, qvl_error *error) {
    const qvl_video_config *video = &config->video;
    qvl_limits merged = video->processor.limits;
    int64_t factor = factor_of(&config->vision);
    qvl_status status = override_limit("min", own->min_pixels, 0, factor, &merged.min_pixels, error);
    if (!status) status = override_limit("max", own->max_pixels, 0, factor, &merged.max_pixels, error);
    if (status) return status;
    if (merged.min_pixels > merged.max_pixels)
        return qvl_fail(error, own->min_pixels || own->max_pixels ? QVL_ERROR_ARGUMENT : QVL_ERROR_MODEL,
                        "a clip's minimum of %" PRId64 " pixels (%s) is above its maximum of %" PRId64 " (%s)",
                        merged.min_pixels, own->min_pixels ? "option" : video->processor.source, merged.max_pixels,
                        own->max_pixels ? "option" : video->processor.source);
    bool cap = own->frame_cap ? own->frame_cap == QVL_FRAME_CAP_ON : video->frame_cap;
    int64_t tokens = own->max_frame_tokens ? own->max_frame_tokens : video->max_frame_tokens;
    if (cap) status = cap_frames(tokens, factor, frames, &merged, error);
    if (!status) *limits = merged;
    return status;
}

/* Frames smaller than one merged patch: transformers scales them up, the original system refuses them. */
static qvl_status enlarge(qvl_preset preset, int64_t factor, qvl_clip_shape *shape, qvl_error *error) {
    double h = (double)shape->height, w = (double)shape->width, f = (double)factor;
    if (shape->height >= factor && shape->width >= factor) return QVL_OK;
    if (preset == QVL_PRESET_MLX)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "frames are %" PRId64 " x %" PRId64 "; preset mlx refuses sides below %" PRId64,
                        shape->width, shape->height, factor);
    double scale = f / h > f / w ? f / h : f / w;
    shape->height = (int64_t)(h * scale);
    shape->width = (int64_t)(w * scale);
    return QVL_OK;
}

/* smart_resize, video variant. limits are of frames x height x width. */
static qvl_status clip_resize(qvl_preset preset, int64_t temporal, int64_t factor, qvl_limits limits,
                              qvl_clip_shape shape, int64_t *out_width, int64_t *out_height, qvl_error *error) {
    qvl_status status = enlarge(preset, factor, &shape, error);
    if (!status) status = check_smart_resize(shape.height, shape.width, factor, limits, error);
    if (status) return status;
    double h = (double)shape.height, w = (double)shape.width, f = (double)factor;
    double groups = (double)shape.frames / (double)temporal;
    qvl_clip_shape bar = {.frames = multiple(preset == QVL_PRESET_MLX ? ceil(groups) : rint(groups), temporal),
                          .height = multiple(rint(h / f), factor),
                          .width = multiple(rint(w / f), factor)};
    int64_t raw = 0, rounded = 0;
    status = volume(shape, &raw, error);
    if (!status) status = volume(bar, &rounded, error);
    if (status) return status;
    if (rounded > limits.max_pixels) {
        double beta = sqrt(quotient(raw, limits.max_pixels));
        bar.height = at_least(multiple(floor(h / beta / f), factor), factor);
        bar.width = at_least(multiple(floor(w / beta / f), factor), factor);
    } else if (rounded < limits.min_pixels) {
        double beta = sqrt(quotient(limits.min_pixels, raw));
        bar.height = multiple(ceil(h * beta / f), factor);
        bar.width = multiple(ceil(w * beta / f), factor);
    }
    if (bar.height > QVL_MAX_SIDE || bar.width > QVL_MAX_SIDE)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "frames would be resized to %" PRId64 " x %" PRId64 "; sides may have at most %" PRId64,
                        bar.width, bar.height, QVL_MAX_SIDE);
    *out_width = bar.width;
    *out_height = bar.height;
    return QVL_OK;
}

qvl_status qvl_clip_size(const qvl_config *config, const qvl_preprocess_options *options,
                         const qvl_clip_options *own, qvl_clip_shape shape, int64_t *out_width,
                         int64_t *out_height, qvl_limits *limits, qvl_error *error) {
    int64_t factor = factor_of(&config->vision), temporal = config->vision.temporal_patch_size;
    *out_width = *out_height = 0;
    *limits = (qvl_limits){0};
    if (shape.frames < temporal && own->single_frame == QVL_SINGLE_FRAME_REFUSE)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "the clip has %" PRId64 " frame%s; with single_frame refuse it takes at least %" PRId64
                        ", the temporal patch",
                        shape.frames, shape.frames == 1 ? "" : "s", temporal);
    if (options->width || options->height)
        return qvl_target_size(config, options, shape.width, shape.height, out_width, out_height, error);
    if (shape.frames < temporal && options->preset != QVL_PRESET_MLX) shape.frames = temporal;
    qvl_status status = clip_limits(config, own, shape.frames, limits, error);
    if (!status)
        status = clip_resize(options->preset, temporal, factor, *limits, shape, out_width, out_height, error);
    return status;
}

/* ---- items */

qvl_preprocess_options qvl_picture_options(const qvl_preprocess_options *options, const qvl_input *input) {
    qvl_preprocess_options own = *options;
    if (input->limits.min_pixels) {
        own.min_pixels = input->limits.min_pixels;
        own.min_tokens = 0;
    }
    if (input->limits.max_pixels) {
        own.max_pixels = input->limits.max_pixels;
        own.max_tokens = 0;
    }
    return own;
}

int64_t qvl_patch_columns(const qvl_vision_config *vision) {
    return (int64_t)vision->in_channels * vision->temporal_patch_size * vision->patch_size * vision->patch_size;
}

qvl_status qvl_picture_place(const qvl_config *config, const qvl_preprocess_options *options,
                             const qvl_image *image, qvl_item *item, qvl_error *error) {
    int64_t width = image->width, height = image->height;
    qvl_item placed = {.source_width = width, .source_height = height, .stored = image->stored};
    qvl_status status = QVL_OK;
    if (options) status = qvl_target_size(config, options, image->width, image->height, &width, &height, error);
    if (!status) status = qvl_picture_grid(&config->vision, width, height, &placed, error);
    if (!status) *item = placed;
    return status;
}

qvl_status qvl_picture_grid(const qvl_vision_config *vision, int64_t width, int64_t height, qvl_item *item,
                            qvl_error *error) {
    int64_t patch = vision->patch_size, merge = vision->spatial_merge_size, factor = factor_of(vision);
    qvl_status status = check_side("width", width, error);
    if (status == QVL_OK) status = check_side("height", height, error);
    if (status != QVL_OK) return status;
    if (width % factor || height % factor)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "picture is %" PRId64 " x %" PRId64 "; both sides must be multiples of %" PRId64
                        " (patch %" PRId64 " x merge %" PRId64 ")",
                        width, height, factor, patch, merge);
    item->grid = (qvl_grid){1, height / patch, width / patch};
    item->tokens = (height / factor) * (width / factor);
    item->width = width;
    item->height = height;
    return QVL_OK;
}
