#define _GNU_SOURCE
#include "talk.h"

#include "interrupt.h"
#include "messages.h"
#include "open.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qvl_status cli_talk_open(const char *system, cli_talk *talk, qvl_error *error) {
    *talk = (cli_talk){.messages = cJSON_CreateArray()};
    if (talk->messages && (!system || cli_add_message(talk->messages, "system", system))) return QVL_OK;
    cli_talk_free(talk);
    return cli_no_memory(error);
}

void cli_talk_free(cli_talk *talk) {
    cJSON_Delete(talk->messages);
    for (size_t i = 0; i < talk->count; i++) {
        free(talk->owned[i].path);
        qvl_features_free(&talk->owned[i].features);
    }
    free(talk->media);
    free(talk->owned);
    *talk = (cli_talk){0};
}

/* ---- media */

static bool encode_step(int64_t done, int64_t total, void *user) {
    cli_answerer *a = user;
    cli_progress_step(done, total, &a->progress);
    return !cli_interrupted();
}

static qvl_status encode(cli_answerer *a, const char *path, qvl_features *features, qvl_error *error) {
    qvl_input input = {.kind = QVL_INPUT_FILE, .name = path};
    qvl_encode_options options;
    qvl_encode_options_init(&options);
    options.progress = encode_step;
    options.progress_user = a;
    a->progress.what = "encoding";
    qvl_status status = qvl_encode(a->session, &input, 1, &a->options->preprocess, &options, features, error);
    cli_progress_clear(&a->progress);
    return status;
}

/* Room for one more. The features' addresses change with it. */
static bool make_room(cli_talk *talk) {
    qvl_medium *media = realloc(talk->media, (talk->count + 1) * sizeof *media);
    if (media) talk->media = media;
    cli_talk_medium *owned = realloc(talk->owned, (talk->count + 1) * sizeof *owned);
    if (owned) talk->owned = owned;
    for (size_t i = 0; i < talk->count; i++) talk->media[i].features = &talk->owned[i].features;
    return media && owned;
}

qvl_status cli_talk_attach(cli_talk *talk, cli_answerer *a, const char *path, qvl_error *error) {
    if (!make_room(talk)) return cli_no_memory(error);
    cli_talk_medium *owned = &talk->owned[talk->count];
    *owned = (cli_talk_medium){.path = realpath(path, NULL)};
    if (!owned->path) return cli_fail(error, QVL_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    qvl_status status = encode(a, path, &owned->features, error);
    if (status) {
        free(owned->path);
        return status;
    }
    talk->media[talk->count++] =
        (qvl_medium){.kind = owned->features.items[0].clip ? QVL_MEDIUM_VIDEO : QVL_MEDIUM_IMAGE,
                     .name = owned->path,
                     .features = &owned->features};
    return QVL_OK;
}

/* ---- messages */

qvl_status cli_talk_ask(cli_talk *talk, const char *text, qvl_error *error) {
    int before = cJSON_GetArraySize(talk->messages);
    size_t waiting = talk->count - talk->used;
    const qvl_medium *media = waiting ? talk->media + talk->used : NULL;
    if (cli_add_question(talk->messages, media, waiting, text)) return QVL_OK;
    if (cJSON_GetArraySize(talk->messages) > before) cli_talk_take_back(talk);
    return cli_no_memory(error);
}

void cli_talk_take_back(cli_talk *talk) {
    cJSON_DeleteItemFromArray(talk->messages, cJSON_GetArraySize(talk->messages) - 1);
}

qvl_status cli_talk_answer(cli_talk *talk, const qvl_answer *answer, qvl_error *error) {
    /* From the next turn on nothing was encoded for them. */
    for (; talk->used < talk->count; talk->used++)
        talk->owned[talk->used].features.items[0].origin = (qvl_origin){0};
    return cli_add_answer(talk->messages, answer) ? QVL_OK : cli_no_memory(error);
}

/* ---- saving */

/* The source of each media part, in order. */
static bool add_sources(cJSON *messages, const cli_talk *talk) {
    size_t next = 0;
    cJSON *message, *part;
    cJSON_ArrayForEach(message, messages) {
        cJSON *content = cJSON_GetObjectItem(message, "content");
        if (!cJSON_IsArray(content)) continue;
        cJSON_ArrayForEach(part, content) {
            const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(part, "type"));
            if (!type || strcmp(type, "text") == 0) continue;
            if (!cJSON_AddStringToObject(part, type, talk->owned[next++].path)) return false;
        }
    }
    return true;
}

qvl_status cli_talk_save(const cli_talk *talk, const char *path, qvl_error *error) {
    cJSON *messages = cJSON_Duplicate(talk->messages, true);
    char *text = messages && add_sources(messages, talk) ? cJSON_Print(messages) : NULL;
    qvl_status status = text ? cli_write_text(path, text, error) : cli_no_memory(error);
    cJSON_Delete(messages);
    cJSON_free(text);
    return status;
}
