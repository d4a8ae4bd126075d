"""Writes src/text/unicode_tables.c: what the tokenizers library knows about each code point.

The classes are measured from the pinned tokenizers, not taken from a Unicode release, because it mixes several: its
regular expressions are of one version, its normalisation is of an older one. Run it again when the pin changes:

    tools/oracle/run.sh tools/oracle/make_unicode_tables.py | clang-format > src/text/unicode_tables.c
"""

import sys
import unicodedata

import regex
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
BLOCK = 4096

# What later versions compose or decompose, and this normalisation leaves alone: composites since Unicode 13 and the
# first characters of their decompositions. Characters with a combining class since Unicode 10 are found by themselves.
LATER_COMPOSITES = [
    0x11935, 0x11938, 0x105C9, 0x105D2, 0x105DA, 0x105E4, 0x11382, 0x11383, 0x11384, 0x11385, 0x1138B, 0x1138E,
    0x11390, 0x11391, 0x113C2, 0x113C5, 0x113C7, 0x113C8, *range(0x1611E, 0x1612A), 0x16D63, *range(0x16D67, 0x16D6B),
]

NFC, NFD = normalizers.NFC(), normalizers.NFD()


def matched(pattern):
    """Code points that a pattern of one character matches in the library's regular expressions."""
    splitter = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for i in range(0, len(CODE_POINTS), BLOCK):
        block = CODE_POINTS[i:i + BLOCK]
        kept = set()
        for text, _ in splitter.pre_tokenize_str("".join(map(chr, block))):
            kept.update(map(ord, text))
        found.update(c for c in block if c not in kept)
    return found


def word_characters():
    """Code points that stop an added token with single_word from being recognised behind them."""
    tokenizer = Tokenizer(models.BPE(vocab={}, merges=[]))
    tokenizer.add_tokens([AddedToken("x", single_word=True, normalized=False)])
    found = set()
    for i in range(0, len(CODE_POINTS), BLOCK):
        block = [c for c in CODE_POINTS[i:i + BLOCK] if c != ord("x")]
        text = "".join(chr(c) + "x " for c in block)
        seen = {start for start, _ in tokenizer.encode(text).offsets}
        found.update(c for i, c in enumerate(block) if 3 * i + 1 not in seen)
    return found | {ord("x")}


def combining():
    """Code points with a combining class other than 0 in the library's normalisation.

    Such a character moves before a mark of a higher class, or lets one of a lower class move before it.
    """
    def moves(c):
        high, low = "a\u0345" + chr(c), "a" + chr(c) + "\u0334"  # classes 240 and 1
        return NFD.normalize_str(high) != high or NFD.normalize_str(low) != low

    return {c for c in CODE_POINTS if NFD.normalize_str(chr(c)) == chr(c) and moves(c)}


def compose_as_second():
    """Code points that may compose with the one before them."""
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            if NFC.normalize_str("".join(chr(int(p, 16)) for p in parts)) == chr(c):
                seconds.add(int(parts[1], 16))
    return seconds


def classes():
    letters, marks, numbers, spaces = (matched(p) for p in (r"\p{L}", r"\p{M}", r"\p{N}", r"\s"))
    words, moving, seconds = word_characters(), combining(), compose_as_second()
    later = {c for c in CODE_POINTS if c not in moving and regex.fullmatch(r"\p{ccc=0}", chr(c)) is None}
    later = {c for c in later if NFC.normalize_str(chr(c)) == chr(c)} | set(LATER_COMPOSITES)
    for c in CODE_POINTS:
        kind = "OTHER"
        for name, members in (("LETTER", letters), ("MARK", marks), ("NUMBER", numbers), ("SPACE", spaces)):
            if c in members:
                assert kind == "OTHER", hex(c)
                kind = name
        if c in seconds or NFC.normalize_str(chr(c)) != chr(c):
            nfc = "CHANGES"
        elif c in moving:
            nfc = "MOVES"
        elif c in later:
            nfc = "INERT"
        else:
            nfc = "STARTS"
        yield c, (kind, nfc, c in words)


def ranges():
    runs = []
    for c, value in classes():
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == value:
            runs[-1][1] = c
        elif value != ("OTHER", "STARTS", False):
            runs.append([c, c, value])
    return runs


KIND_BITS = {"OTHER": 0, "LETTER": 1, "MARK": 2, "NUMBER": 3, "SPACE": 4}
NFC_BITS = {"STARTS": 0x00, "INERT": 0x08, "MOVES": 0x10, "CHANGES": 0x18}
WORD_BIT = 0x20


def main():
    runs = ranges()
    print("""/* Made by tools/oracle/make_unicode_tables.py, which says what the classes are. Not to be edited. */
#include "text/unicode.h"

const uint32_t qvl_unicode_ranges[] = {""")
    print(",\n".join(
        f"0x{first:x}, 0x{last:x}, 0x{KIND_BITS[kind] | NFC_BITS[nfc] | (WORD_BIT if word else 0):02x}"
        for first, last, (kind, nfc, word) in runs))
    print("""};

const size_t qvl_unicode_range_count = sizeof qvl_unicode_ranges / sizeof qvl_unicode_ranges[0] / 3;""")
    print(f"{len(runs)} ranges", file=sys.stderr)


if __name__ == "__main__":
    main()
