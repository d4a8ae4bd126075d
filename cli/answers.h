/* What ask and chat share: the models, the settings of an answer, showing it as it comes, and its numbers. */
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include "options.h"
#include "progress.h"

#include <cjson/cJSON.h>

typedef struct cli_answerer {
    const cli_options *options;
    qvl_model *model;
    qvl_session *session;
    qvl_cache *cache; /* the session's; NULL: none */
    qvl_prompter *prompter;
    qvl_lm *lm;
    qvl_generator *generator;
    qvl_generate_options generate; /* the folder's settings under the flags' */
    cli_progress progress;
    double open_seconds;
    double start, prompt_seconds; /* of the last answer: when it began, what its prompt took */
    bool shown, line_open;        /* text of the answer went to stdout, and the last line has no end yet */
    bool thinking;                /* thoughts came, and no text of the answer yet */
} cli_answerer;

/* Opens everything but the generator. On failure cli_answerer_close is still due. */
qvl_status cli_answerer_open(const cli_options *options, const qvl_prompter_options *prompter, cli_answerer *a,
                             qvl_error *error);
/* The generator; max_length: entries of its sequence. */
qvl_status cli_answerer_start(cli_answerer *a, int64_t max_length, qvl_error *error);
/* Accepts a zeroed struct. */
void cli_answerer_close(cli_answerer *a);

/* Plans, checks, builds and answers one chat. Ctrl-C ends the answer: finish is QVL_FINISH_CANCELLED. Text goes to
 * stdout as it comes, unless --json; thoughts before it as --thinking says. *prompt and *answer belong to the caller. */
qvl_status cli_answer(cli_answerer *a, const qvl_chat *chat, const qvl_prompt_options *options, qvl_prompt *prompt,
                      qvl_answer *answer, qvl_error *error);

/* A note on stderr, unless --quiet: of each picture and clip, whether a cache had it. */
void cli_note_media(const cli_answerer *a, const qvl_prompt *prompt);
/* A note on stderr, unless --quiet: tokens, times, what was reused, and why the answer ended, if not by itself. */
void cli_note_answer(const cli_answerer *a, const qvl_answer *answer);
/* The answer as an object: text, ids, finish_reason, usage, timings, sampling, logprobs. Owner: the caller. */
cJSON *cli_json_answer(const cli_answerer *a, const qvl_prompt *prompt, const qvl_answer *answer);

#endif
