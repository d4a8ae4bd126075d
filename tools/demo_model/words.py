"""The tokenizer, and conversations as token rows with what a Qwen3-VL needs beside them.

    python3 words.py tokenizer.json      (trains the tokenizer anew; weights go with the one they were trained with)
"""

import functools
import random
import sys

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import scenes

VOCABULARY = 512
ADDED = (  # as in the published vocabularies, in about the same order; (text, special)
    ("<|object_ref_start|>", True), ("<|object_ref_end|>", True), ("<|box_start|>", True), ("<|box_end|>", True),
    ("<|quad_start|>", True), ("<|quad_end|>", True), ("<|vision_pad|>", True), ("<tool_call>", False),
    ("</tool_call>", False), ("<|fim_prefix|>", False), ("<|fim_middle|>", False), ("<|fim_suffix|>", False),
    ("<|fim_pad|>", False), ("<|repo_name|>", False), ("<|file_sep|>", False), ("<tool_response>", False),
    ("</tool_response>", False), ("<think>", False), ("</think>", False), ("<|endoftext|>", True),
    ("<|im_start|>", True), ("<|im_end|>", True), ("<|vision_start|>", True), ("<|vision_end|>", True),
    ("<|image_pad|>", True), ("<|video_pad|>", True))
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SYSTEM = ("You are a helpful assistant.", "Answer briefly.", "You look at pictures.")


def train_tokenizer():
    """Byte-level BPE over the questions and answers. What is written in pictures stays single letters."""
    rng = random.Random(7)
    texts = ["system\n", "user\n", "assistant\n", *SYSTEM, *(text for pair in scenes.TALK for text in pair)] * 40
    for _ in range(6000):
        shown = scenes.scene(rng)
        kind, question, answer = scenes.about(rng, shown)
        texts += [question, "" if kind == "read" else answer]
        texts += scenes.about_clip(rng, scenes.clip(rng, 4))[1:]
        if shown.shapes:
            texts += scenes.about_pair(rng, (shown, scenes.second_scene(rng, shown)))[1:]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(ADDED), initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    assert tokenizer.get_vocab_size() == VOCABULARY - len(ADDED), tokenizer.get_vocab_size()
    tokenizer.add_tokens([AddedToken(text, special=special, normalized=False) for text, special in ADDED])
    return tokenizer


def load_tokenizer(path):
    return Tokenizer.from_file(path)


class Rows:
    """Builds token rows. Media are given as their sizes in merged patches."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids = functools.lru_cache(maxsize=200000)(lambda text: tuple(tokenizer.encode(text).ids))
        token = tokenizer.token_to_id
        self.image, self.video = token("<|image_pad|>"), token("<|video_pad|>")
        self.start, self.end, self.pad = token("<|vision_start|>"), token("<|vision_end|>"), token("<|endoftext|>")

    def conversation(self, turns, system=None):
        """turns: (media, question, answer). media: ("image", height, width) or ("video", labels, height, width)."""
        row = Row(self)
        if system:
            row.text(f"<|im_start|>system\n{system}<|im_end|>\n")
        for turn in turns:
            row.turn(*turn)
        return row

    def turn_texts(self, question, answer):
        return ("<|im_start|>user\n", f"{question}<|im_end|>\n<|im_start|>assistant\n", f"{answer}<|im_end|>", "\n")

    def turn_tokens(self, question, answer):
        """Tokens of a turn without media."""
        return sum(len(self.ids(text)) for text in self.turn_texts(question, answer))


class Row:
    def __init__(self, rows):
        self.rows, self.tokens, self.answers, self.cursor = rows, [], [], 0
        self.positions, self.pads = [[], [], []], []

    def add(self, ids):
        here = range(self.cursor, self.cursor + len(ids))
        for axis in self.positions:
            axis.extend(here)
        self.tokens.extend(ids)
        self.cursor += len(ids)

    def text(self, text):
        self.add(self.rows.ids(text))

    def turn(self, media, question, answer):
        before, asked, answered, after = self.rows.turn_texts(question, answer)
        self.text(before)
        for medium in media:
            self.medium(medium)
        self.text(asked)
        first = len(self.tokens)
        self.text(answered)
        self.answers.append((first, len(self.tokens)))
        self.text(after)

    def medium(self, medium):
        kind, *labels, height, width = medium
        if kind == "image":
            self.group(self.rows.image, height, width)
            return
        self.add((self.rows.start,))
        for label in labels[0]:
            self.text(f"<{label} seconds>")
            self.group(self.rows.video, height, width)
        self.add((self.rows.end,))

    def group(self, pad, height, width):
        self.add((self.rows.start,))
        first = len(self.tokens)
        count = height * width
        self.tokens.extend([pad] * count)
        self.pads.extend(range(first, first + count))
        self.positions[0].extend([self.cursor] * count)
        self.positions[1].extend(self.cursor + i // width for i in range(count))
        self.positions[2].extend(self.cursor + i % width for i in range(count))
        self.cursor += max(height, width)
        self.add((self.rows.end,))


def batch(rows, length, pad):
    """Rows side by side as arrays: ids, positions, weights [rows, length], and where the pads are.

    The weight is 1 for tokens of answers, else 0.
    """
    count = len(rows)
    ids = np.full((count, length), pad, np.int64)
    positions = np.zeros((3, count, length), np.int64)
    weights = np.zeros((count, length), np.float32)
    pads = np.empty((count, len(rows[0].pads)), np.int64)
    for i, row in enumerate(rows):
        used = len(row.tokens)
        assert used <= length and len(row.pads) == pads.shape[1]
        ids[i, :used] = row.tokens
        positions[:, i, :used] = row.positions
        positions[:, i, used:] = row.cursor
        pads[i] = row.pads
        for first, end in row.answers:
            weights[i, first:end] = 1
    return ids, positions, weights, (pads + np.arange(count)[:, None] * length).ravel()


if __name__ == "__main__":
    train_tokenizer().save(sys.argv[1])
