/*
 * qvl: pictures into what a Qwen vision-language model reads.
 *
 * Ring 1  open a model folder, encode pictures          qvl_model_open, qvl_encode
 * Ring 2  the same stage by stage                       qvl_image_read, qvl_preprocess, qvl_vision_encode, ...
 * Ring 3  pure helpers and files                        qvl_smart_resize, qvl_resize, qvl_tensors_save, ...
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
#define QVL_CPU_AVX2 0x1u   /* AVX2, FMA, F16C */
#define QVL_CPU_AVX512 0x2u /* AVX-512 F, BW, DQ, VL */
#define QVL_CPU_ALL 0xffffffffu

QVL_API void qvl_model_options_init(qvl_model_options *options);

/* Opens a published checkpoint folder (config.json, preprocessor files, safetensors). *model belongs to the
 * caller: qvl_model_close. The folder's files stay mapped only while this call runs. */
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
    const char *tensor_prefix; /* naming generation: "model.visual.", "visual.", ... */
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
} qvl_input;

/* How RGB8 becomes patch rows; each follows one reference exactly (docs/NUMERICS.md). */
typedef enum qvl_preset {
    QVL_PRESET_TRANSFORMERS = 0,     /* torchvision's uint8 path on the CPU: what AutoProcessor does */
    QVL_PRESET_TRANSFORMERS_PIL = 1, /* transformers' Pillow backend */
    QVL_PRESET_MLX = 2               /* Pillow resize, normalisation as mlx-vlm */
} qvl_preset;

/* "transformers", "transformers-pil", "mlx"; NULL outside the enum. */
QVL_API const char *qvl_preset_name(qvl_preset preset);

typedef struct qvl_preprocess_options {
    size_t size;
    qvl_preset preset;
    int64_t min_pixels, max_pixels; /* 0: the folder's limit; each works alone */
    int64_t min_tokens, max_tokens; /* 0: unset; else in merged tokens, and instead of min_pixels / max_pixels */
    int64_t width, height;          /* 0: smart_resize; else the exact size, multiples of patch x merge */
    int64_t max_source_pixels;      /* a picture whose header says more is refused; default 178,956,970 */
} qvl_preprocess_options;

QVL_API void qvl_preprocess_options_init(qvl_preprocess_options *options);

typedef struct qvl_encode_options {
    size_t size;
    qvl_tap_fn tap; /* may be NULL; slows encoding down */
    void *tap_user;
    qvl_progress_fn progress; /* may be NULL */
    void *progress_user;
} qvl_encode_options;

QVL_API void qvl_encode_options_init(qvl_encode_options *options);

/* Where an item of a result comes from, and what became of it. */
typedef struct qvl_item {
    qvl_grid grid;
    int64_t tokens;                      /* t * h * w / merge^2 */
    int64_t source_width, source_height; /* as decoded; 0 where unknown */
    int64_t width, height;               /* after resizing, in pixels; 0 where unknown */
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
    int64_t width, height;
    uint8_t *pixels;
} qvl_image;

/* Reads JPEG or PNG, told apart by content, or copies raw pixels. max_pixels is checked against the header
 * before anything of the picture's size is allocated; 0 means the default of 178,956,970.
 * *image belongs to the caller: qvl_image_free. */
QVL_API qvl_status qvl_image_read(const qvl_input *input, int64_t max_pixels, qvl_image *image, qvl_error *error);
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

/* ----------------------------------------------------------------------------------- ring 3: pure helpers, files
 */

/* The size a picture is resized to: transformers' smart_resize (image variant) at factor = patch x merge.
 * height, width >= 1; factor >= 1; 1 <= limits.min_pixels, max_pixels. */
QVL_API qvl_status qvl_smart_resize(int64_t height, int64_t width, int64_t factor, qvl_limits limits,
                                    int64_t *out_height, int64_t *out_width, qvl_error *error);

/* Bicubic resize of RGB8 exactly as the preset's reference does it. threads as in qvl_model_options.
 * *out belongs to the caller. */
QVL_API qvl_status qvl_resize(const qvl_image *image, int64_t width, int64_t height, qvl_preset preset,
                              int32_t threads, qvl_image *out, qvl_error *error);

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
