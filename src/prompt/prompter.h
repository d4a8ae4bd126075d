/* What is behind a qvl_prompter: the folder's text side. Immutable once open. */
#ifndef QVL_PROMPT_PROMPTER_H
#define QVL_PROMPT_PROMPTER_H

#include "model/embeddings.h"
#include "model/model.h"
#include "text/template.h"

/* Ids of the tokens that pictures need; -1 where the vocabulary has none. */
typedef struct qvl_media_tokens {
    int32_t image, video, start, end;
} qvl_media_tokens;

#define QVL_IMAGE_PAD "<|image_pad|>"
#define QVL_VIDEO_PAD "<|video_pad|>"
#define QVL_VISION_START "<|vision_start|>"
#define QVL_VISION_END "<|vision_end|>"

struct qvl_prompter {
    const qvl_model *model;
    qvl_tokenizer *tokenizer;
    qvl_template *chat;  /* NULL: the folder has none */
    qvl_template *tools; /* for chats with tools; NULL: the same */
    char *chat_source, *tools_source;
    cJSON *specials; /* an object of the special tokens' texts, as variables: eos_token, ... */
    qvl_media_tokens tokens;
    qvl_embeddings embeddings; /* zero unless the model was opened with weights */
    bool has_embeddings;
};

/* The template for a chat; an error where the folder has none. */
qvl_status qvl_prompter_template(const qvl_prompter *prompter, bool with_tools, const qvl_template **template,
                                 qvl_error *error);

#endif
