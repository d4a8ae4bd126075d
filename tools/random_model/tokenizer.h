/* The tokenizer's files of random models: a small byte-level BPE with the added tokens of the Qwen
 * vocabularies, and a chat template of the same kind. */
#ifndef DEMO_TOKENIZER_H
#define DEMO_TOKENIZER_H

#include "shapes.h"

#include <cjson/cJSON.h>

/* Bytes 0..255, then what the merges make, then the added tokens. */
enum { DEMO_MERGES = 230, DEMO_ADDED_TOKENS = 26, DEMO_VOCABULARY = 256 + DEMO_MERGES + DEMO_ADDED_TOKENS };

/* In order of rank; each part is written as tokenizer.json writes bytes. */
extern const char *const demo_merges[DEMO_MERGES][2];

/* Whether a shape's vocabulary is the demo's: then its folder gets the two files. */
bool demo_has_tokenizer(const demo_shape *shape);

/* Each returns a tree that the caller deletes, or NULL if there is no memory. */
cJSON *demo_tokenizer(const demo_shape *shape);
cJSON *demo_tokenizer_config(const demo_shape *shape);

#endif
