/* random_model: writes a Hugging Face folder with weights made from the tensors' names. The folder is written under
 * a temporary name and renamed, so it is whole or not there. */
#define _GNU_SOURCE
#include "configs.h"
#include "tokenizer.h"
#include "weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    const char *shape, *init, *layout, *folder;
    const demo_naming *naming;
    qvl_dtype dtype;
    long depth, layers, shards;
} options;

static int usage(FILE *out) {
    fputs(
        "usage: random_model [--shape NAME] [--dtype bf16|f32] [--init scaled|quarter] [--depth N] [--layers N]\n"
        "       [--shards N] [--naming hf|visual|mlx|stray|flat|sidecar] [--layout hf|mlx|flat] OUT_FOLDER\n"
        "Writes a checkpoint folder of that shape with random, reproducible weights.\n"
        "  --shape NAME   default demo; the names are below\n"
        "  --dtype TYPE   of the tensors, default bf16\n"
        "  --init RULE    default quarter for the tiny shapes, scaled for the others\n"
        "  --depth N      only the first N vision blocks\n"
        "  --layers N     the language model too, its first N layers\n"
        "  --shards N     N safetensors files and an index; memory needed is that of one file\n"
        "  --naming NAME  how the tensors are called, default hf; sidecar: the tower in optiq/, as MLX names it\n"
        "  --layout NAME  order of the patch weights, default what the naming comes with\n"
        "demo*, with a tokenizer, and tiny-* are written whole, the others as their vision tower only.\nshapes:\n",
        out);
    const char *name;
    for (size_t i = 0; (name = demo_shape_name(i)); i++) fprintf(out, "  %s\n", name);
    return out == stdout ? 0 : 2;
}

/* ---- command line */

static bool parse_count(const char *text, long max, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    return *text && !*end && *value >= 1 && *value <= max;
}

static bool parse_option(const char *name, const char *value, options *o) {
    if (strcmp(name, "--shape") == 0) {
        o->shape = value;
        return true;
    }
    if (strcmp(name, "--init") == 0) {
        o->init = value;
        return strcmp(value, "scaled") == 0 || strcmp(value, "quarter") == 0;
    }
    if (strcmp(name, "--naming") == 0) return (o->naming = demo_naming_find(value)) != NULL;
    if (strcmp(name, "--layout") == 0) {
        demo_layout known;
        o->layout = value;
        return demo_layout_find(value, &known);
    }
    if (strcmp(name, "--dtype") == 0) {
        o->dtype = strcmp(value, "f32") == 0 ? QVL_F32 : QVL_BF16;
        return strcmp(value, "f32") == 0 || strcmp(value, "bf16") == 0;
    }
    if (strcmp(name, "--depth") == 0) return parse_count(value, 1000, &o->depth);
    if (strcmp(name, "--layers") == 0) return parse_count(value, 1000, &o->layers);
    if (strcmp(name, "--shards") == 0) return parse_count(value, 999, &o->shards);
    return false;
}

static bool parse_options(int argc, char **argv, options *o) {
    *o = (options){.shape = "demo", .dtype = QVL_BF16, .shards = 1, .naming = demo_naming_find("hf")};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (o->folder) return false;
            o->folder = argv[i];
        } else {
            if (i + 1 == argc || !parse_option(argv[i], argv[i + 1], o)) {
                fprintf(stderr, "random_model: bad option: %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
                return false;
            }
            i++;
        }
    }
    return o->folder != NULL;
}

static int choose_shape(const options *o, demo_shape *shape) {
    if (!demo_shape_find(o->shape, shape)) return demo_complain("no such shape", o->shape);
    if (o->init) shape->init = strcmp(o->init, "quarter") == 0 ? DEMO_QUARTER : DEMO_SCALED;
    if (o->depth > shape->vision.depth) return demo_complain("the shape has fewer blocks than --depth", o->shape);
    if (o->depth) demo_shape_shorten(shape, (int)o->depth);
    if (o->layers > shape->text.layers) return demo_complain("the shape has fewer layers than --layers", o->shape);
    if (o->layers) {
        shape->text.layers = (int)o->layers;
        shape->text_tensors = true;
    }
    return 0;
}

/* ---- files */

static int write_folder(const char *folder, const demo_shape *shape, const options *o) {
    const char *dtype = o->dtype == QVL_F32 ? "float32" : "bfloat16";
    demo_output output = {.shape = shape,
                          .dtype = o->dtype,
                          .shards = (size_t)o->shards,
                          .naming = o->naming,
                          .layout = o->naming->layout};
    if (o->layout) demo_layout_find(o->layout, &output.layout);
    if (demo_write_json(folder, "config.json", demo_config(shape, dtype))) return 1;
    if (demo_write_json(folder, "generation_config.json", demo_generation_config(shape))) return 1;
    if (demo_write_json(folder, "preprocessor_config.json", demo_image_processor(shape))) return 1;
    if (demo_write_json(folder, "video_preprocessor_config.json", demo_video_processor(shape))) return 1;
    if (demo_has_tokenizer(shape)) {
        if (demo_write_json(folder, "tokenizer.json", demo_tokenizer(shape))) return 1;
        if (demo_write_json(folder, "tokenizer_config.json", demo_tokenizer_config(shape))) return 1;
    }
    return demo_write_weights(folder, &output);
}

/* A folder this program made: files, and perhaps the sidecar's folder. */
static void remove_folder(const char *folder) {
    char sidecar[4096];
    snprintf(sidecar, sizeof sidecar, "%s/" DEMO_SIDECAR_FOLDER "/" DEMO_SIDECAR_FILE, folder);
    unlink(sidecar);
    DIR *directory = opendir(folder);
    if (!directory) return;
    unlinkat(dirfd(directory), DEMO_SIDECAR_FOLDER, AT_REMOVEDIR);
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(folder);
}

/* Nothing is there, or an empty folder. Asked before the work; rename() refuses the rest. */
static bool is_free(const char *path) {
    if (access(path, F_OK) != 0) return true;
    DIR *directory = opendir(path);
    if (!directory) return false;
    const struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(directory)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) empty = false;
    closedir(directory);
    return empty;
}

int main(int argc, char **argv) {
    options o;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return usage(stdout);
    if (!parse_options(argc, argv, &o)) return usage(stderr);
    demo_shape shape;
    if (choose_shape(&o, &shape)) return 2;
    if (!is_free(o.folder)) return demo_complain("it exists and is not an empty folder", o.folder);
    int length = (int)strlen(o.folder);
    while (length > 1 && o.folder[length - 1] == '/') length--;
    char temporary[2048];
    int n = snprintf(temporary, sizeof temporary, "%.*s.tmp-%ld", length, o.folder, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof temporary) return demo_complain("the folder's name is too long", o.folder);
    if (mkdir(temporary, 0777) != 0) return demo_complain(temporary, strerror(errno));
    int failed = write_folder(temporary, &shape, &o);
    if (!failed && rename(temporary, o.folder) != 0) failed = demo_complain(o.folder, strerror(errno));
    if (failed) remove_folder(temporary);
    return failed;
}
