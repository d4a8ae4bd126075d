/* Pictures in the terminal: drawn on standard error, since standard output has results alone. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "qvl.h"

/* Draws a picture, or the first frame of a clip, on at most 40 columns (of a narrower terminal: its own) by 20 lines
 * (by kitty's protocol about that: the terminal finds one of the two itself), never enlarged beyond a pixel in half a
 * character. By the graphics protocol of kitty where the environment says that the terminal knows it, else in half
 * blocks. Nothing is read or drawn where standard error is no terminal, or one without colours (TERM=dumb or unset,
 * NO_COLOR). */
qvl_status cli_show(const qvl_model *model, const qvl_input *input, bool clip,
                    const qvl_preprocess_options *options, qvl_error *error);

#endif
