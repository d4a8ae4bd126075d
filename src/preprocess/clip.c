/* From an input to its groups: footage -> frames chosen -> size -> frames read and resized, group by group. */
#include "preprocess/clip.h"

#include "base/clock.h"
#include "base/memory.h"
#include "preprocess/footage.h"
#include "preprocess/frames.h"
#include "preprocess/geometry.h"
#include "preprocess/resample.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct qvl_reader {
    qvl_pool *pool;
    qvl_footage footage;
    qvl_preprocess_options options; /* of this input */
    qvl_clip_options own;           /* of a clip */
    qvl_item item;
    int64_t next; /* group */
};

__attribute__((format(printf, 2, 3))) static void note(const qvl_model *model, const char *format, ...) {
    if (!model->log) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    model->log(line, model->log_user);
}

static const char *name_of(const qvl_reader *r) {
    return r->footage.input->name ? r->footage.input->name : "clip in memory";
}

/* ---- times */

static double shown_at(const void *user, int64_t frame) {
    return qvl_video_seconds(user, frame);
}

/* What a clip of unknown rate is taken for. A clip of one frame needs none: it is shown at 0. */
static qvl_status assume_rate(const qvl_reader *r, bool needed, double *rate, bool *assumed, qvl_error *error) {
    *rate = r->own.assumed_rate;
    *assumed = *rate > 0;
    if (*assumed)
        note(r->footage.model, "%s: its frame rate is unknown; %g frames a second are assumed", name_of(r), *rate);
    else if (needed)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "its frame rate is unknown, and with it the times of its frames; give it, or say what to "
                        "assume");
    return QVL_OK;
}

/* fps and the like choose among the frames of a file; a list has been chosen already. */
static qvl_status refuse_sampling(const qvl_clip_options *own, qvl_error *error) {
    const struct {
        const char *name;
        double value;
    } settings[] = {{"fps", own->fps},
                    {"num_frames", (double)own->num_frames},
                    {"min_frames", (double)own->min_frames},
                    {"max_frames", (double)own->max_frames}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].value != 0)
            return qvl_fail(error, QVL_ERROR_ARGUMENT,
                            "%s is %g, but a list of frames is used whole: it is never sampled again",
                            settings[i].name, settings[i].value);
    return QVL_OK;
}

/* Of a list: as the caller gives them. */
static qvl_status check_list_times(const qvl_input *input, qvl_error *error) {
    if (!(input->rate == 0 || (input->rate >= 1e-6 && input->rate <= 1e6)))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "its rate is %g; allowed are 1e-6 to 1e6, or 0 for unknown",
                        input->rate);
    for (size_t i = 0; i < input->frame_count; i++) {
        double second = input->seconds ? input->seconds[i] : 0,
               before = input->seconds && i ? input->seconds[i - 1] : 0;
        int64_t index = input->indices ? input->indices[i] : 0,
                earlier = input->indices && i ? input->indices[i - 1] : 0;
        if (!(second >= before && second <= 1e9))
            return qvl_fail(error, QVL_ERROR_ARGUMENT,
                            "frame %zu is at %g seconds, after %g; times start at 0 or later and do not go back",
                            i, second, before);
        if (index < earlier || index > (int64_t)1 << 53)
            return qvl_fail(
                error, QVL_ERROR_ARGUMENT,
                "frame %zu has the number %lld, after %lld; numbers start at 0 or later and do not go back", i,
                (long long)index, (long long)earlier);
    }
    return QVL_OK;
}

static qvl_status take_list(const qvl_reader *r, const qvl_input *input, qvl_picks *picks, qvl_clip_info *info,
                            qvl_error *error) {
    size_t count = (size_t)r->footage.count;
    bool is_list = input->kind == QVL_INPUT_FRAMES;
    info->rate = is_list ? input->rate : 0;
    qvl_status status = is_list ? check_list_times(input, error) : QVL_OK;
    if (!status) status = refuse_sampling(&r->own, error);
    if (!status && (!is_list || !input->seconds) && info->rate == 0) {
        bool needed = count > 1 || (is_list && input->indices && input->indices[0] > 0);
        status = assume_rate(r, needed, &info->rate, &info->rate_assumed, error);
    }
    if (status) return status;
    *picks = (qvl_picks){.count = count};
    picks->indices = qvl_alloc(count, sizeof *picks->indices);
    picks->seconds = qvl_alloc(count, sizeof *picks->seconds);
    if (!picks->indices || !picks->seconds)
        return qvl_fail_memory(error, "times of frames", count, sizeof(double));
    for (size_t i = 0; i < count; i++) {
        picks->indices[i] = is_list && input->indices ? input->indices[i] : (int64_t)i;
        if (is_list && input->seconds)
            picks->seconds[i] = input->seconds[i];
        else
            picks->seconds[i] = picks->indices[i] ? (double)picks->indices[i] / info->rate : 0;
    }
    return QVL_OK;
}

static qvl_status pick_from_video(const qvl_reader *r, qvl_picks *picks, qvl_clip_info *info, qvl_error *error) {
    const qvl_video_info *video = qvl_video_get_info(r->footage.video);
    const qvl_video_config *config = &r->footage.model->config.video;
    qvl_status status = QVL_OK;
    info->variable_rate = video->variable_rate;
    if (video->rate.num > 0 && video->rate.den > 0)
        info->rate = (double)video->rate.num / (double)video->rate.den;
    else if (video->frame_count > 1 &&
             video->duration > 0) /* it has times all the same; torchcodec's average_fps */
        info->rate = (double)video->frame_count / video->duration;
    else
        status = assume_rate(r, video->frame_count > 1, &info->rate, &info->rate_assumed, error);
    if (status) return status;
    qvl_timeline line = {.count = video->frame_count,
                         .rate = info->rate > 0 ? info->rate : 1,
                         .duration = video->duration,
                         .user = r->footage.video};
    if (video->variable_rate && !info->rate_assumed && r->own.times == QVL_TIMES_TRUE)
        line.seconds = shown_at;
    else
        line.duration = (double)line.count / line.rate;
    qvl_frame_choice choice = qvl_frame_choice_of(config, r->options.preset, &r->own);
    return qvl_frames_pick(&choice, &line, picks, error);
}

/* ---- the item */

static qvl_status fill_clip(qvl_reader *r, const qvl_picks *picks, qvl_clip_info *info, qvl_error *error) {
    size_t temporal = (size_t)r->footage.model->config.vision.temporal_patch_size;
    size_t groups = (picks->count + temporal - 1) / temporal;
    double *labels = qvl_alloc(groups, sizeof *labels);
    if (!labels) return qvl_fail_memory(error, "time labels", groups, sizeof *labels);
    qvl_group_seconds(picks->seconds, picks->count, temporal, labels);
    info->frame_count = (int64_t)picks->count;
    info->indices = picks->indices;
    info->seconds = picks->seconds;
    info->group_count = (int64_t)groups;
    info->timestamps = labels;
    info->source_frames = r->footage.count;
    info->sampled_fps = picks->fps;
    qvl_status status = qvl_clip_info_make(info, &r->item.clip, error);
    qvl_free(labels);
    return status;
}

static qvl_status place_clip(qvl_reader *r, const qvl_input *input, qvl_error *error) {
    const qvl_config *config = &r->footage.model->config;
    const qvl_image *shape = &r->footage.shape;
    qvl_picks picks = {0};
    qvl_clip_info info = {0};
    int64_t width, height;
    qvl_status status = qvl_clip_options_take(&r->options, input, &r->own, error);
    if (!status)
        status = r->footage.video ? pick_from_video(r, &picks, &info, error)
                                  : take_list(r, r->footage.input, &picks, &info, error);
    qvl_clip_shape frames = {(int64_t)picks.count, shape->width, shape->height};
    if (!status)
        status = qvl_clip_size(config, &r->options, &r->own, frames, &width, &height, &info.limits, error);
    if (!status) status = qvl_picture_grid(&config->vision, width, height, &r->item, error);
    if (!status) status = fill_clip(r, &picks, &info, error);
    qvl_picks_free(&picks);
    if (status) return status;
    r->item.grid.t = r->item.clip->group_count;
    r->item.tokens *= r->item.grid.t;
    r->item.source_width = shape->width;
    r->item.source_height = shape->height;
    r->item.stored = shape->stored;
    return QVL_OK;
}

static void note_settings(const qvl_reader *r) {
    const qvl_model *model = r->footage.model;
    const qvl_video_config *video = &model->config.video;
    bool of_pictures = strcmp(video->processor.source, "preprocessor_config.json") == 0;
    if (!of_pictures && strcmp(video->processor.source, "class default") != 0) return;
    note(model, "%s says nothing about videos: %s, %lld..%lld pixels of all frames together", model->folder,
         of_pictures ? "its limits of pictures are used, as in transformers" : "class defaults are used",
         (long long)video->processor.limits.min_pixels, (long long)video->processor.limits.max_pixels);
}

static qvl_status open_reader(qvl_reader *r, const qvl_model *model, const qvl_input *input, qvl_reading reading,
                              const qvl_patience *patience, qvl_error *error) {
    double lap = qvl_seconds();
    qvl_status status = qvl_check_preset(r->options.preset, error);
    if (!status) status = qvl_footage_open(model, input, reading, &r->options.media, patience, &r->footage, error);
    if (status) return status; /* its messages have the name */
    if (r->footage.is_clip) {
        note_settings(r);
        status = place_clip(r, input, error);
    } else {
        r->options = qvl_picture_options(&r->options, input);
        status = qvl_picture_place(&model->config, &r->options, &r->footage.shape, &r->item, error);
    }
    if (status && input->name) return qvl_error_prefix(error, status, input->name);
    if (r->options.profile) qvl_lap(r->options.profile, QVL_STAGE_READ, &lap);
    return status;
}

qvl_status qvl_reader_open(const qvl_model *model, qvl_pool *pool, const qvl_input *input, qvl_reading reading,
                           const qvl_preprocess_options *options, const qvl_patience *patience,
                           qvl_reader **reader, qvl_error *error) {
    *reader = NULL;
    qvl_reader *r = qvl_calloc(1, sizeof *r);
    if (!r) return qvl_fail_memory(error, "reader", 1, sizeof *r);
    r->pool = pool;
    r->options = *options;
    qvl_status status = open_reader(r, model, input, reading, patience, error);
    if (status)
        qvl_reader_close(&r);
    else
        *reader = r;
    return status;
}

void qvl_reader_close(qvl_reader **pointer) {
    if (!pointer || !*pointer) return;
    qvl_footage_close(&(*pointer)->footage);
    qvl_item_clear(&(*pointer)->item);
    qvl_free(*pointer);
    *pointer = NULL;
}

const qvl_item *qvl_reader_item(const qvl_reader *reader) {
    return &reader->item;
}

/* ---- groups */

void qvl_group_free(qvl_group *group) {
    if (!group) return;
    for (size_t i = 0; i < group->frame_count; i++) qvl_image_free(&group->frames[i]);
    qvl_free(group->frames);
    *group = (qvl_group){0};
}

/* A frame of the footage at the item's size. */
static qvl_status read_resized(qvl_reader *r, int64_t frame, qvl_image *out, qvl_error *error) {
    qvl_profile *profile = r->options.profile;
    double lap = qvl_seconds();
    qvl_image read;
    qvl_status status = qvl_footage_frame(&r->footage, frame, &read, error);
    if (status) return status;
    if (profile) qvl_lap(profile, QVL_STAGE_READ, &lap);
    if (read.width == r->item.width && read.height == r->item.height) {
        *out = read;
        return QVL_OK;
    }
    qvl_preset preset = qvl_item_preset(r->options.preset, &r->item);
    qvl_filter filter = preset == QVL_PRESET_TRANSFORMERS ? QVL_FILTER_TORCH : QVL_FILTER_PILLOW;
    status = qvl_resample(r->pool, &read, r->item.width, r->item.height, filter, out, error);
    qvl_image_free(&read);
    if (profile) qvl_lap(profile, QVL_STAGE_RESIZE, &lap);
    return status && r->footage.input->name ? qvl_error_prefix(error, status, r->footage.input->name) : status;
}

qvl_status qvl_reader_next(qvl_reader *r, qvl_group *group, qvl_error *error) {
    *group = (qvl_group){0};
    const qvl_clip_info *clip = r->item.clip;
    if (r->next == r->item.grid.t) return QVL_OK;
    int64_t temporal = r->footage.model->config.vision.temporal_patch_size, first = r->next * temporal;
    int64_t left = (clip ? clip->frame_count : 1) - first, count = left < temporal ? left : temporal;
    qvl_group made = {.index = r->next, .seconds = clip ? clip->timestamps[r->next] : 0};
    made.frames = qvl_calloc((size_t)count, sizeof *made.frames);
    if (!made.frames) return qvl_fail_memory(error, "frames", (size_t)count, sizeof *made.frames);
    for (int64_t i = 0; i < count; i++) {
        /* A list's frames are counted; the numbers in its item are the source's. */
        int64_t frame = r->footage.video ? clip->indices[first + i] : first + i;
        qvl_status status = read_resized(r, frame, &made.frames[i], error);
        if (status) {
            qvl_group_free(&made);
            return status;
        }
        made.frame_count = (size_t)i + 1;
    }
    r->next++;
    *group = made;
    return QVL_OK;
}
