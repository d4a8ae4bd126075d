/* A token can come about in joined text in four ways, and each is stopped:
 *   it lies inside of the text        marks between all its characters, which also keeps others from coming to light
 *   it begins in the text             the same; of one character only, a mark behind it
 *   it ends in the text               a mark before the last character of what could be the token's end
 *   the text lies inside of it        a mark before the text
 * The ends of the text are also those that trimming would leave. A token of one character is hidden as a whole. */
#define _GNU_SOURCE
#include "text/marks.h"

#include <string.h>

#define MARK "\xef\xb7\x90"   /* U+FDD0 */
#define HIDING "\xef\xb7\x91" /* U+FDD1 */
#define DIGITS 6
#define HIDDEN_BYTES (3 * (1 + DIGITS))

/* U+FDE0 + digit is EF B7 A0 + digit. */
static void hide(uint32_t code, uint8_t bytes[HIDDEN_BYTES]) {
    memcpy(bytes, HIDING, 3);
    for (int i = 0; i < DIGITS; i++) {
        uint8_t *digit = bytes + 3 * (i + 1);
        memcpy(digit, HIDING, 3);
        digit[2] = (uint8_t)(0xa0 | (code >> 4 * (DIGITS - 1 - i) & 0xf));
    }
}

/* The character hidden at the front of bytes[0..count), which begin with U+FDD1. */
static bool unhide(const uint8_t *bytes, size_t count, uint32_t *code) {
    if (count < HIDDEN_BYTES) return false;
    *code = 0;
    for (int i = 1; i <= DIGITS; i++) {
        const uint8_t *digit = bytes + 3 * i;
        if (memcmp(digit, HIDING, 2) != 0 || digit[2] < 0xa0 || digit[2] > 0xaf) return false;
        *code = *code << 4 | (digit[2] & 0xfu);
    }
    return *code < QVL_UNICODE_LIMIT && (*code < 0xd800 || *code > 0xdfff);
}

/* ---------------------------------------------------------------------------------------------- putting marks */

typedef struct marker {
    const qvl_added_tokens *tokens;
    const qvl_unicode *unicode;
    qvl_added added;
    qvl_rewrite *rewrite;
    const uint8_t *text;
    size_t count;
    size_t trimmed, trimmed_end; /* the text without white space at its ends */
    /* Where marks go that stop tokens from outside, of the whole text and of the trimmed one; SIZE_MAX: nowhere. */
    size_t tail[2], inside[2];
    size_t broken_end; /* characters before it, other than the one looked at, are part of a token */
} marker;

static bool is_target(const marker *m, const qvl_added_token *token) {
    return m->added == QVL_ADDED_NONE || (m->added == QVL_ADDED_ORDINARY && token->special);
}

/* What any strip() takes: White_Space and the four separators that Python counts too. */
static bool is_space(const marker *m, size_t at) {
    size_t size;
    uint32_t code = qvl_utf8_get(m->text + at, &size);
    return (code >= 0x1c && code <= 0x1f) || (qvl_unicode_value(m->unicode, code) & QVL_KIND) == QVL_KIND_SPACE;
}

static void trim(marker *m) {
    m->trimmed = 0;
    m->trimmed_end = m->count;
    while (m->trimmed < m->count && is_space(m, m->trimmed)) m->trimmed += qvl_utf8_size(m->text[m->trimmed]);
    while (m->trimmed_end > m->trimmed && is_space(m, qvl_utf8_back(m->text, m->trimmed_end)))
        m->trimmed_end = qvl_utf8_back(m->text, m->trimmed_end);
}

/* A token that began before the text may end in it: finds where its last character would be. A mark there stops all
 * longer ends too. */
static void find_tail(const marker *m, const qvl_added_token *token, size_t start, size_t *tail) {
    const char *content = token->content, *end = content + strlen(content), *text = (const char *)m->text + start;
    if (start == m->count) return;
    const char *from = content + qvl_utf8_size((uint8_t)*content);
    for (; from < end && (from = memchr(from, *text, (size_t)(end - from))); from++) {
        size_t rest = (size_t)(end - from);
        if (rest > m->count - start || memcmp(text, from, rest) != 0) continue;
        size_t last =
            start + qvl_utf8_back((const uint8_t *)content, (size_t)(end - content)) - (size_t)(from - content);
        if (last < *tail) *tail = last;
    }
}

/* The text may lie inside of a token. */
static void find_inside(const marker *m, const qvl_added_token *token, size_t start, size_t end, size_t *inside) {
    if (start < end && memmem(token->content, strlen(token->content), m->text + start, end - start))
        *inside = start;
}

/* Tokens with `normalized` are looked for after NFC, in which the text's beginning may become one with what is before
 * it: a mark keeps them apart until tokens are cut out. */
static void find_composing(marker *m) {
    size_t size;
    if (!m->tokens->normalized.node_count || m->trimmed >= m->count) return;
    uint8_t part = qvl_unicode_value(m->unicode, qvl_utf8_get(m->text + m->trimmed, &size)) & QVL_NFC;
    if (part == QVL_NFC_MOVES || part == QVL_NFC_CHANGES) m->inside[1] = m->trimmed;
}

/* text[at..end) may be the beginning of a token: it is broken up. A single character has its mark behind it. */
static void break_up(marker *m, size_t at, size_t size, size_t end) {
    size_t broken_end = at + size == end ? end + 1 : end;
    if (broken_end > m->broken_end) m->broken_end = broken_end;
}

/* Looks for tokens that begin at a character. *hidden: it is one by itself. */
static void look_at(marker *m, const qvl_added_tree *tree, size_t at, size_t size, bool *hidden) {
    if (!tree->node_count || tree->first[m->text[at]] < 0) return;
    bool all = m->added == QVL_ADDED_NONE;
    qvl_added_look look = qvl_added_look_at(m->tokens, tree, m->text + at, m->count - at);
    size_t found = all ? look.any : look.special;
    /* A longer token that stays recognised is what is found here, if anything is. */
    if (found == look.any && found > 0) {
        *hidden |= found == size;
        if (at + found > m->broken_end) m->broken_end = at + found;
    }
    if (all ? look.any_cut : look.special_cut) break_up(m, at, size, m->count);
    if (at >= m->trimmed_end) return;
    look = qvl_added_look_at(m->tokens, tree, m->text + at, m->trimmed_end - at);
    if (all ? look.any_cut : look.special_cut) break_up(m, at, size, m->trimmed_end);
}

static qvl_status put_mark(const marker *m, size_t at, qvl_error *error) {
    return qvl_rewrite_put(m->rewrite, at, at, MARK, 3, error);
}

static qvl_status put_marks(marker *m, qvl_error *error) {
    uint8_t hidden_bytes[HIDDEN_BYTES];
    for (size_t at = 0, size; at < m->count; at += size) {
        qvl_status status = QVL_OK;
        bool hidden = qvl_is_mark(qvl_utf8_get(m->text + at, &size));
        bool marked =
            at < m->broken_end || at == m->tail[0] || at == m->tail[1] || at == m->inside[0] || at == m->inside[1];
        if (m->added != QVL_ADDED_ALL) {
            look_at(m, &m->tokens->plain, at, size, &hidden);
            look_at(m, &m->tokens->normalized, at, size, &hidden);
        }
        if (marked) status = put_mark(m, at, error);
        if (!status && hidden) {
            hide(qvl_utf8_get(m->text + at, &size), hidden_bytes);
            status = qvl_rewrite_put(m->rewrite, at, at + size, hidden_bytes, HIDDEN_BYTES, error);
        }
        if (status) return status;
    }
    return m->count && m->broken_end > m->count ? put_mark(m, m->count, error) : QVL_OK;
}

qvl_status qvl_marks_put(const qvl_added_tokens *tokens, const qvl_unicode *unicode, qvl_added added,
                         qvl_rewrite *rewrite, qvl_error *error) {
    marker m = {.tokens = tokens,
                .unicode = unicode,
                .added = added,
                .rewrite = rewrite,
                .text = rewrite->in,
                .count = rewrite->in_count,
                .tail = {SIZE_MAX, SIZE_MAX},
                .inside = {SIZE_MAX, SIZE_MAX}};
    trim(&m);
    for (int32_t i = 0; i < tokens->count; i++) {
        const qvl_added_token *token = &tokens->items[i];
        if (!is_target(&m, token)) continue;
        find_tail(&m, token, 0, &m.tail[0]);
        find_tail(&m, token, m.trimmed, &m.tail[1]);
        find_inside(&m, token, 0, m.count, &m.inside[0]);
        find_inside(&m, token, m.trimmed, m.trimmed_end, &m.inside[1]);
    }
    if (added != QVL_ADDED_ALL) find_composing(&m);
    return put_marks(&m, error);
}

/* ---------------------------------------------------------------------------------------------- taking them out */

qvl_status qvl_marks_take(qvl_rewrite *rewrite, size_t start, size_t end, qvl_error *error) {
    const uint8_t *text = rewrite->in;
    for (size_t at = start; at < end;) {
        const uint8_t *lead = memchr(text + at, 0xef, end - at);
        if (!lead) break;
        at = (size_t)(lead - text);
        uint8_t bytes[4];
        uint32_t code;
        qvl_status status = QVL_OK;
        size_t size = 3;
        if (memcmp(lead, MARK, 3) == 0) {
            status = qvl_rewrite_put(rewrite, at, at + 3, "", 0, error);
        } else if (memcmp(lead, HIDING, 3) == 0 && unhide(lead, end - at, &code)) {
            size = HIDDEN_BYTES;
            status = qvl_rewrite_put(rewrite, at, at + size, bytes, qvl_utf8_put(code, bytes), error);
        }
        if (status) return status;
        at += size;
    }
    return QVL_OK;
}
