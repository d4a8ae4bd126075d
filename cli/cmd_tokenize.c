/* qvl tokenize, qvl detokenize: text to ids and back. */
#define _GNU_SOURCE
#include "commands.h"
#include "open.h"
#include "output.h"
#include "prompts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What both commands start with: a tokenizer and the text of --text or of the INPUT. */
typedef struct words_run {
    qvl_tokenizer *tokenizer;
    char *text;
    size_t count;
} words_run;

static qvl_status open_words(const cli_options *options, words_run *run, qvl_error *error) {
    char demo[4096];
    const char *folder;
    if (options->text) {
        run->text = strdup(options->text);
        run->count = strlen(options->text);
        if (!run->text) return cli_no_memory(error);
    } else {
        qvl_status status = cli_read(options->inputs[0], &run->text, &run->count, error);
        if (status) return status;
    }
    qvl_status status = cli_choose_model(options, "'s tokenizer", demo, sizeof demo, &folder, error);
    if (status) return status;
    return qvl_tokenizer_open(folder, options->quiet ? NULL : cli_print_note, NULL, &run->tokenizer, error);
}

static void close_words(words_run *run) {
    qvl_tokenizer_close(&run->tokenizer);
    free(run->text);
}

/* ---- tokenize */

static int json_tokens(const words_run *run, const qvl_tokens *tokens) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "count", (double)tokens->count);
    cJSON *list = cJSON_AddArrayToObject(object, "tokens");
    for (size_t i = 0; i < tokens->count; i++) {
        qvl_token token = {0};
        qvl_token_get(run->tokenizer, tokens->ids[i], &token);
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddNumberToObject(entry, "id", tokens->ids[i]);
        cli_json_ints(entry, "bytes", (int64_t[]){(int64_t)tokens->starts[i], (int64_t)tokens->starts[i + 1]}, 2);
        cJSON_AddBoolToObject(entry, "added", token.added);
        cJSON_AddBoolToObject(entry, "special", token.special);
        cJSON_AddItemToArray(list, entry);
    }
    return cli_print_json(object);
}

/* On a terminal the text too, neighbours told apart by colour; tokens that share a character have one. */
static int print_tokens(const words_run *run, const qvl_tokens *tokens) {
    if (cli_colours()) {
        bool odd = false;
        for (size_t i = 0, end; i < tokens->count; i = end, odd = !odd) {
            for (end = i + 1; end < tokens->count && (run->text[tokens->starts[end]] & 0xc0) == 0x80;) end++;
            fputs(odd ? "\033[44m" : "\033[42m", stdout);
            cli_print_text(run->text + tokens->starts[i], tokens->starts[end] - tokens->starts[i]);
            fputs("\033[0m", stdout);
        }
        printf("\n%zu tokens\n", tokens->count);
    }
    for (size_t i = 0; i < tokens->count; i++) printf("%s%d", i ? " " : "", tokens->ids[i]);
    putchar('\n');
    return CLI_DONE;
}

int cmd_tokenize(const cli_options *options) {
    qvl_error error = {0};
    words_run run = {0};
    qvl_tokens tokens = {0};
    qvl_tokenize_options how;
    qvl_tokenize_options_init(&how);
    how.added = (qvl_added)options->added;
    bool good = !open_words(options, &run, &error) &&
                !qvl_tokenize(run.tokenizer, run.text, run.count, &how, &tokens, &error);
    int code = !good           ? cli_refuse(&error)
               : options->json ? json_tokens(&run, &tokens)
                               : print_tokens(&run, &tokens);
    qvl_tokens_free(&tokens);
    close_words(&run);
    return code;
}

/* ---- detokenize */

/* Numbers apart by white space, commas and brackets. *ids: free(). */
static qvl_status read_ids(const words_run *run, int32_t **ids, size_t *count, qvl_error *error) {
    static const char between[] = " \t\r\n,[]";
    *ids = malloc((run->count + 1) * sizeof **ids);
    *count = 0;
    if (!*ids) return cli_no_memory(error);
    const char *at = run->text + strspn(run->text, between);
    while (*at) {
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        if (end == at || errno || id < 0 || id > INT32_MAX || !strchr(between, *end))
            return cli_fail(error, QVL_ERROR_FORMAT, "'%.20s' at byte %zu is not a token id", at,
                            (size_t)(at - run->text));
        (*ids)[(*count)++] = (int32_t)id;
        at = end + strspn(end, between);
    }
    if (at < run->text + run->count)
        return cli_fail(error, QVL_ERROR_FORMAT, "byte %zu of the ids is NUL", (size_t)(at - run->text));
    return QVL_OK;
}

static int print_text(const cli_options *options, const qvl_text *text) {
    if (options->json) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "text", text->bytes);
        return cli_print_json(object);
    }
    fwrite(text->bytes, 1, text->byte_count, stdout);
    if (cli_colours()) putchar('\n');
    return CLI_DONE;
}

int cmd_detokenize(const cli_options *options) {
    qvl_error error = {0};
    words_run run = {0};
    int32_t *ids = NULL;
    size_t count = 0;
    qvl_text text = {0};
    bool good = !open_words(options, &run, &error) && !read_ids(&run, &ids, &count, &error) &&
                !qvl_detokenize(run.tokenizer, ids, count, options->skip_special, &text, &error);
    int code = good ? print_text(options, &text) : cli_refuse(&error);
    qvl_text_free(&text);
    free(ids);
    close_words(&run);
    return code;
}
