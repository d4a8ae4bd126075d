/* Prompts of the language model's tests: ids, types and positions from a fixture, embeddings by formula (the rules are in
 * tools/oracle/lm_fixtures.py). */
#ifndef TESTS_LM_PROMPTS_H
#define TESTS_LM_PROMPTS_H

#include "vision/towers.h"

/* A fixture and the folder of its model. */
typedef struct lm_case {
    qvl_tensor_file *fixture;
    const char *folder;
    const char *init, *stored;
    int deepstack;
} lm_case;

/* shape: "tiny-vl", "lm-test", ... */
lm_case open_case(const char *shape);
/* The same with another fixture than that of the shape. */
lm_case open_case_of(const char *fixture, const char *shape);
void close_case(lm_case *c);

/* A copy of a model's folder, made anew; the path is static. */
const char *copy_folder(const char *folder);
/* Replaces text in the folder's config.json; edit: for sed. */
void edit_config(const char *folder, const char *edit);
/* Gives the case a folder of its own with an edited config.json. */
void edit_case(lm_case *c, const char *edit);

/* A model with its language model. */
typedef struct speaker {
    qvl_model *model;
    qvl_lm *lm;
} speaker;
speaker open_speaker(const char *folder, qvl_dtype dtype, int threads, uint32_t cpu_mask);
void close_speaker(speaker *s);

/* Elements at.. of an array of dtype, F32 or BF16, from floats. */
void put_values(qvl_dtype dtype, void *out, int64_t at, const float *values, int64_t count);

/* The fixture's prompt for a model of this dtype; qvl_prompt_free. */
qvl_prompt case_prompt(const lm_case *c, const qvl_lm *lm);
/* The same with text behind it, up to `length` entries. */
qvl_prompt longer_prompt(const lm_case *c, const qvl_lm *lm, int64_t length);
/* The first length entries of a prompt; shares its memory, is not to be freed. */
qvl_prompt prompt_head(const qvl_prompt *prompt, int64_t length);

qvl_sequence *open_sequence(const qvl_lm *lm, int64_t chunk);
/* Prefills from the sequence's length on; logits [vocab], malloc. */
float *prefill(qvl_sequence *sequence, const qvl_prompt *prompt, stages *taps);

/* The stage `name` of all chunks, rows after one another, in memory of its own. */
qvl_tensor join_stage(const stages *s, const char *name);

const qvl_tensor *want_tensor(const lm_case *c, const char *name, qvl_tensor *tensor);

#endif
