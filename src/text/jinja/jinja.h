/* The engine as the rest of the text stage sees it: a text becomes a program, a program runs over variables. */
#ifndef QVL_TEXT_JINJA_JINJA_H
#define QVL_TEXT_JINJA_JINJA_H

#include "text/jinja/node.h"

#include <cjson/cJSON.h>

/* Reads a template into *program, whose arena takes over the run's. The run must have its limits and an arena. */
bool jinja_compile(jinja_run *run, const char *text, size_t count, jinja_program *program);

/* variables: an object; its strings are not copied. Output goes to the run's root text. */
bool jinja_render(jinja_run *run, const jinja_program *program, const cJSON *variables);

#endif
