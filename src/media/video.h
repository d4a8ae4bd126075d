/* Videos: a container's frames by number, as RGB8. FFmpeg demuxes, decodes and converts (docs/VIDEO.md).
 *
 * A frame's number is its place in order of presentation among the frames that decoding gives, from 0. Opening reads
 * all packets and decodes none where they tell the frames and their times; what is kept of them is small arrays.
 * Frames are decoded only up to the one asked for, and only that one is converted. */
#ifndef QVL_MEDIA_VIDEO_H
#define QVL_MEDIA_VIDEO_H

#include "base/error.h"
#include "base/wait.h"

typedef struct qvl_video qvl_video; /* an open container; one owner */

typedef struct qvl_rational {
    int64_t num, den;
} qvl_rational;

typedef struct qvl_video_info {
    const char *format, *codec;          /* FFmpeg's names: "mov,mp4,m4a,3gp,3g2,mj2", "h264"; static strings */
    int64_t width, height;               /* of a frame, upright where it is turned */
    int64_t stored_width, stored_height; /* as coded */
    int32_t orientation;                 /* of the display matrix, as EXIF's value 1..8: mirrored ones are even */
    int32_t rotation;      /* that it takes to be upright: degrees clockwise, 0, 90, 180 or 270, after mirroring */
    bool oriented;         /* frames are turned: orientation is not 1 and the policy applies it */
    int64_t frame_count;   /* frames there really are, at least 1 */
    int64_t header_frames; /* what the header says; 0: nothing */
    qvl_rational rate;     /* average, as the container has it: 30000/1001; 0/1: unknown */
    double duration;       /* seconds from the first frame to the end of the last */
    bool variable_rate;    /* the steps between frames differ by more than rounding of their times */
} qvl_video_info;

/* Whether the first bytes of a file are those of a video container or, where the options ask for clips of animations,
 * of a format that has them. options may be NULL. 64 bytes are enough, 1 KiB is better (MPEG-TS). */
bool qvl_video_sniff(const uint8_t *head, size_t count, const qvl_media_options *options);

/* input: a file or bytes, which must stay until the close. Notes go to log (may be NULL), now and while frames are
 * read. options may be NULL; they are copied. patience (may be NULL) is asked while this call looks at all of the file,
 * every so many packets, or frames where it must decode; at its end the status is QVL_ERROR_CANCELLED.
 * *video belongs to the caller: qvl_video_close. */
qvl_status qvl_video_open(const qvl_input *input, const qvl_media_options *options, qvl_log_fn log, void *log_user,
                          const qvl_patience *patience, qvl_video **video, qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
void qvl_video_close(qvl_video **video);

/* Lives as long as the video. */
const qvl_video_info *qvl_video_get_info(const qvl_video *video);
/* When a frame (0 .. frame_count - 1) is presented: seconds after frame 0. */
double qvl_video_seconds(const qvl_video *video, int64_t frame);

/* A frame as RGB8, upright, and what it was stored as. Numbers must not go down from call to call; the same one again
 * is allowed. What lies between is decoded, or jumped over where that is less work. A frame that is damaged or
 * missing is replaced by the nearest good one before it, else after it, with one note for all of them.
 * *image belongs to the caller: qvl_image_free. */
qvl_status qvl_video_frame(qvl_video *video, int64_t frame, qvl_image *image, qvl_error *error);

#endif
