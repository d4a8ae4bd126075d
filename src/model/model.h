/* What is behind a qvl_model: configuration, threads, kernels, packed weights. Immutable once open, but for what
 * admits its callers. */
#ifndef QVL_MODEL_MODEL_H
#define QVL_MODEL_MODEL_H

#include "base/file.h"
#include "base/gate.h"
#include "base/pool.h"
#include "compute/compute.h"
#include "model/config.h"

struct qvl_tower;

struct qvl_model {
    char *folder;
    qvl_model_info info; /* its strings point into this struct */
    qvl_config config;
    char tensor_dtype[16];
    qvl_file_id *file_ids; /* [info.file_count], of the files the tensors came from; NULL below QVL_OPEN_HEADERS */
    qvl_pool *pool;
    qvl_compute *compute;
    struct qvl_tower *tower; /* NULL unless opened with QVL_OPEN_WEIGHTS */
    qvl_gate admission;      /* one run of the tower at a time */
    qvl_gate readers;        /* inputs that are decoded and resized at a time: as many as threads */
    /* The tower's fingerprint, once a cache wanted it. */
    pthread_mutex_t fingerprint_lock;
    char fingerprint[QVL_FINGERPRINT_HEX];
    qvl_log_fn log;
    void *log_user;
};

/* What a session was opened with. */
const qvl_model *qvl_session_model(const qvl_session *session);

#endif
