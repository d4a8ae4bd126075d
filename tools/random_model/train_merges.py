"""Trains the merges of the random models' vocabulary and prints tools/random_model/merges.c.

    python3 tools/random_model/train_merges.py README.md docs/*.md > tools/random_model/merges.c

Byte-level BPE as everyone trains it: text is cut into pieces, the most frequent pair of neighbours becomes one token,
again and again. Ties go to the pair that comes first in the alphabet. merges.c is what the tool uses: the texts may
change, the vocabulary does not.
"""

import collections
import re
import sys

MERGES = 230  # 256 bytes + 230 merges + 26 added tokens = 512
PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_letters():
    """The printable stand-in of each byte, as byte-level BPE writes it."""
    direct = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in direct else chr(spare)
        spare += byte not in direct
    return letters


def train(text):
    letters = byte_letters()
    words = collections.Counter(PIECES.findall(text))
    words = {tuple(letters[byte] for byte in word.encode()): count for word, count in words.items()}
    merges = []
    while len(merges) < MERGES:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined = collections.Counter()
        for word, count in words.items():
            joined[merge(word, best)] += count
        words = joined
    return merges


def merge(word, pair):
    out, i = [], 0
    while i < len(word):
        if word[i:i + 2] == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    text = "".join(open(path, encoding="utf-8").read() for path in sys.argv[1:])
    print('/* Made by train_merges.py. */\n#include "tokenizer.h"\n')
    print("/* clang-format off */\nconst char *const demo_merges[DEMO_MERGES][2] = {")
    for left, right in train(text):
        print(f"    {{{quoted(left)}, {quoted(right)}}},")
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
