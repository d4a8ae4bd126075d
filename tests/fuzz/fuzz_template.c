/* Any bytes as a template and, behind the first NUL, its variables: refused with a message, or rendered to UTF-8
 * within the limits, with spans that lie in it. */
#include "text/template.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#define MAX_OUTPUT 65536

static void check(bool holds) {
    if (!holds) abort();
}

static void check_text(const qvl_rendered *rendered) {
    const uint8_t *text = (const uint8_t *)rendered->text;
    check(rendered->length <= MAX_OUTPUT && text[rendered->length] == 0);
    check(qvl_utf8_valid(text, rendered->length) == rendered->length);
    for (size_t i = 0; i < rendered->generation_count; i++) {
        qvl_span span = rendered->generation[i];
        check(span.start <= span.end && span.end <= rendered->length);
        check(qvl_utf8_valid(text + span.start, span.end - span.start) == span.end - span.start);
    }
}

static void run(const qvl_template *template, const cJSON *variables, const qvl_template_options *options) {
    qvl_rendered rendered;
    qvl_error error = {0};
    qvl_status status = qvl_template_run(template, variables, options, &rendered, &error);
    if (status)
        check(error.status == status && error.message[0] && !rendered.text && !rendered.generation);
    else
        check_text(&rendered);
    qvl_rendered_free(&rendered);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const uint8_t *nul = count ? memchr(bytes, 0, count) : NULL;
    size_t length = nul ? (size_t)(nul - bytes) : count;
    cJSON *variables = NULL;
    qvl_template *template;
    qvl_template_options options;
    qvl_error error = {0};
    qvl_template_options_init(&options);
    options.time = 1709211845;
    options.max_steps = 200000;
    options.max_output = MAX_OUTPUT;
    options.max_memory = (int64_t)32 << 20;
    qvl_status status = qvl_template_open((const char *)bytes, length, &options, &template, &error);
    if (status) {
        check(error.status == status && error.message[0] && !template);
        return 0;
    }
    if (nul) status = qvl_template_json(nul + 1, count - length - 1, "variables", &variables, &error);
    if (!nul || status) variables = cJSON_CreateObject();
    run(template, variables, &options);
    qvl_template_reads(template, "messages");
    cJSON_Delete(variables);
    qvl_template_close(&template);
    return 0;
}
