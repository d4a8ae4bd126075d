/* Methods that make another string of a string, or tell what its characters are. */
#include "text/jinja/methods.h"

#include <string.h>

bool jinja_need_string(jinja_run *run, const char *method, jinja_value value) {
    return value.kind == JINJA_STRING ||
           jinja_raise(run, "%s() argument must be str, not %s", method, jinja_type(value));
}

bool jinja_need_int(jinja_run *run, jinja_value value, int64_t *integer) {
    return jinja_is_int(value, integer) ||
           jinja_raise(run, "'%s' object cannot be interpreted as an integer", jinja_type(value));
}

/* A text that was built from self is Markup if self is. */
static bool finish_like(jinja_text *text, jinja_value self, jinja_value *result) {
    if (!jinja_text_finish(text, result)) return false;
    result->mark = self.mark;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- case */

bool jinja_change_case(jinja_run *run, jinja_value self, jinja_case mode, jinja_value *result) {
    jinja_text text = {.run = run};
    return jinja_text_convert(&text, self.as.string, 0, self.as.string->length, mode) &&
           finish_like(&text, self, result);
}

bool jinja_capitalize(jinja_run *run, jinja_value self, jinja_value *result) {
    const jinja_string *string = self.as.string;
    jinja_text text = {.run = run};
    uint32_t character;
    size_t first = string->length ? jinja_decode(string->data, 0, &character) : 0;
    return jinja_text_convert(&text, string, 0, first, JINJA_TITLE) &&
           jinja_text_convert(&text, string, first, string->length, JINJA_LOWER) &&
           finish_like(&text, self, result);
}

static bool method_upper(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_change_case(run, in->self, JINJA_UPPER, result);
}

static bool method_lower(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_change_case(run, in->self, JINJA_LOWER, result);
}

static bool method_casefold(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_change_case(run, in->self, JINJA_FOLD, result);
}

static bool method_capitalize(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_capitalize(run, in->self, result);
}

static bool is_cased(uint32_t character) {
    return jinja_is_lower(character) || jinja_is_upper(character) || jinja_is_title(character);
}

/* A letter behind another one becomes small, any other a title letter. */
static bool method_title(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    jinja_text text = {.run = run};
    bool behind_letter = false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        size_t count = jinja_decode(string->data, at, &character);
        if (!jinja_text_case(&text, string, at, character, behind_letter ? JINJA_LOWER : JINJA_TITLE))
            return false;
        behind_letter = is_cased(character);
        at += count;
    }
    return finish_like(&text, in->self, result);
}

static bool method_swapcase(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    jinja_text text = {.run = run};
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        size_t count = jinja_decode(string->data, at, &character);
        bool done = jinja_is_upper(character)   ? jinja_text_case(&text, string, at, character, JINJA_LOWER)
                    : jinja_is_lower(character) ? jinja_text_case(&text, string, at, character, JINJA_UPPER)
                                                : jinja_text_put(&text, character);
        if (!done) return false;
        at += count;
    }
    return finish_like(&text, in->self, result);
}

/* ------------------------------------------------------------------------------------------------- filling up */

static bool pad(jinja_run *run, jinja_value self, size_t before, size_t behind, uint32_t fill,
                jinja_value *result) {
    jinja_text text = {.run = run};
    return jinja_text_repeat(&text, fill, before) && jinja_text_string(&text, self.as.string) &&
           jinja_text_repeat(&text, fill, behind) && finish_like(&text, self, result);
}

/* The width that is missing, and what fills it. */
static bool read_padding(jinja_run *run, const jinja_invocation *in, size_t *missing, uint32_t *fill) {
    int64_t width = 0, characters = (int64_t)in->self.as.string->characters;
    jinja_value by = in->bound[1];
    if (!jinja_need_int(run, in->bound[0], &width)) return false;
    *missing = width > characters ? (size_t)(width - characters) : 0;
    *fill = ' ';
    if (by.kind == JINJA_MISSING) return true;
    if (!jinja_need_string(run, "the fill character", by)) return false;
    if (by.as.string->characters != 1)
        return jinja_raise(run, "The fill character must be exactly one character long");
    jinja_decode(by.as.string->data, 0, fill);
    return true;
}

bool jinja_center(jinja_run *run, jinja_value self, int64_t width, jinja_value *result) {
    const jinja_invocation in = {.self = self, .bound = {jinja_int(width)}};
    size_t missing;
    uint32_t fill;
    if (!read_padding(run, &in, &missing, &fill)) return false;
    size_t before = missing / 2 + (missing & (size_t)width & 1);
    return pad(run, self, before, missing - before, fill, result);
}

static bool method_center(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    size_t missing;
    uint32_t fill;
    if (!read_padding(run, in, &missing, &fill)) return false;
    size_t before = missing / 2 + (missing & (missing + in->self.as.string->characters) & 1);
    return pad(run, in->self, before, missing - before, fill, result);
}

static bool method_ljust(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    size_t missing;
    uint32_t fill;
    return read_padding(run, in, &missing, &fill) && pad(run, in->self, 0, missing, fill, result);
}

static bool method_rjust(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    size_t missing;
    uint32_t fill;
    return read_padding(run, in, &missing, &fill) && pad(run, in->self, missing, 0, fill, result);
}

static bool method_zfill(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    int64_t width = 0;
    jinja_text text = {.run = run};
    if (!jinja_need_int(run, in->bound[0], &width)) return false;
    size_t sign = string->length && (string->data[0] == '+' || string->data[0] == '-');
    size_t missing = width > (int64_t)string->characters ? (size_t)width - string->characters : 0;
    return jinja_text_add(&text, string->data, sign) && jinja_text_repeat(&text, '0', missing) &&
           jinja_text_add(&text, string->data + sign, string->length - sign) &&
           finish_like(&text, in->self, result);
}

static bool method_expandtabs(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    int64_t size = 8;
    size_t column = 0;
    jinja_text text = {.run = run};
    if (in->bound[0].kind != JINJA_MISSING && !jinja_need_int(run, in->bound[0], &size)) return false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        at += jinja_decode(string->data, at, &character);
        if (character == '\t') {
            size_t fill = size > 0 ? (size_t)size - column % (size_t)size : 0;
            column += fill;
            if (!jinja_text_repeat(&text, ' ', fill)) return false;
            continue;
        }
        column = character == '\n' || character == '\r' ? 0 : column + 1;
        if (!jinja_text_put(&text, character)) return false;
    }
    return finish_like(&text, in->self, result);
}

/* --------------------------------------------------------------------------------------------------- stripping */

bool jinja_trim(jinja_run *run, jinja_value self, jinja_value characters, bool left, bool right,
                jinja_value *result) {
    size_t start, end;
    const jinja_string *set = NULL;
    if (characters.kind == JINJA_STRING)
        set = characters.as.string;
    else if (characters.kind != JINJA_NONE && characters.kind != JINJA_MISSING)
        return jinja_raise(run, "strip arg must be None or str");
    if (!jinja_strip(run, self.as.string, set, left, right, &start, &end) ||
        !jinja_substring(run, self.as.string, start, end, result))
        return false;
    result->mark = self.mark;
    return true;
}

static bool method_strip(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_trim(run, in->self, in->bound[0], true, true, result);
}

static bool method_lstrip(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_trim(run, in->self, in->bound[0], true, false, result);
}

static bool method_rstrip(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_trim(run, in->self, in->bound[0], false, true, result);
}

static bool remove_affix(jinja_run *run, const jinja_invocation *in, bool prefix, jinja_value *result) {
    const jinja_string *string = in->self.as.string;
    if (!jinja_need_string(run, prefix ? "removeprefix" : "removesuffix", in->bound[0])) return false;
    const jinja_string *affix = in->bound[0].as.string;
    size_t at = prefix ? 0 : string->length - affix->length;
    *result = in->self;
    if (affix->length > string->length || memcmp(string->data + at, affix->data, affix->length) != 0) return true;
    if (!jinja_substring(run, string, prefix ? affix->length : 0, prefix ? string->length : at, result))
        return false;
    result->mark = in->self.mark;
    return true;
}

static bool method_removeprefix(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return remove_affix(run, in, true, result);
}

static bool method_removesuffix(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return remove_affix(run, in, false, result);
}

static bool method_format(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    return jinja_format(run, in->self, in->arguments, result);
}

static bool method_format_map(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    if (in->bound[0].kind != JINJA_DICT)
        return jinja_raise(run, "'%s' object is not a mapping", jinja_type(in->bound[0]));
    const jinja_dict *dict = in->bound[0].as.dict;
    const jinja_arguments arguments = {.keywords = dict->pairs, .keyword_count = dict->count};
    return jinja_format(run, in->self, &arguments, result);
}

/* --------------------------------------------------------------------------------------------------- questions */

bool jinja_is_cased(const jinja_string *string, bool upper) {
    bool some = false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        at += jinja_decode(string->data, at, &character);
        bool is_upper = jinja_is_upper(character), is_lower = jinja_is_lower(character);
        if ((upper ? is_lower : is_upper) || jinja_is_title(character)) return false;
        some = some || is_upper || is_lower;
    }
    return some;
}

static bool is_title_case(const jinja_string *string) {
    bool some = false, behind_letter = false;
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        at += jinja_decode(string->data, at, &character);
        bool capital = jinja_is_upper(character) || jinja_is_title(character), small = jinja_is_lower(character);
        if ((capital && behind_letter) || (small && !behind_letter)) return false;
        behind_letter = capital || small;
        some = some || behind_letter;
    }
    return some;
}

static bool is_identifier(const jinja_string *string) {
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        size_t count = jinja_decode(string->data, at, &character);
        if (!(at ? jinja_goes_on_identifier(character) : jinja_starts_identifier(character))) return false;
        at += count;
    }
    return string->length > 0;
}

static bool is_alphanumeric(uint32_t character) {
    return jinja_is_alpha(character) || jinja_is_numeric(character);
}

/* Every character is one of a class; what an empty string is. */
static bool all_are(const jinja_string *string, bool (*is)(uint32_t), bool empty) {
    for (size_t at = 0; at < string->length;) {
        uint32_t character;
        at += jinja_decode(string->data, at, &character);
        if (!is(character)) return false;
    }
    return string->length > 0 || empty;
}

static bool method_isalnum(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, is_alphanumeric, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isalpha(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, jinja_is_alpha, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isdecimal(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, jinja_is_decimal, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isnumeric(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, jinja_is_numeric, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isspace(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, jinja_is_space, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isprintable(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(all_are(in->self.as.string, jinja_is_printable, true));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isascii(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(in->self.as.string->length == in->self.as.string->characters);
    return jinja_step(run, 1);
}

static bool method_isidentifier(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(is_identifier(in->self.as.string));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_islower(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(jinja_is_cased(in->self.as.string, false));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_isupper(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(jinja_is_cased(in->self.as.string, true));
    return jinja_step_bytes(run, in->self.as.string->length);
}

static bool method_istitle(jinja_run *run, const jinja_invocation *in, jinja_value *result) {
    *result = jinja_bool(is_title_case(in->self.as.string));
    return jinja_step_bytes(run, in->self.as.string->length);
}

const jinja_function jinja_text_methods[] = {
    {"capitalize", "", method_capitalize},
    {"casefold", "", method_casefold},
    {"center", "/width fillchar?", method_center},
    {"encode", NULL, NULL},
    {"expandtabs", "tabsize?", method_expandtabs},
    {"format", NULL, method_format},
    {"format_map", "/mapping", method_format_map},
    {"isalnum", "", method_isalnum},
    {"isalpha", "", method_isalpha},
    {"isascii", "", method_isascii},
    {"isdecimal", "", method_isdecimal},
    {"isdigit", "", method_isdecimal},
    {"isidentifier", "", method_isidentifier},
    {"islower", "", method_islower},
    {"isnumeric", "", method_isnumeric},
    {"isprintable", "", method_isprintable},
    {"isspace", "", method_isspace},
    {"istitle", "", method_istitle},
    {"isupper", "", method_isupper},
    {"ljust", "/width fillchar?", method_ljust},
    {"lower", "", method_lower},
    {"lstrip", "/chars?", method_lstrip},
    {"maketrans", NULL, NULL},
    {"removeprefix", "/prefix", method_removeprefix},
    {"removesuffix", "/suffix", method_removesuffix},
    {"rjust", "/width fillchar?", method_rjust},
    {"rstrip", "/chars?", method_rstrip},
    {"strip", "/chars?", method_strip},
    {"swapcase", "", method_swapcase},
    {"title", "", method_title},
    {"translate", NULL, NULL},
    {"upper", "", method_upper},
    {"zfill", "/width", method_zfill},
    {NULL, NULL, NULL},
};
