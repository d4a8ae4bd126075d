/* Where frames come from: one picture, a list of them, or a video file. */
#ifndef QVL_PREPROCESS_FOOTAGE_H
#define QVL_PREPROCESS_FOOTAGE_H

#include "media/video.h"
#include "preprocess/clip.h"

typedef struct qvl_footage {
    const qvl_model *model;
    const qvl_input *input; /* the caller's, or &held */
    qvl_input held;         /* of bytes, where the input could be read only once */
    uint8_t *bytes;
    qvl_media_options media;
    qvl_video *video; /* NULL: pictures */
    bool is_clip;
    int64_t count;   /* frames, >= 1 */
    qvl_image shape; /* what every frame is, without pixels */
} qvl_footage;

/* Headers only. Messages begin with the input's name. model and input must outlive it. patience: of qvl_video_open.
 * footage belongs to the caller, on failure too: qvl_footage_close, which accepts a zeroed struct. */
qvl_status qvl_footage_open(const qvl_model *model, const qvl_input *input, qvl_reading reading,
                            const qvl_media_options *media, const qvl_patience *patience, qvl_footage *footage,
                            qvl_error *error);
void qvl_footage_close(qvl_footage *footage);

/* A frame in 0..count-1, not below that of the call before; of the size that was promised. *image belongs to the
 * caller: qvl_image_free. */
qvl_status qvl_footage_frame(qvl_footage *footage, int64_t frame, qvl_image *image, qvl_error *error);

#endif
