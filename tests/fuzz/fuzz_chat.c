/* Any bytes as a chat, with the random model's tokenizer and template: refused with a message, or a prompt whose
 * parts fit together and in whose text nothing became a special token that the template did not write. */
#include "qvl.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

static qvl_prompter *open_prompter(void) {
    qvl_model *model;
    qvl_prompter *prompter;
    qvl_model_options options;
    qvl_model_options_init(&options);
    options.level = QVL_OPEN_CONFIG;
    options.threads = 1;
    check(qvl_model_open(QVL_RANDOM_MODEL, &options, &model, NULL) == QVL_OK);
    check(qvl_prompter_open(model, NULL, &prompter, NULL) == QVL_OK);
    return prompter;
}

static void check_prompt(const qvl_prompter *prompter, const qvl_prompt *p) {
    int64_t pads = 0, tokens = 0, items = 0;
    size_t at = 0;
    check(p->length > 0 && p->inputs_embeds == NULL && p->text[p->text_length] == 0);
    for (int64_t i = 0; i < p->length; i++) {
        qvl_token token;
        check(qvl_token_get(qvl_prompter_tokenizer(prompter), (int32_t)p->input_ids[i], &token));
        check((p->token_types[i] == 1) == (strcmp(token.bytes, "<|image_pad|>") == 0));
        check((p->token_types[i] == 2) == (strcmp(token.bytes, "<|video_pad|>") == 0));
        pads += p->token_types[i] != 0;
        for (int axis = 0; axis < 3; axis++) check(p->position_ids[axis * p->length + i] >= 0);
    }
    for (size_t i = 0; i < p->item_count; i++) {
        const qvl_prompt_item *item = &p->items[i];
        check(item->first.index >= 0 && item->first.index <= item->last.index && item->last.index < p->length);
        check(i == 0 || item->first.index > p->items[i - 1].last.index);
        items += item->item.tokens;
    }
    for (size_t i = 0; i < p->span_count; i++) {
        check(p->spans[i].start == at && p->spans[i].end >= at);
        at = p->spans[i].end;
        tokens += p->spans[i].tokens;
    }
    check(at == p->text_length && tokens == p->length);
    check(pads == p->vision_tokens && items == pads && p->rope_delta <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static qvl_prompter *prompter;
    static uint8_t pixels[3 * 64 * 64];
    static const qvl_input input = {.kind = QVL_INPUT_RGB8, .bytes = pixels, .width = 64, .height = 64};
    if (!prompter) prompter = open_prompter();
    if (count < 1) return 0;
    /* The first byte chooses options. */
    const qvl_medium media[2] = {{.kind = QVL_MEDIUM_IMAGE, .input = &input},
                                 {.kind = QVL_MEDIUM_IMAGE, .input = &input}};
    qvl_chat chat = {.json = (const char *)bytes + 1,
                     .byte_count = count - 1,
                     .no_files = true,
                     .media = media,
                     .media_count = bytes[0] & 3 ? (bytes[0] & 3) - 1u : 0};
    qvl_prompt_options options;
    qvl_prompt_options_init(&options);
    options.trust_text = bytes[0] & 4;
    options.dropped = bytes[0] & 8 ? QVL_DROPPED_FOLD : QVL_DROPPED_NOTE;
    options.max_length = bytes[0] & 16 ? 40 : 0;
    options.truncation = bytes[0] & 32 ? QVL_TRUNCATE_MEDIA : QVL_TRUNCATE_TEXT;
    options.continue_final_message = bytes[0] & 64 ? 1 : -1;
    qvl_prompt prompt;
    qvl_error error = {0};
    qvl_status status = qvl_prompt_plan(prompter, &chat, &options, &prompt, &error);
    if (status)
        check(error.status == status && error.message[0] && prompt.length == 0);
    else
        check_prompt(prompter, &prompt);
    qvl_prompt_free(&prompt);
    return 0;
}
