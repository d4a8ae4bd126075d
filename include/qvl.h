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

/* Called between steps of an encode, and while videos are opened, with done in 0..total. Return false to cancel. It must
 * not call the library with the same model. */
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
    qvl_log_fn log;       /* may be NULL; called by the threads that use the model, and by one that reads ahead */
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
    /* Videos: limits are of frames x height x width. */
    qvl_limits video_limits;
    const char
        *video_limits_source; /* file name, "preprocessor_config.json" if only pictures are spoken of, or "class
                                        default" */
    double video_fps;         /* frames taken a second; 0: not by time */
    int64_t video_min_frames, video_max_frames;
    /* What clips are normalised with, as image_mean, image_std and rescale_factor are for pictures. */
    float video_mean[3], video_std[3];
    double video_rescale_factor;
} qvl_model_info;

QVL_API const qvl_model_info *qvl_model_get_info(const qvl_model *model);

#define QVL_FINGERPRINT_HEX 65 /* 64 digits and a NUL */

/* Which weights the tower has: SHA-256 over its tensors' names, types, shapes and bytes (docs/MODEL.md says how),
 * the same whatever names, shards and layout the folder stores them in. The first call for a folder reads all of
 * the tower, on the model's threads. memory_folder: where results are remembered by device, inode, size and times
 * (of writing and of change) of the files, so that later calls read nothing of them; made if it is missing (its
 * parent must be there), open to its owner only. NULL: nothing is remembered. That it cannot be written is a note,
 * not an error. Needs a model opened with QVL_OPEN_HEADERS or QVL_OPEN_WEIGHTS whose files have not changed since,
 * neither in content nor in name, times or rights. */
QVL_API qvl_status qvl_model_fingerprint(const qvl_model *model, const char *memory_folder,
                                         char hex[QVL_FINGERPRINT_HEX], qvl_error *error);

/* *session belongs to the caller: qvl_session_close. It holds the scratch memory of encoding. */
QVL_API qvl_status qvl_session_open(qvl_model *model, qvl_session **session, qvl_error *error);
QVL_API void qvl_session_close(qvl_session **session);

/* Features of what was encoded before, by content, for any number of sessions, models and threads: in memory, and in a
 * folder that processes share. docs/CACHE.md says what equal content is. What comes from it equals what encoding gives
 * bit for bit. A process may open a folder once, and must not go on using it after a fork. */
typedef struct qvl_cache qvl_cache;

typedef struct qvl_cache_options {
    size_t size;
    int64_t memory_bytes; /* of features kept in memory; 0: none; default 512 MiB */
    const char *folder;   /* made if it is missing (its parent must be there); NULL, the default: memory only */
    int64_t disk_bytes;   /* of files in the folder, 1 MiB at least; default 2 GiB */
    qvl_log_fn log;       /* may be NULL; called by any thread that uses the cache, rarely */
    void *log_user;
} qvl_cache_options;

QVL_API void qvl_cache_options_init(qvl_cache_options *options);

/* A folder that cannot be used is a note, not an error: then features are kept in memory only.
 * *cache belongs to the caller: qvl_cache_close. */
QVL_API qvl_status qvl_cache_open(const qvl_cache_options *options, qvl_cache **cache, qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. No session may use it any more; features that came from it
 * stay valid until they are freed. */
QVL_API void qvl_cache_close(qvl_cache **cache);

/* Of groups (a picture is one); the first five count since the cache was opened. */
typedef struct qvl_cache_stats {
    int64_t memory_hits, disk_hits;
    int64_t shared;  /* encoded by another request at the same time */
    int64_t encoded; /* not found anywhere */
    int64_t evicted; /* from memory */
    int64_t dropped; /* bad entries on disk */
    int64_t memory_entries, memory_bytes, memory_budget;
    bool disk; /* the folder is in use */
    int64_t disk_entries, disk_bytes, disk_budget;
} qvl_cache_stats;

QVL_API qvl_status qvl_cache_get_stats(qvl_cache *cache, qvl_cache_stats *stats, qvl_error *error);
/* Reads all entries of the folder, and drops bad ones. */
QVL_API qvl_status qvl_cache_verify(qvl_cache *cache, int64_t *good, int64_t *bad, qvl_error *error);
/* Forgets everything, in memory and on disk. */
QVL_API qvl_status qvl_cache_clear(qvl_cache *cache, qvl_error *error);

/* From now on qvl_encode and qvl_prompt_build look there first (NULL: no more). Needs the tower's fingerprint, so the
 * first time for a model all of its tower is read, unless the cache's folder remembers it (qvl_model_fingerprint).
 * Calls with a tap or a profile never use it. The cache must stay open until the session is closed. */
QVL_API qvl_status qvl_session_use_cache(qvl_session *session, qvl_cache *cache, qvl_error *error);

typedef enum qvl_input_kind {
    QVL_INPUT_FILE = 0,  /* path of a picture or a clip; which, its content says */
    QVL_INPUT_BYTES = 1, /* a whole encoded picture or clip in memory: bytes, byte_count */
    QVL_INPUT_RGB8 = 2,  /* pixels: bytes = height rows of width RGB triples, row_stride bytes apart */
    QVL_INPUT_FRAMES = 3 /* a clip as a list of pictures of one size, with times; used whole, never sampled */
} qvl_input_kind;

/* One picture or clip. Nothing is copied or kept beyond the call it is passed to. */
typedef struct qvl_input {
    qvl_input_kind kind;
    const char *name; /* QVL_INPUT_FILE: the path. Otherwise a name for messages, may be NULL */
    const void *bytes;
    size_t byte_count;     /* QVL_INPUT_RGB8: 0, or at least what the rows take */
    int64_t width, height; /* QVL_INPUT_RGB8 only, >= 1 */
    size_t row_stride;     /* QVL_INPUT_RGB8 only; 0 means 3*width */
    qvl_limits limits;     /* of this picture, before those of options and folder; each works alone, 0: unset. Of a
                              clip: areas times frames */
    /* QVL_INPUT_FRAMES only: */
    const struct qvl_input *frames; /* [frame_count] of the other kinds, each a picture */
    size_t frame_count;             /* >= 1 */
    const double *seconds;  /* [frame_count] when each is shown, not decreasing; NULL: by indices and rate */
    const int64_t *indices; /* [frame_count] their numbers in the source, not decreasing; NULL: 0, 1, 2, ... */
    double rate;            /* frames a second of the source: frame i is shown at index / rate; 0: unknown */
    /* Clips only: what is set here comes before the options. */
    double fps;
    int64_t num_frames, min_frames, max_frames; /* 0: unset */
} qvl_input;

/* Policies say how a file's pixels become RGB8. The first value of each is the default, what a person who looks at
 * the picture expects; the last one is Pillow's plain convert("RGB"). */
typedef enum qvl_orientation {
    QVL_ORIENTATION_APPLY = 0, /* the picture is turned upright as its EXIF tag says, or XMP where EXIF has none */
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

typedef enum qvl_animation {
    QVL_ANIMATION_FIRST = 0, /* an animated GIF or WebP is the picture of its first composed frame */
    QVL_ANIMATION_CLIP = 1   /* ... is a video where videos are read, with the times it has */
} qvl_animation;

typedef struct qvl_media_options {
    size_t size;
    int64_t max_pixels; /* a picture or frame whose header says more is refused; default, and 0: 178,956,970 */
    qvl_orientation orientation;
    qvl_alpha alpha;
    uint8_t alpha_colour[3]; /* default white */
    qvl_gray16 gray16;
    qvl_animation animation;
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

/* What happens to a clip with fewer frames than a temporal patch has: mostly, with one frame. */
typedef enum qvl_single_frame {
    QVL_SINGLE_FRAME_REPEAT = 0, /* the last frame is repeated first; the size is then that of a clip so long */
    QVL_SINGLE_FRAME_REFUSE = 1  /* an error, as transformers has it */
} qvl_single_frame;

/* Where the times of a file's frames come from. */
typedef enum qvl_clip_times {
    QVL_TIMES_TRUE = 0, /* index / rate; of files whose rate varies, when the file shows each frame */
    QVL_TIMES_RATE = 1  /* always index / average rate, as transformers has it */
} qvl_clip_times;

/* Whether a frame's size has a limit of its own: the smaller of max_frame_tokens and an even share of max_pixels. */
typedef enum qvl_frame_cap {
    QVL_FRAME_CAP_FOLDER =
        0, /* as the folder's cap_pixels_per_frame says; off without it, as in transformers 5.23 */
    QVL_FRAME_CAP_OFF = 1,
    QVL_FRAME_CAP_ON = 2
} qvl_frame_cap;

/* Which frames of a clip are taken, and how large they become (docs/VIDEO.md). All zero is the default. */
typedef struct qvl_clip_options {
    double fps;                     /* frames to take a second; 0: the folder's */
    int64_t num_frames;             /* exactly so many, from first to last; 0: by fps. Not with fps */
    int64_t min_frames, max_frames; /* bounds of what fps gives; 0: the folder's */
    int64_t min_pixels, max_pixels; /* limits of frames x height x width; 0: the folder's; each works alone */
    qvl_frame_cap frame_cap;
    int64_t max_frame_tokens; /* of frame_cap; 0: the folder's */
    double assumed_rate;      /* frames a second of clips that do not say; 0: those are refused */
    qvl_single_frame single_frame;
    qvl_clip_times times;
} qvl_clip_options;

typedef struct qvl_preprocess_options {
    size_t size;
    qvl_preset preset;
    int64_t min_pixels, max_pixels; /* 0: the folder's limit; each works alone */
    int64_t min_tokens, max_tokens; /* 0: unset; else in merged tokens, and instead of min_pixels / max_pixels */
    int64_t width, height;          /* 0: smart_resize; else the exact size, multiples of patch x merge */
    qvl_profile *profile;           /* may be NULL; receives the stages up to patch rows */
    qvl_media_options media;        /* how inputs become RGB8; not for pictures that are RGB8 already */
    qvl_clip_options clip;          /* of clips; limits above are of pictures, width and height of both */
} qvl_preprocess_options;

QVL_API void qvl_preprocess_options_init(qvl_preprocess_options *options);

struct qvl_item;
struct qvl_features;

/* Temporal group number `group` of input number `input` is encoded (a picture has one, 0): features are its own, item
 * is that of the whole input. Both are valid during the call only. Groups come in order, in the thread that encodes.
 * Return false to cancel. */
typedef bool (*qvl_group_fn)(size_t input, int64_t group, const struct qvl_item *item,
                             const struct qvl_features *features, void *user);

typedef struct qvl_encode_options {
    size_t size;
    qvl_tap_fn tap; /* may be NULL; slows encoding down */
    void *tap_user;
    qvl_progress_fn progress; /* may be NULL */
    void *progress_user;
    qvl_profile *profile; /* may be NULL; receives the stages from patch rows on */
    qvl_group_fn group;   /* may be NULL; qvl_encode hands groups out by it as they are done. Not with a tap */
    void *group_user;
} qvl_encode_options;

QVL_API void qvl_encode_options_init(qvl_encode_options *options);

/* A picture as its file stores it. */
typedef struct qvl_stored {
    const char *format;    /* "JPEG", "PNG", ...; "RGB8" for raw pixels; static. NULL where unknown */
    int64_t width, height; /* before orientation; 0 where unknown */
    int32_t orientation;   /* as EXIF numbers it, 1..8, from EXIF or XMP; 1 where neither says; 0 where unknown */
    bool oriented;         /* reading turned the picture upright: orientation is not 1 and was applied */
    int64_t decode_bytes;  /* about what decoding takes beside the file's bytes and the RGB pixels */
} qvl_stored;

/* Which frames of a clip were taken, and when they are shown. Lives as long as the result it belongs to. */
typedef struct qvl_clip_info {
    int64_t frame_count;    /* frames taken, padding not counted */
    const int64_t *indices; /* [frame_count] their numbers in the source, from 0 */
    const double *seconds;  /* [frame_count] when each is shown */
    int64_t group_count;    /* grid.t */
    const double
        *timestamps; /* [group_count] the second in each group's label: the mean of its first and last frame */
    int64_t source_frames; /* frames of the source; of a list, its length */
    double rate;           /* frames a second of the source, assumed ones too; 0: times were given in seconds */
    bool rate_assumed;     /* the source did not say; options.clip.assumed_rate was taken */
    bool variable_rate;    /* of a file: its frames are not evenly spaced */
    double sampled_fps;    /* frames a second that were asked for; 0: nothing was sampled by it */
    qvl_limits limits;     /* in force, of frames x height x width; zero where the options give the exact size */
} qvl_clip_info;

/* How many of an item's temporal groups went through the tower in this call, and how many had their features in a
 * cache. All 0 where nothing was encoded. A picture is one group. */
typedef struct qvl_origin {
    int64_t encoded, memory, disk;
} qvl_origin;

/* Where an item of a result comes from, and what became of it. */
typedef struct qvl_item {
    qvl_grid grid;
    int64_t tokens;                      /* t * h * w / merge^2 */
    int64_t source_width, source_height; /* as decoded, upright; 0 where unknown */
    int64_t width, height;               /* after resizing, in pixels; 0 where unknown */
    qvl_stored stored;
    const qvl_clip_info *clip; /* NULL: a picture. Freed with the result */
    qvl_origin origin;
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
    struct qvl_shared_features *shared; /* what the arrays belong to if others show them too; NULL in features that
                                           callers make */
} qvl_features;

/* count pictures, at least one, to features. *features belongs to the caller: qvl_features_free.
 * From the second temporal group on, reading and resizing run ahead in a thread of their own; the first input that
 * fails, in order, is the error. With a session's cache what is in it is not encoded again: items say where their
 * features came from. */
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

/* Bytes that qvl_encode allocates, apart from small things. Weights stay. Inputs are read, resized and encoded one
 * temporal group at a time; of several groups the next ones are read meanwhile. */
typedef struct qvl_memory {
    int64_t weights;  /* packed, in the compute dtype */
    int64_t pictures; /* most of one picture at a time: its file, its pixels, the resized ones */
    int64_t patches;  /* patch rows of the largest group */
    int64_t scratch;  /* of the tower for it: qvl_vision_scratch */
    int64_t features; /* the result */
    int64_t peak;     /* the most there is at one time, caches aside */
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
    /* Of the peak: the median of the steady runs, those between two peaks within a tenth of the best one (on a machine shared
     * with others the pace changes between a run and its peak); seconds against peak if there is none. */
    double share;
    int32_t steady_runs;
} qvl_kernel_time;

#define QVL_MAX_KERNELS 16

/* Times the products and the attention of one block and of the merger on `rows` patch rows that see each other
 * (a multiple of merge^2; random data), runs times each, taking turns with the peak. Fills times[0 .. *count - 1].
 * *copy_rate: bytes read plus written per second in copying more than the caches hold. QVL_OPEN_CONFIG is enough. */
QVL_API qvl_status qvl_bench_kernels(const qvl_model *model, int64_t rows, int32_t runs,
                                     qvl_kernel_time times[QVL_MAX_KERNELS], size_t *count, double *copy_rate,
                                     qvl_error *error);

/* *seconds: what the tower would take for these grids if its products and its attention ran at the rate of
 * multiply-adds that load their operands from the nearest cache (timed for some milliseconds on all threads; heads padded to
 * whole tiles where the kernels have tiles) and all else were free. */
QVL_API qvl_status qvl_bench_floor(const qvl_model *model, const qvl_grid *grids, size_t grid_count,
                                   double *seconds, qvl_error *error);

/* -------------------------------------------------------------------------------------------- ring 2: prompts */

/* From a conversation to what the language model reads (docs/PROMPT.md). A prompter holds what a folder has for
 * it: tokenizer, chat template, the ids of the placeholders and, if its model was opened with weights, the
 * token embeddings, whose file stays mapped. Immutable once open; may be shared by threads. */
typedef struct qvl_prompter qvl_prompter;

typedef struct qvl_prompter_options {
    size_t size;
    const char *template_text;   /* a template to use instead of the folder's; NULL */
    const char *template_name;   /* which of the folder's templates, where it has named ones; NULL: the default, or
                                  tool_use for chats with tools */
    const char *template_source; /* what messages call template_text, such as its file; NULL: "template" */
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
    const char *key; /* of patches and features: 64 hex digits for what they show, such as the key of an
                                     earlier prompt's item; NULL: their values are hashed */
    const double
        *timestamps; /* of a video in patches or features: the second of each temporal group, grid.t of them;
                                 NULL: those of its item, if that has them */
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
    qvl_progress_fn progress; /* of opening videos, and of encoding; may be NULL */
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

/* -------------------------------------------------------------------------------------------- ring 2: answers */

/* The language model of a folder (docs/LANGUAGE_MODEL.md). Its weights stay where they lie, in the mapped files.
 * Immutable once open; may be shared by threads. */
typedef struct qvl_lm qvl_lm;

typedef struct qvl_lm_options {
    size_t size;
} qvl_lm_options;

QVL_API void qvl_lm_options_init(qvl_lm_options *options);

/* What a language model is. Strings live as long as it is open. */
typedef struct qvl_lm_info {
    const char *model_type; /* config.json's own: "qwen3_vl", ... */
    int32_t layers, hidden_size, intermediate_size, heads, kv_heads, head_dim;
    int32_t vocab_size;                 /* rows of logits */
    int64_t max_positions;              /* entries that a sequence may have */
    int32_t experts, experts_per_token; /* 0: dense */
    int32_t expert_intermediate_size;
    float rope_theta;
    bool tied;                 /* logits are made with the token embeddings */
    const char *weight_types;  /* of the matrices: "BF16", "U32 (MLX, 4 bits)", ... or "mixed" */
    const char *tensor_prefix; /* naming generation: "model.language_model.", ... */
    int64_t parameter_count;
    int64_t weight_bytes;  /* of all its tensors, as stored */
    int64_t decode_bytes;  /* of those, what one decoded token reads */
    int64_t cache_bytes;   /* of keys and values, per entry */
    int32_t linear_layers; /* those of linear attention, which have a state instead; 0 in Qwen3-VL */
    int64_t state_bytes;   /* of all their states, per sequence, however long */
    qvl_dtype cache_dtype; /* F32 in f32 mode, BF16 in bf16 mode */
} qvl_lm_info;

/* Reads text_config and finds the tensors. QVL_OPEN_CONFIG is enough of a model, whose dtype, threads and kernels
 * are used; it must stay open. What is not supported is refused by name and value.
 * *lm belongs to the caller: qvl_lm_close. */
QVL_API qvl_status qvl_lm_open(const qvl_model *model, const qvl_lm_options *options, qvl_lm **lm,
                               qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. All sequences must be closed before. */
QVL_API void qvl_lm_close(qvl_lm **lm);
QVL_API const qvl_lm_info *qvl_lm_get_info(const qvl_lm *lm);

/* What a language model knows of one conversation: keys and values of every entry, and the offset of positions.
 * One owner at a time. */
typedef struct qvl_sequence qvl_sequence;

typedef struct qvl_sequence_options {
    size_t size;
    int64_t max_length; /* entries; 0 (default): the model's max_positions. Memory is taken as entries come */
    int64_t chunk;      /* entries of a prefill that go through the layers at once, 1..4096; default 1024. Results
                           do not depend on it (docs/LANGUAGE_MODEL.md says how far) */
    int64_t
        snapshot_bytes; /* of hybrid models: most that snapshots of linear attention may take (see marks below);
                               default 2^30, 0: none are kept */
} qvl_sequence_options;

QVL_API void qvl_sequence_options_init(qvl_sequence_options *options);
/* A max_length above the model's, or one that this machine's memory cannot hold, is refused with the numbers.
 * *sequence belongs to the caller: qvl_sequence_close. */
QVL_API qvl_status qvl_sequence_open(const qvl_lm *lm, const qvl_sequence_options *options,
                                     qvl_sequence **sequence, qvl_error *error);
QVL_API void qvl_sequence_close(qvl_sequence **sequence);
/* Entries so far. */
QVL_API int64_t qvl_sequence_length(const qvl_sequence *sequence);
/* The position of the next entry, on all axes, is its number plus this. */
QVL_API int64_t qvl_sequence_rope_delta(const qvl_sequence *sequence);
/* Bytes its state takes; what it shares with forks is counted by each. */
QVL_API int64_t qvl_sequence_bytes(const qvl_sequence *sequence);

typedef struct qvl_decode_options {
    size_t size;
    qvl_tap_fn tap; /* may be NULL; sees every stage of every chunk, and the logits of all its rows */
    void *tap_user;
    qvl_progress_fn progress; /* called after every layer; may be NULL. In entries times layers */
    void *progress_user;
    const int64_t
        *marks; /* [mark_count] entries, in any order, that truncation may want to come back to: a prefill
                             keeps a snapshot there in hybrid models, whose state cannot be cut back; the least recently
                             used goes when snapshot_bytes are full. Others ignore them */
    size_t mark_count;
} qvl_decode_options;

QVL_API void qvl_decode_options_init(qvl_decode_options *options);

/* Entries first .. prompt->length - 1 of a built prompt of the same model and dtype. first must be the sequence's
 * length: what is before is taken as given. logits: [vocab_size] of the last entry; may be NULL. A call that fails
 * or is cancelled leaves the sequence as it was. Logits that are not finite are QVL_ERROR_NUMERIC. */
QVL_API qvl_status qvl_sequence_prefill(qvl_sequence *sequence, const qvl_prompt *prompt, int64_t first,
                                        const qvl_decode_options *options, float *logits, qvl_error *error);
/* One token more, 0 <= token < the rows of the embedding table. */
QVL_API qvl_status qvl_sequence_step(qvl_sequence *sequence, int64_t token, const qvl_decode_options *options,
                                     float *logits, qvl_error *error);
/* A copy that goes its own way from here; whole pages of the cache stay shared. *copy belongs to the caller. */
QVL_API qvl_status qvl_sequence_fork(const qvl_sequence *sequence, qvl_sequence **copy, qvl_error *error);
/* The most entries, at most length, that truncation can keep: length itself, but in hybrid models only the sequence's
 * own length, a snapshot's, or 0. */
QVL_API int64_t qvl_sequence_reachable(const qvl_sequence *sequence, int64_t length);
/* Keeps the first length entries, which must be reachable. rope_delta: of what is left (qvl_prompt_delta_at). */
QVL_API qvl_status qvl_sequence_truncate(qvl_sequence *sequence, int64_t length, int64_t rope_delta,
                                         qvl_error *error);

/* How a token is chosen from the logits: transformers' names and rules, docs/ASK.md has them. */
typedef struct qvl_sampling {
    size_t size;
    bool do_sample;            /* false (default): the largest logit, of equals the lowest id */
    double temperature;        /* default 1; 0: as without do_sample */
    int32_t top_k;             /* 0 (default): all */
    double top_p, min_p;       /* 0..1; 1 and 0 (the defaults): all */
    double repetition_penalty; /* > 0, 1 (default): none. For tokens of prompt and answer */
    double presence_penalty;   /* 0 (default): none. For tokens of the answer */
    uint64_t seed;             /* an equal one, with equal logits, gives the same tokens on every machine */
} qvl_sampling;

QVL_API void qvl_sampling_init(qvl_sampling *sampling);

/* A token and the logarithm of its probability, as the model has it: before penalties, temperature and limits. */
typedef struct qvl_logprob {
    int32_t id; /* -1: none */
    float logprob;
} qvl_logprob;

/* One token of an answer, as soon as it is there. */
typedef struct qvl_answer_token {
    int32_t id;
    float logprob; /* 0 unless asked for */
    const char
        *text; /* what of the answer's text is now certain: byte_count bytes and a NUL, whole characters. What
                         could begin a stop string comes later, or not at all */
    size_t byte_count;
    bool thinking; /* the text belongs to the thinking, not to the answer */
} qvl_answer_token;

/* Return false to end the answer here. */
typedef bool (*qvl_token_fn)(const qvl_answer_token *token, void *user);

#define QVL_MAX_TOP_LOGPROBS 20

typedef struct qvl_generate_options {
    size_t size;
    qvl_sampling sampling;
    int64_t max_new_tokens;  /* 0 (default): as many as there is room for; more than that is refused */
    const char *const *stop; /* the answer ends once one of these texts is complete, before it; none empty */
    size_t stop_count;
    bool logprobs;        /* of the answer's tokens */
    int32_t top_logprobs; /* 0..QVL_MAX_TOP_LOGPROBS: of the most likely ones at each place */
    qvl_token_fn token;   /* may be NULL */
    void *token_user;
    qvl_progress_fn progress; /* may be NULL. While the prompt is read: in entries times layers; then after every
                                 layer with done and total 0. False ends the answer with what there is of it */
    void *progress_user;
} qvl_generate_options;

QVL_API void qvl_generate_options_init(qvl_generate_options *options);
/* The same, then what the folder's generation_config.json says of sampling and max_new_tokens; where it is silent,
 * transformers' values (top_k 50). Other settings of it that would change an answer are a note. */
QVL_API qvl_status qvl_generate_options_read(const qvl_prompter *prompter, qvl_generate_options *options,
                                             qvl_error *error);

/* A sequence that answers, and knows what it holds: of the next prompt it reads only what is new. One owner. */
typedef struct qvl_generator qvl_generator;

/* options: of its sequence. lm and prompter are of one folder and stay open.
 * *generator belongs to the caller: qvl_generator_close. */
QVL_API qvl_status qvl_generator_open(const qvl_lm *lm, const qvl_prompter *prompter,
                                      const qvl_sequence_options *options, qvl_generator **generator,
                                      qvl_error *error);
/* Accepts NULL and a pointer to NULL; nulls the pointer. */
QVL_API void qvl_generator_close(qvl_generator **generator);

typedef struct qvl_generator_info {
    int64_t max_length; /* entries, of prompt and answer */
    int64_t held;       /* entries the sequence holds now */
    int64_t bytes;      /* that its state takes */
    size_t
        stop_count; /* tokens that end an answer: those of generation_config.json, config.json and the tokenizer */
    const int32_t *stop_tokens; /* ascending; live as long as the generator */
} qvl_generator_info;

QVL_API void qvl_generator_get_info(const qvl_generator *generator, qvl_generator_info *info);

/* Why an answer ended. */
typedef enum qvl_finish {
    QVL_FINISH_TOKEN = 0,    /* a stop token */
    QVL_FINISH_STRING = 1,   /* a stop string */
    QVL_FINISH_LENGTH = 2,   /* max_new_tokens, or no more room */
    QVL_FINISH_CANCELLED = 3 /* a callback returned false */
} qvl_finish;

/* "stop", "stop", "length", "cancelled": OpenAI's words. Static string; NULL outside the enum. */
QVL_API const char *qvl_finish_name(qvl_finish finish);

/* Why no more of a sequence was used again. */
typedef enum qvl_difference {
    QVL_DIFFERENCE_NONE = 0, /* all of it that the prompt has room for was */
    QVL_DIFFERENCE_TEXT = 1, /* there the prompt has another token */
    QVL_DIFFERENCE_MEDIA = 2 /* there it has another picture or clip, or one without a key */
} qvl_difference;

/* "none", "text", "media". Static string; NULL outside the enum. */
QVL_API const char *qvl_difference_name(qvl_difference difference);

typedef struct qvl_answer {
    char *text; /* without special tokens, thinking and the stop string; text_length bytes and a NUL */
    size_t text_length;
    char *reasoning; /* what stood between <think>, which may have been the prompt's, and </think>; NULL: nothing.
                        reasoning_length bytes and a NUL */
    size_t reasoning_length;
    int64_t count;
    int32_t *ids;      /* [count], the stop token included */
    float *logprobs;   /* [count]; NULL unless asked for */
    int32_t top_count; /* top_logprobs of the options */
    qvl_logprob *top;  /* [count, top_count], most likely first; NULL unless asked for */
    qvl_finish finish;
    int64_t prompt_tokens;      /* entries of the prompt */
    int64_t reused_tokens;      /* of those, what the sequence held already */
    qvl_difference difference;  /* where that ended */
    double prefill_seconds;     /* reading the rest */
    double first_token_seconds; /* from the call to the first token */
    double decode_seconds;      /* from the first token to the last */
} qvl_answer;

/* What qvl_generate would refuse, asked before pictures are encoded: of prompt only its length counts, so a plan is
 * enough. */
QVL_API qvl_status qvl_generate_check(const qvl_generator *generator, const qvl_prompt *prompt,
                                      const qvl_generate_options *options, qvl_error *error);
/* Answers a built prompt. What the sequence holds of it already, the same ids and the same pictures by their keys, is
 * kept; the rest of the sequence goes. An answer that a callback ended is no error. After an error the generator can be
 * used on. *answer belongs to the caller: qvl_answer_free. */
QVL_API qvl_status qvl_generate(qvl_generator *generator, const qvl_prompt *prompt,
                                const qvl_generate_options *options, qvl_answer *answer, qvl_error *error);
/* Accepts NULL and an empty struct; empties it. */
QVL_API void qvl_answer_free(qvl_answer *answer);

/* ---- measuring */

/* How fast a language model is, and what it could be. Medians. */
typedef struct qvl_lm_times {
    int64_t rows;           /* of one prefill */
    double prefill_seconds; /* of them, logits of the last one included */
    double step_seconds;    /* one token at the end of that prefill */
    int64_t step_bytes;     /* that it reads of weights, keys, values and states of linear attention */
    double read_rate;       /* bytes per second in which all threads read the same weights, adding them up */
    double product_flops;   /* of the matrix products of one layer, of the commoner kind, at `rows` rows */
    double product_seconds; /* as the prefill runs them, with weights where they lie */
    double packed_seconds;  /* with weights that were packed before, as the tower's are */
} qvl_lm_times;

/* rows 2..4096; every time is taken runs times, taking turns. */
QVL_API qvl_status qvl_bench_lm(const qvl_lm *lm, int64_t rows, int32_t runs, qvl_lm_times *times,
                                qvl_error *error);

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
