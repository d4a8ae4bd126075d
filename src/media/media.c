/* Which format the bytes are is decided by their first bytes, never by a file name. A format that is recognised
 * but not read is refused by name, so that the user knows the file is whole and only needs converting. */
#include "media/media.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

typedef qvl_status (*read_fn)(const uint8_t *bytes, size_t count, qvl_canvas *canvas);

typedef struct file_format {
    const char *name;
    size_t offset; /* of the signature */
    const char *signature;
    size_t length;
    read_fn read; /* NULL: recognised, not read */
} file_format;

/* The first that fits. */
static const file_format formats[] = {
    {"JPEG", 0, "\xff\xd8\xff", 3, qvl_jpeg_read},
    {"PNG", 0, "\x89PNG\r\n\x1a\n", 8, qvl_png_read},
    {"WebP", 8, "WEBP", 4, qvl_webp_read},
    {"GIF", 0, "GIF87a", 6, qvl_gif_read},
    {"GIF", 0, "GIF89a", 6, qvl_gif_read},
    {"TIFF", 0, "II*\0", 4, qvl_tiff_read},
    {"TIFF", 0, "MM\0*", 4, qvl_tiff_read},
    {"TIFF", 0, "II+\0", 4, qvl_tiff_read}, /* the 64-bit variant */
    {"TIFF", 0, "MM\0+", 4, qvl_tiff_read},
    {"BMP", 0, "BM", 2, qvl_bmp_read},
    {"AVIF", 4, "ftypavif", 8, qvl_avif_read},
    {"AVIF", 4, "ftypavis", 8, qvl_avif_read},
    {"HEIC", 4, "ftyphei", 7, NULL}, /* heic, heix, heim, heis */
    {"HEIC", 4, "ftyphev", 7, NULL}, /* hevc, hevx, hevm, hevs */
    {"HEIC", 4, "ftypmif1", 8, NULL},
    {"HEIC", 4, "ftypmsf1", 8, NULL},
    {"Canon raw (CR3)", 4, "ftypcrx ", 8, NULL},
    {"video (MP4, QuickTime)", 4, "ftyp", 4, NULL},
    {"video (Matroska, WebM)", 0, "\x1a\x45\xdf\xa3", 4, NULL},
    {"video (AVI)", 8, "AVI ", 4, NULL},
    {"JPEG XL", 0, "\xff\x0a", 2, NULL},
    {"JPEG XL", 4, "JXL \r\n\x87\n", 8, NULL},
    {"JPEG 2000", 4, "jP  \r\n\x87\n", 8, NULL},
    {"JPEG 2000", 0, "\xff\x4f\xff\x51", 4, NULL},
    {"JPEG XR", 0, "II\xbc", 3, NULL},
    {"Photoshop (PSD)", 0, "8BPS", 4, NULL},
    {"OpenEXR", 0, "v/1\x01", 4, NULL},
    {"Radiance HDR", 0, "#?RADIANCE", 10, NULL},
    {"QOI", 0, "qoif", 4, NULL},
    {"ICO", 0, "\0\0\1\0", 4, NULL},
    {"PDF", 0, "%PDF-", 5, NULL},
    {"PostScript", 0, "%!PS", 4, NULL},
    {"ZIP", 0, "PK\3\4", 4, NULL},
    {"gzip", 0, "\x1f\x8b", 2, NULL},
};

/* Texts, told by how they begin: in any case, behind white space and a byte order mark. */
static const struct {
    const char *name, *start;
} texts[] = {
    {"HTML", "<!doctype html"},
    {"HTML", "<html"},
    {"SVG", "<svg"},
    {"SVG or other XML", "<?xml"},
    {"a data: address as text (decode its base64 first)", "data:image/"},
};

static const char *find_text(const uint8_t *bytes, size_t count) {
    size_t at = count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < count && bytes[at] && strchr(" \t\r\n", bytes[at])) at++;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t length = strlen(texts[i].start), k = 0;
        while (k < length && at + k < count && (bytes[at + k] | 0x20) == (texts[i].start[k] | 0x20)) k++;
        if (k == length) return texts[i].name;
    }
    return NULL;
}

static const file_format *find_format(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const file_format *f = &formats[i];
        if (count >= f->offset + f->length && memcmp(bytes + f->offset, f->signature, f->length) == 0) return f;
    }
    return NULL;
}

/* The first box of a HEIF file, whose main brand says no more than that, lists the brands it is compatible with.
 */
static bool lists_avif(const uint8_t *bytes, size_t count) {
    if (count < 16 || (memcmp(bytes + 4, "ftypmif1", 8) != 0 && memcmp(bytes + 4, "ftypmsf1", 8) != 0))
        return false;
    size_t end = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    for (size_t at = 16; at + 4 <= end && at + 4 <= count; at += 4)
        if (memcmp(bytes + at, "avif", 4) == 0) return true;
    return false;
}

static qvl_status fail_unknown(const uint8_t *bytes, size_t count, const qvl_canvas *canvas) {
    char hex[8 * 3 + 1] = "";
    for (size_t i = 0; i < count && i < 8; i++) snprintf(hex + 3 * i, 4, " %02x", bytes[i]);
    return qvl_fail(canvas->error, QVL_ERROR_FORMAT, "%.400s: %s qvl reads: first bytes%s; " QVL_READABLE "%s",
                    canvas->name, canvas->or_video ? "neither a picture nor a video" : "not a picture", hex,
                    canvas->or_video ? "; of videos " QVL_READABLE_VIDEOS : "");
}

static qvl_status read_encoded(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    if (count == 0) return qvl_fail(canvas->error, QVL_ERROR_FORMAT, "%.400s: empty, 0 bytes", canvas->name);
    if (lists_avif(bytes, count)) return qvl_avif_read(bytes, count, canvas);
    const file_format *format = find_format(bytes, count);
    if (format && format->read) return format->read(bytes, count, canvas);
    const char *other = format ? format->name : find_text(bytes, count);
    return other ? qvl_canvas_unsupported(canvas, other) : fail_unknown(bytes, count, canvas);
}

static qvl_status read_file(const char *path, qvl_canvas *canvas) {
    uint8_t *bytes;
    size_t count;
    qvl_status status = qvl_file_read(path, QVL_MAX_FILE_BYTES, &bytes, &count, canvas->error);
    if (status) return status;
    status = read_encoded(bytes, count, canvas);
    qvl_free(bytes);
    return status;
}

static qvl_status copy_pixels(const qvl_input *input, qvl_canvas *canvas) {
    const char *name = canvas->name;
    qvl_error *error = canvas->error;
    if (!input->bytes) return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: pixels are NULL", name);
    if (input->width < 1 || input->height < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: size is %lld x %lld; each side must be at least 1",
                        name, (long long)input->width, (long long)input->height);
    qvl_status status = qvl_canvas_open(canvas, "RGB8", input->width, input->height, 1);
    if (status) return status;
    size_t row = 3 * (size_t)input->width, rows = (size_t)input->height;
    size_t stride = input->row_stride ? input->row_stride : row;
    size_t needed;
    if (stride < row)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: row_stride is %zu; a row of %lld pixels has %zu bytes",
                        name, stride, (long long)input->width, row);
    if (!qvl_mul_size(rows - 1, stride, &needed) || !qvl_add_size(needed, row, &needed))
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: row_stride is %zu: %zu rows exceed the address space",
                        name, stride, rows);
    if (input->byte_count && input->byte_count < needed)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: byte_count is %zu; %lld x %lld pixels take %zu bytes",
                        name, input->byte_count, (long long)input->width, (long long)input->height, needed);
    const uint8_t *from = input->bytes;
    for (size_t y = 0; y < rows && !canvas->probe; y++) qvl_canvas_row(canvas, (int64_t)y, from + y * stride);
    return QVL_OK;
}

static qvl_status read_input(const qvl_input *input, qvl_canvas *canvas) {
    switch (input->kind) {
    case QVL_INPUT_FILE:
        if (!input->name) return qvl_fail(canvas->error, QVL_ERROR_ARGUMENT, "the input is a file without a name");
        return read_file(input->name, canvas);
    case QVL_INPUT_BYTES:
        if (!input->bytes && input->byte_count)
            return qvl_fail(canvas->error, QVL_ERROR_ARGUMENT, "%.400s: bytes are NULL", canvas->name);
        return read_encoded(input->bytes, input->byte_count, canvas);
    case QVL_INPUT_RGB8:
        return copy_pixels(input, canvas);
    case QVL_INPUT_FRAMES:
        return qvl_fail(canvas->error, QVL_ERROR_ARGUMENT, "%.400s: a list of frames is a clip, not a picture",
                        canvas->name);
    }
    return qvl_fail(canvas->error, QVL_ERROR_ARGUMENT,
                    "%.400s: input kind is %d; allowed are 0 to 2, and 3 for clips", canvas->name,
                    (int)input->kind);
}

static qvl_status check_options(const qvl_media_options *o, const char *name, qvl_error *error) {
    if (o->max_pixels < 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%.400s: max_pixels is %lld; allowed are 1 and more, or 0 for %lld", name,
                        (long long)o->max_pixels, (long long)QVL_DEFAULT_MAX_PIXELS);
    unsigned values[] = {(unsigned)o->orientation, (unsigned)o->alpha, (unsigned)o->gray16,
                         (unsigned)o->animation};
    static const char *const names[] = {"orientation", "alpha", "gray16", "animation"};
    for (int i = 0; i < 4; i++)
        if (values[i] > 1)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: the policy for %s is %u; allowed are 0 and 1",
                            name, names[i], values[i]);
    return QVL_OK;
}

qvl_status qvl_media_options_take(const qvl_media_options *given, const char *name, qvl_media_options *own,
                                  qvl_error *error) {
    qvl_media_options_init(own);
    qvl_status status = qvl_options_take(own, sizeof *own, given, error);
    return status ? status : check_options(own, name, error);
}

/* like: probe and or_video of the canvas. */
static qvl_status read_image(const qvl_input *input, const qvl_media_options *given, const qvl_canvas *like,
                             qvl_image *image, qvl_error *error) {
    if (!image) return qvl_fail(error, QVL_ERROR_ARGUMENT, "image is NULL");
    *image = (qvl_image){0};
    if (!input) return qvl_fail(error, QVL_ERROR_ARGUMENT, "input is NULL");
    const char *name = input->name ? input->name : "picture in memory";
    if (input->kind == QVL_INPUT_FILE && strcmp(name, "-") == 0) name = "standard input";
    qvl_media_options options;
    qvl_status status = qvl_media_options_take(given, name, &options, error);
    if (status) return status;
    qvl_canvas canvas = {
        .options = &options, .name = name, .probe = like->probe, .or_video = like->or_video, .error = error};
    status = read_input(input, &canvas);
    qvl_canvas_close(&canvas, !status);
    *image = canvas.image;
    return status;
}

qvl_status qvl_image_read(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                          qvl_error *error) {
    return read_image(input, options, &(qvl_canvas){0}, image, error);
}

qvl_status qvl_image_probe(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                           qvl_error *error) {
    return read_image(input, options, &(qvl_canvas){.probe = true}, image, error);
}

qvl_status qvl_image_probe_medium(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                                  qvl_error *error) {
    return read_image(input, options, &(qvl_canvas){.probe = true, .or_video = true}, image, error);
}

void qvl_image_free(qvl_image *image) {
    if (!image) return;
    qvl_free(image->pixels);
    *image = (qvl_image){0};
}

void qvl_media_options_init(qvl_media_options *options) {
    *options = (qvl_media_options){
        .size = sizeof *options, .max_pixels = QVL_DEFAULT_MAX_PIXELS, .alpha_colour = {255, 255, 255}};
}

void qvl_media_options_reference(qvl_media_options *options) {
    options->orientation = QVL_ORIENTATION_IGNORE;
    options->alpha = QVL_ALPHA_DROP;
    options->gray16 = QVL_GRAY16_SATURATE;
}
