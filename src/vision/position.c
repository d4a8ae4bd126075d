#include "vision/position.h"

#include <math.h>
#include <string.h>

qvl_status qvl_positions_count(const qvl_vision_config *config, const qvl_grid *grids, size_t count,
                               qvl_positions *positions, qvl_error *error) {
    *positions = (qvl_positions){0};
    int64_t merge = config->spatial_merge_size;
    if (count == 0) return qvl_fail(error, QVL_ERROR_ARGUMENT, "no grids given");
    for (size_t i = 0; i < count; i++) {
        qvl_grid g = grids[i];
        if (g.t < 1 || g.h < 1 || g.w < 1 || g.h % merge || g.w % merge)
            return qvl_fail(
                error, QVL_ERROR_ARGUMENT,
                "grid %zu is (%lld, %lld, %lld); t, h and w must be positive, h and w multiples of %lld", i,
                (long long)g.t, (long long)g.h, (long long)g.w, (long long)merge);
        int64_t patches, rows;
        if (!qvl_mul_i64(g.h, g.w, &patches) || !qvl_mul_i64(patches, g.t, &rows) ||
            rows > INT32_MAX - positions->rows)
            return qvl_fail(error, QVL_ERROR_LIMIT, "grid %zu, (%lld, %lld, %lld), makes more than %d patch rows",
                            i, (long long)g.t, (long long)g.h, (long long)g.w, INT32_MAX);
        positions->rows += rows;
        positions->segments.count += g.t;
        if (g.h > positions->side) positions->side = g.h;
        if (g.w > positions->side) positions->side = g.w;
    }
    positions->tokens = positions->rows / (merge * merge);
    return QVL_OK;
}

void qvl_positions_take(const qvl_vision_config *config, qvl_positions *positions, qvl_arena *arena) {
    size_t rows = (size_t)positions->rows, half = (size_t)config->head_dim / 2;
    positions->segment_start = qvl_arena_take(arena, (size_t)positions->segments.count + 1, sizeof(int64_t));
    positions->segments.start = positions->segment_start;
    positions->indices = qvl_arena_take(arena, rows, sizeof *positions->indices);
    positions->weights = qvl_arena_take(arena, rows, sizeof *positions->weights);
    positions->cosine = qvl_arena_take(arena, rows * half, sizeof(float));
    positions->sine = qvl_arena_take(arena, rows * half, sizeof(float));
    positions->angles = qvl_arena_take(arena, 2 * (size_t)positions->side * (half / 2), sizeof(float));
}

/* The two taps along an axis of n patches over a table of side S (vision_tower.md 4.1, transformers 5.x): multiply
 * first, then divide, everything in f32. */
typedef struct axis_taps {
    int32_t first, second;
    float first_weight, second_weight;
} axis_taps;

static axis_taps taps_at(int64_t i, int64_t n, int32_t side) {
    float source = (float)(i * (side - 1)) / (float)(n > 1 ? n - 1 : 1);
    float floor_value = floorf(source);
    int32_t f = (int32_t)floor_value;
    float w0 = 1.0f - fabsf(source - floor_value);
    float w1 = 1.0f - fabsf(source - floor_value - 1.0f);
    axis_taps t;
    t.first = f < side - 1 ? f : side - 1;
    t.second = f + 1 < side - 1 ? f + 1 : side - 1;
    t.first_weight = w0 > 0.0f ? w0 : 0.0f;
    t.second_weight = w1 > 0.0f ? w1 : 0.0f;
    return t;
}

static void set_table_taps(const qvl_vision_config *config, qvl_grid g, int64_t i, int64_t j, int32_t index[4],
                           float weight[4]) {
    int32_t side = config->position_side;
    axis_taps r = taps_at(i, g.h, side), c = taps_at(j, g.w, side);
    index[0] = r.first * side + c.first;
    index[1] = r.first * side + c.second;
    index[2] = r.second * side + c.first;
    index[3] = r.second * side + c.second;
    weight[0] = r.first_weight * c.first_weight;
    weight[1] = r.first_weight * c.second_weight;
    weight[2] = r.second_weight * c.first_weight;
    weight[3] = r.second_weight * c.second_weight;
}

/* Cosine and sine of coordinate * theta^(-2k/half), k < head_dim/4. Powers and functions are taken in double and
 * rounded once: within an ulp of torch's f32 ones, and the same on every machine. */
static void fill_angles(const qvl_vision_config *config, qvl_positions *positions) {
    int64_t half = config->head_dim / 2, quarter = half / 2;
    float *cosine = positions->angles, *sine = cosine + positions->side * quarter;
    for (int64_t k = 0; k < quarter; k++) {
        float exponent = (float)(2 * k) / (float)half;
        float inverse = 1.0f / (float)pow((double)config->rope_theta, (double)exponent);
        for (int64_t x = 0; x < positions->side; x++) {
            float angle = (float)x * inverse;
            cosine[x * quarter + k] = (float)cos((double)angle);
            sine[x * quarter + k] = (float)sin((double)angle);
        }
    }
}

static void set_angles(const qvl_vision_config *config, qvl_positions *positions, int64_t row, int64_t i,
                       int64_t j) {
    int64_t half = config->head_dim / 2, quarter = half / 2;
    const float *cosine = positions->angles, *sine = cosine + positions->side * quarter;
    size_t bytes = (size_t)quarter * sizeof(float);
    memcpy(positions->cosine + row * half, cosine + i * quarter, bytes);
    memcpy(positions->cosine + row * half + quarter, cosine + j * quarter, bytes);
    memcpy(positions->sine + row * half, sine + i * quarter, bytes);
    memcpy(positions->sine + row * half + quarter, sine + j * quarter, bytes);
}

void qvl_positions_fill(const qvl_vision_config *config, const qvl_grid *grids, size_t count,
                        qvl_positions *positions) {
    fill_angles(config, positions);
    int64_t merge = config->spatial_merge_size, row = 0, segment = 0;
    for (size_t item = 0; item < count; item++) {
        qvl_grid g = grids[item];
        for (int64_t t = 0; t < g.t; t++) {
            positions->segment_start[segment++] = row;
            for (int64_t in_order = 0; in_order < g.h * g.w; in_order++, row++) {
                int64_t inside = in_order % (merge * merge), block = in_order / (merge * merge);
                int64_t i = block / (g.w / merge) * merge + inside / merge;
                int64_t j = block % (g.w / merge) * merge + inside % merge;
                set_table_taps(config, g, i, j, positions->indices[row], positions->weights[row]);
                set_angles(config, positions, row, i, j);
            }
        }
    }
    positions->segment_start[segment] = row;
}
