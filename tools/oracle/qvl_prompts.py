"""The prompt API of include/qvl.h through ctypes: qvl_ctypes goes on here."""

import ctypes
import json
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p

import numpy as np

import qvl_ctypes
from qvl_ctypes import (DTYPES, MAX_DEEPSTACK, PRESETS, Error, Features, Grid, Input, Item, LogFn, Patches,
                        PreprocessOptions, ProgressFn, array_of, lib)

IMAGE, VIDEO = 1, 2
SPANS = ("text", "special", "added", "image", "video", "defused")
CHOICES = {
    "dropped": ("refuse", "note", "fold"),
    "video_layout": ("wrapped", "bare"),
    "truncation": ("refuse", "text", "media"),
}


class PrompterOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("template_text", c_char_p), ("template_name", c_char_p),
                ("template_source", c_char_p)]


class Medium(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32), ("name", c_char_p), ("input", POINTER(Input)), ("patches", POINTER(Patches)),
        ("features", POINTER(Features)), ("key", c_char_p), ("timestamps", POINTER(c_double)),
        ("timestamp_count", c_size_t),
    ]


class Chat(ctypes.Structure):
    _fields_ = [
        ("json", c_char_p), ("byte_count", c_size_t), ("name", c_char_p), ("folder", c_char_p), ("no_files", c_bool),
        ("media", POINTER(Medium)), ("media_count", c_size_t),
    ]


class PromptOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("add_generation_prompt", c_int32), ("continue_final_message", c_int32),
        ("enable_thinking", c_int32), ("preserve_thinking", c_int32), ("add_vision_id", c_int32),
        ("reasoning_effort", c_char_p), ("tools_json", c_char_p), ("variables_json", c_char_p),
        ("trust_text", c_bool), ("dropped", c_int32), ("video_layout", c_int32), ("max_length", c_int64),
        ("truncation", c_int32), ("time", c_int64), ("preprocess", PreprocessOptions), ("progress", ProgressFn),
        ("progress_user", c_void_p), ("log", LogFn), ("log_user", c_void_p),
    ]


class Entry(ctypes.Structure):
    _fields_ = [("index", c_int64)]


class PromptItem(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32), ("name", c_char_p), ("message", c_size_t), ("part", c_size_t), ("item", Item),
        ("first", Entry), ("last", Entry), ("key", c_char * 65),
    ]


class PromptSpan(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("start", c_size_t), ("end", c_size_t), ("tokens", c_int64)]


class Prompt(ctypes.Structure):
    _fields_ = [
        ("length", c_int64), ("input_ids", POINTER(c_int64)), ("token_types", POINTER(c_int64)),
        ("position_ids", POINTER(c_int64)), ("rope_delta", c_int64), ("vision_tokens", c_int64),
        ("media_length", c_int64), ("item_count", c_size_t), ("items", POINTER(PromptItem)), ("text", c_char_p),
        ("text_length", c_size_t), ("span_count", c_size_t), ("spans", POINTER(PromptSpan)), ("dtype", c_int32),
        ("width", c_int64), ("inputs_embeds", c_void_p), ("deepstack_count", c_int32),
        ("deepstack", c_void_p * MAX_DEEPSTACK),
    ]


def _declare():
    error, handle = POINTER(Error), POINTER(c_void_p)
    request = [POINTER(Chat), POINTER(PromptOptions), POINTER(Prompt), error]
    grids = [POINTER(Grid), c_size_t]
    positions = POINTER(c_int64)
    signatures = {
        "qvl_prompter_options_init": (None, [POINTER(PrompterOptions)]),
        "qvl_prompter_open": (c_int32, [c_void_p, POINTER(PrompterOptions), handle, error]),
        "qvl_prompter_close": (None, [handle]),
        "qvl_prompt_options_init": (None, [POINTER(PromptOptions)]),
        "qvl_prompt_plan": (c_int32, [c_void_p, *request]),
        "qvl_prompt_build": (c_int32, [c_void_p, c_void_p, *request]),
        "qvl_prompt_free": (None, [POINTER(Prompt)]),
        "qvl_rope_index": (c_int32, [positions, c_int64, *grids, *grids, c_int64, positions, positions, error]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


_declare()


class Media:
    """The caller's media as an array of Medium. Each is a picture (an array, bytes or a path), a video as Frames,
    or a video as ("video", grid, timestamps), which has no pixels and so is for plans."""

    def __init__(self, media, cols):
        self.kept = []
        self.list = (Medium * len(media))(*[self._medium(medium, cols) for medium in media])

    def _medium(self, medium, cols):
        if isinstance(medium, tuple):
            _, grid, timestamps = medium
            items = (Item * 1)(Item(grid=Grid(*grid)))
            patches = Patches(int(np.prod(grid)), cols, None, 1, items)
            stamps = (c_double * len(timestamps))(*timestamps)
            self.kept += [items, patches, stamps]
            return Medium(VIDEO, b"video", None, ctypes.pointer(patches), None, None, stamps, len(timestamps))
        value, kept = qvl_ctypes._input_of(medium)
        self.kept += [value, kept]
        video = isinstance(medium, qvl_ctypes.Frames)
        name, kind = (b"video", VIDEO) if video else (b"picture", IMAGE)
        return Medium(kind, name, ctypes.pointer(value), None, None, None, None, 0)


class Prompter:
    """Of an open qvl_ctypes.Model. Notes of the library gather in .notes."""

    def __init__(self, model, template=None):
        self.model, self.notes = model, []
        self._log = LogFn(lambda message, _: self.notes.append(message.decode(errors="replace")))
        fields = {"template_text": None if template is None else template.encode()}
        options, error = qvl_ctypes._options(PrompterOptions, lib.qvl_prompter_options_init, fields), Error()
        self._prompter = c_void_p()
        qvl_ctypes._check(
            lib.qvl_prompter_open(model._model, byref(options), byref(self._prompter), byref(error)), error)

    def close(self):
        lib.qvl_prompter_close(byref(self._prompter))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def plan(self, chat, media=(), **options):
        """See _take; chat is what JSON can say. options: fields of qvl_prompt_options, preprocess a dict."""
        return self._call(None, chat, media, options)

    def build(self, chat, media=(), **options):
        return self._call(self.model._session_handle(), chat, media, options)

    def _call(self, session, chat, media, fields):
        text = json.dumps(chat, ensure_ascii=False).encode()
        info = self.model.info
        cols = info.in_channels * info.temporal_patch_size * info.patch_size**2
        given = Media(media, cols)
        value = Chat(text, len(text), b"chat", None, False, given.list, len(media))
        options, prompt, error = self._options(fields), Prompt(), Error()
        arguments = (self._prompter, byref(value), byref(options), byref(prompt), byref(error))
        status = lib.qvl_prompt_build(session, *arguments) if session else lib.qvl_prompt_plan(*arguments)
        qvl_ctypes._check(status, error)
        return self._take(prompt)

    def _options(self, fields):
        values = {"log": self._log}
        preprocess = dict(fields.pop("preprocess", {}))
        if "preset" in preprocess:
            preprocess["preset"] = PRESETS[preprocess["preset"]]
        for name, value in fields.items():
            if name in CHOICES:
                value = CHOICES[name].index(value)
            values[name] = value.encode() if isinstance(value, str) else value
        options = qvl_ctypes._options(PromptOptions, lib.qvl_prompt_options_init, values)
        options.preprocess = qvl_ctypes._options(PreprocessOptions, lib.qvl_preprocess_options_init, preprocess)
        return options

    @staticmethod
    def _take(prompt):
        """A dict with transformers' names: arrays of [length], positions [3, length], embeddings as float32."""
        length = prompt.length
        result = {
            "input_ids": np.ctypeslib.as_array(prompt.input_ids, (length,)).copy(),
            "mm_token_type_ids": np.ctypeslib.as_array(prompt.token_types, (length,)).copy(),
            "position_ids": np.ctypeslib.as_array(prompt.position_ids, (3, length)).copy(),
            "rope_delta": prompt.rope_delta,
            "vision_tokens": prompt.vision_tokens,
            "text": ctypes.string_at(prompt.text, prompt.text_length).decode(),
            "spans": [(SPANS[s.kind], s.start, s.end, s.tokens) for s in prompt.spans[:prompt.span_count]],
            "items": [
                {"kind": i.kind, "name": i.name.decode(), "message": i.message, "part": i.part,
                 "grid": (i.item.grid.t, i.item.grid.h, i.item.grid.w), "tokens": i.item.tokens,
                 "entries": (i.first.index, i.last.index), "key": i.key.decode()}
                for i in prompt.items[:prompt.item_count]],
        }
        if prompt.inputs_embeds:
            result["inputs_embeds"] = array_of(prompt.dtype, (length, prompt.width), prompt.inputs_embeds)
            shape = (prompt.vision_tokens, prompt.width)
            result["deepstack"] = [
                array_of(prompt.dtype, shape, prompt.deepstack[k]) for k in range(prompt.deepstack_count)]
            result["dtype"] = next(name for name, value in DTYPES.items() if value == prompt.dtype)
        lib.qvl_prompt_free(byref(prompt))
        return result


def rope_index(types, image_grids, video_grids, merge=2):
    """(positions [3, length], delta) of qvl_rope_index."""
    types = np.ascontiguousarray(types, np.int64)
    positions, delta, error = np.empty((3, len(types)), np.int64), c_int64(), Error()
    images, videos = ((Grid * len(g))(*[Grid(*map(int, grid)) for grid in g]) for g in (image_grids, video_grids))
    pointer = POINTER(c_int64)
    qvl_ctypes._check(
        lib.qvl_rope_index(
            types.ctypes.data_as(pointer), len(types), images, len(images), videos, len(videos), merge,
            positions.ctypes.data_as(pointer), byref(delta), byref(error)), error)
    return positions, delta.value
