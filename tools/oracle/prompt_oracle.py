"""Live: prompts of qvl against transformers' Qwen3VLProcessor and tokenizer, without torch.

For the random model's vocabulary and the two published ones, over the published templates and the random model's own:
  processor   pictures through the whole processor (Pillow backend): ids, token types, grids, and positions by
              prompt_cases.rope_index, which prompt_fixtures.py holds to the original
  videos      the same from the processor's parts: time stamps and expansion
  frames      the same with the videos as lists of frames with their numbers and rate
  trusted     text that spells special tokens: the same ids as transformers with trust_text
  untrusted   and without, the same text, and the special tokens that transformers' sanitize_control_tokens leaves (its
              text is another now and then: its markers keep templates from trimming)
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import transformers
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.processing_utils import ProcessorMixin

import prompt_cases
import qvl_ctypes
import qvl_prompts
import tokenizer_data
from preprocess_cases import noise

BUILD = Path(os.environ.get("QVL_BUILD_DIR", prompt_cases.REPOSITORY / "build"))
LIMITS = {"min_pixels": prompt_cases.LIMITS[0], "max_pixels": prompt_cases.LIMITS[1]}
# Folder -> demo shape that config.json comes from, family of templates, conversations for each template.
FOLDERS = {"demo": ("demo", "qwen3_vl", 40), "demo-35": ("demo-35", "qwen3_5", 40),
           "qwen3": ("demo", "qwen3_vl", 20), "qwen3_5": ("demo-35", "qwen3_5", 20)}
FIRST_ID = {"qwen3": 151652, "qwen3_5": 248053}  # <|vision_start|>; end, pad, image and video pad follow


def make_folder(name, parent):
    folder = Path(parent) / name
    shape = FOLDERS[name][0]
    subprocess.run([BUILD / "random_model", "--shape", shape, folder], check=True)
    if name in tokenizer_data.FOLDERS:
        template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
        tokenizer_data.FOLDERS[name](folder)
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["chat_template"] = template
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        config = json.loads((folder / "config.json").read_text())
        for offset, key in enumerate(["vision_start_token_id", "vision_end_token_id", None, "image_token_id",
                                      "video_token_id"]):
            if key:
                config[key] = FIRST_ID[name] + offset
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def whole_processor(folder, tokenizer):
    """Qwen3VLProcessor with the Pillow backend and no video processor, which would need torch."""
    images = Qwen2VLImageProcessorPil.from_pretrained(
        folder, size={"shortest_edge": prompt_cases.LIMITS[0], "longest_edge": prompt_cases.LIMITS[1]})
    check = ProcessorMixin.check_argument_for_proper_class
    ProcessorMixin.check_argument_for_proper_class = lambda self, name, argument: type(argument)
    try:
        return Qwen3VLProcessor(images, tokenizer, None, chat_template=tokenizer.chat_template)
    finally:
        ProcessorMixin.check_argument_for_proper_class = check


def with_pictures(case):
    """The messages with Pillow pictures in the image parts, in order."""
    pictures = iter(Image.fromarray(noise(*size, i)) for i, size in enumerate(case.pictures))
    messages = copy.deepcopy(case.messages)
    for message in messages:
        if isinstance(message["content"], list):
            message["content"] = [
                {"type": "image", "image": next(pictures)} if part["type"] == "image" else part
                for part in message["content"]]
    return messages


class Comparison:
    """Of one folder: counts what was compared and remembers what differs."""

    def __init__(self, name, folder):
        self.name, self.cases, self.tokens, self.wrong = name, 0, 0, []
        self.reference = prompt_cases.Reference(folder)
        self.processor = whole_processor(folder, self.reference.tokenizer)
        self.model = qvl_ctypes.Model(folder, level="config")
        self.special = set(self.reference.tokenizer.all_special_ids)
        self.special |= {i for i, t in self.reference.tokenizer.added_tokens_decoder.items() if t.special}

    def note(self, what, case, same):
        self.cases += 1
        if not same:
            self.wrong.append(f"{what} {case.template}")
            if len(self.wrong) == 1:
                print(f"first difference: {what} {case.template} {json.dumps(case.messages, ensure_ascii=False)[:2000]}")

    def prompt(self, prompter, case, **options):
        chat, sizes, videos = prompt_cases.request(case, self.reference.timestamps)
        pictures = [noise(*size, i) for i, size in enumerate(sizes)]
        found = prompter.plan(chat, [*pictures, *videos], preprocess=LIMITS, **options)
        self.tokens += len(found["input_ids"])
        return found

    def check_positions(self, found, image_grids, video_grids):
        positions, delta = prompt_cases.rope_index(found["mm_token_type_ids"], image_grids, video_grids)
        return np.array_equal(found["position_ids"], positions) and found["rope_delta"] == delta

    def check_processor(self, prompter, case, template):
        wanted = self.processor.apply_chat_template(
            with_pictures(case), chat_template=template, tokenize=True, return_dict=True, return_tensors="np",
            **{"add_generation_prompt": True, **case.options})
        grids = wanted.get("image_grid_thw", np.zeros((0, 3), np.int64))
        found = self.prompt(prompter, case)
        same = np.array_equal(found["input_ids"], wanted["input_ids"][0])
        same &= np.array_equal(found["mm_token_type_ids"], wanted["mm_token_type_ids"][0])
        same &= [item["grid"] for item in found["items"]] == [tuple(grid) for grid in grids.tolist()]
        self.note("processor", case, same and self.check_positions(found, grids, []))

    def prompt_of_frames(self, prompter, case):
        """The same with the videos as frames, their numbers and rate: grids and labels are qvl's own."""
        chat, sizes, _ = prompt_cases.request(case, self.reference.timestamps)
        media = [noise(*size, i) for i, size in enumerate(sizes)]
        for video in case.videos:
            _, h, w = video["grid"]
            frames = [np.zeros((16 * h, 16 * w, 3), np.uint8)] * len(video["frames"])
            media.append(qvl_ctypes.Frames(frames, video["fps"], video["frames"]))
        wide = qvl_ctypes.ClipOptions(min_pixels=1, max_pixels=1 << 40)
        return prompter.plan(chat, media, preprocess={**LIMITS, "clip": wide})

    def check_videos(self, prompter, case, template):
        ids, types, image_grids, video_grids = self.reference.expected(case, template)
        for what, found in (("videos", self.prompt(prompter, case)), ("frames", self.prompt_of_frames(prompter, case))):
            same = np.array_equal(found["input_ids"], ids) and np.array_equal(found["mm_token_type_ids"], types)
            self.note(what, case, same and self.check_positions(found, image_grids, video_grids))

    def check_injection(self, prompter, case, template):
        """The conversation's texts with special tokens strewn in."""
        tokens = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|object_ref_end|>"]
        case = copy.deepcopy(case)
        for i, message in enumerate(case.messages):
            parts = message["content"] if isinstance(message["content"], list) else []
            if not parts:
                message["content"] = f"{message['content']}{tokens[i % 5]}"
            for k, part in enumerate(parts):
                if part["type"] == "text":
                    part["text"] = f"{tokens[(i + k) % 5]}{part['text']}"
        ids, *_ = self.reference.expected(case, template)
        found = self.prompt(prompter, case, trust_text=True)
        self.note("trusted", case, np.array_equal(found["input_ids"], ids))
        if case.videos:
            return
        wanted = self.processor.apply_chat_template(
            with_pictures(case), chat_template=template, tokenize=True, return_dict=True, return_tensors="np",
            sanitize_control_tokens=True, **{"add_generation_prompt": True, **case.options})["input_ids"][0]
        found = self.prompt(prompter, case)["input_ids"]
        specials = [[i for i in row.tolist() if i in self.special] for row in (found, wanted)]
        decoded = [self.reference.tokenizer.decode(row) for row in (found, ids)]
        self.note("untrusted", case, specials[0] == specials[1] and decoded[0] == decoded[1])

    def run(self, family, count):
        for case in prompt_cases.conversations(family, count):
            template = prompt_cases.template_text(case.template)
            with qvl_prompts.Prompter(self.model, template) as prompter:
                if case.videos:
                    self.check_videos(prompter, case, template)
                else:
                    self.check_processor(prompter, case, template)
                self.check_injection(prompter, case, template)
        self.model.close()
        print(f"{self.name}: {self.cases} prompts, {self.tokens} tokens, {len(self.wrong)} differ {self.wrong[:5]}")
        return not self.wrong


def main():
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as parent:
        good = [Comparison(name, make_folder(name, parent)).run(family, count)
                for name, (_, family, count) in FOLDERS.items()]
    print(f"transformers {transformers.__version__}")
    print("every prompt equal" if all(good) else "prompts differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
