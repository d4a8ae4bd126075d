#include "media/support.h"

#include "base/file.h"
#include "base/memory.h"

#include <cjson/cJSON.h>
#include <openssl/sha.h>

bytes load(const char *file) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", file);
    bytes b;
    qvl_error error;
    if (qvl_file_read(path, (size_t)1 << 20, &b.data, &b.count, &error)) fail_msg("%s", error.message);
    return b;
}

qvl_media_options reference_options(void) {
    qvl_media_options options;
    qvl_media_options_init(&options);
    qvl_media_options_reference(&options);
    return options;
}

qvl_status read_bytes(const void *data, size_t count, const qvl_media_options *options, qvl_image *image,
                      qvl_error *error) {
    memset(image, 0xa5, sizeof *image);
    memset(error, 0xa5, sizeof *error);
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = data, .byte_count = count};
    return qvl_image_read(&input, options, image, error);
}

void check_refused(qvl_status status, const qvl_image *image, const qvl_error *error, const char *name) {
    assert_int_not_equal(status, QVL_OK);
    assert_int_equal(error->status, status);
    if (!strstr(error->message, name)) fail_msg("no \"%s\" in: %s", name, error->message);
    assert_null(image->pixels);
    assert_int_equal(image->width, 0);
    assert_int_equal(image->height, 0);
    assert_null(image->stored.format);
}

void expect_refused(const void *data, size_t count, int64_t max_pixels, qvl_status wanted, const char *part) {
    qvl_image image;
    qvl_error error;
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = max_pixels;
    qvl_status status = read_bytes(data, count, &options, &image, &error);
    if (status != wanted) fail_msg("status %d for %s: %s", status, part, status ? error.message : "no error");
    check_refused(status, &image, &error, "the-name");
    if (!strstr(error.message, part)) fail_msg("no \"%s\" in: %s", part, error.message);
}

qvl_image read_good(const void *data, size_t count, const qvl_media_options *options) {
    qvl_image image;
    qvl_error error;
    if (read_bytes(data, count, options, &image, &error)) fail_msg("%s", error.message);
    return image;
}

void expect_pixels(const void *data, size_t count, const qvl_media_options *options, int64_t width, int64_t height,
                   const uint8_t *rgb) {
    qvl_image image = read_good(data, count, options);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_memory_equal(image.pixels, rgb, (size_t)(width * height * 3));
    qvl_image_free(&image);
}

static expectation take_expectation(const cJSON *entry, const char *policy) {
    const cJSON *facts = cJSON_GetObjectItem(entry, policy);
    return (expectation){(int64_t)cJSON_GetObjectItem(facts, "width")->valuedouble,
                         (int64_t)cJSON_GetObjectItem(facts, "height")->valuedouble,
                         cJSON_GetObjectItem(facts, "sha256")->valuestring};
}

void for_each_fixture(fixture_fn fn) {
    bytes json = load("expected.json");
    cJSON *root = cJSON_ParseWithLength((const char *)json.data, json.count);
    assert_non_null(root);
    const cJSON *pictures = cJSON_GetObjectItem(root, "pictures"), *entry;
    assert_true(cJSON_GetArraySize(pictures) >= 250);
    cJSON_ArrayForEach(entry, pictures) {
        fixture f = {.file = cJSON_GetObjectItem(entry, "file")->valuestring,
                     .format = cJSON_GetObjectItem(entry, "format")->valuestring,
                     .orientation = cJSON_GetObjectItem(entry, "orientation")->valueint,
                     .standard = take_expectation(entry, "default"),
                     .reference = take_expectation(entry, "reference")};
        bytes b = load(f.file);
        fn(&f, &b);
        qvl_free(b.data);
    }
    cJSON_Delete(root);
    qvl_free(json.data);
}

bool is_as_expected(qvl_image *image, const expectation *wanted) {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char hex[65];
    SHA256(image->pixels, (size_t)(image->width * image->height * 3), digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    bool same = image->width == wanted->width && image->height == wanted->height && !strcmp(hex, wanted->sha256);
    qvl_image_free(image);
    assert_null(image->pixels);
    return same;
}

uint32_t crc32_of(const uint8_t *data, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

void put32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (24 - 8 * i));
}

size_t put_chunk(uint8_t *out, const char *kind, const void *body, size_t count) {
    put32(out, (uint32_t)count);
    memcpy(out + 4, kind, 4);
    if (count) memcpy(out + 8, body, count);
    put32(out + 8 + count, crc32_of(out + 4, count + 4));
    return count + 12;
}

size_t write_png(uint8_t *out, uint32_t width, uint32_t height, int depth, int colour, const uint8_t *samples,
                 size_t row_bytes) {
    uint8_t header[13] = {0};
    put32(header, width);
    put32(header + 4, height);
    header[8] = (uint8_t)depth;
    header[9] = (uint8_t)colour;
    /* One stored block of deflate: each row with filter 0 before it, then the Adler checksum. */
    size_t length = height * (row_bytes + 1);
    uint8_t *stream = malloc(length + 11);
    assert_non_null(stream);
    assert_true(length < 65536);
    memcpy(stream,
           (uint8_t[]){0x78, 1, 1, (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)~length,
                       (uint8_t)(~length >> 8)},
           7);
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < length; i++) {
        size_t column = i % (row_bytes + 1);
        uint8_t byte = column ? samples[i / (row_bytes + 1) * row_bytes + column - 1] : 0;
        stream[7 + i] = byte;
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
    }
    put32(stream + 7 + length, b << 16 | a);
    memcpy(out, "\x89PNG\r\n\x1a\n", 8);
    size_t n = 8;
    n += put_chunk(out + n, "IHDR", header, sizeof header);
    n += put_chunk(out + n, "IDAT", stream, length + 11);
    n += put_chunk(out + n, "IEND", NULL, 0);
    free(stream);
    return n;
}
