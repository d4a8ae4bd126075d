/*
 * qvl: pictures into what a Qwen vision-language model reads.
 *
 * Ring 1  open a model folder, encode pictures          qvl_model_open, qvl_encode
 * Ring 2  the same stage by stage, and a dry run        qvl_image_read, qvl_preprocess, qvl_plan_inputs, ...
 *         conversations to prompts                      qvl_prompt_build, qvl_tokenize, ...
 * Ring 3  pure helpers and files                        qvl_smart_resize, qvl_map_box, qvl_tensors_save, ...
 *
 * Rules that hold for every call:
 *  - Functions that can fail return a qvl_status and fill *error (which may be NULL) with one message.
 *    On failure results are left empty (all zero) and nothing needs freeing.
 *  - The library never prints, exits, reads the environment, or keeps global state.
 *  - A qvl_model is immutable once open and may be shared by threads. A qvl_session has one owner at a time.
 *  - Option structs are filled by their *_init function first; `size` lets them grow without breaking the ABI.
 *    A pointer to options may be NULL: the defaults.
 *  - The same input gives the same bits for any number of threads, alone or in company.
 */
#ifndef QVL_H
#define QVL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QVL_VERSION_MAJOR 0
#define QVL_VERSION_MINOR 1
#define QVL_VERSION_PATCH 0

#if defined(__GNUC__)
#define QVL_API __attribute__((visibility("default")))
#else
#define QVL_API
#endif

/* "0.1.0". Static string. */
QVL_API const char *qvl_version(void);

/* ------------------------------------------------------------------------------------------------ errors */

/* Values are pinned: they never change meaning. */
typedef enum qvl_status {
    QVL_OK = 0,
    QVL_ERROR_ARGUMENT = 1,    /* the caller's arguments are impossible */
    QVL_ERROR_MEMORY = 2,      /* an allocation failed */
    QVL_ERROR_IO = 3,          /* a file could not be opened, read, mapped or written */
    QVL_ERROR_FORMAT = 4,      /* bytes are not what they claim to be: damaged picture, JSON, safetensors */
    QVL_ERROR_UNSUPPORTED = 5, /* well formed, but not something qvl reads */
    QVL_ERROR_LIMIT = 6,       /* larger than a limit allows */
    QVL_ERROR_MODEL = 7,       /* the folder's config and tensors do not fit together */
    QVL_ERROR_NUMERIC = 8,     /* a result is not finite */
    QVL_ERROR_CANCELLED = 9    /* the progress callback asked to stop */
} qvl_status;

/* Owned by the caller. message is NUL-terminated, one line, without a trailing full stop. */
typedef struct qvl_error {
    qvl_status status;
    char message[1020];
} qvl_error;

/* "argument", "memory", ... Static string; "unknown" for values outside the enum. */
QVL_API const char *qvl_status_name(qvl_status status);

/* Notes that are not errors ("no preprocessor file in FOLDER: class defaults are used"). One line, no newline. */
typedef void (*qvl_log_fn)(const char *message, void *user);

/* Called between steps of an encode with done in 0..total. Return false to cancel. */
typedef bool (*qvl_progress_fn)(int64_t done, int64_t total, void *user);

/* ----------------------------------------------------------------------------------------------- tensors */

/* The element types of safetensors. qvl computes with the first three; the others are carried and named. */
typedef enum qvl_dtype {
    QVL_F32 = 0,
    QVL_BF16 = 1,
    QVL_F16 = 2,
    QVL_I64 = 3,
    QVL_U8 = 4,
    QVL_I32 = 5,
    QVL_F64 = 6,
    QVL_I16 = 7,
    QVL_I8 = 8,
    QVL_U16 = 9,
    QVL_U32 = 10,
    QVL_U64 = 11,
    QVL_BOOL = 12,
    QVL_F8_E4M3 = 13,
    QVL_F8_E5M2 = 14,
    QVL_F8_E8M0 = 15,
    QVL_F6_E2M3 = 16,
    QVL_F6_E3M2 = 17,
    QVL_F4 = 18,
    QVL_C64 = 19,
    QVL_F8_E4M3FNUZ = 20,
    QVL_F8_E5M2FNUZ = 21
} qvl_dtype;

/* Bits of one element (F4 and F6 are below a byte); 0 outside the enum. */
QVL_API size_t qvl_dtype_bits(qvl_dtype dtype);
/* The safetensors spelling: "F32", "BF16", ... Static string; "?" outside the enum. */
QVL_API const char *qvl_dtype_name(qvl_dtype dtype);

#define QVL_MAX_DIMS 6

/* A view: row-major, dense, native little-endian. name and data belong to whoever made the view. data of a file's
 * tensor may be unaligned. */
typedef struct qvl_tensor {
    const char *name;
    qvl_dtype dtype;
    int32_t ndim;
    int64_t shape[QVL_MAX_DIMS];
    const void *data;
} qvl_tensor;

/* Sees a stage of the tower. The view is valid only during the call. Names are listed in docs/NUMERICS.md. */
typedef void (*qvl_tap_fn)(const qvl_tensor *tensor, void *user);

/* Patches of one item: t temporal groups of h x w patches (before merging); h and w are multiples of merge. */
typedef struct qvl_grid {
    int64_t t, h, w;
} qvl_grid;

/* -------------------------------------------------------------------------------- ring 1: the whole pipeline */

typedef struct qvl_model qvl_model;
typedef struct qvl_session qvl_session;

/* How much of a folder qvl_model_open reads. */
typedef enum qvl_open_level {
    QVL_OPEN_WEIGHTS = 0, /* everything; needed to encode */
    QVL_OPEN_CONFIG = 1,  /* config.json and the preprocessor files; enough to preprocess */
    QVL_OPEN_HEADERS = 2  /* as QVL_OPEN_CONFIG, and the tower's tensors are found and checked, not packed */
} qvl_open_level;

typedef struct qvl_model_options {
    size_t size;
    qvl_open_level level; /* default QVL_OPEN_WEIGHTS */
    qvl_dtype dtype;      /* what products read: QVL_BF16 (default) or QVL_F32 */
    int32_t threads;      /* 1..256; 0 (default) is one per online processor this process may run on */
    uint32_t cpu_mask;    /* instruction sets allowed, for tests: see QVL_CPU_*; default all */
    qvl_log_fn log;       /* may be NULL */
    void *log_user;
} qvl_model_options;

#define QVL_CPU_SCALAR 0x0u
#define QVL_CPU_AVX2 0x1u       /* AVX2, FMA, F16C */
#define QVL_CPU_AVX512 0x2u     /* AVX-512 F, BW, DQ, VL */
#define QVL_CPU_AVX512BF16 0x4u /* with AVX512: bf16 dot products, for bf16 products where they run at full rate */
#define QVL_CPU_AMX 0x8u        /* with AVX512: AMX bf16 tiles, for bf16 products */
#define QVL_CPU_ALL 0xffffffffu

QVL_API void qvl_model_options_init(qvl_model_options *options);

/* Opens a checkpoint folder (config.json, preprocessor files, safetensors) of any naming generation and layout.
 * *model belongs to the caller: qvl_model_close. The folder's files stay mapped only while this call runs. */
QVL_API qvl_status qvl_model_open(const char *folder, const qvl_model_options *options, qvl_model **model,
                                  qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. All sessions must be closed before. */
QVL_API void qvl_model_close(qvl_model **model);

/* Pixel limits of smart_resize: areas in pixels, whatever their names in the files say. */
typedef struct qvl_limits {
    int64_t min_pixels, max_pixels;
} qvl_limits;

#define QVL_MAX_DEEPSTACK 16

/* What a folder is. Strings and arrays live as long as the model. */
typedef struct qvl_model_info {
    const char *folder;
    const char *model_type; /* config.json's own: "qwen3_vl", "qwen3_5", ... */
    int32_t depth, hidden_size, num_heads, head_dim, intermediate_size, out_hidden_size;
    int32_t in_channels, patch_size, temporal_patch_size, spatial_merge_size;
    int32_t num_position_embeddings;
    int32_t deepstack_count;
    int32_t deepstack_indexes[QVL_MAX_DEEPSTACK];
    float rope_theta;
    qvl_limits image_limits;
    const char *image_limits_source; /* file name, or "class default" */
    float image_mean[3], image_std[3];
    double rescale_factor;
    /* From QVL_OPEN_HEADERS on, else zero / NULL: */
    const char *tensor_source; /* file in the folder: "model.safetensors", its index, or the sidecar's name */
    const char *tensor_prefix; /* naming generation: "model.visual.", "visual.", ...; "" for names without one */
    const char *tensor_layout; /* of the patch embedding: "hugging-face", "mlx" or "flat" */
    const char *tensor_dtype;  /* "BF16", or "mixed" */
    int32_t tensor_count;      /* tensors of the tower */
    int32_t file_count;        /* safetensors files they come from */
    int64_t parameter_count;   /* of the tower */
    /* How this process computes: */
    qvl_dtype compute_dtype;
    const char *kernels; /* "scalar", "avx2", "avx512" */
    int32_t threads;
} qvl_model_info;

QVL_API const qvl_model_info *qvl_model_get_info(const qvl_model *model);

#define QVL_FINGERPRINT_HEX 65 /* 64 digits and a NUL */

/* Which weights the tower has: SHA-256 over its tensors' names, types, shapes and bytes (docs/MODEL.md says how),
 * the same whatever names, shards and layout the folder stores them in. The first call for a folder reads all of
 * the tower, on the model's threads. memory_folder: where results are remembered by device, inode, size and time
 * of the files, so that later calls read nothing of them; made if it is missing (its parent must be there), open
 * to its owner only. NULL: nothing is remembered. That it cannot be written is a note, not an error. Needs a model
 * opened with QVL_OPEN_HEADERS or QVL_OPEN_WEIGHTS whose files have not changed since. */
QVL_API qvl_status qvl_model_fingerprint(const qvl_model *model, const char *memory_folder,
                                         char hex[QVL_FINGERPRINT_HEX], qvl_error *error);

/* *session belongs to the caller: qvl_session_close. It holds the scratch memory of encoding. */
QVL_API qvl_status qvl_session_open(qvl_model *model, qvl_session **session, qvl_error *error);
QVL_API void qvl_session_close(qvl_session **session);

typedef enum qvl_input_kind {
    QVL_INPUT_FILE = 0,  /* path */
    QVL_INPUT_BYTES = 1, /* a whole encoded picture in memory: bytes, byte_count */
    QVL_INPUT_RGB8 = 2   /* pixels: bytes = height rows of width RGB triples, row_stride bytes apart */
} qvl_input_kind;

/* One picture. Nothing is copied or kept beyond the call it is passed to. */
typedef struct qvl_input {
    qvl_input_kind kind;
    const char *name; /* QVL_INPUT_FILE: the path. Otherwise a name for messages, may be NULL */
    const void *bytes;
    size_t byte_count;     /* QVL_INPUT_RGB8: 0, or at least what the rows take */
    int64_t width, height; /* QVL_INPUT_RGB8 only, >= 1 */
    size_t row_stride;     /* QVL_INPUT_RGB8 only; 0 means 3*width */
    qvl_limits limits;     /* of this picture, before those of options and folder; each works alone, 0: unset */
} qvl_input;

/* Policies say how a file's pixels become RGB8. The first value of each is the default, what a person who looks at
 * the picture expects; the last one is Pillow's plain convert("RGB"). */
typedef enum qvl_orientation {
    QVL_ORIENTATION_APPLY = 0, /* the picture is turned upright as its EXIF tag says */
    QVL_ORIENTATION_IGNORE = 1 /* rows as stored. A TIFF is turned all the same, as Pillow does it on reading */
} qvl_orientation;

typedef enum qvl_alpha {
    QVL_ALPHA_PASTE = 0, /* pasted on alpha_colour, as Pillow's paste with the alpha as mask does it */
    QVL_ALPHA_DROP = 1   /* the colours that are stored under transparent pixels show */
} qvl_alpha;

typedef enum qvl_gray16 {
    QVL_GRAY16_SCALE = 0,   /* 16-bit grey keeps its high byte */
    QVL_GRAY16_SATURATE = 1 /* 16-bit grey above 255 becomes 255, which is white for nearly every picture */
} qvl_gray16;

typedef struct qvl_media_options {
    size_t size;
    int64_t max_pixels; /* a picture whose header says more is refused; default, and 0: 178,956,970 */
    qvl_orientation orientation;
    qvl_alpha alpha;
    uint8_t alpha_colour[3]; /* default white */
    qvl_gray16 gray16;
} qvl_media_options;

QVL_API void qvl_media_options_init(qvl_media_options *options);
/* Sets the policies, and only those, to Pillow's plain conversion: ignore, drop, saturate. */
QVL_API void qvl_media_options_reference(qvl_media_options *options);

/* How RGB8 becomes patch rows; each follows one reference exactly (docs/NUMERICS.md). */
typedef enum qvl_preset {
    QVL_PRESET_TRANSFORMERS = 0,     /* torchvision's uint8 path on the CPU: what AutoProcessor does */
    QVL_PRESET_TRANSFORMERS_PIL = 1, /* transformers' Pillow backend */
    QVL_PRESET_MLX = 2               /* Pillow resize, normalisation as mlx-vlm */
} qvl_preset;

/* "transformers", "transformers-pil", "mlx"; NULL outside the enum. */
QVL_API const char *qvl_preset_name(qvl_preset preset);

/* Where the time of an encode goes. */
typedef enum qvl_stage {
    QVL_STAGE_READ = 0,   /* file to pixels */
    QVL_STAGE_RESIZE,     /* pixels to the final size */
    QVL_STAGE_ROWS,       /* normalise and cut into patch rows */
    QVL_STAGE_EMBED,      /* patch and position embedding, positions */
    QVL_STAGE_NORM,       /* layer norms of the blocks */
    QVL_STAGE_QKV,        /* q, k, v and their rotation */
    QVL_STAGE_ATTENTION,  /* softmax(q k) v */
    QVL_STAGE_PROJECTION, /* back into the stream */
    QVL_STAGE_MLP,        /* both products and GELU */
    QVL_STAGE_MERGERS,    /* the main merger and those of deepstack */
    QVL_STAGE_COUNT
} qvl_stage;

/* "read", "resize", ...; NULL outside the enum. Static string. */
QVL_API const char *qvl_stage_name(qvl_stage stage);

/* Seconds are added; the caller clears it first. */
typedef struct qvl_profile {
    double seconds[QVL_STAGE_COUNT];
} qvl_profile;

typedef struct qvl_preprocess_options {
    size_t size;
    qvl_preset preset;
    int64_t min_pixels, max_pixels; /* 0: the folder's limit; each works alone */
    int64_t min_tokens, max_tokens; /* 0: unset; else in merged tokens, and instead of min_pixels / max_pixels */
    int64_t width, height;          /* 0: smart_resize; else the exact size, multiples of patch x merge */
    qvl_profile *profile;           /* may be NULL; receives the stages up to patch rows */
    qvl_media_options media;        /* how inputs become RGB8; not for pictures that are RGB8 already */
} qvl_preprocess_options;

QVL_API void qvl_preprocess_options_init(qvl_preprocess_options *options);

typedef struct qvl_encode_options {
    size_t size;
    qvl_tap_fn tap; /* may be NULL; slows encoding down */
    void *tap_user;
    qvl_progress_fn progress; /* may be NULL */
    void *progress_user;
    qvl_profile *profile; /* may be NULL; receives the stages from patch rows on */
} qvl_encode_options;

QVL_API void qvl_encode_options_init(qvl_encode_options *options);

/* A picture as its file stores it. */
typedef struct qvl_stored {
    const char *format;    /* "JPEG", "PNG", ...; "RGB8" for raw pixels; static. NULL where unknown */
    int64_t width, height; /* before orientation; 0 where unknown */
    int32_t orientation;   /* of EXIF, 1..8; 1 where there is none or it is malformed; 0 where unknown */
    bool oriented;         /* reading turned the picture upright: orientation is not 1 and was applied */
    int64_t decode_bytes;  /* about what decoding takes beside the file's bytes and the RGB pixels */
} qvl_stored;

/* Where an item of a result comes from, and what became of it. */
typedef struct qvl_item {
    qvl_grid grid;
    int64_t tokens;                      /* t * h * w / merge^2 */
    int64_t source_width, source_height; /* as decoded, upright; 0 where unknown */
    int64_t width, height;               /* after resizing, in pixels; 0 where unknown */
    qvl_stored stored;
} qvl_item;

/* One row per merged patch block, items after one another, each in raster order of its blocks, t groups in turn.
 * dtype is the model's compute dtype. */
typedef struct qvl_features {
    qvl_dtype dtype;
    int64_t tokens, width; /* width = out_hidden_size */
    void *embeds;          /* [tokens, width] */
    int32_t deepstack_count;
    void *deepstack[QVL_MAX_DEEPSTACK]; /* each [tokens, width], in block order */
    size_t item_count;
    qvl_item *items;
} qvl_features;

/* count pictures, at least one, to features. *features belongs to the caller: qvl_features_free. */
QVL_API qvl_status qvl_encode(qvl_session *session, const qvl_input *inputs, size_t count,
                              const qvl_preprocess_options *preprocess, const qvl_encode_options *options,
                              qvl_features *features, qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_features_free(qvl_features *features);

/* ------------------------------------------------------------------------------------ ring 2: stage by stage */

/* Packed RGB8: height rows of 3*width bytes. */
typedef struct qvl_image {
    int64_t width, height; /* of the pixels, upright where orientation was applied */
    uint8_t *pixels;
    qvl_stored stored; /* the file it was read from; all zero for pictures made otherwise */
} qvl_image;

/* Reads a picture, its format told by content, or copies raw pixels: JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF without
 * alpha; of animations the first composed frame. The size in the header is checked against max_pixels before
 * anything of the picture's size is allocated. Damaged and cut files are refused. options may be NULL.
 * *image belongs to the caller: qvl_image_free. */
QVL_API qvl_status qvl_image_read(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                                  qvl_error *error);
/* What qvl_image_read would give, from the header alone: *image without pixels. Nothing is decoded, nothing of the
 * picture's size allocated. */
QVL_API qvl_status qvl_image_probe(const qvl_input *input, const qvl_media_options *options, qvl_image *image,
                                   qvl_error *error);
QVL_API void qvl_image_free(qvl_image *image);

/* Patch rows in merge-block order, items after one another. Columns: channel, frame of the pair, pixel row, pixel
 * column. cols = in_channels * temporal_patch_size * patch_size^2. Values are normalised, about -1..1. */
typedef struct qvl_patches {
    int64_t rows, cols;
    float *values; /* [rows, cols] */
    size_t item_count;
    qvl_item *items;
} qvl_patches;

/* Resizes, normalises and cuts count pictures. *patches belongs to the caller: qvl_patches_free. */
QVL_API qvl_status qvl_preprocess(const qvl_model *model, const qvl_image *images, size_t count,
                                  const qvl_preprocess_options *options, qvl_patches *patches, qvl_error *error);
/* As qvl_preprocess without the resize: a picture whose sides are not multiples of patch x merge is refused. */
QVL_API qvl_status qvl_patchify(const qvl_model *model, const qvl_image *images, size_t count, qvl_preset preset,
                                qvl_patches *patches, qvl_error *error);
/* Reads and preprocesses, one picture's pixels in memory at a time. */
QVL_API qvl_status qvl_preprocess_inputs(const qvl_model *model, const qvl_input *inputs, size_t count,
                                         const qvl_preprocess_options *options, qvl_patches *patches,
                                         qvl_error *error);
QVL_API void qvl_patches_free(qvl_patches *patches);

/* Patch rows, the caller's or qvl_preprocess's, to features. Any grid (t,h,w); attention never crosses a temporal
 * group or an item. Of items only grid is read. */
QVL_API qvl_status qvl_vision_encode(qvl_session *session, const qvl_patches *patches,
                                     const qvl_encode_options *options, qvl_features *features, qvl_error *error);

/* The block chain from given hidden states, patch embedding and position embedding skipped.
 * hidden [rows, hidden_size] is read and overwritten by the output of the last block; rows and order as grids say.
 * With features != NULL the mergers run too and fill it (its items carry the grids only). */
QVL_API qvl_status qvl_vision_blocks(qvl_session *session, float *hidden, const qvl_grid *grids, size_t grid_count,
                                     const qvl_encode_options *options, qvl_features *features, qvl_error *error);

/* Bytes of scratch that encoding these grids in one call needs, beside weights, patches and features. */
QVL_API qvl_status qvl_vision_scratch(const qvl_model *model, const qvl_grid *grids, size_t grid_count,
                                      size_t *bytes, qvl_error *error);

/* Floating-point operations of the tower, two for a multiply-add. Biases and element-wise work are left out. */
typedef struct qvl_work {
    double patch_embed;
    double linear;    /* qkv, proj and MLP of all blocks */
    double attention; /* queries on keys, then on values, within temporal groups */
    double mergers;   /* the main one and those of deepstack */
    double total;
} qvl_work;

QVL_API qvl_status qvl_vision_work(const qvl_model *model, const qvl_grid *grids, size_t grid_count,
                                   qvl_work *work, qvl_error *error);

/* Bytes that encoding allocates, apart from small things. Weights stay; pictures are read and resized one after
 * the other, then the tower runs. */
typedef struct qvl_memory {
    int64_t weights;  /* packed, in the compute dtype */
    int64_t pictures; /* most of one picture at a time: its file, its pixels, the resized ones */
    int64_t patches;  /* patch rows of all pictures */
    int64_t scratch;  /* of the tower: qvl_vision_scratch */
    int64_t features; /* the result */
    int64_t peak;     /* the most there is at one time */
} qvl_memory;

/* What becomes of one picture, and what it costs. */
typedef struct qvl_plan_item {
    qvl_item item;     /* the very one that preprocessing and encoding give */
    int64_t rows;      /* patch rows */
    qvl_limits limits; /* of pixels, in force for it; zero where the options give its exact size */
    qvl_work work;
} qvl_plan_item;

typedef struct qvl_plan {
    size_t item_count;
    qvl_plan_item *items;
    int64_t tokens, rows;
    qvl_work work;
    qvl_memory memory;
} qvl_plan;

/* A dry run of qvl_encode from the pictures' headers: no pixel is decoded, no weight read, so QVL_OPEN_CONFIG is
 * enough. What the options or the headers make impossible is refused as encoding would refuse it.
 * *plan belongs to the caller: qvl_plan_free. */
QVL_API qvl_status qvl_plan_inputs(const qvl_model *model, const qvl_input *inputs, size_t count,
                                   const qvl_preprocess_options *options, qvl_plan *plan, qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_plan_free(qvl_plan *plan);

/* ------------------------------------------------------------------------------- ring 2: text and token ids */

/* The tokenizer of a folder. Immutable once open; may be shared by threads. */
typedef struct qvl_tokenizer qvl_tokenizer;

/* Reads tokenizer.json and, if it is there, tokenizer_config.json, whose added_tokens_decoder may hold added tokens
 * that tokenizer.json lacks. What is not supported is refused by name and value (docs/TEXT.md). log may be NULL.
 * *tokenizer belongs to the caller: qvl_tokenizer_close. */
QVL_API qvl_status qvl_tokenizer_open(const char *folder, qvl_log_fn log, void *log_user,
                                      qvl_tokenizer **tokenizer, qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
QVL_API void qvl_tokenizer_close(qvl_tokenizer **tokenizer);

typedef struct qvl_tokenizer_info {
    const char *folder; /* lives as long as the tokenizer */
    int32_t base_count; /* entries of the BPE vocabulary */
    int32_t added_count;
    int32_t id_limit;     /* one more than the largest id; ids below it may be unused */
    const char *splitter; /* "qwen2", "qwen3_5", "gpt2", or "pattern": any other expression. Static string */
} qvl_tokenizer_info;

QVL_API void qvl_tokenizer_get_info(const qvl_tokenizer *tokenizer, qvl_tokenizer_info *info);

/* One id of the vocabulary. */
typedef struct qvl_token {
    int32_t id;
    const char *bytes; /* what it decodes to, not always whole UTF-8; lives as long as the tokenizer */
    size_t byte_count;
    bool added;   /* cut out of text before anything else: <|im_start|>, <think> */
    bool special; /* added, and left out by skip_special */
} qvl_token;

/* false where the vocabulary has no such id. */
QVL_API bool qvl_token_get(const qvl_tokenizer *tokenizer, int32_t id, qvl_token *token);
/* The added token of this content, the whole of it; false where there is none. */
QVL_API bool qvl_token_find(const qvl_tokenizer *tokenizer, const char *content, qvl_token *token);
/* The added token number index < added_count, in order of id. */
QVL_API qvl_token qvl_token_added(const qvl_tokenizer *tokenizer, int32_t index);

/* Which added tokens are recognised in a text; the others become ordinary tokens of their letters. */
typedef enum qvl_added {
    QVL_ADDED_ALL = 0,      /* as transformers does; text may then hold <|im_start|> and the like */
    QVL_ADDED_ORDINARY = 1, /* those that are not special: <think>, <tool_call> */
    QVL_ADDED_NONE = 2
} qvl_added;

typedef struct qvl_tokenize_options {
    size_t size;
    qvl_added added;
    bool marked; /* the text has marks, made by qvl_text_mark (default false) */
} qvl_tokenize_options;

QVL_API void qvl_tokenize_options_init(qvl_tokenize_options *options);

typedef struct qvl_tokens {
    size_t count;
    int32_t *ids;   /* [count] */
    size_t *starts; /* [count + 1] offsets in the text: ids[i] is of the bytes starts[i] up to starts[i + 1] */
} qvl_tokens;

/* Text to ids, the same as Hugging Face tokenizers gives. Nothing is put before or behind. Bytes that are not UTF-8
 * count as U+FFFD, one for each part that Python's errors="replace" sees.
 * starts[0] is 0 and starts[count] the size of the text if there are tokens: every byte belongs to one. A token may
 * begin inside a character; one of several that normalisation made of the same characters may come from no bytes.
 * *tokens belongs to the caller: qvl_tokens_free. */
QVL_API qvl_status qvl_tokenize(const qvl_tokenizer *tokenizer, const char *text, size_t byte_count,
                                const qvl_tokenize_options *options, qvl_tokens *tokens, qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_tokens_free(qvl_tokens *tokens);

/* Bytes of text, with a NUL after the last that byte_count does not count. */
typedef struct qvl_text {
    char *bytes;
    size_t byte_count;
} qvl_text;

/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_text_free(qvl_text *text);

/* Takes the magic out of text that is not to be trusted, before it is joined with other text: marked text, whatever
 * it is put between, trimmed or not, gives the same ids as the text itself with those added tokens unknown.
 * added: which ones stay recognised; QVL_ADDED_ALL marks nothing. The marks are noncharacters, U+FDD0 inside of what
 * looks like such a token or a part of one at an end of the text; U+FDD0 to U+FDEF in the text are kept, hidden as
 * seven of them. qvl_tokenize with options.marked takes them out again. Bytes that are not UTF-8 become U+FFFD.
 * *marked belongs to the caller: qvl_text_free. */
QVL_API qvl_status qvl_text_mark(const qvl_tokenizer *tokenizer, const char *text, size_t byte_count,
                                 qvl_added added, qvl_text *marked, qvl_error *error);
/* Marked text as it was before. *text belongs to the caller: qvl_text_free. */
QVL_API qvl_status qvl_text_unmark(const char *marked, size_t byte_count, qvl_text *text, qvl_error *error);

/* Ids to UTF-8: bytes that do not make characters become U+FFFD. skip_special leaves special tokens out. An id that
 * the vocabulary does not have is an error. *text belongs to the caller: qvl_text_free. */
QVL_API qvl_status qvl_detokenize(const qvl_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                  bool skip_special, qvl_text *text, qvl_error *error);

/* Ids to UTF-8 one by one, as they are generated. The pieces joined are what qvl_detokenize gives of all ids; no
 * piece ends inside a character. */
typedef struct qvl_detokenizer qvl_detokenizer;

/* The tokenizer must stay open. *stream belongs to the caller: qvl_detokenizer_close. */
QVL_API qvl_status qvl_detokenizer_open(const qvl_tokenizer *tokenizer, bool skip_special,
                                        qvl_detokenizer **stream, qvl_error *error);
QVL_API void qvl_detokenizer_close(qvl_detokenizer **stream);
/* *text, byte_count bytes and a NUL, is valid until the next call for this stream; it may be empty. */
QVL_API qvl_status qvl_detokenizer_push(qvl_detokenizer *stream, int32_t id, const char **text, size_t *byte_count,
                                        qvl_error *error);
/* The end: what was held back, as U+FFFD. The stream may be used again from the start. */
QVL_API void qvl_detokenizer_finish(qvl_detokenizer *stream, const char **text, size_t *byte_count);

/* ---- measuring */

/* One kernel at the model's sizes. */
typedef struct qvl_kernel_time {
    char name[64];  /* "fc2 4304 -> 1152, 1024 rows" */
    double seconds; /* median of the runs */
    double flops;   /* useful ones of one run */
    double peak;    /* FLOP/s of multiply-adds on registers, all threads, timed beside the runs; median */
} qvl_kernel_time;

#define QVL_MAX_KERNELS 16

/* Times the products and the attention of one block and of the merger on `rows` patch rows that see each other
 * (a multiple of merge^2; random data), runs times each, taking turns with the peak. Fills times[0 .. *count - 1].
 * *copy_rate: bytes read plus written per second in copying more than the caches hold. QVL_OPEN_CONFIG is enough. */
QVL_API qvl_status qvl_bench_kernels(const qvl_model *model, int64_t rows, int32_t runs,
                                     qvl_kernel_time times[QVL_MAX_KERNELS], size_t *count, double *copy_rate,
                                     qvl_error *error);

/* -------------------------------------------------------------------------------------------- ring 2: prompts */

/* From a conversation to what the language model reads (docs/PROMPT.md). A prompter holds what a folder has for
 * it: tokenizer, chat template, the ids of the placeholders and, if its model was opened with weights, the
 * token embeddings, whose file stays mapped. Immutable once open; may be shared by threads. */
typedef struct qvl_prompter qvl_prompter;

typedef struct qvl_prompter_options {
    size_t size;
    const char *template_text; /* a template to use instead of the folder's; NULL */
    const char *template_name; /* which of the folder's templates, where it has named ones; NULL: the default, or
                                  tool_use for chats with tools */
} qvl_prompter_options;

QVL_API void qvl_prompter_options_init(qvl_prompter_options *options);

/* *prompter belongs to the caller: qvl_prompter_close. It uses the model as long as it is open. Notes go to the
 * model's log. */
QVL_API qvl_status qvl_prompter_open(const qvl_model *model, const qvl_prompter_options *options,
                                     qvl_prompter **prompter, qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
QVL_API void qvl_prompter_close(qvl_prompter **prompter);
/* Lives as long as the prompter. */
QVL_API const qvl_tokenizer *qvl_prompter_tokenizer(const qvl_prompter *prompter);

/* The values are those of mm_token_type_ids. */
typedef enum qvl_medium_kind { QVL_MEDIUM_IMAGE = 1, QVL_MEDIUM_VIDEO = 2 } qvl_medium_kind;

/* A picture or video from the caller. One of input, patches and features is not NULL. Nothing is copied or kept
 * beyond the call it is passed to. */
typedef struct qvl_medium {
    qvl_medium_kind kind;
    const char *name;             /* for messages and results; may be NULL */
    const qvl_input *input;       /* a picture to read */
    const qvl_patches *patches;   /* patch rows of one item */
    const qvl_features *features; /* of one item, encoded before with this model and its dtype */
    const char *key;          /* of patches and features: 64 hex digits for what they show, such as the key of an
                                     earlier prompt's item; NULL: their values are hashed */
    const double *timestamps; /* of a video: the second of each temporal group, grid.t of them */
    size_t timestamp_count;
} qvl_medium;

/* A conversation as JSON: a list of messages, or an object with messages and perhaps tools, documents,
 * chat_template_kwargs (any variables of the template), add_generation_prompt, continue_final_message,
 * enable_thinking, reasoning_effort, preserve_thinking, add_vision_id; its other members are ignored with a
 * note. A message has role and content: a string, or a list of parts. A part is text {"text"}, or a picture or
 * video: {"type": "image"}, "image_url", "input_image", "video", "video_url" with a source in image, url, path,
 * image_url, video, video_url (a string, or an object with url) or base64. Sources are files, relative ones to
 * `folder`, and data URLs; what data is, is told by its content. Parts without a source take the caller's
 * media, in order, kind by kind. */
typedef struct qvl_chat {
    const char *json;
    size_t byte_count;
    const char *name;        /* for messages, "chat.json"; NULL: "chat" */
    const char *folder;      /* of relative file names; NULL: the current one */
    bool no_files;           /* files named in the chat are refused: for chats from others */
    const qvl_medium *media; /* for the parts without a source */
    size_t media_count;
} qvl_chat;

/* What happens to text that the template would leave out in silence, such as a late system message in Qwen3-VL. */
typedef enum qvl_dropped {
    QVL_DROPPED_REFUSE = 0, /* an error that names the message */
    QVL_DROPPED_NOTE = 1,   /* a note */
    QVL_DROPPED_FOLD = 2    /* later system messages are put at the end of the first one, which is made if there is
                               none; for the rest as refuse */
} qvl_dropped;

/* What stands round the timed groups of a video. */
typedef enum qvl_video_layout {
    QVL_VIDEO_WRAPPED =
        0,             /* <|vision_start|> and <|vision_end|> of the template stay: transformers 5.10 and later */
    QVL_VIDEO_BARE = 1 /* they go: transformers 4.57 to 5.9, vLLM */
} qvl_video_layout;

/* What happens to a prompt above max_length. A picture is never cut in two. */
typedef enum qvl_truncation {
    QVL_TRUNCATE_REFUSE = 0, /* an error with both numbers */
    QVL_TRUNCATE_TEXT =
        1, /* the end is cut off, as transformers does it; an error where that would cut a picture */
    QVL_TRUNCATE_MEDIA = 2 /* the same, and a picture across the cut goes as a whole */
} qvl_truncation;

/* Switches of -1 (the default) are as the chat says, else as the template has it. */
typedef struct qvl_prompt_options {
    size_t size;
    int32_t add_generation_prompt;  /* 0, 1; -1: as the chat says, else 1, else 0 with continue_final_message */
    int32_t continue_final_message; /* 0, 1: the last message is left open; -1: as the chat says, else 0 */
    int32_t enable_thinking, preserve_thinking, add_vision_id;
    const char *reasoning_effort; /* NULL: as the chat says */
    const char *tools_json;       /* a list, instead of the chat's; NULL */
    const char *variables_json;   /* an object: any other variables of the template; NULL */
    bool trust_text;              /* text may hold special tokens, as transformers has it by default */
    qvl_dropped dropped;
    qvl_video_layout video_layout;
    int64_t max_length; /* in tokens; 0: none */
    qvl_truncation truncation;
    int64_t time; /* strftime_now's clock: qvl_template_options */
    qvl_preprocess_options preprocess;
    qvl_progress_fn progress; /* of encoding; may be NULL */
    void *progress_user;
    qvl_log_fn log; /* notes about this chat; may be NULL */
    void *log_user;
} qvl_prompt_options;

QVL_API void qvl_prompt_options_init(qvl_prompt_options *options);

/* Where a token stands, in two ways that must not be mixed up. An entry is its number in the sequence, and so
 * in a cache of keys and values: a picture takes as many as it has tokens. A position is what rotary embedding
 * turns by: a picture moves it on only by its longer side in merged patches. */
typedef struct qvl_entry {
    int64_t index;
} qvl_entry;
typedef struct qvl_position {
    int64_t t, h, w;
} qvl_position;

#define QVL_KEY_HEX 65 /* 64 digits and a NUL */

/* A picture or video in a prompt. */
typedef struct qvl_prompt_item {
    qvl_medium_kind kind;
    char *name;           /* file, "data URL", or the caller's */
    size_t message, part; /* where it is in the conversation, from 0 */
    qvl_item item;
    qvl_entry first, last; /* its first and last entry, its vision_start, vision_end and time stamps included */
    char key[QVL_KEY_HEX]; /* of its content (docs/PROMPT.md); "" in a plan, and where it could not be told */
} qvl_prompt_item;

/* What a stretch of a prompt's text is. */
typedef enum qvl_prompt_span_kind {
    QVL_SPAN_TEXT = 0,    /* ordinary tokens */
    QVL_SPAN_SPECIAL = 1, /* a special token: <|im_start|> */
    QVL_SPAN_ADDED = 2,   /* an added token that is not special: <think> */
    QVL_SPAN_IMAGE = 3,   /* the pad of an image, written once for all its tokens */
    QVL_SPAN_VIDEO = 4,   /* the same, of one temporal group of a video */
    QVL_SPAN_DEFUSED = 5  /* ordinary tokens that spell an added one */
} qvl_prompt_span_kind;

typedef struct qvl_prompt_span {
    qvl_prompt_span_kind kind;
    size_t start, end; /* bytes of the text; end is excluded */
    int64_t tokens;
} qvl_prompt_span;

/* A prompt. Names are transformers'. */
typedef struct qvl_prompt {
    int64_t length;        /* tokens, which is entries */
    int64_t *input_ids;    /* [length] */
    int64_t *token_types;  /* [length], mm_token_type_ids: 0 text, 1 image, 2 video */
    int64_t *position_ids; /* [3, length]: t, h, w */
    int64_t rope_delta;    /* entry n >= length has the position n + rope_delta on all axes */
    int64_t vision_tokens; /* those of types 1 and 2 */
    int64_t media_length;  /* entries up to and including the last vision token; 0: text only */
    size_t item_count;
    qvl_prompt_item *items; /* in order */
    char *text;             /* what was tokenised, pads not repeated; text_length bytes and a NUL */
    size_t text_length;
    size_t span_count;
    qvl_prompt_span *spans; /* the whole text, in order */
    /* Not in a plan: */
    qvl_dtype dtype; /* the model's compute dtype */
    int64_t width;
    void *inputs_embeds; /* [length, width] */
    int32_t deepstack_count;
    void *deepstack[QVL_MAX_DEEPSTACK]; /* each [vision_tokens, width]: of the tokens of types 1 and 2, in order */
} qvl_prompt;

/* Everything but embeddings, from the headers of the pictures; needs no weights. What is impossible is refused as
 * qvl_prompt_build would. *prompt belongs to the caller: qvl_prompt_free. */
QVL_API qvl_status qvl_prompt_plan(const qvl_prompter *prompter, const qvl_chat *chat,
                                   const qvl_prompt_options *options, qvl_prompt *prompt, qvl_error *error);
/* The whole prompt; pictures are encoded by the session, which must be of the prompter's model.
 * *prompt belongs to the caller: qvl_prompt_free. */
QVL_API qvl_status qvl_prompt_build(qvl_session *session, const qvl_prompter *prompter, const qvl_chat *chat,
                                    const qvl_prompt_options *options, qvl_prompt *prompt, qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_prompt_free(qvl_prompt *prompt);

/* The position of an entry: of the prompt, or decoded after it. */
QVL_API qvl_position qvl_prompt_position(const qvl_prompt *prompt, qvl_entry entry);
/* As rope_delta, when only the entries before end stay in a cache. An end inside a picture or video is an
 * error. */
QVL_API qvl_status qvl_prompt_delta_at(const qvl_prompt *prompt, qvl_entry end, int64_t *delta, qvl_error *error);

/* Which prompt it is up to its last vision token, for caches of the language model: over the tower's
 * fingerprint (qvl_model_fingerprint), how it computes, the items' keys, ids, positions and rope_delta. "" for
 * text alone. Needs a built prompt. */
QVL_API qvl_status qvl_prompt_identity(const qvl_model *model, const qvl_prompt *prompt, const char *fingerprint,
                                       char hex[QVL_KEY_HEX], qvl_error *error);

/* transformers' get_rope_index for one sequence without padding: token_types [length] as in qvl_prompt, the
 * grids of images and of videos in order, to position_ids [3, length] and *rope_delta. */
QVL_API qvl_status qvl_rope_index(const int64_t *token_types, int64_t length, const qvl_grid *image_grids,
                                  size_t image_count, const qvl_grid *video_grids, size_t video_count,
                                  int64_t merge, int64_t *position_ids, int64_t *rope_delta, qvl_error *error);

/* ----------------------------------------------------------------------------------- ring 3: pure helpers, files */

/* The size a picture is resized to: transformers' smart_resize (image variant) at factor = patch x merge.
 * height, width >= 1; factor >= 1; 1 <= limits.min_pixels, max_pixels. */
QVL_API qvl_status qvl_smart_resize(int64_t height, int64_t width, int64_t factor, qvl_limits limits,
                                    int64_t *out_height, int64_t *out_width, qvl_error *error);

/* Where positions in a picture are measured: x to the right, y down, from the upper left corner. Positions are
 * continuous. A frame of width w covers 0..w; pixel i covers i..i+1 and has its centre at i + 0.5, so a box round
 * whole pixels a to b (included) is a..b+1. Which frame a model answers in: docs/COORDINATES.md. */
typedef enum qvl_frame {
    QVL_FRAME_FILE = 0,    /* pixels as the file stores them: the orientation that reading applied is undone */
    QVL_FRAME_SOURCE = 1,  /* pixels of the picture as read: item's source size */
    QVL_FRAME_MODEL = 2,   /* pixels of the resized picture: item's width and height */
    QVL_FRAME_NORM1000 = 3 /* 0..1000 across and down the whole picture */
} qvl_frame;

typedef struct qvl_point {
    double x, y;
} qvl_point;

typedef struct qvl_box {
    double x1, y1, x2, y2; /* two opposite corners */
} qvl_box;

/* "file", "source", "model", "norm1000"; NULL outside the enum. */
QVL_API const char *qvl_frame_name(qvl_frame frame);
/* What a frame of the picture measures. item: of a plan, of patches or of features. */
QVL_API qvl_status qvl_frame_size(const qvl_item *item, qvl_frame frame, double *width, double *height,
                                  qvl_error *error);
/* From one frame to another. Nothing is rounded, nothing clamped: positions outside the picture stay outside. */
QVL_API qvl_status qvl_map_point(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_point point,
                                 qvl_point *out, qvl_error *error);
/* Both corners. In the result x1 <= x2 and y1 <= y2, whichever corners are given, however the file is turned. */
QVL_API qvl_status qvl_map_box(const qvl_item *item, qvl_frame from, qvl_frame to, qvl_box box, qvl_box *out,
                               qvl_error *error);
/* The part of a box inside 0..width, 0..height; without an area where nothing is inside. */
QVL_API qvl_box qvl_clamp_box(qvl_box box, double width, double height);

/* Bicubic resize of RGB8 exactly as the preset's reference does it. threads as in qvl_model_options.
 * *out belongs to the caller. */
QVL_API qvl_status qvl_resize(const qvl_image *image, int64_t width, int64_t height, qvl_preset preset,
                              int32_t threads, qvl_image *out, qvl_error *error);

/* A chat template: Jinja as transformers sets it up; docs/TEXT.md lists what is supported. Templates are not trusted:
 * time, memory and output have limits. */
typedef struct qvl_template_options {
    size_t size;
    const char *name;   /* for messages; default "template" */
    int64_t time;       /* strftime_now's clock: seconds since 1970-01-01 00:00:00 as that clock (local, say) shows
                           it; default INT64_MIN: there is none, and strftime_now is an error */
    int64_t max_steps;  /* nodes evaluated, and blocks of data gone through; default 50,000,000 */
    int64_t max_depth;  /* of nested evaluation and data, at most 1000, the default */
    int64_t max_output; /* bytes of the text; default 128 MiB */
    int64_t max_memory; /* bytes; default 1 GiB */
} qvl_template_options;

QVL_API void qvl_template_options_init(qvl_template_options *options);

/* Bytes start to end (excluded) of a text. */
typedef struct qvl_span {
    size_t start, end;
} qvl_span;

typedef struct qvl_rendered {
    char *text; /* UTF-8; length bytes and a NUL */
    size_t length;
    size_t generation_count;
    qvl_span *generation; /* what generation blocks wrote straight to the text: what the assistant said */
} qvl_rendered;

/* variables_json: a JSON object (messages, tools, add_generation_prompt, ...); the names are the template's.
 * *rendered belongs to the caller: qvl_rendered_free. */
QVL_API qvl_status qvl_template_render(const char *template_text, const char *variables_json,
                                       const qvl_template_options *options, qvl_rendered *rendered,
                                       qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_rendered_free(qvl_rendered *rendered);

/* Writes a safetensors file: to a temporary name beside path, then renamed. metadata: pairs of strings, may be
 * NULL. Tensor names must be unique. */
QVL_API qvl_status qvl_tensors_save(const char *path, const qvl_tensor *tensors, size_t count,
                                    const char *const *metadata, size_t metadata_pairs, qvl_error *error);

/* A safetensors file opened for reading: mapped, header checked. */
typedef struct qvl_tensor_file qvl_tensor_file;
QVL_API qvl_status qvl_tensor_file_open(const char *path, qvl_tensor_file **file, qvl_error *error);
QVL_API void qvl_tensor_file_close(qvl_tensor_file **file);
QVL_API size_t qvl_tensor_file_count(const qvl_tensor_file *file);
/* index < count, in order of name; the view lives as long as the file is open. */
QVL_API qvl_tensor qvl_tensor_file_get(const qvl_tensor_file *file, size_t index);
/* false where no tensor has that name. */
QVL_API bool qvl_tensor_file_find(const qvl_tensor_file *file, const char *name, qvl_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
