#include "pipeline.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "cache/content.h"
#include "cache/encoder_cache.h"
#include "preprocess/geometry.h"
#include "preprocess/patches.h"
#include "session.h"

#include <string.h>

/* Groups that may be ready before the tower wants them. */
#define AHEAD 2

/* A group that was read, or why it could not be. */
typedef struct ready {
    qvl_item *item; /* a copy, with the first group of an input; else NULL */
    qvl_group group;
    char key[QVL_SHA256_HEX];
    qvl_status status;
    qvl_error error;
} ready;

/* Reads the inputs among the sources, group by group. */
typedef struct reading {
    qvl_model *model;
    const qvl_encode_source *sources;
    size_t count, next; /* next source to open */
    const qvl_preprocess_options *options;
    const qvl_patience *patience;
    qvl_reader *reader; /* of source next - 1; NULL between inputs */
} reading;

typedef struct run {
    qvl_session *session;
    const qvl_encode_source *sources;
    size_t count;
    const qvl_encode_options *options;
    bool timed;       /* somebody wants a profile */
    qvl_cache *cache; /* NULL: none */
    qvl_encoded_fn done;
    void *user;
    qvl_encode_options inner;     /* of one run of the tower */
    qvl_patience asking;          /* asks for progress */
    const qvl_patience *patience; /* that, or NULL */
    qvl_patience until_closed;    /* of the thread that reads */
    reading reading;
    /* Ready groups go round: one is at work, AHEAD are in the queue, one is being read. */
    ready slots[AHEAD + 2];
    bool ahead; /* a thread reads */
    qvl_queue queue;
    pthread_t thread;
    /* What is at work. */
    size_t source;
    qvl_item *item;
    int64_t group, groups;        /* of the item */
    char (*keys)[QVL_SHA256_HEX]; /* [groups] */
    ready *at_work;
    float table[3][256];
} run;

static qvl_status named(const char *name, qvl_status status, qvl_error *error) {
    return status && name && status != QVL_ERROR_CANCELLED ? qvl_error_prefix(error, status, name) : status;
}

static qvl_status cancelled(qvl_error *error) {
    return qvl_fail(error, QVL_ERROR_CANCELLED, "encoding was cancelled");
}

/* ---- reading */

static void free_ready(ready *r) {
    qvl_group_free(&r->group);
    if (r->item) qvl_items_free(r->item, 1);
    *r = (ready){0};
}

static qvl_status open_input(reading *r, const qvl_encode_source *source, ready *out) {
    qvl_error *error = &out->error;
    qvl_status status = qvl_reader_open(r->model, r->model->pool, source->input, source->reading, r->options,
                                        r->patience, &r->reader, error);
    if (status) return status;
    const qvl_item *item = qvl_reader_item(r->reader), *planned = source->planned;
    if (planned &&
        (planned->width != item->width || planned->height != item->height || planned->grid.t != item->grid.t))
        return named(source->input->name, qvl_fail(error, QVL_ERROR_IO, "it changed while it was read"), error);
    out->item = qvl_calloc(1, sizeof *out->item);
    if (!out->item) return qvl_fail_memory(error, "item", 1, sizeof *out->item);
    return qvl_item_copy(item, out->item, error);
}

/* The next group: of the input that is open, or the first of the one after it. */
static void read_group(reading *r, ready *out) {
    qvl_status status = QVL_OK;
    if (!r->reader) {
        while (!r->sources[r->next].input) r->next++;
        status = open_input(r, &r->sources[r->next++], out);
    }
    const qvl_encode_source *source = &r->sources[r->next - 1];
    if (!status) status = qvl_reader_next(r->reader, &out->group, &out->error);
    const qvl_item *item = status ? NULL : qvl_reader_item(r->reader);
    if (item)
        status = qvl_group_key(&out->group, item, &r->model->config, r->options->preset, out->key, &out->error);
    if (status || out->group.index + 1 == item->grid.t) qvl_reader_close(&r->reader);
    out->status = source->input->name ? status : named(source->name, status, &out->error);
}

static void read_next(reading *r, ready *out) {
    /* Reading, too, does not take the cores of everybody else. */
    if (!qvl_gate_enter(&r->model->readers, r->patience)) {
        out->status = cancelled(&out->error);
        return;
    }
    read_group(r, out);
    qvl_gate_leave(&r->model->readers);
}

static bool inputs_left(const reading *r) {
    for (size_t i = r->next; i < r->count; i++)
        if (r->sources[i].input) return true;
    return r->reader != NULL;
}

/* ---- reading ahead */

static bool wanted(void *user) {
    return !qvl_queue_closed(&((run *)user)->queue);
}

static void *read_ahead(void *user) {
    run *r = user;
    bool on = true;
    for (size_t slot = 1; on && inputs_left(&r->reading); slot = (slot + 1) % (AHEAD + 2)) {
        read_next(&r->reading, &r->slots[slot]);
        on = !r->slots[slot].status;
        on = qvl_queue_push(&r->queue, &r->slots[slot]) && on;
    }
    return NULL;
}

/* From now on a thread reads; without one reading goes on as it did. */
static void start_reading_ahead(run *r) {
    qvl_queue_init(&r->queue, AHEAD);
    r->reading.patience = &r->until_closed;
    r->ahead = qvl_thread_start(&r->thread, read_ahead, r);
    if (r->ahead) return;
    qvl_queue_free(&r->queue);
    r->reading.patience = r->patience;
}

/* The next group of the inputs, to be freed by free_ready before the one after it is asked for. */
static qvl_status take_ready(run *r, ready **out, qvl_error *error) {
    if (r->ahead) {
        *out = qvl_queue_pop(&r->queue, r->patience);
        if (!*out) return cancelled(error);
    } else {
        *out = &r->slots[0];
        read_next(&r->reading, *out);
        if (!(*out)->status && !r->timed && inputs_left(&r->reading)) start_reading_ahead(r);
    }
    if ((*out)->status && error) *error = (*out)->error;
    return (*out)->status;
}

/* ---- progress: every source counts as much as one run of the tower */

static int64_t parts(const run *r) {
    return r->session->model->config.vision.depth + 1;
}

static bool report(const run *r, int64_t part) {
    if (!r->options->progress) return true;
    int64_t done = (int64_t)r->source * parts(r) + (r->group * parts(r) + part) / r->groups;
    return r->options->progress(done, (int64_t)r->count * parts(r), r->options->progress_user);
}

static bool step(int64_t done, int64_t total, void *user) {
    (void)total;
    return report(user, done);
}

static bool go_on(void *user) {
    return report(user, 0);
}

/* ---- one group */

static qvl_status make_room(qvl_scratch *rows, size_t count, size_t size, qvl_error *error) {
    size_t bytes;
    if (qvl_mul_size(count, size, &bytes) && bytes <= rows->capacity) return QVL_OK;
    qvl_free(rows->base);
    *rows = (qvl_scratch){.base = qvl_alloc(count, size)};
    if (!rows->base) return qvl_fail_memory(error, "patch rows", count, size);
    rows->capacity = bytes;
    return QVL_OK;
}

/* The group at work through the tower. */
static qvl_status encode_rows(void *user, qvl_features *features, qvl_error *error) {
    run *r = user;
    qvl_session *session = r->session;
    qvl_model *model = session->model;
    const qvl_grid grid = {1, r->item->grid.h, r->item->grid.w};
    size_t row = (size_t)qvl_patch_columns(&model->config.vision) * sizeof(float);
    qvl_status status = make_room(&session->rows, (size_t)(grid.h * grid.w), row, error);
    if (status) return status;
    double lap = qvl_seconds();
    const qvl_group *group = &r->at_work->group;
    qvl_patch_rows(model->pool, group->frames, group->frame_count, &model->config.vision,
                   (const float(*)[256])r->table, (float *)session->rows.base);
    qvl_profile *profile = r->reading.options->profile;
    if (profile) qvl_lap(profile, QVL_STAGE_ROWS, &lap);
    qvl_group_free(&r->at_work->group);
    const qvl_tower_call call = {.patches = (const float *)session->rows.base,
                                 .grids = &grid,
                                 .grid_count = 1,
                                 .options = r->inner,
                                 .features = features};
    return qvl_session_run(session, &call, error);
}

static qvl_status encode_anew(run *r, struct qvl_shared_features **shared, qvl_error *error) {
    qvl_features features = {0};
    qvl_status status = encode_rows(r, &features, error);
    return status ? status : qvl_features_share(&features, shared, error);
}

static qvl_status look_up(run *r, struct qvl_shared_features **shared, qvl_found *found, qvl_error *error) {
    const qvl_model *model = r->session->model;
    const qvl_vision_config *v = &model->config.vision;
    const qvl_item *item = r->item;
    qvl_cache_call call = {.shape = {qvl_compute_dtype(model->compute), item->tokens / item->grid.t,
                                     v->out_hidden_size, v->deepstack_count},
                           .encode = encode_rows,
                           .user = r,
                           .patience = r->patience};
    qvl_status status = qvl_entry_key(r->at_work->key, r->session->cache_identity, call.key, error);
    return status ? status : qvl_cache_get(r->cache, &call, shared, found, error);
}

static qvl_status encode_group(run *r, qvl_error *error) {
    struct qvl_shared_features *shared = NULL;
    qvl_found found = QVL_FOUND_NOWHERE;
    qvl_status status = r->cache ? look_up(r, &shared, &found, error) : encode_anew(r, &shared, error);
    if (status) return named(r->sources[r->source].name, status, error);
    qvl_item *item = r->item;
    ++*(found == QVL_FOUND_MEMORY ? &item->origin.memory
        : found == QVL_FOUND_DISK ? &item->origin.disk
                                  : &item->origin.encoded);
    char key[QVL_SHA256_HEX];
    bool last = r->group + 1 == r->groups;
    memcpy(r->keys[r->group], r->at_work->key, QVL_SHA256_HEX);
    if (last) status = qvl_item_key((const char(*)[QVL_SHA256_HEX])r->keys, item->grid, key, error);
    qvl_features view = qvl_shared_view(shared);
    const qvl_encoded encoded = {.source = r->source,
                                 .first = r->group,
                                 .count = 1,
                                 .item = item,
                                 .features = &view,
                                 .key = last ? key : NULL};
    if (!status) status = r->done(r->user, &encoded, error);
    qvl_features_free(&view);
    qvl_shared_release(shared);
    if (!status && found != QVL_FOUND_NOWHERE && !report(r, parts(r))) status = cancelled(error);
    return status;
}

/* ---- one source */

static qvl_status begin_item(run *r, qvl_error *error) {
    const qvl_model *model = r->session->model;
    r->item = r->at_work->item;
    r->at_work->item = NULL;
    r->groups = r->item->grid.t;
    qvl_normalise_table(qvl_item_processor(&model->config, r->item),
                        qvl_item_preset(r->reading.options->preset, r->item), r->table);
    r->keys = qvl_alloc((size_t)r->groups, sizeof *r->keys);
    return r->keys ? QVL_OK : qvl_fail_memory(error, "keys", (size_t)r->groups, sizeof *r->keys);
}

static void end_item(run *r) {
    qvl_free(r->keys);
    if (r->item) qvl_items_free(r->item, 1);
    r->keys = NULL;
    r->item = NULL;
    r->group = 0;
    r->groups = 1;
}

static qvl_status encode_input(run *r, qvl_error *error) {
    qvl_status status;
    do {
        status = take_ready(r, &r->at_work, error);
        if (status) break;
        if (r->at_work->item) status = begin_item(r, error);
        if (!status) status = encode_group(r, error);
        free_ready(r->at_work);
    } while (!status && ++r->group < r->groups);
    end_item(r);
    return status;
}

/* Patch rows or features of the caller's: handed on as a whole. */
static qvl_status encode_given(run *r, const qvl_encode_source *source, qvl_error *error) {
    qvl_features made = {0};
    const qvl_features *features = source->features;
    qvl_status status = QVL_OK;
    if (!features) {
        status = qvl_vision_encode(r->session, source->patches, &r->inner, &made, error);
        features = &made;
    }
    if (status) return named(source->name, status, error);
    const qvl_encoded encoded = {
        .source = r->source, .count = features->items[0].grid.t, .item = features->items, .features = features};
    status = r->done(r->user, &encoded, error);
    qvl_features_free(&made);
    if (!status && source->features && !report(r, parts(r))) status = cancelled(error);
    return status;
}

/* ---- all of them */

static void end_reading(run *r) {
    if (r->ahead) {
        qvl_queue_close(&r->queue);
        pthread_join(r->thread, NULL);
        qvl_queue_free(&r->queue);
    }
    for (size_t i = 0; i < AHEAD + 2; i++) free_ready(&r->slots[i]);
    qvl_reader_close(&r->reading.reader);
}

qvl_status qvl_pipeline_run(qvl_session *session, const qvl_encode_source *sources, size_t count,
                            const qvl_preprocess_options *preprocess, const qvl_encode_options *encode,
                            qvl_encoded_fn done, void *user, qvl_error *error) {
    run r = {.session = session,
             .sources = sources,
             .count = count,
             .options = encode,
             .timed = encode->profile || preprocess->profile,
             .done = done,
             .user = user,
             .groups = 1};
    r.cache = r.timed ? NULL : session->cache;
    r.asking = (qvl_patience){go_on, &r};
    r.until_closed = (qvl_patience){wanted, &r};
    r.patience = encode->progress ? &r.asking : NULL;
    r.reading = (reading){.model = session->model,
                          .sources = sources,
                          .count = count,
                          .options = preprocess,
                          .patience = r.patience};
    qvl_encode_options_init(&r.inner);
    r.inner.profile = encode->profile;
    r.inner.progress = encode->progress ? step : NULL;
    r.inner.progress_user = &r;
    qvl_status status = QVL_OK;
    for (; !status && r.source < count; r.source++)
        status = sources[r.source].input ? encode_input(&r, error) : encode_given(&r, &sources[r.source], error);
    end_reading(&r);
    return status;
}
