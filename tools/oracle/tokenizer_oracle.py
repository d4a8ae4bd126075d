"""Live: qvl's tokenizer against Hugging Face tokenizers, transformers and Python.

    tokenizer_oracle.py [MEGABYTES]      for each vocabulary; 20 without it

1. Both published vocabularies, on generated text of many scripts with every added token: the same ids; decoding gives
   the text that the reference gives, and without added tokens its NFC; every token's bytes are where `starts` says.
2. With special tokens not recognised, the same ids as with encode_special_tokens.
3. Every code point up to U+1FFFF (of the large uniform blocks, a sample), among neighbours that show how it splits and composes: the same ids.
4. Bytes that are not UTF-8: the ids of what bytes.decode(errors="replace") gives.
5. Vocabularies made at random, with every flag of added tokens and every option that is read: the same ids.
6. The last seven tokens of the 248k vocabulary, which tokenizer.json lacks, against transformers.
7. Throughput, one thread, the same documents in the same run: at least twice that of tokenizers, the faster of its
   calls.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import json
import random
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, normalizers

import qvl_ctypes as qvl
import tokenizer_data
import tokenizer_texts

NFC = normalizers.NFC()
PIECE = 1 << 20


class Differences:
    def __init__(self):
        self.count = 0

    def add(self, what, text, ours, theirs):
        self.count += 1
        if self.count > 10:
            return
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        print(f"DIFFERENT {what} at {at}: {ours[at - 2:at + 6]}, reference {theirs[at - 2:at + 6]}; text {text[:300]!r}")


def compare_ids(what, ours, theirs, documents, differences):
    """ours: a qvl tokenizer; theirs: the reference's. Returns the ids, ours."""
    result = []
    for document, encoding in zip(documents, theirs.encode_batch_fast(documents)):
        ids, starts = ours.encode(document.encode())
        if ids != encoding.ids:
            differences.add(what, document, ids, encoding.ids)
        if starts[0] != 0 or (ids and starts[-1] != len(document.encode())) or sorted(starts) != starts:
            differences.add(f"{what}, starts of", document, starts, [])
        result.append(ids)
    return result


def check_decoding(what, ours, theirs, documents, ids, differences):
    for document, own in zip(documents, ids):
        for skip in (False, True):
            text, expected = ours.decode(own, skip).decode(), theirs.decode(own, skip_special_tokens=skip)
            if text != expected:
                differences.add(f"{what}, decoded", document, text, expected)


def check_round_trip(what, ours, documents, differences):
    """Documents without added tokens: decode(encode(x)) is NFC(x), and where x is in NFC each token's bytes are those
    that starts names. NFC is the reference's own, of Unicode 9: of newer characters it knows nothing."""
    for document in documents:
        raw = document.encode()
        ids, starts = ours.encode(raw)
        text = ours.decode(ids).decode()
        if text != NFC.normalize_str(document):
            differences.add(f"{what}, round trip", document, text, NFC.normalize_str(document))
        if text == document and len(raw) < 5000:
            for i, token in enumerate(ids):
                if ours.decode([token]) != raw[starts[i]:starts[i + 1]].decode(errors="replace").encode():
                    differences.add(f"{what}, span {i}", document, starts, [])
                    break


def check_special_off(what, ours, theirs, documents, differences):
    theirs.encode_special_tokens = True
    for document, encoding in zip(documents, theirs.encode_batch_fast(documents)):
        ids = ours.encode(document.encode(), "ordinary")[0]
        if ids != encoding.ids:
            differences.add(f"{what}, special tokens off", document, ids, encoding.ids)
        marked = ours.mark(document.encode(), "ordinary")
        if qvl.unmark(marked) != document.encode():
            differences.add(f"{what}, unmarked", document, qvl.unmark(marked).decode(), document)
        ids = ours.encode(marked, "all", True)[0]
        if ids != encoding.ids:
            differences.add(f"{what}, marked", document, ids, encoding.ids)
    theirs.encode_special_tokens = False


def check_code_points(what, ours, theirs, differences):
    """Each between letters, digits, marks, spaces and punctuation, and behind an apostrophe. Of the large blocks whose
    characters are all alike, and of what is not assigned, every 17th."""
    alike = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0x17000, 0x18CFF), (0x20000, 0x10FFFF)]
    points = [
        c for c in range(0x110000)
        if not 0xD800 <= c <= 0xDFFF and (c % 17 == 0 or not any(a <= c <= b for a, b in alike) or 0x2F800 <= c <= 0x2FA1F)]
    for i in range(0, len(points), 2000):
        block = [chr(c) for c in points[i:i + 2000]]
        documents = [
            "".join(f"{c}a {c} 1{c}\u0301\u0327\n{c}. '{c}" for c in block),
            "".join(f"x{c}{c}\u0323 e\u0301{c}\u0345'{c}{c}क{c}\u093c  {c}" for c in block),
        ]
        compare_ids(f"{what}, code points from U+{points[i]:04X}", ours, theirs, documents, differences)
    return len(points)


def check_bad_bytes(what, ours, theirs, differences):
    rng = random.Random(4)
    good = "aé汉😀 \n\u0301".encode()
    count = 20000
    for _ in range(count):
        raw = bytes(rng.choice(good) if rng.random() < 0.7 else rng.randrange(256) for _ in range(rng.randint(1, 40)))
        text = raw.decode(errors="replace")
        ids, starts = ours.encode(raw)
        if ids != theirs.encode(text).ids or ours.decode(ids).decode() != NFC.normalize_str(text):
            differences.add(f"{what}, bytes {raw!r}", text, ids, theirs.encode(text).ids)
        if starts[0] != 0 or starts[-1] != len(raw) or sorted(starts) != starts:
            differences.add(f"{what}, starts in bytes {raw!r}", text, starts, [])
    return count


# ---- made-up vocabularies


def random_tokenizer(rng, folder):
    """A small vocabulary of everything that qvl reads. Some tokens come from several merges, some from none."""
    names = tokenizer_data.byte_names()
    vocab = {names[b]: i for i, b in enumerate(sorted(names))}
    alphabet = [names[b] for b in "abc \n".encode() + "é\u0301".encode()]
    merges, pool = [], list(alphabet)
    for _ in range(rng.randint(0, 60)):
        a, b = rng.choice(pool), rng.choice(pool)
        if len(a + b) > 12 or (a, b) in merges:
            continue
        merges.append((a, b))
        if a + b not in vocab:
            vocab[a + b] = len(vocab)
            pool.append(a + b)
    for extra in ("abcabc", "bcab", "Ġcc"):
        vocab.setdefault(extra, len(vocab))
    contents = ["<s>", "<a>", "<ab", "ab", "<s><s>", "é", "e\u0301", "b ", " c", "a\n", "x", "<|x|>"]
    added = []
    for content in rng.sample(contents, rng.randint(0, 6)):
        flags = {k: rng.random() < 0.3 for k in ("single_word", "lstrip", "rstrip", "normalized")}
        token_id = vocab.get(content, len(vocab) + sum(t["content"] not in vocab for t in added))
        added.append({"id": token_id, **tokenizer_data.added_token(content, rng.random() < 0.5, **flags)})
        if content != NFC.normalize_str(content):
            added[-1]["normalized"] = False  # else qvl refuses it
    pattern = rng.choice([tokenizer_data.QWEN2_PATTERN, tokenizer_data.QWEN35_PATTERN, None, None])
    whole = tokenizer_data.tokenizer_json(vocab, merges, added, pattern or "", rng.random() < 0.5)
    byte_level = {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.3, "trim_offsets": True,
                  "use_regex": pattern is None and rng.random() < 0.8}
    if pattern:
        whole["pre_tokenizer"]["pretokenizers"][1] = byte_level
    else:
        whole["pre_tokenizer"] = byte_level
    if rng.random() < 0.3:
        whole["normalizer"] = None
    whole["model"]["ignore_merges"] = rng.random() < 0.3
    (folder / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")
    return [t["content"] for t in added]


def check_random_tokenizers(folder, count, differences):
    rng, compared = random.Random(5), 0
    for number in range(count):
        contents = random_tokenizer(rng, folder)
        theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
        units = ["a", "b", "c", "ab", "abc", " ", "  ", "\n", "\r\n", "e", "é", "\u0301", "_", "1", "'s", "'S", "!",
                 "ab" * 20, "<", *contents, *contents]
        with qvl.Tokenizer(folder) as ours:
            documents = ["".join(rng.choice(units) for _ in range(rng.randint(0, 30))) for _ in range(60)]
            ids = compare_ids(f"made-up {number}", ours, theirs, documents, differences)
            check_decoding(f"made-up {number}", ours, theirs, documents, ids, differences)
            theirs.encode_special_tokens = True
            for document in documents:
                own, expected = ours.encode(document.encode(), "ordinary")[0], theirs.encode(document).ids
                if own != expected:
                    differences.add(f"made-up {number}, special tokens off", document, own, expected)
            compared += len(documents)
    return compared


# ---- the published ones


def check_last_seven(folder, ours, differences):
    """transformers builds its tokenizer from both files, as qvl does."""
    from transformers import Qwen3_5Tokenizer

    theirs = Qwen3_5Tokenizer.from_pretrained(str(folder))
    names = ["<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
             "<tts_text_bos_single>", "<|audio_pad|>"]
    texts = names + ["a".join(names), "".join(names), "<|im_start|>user\nहिन्दी<|audio_pad|>é<|im_end|>\n<think>\n"]
    for text in texts:
        ids, expected = ours.encode(text.encode())[0], theirs(text)["input_ids"]
        if ids != expected:
            differences.add("transformers", text, ids, expected)
    found = [ours.encode(name.encode())[0] for name in names]
    if found != [[i] for i in range(248070, 248077)]:
        differences.add("the last seven", str(names), found, [])
    return len(texts)


def seconds(call, repetitions=3):
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def compare_speed(name, ours, theirs, documents, differences):
    raw = [document.encode() for document in documents]
    size = sum(map(len, raw)) / 1e6
    theirs_fast = seconds(lambda: theirs.encode_batch_fast(documents))
    theirs_plain = seconds(lambda: [theirs.encode(document) for document in documents])
    own = seconds(lambda: [ours.count(text) for text in raw])
    ratio = min(theirs_fast, theirs_plain) / own
    print(f"{name}: {size / own:.1f} MB/s; tokenizers {size / theirs_fast:.2f} (encode_batch_fast), "
          f"{size / theirs_plain:.2f} (encode) MB/s, one thread: {ratio:.1f} times as fast")
    if ratio < 2:
        differences.add(f"{name}, throughput", f"{ratio:.2f} times", [], [2])


def check_vocabulary(name, folder, megabytes, differences):
    tokenizer_data.FOLDERS[name](folder)
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start = time.perf_counter()
    ours = qvl.Tokenizer(folder)
    print(f"{name}: opened in {time.perf_counter() - start:.2f} s, notes: {ours.notes}")
    if name == "qwen3_5":
        print(f"{name}: {check_last_seven(folder, ours, differences)} texts against transformers")
        # What tokenizer.json lacks, so that both know the same.
        decoder = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["added_tokens_decoder"]
        theirs.add_special_tokens([t["content"] for i, t in decoder.items() if int(i) > 248069 and t["special"]])
        from tokenizers import AddedToken
        theirs.add_tokens([AddedToken(t["content"], normalized=False) for i, t in sorted(decoder.items())
                           if int(i) > 248069 and not t["special"]])
    added = [t.content for t in theirs.get_added_tokens_decoder().values()]
    total = tokens = count = 0
    for part in range(megabytes):
        documents = tokenizer_texts.documents(PIECE, f"{name} {part}", added)
        ids = compare_ids(name, ours, theirs, documents, differences)
        if part == 0:
            seen = {token for document in ids for token in document}
            missing = [t for t in added if theirs.token_to_id(t) not in seen]
            if missing:
                differences.add(f"{name}, added tokens that never came up", str(missing), [], [])
        if part % 4 == 0:
            check_decoding(name, ours, theirs, documents, ids, differences)
            check_special_off(name, ours, theirs, documents, differences)
        total += sum(len(document.encode()) for document in documents)
        tokens += sum(map(len, ids))
        count += len(documents)
    print(f"{name}: {count} documents, {total / 1e6:.1f} MB, {tokens} ids, {len(added)} added tokens")
    plain = tokenizer_texts.documents(2 * PIECE, f"{name} plain")
    check_round_trip(name, ours, plain, differences)
    points = check_code_points(name, ours, theirs, differences)
    print(f"{name}: {len(plain)} round trips, {points} code points, "
          f"{check_bad_bytes(name, ours, theirs, differences)} texts with bytes that are not UTF-8")
    compare_speed(name, ours, theirs, plain, differences)
    ours.close()


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    differences = Differences()
    with tempfile.TemporaryDirectory() as scratch:
        for name in tokenizer_data.FOLDERS:
            folder = Path(scratch) / name
            folder.mkdir()
            check_vocabulary(name, folder, megabytes, differences)
        folder = Path(scratch) / "made-up"
        folder.mkdir()
        print(f"made-up vocabularies: {check_random_tokenizers(folder, 400, differences)} texts")
    print(f"Python's Unicode {unicodedata.unidata_version}; {differences.count} differences")
    return 1 if differences.count else 0


if __name__ == "__main__":
    sys.exit(main())
