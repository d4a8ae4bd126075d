"""The public API of include/qvl.h through ctypes, for the oracle scripts.

Pictures are numpy arrays [height, width, 3] of uint8. Results are numpy arrays that own their memory.
A call that fails raises QvlError with the library's status and message.

The library is $QVL_BUILD_DIR/libqvl.so; without that variable build/libqvl.so of this repository.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32
from ctypes import c_uint8, c_void_p
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("QVL_BUILD_DIR", REPOSITORY / "build")) / "libqvl.so"

STATUS = ("ok", "argument", "memory", "io", "format", "unsupported", "limit", "model", "numeric", "cancelled")
PRESETS = {"transformers": 0, "transformers-pil": 1, "mlx": 2}
LEVELS = {"weights": 0, "config": 1, "headers": 2}
ADDED = {"all": 0, "ordinary": 1, "none": 2}
DTYPES = {
    "F32": 0, "BF16": 1, "F16": 2, "I64": 3, "U8": 4, "I32": 5, "F64": 6, "I16": 7, "I8": 8, "U16": 9, "U32": 10,
    "U64": 11, "BOOL": 12, "F8_E4M3": 13, "F8_E5M2": 14, "F8_E8M0": 15, "F6_E2M3": 16, "F6_E3M2": 17, "F4": 18,
    "C64": 19, "F8_E4M3FNUZ": 20, "F8_E5M2FNUZ": 21,
}
NUMPY_TYPES = {  # BF16 has no numpy type: see array_of
    0: np.float32, 2: np.float16, 3: np.int64, 4: np.uint8, 5: np.int32, 6: np.float64, 7: np.int16, 8: np.int8,
    9: np.uint16, 10: np.uint32, 11: np.uint64, 12: np.bool_,
}
MAX_DIMS = 6
MAX_DEEPSTACK = 16


# ---- structs, in the order of qvl.h


class Error(ctypes.Structure):
    _fields_ = [("status", c_int32), ("message", c_char * 1020)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("dtype", c_int32), ("ndim", c_int32), ("shape", c_int64 * MAX_DIMS),
        ("data", c_void_p),
    ]


class Grid(ctypes.Structure):
    _fields_ = [("t", c_int64), ("h", c_int64), ("w", c_int64)]


LogFn = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)
ProgressFn = ctypes.CFUNCTYPE(c_bool, c_int64, c_int64, c_void_p)
TapFn = ctypes.CFUNCTYPE(None, POINTER(Tensor), c_void_p)


class ModelOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("level", c_int32), ("dtype", c_int32), ("threads", c_int32), ("cpu_mask", c_uint32),
        ("log", LogFn), ("log_user", c_void_p),
    ]


class Limits(ctypes.Structure):
    _fields_ = [("min_pixels", c_int64), ("max_pixels", c_int64)]


class ModelInfo(ctypes.Structure):
    _fields_ = [
        ("folder", c_char_p), ("model_type", c_char_p),
        ("depth", c_int32), ("hidden_size", c_int32), ("num_heads", c_int32), ("head_dim", c_int32),
        ("intermediate_size", c_int32), ("out_hidden_size", c_int32),
        ("in_channels", c_int32), ("patch_size", c_int32), ("temporal_patch_size", c_int32),
        ("spatial_merge_size", c_int32),
        ("num_position_embeddings", c_int32),
        ("deepstack_count", c_int32), ("deepstack_indexes", c_int32 * MAX_DEEPSTACK),
        ("rope_theta", c_float),
        ("image_limits", Limits), ("image_limits_source", c_char_p),
        ("image_mean", c_float * 3), ("image_std", c_float * 3),
        ("rescale_factor", c_double),
        ("tensor_source", c_char_p), ("tensor_prefix", c_char_p), ("tensor_layout", c_char_p),
        ("tensor_dtype", c_char_p),
        ("tensor_count", c_int32), ("file_count", c_int32), ("parameter_count", c_int64),
        ("compute_dtype", c_int32), ("kernels", c_char_p), ("threads", c_int32),
        ("video_limits", Limits), ("video_limits_source", c_char_p), ("video_fps", c_double),
        ("video_min_frames", c_int64), ("video_max_frames", c_int64),
    ]


class Input(ctypes.Structure):
    pass


Input._fields_ = [
    ("kind", c_int32), ("name", c_char_p), ("bytes", c_void_p), ("byte_count", c_size_t),
    ("width", c_int64), ("height", c_int64), ("row_stride", c_size_t), ("limits", Limits),
    ("frames", POINTER(Input)), ("frame_count", c_size_t), ("seconds", POINTER(c_double)),
    ("indices", POINTER(c_int64)), ("rate", c_double), ("fps", c_double), ("num_frames", c_int64),
    ("min_frames", c_int64), ("max_frames", c_int64),
]


class MediaOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("max_pixels", c_int64), ("orientation", c_int32), ("alpha", c_int32),
        ("alpha_colour", c_uint8 * 3), ("gray16", c_int32), ("animation", c_int32),
    ]


class ClipOptions(ctypes.Structure):
    _fields_ = [
        ("fps", c_double), ("num_frames", c_int64), ("min_frames", c_int64), ("max_frames", c_int64),
        ("min_pixels", c_int64), ("max_pixels", c_int64), ("frame_cap", c_int32), ("max_frame_tokens", c_int64),
        ("assumed_rate", c_double), ("single_frame", c_int32), ("times", c_int32),
    ]


class PreprocessOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("preset", c_int32),
        ("min_pixels", c_int64), ("max_pixels", c_int64), ("min_tokens", c_int64), ("max_tokens", c_int64),
        ("width", c_int64), ("height", c_int64), ("profile", c_void_p), ("media", MediaOptions), ("clip", ClipOptions),
    ]


class EncodeOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("tap", TapFn), ("tap_user", c_void_p),
        ("progress", ProgressFn), ("progress_user", c_void_p), ("profile", c_void_p),
        ("group", c_void_p), ("group_user", c_void_p),
    ]


class Stored(ctypes.Structure):
    _fields_ = [
        ("format", c_char_p), ("width", c_int64), ("height", c_int64), ("orientation", c_int32), ("oriented", c_bool),
        ("decode_bytes", c_int64),
    ]


class ClipInfo(ctypes.Structure):
    _fields_ = [
        ("frame_count", c_int64), ("indices", POINTER(c_int64)), ("seconds", POINTER(c_double)),
        ("group_count", c_int64), ("timestamps", POINTER(c_double)), ("source_frames", c_int64), ("rate", c_double),
        ("rate_assumed", c_bool), ("variable_rate", c_bool), ("sampled_fps", c_double), ("limits", Limits),
    ]


class Item(ctypes.Structure):
    _fields_ = [
        ("grid", Grid), ("tokens", c_int64), ("source_width", c_int64), ("source_height", c_int64),
        ("width", c_int64), ("height", c_int64), ("stored", Stored), ("clip", POINTER(ClipInfo)),
        ("origin", c_int64 * 3),
    ]


class Features(ctypes.Structure):
    _fields_ = [
        ("dtype", c_int32), ("tokens", c_int64), ("width", c_int64), ("embeds", c_void_p),
        ("deepstack_count", c_int32), ("deepstack", c_void_p * MAX_DEEPSTACK),
        ("item_count", c_size_t), ("items", POINTER(Item)), ("shared", c_void_p),
    ]


class Image(ctypes.Structure):
    _fields_ = [("width", c_int64), ("height", c_int64), ("pixels", POINTER(c_uint8)), ("stored", Stored)]


class Patches(ctypes.Structure):
    _fields_ = [
        ("rows", c_int64), ("cols", c_int64), ("values", POINTER(c_float)), ("item_count", c_size_t),
        ("items", POINTER(Item)),
    ]


class TokenizeOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("added", c_int32), ("marked", c_bool)]


class Tokens(ctypes.Structure):
    _fields_ = [("count", c_size_t), ("ids", POINTER(c_int32)), ("starts", POINTER(c_size_t))]


class Text(ctypes.Structure):
    _fields_ = [("bytes", c_void_p), ("byte_count", c_size_t)]


class TemplateOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("name", c_char_p), ("time", c_int64), ("max_steps", c_int64), ("max_depth", c_int64),
        ("max_output", c_int64), ("max_memory", c_int64),
    ]


class Span(ctypes.Structure):
    _fields_ = [("start", c_size_t), ("end", c_size_t)]


class Rendered(ctypes.Structure):
    _fields_ = [
        ("text", c_void_p), ("length", c_size_t), ("generation_count", c_size_t), ("generation", POINTER(Span)),
    ]


# ---- the library


def _declare(library):
    """Argument types, so that ctypes checks calls and passes 64-bit values whole."""
    error = POINTER(Error)
    handle = POINTER(c_void_p)
    signatures = {
        "qvl_version": (c_char_p, []),
        "qvl_model_options_init": (None, [POINTER(ModelOptions)]),
        "qvl_preprocess_options_init": (None, [POINTER(PreprocessOptions)]),
        "qvl_encode_options_init": (None, [POINTER(EncodeOptions)]),
        "qvl_model_open": (c_int32, [c_char_p, POINTER(ModelOptions), handle, error]),
        "qvl_model_close": (None, [handle]),
        "qvl_model_get_info": (POINTER(ModelInfo), [c_void_p]),
        "qvl_model_fingerprint": (c_int32, [c_void_p, c_char_p, POINTER(c_char), error]),
        "qvl_session_open": (c_int32, [c_void_p, handle, error]),
        "qvl_session_close": (None, [handle]),
        "qvl_encode": (
            c_int32,
            [c_void_p, POINTER(Input), c_size_t, POINTER(PreprocessOptions), POINTER(EncodeOptions),
             POINTER(Features), error]),
        "qvl_features_free": (None, [POINTER(Features)]),
        "qvl_media_options_init": (None, [POINTER(MediaOptions)]),
        "qvl_media_options_reference": (None, [POINTER(MediaOptions)]),
        "qvl_image_read": (c_int32, [POINTER(Input), POINTER(MediaOptions), POINTER(Image), error]),
        "qvl_image_probe": (c_int32, [POINTER(Input), POINTER(MediaOptions), POINTER(Image), error]),
        "qvl_image_free": (None, [POINTER(Image)]),
        "qvl_preprocess": (
            c_int32,
            [c_void_p, POINTER(Image), c_size_t, POINTER(PreprocessOptions), POINTER(Patches), error]),
        "qvl_patchify": (c_int32, [c_void_p, POINTER(Image), c_size_t, c_int32, POINTER(Patches), error]),
        "qvl_preprocess_inputs": (
            c_int32,
            [c_void_p, POINTER(Input), c_size_t, POINTER(PreprocessOptions), POINTER(Patches), error]),
        "qvl_patches_free": (None, [POINTER(Patches)]),
        "qvl_vision_encode": (
            c_int32, [c_void_p, POINTER(Patches), POINTER(EncodeOptions), POINTER(Features), error]),
        "qvl_vision_blocks": (
            c_int32,
            [c_void_p, POINTER(c_float), POINTER(Grid), c_size_t, POINTER(EncodeOptions), POINTER(Features), error]),
        "qvl_vision_scratch": (c_int32, [c_void_p, POINTER(Grid), c_size_t, POINTER(c_size_t), error]),
        "qvl_tokenizer_open": (c_int32, [c_char_p, LogFn, c_void_p, handle, error]),
        "qvl_tokenizer_close": (None, [handle]),
        "qvl_tokenize_options_init": (None, [POINTER(TokenizeOptions)]),
        "qvl_tokenize": (
            c_int32, [c_void_p, c_char_p, c_size_t, POINTER(TokenizeOptions), POINTER(Tokens), error]),
        "qvl_tokens_free": (None, [POINTER(Tokens)]),
        "qvl_detokenize": (c_int32, [c_void_p, c_void_p, c_size_t, c_bool, POINTER(Text), error]),
        "qvl_text_mark": (c_int32, [c_void_p, c_char_p, c_size_t, c_int32, POINTER(Text), error]),
        "qvl_text_unmark": (c_int32, [c_char_p, c_size_t, POINTER(Text), error]),
        "qvl_text_free": (None, [POINTER(Text)]),
        "qvl_template_options_init": (None, [POINTER(TemplateOptions)]),
        "qvl_template_render": (
            c_int32, [c_char_p, c_char_p, POINTER(TemplateOptions), POINTER(Rendered), error]),
        "qvl_rendered_free": (None, [POINTER(Rendered)]),
        "qvl_smart_resize": (
            c_int32, [c_int64, c_int64, c_int64, Limits, POINTER(c_int64), POINTER(c_int64), error]),
        "qvl_resize": (
            c_int32, [POINTER(Image), c_int64, c_int64, c_int32, c_int32, POINTER(Image), error]),
        "qvl_tensors_save": (
            c_int32, [c_char_p, POINTER(Tensor), c_size_t, POINTER(c_char_p), c_size_t, error]),
        "qvl_tensor_file_open": (c_int32, [c_char_p, handle, error]),
        "qvl_tensor_file_close": (None, [handle]),
        "qvl_tensor_file_count": (c_size_t, [c_void_p]),
        "qvl_tensor_file_get": (Tensor, [c_void_p, c_size_t]),
        "qvl_tensor_file_find": (c_bool, [c_void_p, c_char_p, POINTER(Tensor)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _declare(ctypes.CDLL(str(LIBRARY)))


class QvlError(Exception):
    """status is the name ("argument", "limit", ...), message the library's own line."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


def _check(status, error):
    if status != 0:
        raise QvlError(STATUS[status], error.message.decode(errors="replace"))


def _options(struct, init, values):
    """A struct filled by its init function, then by keyword. The size check catches a header that has moved on."""
    options = struct()
    init(byref(options))
    if options.size != ctypes.sizeof(struct):
        raise RuntimeError(f"{struct.__name__} has {ctypes.sizeof(struct)} bytes here, {options.size} in {LIBRARY}")
    for name, value in values.items():
        if name not in dict(struct._fields_):
            raise TypeError(f"{struct.__name__} has no field {name!r}")
        setattr(options, name, value)
    return options


def version():
    return lib.qvl_version().decode()


# ---- arrays in and out


def _image_view(array):
    """An Image over a contiguous uint8 [h, w, 3] array. Keep the second value alive as long as the first."""
    array = np.ascontiguousarray(array)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise TypeError(f"need uint8 [height, width, 3], got {array.dtype} {array.shape}")
    pixels = array.ctypes.data_as(POINTER(c_uint8))
    return Image(width=array.shape[1], height=array.shape[0], pixels=pixels), array


def _image_views(arrays):
    views = [_image_view(array) for array in arrays]
    return (Image * len(views))(*[view for view, _ in views]), [array for _, array in views]


def _image_take(image):
    """Copies an Image of the library to an array and frees it."""
    array = np.ctypeslib.as_array(image.pixels, (image.height, image.width, 3)).copy()
    lib.qvl_image_free(byref(image))
    return array


def array_of(dtype, shape, address):
    """A copy of memory of the library as an array; BF16 is widened to float32 (exactly)."""
    shape = tuple(int(n) for n in shape)
    kind = np.uint16 if dtype == DTYPES["BF16"] else NUMPY_TYPES[dtype]
    count = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    raw = ctypes.string_at(address, count) if count else b""
    array = np.frombuffer(bytearray(raw), kind).reshape(shape)
    if dtype == DTYPES["BF16"]:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _items_of(result):
    names = ("tokens", "source_width", "source_height", "width", "height")
    items = []
    for i in range(result.item_count):
        item = result.items[i]
        entry = {name: getattr(item, name) for name in names}
        entry["grid"] = (item.grid.t, item.grid.h, item.grid.w)
        entry["stored"] = {name: getattr(item.stored, name) for name, _ in Stored._fields_}
        if item.clip:
            clip = item.clip.contents
            entry["indices"] = clip.indices[:clip.frame_count]
            entry["timestamps"] = clip.timestamps[:clip.group_count]
        items.append(entry)
    return items


def _grids_of(items):
    return np.array([item["grid"] for item in items], np.int64).reshape(-1, 3)


class Frames:
    """A clip as RGB arrays with a rate and perhaps indices, or with seconds."""

    def __init__(self, frames, rate=0.0, indices=None, seconds=None):
        self.frames, self.rate, self.indices, self.seconds = list(frames), rate, indices, seconds

    def input(self):
        frames, kept = _inputs_of(self.frames)
        value = Input(3, b"frames", None, 0, 0, 0, 0)
        value.frames, value.frame_count, value.rate = frames, len(self.frames), self.rate
        if self.indices is not None:
            value.indices = (c_int64 * len(self.frames))(*self.indices)
        if self.seconds is not None:
            value.seconds = (c_double * len(self.frames))(*self.seconds)
        return value, [kept, frames, value.indices, value.seconds]


def _input_of(source):
    """An Input for a path, encoded bytes, an RGB array, or Frames; the second value must be kept alive."""
    if isinstance(source, Frames):
        return source.input()
    if isinstance(source, np.ndarray):
        view, array = _image_view(source)
        return Input(2, None, array.ctypes.data, array.nbytes, view.width, view.height, 0), array
    if isinstance(source, (bytes, bytearray)):
        buffer = ctypes.create_string_buffer(bytes(source), len(source) or 1)
        return Input(1, None, ctypes.addressof(buffer), len(source), 0, 0, 0), buffer
    path = os.fsencode(source)
    return Input(0, path, None, 0, 0, 0, 0), path


def _inputs_of(sources):
    pairs = [_input_of(source) for source in sources]
    return (Input * len(pairs))(*[value for value, _ in pairs]), [kept for _, kept in pairs]


# ---- ring 3 and reading


def smart_resize(height, width, factor=32, min_pixels=65536, max_pixels=16777216):
    """(height, width) after smart_resize."""
    out_height, out_width, error = c_int64(), c_int64(), Error()
    limits = Limits(min_pixels, max_pixels)
    _check(
        lib.qvl_smart_resize(height, width, factor, limits, byref(out_height), byref(out_width), byref(error)), error)
    return out_height.value, out_width.value


def resize(array, width, height, preset="transformers", threads=1):
    view, kept = _image_view(array)
    out, error = Image(), Error()
    _check(lib.qvl_resize(byref(view), width, height, PRESETS[preset], threads, byref(out), byref(error)), error)
    del kept
    return _image_take(out)


def read_image(source, policy="default", **options):
    """A path (str or Path), or the bytes of an encoded picture, to (array, facts).

    policy: "default" or "reference"; keywords are fields of qvl_media_options. facts: see probe_image.
    """
    image = _read(lib.qvl_image_read, source, policy, options)
    facts = _facts(image)
    return _image_take(image), facts


def probe_image(source, policy="default", **options):
    """A dict of what read_image would give, from the header: size (width, height), stored_size, format, orientation,
    oriented."""
    return _facts(_read(lib.qvl_image_probe, source, policy, options))


def _read(function, source, policy, fields):
    value, kept = _input_of(source)
    image, error = Image(), Error()
    options = _options(MediaOptions, lib.qvl_media_options_init, {})
    if policy == "reference":
        lib.qvl_media_options_reference(byref(options))
    for name, field in fields.items():
        setattr(options, name, field)
    _check(function(byref(value), byref(options), byref(image), byref(error)), error)
    del kept
    return image


def _facts(image):
    stored = image.stored
    return {
        "size": (image.width, image.height), "stored_size": (stored.width, stored.height),
        "format": stored.format.decode(), "orientation": stored.orientation, "oriented": stored.oriented,
    }


def render_template(template, variables_json, **options):
    """(text, spans of generation blocks in characters). variables_json: str; keywords: qvl_template_options."""
    rendered, error = Rendered(), Error()
    chosen = _options(TemplateOptions, lib.qvl_template_options_init, options)
    _check(
        lib.qvl_template_render(
            template.encode(), variables_json.encode(), byref(chosen), byref(rendered), byref(error)), error)
    text = ctypes.string_at(rendered.text, rendered.length)
    spans = [rendered.generation[i] for i in range(rendered.generation_count)]
    ends = [(len(text[: span.start].decode()), len(text[: span.end].decode())) for span in spans]
    lib.qvl_rendered_free(byref(rendered))
    return text.decode(), ends


def load_tensors(path):
    """{name: array} of a safetensors file; BF16 widened to float32."""
    handle, error = c_void_p(), Error()
    _check(lib.qvl_tensor_file_open(os.fsencode(path), byref(handle), byref(error)), error)
    tensors = {}
    for i in range(lib.qvl_tensor_file_count(handle)):
        tensor = lib.qvl_tensor_file_get(handle, i)
        tensors[tensor.name.decode()] = array_of(tensor.dtype, tensor.shape[: tensor.ndim], tensor.data)
    lib.qvl_tensor_file_close(byref(handle))
    return tensors


# ---- models


class Model:
    """An open folder. level: "weights", "config" or "headers"; dtype: "BF16" or "F32".

    Further keywords are fields of qvl_model_options (threads, cpu_mask). Notes of the library gather in .notes.
    """

    def __init__(self, folder, level="weights", dtype="BF16", **options):
        self.notes = []
        self._log = LogFn(lambda message, _: self.notes.append(message.decode(errors="replace")))
        fields = dict(options, level=LEVELS[level], dtype=DTYPES[dtype], log=self._log)
        chosen, error = _options(ModelOptions, lib.qvl_model_options_init, fields), Error()
        self._model, self._session = c_void_p(), c_void_p()
        _check(lib.qvl_model_open(os.fsencode(folder), byref(chosen), byref(self._model), byref(error)), error)

    def close(self):
        lib.qvl_session_close(byref(self._session))
        lib.qvl_model_close(byref(self._model))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def info(self):
        """The ModelInfo struct; valid until close."""
        return lib.qvl_model_get_info(self._model).contents

    def fingerprint(self, memory_folder=None):
        """Of the tower's weights, 64 hex digits. memory_folder: where results are remembered."""
        text, error = ctypes.create_string_buffer(65), Error()
        memory = None if memory_folder is None else os.fsencode(memory_folder)
        _check(lib.qvl_model_fingerprint(self._model, memory, text, byref(error)), error)
        return text.value.decode()

    def _session_handle(self):
        if not self._session:
            error = Error()
            _check(lib.qvl_session_open(self._model, byref(self._session), byref(error)), error)
        return self._session

    def preprocess(self, pictures, preset="transformers", **options):
        """(pixel_values [rows, cols] float32, grids [n, 3] int64) of a list of arrays, in order.

        Keywords are fields of qvl_preprocess_options: min_pixels, max_tokens, width, ...
        """
        patches, error = Patches(), Error()
        images, kept = _image_views(pictures)
        chosen = _options(
            PreprocessOptions, lib.qvl_preprocess_options_init, dict(options, preset=PRESETS[preset]))
        _check(
            lib.qvl_preprocess(self._model, images, len(images), byref(chosen), byref(patches), byref(error)), error)
        del kept
        return self._patches_take(patches)

    def preprocess_inputs(self, sources, preset="transformers", **options):
        """As preprocess, of paths, encoded bytes or arrays."""
        patches, error = Patches(), Error()
        inputs, kept = _inputs_of(sources)
        chosen = _options(
            PreprocessOptions, lib.qvl_preprocess_options_init, dict(options, preset=PRESETS[preset]))
        status = lib.qvl_preprocess_inputs(
            self._model, inputs, len(inputs), byref(chosen), byref(patches), byref(error))
        _check(status, error)
        del kept
        return self._patches_take(patches)

    def patchify(self, pictures, preset="transformers"):
        """As preprocess, without the resize."""
        patches, error = Patches(), Error()
        images, kept = _image_views(pictures)
        _check(
            lib.qvl_patchify(self._model, images, len(images), PRESETS[preset], byref(patches), byref(error)), error)
        del kept
        return self._patches_take(patches)

    def _patches_take(self, patches):
        values = np.ctypeslib.as_array(patches.values, (patches.rows, patches.cols)).copy()
        grids = _grids_of(_items_of(patches))
        lib.qvl_patches_free(byref(patches))
        return values, grids

    def encode(self, sources, taps=None, progress=None, preprocess=None, preset="transformers"):
        """Features of paths, encoded bytes or arrays: see _features_take.

        taps: a dict that receives {stage name: float32 array}. progress: fn(done, total) -> go on?
        preprocess: a dict of fields of qvl_preprocess_options.
        """
        features, error = Features(), Error()
        inputs, kept = _inputs_of(sources)
        options, callbacks = self._encode_options(taps, progress)
        preprocess_options = _options(
            PreprocessOptions, lib.qvl_preprocess_options_init, dict(preprocess or {}, preset=PRESETS[preset]))
        status = lib.qvl_encode(
            self._session_handle(), inputs, len(inputs), byref(preprocess_options), byref(options), byref(features),
            byref(error))
        _check(status, error)
        del kept, callbacks
        return self._features_take(features)

    def vision_encode(self, pixel_values, grids, taps=None, progress=None):
        """Features of patch rows [rows, cols] float32 with grids [n, 3]."""
        features, error = Features(), Error()
        values = np.ascontiguousarray(pixel_values, np.float32)
        items = (Item * len(grids))(*[Item(grid=Grid(*map(int, grid))) for grid in grids])
        patches = Patches(
            values.shape[0], values.shape[1], values.ctypes.data_as(POINTER(c_float)), len(items), items)
        options, callbacks = self._encode_options(taps, progress)
        status = lib.qvl_vision_encode(
            self._session_handle(), byref(patches), byref(options), byref(features), byref(error))
        _check(status, error)
        del values, callbacks
        return self._features_take(features)

    def vision_blocks(self, hidden, grids, taps=None, with_features=False):
        """(hidden after the last block, features or None) from hidden states [rows, hidden_size] float32."""
        features, error = Features(), Error()
        rows = np.array(hidden, np.float32, order="C", copy=True)
        grid_array = (Grid * len(grids))(*[Grid(*map(int, grid)) for grid in grids])
        options, callbacks = self._encode_options(taps, None)
        status = lib.qvl_vision_blocks(
            self._session_handle(), rows.ctypes.data_as(POINTER(c_float)), grid_array, len(grid_array),
            byref(options), byref(features) if with_features else None, byref(error))
        _check(status, error)
        del callbacks
        return rows, self._features_take(features) if with_features else None

    def vision_scratch(self, grids):
        """Bytes of scratch that encoding these grids in one call needs."""
        size, error = c_size_t(), Error()
        grid_array = (Grid * len(grids))(*[Grid(*map(int, grid)) for grid in grids])
        _check(lib.qvl_vision_scratch(self._model, grid_array, len(grid_array), byref(size), byref(error)), error)
        return size.value

    def _encode_options(self, taps, progress):
        """(options, the callbacks that must stay alive during the call)."""
        fields = {}
        if taps is not None:
            def tap(pointer, _):
                tensor = pointer.contents
                taps[tensor.name.decode()] = array_of(tensor.dtype, tensor.shape[: tensor.ndim], tensor.data)
            fields["tap"] = TapFn(tap)
        if progress is not None:
            fields["progress"] = ProgressFn(lambda done, total, _: bool(progress(done, total)))
        return _options(EncodeOptions, lib.qvl_encode_options_init, fields), fields

    def _features_take(self, features):
        """A dict: embeds [tokens, width], deepstack (list of the same), grids, items, dtype ("F32" or "BF16").

        Arrays are float32; BF16 is widened exactly.
        """
        shape = (features.tokens, features.width)
        items = _items_of(features)
        result = {
            "embeds": array_of(features.dtype, shape, features.embeds),
            "deepstack": [
                array_of(features.dtype, shape, features.deepstack[k]) for k in range(features.deepstack_count)],
            "items": items,
            "grids": _grids_of(items),
            "dtype": next(name for name, value in DTYPES.items() if value == features.dtype),
        }
        lib.qvl_features_free(byref(features))
        return result


# ---- text


def _text_take(text):
    """Copies a Text of the library to bytes and frees it."""
    value = ctypes.string_at(text.bytes, text.byte_count)
    lib.qvl_text_free(byref(text))
    return value


class Tokenizer:
    """The tokenizer of a folder. Text is bytes. Notes of the library gather in .notes."""

    def __init__(self, folder):
        self.notes = []
        self._log = LogFn(lambda message, _: self.notes.append(message.decode(errors="replace")))
        self._tokenizer, error = c_void_p(), Error()
        status = lib.qvl_tokenizer_open(os.fsencode(folder), self._log, None, byref(self._tokenizer), byref(error))
        _check(status, error)

    def close(self):
        lib.qvl_tokenizer_close(byref(self._tokenizer))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _tokens(self, text, added, marked):
        tokens, error = Tokens(), Error()
        options = _options(TokenizeOptions, lib.qvl_tokenize_options_init, {"added": ADDED[added], "marked": marked})
        _check(lib.qvl_tokenize(self._tokenizer, text, len(text), byref(options), byref(tokens), byref(error)), error)
        return tokens

    def encode(self, text, added="all", marked=False):
        """(ids, starts): lists of count and count + 1."""
        tokens = self._tokens(text, added, marked)
        ids, starts = tokens.ids[:tokens.count], tokens.starts[:tokens.count + 1]
        lib.qvl_tokens_free(byref(tokens))
        return ids, starts

    def count(self, text):
        """How many ids, without making a list of them: for timing."""
        tokens = self._tokens(text, "all", False)
        lib.qvl_tokens_free(byref(tokens))
        return tokens.count

    def decode(self, ids, skip_special=False):
        array, text, error = np.ascontiguousarray(ids, np.int32), Text(), Error()
        status = lib.qvl_detokenize(
            self._tokenizer, array.ctypes.data, len(array), skip_special, byref(text), byref(error))
        _check(status, error)
        return _text_take(text)

    def mark(self, text, added):
        marked, error = Text(), Error()
        status = lib.qvl_text_mark(self._tokenizer, text, len(text), ADDED[added], byref(marked), byref(error))
        _check(status, error)
        return _text_take(marked)


def unmark(text):
    plain, error = Text(), Error()
    _check(lib.qvl_text_unmark(text, len(text), byref(plain), byref(error)), error)
    return _text_take(plain)
