/* Which files of a folder hold the vision tower, and by which names its tensors go. */
#ifndef QVL_MODEL_WEIGHTS_FILES_H
#define QVL_MODEL_WEIGHTS_FILES_H

#include "model/safetensors.h"

/* Naming generations: what comes before "blocks.0.norm1.weight". */
typedef enum qvl_naming {
    QVL_NAMING_NONE = -1, /* not a tensor of a tower */
    QVL_NAMING_MODEL_VISUAL,
    QVL_NAMING_VISUAL,
    QVL_NAMING_VISION_TOWER,
    QVL_NAMING_STRAY, /* model.language_model.visual. */
    QVL_NAMING_FLAT   /* nothing: what starts with the name of a part (blocks., merger., ...) is the tower's */
} qvl_naming;

/* By the whole beginning of the name, so that a prefix inside another ("visual." in "model.visual.") is no match.
 */
qvl_naming qvl_naming_of(const char *tensor);
/* "model.visual.", ...; "" for QVL_NAMING_FLAT. */
const char *qvl_naming_prefix(qvl_naming naming);
/* For messages: "under model.visual.", ..., "without a prefix". */
const char *qvl_naming_describe(qvl_naming naming);

/* Opened files, in order of name. */
typedef struct qvl_tower_files {
    qvl_safetensors *files;
    int32_t count;
    const char *source; /* static: one of the three names below */
} qvl_tower_files;

#define QVL_SIDECAR_FILE "optiq/optiq_vision.safetensors"
#define QVL_SINGLE_FILE "model.safetensors"
#define QVL_INDEX_FILE "model.safetensors.index.json"

/* The sidecar if the folder has one; else the single file; else the shards that the index names for tensors of a
 * tower, checked against the index. Owner: the caller, qvl_tower_files_close. */
qvl_status qvl_tower_files_open(const char *folder, qvl_tower_files *files, qvl_error *error);
/* The single file, or else the shards that the index names for the tensors wanted, checked against the index: none
 * where it names none. *files also says where tensors were looked for. */
qvl_status qvl_tensor_files_open(const char *folder, bool (*wanted)(const char *tensor), qvl_tower_files *files,
                                 qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_tower_files_close(qvl_tower_files *files);

/* The error "no vision tower tensors in WHERE". */
qvl_status qvl_fail_no_tower(const char *where, qvl_error *error);

#endif
