/* The tests behind "is". */
#include "text/jinja/methods.h"
#include "text/jinja/node.h"
#include "text/jinja/print.h"

#include <string.h>

/* value % number == rest, as Python does it. */
static bool remainder_is(jinja_run *run, jinja_value value, jinja_value number, int64_t rest, bool *result) {
    jinja_value left;
    return jinja_binary(run, OP_MOD, value, number, &left) && jinja_equal(run, left, jinja_int(rest), result);
}

static bool test_odd(jinja_run *run, const jinja_invocation *in, bool *result) {
    return remainder_is(run, in->self, jinja_int(2), 1, result);
}

static bool test_even(jinja_run *run, const jinja_invocation *in, bool *result) {
    return remainder_is(run, in->self, jinja_int(2), 0, result);
}

static bool test_divisibleby(jinja_run *run, const jinja_invocation *in, bool *result) {
    return remainder_is(run, in->self, in->bound[0], 0, result);
}

static bool test_defined(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind != JINJA_UNDEFINED;
    return jinja_step(run, 1);
}

static bool test_undefined(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_UNDEFINED;
    return jinja_step(run, 1);
}

static bool test_none(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_NONE;
    return jinja_step(run, 1);
}

static bool test_boolean(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_BOOL;
    return jinja_step(run, 1);
}

static bool test_true(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_BOOL && in->self.as.boolean;
    return jinja_step(run, 1);
}

static bool test_false(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_BOOL && !in->self.as.boolean;
    return jinja_step(run, 1);
}

static bool test_integer(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_INT || in->self.kind == JINJA_BIG;
    return jinja_step(run, 1);
}

static bool test_float(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_FLOAT;
    return jinja_step(run, 1);
}

static bool test_number(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = jinja_is_number(in->self) || in->self.kind == JINJA_BIG;
    return jinja_step(run, 1);
}

static bool test_string(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_STRING;
    return jinja_step(run, 1);
}

static bool test_mapping(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_DICT;
    return jinja_step(run, 1);
}

static bool test_sequence(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = jinja_has_length(in->self) && in->self.kind != JINJA_VIEW && in->self.kind != JINJA_LOOP;
    return jinja_step(run, 1);
}

static bool test_iterable(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = jinja_is_iterable(in->self);
    return jinja_step(run, 1);
}

static bool test_callable(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = jinja_is_callable(in->self);
    return jinja_step(run, 1);
}

static bool test_escaped(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = in->self.kind == JINJA_STRING && in->self.mark;
    return jinja_step(run, 1);
}

static bool test_sameas(jinja_run *run, const jinja_invocation *in, bool *result) {
    *result = jinja_same(in->self, in->bound[0]);
    return jinja_step(run, 1);
}

static bool test_in(jinja_run *run, const jinja_invocation *in, bool *result) {
    return jinja_contains(run, in->bound[0], in->self, result);
}

static bool is_cased(jinja_run *run, jinja_value value, bool upper, bool *result) {
    jinja_value string;
    if (!jinja_to_string(run, value, &string)) return false;
    *result = jinja_is_cased(string.as.string, upper);
    return true;
}

static bool test_lower(jinja_run *run, const jinja_invocation *in, bool *result) {
    return is_cased(run, in->self, false, result);
}

static bool test_upper(jinja_run *run, const jinja_invocation *in, bool *result) {
    return is_cased(run, in->self, true, result);
}

static bool test_filter(jinja_run *run, const jinja_invocation *in, bool *result) {
    uint64_t hash;
    *result = in->self.kind == JINJA_STRING && jinja_find_filter(in->self.as.string);
    return jinja_hash(run, in->self, &hash); /* what cannot be looked up is an error */
}

static bool test_test(jinja_run *run, const jinja_invocation *in, bool *result) {
    uint64_t hash;
    *result = in->self.kind == JINJA_STRING && jinja_find_test(in->self.as.string);
    return jinja_hash(run, in->self, &hash); /* what cannot be looked up is an error */
}

static bool test_eq(jinja_run *run, const jinja_invocation *in, bool *result) {
    return jinja_equal(run, in->self, in->bound[0], result);
}

static bool test_ne(jinja_run *run, const jinja_invocation *in, bool *result) {
    if (!jinja_equal(run, in->self, in->bound[0], result)) return false;
    *result = !*result;
    return true;
}

static bool test_lt(jinja_run *run, const jinja_invocation *in, bool *result) {
    int order;
    if (!jinja_order(run, in->self, in->bound[0], "<", &order)) return false;
    *result = order == -1;
    return true;
}

static bool test_le(jinja_run *run, const jinja_invocation *in, bool *result) {
    int order;
    if (!jinja_order(run, in->self, in->bound[0], "<=", &order)) return false;
    *result = order <= 0;
    return true;
}

static bool test_gt(jinja_run *run, const jinja_invocation *in, bool *result) {
    int order;
    if (!jinja_order(run, in->self, in->bound[0], ">", &order)) return false;
    *result = order == 1;
    return true;
}

static bool test_ge(jinja_run *run, const jinja_invocation *in, bool *result) {
    int order;
    if (!jinja_order(run, in->self, in->bound[0], ">=", &order)) return false;
    *result = order == 0 || order == 1;
    return true;
}

static const jinja_test tests[] = {
    {"odd", "", test_odd},
    {"even", "", test_even},
    {"divisibleby", "num", test_divisibleby},
    {"defined", "", test_defined},
    {"undefined", "", test_undefined},
    {"filter", "", test_filter},
    {"test", "", test_test},
    {"none", "", test_none},
    {"boolean", "", test_boolean},
    {"false", "", test_false},
    {"true", "", test_true},
    {"integer", "", test_integer},
    {"float", "", test_float},
    {"lower", "", test_lower},
    {"upper", "", test_upper},
    {"string", "", test_string},
    {"mapping", "", test_mapping},
    {"number", "", test_number},
    {"sequence", "", test_sequence},
    {"iterable", "", test_iterable},
    {"callable", "", test_callable},
    {"sameas", "other", test_sameas},
    {"escaped", "", test_escaped},
    {"in", "seq", test_in},
    {"==", "/b", test_eq},
    {"eq", "/b", test_eq},
    {"equalto", "/b", test_eq},
    {"!=", "/b", test_ne},
    {"ne", "/b", test_ne},
    {">", "/b", test_gt},
    {"gt", "/b", test_gt},
    {"greaterthan", "/b", test_gt},
    {">=", "/b", test_ge},
    {"ge", "/b", test_ge},
    {"<", "/b", test_lt},
    {"lt", "/b", test_lt},
    {"lessthan", "/b", test_lt},
    {"<=", "/b", test_le},
    {"le", "/b", test_le},
};

const jinja_test *jinja_find_test(const jinja_string *name) {
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (jinja_is_text(jinja_from_string(name), tests[i].name, strlen(tests[i].name))) return &tests[i];
    return NULL;
}
