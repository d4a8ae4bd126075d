#include "text/rewrite.h"

#include "base/memory.h"
#include "text/utf8.h"

#include <string.h>

void qvl_rewrite_start(qvl_rewrite *rewrite, const uint8_t *in, size_t count) {
    *rewrite = (qvl_rewrite){.in = in, .in_count = count};
}

/* Room for more bytes, at least doubled, so that growing costs no more than writing. */
static qvl_status make_room(qvl_rewrite *rewrite, size_t more, qvl_error *error) {
    size_t wanted, grown;
    if (!qvl_add_size(rewrite->count, more, &wanted)) return qvl_fail_memory(error, "text", more, 1);
    if (rewrite->out && wanted <= rewrite->capacity) return QVL_OK;
    if (!qvl_mul_size(rewrite->out ? rewrite->capacity : rewrite->in_count / 2 + 32, 2, &grown) || grown < wanted)
        grown = wanted;
    uint8_t *out = qvl_alloc(grown, 1);
    if (!out) return qvl_fail_memory(error, "text", grown, 1);
    if (rewrite->count) memcpy(out, rewrite->out, rewrite->count);
    qvl_free(rewrite->out);
    rewrite->out = out;
    rewrite->capacity = grown;
    return QVL_OK;
}

static qvl_status append(qvl_rewrite *rewrite, const void *bytes, size_t count, qvl_error *error) {
    qvl_status status = make_room(rewrite, count, error);
    if (status || !count) return status;
    memcpy(rewrite->out + rewrite->count, bytes, count);
    rewrite->count += count;
    return QVL_OK;
}

static qvl_status add_edit(qvl_rewrite *rewrite, qvl_edit edit, qvl_error *error) {
    if (rewrite->edit_count == rewrite->edit_capacity) {
        size_t grown = rewrite->edit_capacity ? 2 * rewrite->edit_capacity : 16;
        qvl_edit *edits = qvl_alloc(grown, sizeof *edits);
        if (!edits) return qvl_fail_memory(error, "changes of a text", grown, sizeof *edits);
        if (rewrite->edit_count) memcpy(edits, rewrite->edits, rewrite->edit_count * sizeof *edits);
        qvl_free(rewrite->edits);
        rewrite->edits = edits;
        rewrite->edit_capacity = grown;
    }
    rewrite->edits[rewrite->edit_count++] = edit;
    return QVL_OK;
}

qvl_status qvl_rewrite_put(qvl_rewrite *rewrite, size_t from, size_t from_end, const void *bytes, size_t count,
                           qvl_error *error) {
    qvl_status status = append(rewrite, rewrite->in + rewrite->done, from - rewrite->done, error);
    if (status) return status;
    size_t to = rewrite->count;
    status = append(rewrite, bytes, count, error);
    if (status) return status;
    rewrite->done = from_end;
    return add_edit(rewrite, (qvl_edit){from, from_end, to, rewrite->count}, error);
}

qvl_status qvl_rewrite_repair(qvl_rewrite *rewrite, qvl_error *error) {
    const uint8_t *in = rewrite->in;
    for (size_t at = 0;;) {
        bool cut;
        at += qvl_utf8_valid(in + at, rewrite->in_count - at);
        if (at == rewrite->in_count) return QVL_OK;
        size_t bad = qvl_utf8_bad(in + at, rewrite->in_count - at, &cut);
        qvl_status status = qvl_rewrite_put(rewrite, at, at + bad, "\xef\xbf\xbd", 3, error);
        if (status) return status;
        at += bad;
    }
}

qvl_status qvl_rewrite_end(qvl_rewrite *rewrite, const uint8_t **text, size_t *count, qvl_error *error) {
    if (!rewrite->edit_count) {
        *text = rewrite->in;
        *count = rewrite->in_count;
        return QVL_OK;
    }
    qvl_status status = append(rewrite, rewrite->in + rewrite->done, rewrite->in_count - rewrite->done, error);
    rewrite->done = rewrite->in_count;
    *text = rewrite->out;
    *count = rewrite->count;
    return status;
}

void qvl_rewrite_free(qvl_rewrite *rewrite) {
    qvl_free(rewrite->out);
    qvl_free(rewrite->edits);
    *rewrite = (qvl_rewrite){0};
}

void qvl_rewrite_forward(const qvl_rewrite *rewrite, size_t *positions, size_t n) {
    const qvl_edit *edits = rewrite->edits;
    size_t passed = 0;
    for (size_t i = 0; i < n; i++) {
        while (passed < rewrite->edit_count && edits[passed].from < positions[i]) passed++;
        if (passed == 0) continue;
        const qvl_edit *e = &edits[passed - 1];
        positions[i] = positions[i] <= e->from_end ? e->to_end : e->to_end + (positions[i] - e->from_end);
    }
}

void qvl_rewrite_back(const qvl_rewrite *rewrite, size_t *positions, size_t n) {
    const qvl_edit *edits = rewrite->edits;
    size_t passed = 0;
    for (size_t i = 0; i < n; i++) {
        while (passed < rewrite->edit_count && edits[passed].to < positions[i]) passed++;
        if (passed == 0) continue;
        const qvl_edit *e = &edits[passed - 1];
        positions[i] = positions[i] <= e->to_end ? e->from_end : e->from_end + (positions[i] - e->to_end);
    }
}
