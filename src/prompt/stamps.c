#define _GNU_SOURCE
#include "prompt/stamps.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#define GROUP_BYTES 128 /* label and wrapped pad of one group, at most */

/* The text while it is put together. */
typedef struct builder {
    char *bytes;
    size_t used;
} builder;

static void put(builder *b, const char *bytes, size_t count) {
    memcpy(b->bytes + b->used, bytes, count);
    b->used += count;
}

static void put_string(builder *b, const char *text) {
    put(b, text, strlen(text));
}

/* Python's format(second, ".1f"): whatever the locale's decimal point is. */
static void put_second(builder *b, double second) {
    char text[64];
    int n = snprintf(text, sizeof text, "%.1f", second);
    put(b, text, strspn(text, "-0123456789"));
    put_string(b, ".");
    put(b, text + n - 1, 1);
}

static void put_groups(builder *b, const qvl_measured *video) {
    for (int64_t g = 0; g < video->item.grid.t; g++) {
        put_string(b, "<");
        put_second(b, video->timestamps[g]);
        put_string(b, " seconds>" QVL_VISION_START QVL_VIDEO_PAD QVL_VISION_END);
    }
}

/* Where the token's own bytes are; marks may be among those counted to it. */
static void find_token(const qvl_text *text, const qvl_tokens *tokens, size_t token, const char *content,
                       qvl_stamped *range) {
    size_t start = tokens->starts[token], end = tokens->starts[token + 1];
    const char *found = memmem(text->bytes + start, end - start, content, strlen(content));
    range->start = found ? (size_t)(found - text->bytes) : start;
    range->end = found ? range->start + strlen(content) : end;
}

/* What a video's groups replace: its pad, or with it the wrappers that stand right beside it. */
static qvl_stamped replaced(const qvl_renderer *renderer, const qvl_text *text, const qvl_tokens *tokens,
                            size_t pad) {
    const qvl_media_tokens *t = &renderer->prompter->tokens;
    qvl_stamped range, other;
    find_token(text, tokens, pad, QVL_VIDEO_PAD, &range);
    bool wrapped =
        pad > 0 && pad + 1 < tokens->count && tokens->ids[pad - 1] == t->start && tokens->ids[pad + 1] == t->end;
    if (renderer->options->video_layout != QVL_VIDEO_BARE || !wrapped) return range;
    find_token(text, tokens, pad - 1, QVL_VISION_START, &other);
    range.start = other.start;
    find_token(text, tokens, pad + 1, QVL_VISION_END, &other);
    range.end = other.end;
    return range;
}

qvl_status qvl_stamp_videos(const qvl_renderer *renderer, const qvl_text *text, const qvl_tokens *tokens,
                            const qvl_measured *measured, const qvl_slot *slots, size_t slot_count,
                            qvl_text *stamped, qvl_stamped *ranges, qvl_error *error) {
    size_t size = text->byte_count + 1, groups = 0, bytes, at = 0;
    *stamped = (qvl_text){0};
    for (size_t i = 0; i < slot_count; i++)
        if (measured[slots[i].source].timestamps) groups += (size_t)measured[slots[i].source].item.grid.t;
    if (!qvl_mul_size(groups, GROUP_BYTES, &bytes) || !qvl_add_size(size, bytes, &size))
        return qvl_fail(error, QVL_ERROR_LIMIT, "%zu temporal groups of videos are too many", groups);
    builder b = {.bytes = qvl_alloc(size, 1)};
    if (!b.bytes) return qvl_fail_memory(error, "text", size, 1);
    for (size_t i = 0; i < slot_count; i++) {
        const qvl_measured *video = &measured[slots[i].source];
        if (!video->timestamps) continue;
        qvl_stamped old = replaced(renderer, text, tokens, slots[i].token);
        put(&b, text->bytes + at, old.start - at);
        ranges[i].start = b.used;
        put_groups(&b, video);
        ranges[i].end = b.used;
        at = old.end;
    }
    put(&b, text->bytes + at, text->byte_count - at);
    b.bytes[b.used] = 0;
    *stamped = (qvl_text){.bytes = b.bytes, .byte_count = b.used};
    return QVL_OK;
}
