/* PNG by libpng. Rows become RGB8, through RGBA8 where there is alpha; each pixel is written where it belongs, so
 * that an interlaced picture needs no second copy. Gamma, profiles and texts are skipped.
 *
 * Alpha is what the PNG specification says it is: a channel, a palette's alphas, or the one transparent colour of
 * grey and RGB pictures (compared at the file's own depth). */
#include "media/media.h"

#include "base/memory.h"
#include "media/exif.h"

#include <string.h>

#include <png.h>

/* libpng takes two rows of scratch for the width a header declares. No side is longer in pictures people have. */
#define MAX_SIDE 1000000

/* Only PLTE and tRNS are kept: at most 768 bytes each. */
#define MAX_CHUNK_BYTES 65536

/* What libpng is asked for. */
typedef enum row_kind {
    ROW_RGB,
    ROW_RGBA,
    ROW_GRAY16, /* grey and alpha, 16 bits each, high byte first */
    ROW_PALETTE /* a byte per index */
} row_kind;

typedef struct png_reader {
    png_structp png; /* its error and memory pointers are this reader */
    png_infop info;
    const uint8_t *bytes;
    size_t count, used;
    qvl_canvas *canvas;
    qvl_status status; /* why libpng jumped */
    bool out_of_memory;
    uint8_t *row; /* one row as libpng gives it, then RGB8 */
    row_kind kind;
    int palette_count;
    uint8_t palette[256][4]; /* RGBA */
} png_reader;

static _Noreturn void on_error(png_structp png, png_const_charp text) {
    png_reader *r = png_get_error_ptr(png);
    if (r->out_of_memory)
        r->status = qvl_canvas_no_memory(r->canvas, "PNG");
    else
        r->status = qvl_canvas_damaged(r->canvas, "PNG", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t size) {
    png_reader *r = png_get_mem_ptr(png);
    void *memory = qvl_alloc(size, 1);
    if (!memory) r->out_of_memory = true;
    return memory;
}

static void on_free(png_structp png, png_voidp memory) {
    (void)png;
    qvl_free(memory);
}

static void on_read(png_structp png, png_bytep out, size_t count) {
    png_reader *r = png_get_io_ptr(png);
    if (count > r->count - r->used) png_error(png, "the file ends before the picture does");
    memcpy(out, r->bytes + r->used, count);
    r->used += count;
}

/* 16-bit samples keep their high byte, as in Pillow, except in plain grey, for which there is a policy. */
static row_kind choose_transforms(png_reader *r, int depth, int colour) {
    png_structp png = r->png;
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(png);
        return ROW_PALETTE;
    }
    bool keyed = png_get_valid(png, r->info, PNG_INFO_tRNS) != 0;
    bool transparent = keyed || (colour & PNG_COLOR_MASK_ALPHA);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (keyed) png_set_tRNS_to_alpha(png);
    if (depth == 16 && colour == PNG_COLOR_TYPE_GRAY) {
        if (!keyed) png_set_add_alpha(png, 0xffff, PNG_FILLER_AFTER);
        return ROW_GRAY16;
    }
    if (depth == 16) png_set_strip_16(png);
    if (!(colour & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    return transparent ? ROW_RGBA : ROW_RGB;
}

static void read_palette(png_reader *r) {
    png_colorp colours = NULL;
    png_bytep alphas = NULL;
    int alpha_count = 0;
    png_get_PLTE(r->png, r->info, &colours, &r->palette_count);
    png_get_tRNS(r->png, r->info, &alphas, &alpha_count, NULL);
    for (int i = 0; i < r->palette_count; i++) {
        uint8_t *entry = r->palette[i];
        entry[0] = colours[i].red;
        entry[1] = colours[i].green;
        entry[2] = colours[i].blue;
        entry[3] = i < alpha_count ? alphas[i] : 255;
    }
}

/* The text of an iTXt chunk with XMP: keyword, whether it is compressed and how, language, keyword in it, text. */
static void find_xmp(const uint8_t *bytes, size_t count, qvl_metadata *metadata) {
    static const char plain[] = "XML:com.adobe.xmp\0"; /* with the NUL at its end: not compressed */
    if (count <= sizeof plain || memcmp(bytes, plain, sizeof plain) != 0) return;
    const uint8_t *end = bytes + count, *language = bytes + sizeof plain + 1;
    const uint8_t *keyword = memchr(language, 0, (size_t)(end - language));
    const uint8_t *text = keyword ? memchr(keyword + 1, 0, (size_t)(end - keyword - 1)) : NULL;
    if (!text) return;
    metadata->xmp = text + 1;
    metadata->xmp_count = (size_t)(end - text - 1);
}

/* Of the last eXIf chunk and the last XMP, as in Pillow. They may stand behind the pixels, where libpng comes too
 * late to them; and every file is walked to IEND, chunk by chunk, so that probing and reading find the same. */
static int orientation(const uint8_t *bytes, size_t count) {
    qvl_metadata metadata = {0};
    for (size_t at = 8; count - at >= 12;) {
        const uint8_t *kind = bytes + at + 4, *data = bytes + at + 8;
        size_t length = png_get_uint_32(bytes + at);
        if (length > count - at - 12 || memcmp(kind, "IEND", 4) == 0) break;
        if (memcmp(kind, "iTXt", 4) == 0) find_xmp(data, length, &metadata);
        if (memcmp(kind, "eXIf", 4) == 0) {
            metadata.exif = data;
            metadata.exif_count = length;
        }
        at += length + 12;
    }
    return qvl_orientation_of(&metadata);
}

static qvl_status read_header(png_reader *r) {
    r->info = png_create_info_struct(r->png);
    if (!r->info) png_error(r->png, "out of memory");
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, PNG_UINT_31_MAX,
                        PNG_UINT_31_MAX); /* the size is checked below, with its message */
    png_set_chunk_malloc_max(r->png, MAX_CHUNK_BYTES);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(r->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(r->png, r->info);

    png_uint_32 width, height;
    int depth, colour;
    png_get_IHDR(r->png, r->info, &width, &height, &depth, &colour, NULL, NULL, NULL);
    if (width > MAX_SIDE || height > MAX_SIDE)
        return qvl_fail(r->canvas->error, QVL_ERROR_LIMIT,
                        "%.400s: size is %lu x %lu pixels; the limit of a side is %d", r->canvas->name,
                        (unsigned long)width, (unsigned long)height, MAX_SIDE);
    r->canvas->work = 4 * (size_t)width;
    qvl_status status = qvl_canvas_open(r->canvas, "PNG", width, height, orientation(r->bytes, r->count));
    if (status || r->canvas->probe) return status;
    r->row = qvl_alloc(width, 4);
    if (!r->row) return qvl_fail_memory(r->canvas->error, "PNG row", width, 4);
    r->kind = choose_transforms(r, depth, colour);
    if (r->kind == ROW_PALETTE) read_palette(r);
    png_read_update_info(r->png, r->info);
    return QVL_OK;
}

/* Replaces count palette indices at the front of the row by RGBA, from the back so that none is overwritten early.
 */
static qvl_status look_up_palette(png_reader *r, int64_t count) {
    for (int64_t i = count - 1; i >= 0; i--) {
        int index = r->row[i];
        if (index >= r->palette_count)
            return qvl_fail(r->canvas->error, QVL_ERROR_FORMAT,
                            "%.400s: damaged PNG: palette index %d; the palette has %d", r->canvas->name, index,
                            r->palette_count);
        memcpy(r->row + 4 * i, r->palette[index], 4);
    }
    return QVL_OK;
}

static void spread_gray16(const png_reader *r, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint8_t *p = r->row + 4 * i;
        uint8_t gray = qvl_canvas_gray16(r->canvas, (unsigned)p[0] << 8 | p[1]), alpha = p[2];
        memcpy(p, (uint8_t[]){gray, gray, gray, alpha}, 4);
    }
}

/* count pixels at the front of the row, as libpng gives them, to RGB. */
static qvl_status make_rgb(png_reader *r, int64_t count) {
    if (r->kind == ROW_RGB) return QVL_OK;
    if (r->kind == ROW_GRAY16) spread_gray16(r, count);
    if (r->kind == ROW_PALETTE) {
        qvl_status status = look_up_palette(r, count);
        if (status) return status;
    }
    qvl_canvas_flatten(r->canvas, r->row, count);
    return QVL_OK;
}

/* Adam7: each pass is a picture of every dx-th pixel of every dy-th row. */
typedef struct png_pass {
    uint8_t x, y, dx, dy;
} png_pass;

static const png_pass adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const png_pass whole[] = {{0, 0, 1, 1}};

static qvl_status read_pass(png_reader *r, png_pass pass) {
    int64_t width = r->canvas->image.stored.width, height = r->canvas->image.stored.height;
    if (width <= pass.x) return QVL_OK; /* a pass without columns has no rows in the file */
    int64_t count = (width - pass.x + pass.dx - 1) / pass.dx;
    for (int64_t y = pass.y; y < height; y += pass.dy) {
        png_read_row(r->png, r->row, NULL);
        qvl_status status = make_rgb(r, count);
        if (status) return status;
        if (pass.dx == 1 && pass.dy == 1)
            qvl_canvas_row(r->canvas, y, r->row);
        else
            qvl_canvas_pixels(r->canvas, pass.x, y, pass.dx, count, r->row);
    }
    return QVL_OK;
}

/* Its own function, so that no local lives across setjmp. */
static qvl_status read_guarded(png_reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return r->status;
    qvl_status status = read_header(r);
    if (status || r->canvas->probe) return status;
    bool interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;
    const png_pass *passes = interlaced ? adam7 : whole;
    int pass_count = interlaced ? 7 : 1;
    for (int i = 0; i < pass_count; i++) {
        status = read_pass(r, passes[i]);
        if (status) return status;
    }
    png_read_end(r->png, NULL); /* the checksums of what follows, and that the file is whole */
    return QVL_OK;
}

qvl_status qvl_png_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    png_reader r = {.bytes = bytes, .count = count, .canvas = canvas};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning, &r, on_malloc, on_free);
    if (!r.png) return qvl_canvas_no_memory(canvas, "PNG");
    qvl_status status = read_guarded(&r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    qvl_free(r.row);
    return status;
}
