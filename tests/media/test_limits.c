/* Hostile headers: refused from the header, at once and without memory of the picture's size; and what a header says
 * without reading further. */
#define _DEFAULT_SOURCE /* getrusage */
#include "base/memory.h"
#include "media/support.h"

#include <sys/resource.h>
#include <time.h>

/* Writes the size into IHDR and makes its checksum right. */
static void set_png_size(uint8_t *png, uint32_t width, uint32_t height) {
    put32(png + 16, width);
    put32(png + 20, height);
    put32(png + 29, crc32_of(png + 12, 17));
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
    if (read_bytes(data, many_scans(data, 499), NULL, &image, &error)) fail_msg("%s", error.message);
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

/* ---- a tiny file that declares a gigantic picture */

static size_t find(const bytes *b, const char *text) {
    for (size_t at = 0; at + 4 <= b->count; at++)
        if (memcmp(b->data + at, text, 4) == 0) return at;
    fail_msg("no %s", text);
    return 0;
}

static void put_low_first(uint8_t *out, uint32_t value, int size) {
    for (int i = 0; i < size; i++) out[i] = (uint8_t)(value >> 8 * i);
}

static void resize_png(const bytes *b, uint32_t side) {
    set_png_size(b->data, side, side);
}

static void resize_jpeg(const bytes *b, uint32_t side) {
    set_jpeg_size(b, side, side);
}

static void resize_webp(const bytes *b, uint32_t side) { /* an extended file: the canvas */
    put_low_first(b->data + 24, side - 1, 3);
    put_low_first(b->data + 27, side - 1, 3);
}

static void resize_gif(const bytes *b, uint32_t side) {
    put_low_first(b->data + 6, side, 2);
    put_low_first(b->data + 8, side, 2);
}

static void resize_bmp(const bytes *b, uint32_t side) {
    put_low_first(b->data + 18, side, 4);
    put_low_first(b->data + 22, side, 4);
}

static void resize_tiff(const bytes *b, uint32_t side) { /* low byte first; tags 256 and 257 are the first two */
    uint32_t at = (uint32_t)(b->data[4] | b->data[5] << 8 | b->data[6] << 16) + 2;
    assert_int_equal(b->data[at], 0);
    assert_int_equal(b->data[at + 1], 1);
    put_low_first(b->data + at + 8, side, 4);
    put_low_first(b->data + at + 20, side, 4);
}

static void resize_avif(const bytes *b, uint32_t side) {
    size_t at = find(b, "ispe");
    put32(b->data + at + 8, side);
    put32(b->data + at + 12, side);
}

static const struct {
    const char *file;
    void (*resize)(const bytes *b, uint32_t side);
    uint32_t largest; /* that the format can declare */
} giants[] = {
    {"rgb_8.png", resize_png, 65535},
    {"rgb_420.jpg", resize_jpeg, 65500},
    {"frame_rgba.webp", resize_webp, 65535},
    {"frame_global_opaque.gif", resize_gif, 65535},
    {"bits_24.bmp", resize_bmp, 65535},
    {"rgb_8.tif", resize_tiff, 65535},
    {"420_full.avif", resize_avif, 4294967295u},
};

static long peak_kilobytes(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void report_32_bomb(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof giants / sizeof *giants; i++) {
        bytes b = load(giants[i].file);
        uint32_t sides[] = {40000, giants[i].largest};
        for (size_t k = 0; k < 2; k++) {
            char part[80];
            snprintf(part, sizeof part, "size is %u x %u pixels; the limit is 178956970 pixels", sides[k],
                     sides[k]);
            giants[i].resize(&b, sides[k]);
            long before = peak_kilobytes();
            double start = seconds_now();
            expect_refused(b.data, b.count, 0, QVL_ERROR_LIMIT, part);
            double seconds = seconds_now() - start;
            long grown = peak_kilobytes() - before;
            if (seconds > 0.5 || grown > 16384)
                fail_msg("%s: %.2f s and %ld KiB more to refuse", giants[i].file, seconds, grown);
        }
        qvl_free(b.data);
    }
}

/* 5 MB that declare 40,000 squared: nothing of the data is looked at. */
static void report_32_large_file(void **state) {
    (void)state;
    enum { DATA = 5000000 };
    uint8_t *png = malloc(DATA + 200), *data = calloc(DATA, 1);
    assert_true(png && data);
    uint8_t header[13] = {0, 0, 0x9c, 0x40, 0, 0, 0x9c, 0x40, 8, 2, 0, 0, 0};
    memcpy(png, "\x89PNG\r\n\x1a\n", 8);
    size_t n = 8;
    n += put_chunk(png + n, "IHDR", header, sizeof header);
    n += put_chunk(png + n, "IDAT", data, DATA);
    n += put_chunk(png + n, "IEND", NULL, 0);
    long before = peak_kilobytes();
    double start = seconds_now();
    expect_refused(png, n, 0, QVL_ERROR_LIMIT, "size is 40000 x 40000 pixels; the limit is 178956970 pixels");
    qvl_image image;
    qvl_error error;
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = (int64_t)1 << 31;
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = png, .byte_count = n};
    assert_int_equal(qvl_image_probe(&input, &options, &image, &error), QVL_OK); /* allowed, and still free */
    assert_int_equal(image.width, 40000);
    assert_null(image.pixels);
    double seconds = seconds_now() - start;
    long grown = peak_kilobytes() - before;
    if (seconds > 0.1 || grown > 4096) fail_msg("%.3f s and %ld KiB more", seconds, grown);
    free(data);
    free(png);
}

/* Small pictures in huge tiles, and a coded picture that is larger than its boxes say. */
static void hidden_sizes_are_refused(void **state) {
    (void)state;
    bytes tiff = load("tiled_raw.tif"), avif = load("420_full.avif");
    size_t at = (size_t)(tiff.data[4] | tiff.data[5] << 8) + 2;
    while (tiff.data[at] != 0x42 || tiff.data[at + 1] != 1) at += 12; /* the tile's width */
    put_low_first(tiff.data + at + 8, 60000, 4);
    put_low_first(tiff.data + at + 20, 60000, 4);
    expect_refused(tiff.data, tiff.count, 0, QVL_ERROR_FORMAT, "its tiles have an impossible size");
    put_low_first(tiff.data + at + 8, 16, 4); /* tall and narrow: the picture's rows of it would be large */
    put_low_first(tiff.data + at + 20, 200000, 4);
    long before = peak_kilobytes();
    expect_refused(tiff.data, tiff.count, 0, QVL_ERROR_FORMAT, "damaged TIFF");
    assert_true(peak_kilobytes() - before < 65536);
    size_t ispe = find(&avif, "ispe");
    put32(avif.data + ispe + 8, 3);
    put32(avif.data + ispe + 12, 3);
    expect_refused(avif.data, avif.count, 0, QVL_ERROR_FORMAT, "damaged AVIF");
    qvl_free(avif.data);
    qvl_free(tiff.data);
}

/* ---- the header alone */

/* The bytes of a cut file up to which the header, but not the picture, is there. */
static void header_is_enough(const fixture *f, const bytes *b) {
    qvl_image probed, whole = read_good(b->data, b->count, NULL);
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = b->data, .byte_count = b->count};
    if (qvl_image_probe(&input, NULL, &probed, &error)) fail_msg("%s: %s", f->file, error.message);
    assert_null(probed.pixels);
    assert_string_equal(probed.stored.format, f->format);
    assert_int_equal(probed.stored.orientation, f->orientation);
    assert_int_equal(probed.stored.oriented, f->orientation != 1);
    assert_int_equal(probed.width, f->standard.width);
    assert_int_equal(probed.height, f->standard.height);
    bool sideways = f->orientation >= 5;
    assert_int_equal(probed.stored.width, sideways ? probed.height : probed.width);
    assert_int_equal(probed.stored.height, sideways ? probed.width : probed.height);
    assert_string_equal(whole.stored.format, probed.stored.format);
    assert_int_equal(whole.stored.width, probed.stored.width);
    assert_int_equal(whole.stored.height, probed.stored.height);
    assert_int_equal(whole.stored.orientation, probed.stored.orientation);
    assert_int_equal(whole.stored.oriented, probed.stored.oriented);
    qvl_image_free(&probed); /* harmless */
    qvl_image_free(&whole);
}

static void probing_says_what_reading_does(void **state) {
    (void)state;
    for_each_fixture(header_is_enough);
}

static void probing_needs_no_pixels(void **state) {
    (void)state;
    static const char *const files[] = {"rgb_444.jpg", "rgb_8_photo.png", "rgb_lossy.webp", "gray.gif",
                                        "bits_24.bmp"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bytes b = load(files[i]);
        qvl_image image;
        qvl_error error;
        qvl_input input = {.kind = QVL_INPUT_BYTES, .name = "the-name", .bytes = b.data};
        input.byte_count = i == 0 ? 640 : i == 3 ? 13 + 768 + 40 : 60; /* the tables, a palette: they come first */
        if (qvl_image_probe(&input, NULL, &image, &error)) fail_msg("%s: %s", files[i], error.message);
        assert_true(image.width > 4 && image.height > 4);
        input.byte_count = 5;
        qvl_status status = qvl_image_probe(&input, NULL, &image, &error);
        check_refused(status, &image, &error, "the-name");
        qvl_free(b.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_sizes_are_refused_quickly),
        cmocka_unit_test(report_32_bomb),
        cmocka_unit_test(report_32_large_file),
        cmocka_unit_test(hidden_sizes_are_refused),
        cmocka_unit_test(scan_bombs_are_refused),
        cmocka_unit_test(missing_component_is_refused),
        cmocka_unit_test(unsupported_jpegs_are_named),
        cmocka_unit_test(probing_says_what_reading_does),
        cmocka_unit_test(probing_needs_no_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
