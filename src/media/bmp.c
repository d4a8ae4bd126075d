/* BMP as Pillow reads it: 1, 4, 8, 16, 24 and 32 bits, run-length codes, colour masks of whole bytes, top-down
 * rows. It is rows of bytes, so that no library is needed; and FFmpeg's reader of run-length codes shows a damaged
 * file half drawn. */
#include "base/memory.h"
#include "media/media.h"

#include <stdio.h>
#include <string.h>

enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

/* Where a pixel has a sample: shifted down and masked by its largest value. top 0: it has none. */
typedef struct bmp_sample {
    int shift;
    uint32_t top;
} bmp_sample;

typedef struct bmp_picture {
    const uint8_t *bytes;
    size_t count;
    qvl_canvas *canvas;
    int64_t width, height;
    bool top_down;
    int bits;
    uint32_t compression;
    size_t palette_at, palette_entry, colours; /* entry: bytes of one */
    size_t data_at;
    bmp_sample samples[4];   /* red, green, blue, alpha */
    uint8_t palette[256][3]; /* RGB */
    uint8_t *row;            /* RGB, or RGBA where there is alpha */
} bmp_picture;

static uint32_t number(const uint8_t *bytes, int size) {
    uint32_t value = 0;
    for (int i = size - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static qvl_status fail_unsupported(const bmp_picture *bmp, const char *what, unsigned value) {
    return qvl_fail(bmp->canvas->error, QVL_ERROR_UNSUPPORTED, "%.400s: BMP with %s %u is not supported",
                    bmp->canvas->name, what, value);
}

static qvl_status fail_cut(const bmp_picture *bmp) {
    return qvl_canvas_damaged(bmp->canvas, "BMP", "the file ends before the picture does");
}

/* ---- header */

static const uint32_t rgb555[4] = {0x7c00, 0x3e0, 0x1f}, rgb565[4] = {0xf800, 0x7e0, 0x1f};
static const uint32_t bgra[4] = {0xff0000, 0xff00, 0xff, 0xff000000};

static void use_masks(bmp_picture *bmp, const uint32_t masks[4]) {
    for (int c = 0; c < 4; c++) {
        int shift = 0;
        while (masks[c] && !(masks[c] >> shift & 1)) shift++;
        bmp->samples[c] = (bmp_sample){shift, masks[c] >> shift};
    }
}

static bool are_masks_known(int bits, const uint32_t masks[4]) {
    if (bits == 16) return memcmp(masks, rgb555, 12) == 0 || memcmp(masks, rgb565, 12) == 0;
    if (bits == 24) return memcmp(masks, bgra, 12) == 0;
    for (int c = 0; c < 4; c++) {
        uint32_t m = masks[c];
        bool whole_byte = m == 0xff || m == 0xff00 || m == 0xff0000 || m == 0xff000000;
        if (!whole_byte && !(c == 3 && m == 0)) return false;
    }
    return true;
}

/* Masks of colours and alpha: those of the file, or what the depth means without. */
static qvl_status read_masks(bmp_picture *bmp, size_t header) {
    if (bmp->compression != BITFIELDS) {
        use_masks(bmp, bmp->bits == 16 ? rgb555 : (uint32_t[4]){bgra[0], bgra[1], bgra[2]});
        return QVL_OK;
    }
    uint32_t masks[4] = {0};
    size_t given = header >= 56 ? 4 : 3;
    if (bmp->count < 54 + 4 * given) return fail_cut(bmp);
    for (size_t i = 0; i < given; i++) masks[i] = number(bmp->bytes + 54 + 4 * i, 4);
    if (bmp->bits == 32 && !(masks[0] | masks[1] | masks[2] | masks[3])) memcpy(masks, bgra, sizeof masks);
    if (!are_masks_known(bmp->bits, masks))
        return qvl_fail(bmp->canvas->error, QVL_ERROR_UNSUPPORTED,
                        "%.400s: BMP of %d bits with colour masks 0x%x 0x%x 0x%x 0x%x is not supported",
                        bmp->canvas->name, bmp->bits, masks[0], masks[1], masks[2], masks[3]);
    if (bmp->bits != 32) masks[3] = 0;
    use_masks(bmp, masks);
    return QVL_OK;
}

static qvl_status check_coding(const bmp_picture *bmp) {
    int bits = bmp->bits;
    if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
        return fail_unsupported(bmp, "a depth of", (unsigned)bits);
    if (bmp->compression > BITFIELDS || (bmp->compression == BITFIELDS && bits < 16) ||
        (bmp->compression == RLE8 && bits != 8) || (bmp->compression == RLE4 && bits != 4))
        return fail_unsupported(bmp, "compression", bmp->compression);
    return QVL_OK;
}

static qvl_status read_header(bmp_picture *bmp) {
    const uint8_t *b = bmp->bytes;
    if (bmp->count < 26) return fail_cut(bmp);
    size_t header = number(b + 14, 4);
    bool old = header == 12;
    if (!old && header != 40 && header != 52 && header != 56 && header != 64 && header != 108 && header != 124)
        return fail_unsupported(bmp, "a header of the size", (unsigned)header);
    if (bmp->count < 14 + header) return fail_cut(bmp);
    bmp->width = number(b + 18, old ? 2 : 4);
    bmp->height = old ? number(b + 20, 2) : number(b + 22, 4);
    bmp->top_down = !old && b[25] == 0xff;
    if (bmp->top_down) bmp->height = ((int64_t)1 << 32) - bmp->height;
    bmp->bits = (int)number(b + (old ? 24 : 28), 2);
    bmp->compression = old ? RAW : number(b + 30, 4);
    bmp->colours = old ? 0 : number(b + 46, 4);
    bmp->palette_entry = old ? 3 : 4;
    bmp->palette_at = 14 + header;
    bmp->data_at = number(b + 10, 4);
    qvl_status status = check_coding(bmp);
    bmp->canvas->work = 4 * (size_t)bmp->width;
    if (!status) status = qvl_canvas_open(bmp->canvas, "BMP", bmp->width, bmp->height, 1);
    if (!status && bmp->bits >= 16) status = read_masks(bmp, header);
    return status;
}

/* Colours that the file does not give are black, as in Pillow. */
static qvl_status read_palette(bmp_picture *bmp) {
    size_t colours = bmp->colours ? bmp->colours : (size_t)1 << bmp->bits;
    if (colours > 65536) return fail_unsupported(bmp, "colours:", (unsigned)colours);
    size_t end = bmp->palette_at + colours * bmp->palette_entry;
    if (bmp->count < end) return fail_cut(bmp);
    /* An offset that points at the palette means the pixels behind it. */
    if (bmp->data_at == bmp->palette_at || bmp->data_at == 0) bmp->data_at = end;
    for (size_t i = 0; i < 256; i++)
        for (size_t c = 0; c < 3; c++)
            bmp->palette[i][2 - c] = i < colours ? bmp->bytes[bmp->palette_at + i * bmp->palette_entry + c] : 0;
    return QVL_OK;
}

/* ---- rows */

static void finish_row(bmp_picture *bmp, int64_t y) {
    if (bmp->samples[3].top) qvl_canvas_flatten(bmp->canvas, bmp->row, bmp->width);
    qvl_canvas_row(bmp->canvas, bmp->top_down ? y : bmp->height - 1 - y, bmp->row);
}

static void unpack_row(bmp_picture *bmp, const uint8_t *in) {
    int bits = bmp->bits;
    size_t channels = bmp->samples[3].top ? 4 : 3;
    for (int64_t x = 0; x < bmp->width; x++) {
        uint8_t *out = bmp->row + (size_t)x * channels;
        if (bits <= 8) {
            int64_t at = x * bits;
            int index = in[at / 8] >> (8 - bits - at % 8) & ((1 << bits) - 1);
            memcpy(out, bmp->palette[index], 3);
            continue;
        }
        uint32_t pixel = number(in + x * (bits / 8), bits / 8);
        for (size_t c = 0; c < channels; c++) {
            uint32_t top = bmp->samples[c].top, value = pixel >> bmp->samples[c].shift & top;
            out[c] = (uint8_t)(top == 255 ? value : value * 255 / top);
        }
    }
}

static qvl_status read_rows(bmp_picture *bmp) {
    size_t stride = ((size_t)bmp->width * (size_t)bmp->bits + 31) / 32 * 4, needed;
    if (!qvl_mul_size(stride, (size_t)bmp->height, &needed) || bmp->data_at > bmp->count ||
        bmp->count - bmp->data_at < needed)
        return fail_cut(bmp);
    for (int64_t y = 0; y < bmp->height; y++) {
        unpack_row(bmp, bmp->bytes + bmp->data_at + (size_t)y * stride);
        finish_row(bmp, y);
    }
    return QVL_OK;
}

/* ---- run-length codes: one long line of indices, row after row */

typedef struct run_writer {
    bmp_picture *bmp;
    int64_t x, y;
} run_writer;

static bool is_full(const run_writer *w) {
    return w->y == w->bmp->height;
}

static void put(run_writer *w, uint8_t index) {
    if (is_full(w)) return;
    memcpy(w->bmp->row + 3 * w->x, w->bmp->palette[index], 3);
    if (++w->x < w->bmp->width) return;
    finish_row(w->bmp, w->y++);
    w->x = 0;
}

/* A pair of bytes: count times the value, or in 4 bits its two halves in turn; not beyond the row, whose width is
 * `used` up to here. */
static void put_run(run_writer *w, int64_t used, int count, uint8_t value) {
    bool rle4 = w->bmp->compression == RLE4;
    for (int k = 0; k < count && used + k < w->bmp->width; k++)
        put(w, (uint8_t)(!rle4 ? value : k % 2 == 0 ? value >> 4 : value & 15));
}

/* count indices as they are, from `at` on; returns where they end, on an even byte, or 0 if the file ends first.
 */
static size_t put_literal(run_writer *w, size_t at, int count) {
    const bmp_picture *bmp = w->bmp;
    bool rle4 = bmp->compression == RLE4;
    int64_t left = (bmp->height - w->y) * bmp->width - w->x;
    if (count > left) count = (int)left;
    size_t length = rle4 ? ((size_t)count + 1) / 2 : (size_t)count;
    if (bmp->count - at < length) return 0;
    for (int k = 0; k < count; k++) {
        uint8_t byte = bmp->bytes[at + (size_t)(rle4 ? k / 2 : k)];
        put(w, (uint8_t)(!rle4 ? byte : k % 2 == 0 ? byte >> 4 : byte & 15));
    }
    return at + length + (at + length) % 2;
}

/* Pillow's rules, also where they are its own: runs are cut at the end of the row, literals and jumps go on in the
 * next; index 0 fills what is jumped over. */
static qvl_status read_runs(bmp_picture *bmp) {
    run_writer w = {.bmp = bmp};
    int64_t used = 0; /* of the row, as the codes count it */
    size_t at = bmp->data_at;
    while (!is_full(&w)) {
        if (at > bmp->count || bmp->count - at < 2) return fail_cut(bmp);
        int first = bmp->bytes[at], second = bmp->bytes[at + 1];
        at += 2;
        if (first > 0) {
            put_run(&w, used, first, (uint8_t)second);
            used += first < bmp->width - used ? first : bmp->width > used ? bmp->width - used : 0;
        } else if (second == 0) { /* end of the row */
            while (w.x != 0) put(&w, 0);
            used = 0;
        } else if (second == 1) {
            return qvl_canvas_damaged(bmp->canvas, "BMP", "its codes end before the picture does");
        } else if (second == 2) { /* a jump to the right and up */
            if (bmp->count - at < 2) return fail_cut(bmp);
            int64_t jump = bmp->bytes[at] + bmp->bytes[at + 1] * bmp->width;
            at += 2;
            for (; jump > 0 && !is_full(&w); jump--) put(&w, 0);
            used = w.x;
        } else {
            at = put_literal(&w, at, second);
            if (at == 0) return fail_cut(bmp);
            used += second;
        }
    }
    return QVL_OK;
}

qvl_status qvl_bmp_read(const uint8_t *bytes, size_t count, qvl_canvas *canvas) {
    bmp_picture bmp = {.bytes = bytes, .count = count, .canvas = canvas};
    qvl_status status = read_header(&bmp);
    if (status || canvas->probe) return status;
    if (bmp.bits <= 8) status = read_palette(&bmp);
    if (status) return status;
    if (bmp.data_at == 0) bmp.data_at = bmp.palette_at;
    bmp.row = qvl_alloc((size_t)bmp.width, 4);
    if (!bmp.row) return qvl_fail_memory(canvas->error, "BMP row", (size_t)bmp.width, 4);
    bool runs = bmp.compression == RLE8 || bmp.compression == RLE4;
    status = runs ? read_runs(&bmp) : read_rows(&bmp);
    qvl_free(bmp.row);
    return status;
}
