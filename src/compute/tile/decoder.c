/* Products with matrices as they lie, for the tile backend: dot products of rows, which are read where they are if they
 * are bf16, and made bf16 a slice at a time if they are not. A task is a panel of columns and a block of rows. Slices of
 * k are summed by themselves, their sums added in order; what is in a slice is the same for any number of rows. */
#include "compute/matrix.h"
#include "compute/tile/layout.h"

#define FEW_ROWS 8 /* below, panels are small where threads would get too few of them */
#define FEW_COLUMNS 48
#define FEW_PANELS 4 /* of a thread */
#define LD                                                                                                        \
    (QVL_DOT_STEPS * QVL_STEP + QVL_STEP) /* of expanded rows: not all of them in the same set of the cache */

typedef struct project_job {
    const qvl_compute *compute;
    const qvl_operand *a;
    const qvl_projection *projections;
    int64_t width;  /* of a panel */
    int64_t panels; /* of all projections; tasks that follow each other share a block of rows */
} project_job;

static const uint8_t *slice_of(const qvl_matrix *w, int64_t column, int64_t step) {
    return w->data + (size_t)(column * w->stride + step * QVL_STEP) * sizeof(uint16_t);
}

/* The slice's rows of w: where they lie, or expanded into buffer. Threads take panels in turn, so that after its last
 * slice this one most likely goes on with the panel that is as many further as there are threads. */
static void take_rows(const project_job *job, const qvl_matrix *w, int64_t column, int64_t step, uint16_t *buffer,
                      qvl_tile_dot *d) {
    int64_t left = w->k - (step + d->steps - 1) * QVL_STEP;
    d->last = left >= QVL_STEP ? UINT32_MAX : (1u << left) - 1u;
    if (w->dtype == QVL_BF16 && !w->by_columns) {
        int64_t further = column + job->width * qvl_pool_threads(job->compute->pool);
        d->w = d->next = slice_of(w, column, step);
        d->row_bytes = (size_t)w->stride * sizeof(uint16_t);
        if (step + d->steps < qvl_steps(w->k))
            d->next = slice_of(w, column, step + d->steps);
        else if (further + 8 <= w->n)
            d->next = slice_of(w, further, 0);
        return;
    }
    job->compute->decoder_tiles->expand(w, column, d->columns, step, d->steps, buffer, LD);
    d->w = d->next = (const uint8_t *)buffer;
    d->row_bytes = LD * sizeof(uint16_t);
}

static void project_panel(void *user, int64_t task, int worker) {
    const project_job *job = user;
    const qvl_decoder_tiles *tiles = job->compute->decoder_tiles;
    int64_t panel, first_row = task / job->panels * QVL_DOT_ROWS;
    const qvl_projection *p =
        &job->projections[qvl_find_panel(job->projections, job->width, task % job->panels, &panel)];
    const qvl_matrix *w = p->w;
    int64_t column = panel * job->width, steps = qvl_steps(w->k);
    const uint16_t *a = (const uint16_t *)job->a->data + first_row / QVL_PANEL_ROWS * steps * 2 * QVL_TILE;
    float *sums = qvl_pool_scratch(job->compute->pool, worker);
    uint16_t *scratch = (uint16_t *)(sums + QVL_DOT_ROWS * QVL_DOT_COLUMNS);
    qvl_tile_dot d = {.a_steps = steps,
                      .rows = qvl_min_i64(QVL_DOT_ROWS, job->a->rows - first_row),
                      .columns = qvl_min_i64(job->width, w->n - column),
                      .sums = sums,
                      .scratch = scratch};
    job->compute->tiles->begin();
    for (int64_t step = 0; step < steps; step += QVL_DOT_STEPS) {
        d.steps = qvl_min_i64(QVL_DOT_STEPS, steps - step);
        d.a = a + step * 2 * QVL_TILE;
        d.add = step > 0;
        take_rows(job, w, column, step, scratch + QVL_DOT_SCRATCH, &d);
        tiles->dot(&d);
    }
    job->compute->tiles->end();
    tiles->finish(p->add, d.rows, d.columns, sums, p->y + first_row * w->n + column, w->n);
}

void qvl_tile_project(qvl_compute *compute, const qvl_operand *a, const qvl_projection *projections, int count) {
    project_job job = {compute, a, projections, QVL_DOT_COLUMNS, 0};
    int64_t columns = 0;
    for (int i = 0; i < count; i++) columns += projections[i].w->n;
    if (a->rows < FEW_ROWS && columns < FEW_PANELS * QVL_DOT_COLUMNS * qvl_pool_threads(compute->pool))
        job.width = FEW_COLUMNS;
    for (int i = 0; i < count; i++) job.panels += qvl_ceil_div(projections[i].w->n, job.width);
    qvl_pool_run(compute->pool, job.panels * qvl_ceil_div(a->rows, QVL_DOT_ROWS), project_panel, &job);
}
