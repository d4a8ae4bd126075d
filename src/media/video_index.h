/* Which frames a stream has, and when: from its packets, which are read and not decoded. */
#ifndef QVL_MEDIA_VIDEO_INDEX_H
#define QVL_MEDIA_VIDEO_INDEX_H

#include "base/wait.h"
#include "media/video_source.h"

/* Numbers that come one by one. */
typedef struct qvl_numbers {
    int64_t count, capacity, *values;
} qvl_numbers;

/* False: no memory. */
bool qvl_numbers_push(qvl_numbers *numbers, int64_t value);

/* A packet from which decoding can start: its frame and all later ones come out as they do from the beginning. */
typedef struct qvl_video_key {
    int64_t time, dts; /* AV_NOPTS_VALUE: unknown */
    int64_t frame;
    int64_t packet; /* its number */
} qvl_video_key;

typedef struct qvl_video_index {
    qvl_numbers times;  /* of the frames, in units of the stream's time base, ascending */
    qvl_numbers broken; /* the times of those whose packets are damaged */
    int64_t key_count, key_capacity;
    qvl_video_key *keys;  /* in order of their frames */
    int64_t first_packet; /* where decoding starts; those before it lead to nothing good */
    int64_t packet_count; /* numbered from 0, in the order of the file */
    int64_t discarded;    /* packets that are decoded and not shown: cut off by an edit list */
    int64_t end;          /* of the last frame */
    bool sure;            /* decoding gives these frames, each with its time */
    bool cut;             /* the file ends in the middle of a packet, or reading failed */
} qvl_video_index;

/* Far from overflow in sums and differences; AV_NOPTS_VALUE is none. */
static inline bool qvl_is_video_time(int64_t time) {
    return time > INT64_MIN / 4 && time < INT64_MAX / 4;
}

/* Reads all packets of a source that has just been rewound. patience may be NULL; at its end the status is
 * QVL_ERROR_CANCELLED. */
qvl_status qvl_video_index_read(qvl_video_source *source, const qvl_patience *patience, qvl_video_index *index,
                                qvl_error *error);
/* Fails with QVL_ERROR_CANCELLED, where patience is at its end. */
qvl_status qvl_video_ask(const qvl_patience *patience, const char *name, qvl_error *error);
/* Sorts times, numbers the keys, and says whether the times are distinct. */
bool qvl_video_index_sort(qvl_video_index *index);
/* The frame of that time, or -1. */
int64_t qvl_video_index_find(const qvl_video_index *index, int64_t time);
bool qvl_video_index_is_broken(const qvl_video_index *index, int64_t time);
/* The last key at or before a frame; NULL: there is none. */
const qvl_video_key *qvl_video_index_key(const qvl_video_index *index, int64_t frame);
void qvl_video_index_free(qvl_video_index *index);

#endif
