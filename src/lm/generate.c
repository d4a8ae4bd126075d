/* The answer to a prompt: what is new of it goes through the language model, then token by token. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/options.h"
#include "lm/answer_text.h"
#include "lm/generation_config.h"
#include "lm/held.h"
#include "lm/marks.h"
#include "lm/sampler.h"

#include <string.h>

struct qvl_generator {
    const qvl_prompter *prompter;
    qvl_sequence *sequence;
    qvl_held held; /* as many entries as the sequence has */
    int64_t vocab, max_length;
    bool snapshots; /* the sequence can only be cut where it kept one */
    int32_t *stops;
    size_t stop_count;
    uint8_t *never; /* [vocab] */
    float *logits;  /* [vocab] */
};

/* ---- generators */

static qvl_status open_parts(qvl_generator *g, const qvl_lm *lm, const qvl_sequence_options *options,
                             qvl_error *error) {
    qvl_status status = qvl_sequence_open(lm, options, &g->sequence, error);
    if (!status) status = qvl_stop_tokens(g->prompter, &g->stops, &g->stop_count, error);
    if (status) return status;
    size_t vocab = (size_t)g->vocab;
    g->never = qvl_alloc(vocab, 1);
    g->logits = qvl_alloc(vocab, sizeof *g->logits);
    if (!g->never || !g->logits) return qvl_fail_memory(error, "logits", vocab, 1 + sizeof *g->logits);
    qvl_never_tokens(g->prompter, g->stops, g->stop_count, g->vocab, g->never);
    return QVL_OK;
}

qvl_status qvl_generator_open(const qvl_lm *lm, const qvl_prompter *prompter, const qvl_sequence_options *given,
                              qvl_generator **generator, qvl_error *error) {
    *generator = NULL;
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (status) return status;
    qvl_generator *g = qvl_calloc(1, sizeof *g);
    if (!g) return qvl_fail_memory(error, "generator", 1, sizeof *g);
    const qvl_lm_info *info = qvl_lm_get_info(lm);
    g->prompter = prompter;
    g->vocab = info->vocab_size;
    g->snapshots = info->linear_layers > 0;
    g->max_length = options.max_length ? options.max_length : info->max_positions;
    status = open_parts(g, lm, &options, error);
    if (status) qvl_generator_close(&g);
    *generator = g;
    return status;
}

void qvl_generator_close(qvl_generator **generator) {
    if (!generator || !*generator) return;
    qvl_generator *g = *generator;
    *generator = NULL;
    qvl_sequence_close(&g->sequence);
    qvl_held_free(&g->held);
    qvl_free(g->stops);
    qvl_free(g->never);
    qvl_free(g->logits);
    qvl_free(g);
}

void qvl_generator_get_info(const qvl_generator *g, qvl_generator_info *info) {
    *info = (qvl_generator_info){.max_length = g->max_length,
                                 .held = g->held.count,
                                 .bytes = qvl_sequence_bytes(g->sequence),
                                 .stop_count = g->stop_count,
                                 .stop_tokens = g->stops};
}

/* ---- answers */

const char *qvl_finish_name(qvl_finish finish) {
    static const char *const names[] = {"stop", "stop", "length", "cancelled"};
    return (unsigned)finish < sizeof names / sizeof *names ? names[finish] : NULL;
}

const char *qvl_difference_name(qvl_difference difference) {
    static const char *const names[] = {"none", "text", "media"};
    return (unsigned)difference < sizeof names / sizeof *names ? names[difference] : NULL;
}

void qvl_answer_free(qvl_answer *answer) {
    if (!answer) return;
    qvl_free(answer->text);
    qvl_free(answer->reasoning);
    qvl_free(answer->ids);
    qvl_free(answer->logprobs);
    qvl_free(answer->top);
    *answer = (qvl_answer){0};
}

/* One call of qvl_generate. */
typedef struct generation {
    qvl_generator *g;
    const qvl_prompt *prompt;
    qvl_generate_options options;
    int64_t limit; /* of new tokens */
    qvl_sampler sampler;
    qvl_answer_text text;
    qvl_answer *answer;
    int64_t capacity; /* of the answer's arrays */
    qvl_error *error;
} generation;

static qvl_status check(const qvl_generator *g, int64_t length, const qvl_generate_options *given,
                        qvl_generate_options *o, int64_t *limit, qvl_error *error) {
    qvl_generate_options_init(o);
    qvl_status status = qvl_options_take(o, sizeof *o, given, error);
    if (!status) status = qvl_sampling_check(&o->sampling, error);
    if (status) return status;
    if (o->max_new_tokens < 0 || o->top_logprobs < 0 || o->top_logprobs > QVL_MAX_TOP_LOGPROBS)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "max_new_tokens is %lld and top_logprobs %d; allowed is 0 or more, and 0 to %d",
                        (long long)o->max_new_tokens, o->top_logprobs, QVL_MAX_TOP_LOGPROBS);
    int64_t room = g->max_length - length;
    if (length < 1) return qvl_fail(error, QVL_ERROR_ARGUMENT, "the prompt has no tokens");
    if (room < 1)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "the prompt has %lld tokens; a sequence of %lld entries has no room for it and an answer",
                        (long long)length, (long long)g->max_length);
    if (o->max_new_tokens > room)
        return qvl_fail(
            error, QVL_ERROR_LIMIT,
            "the prompt has %lld tokens and the answer may have %lld, together %lld; the sequence has "
            "%lld entries, which leaves %lld for the answer",
            (long long)length, (long long)o->max_new_tokens,
            (long long)(o->max_new_tokens > INT64_MAX - length ? INT64_MAX : length + o->max_new_tokens),
            (long long)g->max_length, (long long)room);
    *limit = o->max_new_tokens ? o->max_new_tokens : room;
    return QVL_OK;
}

qvl_status qvl_generate_check(const qvl_generator *generator, const qvl_prompt *prompt,
                              const qvl_generate_options *options, qvl_error *error) {
    qvl_generate_options own;
    int64_t limit;
    return check(generator, prompt->length, options, &own, &limit, error);
}

/* ---- the prompt */

/* Brings the sequence to what it has in common with the prompt, *common entries. Keys and values can be cut anywhere but
 * inside a picture; hybrid models go back to the last snapshot at or before that point. */
static qvl_status rewind_to(generation *n, int64_t *entries) {
    qvl_generator *g = n->g;
    int64_t delta = 0, common = qvl_sequence_reachable(g->sequence, *entries);
    qvl_status status = QVL_OK;
    *entries = common;
    if (common < g->held.count) {
        if (common > 0) status = qvl_prompt_delta_at(n->prompt, (qvl_entry){common}, &delta, n->error);
        if (!status) status = qvl_sequence_truncate(g->sequence, common, delta, n->error);
    }
    if (!status) qvl_held_truncate(&g->held, common);
    return status;
}

static qvl_status read_prompt(generation *n) {
    qvl_generator *g = n->g;
    double start = qvl_seconds();
    qvl_decode_options decode;
    qvl_decode_options_init(&decode);
    decode.progress = n->options.progress;
    decode.progress_user = n->options.progress_user;
    int64_t common = qvl_held_common(&g->held, n->prompt, &n->answer->difference);
    qvl_status status = qvl_held_reserve(&g->held, n->prompt, n->limit, n->error);
    if (!status) status = rewind_to(n, &common);
    int64_t *marks = NULL;
    if (!status && g->snapshots)
        status = qvl_prompt_marks(qvl_prompter_tokenizer(g->prompter), n->prompt, common, &marks,
                                  &decode.mark_count, n->error);
    decode.marks = marks;
    if (!status) status = qvl_sequence_prefill(g->sequence, n->prompt, common, &decode, g->logits, n->error);
    qvl_free(marks);
    if (!status) qvl_held_add(&g->held, n->prompt);
    qvl_sampler_prompt(&n->sampler, n->prompt->input_ids, n->prompt->length);
    n->answer->prompt_tokens = n->prompt->length;
    n->answer->reused_tokens = common;
    n->answer->prefill_seconds = qvl_seconds() - start;
    return status;
}

/* ---- tokens */

static qvl_status make_room(generation *n) {
    qvl_answer *a = n->answer;
    if (a->count < n->capacity) return QVL_OK;
    size_t count = (size_t)a->count, capacity = count ? 2 * count : 64, top = (size_t)a->top_count;
    int32_t *ids = qvl_grow(a->ids, count, capacity, sizeof *ids);
    if (ids) a->ids = ids;
    float *logprobs = n->options.logprobs ? qvl_grow(a->logprobs, count, capacity, sizeof *logprobs) : NULL;
    if (logprobs) a->logprobs = logprobs;
    qvl_logprob *tops = top ? qvl_grow(a->top, count * top, capacity * top, sizeof *tops) : NULL;
    if (tops) a->top = tops;
    if (!ids || (n->options.logprobs && !logprobs) || (top && !tops))
        return qvl_fail_memory(n->error, "answer", capacity, sizeof *ids);
    n->capacity = (int64_t)capacity;
    return QVL_OK;
}

/* Chooses the next token from the logits and adds it to the answer. */
static qvl_status choose(generation *n, int32_t *id, float *logprob) {
    qvl_answer *a = n->answer;
    const float *logits = n->g->logits;
    qvl_status status = make_room(n);
    if (!status) status = qvl_sampler_next(&n->sampler, logits, id, n->error);
    if (status) return status;
    *logprob = 0.0f;
    if (n->options.logprobs || a->top_count) {
        qvl_logprob *top = a->top ? a->top + a->count * a->top_count : NULL;
        double log_sum = qvl_logprobs(logits, n->g->vocab, top, a->top_count);
        *logprob = (float)((double)logits[*id] - log_sum);
    }
    if (a->logprobs) a->logprobs[a->count] = *logprob;
    a->ids[a->count++] = *id;
    return QVL_OK;
}

static bool is_stop(const qvl_generator *g, int32_t id) {
    for (size_t i = 0; i < g->stop_count; i++)
        if (g->stops[i] == id) return true;
    return false;
}

/* Why the answer ends with this token; false where it goes on. */
static bool ends(const generation *n, int32_t id, qvl_finish *finish) {
    bool end = true;
    if (is_stop(n->g, id))
        *finish = QVL_FINISH_TOKEN;
    else if (n->text.stopped)
        *finish = QVL_FINISH_STRING;
    else if (n->answer->count == n->limit)
        *finish = QVL_FINISH_LENGTH;
    else
        end = false;
    return end;
}

/* Shows the token to the caller with the text that is certain now; false: he has enough. */
static bool show(generation *n, int32_t id, float logprob, bool finished) {
    if (!n->options.token) return true;
    qvl_answer_token token = {.id = id, .logprob = logprob};
    token.text = qvl_answer_text_release(&n->text, finished, &token.byte_count, &token.thinking);
    char *end = n->text.bytes + n->text.released, behind = *end;
    *end = 0;
    bool more = n->options.token(&token, n->options.token_user);
    *end = behind;
    return more;
}

/* A qvl_progress_fn for the layers of a step. */
static bool step_progress(int64_t done, int64_t total, void *user) {
    const generation *n = user;
    (void)done, (void)total;
    return n->options.progress(0, 0, n->options.progress_user);
}

static qvl_status step(generation *n, int32_t id) {
    qvl_decode_options decode;
    qvl_decode_options_init(&decode);
    decode.progress = n->options.progress ? step_progress : NULL;
    decode.progress_user = n;
    qvl_status status = qvl_sequence_step(n->g->sequence, id, &decode, n->g->logits, n->error);
    if (!status) qvl_held_push(&n->g->held, id);
    return status;
}

/* From the prompt's logits on. QVL_ERROR_CANCELLED: in a step. */
static qvl_status say(generation *n, double start) {
    qvl_answer *a = n->answer;
    double first = 0.0;
    for (;;) {
        int32_t id;
        float logprob;
        qvl_status status = choose(n, &id, &logprob);
        if (!status) status = qvl_answer_text_push(&n->text, id, n->error);
        if (status) return status;
        double now = qvl_seconds();
        if (a->count == 1) {
            first = now;
            a->first_token_seconds = now - start;
        }
        a->decode_seconds = now - first;
        bool end = ends(n, id, &a->finish);
        if (end) status = qvl_answer_text_finish(&n->text, n->error);
        if (status) return status;
        if (!show(n, id, logprob, end) && !end) {
            a->finish = QVL_FINISH_CANCELLED;
            return QVL_OK;
        }
        if (end) return QVL_OK;
        if ((status = step(n, id))) return status;
    }
}

/* Hands over the text, whole, thinking apart. */
static qvl_status close_text(generation *n) {
    qvl_answer_text *text = &n->text;
    qvl_answer *a = n->answer;
    qvl_status status = qvl_answer_text_finish(text, n->error);
    if (status) return status;
    size_t thought = text->thinking ? text->byte_count : text->thought, length = thought;
    if (thought) {
        while (length && text->bytes[length - 1] == '\n') length--; /* those before </think> */
        a->reasoning = qvl_calloc(length + 1, 1);
        if (!a->reasoning) return qvl_fail_memory(n->error, "thinking of an answer", length + 1, 1);
        memcpy(a->reasoning, text->bytes, length);
        a->reasoning_length = length;
        memmove(text->bytes, text->bytes + thought, text->byte_count - thought + 1);
    }
    a->text = text->bytes;
    a->text_length = text->byte_count - thought;
    text->bytes = NULL;
    return QVL_OK;
}

qvl_status qvl_generate(qvl_generator *generator, const qvl_prompt *prompt, const qvl_generate_options *options,
                        qvl_answer *answer, qvl_error *error) {
    double start = qvl_seconds();
    *answer = (qvl_answer){0};
    generation n = {.g = generator, .prompt = prompt, .answer = answer, .error = error};
    qvl_status status = check(generator, prompt->length, options, &n.options, &n.limit, error);
    if (status) return status;
    answer->top_count = n.options.top_logprobs;
    status = qvl_answer_text_open(qvl_prompter_tokenizer(generator->prompter), prompt, n.options.stop,
                                  n.options.stop_count, &n.text, error);
    if (!status)
        status = qvl_sampler_open(generator->vocab, &n.options.sampling, generator->never, &n.sampler, error);
    if (!status) status = read_prompt(&n);
    if (!status) status = say(&n, start);
    if (status == QVL_ERROR_CANCELLED) {
        answer->finish = QVL_FINISH_CANCELLED;
        status = QVL_OK;
    }
    if (!status) status = close_text(&n);
    qvl_sampler_close(&n.sampler);
    qvl_answer_text_close(&n.text);
    if (status) qvl_answer_free(answer);
    return status;
}
