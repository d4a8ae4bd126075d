/* JPEG by libjpeg-turbo with its defaults, which are Pillow's: the accurate integer inverse DCT, triangle chroma
 * upsampling, no scaling. Reading ends with the last row, as in Pillow: what follows the picture is not looked at.
 * libjpeg goes on after damage and calls it a warning; here every warning that can change a pixel is an error. */
#include "media/media.h"

#include "base/memory.h"
#include "media/exif.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* A progressive file of a few kilobytes can ask for any number of passes over the whole picture. Real files have
 * 10 to 20 scans. */
#define MAX_SCANS 500

typedef struct jpeg_reader {
    struct jpeg_decompress_struct jpeg; /* its client_data is this reader */
    struct jpeg_error_mgr messages;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    qvl_canvas *canvas;
    qvl_status status; /* why failed was jumped to */
    uint8_t *row;      /* one, as libjpeg gives it: RGB, or CMYK */
} jpeg_reader;

static qvl_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return QVL_ERROR_MEMORY;
    case JERR_IMAGE_TOO_BIG:
        return QVL_ERROR_LIMIT;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
        return QVL_ERROR_UNSUPPORTED;
    default:
        return QVL_ERROR_FORMAT;
    }
}

static _Noreturn void on_error(j_common_ptr jpeg) {
    jpeg_reader *r = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    qvl_status status = status_of(jpeg->err->msg_code);
    const char *what = status == QVL_ERROR_FORMAT ? "damaged JPEG" : "JPEG";
    r->status = status == QVL_ERROR_MEMORY
                    ? qvl_canvas_no_memory(r->canvas, "JPEG")
                    : qvl_fail(r->canvas->error, status, "%.400s: %s: %s", r->canvas->name, what, text);
    longjmp(r->failed, 1);
}

static bool is_harmless(const struct jpeg_error_mgr *messages) {
    switch (messages->msg_code) {
    case JWRN_ADOBE_XFORM:    /* an unknown colour transform in a picture that names its components */
    case JWRN_JFIF_MAJOR:     /* a later JFIF version */
    case JWRN_NOT_SEQUENTIAL: /* scan parameters that baseline decoding does not use */
        return true;
    case JWRN_EXTRANEOUS_DATA: { /* padding before a marker; but a restart interval that leaves bytes over is torn
                                  */
        int marker = messages->msg_parm.i[1];
        return marker < JPEG_RST0 || marker > JPEG_RST0 + 7;
    }
    default:
        return false;
    }
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && !is_harmless(jpeg->err)) on_error(jpeg);
}

static void on_print(j_common_ptr jpeg) {
    (void)jpeg;
}

static void on_progress(j_common_ptr jpeg) {
    jpeg_reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= MAX_SCANS) return;
    r->status = qvl_fail(r->canvas->error, QVL_ERROR_LIMIT, "%.400s: JPEG has more than %d scans, the limit",
                         r->canvas->name, MAX_SCANS);
    longjmp(r->failed, 1);
}

/* Of the first EXIF segment and the last of XMP. */
static int orientation(const struct jpeg_decompress_struct *jpeg) {
    static const char exif[] = "Exif\0", xmp[] = "http://ns.adobe.com/xap/1.0/"; /* each with the NUL at its end */
    qvl_metadata metadata = {0};
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next) {
        if (!metadata.exif && m->data_length >= sizeof exif && memcmp(m->data, exif, sizeof exif) == 0) {
            metadata.exif = m->data;
            metadata.exif_count = m->data_length;
        } else if (m->data_length >= sizeof xmp && memcmp(m->data, xmp, sizeof xmp) == 0) {
            metadata.xmp = m->data + sizeof xmp;
            metadata.xmp_count = m->data_length - sizeof xmp;
        }
    }
    return qvl_orientation_of(&metadata);
}

/* Of a file of several scans libjpeg keeps all coefficients, 16 bits each. */
static size_t coefficient_bytes(struct jpeg_decompress_struct *jpeg) {
    size_t bytes = 0;
    for (int c = 0; c < jpeg->num_components && jpeg_has_multiple_scans(jpeg); c++)
        bytes += (size_t)jpeg->comp_info[c].width_in_blocks * jpeg->comp_info[c].height_in_blocks * DCTSIZE2 * 2;
    return bytes;
}

static qvl_status read_header(jpeg_reader *r, const uint8_t *bytes, size_t count) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &r->progress;
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(jpeg, bytes, (unsigned long)count);
    jpeg_read_header(jpeg, TRUE);
    int components = jpeg->num_components;
    if (components != 1 && components != 3 && components != 4)
        return qvl_fail(r->canvas->error, QVL_ERROR_UNSUPPORTED,
                        "%.400s: JPEG has %d components; allowed are 1, 3 and 4", r->canvas->name, components);
    jpeg->out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
    r->canvas->work = coefficient_bytes(jpeg) + 4 * (size_t)jpeg->image_width;
    return qvl_canvas_open(r->canvas, "JPEG", jpeg->image_width, jpeg->image_height, orientation(jpeg));
}

/* Pillow takes four components as Adobe's: inverted. In place. */
static void cmyk_row(uint8_t *row, int64_t width) {
    for (int64_t x = 0; x < width; x++) {
        const uint8_t *in = row + 4 * x;
        uint8_t ink[4] = {(uint8_t)~in[0], (uint8_t)~in[1], (uint8_t)~in[2], (uint8_t)~in[3]};
        qvl_cmyk_to_rgb(ink, row + 3 * x);
    }
}

static qvl_status read_pixels(jpeg_reader *r) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    r->row = qvl_alloc(jpeg->image_width, 4);
    if (!r->row) return qvl_fail_memory(r->canvas->error, "JPEG row", jpeg->image_width, 4);
    jpeg_start_decompress(jpeg);
    /* A file of several scans has been read to its end by now. libjpeg keeps quiet about components none of them
     * held and would show them as mid-grey. */
    for (int c = 0; c < jpeg->num_components; c++)
        if (!jpeg->comp_info[c].quant_table)
            return qvl_fail(r->canvas->error, QVL_ERROR_FORMAT,
                            "%.400s: damaged JPEG: component %d of %d has no data", r->canvas->name, c + 1,
                            jpeg->num_components);
    for (int64_t y = 0; y < jpeg->image_height; y++) {
        jpeg_read_scanlines(jpeg, &r->row, 1);
        if (jpeg->num_components == 4) cmyk_row(r->row, jpeg->image_width);
        qvl_canvas_row(r->canvas, y, r->row);
    }
    return QVL_OK;
}

/* Its own function, so that no local lives across setjmp. */
static qvl_status read_guarded(jpeg_reader *r, const uint8_t *bytes, size_t count) {
    if (setjmp(r->failed)) return r->status;
    qvl_status status = read_header(r, bytes, count);
    return status || r->canvas->probe ? status : read_pixels(r);
}

qvl_status qvl_jpeg_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    jpeg_reader r = {.canvas = canvas};
    r.jpeg.err = jpeg_std_error(&r.messages);
    r.jpeg.client_data = &r;
    r.messages.error_exit = on_error;
    r.messages.emit_message = on_message;
    r.messages.output_message = on_print;
    r.progress.progress_monitor = on_progress;
    qvl_status status = read_guarded(&r, bytes, count);
    jpeg_destroy_decompress(&r.jpeg);
    qvl_free(r.row);
    return status;
}
