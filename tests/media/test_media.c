/* Pictures of every kind against Pillow's bytes (tests/fixtures/media, made by
 * tools/oracle/make_media_fixtures.py), and everything that must be refused: damage, hostile headers, other
 * formats, impossible arguments. */
#define _DEFAULT_SOURCE /* mkstemp, ftruncate */
#include "base/file.h"
#include "base/memory.h"
#include "media/media.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <time.h>
#include <unistd.h>

#define FOLDER QVL_FIXTURES "/media/"

typedef struct bytes {
    uint8_t *data;
    size_t count;
} bytes;

static bytes load(const char *file) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", file);
    bytes b;
    qvl_error error;
    if (qvl_file_read(path, (size_t)1 << 20, &b.data, &b.count, &error)) fail_msg("%s", error.message);
    return b;
}

static qvl_status read_bytes(const void *data, size_t count, int64_t max_pixels, qvl_image *image,
                             qvl_error *error) {
    memset(image, 0xa5, sizeof *image);
    memset(error, 0xa5, sizeof *error);
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = data, .byte_count = count};
    return qvl_image_read(&input, max_pixels, image, error);
}

/* A refusal names the input, has its status in the struct, and leaves nothing to free. */
static void check_refused(qvl_status status, const qvl_image *image, const qvl_error *error, const char *name) {
    assert_int_not_equal(status, QVL_OK);
    assert_int_equal(error->status, status);
    if (!strstr(error->message, name)) fail_msg("no \"%s\" in: %s", name, error->message);
    assert_null(image->pixels);
    assert_int_equal(image->width, 0);
    assert_int_equal(image->height, 0);
}

static void expect_refused(const void *data, size_t count, int64_t max_pixels, qvl_status wanted,
                           const char *part) {
    qvl_image image;
    qvl_error error;
    qvl_status status = read_bytes(data, count, max_pixels, &image, &error);
    if (status != wanted) fail_msg("status %d for %s: %s", status, part, status ? error.message : "no error");
    check_refused(status, &image, &error, "the-name");
    if (!strstr(error.message, part)) fail_msg("no \"%s\" in: %s", part, error.message);
}

static void sha256_hex(const qvl_image *image, char hex[65]) {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256(image->pixels, (size_t)(image->width * image->height * 3), digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* ---- pictures */

typedef void (*entry_fn)(const char *file, int64_t width, int64_t height, const char *sha256);

static void for_each_fixture(entry_fn fn) {
    bytes json = load("expected.json");
    cJSON *root = cJSON_ParseWithLength((const char *)json.data, json.count);
    assert_non_null(root);
    const cJSON *pictures = cJSON_GetObjectItem(root, "pictures"), *entry;
    assert_true(cJSON_GetArraySize(pictures) >= 50);
    cJSON_ArrayForEach(entry, pictures) {
        fn(cJSON_GetObjectItem(entry, "file")->valuestring,
           (int64_t)cJSON_GetObjectItem(entry, "width")->valuedouble,
           (int64_t)cJSON_GetObjectItem(entry, "height")->valuedouble,
           cJSON_GetObjectItem(entry, "sha256")->valuestring);
    }
    cJSON_Delete(root);
    qvl_free(json.data);
}

static void check_image(qvl_status status, qvl_image *image, const qvl_error *error, const char *file,
                        int64_t width, int64_t height, const char *sha256) {
    if (status) fail_msg("%s", error->message);
    assert_int_equal(image->width, width);
    assert_int_equal(image->height, height);
    char hex[65];
    sha256_hex(image, hex);
    if (strcmp(hex, sha256) != 0) fail_msg("%s: RGB bytes differ from Pillow's", file);
    qvl_image_free(image);
    assert_null(image->pixels);
}

static void read_both_ways(const char *file, int64_t width, int64_t height, const char *sha256) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", file);
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_status status = qvl_image_read(&input, 0, &image, &error);
    check_image(status, &image, &error, file, width, height, sha256);

    bytes b = load(file);
    status = read_bytes(b.data, b.count, width * height, &image, &error);
    check_image(status, &image, &error, file, width, height, sha256);
    if (width * height > 1) expect_refused(b.data, b.count, width * height - 1, QVL_ERROR_LIMIT, "the limit is");
    qvl_free(b.data);
}

static void pictures_equal_pillow(void **state) {
    (void)state;
    for_each_fixture(read_both_ways);
}

static void from_standard_input(void **state) {
    (void)state;
    int saved = dup(STDIN_FILENO), fd = open(FOLDER "rgb_444.jpg", O_RDONLY);
    assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = "-"};
    qvl_image image, empty;
    qvl_error error;
    qvl_status first = qvl_image_read(&input, 0, &image, NULL);
    qvl_status second = qvl_image_read(&input, 0, &empty, &error); /* at its end by now */
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(first, QVL_OK);
    assert_int_equal(image.width, 53);
    assert_int_equal(image.height, 37);
    qvl_image_free(&image);
    check_refused(second, &empty, &error, "standard input: empty");
}

/* ---- damage */

static void expect_whole_or_refused(const uint8_t *data, size_t count, int64_t width, int64_t height) {
    qvl_image image;
    qvl_error error;
    qvl_status status = read_bytes(data, count, 1 << 20, &image, &error);
    if (status) {
        check_refused(status, &image, &error, "the-name");
        return;
    }
    if (width) {
        assert_int_equal(image.width, width);
        assert_int_equal(image.height, height);
    }
    qvl_image_free(&image);
}

/* A JPEG that lacks nothing but its end marker may be read (Pillow does so too): then it is the whole picture. */
static void truncate_file(const char *file, int64_t width, int64_t height, const char *sha256) {
    bytes b = load(file);
    for (size_t i = 0; i < 20; i++) {
        size_t count = i < 15 ? b.count * i / 15 : b.count - (20 - i);
        uint8_t *cut = malloc(count ? count : 1); /* its own block, so that a sanitizer sees reads beyond it */
        assert_non_null(cut);
        memcpy(cut, b.data, count);
        qvl_image image;
        qvl_error error;
        qvl_status status = read_bytes(cut, count, 0, &image, &error);
        if (status)
            check_refused(status, &image, &error, "the-name");
        else if (b.data[0] != 0xff || count < b.count - 2)
            fail_msg("%s cut to %zu of %zu bytes was read", file, count, b.count);
        else
            check_image(status, &image, &error, file, width, height, sha256);
        free(cut);
    }
    qvl_free(b.data);
}

static void truncation_is_refused(void **state) {
    (void)state;
    for_each_fixture(truncate_file);
}

static void flip_bytes(const char *file, int64_t width, int64_t height, const char *sha256) {
    (void)sha256;
    bytes b = load(file);
    /* Every byte of the front, where the headers are, then every 7th. A header that still parses may say another
     * size, and the file then is that picture. */
    for (size_t i = 0; i < b.count; i += i < 700 ? 1 : 7) {
        for (int bit = 0; bit < 8; bit += 3) {
            b.data[i] ^= (uint8_t)(1 << bit);
            bool sized = i >= 700;
            expect_whole_or_refused(b.data, b.count, sized ? width : 0, sized ? height : 0);
            b.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    qvl_free(b.data);
}

static void flipped_bytes_are_survived(void **state) {
    (void)state;
    for_each_fixture(flip_bytes);
}

/* PNG has checksums: no flipped bit passes, whatever it is in. */
static void png_flips_are_refused(void **state) {
    (void)state;
    static const char *const files[] = {"rgba_8_interlaced.png", "palette_4_trns.png", "gray_16.png"};
    for (size_t f = 0; f < 3; f++) {
        bytes b = load(files[f]);
        for (size_t i = 0; i < b.count; i++) {
            qvl_image image;
            qvl_error error;
            b.data[i] ^= 0x10;
            qvl_status status = read_bytes(b.data, b.count, 0, &image, &error);
            if (!status) fail_msg("%s with byte %zu changed was read", files[f], i);
            check_refused(status, &image, &error, "the-name");
            b.data[i] ^= 0x10;
        }
        qvl_free(b.data);
    }
}

/* Bytes replaced in the middle of a JPEG's stream show as damage, not as a picture with a grey end. */
static void jpeg_stream_damage_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *file;
        const uint8_t patch[4];
        size_t count;
        const char *part;
    } cases[] = {
        {"rgb_444.jpg", {0xff, 0xd9}, 2, "premature end of data segment"},
        {"rgb_420.jpg", {0xff, 0xd9}, 2, "premature end of data segment"},
        {"rgb_progressive_444.jpg", {0xff, 0xd9}, 2, "damaged JPEG"},
        {"gray.jpg", {0xff, 0xd9}, 2, "premature end of data segment"},
        {"rgb_restart.jpg", {0xff, 0xd5, 0xff, 0xd5}, 4, "damaged JPEG"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = load(cases[i].file);
        memcpy(b.data + b.count * 3 / 4, cases[i].patch, cases[i].count);
        expect_refused(b.data, b.count, 0, QVL_ERROR_FORMAT, cases[i].part);
        qvl_free(b.data);
    }
}

/* A restart interval that ends early: libjpeg would decode on with what is left over. */
static void bytes_left_in_restart_interval_are_refused(void **state) {
    (void)state;
    bytes b = load("rgb_restart.jpg");
    uint8_t *grown = malloc(b.count + 4);
    assert_non_null(grown);
    size_t at = 0;
    for (size_t i = 600; i + 1 < b.count && !at; i++)
        if (b.data[i] == 0xff && b.data[i + 1] == 0xd1) at = i;
    assert_true(at > 0);
    memcpy(grown, b.data, at);
    memset(grown + at, 0, 4);
    memcpy(grown + at + 4, b.data + at, b.count - at);
    expect_refused(grown, b.count + 4, 0, QVL_ERROR_FORMAT, "extraneous bytes before marker 0xd");
    free(grown);
    qvl_free(b.data);
}

/* What other decoders forgive without a changed pixel is forgiven: junk between header segments, padding before
 * the end marker, bytes after it, an unknown JFIF version. */
static void harmless_oddities_are_read(void **state) {
    (void)state;
    bytes b = load("rgb_420.jpg");
    qvl_image whole, odd;
    qvl_error error;
    assert_int_equal(read_bytes(b.data, b.count, 0, &whole, &error), QVL_OK);
    size_t after_app0 = 4 + (size_t)(b.data[4] << 8 | b.data[5]);
    size_t places[] = {after_app0, b.count - 2, b.count};
    for (size_t i = 0; i < 3; i++) {
        uint8_t *grown = calloc(1, b.count + 5);
        assert_non_null(grown);
        memcpy(grown, b.data, places[i]);
        memcpy(grown + places[i] + 5, b.data + places[i], b.count - places[i]);
        if (i == 0) grown[11] = 9; /* JFIF version 9 */
        if (read_bytes(grown, b.count + 5, 0, &odd, &error)) fail_msg("place %zu: %s", i, error.message);
        assert_memory_equal(odd.pixels, whole.pixels, 53 * 37 * 3);
        qvl_image_free(&odd);
        free(grown);
    }
    qvl_image_free(&whole);
    qvl_free(b.data);

    bytes png = load("rgb_8.png");
    uint8_t *longer = calloc(1, png.count + 5);
    assert_non_null(longer);
    memcpy(longer, png.data, png.count);
    assert_int_equal(read_bytes(longer, png.count + 5, 0, &odd, &error), QVL_OK);
    qvl_image_free(&odd);
    free(longer);
    qvl_free(png.data);
}

/* Headers that some encoders get wrong and no decoder minds. */
static void wrong_but_unused_headers_are_read(void **state) {
    (void)state;
    static const struct {
        const char *file;
        uint8_t marker;
        size_t offset; /* from the marker, of the byte that is wrong */
        uint8_t value;
    } cases[] = {
        {"rgb_444.jpg", 0xda, 12, 0}, /* the last coefficient of a baseline scan; always 63 */
        {"ycck.jpg", 0xee, 15, 7},    /* an unknown Adobe transform of four components: taken as YCCK */
    };
    for (size_t i = 0; i < 2; i++) {
        bytes b = load(cases[i].file);
        qvl_image right, odd;
        qvl_error error;
        assert_int_equal(read_bytes(b.data, b.count, 0, &right, &error), QVL_OK);
        size_t at = 2;
        while (b.data[at + 1] != cases[i].marker) at += 2 + (size_t)(b.data[at + 2] << 8 | b.data[at + 3]);
        assert_int_not_equal(b.data[at + cases[i].offset], cases[i].value);
        b.data[at + cases[i].offset] = cases[i].value;
        if (read_bytes(b.data, b.count, 0, &odd, &error)) fail_msg("%s: %s", cases[i].file, error.message);
        assert_memory_equal(odd.pixels, right.pixels, (size_t)(right.width * right.height * 3));
        qvl_image_free(&odd);
        qvl_image_free(&right);
        qvl_free(b.data);
    }
}

/* ---- hostile headers */

static uint32_t crc_of(const uint8_t *data, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static void put32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Writes the size into IHDR and makes its checksum right. */
static void set_png_size(uint8_t *png, uint32_t width, uint32_t height) {
    put32(png + 16, width);
    put32(png + 20, height);
    put32(png + 29, crc_of(png + 12, 17));
}

static size_t find_sof(const bytes *jpeg) {
    size_t at = 2;
    while (jpeg->data[at + 1] < 0xc0 || jpeg->data[at + 1] > 0xc2)
        at += 2 + (size_t)(jpeg->data[at + 2] << 8 | jpeg->data[at + 3]);
    return at;
}

static void set_jpeg_size(const bytes *jpeg, unsigned width, unsigned height) {
    uint8_t *sof = jpeg->data + find_sof(jpeg);
    sof[5] = (uint8_t)(height >> 8);
    sof[6] = (uint8_t)height;
    sof[7] = (uint8_t)(width >> 8);
    sof[8] = (uint8_t)width;
}

static void hostile_sizes_are_refused_quickly(void **state) {
    (void)state;
    bytes png = load("rgb_8.png"), jpeg = load("rgb_420.jpg"), progressive = load("rgb_progressive_420.jpg");
    clock_t start = clock();
    set_png_size(png.data, 40000, 40000);
    expect_refused(png.data, png.count, 0, QVL_ERROR_LIMIT,
                   "size is 40000 x 40000 pixels; the limit is 178956970 pixels");
    set_png_size(png.data, 0x7fffffff, 0x7fffffff);
    expect_refused(png.data, png.count, INT64_MAX, QVL_ERROR_LIMIT, "size is 2147483647 x 2147483647 pixels");
    set_png_size(png.data, 1000001, 1);
    expect_refused(png.data, png.count, 0, QVL_ERROR_LIMIT, "size is 1000001 x 1 pixels; the limit of a side");
    set_png_size(png.data, 0x80000000u, 1);
    expect_refused(png.data, png.count, 0, QVL_ERROR_FORMAT, "damaged PNG");
    set_png_size(png.data, 0, 5);
    expect_refused(png.data, png.count, 0, QVL_ERROR_FORMAT, "damaged PNG");
    set_png_size(png.data, 30, 23); /* data for 29 columns: the rows end early */
    expect_refused(png.data, png.count, 0, QVL_ERROR_FORMAT, "damaged PNG");

    set_jpeg_size(&jpeg, 65500, 65500);
    expect_refused(jpeg.data, jpeg.count, 0, QVL_ERROR_LIMIT,
                   "size is 65500 x 65500 pixels; the limit is 178956970 pixels");
    set_jpeg_size(&jpeg, 65535, 16);
    expect_refused(jpeg.data, jpeg.count, 0, QVL_ERROR_LIMIT, "65500");
    set_jpeg_size(&jpeg, 53, 0);
    expect_refused(jpeg.data, jpeg.count, 0, QVL_ERROR_FORMAT, "damaged JPEG");
    set_jpeg_size(&jpeg, 13000, 13000); /* within the limit, but the data ends soon */
    expect_refused(jpeg.data, jpeg.count, 0, QVL_ERROR_FORMAT, "damaged JPEG");
    set_jpeg_size(&progressive, 65500, 65500);
    expect_refused(progressive.data, progressive.count, 0, QVL_ERROR_LIMIT, "65500 x 65500");
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds > 2) fail_msg("refusing took %.1f s", seconds);
    qvl_free(progressive.data);
    qvl_free(jpeg.data);
    qvl_free(png.data);
}

/* A progressive grey 8 x 8 picture whose only coefficient is sent again and again. */
static size_t many_scans(uint8_t *out, int scans) {
    static const uint8_t frame[] = {0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
    static const uint8_t huffman[] = {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0, 0x7f};
    uint8_t *p = out;
    memcpy(p, "\xff\xd8\xff\xdb\0\x43\0", 7);
    memset(p + 7, 1, 64);
    p += 71;
    memcpy(p, frame, sizeof frame);
    p += sizeof frame;
    memcpy(p, huffman, sizeof huffman);
    p += sizeof huffman;
    for (int i = 0; i < scans; i++, p += sizeof scan) memcpy(p, scan, sizeof scan);
    memcpy(p, "\xff\xd9", 2);
    return (size_t)(p + 2 - out);
}

static void scan_bombs_are_refused(void **state) {
    (void)state;
    uint8_t *data = malloc(16384);
    assert_non_null(data);
    qvl_image image;
    qvl_error error;
    if (read_bytes(data, many_scans(data, 499), 0, &image, &error)) fail_msg("%s", error.message);
    assert_int_equal(image.width, 8);
    for (int i = 0; i < 8 * 8 * 3; i++) assert_int_equal(image.pixels[i], 128);
    qvl_image_free(&image);
    expect_refused(data, many_scans(data, 502), 0, QVL_ERROR_LIMIT, "more than 500 scans");
    free(data);
}

/* A component that no scan holds would be mid-grey. */
static void missing_component_is_refused(void **state) {
    (void)state;
    uint8_t data[256];
    size_t count = many_scans(data, 1);
    /* Three components in the frame; the scan stays as it is and holds the first only. */
    static const uint8_t frame[] = {0xff, 0xc2, 0, 17, 8, 0, 8, 0, 8, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0};
    memmove(data + 71 + sizeof frame, data + 71 + 13, count - 71 - 13);
    memcpy(data + 71, frame, sizeof frame);
    expect_refused(data, count + 6, 0, QVL_ERROR_FORMAT, "component 2 of 3 has no data");
}

static void unsupported_jpegs_are_named(void **state) {
    (void)state;
    bytes b = load("rgb_444.jpg");
    size_t sof = find_sof(&b);
    b.data[sof + 4] = 12;
    expect_refused(b.data, b.count, 0, QVL_ERROR_UNSUPPORTED, "precision 12");
    b.data[sof + 4] = 8;
    b.data[sof + 1] = 0xc3;
    expect_refused(b.data, b.count, 0, QVL_ERROR_UNSUPPORTED, "SOF");
    qvl_free(b.data);

    uint8_t two[256];
    size_t count = many_scans(two, 1);
    static const uint8_t frame[] = {0xff, 0xc2, 0, 14, 8, 0, 8, 0, 8, 2, 1, 0x11, 0, 2, 0x11, 0};
    memmove(two + 71 + sizeof frame, two + 71 + 13, count - 71 - 13);
    memcpy(two + 71, frame, sizeof frame);
    expect_refused(two, count + 3, 0, QVL_ERROR_UNSUPPORTED, "2 components; allowed are 1, 3 and 4");
}

/* ---- PNG structure */

static size_t put_chunk(uint8_t *out, const char *kind, const void *body, size_t count) {
    put32(out, (uint32_t)count);
    memcpy(out + 4, kind, 4);
    if (count) memcpy(out + 8, body, count);
    put32(out + 8 + count, crc_of(out + 4, count + 4));
    return count + 12;
}

static void palette_index_beyond_palette_is_refused(void **state) {
    (void)state;
    /* 2 x 1 pixels of 8-bit indices 0 and 5, stored uncompressed; a palette of two colours. */
    static const uint8_t header[] = {0, 0, 0, 2, 0, 0, 0, 1, 8, 3, 0, 0, 0};
    static const uint8_t palette[] = {1, 2, 3, 4, 5, 6};
    uint8_t data[] = {0x78, 1, 1, 3, 0, 0xfc, 0xff, 0, 0, 5, 0, 8, 0, 6};
    for (int good = 0; good < 2; good++) {
        uint8_t png[256] = "\x89PNG\r\n\x1a\n";
        if (good) data[9] = 1, data[11] = 4, data[13] = 2; /* index 1 and the Adler-32 that fits */
        size_t n = 8;
        n += put_chunk(png + n, "IHDR", header, sizeof header);
        n += put_chunk(png + n, "PLTE", palette, sizeof palette);
        n += put_chunk(png + n, "IDAT", data, sizeof data);
        n += put_chunk(png + n, "IEND", NULL, 0);
        if (!good) {
            expect_refused(png, n, 0, QVL_ERROR_FORMAT, "palette index 5; the palette has 2");
            continue;
        }
        qvl_image image;
        qvl_error error;
        if (read_bytes(png, n, 0, &image, &error)) fail_msg("%s", error.message);
        assert_memory_equal(image.pixels, palette, 6);
        qvl_image_free(&image);
    }
}

/* ---- formats told apart */

static void other_formats_are_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *part;
    } cases[] = {
        {"RIFF\x10\0\0\0WEBPVP8 ", 16, "the-name: WebP is not supported; qvl reads JPEG and PNG"},
        {"GIF87a\1\0\1\0", 10, "the-name: GIF is not supported; qvl reads JPEG and PNG"},
        {"GIF89a\1\0\1\0", 10, "the-name: GIF is not supported; qvl reads JPEG and PNG"},
        {"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18, "the-name: BMP is not supported; qvl reads JPEG and PNG"},
        {"II*\0\x08\0\0\0", 8, "the-name: TIFF is not supported; qvl reads JPEG and PNG"},
        {"MM\0*\0\0\0\x08", 8, "the-name: TIFF is not supported; qvl reads JPEG and PNG"},
        {"II+\0\x08\0\0\0", 8, "the-name: TIFF is not supported; qvl reads JPEG and PNG"},
        {"\0\0\0\x1c"
         "ftypavif\0\0\0\0",
         16, "the-name: AVIF is not supported; qvl reads JPEG and PNG"},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0",
         16, "the-name: HEIC is not supported; qvl reads JPEG and PNG"},
        {"\0\0\0\x18"
         "ftyphevc\0\0\0\0",
         16, "the-name: HEIC is not supported; qvl reads JPEG and PNG"},
        {"\0\0\0\x18"
         "ftypmif1\0\0\0\0",
         16, "the-name: HEIC or AVIF is not supported; qvl reads JPEG and PNG"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(cases[i].bytes, cases[i].count, 0, QVL_ERROR_UNSUPPORTED, cases[i].part);
}

static void other_bytes_are_shown(void **state) {
    (void)state;
    expect_refused("", 0, 0, QVL_ERROR_FORMAT, "empty, 0 bytes");
    expect_refused("%PDF-1.7\n", 9, 0, QVL_ERROR_FORMAT,
                   "not a picture qvl reads: first bytes 25 50 44 46 2d 31 2e 37; qvl reads JPEG and PNG");
    expect_refused("\xff", 1, 0, QVL_ERROR_FORMAT, "first bytes ff;");
    expect_refused("\xff\xd8\xff", 3, 0, QVL_ERROR_FORMAT, "damaged JPEG");
    expect_refused("\x89PNG\r\n\x1a\n", 8, 0, QVL_ERROR_FORMAT, "damaged PNG: the file ends");
    expect_refused("\x89PNG\n\x1a\n\n", 8, 0, QVL_ERROR_FORMAT, "first bytes 89");
}

static void expect_file_refused(const char *path, qvl_status wanted) {
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_status status = qvl_image_read(&input, 0, &image, &error);
    assert_int_equal(status, wanted);
    check_refused(status, &image, &error, path);
}

static void bad_files_are_named(void **state) {
    (void)state;
    expect_file_refused("/nonexistent/picture.png", QVL_ERROR_IO);
    expect_file_refused(FOLDER, QVL_ERROR_IO);
    expect_file_refused(FOLDER "expected.json", QVL_ERROR_FORMAT);
    expect_file_refused("/dev/null", QVL_ERROR_FORMAT);

    char path[] = "/tmp/qvl_test_media_XXXXXX"; /* a sparse file above the limit of 1 GiB */
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, ((off_t)1 << 30) + 1), 0);
    close(fd);
    expect_file_refused(path, QVL_ERROR_LIMIT);
    unlink(path);
}

/* ---- raw pixels and arguments */

static void pixels_with_stride(void **state) {
    (void)state;
    uint8_t rows[3 * 11 + 6];
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (uint8_t)(i * 7);
    qvl_input input = {.kind = QVL_INPUT_RGB8, .bytes = rows, .width = 2, .height = 4, .row_stride = 11};
    qvl_image image;
    assert_int_equal(qvl_image_read(&input, 0, &image, NULL), QVL_OK);
    for (size_t y = 0; y < 4; y++) assert_memory_equal(image.pixels + 6 * y, rows + 11 * y, 6);
    qvl_image_free(&image);

    input.byte_count = sizeof rows; /* exactly enough: the last row is not padded */
    assert_int_equal(qvl_image_read(&input, 8, &image, NULL), QVL_OK);
    qvl_image_free(&image);

    input.row_stride = 0;
    input.byte_count = 24;
    assert_int_equal(qvl_image_read(&input, 0, &image, NULL), QVL_OK);
    assert_memory_equal(image.pixels, rows, 24);
    qvl_image_free(&image);
}

static void bad_pixels_are_refused(void **state) {
    (void)state;
    static const uint8_t rows[64];
    static const struct {
        int64_t width, height;
        size_t row_stride, byte_count;
        int64_t max_pixels;
        qvl_status status;
        const char *part;
    } cases[] = {
        {2, 4, 5, 0, 0, QVL_ERROR_ARGUMENT, "row_stride is 5; a row of 2 pixels has 6 bytes"},
        {2, 4, SIZE_MAX / 2, 0, 0, QVL_ERROR_ARGUMENT, "4 rows exceed the address space"},
        {2, 4, 6, 23, 0, QVL_ERROR_ARGUMENT, "byte_count is 23; 2 x 4 pixels take 24 bytes"},
        {2, 4, 7, 26, 0, QVL_ERROR_ARGUMENT, "byte_count is 26; 2 x 4 pixels take 27 bytes"},
        {0, 4, 6, 0, 0, QVL_ERROR_ARGUMENT, "size is 0 x 4; each side must be at least 1"},
        {2, 0, 6, 0, 0, QVL_ERROR_ARGUMENT, "size is 2 x 0; each side must be at least 1"},
        {-1, 4, 6, 0, 0, QVL_ERROR_ARGUMENT, "size is -1 x 4"},
        {2, INT64_MIN, 6, 0, 0, QVL_ERROR_ARGUMENT, "each side must be at least 1"},
        {INT64_MAX, 4, 0, 0, INT64_MAX, QVL_ERROR_LIMIT, "size is 9223372036854775807 x 4 pixels"},
        {INT64_MAX / 4, 4, 0, 0, INT64_MAX, QVL_ERROR_MEMORY, "out of memory"},
        {2, 4, 6, 0, 7, QVL_ERROR_LIMIT, "size is 2 x 4 pixels; the limit is 7 pixels"},
        {2, 4, 6, 0, -7, QVL_ERROR_ARGUMENT, "max_pixels is -7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qvl_input input = {.kind = QVL_INPUT_RGB8, .name = "the-name", .bytes = rows};
        input.width = cases[i].width;
        input.height = cases[i].height;
        input.row_stride = cases[i].row_stride;
        input.byte_count = cases[i].byte_count;
        qvl_image image;
        qvl_error error;
        qvl_status status = qvl_image_read(&input, cases[i].max_pixels, &image, &error);
        if (status != cases[i].status) fail_msg("status %d for: %s", status, cases[i].part);
        check_refused(status, &image, &error, "the-name");
        if (!strstr(error.message, cases[i].part)) fail_msg("no \"%s\" in: %s", cases[i].part, error.message);
    }
}

static void impossible_arguments_are_refused(void **state) {
    (void)state;
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE};
    assert_int_equal(qvl_image_read(&input, 0, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "a file without a name");
    assert_int_equal(qvl_image_read(NULL, 0, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "input is NULL");
    assert_int_equal(qvl_image_read(&input, 0, NULL, &error), QVL_ERROR_ARGUMENT);
    input.kind = QVL_INPUT_BYTES;
    input.byte_count = 10;
    assert_int_equal(qvl_image_read(&input, 0, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "picture in memory: bytes are NULL");
    input.kind = QVL_INPUT_RGB8;
    assert_int_equal(qvl_image_read(&input, 0, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "picture in memory: pixels are NULL");
    input.kind = (qvl_input_kind)3;
    assert_int_equal(qvl_image_read(&input, 0, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "input kind is 3; allowed are 0 to 2");
    input.kind = QVL_INPUT_BYTES;
    assert_int_equal(qvl_image_read(&input, -1, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "max_pixels is -1");
    assert_int_equal(qvl_image_read(&input, 0, &image, NULL), QVL_ERROR_ARGUMENT);
    qvl_image_free(NULL);
    qvl_image_free(&image);
}

/* A name longer than a message leaves room for what is wrong. */
static void long_names_leave_room(void **state) {
    (void)state;
    char name[3000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = name, .bytes = "\xff\xd8\xff\xd9", .byte_count = 4};
    check_refused(qvl_image_read(&input, 0, &image, &error), &image, &error, "damaged JPEG");
    input.bytes = "GIF89a";
    input.byte_count = 6;
    check_refused(qvl_image_read(&input, 0, &image, &error), &image, &error, "qvl reads JPEG and PNG");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_equal_pillow),
        cmocka_unit_test(from_standard_input),
        cmocka_unit_test(truncation_is_refused),
        cmocka_unit_test(flipped_bytes_are_survived),
        cmocka_unit_test(png_flips_are_refused),
        cmocka_unit_test(jpeg_stream_damage_is_refused),
        cmocka_unit_test(bytes_left_in_restart_interval_are_refused),
        cmocka_unit_test(harmless_oddities_are_read),
        cmocka_unit_test(wrong_but_unused_headers_are_read),
        cmocka_unit_test(hostile_sizes_are_refused_quickly),
        cmocka_unit_test(scan_bombs_are_refused),
        cmocka_unit_test(missing_component_is_refused),
        cmocka_unit_test(unsupported_jpegs_are_named),
        cmocka_unit_test(palette_index_beyond_palette_is_refused),
        cmocka_unit_test(other_formats_are_named),
        cmocka_unit_test(other_bytes_are_shown),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(pixels_with_stride),
        cmocka_unit_test(bad_pixels_are_refused),
        cmocka_unit_test(impossible_arguments_are_refused),
        cmocka_unit_test(long_names_leave_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
