/* Chat templates: Jinja as transformers sets it up (docs/TEXT.md), over JSON. */
#ifndef QVL_TEXT_TEMPLATE_H
#define QVL_TEXT_TEMPLATE_H

#include "base/error.h"

#include <cjson/cJSON.h>

/* A template that was read and checked. Immutable: threads may share it. */
typedef struct qvl_template qvl_template;

/* text: count bytes of UTF-8, not kept. options: name and limits are used; may be NULL. A fault of the text is
 * QVL_ERROR_FORMAT, what Jinja has and qvl has not QVL_ERROR_UNSUPPORTED; messages give line and column.
 * Owner: the caller, qvl_template_close, which accepts NULL and a pointer to NULL. */
qvl_status qvl_template_open(const char *text, size_t count, const qvl_template_options *options,
                             qvl_template **template, qvl_error *error);
void qvl_template_close(qvl_template **template);

/* Does the template read a variable of this name that the caller may give ("enable_thinking")? */
bool qvl_template_reads(const qvl_template *template, const char *variable);

/* Renders with the members of an object as variables. Bytes of its strings that are not UTF-8 become U+FFFD. What
 * the template raises, and an operation that the values do not allow, is QVL_ERROR_ARGUMENT; the message ends in the
 * reason as Jinja gives it. *rendered belongs to the caller: qvl_rendered_free. */
qvl_status qvl_template_run(const qvl_template *template, const cJSON *variables,
                            const qvl_template_options *options, qvl_rendered *rendered, qvl_error *error);

/* qvl_json_parse for variables. A number that a double would change or print otherwise (1.0, 1e5,
 * 12345678901234567890) has its text in valuestring, too, and qvl_template_run goes by that: tojson prints what was
 * read. Owner: the caller, cJSON_Delete. */
qvl_status qvl_template_json(const void *bytes, size_t count, const char *file, cJSON **root, qvl_error *error);

/* A folder's template, where transformers' processors look for it: processor_config.json, chat_template.json,
 * chat_template.jinja; where there is none, tokenizer_config.json. name: of a named one (a file of
 * additional_chat_templates, or an entry of tokenizer_config.json's list); NULL: "default", or of that list
 * "tool_use" if with_tools and there is one. *text (count bytes and a NUL) and *source (the file's name) belong to
 * the caller: qvl_free. They are NULL, which is no error, where the folder has no template and name is NULL. */
qvl_status qvl_template_find(const char *folder, const char *name, bool with_tools, char **text, size_t *count,
                             char **source, qvl_error *error);

#endif
