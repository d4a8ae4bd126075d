/* Damaged and cut files of every format: a whole picture or a clear refusal, nothing printed, and the next call is
 * fine. */
#define _DEFAULT_SOURCE /* mkstemp */
#include "base/memory.h"
#include "media/support.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- every fixture, cut and with changed bytes */

/* What could still be read must be the whole picture: cut behind it (a JPEG's or GIF's end marker, padding). */
static void cut_fixture(const fixture *f, const bytes *b) {
    for (size_t i = 0; i < 20; i++) {
        size_t count = i < 15 ? b->count * i / 15 : b->count - (20 - i);
        uint8_t *cut = malloc(count ? count : 1); /* its own block, so that a sanitizer sees reads beyond it */
        assert_non_null(cut);
        memcpy(cut, b->data, count);
        qvl_image image;
        qvl_error error;
        qvl_status status = read_bytes(cut, count, NULL, &image, &error);
        if (status)
            check_refused(status, &image, &error, "the-name");
        else if (!is_as_expected(&image, &f->standard))
            fail_msg("%s cut to %zu of %zu bytes is read as another picture", f->file, count, b->count);
        free(cut);
    }
    qvl_image whole = read_good(b->data, b->count, NULL);
    assert_true(is_as_expected(&whole, &f->standard));
}

static void expect_whole_or_refused(const fixture *f, const bytes *b) {
    qvl_image image;
    qvl_error error;
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = 1 << 20;
    qvl_status status = read_bytes(b->data, b->count, &options, &image, &error);
    if (status) {
        check_refused(status, &image, &error, "the-name");
        return;
    }
    bool sized = image.width > 0 && image.height > 0 && image.width * image.height <= 1 << 20;
    if (!sized || !image.pixels) fail_msg("%s with a changed byte is %d pixels wide", f->file, (int)image.width);
    volatile unsigned sum = 0; /* every pixel is there to be read */
    for (int64_t i = 0; i < image.width * image.height * 3; i++) sum = sum + image.pixels[i];
    qvl_image_free(&image);
}

/* Every byte of the front, where the headers are (in a TIFF also of the end), then every 13th. */
static void flip_fixture(const fixture *f, const bytes *b) {
    for (size_t i = 0; i < b->count; i += i < 300 || b->count - i < 200 ? 1 : 13) {
        for (int bit = (int)(i % 3); bit < 8; bit += 3) {
            b->data[i] ^= (uint8_t)(1 << bit);
            expect_whole_or_refused(f, b);
            b->data[i] ^= (uint8_t)(1 << bit);
        }
    }
    qvl_image whole = read_good(b->data, b->count, NULL);
    assert_true(is_as_expected(&whole, &f->standard));
}

/* Around a test: standard output and error go to a file, which must stay empty. */
static struct {
    char path[40];
    int file, out, err;
} silence;

static int begin_silence(void **state) {
    (void)state;
    snprintf(silence.path, sizeof silence.path, "/tmp/qvl_test_damage_XXXXXX");
    silence.file = mkstemp(silence.path);
    fflush(stdout);
    silence.out = dup(STDOUT_FILENO);
    silence.err = dup(STDERR_FILENO);
    bool good = silence.file >= 0 && silence.out >= 0 && silence.err >= 0;
    return good && dup2(silence.file, STDOUT_FILENO) >= 0 && dup2(silence.file, STDERR_FILENO) >= 0 ? 0 : -1;
}

static int end_silence(void **state) {
    (void)state;
    fflush(stdout);
    dup2(silence.out, STDOUT_FILENO);
    dup2(silence.err, STDERR_FILENO);
    close(silence.out);
    close(silence.err);
    char text[2000] = "";
    ssize_t printed = pread(silence.file, text, sizeof text - 1, 0);
    close(silence.file);
    unlink(silence.path);
    if (printed) print_error("printed while reading: %s\n", text);
    return printed ? -1 : 0;
}

static void report_31_truncated(void **state) {
    (void)state;
    for_each_fixture(cut_fixture);
}

static void report_31_damaged(void **state) {
    (void)state;
    for_each_fixture(flip_fixture);
}

/* The report's own case: a JPEG without its last 128 bytes; and the next request works. */
static void report_31_last_128_bytes(void **state) {
    (void)state;
    bytes b = load("rgb_420.jpg");
    expect_refused(b.data, b.count - 128, 0, QVL_ERROR_FORMAT, "damaged JPEG: Premature end of");
    qvl_image whole = read_good(b.data, b.count, NULL);
    assert_int_equal(whole.width, 53);
    qvl_image_free(&whole);
    qvl_free(b.data);
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
            qvl_status status = read_bytes(b.data, b.count, NULL, &image, &error);
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
    assert_int_equal(read_bytes(b.data, b.count, NULL, &whole, &error), QVL_OK);
    size_t after_app0 = 4 + (size_t)(b.data[4] << 8 | b.data[5]);
    size_t places[] = {after_app0, b.count - 2, b.count};
    for (size_t i = 0; i < 3; i++) {
        uint8_t *grown = calloc(1, b.count + 5);
        assert_non_null(grown);
        memcpy(grown, b.data, places[i]);
        memcpy(grown + places[i] + 5, b.data + places[i], b.count - places[i]);
        if (i == 0) grown[11] = 9; /* JFIF version 9 */
        if (read_bytes(grown, b.count + 5, NULL, &odd, &error)) fail_msg("place %zu: %s", i, error.message);
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
    assert_int_equal(read_bytes(longer, png.count + 5, NULL, &odd, &error), QVL_OK);
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
        assert_int_equal(read_bytes(b.data, b.count, NULL, &right, &error), QVL_OK);
        size_t at = 2;
        while (b.data[at + 1] != cases[i].marker) at += 2 + (size_t)(b.data[at + 2] << 8 | b.data[at + 3]);
        assert_int_not_equal(b.data[at + cases[i].offset], cases[i].value);
        b.data[at + cases[i].offset] = cases[i].value;
        if (read_bytes(b.data, b.count, NULL, &odd, &error)) fail_msg("%s: %s", cases[i].file, error.message);
        assert_memory_equal(odd.pixels, right.pixels, (size_t)(right.width * right.height * 3));
        qvl_image_free(&odd);
        qvl_image_free(&right);
        qvl_free(b.data);
    }
}

/* ---- PNG structure */

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
        if (read_bytes(png, n, NULL, &image, &error)) fail_msg("%s", error.message);
        assert_memory_equal(image.pixels, palette, 6);
        qvl_image_free(&image);
    }
}

/* ---- other structure */

/* FFmpeg stops drawing where the codes are wrong, without a word. */
static void gif_codes_that_end_early_are_refused(void **state) {
    (void)state;
    bytes b = load("gray.gif");
    size_t at = 13 + ((size_t)6 << (b.data[10] & 7)); /* behind the palette */
    while (b.data[at] != 0x2c) at++;
    at += 10 + 1; /* the first block of codes */
    memset(b.data + at + 20, 0xff, 8);
    expect_refused(b.data, b.count, 0, QVL_ERROR_FORMAT, "damaged GIF: its data ends before the picture does");
    qvl_free(b.data);
}

static void bmp_codes_that_end_early_are_refused(void **state) {
    (void)state;
    bytes b = load("runs_8.bmp");
    size_t at = 54 + 4 * 256;
    b.data[at] = 0;
    b.data[at + 1] = 1; /* the end of the bitmap */
    expect_refused(b.data, b.count, 0, QVL_ERROR_FORMAT, "damaged BMP: its codes end before the picture does");
    qvl_free(b.data);
}

/* libtiff goes on after some damage and warns. */
static void tiff_warnings_are_refusals(void **state) {
    (void)state;
    bytes b = load("pillow_group3.tif");
    memset(b.data + 8 + 10, 0, 12); /* in the only strip, which Pillow writes behind the header */
    qvl_image image;
    qvl_error error;
    qvl_status status = read_bytes(b.data, b.count, NULL, &image, &error);
    check_refused(status, &image, &error, "damaged TIFF");
    qvl_free(b.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(report_31_truncated, begin_silence, end_silence),
        cmocka_unit_test_setup_teardown(report_31_damaged, begin_silence, end_silence),
        cmocka_unit_test(report_31_last_128_bytes),
        cmocka_unit_test(png_flips_are_refused),
        cmocka_unit_test(jpeg_stream_damage_is_refused),
        cmocka_unit_test(bytes_left_in_restart_interval_are_refused),
        cmocka_unit_test(harmless_oddities_are_read),
        cmocka_unit_test(wrong_but_unused_headers_are_read),
        cmocka_unit_test(palette_index_beyond_palette_is_refused),
        cmocka_unit_test(gif_codes_that_end_early_are_refused),
        cmocka_unit_test(bmp_codes_that_end_early_are_refused),
        cmocka_unit_test(tiff_warnings_are_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
