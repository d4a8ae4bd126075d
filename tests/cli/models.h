/* Model folders for the tests of answers: copies of the random model with one thing changed. */
#ifndef QVL_TESTS_CLI_MODELS_H
#define QVL_TESTS_CLI_MODELS_H

/* Makes the folder NAME of the scratch folder and returns its path, valid as scratch() says.
 * without: a tensor that is left out; NULL: none. zeroed: a tensor whose rows first..last become zero; NULL: none.
 * broken: a tensor whose first value becomes NaN; NULL: none. */
typedef struct model_change {
    const char *without, *zeroed, *broken;
    int first, last;
} model_change;
const char *make_model(const char *name, const model_change *change);

/* Its answers never end by themselves: greedy, a token that ends one is never the best. */
const char *make_endless_model(const char *name);

#endif
