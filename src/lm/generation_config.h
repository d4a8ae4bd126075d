/* generation_config.json, and the tokens that an answer ends with or never has. */
#ifndef QVL_LM_GENERATION_CONFIG_H
#define QVL_LM_GENERATION_CONFIG_H

#include "prompt/prompter.h"

/* The parser behind qvl_generate_options_read: sets in *options what the file (count bytes, called file in messages)
 * says; values that no sampler takes are refused by name. log may be NULL; it hears of what is not supported. */
qvl_status qvl_generation_config_parse(const void *bytes, size_t count, const char *file, qvl_log_fn log,
                                       void *log_user, qvl_generate_options *options, qvl_error *error);

/* Tokens that end an answer, ascending, each once: eos_token_id of generation_config.json and of config.json, there
 * also in its text_config, the tokenizer's eos_token, <|im_end|> and <|endoftext|>; some folders name only a part of
 * them. *ids belongs to the caller: qvl_free. */
qvl_status qvl_stop_tokens(const qvl_prompter *prompter, int32_t **ids, size_t *count, qvl_error *error);

/* never [vocab] gets 1 where a token must not come out: pads and wrappers of pictures, videos and sound, and rows of
 * the logits that the tokenizer has no token for; tokens that end an answer may. */
void qvl_never_tokens(const qvl_prompter *prompter, const int32_t *stops, size_t stop_count, int64_t vocab,
                      uint8_t *never);

#endif
