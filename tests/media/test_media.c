/* Pictures of every kind against Pillow's bytes (tests/fixtures/media, made by tools/oracle/make_media_fixtures.py),
 * formats told apart, files, raw pixels, and arguments that are impossible. */
#define _DEFAULT_SOURCE /* mkstemp, ftruncate */
#include "base/memory.h"
#include "media/support.h"

#include <fcntl.h>
#include <unistd.h>

static qvl_status read_limited(const qvl_input *input, int64_t max_pixels, qvl_image *image, qvl_error *error) {
    qvl_media_options options;
    qvl_media_options_init(&options);
    options.max_pixels = max_pixels;
    return qvl_image_read(input, &options, image, error);
}

/* ---- pictures */

static void check_image(qvl_image *image, const fixture *f, const expectation *wanted) {
    assert_string_equal(image->stored.format, f->format);
    if (!is_as_expected(image, wanted)) fail_msg("%s: RGB bytes differ from Pillow's", f->file);
}

static void read_every_way(const fixture *f, const bytes *b) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", f->file);
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    if (qvl_image_read(&input, NULL, &image, &error)) fail_msg("%s", error.message);
    check_image(&image, f, &f->standard);

    qvl_media_options options = reference_options();
    options.max_pixels = f->reference.width * f->reference.height;
    image = read_good(b->data, b->count, &options);
    check_image(&image, f, &f->reference);
    if (options.max_pixels > 1)
        expect_refused(b->data, b->count, options.max_pixels - 1, QVL_ERROR_LIMIT, "the limit is");
}

static void pictures_equal_pillow(void **state) {
    (void)state;
    for_each_fixture(read_every_way);
}

/* Report 22: other inverse transforms and chroma filters give other bytes. Every sampling, quality and mode has its
 * file. */
static int jpeg_count;

static void count_jpeg(const fixture *f, const bytes *b) {
    if (strcmp(f->format, "JPEG") != 0) return;
    qvl_image image = read_good(b->data, b->count, NULL);
    assert_true(is_as_expected(&image, &f->standard));
    jpeg_count++;
}

static void report_22_jpeg_decoder(void **state) {
    (void)state;
    jpeg_count = 0;
    for_each_fixture(count_jpeg);
    assert_true(jpeg_count >= 22 + 16 + 21); /* and those with EXIF and XMP */
}

static void from_standard_input(void **state) {
    (void)state;
    int saved = dup(STDIN_FILENO), fd = open(FOLDER "rgb_444.jpg", O_RDONLY);
    assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = "-"};
    qvl_image image, empty;
    qvl_error error;
    qvl_status first = qvl_image_read(&input, NULL, &image, NULL);
    qvl_status second = qvl_image_read(&input, NULL, &empty, &error); /* at its end by now */
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(first, QVL_OK);
    assert_int_equal(image.width, 53);
    assert_int_equal(image.height, 37);
    qvl_image_free(&image);
    check_refused(second, &empty, &error, "standard input: empty");
}

/* ---- formats told apart */

/* The name of a file says nothing: a WebP named .jpg is a WebP. */
static void report_29_content_decides(void **state) {
    (void)state;
    bytes b = load("rgb_lossy.webp");
    char path[] = "/tmp/qvl_test_media_XXXXXX.jpg";
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0 && write(fd, b.data, b.count) == (ssize_t)b.count);
    close(fd);
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    if (qvl_image_read(&input, NULL, &image, &error)) fail_msg("%s", error.message);
    assert_string_equal(image.stored.format, "WebP");
    qvl_image_free(&image);
    unlink(path);
    qvl_free(b.data);
}

/* HEIF files may have a general main brand and say AVIF among those they are compatible with. */
static void avif_under_a_general_brand(void **state) {
    (void)state;
    bytes b = load("420_full.avif");
    memcpy(b.data + 8, "mif1", 4);
    qvl_image image = read_good(b.data, b.count, NULL);
    assert_string_equal(image.stored.format, "AVIF");
    qvl_image_free(&image);
    memcpy(b.data + 16, "miaf", 4); /* the list no longer says so */
    expect_refused(b.data, b.count, 0, QVL_ERROR_UNSUPPORTED, "HEIC is not supported");
    qvl_free(b.data);
}

static void report_29_formats(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *name;
    } cases[] = {
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0",
         16, "HEIC"},
        {"\0\0\0\x18"
         "ftyphevc\0\0\0\0",
         16, "HEIC"},
        {"\0\0\0\x18"
         "ftypmif1\0\0\0\0mif1heic",
         24, "HEIC"},
        {"\0\0\0\x18"
         "ftypisom\0\0\0\0",
         16, "video (MP4, QuickTime)"},
        {"\xff\x0a\0\0", 4, "JPEG XL"},
        {"\0\0\0\x0cJXL \r\n\x87\n", 12, "JPEG XL"},
        {"\0\0\0\x0cjP  \r\n\x87\n", 12, "JPEG 2000"},
        {"\xff\x4f\xff\x51\0", 5, "JPEG 2000"},
        {"8BPS\0\1", 6, "Photoshop (PSD)"},
        {"%PDF-1.7\n", 9, "PDF"},
        {"<svg xmlns='http://www.w3.org/2000/svg'/>", 41, "SVG"},
        {"<?xml version='1.0'?>\n<svg/>", 28, "SVG or other XML"},
        {"\xef\xbb\xbf\n  <!DOCTYPE HTML>\n<html>404</html>", 40, "HTML"},
        {"<html><body>Not found</body></html>", 35, "HTML"},
        {"data:image/png;base64,iVBORw0KGgo=", 34, "a data: address as text (decode its base64 first)"},
        {"PK\3\4\x14\0", 6, "ZIP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[200];
        snprintf(message, sizeof message, "the-name: %s is not supported; %s", cases[i].name, QVL_READABLE);
        expect_refused(cases[i].bytes, cases[i].count, 0, QVL_ERROR_UNSUPPORTED, message);
    }
    static const char *const files[][2] = {
        {"refused_alpha.avif", "the-name: AVIF with alpha is not supported; " QVL_READABLE},
        {"refused_grid.avif", "the-name: AVIF made of tiles is not supported; " QVL_READABLE},
    };
    for (size_t i = 0; i < 2; i++) {
        bytes b = load(files[i][0]);
        expect_refused(b.data, b.count, 0, QVL_ERROR_UNSUPPORTED, files[i][1]);
        qvl_free(b.data);
    }
}

static void other_bytes_are_shown(void **state) {
    (void)state;
    expect_refused("", 0, 0, QVL_ERROR_FORMAT, "empty, 0 bytes");
    expect_refused("{\"error\": 404}", 14, 0, QVL_ERROR_FORMAT,
                   "not a picture qvl reads: first bytes 7b 22 65 72 72 6f 72 22; " QVL_READABLE);
    expect_refused("\xff", 1, 0, QVL_ERROR_FORMAT, "first bytes ff;");
    expect_refused("\xff\xd8\xff", 3, 0, QVL_ERROR_FORMAT, "damaged JPEG");
    expect_refused("\x89PNG\r\n\x1a\n", 8, 0, QVL_ERROR_FORMAT, "damaged PNG: the file ends");
    expect_refused("\x89PNG\n\x1a\n\n", 8, 0, QVL_ERROR_FORMAT, "first bytes 89");
    expect_refused("RIFF\x10\0\0\0WEBPVP8 ", 16, 0, QVL_ERROR_FORMAT, "damaged WebP: the file ends");
    expect_refused("GIF89a\1\0\1\0", 10, 0, QVL_ERROR_FORMAT, "damaged GIF: the file ends");
    expect_refused("BM\x46\0\0\0", 6, 0, QVL_ERROR_FORMAT, "damaged BMP: the file ends");
    expect_refused("II*\0\x08\0\0\0", 8, 0, QVL_ERROR_FORMAT, "damaged TIFF");
    expect_refused("MM\0+\0\x08\0\0", 8, 0, QVL_ERROR_FORMAT, "damaged TIFF");
    expect_refused("\0\0\0\x10"
                   "ftypavif\0\0\0\0",
                   16, 0, QVL_ERROR_UNSUPPORTED, "AVIF without a still picture");
    expect_refused("\0\0\0\x1c"
                   "ftypavif\0\0\0\0",
                   16, 0, QVL_ERROR_FORMAT, "damaged AVIF: the file ends");
}

static void expect_file_refused(const char *path, qvl_status wanted) {
    qvl_image image;
    qvl_error error;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_status status = qvl_image_read(&input, NULL, &image, &error);
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
    assert_int_equal(qvl_image_read(&input, NULL, &image, NULL), QVL_OK);
    for (size_t y = 0; y < 4; y++) assert_memory_equal(image.pixels + 6 * y, rows + 11 * y, 6);
    qvl_image_free(&image);

    input.byte_count = sizeof rows; /* exactly enough: the last row is not padded */
    assert_int_equal(read_limited(&input, 8, &image, NULL), QVL_OK);
    qvl_image_free(&image);

    input.row_stride = 0;
    input.byte_count = 24;
    assert_int_equal(qvl_image_read(&input, NULL, &image, NULL), QVL_OK);
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
        qvl_status status = read_limited(&input, cases[i].max_pixels, &image, &error);
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
    assert_int_equal(qvl_image_read(&input, NULL, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "a file without a name");
    assert_int_equal(qvl_image_read(NULL, NULL, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "input is NULL");
    assert_int_equal(qvl_image_read(&input, NULL, NULL, &error), QVL_ERROR_ARGUMENT);
    input.kind = QVL_INPUT_BYTES;
    input.byte_count = 10;
    assert_int_equal(qvl_image_read(&input, NULL, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "picture in memory: bytes are NULL");
    input.kind = QVL_INPUT_RGB8;
    assert_int_equal(qvl_image_read(&input, NULL, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "picture in memory: pixels are NULL");
    input.kind = (qvl_input_kind)4;
    assert_int_equal(qvl_image_read(&input, NULL, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "input kind is 4; allowed are 0 to 2");
    input.kind = QVL_INPUT_BYTES;
    assert_int_equal(read_limited(&input, -1, &image, &error), QVL_ERROR_ARGUMENT);
    check_refused(error.status, &image, &error, "max_pixels is -1");
    assert_int_equal(qvl_image_read(&input, NULL, &image, NULL), QVL_ERROR_ARGUMENT);
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
    check_refused(qvl_image_read(&input, NULL, &image, &error), &image, &error, "damaged JPEG");
    input.bytes = "%PDF-1.7";
    input.byte_count = 8;
    check_refused(qvl_image_read(&input, NULL, &image, &error), &image, &error, QVL_READABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_equal_pillow),
        cmocka_unit_test(report_22_jpeg_decoder),
        cmocka_unit_test(from_standard_input),
        cmocka_unit_test(report_29_content_decides),
        cmocka_unit_test(avif_under_a_general_brand),
        cmocka_unit_test(report_29_formats),
        cmocka_unit_test(other_bytes_are_shown),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(pixels_with_stride),
        cmocka_unit_test(bad_pixels_are_refused),
        cmocka_unit_test(impossible_arguments_are_refused),
        cmocka_unit_test(long_names_leave_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
