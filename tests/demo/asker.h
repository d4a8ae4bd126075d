/* Asking the demo model through the library: the questions of tests/fixtures/demo, and ways of computing. */
#ifndef TESTS_DEMO_ASKER_H
#define TESTS_DEMO_ASKER_H

#include "qvl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DEMO_FIXTURES QVL_FIXTURES "/demo"

/* One conversation that ends with a question, and the right answer, which follows from how its scene was made. */
typedef struct question {
    char *name; /* "read-1" */
    char *chat; /* JSON */
    char *kind, *answer;
} question;

/* A picture of one question, and the same picture in another format. */
typedef struct version {
    size_t question;
    char *picture, *file;
} version;

typedef struct fixture {
    size_t count, version_count;
    question *questions;
    version *versions;
} fixture;

fixture read_fixture(void);
void free_fixture(fixture *f);
/* The place of a question that must be there. */
size_t find_question(const fixture *f, const char *name);
/* Its chat with another file instead of its picture, which must be in it. Owner: the caller, free(). */
char *with_picture(const question *q, const char *picture, const char *other);

typedef struct way {
    qvl_dtype dtype;
    uint32_t cpu_mask;
    int threads;
} way;

/* What answering takes. With keep one generator answers everything, and reads of each prompt what is new to it; without,
 * each question has its own. */
typedef struct asker {
    qvl_model *model;
    qvl_prompter *prompter;
    qvl_session *session;
    qvl_lm *lm;
    qvl_generator *kept; /* NULL without keep */
} asker;

/* cache: may be NULL; must stay open as long as the asker. */
asker open_asker(const way *w, qvl_cache *cache, bool keep);
void close_asker(asker *a);

/* The answer as the folder's generation_config.json has it, with logprobs. media: how files become pixels; NULL: the default.
 * Owner: the caller, qvl_answer_free. */
qvl_answer ask(asker *a, const char *chat, const qvl_media_options *media);
/* Its text alone. Owner: the caller, free(). */
char *ask_text(asker *a, const char *chat, const qvl_media_options *media);

#endif
