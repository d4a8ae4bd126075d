/* A prompt from beginning to end: conversation -> text -> tokens -> slots -> positions, then embeddings. */
#include "base/memory.h"
#include "base/options.h"
#include "prompt/pictures.h"

#include <string.h>

void qvl_prompt_options_init(qvl_prompt_options *options) {
    *options = (qvl_prompt_options){.size = sizeof *options,
                                    .add_generation_prompt = -1,
                                    .continue_final_message = -1,
                                    .enable_thinking = -1,
                                    .preserve_thinking = -1,
                                    .add_vision_id = -1,
                                    .time = INT64_MIN};
    qvl_preprocess_options_init(&options->preprocess);
}

void qvl_prompt_free(qvl_prompt *prompt) {
    if (!prompt) return;
    for (size_t i = 0; i < prompt->item_count; i++) {
        qvl_item_clear(&prompt->items[i].item);
        qvl_free(prompt->items[i].name);
    }
    for (int32_t i = 0; i < QVL_MAX_DEEPSTACK; i++) qvl_free(prompt->deepstack[i]);
    qvl_free(prompt->items);
    qvl_free(prompt->input_ids);
    qvl_free(prompt->token_types);
    qvl_free(prompt->position_ids);
    qvl_free(prompt->text);
    qvl_free(prompt->spans);
    qvl_free(prompt->inputs_embeds);
    *prompt = (qvl_prompt){0};
}

/* What a prompt is made with. */
typedef struct assembly {
    const qvl_prompter *prompter;
    const qvl_chat *chat;
    qvl_prompt_options options;
    qvl_conversation conversation;
    qvl_renderer renderer;
    qvl_measured *measured; /* of the conversation's sources */
    size_t *sources;        /* of the prompt's items */
    qvl_prompt *prompt;
    qvl_error *error;
} assembly;

static qvl_status take_options(assembly *a, const qvl_prompt_options *given) {
    qvl_prompt_options *o = &a->options;
    qvl_prompt_options_init(o);
    qvl_status status = qvl_options_take(o, sizeof *o, given, a->error);
    if (status) return status;
    if (o->max_length < 0 || (unsigned)o->dropped > QVL_DROPPED_FOLD ||
        (unsigned)o->truncation > QVL_TRUNCATE_MEDIA || (unsigned)o->video_layout > QVL_VIDEO_BARE)
        return qvl_fail(
            a->error, QVL_ERROR_ARGUMENT,
            "the options have max_length %lld, dropped %d, truncation %d, video_layout %d, of which one is "
            "impossible",
            (long long)o->max_length, (int)o->dropped, (int)o->truncation, (int)o->video_layout);
    return QVL_OK;
}

static bool go_on(void *user) {
    const qvl_prompt_options *o = user;
    return o->progress(0, 1, o->progress_user);
}

static qvl_status measure_all(assembly *a) {
    const qvl_conversation *c = &a->conversation;
    const qvl_patience asking = {go_on, &a->options}, *patience = a->options.progress ? &asking : NULL;
    a->measured = qvl_calloc(c->source_count + 1, sizeof *a->measured);
    if (!a->measured) return qvl_fail_memory(a->error, "sizes", c->source_count, sizeof *a->measured);
    for (size_t i = 0; i < c->source_count; i++) {
        qvl_status status = qvl_source_measure(a->prompter->model, &c->sources[i], &a->options.preprocess,
                                               patience, &a->measured[i], a->error);
        if (status) return status;
    }
    return QVL_OK;
}

/* Everything but embeddings. */
static qvl_status plan(assembly *a) {
    qvl_text text = {0};
    qvl_tokens tokens = {0};
    qvl_slot *slots = NULL;
    size_t slot_count = 0;
    qvl_status status =
        qvl_conversation_read(a->chat, &a->options, a->prompter->specials, &a->conversation, a->error);
    if (!status) status = qvl_renderer_init(&a->renderer, a->prompter, &a->options, &a->conversation, a->error);
    if (!status) status = qvl_render(&a->renderer, &text, a->error);
    if (!status) status = qvl_rendered_tokens(&a->renderer, text.bytes, text.byte_count, &tokens, a->error);
    if (!status) status = qvl_slots_find(&a->renderer, a->chat, &tokens, &slots, &slot_count, a->error);
    if (!status) status = measure_all(a);
    if (!status)
        status = qvl_expand(&a->renderer, a->measured, slots, slot_count, &text, &tokens, a->prompt, &a->sources,
                            a->error);
    qvl_free(slots);
    qvl_tokens_free(&tokens);
    qvl_text_free(&text);
    return status;
}

/* ---- embeddings */

static qvl_status allocate_embeddings(assembly *a) {
    qvl_prompt *p = a->prompt;
    const qvl_model *model = a->prompter->model;
    size_t length = (size_t)p->length, vision = (size_t)p->vision_tokens, row;
    p->dtype = qvl_compute_dtype(model->compute);
    p->width = model->config.vision.out_hidden_size;
    row = (size_t)p->width * qvl_dtype_bits(p->dtype) / 8;
    p->inputs_embeds = qvl_alloc(length, row);
    if (!p->inputs_embeds) return qvl_fail_memory(a->error, "embeddings", length, row);
    if (!vision) return QVL_OK;
    for (int32_t i = 0; i < model->config.vision.deepstack_count; i++) {
        p->deepstack[i] = qvl_alloc(vision, row);
        if (!p->deepstack[i]) return qvl_fail_memory(a->error, "deepstack features", vision, row);
        p->deepstack_count = i + 1;
    }
    return QVL_OK;
}

/* The rows of ordinary tokens. */
static qvl_status gather_text(assembly *a) {
    qvl_prompt *p = a->prompt;
    size_t row = (size_t)p->width * qvl_dtype_bits(p->dtype) / 8;
    qvl_status status = QVL_OK;
    for (int64_t start = 0, end; start < p->length && !status; start = end) {
        for (end = start; end < p->length && p->token_types[end] == p->token_types[start];) end++;
        if (p->token_types[start]) continue;
        status = qvl_embeddings_gather(&a->prompter->embeddings, p->input_ids + start, (size_t)(end - start),
                                       p->dtype, (char *)p->inputs_embeds + (size_t)start * row, a->error);
    }
    return status;
}

/* Where the next features go. */
typedef struct embedding {
    assembly *assembly;
    int64_t entry;  /* its pads are from here on */
    int64_t vision; /* row of the deepstack arrays */
} embedding;

/* Features to their pads: rows of the embeddings and of the deepstack arrays. */
static void splice(embedding *e, const qvl_features *features) {
    qvl_prompt *p = e->assembly->prompt;
    size_t row = (size_t)p->width * qvl_dtype_bits(p->dtype) / 8;
    for (int64_t used = 0; used < features->tokens; e->entry++) {
        if (!p->token_types[e->entry]) continue;
        memcpy((char *)p->inputs_embeds + (size_t)e->entry * row,
               (const char *)features->embeds + (size_t)used++ * row, row);
    }
    for (int32_t k = 0; k < p->deepstack_count; k++)
        memcpy((char *)p->deepstack[k] + (size_t)e->vision * row, features->deepstack[k],
               (size_t)features->tokens * row);
    e->vision += features->tokens;
}

static qvl_status take_features(void *user, const qvl_encoded *encoded, qvl_error *error) {
    embedding *e = user;
    assembly *a = e->assembly;
    qvl_prompt_item *item = &a->prompt->items[encoded->source];
    const qvl_source *source = &a->conversation.sources[a->sources[encoded->source]];
    bool given = source->medium && !source->medium->input;
    qvl_status status =
        given ? qvl_source_accept(a->prompter->model, source, encoded->features, item->key, error) : QVL_OK;
    if (status) return status;
    if (encoded->key) memcpy(item->key, encoded->key, sizeof item->key);
    if (!source->medium || !source->medium->features) item->item.origin = encoded->item->origin;
    if (encoded->first == 0) e->entry = item->first.index;
    splice(e, encoded->features);
    return QVL_OK;
}

static qvl_status embed_media(assembly *a, qvl_session *session) {
    size_t count = a->prompt->item_count;
    embedding e = {.assembly = a};
    qvl_encode_options encode;
    qvl_encode_options_init(&encode);
    encode.progress = a->options.progress;
    encode.progress_user = a->options.progress_user;
    qvl_encode_source *sources = qvl_alloc(count, sizeof *sources);
    if (!sources) return qvl_fail_memory(a->error, "pictures", count, sizeof *sources);
    for (size_t i = 0; i < count; i++)
        sources[i] = qvl_source_to_encode(&a->conversation.sources[a->sources[i]], &a->measured[a->sources[i]]);
    qvl_status status =
        qvl_pipeline_run(session, sources, count, &a->options.preprocess, &encode, take_features, &e, a->error);
    qvl_free(sources);
    return status;
}

static qvl_status embed(assembly *a, qvl_session *session) {
    qvl_status status = allocate_embeddings(a);
    if (!status) status = gather_text(a);
    return status || !a->prompt->item_count ? status : embed_media(a, session);
}

/* ---- the public calls */

static qvl_status assemble(qvl_session *session, const qvl_prompter *prompter, const qvl_chat *chat,
                           const qvl_prompt_options *given, qvl_prompt *prompt, qvl_error *error) {
    *prompt = (qvl_prompt){0};
    assembly a = {.prompter = prompter, .chat = chat, .prompt = prompt, .error = error};
    qvl_status status = take_options(&a, given);
    if (!status) status = plan(&a);
    if (!status && session) status = embed(&a, session);
    for (size_t i = 0; a.measured && i < a.conversation.source_count; i++) qvl_item_clear(&a.measured[i].item);
    qvl_conversation_free(&a.conversation);
    qvl_free(a.measured);
    qvl_free(a.sources);
    if (status) qvl_prompt_free(prompt);
    return status;
}

qvl_status qvl_prompt_plan(const qvl_prompter *prompter, const qvl_chat *chat, const qvl_prompt_options *options,
                           qvl_prompt *prompt, qvl_error *error) {
    return assemble(NULL, prompter, chat, options, prompt, error);
}

qvl_status qvl_prompt_build(qvl_session *session, const qvl_prompter *prompter, const qvl_chat *chat,
                            const qvl_prompt_options *options, qvl_prompt *prompt, qvl_error *error) {
    *prompt = (qvl_prompt){0};
    if (qvl_session_model(session) != prompter->model)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the session is of another model than the prompter");
    if (!prompter->has_embeddings)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "the prompter was opened without weights; embeddings need QVL_OPEN_WEIGHTS");
    return assemble(session, prompter, chat, options, prompt, error);
}

/* ---- entries and positions */

qvl_position qvl_prompt_position(const qvl_prompt *prompt, qvl_entry entry) {
    const int64_t *p = prompt->position_ids;
    int64_t i = entry.index, length = prompt->length;
    if (i >= length) return (qvl_position){i + prompt->rope_delta, i + prompt->rope_delta, i + prompt->rope_delta};
    return (qvl_position){p[i], p[length + i], p[2 * length + i]};
}

qvl_status qvl_prompt_delta_at(const qvl_prompt *prompt, qvl_entry end, int64_t *delta, qvl_error *error) {
    *delta = 0;
    if (end.index < 1 || end.index > prompt->length)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "entry %lld is not in 1..%lld", (long long)end.index,
                        (long long)prompt->length);
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *item = &prompt->items[i];
        if (item->first.index >= end.index || end.index > item->last.index) continue;
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "entry %lld is inside %.200s, which takes %lld to %lld",
                        (long long)end.index, item->name, (long long)item->first.index,
                        (long long)item->last.index);
    }
    int64_t largest = 0;
    for (int64_t i = 0; i < end.index; i++) {
        qvl_position p = qvl_prompt_position(prompt, (qvl_entry){i});
        int64_t most = p.h > p.w ? p.h : p.w;
        if (p.t > most) most = p.t;
        if (most > largest) largest = most;
    }
    *delta = largest + 1 - end.index;
    return QVL_OK;
}
