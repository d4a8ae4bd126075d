/* The RGB8 picture while a decoder draws it. The limit and the policies for orientation, alpha and 16-bit grey are
 * applied here, so that they are the same for every format. */
#ifndef QVL_MEDIA_CANVAS_H
#define QVL_MEDIA_CANVAS_H

#include "base/error.h"

typedef struct qvl_canvas {
    const qvl_media_options *options;
    const char *name; /* of the input, for messages */
    bool probe;       /* only the header is wanted: no pixels are allocated, none may be drawn */
    bool or_video;    /* for messages: a video would have been read as well */
    bool upright;     /* set by a decoder whose format is turned upright whatever the policy */
    size_t work;      /* set by a decoder: the bytes it takes beside the file and the picture */
    qvl_error *error;
    qvl_image image; /* the result */
    /* Stored pixel (x, y) goes to origin + x * step_x + y * step_y. */
    uint8_t *origin;
    ptrdiff_t step_x, step_y;
    uint8_t *band; /* stored rows of a picture that lies on its side, until enough are there to be turned */
} qvl_canvas;

/* Checks what a header says against the limit and makes room for the picture. orientation is EXIF's value, and 1
 * for anything outside 1..8. format: a static string. Before it, the decoder draws nothing. */
qvl_status qvl_canvas_open(qvl_canvas *canvas, const char *format, int64_t width, int64_t height, int orientation);

/* Every stored row once, in order: width pixels of RGB. */
void qvl_canvas_row(qvl_canvas *canvas, int64_t y, const uint8_t *rgb);
/* Instead of whole rows: count pixels, dx apart from x on, anywhere in any order. */
void qvl_canvas_pixels(qvl_canvas *canvas, int64_t x, int64_t y, int64_t dx, int64_t count, const uint8_t *rgb);

/* Instead of either: the memory of the result, for a decoder that writes all rows of RGB itself; NULL where the
 * result is not laid out as the stored picture. */
uint8_t *qvl_canvas_plain(const qvl_canvas *canvas);

/* RGBA to RGB in place, at the front of the same memory, as the alpha policy says. */
void qvl_canvas_flatten(const qvl_canvas *canvas, uint8_t *rgba, int64_t count);
/* A sample of 16-bit grey as the policy for it says. */
uint8_t qvl_canvas_gray16(const qvl_canvas *canvas, unsigned value);
/* Pillow's rule for ink; c, m, y, k as it stores them: 255 is full ink. */
void qvl_cmyk_to_rgb(const uint8_t cmyk[4], uint8_t rgb[3]);

/* Fails with "NAME: damaged FORMAT: what". */
qvl_status qvl_canvas_damaged(const qvl_canvas *canvas, const char *format, const char *what);

/* Fails with the name of a format that is recognised and not read, and a list of those that are. */
qvl_status qvl_canvas_unsupported(const qvl_canvas *canvas, const char *format);

/* Fails because a decoder got no memory, saying how much it takes. */
qvl_status qvl_canvas_no_memory(const qvl_canvas *canvas, const char *format);

/* Frees what drawing needed and, without keep, the picture. Accepts a canvas that was never opened. */
void qvl_canvas_close(qvl_canvas *canvas, bool keep);

#endif
