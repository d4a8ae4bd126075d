#include "preprocess/patches.h"

#include <string.h>

/* A byte has 256 values, so normalisation is a table; the three references round at different places. */
void qvl_normalise_table(const qvl_processor_config *processor, qvl_preset preset, float table[3][256]) {
    for (int c = 0; c < 3; c++) {
        float mean = processor->mean[c], std = processor->std[c];
        if (preset == QVL_PRESET_TRANSFORMERS) { /* fused: bytes are never scaled, mean and std are */
            float inverse = (float)(1.0 / processor->rescale_factor);
            mean *= inverse;
            std *= inverse;
        }
        for (int byte = 0; byte < 256; byte++) {
            float value = (float)byte;
            if (preset == QVL_PRESET_TRANSFORMERS_PIL) value = (float)((double)byte * processor->rescale_factor);
            if (preset == QVL_PRESET_MLX) value = (float)byte * (float)processor->rescale_factor;
            table[c][byte] = (value - mean) / std;
        }
    }
}

typedef struct patch_job {
    const qvl_image *images; /* [given], of one size */
    int64_t given;
    const float (*table)[256];
    float *rows;
    int64_t patch, frames, merge, columns; /* columns: of a patch row */
} patch_job;

/* One patch whose top left pixel has this offset in each frame. */
static void write_patch(const patch_job *job, size_t offset, float *row) {
    size_t stride = (size_t)job->images->width * 3, plane = (size_t)(job->patch * job->patch);
    for (int c = 0; c < 3; c++) {
        const float *table = job->table[c];
        for (int64_t t = 0; t < job->frames; t++, row += plane) {
            if (t >= job->given) {
                memcpy(row, row - plane, plane * sizeof *row);
                continue;
            }
            const uint8_t *in = job->images[t].pixels + offset + c;
            float *out = row;
            for (int64_t y = 0; y < job->patch; y++, in += stride)
                for (int64_t x = 0; x < job->patch; x++) *out++ = table[in[3 * x]];
        }
    }
}

/* One row of merge blocks, which is one run of patch rows: block by block, and inside a block line by line. */
static void block_row_task(void *user, int64_t task, int worker) {
    (void)worker;
    const patch_job *job = user;
    int64_t width = job->images->width, side = job->patch * job->merge, blocks = width / side;
    float *row = job->rows + task * blocks * job->merge * job->merge * job->columns;
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t my = 0; my < job->merge; my++)
            for (int64_t mx = 0; mx < job->merge; mx++, row += job->columns) {
                int64_t y = task * side + my * job->patch, x = block * side + mx * job->patch;
                write_patch(job, (size_t)(3 * (y * width + x)), row);
            }
}

void qvl_patch_rows(qvl_pool *pool, const qvl_image *frames, size_t count, const qvl_vision_config *vision,
                    const float table[3][256], float *rows) {
    int64_t patch = vision->patch_size, merge = vision->spatial_merge_size, temporal = vision->temporal_patch_size;
    patch_job job = {frames, (int64_t)count, table, rows, patch, temporal, merge, 3 * temporal * patch * patch};
    qvl_pool_run(pool, frames->height / (patch * merge), block_row_task, &job);
}
