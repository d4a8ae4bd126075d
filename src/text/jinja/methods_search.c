/* Methods that look for parts of a string, split it, or join strings. */
#include "text/jinja/methods.h"
#include "text/jinja/print.h"

#include <string.h>

static bool like(jinja_value self, bool done, jinja_value *result) {
    if (done && result->kind == JINJA_STRING) result->mark = self.mark;
    return done;
}

/* Appends bytes start..end of self. */
static bool add_part(jinja_run *run, jinja_list *list, jinja_value self, size_t start, size_t end) {
    jinja_value part;
    return like(self, jinja_substring(run, self.as.string, start, end, &part), &part) &&
           jinja_list_append(run, list, part);
}

/* ---------------------------------------------------------------------------------------------------- searching */

/* The optional start and end (in characters, from the end if negative) of a search, as bytes. *empty: nothing lies
 * between them, not even an empty string. */
static bool read_window(jinja_run *run, const jinja_invocation *in, size_t *start, size_t *end, bool *empty) {
    const jinja_string *string = in->self.as.string;
    int64_t count = (int64_t)string->characters, ends[2] = {0, count};
    for (int i = 0; i < 2; i++) {
        jinja_value given = in->bound[1 + i];
        if (given.kind == JINJA_MISSING || given.kind == JINJA_NONE) continue;
        if (!jinja_is_int(given, &ends[i]))
            return jinja_raise(run, "slice indices must be integers or None or have an __index__ method");
        if (ends[i] < 0) ends[i] += count;
        if (ends[i] < 0) ends[i] = 0;
    }
    if (ends[1] > count) ends[1] = count;
    *empty = ends[0] > ends[1];
    if (*empty) ends[0] = ends[1];
    *start = jinja_offset(string, (size_t)ends[0]);
    *end = jinja_offset(string, (size_t)ends[1]);
    return jinja_step_bytes(run, string->length == (size_t)count ? 0 : string->length);
}

/* *found: the character where the argument is found, or -1. */
static bool search(jinja_run *run, const jinja_invocation *in, const char *method, bool last, int64_t *found) {
    const jinja_string *string = in->self.as.string;
    size_t start, end, at = SIZE_MAX;
    bool empty;
    if (!jinja_need_string(run, method, in->bound[0]) || !read_window(run, in, &start, &end, &empty)) return false;
    const jinja_string *part = in->bound[0].as.string;
    if (part->length == 0) {
        at = last ? end - start : 0;
    } else if (!empty) {
        bool done = last ? jinja_find_last(run, string->data + start, end - start, part, &at)
                         : jinja_find(run, string->data + start, end - start, part, &at);
        if (!done) return false;
    }
    *found = at == SIZE_MAX || empty ? -1 : (int64_t)jinja_characters(string->data, start + at);
    return jinja_step_bytes(run, start);
}

static bool method_find(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t found;
    if (!search(run, in, "find", false, &found)) return false;
    *result = jinja_int(found);
    return true;
}

static bool method_rfind(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t found;
    if (!search(run, in, "rfind", true, &found)) return false;
    *result = jinja_int(found);
    return true;
}

static bool method_index(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t found;
    if (!search(run, in, "index", false, &found)) return false;
    *result = jinja_int(found);
    return found >= 0 || jinja_raise(run, "substring not found");
}

static bool method_rindex(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t found;
    if (!search(run, in, "rindex", true, &found)) return false;
    *result = jinja_int(found);
    return found >= 0 || jinja_raise(run, "substring not found");
}

static bool method_count(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    size_t start, end;
    bool empty;
    int64_t count = 0;
    if (!jinja_need_string(run, "count", in->bound[0]) || !read_window(run, in, &start, &end, &empty))
        return false;
    const jinja_string *part = in->bound[0].as.string;
    if (part->length == 0) {
        *result = jinja_int(empty ? 0 : (int64_t)jinja_characters(string->data + start, end - start) + 1);
        return true;
    }
    for (;; count++) {
        size_t at;
        if (!jinja_find(run, string->data + start, end - start, part, &at)) return false;
        if (at == SIZE_MAX) break;
        start += at + part->length;
    }
    *result = jinja_int(count);
    return true;
}

/* Does the window start or end with one of the affixes? */
static bool has_affix(jinja_run *run, const jinja_invocation *in, bool prefix, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    const char *method = prefix ? "startswith" : "endswith";
    jinja_value one = in->bound[0];
    const jinja_value *affixes = &one;
    size_t count = 1, start, end;
    bool empty, found = false;
    if (one.kind == JINJA_TUPLE) {
        affixes = one.as.list->items;
        count = one.as.list->count;
    } else if (one.kind != JINJA_STRING) {
        return jinja_raise(run, "%s first arg must be str or a tuple of str, not %s", method, jinja_type(one));
    }
    if (!read_window(run, in, &start, &end, &empty) || !jinja_step(run, count)) return false;
    for (size_t i = 0; i < count && !found; i++) {
        if (affixes[i].kind != JINJA_STRING)
            return jinja_raise(run, "tuple for %s must only contain str, not %s", method, jinja_type(affixes[i]));
        const jinja_string *affix = affixes[i].as.string;
        size_t at = prefix ? start : end - affix->length;
        found =
            !empty && affix->length <= end - start && memcmp(string->data + at, affix->data, affix->length) == 0;
    }
    *result = jinja_bool(found);
    return true;
}

static bool method_startswith(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return has_affix(run, in, true, result);
}

static bool method_endswith(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return has_affix(run, in, false, result);
}

/* ---------------------------------------------------------------------------------------------------- splitting */

/* The next byte from at on whose character is, or is not, white space; or end. */
static size_t skip(const jinja_string *string, size_t at, bool space) {
    while (at < string->length) {
        uint32_t character;
        size_t count = jinja_decode(string->data, at, &character);
        if (jinja_is_space(character) != space) break;
        at += count;
    }
    return at;
}

/* The same backwards from before end. */
static size_t skip_back(const jinja_string *string, size_t end, bool space) {
    while (end > 0) {
        uint32_t character;
        size_t count = jinja_decode_before(string->data, end, &character);
        if (jinja_is_space(character) != space) break;
        end -= count;
    }
    return end;
}

static bool split_words(jinja_run *run, jinja_value self, int64_t limit, jinja_list *list) {
    const jinja_string *string = self.as.string;
    size_t at = skip(string, 0, true);
    while (at < string->length) {
        bool all = limit >= 0 && limit-- == 0;
        /* What is left behind the last split keeps its white space on the right. */
        size_t end = all ? string->length : skip(string, at, false);
        if (!add_part(run, list, self, at, end)) return false;
        at = skip(string, end, true);
    }
    return jinja_step_bytes(run, string->length);
}

static void reverse_list(jinja_list *list) {
    for (size_t i = 0; i < list->count / 2; i++) {
        jinja_value other = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = other;
    }
}

static bool split_words_back(jinja_run *run, jinja_value self, int64_t limit, jinja_list *list) {
    const jinja_string *string = self.as.string;
    size_t end = skip_back(string, string->length, true);
    while (end > 0) {
        bool all = limit >= 0 && limit-- == 0;
        size_t start = all ? 0 : skip_back(string, end, false);
        if (!add_part(run, list, self, start, end)) return false;
        end = skip_back(string, start, true);
    }
    reverse_list(list);
    return jinja_step_bytes(run, string->length);
}

static bool split_at(jinja_run *run, jinja_value self, const jinja_string *separator, int64_t limit, bool back,
                     jinja_list *list) {
    const jinja_string *string = self.as.string;
    size_t start = 0, end = string->length, at;
    while (limit != 0) {
        bool done = back ? jinja_find_last(run, string->data, end, separator, &at)
                         : jinja_find(run, string->data + start, end - start, separator, &at);
        if (!done) return false;
        if (at == SIZE_MAX) break;
        at += back ? 0 : start;
        done =
            back ? add_part(run, list, self, at + separator->length, end) : add_part(run, list, self, start, at);
        if (!done) return false;
        start = back ? 0 : at + separator->length;
        end = back ? at : end;
        limit -= limit > 0;
    }
    if (!add_part(run, list, self, start, end)) return false;
    if (back) reverse_list(list);
    return true;
}

static bool split(jinja_run *run, const jinja_invocation *in, bool back, jinja_value *result) {
    jinja_list *list;
    int64_t limit = -1;
    jinja_value separator = in->bound[0];
    bool words = separator.kind == JINJA_MISSING || separator.kind == JINJA_NONE, done;
    if (in->bound[1].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[1], &limit)) return false;
    if (!words && separator.kind != JINJA_STRING)
        return jinja_raise(run, "must be str or None, not %s", jinja_type(separator));
    if (!words && separator.as.string->length == 0) return jinja_raise(run, "empty separator");
    if (!jinja_new_list(run, 0, &list)) return false;
    if (words)
        done = back ? split_words_back(run, in->self, limit, list) : split_words(run, in->self, limit, list);
    else
        done = split_at(run, in->self, separator.as.string, limit, back, list);
    *result = jinja_from_list(JINJA_LIST, list);
    return done;
}

static bool method_split(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return split(run, in, false, result);
}

static bool method_rsplit(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return split(run, in, true, result);
}

bool jinja_split_lines(jinja_run *run, jinja_value self, bool keep_ends, jinja_list **lines) {
    const jinja_string *string = self.as.string;
    size_t start = 0;
    if (!jinja_new_list(run, 0, lines)) return false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        size_t end = at;
        at += jinja_decode(string->data, at, &character);
        if (!jinja_is_line_end(character)) continue;
        if (character == '\r' && at < string->length && string->data[at] == '\n') at++;
        if (!add_part(run, *lines, self, start, keep_ends ? at : end)) return false;
        start = at;
    }
    return start == string->length || add_part(run, *lines, self, start, string->length);
}

static bool method_splitlines(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_list *lines;
    int64_t keep = 0;
    if (in->bound[0].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[0], &keep)) return false;
    if (!jinja_split_lines(run, in->self, keep != 0, &lines)) return false;
    *result = jinja_from_list(JINJA_LIST, lines);
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool partition(jinja_run *run, const jinja_invocation *in, bool last, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    jinja_list *parts;
    size_t at;
    if (!jinja_need_string(run, last ? "rpartition" : "partition", in->bound[0])) return false;
    const jinja_string *separator = in->bound[0].as.string;
    if (separator->length == 0) return jinja_raise(run, "empty separator");
    bool done = last ? jinja_find_last(run, string->data, string->length, separator, &at)
                     : jinja_find(run, string->data, string->length, separator, &at);
    size_t end = at + separator->length;
    if (at == SIZE_MAX) at = end = last ? 0 : string->length;
    *result = jinja_none();
    if (!done || !jinja_new_list(run, 3, &parts) || !add_part(run, parts, in->self, 0, at) ||
        !add_part(run, parts, in->self, at, end) || !add_part(run, parts, in->self, end, string->length))
        return false;
    *result = jinja_from_list(JINJA_TUPLE, parts);
    return true;
}

static bool method_partition(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return partition(run, in, false, result);
}

static bool method_rpartition(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return partition(run, in, true, result);
}

/* ------------------------------------------------------------------------------------------- replacing, joining */

/* Between all characters, before the first and behind the last. */
static bool interleave(jinja_text *text, const jinja_string *string, const jinja_string *by, int64_t count) {
    size_t at = 0;
    while (count != 0) {
        uint32_t character;
        if (!jinja_text_string(text, by)) return false;
        count -= count > 0;
        if (at == string->length) break;
        size_t length = jinja_decode(string->data, at, &character);
        if (!jinja_text_add(text, string->data + at, length)) return false;
        at += length;
    }
    return jinja_text_add(text, string->data + at, string->length - at);
}

bool jinja_replace(jinja_run *run, jinja_value self, jinja_value old, jinja_value by, int64_t count,
                   jinja_value *result) {
    const jinja_string *string = self.as.string, *part = old.as.string;
    jinja_text text = {.run = run};
    size_t start = 0;
    if (part->length == 0) {
        if (!interleave(&text, string, by.as.string, count)) return false;
        return like(self, jinja_text_finish(&text, result), result);
    }
    while (count != 0) {
        size_t at;
        if (!jinja_find(run, string->data + start, string->length - start, part, &at)) return false;
        if (at == SIZE_MAX) break;
        if (!jinja_text_add(&text, string->data + start, at) || !jinja_text_string(&text, by.as.string))
            return false;
        start += at + part->length;
        count -= count > 0;
    }
    return jinja_text_add(&text, string->data + start, string->length - start) &&
           like(self, jinja_text_finish(&text, result), result);
}

static bool method_replace(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    int64_t count = -1;
    jinja_value by = in->bound[1];
    if (!jinja_need_string(run, "replace", in->bound[0])) return false;
    if (in->self.mark && !jinja_escape(run, by, &by)) return false;
    if (!jinja_need_string(run, "replace", by)) return false;
    if (in->bound[2].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[2], &count)) return false;
    return jinja_replace(run, in->self, in->bound[0], by, count, result);
}

static bool method_join(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    jinja_iterator *iterator;
    jinja_text text = {.run = run};
    if (!jinja_is_iterable(in->bound[0])) return jinja_raise(run, "can only join an iterable");
    if (!jinja_iterate(run, in->bound[0], &iterator)) return false;
    for (size_t i = 0;; i++) {
        jinja_value item;
        bool done;
        if (!jinja_next(run, iterator, &item, &done)) return false;
        if (done) break;
        if (in->self.mark && !jinja_escape(run, item, &item)) return false;
        if (item.kind != JINJA_STRING)
            return jinja_raise(run, "sequence item %zu: expected str instance, %s found", i, jinja_type(item));
        if (i && !jinja_text_string(&text, in->self.as.string)) return false;
        if (!jinja_text_string(&text, item.as.string)) return false;
    }
    return like(in->self, jinja_text_finish(&text, result), result);
}

const jinja_function jinja_search_methods[] = {
    {"count", "/sub start? end?", method_count},
    {"endswith", "/suffix start? end?", method_endswith},
    {"find", "/sub start? end?", method_find},
    {"index", "/sub start? end?", method_index},
    {"join", "/iterable", method_join},
    {"partition", "/sep", method_partition},
    {"replace", "/old new count?", method_replace},
    {"rfind", "/sub start? end?", method_rfind},
    {"rindex", "/sub start? end?", method_rindex},
    {"rpartition", "/sep", method_rpartition},
    {"rsplit", "sep? maxsplit?", method_rsplit},
    {"split", "sep? maxsplit?", method_split},
    {"splitlines", "keepends?", method_splitlines},
    {"startswith", "/prefix start? end?", method_startswith},
    {NULL, NULL, NULL},
};
