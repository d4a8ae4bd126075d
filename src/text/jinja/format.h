/* One formatted field, shared by text % values and text.format(). */
#ifndef QVL_TEXT_JINJA_FORMAT_H
#define QVL_TEXT_JINJA_FORMAT_H

#include "text/jinja/text.h"

typedef struct jinja_field {
    uint32_t fill;
    char align;    /* '<', '>', '^', '=' (between sign and digits), or 0: what the type has by itself */
    char sign;     /* '+', ' ', or '-': only where negative */
    char grouping; /* ',' or '_', or 0 */
    char type;
    bool alternate;
    int64_t width, precision; /* precision: -1 where there is none */
} jinja_field;

/* Widths and precisions beyond this are refused. */
#define JINJA_MAX_FIELD 100000

bool jinja_field_text(jinja_text *text, const jinja_field *field, const jinja_string *value);
bool jinja_field_int(jinja_text *text, const jinja_field *field, int64_t value);
bool jinja_field_float(jinja_text *text, const jinja_field *field, double value);

#endif
