#define _GNU_SOURCE
#include "prompts.h"

#include "cache.h"
#include "clips.h"
#include "open.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the chat */

/* Where relative names of pictures are looked for: beside the chat. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return NULL;
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The present time as a clock on the wall shows it, for templates that ask. */
static int64_t local_time(void) {
    time_t now = time(NULL);
    struct tm local;
    return localtime_r(&now, &local) ? (int64_t)timegm(&local) : (int64_t)now;
}

/* The library takes these texts up to a NUL, which is not to cut them short in silence. */
static qvl_status read_text(const char *path, char **text, qvl_error *error) {
    size_t count;
    qvl_status status = cli_read(path, text, &count, error);
    if (status || strlen(*text) == count) return status;
    return cli_fail(error, QVL_ERROR_FORMAT, "%s: byte %zu is NUL", path, strlen(*text));
}

qvl_status cli_chat_open(const cli_options *options, const char *path, char *json, size_t count, cli_chat *c,
                         qvl_error *error) {
    bool standard = strcmp(path, "-") == 0;
    *c = (cli_chat){.json = json, .options = options->prompt};
    qvl_status status = json ? QVL_OK : cli_read(path, &c->json, &count, error);
    if (!status && options->tools) status = read_text(options->tools, &c->tools, error);
    if (!status && options->template_file) status = read_text(options->template_file, &c->template_text, error);
    if (status) {
        cli_chat_free(c);
        return status;
    }
    if (!standard) c->folder = folder_of(path);
    c->chat = (qvl_chat){
        .json = c->json, .byte_count = count, .name = standard ? "standard input" : path, .folder = c->folder};
    c->options.preprocess = options->preprocess;
    c->options.time = local_time();
    c->options.tools_json = c->tools;
    qvl_prompter_options_init(&c->prompter);
    c->prompter.template_text = c->template_text;
    c->prompter.template_source = options->template_file;
    return QVL_OK;
}

void cli_chat_free(cli_chat *c) {
    free(c->json);
    free(c->tools);
    free(c->template_text);
    free(c->folder);
    *c = (cli_chat){0};
}

bool cli_is_chat(const qvl_input *input) {
    char start[256] = {0};
    size_t count = 0;
    if (input->kind == QVL_INPUT_BYTES) {
        count = input->byte_count < sizeof start ? input->byte_count : sizeof start;
        memcpy(start, input->bytes, count);
    } else {
        FILE *file = fopen(input->name, "rb");
        if (!file) return false;
        count = fread(start, 1, sizeof start, file);
        fclose(file);
    }
    size_t at = 0;
    while (at < count && start[at] && strchr(" \t\r\n", start[at])) at++;
    return at < count && (start[at] == '{' || start[at] == '[');
}

/* ---- the text */

bool cli_colours(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && !(terminal && strcmp(terminal, "dumb") == 0);
}

void cli_print_text(const char *text, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)text[i];
        bool c1 = c == 0xc2 && i + 1 < count && (unsigned char)text[i + 1] < 0xa0; /* U+0080 to U+009F */
        if ((c < 32 && c != '\n' && c != '\t') || c == 127)
            printf("\\x%02x", c);
        else if (c1)
            printf("\\x%02x", (unsigned char)text[++i]);
        else
            putchar(c);
    }
}

static const struct {
    const char *name, *colour;
} span_kinds[] = {
    [QVL_SPAN_TEXT] = {"text", ""},           [QVL_SPAN_SPECIAL] = {"special", "\033[34m"},
    [QVL_SPAN_ADDED] = {"added", "\033[36m"}, [QVL_SPAN_IMAGE] = {"image", "\033[35m"},
    [QVL_SPAN_VIDEO] = {"video", "\033[35m"}, [QVL_SPAN_DEFUSED] = {"defused", "\033[33;4m"},
};

static void print_span(const qvl_prompt *prompt, const qvl_prompt_span *span, bool colours) {
    bool pad = span->kind == QVL_SPAN_IMAGE || span->kind == QVL_SPAN_VIDEO,
         defused = span->kind == QVL_SPAN_DEFUSED;
    if (colours) fputs(span_kinds[span->kind].colour, stdout);
    if (defused && !colours) fputs("[text:", stdout);
    cli_print_text(prompt->text + span->start, span->end - span->start);
    if (defused && !colours) putchar(']');
    if (pad) printf(" x %lld", (long long)span->tokens);
    if (colours && *span_kinds[span->kind].colour) fputs("\033[0m", stdout);
}

static const char *layout_name(const cli_options *options) {
    return options->prompt.video_layout == QVL_VIDEO_BARE ? "bare" : "wrapped";
}

static void print_items(const cli_options *options, const qvl_prompt *prompt) {
    for (size_t i = 0; i < prompt->item_count; i++) {
        const qvl_prompt_item *p = &prompt->items[i];
        const qvl_item *item = &p->item;
        char name[1024];
        snprintf(name, sizeof name, "%s", p->name);
        printf("%s: ", cli_printable(name));
        if (item->width)
            printf("%lldx%lld -> %lldx%lld, ", (long long)item->source_width, (long long)item->source_height,
                   (long long)item->width, (long long)item->height);
        printf("grid %lldx%lldx%lld, %lld tokens, entries %lld to %lld", (long long)item->grid.t,
               (long long)item->grid.h, (long long)item->grid.w, (long long)item->tokens,
               (long long)p->first.index, (long long)p->last.index);
        const char *cached = cli_cache_word(options, item);
        if (cached) printf(", cache %s", cached);
        putchar('\n');
        cli_print_clip(item);
    }
}

void cli_print_prompt(const cli_options *options, const qvl_prompt *prompt) {
    bool colours = cli_colours(), video = false;
    for (size_t i = 0; i < prompt->span_count; i++) print_span(prompt, &prompt->spans[i], colours);
    if (prompt->text_length && prompt->text[prompt->text_length - 1] != '\n') putchar('\n');
    puts("----");
    print_items(options, prompt);
    if (prompt->item_count) cli_print_policies(options);
    for (size_t i = 0; i < prompt->item_count; i++) video |= prompt->items[i].kind == QVL_MEDIUM_VIDEO;
    printf("%lld tokens: %lld text, %lld vision\n", (long long)prompt->length,
           (long long)(prompt->length - prompt->vision_tokens), (long long)prompt->vision_tokens);
    printf("positions end at %lld: rope_delta %lld\n", (long long)(prompt->length + prompt->rope_delta - 1),
           (long long)prompt->rope_delta);
    if (video) printf("videos are %s\n", layout_name(options));
}

/* ---- JSON */

static cJSON *json_item(const cli_options *options, const qvl_prompt_item *p) {
    const qvl_item *item = &p->item;
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "kind", p->kind == QVL_MEDIUM_VIDEO ? "video" : "image");
    cJSON_AddStringToObject(entry, "input", p->name);
    cJSON_AddNumberToObject(entry, "message", (double)(p->message + 1));
    cJSON_AddNumberToObject(entry, "part", (double)(p->part + 1));
    cli_json_ints(entry, "source_size", (int64_t[]){item->source_width, item->source_height}, 2);
    cli_json_ints(entry, "size", (int64_t[]){item->width, item->height}, 2);
    cli_json_ints(entry, "grid_thw", (int64_t[]){item->grid.t, item->grid.h, item->grid.w}, 3);
    cJSON_AddNumberToObject(entry, "tokens", (double)item->tokens);
    cli_json_ints(entry, "entries", (int64_t[]){p->first.index, p->last.index}, 2);
    cli_json_clip(entry, item);
    if (*p->key) cJSON_AddStringToObject(entry, "key", p->key);
    cli_json_cached(entry, options, item);
    return entry;
}

static cJSON *json_span(const qvl_prompt_span *span) {
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "kind", span_kinds[span->kind].name);
    cli_json_ints(entry, "bytes", (int64_t[]){(int64_t)span->start, (int64_t)span->end}, 2);
    cJSON_AddNumberToObject(entry, "tokens", (double)span->tokens);
    return entry;
}

void cli_json_prompt(cJSON *object, const cli_options *options, const qvl_model_info *info,
                     const qvl_prompt *prompt) {
    cJSON_AddStringToObject(object, "model", info->folder);
    cJSON_AddStringToObject(object, "model_type", info->model_type);
    cJSON_AddStringToObject(object, "preset", qvl_preset_name(options->preprocess.preset));
    cli_json_policies(object, options);
    cJSON_AddStringToObject(object, "video_layout", layout_name(options));
    cJSON_AddBoolToObject(object, "trust_text", options->prompt.trust_text);
    cJSON_AddNumberToObject(object, "tokens", (double)prompt->length);
    cJSON_AddNumberToObject(object, "text_tokens", (double)(prompt->length - prompt->vision_tokens));
    cJSON_AddNumberToObject(object, "vision_tokens", (double)prompt->vision_tokens);
    cJSON_AddNumberToObject(object, "rope_delta", (double)prompt->rope_delta);
    cJSON_AddNumberToObject(object, "media_length", (double)prompt->media_length);
    cJSON *items = cJSON_AddArrayToObject(object, "items");
    for (size_t i = 0; i < prompt->item_count; i++)
        cJSON_AddItemToArray(items, json_item(options, &prompt->items[i]));
    cJSON_AddStringToObject(object, "text", prompt->text);
    cJSON *spans = cJSON_AddArrayToObject(object, "spans");
    for (size_t i = 0; i < prompt->span_count; i++) cJSON_AddItemToArray(spans, json_span(&prompt->spans[i]));
    cli_json_ints(object, "input_ids", prompt->input_ids, (int)prompt->length);
}

/* ---- qvl plan CHAT */

int cli_plan_chat(const cli_options *options, const qvl_input *input) {
    qvl_error error = {0};
    qvl_model *model = NULL;
    qvl_prompter *prompter = NULL;
    qvl_prompt prompt = {0};
    cli_chat chat = {0};
    char *json = NULL;
    if (input->kind == QVL_INPUT_BYTES) {
        json = malloc(input->byte_count + 1);
        if (!json) return cli_refuse(&(qvl_error){.message = "not enough memory"});
        memcpy(json, input->bytes, input->byte_count);
        json[input->byte_count] = 0;
    }
    bool good = !cli_chat_open(options, options->inputs[0], json, input->byte_count, &chat, &error) &&
                !cli_open_model(options, QVL_OPEN_CONFIG, &model, &error) &&
                !qvl_prompter_open(model, &chat.prompter, &prompter, &error);
    if (good && !options->quiet) chat.options.log = cli_print_note;
    good = good && !qvl_prompt_plan(prompter, &chat.chat, &chat.options, &prompt, &error);
    int code = CLI_REFUSED;
    if (!good) {
        cli_refuse(&error);
    } else if (options->json) {
        cJSON *object = cJSON_CreateObject();
        cli_json_prompt(object, options, qvl_model_get_info(model), &prompt);
        code = cli_print_json(object);
    } else {
        cli_print_prompt(options, &prompt);
        code = CLI_DONE;
    }
    qvl_prompt_free(&prompt);
    qvl_prompter_close(&prompter);
    qvl_model_close(&model);
    cli_chat_free(&chat);
    return code;
}
