/* y = a W^T + b over tiles. A task is a block of rows x columns: its rows of a stay in L2 while column panels
 * stream by. A long k is cut into slices, whose partial sums stay in the worker's scratch. How rows and columns
 * are split over tasks depends on the number of threads; no sum does. */
#include "compute/tile/layout.h"

#include <string.h>

#define SLICE_STEPS 36 /* 1152 of k: the width of the largest tower runs in one slice */

typedef struct product_job {
    const qvl_compute *compute;
    qvl_tile_product product;
    int64_t row_blocks, block_rows;       /* block_rows: a multiple of 32 */
    int64_t column_blocks, block_columns; /* block_columns: in panels */
    int64_t panels, pieces;               /* pieces: column blocks, the last one perhaps in two halves */
} product_job;

/* Where a piece begins; where the last one ends for piece == pieces. */
static int64_t first_panel(const product_job *job, int64_t piece) {
    if (piece == job->pieces) return job->panels;
    if (piece < job->column_blocks) return piece * job->block_columns;
    int64_t last = (job->column_blocks - 1) * job->block_columns;
    return last + qvl_ceil_div(job->panels - last, 2);
}

static void product_block(void *user, int64_t task, int worker) {
    const product_job *job = user;
    const qvl_tile_kernels *tiles = job->compute->tiles;
    int64_t row = task % job->row_blocks * job->block_rows;
    int64_t rows = qvl_min_i64(job->block_rows, job->product.rows - row);
    int64_t panel = first_panel(job, task / job->row_blocks);
    int64_t end = first_panel(job, task / job->row_blocks + 1);
    tiles->begin();
    tiles->product(&job->product, row, rows, panel, end - panel, qvl_pool_scratch(job->compute->pool, worker));
    tiles->end();
}

/* Enough tasks that all threads work to the end, few enough that blocks stay large. With fewer than eight a thread
 * the last column block is done in halves: a thread whose processor is slower, or shared, keeps the others waiting
 * for half as long, and what those fetch twice is little. */
static void plan_blocks(product_job *job, int64_t threads) {
    int64_t row_panels = qvl_ceil_div(job->product.rows, QVL_PANEL_ROWS);
    int64_t blocks = qvl_ceil_div(row_panels, QVL_MAX_BLOCK_ROWS / QVL_PANEL_ROWS);
    blocks = qvl_min_i64(qvl_ceil_div(blocks, threads) * threads, row_panels);
    int64_t per_block = qvl_ceil_div(row_panels, blocks);
    job->block_rows = per_block * QVL_PANEL_ROWS;
    job->row_blocks = qvl_ceil_div(row_panels, per_block);
    int64_t wanted = qvl_ceil_div(4 * threads, job->row_blocks);
    job->block_columns = qvl_ceil_div(job->panels, wanted);
    if (job->block_columns > QVL_MAX_BLOCK_PANELS) job->block_columns = QVL_MAX_BLOCK_PANELS;
    job->column_blocks = qvl_ceil_div(job->panels, job->block_columns);
    bool few = threads > 1 && job->row_blocks * job->column_blocks < 8 * threads;
    job->pieces = job->column_blocks + (few && job->panels - (job->column_blocks - 1) * job->block_columns > 1);
}

/* Column panels of 48 may end before the operand's last step of 32 does. */
static void zero_last_step(const qvl_tile_product *p, int64_t panels) {
    if (panels * QVL_PANEL_COLUMNS >= p->operand_steps * QVL_STEP) return;
    for (int64_t panel = 0; panel < qvl_ceil_div(p->rows, QVL_PANEL_ROWS); panel++)
        memset(p->operand + ((panel + 1) * p->operand_steps - 1) * 2 * QVL_TILE, 0,
               2 * QVL_TILE * sizeof(uint16_t));
}

qvl_tile_product qvl_tile_plan_product(const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind) {
    int64_t steps = qvl_steps(w->k), slices = qvl_ceil_div(steps, SLICE_STEPS);
    return (qvl_tile_product){.a = a->data,
                              .b = w->packed,
                              .rows = a->rows,
                              .n = w->n,
                              .steps = steps,
                              .slice = qvl_ceil_div(steps, slices),
                              .kind = kind,
                              .bias = w->bias,
                              .stream_stride = w->n};
}

void qvl_tile_run_product(qvl_compute *compute, const qvl_operand *a, const qvl_weight *w, qvl_epilogue kind,
                          float *stream, qvl_operand *operand) {
    product_job job = {.compute = compute, .panels = qvl_ceil_div(w->n, QVL_PANEL_COLUMNS)};
    job.product = qvl_tile_plan_product(a, w, kind);
    job.product.stream = stream;
    job.product.operand = operand ? operand->data : NULL;
    job.product.operand_steps = qvl_steps(w->n);
    if (operand) zero_last_step(&job.product, job.panels);
    plan_blocks(&job, qvl_pool_threads(compute->pool));
    qvl_pool_run(compute->pool, job.row_blocks * job.pieces, product_block, &job);
}
