/* Numbers from text, by Python's rules. The C locale must be in force. */
#ifndef QVL_TEXT_JINJA_NUMBER_H
#define QVL_TEXT_JINJA_NUMBER_H

#include "text/jinja/value.h"

/* An integer of digits of a base, underscores and sign as int(text, base) takes them; white space around it is
 * allowed. *ok false: it is none. Beyond 64 bits a decimal one is a JINJA_BIG, another is over a limit. */
bool jinja_parse_int(jinja_run *run, const char *data, size_t length, int base, jinja_value *value, bool *ok);
bool jinja_parse_float(jinja_run *run, const char *data, size_t length, double *real, bool *ok);

#endif
