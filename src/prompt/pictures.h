/* The pictures and videos of a prompt: how large they become, and their features in the places of their tokens. */
#ifndef QVL_PROMPT_PICTURES_H
#define QVL_PROMPT_PICTURES_H

#include "pipeline.h"
#include "prompt/expand.h"

/* From headers alone. options: of the call. patience: of qvl_reader_open. */
qvl_status qvl_source_measure(const qvl_model *model, const qvl_source *source,
                              const qvl_preprocess_options *options, const qvl_patience *patience,
                              qvl_measured *measured, qvl_error *error);

/* What encoding it takes. measured: what it must come out as. Both must outlive the result. */
qvl_encode_source qvl_source_to_encode(const qvl_source *source, const qvl_measured *measured);

/* Of patch rows and features that the caller made: whether its features are the model's, and the key of what they
 * show. */
qvl_status qvl_source_accept(const qvl_model *model, const qvl_source *source, const qvl_features *features,
                             char key[QVL_KEY_HEX], qvl_error *error);

#endif
