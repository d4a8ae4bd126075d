/* Values as text: str(), repr(), json.dumps. */
#ifndef QVL_TEXT_JINJA_PRINT_H
#define QVL_TEXT_JINJA_PRINT_H

#include "text/jinja/text.h"

/* str(value), added to a text or as a string. Markup stays what it is in the latter. */
bool jinja_str(jinja_text *text, jinja_value value);
bool jinja_to_string(jinja_run *run, jinja_value value, jinja_value *string);
bool jinja_repr(jinja_text *text, jinja_value value);
/* repr of a float: the shortest digits that read back as the same number. */
bool jinja_text_float(jinja_text *text, double real);
bool jinja_text_int(jinja_text *text, int64_t integer);

typedef struct jinja_json_format {
    bool ascii, sorted;
    const jinja_string *indent; /* of one level; NULL: all on one line */
    const jinja_string *item_separator, *key_separator;
} jinja_json_format;

bool jinja_json(jinja_text *text, jinja_value value, const jinja_json_format *format);

#endif
