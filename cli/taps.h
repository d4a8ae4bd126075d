/* Copies of every stage of the tower, in the order they come. */
#ifndef CLI_TAPS_H
#define CLI_TAPS_H

#include "qvl.h"

typedef struct cli_taps {
    qvl_tensor *tensors; /* names and data are owned */
    size_t count, capacity;
    bool failed; /* a copy had no memory */
} cli_taps;

/* A qvl_tap_fn; user is the cli_taps, zeroed at first. */
void cli_taps_add(const qvl_tensor *tensor, void *user);
void cli_taps_free(cli_taps *taps);

#endif
