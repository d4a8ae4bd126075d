/* Most characters stand as they are and keep what is before them from composing with what is behind. Only runs of
 * those that move or change, with the one before them, are normalised; of these, only the ones that a look at the
 * combining classes does not show to be in order already.
 *
 * utf8proc decomposes and composes characters; sorting is done here, because its own is quadratic in the length of a
 * run. Characters that the reference's tables do not know are never shown to it: they count as INERT. */
#include "text/normalize.h"

#include "base/memory.h"

#include <string.h>
#include <utf8proc.h>

/* The longest canonical decomposition of a character. */
#define MAX_DECOMPOSITION 4

static qvl_status make_room(qvl_normalizer *normalizer, size_t codes, qvl_error *error) {
    if (codes <= normalizer->capacity) return QVL_OK;
    size_t capacity = codes < 4096 ? 4096 : codes;
    qvl_normalizer_free(normalizer);
    normalizer->codes = qvl_alloc(capacity, sizeof *normalizer->codes);
    normalizer->sorted = qvl_alloc(capacity, sizeof *normalizer->sorted);
    normalizer->bytes = qvl_alloc(capacity, 4);
    if (!normalizer->codes || !normalizer->sorted || !normalizer->bytes) {
        qvl_normalizer_free(normalizer);
        return qvl_fail_memory(error, "characters to normalise", capacity, 12);
    }
    normalizer->capacity = capacity;
    return QVL_OK;
}

void qvl_normalizer_free(qvl_normalizer *normalizer) {
    qvl_free(normalizer->codes);
    qvl_free(normalizer->sorted);
    qvl_free(normalizer->bytes);
    *normalizer = (qvl_normalizer){0};
}

static uint8_t combining_class(int32_t code) {
    return (uint8_t)utf8proc_get_property(code)->combining_class;
}

/* Sorts codes[0..count) by combining class; those of one class keep their order. */
static void sort_marks(int32_t *codes, int32_t *sorted, size_t count) {
    size_t places[256] = {0}, place = 0;
    for (size_t i = 0; i < count; i++) places[combining_class(codes[i])]++;
    for (size_t k = 0; k < 256; k++) {
        size_t n = places[k];
        places[k] = place;
        place += n;
    }
    for (size_t i = 0; i < count; i++) sorted[places[combining_class(codes[i])]++] = codes[i];
    memcpy(codes, sorted, count * sizeof *codes);
}

static void sort_runs(int32_t *codes, int32_t *sorted, size_t count) {
    for (size_t i = 0; i < count;) {
        size_t from = i++;
        if (combining_class(codes[from]) == 0) continue;
        while (i < count && combining_class(codes[i]) != 0) i++;
        if (i - from > 1) sort_marks(codes + from, sorted, i - from);
    }
}

/* Normalises text[start..end), and puts it if it changes. */
static qvl_status normalize_run(qvl_normalizer *normalizer, qvl_rewrite *rewrite, size_t start, size_t end,
                                qvl_error *error) {
    const uint8_t *text = rewrite->in;
    size_t characters = 0, count = 0, bytes = 0, room, size;
    for (size_t at = start; at < end; at += qvl_utf8_size(text[at])) characters++;
    if (!qvl_mul_size(characters, MAX_DECOMPOSITION, &room))
        return qvl_fail_memory(error, "characters to normalise", characters, MAX_DECOMPOSITION);
    qvl_status status = make_room(normalizer, room, error);
    if (status) return status;
    for (size_t at = start; at < end; at += size) {
        int boundary = 0;
        int32_t code = (int32_t)qvl_utf8_get(text + at, &size);
        utf8proc_ssize_t n = utf8proc_decompose_char(code, normalizer->codes + count,
                                                     (utf8proc_ssize_t)(normalizer->capacity - count),
                                                     UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
        if (n < 0 || (size_t)n > normalizer->capacity - count)
            return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "utf8proc cannot decompose U+%04X: %s", (unsigned)code,
                            n < 0 ? utf8proc_errmsg(n) : "it becomes too long");
        count += (size_t)n;
    }
    sort_runs(normalizer->codes, normalizer->sorted, count);
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(normalizer->codes, (utf8proc_ssize_t)count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (composed < 0)
        return qvl_fail(error, QVL_ERROR_UNSUPPORTED, "utf8proc cannot compose: %s", utf8proc_errmsg(composed));
    for (size_t i = 0; i < (size_t)composed; i++)
        bytes += qvl_utf8_put((uint32_t)normalizer->codes[i], normalizer->bytes + bytes);
    if (bytes == end - start && memcmp(normalizer->bytes, text + start, bytes) == 0) return QVL_OK;
    return qvl_rewrite_put(rewrite, start, end, normalizer->bytes, bytes, error);
}

/* The end of the run that starts at `at` with a character that moves or changes. *plain: it is in order as it is. */
static size_t find_run(const qvl_unicode *unicode, const uint8_t *text, size_t at, size_t end, bool *plain) {
    uint8_t last = 0;
    *plain = true;
    while (at < end) {
        size_t size;
        uint32_t code = qvl_utf8_get(text + at, &size);
        uint8_t part = qvl_unicode_value(unicode, code) & QVL_NFC;
        if (part != QVL_NFC_MOVES && part != QVL_NFC_CHANGES) break;
        uint8_t class = combining_class((int32_t)code);
        if (part == QVL_NFC_CHANGES || class < last) *plain = false;
        last = class;
        at += size;
    }
    return at;
}

qvl_status qvl_normalize(qvl_normalizer *normalizer, const qvl_unicode *unicode, qvl_rewrite *rewrite,
                         size_t start, size_t end, qvl_error *error) {
    const uint8_t *text = rewrite->in;
    size_t before =
        start; /* where a run that starts here would begin: at the character before it, if that counts */
    for (size_t at = start; at < end;) {
        if (text[at] < 0x80) {
            before = at++;
            continue;
        }
        size_t size;
        uint8_t part = qvl_unicode_value(unicode, qvl_utf8_get(text + at, &size)) & QVL_NFC;
        if (part == QVL_NFC_STARTS || part == QVL_NFC_INERT) {
            before = part == QVL_NFC_STARTS ? at : at + size;
            at += size;
            continue;
        }
        bool plain;
        size_t run_end = find_run(unicode, text, at, end, &plain);
        if (!plain) {
            qvl_status status = normalize_run(normalizer, rewrite, before, run_end, error);
            if (status) return status;
        }
        before = at = run_end;
    }
    return QVL_OK;
}
