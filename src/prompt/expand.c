#define _GNU_SOURCE
#include "prompt/expand.h"

#include "base/memory.h"
#include "preprocess/item.h"
#include "prompt/mrope.h"
#include "prompt/spans.h"
#include "prompt/stamps.h"

#include <string.h>

/* A pad token, and the tokens it becomes. */
typedef struct run {
    size_t token, item;
    qvl_grid grid;
    int64_t count;
} run;

/* One of the prompt's items: tokens first to last, with wrappers and stamps. */
typedef struct extent {
    size_t first, last;
} extent;

/* The prompt while it grows. Tokens are those of the text, in which a pad stands for a run. */
typedef struct expansion {
    const qvl_renderer *renderer;
    const qvl_measured *measured;
    const qvl_slot *slots;
    size_t slot_count;
    qvl_text *text;
    qvl_tokens *tokens;
    qvl_stamped *stamped; /* [slot_count] where the stamps of videos are in the text */
    run *runs;
    size_t run_count;
    extent *extents; /* [slot_count] */
    size_t kept;     /* tokens that are not cut off */
    size_t items;    /* and items */
    int64_t length;  /* entries of the kept tokens */
    qvl_prompt *prompt;
    qvl_error *error;
} expansion;

static int64_t merge_area(const expansion *x) {
    int64_t merge = x->renderer->prompter->model->config.vision.spatial_merge_size;
    return merge * merge;
}

static const qvl_source *source_of(const expansion *x, size_t item) {
    return &x->renderer->conversation->sources[x->slots[item].source];
}

static const qvl_measured *measured_of(const expansion *x, size_t item) {
    return &x->measured[x->slots[item].source];
}

/* ---- pads */

/* Pads a slot has: one, or one for each group of a video. */
static size_t pads_of(const expansion *x, size_t item) {
    return source_of(x, item)->kind == QVL_MEDIUM_VIDEO ? (size_t)measured_of(x, item)->item.grid.t : 1;
}

static qvl_status list_runs(expansion *x) {
    const qvl_media_tokens *t = &x->renderer->prompter->tokens;
    size_t count = 0, item = 0, in_item = 0;
    for (size_t i = 0; i < x->slot_count; i++) count += pads_of(x, i);
    x->runs = qvl_alloc(count + 1, sizeof *x->runs);
    if (!x->runs) return qvl_fail_memory(x->error, "runs of pads", count, sizeof *x->runs);
    for (size_t i = 0; i < x->tokens->count; i++) {
        if (x->tokens->ids[i] != t->image && x->tokens->ids[i] != t->video) continue;
        if (x->run_count == count) break;
        qvl_grid grid = measured_of(x, item)->item.grid;
        if (source_of(x, item)->kind == QVL_MEDIUM_VIDEO) grid.t = 1;
        int64_t tokens = grid.t * grid.h * grid.w / merge_area(x);
        x->runs[x->run_count++] = (run){.token = i, .item = item, .grid = grid, .count = tokens};
        if (++in_item < pads_of(x, item)) continue;
        item++;
        in_item = 0;
    }
    return QVL_OK;
}

/* ---- where items begin and end */

static void find_extents(expansion *x) {
    const qvl_media_tokens *t = &x->renderer->prompter->tokens;
    const qvl_tokens *tokens = x->tokens;
    for (size_t r = 0; r < x->run_count; r++) {
        extent *e = &x->extents[x->runs[r].item];
        bool begins = r == 0 || x->runs[r - 1].item != x->runs[r].item;
        if (begins) e->first = x->runs[r].token;
        e->last = x->runs[r].token;
    }
    for (size_t i = 0; i < x->slot_count; i++) {
        extent *e = &x->extents[i];
        const qvl_stamped *s = &x->stamped[i];
        if (s->end > s->start) {
            while (e->first > 0 && tokens->starts[e->first] > s->start) e->first--;
            while (e->last + 1 < tokens->count && tokens->starts[e->last + 1] < s->end) e->last++;
        }
        if (e->first > 0 && tokens->ids[e->first - 1] == t->start) e->first--;
        if (e->last + 1 < tokens->count && tokens->ids[e->last + 1] == t->end) e->last++;
    }
}

/* ---- max_length */

/* Entries of the tokens before one. */
static int64_t entries_before(const expansion *x, size_t token) {
    int64_t entries = (int64_t)token;
    for (size_t r = 0; r < x->run_count && x->runs[r].token < token; r++) entries += x->runs[r].count - 1;
    return entries;
}

/* The most tokens that have no more than so many entries. */
static size_t tokens_within(const expansion *x, int64_t entries) {
    int64_t extra = 0; /* of the runs so far */
    for (size_t r = 0; r < x->run_count; r++) {
        int64_t before = (int64_t)x->runs[r].token + extra;
        if (before + x->runs[r].count > entries)
            return before >= entries ? (size_t)(entries - extra) : x->runs[r].token;
        extra += x->runs[r].count - 1;
    }
    return (size_t)(entries - extra);
}

static qvl_status cut(expansion *x) {
    const qvl_prompt_options *o = x->renderer->options;
    const char *name = x->renderer->conversation->name;
    x->kept = x->tokens->count;
    x->items = x->slot_count;
    x->length = entries_before(x, x->kept);
    if (x->length == 0)
        return qvl_fail(x->error, QVL_ERROR_ARGUMENT, "%s: the template makes no text of it", name);
    if (o->max_length == 0 || x->length <= o->max_length) return QVL_OK;
    if (o->truncation == QVL_TRUNCATE_REFUSE)
        return qvl_fail(x->error, QVL_ERROR_LIMIT, "%s: the prompt has %lld tokens, but max_length is %lld", name,
                        (long long)x->length, (long long)o->max_length);
    size_t kept = tokens_within(x, o->max_length);
    while (x->items > 0 && x->extents[x->items - 1].first >= kept) x->items--;
    if (x->items > 0 && x->extents[x->items - 1].last >= kept) {
        const extent *e = &x->extents[x->items - 1];
        int64_t first = entries_before(x, e->first), end = entries_before(x, e->last + 1);
        if (o->truncation == QVL_TRUNCATE_TEXT)
            return qvl_fail(
                x->error, QVL_ERROR_LIMIT,
                "%s: max_length %lld would cut %.200s in two, which takes the entries %lld to %lld of %lld", name,
                (long long)o->max_length, source_of(x, x->items - 1)->name, (long long)first, (long long)(end - 1),
                (long long)x->length);
        kept = e->first;
        x->items--;
    }
    int64_t before = x->length;
    x->kept = kept;
    x->length = entries_before(x, kept);
    if (x->length == 0)
        return qvl_fail(x->error, QVL_ERROR_LIMIT,
                        "%s: max_length %lld leaves nothing of the prompt's %lld tokens", name,
                        (long long)o->max_length, (long long)before);
    while (x->run_count > 0 && x->runs[x->run_count - 1].token >= kept) x->run_count--;
    qvl_prompt_note(o, "%s: cut from %lld to %lld tokens; %zu of %zu pictures and videos left", name,
                    (long long)before, (long long)x->length, x->items, x->slot_count);
    return QVL_OK;
}

/* ---- arrays */

static qvl_status fill_ids(expansion *x) {
    qvl_prompt *p = x->prompt;
    size_t length = (size_t)x->length;
    p->length = x->length;
    p->input_ids = qvl_alloc(length, sizeof *p->input_ids);
    p->token_types = qvl_calloc(length, sizeof *p->token_types);
    p->position_ids = qvl_alloc(length, 3 * sizeof *p->position_ids);
    if (!p->input_ids || !p->token_types || !p->position_ids)
        return qvl_fail_memory(x->error, "prompt", length, 5 * sizeof *p->input_ids);
    int64_t at = 0;
    size_t r = 0;
    for (size_t i = 0; i < x->kept; i++) {
        bool pad = r < x->run_count && x->runs[r].token == i;
        int64_t count = pad ? x->runs[r].count : 1;
        for (int64_t k = 0; k < count; k++) {
            p->input_ids[at] = x->tokens->ids[i];
            if (pad) p->token_types[at] = (int64_t)source_of(x, x->runs[r].item)->kind;
            at++;
        }
        if (!pad) continue;
        p->vision_tokens += count;
        p->media_length = at;
        r++;
    }
    return QVL_OK;
}

static qvl_status fill_positions(expansion *x) {
    qvl_prompt *p = x->prompt;
    qvl_grid *grids = qvl_alloc(x->run_count + 1, sizeof *grids);
    if (!grids) return qvl_fail_memory(x->error, "grids", x->run_count, sizeof *grids);
    for (size_t r = 0; r < x->run_count; r++) grids[r] = x->runs[r].grid;
    qvl_status status = qvl_mrope(p->token_types, p->length, grids, x->run_count,
                                  x->renderer->prompter->model->config.vision.spatial_merge_size, p->position_ids,
                                  &p->rope_delta, x->error);
    qvl_free(grids);
    return status;
}

static qvl_status fill_items(expansion *x, size_t **sources) {
    qvl_prompt *p = x->prompt;
    p->items = qvl_calloc(x->items + 1, sizeof *p->items);
    *sources = qvl_alloc(x->items + 1, sizeof **sources);
    if (!p->items || !*sources) return qvl_fail_memory(x->error, "items", x->items, sizeof *p->items);
    for (size_t i = 0; i < x->items; i++) {
        const qvl_source *source = source_of(x, i);
        qvl_prompt_item *item = &p->items[i];
        (*sources)[i] = x->slots[i].source;
        *item = (qvl_prompt_item){.kind = source->kind, .message = source->message, .part = source->part};
        qvl_status status = qvl_item_copy(&measured_of(x, i)->item, &item->item, x->error);
        if (status) return status;
        p->item_count = i + 1;
        item->first.index = entries_before(x, x->extents[i].first);
        item->last.index = entries_before(x, x->extents[i].last + 1) - 1;
        item->name = qvl_strdup(source->name);
        if (!item->name) return qvl_fail_memory(x->error, "name", strlen(source->name), 1);
    }
    return QVL_OK;
}

static qvl_status fill_text(expansion *x) {
    size_t count = x->run_count;
    int64_t *counts = qvl_alloc(count + 1, sizeof *counts);
    if (!counts) return qvl_fail_memory(x->error, "runs of pads", count, sizeof *counts);
    for (size_t r = 0; r < count; r++) counts[r] = x->runs[r].count;
    qvl_status status = qvl_spans_make(x->renderer, x->text, x->tokens, x->kept, counts, x->prompt, x->error);
    qvl_free(counts);
    return status;
}

/* ---- the whole */

static qvl_status stamp(expansion *x) {
    bool any = false;
    for (size_t i = 0; i < x->slot_count; i++) any |= source_of(x, i)->kind == QVL_MEDIUM_VIDEO;
    if (!any) return QVL_OK;
    qvl_text stamped;
    qvl_status status = qvl_stamp_videos(x->renderer, x->text, x->tokens, x->measured, x->slots, x->slot_count,
                                         &stamped, x->stamped, x->error);
    if (status) return status;
    qvl_text_free(x->text);
    *x->text = stamped;
    qvl_tokens_free(x->tokens);
    return qvl_rendered_tokens(x->renderer, x->text->bytes, x->text->byte_count, x->tokens, x->error);
}

qvl_status qvl_expand(const qvl_renderer *renderer, const qvl_measured *measured, const qvl_slot *slots,
                      size_t slot_count, qvl_text *text, qvl_tokens *tokens, qvl_prompt *prompt, size_t **sources,
                      qvl_error *error) {
    expansion x = {.renderer = renderer,
                   .measured = measured,
                   .slots = slots,
                   .slot_count = slot_count,
                   .text = text,
                   .tokens = tokens,
                   .prompt = prompt,
                   .error = error};
    qvl_status status = QVL_OK;
    *sources = NULL;
    x.stamped = qvl_calloc(slot_count + 1, sizeof *x.stamped);
    x.extents = qvl_calloc(slot_count + 1, sizeof *x.extents);
    if (!x.stamped || !x.extents) status = qvl_fail_memory(error, "items", slot_count, sizeof *x.stamped);
    if (!status) status = stamp(&x);
    if (!status) status = list_runs(&x);
    if (!status) {
        find_extents(&x);
        status = cut(&x);
    }
    if (!status) status = fill_ids(&x);
    if (!status) status = fill_positions(&x);
    if (!status) status = fill_items(&x, sources);
    if (!status) status = fill_text(&x);
    qvl_free(x.stamped);
    qvl_free(x.extents);
    qvl_free(x.runs);
    return status;
}
