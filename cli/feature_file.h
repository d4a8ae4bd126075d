/* The file that encoding writes. */
#ifndef CLI_FEATURE_FILE_H
#define CLI_FEATURE_FILE_H

#include "output.h"

/* Pictures come before clips. made_from: a text for the file's metadata, or NULL. */
qvl_status cli_save_features(const char *path, const qvl_features *features, const qvl_model_info *info,
                             const qvl_preprocess_options *preprocess, const char *made_from, qvl_error *error);

#endif
