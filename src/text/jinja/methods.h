/* The methods of values. */
#ifndef QVL_TEXT_JINJA_METHODS_H
#define QVL_TEXT_JINJA_METHODS_H

#include "text/jinja/calls.h"
#include "text/jinja/text.h"

/* NULL: the value has no such method. */
const jinja_function *jinja_find_method(jinja_value object, const jinja_string *name);

/* Tables end in an entry without a name. */
extern const jinja_function jinja_text_methods[];   /* strings to strings, and questions about them */
extern const jinja_function jinja_search_methods[]; /* looking for parts, splitting, joining */

/* Arguments of methods: errors name the method. */
bool jinja_need_string(jinja_run *run, const char *method, jinja_value value);
bool jinja_need_int(jinja_run *run, jinja_value value, int64_t *integer);

/* What filters share with methods. */
bool jinja_change_case(jinja_run *run, jinja_value string, jinja_case mode, jinja_value *result);
bool jinja_capitalize(jinja_run *run, jinja_value string, jinja_value *result);
bool jinja_center(jinja_run *run, jinja_value string, int64_t width, jinja_value *result);
bool jinja_trim(jinja_run *run, jinja_value string, jinja_value characters, bool left, bool right,
                jinja_value *result);
bool jinja_replace(jinja_run *run, jinja_value string, jinja_value old, jinja_value by, int64_t count,
                   jinja_value *result);
bool jinja_split_lines(jinja_run *run, jinja_value string, bool keep_ends, jinja_list **lines);
bool jinja_is_cased(const jinja_string *string, bool upper); /* islower, isupper */

#endif
