"""Encoded pictures for the media tests, and the RGB bytes they must become.

JPEG is written by Pillow; samplings and colour transforms Pillow does not write are made by changing header bytes of a
file it wrote, so that the stream stays valid. PNG is written here, because Pillow writes neither interlaced files nor
most 16-bit ones. What a picture must become is always Pillow's decoding, with one exception stated at `Png`.
"""

import io
import struct
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps

warnings.filterwarnings("ignore", "Palette images with Transparency")  # that is what is tested

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6  # PNG colour types
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGBA: (8, 16)}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def photo(width, height, rng):
    """uint8 [height, width, 3]: smooth colours with hard edges and noise, so that every part of a decoder works."""
    y, x = np.mgrid[0:height, 0:width]
    phase = rng.uniform(0, 6, 3)
    pace = rng.uniform(0.02, 0.9, (3, 2))
    planes = [127 + 120 * np.sin(phase[c] + pace[c, 0] * x + pace[c, 1] * y) for c in range(3)]
    picture = np.stack(planes, -1) + rng.normal(0, rng.choice([0, 4, 40]), (height, width, 3))
    picture[(x // 5 + y // 7) % 4 == 0] = rng.integers(0, 256, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


# ---- what a picture must become


def reference(data):
    """Under qvl's `--policy reference`: Pillow's plain conversion."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def default(data, colour=(255, 255, 255)):
    """Under qvl's default policies, in Pillow's operations: upright, alpha pasted on a colour, 16-bit grey by its high
    byte."""
    image = Image.open(io.BytesIO(data))
    image.load()
    shown = image
    if image.mode in ("I;16", "I;16B"):
        shown = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif "transparency" in image.info or image.mode in ("LA", "PA", "RGBA"):
        shown = pasted(image.convert("RGBA"), colour)
    shown.info["exif"] = image.getexif().tobytes()
    return np.asarray(ImageOps.exif_transpose(shown).convert("RGB"))


def pasted(rgba, colour=(255, 255, 255)):
    """Pillow's paste on a colour with the alpha as mask."""
    ground = Image.new("RGB", rgba.size, colour)
    ground.paste(rgba, mask=rgba.getchannel("A"))
    return ground


# ---- JPEG


def jpeg(array, **options):
    """Pillow's file of uint8 [h, w, 3], [h, w] or (as CMYK) [h, w, 4]."""
    mode = {2: "L", 3: "RGB", 4: "CMYK"}[array.shape[-1] if array.ndim == 3 else 2]
    out = io.BytesIO()
    Image.frombytes(mode, array.shape[1::-1], np.ascontiguousarray(array).tobytes()).save(out, "JPEG", **options)
    return out.getvalue()


def find_segment(data, markers):
    """Offset of the first segment with one of these marker bytes."""
    at = 2
    while data[at + 1] not in markers:
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return at


def resample_header(data, width, height, sampling):
    """The same stream with another size and first component sampling, 0xHV. The caller keeps the count of blocks."""
    data = bytearray(data)
    at = find_segment(data, (0xC0, 0xC1, 0xC2))
    struct.pack_into(">HH", data, at + 5, height, width)
    data[at + 11] = sampling
    return bytes(data)


def jpeg_440(width, height, rng, **options):
    """4:4:0: the 4:2:2 file of the transposed size, its two luma blocks stacked instead of side by side."""
    return resample_header(jpeg(photo(height, width, rng), subsampling="4:2:2", **options), width, height, 0x12)


def jpeg_411(columns, rows, trim, rng, **options):
    """4:1:1: a 4:2:0 file of columns x rows MCUs, its four luma blocks in a row. trim: width cut off, below 32."""
    data = jpeg(photo(16 * columns, 16 * rows, rng), subsampling="4:2:0", **options)
    return resample_header(data, 32 * columns - trim, 8 * rows - trim % 8, 0x41)


def jpeg_ycck(width, height, rng, **options):
    """A CMYK file whose Adobe segment says that the first three components are YCC."""
    ink = np.concatenate([photo(width, height, rng), photo(width, height, rng)[:, :, :1]], -1)
    data = bytearray(jpeg(ink, **options))
    data[find_segment(data, (0xEE,)) + 15] = 2
    return bytes(data)


# ---- PNG


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _pack_row(row, depth):
    """One row of samples to bytes."""
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(np.uint8).tobytes()
    bits = (row.reshape(-1, 1) >> np.arange(depth - 1, -1, -1)) & 1
    return np.packbits(bits.astype(np.uint8)).tobytes()


def _filter_row(kind, row, above, step):
    """PNG filters 0 to 4 of one row; step is the bytes of a pixel."""
    row, above = np.frombuffer(row, np.uint8).astype(int), np.frombuffer(above, np.uint8).astype(int)
    left = np.concatenate([np.zeros(step, int), row])[: len(row)]
    corner = np.concatenate([np.zeros(step, int), above])[: len(row)]
    guess = left + above - corner
    distances = np.stack([abs(guess - left), abs(guess - above), abs(guess - corner)])
    paeth = np.choose(distances.argmin(0), [left, above, corner])
    predicted = [np.zeros_like(row), left, above, (left + above) // 2, paeth][kind]
    return bytes([kind]) + ((row - predicted) & 255).astype(np.uint8).tobytes()


class Png:
    """A PNG file made of samples [height, width, channels] at the file's own depth.

    alphas: the tRNS of a palette, bytes. key: the transparent colour, one sample per channel, of grey and RGB.
    default() is Pillow's decoding, except with a key: Pillow compares the key with samples that it has already scaled
    or cut to 8 bits, so that it is right at depths 1 and 8 only. There the alpha follows from the samples, as the PNG
    specification says, and Pillow does the rest.
    """

    def __init__(self, samples, depth, colour, interlaced=False, palette=None, alphas=None, key=None, rng=None):
        self.samples, self.depth, self.colour, self.key = samples, depth, colour, key
        self.height, self.width = samples.shape[:2]
        chunks = [(b"IHDR", struct.pack(">IIBBBBB", self.width, self.height, depth, colour, 0, 0, int(interlaced)))]
        chunks.append((b"gAMA", struct.pack(">I", 22222)))  # must be ignored
        if palette is not None:
            chunks.append((b"PLTE", palette.astype(np.uint8).tobytes()))
        if alphas is not None:
            chunks.append((b"tRNS", bytes(alphas)))
        if key is not None:
            chunks.append((b"tRNS", struct.pack(f">{len(key)}H", *key)))
        stream = zlib.compress(self._scanlines(interlaced, rng or np.random.default_rng(0)))
        half = len(stream) // 2
        chunks += [(b"IDAT", stream[:half]), (b"IDAT", stream[half:]), (b"tEXt", b"Title\0x"), (b"IEND", b"")]
        self.data = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*parts) for parts in chunks)

    def _scanlines(self, interlaced, rng):
        out = b""
        step = max(1, CHANNELS[self.colour] * self.depth // 8)
        for x, y, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
            part = self.samples[y::dy, x::dx]
            if part.size == 0:
                continue
            rows = [_pack_row(row.reshape(-1), self.depth) for row in part]
            above = bytes(len(rows[0]))
            for row in rows:
                out += _filter_row(int(rng.integers(0, 5)), row, above, step)
                above = row
        return out

    def default(self, colour=(255, 255, 255)):
        if self.key is None:
            return default(self.data, colour)
        opaque = (self.samples != np.array(self.key)).any(-1)
        top = (1 << self.depth) - 1
        eight = self.samples >> 8 if self.depth == 16 else self.samples * 255 // top
        colours = np.broadcast_to(eight, (self.height, self.width, 3))
        rgba = np.concatenate([colours, np.where(opaque, 255, 0)[:, :, None]], -1).astype(np.uint8)
        expected = np.asarray(pasted(Image.frombytes("RGBA", (self.width, self.height), rgba.tobytes()), colour))
        if self.depth in (1, 8):
            assert (np.asarray(pasted(Image.open(io.BytesIO(self.data)).convert("RGBA"), colour)) == expected).all()
        return expected


def random_png(colour, depth, width, height, rng, interlaced=False, transparent=False):
    """Random samples. transparent: a tRNS, for the colour types that may have one."""
    palette = alphas = key = None
    channels = CHANNELS[colour]
    top = (1 << depth) - 1
    samples = rng.integers(0, top + 1, (height, width, channels))
    if colour == PALETTE:
        count = int(rng.integers(2, top + 2))
        samples %= count
        palette = rng.integers(0, 256, (count, 3))
        if transparent:
            alphas = rng.integers(0, 256, int(rng.integers(1, count + 1))).tolist()
    elif colour in (GRAY, RGB) and transparent:
        samples[rng.random((height, width)) < 0.3] = samples[0, 0]
        key = samples[0, 0].tolist()
        if depth == 16:  # the same high bytes as the key, so that comparing those alone would be wrong
            samples[-1, -1] = samples[0, 0] ^ 1
    return Png(samples, depth, colour, interlaced, palette, alphas, key, rng)
