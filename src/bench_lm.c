/* Times a language model beside what it cannot exceed: the rate at which its weights can be read, and the products alone. */
#include "base/clock.h"
#include "lm/lm.h"

#include <string.h>

#define MAX_RUNS 1000
#define PART ((size_t)1 << 20)      /* of one read task */
#define MOST_READ ((size_t)1 << 30) /* of the weights */

typedef struct bench {
    const qvl_lm *lm;
    int64_t rows;
    int32_t runs;
    double *seconds; /* [3][runs] */
    float *values, *logits, *out;
    int64_t *integers;
    uint16_t *matrix;
    void *packed, *operand;
} bench;

/* ---- reading */

typedef struct read_job {
    const uint8_t *bytes;
    size_t count;
    _Atomic uint64_t sum; /* so that reading is not left out */
} read_job;

static void read_part(void *user, int64_t task, int worker) {
    (void)worker;
    read_job *job = user;
    size_t first = (size_t)task * PART, n = job->count - first < PART ? job->count - first : PART;
    const uint8_t *p = job->bytes + first;
    uint64_t sums[4] = {0};
    for (size_t i = 0; i + 32 <= n; i += 32) {
        uint64_t words[4];
        memcpy(words, p + i, sizeof words);
        for (int j = 0; j < 4; j++) sums[j] += words[j];
    }
    job->sum += sums[0] + sums[1] + sums[2] + sums[3];
}

/* The largest file of the weights, or as much of it as is enough. */
static double time_reading(const bench *b, size_t *bytes) {
    const qvl_tower_files *files = &b->lm->tensors.files;
    read_job job = {0};
    for (int32_t i = 0; i < files->count; i++)
        if (files->files[i].map.count > job.count) {
            job.bytes = files->files[i].map.bytes;
            job.count = files->files[i].map.count;
        }
    if (job.count > MOST_READ) job.count = MOST_READ;
    *bytes = job.count;
    double first = qvl_seconds();
    qvl_pool_run(b->lm->model->pool, (int64_t)((job.count + PART - 1) / PART), read_part, &job);
    return qvl_seconds() - first;
}

/* ---- products of one layer */

enum { MOST_PRODUCTS = 11 };

typedef struct product_shape {
    int64_t n, k;
} product_shape;

/* Those of the kind of layer that the model has most of: attention, or linear attention; then the MLP, an expert, the
 * expert that every row goes to. The number of them. */
static int list_products(const qvl_text_config *c, product_shape shapes[MOST_PRODUCTS]) {
    const qvl_hybrid_config *l = &c->hybrid;
    int64_t h = c->hidden_size, q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    int64_t values = (int64_t)l->value_heads * l->value_dim, keys = (int64_t)l->key_heads * l->key_dim;
    int64_t inner = c->experts ? c->expert_intermediate_size : c->intermediate_size;
    int64_t shared = l->shared_intermediate_size;
    const product_shape linear[] = {
        {2 * keys + values, h}, {values, h}, {l->value_heads, h}, {l->value_heads, h}, {h, values}};
    const product_shape full[] = {{l->on ? 2 * q : q, h}, {kv, h}, {kv, h}, {h, q}};
    const product_shape mlp[] = {{inner, h}, {inner, h}, {h, inner}},
                        every[] = {{shared, h}, {shared, h}, {h, shared}};
    bool is_linear = 2 * l->linear_layers > c->layers;
    int count = is_linear ? 5 : 4;
    memcpy(shapes, is_linear ? linear : full, (size_t)count * sizeof *shapes);
    memcpy(shapes + count, mlp, sizeof mlp);
    count += 3;
    if (shared) memcpy(shapes + count, every, sizeof every);
    return shared ? count + 3 : count;
}

static void time_products(bench *b, const product_shape *s, double *direct, double *packed) {
    qvl_compute *compute = b->lm->compute;
    qvl_operand a = {b->rows, s->k, b->operand};
    qvl_weight w = {s->n, s->k, b->packed, b->values}; /* values begin with zeros enough for a bias */
    qvl_matrix m = {.n = s->n, .k = s->k, .dtype = QVL_BF16, .stride = s->k, .data = (const uint8_t *)b->matrix};
    qvl_operand_load(compute, b->out, &a);
    qvl_weight_pack(compute, b->matrix, QVL_BF16, &w);
    for (int32_t r = 0; r < b->runs; r++) {
        double first = qvl_seconds();
        qvl_project(compute, &a, &(qvl_projection){&m, b->out, false}, 1);
        double second = qvl_seconds();
        qvl_matmul(compute, &a, &w, b->out);
        b->seconds[r] = second - first;
        b->seconds[b->runs + r] = qvl_seconds() - second;
    }
    *direct += qvl_median(b->seconds, b->runs);
    *packed += qvl_median(b->seconds + b->runs, b->runs);
}

/* ---- prefill and steps */

static qvl_prompt make_prompt(const bench *b) {
    const qvl_text_config *c = &b->lm->config;
    qvl_prompt p = {.length = b->rows, .width = c->hidden_size, .dtype = qvl_compute_dtype(b->lm->compute)};
    p.input_ids = b->integers;
    p.token_types = b->integers + b->rows;
    p.position_ids = b->integers + 2 * b->rows;
    p.inputs_embeds = b->values;
    for (int64_t i = 0; i < 3 * b->rows; i++) p.position_ids[i] = i % b->rows;
    uint32_t state = 1;
    for (int64_t i = 0; i < b->rows * p.width; i++) {
        state = state * 1664525u + 1013904223u;
        float x = ((float)(state >> 8) - 8388608.0f) / 8388608.0f;
        if (p.dtype == QVL_F32)
            b->values[i] = x;
        else
            ((uint16_t *)b->values)[i] = (uint16_t)((x < 0 ? 0xbc00 : 0x3c00) + (state >> 25));
    }
    return p;
}

static qvl_status time_sequence(bench *b, qvl_lm_times *times, qvl_error *error) {
    qvl_sequence *sequence = NULL;
    qvl_prompt prompt = make_prompt(b);
    qvl_status status = qvl_sequence_open(b->lm, NULL, &sequence, error);
    size_t bytes = 1;
    for (int32_t r = -1; r < b->runs && !status; r++) { /* the first one warms */
        status = qvl_sequence_truncate(sequence, 0, 0, error);
        double first = qvl_seconds();
        if (!status) status = qvl_sequence_prefill(sequence, &prompt, 0, NULL, b->logits, error);
        if (r >= 0) b->seconds[r] = qvl_seconds() - first;
    }
    for (int32_t r = -1; r < b->runs && !status; r++) {
        double first = qvl_seconds();
        status = qvl_sequence_step(sequence, 1, NULL, b->logits, error);
        double step = qvl_seconds() - first, reading = time_reading(b, &bytes);
        if (r < 0) continue;
        b->seconds[b->runs + r] = step;
        b->seconds[2 * b->runs + r] = reading;
    }
    qvl_sequence_close(&sequence);
    if (status) return status;
    times->prefill_seconds = qvl_median(b->seconds, b->runs);
    times->step_seconds = qvl_median(b->seconds + b->runs, b->runs);
    times->read_rate = (double)bytes / qvl_median(b->seconds + 2 * b->runs, b->runs);
    times->step_bytes = b->lm->info.decode_bytes + b->rows * b->lm->info.cache_bytes +
                        qvl_linear_read_bytes(&b->lm->linear, b->rows);
    return QVL_OK;
}

/* ---- memory */

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static qvl_status allocate(bench *b, qvl_error *error) {
    const qvl_text_config *c = &b->lm->config;
    const qvl_compute *compute = b->lm->compute;
    product_shape shapes[MOST_PRODUCTS];
    int64_t n = 1, k = c->hidden_size, elements = 1;
    size_t packed = 1;
    for (int i = 0, count = list_products(c, shapes); i < count; i++) {
        n = larger(n, shapes[i].n);
        k = larger(k, shapes[i].k);
        elements = larger(elements, shapes[i].n * shapes[i].k);
        size_t bytes = qvl_weight_bytes(compute, shapes[i].n, shapes[i].k);
        packed = bytes > packed ? bytes : packed;
    }
    int64_t values = larger(b->rows * c->hidden_size, n);
    b->seconds = qvl_calloc(3 * (size_t)b->runs, sizeof(double));
    b->values = qvl_calloc((size_t)values, sizeof(float));
    b->logits = qvl_calloc((size_t)c->vocab_size, sizeof(float));
    b->out = qvl_calloc((size_t)(b->rows * larger(n, k)), sizeof(float));
    b->integers = qvl_calloc(5 * (size_t)b->rows, sizeof(int64_t));
    b->matrix = qvl_calloc((size_t)elements, sizeof(uint16_t));
    b->packed = qvl_calloc(packed, 1);
    b->operand = qvl_calloc(qvl_operand_bytes(compute, b->rows, k), 1);
    if (!b->seconds || !b->values || !b->logits || !b->out || !b->integers || !b->matrix || !b->packed ||
        !b->operand)
        return qvl_fail_memory(error, "language model benchmark", (size_t)(values + elements), sizeof(float));
    for (int64_t i = 0; i < elements; i++)
        b->matrix[i] = (uint16_t)(0x3c00 + i * 7919 % 256 + (i % 3 ? 0x8000 : 0));
    return QVL_OK;
}

qvl_status qvl_bench_lm(const qvl_lm *lm, int64_t rows, int32_t runs, qvl_lm_times *times, qvl_error *error) {
    *times = (qvl_lm_times){.rows = rows};
    if (rows < 2 || rows > 4096 || runs < 1 || runs > MAX_RUNS)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "%lld rows, %d runs; allowed are 2 to 4096, and 1 to %d",
                        (long long)rows, runs, MAX_RUNS);
    bench b = {.lm = lm, .rows = rows, .runs = runs};
    product_shape shapes[MOST_PRODUCTS];
    qvl_status status = allocate(&b, error);
    for (int i = 0, count = list_products(&lm->config, shapes); i < count && !status; i++) {
        time_products(&b, &shapes[i], &times->product_seconds, &times->packed_seconds);
        times->product_flops += 2.0 * (double)rows * (double)shapes[i].n * (double)shapes[i].k;
    }
    if (!status) status = time_sequence(&b, times, error);
    void *all[] = {b.seconds, b.values, b.logits, b.out, b.integers, b.matrix, b.packed, b.operand};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) qvl_free(all[i]);
    return status;
}
