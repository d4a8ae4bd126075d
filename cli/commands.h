/* One file per command. Each prints its results and returns an exit code. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

int cmd_info(const cli_options *options);
int cmd_plan(const cli_options *options);
int cmd_preprocess(const cli_options *options);
int cmd_encode(const cli_options *options);
int cmd_prompt(const cli_options *options);
int cmd_ask(const cli_options *options);
int cmd_chat(const cli_options *options);
int cmd_tokenize(const cli_options *options);
int cmd_detokenize(const cli_options *options);
int cmd_box(const cli_options *options);
int cmd_check(const cli_options *options);
int cmd_bench(const cli_options *options);
int cmd_cache(const cli_options *options);

/* qvl encode of one folder, in cmd_encode_folder.c. */
int cli_encode_folder(const cli_options *options);

#endif
