/* Pictures for the tests of the programs. */
#ifndef QVL_TESTS_CLI_PICTURES_H
#define QVL_TESTS_CLI_PICTURES_H

#include <stdint.h>

/* A PNG of that size, RGB, a smooth pattern. */
void write_png(const char *path, uint32_t width, uint32_t height);

/* A copy of a JPEG file under an EXIF orientation of its own. */
void write_turned_jpeg(const char *path, const char *jpeg, int orientation);

#endif
