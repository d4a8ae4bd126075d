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

/* Which file it is and how old: enough to see that it was replaced or written to. Anyone can set back the time a
 * file was written (cp -p, rsync -t, touch -r), but not the time of its last change of any kind. */
typedef struct qvl_file_id {
    uint64_t device, inode;
    int64_t size;
    int64_t seconds, nanoseconds;                 /* when it was last written to */
    int64_t changed_seconds, changed_nanoseconds; /* when it, its times or its name last changed */
} qvl_file_id;

qvl_status qvl_file_identify(const char *path, qvl_file_id *id, qvl_error *error);

/* Makes a folder that only its owner may enter; one that is there already is left as it is. */
qvl_status qvl_folder_make(const char *path, qvl_error *error);

typedef struct qvl_map {
    const uint8_t *bytes;
    size_t count;
    qvl_file_id id; /* of the very file that is mapped */
} qvl_map;

/* Maps a regular file for reading; an empty file gives bytes == NULL. */
qvl_status qvl_map_open(const char *path, qvl_map *map, qvl_error *error);
void qvl_map_close(qvl_map *map);
/* Gives back the memory of what was read so far; what is read again comes from the file again. */
void qvl_map_forget(const qvl_map *map);

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
