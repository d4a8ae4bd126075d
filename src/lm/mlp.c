/* What comes after attention: SwiGLU, or a few experts of many. */
#include "lm/lm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- dense */

void qvl_mlp_open(qvl_lm *lm, const char *name, int64_t width, qvl_mlp *m) {
    int64_t h = lm->config.hidden_size;
    char full[160];
    snprintf(full, sizeof full, "%s.gate_proj", name);
    qvl_text_matrix(&lm->tensors, full, width, h, &m->gate);
    snprintf(full, sizeof full, "%s.up_proj", name);
    qvl_text_matrix(&lm->tensors, full, width, h, &m->up);
    snprintf(full, sizeof full, "%s.down_proj", name);
    qvl_text_matrix(&lm->tensors, full, h, width, &m->down);
}

/* out [rows, hidden_size] = or += down(silu(gate(x)) * up(x)) */
static void swiglu(qvl_pass *p, const qvl_mlp *m, const float *x, int64_t rows, bool add, float *out) {
    qvl_operand in = qvl_pass_operand(p, x, rows, m->gate.k);
    qvl_project(p->compute, &in, (qvl_projection[]){{&m->gate, p->gate, false}, {&m->up, p->up, false}}, 2);
    qvl_swiglu(p->compute, p->gate, p->up, rows * m->gate.n);
    qvl_operand inner = qvl_pass_operand(p, p->gate, rows, m->down.k);
    qvl_project(p->compute, &inner, &(qvl_projection){&m->down, out, add}, 1);
}

void qvl_mlp_run(qvl_pass *p, const qvl_mlp *m, int32_t index) {
    swiglu(p, m, p->normed, p->rows, true, p->hidden);
    qvl_pass_tap(p, index, "mlp", p->gate, m->gate.n, 0);
}

/* ---- experts */

/* Which rows go to which expert, and their way there and back. */
struct qvl_routing {
    float *scores;    /* [rows, experts] */
    int32_t *chosen;  /* [rows, experts_per_token], increasing */
    float *weights;   /* [rows, experts_per_token] */
    int64_t *members; /* [rows]: those of the expert at work */
    float *member_weights;
    float *gathered, *out; /* [rows, hidden_size] */
};

void qvl_moe_open(qvl_lm *lm, const char *name, qvl_moe *m) {
    const qvl_text_config *c = &lm->config;
    qvl_text_tensors *t = &lm->tensors;
    char full[128];
    snprintf(full, sizeof full, "%s.gate", name);
    qvl_text_matrix(t, full, c->experts, c->hidden_size, &m->router);
    if (t->status) return;
    size_t count = (size_t)c->experts;
    m->experts.gate = qvl_calloc(3 * count, sizeof(qvl_matrix));
    if (!m->experts.gate) {
        t->status = qvl_fail_memory(t->error, "experts", 3 * count, sizeof(qvl_matrix));
        return;
    }
    m->experts.up = m->experts.gate + count;
    m->experts.down = m->experts.up + count;
    qvl_text_experts(t, name, c->experts, c->expert_intermediate_size, c->hidden_size, &m->experts);
    m->has_shared = c->hybrid.shared_intermediate_size > 0;
    if (!m->has_shared) return;
    char shared[96];
    snprintf(shared, sizeof shared, "%.64s.shared_expert", name);
    qvl_mlp_open(lm, shared, c->hybrid.shared_intermediate_size, &m->shared);
    snprintf(full, sizeof full, "%s.shared_expert_gate", name);
    qvl_text_matrix(t, full, 1, c->hidden_size, &m->shared_gate);
}

void qvl_moe_release(qvl_moe *m) {
    qvl_free(m->experts.gate);
    m->experts = (qvl_experts){0};
}

void qvl_routing_take(qvl_pass *p, qvl_arena *arena) {
    const qvl_text_config *c = p->config;
    size_t rows = (size_t)p->rows, hidden = rows * (size_t)c->hidden_size;
    size_t chosen = rows * (size_t)c->experts_per_token;
    struct qvl_routing r;
    struct qvl_routing *place = qvl_arena_take(arena, 1, sizeof *place);
    r.scores = qvl_arena_take(arena, rows * (size_t)c->experts, sizeof(float));
    r.chosen = qvl_arena_take(arena, chosen, sizeof(int32_t));
    r.weights = qvl_arena_take(arena, chosen, sizeof(float));
    r.members = qvl_arena_take(arena, rows, sizeof(int64_t));
    r.member_weights = qvl_arena_take(arena, rows, sizeof(float));
    r.gathered = qvl_arena_take(arena, hidden, sizeof(float));
    r.out = qvl_arena_take(arena, hidden, sizeof(float));
    if (place) *place = r;
    p->routing = place;
}

/* The experts_per_token largest of a row's probabilities, the lower number first where two are equal, in the order of
 * their numbers; their weights are divided by their sum. */
static void choose(const qvl_text_config *c, const float *scores, int32_t *chosen, float *weights) {
    int32_t count = 0;
    for (int32_t e = 0; e < c->experts; e++) {
        int32_t at = count;
        while (at > 0 && scores[e] > weights[at - 1]) at--;
        if (at == c->experts_per_token) continue;
        if (count < c->experts_per_token) count++;
        for (int32_t i = count - 1; i > at; i--) {
            weights[i] = weights[i - 1];
            chosen[i] = chosen[i - 1];
        }
        weights[at] = scores[e];
        chosen[at] = e;
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < count; i++) sum += weights[i];
    for (int32_t i = 0; i < count; i++) weights[i] /= sum;
    for (int32_t i = 1; i < count; i++)
        for (int32_t j = i; j > 0 && chosen[j] < chosen[j - 1]; j--) {
            int32_t expert = chosen[j];
            float weight = weights[j];
            chosen[j] = chosen[j - 1], weights[j] = weights[j - 1];
            chosen[j - 1] = expert, weights[j - 1] = weight;
        }
}

static void route(qvl_pass *p, const qvl_moe *m, int32_t index) {
    const qvl_text_config *c = p->config;
    struct qvl_routing *r = p->routing;
    qvl_operand x = qvl_pass_operand(p, p->normed, p->rows, c->hidden_size);
    qvl_project(p->compute, &x, &(qvl_projection){&m->router, r->scores, false}, 1);
    qvl_pass_tap(p, index, "router", r->scores, c->experts, 0);
    qvl_softmax_rows(p->compute, r->scores, p->rows, c->experts);
    for (int64_t row = 0; row < p->rows; row++)
        choose(c, r->scores + row * c->experts, r->chosen + row * c->experts_per_token,
               r->weights + row * c->experts_per_token);
}

typedef struct copy_job {
    const struct qvl_routing *r;
    float *rows; /* [pass rows, width]: read by gather, added to by scatter */
    int64_t width;
} copy_job;

static void gather_row(void *user, int64_t i, int worker) {
    (void)worker;
    const copy_job *job = user;
    memcpy(job->r->gathered + i * job->width, job->rows + job->r->members[i] * job->width,
           (size_t)job->width * sizeof(float));
}

static void scatter_row(void *user, int64_t i, int worker) {
    (void)worker;
    const copy_job *job = user;
    const float *from = job->r->out + i * job->width;
    float *to = job->rows + job->r->members[i] * job->width, weight = job->r->member_weights[i];
    for (int64_t d = 0; d < job->width; d++) to[d] += weight * from[d];
}

/* The rows that chose an expert; their number. */
static int64_t find_members(const qvl_pass *p, int32_t expert) {
    const struct qvl_routing *r = p->routing;
    int64_t per_row = p->config->experts_per_token, count = 0;
    for (int64_t i = 0; i < p->rows * per_row; i++)
        if (r->chosen[i] == expert) {
            r->members[count] = i / per_row;
            r->member_weights[count++] = r->weights[i];
        }
    return count;
}

/* hidden += sigmoid(gate(normed)) * shared(normed) */
static void run_shared(qvl_pass *p, const qvl_moe *m) {
    struct qvl_routing *r = p->routing;
    qvl_operand x = qvl_pass_operand(p, p->normed, p->rows, p->config->hidden_size);
    qvl_project(p->compute, &x, &(qvl_projection){&m->shared_gate, r->member_weights, false}, 1);
    for (int64_t row = 0; row < p->rows; row++) {
        r->members[row] = row;
        r->member_weights[row] = (float)(1.0 / (1.0 + exp(-(double)r->member_weights[row])));
    }
    swiglu(p, &m->shared, p->normed, p->rows, false, r->out);
    copy_job scatter = {r, p->hidden, p->config->hidden_size};
    qvl_pool_run(p->lm->model->pool, p->rows, scatter_row, &scatter);
}

void qvl_moe_run(qvl_pass *p, const qvl_moe *m, int32_t index) {
    const qvl_text_config *c = p->config;
    struct qvl_routing *r = p->routing;
    qvl_pool *pool = p->lm->model->pool;
    route(p, m, index);
    copy_job gather = {r, p->normed, c->hidden_size}, scatter = {r, p->hidden, c->hidden_size};
    for (int32_t e = 0; e < c->experts; e++) {
        int64_t members = find_members(p, e);
        if (!members) continue;
        qvl_mlp expert = {m->experts.gate[e], m->experts.up[e], m->experts.down[e]};
        qvl_pool_run(pool, members, gather_row, &gather);
        swiglu(p, &expert, r->gathered, members, false, r->out);
        qvl_pool_run(pool, members, scatter_row, &scatter);
    }
    if (m->has_shared) run_shared(p, m);
}

/* ---- either */

void qvl_feed_forward_open(qvl_lm *lm, const char *layer, qvl_feed_forward *f) {
    const qvl_text_config *c = &lm->config;
    char name[64];
    snprintf(name, sizeof name, "%s.post_attention_layernorm.weight", layer);
    f->norm = qvl_text_vector(&lm->tensors, name, c->hidden_size, lm->norm_offset);
    snprintf(name, sizeof name, "%s.mlp", layer);
    if (c->experts)
        qvl_moe_open(lm, name, &f->moe);
    else
        qvl_mlp_open(lm, name, c->intermediate_size, &f->mlp);
}

void qvl_feed_forward_release(qvl_feed_forward *f) {
    qvl_moe_release(&f->moe);
}

void qvl_feed_forward_run(qvl_pass *p, const qvl_feed_forward *f, int32_t index) {
    const qvl_text_config *c = p->config;
    qvl_rms_norm(p->compute, p->hidden, p->rows, c->hidden_size, f->norm, c->eps, p->normed);
    qvl_pass_tap(p, index, "norm2", p->normed, c->hidden_size, 0);
    if (c->experts)
        qvl_moe_run(p, &f->moe, index);
    else
        qvl_mlp_run(p, &f->mlp, index);
}
