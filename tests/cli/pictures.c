#include "cli/pictures.h"

#include "cli/program.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void write_png(const char *path, uint32_t width, uint32_t height) {
    uint8_t *pixels = malloc((size_t)3 * width * height), *p = pixels;
    assert_non_null(pixels);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++, p += 3) {
            p[0] = (uint8_t)(255 * x / width);
            p[1] = (uint8_t)(255 * y / height);
            p[2] = (uint8_t)(x ^ y);
        }
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    image.flags = PNG_IMAGE_FLAG_FAST;
    if (!png_image_write_to_file(&image, path, 0, pixels, 0, NULL)) fail_msg("%s: %s", path, image.message);
    free(pixels);
}

void write_turned_jpeg(const char *path, const char *jpeg, int orientation) {
    /* An APP1 segment: "Exif", a TIFF header, one directory of one entry. */
    uint8_t segment[] = {0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0,
                         1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, 0,   0,   0,  0, 0, 0, 0, 0};
    size_t count;
    char *bytes = read_file(jpeg, &count), *turned = malloc(count + sizeof segment);
    assert_non_null(turned);
    segment[28] = (uint8_t)orientation;
    memcpy(turned, bytes, 2);
    memcpy(turned + 2, segment, sizeof segment);
    memcpy(turned + 2 + sizeof segment, bytes + 2, count - 2);
    write_file(path, turned, count + sizeof segment);
    free(turned);
    free(bytes);
}
