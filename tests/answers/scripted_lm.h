/* A language model that says what a test tells it, in place of the library's: linked before it. It keeps the calls it
 * gets as text, and checks what its callers promise. */
#ifndef TESTS_ANSWERS_SCRIPTED_LM_H
#define TESTS_ANSWERS_SCRIPTED_LM_H

#include "qvl.h"

struct qvl_lm {
    qvl_lm_info info; /* vocab_size, max_positions */
    /* Token number n of an answer's logits is 10, that of script[n]; the others' are less, by a formula. */
    const int32_t *script;
    int64_t script_count;
    int64_t nan_at;          /* token of the script whose logits have a NaN; -1: none */
    qvl_status fail_at_step; /* what a step at fail_step gives; QVL_OK: none fails */
    int64_t fail_step;
    char calls[4096]; /* "prefill 0 20, step 7, truncate 12 0, ..." */
};

void scripted_lm_init(qvl_lm *lm, const int32_t *script, int64_t count);

#endif
