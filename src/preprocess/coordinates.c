/* Positions between the frames of a picture. Everything goes through the picture as shown (QVL_FRAME_SOURCE): the
 * other frames are scaled from it, except the file's, which is turned. */
#include "qvl.h"

#include "base/error.h"

#include <math.h>

#define NORM 1000.0
/* No position has a use beyond it, and no product of two can overflow below it. */
#define FARTHEST 1e15

const char *qvl_frame_name(qvl_frame frame) {
    switch (frame) {
    case QVL_FRAME_FILE:
        return "file";
    case QVL_FRAME_SOURCE:
        return "source";
    case QVL_FRAME_MODEL:
        return "model";
    case QVL_FRAME_NORM1000:
        return "norm1000";
    }
    return NULL;
}

/* The EXIF orientation that reading undid; 1 where it undid none. */
static int32_t turn_of(const qvl_item *item) {
    return item->stored.oriented ? item->stored.orientation : 1;
}

static bool lies_on_its_side(int32_t turn) {
    return turn >= 5;
}

/* The stored size must be the source's, turned. */
static qvl_status check_stored(const qvl_item *item, qvl_error *error) {
    const qvl_stored *stored = &item->stored;
    int32_t turn = turn_of(item);
    if (turn < 1 || turn > 8)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "orientation is %d; allowed are 1 to 8", turn);
    int64_t width = lies_on_its_side(turn) ? stored->height : stored->width;
    int64_t height = lies_on_its_side(turn) ? stored->width : stored->height;
    if (width == item->source_width && height == item->source_height) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT,
                    "the stored size %lld x %lld under orientation %d is not the source size %lld x %lld",
                    (long long)stored->width, (long long)stored->height, turn, (long long)item->source_width,
                    (long long)item->source_height);
}

qvl_status qvl_frame_size(const qvl_item *item, qvl_frame frame, double *width, double *height, qvl_error *error) {
    *width = *height = 0;
    if (!qvl_frame_name(frame))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "frame %d is unknown; allowed are 0 (file) to 3 (norm1000)",
                        (int)frame);
    int64_t w = item->source_width, h = item->source_height;
    if (frame == QVL_FRAME_FILE) {
        qvl_status status = check_stored(item, error);
        if (status) return status;
        w = item->stored.width;
        h = item->stored.height;
    } else if (frame == QVL_FRAME_MODEL) {
        w = item->width;
        h = item->height;
    }
    if (w < 1 || h < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the picture's size in frame %s is %lld x %lld, which is none",
                        qvl_frame_name(frame), (long long)w, (long long)h);
    *width = frame == QVL_FRAME_NORM1000 ? NORM : (double)w;
    *height = frame == QVL_FRAME_NORM1000 ? NORM : (double)h;
    return QVL_OK;
}

/* w, h: of the stored picture. */
static qvl_point upright(qvl_point p, int32_t turn, double w, double h) {
    switch (turn) {
    case 2:
        return (qvl_point){w - p.x, p.y};
    case 3:
        return (qvl_point){w - p.x, h - p.y};
    case 4:
        return (qvl_point){p.x, h - p.y};
    case 5:
        return (qvl_point){p.y, p.x};
    case 6:
        return (qvl_point){h - p.y, p.x};
    case 7:
        return (qvl_point){h - p.y, w - p.x};
    case 8:
        return (qvl_point){p.y, w - p.x};
    default:
        return p;
    }
}

/* The inverse; w, h are of the stored picture, too. 1 to 5 are their own. */
static qvl_point as_stored(qvl_point p, int32_t turn, double w, double h) {
    switch (turn) {
    case 6:
        return (qvl_point){p.y, h - p.x};
    case 7:
        return (qvl_point){w - p.y, h - p.x};
    case 8:
        return (qvl_point){w - p.y, p.x};
    default:
        return upright(p, turn, w, h);
    }
}

qvl_status qvl_map_point(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_point point, qvl_point *out,
                         qvl_error *error) {
    double from_width, from_height, to_width, to_height, width, height;
    *out = (qvl_point){0, 0};
    qvl_status status = qvl_frame_size(item, from, &from_width, &from_height, error);
    if (!status) status = qvl_frame_size(item, to, &to_width, &to_height, error);
    if (!status) status = qvl_frame_size(item, QVL_FRAME_SOURCE, &width, &height, error);
    if (status) return status;
    if (!(fabs(point.x) <= FARTHEST) || !(fabs(point.y) <= FARTHEST))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "position %g, %g; each must lie in -%g..%g", point.x, point.y,
                        FARTHEST, FARTHEST);
    int32_t turn = turn_of(item);
    if (from != to) {
        if (from == QVL_FRAME_FILE)
            point = upright(point, turn, from_width, from_height);
        else
            point = (qvl_point){point.x * width / from_width, point.y * height / from_height};
        if (to == QVL_FRAME_FILE)
            point = as_stored(point, turn, to_width, to_height);
        else
            point = (qvl_point){point.x * to_width / width, point.y * to_height / height};
    }
    *out = point;
    return QVL_OK;
}

qvl_status qvl_map_box(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_box box, qvl_box *out,
                       qvl_error *error) {
    qvl_point a, b;
    *out = (qvl_box){0, 0, 0, 0};
    qvl_status status = qvl_map_point(item, from, to, (qvl_point){box.x1, box.y1}, &a, error);
    if (!status) status = qvl_map_point(item, from, to, (qvl_point){box.x2, box.y2}, &b, error);
    if (status) return status;
    *out = (qvl_box){fmin(a.x, b.x), fmin(a.y, b.y), fmax(a.x, b.x), fmax(a.y, b.y)};
    return QVL_OK;
}

qvl_box qvl_clamp_box(qvl_box box, double width, double height) {
    return (qvl_box){fmin(fmax(box.x1, 0), width), fmin(fmax(box.y1, 0), height), fmin(fmax(box.x2, 0), width),
                     fmin(fmax(box.y2, 0), height)};
}
