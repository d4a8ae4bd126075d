/* From logits to a token: penalties, then what transformers calls warpers, then a draw.
 *
 *     logits --repetition, presence, never--> scores --greedy--> the largest, of equals the lowest id
 *                          scores --/ temperature, top-k, top-p, min-p--> kept ids, probabilities --draw--> id
 *
 * Order and rules are those of transformers 5.23.0 (its _get_logits_processor); the presence penalty, which it does not
 * have, is that of vLLM and stands before the temperature. docs/ASK.md has the formulas.
 *
 * The draw. Number n (from 1) of a seed is output n of SplitMix64: the state, at first the seed, grows by
 * 0x9E3779B97F4A7C15; z = state; z ^= z >> 30, z *= 0xBF58476D1CE4E5B9, z ^= z >> 27, z *= 0x94D049BB133111EB,
 * z ^= z >> 31; u = (z >> 11) * 2^-53. The token is the first kept id, in ascending order, at which the sum of the
 * probabilities exceeds u. One number a token. Weights are qvl_exp's: equal logits and seeds give the same token on
 * every machine. */
#ifndef QVL_LM_SAMPLER_H
#define QVL_LM_SAMPLER_H

#include "base/error.h"

/* Scratch of top-k and top-p: a place in kept, and what it is ordered by. */
typedef struct qvl_candidate {
    double value;
    int32_t place;
} qvl_candidate;

/* The state of one answer. One owner. */
typedef struct qvl_sampler {
    qvl_sampling sampling;
    int64_t vocab;
    const uint8_t *never; /* [vocab], the caller's: 1 where a token must not come out; NULL: nowhere */
    uint8_t *seen;        /* [vocab], bits: in the prompt or the answer, in the answer */
    float *scores;        /* [vocab] */
    int64_t kept_count;
    int32_t *kept;        /* [vocab]: kept_count ids, ascending */
    double *weights;      /* [vocab]: of kept: e^(score - largest score) */
    qvl_candidate *order; /* [vocab] */
    uint64_t state;
} qvl_sampler;

/* Names the value that is impossible. */
qvl_status qvl_sampling_check(const qvl_sampling *sampling, qvl_error *error);

/* sampling was checked; vocab >= 1. Owner: the caller, qvl_sampler_close, which accepts a zeroed struct. */
qvl_status qvl_sampler_open(int64_t vocab, const qvl_sampling *sampling, const uint8_t *never,
                            qvl_sampler *sampler, qvl_error *error);
void qvl_sampler_close(qvl_sampler *sampler);

/* The prompt's ids, pads of pictures included: the repetition penalty counts them, as transformers' does. Ids that
 * are not in 0..vocab-1 are passed over. */
void qvl_sampler_prompt(qvl_sampler *sampler, const int64_t *ids, int64_t count);

/* What may come next: kept and weights; greedy: one id. logits [vocab]. NaN, +infinity and logits that leave no
 * token are QVL_ERROR_NUMERIC. */
qvl_status qvl_sampler_distribution(qvl_sampler *sampler, const float *logits, qvl_error *error);

/* The next token: the distribution, a draw from it unless greedy; then it counts as said. */
qvl_status qvl_sampler_next(qvl_sampler *sampler, const float *logits, int32_t *id, qvl_error *error);

/* Log-probabilities of the logits as they come from the model, before all of the above: x - log sum e^x, summed in
 * double precision. top [count]: the largest, of equals the lower id first; filled up with ids of -1 where the
 * vocabulary is smaller. Returns log sum e^x. */
double qvl_logprobs(const float *logits, int64_t vocab, qvl_logprob *top, int32_t count);

#endif
