/* The time labels of videos. */
#ifndef QVL_PROMPT_STAMPS_H
#define QVL_PROMPT_STAMPS_H

#include "prompt/expand.h"

/* Bytes start to end of the new text are one video's groups with their labels; 0, 0 for pictures. */
typedef struct qvl_stamped {
    size_t start, end;
} qvl_stamped;

/* The text with each video's pad replaced by its groups, "<0.3 seconds>" and a pad in wrappers; with
 * QVL_VIDEO_BARE the template's own wrappers go. ranges [slot_count]. *stamped belongs to the caller:
 * qvl_text_free. */
qvl_status qvl_stamp_videos(const qvl_renderer *renderer, const qvl_text *text, const qvl_tokens *tokens,
                            const qvl_measured *measured, const qvl_slot *slots, size_t slot_count,
                            qvl_text *stamped, qvl_stamped *ranges, qvl_error *error);

#endif
