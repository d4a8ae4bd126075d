/* The whole pipeline as one call: its groups put together to one result. */
#include "base/memory.h"
#include "base/options.h"
#include "pipeline.h"
#include "preprocess/geometry.h"
#include "vision/features.h"

#include <string.h>

/* Features while they come in. */
typedef struct gathering {
    const qvl_encode_options *options;
    size_t inputs;
    int64_t capacity; /* tokens there is room for */
    qvl_features *features;
} gathering;

/* The arrays of features, embeds first. */
static void **array_of(qvl_features *features, int32_t index) {
    return index ? &features->deepstack[index - 1] : &features->embeds;
}

/* Makes room for more tokens: for what is known to come, and for twice as many as there are, so that many items are
 * not copied many times. Memory that is never written to costs nothing. */
static qvl_status grow(gathering *g, int64_t more, qvl_error *error) {
    qvl_features *f = g->features;
    int64_t tokens;
    if (__builtin_add_overflow(f->tokens, more, &tokens) || tokens > INT32_MAX)
        return qvl_fail(error, QVL_ERROR_LIMIT, "the inputs make more than %d tokens", INT32_MAX);
    if (tokens <= g->capacity) return QVL_OK;
    size_t row = (size_t)f->width * qvl_dtype_bits(f->dtype) / 8;
    int64_t capacity = tokens > 2 * g->capacity ? tokens : 2 * g->capacity;
    for (int32_t i = 0; i <= f->deepstack_count; i++) {
        void **array = array_of(f, i), *grown = qvl_alloc((size_t)capacity, row);
        if (!grown) return qvl_fail_memory(error, "features", (size_t)capacity, row);
        if (*array) memcpy(grown, *array, (size_t)f->tokens * row);
        qvl_free(*array);
        *array = grown;
    }
    g->capacity = capacity;
    return QVL_OK;
}

static qvl_status append(gathering *g, const qvl_encoded *encoded, qvl_error *error) {
    qvl_features *to = g->features, from = *encoded->features;
    if (!to->width) {
        to->dtype = from.dtype;
        to->width = from.width;
        to->deepstack_count = from.deepstack_count;
    }
    qvl_status status = encoded->first == 0 ? grow(g, encoded->item->tokens, error) : QVL_OK;
    if (status) return status;
    size_t row = (size_t)to->width * qvl_dtype_bits(to->dtype) / 8;
    for (int32_t i = 0; i <= to->deepstack_count; i++)
        memcpy((char *)*array_of(to, i) + (size_t)to->tokens * row, *array_of(&from, i),
               (size_t)from.tokens * row);
    to->tokens += from.tokens;
    return QVL_OK;
}

/* A result of one group is a view of it, any other a copy. */
static qvl_status gather(void *user, const qvl_encoded *encoded, qvl_error *error) {
    gathering *g = user;
    qvl_features *f = g->features;
    const qvl_encode_options *o = g->options;
    qvl_status status = QVL_OK;
    if (o->group && !o->group(encoded->source, encoded->first, encoded->item, encoded->features, o->group_user))
        return qvl_fail(error, QVL_ERROR_CANCELLED, "encoding was cancelled");
    if (g->inputs == 1 && encoded->item->grid.t == 1) {
        qvl_item *items = f->items;
        *f = qvl_shared_view(encoded->features->shared);
        f->items = items;
    } else {
        status = append(g, encoded, error);
    }
    if (status || !encoded->key) return status;
    status = qvl_item_copy(encoded->item, &f->items[encoded->source], error);
    if (!status) f->item_count = encoded->source + 1;
    return status;
}

static qvl_status encode_groups(qvl_session *session, const qvl_input *inputs, size_t count,
                                const qvl_preprocess_options *preprocess, const qvl_encode_options *options,
                                qvl_features *features, qvl_error *error) {
    gathering g = {.options = options, .inputs = count, .features = features};
    features->items = qvl_calloc(count, sizeof *features->items);
    qvl_encode_source *sources = qvl_calloc(count, sizeof *sources);
    qvl_status status = QVL_OK;
    if (!features->items || !sources) status = qvl_fail_memory(error, "inputs", count, sizeof *sources);
    for (size_t i = 0; i < count && !status; i++)
        sources[i] = (qvl_encode_source){.name = inputs[i].name, .input = &inputs[i]};
    if (!status) status = qvl_pipeline_run(session, sources, count, preprocess, options, gather, &g, error);
    qvl_free(sources);
    return status;
}

/* A tap sees the stages of all inputs at once: one run of the tower over all of their rows. */
static qvl_status encode_tapped(qvl_session *session, const qvl_input *inputs, size_t count,
                                const qvl_preprocess_options *preprocess, const qvl_encode_options *options,
                                qvl_features *features, qvl_error *error) {
    qvl_patches patches = {0};
    qvl_status status =
        qvl_preprocess_inputs(qvl_session_model(session), inputs, count, preprocess, &patches, error);
    if (!status) status = qvl_vision_encode(session, &patches, options, features, error);
    qvl_patches_free(&patches);
    return status;
}

qvl_status qvl_encode(qvl_session *session, const qvl_input *inputs, size_t count,
                      const qvl_preprocess_options *given_preprocess, const qvl_encode_options *given,
                      qvl_features *features, qvl_error *error) {
    *features = (qvl_features){0};
    qvl_preprocess_options preprocess;
    qvl_encode_options options;
    qvl_preprocess_options_init(&preprocess);
    qvl_encode_options_init(&options);
    qvl_status status = qvl_options_take(&preprocess, sizeof preprocess, given_preprocess, error);
    if (!status) status = qvl_options_take(&options, sizeof options, given, error);
    if (!status) status = qvl_check_preset(preprocess.preset, error);
    if (!status && count == 0) status = qvl_fail(error, QVL_ERROR_ARGUMENT, "no pictures given");
    if (!status)
        status = (options.tap ? encode_tapped : encode_groups)(session, inputs, count, &preprocess, &options,
                                                               features, error);
    if (status) qvl_features_free(features);
    return status;
}
