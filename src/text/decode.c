/* Ids to text: the bytes of all tokens, then UTF-8 with U+FFFD for what is none. */
#include "base/memory.h"
#include "text/rewrite.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

/* The bytes of one id; none for a special token that is skipped. position names the id in a message, if >= 0. */
static qvl_status token_bytes(const qvl_tokenizer *tokenizer, int32_t id, bool skip_special, int64_t position,
                              const char **bytes, size_t *count, qvl_error *error) {
    const qvl_vocabulary *v = &tokenizer->vocabulary;
    *bytes = "";
    *count = 0;
    if (!qvl_vocabulary_has(v, id)) {
        char where[48] = "";
        if (position >= 0) snprintf(where, sizeof where, " at position %lld", (long long)position);
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the id %d%s is not in the vocabulary, whose ids are below %d",
                        id, where, v->id_limit);
    }
    if (skip_special && v->flags[id] & QVL_TOKEN_SPECIAL) return QVL_OK;
    *bytes = qvl_vocabulary_bytes(v, id, count);
    return QVL_OK;
}

static qvl_status join(const qvl_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                       uint8_t **joined, size_t *joined_count, qvl_error *error) {
    size_t total = 1, size;
    const char *bytes;
    *joined_count = 0;
    for (size_t i = 0; i < count; i++) {
        qvl_status status = token_bytes(tokenizer, ids[i], skip_special, (int64_t)i, &bytes, &size, error);
        if (status) return status;
        if (!qvl_add_size(total, size, &total)) return qvl_fail_memory(error, "text", total, 1);
    }
    *joined = qvl_alloc(total, 1);
    if (!*joined) return qvl_fail_memory(error, "text", total, 1);
    for (size_t i = 0; i < count; i++) {
        token_bytes(tokenizer, ids[i], skip_special, (int64_t)i, &bytes, &size, NULL);
        memcpy(*joined + *joined_count, bytes, size);
        *joined_count += size;
    }
    return QVL_OK;
}

qvl_status qvl_detokenize(const qvl_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                          qvl_text *text, qvl_error *error) {
    uint8_t *joined = NULL;
    const uint8_t *whole;
    size_t size;
    *text = (qvl_text){0};
    qvl_status status = join(tokenizer, ids, count, skip_special, &joined, &size, error);
    if (status) return status;
    qvl_rewrite rewrite;
    qvl_rewrite_start(&rewrite, joined, size);
    status = qvl_rewrite_repair(&rewrite, error);
    if (!status) status = qvl_rewrite_end(&rewrite, &whole, &size, error);
    if (!status) {
        text->bytes = qvl_alloc(size + 1, 1);
        if (!text->bytes) status = qvl_fail_memory(error, "text", size, 1);
    }
    if (!status) {
        memcpy(text->bytes, whole, size);
        text->bytes[size] = 0;
        text->byte_count = size;
    }
    qvl_rewrite_free(&rewrite);
    qvl_free(joined);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- streams */

#define REPLACEMENT "\xef\xbf\xbd"

struct qvl_detokenizer {
    const qvl_tokenizer *tokenizer;
    bool skip_special;
    uint8_t held[4]; /* the beginning of a character whose rest has not come */
    size_t held_count;
    uint8_t *in; /* what was held, and the token: [capacity] */
    char *out;   /* [3 * capacity + 1] */
    size_t capacity;
};

static qvl_status make_room(qvl_detokenizer *stream, size_t count, qvl_error *error) {
    size_t room;
    if (count <= stream->capacity) return QVL_OK;
    qvl_free(stream->in);
    qvl_free(stream->out);
    stream->capacity = 0;
    stream->in = qvl_alloc(count, 1);
    stream->out = qvl_mul_size(count, 3, &room) ? qvl_alloc(room + 1, 1) : NULL;
    if (!stream->in || !stream->out) return qvl_fail_memory(error, "text of a token", count, 4);
    stream->capacity = count;
    return QVL_OK;
}

qvl_status qvl_detokenizer_open(const qvl_tokenizer *tokenizer, bool skip_special, qvl_detokenizer **stream,
                                qvl_error *error) {
    *stream = NULL;
    qvl_detokenizer *s = qvl_calloc(1, sizeof *s);
    if (!s) return qvl_fail_memory(error, "detokenizer", 1, sizeof *s);
    s->tokenizer = tokenizer;
    s->skip_special = skip_special;
    qvl_status status = make_room(s, 64, error);
    if (status) qvl_detokenizer_close(&s);
    *stream = s;
    return status;
}

void qvl_detokenizer_close(qvl_detokenizer **stream) {
    if (!stream || !*stream) return;
    qvl_free((*stream)->in);
    qvl_free((*stream)->out);
    qvl_free(*stream);
    *stream = NULL;
}

qvl_status qvl_detokenizer_push(qvl_detokenizer *stream, int32_t id, const char **text, size_t *byte_count,
                                qvl_error *error) {
    const char *bytes;
    size_t size, at = 0, done = 0;
    bool cut = false;
    *text = "";
    *byte_count = 0;
    qvl_status status = token_bytes(stream->tokenizer, id, stream->skip_special, -1, &bytes, &size, error);
    if (!status) status = make_room(stream, stream->held_count + size, error);
    if (status) return status;
    memcpy(stream->in, stream->held, stream->held_count);
    memcpy(stream->in + stream->held_count, bytes, size);
    size += stream->held_count;
    while (at < size) {
        size_t valid = qvl_utf8_valid(stream->in + at, size - at);
        memcpy(stream->out + done, stream->in + at, valid);
        at += valid;
        done += valid;
        if (at == size) break;
        size_t bad = qvl_utf8_bad(stream->in + at, size - at, &cut);
        if (cut) break;
        memcpy(stream->out + done, REPLACEMENT, 3);
        at += bad;
        done += 3;
    }
    stream->held_count = size - at;
    memcpy(stream->held, stream->in + at, stream->held_count);
    stream->out[done] = 0;
    *text = stream->out;
    *byte_count = done;
    return QVL_OK;
}

void qvl_detokenizer_finish(qvl_detokenizer *stream, const char **text, size_t *byte_count) {
    *text = stream->held_count ? REPLACEMENT : "";
    *byte_count = stream->held_count ? 3 : 0;
    stream->held_count = 0;
}
