/* What the commands say and write about clips. */
#ifndef CLI_CLIPS_H
#define CLI_CLIPS_H

#include "output.h"

/* Lines about the frames taken and the labels of their groups. Nothing for pictures. */
void cli_print_clip(const qvl_item *item);
/* A member "clip" of an object that describes an item; null for pictures. */
void cli_json_clip(cJSON *object, const qvl_item *item);

/* Puts pictures before clips, in the lists of inputs, names and plan alike; else their order stays. So the rows and
 * tokens of either kind lie together. */
void cli_order_kinds(cli_inputs *inputs, char **names, qvl_plan *plan);

/* Where pictures end and clips begin among items in that order. */
typedef struct cli_kinds {
    size_t pictures, clips; /* items */
    int64_t rows, tokens;   /* of the pictures */
    int64_t groups;         /* temporal groups of the clips */
} cli_kinds;
cli_kinds cli_count_kinds(const qvl_item *items, size_t count);

/* The labels' seconds of all clips, [groups]. Owner: the caller, free(). NULL: no memory, or no clips. */
double *cli_timestamps(const qvl_item *items, size_t count);

#endif
