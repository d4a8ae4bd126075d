/* Any bytes as a generation_config.json: refused with a message, or settings that the sampler takes. Any other bytes as
 * logits with settings before them: a token that is possible, or a message. */
#include "lm/generation_config.h"
#include "lm/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(bool holds) {
    if (!holds) abort();
}

static void take_note(const char *message, void *user) {
    (void)user;
    check(message[0] && !strchr(message, '\n'));
}

static void parse(const uint8_t *bytes, size_t count) {
    qvl_generate_options o;
    qvl_error error = {0};
    qvl_generate_options_init(&o);
    qvl_status status = qvl_generation_config_parse(bytes, count, "file", take_note, NULL, &o, &error);
    if (status)
        check(error.status == status && error.message[0]);
    else
        check(!qvl_sampling_check(&o.sampling, &error) && o.max_new_tokens >= 0);
}

/* Six numbers in 0..255 and a seed make the settings; the rest are logits. */
static void sample(const uint8_t *bytes, size_t count) {
    enum { SETTINGS = 8 };
    float logits[512];
    if (count < SETTINGS + sizeof *logits) return;
    int64_t vocab = (int64_t)((count - SETTINGS) / sizeof *logits);
    if (vocab > 512) vocab = 512;
    memcpy(logits, bytes + SETTINGS, (size_t)vocab * sizeof *logits);
    qvl_sampling s;
    qvl_sampling_init(&s);
    s.do_sample = bytes[0] & 1;
    s.temperature = bytes[1] / 64.0;
    s.top_k = bytes[2];
    s.top_p = bytes[3] / 255.0;
    s.min_p = bytes[4] / 255.0;
    s.repetition_penalty = (1 + bytes[5]) / 128.0;
    s.presence_penalty = bytes[6] - 128.0;
    s.seed = bytes[7];
    qvl_sampler sampler;
    qvl_error error = {0};
    check(!qvl_sampling_check(&s, &error) && !qvl_sampler_open(vocab, &s, NULL, &sampler, &error));
    for (int i = 0; i < 3; i++) {
        int32_t id = -1;
        qvl_status status = qvl_sampler_next(&sampler, logits, &id, &error);
        check(status ? status == QVL_ERROR_NUMERIC && error.message[0] : id >= 0 && id < vocab);
        if (status) break;
        check(logits[id] > -INFINITY && sampler.kept_count >= 1 && sampler.kept_count <= vocab);
        for (int64_t k = 0; k < sampler.kept_count; k++)
            check(sampler.weights[k] >= 0 && sampler.weights[k] <= 1 &&
                  (k == 0 || sampler.kept[k] > sampler.kept[k - 1]));
    }
    qvl_sampler_close(&sampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count && bytes[0] == '{')
        parse(bytes, count);
    else
        sample(bytes, count);
    return 0;
}
