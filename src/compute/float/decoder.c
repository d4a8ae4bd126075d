/* Products with matrices as they lie, for the float backend. A task is a panel of 32 columns and a block of rows; it
 * lays the panel out chunk by chunk of k, so that sums run as those of products.c do. */
#include "compute/float/layout.h"
#include "compute/matrix.h"

#include <string.h>

#define K_CHUNK 256 /* as in products.c */
#define BLOCK_ROWS 1024

typedef struct project_job {
    const qvl_compute *compute;
    const qvl_operand *a;
    const qvl_projection *projections;
    int64_t row_blocks;
} project_job;

/* Values first.. of up to 32 rows of the panel side by side: the rows themselves, or a copy in buffer [32][K_CHUNK]. */
static const float *panel_rows(const project_job *job, const qvl_matrix *w, int64_t row, int64_t first,
                               int64_t count, int64_t *ld, float *buffer) {
    const qvl_compute *compute = job->compute;
    bool whole = w->n - row >= QVL_PANEL, direct = !w->bits && !w->by_columns;
    const uint8_t *values = w->data + (size_t)(row * w->stride + first) * (qvl_dtype_bits(w->dtype) / 8);
    if (whole && direct && w->dtype == QVL_F32 && !compute->round && (uintptr_t)values % sizeof(float) == 0) {
        *ld = w->stride;
        return (const float *)(const void *)values;
    }
    *ld = K_CHUNK;
    for (int64_t r = 0; r < QVL_PANEL; r++) {
        float *out = buffer + r * K_CHUNK;
        const uint8_t *halves = values + (size_t)(r * w->stride) * 2;
        if (r >= w->n - row)
            memset(out, 0, (size_t)count * sizeof *out);
        else if (direct && w->dtype == QVL_BF16 && (uintptr_t)halves % sizeof(uint16_t) == 0)
            compute->kernels->widen_bf16(count, (const uint16_t *)(const void *)halves, out);
        else
            qvl_matrix_read(w, row + r, first, count, out);
        if (compute->round && w->dtype != QVL_BF16) compute->kernels->round_bf16(count, out, out);
    }
    return buffer;
}

/* out [count][32] of a matrix that lies by columns. */
static void panel_columns(const project_job *job, const qvl_matrix *w, int64_t row, int64_t first, int64_t count,
                          float *out) {
    int64_t width = qvl_min_i64(QVL_PANEL, w->n - row);
    for (int64_t i = 0; i < count; i++, out += QVL_PANEL) {
        qvl_read_run(w->data, w->dtype, (size_t)((first + i) * w->stride + row), width, out);
        memset(out + width, 0, (size_t)(QVL_PANEL - width) * sizeof *out);
        if (job->compute->round) job->compute->kernels->round_bf16(QVL_PANEL, out, out);
    }
}

static void project_panel(void *user, int64_t task, int worker) {
    static const float no_bias[QVL_PANEL] = {0};
    const project_job *job = user;
    const qvl_kernels *kernels = job->compute->kernels;
    int64_t panel, row_block = task % job->row_blocks;
    const qvl_projection *p =
        &job->projections[qvl_find_panel(job->projections, QVL_PANEL, task / job->row_blocks, &panel)];
    const qvl_matrix *w = p->w;
    int64_t first_row = row_block * BLOCK_ROWS, rows = qvl_min_i64(BLOCK_ROWS, job->a->rows - first_row);
    int64_t column = panel * QVL_PANEL, ld;
    float *sums = qvl_pool_scratch(job->compute->pool, worker), *chunk = sums + BLOCK_ROWS * QVL_PANEL;
    float *buffer = chunk + K_CHUNK * QVL_PANEL;
    const float *a = (const float *)job->a->data + first_row * w->k;
    for (int64_t first = 0; first < w->k; first += K_CHUNK) {
        int64_t count = qvl_min_i64(K_CHUNK, w->k - first);
        if (w->by_columns) {
            panel_columns(job, w, column, first, count, chunk);
        } else {
            const float *in = panel_rows(job, w, column, first, count, &ld, buffer);
            job->compute->decoder->interleave(count, in, ld, chunk);
        }
        kernels->product(rows, QVL_PANEL, count, a + first, w->k, chunk, QVL_PANEL, sums, QVL_PANEL, first > 0,
                         (qvl_ahead){0});
    }
    kernels->finish(p->add ? QVL_EPILOGUE_ADD : QVL_EPILOGUE_STORE, false, rows,
                    qvl_min_i64(QVL_PANEL, w->n - column), sums, QVL_PANEL, no_bias,
                    p->y + first_row * w->n + column, w->n);
}

void qvl_float_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count) {
    project_job job = {compute, a, projections, qvl_ceil_div(a->rows, BLOCK_ROWS)};
    int64_t panels = 0;
    for (int i = 0; i < count; i++) panels += qvl_ceil_div(projections[i].w->n, QVL_PANEL);
    qvl_pool_run(compute->pool, panels * job.row_blocks, project_panel, &job);
}
