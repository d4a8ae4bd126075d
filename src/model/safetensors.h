/* A safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes. Every size is checked against
 * the file; reading a hostile header costs no more than its own length. */
#ifndef QVL_MODEL_SAFETENSORS_H
#define QVL_MODEL_SAFETENSORS_H

#include "base/file.h"

/* The reference reader allows 100 MB; a file of 100,000 tensors needs about 13. */
#define QVL_SAFETENSORS_MAX_HEADER ((size_t)32 << 20)

/* tensors[] is sorted by name; names and data point into the map or into memory of this struct.
 * data has no alignment: writers pad the header to 8 bytes and sort by element size, but the format does not ask
 * for it. Read elements with memcpy or unaligned loads. */
typedef struct qvl_safetensors {
    char *path;
    qvl_map map;
    qvl_tensor *tensors;
    size_t count;
    void *storage; /* cJSON tree that owns the names */
} qvl_safetensors;

qvl_status qvl_safetensors_open(const char *path, qvl_safetensors *file, qvl_error *error);
/* Accepts a zeroed struct. */
void qvl_safetensors_close(qvl_safetensors *file);
/* NULL where no tensor has that name. */
const qvl_tensor *qvl_safetensors_find(const qvl_safetensors *file, const char *name);

/* Parses bytes already in memory (they stay the caller's and must outlive file). path is for messages. */
qvl_status qvl_safetensors_parse(const uint8_t *bytes, size_t count, const char *path, qvl_safetensors *file,
                                 qvl_error *error);

#endif
