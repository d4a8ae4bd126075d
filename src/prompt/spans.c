#include "prompt/spans.h"

#include "base/memory.h"
#include "text/marks.h"

#include <string.h>

typedef struct span_list {
    qvl_prompt *prompt;
    size_t capacity;
    qvl_error *error;
} span_list;

static qvl_status add(span_list *list, qvl_prompt_span span) {
    qvl_prompt *p = list->prompt;
    if (span.start == span.end && span.tokens == 0) return QVL_OK;
    if (p->span_count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        qvl_prompt_span *grown = qvl_alloc(capacity, sizeof *grown);
        if (!grown) return qvl_fail_memory(list->error, "spans", capacity, sizeof *grown);
        if (p->span_count) memcpy(grown, p->spans, p->span_count * sizeof *grown);
        qvl_free(p->spans);
        p->spans = grown;
        list->capacity = capacity;
    }
    p->spans[p->span_count++] = span;
    return QVL_OK;
}

/* The text without marks, and where the tokens begin in it. */
static qvl_status unmark(const qvl_renderer *renderer, const char *bytes, size_t count, size_t *starts, size_t n,
                         qvl_prompt *prompt, qvl_error *error) {
    qvl_rewrite rewrite;
    const uint8_t *text = NULL;
    size_t length = 0;
    qvl_rewrite_start(&rewrite, (const uint8_t *)bytes, count);
    qvl_status status = renderer->marked ? qvl_marks_take(&rewrite, 0, count, error) : QVL_OK;
    if (!status) status = qvl_rewrite_end(&rewrite, &text, &length, error);
    if (!status) {
        qvl_rewrite_forward(&rewrite, starts, n);
        prompt->text = qvl_alloc(length + 1, 1);
        if (!prompt->text) status = qvl_fail_memory(error, "text", length, 1);
    }
    if (!status) {
        if (length) memcpy(prompt->text, text, length);
        prompt->text[length] = 0;
        prompt->text_length = length;
    }
    qvl_rewrite_free(&rewrite);
    return status;
}

/* What the vocabulary could have found in ordinary text. */
typedef struct spelling {
    const qvl_tokenizer *tokenizer;
    int32_t count;
    bool first[256]; /* bytes that some added token begins with */
} spelling;

static spelling read_spelling(const qvl_renderer *renderer) {
    spelling s = {.tokenizer = renderer->prompter->tokenizer};
    qvl_tokenizer_info info;
    qvl_tokenizer_get_info(s.tokenizer, &info);
    s.count = renderer->marked ? info.added_count : 0;
    for (int32_t i = 0; i < s.count; i++) s.first[(uint8_t)qvl_token_added(s.tokenizer, i).bytes[0]] = true;
    return s;
}

/* The longest added token that the text spells at a place: its bytes, or 0. */
static size_t spelt(const spelling *s, const char *text, size_t count) {
    size_t longest = 0;
    if (!s->first[(uint8_t)text[0]]) return 0;
    for (int32_t i = 0; i < s->count; i++) {
        qvl_token token = qvl_token_added(s->tokenizer, i);
        bool found = token.byte_count <= count && memcmp(text, token.bytes, token.byte_count) == 0;
        if (found && token.byte_count > longest) longest = token.byte_count;
    }
    return longest;
}

/* Tokens that begin before a place, from *at on. */
static int64_t count_tokens(const size_t *starts, size_t *at, size_t end, size_t place) {
    size_t before = *at;
    while (*at < end && starts[*at] < place) ++*at;
    return (int64_t)(*at - before);
}

/* Ordinary tokens first .. end - 1: plain stretches, and those that spell an added token. */
static qvl_status add_text(span_list *list, const spelling *s, const size_t *starts, size_t first, size_t end) {
    const char *text = list->prompt->text;
    size_t from = starts[first], stop = starts[end], at = first;
    for (size_t i = from; i < stop; i++) {
        size_t size = s->count ? spelt(s, text + i, stop - i) : 0;
        if (!size) continue;
        int64_t plain = count_tokens(starts, &at, end, i);
        qvl_status status = add(list, (qvl_prompt_span){QVL_SPAN_TEXT, from, i, plain});
        int64_t own = count_tokens(starts, &at, end, i + size);
        if (!status) status = add(list, (qvl_prompt_span){QVL_SPAN_DEFUSED, i, i + size, own});
        if (status) return status;
        from = i + size;
        i = from - 1;
    }
    return add(list, (qvl_prompt_span){QVL_SPAN_TEXT, from, stop, (int64_t)(end - at)});
}

static qvl_status make_spans(const qvl_renderer *renderer, const qvl_tokens *tokens, size_t kept,
                             const size_t *starts, const int64_t *counts, span_list *list) {
    const qvl_media_tokens *t = &renderer->prompter->tokens;
    spelling s = read_spelling(renderer);
    size_t pads = 0, text = 0; /* text: where the present run of ordinary tokens began */
    qvl_status status = QVL_OK;
    for (size_t i = 0; i < kept && !status; i++) {
        qvl_token token = {0};
        qvl_token_get(s.tokenizer, tokens->ids[i], &token);
        if (!token.added) continue;
        qvl_prompt_span span = {token.special ? QVL_SPAN_SPECIAL : QVL_SPAN_ADDED, starts[i], starts[i + 1], 1};
        if (token.id == t->image || token.id == t->video) {
            span.kind = token.id == t->image ? QVL_SPAN_IMAGE : QVL_SPAN_VIDEO;
            span.tokens = counts[pads++];
        }
        if (text < i) status = add_text(list, &s, starts, text, i);
        if (!status) status = add(list, span);
        text = i + 1;
    }
    if (!status && text < kept) status = add_text(list, &s, starts, text, kept);
    return status;
}

qvl_status qvl_spans_make(const qvl_renderer *renderer, const qvl_text *text, const qvl_tokens *tokens,
                          size_t kept, const int64_t *counts, qvl_prompt *prompt, qvl_error *error) {
    size_t *starts = qvl_alloc(kept + 1, sizeof *starts);
    if (!starts) return qvl_fail_memory(error, "places of tokens", kept + 1, sizeof *starts);
    memcpy(starts, tokens->starts, (kept + 1) * sizeof *starts);
    span_list list = {.prompt = prompt, .error = error};
    qvl_status status = unmark(renderer, text->bytes, starts[kept], starts, kept + 1, prompt, error);
    if (!status) status = make_spans(renderer, tokens, kept, starts, counts, &list);
    qvl_free(starts);
    return status;
}
