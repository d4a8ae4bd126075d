/* The conversation of qvl chat: its messages, and the pictures in them, encoded once. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include "answers.h"

/* What belongs to one of the media. */
typedef struct cli_talk_medium {
    char *path; /* absolute */
    qvl_features features;
} cli_talk_medium;

typedef struct cli_talk {
    cJSON *messages; /* their media parts have no source: that is media, in order */
    size_t count;    /* of media and owned: those of the messages, then those that wait for the next one */
    size_t used;
    qvl_medium *media;
    cli_talk_medium *owned;
} cli_talk;

/* system: of the first message, NULL: there is none. On failure there is nothing to free. */
qvl_status cli_talk_open(const char *system, cli_talk *talk, qvl_error *error);
/* Accepts a zeroed struct. */
void cli_talk_free(cli_talk *talk);

/* Reads and encodes a file, a picture or a clip as its content says; it goes with the next question. */
qvl_status cli_talk_attach(cli_talk *talk, cli_answerer *a, const char *path, qvl_error *error);

/* A question with the media that wait, and its answer; taken back is the question alone: its media wait again. */
qvl_status cli_talk_ask(cli_talk *talk, const char *text, qvl_error *error);
void cli_talk_take_back(cli_talk *talk);
qvl_status cli_talk_answer(cli_talk *talk, const qvl_answer *answer, qvl_error *error);

/* The conversation as a chat file that qvl ask and qvl prompt read, whole or not at all. */
qvl_status cli_talk_save(const cli_talk *talk, const char *path, qvl_error *error);

#endif
