"""Conversations by formula, and what transformers makes of them: shared by the prompt oracles and fixtures.

Works with and without torch: positions are transformers' get_rope_index rewritten for numpy, which
prompt_fixtures.py compares with the original.
"""

import hashlib
import itertools
import json
import os
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from transformers import AutoTokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("QVL_DATA", REPOSITORY.parent / "shared" / "data"))

# Templates of the two generations of the vocabulary; the first is the random model's own.
TEMPLATES = {
    "qwen3_vl": ["own", "qwen3-vl-instruct.jinja", "qwen3-vl-thinking.jinja"],
    "qwen3_5": ["own", "qwen3.5.jinja", "qwen3.5-small.jinja", "qwen3.6.jinja", "qwen3.8.jinja"],
}
LIMITS = (4096, 65536)  # small pictures: a fixture of hashes, but they are computed here

TEXTS = [
    "What is in this picture?", "Describe it.", "a", " ", "  leading and trailing  ", "One\ntwo\n\n\nthree\n", "1234567890",
    "x = {'a': [1, 2.5e-3], \"b\": null};\n\tif (x) return;", "你好，世界。图片里有什么？", "مرحبا، ما هذا؟", "नमस्ते दुनिया",
    "สวัสดีชาวโลก", "e\u0301te\u0301 a\u0308", "🙂👨‍👩‍👧 ok", "It's we'll I'd they've", "<b>bold</b> & <i>it</i>", "a < b | c > d",
    "<|", "|>", "<", "im_start", "\u00a0nbsp\u00a0", "end", "think", "{{ not a template }} {% raw %}", "C:\\path\\to", "0",
]
THOUGHTS = ["", "Let me see.", "\nFirst, look.\nThen answer.\n", "<think>\nhm\n</think>\n\n"]
TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "Looks <closely>.", "parameters": {
        "type": "object", "properties": {"where": {"type": "string"}, "n": {"type": "integer"}}, "required": ["where"]}}},
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}},
]


def template_text(name):
    return (DATA / "templates" / name).read_text(encoding="utf-8") if name != "own" else None


# ---- conversations


class Builder:
    """One conversation that the template takes; pictures and videos in order."""

    def __init__(self, seed, template, videos):
        self.random, self.template = random.Random(f"{template} {seed}"), template
        self.left, self.videos_allowed = self.random.randint(0, 6), videos
        self.pictures, self.videos, self.messages, self.options = [], [], [], {}

    def text(self):
        return self.random.choice(TEXTS)

    def medium(self):
        self.left -= 1
        if self.videos_allowed and self.random.random() < 0.35:
            frames = self.random.randint(1, 9)
            step, fps = self.random.choice([1, 2, 7]), self.random.choice([24, 25, 29.97, 30, 8])
            grid = [(frames + 1) // 2, 2 * self.random.randint(1, 4), 2 * self.random.randint(1, 4)]
            self.videos.append({"grid": grid, "frames": [i * step for i in range(frames)], "fps": fps})
            return {"type": "video"}
        self.pictures.append([self.random.randint(20, 400), self.random.randint(20, 400)])
        return self.random.choice([{"type": "image"}, {"type": "image", "image": None}, {"image": None, "type": "image"}])

    def content(self, media):
        if not (media and self.left > 0) and self.random.random() < 0.5:
            return self.text()
        parts = [{"type": "text", "text": self.text()} for _ in range(self.random.randint(0, 3))]
        while media and self.left > 0 and self.random.random() < 0.6:
            parts.insert(self.random.randint(0, len(parts)), self.medium())
        return parts or [{"type": "text", "text": self.text()}]

    def assistant(self, with_tools):
        message = {"role": "assistant", "content": self.content(self.template != "qwen3-vl-instruct.jinja")}
        thought = self.random.choice(THOUGHTS)
        if thought.startswith("<think>"):
            if isinstance(message["content"], str):
                message["content"] = thought + message["content"]
        elif thought:
            message[self.random.choice(["reasoning_content", "reasoning", "thinking"])] = thought
        if with_tools:
            calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": {
                "where": self.text(), "n": 3, "deep": {"a": [1, None, True]}, "off": False}}}]
            if self.random.random() < 0.5:
                calls.append({"name": "add", "arguments": {"x": 1.5}})
            message["tool_calls"] = calls
        self.messages.append(message)

    def build(self):
        if self.random.random() < 0.4:
            self.messages.append({"role": "system", "content": self.random.choice(TEXTS)})
        tools = self.random.random() < 0.3
        for turn in range(self.random.randint(1, 4)):
            if turn:
                calls = tools and self.random.random() < 0.7
                self.assistant(calls)
                if calls:
                    for _ in range(self.random.randint(1, 2)):
                        self.messages.append({"role": "tool", "content": self.content(True)})
            self.messages.append({"role": "user", "content": self.content(True)})
        if tools:
            self.options["tools"] = TOOLS
        if self.random.random() < 0.3:
            self.options["add_vision_id"] = True
        if self.random.random() < 0.3:
            self.options["enable_thinking"] = self.random.random() < 0.5
        if self.random.random() < 0.2:
            self.options["preserve_thinking"] = self.random.random() < 0.5
        if self.random.random() < 0.2:
            self.options["add_generation_prompt"] = False
        return self


def conversations(family, per_template):
    for template in TEMPLATES[family]:
        for seed in range(per_template):
            yield Builder(seed, template, seed % 2 == 1).build()


# ---- what transformers makes of them


class Reference:
    """transformers' tokenizer and processor of a folder, without the image and video processors."""

    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        processor = self.processor = Qwen3VLProcessor.__new__(Qwen3VLProcessor)
        processor.tokenizer = self.tokenizer
        processor.image_processor = SimpleNamespace(merge_size=2)
        processor.video_processor = SimpleNamespace(merge_size=2, temporal_patch_size=2)
        processor.image_token, processor.video_token = "<|image_pad|>", "<|video_pad|>"
        processor.vision_start_token, processor.vision_end_token = "<|vision_start|>", "<|vision_end|>"
        processor.image_token_id = self.tokenizer.convert_tokens_to_ids("<|image_pad|>")
        processor.video_token_id = self.tokenizer.convert_tokens_to_ids("<|video_pad|>")

    def render(self, case, template):
        options = {"add_generation_prompt": True, **case.options}
        return self.tokenizer.apply_chat_template(case.messages, chat_template=template, tokenize=False, **options)

    def timestamps(self, video):
        return self.processor._calculate_timestamps(list(video["frames"]), video["fps"], 2)

    def expected(self, case, template):
        """ids, token types, image grids and video grids."""
        grids = [[1, h // 16, w // 16] for h, w in (smart_resize(*size, 32, *LIMITS) for size in case.pictures)]
        video_grids = [video["grid"] for video in case.videos]
        images = {"image_grid_thw": np.array(grids, np.int64).reshape(-1, 3)}
        videos = {
            "video_grid_thw": np.array(video_grids, np.int64).reshape(-1, 3),
            "video_metadata": [SimpleNamespace(fps=v["fps"], frames_indices=list(v["frames"])) for v in case.videos],
        }
        text = self.render(case, template)
        replaced, _ = self.processor.get_text_with_replacements(
            [text], [self.processor.replace_image_token(images, i) for i in range(len(grids))],
            [self.processor.replace_video_token(videos, i) for i in range(len(video_grids))])
        ids = self.tokenizer(replaced)["input_ids"]
        types = self.processor.create_mm_token_type_ids(ids)
        return (np.array(ids[0], np.int64), np.array(types[0], np.int64), images["image_grid_thw"],
                videos["video_grid_thw"])


def rope_index(types, image_grids, video_grids, merge=2):
    """transformers' get_rope_index for one sequence: positions [3, length] and delta."""
    video_grids = np.repeat(video_grids, video_grids[:, 0], axis=0) if len(video_grids) else video_grids
    grids = {1: iter(image_grids), 2: iter([1, h, w] for _, h, w in video_grids)}
    current, pieces = 0, []
    for kind, group in itertools.groupby(types.tolist()):
        length = len(list(group))
        if kind == 0:
            pieces.append(np.tile(np.arange(length) + current, (3, 1)))
            current += length
        else:
            t, h, w = next(grids[kind])
            axes = np.meshgrid(np.arange(t), np.arange(h // merge), np.arange(w // merge), indexing="ij")
            pieces.append(np.stack(axes).reshape(3, -1) + current)
            current += max(h, w) // merge
    positions = np.concatenate(pieces, axis=1).astype(np.int64)
    return positions, int(positions.max()) + 1 - len(types)


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array, "<i8").tobytes()).hexdigest()


def request(case, timestamps):
    """A case as qvl takes it: the chat as an object, and the media in order of the conversation by kind."""
    chat = {"messages": case.messages}
    for name in ("tools", "add_generation_prompt", "enable_thinking", "preserve_thinking", "add_vision_id"):
        if name in case.options:
            chat[name] = case.options[name]
    videos = [("video", tuple(v["grid"]), timestamps(v)) for v in case.videos]
    return json.loads(json.dumps(chat)), case.pictures, videos
