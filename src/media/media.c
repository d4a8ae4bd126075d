/* Which format the bytes are is decided by their first bytes, never by a file name. A format that is recognised
 * but not read is refused by name, so that the user knows the file is whole and only needs converting. */
#include "media/media.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* Far above any picture within the pixel limit: a larger file is a mistake (a checkpoint, a film). */
#define MAX_FILE_BYTES ((size_t)1 << 30)

#define READABLE "qvl reads JPEG and PNG"

typedef qvl_status (*read_fn)(const uint8_t *bytes, size_t count, const char *name, int64_t max_pixels,
                              qvl_image *image, qvl_error *error);

typedef struct picture_format {
    const char *name;
    size_t offset; /* of the signature */
    const char *signature;
    size_t length;
    read_fn read; /* NULL: recognised, not read */
} picture_format;

static const picture_format formats[] = {
    {"JPEG", 0, "\xff\xd8\xff", 3, qvl_jpeg_read},
    {"PNG", 0, "\x89PNG\r\n\x1a\n", 8, qvl_png_read},
    {"WebP", 8, "WEBP", 4, NULL},
    {"GIF", 0, "GIF87a", 6, NULL},
    {"GIF", 0, "GIF89a", 6, NULL},
    {"TIFF", 0, "II*\0", 4, NULL},
    {"TIFF", 0, "MM\0*", 4, NULL},
    {"TIFF", 0, "II+\0", 4, NULL}, /* the 64-bit variant */
    {"TIFF", 0, "MM\0+", 4, NULL},
    {"BMP", 0, "BM", 2, NULL},
    {"AVIF", 4, "ftypavif", 8, NULL},
    {"AVIF", 4, "ftypavis", 8, NULL},
    {"HEIC", 4, "ftyphei", 7, NULL}, /* heic, heix, heim, heis */
    {"HEIC", 4, "ftyphev", 7, NULL}, /* hevc, hevx, hevm, hevs */
    {"HEIC or AVIF", 4, "ftypmif1", 8, NULL},
    {"HEIC or AVIF", 4, "ftypmsf1", 8, NULL},
};

static const picture_format *find_format(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const picture_format *f = &formats[i];
        if (count >= f->offset + f->length && memcmp(bytes + f->offset, f->signature, f->length) == 0) return f;
    }
    return NULL;
}

static qvl_status fail_unknown(const uint8_t *bytes, size_t count, const char *name, qvl_error *error) {
    char hex[8 * 3 + 1] = "";
    for (size_t i = 0; i < count && i < 8; i++) snprintf(hex + 3 * i, 4, " %02x", bytes[i]);
    return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: not a picture qvl reads: first bytes%s; " READABLE, name,
                    hex);
}

static qvl_status read_encoded(const uint8_t *bytes, size_t count, const char *name, int64_t max_pixels,
                               qvl_image *image, qvl_error *error) {
    if (count == 0) return qvl_fail(error, QVL_ERROR_FORMAT, "%.400s: empty, 0 bytes", name);
    const picture_format *format = find_format(bytes, count);
    if (!format) return fail_unknown(bytes, count, name, error);
    if (!format->read)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "%.400s: %s is not supported; " READABLE, name,
                        format->name);
    return format->read(bytes, count, name, max_pixels, image, error);
}

static qvl_status read_file(const char *path, int64_t max_pixels, qvl_image *image, qvl_error *error) {
    uint8_t *bytes;
    size_t count;
    qvl_status status = qvl_file_read(path, MAX_FILE_BYTES, &bytes, &count, error);
    if (status) return status;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    status = read_encoded(bytes, count, name, max_pixels, image, error);
    qvl_free(bytes);
    return status;
}

static qvl_status copy_pixels(const qvl_input *input, const char *name, int64_t max_pixels, qvl_image *image,
                              qvl_error *error) {
    if (!input->bytes) return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: pixels are NULL", name);
    qvl_image copy;
    qvl_status status = qvl_image_alloc(input->width, input->height, max_pixels, name, &copy, error);
    if (status) return status;
    size_t row = 3 * (size_t)copy.width, rows = (size_t)copy.height;
    size_t stride = input->row_stride ? input->row_stride : row;
    size_t needed;
    if (stride < row) {
        status =
            qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: row_stride is %zu; a row of %lld pixels has %zu bytes",
                     name, stride, (long long)copy.width, row);
    } else if (!qvl_mul_size(rows - 1, stride, &needed) || !qvl_add_size(needed, row, &needed)) {
        status = qvl_fail(error, QVL_ERROR_ARGUMENT,
                          "%.400s: row_stride is %zu: %zu rows exceed the address space", name, stride, rows);
    } else if (input->byte_count && input->byte_count < needed) {
        status =
            qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: byte_count is %zu; %lld x %lld pixels take %zu bytes",
                     name, input->byte_count, (long long)copy.width, (long long)copy.height, needed);
    }
    if (status) {
        qvl_image_free(&copy);
        return status;
    }
    const uint8_t *from = input->bytes;
    for (size_t y = 0; y < rows; y++) memcpy(copy.pixels + y * row, from + y * stride, row);
    *image = copy;
    return QVL_OK;
}

qvl_status qvl_image_alloc(int64_t width, int64_t height, int64_t max_pixels, const char *name, qvl_image *image,
                           qvl_error *error) {
    *image = (qvl_image){0};
    if (max_pixels == 0) max_pixels = QVL_DEFAULT_MAX_PIXELS;
    if (width < 1 || height < 1)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: size is %lld x %lld; each side must be at least 1",
                        name, (long long)width, (long long)height);
    int64_t pixels;
    if (!qvl_mul_i64(width, height, &pixels) || pixels > max_pixels)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%.400s: size is %lld x %lld pixels; the limit is %lld pixels",
                        name, (long long)width, (long long)height, (long long)max_pixels);
    uint8_t *memory = qvl_alloc((size_t)pixels, 3);
    if (!memory) return qvl_fail_memory(error, name, (size_t)pixels, 3);
    *image = (qvl_image){.width = width, .height = height, .pixels = memory};
    return QVL_OK;
}

qvl_status qvl_image_read(const qvl_input *input, int64_t max_pixels, qvl_image *image, qvl_error *error) {
    if (!image) return qvl_fail(error, QVL_ERROR_ARGUMENT, "image is NULL");
    *image = (qvl_image){0};
    if (!input) return qvl_fail(error, QVL_ERROR_ARGUMENT, "input is NULL");
    const char *name = input->name ? input->name : "picture in memory";
    if (max_pixels < 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%.400s: max_pixels is %lld; allowed are 1 and more, or 0 for %lld", name,
                        (long long)max_pixels, (long long)QVL_DEFAULT_MAX_PIXELS);
    switch (input->kind) {
    case QVL_INPUT_FILE:
        if (!input->name) return qvl_fail(error, QVL_ERROR_ARGUMENT, "the input is a file without a name");
        return read_file(input->name, max_pixels, image, error);
    case QVL_INPUT_BYTES:
        if (!input->bytes && input->byte_count)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: bytes are NULL", name);
        return read_encoded(input->bytes, input->byte_count, name, max_pixels, image, error);
    case QVL_INPUT_RGB8:
        return copy_pixels(input, name, max_pixels, image, error);
    }
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "%.400s: input kind is %d; allowed are 0 to 2", name,
                    (int)input->kind);
}

void qvl_image_free(qvl_image *image) {
    if (!image) return;
    qvl_free(image->pixels);
    *image = (qvl_image){0};
}
