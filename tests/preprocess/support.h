/* What the preprocessing tests share: pictures by formula (the same as tools/oracle/preprocess_cases.py), hashes,
 * fixtures. Failures inside end the test through cmocka. */
#ifndef QVL_TESTS_PREPROCESS_SUPPORT_H
#define QVL_TESTS_PREPROCESS_SUPPORT_H

#include "model/config.h"
#include "preprocess/resample.h"

#include <cjson/cJSON.h>

/* A fixture by file name; a missing or broken one fails the test. Owner: the caller, cJSON_Delete. */
cJSON *load_fixture(const char *name);

/* A member that must be there. */
const cJSON *member(const cJSON *object, const char *key);
int64_t integer(const cJSON *object, const char *key);
int64_t integer_at(const cJSON *array, int index);
const char *string(const cJSON *object, const char *key);

/* kind: "formula", "lines", "checkerboard", "white_pixel", "ramp", and with a seed "noise", "extremes".
 * Owner: the caller, qvl_image_free. */
qvl_image make_picture(const char *kind, int64_t width, int64_t height, int64_t seed);
/* The picture a fixture's case describes. */
qvl_image case_picture(const cJSON *entry);

/* A resize that must succeed, and one made of two calls, the horizontal pass first. Owner: the caller. */
qvl_image resample(qvl_pool *pool, const qvl_image *in, int64_t width, int64_t height, qvl_filter filter);
qvl_image resample_across_then_down(const qvl_image *in, int64_t width, int64_t height, qvl_filter filter);

/* 64 hexadecimal digits and NUL. */
void sha256_hex(const void *bytes, size_t count, char hex[65]);
void assert_sha256(const void *bytes, size_t count, const char *expected, const char *what);
/* The hash of a picture's pixels. */
void assert_picture(const qvl_image *image, const char *expected, const char *what);

/* Patch 16, merge 2, two frames, mean and std 0.5, rescale 1/255, the limits of published files. */
qvl_config test_config(void);
extern const qvl_limits real_limits, class_limits;

#endif
