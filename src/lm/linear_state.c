#include "lm/linear_state.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <string.h>

struct qvl_snapshot {
    atomic_int owners;
    int64_t position;
    size_t bytes;  /* of values */
    float *values; /* per layer: convolution rows, then what qvl_delta_save makes */
};

/* ---- sizes */

static size_t layer_floats(const qvl_linear_shape *shape) {
    return (size_t)(shape->conv_floats + qvl_delta_state_floats(&shape->delta));
}

static size_t saved_floats(const qvl_linear_shape *shape, int64_t position) {
    return (size_t)(shape->layers * (shape->conv_floats + qvl_delta_saved_floats(&shape->delta, position)));
}

int64_t qvl_linear_read_bytes(const qvl_linear_shape *shape, int64_t position) {
    return shape->layers ? (int64_t)(saved_floats(shape, position) * sizeof(float)) : 0;
}

int64_t qvl_linear_shape_bytes(const qvl_linear_shape *shape) {
    return shape->layers ? (int64_t)((size_t)shape->layers * layer_floats(shape) * sizeof(float)) : 0;
}

int64_t qvl_linear_state_bytes(const qvl_linear_state *state) {
    return (state->now ? qvl_linear_shape_bytes(&state->shape) : 0) + (int64_t)state->bytes;
}

float *qvl_linear_state_conv(const qvl_linear_state *state, int64_t layer) {
    return state->now + (size_t)layer * layer_floats(&state->shape);
}

float *qvl_linear_state_delta(const qvl_linear_state *state, int64_t layer) {
    return qvl_linear_state_conv(state, layer) + state->shape.conv_floats;
}

/* ---- all layers at once, from and to packed values */

static void save_conv(const qvl_linear_state *state, float *values) {
    size_t floats = (size_t)state->shape.conv_floats;
    for (int64_t i = 0; i < state->shape.layers; i++)
        memcpy(values + (size_t)i * floats, qvl_linear_state_conv(state, i), floats * sizeof(float));
}

static void load_conv(const qvl_linear_state *state, const float *values) {
    size_t floats = (size_t)state->shape.conv_floats;
    for (int64_t i = 0; i < state->shape.layers; i++)
        memcpy(qvl_linear_state_conv(state, i), values + (size_t)i * floats, floats * sizeof(float));
}

static void save_all(const qvl_linear_state *state, int64_t position, float *values) {
    const qvl_linear_shape *shape = &state->shape;
    int64_t floats = qvl_delta_saved_floats(&shape->delta, position);
    save_conv(state, values);
    values += shape->layers * shape->conv_floats;
    for (int64_t i = 0; i < shape->layers; i++)
        qvl_delta_save(&shape->delta, qvl_linear_state_delta(state, i), position, values + i * floats);
}

static void load_all(const qvl_linear_state *state, int64_t position, float *values) {
    const qvl_linear_shape *shape = &state->shape;
    int64_t floats = qvl_delta_saved_floats(&shape->delta, position);
    load_conv(state, values);
    values += shape->layers * shape->conv_floats;
    for (int64_t i = 0; i < shape->layers; i++)
        qvl_delta_load(&shape->delta, values + i * floats, position, qvl_linear_state_delta(state, i));
}

static void clear(qvl_linear_state *state) {
    if (state->now) memset(state->now, 0, (size_t)qvl_linear_shape_bytes(&state->shape));
}

/* ---- snapshots */

static void release(qvl_snapshot *snapshot) {
    if (atomic_fetch_sub_explicit(&snapshot->owners, 1, memory_order_acq_rel) != 1) return;
    qvl_free(snapshot->values);
    qvl_free(snapshot);
}

static void drop(qvl_linear_state *state, int64_t index) {
    state->bytes -= state->kept[index].snapshot->bytes;
    release(state->kept[index].snapshot);
    state->count--;
    memmove(state->kept + index, state->kept + index + 1, (size_t)(state->count - index) * sizeof *state->kept);
}

static int64_t position_of(const qvl_linear_state *state, int64_t index) {
    return state->kept[index].snapshot->position;
}

static void drop_behind(qvl_linear_state *state, int64_t position) {
    while (state->count && position_of(state, state->count - 1) > position) drop(state, state->count - 1);
}

/* The last one at or before a position; -1: none. */
static int64_t find(const qvl_linear_state *state, int64_t position) {
    int64_t i = state->count - 1;
    while (i >= 0 && position_of(state, i) > position) i--;
    return i;
}

/* Lets the least recently used go until `bytes` more fit. */
static void make_room(qvl_linear_state *state, size_t bytes) {
    while (state->count && state->bytes + bytes > state->budget) {
        int64_t oldest = 0;
        for (int64_t i = 1; i < state->count; i++)
            if (state->kept[i].used < state->kept[oldest].used) oldest = i;
        drop(state, oldest);
    }
}

static bool grow(qvl_linear_state *state) {
    if (state->count < state->capacity) return true;
    size_t count = (size_t)state->count, capacity = count ? 2 * count : 8;
    qvl_kept *grown = qvl_grow(state->kept, count, capacity, sizeof *grown);
    if (!grown) return false;
    state->kept = grown;
    state->capacity = (int64_t)capacity;
    return true;
}

static qvl_snapshot *make(const qvl_linear_state *state, int64_t position, size_t bytes) {
    qvl_snapshot *s = qvl_alloc(1, sizeof *s);
    float *values = s ? qvl_alloc(bytes, 1) : NULL;
    if (!values) {
        qvl_free(s);
        return NULL;
    }
    save_all(state, position, values);
    *s = (qvl_snapshot){.position = position, .bytes = bytes, .values = values};
    atomic_init(&s->owners, 1);
    return s;
}

void qvl_linear_state_keep(qvl_linear_state *state, int64_t position) {
    if (!state->shape.layers || position == 0) return;
    int64_t at = find(state, position);
    if (at >= 0 && position_of(state, at) == position) {
        state->kept[at].used = ++state->clock;
        return;
    }
    size_t bytes = saved_floats(&state->shape, position) * sizeof(float);
    if (bytes > state->budget || !grow(state)) return;
    make_room(state, bytes);
    qvl_snapshot *snapshot = make(state, position, bytes);
    if (!snapshot) return;
    at = find(state, position) + 1;
    memmove(state->kept + at + 1, state->kept + at, (size_t)(state->count - at) * sizeof *state->kept);
    state->kept[at] = (qvl_kept){snapshot, ++state->clock};
    state->count++;
    state->bytes += bytes;
}

/* ---- life */

void qvl_linear_state_init(const qvl_linear_shape *shape, size_t budget, qvl_linear_state *state) {
    *state = (qvl_linear_state){.shape = *shape, .budget = budget};
}

void qvl_linear_state_free(qvl_linear_state *state) {
    while (state->count) drop(state, state->count - 1);
    qvl_free(state->kept);
    qvl_free(state->undo);
    qvl_free(state->now);
    *state = (qvl_linear_state){.shape = state->shape, .budget = state->budget};
}

qvl_status qvl_linear_state_begin(qvl_linear_state *state, int64_t position, int64_t rows, qvl_error *error) {
    const qvl_linear_shape *shape = &state->shape;
    if (!shape->layers) return QVL_OK;
    size_t bytes = (size_t)qvl_linear_shape_bytes(shape), conv = (size_t)(shape->layers * shape->conv_floats);
    if (!state->now) state->now = qvl_calloc(bytes, 1);
    if (!state->now) return qvl_fail_memory(error, "state of linear attention", 1, bytes);
    bool whole = position > 0 && rows > qvl_delta_undoable(position);
    size_t floats = whole ? saved_floats(shape, position) : conv;
    bool reuse = state->undo && !whole;
    float *undo = reuse ? state->undo : qvl_alloc(floats, sizeof *undo);
    if (!undo) return qvl_fail_memory(error, "copy of the state of linear attention", floats, sizeof *undo);
    if (!reuse) qvl_free(state->undo);
    state->undo = undo;
    state->undo_position = position;
    state->undo_whole = whole;
    state->under_way = true;
    if (whole)
        save_all(state, position, undo);
    else
        save_conv(state, undo);
    return QVL_OK;
}

/* The end of what was begun. A copy of the whole state goes; the small one of the convolutions serves the next step. */
static void end(qvl_linear_state *state) {
    state->under_way = false;
    if (!state->undo_whole) return;
    qvl_free(state->undo);
    state->undo = NULL;
    state->undo_whole = false;
}

void qvl_linear_state_commit(qvl_linear_state *state) {
    end(state);
}

void qvl_linear_state_rollback(qvl_linear_state *state) {
    if (!state->under_way) return;
    drop_behind(state, state->undo_position);
    if (state->undo_position == 0)
        clear(state);
    else if (state->undo_whole)
        load_all(state, state->undo_position, state->undo);
    else
        load_conv(state, state->undo);
    end(state);
}

int64_t qvl_linear_state_reachable(const qvl_linear_state *state, int64_t now, int64_t length) {
    if (!state->shape.layers || length == now) return length;
    int64_t at = find(state, length);
    return at < 0 ? 0 : position_of(state, at);
}

void qvl_linear_state_cut(qvl_linear_state *state, int64_t now, int64_t length) {
    if (!state->shape.layers || length == now) return;
    drop_behind(state, length);
    if (length == 0) {
        clear(state);
        return;
    }
    state->kept[state->count - 1].used = ++state->clock;
    load_all(state, length, state->kept[state->count - 1].snapshot->values);
}

qvl_status qvl_linear_state_share(const qvl_linear_state *state, qvl_linear_state *copy, qvl_error *error) {
    qvl_linear_state_init(&state->shape, state->budget, copy);
    copy->clock = state->clock;
    if (!state->now) return QVL_OK;
    size_t bytes = (size_t)qvl_linear_shape_bytes(&state->shape), count = (size_t)state->count;
    copy->now = qvl_alloc(bytes, 1);
    copy->kept = count ? qvl_alloc(count, sizeof *copy->kept) : NULL;
    if (!copy->now || (count && !copy->kept)) {
        qvl_linear_state_free(copy);
        return qvl_fail_memory(error, "copy of the state of linear attention", 1, bytes);
    }
    memcpy(copy->now, state->now, bytes);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_add_explicit(&state->kept[i].snapshot->owners, 1, memory_order_relaxed);
        copy->kept[i] = state->kept[i];
    }
    copy->count = copy->capacity = state->count;
    copy->bytes = state->bytes;
    return QVL_OK;
}
