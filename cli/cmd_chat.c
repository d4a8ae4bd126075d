/* qvl chat: questions and answers, line by line, about pictures that are encoded once. */
#define _GNU_SOURCE
#include "commands.h"
#include "interrupt.h"
#include "lines.h"
#include "open.h"
#include "output.h"
#include "prompts.h"
#include "show.h"
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CONTEXT = 32768 };

/* What one run holds. */
typedef struct chat_run {
    const cli_options *options;
    cli_chat files; /* the options' files, and the form that a turn's chat takes */
    cli_answerer answerer;
    cli_talk talk;
    cli_lines *lines;
    bool failed; /* something was refused */
    bool quit;
} chat_run;

static void note(const chat_run *run, const char *text) {
    if (!run->options->quiet) fprintf(stderr, "note: %s\n", text);
}

static void refuse(chat_run *run, const qvl_error *error) {
    cli_refuse(error);
    run->failed = true;
}

/* ---- one turn */

static void show_answer(chat_run *run, const qvl_prompt *prompt, const qvl_answer *answer) {
    if (run->options->json) {
        cJSON *object = cli_json_answer(&run->answerer, prompt, answer);
        char *line = cJSON_PrintUnformatted(object);
        if (line) puts(line);
        cJSON_free(line);
        cJSON_Delete(object);
        fflush(stdout);
    }
    cli_note_answer(&run->answerer, answer);
}

/* An answer that was cut off stays as far as it went; a question without any is taken back. */
static qvl_status keep_answer(chat_run *run, const qvl_answer *answer, qvl_error *error) {
    if (answer->text_length || answer->finish != QVL_FINISH_CANCELLED)
        return cli_talk_answer(&run->talk, answer, error);
    cli_talk_take_back(&run->talk);
    note(run, "nothing was said yet: the question is taken back, its pictures wait for the next one");
    return QVL_OK;
}

static void take_turn(chat_run *run, const char *question) {
    qvl_error error = {0};
    qvl_prompt prompt = {0};
    qvl_answer answer = {0};
    qvl_status status = cli_talk_ask(&run->talk, question, &error);
    if (status) {
        refuse(run, &error);
        return;
    }
    qvl_chat chat = run->files.chat;
    char *json = cJSON_PrintUnformatted(run->talk.messages);
    chat.json = json;
    chat.byte_count = json ? strlen(json) : 0;
    chat.name = "the conversation";
    chat.media = run->talk.media;
    chat.media_count = run->talk.count;
    status = json ? cli_answer(&run->answerer, &chat, &run->files.options, &prompt, &answer, &error)
                  : cli_no_memory(&error);
    if (status) {
        cli_talk_take_back(&run->talk);
        refuse(run, &error);
        if (status == QVL_ERROR_LIMIT) note(run, "the question is taken back; /reset makes room");
    } else {
        show_answer(run, &prompt, &answer);
        if (keep_answer(run, &answer, &error)) refuse(run, &error);
        run->answerer.generate.sampling.seed++; /* the next answer is another draw */
    }
    cJSON_free(json);
    qvl_answer_free(&answer);
    qvl_prompt_free(&prompt);
}

/* ---- commands */

static void show(chat_run *run, const char *path, bool clip) {
    qvl_error error = {0};
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    char text[sizeof error.message + 16];
    if (run->options->quiet) return;
    if (!cli_show(run->answerer.model, &input, clip, &run->options->preprocess, &error)) return;
    snprintf(text, sizeof text, "not drawn: %s", error.message); /* it goes with the question all the same */
    note(run, text);
}

static void attach(chat_run *run, const char *path) {
    qvl_error error = {0};
    double start = cli_seconds();
    qvl_status status = cli_talk_attach(&run->talk, &run->answerer, path, &error);
    if (status == QVL_ERROR_CANCELLED) {
        note(run, "interrupted");
        return;
    }
    if (status) {
        refuse(run, &error);
        return;
    }
    const qvl_item *item = &run->talk.owned[run->talk.count - 1].features.items[0];
    show(run, path, item->clip != NULL);
    const char *how = item->origin.encoded ? "encoded" : "found in the cache";
    char frames[48] = "", text[512];
    if (item->clip) snprintf(frames, sizeof frames, "%lld frames of ", (long long)item->clip->frame_count);
    snprintf(text, sizeof text, "%.300s: %s%lldx%lld, %lld tokens, %s in %.2f s; it goes with the next question",
             path, frames, (long long)item->width, (long long)item->height, (long long)item->tokens, how,
             cli_seconds() - start);
    note(run, text);
}

static void save(chat_run *run, const char *path) {
    qvl_error error = {0};
    char text[512];
    if (cli_talk_save(&run->talk, path, &error)) {
        refuse(run, &error);
        return;
    }
    snprintf(text, sizeof text, "saved to %.400s", path);
    note(run, text);
}

static void reset(chat_run *run, const char *nothing) {
    qvl_error error = {0};
    (void)nothing;
    cli_talk_free(&run->talk);
    if (cli_talk_open(run->options->answering.system, &run->talk, &error)) {
        refuse(run, &error);
        run->quit = true;
        return;
    }
    note(run, "everything said and every picture is forgotten");
}

static void quit(chat_run *run, const char *nothing) {
    (void)nothing;
    run->quit = true;
}

static void help(chat_run *run, const char *nothing);

static const struct {
    const char *name, *argument, *does;
    void (*run)(chat_run *run, const char *argument);
} commands[] = {
    {"/image", "FILE", "a picture for the next question", attach},
    {"/video", "FILE", "a clip for it; the file's content decides, not the command", attach},
    {"/save", "FILE", "write the conversation as a chat file, which qvl ask and qvl prompt read", save},
    {"/reset", NULL, "forget everything but the system message", reset},
    {"/help", NULL, "this list", help},
    {"/quit", NULL, "end, as Ctrl-D does", quit},
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void help(chat_run *run, const char *nothing) {
    (void)run, (void)nothing;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char left[32];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].argument ? commands[i].argument : "");
        fprintf(stderr, "  %-16s %s\n", left, commands[i].does);
    }
    fputs("  //TEXT           a question that begins with a slash\n"
          "  Ctrl-C           stops an answer, or drops the line\n",
          stderr);
}

/* White space round a file's name, and quotes that a terminal puts there when a file is dropped on it. */
static char *trimmed(const char *text) {
    size_t count;
    text += strspn(text, " \t");
    count = strlen(text);
    while (count && strchr(" \t\r", text[count - 1])) count--;
    if (count > 1 && (text[0] == '\'' || text[0] == '"') && text[count - 1] == text[0]) {
        text++;
        count -= 2;
    }
    return strndup(text, count);
}

static void unknown(chat_run *run, const char *name) {
    const char *names[COMMAND_COUNT + 1] = {NULL};
    qvl_error error = {0};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    const char *nearest = cli_nearest(name, names);
    cli_fail(&error, QVL_ERROR_ARGUMENT, "unknown command %s%s%s; /help lists them", name,
             nearest ? "; did you mean " : "", nearest ? nearest : "");
    refuse(run, &error);
}

static void run_command(chat_run *run, const char *line) {
    char name[32];
    qvl_error error = {0};
    size_t length = strcspn(line, " \t\r");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), line);
    char *argument = trimmed(line + length);
    size_t i = 0;
    while (i < COMMAND_COUNT && strcmp(commands[i].name, name) != 0) i++;
    if (!argument) {
        cli_no_memory(&error);
    } else if (i == COMMAND_COUNT) {
        unknown(run, name);
    } else if (commands[i].argument && !*argument) {
        cli_fail(&error, QVL_ERROR_ARGUMENT, "%s needs a %s", name, commands[i].argument);
    } else if (!commands[i].argument && *argument) {
        cli_fail(&error, QVL_ERROR_ARGUMENT, "%s takes nothing behind it", name);
    } else {
        commands[i].run(run, argument);
    }
    if (error.status) refuse(run, &error);
    free(argument);
}

/* ---- the loop */

static void take_line(chat_run *run, const char *line, size_t count) {
    qvl_error error = {0};
    if (line[strspn(line, " \t\r")] == 0 && strlen(line) == count) return;
    if (strlen(line) != count) {
        cli_fail(&error, QVL_ERROR_FORMAT, "the line has a NUL in it");
        refuse(run, &error);
    } else if (line[0] == '/' && line[1] != '/') {
        run_command(run, line);
    } else {
        take_turn(run, line + (line[0] == '/'));
    }
}

static void loop(chat_run *run) {
    const char *line;
    size_t count;
    while (!run->quit) {
        cli_line got = cli_lines_next(run->lines, &line, &count);
        if (got == CLI_LINE_END) break;
        if (got == CLI_LINE_DROPPED) continue;
        take_line(run, line, count);
        cli_interrupt_forget(); /* it was for what the line began */
    }
    if (!run->quit && cli_lines_typed(run->lines)) fputc('\n', stderr);
}

static qvl_status open_run(chat_run *run, qvl_error *error) {
    const cli_options *options = run->options;
    char *empty = strdup("[]");
    if (!empty) return cli_no_memory(error);
    qvl_status status = cli_chat_open(options, "-", empty, 2, &run->files, error);
    if (!status) status = cli_talk_open(options->answering.system, &run->talk, error);
    if (!status) status = cli_answerer_open(options, &run->files.prompter, &run->answerer, error);
    if (status) return status;
    int64_t context = options->answering.context, most = qvl_lm_get_info(run->answerer.lm)->max_positions;
    if (!context) context = most < DEFAULT_CONTEXT ? most : DEFAULT_CONTEXT;
    status = cli_answerer_start(&run->answerer, context, error);
    if (!options->quiet) run->files.options.log = cli_print_note;
    if (!status && !(run->lines = cli_lines_open("> "))) status = cli_no_memory(error);
    return status;
}

/* On a terminal only. The demo model is there for a first visit: a question that it can answer helps. */
static void greet(const chat_run *run) {
    char example[4096], text[sizeof example + 32];
    note(run, "/help lists the commands");
    if (run->options->model) return;
    if (run->options->input_count) {
        note(run, "try: What do you see? Or, of a clip: Where does it go?");
    } else if (cli_find_example(example, sizeof example)) {
        note(run, "try: What can you do?");
        snprintf(text, sizeof text, "then: /image %s", example);
        note(run, text);
        note(run, "and: What do you see?");
    }
}

int cmd_chat(const cli_options *options) {
    qvl_error error = {0};
    chat_run run = {.options = options};
    if (open_run(&run, &error)) {
        cli_progress_clear(&run.answerer.progress);
        refuse(&run, &error);
    } else {
        bool typed = cli_lines_typed(run.lines);
        if (typed) cli_interrupt_watch(true);
        if (typed) greet(&run);
        for (size_t i = 0; i < options->input_count; i++) attach(&run, options->inputs[i]);
        if (!run.failed) loop(&run);
        if (typed) run.failed = false; /* the person saw it */
    }
    cli_lines_close(run.lines);
    cli_talk_free(&run.talk);
    cli_answerer_close(&run.answerer);
    cli_chat_free(&run.files);
    return run.failed ? CLI_REFUSED : CLI_DONE;
}
