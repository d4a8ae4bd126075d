/* Sessions: opened, closed, and their runs of the tower. */
#include "session.h"

#include "base/listing.h"
#include "base/memory.h"
#include "base/options.h"
#include "cache/encoder_cache.h"
#include "preprocess/item.h"

void qvl_encode_options_init(qvl_encode_options *options) {
    *options = (qvl_encode_options){.size = sizeof *options};
}

qvl_status qvl_session_open(qvl_model *model, qvl_session **out, qvl_error *error) {
    *out = NULL;
    if (!model->tower)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "%s was opened without weights; a session needs QVL_OPEN_WEIGHTS", model->folder);
    qvl_session *session = qvl_calloc(1, sizeof *session);
    if (!session) return qvl_fail_memory(error, "session", 1, sizeof *session);
    session->model = model;
    *out = session;
    return QVL_OK;
}

const qvl_model *qvl_session_model(const qvl_session *session) {
    return session->model;
}

void qvl_session_close(qvl_session **session) {
    if (!session || !*session) return;
    qvl_free((*session)->scratch.base);
    qvl_free((*session)->rows.base);
    qvl_free(*session);
    *session = NULL;
}

/* ---- the cache */

static qvl_status weights_of(qvl_model *model, const char *memory_folder, qvl_error *error) {
    pthread_mutex_lock(&model->fingerprint_lock);
    qvl_status status = QVL_OK;
    if (!model->fingerprint[0]) status = qvl_model_fingerprint(model, memory_folder, model->fingerprint, error);
    pthread_mutex_unlock(&model->fingerprint_lock);
    return status;
}

/* Everything but the patch rows that features depend on. Which instruction set computes them is in it, though docs/
 * NUMERICS.md promises equal bits for some. */
static qvl_status identify_tower(const qvl_model *model, char identity[QVL_SHA256_HEX], qvl_error *error) {
    const qvl_vision_config *v = &model->config.vision;
    qvl_listing l = qvl_listing_open(8 + QVL_MAX_DEEPSTACK, error);
    qvl_listing_put(&l, "qvl tower 1\nweights %s\n", model->fingerprint);
    qvl_listing_put(&l, "computed in %s by %s, numerics %d\n", qvl_dtype_name(model->info.compute_dtype),
                    model->info.kernels, QVL_NUMERICS);
    qvl_listing_put(&l, "depth %d, width %d, heads %d, mlp %d, out %d\n", v->depth, v->hidden_size, v->num_heads,
                    v->intermediate_size, v->out_hidden_size);
    qvl_listing_put(&l, "channels %d, patches %d x %d x %d, merged %d\n", v->in_channels, v->temporal_patch_size,
                    v->patch_size, v->patch_size, v->spatial_merge_size);
    qvl_listing_put(&l, "positions %d, theta %a\n", v->num_position_embeddings, (double)v->rope_theta);
    for (int32_t i = 0; i < v->deepstack_count; i++)
        qvl_listing_put(&l, "deepstack %d\n", v->deepstack_indexes[i]);
    return qvl_listing_close(&l, identity);
}

qvl_status qvl_session_use_cache(qvl_session *session, qvl_cache *cache, qvl_error *error) {
    session->cache = NULL;
    if (!cache) return QVL_OK;
    qvl_status status = weights_of(session->model, qvl_cache_folder(cache), error);
    if (!status) status = identify_tower(session->model, session->cache_identity, error);
    if (!status) session->cache = cache;
    return status;
}

/* ---- admission */

static bool go_on(void *user) {
    const qvl_tower_call *call = user;
    return call->options.progress(0, 1, call->options.progress_user);
}

qvl_status qvl_session_run(qvl_session *session, const qvl_tower_call *call, qvl_error *error) {
    qvl_model *model = session->model;
    const qvl_patience asking = {go_on, (void *)(uintptr_t)call};
    if (!qvl_gate_enter(&model->admission, call->options.progress ? &asking : NULL))
        return qvl_fail(error, QVL_ERROR_CANCELLED, "encoding was cancelled before it began");
    qvl_status status = qvl_tower_run(model->tower, model->compute, &session->scratch, call, error);
    qvl_gate_leave(&model->admission);
    return status;
}

/* ---- patch rows and hidden states */

static qvl_status check_patches(const qvl_model *model, const qvl_patches *patches, qvl_error *error) {
    const qvl_vision_config *v = &model->config.vision;
    int64_t cols = (int64_t)v->in_channels * v->temporal_patch_size * v->patch_size * v->patch_size, rows = 0;
    if (patches->cols != cols)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "patch rows have %lld columns; this model's have %lld",
                        (long long)patches->cols, (long long)cols);
    for (size_t i = 0; i < patches->item_count; i++) {
        qvl_grid g = patches->items[i].grid;
        int64_t area, item;
        if (!qvl_mul_i64(g.h, g.w, &area) || !qvl_mul_i64(area, g.t, &item) || item > INT32_MAX - rows)
            return qvl_fail(error, QVL_ERROR_ARGUMENT, "grid %zu is (%lld, %lld, %lld), which is impossible", i,
                            (long long)g.t, (long long)g.h, (long long)g.w);
        rows += item;
    }
    if (rows != patches->rows)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the grids make %lld patch rows, but %lld are given",
                        (long long)rows, (long long)patches->rows);
    return QVL_OK;
}

static qvl_status copy_items(const qvl_tower_call *call, const qvl_item *items, int64_t merge, qvl_error *error) {
    size_t count = call->grid_count;
    qvl_item *copy = qvl_calloc(count, sizeof *copy);
    if (!copy) return qvl_fail_memory(error, "items", count, sizeof *copy);
    call->features->items = copy;
    for (size_t i = 0; i < count; i++) {
        qvl_grid g = call->grids[i];
        qvl_status status = items ? qvl_item_copy(&items[i], &copy[i], error) : QVL_OK;
        if (status) return status;
        call->features->item_count = i + 1;
        copy[i].grid = g;
        copy[i].origin = (qvl_origin){.encoded = g.t};
        copy[i].tokens = g.t * g.h * g.w / (merge * merge);
    }
    return QVL_OK;
}

/* Runs the tower. The features, if wanted, get a copy of the items with their tokens counted. */
static qvl_status run_tower(qvl_session *session, qvl_tower_call *call, const qvl_item *items,
                            const qvl_encode_options *given, qvl_error *error) {
    qvl_encode_options_init(&call->options);
    qvl_status status = qvl_options_take(&call->options, sizeof call->options, given, error);
    if (!status && call->grid_count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no patch rows given");
    if (!status) status = qvl_session_run(session, call, error);
    if (status || !call->features) return status;
    status = copy_items(call, items, session->model->config.vision.spatial_merge_size, error);
    if (status) qvl_features_free(call->features);
    return status;
}

qvl_status qvl_vision_encode(qvl_session *session, const qvl_patches *patches, const qvl_encode_options *options,
                             qvl_features *features, qvl_error *error) {
    *features = (qvl_features){0};
    qvl_status status = check_patches(session->model, patches, error);
    if (status) return status;
    size_t count = patches->item_count;
    qvl_grid *grids = qvl_alloc(count + 1, sizeof *grids);
    if (!grids) return qvl_fail_memory(error, "grids", count, sizeof *grids);
    for (size_t i = 0; i < count; i++) grids[i] = patches->items[i].grid;
    qvl_tower_call call = {.patches = patches->values, .grids = grids, .grid_count = count, .features = features};
    status = run_tower(session, &call, patches->items, options, error);
    qvl_free(grids);
    return status;
}

qvl_status qvl_vision_blocks(qvl_session *session, float *hidden, const qvl_grid *grids, size_t grid_count,
                             const qvl_encode_options *options, qvl_features *features, qvl_error *error) {
    if (features) *features = (qvl_features){0};
    qvl_tower_call call = {.hidden = hidden, .grids = grids, .grid_count = grid_count, .features = features};
    return run_tower(session, &call, NULL, options, error);
}

qvl_status qvl_vision_scratch(const qvl_model *model, const qvl_grid *grids, size_t grid_count, size_t *bytes,
                              qvl_error *error) {
    return qvl_tower_scratch_bytes(&model->config.vision, model->compute, grids, grid_count, false, bytes, error);
}
