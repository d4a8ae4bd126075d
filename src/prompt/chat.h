/* A conversation as it was given: JSON to variables of the template, and a list of its pictures and videos. */
#ifndef QVL_PROMPT_CHAT_H
#define QVL_PROMPT_CHAT_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* What a file name or a data URL in a chat stands for. */
typedef struct qvl_place {
    char *path;     /* of a file */
    uint8_t *bytes; /* of a data URL */
    size_t byte_count;
} qvl_place;

/* One picture or video part. */
typedef struct qvl_source {
    qvl_medium_kind kind;
    size_t message, part;
    char *name; /* for messages and results; NULL until it is known */
    qvl_place place;
    size_t frame_count; /* of a video that is a list of frames; else 0 */
    qvl_place *frame_places;
    qvl_input *frames;        /* [frame_count] of these */
    int64_t *indices;         /* [frame_count], or NULL */
    double *seconds;          /* [frame_count], or NULL */
    qvl_input input;          /* of what is above; input.name is NULL where the chat names no source */
    const qvl_medium *medium; /* the caller's, for a part without a source; NULL: there was none left */
} qvl_source;

/* In order of the conversation. */
typedef struct qvl_conversation {
    cJSON *
        variables; /* object: messages, tools, documents (or null) and all others, add_generation_prompt included */
    cJSON *messages; /* the list in it; parts with media are {"type": "image"} or {"type": "video"} */
    qvl_source *sources;
    size_t source_count;
    size_t given_images, given_videos; /* the caller's media */
    bool continue_final;
    const char *name; /* of the chat, for messages */
} qvl_conversation;

/* specials: variables that come first (prompter.h). chat and options must outlive it.
 * Owner: the caller, qvl_conversation_free, which accepts a zeroed struct. */
qvl_status qvl_conversation_read(const qvl_chat *chat, const qvl_prompt_options *options, const cJSON *specials,
                                 qvl_conversation *conversation, qvl_error *error);
void qvl_conversation_free(qvl_conversation *conversation);

/* "chat.json: message 3 (user)" for the message of that index: counted from 1, as folding left them. */
#define QVL_PLACE 400
void qvl_conversation_place(const qvl_conversation *conversation, const cJSON *message, size_t index,
                            char place[QVL_PLACE]);
/* The role of a message; NULL where there is none. */
const char *qvl_message_role(const cJSON *message);
/* A qvl_medium_kind; 0 for a part without picture or video. */
int qvl_part_kind(const cJSON *part);

/* Puts value, which it takes, under a key of an object: new, or in the place of what is there. false: there is
 * no memory, or value is NULL for want of it. (cJSON's own replacing loses the key where memory is short.) */
bool qvl_member_put(cJSON *object, const char *key, cJSON *value);

/* A note to the options' log, if there is one. */
void qvl_prompt_note(const qvl_prompt_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
