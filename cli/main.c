/* qvl: the program. It sees only include/qvl.h. Exit code 0: done, 1: an input was refused, 2: usage. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const cli_command commands[] = {
    {"info", CLI_INFO, "", "what a model folder is: family, sizes, limits, kernels", "", 0, 0, cmd_info},
    {"plan", CLI_PLAN, "INPUT...", "what inputs become and what encoding them costs; needs no weights",
     "Reads headers only. The time is estimated from the last qvl bench of this machine.\n"
     "INPUT may be one CHAT as for qvl prompt: then its text and tokens are shown.\n",
     1, SIZE_MAX, cmd_plan},
    {"preprocess", CLI_PREPROCESS, "INPUT... [-o FILE]", "pictures and videos to patch rows; needs no weights",
     "FILE gets pixel_values [rows, columns] f32 and image_grid_thw [pictures, 3] int64.\n", 1, SIZE_MAX,
     cmd_preprocess},
    {"encode", CLI_ENCODE, "INPUT... [-o FILE]", "pictures and videos to the features a language model reads",
     "FILE gets image_embeds [tokens, width], deepstack_image_embeds.K where the model has them, both in "
     "--dtype,\n"
     "and image_grid_thw [pictures, 3] int64.\n"
     "INPUT may be one FOLDER, and FILE is then a folder too: all pictures and videos below the one, each to a "
     "file of its\n"
     "own below the other; results that are there and still true are left.\n",
     1, SIZE_MAX, cmd_encode},
    {"prompt", CLI_PROMPT, "CHAT [-o FILE]", "a conversation with pictures to what the language model reads",
     "CHAT is a JSON file as OpenAI has it: messages, or an object with messages, tools and template variables. "
     "A\n"
     "relative name of a picture is looked for in the folder of CHAT; from standard input (-), in the current "
     "one.\n"
     "FILE gets input_ids, mm_token_type_ids [1, tokens], position_ids [3, 1, tokens] and rope_deltas [1, 1] of\n"
     "int64, inputs_embeds [1, tokens, width], and deepstack_visual_embeds.K [vision tokens, width] with\n"
     "visual_pos_masks [1, tokens] where the model has them.\n",
     1, 1, cmd_prompt},
    {"ask", CLI_ASK, "[MEDIA...] QUESTION | CHAT", "an answer, to a question about pictures or to a conversation",
     "QUESTION is a text, or - for standard input; MEDIA are pictures, of which one may be - instead. CHAT is a\n"
     "JSON file as for qvl prompt, or - for standard input. The answer goes to standard output as it comes.\n",
     1, SIZE_MAX, cmd_ask},
    {"chat", CLI_CHAT, "[MEDIA...]", "questions and answers, line by line, about pictures that are encoded once",
     "Lines that begin with a slash are commands: /help lists them. Ctrl-C stops an answer, Ctrl-D ends. Lines\n"
     "from a pipe work, too; with --json every answer is an object on a line of its own. MEDIA go with the first\n"
     "question.\n",
     0, SIZE_MAX, cmd_chat},
    {"tokenize", CLI_TOKENIZE, "INPUT", "text to token ids",
     "INPUT is a text file. The ids go to standard output.\n", 0, 1, cmd_tokenize},
    {"detokenize", CLI_DETOKENIZE, "INPUT", "token ids to text",
     "INPUT is a file of ids, apart by spaces or commas.\n", 0, 1, cmd_detokenize},
    {"box", CLI_BOX, "INPUT BOX...", "maps boxes and points between the model's frames and the file's pixels",
     "BOX is x1,y1,x2,y2, or x,y for a point. Frames, all with x to the right and y down from the upper left:\n"
     "  norm1000  0..1000 across and down the picture; what Qwen3-VL and later answer in\n"
     "  model     pixels of the resized picture; what Qwen2.5-VL answered in\n"
     "  source    pixels of the picture as shown, upright\n"
     "  file      pixels as stored, the orientation undone\n"
     "A pixel i covers i..i+1. Results are clamped to the picture; a note says so.\n",
     2, SIZE_MAX, cmd_box},
    {"check", CLI_CHECK, "", "self-check on this machine against the bundled reference results", "", 0, 0,
     cmd_check},
    {"bench", CLI_BENCH, "[WIDTHxHEIGHT...]", "time of tower and preprocessing, TFLOP/s",
     "Sizes are multiples of patch x merge; default 512x512.\n", 0, SIZE_MAX, cmd_bench},
    {"cache", CLI_CACHE, "stats|verify|clear|path",
     "the features that encode and prompt keep in the user's cache folder",
     "stats: how many there are; verify: reads them all and drops damaged ones; clear: drops all; path: where "
     "they "
     "are.\n",
     1, 1, cmd_cache},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static int print_help(FILE *out) {
    fputs("qvl: pictures and videos into what a Qwen vision-language model reads, and its answers\n\n"
          "usage: qvl COMMAND [-m FOLDER] [flags] INPUT...\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) fprintf(out, "  %-12s%s\n", commands[i].name, commands[i].summary);
    fputs("\nINPUT is a picture or a video, or - for standard input. FOLDER is a checkpoint of Hugging Face or "
          "MLX;\n"
          "without -m the bundled demo model is used, which knows only drawn shapes, words and clips of one\n"
          "moving shape. Results go to standard output, notes and progress to standard error.\n\n"
          "  qvl ask photo.jpg \"What is on the table?\" -m Qwen3-VL-8B\n"
          "  qvl encode photo.jpg -m Qwen3-VL-8B -o features.safetensors\n"
          "  qvl COMMAND --help     flags of a command\n"
          "  qvl --version\n\n"
          "Exit code: 0 done, 1 an input was refused, 2 wrong usage.\n",
          out);
    return out == stdout ? CLI_DONE : CLI_USAGE;
}

static int print_command_help(const cli_command *command) {
    printf("qvl %s: %s\n\nusage: qvl %s [flags] %s\n%s%s\n", command->name, command->summary, command->name,
           command->arguments, *command->details ? "\n" : "", command->details);
    cli_print_flags(command->bit);
    return CLI_DONE;
}

static int unknown_command(const char *name) {
    const char *names[COMMAND_COUNT + 1] = {NULL};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    const char *nearest = cli_nearest(name, names);
    fprintf(stderr, "qvl: unknown command %s", name);
    if (nearest) fprintf(stderr, "; did you mean %s?", nearest);
    fputs("\nTry 'qvl --help'.\n", stderr);
    return CLI_USAGE;
}

static int run_command(const cli_command *command, int argc, char **argv) {
    cli_options options;
    int code = cli_options_parse(command, argc, argv, &options);
    if (code) return code;
    return options.help ? print_command_help(command) : command->run(&options);
}

int main(int argc, char **argv) {
    if (argc < 2) return print_help(stderr);
    int code = -1;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) code = print_help(stdout);
    if (strcmp(argv[1], "--version") == 0) code = printf("qvl %s\n", qvl_version()) > 0 ? CLI_DONE : CLI_REFUSED;
    for (size_t i = 0; i < COMMAND_COUNT && code < 0; i++)
        if (strcmp(argv[1], commands[i].name) == 0) code = run_command(&commands[i], argc - 2, argv + 2);
    if (code < 0) return unknown_command(argv[1]);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("qvl: standard output could not be written\n", stderr);
        return CLI_REFUSED;
    }
    return code;
}
