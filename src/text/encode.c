/* Text to ids: the stages of tokenizer.h one after the other. A stage that changes nothing copies nothing. */
#include "base/memory.h"
#include "base/options.h"
#include "text/marks.h"
#include "text/normalize.h"
#include "text/tokenizer.h"

#include <string.h>

/* Stages that change the text: repair, NFC, marks, NFC again, prefix spaces. */
#define MAX_REWRITES 5
/* Words up to this many bytes are remembered within a call. */
#define CACHED_WORD 64
#define CACHE_SLOTS_MAX ((size_t)1 << 13)

/* A word that was encoded before in this call: where it stands in the text, and its tokens in the result. */
typedef struct cached {
    size_t at, tokens_at;
    uint32_t hash;
    uint8_t size, token_count; /* size 0: an empty slot */
} cached;

typedef struct encoder {
    const qvl_tokenizer *tokenizer;
    qvl_tokenize_options options;
    const uint8_t *text; /* after the stages so far */
    size_t count;
    qvl_pieces pieces; /* of text */
    qvl_rewrite rewrites[MAX_REWRITES];
    int rewrite_count;
    qvl_normalizer normalizer;
    qvl_bpe_scratch scratch;
    cached *cache;
    size_t cache_mask;
    qvl_tokens tokens;
    size_t capacity; /* of tokens */
} encoder;

static void encoder_free(encoder *e) {
    for (int i = 0; i < e->rewrite_count; i++) qvl_rewrite_free(&e->rewrites[i]);
    qvl_pieces_free(&e->pieces);
    qvl_normalizer_free(&e->normalizer);
    qvl_bpe_scratch_free(&e->scratch);
    qvl_free(e->cache);
    qvl_tokens_free(&e->tokens);
}

/* --------------------------------------------------------------------------------------------- stages on the text */

static qvl_rewrite *start_stage(encoder *e) {
    qvl_rewrite *rewrite = &e->rewrites[e->rewrite_count++];
    qvl_rewrite_start(rewrite, e->text, e->count);
    return rewrite;
}

static qvl_status end_stage(encoder *e, qvl_rewrite *rewrite, qvl_error *error) {
    qvl_status status = qvl_rewrite_end(rewrite, &e->text, &e->count, error);
    if (!status && rewrite->edit_count && e->pieces.bounds)
        qvl_rewrite_forward(rewrite, e->pieces.bounds, e->pieces.count + 1);
    return status;
}

static qvl_status repair(encoder *e, qvl_error *error) {
    qvl_rewrite *rewrite = start_stage(e);
    qvl_status status = qvl_rewrite_repair(rewrite, error);
    return status ? status : end_stage(e, rewrite, error);
}

static qvl_status normalize(encoder *e, qvl_error *error) {
    qvl_rewrite *rewrite = start_stage(e);
    qvl_status status = QVL_OK;
    for (size_t i = 0; i < e->pieces.count && !status; i++)
        if (e->pieces.ids[i] == QVL_PIECE_TEXT)
            status = qvl_normalize(&e->normalizer, &e->tokenizer->unicode, rewrite, e->pieces.bounds[i],
                                   e->pieces.bounds[i + 1], error);
    return status ? status : end_stage(e, rewrite, error);
}

/* *taken: there were marks. */
static qvl_status take_marks(encoder *e, bool *taken, qvl_error *error) {
    qvl_rewrite *rewrite = start_stage(e);
    qvl_status status = QVL_OK;
    for (size_t i = 0; i < e->pieces.count && !status; i++)
        if (e->pieces.ids[i] == QVL_PIECE_TEXT)
            status = qvl_marks_take(rewrite, e->pieces.bounds[i], e->pieces.bounds[i + 1], error);
    *taken = rewrite->edit_count > 0;
    return status ? status : end_stage(e, rewrite, error);
}

static qvl_status cut(encoder *e, const qvl_added_tree *tree, qvl_error *error) {
    qvl_pieces pieces;
    if (!tree->node_count) return QVL_OK;
    qvl_status status = qvl_added_cut(&e->tokenizer->added, tree, &e->tokenizer->unicode, e->options.added,
                                      e->text, &e->pieces, &pieces, error);
    if (status) {
        qvl_pieces_free(&pieces);
        return status;
    }
    qvl_pieces_free(&e->pieces);
    e->pieces = pieces;
    return QVL_OK;
}

static size_t next_word(const encoder *e, size_t at, size_t end) {
    return qvl_split_next(e->tokenizer->splitter, &e->tokenizer->unicode, e->text, at, end);
}

/* The spaces of add_prefix_space. Pieces become words where each word gets its own. */
static qvl_status put_prefixes(encoder *e, qvl_error *error) {
    bool each = e->tokenizer->prefix_each_word;
    qvl_rewrite *rewrite = start_stage(e);
    qvl_pieces words;
    qvl_status status = qvl_pieces_open(&words, error);
    for (size_t i = 0; i < e->pieces.count && !status; i++) {
        size_t at = e->pieces.bounds[i], end = e->pieces.bounds[i + 1];
        if (e->pieces.ids[i] != QVL_PIECE_TEXT) {
            status = qvl_pieces_add(&words, end, e->pieces.ids[i], error);
            continue;
        }
        for (size_t next; at < end && !status; at = next) {
            next = each ? next_word(e, at, end) : end;
            if (e->text[at] != ' ') status = qvl_rewrite_put(rewrite, at, at, " ", 1, error);
            if (!status) status = qvl_pieces_add(&words, next, each ? QVL_PIECE_WORD : QVL_PIECE_TEXT, error);
        }
    }
    qvl_pieces_free(&e->pieces);
    e->pieces = words;
    return status ? status : end_stage(e, rewrite, error);
}

static qvl_status prepare(encoder *e, qvl_error *error) {
    const qvl_tokenizer *t = e->tokenizer;
    bool marks_taken = false;
    qvl_status status = repair(e, error);
    if (!status) status = qvl_pieces_open(&e->pieces, error);
    if (!status) status = qvl_pieces_add(&e->pieces, e->count, QVL_PIECE_TEXT, error);
    if (!status) status = cut(e, &t->added.plain, error);
    if (!status && t->nfc) status = normalize(e, error);
    if (!status) status = cut(e, &t->added.normalized, error);
    if (!status && e->options.marked) status = take_marks(e, &marks_taken, error);
    /* What a mark kept apart may compose now. */
    if (!status && t->nfc && marks_taken) status = normalize(e, error);
    if (!status && t->prefix_space) status = put_prefixes(e, error);
    return status;
}

/* -------------------------------------------------------------------------------------------------- words to ids */

/* Room for more tokens. */
static qvl_status make_room(encoder *e, size_t more, qvl_error *error) {
    size_t wanted, grown;
    if (!qvl_add_size(e->tokens.count, more, &wanted) || !qvl_mul_size(e->capacity, 2, &grown))
        return qvl_fail_memory(error, "tokens", more, sizeof *e->tokens.starts);
    if (wanted <= e->capacity) return QVL_OK;
    if (grown < wanted) grown = wanted;
    int32_t *ids = qvl_alloc(grown, sizeof *ids);
    size_t *starts = qvl_alloc(grown + 1, sizeof *starts);
    if (!ids || !starts) {
        qvl_free(ids);
        qvl_free(starts);
        return qvl_fail_memory(error, "tokens", grown, sizeof *ids + sizeof *starts);
    }
    if (e->tokens.count) {
        memcpy(ids, e->tokens.ids, e->tokens.count * sizeof *ids);
        memcpy(starts, e->tokens.starts, e->tokens.count * sizeof *starts);
    }
    qvl_free(e->tokens.ids);
    qvl_free(e->tokens.starts);
    e->tokens.ids = ids;
    e->tokens.starts = starts;
    e->capacity = grown;
    return QVL_OK;
}

static void put_token(encoder *e, int32_t id, size_t at) {
    e->tokens.ids[e->tokens.count] = id;
    e->tokens.starts[e->tokens.count++] = at;
}

static qvl_status encode_word(encoder *e, size_t at, size_t size, qvl_error *error) {
    const qvl_tokenizer *t = e->tokenizer;
    size_t first = e->tokens.count, count;
    if (t->ignore_merges) {
        int32_t id = qvl_vocabulary_word(&t->vocabulary, e->text + at, size);
        if (id >= 0) {
            put_token(e, id, at);
            return QVL_OK;
        }
    }
    qvl_status status = qvl_bpe_encode(&t->bpe, &e->scratch, e->text + at, size, e->tokens.ids + first,
                                       e->tokens.starts + first, &count, error);
    if (status) return status;
    for (size_t i = first; i < first + count; i++) e->tokens.starts[i] += at;
    e->tokens.count += count;
    return QVL_OK;
}

static void copy_tokens(encoder *e, const cached *old, size_t at) {
    int32_t *ids = e->tokens.ids + e->tokens.count;
    size_t *starts = e->tokens.starts + e->tokens.count;
    for (size_t i = 0; i < old->token_count; i++) {
        ids[i] = e->tokens.ids[old->tokens_at + i];
        starts[i] = e->tokens.starts[old->tokens_at + i] - old->at + at;
    }
    e->tokens.count += old->token_count;
}

static qvl_status put_word(encoder *e, size_t at, size_t size, qvl_error *error) {
    qvl_status status = make_room(e, size, error);
    if (status) return status;
    if (size == 1) {
        put_token(e, e->tokenizer->bpe.byte_ids[e->text[at]], at);
        return QVL_OK;
    }
    if (size > CACHED_WORD) return encode_word(e, at, size, error);
    uint64_t hash = qvl_hash_bytes(e->text + at, size);
    cached *slot = &e->cache[hash & e->cache_mask];
    uint32_t tag = (uint32_t)(hash >> 32);
    if (slot->hash == tag && slot->size == size && memcmp(e->text + slot->at, e->text + at, size) == 0) {
        copy_tokens(e, slot, at);
        return QVL_OK;
    }
    size_t first = e->tokens.count;
    status = encode_word(e, at, size, error);
    *slot = (cached){at, first, tag, (uint8_t)size, (uint8_t)(e->tokens.count - first)};
    return status;
}

static qvl_status put_piece(encoder *e, size_t at, size_t end, int32_t id, qvl_error *error) {
    qvl_status status = QVL_OK;
    if (id >= 0) {
        status = make_room(e, 1, error);
        if (!status) put_token(e, id, at);
        return status;
    }
    for (size_t next; at < end && !status; at = next) {
        next = id == QVL_PIECE_WORD ? end : next_word(e, at, end);
        if (next - at > QVL_BPE_WORD)
            return qvl_fail(error, QVL_ERROR_LIMIT, "the text has a word of %zu bytes; the limit is %zu",
                            next - at, QVL_BPE_WORD);
        status = put_word(e, at, next - at, error);
    }
    return status;
}

static qvl_status encode(encoder *e, qvl_error *error) {
    size_t slots = 16;
    while (slots < e->count / 8 && slots < CACHE_SLOTS_MAX) slots *= 2;
    e->cache = qvl_calloc(slots, sizeof *e->cache);
    e->cache_mask = slots - 1;
    if (!e->cache) return qvl_fail_memory(error, "words", slots, sizeof *e->cache);
    qvl_status status = make_room(e, e->count / 4 + 16, error);
    for (size_t i = 0; i < e->pieces.count && !status; i++)
        status = put_piece(e, e->pieces.bounds[i], e->pieces.bounds[i + 1], e->pieces.ids[i], error);
    return status;
}

qvl_status qvl_tokenize(const qvl_tokenizer *tokenizer, const char *text, size_t byte_count,
                        const qvl_tokenize_options *options, qvl_tokens *tokens, qvl_error *error) {
    encoder e = {.tokenizer = tokenizer, .text = (const uint8_t *)text, .count = byte_count};
    *tokens = (qvl_tokens){0};
    qvl_tokenize_options_init(&e.options);
    qvl_status status = qvl_options_take(&e.options, sizeof e.options, options, error);
    if (!status && (unsigned)e.options.added > QVL_ADDED_NONE)
        status = qvl_fail(error, QVL_ERROR_ARGUMENT, "added is %d; it must be 0..2", (int)e.options.added);
    if (!status) status = prepare(&e, error);
    if (!status) status = encode(&e, error);
    if (status) goto fail;
    e.tokens.starts[e.tokens.count] = e.tokens.count ? e.count : 0;
    for (int i = e.rewrite_count - 1; i >= 0; i--)
        qvl_rewrite_back(&e.rewrites[i], e.tokens.starts, e.tokens.count + 1);
    if (e.tokens.count) {
        e.tokens.starts[0] = 0;
        e.tokens.starts[e.tokens.count] = byte_count;
    }
    *tokens = e.tokens;
    e.tokens = (qvl_tokens){0};
fail:
    encoder_free(&e);
    return status;
}

/* ------------------------------------------------------------------------------------------------- marked text */

static qvl_status copy_text(const uint8_t *bytes, size_t count, qvl_text *text, qvl_error *error) {
    size_t room;
    text->bytes = qvl_add_size(count, 1, &room) ? qvl_alloc(room, 1) : NULL;
    if (!text->bytes) return qvl_fail_memory(error, "text", count, 1);
    if (count) memcpy(text->bytes, bytes, count);
    text->bytes[count] = 0;
    text->byte_count = count;
    return QVL_OK;
}

/* A token with `normalized` that is to be marked is found in the text's NFC only. */
static bool marks_need_nfc(const qvl_tokenizer *t, qvl_added added) {
    for (int32_t i = 0; i < t->added.count; i++) {
        const qvl_added_token *token = &t->added.items[i];
        if (token->normalized && (token->special || added == QVL_ADDED_NONE)) return t->nfc;
    }
    return false;
}

qvl_status qvl_text_mark(const qvl_tokenizer *tokenizer, const char *text, size_t byte_count, qvl_added added,
                         qvl_text *marked, qvl_error *error) {
    encoder e = {.tokenizer = tokenizer, .text = (const uint8_t *)text, .count = byte_count};
    *marked = (qvl_text){0};
    if ((unsigned)added > QVL_ADDED_NONE)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "added is %d; it must be 0..2", (int)added);
    qvl_status status = repair(&e, error);
    if (!status) status = qvl_pieces_open(&e.pieces, error);
    if (!status) status = qvl_pieces_add(&e.pieces, e.count, QVL_PIECE_TEXT, error);
    if (!status && added != QVL_ADDED_ALL && marks_need_nfc(tokenizer, added)) status = normalize(&e, error);
    if (!status) {
        qvl_rewrite *rewrite = start_stage(&e);
        status = qvl_marks_put(&tokenizer->added, &tokenizer->unicode, added, rewrite, error);
        if (!status) status = end_stage(&e, rewrite, error);
    }
    if (!status) status = copy_text(e.text, e.count, marked, error);
    encoder_free(&e);
    return status;
}

qvl_status qvl_text_unmark(const char *marked, size_t byte_count, qvl_text *text, qvl_error *error) {
    encoder e = {.text = (const uint8_t *)marked, .count = byte_count};
    *text = (qvl_text){0};
    qvl_status status = repair(&e, error);
    if (!status) {
        qvl_rewrite *rewrite = start_stage(&e);
        status = qvl_marks_take(rewrite, 0, e.count, error);
        if (!status) status = end_stage(&e, rewrite, error);
    }
    if (!status) status = copy_text(e.text, e.count, text, error);
    encoder_free(&e);
    return status;
}
