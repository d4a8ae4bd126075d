/* qvl ask: one answer, to a question about pictures or to a chat. */
#define _GNU_SOURCE
#include "answers.h"
#include "commands.h"
#include "interrupt.h"
#include "messages.h"
#include "open.h"
#include "output.h"
#include "prompts.h"
#include "show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What one run holds. */
typedef struct ask_run {
    cli_inputs inputs; /* the media */
    char *words;       /* the last input, where it is standard input */
    size_t word_count;
    const char *question; /* NULL: the last input is a chat */
    qvl_medium *media;
    cli_chat chat;
    cli_answerer answerer;
    qvl_prompt prompt;
    qvl_answer answer;
} ask_run;

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The last input is a chat, if it is the only one and looks like one; standard input counts as what it holds. */
static qvl_status read_last(const cli_options *options, ask_run *run, bool *chat, qvl_error *error) {
    const char *last = options->inputs[options->input_count - 1];
    bool standard = strcmp(last, "-") == 0;
    *chat = false;
    if (!standard && !is_file(last)) return QVL_OK;
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = last};
    if (standard) {
        qvl_status status = cli_read("-", &run->words, &run->word_count, error);
        if (status) return status;
        input = (qvl_input){.kind = QVL_INPUT_BYTES, .bytes = run->words, .byte_count = run->word_count};
    }
    *chat = options->input_count == 1 && cli_is_chat(&input);
    if (*chat && options->answering.system)
        return cli_fail(error, QVL_ERROR_ARGUMENT, "--system goes with a question; %s has messages of its own",
                        last);
    if (*chat && options->show)
        return cli_fail(error, QVL_ERROR_ARGUMENT, "--show goes with MEDIA and a question; %s is a conversation",
                        last);
    if (*chat || standard) return QVL_OK;
    return cli_fail(error, QVL_ERROR_ARGUMENT,
                    "the last argument is the question, but %s is a file: is the question missing?", last);
}

/* A newline at the end of what a pipe or the keyboard gave is not part of the question. */
static void trim_end(char *text, size_t *count) {
    while (*count && (text[*count - 1] == '\n' || text[*count - 1] == '\r')) text[--*count] = 0;
}

/* The files of the media and the question's text; the chat is made once the model is open. */
static qvl_status open_question(const cli_options *options, ask_run *run, qvl_error *error) {
    size_t count = options->input_count - 1;
    run->question = options->inputs[count];
    if (run->words) {
        trim_end(run->words, &run->word_count);
        if (strlen(run->words) != run->word_count)
            return cli_fail(error, QVL_ERROR_FORMAT, "the question from standard input has a NUL in it");
        run->question = run->words;
    }
    qvl_status status = count ? cli_inputs_open(options, count, &run->inputs, error) : QVL_OK;
    char *none = status ? NULL : strdup("[]");
    if (!status && !none) status = cli_no_memory(error);
    return status ? status : cli_chat_open(options, "-", none, strlen(none), &run->chat, error);
}

static qvl_status open_input(const cli_options *options, ask_run *run, qvl_error *error) {
    bool chat;
    qvl_status status = read_last(options, run, &chat, error);
    if (status) return status;
    if (!chat) return open_question(options, run, error);
    char *json = run->words;
    run->words = NULL; /* which the chat takes */
    return cli_chat_open(options, options->inputs[0], json, run->word_count, &run->chat, error);
}

/* What the media are, pictures or clips, their headers say. */
static qvl_status find_media(const cli_options *options, ask_run *run, qvl_error *error) {
    size_t count = run->inputs.count;
    qvl_plan plan;
    run->media = calloc(count + 1, sizeof *run->media);
    if (!run->media) return cli_no_memory(error);
    if (count == 0) return QVL_OK;
    qvl_status status =
        qvl_plan_inputs(run->answerer.model, run->inputs.list, count, &options->preprocess, &plan, error);
    if (status) return status;
    for (size_t i = 0; i < count; i++)
        run->media[i] = (qvl_medium){.kind = plan.items[i].item.clip ? QVL_MEDIUM_VIDEO : QVL_MEDIUM_IMAGE,
                                     .name = run->inputs.list[i].name,
                                     .input = &run->inputs.list[i]};
    cli_note_cost(options, &plan);
    qvl_plan_free(&plan);
    return QVL_OK;
}

static qvl_status make_chat(const cli_options *options, ask_run *run, qvl_error *error) {
    qvl_status status = find_media(options, run, error);
    if (status) return status;
    const char *system = options->answering.system;
    cJSON *messages = cJSON_CreateArray();
    bool good = messages && (!system || cli_add_message(messages, "system", system)) &&
                cli_add_question(messages, run->media, run->inputs.count, run->question);
    char *json = good ? cJSON_PrintUnformatted(messages) : NULL;
    cJSON_Delete(messages);
    if (!json) return cli_no_memory(error);
    free(run->chat.json);
    run->chat.json = json;
    run->chat.chat = (qvl_chat){.json = json,
                                .byte_count = strlen(json),
                                .name = "the question",
                                .media = run->media,
                                .media_count = run->inputs.count};
    return QVL_OK;
}

static qvl_status show_media(const cli_options *options, const ask_run *run, qvl_error *error) {
    qvl_status status = QVL_OK;
    for (size_t i = 0; i < run->inputs.count && !status; i++)
        status = cli_show(run->answerer.model, &run->inputs.list[i], run->media[i].kind == QVL_MEDIUM_VIDEO,
                          &options->preprocess, error);
    return status;
}

static qvl_status ask(const cli_options *options, ask_run *run, qvl_error *error) {
    qvl_status status = open_input(options, run, error);
    if (!status) status = cli_answerer_open(options, &run->chat.prompter, &run->answerer, error);
    if (!status && run->question) status = make_chat(options, run, error);
    if (!status && options->show) status = show_media(options, run, error);
    if (status) return status;
    if (!options->quiet) run->chat.options.log = cli_print_note;
    cli_interrupt_watch(false);
    return cli_answer(&run->answerer, &run->chat.chat, &run->chat.options, &run->prompt, &run->answer, error);
}

int cmd_ask(const cli_options *options) {
    qvl_error error = {0};
    ask_run run = {0};
    int code = CLI_DONE;
    if (ask(options, &run, &error)) {
        cli_progress_clear(&run.answerer.progress);
        code = cli_refuse(&error);
    } else {
        if (options->json) code = cli_print_json(cli_json_answer(&run.answerer, &run.prompt, &run.answer));
        cli_note_media(&run.answerer, &run.prompt);
        cli_note_answer(&run.answerer, &run.answer);
        if (run.answer.finish == QVL_FINISH_CANCELLED) code = CLI_REFUSED;
    }
    qvl_answer_free(&run.answer);
    qvl_prompt_free(&run.prompt);
    cli_answerer_close(&run.answerer);
    cli_chat_free(&run.chat);
    cli_inputs_free(&run.inputs);
    free(run.media);
    free(run.words);
    return code;
}
