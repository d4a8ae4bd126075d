#include "answers/scripted_lm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct qvl_sequence {
    qvl_lm *lm;
    int64_t length, said, max_length;
};

void scripted_lm_init(qvl_lm *lm, const int32_t *script, int64_t count) {
    *lm = (qvl_lm){.info = {.vocab_size = 512, .max_positions = 4096},
                   .script = script,
                   .script_count = count,
                   .nan_at = -1,
                   .fail_step = -1};
}

const qvl_lm_info *qvl_lm_get_info(const qvl_lm *lm) {
    return &lm->info;
}

void qvl_sequence_options_init(qvl_sequence_options *options) {
    *options = (qvl_sequence_options){.size = sizeof *options, .chunk = 1024};
}

void qvl_decode_options_init(qvl_decode_options *options) {
    *options = (qvl_decode_options){.size = sizeof *options};
}

static qvl_status refuse(qvl_error *error, qvl_status status, const char *message) {
    if (error) {
        error->status = status;
        snprintf(error->message, sizeof error->message, "%s", message);
    }
    return status;
}

__attribute__((format(printf, 2, 3))) static void record(qvl_lm *lm, const char *format, ...) {
    size_t used = strlen(lm->calls);
    va_list args;
    va_start(args, format);
    vsnprintf(lm->calls + used, sizeof lm->calls - used, format, args);
    va_end(args);
}

qvl_status qvl_sequence_open(const qvl_lm *lm, const qvl_sequence_options *options, qvl_sequence **sequence,
                             qvl_error *error) {
    *sequence = NULL;
    if (options->max_length > lm->info.max_positions) return refuse(error, QVL_ERROR_LIMIT, "too long");
    qvl_sequence *s = calloc(1, sizeof *s);
    if (!s) return refuse(error, QVL_ERROR_MEMORY, "no memory");
    memcpy(&s->lm, &lm, sizeof lm); /* the test's own, which is not constant */
    s->max_length = options->max_length ? options->max_length : lm->info.max_positions;
    *sequence = s;
    return QVL_OK;
}

void qvl_sequence_close(qvl_sequence **sequence) {
    free(*sequence);
    *sequence = NULL;
}

int64_t qvl_sequence_length(const qvl_sequence *sequence) {
    return sequence->length;
}

int64_t qvl_sequence_reachable(const qvl_sequence *sequence, int64_t length) {
    (void)sequence;
    return length;
}

int64_t qvl_sequence_bytes(const qvl_sequence *sequence) {
    return 8 * sequence->length;
}

static void fill(qvl_sequence *s, float *logits) {
    qvl_lm *lm = s->lm;
    assert_true(s->said < lm->script_count);
    for (int32_t i = 0; i < lm->info.vocab_size; i++) logits[i] = (float)(i % 7) - 4.0f;
    logits[lm->script[s->said]] = 10.0f;
    if (s->said == lm->nan_at) logits[0] = NAN;
    s->said++;
}

/* Two layers' worth of progress. */
static qvl_status go(const qvl_decode_options *options, int64_t entries, qvl_error *error) {
    for (int64_t layer = 1; layer <= 2; layer++)
        if (options->progress && !options->progress(entries * layer, entries * 2, options->progress_user))
            return refuse(error, QVL_ERROR_CANCELLED, "cancelled");
    return QVL_OK;
}

qvl_status qvl_sequence_prefill(qvl_sequence *s, const qvl_prompt *prompt, int64_t first,
                                const qvl_decode_options *options, float *logits, qvl_error *error) {
    assert_int_equal(first, s->length);
    assert_true(prompt->length > first && prompt->length <= s->max_length);
    record(s->lm, "prefill %lld %lld, ", (long long)first, (long long)prompt->length);
    qvl_status status = go(options, prompt->length - first, error);
    if (status) return status;
    s->length = prompt->length;
    fill(s, logits);
    return QVL_OK;
}

qvl_status qvl_sequence_step(qvl_sequence *s, int64_t token, const qvl_decode_options *options, float *logits,
                             qvl_error *error) {
    assert_true(s->length < s->max_length);
    record(s->lm, "step %lld, ", (long long)token);
    if (s->said == s->lm->fail_step) return refuse(error, s->lm->fail_at_step, "the step fails");
    qvl_status status = go(options, 1, error);
    if (status) return status;
    s->length++;
    fill(s, logits);
    return QVL_OK;
}

qvl_status qvl_sequence_truncate(qvl_sequence *s, int64_t length, int64_t rope_delta, qvl_error *error) {
    (void)error;
    assert_true(length < s->length);
    record(s->lm, "truncate %lld %lld, ", (long long)length, (long long)rope_delta);
    s->length = length;
    return QVL_OK;
}
