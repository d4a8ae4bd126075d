#include "prompt/mrope.h"

#include "base/memory.h"

/* The walk: axes [3, length] is filled from `at` on; `next` is the position of what follows. */
typedef struct walk {
    int64_t *positions;
    int64_t length, at, next, largest;
} walk;

static void put(walk *w, int64_t t, int64_t h, int64_t width) {
    int64_t most = h > width ? h : width;
    if (t > most) most = t;
    if (most > w->largest) w->largest = most;
    w->positions[w->at] = t;
    w->positions[w->length + w->at] = h;
    w->positions[2 * w->length + w->at] = width;
    w->at++;
}

static void put_text(walk *w, int64_t count) {
    for (int64_t i = 0; i < count; i++) put(w, w->next + i, w->next + i, w->next + i);
    w->next += count;
}

static void put_grid(walk *w, const qvl_grid *grid, int64_t merge) {
    for (int64_t group = 0; group < grid->t; group++)
        for (int64_t row = 0; row < grid->h / merge; row++)
            for (int64_t column = 0; column < grid->w / merge; column++)
                put(w, w->next + group, w->next + row, w->next + column);
    w->next += (grid->h > grid->w ? grid->h : grid->w) / merge;
}

static qvl_status check_run(const qvl_grid *grid, int64_t count, int64_t at, int64_t merge, qvl_error *error) {
    int64_t tokens;
    if (merge < 1 || grid->t < 1 || grid->h < merge || grid->w < merge || grid->h % merge || grid->w % merge ||
        !qvl_mul_i64(grid->h / merge, grid->w / merge, &tokens) || !qvl_mul_i64(tokens, grid->t, &tokens))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "a grid of %lld x %lld x %lld patches is impossible for merge size %lld",
                        (long long)grid->t, (long long)grid->h, (long long)grid->w, (long long)merge);
    if (tokens == count) return QVL_OK;
    return qvl_fail(
        error, QVL_ERROR_ARGUMENT,
        "the run of pad tokens at entry %lld has %lld, but its grid of %lld x %lld x %lld patches makes "
        "%lld; pictures with nothing between them cannot be told apart",
        (long long)at, (long long)count, (long long)grid->t, (long long)grid->h, (long long)grid->w,
        (long long)tokens);
}

qvl_status qvl_mrope(const int64_t *types, int64_t length, const qvl_grid *grids, size_t grid_count, int64_t merge,
                     int64_t *positions, int64_t *delta, qvl_error *error) {
    walk w = {.positions = positions, .length = length};
    size_t used = 0;
    if (length < 1) return qvl_fail(error, QVL_ERROR_ARGUMENT, "a sequence without tokens has no positions");
    while (w.at < length) {
        int64_t type = types[w.at], count = 1;
        while (w.at + count < length && types[w.at + count] == type) count++;
        if (type == 0) {
            put_text(&w, count);
            continue;
        }
        if (used == grid_count)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "the run of pad tokens at entry %lld has no grid",
                            (long long)w.at);
        qvl_status status = check_run(&grids[used], count, w.at, merge, error);
        if (status) return status;
        put_grid(&w, &grids[used++], merge);
    }
    if (used < grid_count)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%zu grids are given, but there are only %zu runs of pad tokens", grid_count, used);
    *delta = w.largest + 1 - length;
    return QVL_OK;
}

/* ---- the public form: grids by kind */

qvl_status qvl_rope_index(const int64_t *token_types, int64_t length, const qvl_grid *image_grids,
                          size_t image_count, const qvl_grid *video_grids, size_t video_count, int64_t merge,
                          int64_t *position_ids, int64_t *rope_delta, qvl_error *error) {
    size_t most = 0, used = 0, images = 0, videos = 0;
    int64_t group = 0; /* of the present video */
    for (int64_t i = 0; i < length; i++)
        most += token_types[i] && (i == 0 || token_types[i] != token_types[i - 1]);
    qvl_grid *grids = qvl_alloc(most + 1, sizeof *grids);
    if (!grids) return qvl_fail_memory(error, "grids", most, sizeof *grids);
    qvl_status status = QVL_OK;
    for (int64_t i = 0; i < length && !status; i++) {
        int64_t type = token_types[i];
        if (type < 0 || type > 2)
            status = qvl_fail(error, QVL_ERROR_ARGUMENT, "entry %lld has the token type %lld; they are 0, 1 and 2",
                              (long long)i, (long long)type);
        if (type == 0 || (i > 0 && type == token_types[i - 1])) continue;
        if (type == 1 && images < image_count) grids[used++] = image_grids[images++];
        if (type == 2 && videos < video_count) {
            grids[used++] = (qvl_grid){1, video_grids[videos].h, video_grids[videos].w};
            if (++group >= video_grids[videos].t) {
                videos++;
                group = 0;
            }
        }
    }
    if (!status) status = qvl_mrope(token_types, length, grids, used, merge, position_ids, rope_delta, error);
    if (!status && (images < image_count || videos < video_count))
        status = qvl_fail(error, QVL_ERROR_ARGUMENT,
                          "%zu image and %zu video grids are given, but the runs of pad tokens use %zu and %zu",
                          image_count, video_count, images, videos);
    qvl_free(grids);
    return status;
}
