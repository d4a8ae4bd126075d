/* Any bytes as the text_config of a config.json: refused with a message, or every size is in its range and no matrix
 * that follows from them reaches 2^31 elements. */
#include "compute/delta.h"
#include "lm/text_config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

static void check_hybrid(const qvl_text_config *c) {
    const qvl_hybrid_config *h = &c->hybrid;
    int64_t channels = 2 * (int64_t)h->key_heads * h->key_dim + (int64_t)h->value_heads * h->value_dim;
    int32_t linear = 0;
    check(h->key_heads >= 1 && h->value_heads % h->key_heads == 0 && h->value_heads >= 1);
    check(h->key_dim >= 1 && h->key_dim <= QVL_DELTA_MAX_WIDTH);
    check(h->value_dim >= 1 && h->value_dim <= QVL_DELTA_MAX_WIDTH);
    check(h->conv_width >= 2 && h->conv_width <= QVL_CONV_MAX_WIDTH);
    check(channels * c->hidden_size <= INT32_MAX);
    for (int32_t i = 0; i < c->layers; i++) linear += h->linear[i];
    check(linear == h->linear_layers && (h->shared_intermediate_size > 0) == (c->experts > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    qvl_text_config config;
    qvl_error error = {0};
    qvl_status status = qvl_text_config_parse(bytes, count, "folder/config.json", &config, &error);
    if (status) {
        check(error.status == status && error.message[0]);
        return 0;
    }
    check(config.layers >= 1 && config.layers <= QVL_MAX_TEXT_LAYERS && config.hidden_size >= 1);
    check(config.heads >= 1 && config.kv_heads >= 1 && config.heads % config.kv_heads == 0);
    check(config.rotary >= 2 && config.rotary % 2 == 0 && config.rotary <= config.head_dim);
    check((int64_t)config.heads * config.head_dim * config.hidden_size <= INT32_MAX);
    check((int64_t)config.vocab_size * config.hidden_size <= INT32_MAX);
    check(config.experts == 0 || (config.experts_per_token >= 1 && config.experts_per_token <= config.experts));
    if (config.hybrid.on) check_hybrid(&config);
    return 0;
}
