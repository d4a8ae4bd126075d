#include "media/video_source.h"

#include <string.h>

/* moov, trak, mdia, minf, stbl, and what stbl holds; moof, traf, trun are less. */
enum { MAX_DEPTH = 8 };

typedef struct box {
    int64_t start, end; /* of what it holds */
    uint8_t kind[4];
} box;

static uint64_t number(const uint8_t *bytes, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | bytes[i];
    return value;
}

/* The box at a position before `end`; false if there is none. One that reaches beyond ends there. */
static bool next_box(const qvl_video_source *source, int64_t at, int64_t end, box *found) {
    uint8_t head[16];
    int64_t got = qvl_video_source_bytes(source, at, head, sizeof head);
    if (got < 8 || end - at < 8) return false;
    uint64_t size = number(head, 4);
    int64_t header = 8;
    if (size == 1) {
        if (got < 16) return false;
        size = number(head + 8, 8);
        header = 16;
    }
    if (size == 0) size = (uint64_t)(end - at); /* up to the end */
    if (size < (uint64_t)header) return false;
    memcpy(found->kind, head + 4, 4);
    found->start = at + header;
    found->end = size > (uint64_t)(end - at) ? end : at + (int64_t)size;
    return found->start <= found->end;
}

static bool is_one_of(const uint8_t kind[4], const char *kinds) {
    for (; *kinds; kinds += 4)
        if (memcmp(kind, kinds, 4) == 0) return true;
    return false;
}

/* A table of the sizes of samples: either all have one size, or each has an entry that is in the file. */
static qvl_status check_sizes(const qvl_video_source *source, const box *b, qvl_error *error) {
    uint8_t head[12];
    bool sizes = memcmp(b->kind, "stsz", 4) == 0, runs = memcmp(b->kind, "trun", 4) == 0;
    if ((!sizes && !runs) || qvl_video_source_bytes(source, b->start, head, sizeof head) < (int64_t)sizeof head)
        return QVL_OK;
    uint64_t each = sizes ? number(head + 4, 4) : 1, count = number(head + (sizes ? 8 : 4), 4);
    uint64_t bytes = sizes && each == 0 ? 4 * count : each * count; /* 0: each sample's size is in the table */
    if (bytes <= (uint64_t)source->size) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_FORMAT,
                    "%.400s: damaged MP4 or QuickTime: a table of %llu samples is more than the file can hold",
                    source->name, (unsigned long long)count);
}

qvl_status qvl_video_check_mp4(qvl_video_source *source, qvl_error *error) {
    int64_t ends[MAX_DEPTH] = {source->size}, at = 0;
    for (int depth = 0; depth >= 0;) {
        box b;
        if (!next_box(source, at, ends[depth], &b)) {
            at = ends[depth--];
            continue;
        }
        qvl_status status = check_sizes(source, &b, error);
        if (status) return status;
        bool holds_boxes = is_one_of(b.kind, "moovtrakmdiaminfstblmooftraf");
        at = holds_boxes ? b.start : b.end;
        if (holds_boxes && depth + 1 < MAX_DEPTH) ends[++depth] = b.end;
    }
    return QVL_OK;
}
