/* The gated delta rule in chunks. Within a chunk that begins with the state S, with G_i the sum of the log decays of
 * rows 0..i and D_ij = exp(G_i - G_j), unrolling the recurrence gives, row by row,
 *
 *   d_i = beta_i (v_i - exp(G_i) S^T k_i - sum over j < i  of (k_i . k_j) D_ij d_j)
 *   o_i =               exp(G_i) S^T q_i + sum over j <= i of (q_i . k_j) D_ij d_j
 *
 * and after its last row S becomes exp(G_last) S + sum over j of exp(G_last - G_j) k_j d_j^T. Everything but the sums
 * over d is products of whole blocks; a row needs only S and the rows before it, so a chunk may be entered in
 * any number of calls: the state keeps k, d and G of its rows. A single row (decoding) reads S once and writes one
 * row of d; S itself changes with the chunk's last row, and then into a second place: what a call that stays within a
 * chunk did is undone by going back to the position before it.
 *
 * G is summed in double, and differences are formed before they are rounded: exp(G) alone may underflow, and small
 * differences of large sums keep their digits.
 *
 * The state, one block per key head:
 *   k    [dk][CHUNK]            keys of the chunk as columns
 *   then per value head of this key head
 *   s    [2][dk][width]         of chunk number c in s[c % 2]; width: dv rounded up to 16, zeros beyond dv
 *   d    [CHUNK][width]
 *   sums [CHUNK] double         G */
#include "compute/delta.h"
#include "compute/context.h"

#include <math.h>
#include <string.h>

#define CHUNK QVL_DELTA_CHUNK
#define BLOCK 16 /* rows of a chunk whose sums over earlier blocks are one product */

typedef struct layout {
    int64_t ratio, width;
    int64_t keys, head, block; /* floats of k, of a value head, of a key head with its value heads */
} layout;

static layout layout_of(const qvl_delta_shape *shape) {
    layout l = {.ratio = shape->value_heads / shape->key_heads, .width = qvl_ceil_div(shape->value_dim, 16) * 16};
    l.keys = shape->key_dim * CHUNK;
    l.head = 2 * shape->key_dim * l.width + CHUNK * l.width + 2 * CHUNK;
    l.block = l.keys + l.ratio * l.head;
    return l;
}

int64_t qvl_delta_state_floats(const qvl_delta_shape *shape) {
    return layout_of(shape).block * shape->key_heads;
}

/* The parts of a value head's state in one chunk. */
typedef struct head_state {
    const float *s;
    float *next, *d; /* next: s of the chunk after it */
    double *sums;
} head_state;

static head_state head_state_at(const qvl_delta_shape *shape, const layout *l, float *block, int64_t head,
                                int64_t position) {
    int64_t floats = shape->key_dim * l->width, odd = position / CHUNK % 2;
    float *both = block + l->keys + head * l->head, *d = both + 2 * floats;
    return (head_state){both + odd * floats, both + (1 - odd) * floats, d,
                        (double *)(void *)(d + CHUNK * l->width)};
}

typedef struct rule_job {
    const qvl_compute *compute;
    const qvl_delta_shape *shape;
    layout l;
    const float *mixed, *log_decay, *beta;
    int64_t rows, position;
    float *state, *out;
} rule_job;

/* Rows first..first+count-1 of a chunk, which are rows `row`.. of the call; the worker's scratch. */
typedef struct piece {
    int64_t row, first, count;
    float *units;     /* [2 count][dk]: k, then q, normalised */
    float *scores;    /* [2 count][CHUNK]: k . k_j, then q . k_j */
    float *read;      /* [2 count][width]: S^T k, then S^T q */
    float *k_weights; /* [count][CHUNK]: (k_i . k_j) D_ij for j < i */
    float *q_weights; /* [count][CHUNK]: (q_i . k_j) D_ij for j <= i, else 0 */
    float *starts;    /* [count]: exp(G_i) */
    float *sums;      /* [CHUNK][width] */
} piece;

static void take_scratch(const rule_job *job, int worker, piece *p) {
    float *scratch = qvl_pool_scratch(job->compute->pool, worker);
    p->units = scratch;
    p->scores = p->units + 2 * CHUNK * job->shape->key_dim;
    p->k_weights = p->scores + 2 * CHUNK * CHUNK;
    p->q_weights = p->k_weights + CHUNK * CHUNK;
    p->starts = p->q_weights + CHUNK * CHUNK;
    p->read = p->starts + CHUNK;
    p->sums = p->read + 2 * CHUNK * job->l.width;
}

/* c[rows, columns] = a b, columns a multiple of 16. */
static void multiply(const rule_job *job, int64_t rows, int64_t columns, int64_t k, const float *a, int64_t lda,
                     const float *b, int64_t ldb, float *c, int64_t ldc, bool add) {
    for (int64_t j = 0; j < columns;) {
        int64_t n = columns - j >= 32 ? 32 : 16;
        job->compute->kernels->product(rows, n, k, a, lda, b + j, ldb, c + j, ldc, add, (qvl_ahead){0});
        j += n;
    }
}

/* Normalises the piece's k and q, enters its keys as columns, and multiplies. */
static void enter_keys(const rule_job *job, int64_t key_head, const piece *p, float *keys) {
    const qvl_delta_shape *shape = job->shape;
    int64_t dk = shape->key_dim, channels = 2 * shape->key_heads * dk + shape->value_heads * shape->value_dim;
    float scale = (float)(1.0 / sqrt((double)dk));
    for (int64_t i = 0; i < p->count; i++) {
        const float *q = job->mixed + (p->row + i) * channels + key_head * dk, *k = q + shape->key_heads * dk;
        float *unit = p->units + i * dk;
        job->compute->delta->l2_norm(dk, k, 1.0f, unit);
        job->compute->delta->l2_norm(dk, q, scale, p->units + (p->count + i) * dk);
        for (int64_t c = 0; c < dk; c++) keys[c * CHUNK + p->first + i] = unit[c];
    }
    int64_t columns = qvl_ceil_div(p->first + p->count, 16) * 16;
    multiply(job, 2 * p->count, columns, dk, p->units, dk, keys, CHUNK, p->scores, CHUNK, false);
}

/* weights_j = exp(G_i - G_j) for j <= i; NaN where a decay is not finite. */
static void decays(const rule_job *job, const double *sums, int64_t i, float *weights) {
    for (int64_t j = 0; j <= i; j++) weights[j] = (float)(sums[i] - sums[j]);
    job->compute->kernels->exponentials(i + 1, weights, 0.0f, QVL_LOG2E, false);
    if (!isfinite(sums[i]))
        for (int64_t j = 0; j <= i; j++) weights[j] = NAN;
}

/* G of the piece's rows, and the scores times decays. */
static void weigh_scores(const rule_job *job, int64_t head, const piece *p, double *sums) {
    memset(p->q_weights, 0, (size_t)(p->count * CHUNK) * sizeof(float));
    for (int64_t n = 0; n < p->count; n++) {
        int64_t i = p->first + n;
        const float *k_scores = p->scores + n * CHUNK, *q_scores = p->scores + (p->count + n) * CHUNK;
        float *k_weights = p->k_weights + n * CHUNK, *q_weights = p->q_weights + n * CHUNK;
        sums[i] = (i ? sums[i - 1] : 0.0) + (double)job->log_decay[(p->row + n) * job->shape->value_heads + head];
        p->starts[n] = (float)sums[i];
        job->compute->kernels->exponentials(1, p->starts + n, 0.0f, QVL_LOG2E, false);
        decays(job, sums, i, q_weights);
        for (int64_t j = 0; j < i; j++) k_weights[j] = k_scores[j] * q_weights[j];
        for (int64_t j = 0; j <= i; j++) q_weights[j] = q_scores[j] * q_weights[j];
    }
}

/* d and out of rows first..end-1 of the chunk, all in one block. The sum over earlier rows is the sum over earlier
 * blocks plus that over this block, whichever rows come together. */
static void solve_block(const rule_job *job, int64_t head, const piece *p, const head_state *state, int64_t first,
                        int64_t end) {
    const qvl_delta_shape *shape = job->shape;
    int64_t dv = shape->value_dim, width = job->l.width, heads = shape->value_heads;
    int64_t values = 2 * shape->key_heads * shape->key_dim, channels = values + heads * dv;
    int64_t block = first / BLOCK * BLOCK, n = first - p->first, row = p->row + n;
    const float *k_weights = p->k_weights + n * CHUNK, *read = p->read + n * width;
    multiply(job, end - first, width, block, k_weights, CHUNK, state->d, width, p->sums, width, false);
    for (int64_t i = 0; i < end - first; i++) {
        float *sum = p->sums + i * width;
        multiply(job, 1, width, first + i - block, k_weights + i * CHUNK + block, CHUNK, state->d + block * width,
                 width, sum, width, true);
        job->compute->delta->correction(dv, job->mixed + (row + i) * channels + values + head * dv,
                                        p->starts[n + i], read + i * width, sum,
                                        job->beta[(row + i) * heads + head], state->d + (first + i) * width);
    }
    multiply(job, end - first, width, end, p->q_weights + n * CHUNK, CHUNK, state->d, width, p->sums, width,
             false);
    for (int64_t i = 0; i < end - first; i++) {
        float *sum = p->sums + i * width;
        job->compute->delta->add_scaled(dv, p->starts[n + i], read + (p->count + i) * width, sum);
        memcpy(job->out + ((row + i) * heads + head) * dv, sum, (size_t)dv * sizeof(float));
    }
}

/* s = exp(G_last) S + sum over the first `rows` rows of exp(G_last - G_j) k_j d_j^T. scaled: [CHUNK][width]. */
static void close_chunk(const rule_job *job, const float *keys, const head_state *state, int64_t rows, float *s,
                        float *scaled) {
    int64_t width = job->l.width, dk = job->shape->key_dim;
    float weights[CHUNK], last = (float)state->sums[rows - 1];
    decays(job, state->sums, rows - 1, weights);
    job->compute->kernels->exponentials(1, &last, 0.0f, QVL_LOG2E, false);
    memcpy(scaled, state->d, (size_t)(rows * width) * sizeof(float));
    for (int64_t j = 0; j < rows; j++) job->compute->kernels->scale(width, scaled + j * width, weights[j]);
    multiply(job, dk, width, rows, keys, CHUNK, scaled, width, s, width, false);
    job->compute->delta->add_scaled(dk * width, last, state->s, s);
}

/* One value head over one piece. */
static void value_head(const rule_job *job, int64_t head, const piece *p, const float *keys,
                       const head_state *state) {
    int64_t dk = job->shape->key_dim, width = job->l.width, end = p->first + p->count;
    multiply(job, 2 * p->count, width, dk, p->units, dk, state->s, width, p->read, width, false);
    weigh_scores(job, head, p, state->sums);
    for (int64_t i = p->first; i < end;) {
        int64_t block_end = qvl_min_i64(i / BLOCK * BLOCK + BLOCK, end);
        solve_block(job, head, p, state, i, block_end);
        i = block_end;
    }
    if (end == CHUNK) close_chunk(job, keys, state, CHUNK, state->next, p->sums);
}

/* One key head and the value heads that read it, chunk after chunk. */
static void run_key_head(void *user, int64_t task, int worker) {
    const rule_job *job = user;
    float *block = job->state + task * job->l.block;
    piece p = {0};
    take_scratch(job, worker, &p);
    for (p.row = 0; p.row < job->rows; p.row += p.count) {
        p.first = (job->position + p.row) % CHUNK;
        p.count = qvl_min_i64(CHUNK - p.first, job->rows - p.row);
        enter_keys(job, task, &p, block);
        for (int64_t i = 0; i < job->l.ratio; i++) {
            head_state state = head_state_at(job->shape, &job->l, block, i, job->position + p.row);
            value_head(job, task * job->l.ratio + i, &p, block, &state);
        }
    }
}

void qvl_delta_rule(qvl_compute *compute, const qvl_delta_shape *shape, const float *mixed, const float *log_decay,
                    const float *beta, int64_t rows, int64_t position, float *state, float *out) {
    rule_job job = {compute, shape, layout_of(shape), mixed, log_decay, beta, rows, position, state, out};
    qvl_pool_run(compute->pool, shape->key_heads, run_key_head, &job);
}

/* ---- states */

static void read_key_head(void *user, int64_t task, int worker) {
    const rule_job *job = user;
    const qvl_delta_shape *shape = job->shape;
    int64_t dk = shape->key_dim, dv = shape->value_dim, width = job->l.width, rows = job->position % CHUNK;
    float *block = job->state + task * job->l.block, *s = qvl_pool_scratch(job->compute->pool, worker);
    for (int64_t i = 0; i < job->l.ratio; i++) {
        head_state state = head_state_at(shape, &job->l, block, i, job->position);
        memcpy(s, state.s, (size_t)(dk * width) * sizeof(float));
        if (rows) close_chunk(job, block, &state, rows, s, s + dk * width);
        float *out = job->out + (task * job->l.ratio + i) * dk * dv;
        for (int64_t r = 0; r < dk; r++) memcpy(out + r * dv, s + r * width, (size_t)dv * sizeof(float));
    }
}

void qvl_delta_state_read(qvl_compute *compute, const qvl_delta_shape *shape, float *state, int64_t position,
                          float *s) {
    rule_job job = {
        .compute = compute, .shape = shape, .l = layout_of(shape), .position = position, .state = state, .out = s};
    qvl_pool_run(compute->pool, shape->key_heads, read_key_head, &job);
}

int64_t qvl_delta_saved_floats(const qvl_delta_shape *shape, int64_t position) {
    layout l = layout_of(shape);
    int64_t rows = position % CHUNK;
    return shape->key_heads *
           (rows * shape->key_dim + l.ratio * (shape->key_dim * l.width + rows * (l.width + 2)));
}

/* count floats from state to saved, or back; moves *saved on. */
static void move(bool save, float *state, float **saved, int64_t count) {
    if (count) memcpy(save ? *saved : state, save ? state : *saved, (size_t)count * sizeof(float));
    *saved += count;
}

/* What is left of the state at a position: S of its chunk, and that chunk's rows so far. */
static void move_state(bool save, const qvl_delta_shape *shape, float *state, int64_t position, float *saved) {
    layout l = layout_of(shape);
    int64_t rows = position % CHUNK, floats = shape->key_dim * l.width, odd = position / CHUNK % 2;
    for (int64_t k = 0; k < shape->key_heads; k++, state += l.block) {
        for (int64_t c = 0; c < shape->key_dim; c++) move(save, state + c * CHUNK, &saved, rows);
        for (int64_t i = 0; i < l.ratio; i++) {
            float *head = state + l.keys + i * l.head, *d = head + 2 * floats;
            move(save, head + odd * floats, &saved, floats);
            move(save, d, &saved, rows * l.width);
            move(save, d + CHUNK * l.width, &saved, 2 * rows); /* sums */
        }
    }
}

void qvl_delta_save(const qvl_delta_shape *shape, float *state, int64_t position, float *saved) {
    move_state(true, shape, state, position, saved);
}

void qvl_delta_load(const qvl_delta_shape *shape, float *saved, int64_t position, float *state) {
    move_state(false, shape, state, position, saved);
}
