/* JSON files of a folder: parsed by cJSON, read with messages that name the file, the key, the value and what is
 * allowed. Untrusted: sizes and nesting are bounded, numbers are range-checked, duplicate keys are refused. */
#ifndef QVL_BASE_JSON_H
#define QVL_BASE_JSON_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* Is it strict JSON, of any kind? The first half of what the next function does. */
qvl_status qvl_json_check(const void *bytes, size_t count, const char *file, qvl_error *error);
/* Parses count bytes of strict JSON in UTF-8; file names them in messages, which give the byte offset. The root
 * must be an object; anything but white space after it, NUL in any form and a key that is there twice in one
 * object are refused. Owner: the caller, cJSON_Delete. */
qvl_status qvl_json_parse(const void *bytes, size_t count, const char *file, cJSON **root, qvl_error *error);
/* Reads and parses a file of at most limit bytes. */
qvl_status qvl_json_read(const char *path, size_t limit, cJSON **root, qvl_error *error);

/* What an item is, for messages: 12, "text", a list, null. NULL is "nothing". */
#define QVL_JSON_DESCRIPTION 64
void qvl_json_describe(const cJSON *item, char text[QVL_JSON_DESCRIPTION]);
/* True and *value set if item is an integer in min..max (and below 2^53 in size: JSON numbers are doubles). */
bool qvl_json_integer(const cJSON *item, int64_t min, int64_t max, int64_t *value);

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
