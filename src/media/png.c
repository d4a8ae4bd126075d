/* PNG by libpng. Rows become RGBA8, whatever the file holds, and then one step makes them RGB8; each pixel is
 * written where it belongs, so that an interlaced picture needs no second copy. Gamma, profiles and texts are
 * skipped.
 *
 * Alpha is what the PNG specification says it is: a channel, a palette's alphas, or the one transparent colour of
 * grey and RGB pictures (compared at the file's own depth). The picture is pasted on white with it. */
#include "media/media.h"

#include "base/memory.h"

#include <string.h>

#include <png.h>

/* libpng takes two rows of scratch for the width a header declares. No side is longer in pictures people have. */
#define MAX_SIDE 1000000

/* Only PLTE and tRNS are kept: at most 768 bytes each. */
#define MAX_CHUNK_BYTES 65536

typedef struct png_reader {
    png_structp png; /* its error and memory pointers are this reader */
    png_infop info;
    const uint8_t *bytes;
    size_t count, used;
    const char *name;
    int64_t max_pixels;
    qvl_error *error;
    qvl_status status; /* why libpng jumped */
    bool out_of_memory;
    qvl_image image;
    uint8_t *row;            /* one row as libpng gives it: RGBA8, or palette indices */
    int palette_count;       /* 0: not a palette picture */
    uint8_t palette[256][4]; /* RGBA */
} png_reader;

static _Noreturn void on_error(png_structp png, png_const_charp text) {
    png_reader *r = png_get_error_ptr(png);
    if (r->out_of_memory)
        r->status = qvl_fail(r->error, QVL_ERROR_MEMORY, "%.400s: out of memory in PNG decoding", r->name);
    else
        r->status = qvl_fail(r->error, QVL_ERROR_FORMAT, "%.400s: damaged PNG: %s", r->name, text);
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

/* 8 bits per sample, RGBA order. 16-bit samples keep their high byte. */
static void choose_transforms(png_reader *r, int depth, int colour) {
    png_structp png = r->png;
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_packing(png);
        return;
    }
    bool keyed = png_get_valid(png, r->info, PNG_INFO_tRNS) != 0;
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (keyed) png_set_tRNS_to_alpha(png);
    if (depth == 16) png_set_strip_16(png);
    if (!(colour & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    if (!(colour & PNG_COLOR_MASK_ALPHA) && !keyed) png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
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
        return qvl_fail(r->error, QVL_ERROR_LIMIT, "%.400s: size is %lu x %lu pixels; the limit of a side is %d",
                        r->name, (unsigned long)width, (unsigned long)height, MAX_SIDE);
    qvl_status status = qvl_image_alloc(width, height, r->max_pixels, r->name, &r->image, r->error);
    if (status) return status;
    r->row = qvl_alloc(width, 4);
    if (!r->row) return qvl_fail_memory(r->error, "PNG row", width, 4);
    choose_transforms(r, depth, colour);
    if (colour == PNG_COLOR_TYPE_PALETTE) read_palette(r);
    png_read_update_info(r->png, r->info);
    return QVL_OK;
}

/* Replaces count palette indices at the front of the row by RGBA, from the back so that none is overwritten early.
 */
static qvl_status look_up_palette(png_reader *r, int64_t count) {
    for (int64_t i = count - 1; i >= 0; i--) {
        int index = r->row[i];
        if (index >= r->palette_count)
            return qvl_fail(r->error, QVL_ERROR_FORMAT,
                            "%.400s: damaged PNG: palette index %d; the palette has %d", r->name, index,
                            r->palette_count);
        memcpy(r->row + 4 * i, r->palette[index], 4);
    }
    return QVL_OK;
}

/* Pillow's paste on white with the alpha as mask. */
static uint8_t on_white(unsigned value, unsigned alpha) {
    unsigned t = value * alpha + 255 * (255 - alpha) + 128;
    return (uint8_t)(((t >> 8) + t) >> 8);
}

/* count pixels of RGBA to every step-th pixel of RGB. */
static void write_row(const uint8_t *rgba, int64_t count, uint8_t *rgb, int64_t step) {
    for (int64_t i = 0; i < count; i++, rgba += 4, rgb += 3 * step)
        for (int c = 0; c < 3; c++) rgb[c] = on_white(rgba[c], rgba[3]);
}

/* Adam7: each pass is a picture of every dx-th pixel of every dy-th row. */
typedef struct png_pass {
    uint8_t x, y, dx, dy;
} png_pass;

static const png_pass adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const png_pass whole[] = {{0, 0, 1, 1}};

static qvl_status read_pass(png_reader *r, png_pass pass) {
    int64_t width = r->image.width;
    if (width <= pass.x) return QVL_OK; /* a pass without columns has no rows in the file */
    int64_t count = (width - pass.x + pass.dx - 1) / pass.dx;
    for (int64_t y = pass.y; y < r->image.height; y += pass.dy) {
        png_read_row(r->png, r->row, NULL);
        if (r->palette_count) {
            qvl_status status = look_up_palette(r, count);
            if (status) return status;
        }
        write_row(r->row, count, r->image.pixels + (y * width + pass.x) * 3, pass.dx);
    }
    return QVL_OK;
}

/* Its own function, so that no local lives across setjmp. */
static qvl_status read_guarded(png_reader *r) {
    if (setjmp(png_jmpbuf(r->png))) return r->status;
    qvl_status status = read_header(r);
    if (status) return status;
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

qvl_status qvl_png_read(const uint8_t *bytes, size_t count, const char *name, int64_t max_pixels, qvl_image *image,
                        qvl_error *error) {
    *image = (qvl_image){0};
    png_reader r = {.bytes = bytes, .count = count, .name = name, .max_pixels = max_pixels, .error = error};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning, &r, on_malloc, on_free);
    if (!r.png) return qvl_fail(error, QVL_ERROR_MEMORY, "%.400s: out of memory in PNG decoding", name);
    qvl_status status = read_guarded(&r);
    if (status)
        qvl_image_free(&r.image);
    else
        *image = r.image;
    png_destroy_read_struct(&r.png, &r.info, NULL);
    qvl_free(r.row);
    return status;
}
