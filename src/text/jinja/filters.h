/* The filters behind "|". Tables end in an entry without a name. */
#ifndef QVL_TEXT_JINJA_FILTERS_H
#define QVL_TEXT_JINJA_FILTERS_H

#include "text/jinja/calls.h"

extern const jinja_function jinja_text_filters[];
extern const jinja_function jinja_list_filters[];
extern const jinja_function jinja_order_filters[];  /* sort, unique, groupby, ... */
extern const jinja_function jinja_select_filters[]; /* map, select, reject, ... */

/* How filters look into items: "a.b.0", a number, or nothing. */
typedef struct jinja_getter {
    const jinja_list *parts; /* of a path; NULL: the item itself */
    bool ignore_case;
    jinja_value otherwise; /* in place of undefined values; MISSING or NONE: they stay */
} jinja_getter;

bool jinja_make_getter(jinja_run *run, jinja_value attribute, bool ignore_case, jinja_value otherwise,
                       jinja_getter *getter);
bool jinja_apply_getter(jinja_run *run, const jinja_getter *getter, jinja_value item, jinja_value *result);

/* A new iterator with room for its state. */
bool jinja_new_iterator(jinja_run *run, size_t state_size,
                        bool (*next)(jinja_run *, jinja_iterator *, jinja_value *, bool *),
                        jinja_iterator **iterator);

#endif
