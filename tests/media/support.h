/* What the media tests share: fixtures, reading under policies, and what every refusal must look like. */
#ifndef TESTS_MEDIA_SUPPORT_H
#define TESTS_MEDIA_SUPPORT_H

#include "media/media.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER QVL_FIXTURES "/media/"

typedef struct bytes {
    uint8_t *data; /* qvl_free */
    size_t count;
} bytes;

bytes load(const char *file);

qvl_media_options reference_options(void);

/* Encoded bytes, under a name that refusals must give. image and error are filled with rubbish first. */
qvl_status read_bytes(const void *data, size_t count, const qvl_media_options *options, qvl_image *image,
                      qvl_error *error);

/* A refusal names the input, has its status in the struct, and leaves nothing to free. */
void check_refused(qvl_status status, const qvl_image *image, const qvl_error *error, const char *name);
void expect_refused(const void *data, size_t count, int64_t max_pixels, qvl_status wanted, const char *part);

/* Reads a picture that must be good. */
qvl_image read_good(const void *data, size_t count, const qvl_media_options *options);
void expect_pixels(const void *data, size_t count, const qvl_media_options *options, int64_t width, int64_t height,
                   const uint8_t *rgb);

/* One picture of expected.json. */
typedef struct expectation {
    int64_t width, height;
    const char *sha256;
} expectation;

typedef struct fixture {
    const char *file, *format;
    int orientation;
    expectation standard, reference; /* under the default policies, and those of reference */
} fixture;

typedef void (*fixture_fn)(const fixture *f, const bytes *b);
void for_each_fixture(fixture_fn fn);

/* Whether an image is what a fixture expects; frees it. */
bool is_as_expected(qvl_image *image, const expectation *wanted);

/* ---- files made by hand */

uint32_t crc32_of(const uint8_t *data, size_t count);
void put32(uint8_t *out, uint32_t value); /* high byte first */
size_t put_chunk(uint8_t *out, const char *kind, const void *body, size_t count);

/* PNG colour types. */
enum { PNG_GRAY = 0, PNG_RGB = 2, PNG_GRAY_ALPHA = 4, PNG_RGBA = 6 };

/* A PNG of uncompressed rows; its size. out has room for it. samples: bytes of a row. */
size_t write_png(uint8_t *out, uint32_t width, uint32_t height, int depth, int colour, const uint8_t *samples,
                 size_t row_bytes);

#endif
