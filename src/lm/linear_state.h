/* What linear attention knows of a sequence: per layer the rows before the convolution and the state of the delta rule
 * (compute/delta.h), and copies of all that at a few places. The state has taken in every entry and cannot be cut back
 * as keys and values can: a sequence goes back to an entry only where a snapshot was kept. Snapshots never change;
 * copies of a sequence share them. */
#ifndef QVL_LM_LINEAR_STATE_H
#define QVL_LM_LINEAR_STATE_H

#include "base/error.h"
#include "compute/delta.h"

/* Of a model. layers 0: it has no linear attention; then the functions below do nothing, and every entry is
 * reachable. */
typedef struct qvl_linear_shape {
    int64_t layers;
    int64_t conv_floats; /* of one layer: (width - 1) * channels, and what aligns the rest */
    qvl_delta_shape delta;
} qvl_linear_shape;

typedef struct qvl_snapshot qvl_snapshot;

typedef struct qvl_kept {
    qvl_snapshot *snapshot;
    uint64_t used; /* state->clock of this owner's last use */
} qvl_kept;

typedef struct qvl_linear_state {
    qvl_linear_shape shape;
    float *now;  /* per layer: convolution rows, then the delta rule's; NULL before the first entry */
    float *undo; /* what the call under way may have to put back */
    int64_t undo_position;
    bool undo_whole; /* undo holds more than convolution rows */
    bool under_way;  /* between begin and commit or rollback */
    qvl_kept *kept;  /* snapshots by position */
    int64_t count, capacity;
    size_t bytes, budget; /* of snapshots */
    uint64_t clock;       /* of uses */
} qvl_linear_state;

/* Nothing is allocated. budget: bytes of snapshots; those that were used longest ago go first. */
void qvl_linear_state_init(const qvl_linear_shape *shape, size_t budget, qvl_linear_state *state);
/* Accepts a zeroed struct. */
void qvl_linear_state_free(qvl_linear_state *state);
/* Bytes of the state and of its snapshots, shared ones included. */
int64_t qvl_linear_state_bytes(const qvl_linear_state *state);
/* Bytes of the state alone, whatever the sequence's length; 0 without linear layers. */
int64_t qvl_linear_shape_bytes(const qvl_linear_shape *shape);

/* Of those, what the step at a position reads. */
int64_t qvl_linear_read_bytes(const qvl_linear_shape *shape, int64_t position);

/* One layer's parts. */
float *qvl_linear_state_conv(const qvl_linear_state *state, int64_t layer);
float *qvl_linear_state_delta(const qvl_linear_state *state, int64_t layer);

/* Before `rows` entries are added at `position`: allocates what is needed, keeps what rollback puts back. */
qvl_status qvl_linear_state_begin(qvl_linear_state *state, int64_t position, int64_t rows, qvl_error *error);
/* What was added stays. */
void qvl_linear_state_commit(qvl_linear_state *state);
/* The state of begin's position again; snapshots behind it go. Nothing if nothing was begun. */
void qvl_linear_state_rollback(qvl_linear_state *state);

/* A snapshot of the state, which is that of `position`. One that does not fit the budget, or memory, is not made. */
void qvl_linear_state_keep(qvl_linear_state *state, int64_t position);
/* The largest position up to `length` that cut takes: `now`, the sequence's length, a snapshot's, or 0. */
int64_t qvl_linear_state_reachable(const qvl_linear_state *state, int64_t now, int64_t length);
/* Goes from the sequence's length `now` back to a reachable one; snapshots behind it go. */
void qvl_linear_state_cut(qvl_linear_state *state, int64_t now, int64_t length);

/* *copy is the same, with the same snapshots. */
qvl_status qvl_linear_state_share(const qvl_linear_state *state, qvl_linear_state *copy, qvl_error *error);

#endif
