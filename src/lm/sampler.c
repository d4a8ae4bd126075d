#include "lm/sampler.h"

#include "base/exp.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN = 1, SAID = 2 };

/* ---- the values */

void qvl_sampling_init(qvl_sampling *sampling) {
    *sampling =
        (qvl_sampling){.size = sizeof *sampling, .temperature = 1.0, .top_p = 1.0, .repetition_penalty = 1.0};
}

static qvl_status check_range(const char *name, double value, bool good, const char *allowed, qvl_error *error) {
    if (good) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_ARGUMENT, "%s is %g; allowed is %s", name, value, allowed);
}

qvl_status qvl_sampling_check(const qvl_sampling *s, qvl_error *error) {
    /* Written so that NaN is outside. */
    qvl_status status = check_range("temperature", s->temperature, s->temperature >= 0.0 && s->temperature <= 1e6,
                                    "0 (greedy) to 1000000", error);
    if (!status) status = check_range("top_k", s->top_k, s->top_k >= 0, "0 (all) or more", error);
    if (!status) status = check_range("top_p", s->top_p, s->top_p >= 0.0 && s->top_p <= 1.0, "0 to 1", error);
    if (!status) status = check_range("min_p", s->min_p, s->min_p >= 0.0 && s->min_p <= 1.0, "0 to 1", error);
    if (!status)
        status = check_range("repetition_penalty", s->repetition_penalty,
                             s->repetition_penalty >= 1e-6 && s->repetition_penalty <= 1e6, "0.000001 to 1000000",
                             error);
    if (!status)
        status = check_range("presence_penalty", s->presence_penalty, fabs(s->presence_penalty) <= 1e6,
                             "-1000000 to 1000000", error);
    return status;
}

/* ---- the sampler */

qvl_status qvl_sampler_open(int64_t vocab, const qvl_sampling *sampling, const uint8_t *never,
                            qvl_sampler *sampler, qvl_error *error) {
    size_t n = (size_t)vocab;
    *sampler = (qvl_sampler){.sampling = *sampling,
                             .vocab = vocab,
                             .never = never,
                             .state = sampling->seed,
                             .seen = qvl_calloc(n, 1),
                             .scores = qvl_alloc(n, sizeof(float)),
                             .kept = qvl_alloc(n, sizeof(int32_t)),
                             .weights = qvl_alloc(n, sizeof(double)),
                             .order = qvl_alloc(n, sizeof(qvl_candidate))};
    if (sampler->seen && sampler->scores && sampler->kept && sampler->weights && sampler->order) return QVL_OK;
    qvl_sampler_close(sampler);
    return qvl_fail_memory(error, "sampler", n, 33);
}

void qvl_sampler_close(qvl_sampler *s) {
    qvl_free(s->seen);
    qvl_free(s->scores);
    qvl_free(s->kept);
    qvl_free(s->weights);
    qvl_free(s->order);
    *s = (qvl_sampler){0};
}

void qvl_sampler_prompt(qvl_sampler *s, const int64_t *ids, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= 0 && ids[i] < s->vocab) s->seen[ids[i]] |= SEEN;
}

static bool is_greedy(const qvl_sampling *s) {
    return !s->do_sample || s->temperature == 0.0;
}

/* ---- scores */

/* All in f32, as torch has it: a tensor with a number of Python. */
static void penalise(qvl_sampler *s, const float *logits) {
    float repetition = (float)s->sampling.repetition_penalty, presence = (float)s->sampling.presence_penalty;
    for (int64_t i = 0; i < s->vocab; i++) {
        float x = logits[i];
        if (s->seen[i] & SEEN) x = x < 0.0f ? x * repetition : x / repetition;
        if (s->seen[i] & SAID) x -= presence;
        s->scores[i] = s->never && s->never[i] && x < INFINITY ? -INFINITY : x;
    }
}

/* Temperature, and the ids that are possible at all. */
static qvl_status warm(qvl_sampler *s, qvl_error *error) {
    float temperature = is_greedy(&s->sampling) ? 1.0f : (float)s->sampling.temperature;
    s->kept_count = 0;
    for (int64_t i = 0; i < s->vocab; i++) {
        float x = s->scores[i] /= temperature;
        if (x == -INFINITY) continue;
        if (!isfinite(x))
            return qvl_fail(error, QVL_ERROR_NUMERIC,
                            "the logit of token %lld is %g after penalties and temperature %g; it must be finite",
                            (long long)i, (double)x, (double)temperature);
        s->kept[s->kept_count++] = (int32_t)i;
    }
    if (s->kept_count) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_NUMERIC, "no token of the %lld can come next: every logit is -infinity",
                    (long long)s->vocab);
}

static void keep_largest(qvl_sampler *s) {
    int32_t best = s->kept[0];
    for (int64_t i = 1; i < s->kept_count; i++)
        if (s->scores[s->kept[i]] > s->scores[best]) best = s->kept[i];
    s->kept[0] = best;
    s->kept_count = 1;
}

/* ---- top-k */

/* Restores a heap, its smallest value at the root, from a place downwards. */
static void sift(qvl_candidate *heap, int64_t count, int64_t at) {
    qvl_candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].value < heap[child].value) child++;
        if (moved.value <= heap[child].value) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Everything not below the k-th largest score: equals of the k-th stay, as in transformers. */
static void keep_top_k(qvl_sampler *s) {
    int64_t k = s->sampling.top_k, kept = 0;
    qvl_candidate *heap = s->order;
    if (k == 0 || k >= s->kept_count) return;
    for (int64_t i = 0; i < k; i++) heap[i].value = (double)s->scores[s->kept[i]];
    for (int64_t i = k / 2; i-- > 0;) sift(heap, k, i);
    for (int64_t i = k; i < s->kept_count; i++) {
        double score = (double)s->scores[s->kept[i]];
        if (score <= heap[0].value) continue;
        heap[0].value = score;
        sift(heap, k, 0);
    }
    for (int64_t i = 0; i < s->kept_count; i++)
        if ((double)s->scores[s->kept[i]] >= heap[0].value) s->kept[kept++] = s->kept[i];
    s->kept_count = kept;
}

/* ---- weights, top-p, min-p */

static void weigh(qvl_sampler *s) {
    float largest = s->scores[s->kept[0]];
    for (int64_t i = 1; i < s->kept_count; i++)
        if (s->scores[s->kept[i]] > largest) largest = s->scores[s->kept[i]];
    for (int64_t i = 0; i < s->kept_count; i++)
        s->weights[i] = qvl_exp((double)s->scores[s->kept[i]] - (double)largest);
}

static double weight_sum(const qvl_sampler *s) {
    double sum = 0.0;
    for (int64_t i = 0; i < s->kept_count; i++) sum += s->weights[i];
    return sum;
}

/* Ascending; of equals the one with the larger id is first, and so the first to go. */
static int compare(const void *a, const void *b) {
    const qvl_candidate *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->place < y->place) - (x->place > y->place);
}

/* From the least likely on, everything goes whose sum of probabilities up to it is at most 1 - top_p, but the last.
 * Sorted is only what may stay: a weight below the share of one token in that sum never does. */
static void keep_top_p(qvl_sampler *s) {
    if (s->sampling.top_p >= 1.0) return;
    double sum = weight_sum(s), rest = 1.0 - s->sampling.top_p, below = 0.0;
    double floor_weight = 0.999 * rest * sum / (double)s->kept_count;
    size_t count = 0, first = 0;
    for (int64_t i = 0; i < s->kept_count; i++) {
        if (s->weights[i] < floor_weight)
            below += s->weights[i];
        else
            s->order[count++] = (qvl_candidate){.value = s->weights[i], .place = (int32_t)i};
    }
    qsort(s->order, count, sizeof *s->order, compare);
    for (; first + 1 < count; first++) {
        below += s->order[first].value;
        if ((float)(below / sum) > (float)rest) break;
    }
    qvl_candidate least = s->order[first];
    int64_t kept = 0;
    for (int32_t i = 0; i < s->kept_count; i++) {
        qvl_candidate c = {.value = s->weights[i], .place = i};
        if (compare(&c, &least) < 0) continue;
        s->kept[kept] = s->kept[i];
        s->weights[kept++] = s->weights[i];
    }
    s->kept_count = kept;
}

/* The largest weight is 1 and always stays. */
static void keep_min_p(qvl_sampler *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->kept_count; i++) {
        if ((float)s->weights[i] < (float)s->sampling.min_p) continue;
        s->kept[kept] = s->kept[i];
        s->weights[kept++] = s->weights[i];
    }
    s->kept_count = kept;
}

qvl_status qvl_sampler_distribution(qvl_sampler *s, const float *logits, qvl_error *error) {
    penalise(s, logits);
    qvl_status status = warm(s, error);
    if (status) return status;
    if (is_greedy(&s->sampling)) {
        keep_largest(s);
        s->weights[0] = 1.0;
        return QVL_OK;
    }
    keep_top_k(s);
    weigh(s);
    keep_top_p(s);
    keep_min_p(s);
    return QVL_OK;
}

/* ---- the draw */

/* SplitMix64, as a number in [0, 1). */
static double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static int32_t draw(qvl_sampler *s) {
    double target = uniform(&s->state) * weight_sum(s), sum = 0.0;
    for (int64_t i = 0; i < s->kept_count; i++) {
        sum += s->weights[i];
        if (sum > target) return s->kept[i];
    }
    return s->kept[s->kept_count - 1]; /* not reached: u < 1, and sums are made in the same order */
}

qvl_status qvl_sampler_next(qvl_sampler *s, const float *logits, int32_t *id, qvl_error *error) {
    qvl_status status = qvl_sampler_distribution(s, logits, error);
    if (status) return status;
    *id = is_greedy(&s->sampling) ? s->kept[0] : draw(s);
    s->seen[*id] = SEEN | SAID;
    return QVL_OK;
}

/* ---- log-probabilities */

double qvl_logprobs(const float *logits, int64_t vocab, qvl_logprob *top, int32_t count) {
    double largest = -INFINITY, sum = 0.0;
    int32_t filled = 0;
    for (int64_t i = 0; i < vocab; i++)
        if ((double)logits[i] > largest) largest = (double)logits[i];
    for (int64_t i = 0; i < vocab; i++) sum += qvl_exp((double)logits[i] - largest);
    double log_sum = largest + log(sum);
    for (int64_t i = 0; i < vocab && count; i++) {
        if (filled == count && logits[i] <= top[count - 1].logprob) continue;
        int32_t at = filled < count ? filled++ : count - 1;
        for (; at > 0 && top[at - 1].logprob < logits[i]; at--) top[at] = top[at - 1];
        top[at] = (qvl_logprob){.id = (int32_t)i, .logprob = logits[i]};
    }
    for (int32_t i = 0; i < filled; i++) top[i].logprob = (float)((double)top[i].logprob - log_sum);
    for (int32_t i = filled; i < count; i++) top[i] = (qvl_logprob){.id = -1, .logprob = -INFINITY};
    return log_sum;
}
