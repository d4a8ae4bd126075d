/* Option structs start with their size. What a caller compiled against an older header does not know keeps its
 * default; a struct that was never initialised is refused. */
#ifndef QVL_BASE_OPTIONS_H
#define QVL_BASE_OPTIONS_H

#include "base/error.h"

#include <string.h>

/* own holds the defaults; given may be NULL, which means just those. */
static inline qvl_status qvl_options_take(void *own, size_t own_size, const void *given, qvl_error *error) {
    if (!given) return QVL_OK;
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > 65536)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "options of size %zu: they were not filled by their init function", size);
    memcpy(own, given, size < own_size ? size : own_size);
    return QVL_OK;
}

#endif
