#include "text/pieces.h"

#include "base/memory.h"

#include <string.h>

static qvl_status grow(qvl_pieces *pieces, size_t capacity, qvl_error *error) {
    size_t *bounds = qvl_alloc(capacity + 1, sizeof *bounds);
    int32_t *ids = qvl_alloc(capacity, sizeof *ids);
    if (!bounds || !ids) {
        qvl_free(bounds);
        qvl_free(ids);
        return qvl_fail_memory(error, "pieces of a text", capacity, sizeof *bounds + sizeof *ids);
    }
    if (pieces->bounds) memcpy(bounds, pieces->bounds, (pieces->count + 1) * sizeof *bounds);
    if (pieces->ids) memcpy(ids, pieces->ids, pieces->count * sizeof *ids);
    qvl_free(pieces->bounds);
    qvl_free(pieces->ids);
    pieces->bounds = bounds;
    pieces->ids = ids;
    pieces->capacity = capacity;
    return QVL_OK;
}

qvl_status qvl_pieces_open(qvl_pieces *pieces, qvl_error *error) {
    *pieces = (qvl_pieces){0};
    qvl_status status = grow(pieces, 16, error);
    if (!status) pieces->bounds[0] = 0;
    return status;
}

qvl_status qvl_pieces_add(qvl_pieces *pieces, size_t end, int32_t id, qvl_error *error) {
    if (end == pieces->bounds[pieces->count]) return QVL_OK;
    if (pieces->count == pieces->capacity) {
        qvl_status status = grow(pieces, 2 * pieces->capacity, error);
        if (status) return status;
    }
    pieces->ids[pieces->count++] = id;
    pieces->bounds[pieces->count] = end;
    return QVL_OK;
}

void qvl_pieces_free(qvl_pieces *pieces) {
    qvl_free(pieces->bounds);
    qvl_free(pieces->ids);
    *pieces = (qvl_pieces){0};
}
