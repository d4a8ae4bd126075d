#define _GNU_SOURCE
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char *qvl_path_join(const char *folder, const char *name) {
    size_t a = strlen(folder), b = strlen(name);
    while (a > 1 && folder[a - 1] == '/') a--;
    char *path = qvl_alloc(a + b + 2, 1);
    if (!path) return NULL;
    memcpy(path, folder, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b + 1);
    return path;
}

bool qvl_file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

static qvl_status open_for_reading(const char *path, int *fd, qvl_error *error) {
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) return qvl_fail(error, QVL_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(*fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(*fd);
        *fd = -1;
        return qvl_fail(error, QVL_ERROR_IO, "cannot read %s: it is a folder", path);
    }
    return QVL_OK;
}

static qvl_status read_all(int fd, const char *path, size_t limit, uint8_t **bytes, size_t *count,
                           qvl_error *error) {
    /* The size is a hint only: pipes have none, and a file can grow while it is read. */
    struct stat st;
    size_t capacity = 65536;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > limit)
            return qvl_fail(error, QVL_ERROR_LIMIT, "%s has %lld bytes; the limit is %zu", path,
                            (long long)st.st_size, limit);
        capacity = (size_t)st.st_size + 1;
    }
    uint8_t *data = NULL;
    size_t used = 0;
    for (size_t want = capacity;; want = capacity * 2) {
        uint8_t *grown = realloc(data, want + 1);
        if (!grown) {
            free(data);
            return qvl_fail_memory(error, path, want, 1);
        }
        data = grown;
        capacity = want;
        while (used < capacity) {
            ssize_t n = read(fd, data + used, capacity - used);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                free(data);
                return qvl_fail(error, QVL_ERROR_IO, "cannot read %s: %s", path, strerror(errno));
            }
            if (n == 0) {
                data[used] = 0;
                *bytes = data;
                *count = used;
                return QVL_OK;
            }
            used += (size_t)n;
            if (used > limit) {
                free(data);
                return qvl_fail(error, QVL_ERROR_LIMIT, "%s has more than %zu bytes, the limit", path, limit);
            }
        }
    }
}

qvl_status qvl_file_read(const char *path, size_t limit, uint8_t **bytes, size_t *count, qvl_error *error) {
    *bytes = NULL;
    *count = 0;
    if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, "standard input", limit, bytes, count, error);
    int fd;
    qvl_status status = open_for_reading(path, &fd, error);
    if (status) return status;
    status = read_all(fd, path, limit, bytes, count, error);
    close(fd);
    return status;
}

static qvl_file_id id_of(const struct stat *st) {
    return (qvl_file_id){.device = st->st_dev,
                         .inode = st->st_ino,
                         .size = st->st_size,
                         .seconds = st->st_mtim.tv_sec,
                         .nanoseconds = st->st_mtim.tv_nsec,
                         .changed_seconds = st->st_ctim.tv_sec,
                         .changed_nanoseconds = st->st_ctim.tv_nsec};
}

qvl_status qvl_file_identify(const char *path, qvl_file_id *id, qvl_error *error) {
    struct stat st;
    *id = (qvl_file_id){0};
    if (stat(path, &st) != 0) return qvl_fail(error, QVL_ERROR_IO, "cannot look at %s: %s", path, strerror(errno));
    *id = id_of(&st);
    return QVL_OK;
}

qvl_status qvl_folder_make(const char *path, qvl_error *error) {
    struct stat st;
    if (mkdir(path, 0700) == 0) return QVL_OK;
    int failed = errno;
    if (failed == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_IO, "cannot make the folder %s: %s", path, strerror(failed));
}

qvl_status qvl_map_open(const char *path, qvl_map *map, qvl_error *error) {
    *map = (qvl_map){0};
    int fd;
    qvl_status status = open_for_reading(path, &fd, error);
    if (status) return status;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        status = qvl_fail(error, QVL_ERROR_IO, "cannot read %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = qvl_fail(error, QVL_ERROR_IO, "cannot map %s: it is not a regular file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            status = qvl_fail(error, QVL_ERROR_IO, "cannot map %s: %s", path, strerror(errno));
        } else {
            map->bytes = p;
            map->count = (size_t)st.st_size;
        }
    }
    if (!status) map->id = id_of(&st);
    close(fd);
    return status;
}

void qvl_map_close(qvl_map *map) {
    if (map->bytes) munmap((void *)(uintptr_t)map->bytes, map->count);
    *map = (qvl_map){0};
}

void qvl_map_forget(const qvl_map *map) {
    if (map->bytes) madvise((void *)(uintptr_t)map->bytes, map->count, MADV_DONTNEED);
}

qvl_status qvl_writer_open(qvl_writer *writer, const char *path, qvl_error *error) {
    *writer = (qvl_writer){.fd = -1};
    writer->path = qvl_strdup(path);
    size_t n = strlen(path) + 48;
    writer->temporary = qvl_alloc(n, 1);
    if (!writer->path || !writer->temporary) {
        qvl_free(writer->temporary);
        writer->temporary = NULL;
        qvl_writer_abort(writer);
        return qvl_fail_memory(error, "file name", n, 2);
    }
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        qvl_free(writer->temporary);
        writer->temporary = NULL;
        qvl_writer_abort(writer);
        return qvl_fail(error, QVL_ERROR_IO, "cannot write %s: it exists and is not a regular file", path);
    }
    for (int attempt = 0; attempt < 100 && writer->fd < 0; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(writer->temporary, n, "%s.tmp-%ld-%ld-%d", path, (long)getpid(), now.tv_nsec, attempt);
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd < 0 && errno != EEXIST) break;
    }
    if (writer->fd < 0) {
        qvl_status status = qvl_fail(error, QVL_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
        qvl_free(writer->temporary);
        writer->temporary = NULL;
        qvl_writer_abort(writer);
        return status;
    }
    return QVL_OK;
}

void qvl_writer_put(qvl_writer *writer, const void *bytes, size_t count) {
    const uint8_t *p = bytes;
    while (count > 0 && !writer->failed_errno) {
        ssize_t n = write(writer->fd, p, count < ((size_t)1 << 30) ? count : (size_t)1 << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            writer->failed_errno = errno;
            return;
        }
        p += n;
        count -= (size_t)n;
    }
}

qvl_status qvl_writer_commit(qvl_writer *writer, qvl_error *error) {
    int failed = writer->failed_errno;
    if (close(writer->fd) != 0 && !failed) failed = errno;
    writer->fd = -1;
    if (!failed && rename(writer->temporary, writer->path) != 0) failed = errno;
    qvl_status status = QVL_OK;
    if (failed) {
        status = qvl_fail(error, QVL_ERROR_IO, "cannot write %s: %s", writer->path, strerror(failed));
    } else {
        qvl_free(writer->temporary);
        writer->temporary = NULL;
    }
    qvl_writer_abort(writer);
    return status;
}

void qvl_writer_abort(qvl_writer *writer) {
    if (writer->path && writer->fd >= 0) close(writer->fd);
    if (writer->temporary) unlink(writer->temporary);
    qvl_free(writer->temporary);
    qvl_free(writer->path);
    *writer = (qvl_writer){.fd = -1};
}
