#include "prompt/slots.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of each kind. */
typedef struct counts {
    size_t images, videos;
} counts;

static counts count_slots(const qvl_prompter *prompter, const qvl_tokens *tokens) {
    const qvl_media_tokens *t = &prompter->tokens;
    counts n = {0};
    for (size_t i = 0; i < tokens->count; i++) {
        n.images += tokens->ids[i] == t->image;
        n.videos += tokens->ids[i] == t->video;
    }
    return n;
}

/* Of one message, or of all with SIZE_MAX. with_media: only parts that a picture is there for. */
static counts count_parts(const qvl_conversation *c, size_t message, bool with_media) {
    counts n = {0};
    for (size_t i = 0; i < c->source_count; i++) {
        const qvl_source *source = &c->sources[i];
        if (message != SIZE_MAX && source->message != message) continue;
        if (with_media && !source->medium && !source->input.name) continue;
        n.images += source->kind == QVL_MEDIUM_IMAGE;
        n.videos += source->kind == QVL_MEDIUM_VIDEO;
    }
    return n;
}

/* ---- the error that lists everything */

typedef struct report {
    char text[sizeof((qvl_error *)0)->message];
    size_t used;
} report;

__attribute__((format(printf, 2, 3))) static void say(report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(r->text + r->used, sizeof r->text - r->used, format, args);
    va_end(args);
    r->used += n < 0 ? 0 : (size_t)n;
    if (r->used >= sizeof r->text) r->used = sizeof r->text - 1;
}

/* The slots that one message makes: those that go when its content does. false where that cannot be told. */
static bool slots_of(const qvl_renderer *renderer, counts all, size_t index, counts *own) {
    cJSON *variables = cJSON_Duplicate(renderer->conversation->variables, true);
    cJSON *messages = cJSON_GetObjectItemCaseSensitive(variables, "messages");
    cJSON *message = cJSON_GetArrayItem(messages, (int)index);
    qvl_text text = {0};
    qvl_tokens tokens = {0};
    bool good = message && qvl_member_put(message, "content", cJSON_CreateString("x")) &&
                !qvl_render_variant(renderer, variables, &text, NULL) &&
                !qvl_rendered_tokens(renderer, text.bytes, text.byte_count, &tokens, NULL);
    counts rest = count_slots(renderer->prompter, &tokens);
    good = good && rest.images <= all.images && rest.videos <= all.videos;
    if (good) *own = (counts){all.images - rest.images, all.videos - rest.videos};
    qvl_tokens_free(&tokens);
    qvl_text_free(&text);
    cJSON_Delete(variables);
    return good;
}

static void say_kind(report *r, const char *kind, size_t slots, size_t media) {
    if (slots || media)
        say(r, " %zu %s slot%s and %zu %s%s", slots, kind, slots == 1 ? "" : "s", media, kind,
            media == 1 ? "" : "s");
}

static void say_message(report *r, const qvl_renderer *renderer, counts all, const cJSON *message, size_t index) {
    counts slots, media = count_parts(renderer->conversation, index, true);
    if (!slots_of(renderer, all, index, &slots)) slots = count_parts(renderer->conversation, index, false);
    if (!slots.images && !slots.videos && !media.images && !media.videos) return;
    say(r, "; message %zu (%.40s):", index + 1, qvl_message_role(message));
    say_kind(r, "image", slots.images, media.images);
    if ((slots.images || media.images) && (slots.videos || media.videos)) say(r, ",");
    say_kind(r, "video", slots.videos, media.videos);
}

static qvl_status fail_mismatch(const qvl_renderer *renderer, counts slots, counts media, qvl_error *error) {
    enum { MOST_MESSAGES = 64 }; /* each is rendered once more */
    const qvl_conversation *c = renderer->conversation;
    report r = {0};
    const char *both = slots.images != media.images && slots.videos != media.videos ? " and" : "";
    say(&r, "%.200s: the text has", c->name);
    if (slots.images != media.images)
        say(&r, " %zu image slot%s for %zu image%s", slots.images, slots.images == 1 ? "" : "s", media.images,
            media.images == 1 ? "" : "s");
    say(&r, "%s", both);
    if (slots.videos != media.videos)
        say(&r, " %zu video slot%s for %zu video%s", slots.videos, slots.videos == 1 ? "" : "s", media.videos,
            media.videos == 1 ? "" : "s");
    if (slots.images == media.images && slots.videos == media.videos)
        say(&r, " slots that do not belong to its pictures");
    if (c->given_images || c->given_videos)
        say(&r, "; from the caller: %zu image%s, %zu video%s", c->given_images, c->given_images == 1 ? "" : "s",
            c->given_videos, c->given_videos == 1 ? "" : "s");
    size_t index = 0;
    const cJSON *message;
    cJSON_ArrayForEach(message, c->messages) {
        if (index == MOST_MESSAGES) break;
        say_message(&r, renderer, slots, message, index++);
    }
    if (message) say(&r, "; and so on");
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s", r.text);
}

/* ---- giving each slot its source */

/* Trusted text has slots of its own, and all media come from the caller: a source for each slot, in order. */
static qvl_status sources_from_caller(const qvl_renderer *renderer, const qvl_chat *chat, const qvl_tokens *tokens,
                                      size_t count, qvl_error *error) {
    qvl_conversation *c = renderer->conversation;
    qvl_source *sources = qvl_calloc(count, sizeof *sources);
    if (!sources) return qvl_fail_memory(error, "sources", count, sizeof *sources);
    size_t next[QVL_MEDIUM_VIDEO + 1] = {0}, used = 0;
    for (size_t i = 0; i < tokens->count && used < count; i++) {
        int32_t id = tokens->ids[i];
        bool video = id == renderer->prompter->tokens.video;
        if (!video && id != renderer->prompter->tokens.image) continue;
        qvl_medium_kind kind = video ? QVL_MEDIUM_VIDEO : QVL_MEDIUM_IMAGE;
        while (chat->media[next[kind]].kind != kind) next[kind]++;
        const qvl_medium *medium = &chat->media[next[kind]++];
        sources[used] = (qvl_source){.kind = kind, .message = SIZE_MAX, .part = SIZE_MAX, .medium = medium};
        sources[used].name = qvl_strdup(medium->name ? medium->name : video ? "video" : "image");
        if (!sources[used++].name) {
            while (used > 0) qvl_free(sources[--used].name);
            qvl_free(sources);
            return qvl_fail_memory(error, "name", 1, 1);
        }
    }
    for (size_t i = 0; i < c->source_count; i++) qvl_free(c->sources[i].name); /* none has more */
    qvl_free(c->sources);
    c->sources = sources;
    c->source_count = used;
    return QVL_OK;
}

static bool has_own_sources(const qvl_conversation *c) {
    for (size_t i = 0; i < c->source_count; i++)
        if (c->sources[i].input.name) return true;
    return false;
}

static bool equal(counts a, counts b) {
    return a.images == b.images && a.videos == b.videos;
}

/* What there is, with what the caller gives in excess. */
static counts count_media(const qvl_conversation *c) {
    counts n = count_parts(c, SIZE_MAX, true), given = {0};
    for (size_t i = 0; i < c->source_count; i++) {
        given.images += c->sources[i].medium && c->sources[i].kind == QVL_MEDIUM_IMAGE;
        given.videos += c->sources[i].medium && c->sources[i].kind == QVL_MEDIUM_VIDEO;
    }
    n.images += c->given_images - given.images;
    n.videos += c->given_videos - given.videos;
    return n;
}

qvl_status qvl_slots_find(const qvl_renderer *renderer, const qvl_chat *chat, const qvl_tokens *tokens,
                          qvl_slot **slots, size_t *count, qvl_error *error) {
    const qvl_prompter *p = renderer->prompter;
    const qvl_conversation *c = renderer->conversation;
    counts found = count_slots(p, tokens), media = count_media(c), parts = count_parts(c, SIZE_MAX, false);
    *slots = NULL;
    *count = found.images + found.videos;
    if (!equal(found, media)) return fail_mismatch(renderer, found, media, error);
    if (!equal(found, parts)) {
        if (!renderer->options->trust_text || has_own_sources(c))
            return fail_mismatch(renderer, found, media, error);
        qvl_status status = sources_from_caller(renderer, chat, tokens, *count, error);
        if (status) return status;
    }
    if (*count == 0) return QVL_OK;
    *slots = qvl_calloc(*count, sizeof **slots);
    if (!*slots) return qvl_fail_memory(error, "slots", *count, sizeof **slots);
    size_t image = 0, video = 0, used = 0; /* the next source of each kind is this one or later */
    for (size_t i = 0; i < tokens->count; i++) {
        bool is_image = tokens->ids[i] == p->tokens.image;
        if (!is_image && tokens->ids[i] != p->tokens.video) continue;
        size_t *next = is_image ? &image : &video;
        while (c->sources[*next].kind != (is_image ? QVL_MEDIUM_IMAGE : QVL_MEDIUM_VIDEO)) ++*next;
        (*slots)[used++] = (qvl_slot){.token = i, .source = (*next)++};
    }
    return QVL_OK;
}
