/* The BPE model of a tokenizer.json: vocabulary and merges. */
#include "base/memory.h"
#include "text/load.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------------- names */

int32_t qvl_names_find(const qvl_names *names, const char *name, size_t count) {
    for (size_t i = qvl_hash_bytes(name, count) & names->mask;; i = (i + 1) & names->mask) {
        int32_t id = names->ids[i];
        if (id < 0 || (strncmp(names->by_id[id], name, count) == 0 && !names->by_id[id][count])) return id;
    }
}

/* Counts the names and finds where ids end. */
static qvl_status check_ids(const cJSON *vocab, const char *file, size_t *count, int32_t *id_limit,
                            qvl_error *error) {
    *count = 0;
    *id_limit = 0;
    for (const cJSON *item = vocab->child; item; item = item->next, ++*count) {
        int64_t id;
        if (!qvl_json_integer(item, 0, QVL_ID_LIMIT - 1, &id)) {
            char found[QVL_JSON_DESCRIPTION];
            qvl_json_describe(item, found);
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: the id of \"%.100s\" is %s; it must be an integer in 0..%d", file, item->string,
                            found, QVL_ID_LIMIT - 1);
        }
        if (id >= *id_limit) *id_limit = (int32_t)id + 1;
    }
    return QVL_OK;
}

static qvl_status make_tables(qvl_names *names, size_t count, qvl_error *error) {
    size_t size = 16;
    while (size / 2 < count) size *= 2;
    names->by_id = qvl_calloc((size_t)names->id_limit + 1, sizeof *names->by_id);
    names->ids = qvl_alloc(size, sizeof *names->ids);
    if (!names->by_id || !names->ids) return qvl_fail_memory(error, "vocabulary", size, sizeof *names->ids);
    memset(names->ids, 0xff, size * sizeof *names->ids);
    names->mask = size - 1;
    return QVL_OK;
}

static qvl_status add_name(qvl_names *names, const char *name, int32_t id, const char *file, qvl_error *error) {
    size_t length = strlen(name), i = qvl_hash_bytes(name, length) & names->mask;
    if (names->by_id[id])
        return qvl_fail(error, QVL_ERROR_MODEL, "%s: model.vocab gives the id %d to \"%.100s\" and to \"%.100s\"",
                        file, id, names->by_id[id], name);
    while (names->ids[i] >= 0) i = (i + 1) & names->mask;
    names->ids[i] = id;
    names->by_id[id] = name;
    if (length > names->longest) names->longest = length;
    names->count++;
    return QVL_OK;
}

qvl_status qvl_names_read(qvl_names *names, const cJSON *vocab, const char *file, qvl_error *error) {
    size_t count;
    *names = (qvl_names){0};
    qvl_status status = check_ids(vocab, file, &count, &names->id_limit, error);
    if (!status) status = make_tables(names, count, error);
    for (const cJSON *item = vocab->child; item && !status; item = item->next)
        status = add_name(names, item->string, (int32_t)item->valuedouble, file, error);
    if (status) qvl_names_free(names);
    return status;
}

void qvl_names_free(qvl_names *names) {
    qvl_free(names->by_id);
    qvl_free(names->ids);
    *names = (qvl_names){0};
}

/* ------------------------------------------------------------------------------------------------------ merges */

/* Two names of a merge, not NUL-terminated. */
typedef struct pair {
    const char *left, *right;
    size_t left_size, right_size;
} pair;

static bool read_pair(const cJSON *item, pair *p) {
    if (cJSON_IsString(item)) {
        const char *space = strchr(item->valuestring, ' ');
        if (!space || strchr(space + 1, ' ')) return false;
        *p = (pair){item->valuestring, space + 1, (size_t)(space - item->valuestring), strlen(space + 1)};
        return true;
    }
    const cJSON *left = item->child, *right = left ? left->next : NULL;
    if (!cJSON_IsArray(item) || !cJSON_IsString(left) || !cJSON_IsString(right) || right->next) return false;
    *p = (pair){left->valuestring, right->valuestring, strlen(left->valuestring), strlen(right->valuestring)};
    return true;
}

static qvl_status missing(const char *file, int32_t rank, const char *name, size_t size, qvl_error *error) {
    return qvl_fail(error, QVL_ERROR_MODEL, "%s: model.merges[%d] needs \"%.*s\", which is not in model.vocab",
                    file, rank, size < 100 ? (int)size : 100, name);
}

typedef struct merge {
    int32_t left, right, id;
} merge;

/* joined has room for the longest name. */
static qvl_status find_ids(const qvl_names *names, const pair *p, int32_t rank, char *joined, const char *file,
                           merge *m, qvl_error *error) {
    size_t size = p->left_size + p->right_size;
    m->left = qvl_names_find(names, p->left, p->left_size);
    if (m->left < 0) return missing(file, rank, p->left, p->left_size, error);
    m->right = qvl_names_find(names, p->right, p->right_size);
    if (m->right < 0) return missing(file, rank, p->right, p->right_size, error);
    m->id = -1;
    if (size <= names->longest) {
        memcpy(joined, p->left, p->left_size);
        memcpy(joined + p->left_size, p->right, p->right_size);
        m->id = qvl_names_find(names, joined, size);
    }
    if (m->id >= 0) return QVL_OK;
    return qvl_fail(error, QVL_ERROR_MODEL,
                    "%s: model.merges[%d] makes \"%.*s\" + \"%.*s\", which is not in model.vocab", file, rank,
                    p->left_size < 100 ? (int)p->left_size : 100, p->left,
                    p->right_size < 100 ? (int)p->right_size : 100, p->right);
}

/* made has a bit for each id. */
static qvl_status read_merges(qvl_bpe *bpe, const qvl_names *names, const cJSON *merges, char *joined,
                              uint8_t *made, const char *file, qvl_error *error) {
    int32_t rank = 0;
    for (const cJSON *item = merges->child; item; item = item->next) {
        pair p;
        merge m = {0};
        /* The first line of a merges.txt that was taken over. */
        if (cJSON_IsString(item) && strncmp(item->valuestring, "#version", 8) == 0) continue;
        if (!read_pair(item, &p)) {
            char found[QVL_JSON_DESCRIPTION];
            qvl_json_describe(item, found);
            return qvl_fail(error, QVL_ERROR_FORMAT,
                            "%s: model.merges[%d] is %s; it must be \"a b\" or a list of two strings", file, rank,
                            found);
        }
        qvl_status status = find_ids(names, &p, rank, joined, file, &m, error);
        if (status) return status;
        uint8_t bit = (uint8_t)(1 << m.id % 8);
        if (made[m.id / 8] & bit) bpe->distinct = false;
        made[m.id / 8] |= bit;
        qvl_bpe_add(bpe, m.left, m.right, rank++, m.id);
    }
    return QVL_OK;
}

qvl_status qvl_merges_read(qvl_bpe *bpe, const qvl_names *names, const cJSON *merges, const char *file,
                           qvl_error *error) {
    size_t count = 0;
    for (const cJSON *item = merges->child; item; item = item->next) count++;
    if (count > (size_t)QVL_BPE_LIMIT)
        return qvl_fail(error, QVL_ERROR_LIMIT, "%s: model.merges has %zu entries; the limit is %d", file, count,
                        QVL_BPE_LIMIT);
    qvl_status status = qvl_bpe_open(bpe, count, error);
    if (status) return status;
    char *joined = qvl_alloc(names->longest + 1, 1);
    uint8_t *made = qvl_calloc((size_t)names->id_limit / 8 + 1, 1);
    if (joined && made)
        status = read_merges(bpe, names, merges, joined, made, file, error);
    else
        status = qvl_fail_memory(error, "merges", names->longest, 1);
    qvl_free(joined);
    qvl_free(made);
    if (status) return status;
    int32_t byte_ids[256];
    for (int b = 0; b < 256; b++) {
        char name[5];
        qvl_byte_name((uint8_t)b, name);
        byte_ids[b] = qvl_names_find(names, name, strlen(name));
        if (byte_ids[b] < 0)
            return qvl_fail(
                error, QVL_ERROR_MODEL,
                "%s: model.vocab has no \"%s\", which stands for the byte 0x%02x; it must have all 256", file,
                name, (unsigned)b);
    }
    qvl_bpe_finish(bpe, byte_ids);
    return QVL_OK;
}
