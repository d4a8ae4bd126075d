/* Pictures and clips, one temporal group after the other: the unit that the tower sees, that is cached and handed
 * out. A picture is a clip of one group. */
#ifndef QVL_PREPROCESS_CLIP_H
#define QVL_PREPROCESS_CLIP_H

#include "base/pool.h"
#include "base/wait.h"
#include "model/model.h"
#include "preprocess/item.h"

/* The frames of one group, resized, as patches are cut from them. */
typedef struct qvl_group {
    int64_t index;      /* in 0..grid.t-1 */
    double seconds;     /* what its label says; 0 of a picture */
    size_t frame_count; /* 1..temporal_patch_size. Frame j of the patch is frames[j], and the last one beyond */
    qvl_image *frames;  /* [frame_count] of one size: the item's width and height */
} qvl_group;

/* Accepts NULL and an empty struct; empties it. */
void qvl_group_free(qvl_group *group);

/* An open picture or clip. One owner at a time; it may be handed from one thread to another. */
typedef struct qvl_reader qvl_reader;

/* What an input may be. */
typedef enum qvl_reading {
    QVL_READ_ANY = 0,   /* as its content says */
    QVL_READ_IMAGE = 1, /* a picture; a clip is refused */
    QVL_READ_VIDEO = 2  /* a clip; a picture is one of a single frame */
} qvl_reading;

/* Reads headers only, and chooses frames and size: everything the item says is known then. (What is not a regular
 * file is read whole, for it can be read but once.) options: of the call, taken in (base/options.h); the input's own
 * come before them here. Their profile, if any, gets the stages read and resize, also of qvl_reader_next. pool: what
 * resizing runs on; NULL: the calling thread. model, input and what options point to must outlive the reader. Notes
 * go to the model's log. Messages begin with the input's name. patience: of this call, which looks at all of a video
 * file; NULL: there is no end of it. *reader belongs to the caller: qvl_reader_close. */
qvl_status qvl_reader_open(const qvl_model *model, qvl_pool *pool, const qvl_input *input, qvl_reading reading,
                           const qvl_preprocess_options *options, const qvl_patience *patience,
                           qvl_reader **reader, qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
void qvl_reader_close(qvl_reader **reader);

/* The item as results say it; lives as long as the reader. item->clip is NULL for pictures. */
const qvl_item *qvl_reader_item(const qvl_reader *reader);

/* The next group, item->grid.t of them in order. Decodes and resizes its frames only; its rows are those of
 * qvl_patch_rows (patches.h). After the last one *group is empty (frame_count 0). After a failure the reader can only
 * be closed. *group belongs to the caller: qvl_group_free. */
qvl_status qvl_reader_next(qvl_reader *reader, qvl_group *group, qvl_error *error);

/* The preprocessor settings that normalise an item: those of pictures or of videos. */
const qvl_processor_config *qvl_item_processor(const qvl_config *config, const qvl_item *item);
/* The table's preset: videos have no Pillow path in transformers. */
qvl_preset qvl_item_preset(qvl_preset preset, const qvl_item *item);

#endif
