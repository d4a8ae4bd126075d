/* Stable sorting with an order that may fail. */
#ifndef QVL_TEXT_JINJA_SORT_H
#define QVL_TEXT_JINJA_SORT_H

#include "text/jinja/value.h"

/* Sorts items by keys[i], both permuted alike, as Python's sorted does. */
bool jinja_sort(jinja_run *run, jinja_value *items, jinja_value *keys, size_t count, bool reverse);
/* The pairs of a dict in order of their keys, as a new array. */
bool jinja_sorted_pairs(jinja_run *run, const jinja_dict *dict, const jinja_pair **pairs);

#endif
