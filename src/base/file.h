/* Files: whole reads with a limit, read-only maps, and writes that are whole or not at all. */
#ifndef QVL_BASE_FILE_H
#define QVL_BASE_FILE_H

#include "base/error.h"

/* folder + "/" + name. NULL if there is no memory. Free: qvl_free. */
char *qvl_path_join(const char *folder, const char *name);

bool qvl_file_exists(const char *path);

/* The whole file, NUL-terminated beyond *count bytes. path "-" is standard input. More than limit bytes is
 * QVL_ERROR_LIMIT. Free: qvl_free. */
qvl_status qvl_file_read(const char *path, size_t limit, uint8_t **bytes, size_t *count, qvl_error *error);

typedef struct qvl_map {
    const uint8_t *bytes;
    size_t count;
} qvl_map;

/* Maps a regular file for reading; an empty file gives bytes == NULL. */
qvl_status qvl_map_open(const char *path, qvl_map *map, qvl_error *error);
void qvl_map_close(qvl_map *map);

/* A file being written under a temporary name in the same folder. Any failure is remembered: check at commit. */
typedef struct qvl_writer {
    char *path, *temporary;
    int fd;
    int failed_errno;
} qvl_writer;

qvl_status qvl_writer_open(qvl_writer *writer, const char *path, qvl_error *error);
void qvl_writer_put(qvl_writer *writer, const void *bytes, size_t count);
/* Renames onto path if every put succeeded; otherwise removes the temporary file. Ends the writer either way. */
qvl_status qvl_writer_commit(qvl_writer *writer, qvl_error *error);
/* Removes the temporary file. Accepts a zeroed or ended writer. */
void qvl_writer_abort(qvl_writer *writer);

#endif
