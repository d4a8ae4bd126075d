/* Calling things: arguments, filters, tests, methods, globals. */
#ifndef QVL_TEXT_JINJA_CALLS_H
#define QVL_TEXT_JINJA_CALLS_H

#include "text/jinja/value.h"

/* Arguments of one call: values in order, then keywords. */
typedef struct jinja_arguments {
    const jinja_value *values;
    size_t count;
    const jinja_pair *keywords; /* keys are strings */
    size_t keyword_count;
} jinja_arguments;

#define JINJA_MAX_PARAMETERS 6

/* Puts arguments where a signature says: names with spaces between them, a '?' behind those that may be left out
 * (they become JINJA_MISSING), a '/' before them all if none may be a keyword. */
bool jinja_bind(jinja_run *run, const char *function, const char *signature, const jinja_arguments *arguments,
                jinja_value bound[JINJA_MAX_PARAMETERS]);

/* A call as its function sees it. */
typedef struct jinja_invocation {
    jinja_value self;                        /* of a method its object, of a filter or test its value */
    jinja_value bound[JINJA_MAX_PARAMETERS]; /* arguments as the signature names them */
    const jinja_arguments *arguments;        /* as they are: for functions without a signature */
} jinja_invocation;

/* A filter, a method or a global. call NULL: Python has it, qvl has not. */
struct jinja_function {
    const char *name, *signature;
    bool (*call)(jinja_run *run, const jinja_invocation *in, jinja_value *result);
};

typedef struct jinja_test {
    const char *name, *signature;
    bool (*apply)(jinja_run *run, const jinja_invocation *in, bool *result);
} jinja_test;

struct jinja_method {
    jinja_value object;
    const jinja_function *function;
};

const jinja_function *jinja_find_filter(const jinja_string *name);
const jinja_test *jinja_find_test(const jinja_string *name);
bool jinja_apply_filter(jinja_run *run, const jinja_function *filter, const jinja_string *name, jinja_value value,
                        const jinja_arguments *arguments, jinja_value *result);
bool jinja_apply_test(jinja_run *run, const jinja_test *test, const jinja_string *name, jinja_value value,
                      const jinja_arguments *arguments, bool *result);

/* object(arguments). */
bool jinja_call_value(jinja_run *run, jinja_value callee, const jinja_arguments *arguments, jinja_value *result);
bool jinja_is_callable(jinja_value value);

/* The names every template sees: range, dict, namespace, cycler, joiner, raise_exception, strftime_now. */
bool jinja_make_globals(jinja_run *run, jinja_dict **globals);

/* object.name, and object[index], as Jinja's sandbox looks them up; undefined where there is nothing. */
bool jinja_get_attribute(jinja_run *run, jinja_value object, const jinja_string *name, jinja_value *result);
bool jinja_get_item(jinja_run *run, jinja_value object, jinja_value index, jinja_value *result);
/* object[start:stop:step]; each may be NONE. */
bool jinja_get_slice(jinja_run *run, jinja_value object, const jinja_value parts[3], jinja_value *result);
/* What Python's getattr gives, or *found false. Parts of an object, not its items. */
bool jinja_get_property(jinja_run *run, jinja_value object, const jinja_string *name, jinja_value *result,
                        bool *found);

bool jinja_binary(jinja_run *run, int op, jinja_value a, jinja_value b, jinja_value *result);
bool jinja_unary(jinja_run *run, int op, jinja_value a, jinja_value *result);
/* text % value, and text.format(...). */
bool jinja_percent(jinja_run *run, jinja_value format, jinja_value value, jinja_value *result);
bool jinja_format(jinja_run *run, jinja_value format, const jinja_arguments *arguments, jinja_value *result);
/* HTML's special characters as entities; Markup stays. */
bool jinja_escape(jinja_run *run, jinja_value value, jinja_value *markup);

#endif
