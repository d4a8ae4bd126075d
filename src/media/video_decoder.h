/* Frames of a source, one after the other. */
#ifndef QVL_MEDIA_VIDEO_DECODER_H
#define QVL_MEDIA_VIDEO_DECODER_H

#include "media/video_index.h"

#include <libavcodec/avcodec.h>

typedef struct qvl_video_decoder {
    qvl_video_source *source;
    const qvl_video_index *index;
    AVCodecContext *context;
    AVPacket *packet;
    bool pending;   /* the packet waits to be taken by FFmpeg */
    bool draining;  /* there are no more packets */
    int64_t number; /* of the next packet to be read */
    bool can_skip;  /* frames that no other refers to may be left out */
    int64_t failed; /* packets that could not be decoded */
} qvl_video_decoder;

/* A decoder for a rewound source of which `index` was read. max_pixels: of a frame. Ends with
 * qvl_video_decoder_close, also after a failure. */
qvl_status qvl_video_decoder_open(qvl_video_source *source, const qvl_video_index *index, int64_t max_pixels,
                                  qvl_video_decoder *decoder, qvl_error *error);
/* The next frame. Frames before the time `wanted` may be left out, where no other needs them. *found: false at the
 * end. Packets that cannot be decoded are counted and passed over. */
qvl_status qvl_video_decoder_next(qvl_video_decoder *decoder, int64_t wanted, AVFrame *frame, bool *found,
                                  qvl_error *error);
/* Goes on with a key that lies ahead. False: that did not work, and the source must be rewound. */
bool qvl_video_decoder_jump(qvl_video_decoder *decoder, const qvl_video_key *key);
/* The source was rewound: from the start again. */
void qvl_video_decoder_restart(qvl_video_decoder *decoder);
void qvl_video_decoder_close(qvl_video_decoder *decoder);

#endif
