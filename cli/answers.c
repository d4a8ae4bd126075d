#define _GNU_SOURCE
#include "answers.h"

#include "cache.h"
#include "interrupt.h"
#include "open.h"
#include "output.h"
#include "prompts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Where neither a flag nor the folder says how long an answer may be. */
enum { DEFAULT_NEW_TOKENS = 4096 };

/* ---- settings */

static uint64_t random_seed(void) {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint32_t)(1e6 * cli_seconds());
    return seed;
}

/* The flags over what the folder says. One of the first four asks for random tokens, also where the folder does not. */
static void apply_flags(const cli_answering *flags, qvl_generate_options *o) {
    qvl_sampling *s = &o->sampling;
    bool random = !isnan(flags->temperature) || flags->top_k >= 0 || !isnan(flags->top_p) || !isnan(flags->min_p);
    if (!isnan(flags->temperature)) s->temperature = flags->temperature;
    if (flags->top_k >= 0) s->top_k = (int32_t)flags->top_k;
    if (!isnan(flags->top_p)) s->top_p = flags->top_p;
    if (!isnan(flags->min_p)) s->min_p = flags->min_p;
    if (!isnan(flags->repetition_penalty)) s->repetition_penalty = flags->repetition_penalty;
    if (!isnan(flags->presence_penalty)) s->presence_penalty = flags->presence_penalty;
    if (random) s->do_sample = true;
    if (flags->greedy || s->temperature == 0.0) s->do_sample = false;
    s->seed = flags->seed >= 0 ? (uint64_t)flags->seed : s->do_sample ? random_seed() : 0;
    if (flags->max_new_tokens) o->max_new_tokens = flags->max_new_tokens;
    if (!o->max_new_tokens) o->max_new_tokens = DEFAULT_NEW_TOKENS;
    o->logprobs = flags->logprobs >= 0;
    o->top_logprobs = flags->logprobs > 0 ? (int32_t)flags->logprobs : 0;
    o->stop = flags->stops;
    o->stop_count = flags->stop_count;
}

/* ---- opening */

qvl_status cli_answerer_open(const cli_options *options, const qvl_prompter_options *prompter, cli_answerer *a,
                             qvl_error *error) {
    *a = (cli_answerer){.options = options};
    double start = cli_seconds();
    cli_progress_init(&a->progress, options->quiet);
    cli_progress_say(&a->progress, "opening the model");
    qvl_status status = cli_open_model(options, QVL_OPEN_WEIGHTS, &a->model, error);
    if (!status) status = qvl_prompter_open(a->model, prompter, &a->prompter, error);
    if (!status) status = qvl_session_open(a->model, &a->session, error);
    if (!status) status = cli_use_cache(options, a->session, &a->cache, error);
    if (!status) status = qvl_lm_open(a->model, NULL, &a->lm, error);
    if (!status) status = qvl_generate_options_read(a->prompter, &a->generate, error);
    if (!status) apply_flags(&options->answering, &a->generate);
    cli_progress_clear(&a->progress);
    a->open_seconds = cli_seconds() - start;
    return status;
}

qvl_status cli_answerer_start(cli_answerer *a, int64_t max_length, qvl_error *error) {
    qvl_sequence_options sequence;
    qvl_sequence_options_init(&sequence);
    sequence.max_length = max_length;
    return qvl_generator_open(a->lm, a->prompter, &sequence, &a->generator, error);
}

void cli_answerer_close(cli_answerer *a) {
    cli_progress_clear(&a->progress);
    qvl_generator_close(&a->generator);
    qvl_lm_close(&a->lm);
    qvl_session_close(&a->session);
    qvl_cache_close(&a->cache);
    qvl_prompter_close(&a->prompter);
    qvl_model_close(&a->model);
    *a = (cli_answerer){0};
}

/* ---- showing */

/* Thoughts never mix with an answer in a pipe: there they go to stderr, if at all. */
static void show_thought(cli_answerer *a, const qvl_answer_token *token) {
    bool terminal = isatty(STDOUT_FILENO), first = !a->thinking;
    a->thinking = true;
    if (a->options->answering.thinking == 0 || (a->options->answering.thinking < 0 && !terminal)) {
        if (first) cli_progress_say(&a->progress, "thinking");
        return;
    }
    cli_progress_clear(&a->progress);
    if (!terminal) {
        fwrite(token->text, 1, token->byte_count, stderr);
        return;
    }
    bool dim = cli_colours();
    if (dim) fputs("\033[2m", stdout);
    cli_print_text(token->text, token->byte_count);
    if (dim) fputs("\033[0m", stdout);
    fflush(stdout);
}

/* The line between thoughts and answer, where the thoughts were shown. */
static void end_thoughts(cli_answerer *a) {
    bool terminal = isatty(STDOUT_FILENO);
    a->thinking = false;
    if (a->options->answering.thinking == 1 || (a->options->answering.thinking < 0 && terminal))
        fputs("\n\n", terminal ? stdout : stderr);
}

/* A terminal gets no control characters of the answer's; a file gets the text as it is. */
static bool show(const qvl_answer_token *token, void *user) {
    cli_answerer *a = user;
    if (token->byte_count && token->thinking) {
        show_thought(a, token);
    } else if (token->byte_count) {
        cli_progress_clear(&a->progress);
        if (a->thinking) end_thoughts(a);
        if (isatty(STDOUT_FILENO))
            cli_print_text(token->text, token->byte_count);
        else
            fwrite(token->text, 1, token->byte_count, stdout);
        fflush(stdout);
        a->shown = true;
        a->line_open = token->text[token->byte_count - 1] != '\n';
    }
    return !cli_interrupted();
}

static bool step(int64_t done, int64_t total, void *user) {
    cli_answerer *a = user;
    if (total) cli_progress_step(done, total, &a->progress);
    return !cli_interrupted();
}

/* ---- answering */

/* Makes the generator where there is none yet, for this prompt and its answer. In a conversation, and where no flag
 * says how long an answer may be, it gets what room there is; then what the library would refuse later is refused. */
static qvl_status make_room(cli_answerer *a, const qvl_prompt *plan, qvl_generate_options *generate,
                            qvl_error *error) {
    int64_t wanted = plan->length + generate->max_new_tokens, most = qvl_lm_get_info(a->lm)->max_positions;
    bool bends = a->generator || !a->options->answering.max_new_tokens;
    qvl_status status = QVL_OK;
    if (!a->generator) status = cli_answerer_start(a, wanted < most ? wanted : most, error);
    if (status) return status;
    qvl_generator_info info;
    qvl_generator_get_info(a->generator, &info);
    if (bends && wanted > info.max_length) generate->max_new_tokens = 0;
    return qvl_generate_check(a->generator, plan, generate, error);
}

static qvl_status build(cli_answerer *a, const qvl_chat *chat, const qvl_prompt_options *given,
                        qvl_generate_options *generate, qvl_prompt *prompt, qvl_error *error) {
    qvl_prompt_options options = *given;
    qvl_prompt plan;
    options.progress = step;
    options.progress_user = a;
    a->progress.what = "encoding";
    qvl_status status = qvl_prompt_plan(a->prompter, chat, &options, &plan, error);
    if (status) return status;
    status = make_room(a, &plan, generate, error);
    qvl_prompt_free(&plan);
    /* What was worth a note was one in the plan. */
    options.log = NULL;
    if (!status) status = qvl_prompt_build(a->session, a->prompter, chat, &options, prompt, error);
    cli_progress_clear(&a->progress);
    return status;
}

qvl_status cli_answer(cli_answerer *a, const qvl_chat *chat, const qvl_prompt_options *options, qvl_prompt *prompt,
                      qvl_answer *answer, qvl_error *error) {
    *prompt = (qvl_prompt){0};
    *answer = (qvl_answer){0};
    a->start = cli_seconds();
    a->shown = a->line_open = a->thinking = false;
    qvl_generate_options generate = a->generate;
    qvl_status status = build(a, chat, options, &generate, prompt, error);
    a->prompt_seconds = cli_seconds() - a->start;
    a->progress.what = "reading";
    generate.token = a->options->json ? NULL : show;
    generate.token_user = a;
    generate.progress = step;
    generate.progress_user = a;
    if (!status) status = qvl_generate(a->generator, prompt, &generate, answer, error);
    cli_progress_clear(&a->progress);
    if (a->thinking) end_thoughts(a);
    if (a->line_open) putchar('\n');
    if (status == QVL_ERROR_CANCELLED) answer->finish = QVL_FINISH_CANCELLED; /* while pictures were encoded */
    return status == QVL_ERROR_CANCELLED ? QVL_OK : status;
}

/* ---- numbers */

static double rate(int64_t count, double seconds) {
    return count > 0 && seconds > 0.0 ? (double)count / seconds : 0.0;
}

void cli_note_answer(const cli_answerer *a, const qvl_answer *answer) {
    static const char *const differences[] = {"", " up to another token", " up to another picture"};
    static const char *const ends[] = {"", "", ", ended by the limit of its length", ", interrupted"};
    if (a->options->quiet) return;
    fflush(stdout);
    if (!answer->prompt_tokens) {
        fputs("note: interrupted before the prompt was read\n", stderr);
        return;
    }
    int64_t read = answer->prompt_tokens - answer->reused_tokens;
    fprintf(stderr, "note: prompt of %lld tokens, %lld reused%s, %lld read in %.2f s (%.0f/s)",
            (long long)answer->prompt_tokens, (long long)answer->reused_tokens, differences[answer->difference],
            (long long)read, answer->prefill_seconds, rate(read, answer->prefill_seconds));
    if (answer->count)
        fprintf(stderr, "; first token after %.2f s; %lld tokens at %.1f/s",
                a->prompt_seconds + answer->first_token_seconds, (long long)answer->count,
                rate(answer->count - 1, answer->decode_seconds));
    if (a->generate.sampling.do_sample)
        fprintf(stderr, "; seed %llu", (unsigned long long)a->generate.sampling.seed);
    fprintf(stderr, "%s\n", ends[answer->finish]);
}

void cli_note_media(const cli_answerer *a, const qvl_prompt *prompt) {
    if (a->options->quiet || !prompt->item_count) return;
    fflush(stdout);
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *p = &prompt->items[i];
        qvl_origin origin = p->item.origin;
        int64_t found = origin.memory + origin.disk;
        char name[301];
        snprintf(name, sizeof name, "%s", p->name);
        fprintf(stderr, "%s%s: %lld tokens, ", i ? "; " : "note: ", cli_printable(name),
                (long long)p->item.tokens);
        if (origin.encoded && found)
            fprintf(stderr, "%lld of %lld parts found in the cache", (long long)found,
                    (long long)(found + origin.encoded));
        else
            fputs(found ? "found in the cache" : "encoded", stderr);
    }
    fputc('\n', stderr);
}

static void add(cJSON *object, const char *key, double value) {
    cJSON_AddNumberToObject(object, key, value);
}

/* Of each picture and clip of the prompt: what it takes of it, and whether a cache had it. */
static void json_media(cJSON *usage, const cli_options *options, const qvl_prompt *prompt) {
    cJSON *media = cJSON_AddArrayToObject(usage, "media");
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *p = &prompt->items[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "input", p->name);
        add(entry, "tokens", (double)p->item.tokens);
        cli_json_cached(entry, options, &p->item);
        cJSON_AddItemToArray(media, entry);
    }
}

static void json_usage(cJSON *object, const cli_options *options, const qvl_prompt *prompt,
                       const qvl_answer *answer) {
    cJSON *usage = cJSON_AddObjectToObject(object, "usage");
    add(usage, "prompt_tokens", (double)answer->prompt_tokens);
    add(usage, "completion_tokens", (double)answer->count);
    add(usage, "total_tokens", (double)(answer->prompt_tokens + answer->count));
    cJSON *details = cJSON_AddObjectToObject(usage, "prompt_tokens_details");
    add(details, "cached_tokens", (double)answer->reused_tokens);
    cJSON_AddStringToObject(details, "difference", qvl_difference_name(answer->difference));
    add(details, "vision_tokens", (double)prompt->vision_tokens);
    json_media(usage, options, prompt);
}

/* Groups of pictures and clips: how many the tower ran on, and how many a cache had. */
static void json_tower(cJSON *object, const qvl_prompt *prompt) {
    cJSON *tower = cJSON_AddObjectToObject(object, "tower");
    int64_t encoded = 0, cached = 0;
    for (size_t i = 0; i < prompt->item_count; i++) {
        qvl_origin origin = prompt->items[i].item.origin;
        encoded += origin.encoded;
        cached += origin.memory + origin.disk;
    }
    add(tower, "encoded", (double)encoded);
    add(tower, "cached", (double)cached);
}

static void json_timings(cJSON *object, const cli_answerer *a, const qvl_answer *answer) {
    cJSON *timings = cJSON_AddObjectToObject(object, "timings");
    add(timings, "open_seconds", a->open_seconds);
    add(timings, "prompt_seconds", a->prompt_seconds);
    add(timings, "prefill_seconds", answer->prefill_seconds);
    add(timings, "first_token_seconds", a->prompt_seconds + answer->first_token_seconds);
    add(timings, "decode_seconds", answer->decode_seconds);
    add(timings, "prefill_tokens_per_second",
        rate(answer->prompt_tokens - answer->reused_tokens, answer->prefill_seconds));
    add(timings, "tokens_per_second", rate(answer->count - 1, answer->decode_seconds));
}

static void json_sampling(cJSON *object, const qvl_sampling *s) {
    cJSON *sampling = cJSON_AddObjectToObject(object, "sampling");
    cJSON_AddBoolToObject(sampling, "do_sample", s->do_sample);
    add(sampling, "temperature", s->temperature);
    add(sampling, "top_k", s->top_k);
    add(sampling, "top_p", s->top_p);
    add(sampling, "min_p", s->min_p);
    add(sampling, "repetition_penalty", s->repetition_penalty);
    add(sampling, "presence_penalty", s->presence_penalty);
    add(sampling, "seed", (double)s->seed);
}

/* The bytes of a token are not always text: the parts of a character come as they are in OpenAI's "bytes". */
static cJSON *json_logprob(const cli_answerer *a, int32_t id, float logprob) {
    cJSON *entry = cJSON_CreateObject();
    qvl_text text = {0};
    qvl_token token;
    add(entry, "id", id);
    if (!qvl_detokenize(qvl_prompter_tokenizer(a->prompter), &id, 1, false, &text, NULL))
        cJSON_AddStringToObject(entry, "token", text.bytes);
    qvl_text_free(&text);
    cJSON *bytes = cJSON_AddArrayToObject(entry, "bytes");
    if (qvl_token_get(qvl_prompter_tokenizer(a->prompter), id, &token))
        for (size_t i = 0; i < token.byte_count; i++)
            cJSON_AddItemToArray(bytes, cJSON_CreateNumber((unsigned char)token.bytes[i]));
    add(entry, "logprob", (double)logprob);
    return entry;
}

static void json_logprobs(cJSON *object, const cli_answerer *a, const qvl_answer *answer) {
    cJSON *list = cJSON_AddArrayToObject(object, "logprobs");
    for (int64_t i = 0; i < answer->count; i++) {
        cJSON *entry = json_logprob(a, answer->ids[i], answer->logprobs[i]);
        cJSON *top = cJSON_AddArrayToObject(entry, "top_logprobs");
        for (int32_t k = 0; k < answer->top_count; k++) {
            qvl_logprob one = answer->top[i * answer->top_count + k];
            if (one.id >= 0) cJSON_AddItemToArray(top, json_logprob(a, one.id, one.logprob));
        }
        cJSON_AddItemToArray(list, entry);
    }
}

cJSON *cli_json_answer(const cli_answerer *a, const qvl_prompt *prompt, const qvl_answer *answer) {
    const qvl_model_info *info = qvl_model_get_info(a->model);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "model", info->folder);
    cJSON_AddStringToObject(object, "model_type", info->model_type);
    cJSON_AddStringToObject(object, "text", answer->text ? answer->text : "");
    if (answer->reasoning) cJSON_AddStringToObject(object, "reasoning_content", answer->reasoning);
    cJSON *ids = cJSON_AddArrayToObject(object, "ids");
    for (int64_t i = 0; i < answer->count; i++) cJSON_AddItemToArray(ids, cJSON_CreateNumber(answer->ids[i]));
    cJSON_AddStringToObject(object, "finish_reason", qvl_finish_name(answer->finish));
    json_usage(object, a->options, prompt, answer);
    json_tower(object, prompt);
    json_timings(object, a, answer);
    json_sampling(object, &a->generate.sampling);
    if (answer->logprobs) json_logprobs(object, a, answer);
    return object;
}
