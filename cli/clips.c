#include "clips.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_SHOWN = 12 };

/* The numbers of frames, or what labels say, with dots where there are many. */
static void print_list(const qvl_clip_info *clip, bool labels) {
    int64_t count = labels ? clip->group_count : clip->frame_count;
    for (int64_t i = 0; i < count; i++) {
        if (count > MOST_SHOWN && i == MOST_SHOWN / 2) {
            fputs(" ...", stdout);
            i = count - MOST_SHOWN / 2;
        }
        if (labels)
            printf(" %.1f", clip->timestamps[i]);
        else
            printf(" %lld", (long long)clip->indices[i]);
    }
}

void cli_print_clip(const qvl_item *item) {
    const qvl_clip_info *clip = item->clip;
    if (!clip) return;
    printf("  %lld of %lld frames", (long long)clip->frame_count, (long long)clip->source_frames);
    if (clip->rate > 0)
        printf(" at %.10g a second%s%s", clip->rate, clip->rate_assumed ? " (assumed)" : "",
               clip->variable_rate ? " (on average)" : "");
    if (clip->sampled_fps > 0) printf(", taken at %.10g a second", clip->sampled_fps);
    putchar(':');
    print_list(clip, false);
    printf("\n  %lld groups of %lld tokens, at", (long long)clip->group_count,
           (long long)(item->tokens / clip->group_count));
    print_list(clip, true);
    puts(" seconds");
}

void cli_json_clip(cJSON *object, const qvl_item *item) {
    const qvl_clip_info *clip = item->clip;
    if (!clip) {
        cJSON_AddNullToObject(object, "clip");
        return;
    }
    cJSON *entry = cJSON_AddObjectToObject(object, "clip");
    cJSON_AddNumberToObject(entry, "source_frames", (double)clip->source_frames);
    cJSON_AddItemToObject(entry, "rate", clip->rate > 0 ? cJSON_CreateNumber(clip->rate) : cJSON_CreateNull());
    cJSON_AddBoolToObject(entry, "rate_assumed", clip->rate_assumed);
    cJSON_AddBoolToObject(entry, "variable_rate", clip->variable_rate);
    cJSON_AddItemToObject(entry, "fps",
                          clip->sampled_fps > 0 ? cJSON_CreateNumber(clip->sampled_fps) : cJSON_CreateNull());
    cli_json_ints(entry, "indices", clip->indices, (int)clip->frame_count);
    cJSON_AddItemToObject(entry, "seconds", cJSON_CreateDoubleArray(clip->seconds, (int)clip->frame_count));
    cJSON_AddItemToObject(entry, "timestamps", cJSON_CreateDoubleArray(clip->timestamps, (int)clip->group_count));
    cJSON *labels = cJSON_AddArrayToObject(entry, "labels");
    for (int64_t g = 0; g < clip->group_count; g++) {
        char text[64];
        snprintf(text, sizeof text, "%.1f", clip->timestamps[g]);
        cJSON_AddItemToArray(labels, cJSON_CreateString(text));
    }
    cJSON_AddNumberToObject(entry, "tokens_per_group", (double)(item->tokens / clip->group_count));
    if (!clip->limits.max_pixels) return; /* the options give the size */
    cJSON_AddNumberToObject(entry, "min_pixels", (double)clip->limits.min_pixels);
    cJSON_AddNumberToObject(entry, "max_pixels", (double)clip->limits.max_pixels);
}

static void swap(cli_inputs *inputs, char **names, qvl_plan *plan, size_t a, size_t b) {
    qvl_input input = inputs->list[a];
    char *name = names[a];
    qvl_plan_item item = plan->items[a];
    inputs->list[a] = inputs->list[b];
    names[a] = names[b];
    plan->items[a] = plan->items[b];
    inputs->list[b] = input;
    names[b] = name;
    plan->items[b] = item;
}

void cli_order_kinds(cli_inputs *inputs, char **names, qvl_plan *plan) {
    size_t pictures = 0;
    for (size_t i = 0; i < plan->item_count; i++) {
        if (plan->items[i].item.clip) continue;
        for (size_t k = i; k > pictures; k--) swap(inputs, names, plan, k, k - 1);
        pictures++;
    }
}

cli_kinds cli_count_kinds(const qvl_item *items, size_t count) {
    cli_kinds kinds = {0};
    for (size_t i = 0; i < count; i++) {
        const qvl_item *item = &items[i];
        if (item->clip) {
            kinds.clips++;
            kinds.groups += item->grid.t;
        } else {
            kinds.pictures++;
            kinds.rows += item->grid.t * item->grid.h * item->grid.w;
            kinds.tokens += item->tokens;
        }
    }
    return kinds;
}

double *cli_timestamps(const qvl_item *items, size_t count) {
    cli_kinds kinds = cli_count_kinds(items, count);
    double *seconds = calloc((size_t)kinds.groups, sizeof *seconds), *next = seconds;
    for (size_t i = 0; seconds && i < count; i++)
        for (int64_t g = 0; items[i].clip && g < items[i].clip->group_count; g++)
            *next++ = items[i].clip->timestamps[g];
    return seconds;
}
