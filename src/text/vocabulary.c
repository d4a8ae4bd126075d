#include "text/vocabulary.h"

#include "base/memory.h"
#include "text/utf8.h"

#include <string.h>

/* --------------------------------------------------------------------------------------------------- the alphabet */

/* Bytes that stand for themselves; the others, in order, are U+0100, U+0101, ... */
static bool is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static uint32_t name_of(uint8_t byte) {
    uint32_t code = 0x100;
    if (is_printable(byte)) return byte;
    for (unsigned b = 0; b < byte; b++) code += !is_printable(b);
    return code;
}

void qvl_byte_name(uint8_t byte, char name[5]) {
    name[qvl_utf8_put(name_of(byte), (uint8_t *)name)] = 0;
}

/* The byte whose name is code; false where it is none's. There are 33 + 34 + 1 bytes below 0x100 without one. */
static bool byte_of(uint32_t code, char *byte) {
    unsigned b;
    if (code >= 0x121)
        b = code <= 0x142 ? code - 0x121 + 0x7f : 0xad;
    else
        b = code < 0x100 ? code : code - 0x100;
    if (code > 0x143 || (code < 0x100 && !is_printable(code))) return false;
    *byte = (char)(uint8_t)b;
    return true;
}

bool qvl_token_bytes(const char *name, char *bytes, size_t *count) {
    const uint8_t *p = (const uint8_t *)name;
    size_t size;
    for (*count = 0; *p; p += size, ++*count) {
        if (byte_of(qvl_utf8_get(p, &size), &bytes[*count])) continue;
        *count = strlen(name);
        memcpy(bytes, name, *count);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------ the vocabulary */

qvl_status qvl_vocabulary_open(qvl_vocabulary *vocabulary, const char *const *names, const uint8_t *flags,
                               int32_t id_limit, qvl_error *error) {
    size_t limit = (size_t)id_limit, room = 1, used = 0;
    *vocabulary = (qvl_vocabulary){.id_limit = id_limit};
    for (size_t id = 0; id < limit; id++)
        if (names[id] && !qvl_add_size(room, strlen(names[id]) + 1, &room))
            return qvl_fail_memory(error, "vocabulary", room, 1);
    vocabulary->flags = qvl_alloc(limit, sizeof *flags);
    vocabulary->offsets = qvl_alloc(limit + 1, sizeof *vocabulary->offsets);
    vocabulary->bytes = qvl_alloc(room, 1);
    if (!vocabulary->flags || !vocabulary->offsets || !vocabulary->bytes) {
        qvl_vocabulary_close(vocabulary);
        return qvl_fail_memory(error, "vocabulary", limit, sizeof *flags + sizeof *vocabulary->offsets);
    }
    memcpy(vocabulary->flags, flags, limit);
    for (size_t id = 0; id < limit; id++) {
        vocabulary->offsets[id] = used;
        if (!names[id]) continue;
        size_t count;
        if (!qvl_token_bytes(names[id], vocabulary->bytes + used, &count))
            vocabulary->flags[id] &= (uint8_t)~QVL_TOKEN_WORD;
        used += count;
        vocabulary->bytes[used++] = 0;
    }
    vocabulary->offsets[limit] = used;
    return QVL_OK;
}

void qvl_vocabulary_close(qvl_vocabulary *vocabulary) {
    qvl_free(vocabulary->flags);
    qvl_free(vocabulary->offsets);
    qvl_free(vocabulary->bytes);
    qvl_free(vocabulary->words);
    *vocabulary = (qvl_vocabulary){0};
}

/* -------------------------------------------------------------------------------------------------------- words */

uint64_t qvl_hash_bytes(const void *bytes, size_t count) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    const uint8_t *p = bytes;
    uint64_t hash = count * odd, part;
    for (; count >= 8; p += 8, count -= 8) {
        memcpy(&part, p, 8);
        hash = (hash ^ part) * odd;
        hash ^= hash >> 32;
    }
    part = 0;
    for (size_t i = 0; i < count; i++) part |= (uint64_t)p[i] << 8 * i;
    hash = (hash ^ part) * odd;
    return hash ^ hash >> 29;
}

qvl_status qvl_vocabulary_index(qvl_vocabulary *vocabulary, qvl_error *error) {
    size_t size = 16;
    while (size / 2 < (size_t)vocabulary->id_limit) size *= 2;
    vocabulary->words = qvl_alloc(size, sizeof *vocabulary->words);
    if (!vocabulary->words) return qvl_fail_memory(error, "words", size, sizeof *vocabulary->words);
    memset(vocabulary->words, 0xff, size * sizeof *vocabulary->words);
    vocabulary->word_mask = size - 1;
    for (int32_t id = 0; id < vocabulary->id_limit; id++) {
        if (!(vocabulary->flags[id] & QVL_TOKEN_WORD)) continue;
        size_t count, i;
        const char *bytes = qvl_vocabulary_bytes(vocabulary, id, &count);
        for (i = qvl_hash_bytes(bytes, count) & vocabulary->word_mask; vocabulary->words[i] >= 0;)
            i = (i + 1) & vocabulary->word_mask;
        vocabulary->words[i] = id;
    }
    return QVL_OK;
}

int32_t qvl_vocabulary_word(const qvl_vocabulary *vocabulary, const uint8_t *bytes, size_t count) {
    for (size_t i = qvl_hash_bytes(bytes, count) & vocabulary->word_mask;; i = (i + 1) & vocabulary->word_mask) {
        int32_t id = vocabulary->words[i];
        size_t own;
        if (id < 0) return -1;
        const char *word = qvl_vocabulary_bytes(vocabulary, id, &own);
        if (own == count && memcmp(word, bytes, count) == 0) return id;
    }
}
