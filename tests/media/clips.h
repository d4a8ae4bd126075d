/* Clips made for tests by FFmpeg's encoders, each frame with its number drawn in.
 *
 * A frame is four by four blocks. The corners are red, green, blue and white (upper left, upper right, lower left,
 * lower right); the other twelve are the bits of the number, light for 1, row by row, the lowest first. That is
 * legible behind any compression, and upside down. */
#ifndef TESTS_MEDIA_CLIPS_H
#define TESTS_MEDIA_CLIPS_H

#include "media/support.h"
#include "media/video.h"

#include <libavutil/pixfmt.h>
#include <libavutil/rational.h>

typedef struct clip_spec {
    const char *muxer, *encoder; /* FFmpeg's names; "matroska" and "libx264" where NULL */
    const char *options;         /* of the encoder: "preset=ultrafast:bf=3" */
    const char *muxer_options;   /* "movflags=faststart" */
    int width, height;           /* 64 x 48 where 0 */
    enum AVPixelFormat format;   /* AV_PIX_FMT_YUV420P where 0, which is that */
    int frames;
    AVRational rate;       /* 25 where 0 */
    const int64_t *times;  /* [frames] in thousandths of a second; NULL: even steps of 1 / rate */
    int64_t first;         /* even steps start with this one; negative ones are cut off by MP4's edit list */
    int gop;               /* frames from key to key; 12 where 0 */
    const int32_t *matrix; /* [9] display matrix; NULL */
    int repeat;            /* the coded frames are written so often, one time after the other; 0 is once */
    bool still;            /* all frames show number 0: they take little to code */
    bool audio;            /* a second stream of silence */
    bool no_video;         /* without the frames */
} clip_spec;

/* The file's bytes. */
bytes make_clip(const clip_spec *spec);
/* Writes them to a new file under /tmp, whose name comes back; the caller unlinks and frees it. */
char *write_clip(const bytes *clip);

/* What a video notes. */
typedef struct notes {
    int count;
    char last[1024];
} notes;

/* Opens a clip that must be good, and reads a frame that must be there. options and taken may be NULL. */
qvl_video *open_clip(const bytes *clip, const qvl_media_options *options, notes *taken);
qvl_image frame_of(qvl_video *video, int64_t frame);
/* Refused with this status, by a message that names the clip and has this part. */
void refuse_clip(const bytes *clip, const qvl_media_options *options, qvl_status status, const char *part);

/* What a frame shows. */
typedef enum corner { CORNER_RED, CORNER_GREEN, CORNER_BLUE, CORNER_WHITE, CORNER_OTHER } corner;
int seen_number(const qvl_image *image);
/* 0: upper left, 1: upper right, 2: lower left, 3: lower right. */
corner seen_corner(const qvl_image *image, int which);

#endif
