#include "lm/marks.h"

#include "base/memory.h"

#define MESSAGES 2

qvl_status qvl_prompt_marks(const qvl_tokenizer *tokenizer, const qvl_prompt *prompt, int64_t first,
                            int64_t **marks, size_t *count, qvl_error *error) {
    *count = 0;
    size_t most = prompt->item_count + MESSAGES;
    *marks = qvl_alloc(most, sizeof **marks);
    if (!*marks) return qvl_fail_memory(error, "marks", most, sizeof **marks);
    for (size_t i = 0; i < prompt->item_count; i++) {
        int64_t behind = prompt->items[i].last.index + 1;
        if (behind > first) (*marks)[(*count)++] = behind;
    }
    qvl_token start;
    if (!qvl_token_find(tokenizer, "<|im_start|>", &start)) return QVL_OK;
    int found = 0;
    for (int64_t i = prompt->length - 1; i > first && found < MESSAGES; i--) {
        if (prompt->input_ids[i] != start.id) continue;
        (*marks)[(*count)++] = i;
        found++;
    }
    return QVL_OK;
}
