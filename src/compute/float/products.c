/* y = a W^T + b in blocks of rows x columns, one block a task. A block's sums stay in the worker's scratch over
 * all of k; what becomes of them (store, add, gelu) happens when the last chunk is in. */
#include "compute/float/layout.h"

#include <string.h>

/* Sums over k run in chunks of 256: each chunk from zero, chunk sums added in order. */
#define K_CHUNK 256

#define BLOCK_ROWS 144 /* 144 x 256 floats of the operand stay in L2 while six panels pass */
#define BLOCK_PANELS 6

typedef struct product_job {
    const qvl_compute *compute;
    const qvl_operand *a;
    const qvl_weight *w;
    qvl_epilogue kind;
    bool round;
    float *out; /* [a->rows, w->n] */
    int64_t row_blocks;
} product_job;

/* A panel's packed rows of k from `first` on: a chunk of them. */
static qvl_ahead packed_chunk(const product_job *job, int64_t panel, int64_t first) {
    size_t element = job->compute->round ? sizeof(uint16_t) : sizeof(float);
    size_t at = ((size_t)panel * (size_t)job->w->k + (size_t)first) * QVL_PANEL * element;
    int64_t count = qvl_min_i64(K_CHUNK, job->w->k - first);
    return (qvl_ahead){(const void *)((uintptr_t)job->w->packed + at), count * QVL_PANEL * (int64_t)element};
}

/* The chunk as float: the packed floats themselves, or widened into buffer. */
static const float *panel_chunk(const product_job *job, int64_t panel, int64_t first, int64_t count,
                                float *buffer) {
    const void *packed = packed_chunk(job, panel, first).from;
    if (!job->compute->round) return packed;
    job->compute->kernels->widen_bf16(count * QVL_PANEL, packed, buffer);
    return buffer;
}

/* What is read after the chunk from `first` on of panel first_panel + panel: chunks go over all panels of a block.
 * Behind the last one lies what the next block begins with, if it has the same rows. */
static qvl_ahead chunk_after(const product_job *job, int64_t first_panel, int64_t panels, int64_t panel,
                             int64_t first) {
    if (panel + 1 < panels) return packed_chunk(job, first_panel + panel + 1, first);
    if (first + K_CHUNK < job->w->k) return packed_chunk(job, first_panel, first + K_CHUNK);
    return packed_chunk(job, first_panel + panels, 0);
}

static void product_block(void *user, int64_t task, int worker) {
    const product_job *job = user;
    const qvl_kernels *kernels = job->compute->kernels;
    int64_t n = job->w->n, k = job->w->k;
    int64_t row = task % job->row_blocks * BLOCK_ROWS, panel = task / job->row_blocks * BLOCK_PANELS;
    int64_t rows = job->a->rows - row < BLOCK_ROWS ? job->a->rows - row : BLOCK_ROWS;
    int64_t column = panel * QVL_PANEL;
    int64_t columns = n - column < BLOCK_PANELS * QVL_PANEL ? n - column : BLOCK_PANELS * QVL_PANEL;
    int64_t panels = qvl_ceil_div(columns, QVL_PANEL), ldc = BLOCK_PANELS * QVL_PANEL;

    float *sums = qvl_pool_scratch(job->compute->pool, worker);
    float *buffer = sums + BLOCK_ROWS * BLOCK_PANELS * QVL_PANEL;
    const float *a = (const float *)job->a->data + row * k;
    for (int64_t first = 0; first < k; first += K_CHUNK) {
        int64_t chunk = k - first < K_CHUNK ? k - first : K_CHUNK;
        for (int64_t p = 0; p < panels; p++) {
            const float *b = panel_chunk(job, panel + p, first, chunk, buffer);
            kernels->product(rows, QVL_PANEL, chunk, a + first, k, b, QVL_PANEL, sums + p * QVL_PANEL, ldc,
                             first > 0, chunk_after(job, panel, panels, p, first));
        }
    }
    kernels->finish(job->kind, job->round, rows, columns, sums, ldc, job->w->bias + column,
                    job->out + row * n + column, n);
}

void qvl_float_product(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind,
                       float *stream, qvl_operand *operand) {
    product_job job = {compute,
                       a,
                       w,
                       kind,
                       operand && compute->round,
                       operand ? operand->data : stream,
                       qvl_ceil_div(a->rows, BLOCK_ROWS)};
    int64_t column_blocks = qvl_ceil_div(w->n, BLOCK_PANELS * QVL_PANEL);
    qvl_pool_run(compute->pool, job.row_blocks * column_blocks, product_block, &job);
}
