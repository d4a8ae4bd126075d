/* A container as FFmpeg's demuxer sees it: where its bytes come from, which stream is read, its packets. */
#ifndef QVL_MEDIA_VIDEO_SOURCE_H
#define QVL_MEDIA_VIDEO_SOURCE_H

#include "base/error.h"

#include <libavformat/avformat.h>

/* Added to the level of FFmpeg's messages, which makes them less important than any that is printed, and together
 * they stay in the one byte that FFmpeg has for levels. Its log level and its callback belong to the whole process
 * and are left alone. */
#define QVL_FFMPEG_SILENT 128

typedef struct qvl_video_source {
    const char *name; /* for messages */
    int fd;           /* of a file; -1: the bytes */
    const uint8_t *bytes;
    int64_t size, position;
    bool tells_size; /* to the demuxer, which prints where packets are cut by it; searching needs it */
    uint8_t *owned;  /* standard input, read whole */
    AVIOContext *io;
    AVClass quiet; /* of format */
    AVFormatContext *format;
    AVStream *stream; /* the one that is read */
    int video_streams;
} qvl_video_source;

/* The demuxer for these first bytes, or NULL: animations count where they are to be clips. */
const AVInputFormat *qvl_video_container(const uint8_t *head, size_t count, const qvl_media_options *options);

/* Opens the input's bytes; name and the input's bytes must stay. Ends with qvl_video_source_close, also after a
 * failure. */
qvl_status qvl_video_source_open(const qvl_input *input, const char *name, qvl_video_source *source,
                                 qvl_error *error);
/* Brings all of a file to source->bytes. */
qvl_status qvl_video_source_load(qvl_video_source *source, qvl_error *error);
/* Starts reading packets at the first one, with a new demuxer. */
qvl_status qvl_video_source_rewind(qvl_video_source *source, const qvl_media_options *options, qvl_error *error);
/* What MP4's tables say they hold, against the size of the file: FFmpeg makes room for it before it looks for it. */
qvl_status qvl_video_check_mp4(qvl_video_source *source, qvl_error *error);
/* Up to `wanted` bytes from `position`; fewer at the end. -1: that failed, see errno. */
int64_t qvl_video_source_bytes(const qvl_video_source *source, int64_t position, void *out, size_t wanted);
/* The stream's next packet that holds data; AVERROR_EOF after the last one, else FFmpeg's error. */
int qvl_video_source_read(qvl_video_source *source, AVPacket *packet);
/* Accepts a closed source, and one that was never opened whose fd is -1. */
void qvl_video_source_close(qvl_video_source *source);

#endif
