/* Arguments, calls, and the globals. */
#include "text/jinja/calls.h"

#include "text/jinja/print.h"
#include "text/jinja/state.h"

#include <string.h>
#include <time.h>

/* --------------------------------------------------------------------------------------------------- arguments */

/* The next name of a signature; *optional if it has a '?'. False at the end. */
static bool next_parameter(const char **signature, const char **name, size_t *length, bool *optional) {
    const char *at = *signature;
    while (*at == ' ' || *at == '/') at++;
    *name = at;
    while (*at && *at != ' ' && *at != '?') at++;
    *length = (size_t)(at - *name);
    *optional = *at == '?';
    *signature = at + *optional;
    return *length > 0;
}

static bool bind_keyword(jinja_run *run, const char *function, const char *signature, const jinja_pair *keyword,
                         jinja_value bound[JINJA_MAX_PARAMETERS]) {
    const char *rest = signature, *name;
    size_t length, at = 0;
    bool optional;
    const jinja_string *key = keyword->key.as.string;
    if (*signature == '/') return jinja_raise(run, "%s() takes no keyword arguments", function);
    for (; next_parameter(&rest, &name, &length, &optional); at++) {
        if (!jinja_is_text(keyword->key, name, length)) continue;
        if (bound[at].kind != JINJA_MISSING)
            return jinja_raise(run, "%s() got multiple values for argument '%.*s'", function, (int)key->length,
                               key->data);
        bound[at] = keyword->value;
        return true;
    }
    return jinja_raise(run, "%s() got an unexpected keyword argument '%.*s'", function, (int)key->length,
                       key->data);
}

bool jinja_bind(jinja_run *run, const char *function, const char *signature, const jinja_arguments *arguments,
                jinja_value bound[JINJA_MAX_PARAMETERS]) {
    const char *rest = signature, *name;
    size_t length, count = 0;
    bool optional;
    for (size_t i = 0; i < JINJA_MAX_PARAMETERS; i++) bound[i] = jinja_missing();
    for (; next_parameter(&rest, &name, &length, &optional); count++)
        if (count < arguments->count) bound[count] = arguments->values[count];
    if (arguments->count > count)
        return jinja_raise(run, "%s() takes at most %zu arguments (%zu given)", function, count, arguments->count);
    for (size_t i = 0; i < arguments->keyword_count; i++)
        if (!bind_keyword(run, function, signature, &arguments->keywords[i], bound)) return false;
    rest = signature;
    for (size_t i = 0; next_parameter(&rest, &name, &length, &optional); i++)
        if (!optional && bound[i].kind == JINJA_MISSING)
            return jinja_raise(run, "%s() missing required argument: '%.*s'", function, (int)length, name);
    return true;
}

static bool call_function(jinja_run *run, const jinja_function *function, jinja_value self,
                          const jinja_arguments *arguments, jinja_value *result) {
    jinja_invocation in = {.self = self, .arguments = arguments};
    if (!function->call) return jinja_unsupported(run, "%s() is not supported", function->name);
    if (function->signature && !jinja_bind(run, function->name, function->signature, arguments, in.bound))
        return false;
    return function->call(run, &in, result);
}

/* ------------------------------------------------------------------------------------------------------- calls */

bool jinja_is_callable(jinja_value value) {
    return value.kind == JINJA_MACRO || value.kind == JINJA_FUNCTION || value.kind == JINJA_METHOD ||
           value.kind == JINJA_LOOP || value.kind == JINJA_JOINER || value.kind == JINJA_UNDEFINED;
}

static bool call_joiner(jinja_run *run, jinja_joiner *joiner, const jinja_arguments *arguments,
                        jinja_value *result) {
    jinja_value bound[JINJA_MAX_PARAMETERS];
    if (!jinja_bind(run, "joiner", "", arguments, bound)) return false;
    *result = joiner->separator;
    if (!joiner->used && !jinja_static_string(run, "", result)) return false;
    joiner->used = true;
    return true;
}

bool jinja_call_value(jinja_run *run, jinja_value callee, const jinja_arguments *arguments, jinja_value *result) {
    jinja_value bound[JINJA_MAX_PARAMETERS];
    switch (callee.kind) {
    case JINJA_MACRO:
        return jinja_call_macro(run, callee.as.macro, arguments, result);
    case JINJA_FUNCTION:
        return call_function(run, callee.as.function, jinja_missing(), arguments, result);
    case JINJA_METHOD:
        return call_function(run, callee.as.method->function, callee.as.method->object, arguments, result);
    case JINJA_LOOP:
        return jinja_bind(run, "loop", "iterable", arguments, bound) &&
               jinja_call_loop(run, callee.as.loop, bound[0], result);
    case JINJA_JOINER:
        return call_joiner(run, callee.as.joiner, arguments, result);
    case JINJA_UNDEFINED:
        return jinja_raise_undefined(run, callee);
    default:
        return jinja_raise(run, "'%s' object is not callable", jinja_type(callee));
    }
}

bool jinja_apply_filter(jinja_run *run, const jinja_function *filter, const jinja_string *name, jinja_value value,
                        const jinja_arguments *arguments, jinja_value *result) {
    if (!filter) return jinja_raise(run, "No filter named '%.*s' found.", (int)name->length, name->data);
    return call_function(run, filter, value, arguments, result);
}

bool jinja_apply_test(jinja_run *run, const jinja_test *test, const jinja_string *name, jinja_value value,
                      const jinja_arguments *arguments, bool *result) {
    jinja_invocation in = {.self = value, .arguments = arguments};
    if (!test) return jinja_raise(run, "No test named '%.*s' found.", (int)name->length, name->data);
    return jinja_bind(run, test->name, test->signature, arguments, in.bound) && test->apply(run, &in, result);
}

/* ----------------------------------------------------------------------------------------------------- globals */

static bool global_range(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t parts[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        if (in->bound[i].kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, in->bound[i]);
        if (in->bound[i].kind != JINJA_MISSING && !jinja_is_int(in->bound[i], &parts[i]))
            return jinja_raise(run, "'%s' object cannot be interpreted as an integer", jinja_type(in->bound[i]));
    }
    if (in->bound[1].kind == JINJA_MISSING) {
        parts[1] = parts[0];
        parts[0] = 0;
    }
    if (parts[2] == 0) return jinja_raise(run, "range() arg 3 must not be zero");
    bool up = parts[2] > 0;
    uint64_t distance = 0, stride = up ? (uint64_t)parts[2] : 0 - (uint64_t)parts[2];
    if (up ? parts[0] < parts[1] : parts[0] > parts[1])
        distance = up ? (uint64_t)parts[1] - (uint64_t)parts[0] : (uint64_t)parts[0] - (uint64_t)parts[1];
    uint64_t count = distance ? (distance - 1) / stride + 1 : 0;
    if (count > 100000)
        return jinja_raise(run, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    jinja_range *range = jinja_take(run, 1, sizeof *range);
    if (!range) return false;
    *range = (jinja_range){parts[0], parts[1], parts[2], (int64_t)count};
    *result = (jinja_value){.kind = JINJA_RANGE, .as.range = range};
    return true;
}

static bool add_pairs(jinja_run *run, jinja_value source, jinja_dict *dict) {
    jinja_iterator *iterator;
    if (source.kind == JINJA_UNDEFINED) return jinja_raise_undefined(run, source);
    if (source.kind == JINJA_DICT) {
        for (size_t i = 0; i < source.as.dict->count; i++)
            if (!jinja_dict_set(run, dict, source.as.dict->pairs[i].key, source.as.dict->pairs[i].value))
                return false;
        return true;
    }
    if (!jinja_iterate(run, source, &iterator)) return false;
    for (size_t i = 0;; i++) {
        jinja_value item;
        jinja_list *pair;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) return true;
        if (!jinja_is_iterable(item))
            return jinja_raise(run, "cannot convert dictionary update sequence element #%zu to a sequence", i);
        if (!jinja_to_list(run, item, &pair)) return false;
        if (pair->count != 2)
            return jinja_raise(run, "dictionary update sequence element #%zu has length %zu; 2 is required", i,
                               pair->count);
        if (!jinja_dict_set(run, dict, pair->items[0], pair->items[1])) return false;
    }
}

/* dict(*args, **kwargs), as a namespace or a dict. */
static bool build_dict(jinja_run *run, const jinja_arguments *arguments, jinja_dict **dict) {
    if (arguments->count > 1)
        return jinja_raise(run, "dict expected at most 1 argument, got %zu", arguments->count);
    if (!jinja_new_dict(run, arguments->keyword_count, dict)) return false;
    if (arguments->count && !add_pairs(run, arguments->values[0], *dict)) return false;
    for (size_t i = 0; i < arguments->keyword_count; i++)
        if (!jinja_dict_set(run, *dict, arguments->keywords[i].key, arguments->keywords[i].value)) return false;
    return true;
}

static bool global_dict(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_dict *dict;
    if (!build_dict(run, in->arguments, &dict)) return false;
    *result = jinja_from_dict(JINJA_DICT, dict);
    return true;
}

static bool global_namespace(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_dict *dict;
    if (!build_dict(run, in->arguments, &dict)) return false;
    for (size_t i = 0; i < dict->count; i++)
        if (!jinja_check_namespace_name(run, dict->pairs[i].key)) return false;
    *result = jinja_from_dict(JINJA_NAMESPACE, dict);
    return true;
}

static bool global_cycler(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_value items;
    if (in->arguments->keyword_count) return jinja_raise(run, "cycler() got an unexpected keyword argument");
    if (in->arguments->count == 0) return jinja_raise(run, "at least one item has to be provided");
    jinja_cycler *cycler = jinja_take(run, 1, sizeof *cycler);
    if (!cycler || !jinja_new_tuple(run, in->arguments->values, in->arguments->count, &items)) return false;
    *cycler = (jinja_cycler){items.as.list, 0};
    *result = (jinja_value){.kind = JINJA_CYCLER, .as.cycler = cycler};
    return true;
}

static bool global_joiner(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_joiner *joiner = jinja_take(run, 1, sizeof *joiner);
    if (!joiner) return false;
    *joiner = (jinja_joiner){in->bound[0], false};
    if (in->bound[0].kind == JINJA_MISSING && !jinja_static_string(run, ", ", &joiner->separator)) return false;
    *result = (jinja_value){.kind = JINJA_JOINER, .as.joiner = joiner};
    return true;
}

static bool global_raise(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    (void)result;
    jinja_text text = {.run = run};
    if (!jinja_str(&text, in->bound[0])) return false;
    return jinja_raise(run, "%.*s", (int)(text.length < sizeof run->message ? text.length : sizeof run->message),
                       text.data ? text.data : "");
}

/* The date of a day counted from 1970-01-01. */
static void set_date(struct tm *date, int64_t day) {
    int64_t shifted = day + 719468, era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100); /* counted from 1 March */
    int64_t month = (5 * of_year + 2) / 153;
    date->tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1);
    date->tm_mon = (int)(month < 10 ? month + 2 : month - 10);
    year += era * 400 + (date->tm_mon < 2);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    date->tm_year = (int)(year - 1900);
    date->tm_yday = (int)(date->tm_mon < 2 ? of_year - 306 : of_year + 59 + leap);
    date->tm_wday = (int)(((day + 4) % 7 + 7) % 7);
}

static bool global_strftime(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    if (in->bound[0].kind != JINJA_STRING)
        return jinja_raise(run, "strftime() argument 1 must be str, not %s", jinja_type(in->bound[0]));
    if (run->time < -62135596800 || run->time > 253402300799)
        return jinja_raise(run,
                           "strftime_now needs a time, and none was given (or one outside the years 1 to 9999)");
    int64_t seconds = (run->time % 86400 + 86400) % 86400;
    struct tm date = {.tm_hour = (int)(seconds / 3600),
                      .tm_min = (int)(seconds / 60 % 60),
                      .tm_sec = (int)(seconds % 60),
                      .tm_isdst = -1};
    set_date(&date, (run->time - seconds) / 86400);
    jinja_text text = {.run = run};
    const jinja_string *format = in->bound[0].as.string;
    for (size_t at = 0; at < format->length; at++) {
        char directive[3] = {'%', format->data[at + 1 < format->length ? at + 1 : at], 0}, shown[128];
        if (format->data[at] != '%' || at + 1 == format->length) {
            if (!jinja_text_add(&text, format->data + at, 1)) return false;
            continue;
        }
        at++;
        /* Microseconds are Python's own; the clock given has no zone. */
        if (directive[1] == 'f' && !jinja_text_puts(&text, "000000")) return false;
        if (strchr("fzZ", directive[1])) continue;
        if (!strchr("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%", directive[1]))
            return jinja_raise(run, "strftime_now: %%%c is not supported", directive[1]);
        size_t length = strftime(shown, sizeof shown, directive, &date);
        if (!jinja_text_add(&text, shown, length)) return false;
    }
    return jinja_text_finish(&text, result);
}

bool jinja_make_globals(jinja_run *run, jinja_dict **globals) {
    static const jinja_function functions[] = {
        {"range", "/start stop? step?", global_range},
        {"dict", NULL, global_dict},
        {"namespace", NULL, global_namespace},
        {"cycler", NULL, global_cycler},
        {"joiner", "sep?", global_joiner},
        {"raise_exception", "message", global_raise},
        {"strftime_now", "format", global_strftime},
    };
    size_t count = sizeof functions / sizeof functions[0];
    if (!jinja_new_dict(run, count, globals)) return false;
    for (size_t i = 0; i < count; i++) {
        jinja_value name, function = {.kind = JINJA_FUNCTION, .as.function = &functions[i]};
        if (!jinja_static_string(run, functions[i].name, &name) || !jinja_dict_set(run, *globals, name, function))
            return false;
    }
    return true;
}
