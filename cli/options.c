#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum flag_kind {
    FLAG_SWITCH, /* bool, no value */
    FLAG_TEXT,   /* const char *, not empty */
    FLAG_INT,    /* int64_t in min..max */
    FLAG_REAL,   /* double in min..max */
    FLAG_STOP,   /* may be given several times */
    FLAG_PRESET,
    FLAG_DTYPE,
    FLAG_SIZE,
    FLAG_CPU_MASK,
    FLAG_FRAME,  /* qvl_frame */
    FLAG_CHOICE, /* int32_t or an enum: which of the names in `value`, which | separates */
    FLAG_POLICY,
    FLAG_ORIENTATION,
    FLAG_ALPHA,
    FLAG_GRAY16,
    FLAG_RATE /* double: frames a second, a number or a fraction */
} flag_kind;

typedef struct flag {
    const char *name, *short_name;
    const char *value; /* its name in the help */
    const char *help;
    unsigned commands;
    flag_kind kind;
    size_t offset; /* into cli_options, for the first four kinds, FLAG_FRAME and FLAG_CHOICE */
    int64_t min, max;
} flag;

#define WRITING (CLI_PREPROCESS | CLI_ENCODE)
#define ANSWERS (CLI_ASK | CLI_CHAT)
#define CHATS (CLI_PROMPT | CLI_PLAN | ANSWERS)
#define PICTURES (WRITING | CHATS | CLI_BOX)
#define CLIPS (WRITING | CHATS)
#define WORDS (CLI_TOKENIZE | CLI_DETOKENIZE)
#define OPENING (CLI_INFO | PICTURES | CLI_CHECK | CLI_BENCH | WORDS)
#define COMPUTING (CLI_INFO | CLI_ENCODE | CHATS | CLI_CHECK | CLI_BENCH)
#define FIELD(member) offsetof(cli_options, member)
/* Beside the commands: a flag that says where, how fast or how loud, and never changes what is written. Results of
 * other flags are made anew when one is given, so when in doubt leave it out. */
#define ASIDE (1u << 31)

/* An area no picture reaches, and far from overflow. */
#define MOST_PIXELS ((int64_t)1 << 48)
/* Frames that a clip may have. */
#define MOST_FRAMES ((int64_t)1 << 24)

static const flag flags[] = {
    {"--model", "-m", "FOLDER", "checkpoint folder; without it the bundled demo model",
     (OPENING & ~CLI_CHECK) | ASIDE, FLAG_TEXT, FIELD(model), 0, 0},
    {"--output", "-o", "FILE", "write a safetensors file; without it only a summary", WRITING | CLI_PROMPT | ASIDE,
     FLAG_TEXT, FIELD(output), 0, 0},
    {"--taps", NULL, "FILE", "write every stage of the tower to a safetensors file", CLI_ENCODE | ASIDE, FLAG_TEXT,
     FIELD(taps), 0, 0},
    {"--map", NULL, "FILE", "write a PNG of the features of one INPUT: their first three components as colours",
     CLI_ENCODE | ASIDE, FLAG_TEXT, FIELD(map), 0, 0},
    {"--preset", NULL, "NAME", "reference to follow: transformers (default), transformers-pil, mlx",
     (PICTURES & ~CLI_BOX) | CLI_BENCH, FLAG_PRESET, 0, 0, 0},
    {"--dtype", NULL, "TYPE", "what products read, and the features' type: bf16 (default) or f32",
     COMPUTING & ~CLI_CHECK, FLAG_DTYPE, 0, 0, 0},
    {"--threads", NULL, "N", "0 (default): one per processor; the result does not depend on it",
     (OPENING & ~(CLI_BOX | WORDS)) | ASIDE, FLAG_INT, FIELD(threads), 0, 256},
    {"--from", NULL, "FRAME", "frame of the given positions: norm1000 (default), model, source, file", CLI_BOX,
     FLAG_FRAME, FIELD(from), 0, 0},
    {"--to", NULL, "FRAME", "frame of the result: file (default), source, model, norm1000", CLI_BOX, FLAG_FRAME,
     FIELD(to), 0, 0},
    {"--min-pixels", NULL, "N", "smallest area of a resized picture, instead of the folder's", PICTURES, FLAG_INT,
     FIELD(preprocess.min_pixels), 1, MOST_PIXELS},
    {"--max-pixels", NULL, "N", "largest area of a resized picture, instead of the folder's", PICTURES, FLAG_INT,
     FIELD(preprocess.max_pixels), 1, MOST_PIXELS},
    {"--shortest-edge", NULL, "N", "the same as --min-pixels: in spite of the name an area", PICTURES, FLAG_INT,
     FIELD(preprocess.min_pixels), 1, MOST_PIXELS},
    {"--longest-edge", NULL, "N", "the same as --max-pixels: in spite of the name an area", PICTURES, FLAG_INT,
     FIELD(preprocess.max_pixels), 1, MOST_PIXELS},
    {"--image-min-tokens", NULL, "N", "the same as --min-pixels, in tokens", PICTURES, FLAG_INT,
     FIELD(preprocess.min_tokens), 1, MOST_PIXELS >> 20},
    {"--image-max-tokens", NULL, "N", "the same as --max-pixels, in tokens", PICTURES, FLAG_INT,
     FIELD(preprocess.max_tokens), 1, MOST_PIXELS >> 20},
    {"--policy", NULL, "NAME",
     "how files become RGB: default, or reference (ignore, drop, saturate: plain Pillow)", PICTURES, FLAG_POLICY,
     0, 0, 0},
    {"--orientation", NULL, "HOW", "EXIF's or XMP's orientation: apply (default), ignore", PICTURES,
     FLAG_ORIENTATION, 0, 0, 0},
    {"--alpha", NULL, "HOW", "transparent pixels: white (default), drop, or a colour to paste on, #rrggbb",
     PICTURES, FLAG_ALPHA, 0, 0, 0},
    {"--gray16", NULL, "HOW", "16-bit grey: scale (default: the high byte), saturate", PICTURES, FLAG_GRAY16, 0, 0,
     0},
    {"--max-source-pixels", NULL, "N", "refuse larger files; 178956970 by default", PICTURES, FLAG_INT,
     FIELD(preprocess.media.max_pixels), 1, MOST_PIXELS},
    {"--size", NULL, "WxH", "exact size, multiples of patch x merge (32)", PICTURES, FLAG_SIZE, 0, 0, 0},
    {"--fps", NULL, "N", "frames of a video to take a second, instead of the folder's", CLIPS, FLAG_RATE,
     FIELD(preprocess.clip.fps), 0, 0},
    {"--num-frames", NULL, "N", "take exactly so many, from the first to the last", CLIPS, FLAG_INT,
     FIELD(preprocess.clip.num_frames), 1, MOST_FRAMES},
    {"--min-frames", NULL, "N", "least and ...", CLIPS, FLAG_INT, FIELD(preprocess.clip.min_frames), 1,
     MOST_FRAMES},
    {"--max-frames", NULL, "N", "... most frames that --fps takes", CLIPS, FLAG_INT,
     FIELD(preprocess.clip.max_frames), 1, MOST_FRAMES},
    {"--video-min-pixels", NULL, "N", "smallest area of all frames of a resized video together", CLIPS, FLAG_INT,
     FIELD(preprocess.clip.min_pixels), 1, MOST_PIXELS},
    {"--video-max-pixels", NULL, "N", "largest area of all frames together", CLIPS, FLAG_INT,
     FIELD(preprocess.clip.max_pixels), 1, MOST_PIXELS},
    {"--frame-cap", NULL, "folder|off|on", "whether a frame has a limit of its own; as the folder says, else off",
     CLIPS, FLAG_CHOICE, FIELD(preprocess.clip.frame_cap), 0, 0},
    {"--max-frame-tokens", NULL, "N", "that limit, instead of the folder's", CLIPS, FLAG_INT,
     FIELD(preprocess.clip.max_frame_tokens), 1, MOST_FRAMES},
    {"--single-frame", NULL, "repeat|refuse", "a video of one frame: doubled (default), or an error", CLIPS,
     FLAG_CHOICE, FIELD(preprocess.clip.single_frame), 0, 0},
    {"--assume-fps", NULL, "N", "frame rate of videos that do not say; without it they are refused", CLIPS,
     FLAG_RATE, FIELD(preprocess.clip.assumed_rate), 0, 0},
    {"--times", NULL, "true|rate", "frames of a varying rate: their own times (default), or by the average rate",
     CLIPS, FLAG_CHOICE, FIELD(preprocess.clip.times), 0, 0},
    {"--animation", NULL, "first|clip", "an animated GIF or WebP: its first frame (default), or a video", CLIPS,
     FLAG_CHOICE, FIELD(preprocess.media.animation), 0, 0},
    {"--runs", NULL, "N", "timed runs, of which the median is shown (default 5)", CLI_BENCH, FLAG_INT, FIELD(runs),
     1, 1000},
    {"--cpu-mask", NULL, "LIST",
     "instruction sets allowed: scalar, avx2, avx512, avx512bf16, amx, all (default), or a number", COMPUTING,
     FLAG_CPU_MASK, 0, 0, 0},
    {"--fingerprint", NULL, NULL, "which weights the tower has: SHA-256, remembered in the user's cache folder",
     CLI_INFO, FLAG_SWITCH, FIELD(fingerprint), 0, 0},
    {"--profile", NULL, NULL, "show the time by stage; never from the cache", CLI_ENCODE | ASIDE, FLAG_SWITCH,
     FIELD(profile), 0, 0},
    {"--show", NULL, NULL, "draw the pictures, and clips' first frames, on the terminal before the answer",
     CLI_ASK | ASIDE, FLAG_SWITCH, FIELD(show), 0, 0},
    {"--no-cache", NULL, NULL, "encode everything, and keep nothing in the user's cache folder",
     CLI_ENCODE | CLI_PROMPT | ANSWERS | ASIDE, FLAG_SWITCH, FIELD(no_cache), 0, 0},
    {"--tools", NULL, "FILE", "the tools, a JSON list, instead of the chat's", CHATS, FLAG_TEXT, FIELD(tools), 0,
     0},
    {"--template", NULL, "FILE", "a chat template (Jinja), instead of the folder's", CHATS, FLAG_TEXT,
     FIELD(template_file), 0, 0},
    {"--variables", NULL, "JSON", "an object: further variables of the template", CHATS, FLAG_TEXT,
     FIELD(prompt.variables_json), 0, 0},
    {"--add-generation-prompt", NULL, "off|on", "end with the beginning of an answer; on by default",
     CHATS & ~CLI_CHAT, FLAG_CHOICE, FIELD(prompt.add_generation_prompt), 0, 0},
    {"--continue-final-message", NULL, "off|on", "leave the last message open; off by default", CHATS & ~CLI_CHAT,
     FLAG_CHOICE, FIELD(prompt.continue_final_message), 0, 0},
    {"--enable-thinking", NULL, "off|on", "a variable of the template, as the next three", CHATS, FLAG_CHOICE,
     FIELD(prompt.enable_thinking), 0, 0},
    {"--preserve-thinking", NULL, "off|on", "thoughts of earlier turns stay", CHATS, FLAG_CHOICE,
     FIELD(prompt.preserve_thinking), 0, 0},
    {"--add-vision-id", NULL, "off|on", "pictures are numbered in the text", CHATS, FLAG_CHOICE,
     FIELD(prompt.add_vision_id), 0, 0},
    {"--reasoning-effort", NULL, "NAME", "what the template knows: low, medium, xhigh", CHATS, FLAG_TEXT,
     FIELD(prompt.reasoning_effort), 0, 0},
    {"--trust-text", NULL, NULL, "special tokens in the text of messages count, as in transformers", CHATS,
     FLAG_SWITCH, FIELD(prompt.trust_text), 0, 0},
    {"--dropped", NULL, "refuse|note|fold",
     "text that the template leaves out; fold puts late system messages into the first", CHATS, FLAG_CHOICE,
     FIELD(prompt.dropped), 0, 0},
    {"--video-layout", NULL, "wrapped|bare", "the template's wrappers round a video: stay (default), or go", CHATS,
     FLAG_CHOICE, FIELD(prompt.video_layout), 0, 0},
    {"--max-length", NULL, "N", "most tokens of a prompt", CHATS, FLAG_INT, FIELD(prompt.max_length), 1,
     INT32_MAX},
    {"--truncation", NULL, "refuse|text|media",
     "of a longer one: refuse (default), cut the text, or drop a picture at the cut too", CHATS, FLAG_CHOICE,
     FIELD(prompt.truncation), 0, 0},
    {"--system", NULL, "TEXT", "the system message", ANSWERS, FLAG_TEXT, FIELD(answering.system), 0, 0},
    {"--max-new-tokens", NULL, "N", "most tokens of an answer", ANSWERS, FLAG_INT, FIELD(answering.max_new_tokens),
     1, INT32_MAX},
    {"--context", NULL, "N", "most tokens of the whole conversation; 32768 by default", CLI_CHAT, FLAG_INT,
     FIELD(answering.context), 2, INT32_MAX},
    {"--greedy", NULL, NULL, "always the most likely token", ANSWERS, FLAG_SWITCH, FIELD(answering.greedy), 0, 0},
    {"--temperature", NULL, "X", "0: greedy; this and the next three ask for random tokens", ANSWERS, FLAG_REAL,
     FIELD(answering.temperature), 0, 1000000},
    {"--top-k", NULL, "N", "only the N most likely tokens; 0: all", ANSWERS, FLAG_INT, FIELD(answering.top_k), 0,
     INT32_MAX},
    {"--top-p", NULL, "X", "only the most likely tokens that together have this probability", ANSWERS, FLAG_REAL,
     FIELD(answering.top_p), 0, 1},
    {"--min-p", NULL, "X", "only tokens this likely, as a share of the most likely one", ANSWERS, FLAG_REAL,
     FIELD(answering.min_p), 0, 1},
    {"--repetition-penalty", NULL, "X", "divides the logits of tokens in prompt and answer; 1: none", ANSWERS,
     FLAG_REAL, FIELD(answering.repetition_penalty), 0, 1000000},
    {"--presence-penalty", NULL, "X", "subtracted from the logits of tokens in the answer; 0: none", ANSWERS,
     FLAG_REAL, FIELD(answering.presence_penalty), -1000000, 1000000},
    {"--seed", NULL, "N",
     "of random tokens: the same seed gives the same answer; another one each time by default", ANSWERS, FLAG_INT,
     FIELD(answering.seed), 0, ((int64_t)1 << 53) - 1},
    {"--stop", NULL, "TEXT", "end the answer before this text; may be given up to 16 times", ANSWERS, FLAG_STOP, 0,
     0, 0},
    {"--thinking", NULL, "hide|show",
     "thoughts, dimmed, before the answer; shown on a terminal only by default. With show and a pipe they go to "
     "stderr",
     ANSWERS, FLAG_CHOICE, FIELD(answering.thinking), 0, 0},
    {"--logprobs", NULL, "N",
     "with --json: log-probabilities of the tokens and of the N most likely ones, 0 to 20", ANSWERS, FLAG_INT,
     FIELD(answering.logprobs), 0, QVL_MAX_TOP_LOGPROBS},
    {"--text", NULL, "TEXT", "what to work on, instead of an INPUT", WORDS, FLAG_TEXT, FIELD(text), 0, 0},
    {"--added", NULL, "all|ordinary|none",
     "added tokens that are recognised: all (default), those not special, none", CLI_TOKENIZE, FLAG_CHOICE,
     FIELD(added), 0, 0},
    {"--skip-special", NULL, NULL, "leave special tokens out", CLI_DETOKENIZE, FLAG_SWITCH, FIELD(skip_special), 0,
     0},
    {"--json", NULL, NULL, "results as one JSON object", OPENING | CLI_CACHE | ASIDE, FLAG_SWITCH, FIELD(json), 0,
     0},
    {"--quiet", "-q", NULL, "no progress line and no notes", OPENING | CLI_CACHE | ASIDE, FLAG_SWITCH,
     FIELD(quiet), 0, 0},
    {"--help", "-h", NULL, "this text", OPENING | CLI_CACHE | ASIDE, FLAG_SWITCH, FIELD(help), 0, 0},
};

enum { FLAG_COUNT = sizeof flags / sizeof *flags };
_Static_assert(FLAG_COUNT <= CLI_MAX_FLAGS, "cli_options.given is too short");

/* ---- values */

static bool parse_int(const char *text, int64_t min, int64_t max, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno || parsed < min || parsed > max) return false;
    *value = parsed;
    return true;
}

/* A decimal number. What is not finite is in no range. */
static bool parse_real(const char *text, int64_t min, int64_t max, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= (double)min && *value <= (double)max;
}

/* 2, 0.5, 29.97 or 30000/1001. */
static bool parse_rate(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    if (end == text) return false;
    if (*end == '/') {
        const char *below = end + 1;
        double divisor = strtod(below, &end);
        if (end == below) return false;
        *value /= divisor;
    }
    return !*end && *value >= 1e-6 && *value <= 1e6;
}

static bool add_stop(const char *text, cli_answering *answering) {
    if (!*text || answering->stop_count == CLI_MAX_STOPS) return false;
    answering->stops[answering->stop_count++] = text;
    return true;
}

bool cli_parse_size(const char *text, int64_t *width, int64_t *height) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    long long w = strtoll(text, &end, 10);
    if (*end != 'x' || end[1] < '0' || end[1] > '9') return false;
    long long h = strtoll(end + 1, &end, 10);
    if (*end || w < 1 || h < 1 || w > 1000000 || h > 1000000) return false;
    *width = w;
    *height = h;
    return true;
}

static bool parse_preset(const char *text, qvl_preset *preset) {
    for (int value = 0; qvl_preset_name((qvl_preset)value); value++) {
        if (strcmp(text, qvl_preset_name((qvl_preset)value)) != 0) continue;
        *preset = (qvl_preset)value;
        return true;
    }
    return false;
}

static bool parse_frame(const char *text, qvl_frame *frame) {
    for (int value = 0; qvl_frame_name((qvl_frame)value); value++) {
        if (strcmp(text, qvl_frame_name((qvl_frame)value)) != 0) continue;
        *frame = (qvl_frame)value;
        return true;
    }
    return false;
}

/* Which of two names; false for neither. */
static bool parse_choice(const char *text, const char *first, const char *second, bool *is_second) {
    *is_second = strcmp(text, second) == 0;
    return *is_second || strcmp(text, first) == 0;
}

static bool parse_alpha(const char *text, qvl_media_options *media) {
    static const uint8_t white[3] = {255, 255, 255};
    bool drop;
    if (parse_choice(text, "white", "drop", &drop)) {
        media->alpha = drop ? QVL_ALPHA_DROP : QVL_ALPHA_PASTE;
        memcpy(media->alpha_colour, white, 3);
        return true;
    }
    if (text[0] != '#' || strlen(text) != 7 || strspn(text + 1, "0123456789abcdefABCDEF") != 6) return false;
    unsigned long colour = strtoul(text + 1, NULL, 16);
    media->alpha = QVL_ALPHA_PASTE;
    for (int c = 0; c < 3; c++) media->alpha_colour[c] = (uint8_t)(colour >> (16 - 8 * c));
    return true;
}

/* --policy and the flags for one policy each. */
static bool set_policy(flag_kind kind, const char *text, cli_options *options) {
    qvl_media_options *media = &options->preprocess.media;
    bool second;
    if (kind == FLAG_POLICY) {
        if (options->one_policy_given || !parse_choice(text, "default", "reference", &second)) return false;
        int64_t max_pixels = media->max_pixels;
        qvl_animation animation = media->animation;
        qvl_media_options_init(media);
        media->max_pixels = max_pixels;
        media->animation = animation;
        if (second) qvl_media_options_reference(media);
        return true;
    }
    options->one_policy_given = true;
    if (kind == FLAG_ALPHA) return parse_alpha(text, media);
    if (kind == FLAG_ORIENTATION) {
        if (!parse_choice(text, "apply", "ignore", &second)) return false;
        media->orientation = second ? QVL_ORIENTATION_IGNORE : QVL_ORIENTATION_APPLY;
    } else {
        if (!parse_choice(text, "scale", "saturate", &second)) return false;
        media->gray16 = second ? QVL_GRAY16_SATURATE : QVL_GRAY16_SCALE;
    }
    return true;
}

static bool parse_cpu_name(const char *name, size_t length, uint32_t *mask) {
    static const struct {
        const char *name;
        uint32_t mask;
    } sets[] = {{"scalar", QVL_CPU_SCALAR},
                {"avx2", QVL_CPU_AVX2},
                {"avx512", QVL_CPU_AVX512},
                {"avx512bf16", QVL_CPU_AVX512 | QVL_CPU_AVX512BF16},
                {"amx", QVL_CPU_AVX512 | QVL_CPU_AMX},
                {"all", QVL_CPU_ALL}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (strlen(sets[i].name) != length || memcmp(sets[i].name, name, length) != 0) continue;
        *mask |= sets[i].mask;
        return true;
    }
    return false;
}

/* A number (any base strtoul knows), or names joined by commas. */
static bool parse_cpu_mask(const char *text, uint32_t *mask) {
    if (*text >= '0' && *text <= '9') {
        char *end;
        errno = 0;
        unsigned long value = strtoul(text, &end, 0);
        *mask = (uint32_t)value;
        return !*end && !errno && value <= UINT32_MAX;
    }
    *mask = 0;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (!parse_cpu_name(text, length, mask)) return false;
        text += length;
        if (!*text) return true;
    }
}

/* Which of names, "a|b|c"; false for none of them. */
static bool parse_names(const char *text, const char *names, int32_t *value) {
    size_t length = strlen(text);
    for (*value = 0;; ++*value) {
        size_t size = strcspn(names, "|");
        if (size == length && memcmp(names, text, size) == 0) return true;
        if (!names[size]) return false;
        names += size + 1;
    }
}

static bool set_flag(const flag *f, const char *value, cli_options *options) {
    void *field = (char *)options + f->offset;
    switch (f->kind) {
    case FLAG_SWITCH:
        *(bool *)field = true;
        return true;
    case FLAG_TEXT:
        *(const char **)field = value;
        return *value != 0;
    case FLAG_INT:
        return parse_int(value, f->min, f->max, field);
    case FLAG_REAL:
        return parse_real(value, f->min, f->max, field);
    case FLAG_RATE:
        return parse_rate(value, field);
    case FLAG_STOP:
        return add_stop(value, &options->answering);
    case FLAG_PRESET:
        return parse_preset(value, &options->preprocess.preset);
    case FLAG_DTYPE:
        options->open.dtype = strcmp(value, "f32") == 0 ? QVL_F32 : QVL_BF16;
        return strcmp(value, "f32") == 0 || strcmp(value, "bf16") == 0;
    case FLAG_SIZE:
        return cli_parse_size(value, &options->preprocess.width, &options->preprocess.height);
    case FLAG_CPU_MASK:
        return parse_cpu_mask(value, &options->open.cpu_mask);
    case FLAG_POLICY:
    case FLAG_ORIENTATION:
    case FLAG_ALPHA:
    case FLAG_GRAY16:
        return set_policy(f->kind, value, options);
    case FLAG_FRAME:
        return parse_frame(value, field);
    case FLAG_CHOICE: {
        int32_t chosen;
        if (!parse_names(value, f->value, &chosen)) return false;
        memcpy(field, &chosen, sizeof chosen);
        return true;
    }
    }
    return false;
}

/* What a flag's value may be, for the message about one that is not. */
static const char *allowed_values(const flag *f, char *buffer, size_t size) {
    switch (f->kind) {
    case FLAG_TEXT:
        return "a name that is not empty";
    case FLAG_REAL:
        snprintf(buffer, size, "a number in %lld..%lld", (long long)f->min, (long long)f->max);
        return buffer;
    case FLAG_RATE:
        return "frames a second, such as 2, 0.5 or 30000/1001";
    case FLAG_STOP:
        return "a text that is not empty, at most 16 of them";
    case FLAG_INT:
        snprintf(buffer, size, "a whole number in %lld..%lld", (long long)f->min, (long long)f->max);
        return buffer;
    case FLAG_PRESET:
        return "transformers, transformers-pil or mlx";
    case FLAG_DTYPE:
        return "bf16 or f32";
    case FLAG_SIZE:
        return "WIDTHxHEIGHT in pixels, such as 512x384";
    case FLAG_CPU_MASK:
        return "scalar, avx2, avx512, avx512bf16, amx or all, joined by commas, or a number";
    case FLAG_FRAME:
        return "norm1000, model, source or file";
    case FLAG_POLICY:
        return "default or reference, before --orientation, --alpha and --gray16, which it would undo";
    case FLAG_ORIENTATION:
        return "apply or ignore";
    case FLAG_ALPHA:
        return "white, drop or a colour such as #7f7f7f";
    case FLAG_GRAY16:
        return "scale or saturate";
    case FLAG_CHOICE:
        return f->value;
    case FLAG_SWITCH:
        break;
    }
    return "nothing";
}

/* ---- names */

/* Levenshtein distance of two short words; a long word is as far as can be. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    size_t row[LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *cli_nearest(const char *text, const char *const *names) {
    const char *best = NULL;
    size_t best_distance = strlen(text) / 3 + 2;
    for (; *names; names++) {
        size_t d = distance(text, *names);
        if (d >= best_distance) continue;
        best = *names;
        best_distance = d;
    }
    return best;
}

static const flag *find_flag(const char *name, size_t length) {
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        const char *names[] = {flags[i].name, flags[i].short_name};
        for (size_t k = 0; k < 2; k++)
            if (names[k] && strlen(names[k]) == length && memcmp(names[k], name, length) == 0) return &flags[i];
    }
    return NULL;
}

static int usage_error(const cli_command *command) {
    fprintf(stderr, "Try 'qvl %s --help'.\n", command->name);
    return CLI_USAGE;
}

static int unknown_flag(const cli_command *command, const char *name) {
    const char *names[FLAG_COUNT + 1];
    size_t count = 0;
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (flags[i].commands & command->bit) names[count++] = flags[i].name;
    names[count] = NULL;
    const char *nearest = cli_nearest(name, names);
    fprintf(stderr, "qvl %s: unknown flag %s", command->name, name);
    if (nearest) fprintf(stderr, "; did you mean %s?", nearest);
    fputc('\n', stderr);
    return usage_error(command);
}

/* ---- the whole line */

/* Of two names for one setting the last one given counts. */
static void note_given(const flag *f, const char *value, cli_options *options) {
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (f->kind == FLAG_INT && flags[i].kind == FLAG_INT && flags[i].offset == f->offset)
            options->given[i] = NULL;
    options->given[f - flags] = value ? value : "";
}

/* Takes the flag at argv[*at] and, where it needs one, its value behind it or behind its '='. */
static int take_flag(const cli_command *command, int argc, char **argv, int *at, cli_options *options) {
    const char *text = argv[*at];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const flag *f = find_flag(text, equals ? (size_t)(equals - text) : strlen(text));
    if (!f) return unknown_flag(command, text);
    if (!(f->commands & command->bit)) {
        fprintf(stderr, "qvl %s: %s is a flag of other commands\n", command->name, f->name);
        return usage_error(command);
    }
    const char *value = equals ? equals + 1 : NULL;
    if (f->kind != FLAG_SWITCH && !value && *at + 1 < argc) value = argv[++*at];
    if (f->kind != FLAG_SWITCH && !value) {
        fprintf(stderr, "qvl %s: %s needs a value: %s\n", command->name, f->name, f->value);
        return usage_error(command);
    }
    char buffer[80];
    if ((f->kind == FLAG_SWITCH && equals) || !set_flag(f, value, options)) {
        fprintf(stderr, "qvl %s: %s is '%s'; allowed is %s\n", command->name, f->name, value,
                allowed_values(f, buffer, sizeof buffer));
        return usage_error(command);
    }
    note_given(f, value, options);
    return CLI_DONE;
}

static bool same_name(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

/* Of the files that are written. */
static const char *wrong_outputs(const cli_options *options) {
    if (same_name(options->output, "-")) return "-o needs a file, not standard output";
    if (same_name(options->taps, "-")) return "--taps needs a file, not standard output";
    if (same_name(options->map, "-")) return "--map needs a file, not standard output";
    for (size_t i = 0; i < options->input_count; i++) {
        const char *input = options->inputs[i];
        if (same_name(options->output, input)) return "-o names an INPUT";
        if (same_name(options->taps, input)) return "--taps names an INPUT";
        if (same_name(options->map, input)) return "--map names an INPUT";
    }
    if (same_name(options->output, options->taps)) return "-o and --taps name the same file";
    if (same_name(options->output, options->map)) return "-o and --map name the same file";
    if (same_name(options->taps, options->map)) return "--taps and --map name the same file";
    if (options->map && options->input_count > 1) return "--map draws one INPUT";
    return NULL;
}

/* What no single flag can see: contradictions, and the number of inputs. */
static const char *contradiction(const cli_command *command, const cli_options *options) {
    const qvl_preprocess_options *p = &options->preprocess;
    const char *wrong = wrong_outputs(options);
    size_t standard_inputs = 0;
    for (size_t i = 0; i < options->input_count; i++) standard_inputs += same_name(options->inputs[i], "-");
    if (wrong) return wrong;
    if (options->input_count < command->min_inputs)
        return options->input_count ? "a BOX is missing" : "an INPUT is missing";
    if (options->input_count > command->max_inputs)
        return command->max_inputs ? "it takes one INPUT" : "it takes no INPUT";
    if (command->bit & (CLI_TOKENIZE | CLI_DETOKENIZE) && (options->text != NULL) == (options->input_count > 0))
        return "it takes either an INPUT or --text";
    if (standard_inputs > 1) return "standard input (-) can be read only once";
    if (p->min_pixels && p->max_pixels && p->min_pixels > p->max_pixels)
        return "--min-pixels is larger than --max-pixels";
    if (p->min_tokens && p->max_tokens && p->min_tokens > p->max_tokens)
        return "--image-min-tokens is larger than --image-max-tokens";
    if ((p->min_pixels || p->max_pixels) && (p->min_tokens || p->max_tokens))
        return "limits are given in pixels or in tokens, not both";
    if (p->width && (p->min_pixels || p->max_pixels || p->min_tokens || p->max_tokens))
        return "--size leaves nothing for the limits to decide";
    const cli_answering *a = &options->answering;
    if (a->greedy &&
        (a->temperature == a->temperature || a->top_k >= 0 || a->top_p == a->top_p || a->min_p == a->min_p))
        return "--greedy leaves nothing for --temperature, --top-k, --top-p and --min-p to decide";
    if (a->logprobs >= 0 && !options->json) return "--logprobs needs --json";
    return NULL;
}

int cli_options_parse(const cli_command *command, int argc, char **argv, cli_options *options) {
    *options = (cli_options){.inputs = argv, .runs = 5, .from = QVL_FRAME_NORM1000, .to = QVL_FRAME_FILE};
    qvl_model_options_init(&options->open);
    qvl_preprocess_options_init(&options->preprocess);
    qvl_prompt_options_init(&options->prompt);
    options->answering = (cli_answering){.temperature = NAN,
                                         .top_p = NAN,
                                         .min_p = NAN,
                                         .repetition_penalty = NAN,
                                         .presence_penalty = NAN,
                                         .top_k = -1,
                                         .seed = -1,
                                         .thinking = -1,
                                         .logprobs = -1};
    bool only_inputs = false;
    for (int i = 0; i < argc; i++) {
        char *text = argv[i];
        /* No flag begins with a digit: what does is a negative number. */
        if (only_inputs || text[0] != '-' || !text[1] || (text[1] >= '0' && text[1] <= '9')) {
            options->inputs[options->input_count++] = text;
        } else if (strcmp(text, "--") == 0) {
            only_inputs = true;
        } else {
            int code = take_flag(command, argc, argv, &i, options);
            if (code) return code;
        }
    }
    if (options->help) return CLI_DONE;
    options->open.threads = (int32_t)options->threads;
    const char *wrong = contradiction(command, options);
    if (!wrong) return CLI_DONE;
    fprintf(stderr, "qvl %s: %s\n", command->name, wrong);
    return usage_error(command);
}

void cli_write_settings(const cli_options *options, FILE *text) {
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        const char *value = options->given[i];
        if (value && !(flags[i].commands & ASIDE))
            fprintf(text, " %s%s%s", flags[i].name, *value ? "=" : "", value);
    }
}

void cli_print_flags(unsigned command) {
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        const flag *f = &flags[i];
        if (!(f->commands & command)) continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", f->short_name ? f->short_name : "", f->short_name ? ", " : "",
                 f->name, f->value ? " " : "", f->value ? f->value : "");
        printf("  %-32s %s\n", left, f->help);
    }
}
