/* What the tests of the whole pipeline share. */
#ifndef QVL_TESTS_PIPELINE_H
#define QVL_TESTS_PIPELINE_H

#include "qvl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A folder that must open, with one thread and the default dtype. */
qvl_model *open_folder(const char *folder, qvl_open_level level);
qvl_session *open_session(qvl_model *model);

/* A picture that is all there: noise by a formula. Owner: the caller, free_picture. */
qvl_input make_rgb(int64_t width, int64_t height);
void free_picture(qvl_input *input);

/* The beginning of a PNG file, its header chunk: enough to plan, not to read. Its bytes are in memory of the test
 * program: the last 64 stay valid. */
qvl_input make_png_header(uint32_t width, uint32_t height);

/* Calls that must succeed. Owner: the caller. */
qvl_plan plan(const qvl_model *model, const qvl_input *inputs, size_t count,
              const qvl_preprocess_options *options);
qvl_features encode(qvl_session *session, const qvl_input *inputs, size_t count,
                    const qvl_preprocess_options *options);

void assert_same_item(const qvl_item *a, const qvl_item *b);
void assert_says(const char *text, const char *part);

#endif
