/* Ctrl-C, where it stops something without ending the program. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/* From here on Ctrl-C is remembered. always: however often; else a second one ends the program. */
void cli_interrupt_watch(bool always);
/* Was it pressed since the last forgetting? */
bool cli_interrupted(void);
void cli_interrupt_forget(void);

#endif
