/* The pictures and videos of a prompt: how large they become, and their features in the places of their tokens. */
#ifndef QVL_PROMPT_PICTURES_H
#define QVL_PROMPT_PICTURES_H

#include "prompt/expand.h"

/* From headers alone. options: of the call. */
qvl_status qvl_source_measure(const qvl_model *model, const qvl_source *source,
                              const qvl_preprocess_options *options, qvl_measured *measured, qvl_error *error);

/* Encodes one item into features, or takes the caller's; *key says what it shows. measured: what it must come
 * out as. *features belongs to the caller: qvl_features_free, unless *borrowed. */
qvl_status qvl_source_encode(qvl_session *session, const qvl_source *source, const qvl_measured *measured,
                             const qvl_preprocess_options *options, const qvl_encode_options *encode,
                             qvl_features *features, bool *borrowed, char key[QVL_KEY_HEX], qvl_error *error);

#endif
