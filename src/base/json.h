/* JSON files of a folder: parsed by cJSON, read with messages that name the file, the key, the value and what is
 * allowed. Untrusted: sizes and nesting are bounded, numbers are range-checked, duplicate keys are refused. */
#ifndef QVL_BASE_JSON_H
#define QVL_BASE_JSON_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* Parses count bytes; file names them in messages. The root must be an object. Anything but white space after it
 * is refused. Owner: the caller, cJSON_Delete. */
qvl_status qvl_json_parse(const void *bytes, size_t count, const char *file, cJSON **root, qvl_error *error);
/* Reads and parses a file of at most limit bytes. */
qvl_status qvl_json_read(const char *path, size_t limit, cJSON **root, qvl_error *error);

/* A key of an object: an absent or null key leaves *value untouched and sets *found (may be NULL) to false.
 * A value of another type, a fraction, or one outside min..max is refused. */
qvl_status qvl_json_int(const cJSON *object, const char *key, int64_t min, int64_t max, const char *file,
                        int64_t *value, bool *found, qvl_error *error);
qvl_status qvl_json_number(const cJSON *object, const char *key, double min, double max, const char *file,
                           double *value, bool *found, qvl_error *error);
qvl_status qvl_json_bool(const cJSON *object, const char *key, const char *file, bool *value, bool *found,
                         qvl_error *error);
/* *value points into the parsed tree. */
qvl_status qvl_json_string(const cJSON *object, const char *key, const char *file, const char **value, bool *found,
                           qvl_error *error);
/* *value is the nested object or NULL if absent. */
qvl_status qvl_json_object(const cJSON *object, const char *key, const char *file, const cJSON **value,
                           qvl_error *error);

#endif
