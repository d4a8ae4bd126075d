/* Counts and indices are exact: doubles are evaluated in the order of transformers' sample_frames and numpy's linspace.
 * The mlx preset takes what is shown at evenly spaced times, as the original system does. */
#include "preprocess/frames.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>

/* ---- options */

static qvl_status check_count(const char *what, int64_t value, qvl_error *error) {
    if (value >= 0 && value <= QVL_MAX_FRAMES) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s is %" PRId64 "; allowed are 1 to %" PRId64 ", or 0 for unset",
                    what, value, QVL_MAX_FRAMES);
}

static qvl_status check_rate(const char *what, double value, qvl_error *error) {
    if (value == 0 || (value >= 1e-6 && value <= 1e6)) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s is %g; allowed are 1e-6 to 1e6, or 0 for unset", what, value);
}

static qvl_status check_options(const qvl_clip_options *o, qvl_error *error) {
    qvl_status status = check_rate("fps", o->fps, error);
    if (!status) status = check_rate("assumed_rate", o->assumed_rate, error);
    if (!status) status = check_count("num_frames", o->num_frames, error);
    if (!status) status = check_count("min_frames", o->min_frames, error);
    if (!status) status = check_count("max_frames", o->max_frames, error);
    if (!status) status = check_count("max_frame_tokens", o->max_frame_tokens, error);
    if (status) return status;
    if (o->min_frames && o->max_frames && o->min_frames > o->max_frames)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "min_frames is %" PRId64 ", above max_frames, %" PRId64,
                        o->min_frames, o->max_frames);
    if (o->num_frames && (o->min_frames || o->max_frames))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "num_frames is %" PRId64 ", which leaves nothing for min_frames and max_frames to decide",
                        o->num_frames);
    if ((unsigned)o->frame_cap > QVL_FRAME_CAP_ON || (unsigned)o->single_frame > QVL_SINGLE_FRAME_REFUSE ||
        (unsigned)o->times > QVL_TIMES_RATE)
        return qvl_fail(
            error, QVL_ERROR_ARGUMENT,
            "the options of clips have frame_cap %d, single_frame %d, times %d, of which one is impossible",
            (int)o->frame_cap, (int)o->single_frame, (int)o->times);
    return QVL_OK;
}

static qvl_status check_exclusive(double fps, int64_t num_frames, qvl_error *error) {
    if (fps == 0 || !num_frames) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT,
                    "fps (%g) and num_frames (%" PRId64 ") exclude each other; give one", fps, num_frames);
}

qvl_status qvl_clip_options_take(const qvl_preprocess_options *options, const qvl_input *input,
                                 qvl_clip_options *own, qvl_error *error) {
    *own = options->clip;
    qvl_status status = check_exclusive(own->fps, own->num_frames, error);
    if (!status) status = check_exclusive(input->fps, input->num_frames, error);
    if (status) return status;
    if (input->fps != 0 || input->num_frames) {
        own->fps = input->fps;
        own->num_frames = input->num_frames;
    }
    if (input->num_frames) own->min_frames = own->max_frames = 0;
    if (input->min_frames) own->min_frames = input->min_frames;
    if (input->max_frames) own->max_frames = input->max_frames;
    if (input->limits.min_pixels) own->min_pixels = input->limits.min_pixels;
    if (input->limits.max_pixels) own->max_pixels = input->limits.max_pixels;
    return check_options(own, error);
}

qvl_frame_choice qvl_frame_choice_of(const qvl_video_config *video, qvl_preset preset,
                                     const qvl_clip_options *own) {
    bool given = own->fps != 0 || own->num_frames;
    qvl_frame_choice s = {
        .preset = preset,
        .all = !video->sample && !given && !own->min_frames && !own->max_frames,
        .fps = own->fps != 0     ? own->fps
               : own->num_frames ? 0
                                 : video->fps,
        .num_frames = given ? own->num_frames : video->num_frames,
        .min_frames = own->min_frames ? own->min_frames : video->min_frames,
        .max_frames = own->max_frames ? own->max_frames : video->max_frames,
    };
    if (preset == QVL_PRESET_MLX && !own->min_frames) s.min_frames = 1; /* the original system has no minimum */
    return s;
}

/* ---- transformers */

static int64_t at_least(int64_t value, int64_t least) {
    return value < least ? least : value;
}

static int64_t at_most(int64_t value, int64_t most) {
    return value > most ? most : value;
}

/* value > 0, as Python's int() has it; what is larger than any clip stays so. */
static int64_t truncated(double value) {
    return value >= (double)QVL_MAX_FRAMES ? QVL_MAX_FRAMES : (int64_t)value;
}

/* max_frames may be below min_frames where one is the folder's: then it wins. */
static int64_t count_frames(const qvl_frame_choice *s, const qvl_timeline *line) {
    if (s->num_frames) return s->num_frames;
    if (s->fps == 0) return at_most(at_least(line->count, s->min_frames), s->max_frames);
    int64_t count = truncated((double)line->count / line->rate * s->fps);
    return at_most(at_most(at_least(count, s->min_frames), s->max_frames), line->count);
}

/* numpy.linspace(0, last, count).round() */
static void spread(int64_t last, int64_t count, int64_t *indices) {
    double delta = (double)last, step = count > 1 ? delta / (double)(count - 1) : 0.0;
    for (int64_t i = 0; i < count; i++) indices[i] = (int64_t)rint((double)i * step);
    if (count > 1) indices[count - 1] = last;
}

/* ---- mlx */

static double seconds_of(const qvl_timeline *line, int64_t frame) {
    return line->seconds ? line->seconds(line->user, frame) : (double)frame / line->rate;
}

/* The frame that is shown at a time: the last one that begins by then. */
static int64_t frame_at(const qvl_timeline *line, double time) {
    int64_t first = 0, beyond = line->count;
    while (beyond - first > 1) {
        int64_t middle = first + (beyond - first) / 2;
        if (seconds_of(line, middle) <= time)
            first = middle;
        else
            beyond = middle;
    }
    return first;
}

/* How many of the times 0, 1/fps, 2/fps, ... lie within the clip. */
static int64_t count_times(double duration, double fps) {
    int64_t count = at_least(truncated(ceil(duration * fps)), 1);
    while (count > 1 && (double)(count - 1) / fps >= duration) count--;
    while (count < QVL_MAX_FRAMES && (double)count / fps < duration) count++;
    return count;
}

/* Bounds change the distance of the times, never the part of the clip that they cover. */
static int64_t count_steps(const qvl_frame_choice *s, const qvl_timeline *line, double *fps) {
    int64_t count = s->fps != 0 ? count_times(line->duration, s->fps) : line->count, wanted;
    *fps = s->fps != 0 ? s->fps : line->rate;
    if (s->num_frames)
        wanted = s->num_frames;
    else
        wanted = at_most(at_least(count, at_most(s->min_frames, line->count)), s->max_frames);
    if (wanted != count && line->duration > 0) *fps = (double)wanted / line->duration;
    return wanted;
}

/* ---- both */

static qvl_status allocate(int64_t count, qvl_picks *picks, qvl_error *error) {
    picks->indices = qvl_alloc((size_t)count, sizeof *picks->indices);
    picks->seconds = qvl_alloc((size_t)count, sizeof *picks->seconds);
    if (!picks->indices || !picks->seconds) {
        qvl_picks_free(picks);
        return qvl_fail_memory(error, "frame numbers", (size_t)count, sizeof *picks->indices);
    }
    picks->count = (size_t)count;
    return QVL_OK;
}

static qvl_status pick_at_times(const qvl_frame_choice *s, const qvl_timeline *line, qvl_picks *picks,
                                qvl_error *error) {
    double fps;
    qvl_status status = allocate(count_steps(s, line, &fps), picks, error);
    if (status) return status;
    for (size_t i = 0; i < picks->count; i++) {
        picks->seconds[i] = (double)i / fps;
        picks->indices[i] = frame_at(line, picks->seconds[i]);
    }
    picks->fps = fps;
    return QVL_OK;
}

qvl_status qvl_frames_pick(const qvl_frame_choice *s, const qvl_timeline *line, qvl_picks *picks,
                           qvl_error *error) {
    *picks = (qvl_picks){0};
    if (line->count < 1 || line->count > QVL_MAX_FRAMES)
        return qvl_fail(error, line->count < 1 ? QVL_ERROR_FORMAT : QVL_ERROR_LIMIT,
                        "the clip has %" PRId64 " frames; allowed are 1 to %" PRId64, line->count, QVL_MAX_FRAMES);
    if (s->preset == QVL_PRESET_MLX && !s->all) return pick_at_times(s, line, picks, error);
    int64_t count = s->all ? line->count : count_frames(s, line);
    qvl_status status = allocate(count, picks, error);
    if (status) return status;
    spread(line->count - 1, count, picks->indices);
    for (size_t i = 0; i < picks->count; i++) picks->seconds[i] = seconds_of(line, picks->indices[i]);
    if (!s->all && !s->num_frames) picks->fps = s->fps;
    return QVL_OK;
}

void qvl_picks_free(qvl_picks *picks) {
    qvl_free(picks->indices);
    qvl_free(picks->seconds);
    *picks = (qvl_picks){0};
}

void qvl_group_seconds(const double *seconds, size_t count, size_t temporal, double *labels) {
    for (size_t first = 0; first < count; first += temporal) {
        size_t last = first + temporal - 1;
        *labels++ = (seconds[first] + seconds[last < count ? last : count - 1]) / 2;
    }
}
