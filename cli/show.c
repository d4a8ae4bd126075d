#define _GNU_SOURCE
#include "show.h"

#include "open.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* DETAIL: pixels that kitty gets for one pixel of half blocks, across and down. */
enum { MOST_COLUMNS = 40, MOST_LINES = 20, DETAIL = 10 };

typedef enum way { SHOW_NOTHING, SHOW_KITTY, SHOW_TRUE_COLOURS, SHOW_256_COLOURS } way;

/* ---- what the terminal can */

static bool is(const char *variable, const char *value) {
    const char *text = getenv(variable);
    return text && strcmp(text, value) == 0;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* tmux and screen keep the variables of the terminal round them, and swallow its graphics. */
static bool knows_kitty(const char *term) {
    if (getenv("TMUX") || getenv("STY") || begins(term, "tmux") || begins(term, "screen")) return false;
    return getenv("KITTY_WINDOW_ID") || is("TERM", "xterm-kitty") || is("TERM", "xterm-ghostty") ||
           is("TERM_PROGRAM", "ghostty") || is("TERM_PROGRAM", "WezTerm");
}

static way find_way(void) {
    const char *term = getenv("TERM");
    if (!isatty(STDERR_FILENO) || getenv("NO_COLOR") || !term || !*term || strcmp(term, "dumb") == 0)
        return SHOW_NOTHING;
    if (knows_kitty(term)) return SHOW_KITTY;
    return is("COLORTERM", "truecolor") || is("COLORTERM", "24bit") ? SHOW_TRUE_COLOURS : SHOW_256_COLOURS;
}

static int64_t find_columns(void) {
    struct winsize window = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return MOST_COLUMNS;
    return window.ws_col < MOST_COLUMNS ? window.ws_col : MOST_COLUMNS;
}

/* ---- making it smaller */

typedef struct shape {
    int64_t width, height;
} shape;

/* Is the width what decides how large it may become within that one? */
static bool is_wider(shape s, shape within) {
    return s.width * within.height >= s.height * within.width;
}

/* The size of that shape within the other. */
static shape fit(shape s, shape within) {
    if (s.width <= within.width && s.height <= within.height) return s;
    shape fitted = within;
    if (is_wider(s, within))
        fitted.height = (2 * s.height * within.width + s.width) / (2 * s.width);
    else
        fitted.width = (2 * s.width * within.height + s.height) / (2 * s.height);
    if (fitted.width < 1) fitted.width = 1;
    if (fitted.height < 1) fitted.height = 1;
    return fitted;
}

/* What pixel i of `from` shares with pixel o of `to`, both as wide as a line; in parts of which a pixel of `from`
 * has `to`, and one of `to` has `from`. */
static uint64_t share(int64_t i, int64_t from, int64_t o, int64_t to) {
    int64_t start = i * to > o * from ? i * to : o * from;
    int64_t end = (i + 1) * to < (o + 1) * from ? (i + 1) * to : (o + 1) * from;
    return (uint64_t)(end - start);
}

/* The mean of the area that pixel (x, y) of small covers, in whole numbers. */
static void average(const qvl_image *image, const qvl_image *small, int64_t x, int64_t y, uint8_t *pixel) {
    int64_t w = image->width, h = image->height;
    uint64_t sums[3] = {0}, area = (uint64_t)w * (uint64_t)h;
    for (int64_t i = y * h / small->height; i * small->height < (y + 1) * h; i++) {
        uint64_t down = share(i, h, y, small->height);
        for (int64_t k = x * w / small->width; k * small->width < (x + 1) * w; k++) {
            uint64_t part = down * share(k, w, x, small->width);
            const uint8_t *p = image->pixels + 3 * (i * w + k);
            for (int c = 0; c < 3; c++) sums[c] += part * p[c];
        }
    }
    for (int c = 0; c < 3; c++) pixel[c] = (uint8_t)((sums[c] + area / 2) / area);
}

static bool shrink(const qvl_image *image, shape to, qvl_image *small) {
    *small = (qvl_image){.width = to.width, .height = to.height};
    uint8_t *p = small->pixels = calloc((size_t)small->width, 3 * (size_t)small->height);
    if (!p) return false;
    for (int64_t y = 0; y < small->height; y++)
        for (int64_t x = 0; x < small->width; x++, p += 3) average(image, small, x, y, p);
    return true;
}

/* ---- half blocks */

/* The nearest of the 6 x 6 x 6 colours and 24 greys that 256 colours have behind the first sixteen. */
static int nearest(const uint8_t *p) {
    static const int steps[6] = {0, 95, 135, 175, 215, 255};
    int index = 0, far = 0, grey = (p[0] + p[1] + p[2] - 9) / 30, grey_far = 0;
    for (int c = 0; c < 3; c++) {
        int step = p[c] < 48 ? 0 : p[c] < 115 ? 1 : (p[c] - 35) / 40;
        index = 6 * index + step;
        far += (p[c] - steps[step]) * (p[c] - steps[step]);
    }
    grey = grey < 0 ? 0 : grey > 23 ? 23 : grey;
    for (int c = 0; c < 3; c++) grey_far += (p[c] - 8 - 10 * grey) * (p[c] - 8 - 10 * grey);
    return grey_far < far ? 232 + grey : 16 + index;
}

/* layer: 38 is the upper half, 48 the lower one, behind it. */
static void put_colour(FILE *out, way how, int layer, const uint8_t *p) {
    if (how == SHOW_TRUE_COLOURS)
        fprintf(out, "\033[%d;2;%d;%d;%dm", layer, p[0], p[1], p[2]);
    else
        fprintf(out, "\033[%d;5;%dm", layer, nearest(p));
}

/* Two pixels a character. Colours are set where they change. */
static void put_blocks(FILE *out, way how, const qvl_image *image) {
    size_t line = 3 * (size_t)image->width;
    for (int64_t y = 0; y < image->height; y += 2) {
        const uint8_t *upper = image->pixels + (size_t)y * line;
        for (size_t x = 0; x < line; x += 3) {
            const uint8_t *p = upper + x;
            if (x == 0 || memcmp(p, p - 3, 3) != 0) put_colour(out, how, 38, p);
            if (y + 1 < image->height && (x == 0 || memcmp(p + line, p + line - 3, 3) != 0))
                put_colour(out, how, 48, p + line);
            fputs("\xe2\x96\x80", out); /* U+2580, the upper half block */
        }
        fputs("\033[0m\n", out);
    }
}

/* ---- kitty's protocol */

/* The pixels in base64, 4096 bytes at a time. q=2: the terminal answers nothing, which would look like keys. It keeps
 * the shape where one of columns and lines is given. */
static void put_kitty(FILE *out, const qvl_image *image, char side, int64_t cells) {
    enum { CHUNK = 3072 };
    uint8_t text[4 * CHUNK / 3 + 1];
    size_t count = 3 * (size_t)image->width * (size_t)image->height;
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t size = count - at < CHUNK ? count - at : CHUNK;
        EVP_EncodeBlock(text, image->pixels + at, (int)size);
        fputs("\033_G", out);
        if (at == 0)
            fprintf(out, "a=T,f=24,q=2,s=%lld,v=%lld,%c=%lld,", (long long)image->width, (long long)image->height,
                    side, (long long)cells);
        fprintf(out, "m=%d;%s\033\\", at + size < count, (const char *)text);
    }
    fputc('\n', out);
}

/* ---- the picture */

/* A clip's patch rows, in the order of their merged blocks, back to the pixels of the first frame. */
static void unpatch(const qvl_patches *patches, const qvl_model_info *info, qvl_image *image) {
    int64_t patch = info->patch_size, merge = info->spatial_merge_size, area = patch * patch;
    int64_t across = image->width / (patch * merge);
    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++) {
            int64_t py = y / patch, px = x / patch, block = py / merge * across + px / merge;
            const float *row =
                patches->values + ((block * merge + py % merge) * merge + px % merge) * patches->cols;
            for (int64_t c = 0; c < 3; c++) {
                double value = (double)row[c * info->temporal_patch_size * area + y % patch * patch + x % patch];
                value = value * (double)info->video_std[c] + (double)info->video_mean[c];
                value /= info->video_rescale_factor;
                image->pixels[3 * (y * image->width + x) + c] = (uint8_t)(value < 0.0     ? 0.0
                                                                          : value > 255.0 ? 255.0
                                                                                          : value + 0.5);
            }
        }
}

/* The first frame, in the size that a clip of it alone has, and its shape before that. */
static qvl_status read_frame(const qvl_model *model, const qvl_input *input, const qvl_preprocess_options *options,
                             qvl_image *image, shape *source, qvl_error *error) {
    qvl_input own = *input;
    qvl_preprocess_options first;
    qvl_patches patches;
    qvl_preprocess_options_init(&first);
    own.fps = 0.0;
    own.num_frames = own.min_frames = own.max_frames = 0;
    first.width = options->width; /* some shapes have no other size */
    first.height = options->height;
    first.media = options->media;
    first.clip.assumed_rate = options->clip.assumed_rate;
    first.clip.num_frames = 1;
    qvl_status status = qvl_preprocess_inputs(model, &own, 1, &first, &patches, error);
    if (status) return status;
    *image = (qvl_image){.width = patches.items[0].width, .height = patches.items[0].height};
    *source = (shape){patches.items[0].source_width, patches.items[0].source_height};
    image->pixels = calloc((size_t)image->width, 3 * (size_t)image->height);
    if (image->pixels)
        unpatch(&patches, qvl_model_get_info(model), image);
    else
        status = cli_no_memory(error);
    qvl_patches_free(&patches);
    return status;
}

static bool draw(way how, const qvl_image *image, shape source) {
    shape cells = {find_columns(), 2 * MOST_LINES}, fitted = fit(source, cells);
    shape finer = {DETAIL * cells.width, DETAIL * cells.height};
    qvl_image small = {0};
    char *text = NULL;
    size_t count = 0;
    bool good = shrink(image, how == SHOW_KITTY ? fit(source, finer) : fitted, &small);
    FILE *out = good ? open_memstream(&text, &count) : NULL;
    if (out && how != SHOW_KITTY)
        put_blocks(out, how, &small);
    else if (out && is_wider(source, cells))
        put_kitty(out, &small, 'c', fitted.width);
    else if (out)
        put_kitty(out, &small, 'r', (fitted.height + 1) / 2);
    good = out && fclose(out) == 0;
    if (good) fwrite(text, 1, count, stderr);
    free(text);
    free(small.pixels);
    return good;
}

qvl_status cli_show(const qvl_model *model, const qvl_input *input, bool clip,
                    const qvl_preprocess_options *options, qvl_error *error) {
    way how = find_way();
    qvl_image image = {0};
    shape source;
    if (how == SHOW_NOTHING) return QVL_OK;
    qvl_status status = clip ? read_frame(model, input, options, &image, &source, error)
                             : qvl_image_read(input, &options->media, &image, error);
    if (!clip) source = (shape){image.width, image.height};
    fflush(stdout);
    if (!status && !draw(how, &image, source)) status = cli_no_memory(error);
    if (clip)
        free(image.pixels);
    else
        qvl_image_free(&image);
    return status;
}
