#include "lm/answer_text.h"

#include "base/memory.h"
#include "text/utf8.h"

#include <string.h>

static int32_t find_id(const qvl_tokenizer *tokenizer, const char *content) {
    qvl_token token;
    return qvl_token_find(tokenizer, content, &token) ? token.id : -1;
}

/* Templates open the thinking of an answer themselves. */
static bool ends_thinking(const qvl_answer_text *text, const qvl_prompt *prompt) {
    for (int64_t i = prompt->length - 1; i >= 0; i--) {
        if (prompt->input_ids[i] == text->think_id) return true;
        if (prompt->input_ids[i] == text->answer_id) return false;
    }
    return false;
}

qvl_status qvl_answer_text_open(const qvl_tokenizer *tokenizer, const qvl_prompt *prompt, const char *const *stops,
                                size_t stop_count, qvl_answer_text *text, qvl_error *error) {
    *text = (qvl_answer_text){.stops = stops, .stop_count = stop_count, .capacity = 256};
    text->think_id = find_id(tokenizer, "<think>");
    text->answer_id = find_id(tokenizer, "</think>");
    text->thinking = text->marked = text->answer_id >= 0 && ends_thinking(text, prompt);
    for (size_t i = 0; i < stop_count; i++) {
        if (!stops[i] || !*stops[i])
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "stop string %zu of %zu is empty", i + 1, stop_count);
        if (qvl_utf8_valid((const uint8_t *)stops[i], strlen(stops[i])) != strlen(stops[i]))
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "stop string %zu of %zu is not UTF-8", i + 1, stop_count);
        if (strlen(stops[i]) > text->longest) text->longest = strlen(stops[i]);
    }
    qvl_status status = qvl_detokenizer_open(tokenizer, true, &text->stream, error);
    if (status) return status;
    text->bytes = qvl_calloc(text->capacity, 1);
    if (text->bytes) return QVL_OK;
    qvl_answer_text_close(text);
    return qvl_fail_memory(error, "text of an answer", 256, 1);
}

void qvl_answer_text_close(qvl_answer_text *text) {
    qvl_detokenizer_close(&text->stream);
    qvl_free(text->bytes);
    *text = (qvl_answer_text){0};
}

/* The text ends before the first stop string in it. Only what is new, and the bytes a string could have begun in
 * before, are looked at. */
static void find_stop(qvl_answer_text *text, size_t before) {
    size_t from = before > text->longest ? before - text->longest : 0, first = text->byte_count;
    if (from < text->thought) from = text->thought;
    for (size_t i = 0; i < text->stop_count; i++) {
        size_t length = strlen(text->stops[i]);
        for (size_t at = from; at + length <= text->byte_count && at < first; at++)
            if (memcmp(text->bytes + at, text->stops[i], length) == 0) {
                first = at;
                text->stopped = true;
            }
    }
    text->byte_count = first;
    text->bytes[first] = 0;
}

static qvl_status append(qvl_answer_text *text, const char *bytes, size_t count, qvl_error *error) {
    bool after_mark = text->marked && text->byte_count == text->thought;
    for (; after_mark && count && *bytes == '\n'; bytes++) count--;
    size_t before = text->byte_count, need = before + count + 1;
    if (need > text->capacity) {
        char *grown = qvl_grow(text->bytes, before, 2 * need, 1);
        if (!grown) return qvl_fail_memory(error, "text of an answer", 2 * need, 1);
        text->bytes = grown;
        text->capacity = 2 * need;
    }
    memcpy(text->bytes + before, bytes, count);
    text->byte_count += count;
    text->bytes[text->byte_count] = 0;
    find_stop(text, before);
    return QVL_OK;
}

qvl_status qvl_answer_text_push(qvl_answer_text *text, int32_t id, qvl_error *error) {
    const char *bytes;
    size_t count;
    if (text->thinking && id == text->answer_id) {
        qvl_status status = qvl_answer_text_finish(text, error);
        text->thought = text->byte_count;
        text->thinking = false;
        return status;
    }
    if (id == text->think_id && !text->byte_count && !text->thinking && text->answer_id >= 0) {
        text->thinking = text->marked = true;
        return QVL_OK;
    }
    qvl_status status = qvl_detokenizer_push(text->stream, id, &bytes, &count, error);
    return status || count == 0 ? status : append(text, bytes, count, error);
}

qvl_status qvl_answer_text_finish(qvl_answer_text *text, qvl_error *error) {
    const char *bytes;
    size_t count;
    qvl_detokenizer_finish(text->stream, &bytes, &count);
    return text->stopped || count == 0 ? QVL_OK : append(text, bytes, count, error);
}

/* Where the longest end of the text begins that a stop string may go on from; the text's end if there is none. */
static size_t certain_end(const qvl_answer_text *text) {
    size_t count = text->byte_count, from = count > text->longest ? count - text->longest : 0;
    if (from < text->released) from = text->released;
    if (from < text->thought) from = text->thought;
    for (size_t at = from; at < count; at++)
        for (size_t i = 0; i < text->stop_count; i++)
            if (strncmp(text->stops[i], text->bytes + at, count - at) == 0) return at;
    return count;
}

const char *qvl_answer_text_release(qvl_answer_text *text, bool finished, size_t *count, bool *thinking) {
    *thinking = text->thinking || text->released < text->thought;
    size_t end = finished || text->stopped ? text->byte_count : certain_end(text);
    const char *start = text->bytes + text->released;
    *count = end - text->released;
    text->released = end;
    return start;
}
