/* A sequence: prefill in chunks, steps, copies, cuts. Every call leaves it as it was if it fails. */
#include "lm/lm.h"

#include "base/options.h"

#include <unistd.h>

#define DEFAULT_CHUNK 1024
#define MAX_CHUNK 4096
#define DEFAULT_SNAPSHOT_BYTES ((int64_t)1 << 30)

void qvl_sequence_options_init(qvl_sequence_options *options) {
    *options = (qvl_sequence_options){
        .size = sizeof *options, .chunk = DEFAULT_CHUNK, .snapshot_bytes = DEFAULT_SNAPSHOT_BYTES};
}

void qvl_decode_options_init(qvl_decode_options *options) {
    *options = (qvl_decode_options){.size = sizeof *options};
}

static int64_t machine_bytes(void) {
    int64_t pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE), total;
    return qvl_mul_i64(pages, bytes, &total) ? total : INT64_MAX;
}

/* With the numbers, before any work. */
static qvl_status check_length(const qvl_sequence *s, int64_t length, qvl_error *error) {
    const qvl_lm_info *info = &s->lm->info;
    if (length > info->max_positions)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "%lld entries are more than the %lld of the model (max_position_embeddings)",
                        (long long)length, (long long)info->max_positions);
    if (length > s->max_length)
        return qvl_fail(error, QVL_ERROR_LIMIT,
                        "%lld entries are more than the %lld that the sequence was opened for", (long long)length,
                        (long long)s->max_length);
    size_t bytes = qvl_kv_cache_bytes(&s->cache, length), state = (size_t)info->state_bytes;
    if (bytes > (size_t)machine_bytes() || state > (size_t)machine_bytes() - bytes)
        return qvl_fail(
            error, QVL_ERROR_LIMIT,
            "keys and values of %lld entries take %zu bytes, %lld an entry, and states of linear attention "
            "%zu; this machine has %lld",
            (long long)length, bytes, (long long)info->cache_bytes, state, (long long)machine_bytes());
    return QVL_OK;
}

qvl_status qvl_sequence_open(const qvl_lm *lm, const qvl_sequence_options *given, qvl_sequence **out,
                             qvl_error *error) {
    *out = NULL;
    qvl_sequence_options options;
    qvl_sequence_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (status) return status;
    if (options.max_length < 0 || options.chunk < 1 || options.chunk > MAX_CHUNK || options.snapshot_bytes < 0)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "max_length is %lld, snapshot_bytes %lld, chunk %lld; allowed are 0 and more, and 1 to %d",
                        (long long)options.max_length, (long long)options.snapshot_bytes, (long long)options.chunk,
                        MAX_CHUNK);
    qvl_sequence *s = qvl_calloc(1, sizeof *s);
    if (!s) return qvl_fail_memory(error, "sequence", 1, sizeof *s);
    s->lm = lm;
    s->chunk = options.chunk;
    s->max_length = options.max_length ? options.max_length : lm->info.max_positions;
    qvl_kv_cache_init(lm->compute, lm->cache_layers, lm->config.kv_heads, lm->config.head_dim, &s->cache);
    qvl_linear_state_init(&lm->linear, (size_t)options.snapshot_bytes, &s->linear);
    if (options.max_length) status = check_length(s, options.max_length, error);
    if (status) {
        qvl_sequence_close(&s);
        return status;
    }
    *out = s;
    return QVL_OK;
}

void qvl_sequence_close(qvl_sequence **pointer) {
    if (!pointer || !*pointer) return;
    qvl_sequence *s = *pointer;
    *pointer = NULL;
    qvl_kv_cache_free(&s->cache);
    qvl_linear_state_free(&s->linear);
    qvl_free(s->scratch);
    qvl_free(s);
}

int64_t qvl_sequence_length(const qvl_sequence *s) {
    return s->length;
}

int64_t qvl_sequence_rope_delta(const qvl_sequence *s) {
    return s->rope_delta;
}

int64_t qvl_sequence_bytes(const qvl_sequence *s) {
    return (int64_t)qvl_kv_cache_bytes(&s->cache, s->length) + qvl_linear_state_bytes(&s->linear);
}

/* ---- running */

static qvl_status grow_scratch(qvl_sequence *s, int64_t rows, int64_t length, const qvl_decode_options *options,
                               qvl_error *error) {
    size_t bytes = qvl_pass_bytes(s->lm, rows, length, options);
    if (bytes <= s->scratch_bytes) return QVL_OK;
    uint8_t *grown = bytes == SIZE_MAX ? NULL : qvl_alloc(bytes, 1);
    if (!grown) return qvl_fail_memory(error, "scratch of the language model", 1, bytes);
    qvl_free(s->scratch);
    s->scratch = grown;
    s->scratch_bytes = bytes;
    return QVL_OK;
}

/* Room for entries up to `length`, `rows` at a time; from here on the call is to be committed or undone. */
static qvl_status prepare(qvl_sequence *s, int64_t rows, int64_t length, const qvl_decode_options *options,
                          qvl_error *error) {
    qvl_status status = check_length(s, length, error);
    if (!status) status = grow_scratch(s, rows, length, options, error);
    if (!status) status = qvl_kv_cache_reserve(&s->cache, s->length, length, error);
    return status ? status : qvl_linear_state_begin(&s->linear, s->length, length - s->length, error);
}

static void undo(qvl_sequence *s) {
    qvl_kv_cache_cut(s->lm->compute, &s->cache, s->length);
    qvl_linear_state_rollback(&s->linear);
}

/* The first mark behind an entry, at most `end`. */
static int64_t next_mark(const qvl_decode_options *options, int64_t entry, int64_t end) {
    for (size_t i = 0; i < options->mark_count; i++)
        if (options->marks[i] > entry && options->marks[i] < end) end = options->marks[i];
    return end;
}

static bool is_mark(const qvl_decode_options *options, int64_t entry) {
    return next_mark(options, entry - 1, entry + 1) == entry;
}

static qvl_status check_prompt(const qvl_sequence *s, const qvl_prompt *prompt, int64_t first, qvl_error *error) {
    const qvl_lm *lm = s->lm;
    qvl_dtype dtype = qvl_compute_dtype(lm->compute);
    if (!prompt->inputs_embeds)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the prompt has no embeddings: it was planned, not built");
    if (prompt->dtype != dtype || prompt->width != lm->config.hidden_size)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "the prompt's embeddings are %s, %lld wide; this model's are %s, %d wide",
                        qvl_dtype_name(prompt->dtype), (long long)prompt->width, qvl_dtype_name(dtype),
                        lm->config.hidden_size);
    if (prompt->deepstack_count > lm->config.layers)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "the prompt has %d deepstack features for %d layers",
                        prompt->deepstack_count, lm->config.layers);
    if (first != s->length || first >= prompt->length)
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "entries %lld to %lld of a prompt cannot follow the %lld of the sequence",
                        (long long)first, (long long)prompt->length - 1, (long long)s->length);
    return QVL_OK;
}

qvl_status qvl_sequence_prefill(qvl_sequence *s, const qvl_prompt *prompt, int64_t first,
                                const qvl_decode_options *given, float *logits, qvl_error *error) {
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (!status) status = check_prompt(s, prompt, first, error);
    if (status) return status;
    int64_t count = prompt->length - first, rows = count < s->chunk ? count : s->chunk;
    int64_t layers = s->lm->config.layers;
    status = prepare(s, rows, prompt->length, &options, error);
    for (int64_t at = first, end; at < prompt->length && !status; at = end) {
        if (is_mark(&options, at)) qvl_linear_state_keep(&s->linear, at);
        end = next_mark(&options, at, at + rows < prompt->length ? at + rows : prompt->length);
        qvl_rows part = {.first = at, .count = end - at, .prompt = prompt};
        status = qvl_pass_run(s, &part, &options, (at - first) * layers, count * layers,
                              end == prompt->length ? logits : NULL, error);
    }
    if (status) {
        undo(s);
        return status;
    }
    qvl_linear_state_commit(&s->linear);
    if (is_mark(&options, prompt->length)) qvl_linear_state_keep(&s->linear, prompt->length);
    s->length = prompt->length;
    s->rope_delta = prompt->rope_delta;
    return QVL_OK;
}

qvl_status qvl_sequence_step(qvl_sequence *s, int64_t token, const qvl_decode_options *given, float *logits,
                             qvl_error *error) {
    qvl_decode_options options;
    qvl_decode_options_init(&options);
    qvl_status status = qvl_options_take(&options, sizeof options, given, error);
    if (!status && (token < 0 || token >= s->lm->config.vocab_size))
        status = qvl_fail(error, QVL_ERROR_ARGUMENT, "token %lld is not among the %d of the model",
                          (long long)token, s->lm->config.vocab_size);
    if (status) return status;
    int64_t position = s->length + s->rope_delta;
    qvl_rows row = {.first = s->length, .count = 1, .token = token, .position = {position, position, position}};
    status = prepare(s, 1, s->length + 1, &options, error);
    if (!status) status = qvl_pass_run(s, &row, &options, 0, s->lm->config.layers, logits, error);
    if (status) {
        undo(s);
        return status;
    }
    qvl_linear_state_commit(&s->linear);
    s->length++;
    return QVL_OK;
}

/* ---- copies and cuts */

qvl_status qvl_sequence_fork(const qvl_sequence *s, qvl_sequence **out, qvl_error *error) {
    *out = NULL;
    qvl_sequence *copy = qvl_alloc(1, sizeof *copy);
    if (!copy) return qvl_fail_memory(error, "sequence", 1, sizeof *copy);
    *copy = *s;
    copy->scratch = NULL;
    copy->scratch_bytes = 0;
    qvl_linear_state_init(&s->lm->linear, s->linear.budget, &copy->linear);
    qvl_status status = qvl_kv_cache_share(&s->cache, &copy->cache, error);
    if (!status) status = qvl_linear_state_share(&s->linear, &copy->linear, error);
    if (status) {
        qvl_sequence_close(&copy);
        return status;
    }
    *out = copy;
    return QVL_OK;
}

int64_t qvl_sequence_reachable(const qvl_sequence *s, int64_t length) {
    return qvl_linear_state_reachable(&s->linear, s->length, length);
}

qvl_status qvl_sequence_truncate(qvl_sequence *s, int64_t length, int64_t rope_delta, qvl_error *error) {
    if (length < 0 || length > s->length)
        return qvl_fail(error, QVL_ERROR_ARGUMENT, "a sequence of %lld entries cannot be cut to %lld",
                        (long long)s->length, (long long)length);
    int64_t reachable = qvl_sequence_reachable(s, length);
    if (reachable != length)
        return qvl_fail(
            error, QVL_ERROR_UNSUPPORTED,
            "a sequence of %lld entries cannot be cut to %lld: the state of linear attention only goes back "
            "to a snapshot, and the nearest before is at %lld",
            (long long)s->length, (long long)length, (long long)reachable);
    qvl_linear_state_cut(&s->linear, s->length, length);
    qvl_kv_cache_cut(s->lm->compute, &s->cache, length);
    s->length = length;
    s->rope_delta = rope_delta;
    return QVL_OK;
}
