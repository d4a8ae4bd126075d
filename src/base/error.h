/* One helper writes every message. */
#ifndef QVL_BASE_ERROR_H
#define QVL_BASE_ERROR_H

#include "qvl.h"

/* Fills *error (may be NULL) and returns status, so that `return qvl_fail(...)` is the whole error path.
 * The message names the file, the thing found and what is allowed. */
qvl_status qvl_fail(qvl_error *error, qvl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The message every failed allocation has; what names the thing ("patch rows"). */
qvl_status qvl_fail_memory(qvl_error *error, const char *what, size_t count, size_t size);

/* Puts "prefix: " before the message of an error that already happened (a file name, say). Returns its status. */
qvl_status qvl_error_prefix(qvl_error *error, qvl_status status, const char *prefix);

#endif
