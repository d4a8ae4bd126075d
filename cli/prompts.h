/* What prompt and plan share: a chat from a file, and what is shown of a prompt. */
#ifndef CLI_PROMPTS_H
#define CLI_PROMPTS_H

#include "options.h"

#include <cjson/cJSON.h>

/* A chat file and the options' files, in memory. */
typedef struct cli_chat {
    char *json, *tools, *template_text, *folder;
    qvl_chat chat;
    qvl_prompt_options options;
    qvl_prompter_options prompter;
} cli_chat;

/* json: what the file (standard input) holds, or NULL to read it here; taken. On failure there is nothing to
 * free. */
qvl_status cli_chat_open(const cli_options *options, const char *path, char *json, size_t count, cli_chat *chat,
                         qvl_error *error);
/* Accepts a zeroed struct. */
void cli_chat_free(cli_chat *chat);

/* Does the input begin as JSON does, which no picture does? */
bool cli_is_chat(const qvl_input *input);

/* The text with its tokens told apart, in colours on a terminal; then numbers. */
void cli_print_prompt(const cli_options *options, const qvl_prompt *prompt);
void cli_json_prompt(cJSON *object, const cli_options *options, const qvl_model_info *info,
                     const qvl_prompt *prompt);

/* The dry run of qvl prompt: what qvl plan does with a chat. An exit code. */
int cli_plan_chat(const cli_options *options, const qvl_input *input);

/* Text that comes from elsewhere, on stdout: control characters but tab and newline as \xNN. */
void cli_print_text(const char *text, size_t count);
/* Are colours wanted on stdout? */
bool cli_colours(void);

#endif
