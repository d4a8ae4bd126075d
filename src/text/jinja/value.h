/* Values as Python has them, in an arena. They never change once made, except namespaces, loops, cyclers, joiners
 * and iterators, which are shared by reference. */
#ifndef QVL_TEXT_JINJA_VALUE_H
#define QVL_TEXT_JINJA_VALUE_H

#include "text/jinja/arena.h"
#include "text/jinja/run.h"

typedef enum jinja_kind {
    JINJA_MISSING = 0, /* no value: an argument that was not given, a name not yet set */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_BIG, /* an integer beyond 64 bits: its digits; carried, compared and printed only */
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_VIEW, /* of a dict: keys, values or items */
    JINJA_RANGE,
    JINJA_ITERATOR, /* goes through its items once */
    JINJA_NAMESPACE,
    JINJA_LOOP,
    JINJA_MACRO,
    JINJA_FUNCTION, /* a global: range, raise_exception, ... */
    JINJA_METHOD,   /* of a value */
    JINJA_CYCLER,
    JINJA_JOINER
} jinja_kind;

typedef struct jinja_string jinja_string;
typedef struct jinja_list jinja_list;
typedef struct jinja_dict jinja_dict;
typedef struct jinja_range jinja_range;
typedef struct jinja_undefined jinja_undefined;
typedef struct jinja_iterator jinja_iterator;
typedef struct jinja_loop jinja_loop;
typedef struct jinja_macro jinja_macro;
typedef struct jinja_function jinja_function;
typedef struct jinja_method jinja_method;
typedef struct jinja_cycler jinja_cycler;
typedef struct jinja_joiner jinja_joiner;

typedef struct jinja_value {
    uint8_t kind;
    uint8_t mark; /* STRING: 1 is Markup. TUPLE: 1 is a group of groupby. VIEW: a jinja_view */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const jinja_string *string; /* STRING, BIG */
        jinja_list *list;           /* LIST, TUPLE */
        jinja_dict *dict;           /* DICT, VIEW, NAMESPACE */
        const jinja_range *range;
        const jinja_undefined *undefined;
        jinja_iterator *iterator;
        jinja_loop *loop;
        const jinja_macro *macro;
        const jinja_function *function;
        const jinja_method *method;
        jinja_cycler *cycler;
        jinja_joiner *joiner;
        const void *pointer;
    } as;
} jinja_value;

typedef enum jinja_view { JINJA_KEYS = 0, JINJA_VALUES = 1, JINJA_ITEMS = 2 } jinja_view;

/* Where a block of text that was made by joining still has room behind what is used. */
typedef struct jinja_tail {
    char *end;
    size_t room;
} jinja_tail;

struct jinja_string {
    const char *data; /* UTF-8, without a NUL at the end */
    size_t length;    /* bytes */
    size_t characters;
    jinja_tail *tail; /* NULL, or of the block that data lies in */
};

struct jinja_list {
    jinja_value *items;
    size_t count, capacity;
    bool printing; /* repr is inside: a namespace may hold what holds it */
};

typedef struct jinja_pair {
    jinja_value key, value;
} jinja_pair;

/* In order of insertion. */
struct jinja_dict {
    jinja_pair *pairs;
    size_t count, capacity;
    uint32_t *slots;   /* of a hash table: index of a pair, plus 1. NULL while there are few pairs */
    size_t slot_count; /* never 0 where slots is not NULL */
    bool printing;     /* as of lists */
};

struct jinja_range {
    int64_t start, stop, step, count;
};

/* What an undefined value was looked up as: the text of the error that using it is. */
struct jinja_undefined {
    const jinja_string *hint; /* the whole text, or NULL */
    jinja_value object;       /* MISSING: name is a variable */
    jinja_value name;
};

struct jinja_iterator {
    /* Called by jinja_next only. */
    bool (*next)(jinja_run *run, jinja_iterator *iterator, jinja_value *item, bool *done);
    const char *name; /* Python's type */
    jinja_value source;
    jinja_iterator *inner;
    size_t at, end;
    void *state;
};

struct jinja_cycler {
    jinja_list *items;
    size_t at;
};

struct jinja_joiner {
    jinja_value separator;
    bool used;
};

/* Item at of a range, which lies between its ends; the product may be beyond 64 bits. */
static inline int64_t jinja_range_item(const jinja_range *range, size_t at) {
    return (int64_t)((uint64_t)range->start + (uint64_t)at * (uint64_t)range->step);
}

/* ------------------------------------------------------------------------------------------------ making them */

static inline jinja_value jinja_missing(void) {
    return (jinja_value){.kind = JINJA_MISSING};
}
static inline jinja_value jinja_none(void) {
    return (jinja_value){.kind = JINJA_NONE};
}
static inline jinja_value jinja_bool(bool boolean) {
    return (jinja_value){.kind = JINJA_BOOL, .as.boolean = boolean};
}
static inline jinja_value jinja_int(int64_t integer) {
    return (jinja_value){.kind = JINJA_INT, .as.integer = integer};
}
static inline jinja_value jinja_float(double real) {
    return (jinja_value){.kind = JINJA_FLOAT, .as.real = real};
}
static inline jinja_value jinja_from_string(const jinja_string *string) {
    return (jinja_value){.kind = JINJA_STRING, .as.string = string};
}
static inline jinja_value jinja_from_list(jinja_kind kind, jinja_list *list) {
    return (jinja_value){.kind = (uint8_t)kind, .as.list = list};
}
static inline jinja_value jinja_from_dict(jinja_kind kind, jinja_dict *dict) {
    return (jinja_value){.kind = (uint8_t)kind, .as.dict = dict};
}
static inline jinja_value jinja_from_iterator(jinja_iterator *iterator) {
    return (jinja_value){.kind = JINJA_ITERATOR, .as.iterator = iterator};
}

/* Arena memory of the run; a failure is the run's error. */
void *jinja_take(jinja_run *run, size_t count, size_t size);

/* A string over bytes that stay where they are as long as the run. */
bool jinja_view_string(jinja_run *run, const char *data, size_t length, jinja_value *string);
/* A copy of bytes. */
bool jinja_copy_string(jinja_run *run, const char *data, size_t length, jinja_value *string);
bool jinja_static_string(jinja_run *run, const char *text, jinja_value *string);
/* left then right; left's block is used on where it has room. */
bool jinja_join_strings(jinja_run *run, const jinja_string *left, const jinja_string *right, jinja_value *joined);
/* Bytes start..end of a string, which are whole characters. */
bool jinja_substring(jinja_run *run, const jinja_string *string, size_t start, size_t end, jinja_value *part);

bool jinja_new_list(jinja_run *run, size_t capacity, jinja_list **list);
bool jinja_list_append(jinja_run *run, jinja_list *list, jinja_value item);
bool jinja_new_tuple(jinja_run *run, const jinja_value *items, size_t count, jinja_value *tuple);

bool jinja_new_dict(jinja_run *run, size_t capacity, jinja_dict **dict);
/* Adds or replaces. False: the key cannot be hashed (or no memory). */
bool jinja_dict_set(jinja_run *run, jinja_dict *dict, jinja_value key, jinja_value value);
/* *found NULL where there is no such key. False: the key cannot be hashed. */
bool jinja_dict_find(jinja_run *run, const jinja_dict *dict, jinja_value key, const jinja_value **found);
const jinja_value *jinja_dict_text(jinja_run *run, const jinja_dict *dict, const char *key, size_t length);

/* Undefined: the name of a variable; an attribute or element that object lacks; or a whole text. */
bool jinja_undefined_name(jinja_run *run, const jinja_string *name, jinja_value *undefined);
bool jinja_undefined_in(jinja_run *run, jinja_value object, jinja_value name, jinja_value *undefined);
bool jinja_undefined_hint(jinja_run *run, const char *hint, jinja_value *undefined);

static inline bool jinja_is_text(jinja_value value, const char *text, size_t length) {
    return value.kind == JINJA_STRING && value.as.string->length == length &&
           __builtin_memcmp(value.as.string->data, text, length) == 0;
}
static inline bool jinja_is_number(jinja_value value) {
    return value.kind == JINJA_INT || value.kind == JINJA_FLOAT || value.kind == JINJA_BOOL;
}
/* An integer below 64 bits, which a bool is too. */
static inline bool jinja_is_int(jinja_value value, int64_t *integer) {
    if (value.kind != JINJA_INT && value.kind != JINJA_BOOL) return false;
    *integer = value.kind == JINJA_BOOL ? value.as.boolean : value.as.integer;
    return true;
}
static inline double jinja_to_double(jinja_value number) {
    return number.kind == JINJA_FLOAT  ? number.as.real
           : number.kind == JINJA_BOOL ? (double)number.as.boolean
                                       : (double)number.as.integer;
}

/* -------------------------------------------------------------------------------------------- asking about them */

/* Python's name of the type: "str", "int", "NoneType", ... */
const char *jinja_type(jinja_value value);
/* The error that using an undefined value is; returns false. */
bool jinja_raise_undefined(jinja_run *run, jinja_value undefined);
bool jinja_truth(jinja_value value);
/* len(); false and an error where there is none. */
bool jinja_length(jinja_run *run, jinja_value value, int64_t *length);
bool jinja_has_length(jinja_value value);
/* ==, which never fails except for depth and steps. */
bool jinja_equal(jinja_run *run, jinja_value a, jinja_value b, bool *equal);
/* *order is below, at or above 0, or JINJA_UNORDERED for NaN. False and an error for what has no order; symbol is
 * the operator for the message. */
#define JINJA_UNORDERED 2
bool jinja_order(jinja_run *run, jinja_value a, jinja_value b, const char *symbol, int *order);
bool jinja_same(jinja_value a, jinja_value b); /* is */
bool jinja_hash(jinja_run *run, jinja_value value, uint64_t *hash);
/* item in container. */
bool jinja_contains(jinja_run *run, jinja_value container, jinja_value item, bool *contains);

/* An iterator over anything that Python iterates over. */
bool jinja_iterate(jinja_run *run, jinja_value value, jinja_iterator **iterator);
/* The next item. False: an error. *done: there is none. */
bool jinja_next(jinja_run *run, jinja_iterator *iterator, jinja_value *item, bool *done);
bool jinja_is_iterable(jinja_value value);
bool jinja_to_list(jinja_run *run, jinja_value value, jinja_list **list);
/* reversed(): *iterator NULL for what cannot be reversed. */
bool jinja_reversed(jinja_run *run, jinja_value value, jinja_iterator **iterator);

#endif
