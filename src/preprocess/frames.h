/* Which frames of a clip are taken, and when they are shown. Pure: no pixels, no files. */
#ifndef QVL_PREPROCESS_FRAMES_H
#define QVL_PREPROCESS_FRAMES_H

#include "model/config.h"

/* The options for one clip: what its input says comes before those of the call. Contradictory and impossible values
 * are refused. */
qvl_status qvl_clip_options_take(const qvl_preprocess_options *options, const qvl_input *input,
                                 qvl_clip_options *own, qvl_error *error);

/* How frames are chosen: the settings in force. */
typedef struct qvl_frame_choice {
    qvl_preset preset;
    bool all;           /* every frame, as it is */
    double fps;         /* frames to take a second; 0: none is said */
    int64_t num_frames; /* exactly so many; 0: by fps */
    int64_t min_frames, max_frames;
} qvl_frame_choice;

/* own: as qvl_clip_options_take gives them. */
qvl_frame_choice qvl_frame_choice_of(const qvl_video_config *video, qvl_preset preset,
                                     const qvl_clip_options *own);

/* The frames there are. */
typedef struct qvl_timeline {
    int64_t count;                                      /* 1..QVL_MAX_FRAMES */
    double rate;                                        /* average, > 0 and finite */
    double duration;                                    /* seconds, from the first frame to the end of the last */
    double (*seconds)(const void *user, int64_t frame); /* when a frame is shown; NULL: frame / rate */
    const void *user;
} qvl_timeline;

/* Frames that were taken, in order; the same one may come more than once. */
typedef struct qvl_picks {
    size_t count;     /* >= 1 */
    int64_t *indices; /* [count] */
    double *seconds;  /* [count], for labels */
    double fps;       /* that they were taken at; 0: not by time */
} qvl_picks;

/* *picks belongs to the caller: qvl_picks_free, which accepts a zeroed struct. */
qvl_status qvl_frames_pick(const qvl_frame_choice *choice, const qvl_timeline *timeline, qvl_picks *picks,
                           qvl_error *error);
void qvl_picks_free(qvl_picks *picks);

/* The label of each of ceil(count / temporal) groups: the mean of its first and last frame; the last frame of all is
 * repeated to fill the last group. */
void qvl_group_seconds(const double *seconds, size_t count, size_t temporal, double *labels);

#endif
