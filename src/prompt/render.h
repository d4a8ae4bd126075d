/* A conversation through the chat template. */
#ifndef QVL_PROMPT_RENDER_H
#define QVL_PROMPT_RENDER_H

#include "prompt/chat.h"
#include "prompt/defuse.h"
#include "prompt/prompter.h"

/* What is rendered with. conversation->variables may be changed: arguments of tool calls parsed, the last message
 * tagged. */
typedef struct qvl_renderer {
    const qvl_prompter *prompter;
    const qvl_template *template;
    const qvl_prompt_options *options;
    qvl_conversation *conversation;
    qvl_defusing defusing; /* what the text was rendered with; not for trusted text */
    bool marked;
} qvl_renderer;

/* Chooses the template and prepares the conversation; the other two belong to qvl_render. */
qvl_status qvl_renderer_init(qvl_renderer *renderer, const qvl_prompter *prompter,
                             const qvl_prompt_options *options, qvl_conversation *conversation, qvl_error *error);

/* *text: what is to be tokenised, with marks if renderer->marked then says so. Without its marks it is what the
 * template makes of the conversation as given; where marks would change that, it is an error. Text that the
 * template left out is dealt with as the options say. *text belongs to the caller: qvl_text_free. */
qvl_status qvl_render(qvl_renderer *renderer, qvl_text *text, qvl_error *error);

/* The same again for other variables, without any checks: to see what changes. */
qvl_status qvl_render_variant(const qvl_renderer *renderer, const cJSON *variables, qvl_text *text,
                              qvl_error *error);

/* Rendered text to ids. *tokens belongs to the caller: qvl_tokens_free. */
qvl_status qvl_rendered_tokens(const qvl_renderer *renderer, const char *text, size_t byte_count,
                               qvl_tokens *tokens, qvl_error *error);

/* White space as Python's str.strip() has it, at the front of UTF-8 text: its bytes, or 0. */
size_t qvl_python_space(const char *text, size_t byte_count);
/* text[*start .. *end) without white space at its ends. */
void qvl_python_strip(const char *text, size_t *start, size_t *end);

#endif
