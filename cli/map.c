#include "map.h"

#include "components.h"
#include "open.h"
#include "output.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* libpng's own limits: of a side, and of the bytes of all lines, each of which has one more than its pixels take. */
enum { MOST_PIXELS = 1000000 };
#define MOST_BYTES UINT32_MAX

qvl_status cli_check_map(const char *path, const qvl_item *item, const qvl_model_info *info, qvl_error *error) {
    int64_t width = item->grid.w * info->patch_size, height = item->grid.t * item->grid.h * info->patch_size;
    if (width > MOST_PIXELS || height > MOST_PIXELS)
        return cli_fail(error, QVL_ERROR_LIMIT,
                        "cannot write %s: the map would have %lldx%lld pixels; a side has at most %d", path,
                        (long long)width, (long long)height, MOST_PIXELS);
    uint64_t bytes = (uint64_t)height * (3 * (uint64_t)width + 1);
    if (bytes <= MOST_BYTES) return QVL_OK;
    return cli_fail(
        error, QVL_ERROR_LIMIT,
        "cannot write %s: the map would have %lldx%lld pixels, %llu bytes; a PNG file has at most %llu", path,
        (long long)width, (long long)height, (unsigned long long)bytes, (unsigned long long)MOST_BYTES);
}

/* levels [tokens, 3] of one input, in the order of its tokens. */
static bool find_levels(const qvl_features *features, uint8_t *levels) {
    size_t tokens = (size_t)features->tokens;
    double *scores = calloc(tokens, CLI_COMPONENTS * sizeof *scores);
    bool good = scores && cli_find_components(features, scores);
    for (size_t k = 0; good && k < CLI_COMPONENTS; k++)
        good = cli_scale_component(scores + k * tokens, features->tokens, levels + k);
    free(scores);
    return good;
}

/* rows x columns squares with sides of side pixels. */
static void draw_squares(const uint8_t *levels, size_t rows, size_t columns, size_t side, uint8_t *pixels) {
    size_t line = 3 * columns * side;
    for (size_t y = 0; y < rows * side; y++, pixels += line) {
        if (y % side) {
            memcpy(pixels, pixels - line, line);
            continue;
        }
        const uint8_t *level = levels + 3 * columns * (y / side);
        for (size_t x = 0; x < columns * side; x++) memcpy(pixels + 3 * x, level + 3 * (x / side), 3);
    }
}

static qvl_status write_png(const char *path, const uint8_t *pixels, size_t width, size_t height,
                            qvl_error *error) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t count = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *bytes = malloc(count);
    if (!bytes) return cli_no_memory(error);
    qvl_status status = QVL_OK;
    if (!png_image_write_to_memory(&image, bytes, &count, 0, pixels, 0, NULL))
        status = cli_fail(error, QVL_ERROR_IO, "cannot write %s: %s", path, image.message);
    png_image_free(&image);
    if (!status) status = cli_write(path, bytes, count, error);
    free(bytes);
    return status;
}

qvl_status cli_save_map(const char *path, const qvl_features *features, const qvl_model_info *info,
                        qvl_error *error) {
    const qvl_grid *grid = &features->items[0].grid;
    int64_t merge = info->spatial_merge_size;
    size_t rows = (size_t)(grid->t * (grid->h / merge)), columns = (size_t)(grid->w / merge);
    size_t side = (size_t)(merge * info->patch_size);
    uint8_t *levels = calloc((size_t)features->tokens, 3), *pixels = calloc(rows * side, 3 * columns * side);
    qvl_status status = levels && pixels && find_levels(features, levels) ? QVL_OK : cli_no_memory(error);
    if (!status) {
        draw_squares(levels, rows, columns, side, pixels);
        status = write_png(path, pixels, columns * side, rows * side, error);
    }
    free(levels);
    free(pixels);
    return status;
}
