/* qvl encode --map: features as colours. */
#ifndef CLI_MAP_H
#define CLI_MAP_H

#include "qvl.h"

/* Whether the map of an input with that grid has a size that a PNG may have; asked before long work. */
qvl_status cli_check_map(const char *path, const qvl_item *item, const qvl_model_info *info, qvl_error *error);

/* Writes a PNG of the features of one input, whole or not at all: the first three components (components.h) of all
 * its tokens are red, green and blue, a token a square as large as the patches that were merged into it. So a
 * picture's map has the size of the resized picture; the groups of a clip lie below one another, first on top. */
qvl_status cli_save_map(const char *path, const qvl_features *features, const qvl_model_info *info,
                        qvl_error *error);

#endif
