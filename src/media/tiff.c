/* TIFF by libtiff, which is Pillow's reader of it: the first picture of a file, in strips or tiles, whatever its
 * compression. Samples are unpacked here, as Pillow unpacks them. Warnings while pixels are read mean damage that
 * libtiff patches over; here they are errors.
 *
 * Grey of 16 bits with white as zero is turned round where it is scaled. Pillow does not turn it, so that the
 * policy for plain conversion does not either. */
#include "base/memory.h"
#include "media/exif.h"
#include "media/media.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

enum { MAX_SAMPLES = 8, MAX_ALLOCATION = 1 << 30 };

typedef struct tiff_reader {
    TIFF *tiff;
    const uint8_t *bytes;
    size_t count, at;
    qvl_canvas *canvas;
    bool strict;       /* warnings are errors: pixels are being read */
    bool failed;       /* message tells why */
    bool cut;          /* a tag's data lies behind the end of the file */
    char message[200]; /* libtiff's first */
    uint32_t width, height;
    uint16_t bits, samples, photometric, compression;
    bool planar;                        /* each sample has rows of its own */
    bool alpha, premultiplied;          /* of the sample behind the colours */
    const uint8_t *planes[MAX_SAMPLES]; /* of the row being unpacked: where each sample starts */
    size_t step;                        /* samples from a pixel to the next, within such a row */
    uint8_t palette[256][3];
    uint8_t *row; /* RGBA */
} tiff_reader;

/* ---- libtiff's view of the bytes */

static tmsize_t on_read(thandle_t handle, void *out, tmsize_t size) {
    tiff_reader *r = handle;
    size_t left = r->at < r->count ? r->count - r->at : 0;
    size_t count = (size_t)size < left ? (size_t)size : left;
    memcpy(out, r->bytes + (r->count - left), count);
    r->at += count;
    return (tmsize_t)count;
}

static tmsize_t on_write(thandle_t handle, void *bytes, tmsize_t size) {
    (void)handle;
    (void)bytes;
    (void)size;
    return 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    tiff_reader *r = handle;
    size_t base = whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->count : 0;
    r->at = base + offset;
    return r->at;
}

static int on_close(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t on_size(thandle_t handle) {
    return ((const tiff_reader *)handle)->count;
}

/* Lets libtiff decode from the bytes where they are, instead of from a copy of each strip. It only reads them. */
static int on_map(thandle_t handle, void **base, toff_t *size) {
    tiff_reader *r = handle;
    *base = (void *)(uintptr_t)r->bytes;
    *size = r->count;
    return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size) {
    (void)handle;
    (void)base;
    (void)size;
}

static void keep_message(tiff_reader *r, const char *format, va_list args) {
    if (!r->failed) vsnprintf(r->message, sizeof r->message, format, args);
    r->failed = true;
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    (void)tiff;
    (void)module;
    keep_message(user, format, args);
    return 1; /* nobody else is told */
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args) {
    (void)tiff;
    (void)module;
    tiff_reader *r = user;
    /* libtiff goes on without a tag that it cannot read. What is cut may be anything: the palette, the depth. */
    if (strncmp(format, "IO error", 8) == 0) r->cut = true;
    if (r->strict || r->cut) keep_message(r, format, args);
    return 1;
}

static qvl_status fail_damaged(tiff_reader *r) {
    for (char *p = r->message; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
    return qvl_canvas_damaged(r->canvas, "TIFF", r->message[0] ? r->message : "libtiff cannot read it");
}

static qvl_status open_tiff(tiff_reader *r) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return qvl_canvas_no_memory(r->canvas, "TIFF");
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_ALLOCATION);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, r);
    r->tiff = TIFFClientOpenExt(r->canvas->name, "r", r, on_read, on_write, on_seek, on_close, on_size, on_map,
                                on_unmap, options);
    TIFFOpenOptionsFree(options);
    return r->tiff ? QVL_OK : fail_damaged(r);
}

/* ---- header */

static qvl_status fail_layout(const tiff_reader *r, const char *what, unsigned value) {
    return qvl_fail(
        r->canvas->error, QVL_ERROR_UNSUPPORTED,
        "%.400s: TIFF with %s %u is not supported (photometric %u, %u samples of %u bits, compression %u)",
        r->canvas->name, what, value, r->photometric, r->samples, r->bits, r->compression);
}

/* How many samples the colours of a pixel have; 0: unknown. */
static int colour_samples(const tiff_reader *r) {
    switch (r->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_PALETTE:
        return 1;
    case PHOTOMETRIC_RGB:
        return 3;
    case PHOTOMETRIC_YCBCR:
        return r->compression == COMPRESSION_JPEG ? 3 : 0;
    case PHOTOMETRIC_SEPARATED:
        return 4;
    default:
        return 0;
    }
}

static qvl_status check_layout(tiff_reader *r) {
    uint16_t format = SAMPLEFORMAT_UINT, ink = INKSET_CMYK, extra_count = 0, *extra = NULL;
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_INKSET, &ink);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_EXTRASAMPLES, &extra_count, &extra);
    int colours = colour_samples(r);
    if (colours == 0) return fail_layout(r, "photometric", r->photometric);
    if (!TIFFIsCODECConfigured(r->compression)) return fail_layout(r, "compression", r->compression);
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) return fail_layout(r, "sample format", format);
    if (r->photometric == PHOTOMETRIC_SEPARATED && ink != INKSET_CMYK) return fail_layout(r, "ink set", ink);
    if (r->samples < colours || r->samples > MAX_SAMPLES) return fail_layout(r, "samples per pixel:", r->samples);
    bool small = r->bits == 1 || r->bits == 2 || r->bits == 4;
    if (!(r->bits == 8 || r->bits == 16 || (small && r->samples == 1)) ||
        (r->photometric == PHOTOMETRIC_PALETTE && r->bits == 16))
        return fail_layout(r, "bits per sample:", r->bits);
    /* Where a file does not say what its further samples are, libtiff says that they are nothing in particular. */
    r->alpha = r->samples > colours && extra_count > 0 && extra[0] != EXTRASAMPLE_UNSPECIFIED &&
               r->photometric != PHOTOMETRIC_SEPARATED;
    r->premultiplied = r->alpha && extra[0] == EXTRASAMPLE_ASSOCALPHA;
    return QVL_OK;
}

static qvl_status read_palette(tiff_reader *r) {
    uint16_t *red, *green, *blue;
    if (!TIFFGetField(r->tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
        return qvl_canvas_damaged(r->canvas, "TIFF", "its palette is missing");
    for (size_t i = 0; i < (size_t)1 << r->bits; i++) {
        r->palette[i][0] = (uint8_t)(red[i] >> 8);
        r->palette[i][1] = (uint8_t)(green[i] >> 8);
        r->palette[i][2] = (uint8_t)(blue[i] >> 8);
    }
    return QVL_OK;
}

/* A row, or all tiles or strips that cover the same rows and one of them by itself. */
static size_t work_bytes(const tiff_reader *r) {
    uint32_t rows = 1, block_width = 0;
    if (TIFFIsTiled(r->tiff)) {
        TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &block_width);
        TIFFGetField(r->tiff, TIFFTAG_TILELENGTH, &rows);
    } else if (r->planar) {
        TIFFGetFieldDefaulted(r->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
        if (rows > r->height) rows = r->height;
        block_width = r->width;
    }
    double pixels = (double)rows * ((double)r->width + block_width);
    double bytes = pixels * r->samples * r->bits / 8 + 4 * (double)r->width;
    return bytes < (double)SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2;
}

/* A tag that libtiff does not take silences XMP, too: the file is read as the EXIF that it is. */
static int orientation(const tiff_reader *r) {
    uint16_t tag;
    uint32_t count = 0;
    void *xmp = NULL;
    if (TIFFGetField(r->tiff, TIFFTAG_ORIENTATION, &tag)) return tag;
    TIFFGetField(r->tiff, TIFFTAG_XMLPACKET, &count, &xmp);
    return qvl_orientation_of(&(qvl_metadata){r->bytes, xmp, r->count, xmp ? count : 0});
}

static qvl_status read_header(tiff_reader *r) {
    uint16_t planar = PLANARCONFIG_CONTIG;
    TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &r->width);
    TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &r->height);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLESPERPIXEL, &r->samples);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_COMPRESSION, &r->compression);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(r->tiff, TIFFTAG_PHOTOMETRIC, &r->photometric);
    r->planar = planar == PLANARCONFIG_SEPARATE && r->samples > 1;
    r->canvas->upright = true;
    r->canvas->work = work_bytes(r);
    qvl_status status = qvl_canvas_open(r->canvas, "TIFF", r->width, r->height, orientation(r));
    if (!status) status = check_layout(r);
    if (status || r->canvas->probe) return status;
    if (r->photometric == PHOTOMETRIC_PALETTE) status = read_palette(r);
    if (status) return status;
    if (r->photometric == PHOTOMETRIC_YCBCR) TIFFSetField(r->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    r->step = r->planar ? 1 : r->samples;
    r->row = qvl_alloc(r->width, 4);
    return r->row ? QVL_OK : qvl_fail_memory(r->canvas->error, "TIFF row", r->width, 4);
}

/* ---- samples to RGBA */

/* Sample s of pixel x of the row. */
static unsigned sample(const tiff_reader *r, uint32_t x, int s) {
    const uint8_t *plane = r->planes[s];
    size_t i = (size_t)x * r->step;
    if (r->bits == 8) return plane[i];
    if (r->bits == 16) {
        uint16_t value;
        memcpy(&value, plane + 2 * i, 2);
        return value;
    }
    size_t at = (size_t)x * r->bits;
    return (unsigned)plane[at / 8] >> (8 - r->bits - at % 8) & ((1u << r->bits) - 1);
}

/* The same in 8 bits: of 16 the high byte, fewer spread over 0..255. */
static uint8_t sample8(const tiff_reader *r, uint32_t x, int s) {
    unsigned value = sample(r, x, s);
    if (r->bits == 8) return (uint8_t)value;
    return (uint8_t)(r->bits == 16 ? value >> 8 : value * 255 / ((1u << r->bits) - 1));
}

static uint8_t gray(const tiff_reader *r, uint32_t x) {
    bool invert = r->photometric == PHOTOMETRIC_MINISWHITE;
    if (r->bits == 16 && !r->alpha) {
        unsigned value = sample(r, x, 0);
        if (invert && r->canvas->options->gray16 == QVL_GRAY16_SCALE) value = 65535 - value;
        return qvl_canvas_gray16(r->canvas, value);
    }
    uint8_t value = sample8(r, x, 0);
    return invert ? (uint8_t)~value : value;
}

static void undo_premultiplied(uint8_t *rgba) {
    unsigned alpha = rgba[3];
    for (int c = 0; c < 3; c++) {
        unsigned value = alpha ? rgba[c] * 255u / alpha : 0;
        rgba[c] = (uint8_t)(value > 255 ? 255 : value);
    }
}

static void unpack_pixel(const tiff_reader *r, uint32_t x, uint8_t *rgba) {
    int colours = 1;
    switch (r->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        memset(rgba, gray(r, x), 3);
        break;
    case PHOTOMETRIC_PALETTE:
        memcpy(rgba, r->palette[sample(r, x, 0)], 3);
        break;
    case PHOTOMETRIC_SEPARATED: {
        uint8_t ink[4];
        for (int s = 0; s < 4; s++) ink[s] = sample8(r, x, s);
        qvl_cmyk_to_rgb(ink, rgba);
        break;
    }
    default:
        colours = 3;
        for (int s = 0; s < 3; s++) rgba[s] = sample8(r, x, s);
    }
    rgba[3] = r->alpha ? sample8(r, x, colours) : 255;
    if (r->premultiplied) undo_premultiplied(rgba);
}

/* planes point at row y. */
static void draw_row(tiff_reader *r, uint32_t y) {
    for (uint32_t x = 0; x < r->width; x++) unpack_pixel(r, x, r->row + 4 * (size_t)x);
    qvl_canvas_flatten(r->canvas, r->row, r->width);
    qvl_canvas_row(r->canvas, y, r->row);
}

/* ---- rows from the file */

static void point_planes(tiff_reader *r, const uint8_t *row, size_t plane_bytes) {
    for (size_t s = 0; s < r->samples; s++)
        r->planes[s] = r->planar ? row + s * plane_bytes : row + s * (r->bits / 8u);
}

/* Strips with all samples: row by row, however large a strip is. */
static qvl_status read_scanlines(tiff_reader *r) {
    tmsize_t size = TIFFScanlineSize(r->tiff);
    size_t needed = ((size_t)r->width * r->samples * r->bits + 7) / 8;
    if (size <= 0 || (size_t)size < needed) return fail_damaged(r);
    uint8_t *line = qvl_calloc((size_t)size, 1);
    if (!line) return qvl_fail_memory(r->canvas->error, "TIFF row", (size_t)size, 1);
    point_planes(r, line, 0);
    bool good = true;
    for (uint32_t y = 0; y < r->height && good; y++) {
        good = TIFFReadScanline(r->tiff, line, y, 0) == 1 && !r->failed;
        if (good) draw_row(r, y);
    }
    qvl_free(line);
    return good ? QVL_OK : fail_damaged(r);
}

/* Tiles, or strips of one sample each: all that cover the same rows go into a band, plane behind plane. */
typedef struct tiff_band {
    uint32_t rows;          /* of a tile or strip */
    size_t kept;            /* of those, as many as the picture can have */
    size_t row_bytes;       /* of the picture, in a plane */
    size_t block_row_bytes; /* of a tile or strip */
    size_t block_bytes;     /* of a whole one */
    uint32_t block_width;
    uint8_t *block, *planes; /* planes: [planes][kept][row_bytes] */
} tiff_band;

static qvl_status open_band(const tiff_reader *r, tiff_band *band) {
    bool tiled = TIFFIsTiled(r->tiff);
    uint32_t rows = 0, width = r->width;
    if (tiled) {
        TIFFGetField(r->tiff, TIFFTAG_TILEWIDTH, &width);
        TIFFGetField(r->tiff, TIFFTAG_TILELENGTH, &rows);
    } else {
        TIFFGetFieldDefaulted(r->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
        if (rows > r->height) rows = r->height;
    }
    /* A tile may be larger than the picture, but a file of a few bytes must not ask for gigabytes. */
    uint64_t most = 4 * (uint64_t)r->width * r->height + ((uint64_t)1 << 22);
    bool between_bytes = width < r->width && (uint64_t)width * r->samples * r->bits % 8 != 0;
    if (rows == 0 || width == 0 || (uint64_t)rows * width > most || between_bytes)
        return qvl_canvas_damaged(r->canvas, "TIFF", "its tiles have an impossible size");
    size_t samples = r->planar ? 1 : r->samples;
    tmsize_t block_row = tiled ? TIFFTileRowSize(r->tiff) : TIFFScanlineSize(r->tiff);
    *band = (tiff_band){.rows = rows, .block_width = width, .block_row_bytes = (size_t)block_row};
    band->row_bytes = ((size_t)r->width * samples * r->bits + 7) / 8;
    size_t least = ((size_t)width * samples * r->bits + 7) / 8;
    if (block_row <= 0 || (size_t)block_row < least)
        return qvl_canvas_damaged(r->canvas, "TIFF", "its tiles have an impossible size");
    band->block_bytes = band->block_row_bytes * rows;
    size_t planes = r->planar ? r->samples : 1;
    band->kept = rows < r->height ? rows : r->height;
    band->block = qvl_calloc(rows, band->block_row_bytes);
    band->planes = qvl_alloc(planes * band->kept, band->row_bytes);
    if (band->block && band->planes) return QVL_OK;
    return qvl_fail_memory(r->canvas->error, r->canvas->name, planes * band->kept, band->row_bytes);
}

/* The tile or strip at (x, y) to its place in the band. */
static bool read_block(tiff_reader *r, const tiff_band *band, uint32_t x, uint32_t y, uint16_t plane) {
    uint32_t rows = r->height - y < band->rows ? r->height - y : band->rows;
    tmsize_t wanted = (tmsize_t)band->block_bytes;
    tmsize_t got;
    if (TIFFIsTiled(r->tiff)) {
        got = TIFFReadTile(r->tiff, band->block, x, y, 0, plane);
    } else {
        wanted = (tmsize_t)(band->block_row_bytes * rows);
        got = TIFFReadEncodedStrip(r->tiff, TIFFComputeStrip(r->tiff, y, plane), band->block, wanted);
    }
    if (got < wanted || r->failed) return false;
    size_t samples = r->planar ? 1 : r->samples;
    size_t at = (size_t)x * samples * r->bits / 8, left = band->row_bytes - at;
    size_t count = band->block_row_bytes < left ? band->block_row_bytes : left;
    for (uint32_t k = 0; k < rows; k++)
        memcpy(band->planes + ((size_t)plane * band->kept + k) * band->row_bytes + at,
               band->block + k * band->block_row_bytes, count);
    return true;
}

static qvl_status read_bands(tiff_reader *r) {
    tiff_band band = {0};
    qvl_status status = open_band(r, &band);
    uint16_t planes = r->planar ? r->samples : 1;
    for (uint32_t y = 0; y < r->height && !status; y += band.rows) {
        bool good = true;
        for (uint16_t plane = 0; plane < planes && good; plane++)
            for (uint64_t x = 0; x < r->width && good; x += band.block_width)
                good = read_block(r, &band, (uint32_t)x, y, plane);
        if (!good) status = fail_damaged(r);
        for (uint32_t k = 0; k < band.rows && y + k < r->height && !status; k++) {
            point_planes(r, band.planes + k * band.row_bytes, band.kept * band.row_bytes);
            draw_row(r, y + k);
        }
        if (r->height - y <= band.rows) break; /* y + rows may not fit 32 bits */
    }
    qvl_free(band.block);
    qvl_free(band.planes);
    return status;
}

qvl_status qvl_tiff_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    tiff_reader r = {.bytes = bytes, .count = count, .canvas = canvas};
    qvl_status status = open_tiff(&r);
    if (!status) status = r.cut ? fail_damaged(&r) : read_header(&r);
    if (!status && !canvas->probe) {
        r.strict = true;
        r.failed = false; /* what was wrong with the header did not matter */
        r.message[0] = 0;
        bool bands = TIFFIsTiled(r.tiff) || r.planar;
        status = bands ? read_bands(&r) : read_scanlines(&r);
    }
    qvl_free(r.row);
    if (r.tiff) TIFFClose(r.tiff);
    return status;
}
