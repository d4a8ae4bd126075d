/* What the tests of prompts share: the random model open once, prompts from JSON, and looking at them. */
#ifndef TESTS_PROMPT_SUPPORT_H
#define TESTS_PROMPT_SUPPORT_H

#include "qvl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A model, its session and a prompter with the folder's template. */
typedef struct bench {
    qvl_model *model;
    qvl_session *session; /* NULL below QVL_OPEN_WEIGHTS */
    qvl_prompter *prompter;
} bench;

bench open_bench(const char *folder, qvl_open_level level, qvl_dtype dtype, const char *template_text);
void close_bench(bench *b);

/* A published template of QVL_DATA, which must be there. Owner: the caller, free(). */
char *published_template(const char *name);
/* A whole file. Owner: the caller, free(). */
char *read_text(const char *path);

/* Options whose notes are kept: the last ones, joined by newlines. */
typedef struct notes {
    char text[4096];
} notes;
qvl_prompt_options noting(notes *kept);

/* A chat from JSON text, with the caller's media. */
qvl_chat chat_of(const char *json, const qvl_medium *media, size_t count);

/* Calls that must succeed. Owner: the caller, qvl_prompt_free. options may be NULL. */
qvl_prompt plan_chat(const bench *b, const char *json, const qvl_prompt_options *options);
qvl_prompt plan_media(const bench *b, const char *json, const qvl_medium *media, size_t count,
                      const qvl_prompt_options *options);
qvl_prompt build_media(const bench *b, const char *json, const qvl_medium *media, size_t count,
                       const qvl_prompt_options *options);
/* A plan that must be refused, in words that contain each of says (NULL-terminated). */
void refuse_chat(const bench *b, const char *json, const qvl_medium *media, size_t count,
                 const qvl_prompt_options *options, qvl_status status, const char *const *says);
#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A picture of noise that a formula of seed makes, and a medium of it. Owner: the caller, free_picture. */
typedef struct picture {
    qvl_input input;
    qvl_medium medium;
} picture;
void make_picture(picture *p, int64_t width, int64_t height, uint32_t seed);
void free_picture(picture *p);

/* A video that is patch rows of a grid, in memory of its own. */
typedef struct clip {
    qvl_item item;
    qvl_patches patches;
    double timestamps[64];
    qvl_medium medium;
} clip;
void make_clip(clip *c, const qvl_model *model, qvl_grid grid, double first, double step);
void free_clip(clip *c);

/* The id of an added token, which must be there. */
int32_t id_of(const bench *b, const char *content);
int64_t count_id(const qvl_prompt *p, int32_t id);
/* The number of special tokens of any kind. */
int64_t count_special(const bench *b, const qvl_prompt *p);
/* What the ids say. Owner: the caller, free(). */
char *decode(const bench *b, const qvl_prompt *p);

void assert_text(const qvl_prompt *p, const char *text);
void assert_has(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
/* Ids, types, positions and delta. */
void assert_same_prompt(const qvl_prompt *a, const qvl_prompt *b);

#endif
