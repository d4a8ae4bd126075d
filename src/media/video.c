/* A frame is found by its time where the index is sure that decoding gives the frames it has, each with its time, and
 * by counting from the start where it is not: then opening decodes the whole video once to learn its frames. */
#include "media/video.h"

#include "base/memory.h"
#include "media/media.h"
#include "media/video_decoder.h"
#include "media/video_picture.h"
#include "media/video_webp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Nearly twice the largest frame of H.264, HEVC and AV1, 8192 x 4352: decoders hold up to seventeen at once. */
#define MAX_FRAME_PIXELS ((int64_t)1 << 26)

/* Jumping ahead costs what is being decoded on all threads, and finding the place in the file. */
enum { WORTH_A_JUMP = 16 };

/* After so many patience is asked. */
enum { FRAMES_A_QUESTION = 16 };

/* EXIF's orientation by the signs of what a display matrix does to x and to y; degrees by EXIF's orientation. */
static const int32_t upright[4] = {1, 2, 4, 3}, sideways[4] = {5, 8, 6, 7};
static const int32_t rotations[9] = {0, 0, 0, 180, 180, 270, 90, 90, 270};

struct qvl_video {
    char *name;
    qvl_media_options options;
    qvl_log_fn log;
    void *log_user;
    qvl_video_info info;
    qvl_video_source source;
    qvl_video_index index;
    qvl_video_decoder decoder;
    qvl_video_converter converter;
    qvl_webp_clip *webp; /* instead of a demuxer and a decoder; NULL for all but WebP */
    AVRational unit;     /* of the index's times, in seconds */
    bool by_time;        /* how decoded frames are told apart; else by counting */
    bool can_jump;
    int64_t asked; /* the last frame that was asked for */
    int64_t count; /* of frames decoded, where they are counted */
    AVFrame *good, *ahead;
    int64_t good_number;  /* of the last good frame up to the one asked for, -1: none */
    int64_t ahead_number; /* of a good frame behind that one, -1: none */
    bool told;            /* the note on missing frames was given */
};

static void note(const qvl_video *video, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const qvl_video *video, const char *format, ...) {
    if (!video->log) return;
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    video->log(message, video->log_user);
}

bool qvl_video_sniff(const uint8_t *head, size_t count, const qvl_media_options *options) {
    bool webp = options && options->animation == QVL_ANIMATION_CLIP && qvl_webp_is_animated(head, count);
    return webp || qvl_video_container(head, count, options) != NULL;
}

const qvl_video_info *qvl_video_get_info(const qvl_video *video) {
    return &video->info;
}

double qvl_video_seconds(const qvl_video *video, int64_t frame) {
    const int64_t *times = video->index.times.values;
    return (double)(times[frame] - times[0]) * video->unit.num / video->unit.den;
}

/* ---- what the container says */

static const int32_t *display_matrix(const AVStream *stream) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)(const void *)data->data : NULL;
#else
    size_t size = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    return data && size >= 9 * sizeof(int32_t) ? (const int32_t *)(const void *)data : NULL;
#endif
}

/* The matrix takes (x, y) to (a x + c y, b x + d y), beside a shift. */
static int32_t orientation_of(const qvl_video *video) {
    const int32_t *matrix = display_matrix(video->source.stream);
    if (!matrix) return 1;
    int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (a && d && !b && !c) return upright[(a < 0) + 2 * (d < 0)];
    if (b && c && !a && !d) return sideways[(b < 0) + 2 * (c < 0)];
    note(video, "%.400s: its display matrix turns by no multiple of 90 degrees and is ignored", video->name);
    return 1;
}

static qvl_status check_size(const qvl_video *video, int64_t width, int64_t height, qvl_error *error) {
    int64_t limit = video->options.max_pixels ? video->options.max_pixels : QVL_DEFAULT_MAX_PIXELS, pixels;
    if (limit > MAX_FRAME_PIXELS) limit = MAX_FRAME_PIXELS;
    if (width < 1 || height < 1)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: damaged video: the size of its frames is %lld x %lld",
                        video->name, (long long)width, (long long)height);
    if (!qvl_mul_i64(width, height, &pixels) || pixels > limit)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%.400s: frames of %lld x %lld pixels; the limit is %lld pixels",
                        video->name, (long long)width, (long long)height, (long long)limit);
    return QVL_OK;
}

static qvl_status take_header(qvl_video *video, qvl_error *error) {
    const AVStream *stream = video->source.stream;
    const AVCodecParameters *codec = stream->codecpar;
    qvl_status status = check_size(video, codec->width, codec->height, error);
    if (status) return status;
    if (stream->time_base.num < 1 || stream->time_base.den < 1)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: damaged video: its unit of time is %d/%d s", video->name,
                        stream->time_base.num, stream->time_base.den);
    video->unit = stream->time_base;
    qvl_video_info *info = &video->info;
    info->format = video->source.format->iformat->name;
    info->codec = avcodec_get_name(codec->codec_id);
    info->stored_width = codec->width;
    info->stored_height = codec->height;
    info->orientation = orientation_of(video);
    info->rotation = rotations[info->orientation];
    info->oriented = info->orientation != 1 && video->options.orientation == QVL_ORIENTATION_APPLY;
    bool swap = info->oriented && info->orientation >= 5;
    info->width = swap ? codec->height : codec->width;
    info->height = swap ? codec->width : codec->height;
    info->header_frames = stream->nb_frames > 0 ? stream->nb_frames : 0;
    AVRational rate = stream->avg_frame_rate;
    bool known = rate.num > 0 && rate.den > 0;
    info->rate = known ? (qvl_rational){rate.num, rate.den} : (qvl_rational){0, 1};
    if (video->source.video_streams > 1)
        note(video, "%.400s: it has %d video streams; the first is read", video->name,
             video->source.video_streams);
    return QVL_OK;
}

/* ---- the frames */

static qvl_status open_decoder(qvl_video *video, qvl_error *error) {
    qvl_status status = qvl_video_source_rewind(&video->source, &video->options, error);
    /* Decoders add edges, and check the sum. */
    int64_t padded = (video->info.stored_width + 320) * (video->info.stored_height + 320);
    if (!status) status = qvl_video_decoder_open(&video->source, &video->index, padded, &video->decoder, error);
    return status;
}

/* Frames whose times do not go up get them from the rate. */
static void invent_times(qvl_video *video) {
    qvl_rational rate = video->info.rate;
    qvl_numbers *times = &video->index.times;
    for (int64_t i = 0; i < times->count; i++) times->values[i] = i;
    video->index.end = times->count;
    video->unit = rate.num ? (AVRational){(int)rate.den, (int)rate.num} : (AVRational){1, 24};
    note(video, "%.400s: its frames have no times in order; %s", video->name,
         rate.num ? "they are taken from its rate" : "24 frames a second are assumed for them");
}

/* The times of all frames that decoding gives. *ordered: they go up. index->sure: each is the time of its packet. */
static qvl_status decode_times(qvl_video *video, const qvl_patience *patience, bool *ordered, qvl_error *error) {
    qvl_video_index *index = &video->index;
    int64_t last = INT64_MIN, step = 1;
    *ordered = index->sure = true;
    for (bool found = true; found;) {
        qvl_status status = QVL_OK;
        if (index->times.count % FRAMES_A_QUESTION == 0) status = qvl_video_ask(patience, video->name, error);
        if (!status) status = qvl_video_decoder_next(&video->decoder, INT64_MIN, video->ahead, &found, error);
        if (status) return status;
        if (!found) break;
        int64_t time = video->ahead->best_effort_timestamp;
        index->sure = index->sure && video->ahead->pts == time;
        if (time == AV_NOPTS_VALUE && index->times.count) time = last + step; /* AVI's last frame has none */
        *ordered = *ordered && qvl_is_video_time(time) && time > last;
        if (*ordered && index->times.count) step = time - last;
        last = *ordered ? time : 0;
        if (!qvl_numbers_push(&index->times, time))
            return qvl_fail_memory(error, video->name, (size_t)index->times.count, sizeof time);
    }
    index->sure = index->sure && *ordered;
    return QVL_OK;
}

/* The index anew, from the frames that decoding gives. */
static qvl_status index_by_decoding(qvl_video *video, const qvl_patience *patience, qvl_error *error) {
    video->index.times.count = 0;
    bool ordered = false;
    qvl_status status = open_decoder(video, error);
    if (!status) status = decode_times(video, patience, &ordered, error);
    av_frame_unref(video->ahead);
    qvl_video_decoder_close(&video->decoder);
    if (!status && !ordered) invent_times(video);
    if (!status && ordered) qvl_video_index_sort(&video->index);
    return status;
}

static qvl_status make_index(qvl_video *video, const qvl_patience *patience, qvl_error *error) {
    qvl_video_index *index = &video->index;
    qvl_status status = qvl_video_index_read(&video->source, patience, index, error);
    if (!status && (!index->sure || !qvl_video_index_sort(index)))
        status = index_by_decoding(video, patience, error);
    if (status) return status;
    if (!index->times.count)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: the video has no frame%s", video->name,
                        index->cut            ? "; the file is cut"
                        : index->packet_count ? " that can be decoded"
                                              : "");
    video->by_time = video->can_jump = index->sure;
    return QVL_OK;
}

/* Even steps, but for the rounding of each time to its unit. */
static bool has_variable_rate(const qvl_numbers *times) {
    int64_t n = times->count;
    if (n < 3) return false;
    double step = (double)(times->values[n - 1] - times->values[0]) / (double)(n - 1);
    for (int64_t i = 1; i < n; i++)
        if (fabs((double)(times->values[i] - times->values[0]) - step * (double)i) > 1.01) return true;
    return false;
}

static void take_frames(qvl_video *video) {
    const qvl_video_index *index = &video->index;
    qvl_video_info *info = &video->info;
    const int64_t *times = index->times.values;
    int64_t n = index->times.count;
    info->frame_count = n;
    info->variable_rate = has_variable_rate(&index->times);
    int64_t shown = times[n - 1] - times[0], step = n > 1 ? shown / (n - 1) : 0;
    if (index->end > times[n - 1])
        shown = index->end - times[0];
    else
        shown += step;
    info->duration = (double)shown * video->unit.num / video->unit.den;
    if (shown == 0 && info->rate.num) info->duration = (double)info->rate.den / (double)info->rate.num;
    if (index->cut)
        note(video, "%.400s: the file is cut or damaged; %lld frames of it can be read", video->name,
             (long long)n);
    else if (info->header_frames && info->header_frames != n && !index->discarded)
        note(video, "%.400s: its header counts %lld frames; there are %lld", video->name,
             (long long)info->header_frames, (long long)n);
}

/* ---- opening and closing */

static bool is_webp_clip(const qvl_video *video) {
    uint8_t head[32];
    int64_t count = qvl_video_source_bytes(&video->source, 0, head, sizeof head);
    return count > 0 && video->options.animation == QVL_ANIMATION_CLIP &&
           qvl_webp_is_animated(head, (size_t)count);
}

static qvl_status open_webp(qvl_video *video, qvl_error *error) {
    qvl_video_info *info = &video->info;
    qvl_video_index *index = &video->index;
    qvl_video_source *source = &video->source;
    *info = (qvl_video_info){.format = "webp", .codec = "webp", .orientation = 1, .rate = {0, 1}};
    qvl_status status = qvl_video_source_load(source, error);
    if (!status)
        status = qvl_webp_clip_open(source->bytes, (size_t)source->size, video->name, &index->times, &index->end,
                                    &info->width, &info->height, &video->webp, error);
    if (!status) status = check_size(video, info->width, info->height, error);
    if (status) return status;
    info->stored_width = info->width;
    info->stored_height = info->height;
    video->unit = (AVRational){1, 1000};
    if (index->end > 0) info->rate = (qvl_rational){1000 * index->times.count, index->end};
    take_frames(video);
    return QVL_OK;
}

static qvl_status open_video(qvl_video *video, const qvl_input *input, const qvl_media_options *options,
                             const qvl_patience *patience, qvl_error *error) {
    qvl_status status = qvl_media_options_take(options, video->name, &video->options, error);
    if (!status) status = qvl_video_source_open(input, video->name, &video->source, error);
    if (!status && is_webp_clip(video)) return open_webp(video, error);
    if (!status) status = qvl_video_source_rewind(&video->source, &video->options, error);
    if (!status) status = take_header(video, error);
    if (!status) status = make_index(video, patience, error);
    if (!status) take_frames(video);
    return status ? status : open_decoder(video, error);
}

qvl_status qvl_video_open(const qvl_input *input, const qvl_media_options *options, qvl_log_fn log, void *log_user,
                          const qvl_patience *patience, qvl_video **video, qvl_error *error) {
    *video = NULL;
    if (!input) return qvl_fail(error, QVL_ERROR_ARGUMENT, "input is NULL");
    const char *name = input->name ? input->name : "video in memory";
    if (input->kind != QVL_INPUT_FILE && input->kind != QVL_INPUT_BYTES)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: a video is a file or bytes; input kind is %d", name,
                        (int)input->kind);
    if (input->kind == QVL_INPUT_FILE && !input->name)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the input is a file without a name");
    if (input->kind == QVL_INPUT_FILE && strcmp(name, "-") == 0) name = "standard input";
    qvl_video *v = qvl_calloc(1, sizeof *v);
    if (!v) return qvl_fail_memory(error, name, 1, sizeof *v);
    v->source.fd = -1;
    v->log = log;
    v->log_user = log_user;
    v->good_number = v->ahead_number = -1;
    v->name = qvl_strdup(name);
    v->good = av_frame_alloc();
    v->ahead = av_frame_alloc();
    qvl_status status = v->name && v->good && v->ahead ? open_video(v, input, options, patience, error)
                                                       : qvl_fail_memory(error, name, 1, sizeof *v);
    if (status) qvl_video_close(&v);
    *video = v;
    return status;
}

void qvl_video_close(qvl_video **video) {
    if (!video || !*video) return;
    qvl_video *v = *video;
    qvl_webp_clip_close(&v->webp);
    qvl_video_converter_close(&v->converter);
    qvl_video_decoder_close(&v->decoder);
    qvl_video_index_free(&v->index);
    qvl_video_source_close(&v->source);
    av_frame_free(&v->good);
    av_frame_free(&v->ahead);
    qvl_free(v->name);
    qvl_free(v);
    *video = NULL;
}

/* ---- finding a frame */

static qvl_status start_again(qvl_video *video, qvl_error *error) {
    qvl_video_decoder_close(&video->decoder);
    video->count = 0;
    return open_decoder(video, error);
}

/* Goes on at a key frame where that leaves much out. */
static qvl_status jump(qvl_video *video, int64_t frame, qvl_error *error) {
    if (!video->can_jump || frame <= video->ahead_number) return QVL_OK;
    const qvl_video_key *key = qvl_video_index_key(&video->index, frame);
    if (!key || key->packet < video->decoder.number + WORTH_A_JUMP) return QVL_OK;
    if (qvl_video_decoder_jump(&video->decoder, key)) return QVL_OK;
    video->can_jump = false;
    return start_again(video, error);
}

/* The number of the frame that was decoded last; -1: it is none of the index's. */
static int64_t number_of(qvl_video *video, const AVFrame *frame) {
    if (video->by_time) return qvl_video_index_find(&video->index, frame->pts);
    return video->count < video->info.frame_count ? video->count++ : -1;
}

static bool is_good(const qvl_video *video, const AVFrame *frame) {
    if (frame->flags & AV_FRAME_FLAG_CORRUPT || frame->decode_error_flags) return false;
    return !video->by_time || !qvl_video_index_is_broken(&video->index, frame->pts);
}

/* Decodes the next good frame to `ahead`; ahead_number stays -1 at the end. */
static qvl_status look_ahead(qvl_video *video, int64_t frame, qvl_error *error) {
    int64_t wanted = video->by_time ? video->index.times.values[frame] : INT64_MIN;
    for (bool found = true; found && video->ahead_number < 0;) {
        qvl_status status = qvl_video_decoder_next(&video->decoder, wanted, video->ahead, &found, error);
        if (status) return status;
        if (!found) break;
        int64_t number = number_of(video, video->ahead);
        if (number > video->good_number && is_good(video, video->ahead)) video->ahead_number = number;
    }
    return QVL_OK;
}

/* Brings the frame, or what stands in for it, to `good`. */
static qvl_status find(qvl_video *video, int64_t frame, qvl_error *error) {
    qvl_status status = video->good_number < frame ? jump(video, frame, error) : QVL_OK;
    while (!status && video->good_number < frame) {
        if (video->ahead_number < 0) status = look_ahead(video, frame, error);
        if (status || video->ahead_number < 0) break;
        if (video->ahead_number > frame && video->good_number >= 0) break;
        av_frame_unref(video->good);
        av_frame_move_ref(video->good, video->ahead);
        video->good_number = video->ahead_number;
        video->ahead_number = -1;
    }
    return status;
}

static qvl_status check_frame(const qvl_video *video, qvl_error *error) {
    const AVFrame *frame = video->good;
    if (frame->width == video->info.stored_width && frame->height == video->info.stored_height) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_UNSUPPORTED,
                    "%.400s: frame %lld is %d x %d; the video's are %lld x %lld, and all must have one size",
                    video->name, (long long)video->good_number, frame->width, frame->height,
                    (long long)video->info.stored_width, (long long)video->info.stored_height);
}

static qvl_status convert(qvl_video *video, qvl_image *image, qvl_error *error) {
    const qvl_video_info *info = &video->info;
    qvl_canvas canvas = {.options = &video->options, .name = video->name, .error = error};
    qvl_status status =
        qvl_canvas_open(&canvas, info->format, info->stored_width, info->stored_height, info->orientation);
    if (!status)
        status = video->webp ? qvl_webp_clip_draw(video->webp, video->asked, &canvas)
                             : qvl_video_convert(&video->converter, video->good, &canvas);
    qvl_canvas_close(&canvas, !status);
    *image = canvas.image;
    return status;
}

/* A frame is broken, and not everything before it was decoded: its nearest good neighbour is to be found all the same.
 * From now on nothing is left out. */
static qvl_status find_neighbour(qvl_video *video, int64_t frame, qvl_error *error) {
    av_frame_unref(video->good);
    av_frame_unref(video->ahead);
    video->good_number = video->ahead_number = -1;
    video->can_jump = false;
    qvl_status status = start_again(video, error);
    if (status) return status;
    video->decoder.can_skip = false;
    return find(video, frame, error);
}

qvl_status qvl_video_frame(qvl_video *video, int64_t frame, qvl_image *image, qvl_error *error) {
    *image = (qvl_image){0};
    int64_t n = video->info.frame_count;
    if (frame < video->asked || frame >= n)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: frame %lld; allowed are %lld to %lld, going forward",
                        video->name, (long long)frame, (long long)video->asked, (long long)n - 1);
    video->asked = frame;
    if (video->webp) return convert(video, image, error);
    qvl_status status = find(video, frame, error);
    if (!status && video->good_number != frame && (video->can_jump || video->decoder.can_skip))
        status = find_neighbour(video, frame, error);
    if (status) return status;
    if (video->good_number < 0)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: none of its frames can be decoded", video->name);
    if (video->good_number != frame && !video->told) {
        note(video, "%.400s: frame %lld cannot be decoded; frame %lld stands in for it, and so on for others",
             video->name, (long long)frame, (long long)video->good_number);
        video->told = true;
    }
    status = check_frame(video, error);
    return status ? status : convert(video, image, error);
}
