/* The identity of a prompt up to its last picture. The text that is hashed is listed in docs/PROMPT.md. */
#include "base/listing.h"
#include "model/model.h"

#include <inttypes.h>

/* The first entries of each of the three axes, one after the other. */
static void put_positions(qvl_listing *l, const qvl_prompt *prompt) {
    size_t count = (size_t)prompt->media_length;
    static const char *const axes[] = {"positions t", "positions h", "positions w"};
    for (int axis = 0; axis < 3; axis++)
        qvl_listing_digest(l, axes[axis], prompt->position_ids + axis * prompt->length, count * sizeof(int64_t));
}

qvl_status qvl_prompt_identity(const qvl_model *model, const qvl_prompt *prompt, const char *fingerprint,
                               char hex[QVL_KEY_HEX], qvl_error *error) {
    hex[0] = 0;
    if (prompt->media_length == 0) return QVL_OK;
    if (!fingerprint || !qvl_sha256_is_hex(fingerprint))
        return qvl_fail(error, QVL_ERROR_ARGUMENT,
                        "the fingerprint \"%.80s\" is not that of a tower: 64 digits and letters a to f",
                        fingerprint ? fingerprint : "");
    const qvl_model_info *info = &model->info;
    qvl_listing l = qvl_listing_open(prompt->item_count + 8, error);
    qvl_listing_put(&l, "qvl media prefix 1\ntower %s\ncomputed in %s by %s\n", fingerprint,
                    qvl_dtype_name(info->compute_dtype), info->kernels);
    for (size_t i = 0; i < prompt->item_count && !l.status; i++) {
        const qvl_prompt_item *item = &prompt->items[i];
        if (!qvl_sha256_is_hex(item->key))
            l.status = qvl_fail(error, QVL_ERROR_ARGUMENT,
                                "item %zu has no key: an identity needs a built prompt, not a plan", i);
        qvl_listing_put(&l, "%s %s at %" PRId64 "\n", item->kind == QVL_MEDIUM_VIDEO ? "video" : "image",
                        item->key, item->first.index);
    }
    qvl_listing_digest(&l, "ids", prompt->input_ids, (size_t)prompt->media_length * sizeof(int64_t));
    put_positions(&l, prompt);
    qvl_listing_put(&l, "delta %" PRId64 "\n", prompt->rope_delta);
    return qvl_listing_close(&l, hex);
}
