/* config.json and the preprocessor files of a folder. */
#ifndef QVL_MODEL_CONFIG_H
#define QVL_MODEL_CONFIG_H

#include "base/error.h"

/* vision_config. All sizes are checked: positive, head_dim a multiple of 4, every weight matrix below 2^31
 * elements. */
typedef struct qvl_vision_config {
    int32_t depth, hidden_size, num_heads, head_dim, intermediate_size, out_hidden_size;
    int32_t in_channels, patch_size, temporal_patch_size, spatial_merge_size;
    int32_t num_position_embeddings, position_side; /* side = floor(sqrt(entries)) */
    int32_t deepstack_count;
    int32_t deepstack_indexes[QVL_MAX_DEEPSTACK]; /* increasing, below depth */
    float rope_theta;
} qvl_vision_config;

/* What the preprocessor files say about pictures. */
typedef struct qvl_processor_config {
    qvl_limits limits;
    char source[64]; /* file the limits come from, or "class default" */
    float mean[3], std[3];
    double rescale_factor;
} qvl_processor_config;

/* Frames of a clip that can be taken, and of a source: counts and products of them stay far from overflow. */
#define QVL_MAX_FRAMES ((int64_t)1 << 24)

/* What they say about videos. limits are of frames x height x width; preprocessor_config.json is the source where a
 * folder has nothing but what it says of pictures. */
typedef struct qvl_video_config {
    qvl_processor_config processor;
    bool sample;                    /* false: all frames are taken */
    double fps;                     /* frames to take a second; 0: none is said */
    int64_t num_frames;             /* to take, if fps is 0; 0: none is said either */
    int64_t min_frames, max_frames; /* bounds of what fps gives */
    bool frame_cap;                 /* a frame has a limit of its own */
    int64_t max_frame_tokens;       /* of frame_cap */
} qvl_video_config;

typedef struct qvl_config {
    char model_type[64];
    qvl_vision_config vision;
    qvl_processor_config processor; /* of pictures */
    qvl_video_config video;
} qvl_config;

/* The image_processor of processor_config.json is read if it is there, else preprocessor_config.json, else class
 * defaults serve; for videos its video_processor, else video_preprocessor_config.json, else preprocessor_config.json.
 * log may be NULL; it hears of defaults and contradictions. */
qvl_status qvl_config_read(const char *folder, qvl_log_fn log, void *log_user, qvl_config *config,
                           qvl_error *error);

/* The parsers behind it, for bytes that are already in memory. The first leaves config->processor and ->video zero; the
 * others take either of their files. file is for messages, its last part becomes processor->source. */
qvl_status qvl_config_parse(const void *bytes, size_t count, const char *file, qvl_config *config,
                            qvl_error *error);
qvl_status qvl_processor_parse(const void *bytes, size_t count, const char *file, const qvl_vision_config *vision,
                               qvl_processor_config *processor, qvl_error *error);
qvl_status qvl_video_config_parse(const void *bytes, size_t count, const char *file,
                                  const qvl_vision_config *vision, qvl_video_config *video, qvl_error *error);

#endif
