/* Base64 and data URLs. */
#ifndef QVL_PROMPT_BASE64_H
#define QVL_PROMPT_BASE64_H

#include "base/error.h"

bool qvl_is_data_url(const char *text);

/* data:[TYPE][;PARAMETER...];base64,DATA: the data. What type it says does not matter. what names the text in
 * messages. *bytes belongs to the caller: qvl_free. */
qvl_status qvl_data_url_decode(const char *url, const char *what, uint8_t **bytes, size_t *count,
                               qvl_error *error);

/* The alphabet of RFC 4648, with or without padding; white space is skipped. *bytes belongs to the caller:
 * qvl_free. */
qvl_status qvl_base64_decode(const char *text, const char *what, uint8_t **bytes, size_t *count, qvl_error *error);

#endif
