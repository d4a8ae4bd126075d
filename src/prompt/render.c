#define _GNU_SOURCE
#include "prompt/render.h"

#include "base/memory.h"
#include "prompt/dropped.h"

#include <string.h>

/* ---- white space */

size_t qvl_python_space(const char *text, size_t byte_count) {
    static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8",
                                       "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    if (byte_count == 0) return 0;
    unsigned char first = (unsigned char)text[0];
    if (first == ' ' || (first >= 9 && first <= 13) || (first >= 28 && first <= 31)) return 1;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        size_t size = strlen(wide[i]);
        if (size <= byte_count && memcmp(text, wide[i], size) == 0) return size;
    }
    bool spaces = byte_count >= 3 && memcmp(text, "\xe2\x80", 2) == 0 && (unsigned char)text[2] >= 0x80 &&
                  (unsigned char)text[2] <= 0x8a; /* U+2000 to U+200A */
    return spaces ? 3 : 0;
}

void qvl_python_strip(const char *text, size_t *start, size_t *end) {
    for (size_t size; (size = qvl_python_space(text + *start, *end - *start)); *start += size) {
    }
    while (*end > *start) {
        size_t last = *end - 1;
        while (last > *start && ((unsigned char)text[last] & 0xc0) == 0x80) last--;
        if (qvl_python_space(text + last, *end - last) != *end - last) break;
        *end = last;
    }
}

/* ---- arguments of tool calls */

/* OpenAI has arguments as JSON text; some templates need what it says. What is not JSON stays. */
static qvl_status parse_call(cJSON *call, size_t *parsed, qvl_error *error) {
    cJSON *function = cJSON_GetObjectItemCaseSensitive(call, "function"), *root;
    cJSON *owner = cJSON_IsObject(function) ? function : call;
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(owner, "arguments");
    if (!cJSON_IsString(arguments)) return QVL_OK;
    size_t length = strlen(arguments->valuestring);
    qvl_status status = qvl_template_json(arguments->valuestring, length, "arguments", &root, NULL);
    if (!status && !qvl_member_put(owner, "arguments", root)) status = QVL_ERROR_MEMORY;
    *parsed += !status;
    return status == QVL_ERROR_MEMORY ? qvl_fail_memory(error, "arguments of a tool call", length, 1) : QVL_OK;
}

static qvl_status parse_arguments(cJSON *messages, size_t *parsed, qvl_error *error) {
    qvl_status status = QVL_OK;
    *parsed = 0;
    for (cJSON *message = messages->child; message && !status; message = message->next) {
        cJSON *calls = cJSON_GetObjectItemCaseSensitive(message, "tool_calls");
        for (cJSON *call = calls ? calls->child : NULL; call && !status; call = call->next)
            status = parse_call(call, parsed, error);
    }
    return status;
}

/* ---- the last message left open, as transformers does it */

static const char tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";

/* The text that goes on: the content, or its last part with text. */
static cJSON *open_text(const cJSON *messages) {
    int count = cJSON_GetArraySize(messages);
    const cJSON *last = count ? cJSON_GetArrayItem(messages, count - 1) : NULL;
    cJSON *content = cJSON_GetObjectItemCaseSensitive(last, "content"), *found = NULL;
    if (cJSON_IsString(content)) return content;
    const cJSON *part;
    cJSON_ArrayForEach(part, content) {
        cJSON *text = cJSON_GetObjectItemCaseSensitive(part, "text");
        if (cJSON_IsString(text)) found = text;
    }
    return found;
}

static qvl_status tag_last(const qvl_conversation *c, qvl_error *error) {
    cJSON *text = open_text(c->messages);
    if (!text) return qvl_fail(error, QVL_ERROR_ARGUMENT, "the last message has no text that could be continued");
    size_t length = strlen(text->valuestring);
    char *tagged = cJSON_malloc(length + sizeof tag);
    if (!tagged) return qvl_fail_memory(error, "last message", length + sizeof tag, 1);
    memcpy(tagged, text->valuestring, length);
    memcpy(tagged + length, tag, sizeof tag);
    cJSON_free(text->valuestring);
    text->valuestring = tagged;
    return QVL_OK;
}

static qvl_status fail_continued(qvl_error *error) {
    return qvl_fail(error, QVL_ERROR_ARGUMENT,
                    "the template does not show the last message as it is, so it cannot be continued");
}

/* Everything from the last tag on goes; white space before it too, if the template trimmed the message. */
static qvl_status cut_at_tag(qvl_rendered *rendered, qvl_error *error) {
    size_t length = sizeof tag - 2, start = 0; /* without the space, which trimming would take */
    const char *at = NULL, *next = rendered->text, *stop = rendered->text + rendered->length;
    while ((next = memmem(next, (size_t)(stop - next), tag, length))) at = next++;
    if (!at) return fail_continued(error);
    rendered->length = (size_t)(at - rendered->text);
    if (at[length] != ' ') qvl_python_strip(rendered->text, &start, &rendered->length);
    rendered->text[rendered->length] = 0;
    return QVL_OK;
}

/* The last message as it was without the tag must be in the text. */
static qvl_status check_continued(const qvl_conversation *c, const qvl_text *plain, qvl_error *error) {
    const char *text = open_text(c->messages)->valuestring;
    size_t start = 0, end = strlen(text) - (sizeof tag - 1);
    qvl_python_strip(text, &start, &end);
    if (start == end || memmem(plain->bytes, plain->byte_count, text + start, end - start)) return QVL_OK;
    return fail_continued(error);
}

/* ---- rendering */

qvl_status qvl_renderer_init(qvl_renderer *renderer, const qvl_prompter *prompter,
                             const qvl_prompt_options *options, qvl_conversation *conversation, qvl_error *error) {
    const cJSON *tools = cJSON_GetObjectItemCaseSensitive(conversation->variables, "tools");
    *renderer = (qvl_renderer){.prompter = prompter, .options = options, .conversation = conversation};
    return qvl_prompter_template(prompter, cJSON_GetArraySize(tools) > 0, &renderer->template, error);
}

static qvl_status run(const qvl_renderer *renderer, const cJSON *variables, qvl_text *text, qvl_error *error) {
    const qvl_conversation *c = renderer->conversation;
    qvl_template_options options;
    qvl_template_options_init(&options);
    options.time = renderer->options->time;
    qvl_rendered rendered;
    *text = (qvl_text){0};
    qvl_status status = qvl_template_run(renderer->template, variables, &options, &rendered, error);
    if (!status && c->continue_final) status = cut_at_tag(&rendered, error);
    if (!status) {
        *text = (qvl_text){.bytes = rendered.text, .byte_count = rendered.length};
        rendered.text = NULL;
    }
    qvl_rendered_free(&rendered);
    return status;
}

qvl_status qvl_render_variant(const qvl_renderer *renderer, const cJSON *variables, qvl_text *text,
                              qvl_error *error) {
    *text = (qvl_text){0};
    if (!renderer->marked) return run(renderer, variables, text, error);
    cJSON *marked;
    bool any;
    qvl_status status = qvl_defuse(renderer->prompter->tokenizer, variables, renderer->prompter->specials,
                                   renderer->defusing, &marked, &any, error);
    if (!status) status = run(renderer, marked, text, error);
    cJSON_Delete(marked);
    return status;
}

/* The conversation as given; arguments of tool calls are parsed if the template does not take them as text. */
static qvl_status run_plain(const qvl_renderer *renderer, qvl_text *text, qvl_error *error) {
    qvl_conversation *c = renderer->conversation;
    qvl_error second = {0};
    size_t parsed;
    qvl_status status = run(renderer, c->variables, text, error);
    if (status != QVL_ERROR_ARGUMENT) return status;
    qvl_status parsing = parse_arguments(c->messages, &parsed, &second);
    if (!parsing && !parsed) return status;
    if (!parsing) parsing = run(renderer, c->variables, text, &second);
    if (parsing == QVL_ERROR_MEMORY) return qvl_fail(error, parsing, "%s", second.message);
    if (parsing) return status;
    qvl_prompt_note(renderer->options, "%s: arguments of tool calls are parsed, which the template needs",
                    c->name);
    return QVL_OK;
}

/* Renders with marks and compares. *same: without them it is the plain text. A template that fails only with
 * marks is not the same. */
static qvl_status run_marked(const qvl_renderer *renderer, const qvl_text *plain, qvl_text *text, bool *same,
                             qvl_error *error) {
    qvl_text bare = {0};
    *same = false;
    qvl_error reason = {0};
    qvl_status status = qvl_render_variant(renderer, renderer->conversation->variables, text, &reason);
    if (status == QVL_ERROR_ARGUMENT) return QVL_OK;
    if (status) return qvl_fail(error, status, "%s", reason.message);
    status = qvl_text_unmark(text->bytes, text->byte_count, &bare, error);
    *same =
        !status && bare.byte_count == plain->byte_count && memcmp(bare.bytes, plain->bytes, bare.byte_count) == 0;
    qvl_text_free(&bare);
    if (status || !*same) qvl_text_free(text);
    return status;
}

static qvl_status render_defused(qvl_renderer *renderer, const qvl_text *plain, qvl_text *text, qvl_error *error) {
    const char *name = renderer->conversation->name;
    bool same = false;
    qvl_status status = QVL_OK;
    renderer->marked = true;
    for (int level = QVL_DEFUSE_ADDED; level <= QVL_DEFUSE_SPECIAL && !status && !same; level++) {
        renderer->defusing = (qvl_defusing)level;
        status = run_marked(renderer, plain, text, &same, error);
    }
    if (status) return status;
    if (!same)
        return qvl_fail(
            error, QVL_ERROR_UNSUPPORTED,
            "%s: the template looks into text for special tokens, so that text cannot be kept apart from "
            "them; --trust-text takes it as it is",
            name);
    if (renderer->defusing == QVL_DEFUSE_SPECIAL)
        qvl_prompt_note(
            renderer->options,
            "%s: the template acts on a tag such as <tool_response> in a message, so tags that are not "
            "special tokens count in all messages",
            name);
    return QVL_OK;
}

qvl_status qvl_render(qvl_renderer *renderer, qvl_text *text, qvl_error *error) {
    qvl_conversation *c = renderer->conversation;
    qvl_text plain = {0};
    *text = (qvl_text){0};
    qvl_status status = c->continue_final ? tag_last(c, error) : QVL_OK;
    if (!status) status = run_plain(renderer, &plain, error);
    if (!status && c->continue_final) status = check_continued(c, &plain, error);
    if (status) status = qvl_error_prefix(error, status, c->name);
    if (!status) status = qvl_check_dropped(c, renderer->options, &plain, error);
    if (!status && !renderer->options->trust_text) status = render_defused(renderer, &plain, text, error);
    if (!status && renderer->options->trust_text) {
        *text = plain;
        return QVL_OK;
    }
    qvl_text_free(&plain);
    return status;
}

qvl_status qvl_rendered_tokens(const qvl_renderer *renderer, const char *text, size_t byte_count,
                               qvl_tokens *tokens, qvl_error *error) {
    qvl_tokenize_options options;
    qvl_tokenize_options_init(&options);
    options.marked = renderer->marked;
    return qvl_tokenize(renderer->prompter->tokenizer, text, byte_count, &options, tokens, error);
}
