/* The preprocessor files of a folder: settings of pictures and of videos. */
#ifndef QVL_MODEL_PROCESSOR_H
#define QVL_MODEL_PROCESSOR_H

#include "model/config.h"

/* Fills config->processor and config->video; config->vision is there already. log may be NULL; it hears of defaults
 * and contradictions. */
qvl_status qvl_processors_read(const char *folder, qvl_log_fn log, void *log_user, qvl_config *config,
                               qvl_error *error);

#endif
