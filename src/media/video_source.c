#define _GNU_SOURCE /* O_CLOEXEC */
#include "media/video_source.h"

#include "base/file.h"
#include "base/memory.h"
#include "media/media.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 1024, BUFFER_BYTES = 65536 };

/* ---- which container */

static const struct {
    const char *demuxer;
    size_t offset; /* of the signature */
    const char *signature;
    size_t length;
} containers[] = {
    {"mov", 4, "ftyp", 4},
    {"mov", 4, "moov", 4},
    {"mov", 4, "mdat", 4},
    {"mov", 4, "wide", 4},
    {"matroska", 0, "\x1a\x45\xdf\xa3", 4},
    {"avi", 8, "AVI ", 4},
    {"flv", 0, "FLV\1", 4},
    {"ogg", 0, "OggS", 4},
    {"asf", 0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11", 8},
    {"ivf", 0, "DKIF", 4},
    {"mpeg", 0, "\0\0\1\xba", 4},
};

/* Brands of pictures, and of raw files of cameras, that begin as MP4 does. */
static const char picture_brands[][5] = {"avif", "avis", "heic", "heix", "heim", "heis", "hevc",
                                         "hevx", "hevm", "hevs", "mif1", "msf1", "crx "};

static bool is_picture(const uint8_t *head, size_t count) {
    if (count < 12 || memcmp(head + 4, "ftyp", 4) != 0) return false;
    for (size_t i = 0; i < sizeof picture_brands / sizeof *picture_brands; i++)
        if (memcmp(head + 8, picture_brands[i], 4) == 0) return true;
    return false;
}

/* Packets of MPEG-TS begin with 0x47; on discs four bytes are put before each. */
static bool is_transport_stream(const uint8_t *head, size_t count) {
    for (size_t step = 188, start = 0; step <= 192; step += 4, start += 4) {
        size_t at = start, packets = 0;
        while (at < count && head[at] == 0x47) {
            at += step;
            packets++;
        }
        if (at >= count && packets >= 3) return true;
    }
    return false;
}

static const char *demuxer_name(const uint8_t *head, size_t count, const qvl_media_options *options) {
    if (is_picture(head, count)) return NULL;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        if (count >= containers[i].offset + containers[i].length &&
            memcmp(head + containers[i].offset, containers[i].signature, containers[i].length) == 0)
            return containers[i].demuxer;
    bool clips = options && options->animation == QVL_ANIMATION_CLIP;
    if (clips && count >= 6 && (memcmp(head, "GIF87a", 6) == 0 || memcmp(head, "GIF89a", 6) == 0)) return "gif";
    return is_transport_stream(head, count) ? "mpegts" : NULL;
}

const AVInputFormat *qvl_video_container(const uint8_t *head, size_t count, const qvl_media_options *options) {
    const char *name = demuxer_name(head, count, options);
    return name ? av_find_input_format(name) : NULL;
}

/* ---- bytes for the demuxer */

int64_t qvl_video_source_bytes(const qvl_video_source *source, int64_t position, void *out, size_t wanted) {
    int64_t left = source->size - position;
    if (left <= 0) return 0;
    size_t count = wanted < (uint64_t)left ? wanted : (size_t)left;
    if (source->fd < 0) {
        memcpy(out, source->bytes + position, count);
        return (int64_t)count;
    }
    ssize_t got;
    do got = pread(source->fd, out, count, position);
    while (got < 0 && errno == EINTR);
    return got;
}

static int read_bytes(void *opaque, uint8_t *out, int wanted) {
    qvl_video_source *source = opaque;
    int64_t got = qvl_video_source_bytes(source, source->position, out, (size_t)wanted);
    if (got < 0) return AVERROR(errno);
    source->position += got;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek_bytes(void *opaque, int64_t offset, int whence) {
    qvl_video_source *source = opaque;
    whence &= ~AVSEEK_FORCE;
    if ((whence == AVSEEK_SIZE || whence == SEEK_END) && !source->tells_size) return AVERROR(ENOSYS);
    if (whence == AVSEEK_SIZE) return source->size;
    int64_t base = whence == SEEK_CUR ? source->position : whence == SEEK_END ? source->size : 0, to;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) return AVERROR(EINVAL);
    source->position = to;
    return to;
}

/* Other files, which a container may name, are never opened. */
static int refuse_file(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options) {
    (void)format, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

static qvl_status open_file(const char *path, qvl_video_source *source, qvl_error *error) {
    source->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0) return qvl_fail(error, QVL_ERROR_IO, "cannot open %.400s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(source->fd, &st) != 0)
        return qvl_fail(error, QVL_ERROR_IO, "cannot read %.400s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return qvl_fail(error, QVL_ERROR_IO, "cannot read %.400s as a video: it is not a regular file", path);
    source->size = st.st_size;
    return QVL_OK;
}

qvl_status qvl_video_source_open(const qvl_input *input, const char *name, qvl_video_source *source,
                                 qvl_error *error) {
    *source = (qvl_video_source){.name = name, .fd = -1};
    size_t count = input->byte_count;
    if (input->kind == QVL_INPUT_FILE) {
        if (strcmp(input->name, "-") != 0) return open_file(input->name, source, error);
        qvl_status status = qvl_file_read("-", QVL_MAX_FILE_BYTES, &source->owned, &count, error);
        if (status) return status;
        source->bytes = source->owned;
    } else {
        source->bytes = input->bytes;
        if (!source->bytes && count) return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: bytes are NULL", name);
    }
    source->size = (int64_t)count;
    return QVL_OK;
}

qvl_status qvl_video_source_load(qvl_video_source *source, qvl_error *error) {
    if (source->fd < 0) return QVL_OK;
    if ((uint64_t)source->size > QVL_MAX_FILE_BYTES)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%.400s has %lld bytes; the limit for animations is %zu",
                        source->name, (long long)source->size, QVL_MAX_FILE_BYTES);
    size_t size = (size_t)source->size;
    source->owned = qvl_alloc(size, 1);
    if (!source->owned) return qvl_fail_memory(error, source->name, size, 1);
    for (int64_t at = 0, got; at < source->size; at += got) {
        got = qvl_video_source_bytes(source, at, source->owned + at, size - (size_t)at);
        if (got < 0) return qvl_fail(error, QVL_ERROR_IO, "cannot read %.400s: %s", source->name, strerror(errno));
        if (got == 0) source->size = at; /* it became shorter meanwhile */
    }
    close(source->fd);
    source->fd = -1;
    source->bytes = source->owned;
    return QVL_OK;
}

static void close_demuxer(qvl_video_source *source) {
    avformat_close_input(&source->format);
    if (source->io) av_freep(&source->io->buffer);
    avio_context_free(&source->io);
    source->stream = NULL;
    source->position = 0;
}

void qvl_video_source_close(qvl_video_source *source) {
    close_demuxer(source);
    if (source->fd >= 0) close(source->fd);
    source->fd = -1;
    qvl_free(source->owned);
    source->owned = NULL;
}

/* ---- the demuxer */

static bool is_mp4(const AVInputFormat *container) {
    return strncmp(container->name, "mov", 3) == 0;
}

static qvl_status fail_opening(const qvl_video_source *source, const AVInputFormat *container, int code,
                               qvl_error *error) {
    if (code == AVERROR(ENOMEM))
        return qvl_fail(error, QVL_ERROR_MEMORY, "%.400s: out of memory in opening the video", source->name);
    if (is_mp4(container))
        return qvl_fail(error, QVL_ERROR_FORMAT,
                        "%.400s: damaged MP4 or QuickTime: its index (moov) is missing or broken; a recording or "
                        "download that was cut short has none",
                        source->name);
    return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: damaged video (%s): its header cannot be read", source->name,
                    container->name);
}

/* Opens a demuxer on the bytes. What it logs is too unimportant to be printed: `max_streams` is the number that is
 * added, and a sensible limit as well. */
static int open_demuxer(qvl_video_source *source, const AVInputFormat *container) {
    uint8_t *buffer = av_malloc(BUFFER_BYTES);
    if (buffer) source->io = avio_alloc_context(buffer, BUFFER_BYTES, 0, source, read_bytes, NULL, seek_bytes);
    if (!source->io) {
        av_free(buffer);
        return AVERROR(ENOMEM);
    }
    source->format = avformat_alloc_context();
    if (!source->format) return AVERROR(ENOMEM);
    AVFormatContext *format = source->format;
    source->quiet = *format->av_class;
    source->quiet.log_level_offset_offset = (int)offsetof(AVFormatContext, max_streams);
    format->av_class = &source->quiet;
    format->max_streams = QVL_FFMPEG_SILENT;
    format->pb = source->io;
    format->io_open = refuse_file;
    return avformat_open_input(&source->format, NULL, container, NULL);
}

/* Lets the demuxer look into the streams: rates and sizes that the header lacks. */
static int look_into_streams(AVFormatContext *format) {
    unsigned count = format->nb_streams;
    AVDictionary **quiet = av_calloc(count + 1, sizeof *quiet);
    if (!quiet) return AVERROR(ENOMEM);
    for (unsigned i = 0; i < count; i++) av_dict_set_int(&quiet[i], "log_level_offset", QVL_FFMPEG_SILENT, 0);
    int code = avformat_find_stream_info(format, quiet);
    for (unsigned i = 0; i < count; i++) av_dict_free(&quiet[i]);
    av_free(quiet);
    return code;
}

/* The first stream of moving pictures; covers and previews are none. */
static qvl_status choose_stream(qvl_video_source *source, qvl_error *error) {
    AVFormatContext *format = source->format;
    const int still = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
    bool pictures = false, sound = false;
    source->video_streams = 0;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        AVStream *stream = format->streams[i];
        bool video = stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO, moving = !(stream->disposition & still);
        if (video && moving && source->video_streams++ == 0) source->stream = stream;
        pictures = pictures || (video && !moving);
        sound = sound || stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        stream->discard = AVDISCARD_ALL;
    }
    if (!source->stream)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: it has no video stream%s", source->name,
                        pictures ? ", only a cover picture"
                        : sound  ? ", only sound"
                                 : "");
    source->stream->discard = AVDISCARD_DEFAULT;
    return QVL_OK;
}

qvl_status qvl_video_source_rewind(qvl_video_source *source, const qvl_media_options *options, qvl_error *error) {
    close_demuxer(source);
    uint8_t head[HEAD_BYTES];
    int count = read_bytes(source, head, HEAD_BYTES);
    if (count == AVERROR_EOF) return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: empty, 0 bytes", source->name);
    if (count < 0)
        return qvl_fail(error, QVL_ERROR_IO, "cannot read %.400s: %s", source->name, strerror(AVUNERROR(count)));
    source->position = 0;
    const AVInputFormat *container = qvl_video_container(head, (size_t)count, options);
    if (!container)
        return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: not a video qvl reads; it reads " QVL_READABLE_VIDEOS,
                        source->name);
    if (is_mp4(container)) {
        qvl_status status = qvl_video_check_mp4(source, error);
        if (status) return status;
    }
    int code = open_demuxer(source, container);
    if (code >= 0) code = look_into_streams(source->format);
    if (code < 0) return fail_opening(source, container, code, error);
    return choose_stream(source, error);
}

int qvl_video_source_read(qvl_video_source *source, AVPacket *packet) {
    for (;;) {
        int code = av_read_frame(source->format, packet);
        if (code < 0) return code;
        if (packet->stream_index == source->stream->index && packet->size > 0) return 0;
        av_packet_unref(packet);
    }
}
