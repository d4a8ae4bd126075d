/* What is behind a qvl_session, and how its runs of the tower are admitted. */
#ifndef QVL_SESSION_H
#define QVL_SESSION_H

#include "base/hash.h"
#include "model/model.h"
#include "vision/tower.h"

struct qvl_session {
    qvl_model *model;
    qvl_scratch scratch;                 /* of the tower */
    qvl_scratch rows;                    /* patch rows of a group, in the pipeline */
    qvl_cache *cache;                    /* the caller's; NULL: none */
    char cache_identity[QVL_SHA256_HEX]; /* of the tower and how it computes; with a cache */
};

/* Runs the tower when the runs asked for before are done: one at a time for a model, so that requests do not take each
 * other's cores. The call's progress is asked while it waits, too. */
qvl_status qvl_session_run(qvl_session *session, const qvl_tower_call *call, qvl_error *error);

#endif
