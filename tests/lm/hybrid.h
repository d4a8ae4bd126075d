/* Prompts of hybrid models' tests, as tools/oracle/hybrid_fixtures.py describes them: ids and grids from a fixture,
 * embeddings by formula, features from qvl's own tower. */
#ifndef TESTS_LM_HYBRID_H
#define TESTS_LM_HYBRID_H

#include "lm/prompts.h"

/* shape: "tiny-35", "mid-35", ... */
lm_case open_hybrid(const char *shape);
/* The same with another fixture than that of the shape. */
lm_case open_hybrid_of(const char *fixture, const char *shape);

/* The prompt NAME of the fixture for the speaker's model; qvl_prompt_free. */
qvl_prompt hybrid_prompt(const lm_case *c, const char *name, const speaker *s);

/* NAME/part of the fixture. */
qvl_tensor hybrid_tensor(const lm_case *c, const char *name, const char *part);

/* What a run put out at some rows of the prompt, stage by stage. */
typedef struct hybrid_run {
    const int64_t *rows;     /* [row_count], ascending: those kept */
    int64_t row_count, next; /* next: first row of the next chunk of a stage, by its last stage "logits" */
    struct {
        char name[32];
        int64_t width, kept;
        float *values; /* [row_count, width] */
    } stages[256];
    int stage_count;
    int64_t *argmax; /* [length] of logits */
} hybrid_run;

/* Prefills the sequence from its length on, keeping stages of the given rows; logits [vocab], malloc. Taps see every
 * row. */
float *hybrid_prefill(qvl_sequence *sequence, const qvl_prompt *prompt, const qvl_tensor *rows, hybrid_run *run);
const float *hybrid_stage(const hybrid_run *run, const char *name, int64_t *width);
void hybrid_run_free(hybrid_run *run);

int64_t largest_of(const float *x, int64_t n);

#endif
