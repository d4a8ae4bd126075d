/* The command line: one table of flags shared by all commands. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "qvl.h"

#include <stdio.h>

/* A flag says with these bits which commands take it. */
enum {
    CLI_INFO = 1,
    CLI_PREPROCESS = 2,
    CLI_ENCODE = 4,
    CLI_CHECK = 8,
    CLI_BENCH = 16,
    CLI_PLAN = 32,
    CLI_BOX = 64,
    CLI_PROMPT = 128,
    CLI_TOKENIZE = 256,
    CLI_DETOKENIZE = 512,
    CLI_CACHE = 1024,
    CLI_ASK = 2048,
    CLI_CHAT = 4096
};

#define CLI_MAX_STOPS 16
#define CLI_MAX_FLAGS 128

/* How answers are made. What is NaN or -1 was not given: the folder's value counts. */
typedef struct cli_answering {
    double temperature, top_p, min_p, repetition_penalty, presence_penalty;
    int64_t top_k, seed;
    int64_t max_new_tokens; /* 0: not given */
    int64_t context;        /* of chat: entries of its sequence; 0: not given */
    int64_t logprobs;       /* -1: none; 0..20: of how many most likely tokens, too */
    bool greedy;
    int32_t thinking; /* 0 hide, 1 show; -1: shown on a terminal */
    const char *system;
    const char *stops[CLI_MAX_STOPS];
    size_t stop_count;
} cli_answering;

typedef struct cli_options {
    const char *model;  /* -m, NULL: the demo model */
    const char *output; /* -o, NULL: a summary only */
    const char *taps;   /* --taps, NULL: none */
    const char *map;    /* --map, NULL: none */
    qvl_model_options open;
    qvl_preprocess_options preprocess;
    qvl_prompt_options prompt;         /* of prompt and plan; its preprocess is the one above */
    const char *template_file, *tools; /* files of the two, NULL: the folder's, the chat's */
    cli_answering answering;           /* of ask and chat */
    const char *text;                  /* of tokenize and detokenize, instead of an INPUT */
    int32_t added;                     /* qvl_added, of tokenize */
    bool skip_special;                 /* of detokenize */
    qvl_frame from, to;                /* of box */
    int64_t threads, runs;
    bool json, quiet, help;
    bool fingerprint;      /* info computes the tower's */
    bool profile;          /* encode shows its time by stage */
    bool show;             /* ask draws its media */
    bool no_cache;         /* features are neither looked up nor kept */
    bool one_policy_given; /* --policy would undo it */
    char **inputs;         /* what is left of argv */
    size_t input_count;
    /* The last value given for each flag of the table, "" of a switch; NULL: it was not given. */
    const char *given[CLI_MAX_FLAGS];
} cli_options;

typedef struct cli_command {
    const char *name;
    unsigned bit;
    const char *arguments; /* "INPUT... [-o F]" */
    const char *summary;
    const char *details; /* further lines of `qvl NAME --help` */
    size_t min_inputs, max_inputs;
    int (*run)(const cli_options *options);
} cli_command;

enum { CLI_DONE = 0, CLI_REFUSED = 1, CLI_USAGE = 2 };

/* Reads argv[0 .. argc-1], the arguments behind the command's name; reorders argv. Returns CLI_DONE, or CLI_USAGE
 * after a message on stderr. */
int cli_options_parse(const cli_command *command, int argc, char **argv, cli_options *options);

/* The given flags that can change what is written, " --fps=3 --preset=mlx", in the table's order. */
void cli_write_settings(const cli_options *options, FILE *text);

/* The flags a command takes, on stdout. */
void cli_print_flags(unsigned command);

/* WIDTHxHEIGHT, both 1 .. 1000000. */
bool cli_parse_size(const char *text, int64_t *width, int64_t *height);

/* Of the names (NULL beyond the last) the one closest to text, or NULL where none is close. */
const char *cli_nearest(const char *text, const char *const *names);

#endif
