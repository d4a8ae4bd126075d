/* Building text, and what Python knows about characters. Strings of a run are always whole UTF-8. */
#ifndef QVL_TEXT_JINJA_TEXT_H
#define QVL_TEXT_JINJA_TEXT_H

#include "text/jinja/value.h"

/* Grows in the arena of its run. Start with {.run = run}. */
struct jinja_text {
    jinja_run *run;
    char *data;
    size_t length, capacity;
};

bool jinja_text_add(jinja_text *text, const char *data, size_t length);
bool jinja_text_puts(jinja_text *text, const char *string);
bool jinja_text_put(jinja_text *text, uint32_t character);
bool jinja_text_repeat(jinja_text *text, uint32_t character, size_t count);
bool jinja_text_string(jinja_text *text, const jinja_string *string);
/* What was built, as a string that joining may add to. The builder is done. */
bool jinja_text_finish(jinja_text *text, jinja_value *string);

/* ------------------------------------------------------------------------------------------------------- UTF-8 */

/* The character that begins at a byte, and how many bytes it takes. */
size_t jinja_decode(const char *data, size_t at, uint32_t *character);
/* The character that ends before a byte above 0. */
size_t jinja_decode_before(const char *data, size_t at, uint32_t *character);
size_t jinja_encode(uint32_t character, char bytes[4]);
size_t jinja_characters(const char *data, size_t length);
/* Byte offset of a character, at most characters. */
size_t jinja_offset(const jinja_string *string, size_t character);

/* Where needle (at least one byte) first or last lies in the bytes, or SIZE_MAX. The work is counted. */
bool jinja_find(jinja_run *run, const char *data, size_t length, const jinja_string *needle, size_t *found);
bool jinja_find_last(jinja_run *run, const char *data, size_t length, const jinja_string *needle, size_t *found);

/* -------------------------------------------------------------------------------------------- classes and case */

bool jinja_is_space(uint32_t character);
bool jinja_is_line_end(uint32_t character); /* for splitlines */
bool jinja_is_alpha(uint32_t character);
bool jinja_is_decimal(uint32_t character);
bool jinja_is_numeric(uint32_t character);
bool jinja_is_word(uint32_t character); /* \w */
bool jinja_is_printable(uint32_t character);
bool jinja_is_lower(uint32_t character);
bool jinja_is_upper(uint32_t character);
bool jinja_is_title(uint32_t character);
bool jinja_starts_identifier(uint32_t character);
bool jinja_goes_on_identifier(uint32_t character);

typedef enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_FOLD } jinja_case;
/* One character of a text, converted in full (one may become three); its place matters for the Greek sigma. */
bool jinja_text_case(jinja_text *text, const jinja_string *source, size_t at, uint32_t character, jinja_case mode);
/* Bytes from..to of source, converted. */
bool jinja_text_convert(jinja_text *text, const jinja_string *source, size_t from, size_t to, jinja_case mode);

/* Byte offsets of what is left when white space (set NULL), or the characters of set, are stripped from the ends. */
bool jinja_strip(jinja_run *run, const jinja_string *string, const jinja_string *set, bool left, bool right,
                 size_t *start, size_t *end);

#endif
