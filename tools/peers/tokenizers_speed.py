"""qvl's tokenizer beside Hugging Face tokenizers: the same documents, one thread, by kind of text.

    tools/oracle/run.sh tools/peers/tokenizers_speed.py

The best of three runs each; of tokenizers' two calls the faster one. QVL_BUILD_DIR and QVL_DATA as in tools/oracle.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))

from tokenizers import Tokenizer

import qvl_ctypes as qvl
import tokenizer_data
import tokenizer_texts as texts

SIZE = 1500000
KINDS = {  # of texts.KINDS, by number
    "English words": 0, "code": 1, "Hindi words": 10, "Arabic words": 8, "Chinese": 2,
}


def seconds(call, repetitions=3):
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def of_kind(make):
    rng, documents, total = random.Random(1), [], 0
    while total < SIZE:
        document = ""
        while len(document) < 6000:
            document += make(rng)
        documents.append(document)
        total += len(document.encode())
    return documents


def main():
    sets = {name: of_kind(texts.KINDS[number][1]) for name, number in KINDS.items()}
    sets["mixed"] = texts.documents(SIZE, "speed")
    for name, write in tokenizer_data.FOLDERS.items():
        with tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch))
            opened = seconds(lambda: qvl.Tokenizer(scratch).close(), 5)
            theirs_opened = seconds(lambda: Tokenizer.from_file(f"{scratch}/tokenizer.json"))
            ours, theirs = qvl.Tokenizer(scratch), Tokenizer.from_file(f"{scratch}/tokenizer.json")
        print(f"{name}: opened in {opened:.2f} s; tokenizers {theirs_opened:.2f} s")
        for kind, documents in sets.items():
            raw = [document.encode() for document in documents]
            size = sum(map(len, raw)) / 1e6
            own = seconds(lambda: [ours.count(text) for text in raw])
            peer = min(seconds(lambda: theirs.encode_batch_fast(documents)),
                       seconds(lambda: [theirs.encode(document) for document in documents]))
            print(f"  {kind}: {size / own:.1f} MB/s; tokenizers {size / peer:.2f} MB/s; ratio {peer / own:.1f}")
        ours.close()


if __name__ == "__main__":
    main()
