/* Any bytes as a picture, under the default and the reference policies: a whole picture within the limit, of which
 * the header alone said the same, or a refusal that names the input. Start from the files of tests/fixtures/media. A
 * PNG's checksums are made right after each mutation, or nothing would get past them. */
#include "qvl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void read_picture(const qvl_input *input, const qvl_media_options *options) {
    qvl_image image, probed;
    qvl_error error = {0};
    qvl_status probe_status = qvl_image_probe(input, options, &probed, NULL);
    if (probed.pixels) abort();
    qvl_status status = qvl_image_read(input, options, &image, &error);
    if (status) {
        if (error.status != status || !strstr(error.message, "the-name") || image.pixels) abort();
        return;
    }
    if (probe_status || probed.width != image.width || probed.height != image.height ||
        probed.stored.orientation != image.stored.orientation)
        abort();
    if (image.width < 1 || image.height < 1 || image.width * image.height > MAX_PIXELS) abort();
    volatile unsigned sum = 0; /* every pixel is there to be read */
    for (int64_t i = 0; i < image.width * image.height * 3; i++) sum = sum + image.pixels[i];
    qvl_image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = data, .byte_count = size};
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = MAX_PIXELS;
    read_picture(&input, &options);
    qvl_media_options_reference(&options);
    read_picture(&input, &options);
    return 0;
}

static uint32_t crc_of(const uint8_t *data, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 0 || size < 8 || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0) return size;
    for (size_t at = 8; size - at >= 12;) {
        size_t length =
            (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12) break;
        uint32_t crc = crc_of(data + at + 4, length + 4);
        at += length + 12;
        for (int i = 0; i < 4; i++) data[at - 4 + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    }
    return size;
}
