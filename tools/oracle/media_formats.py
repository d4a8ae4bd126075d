"""Encoded pictures beyond JPEG and PNG, and EXIF and XMP in the formats that have them, for the media tests.

Pillow writes what it can. What it does not write (most kinds of BMP and TIFF, GIF frames away from the canvas's corner,
byte orders of EXIF, AVIF with other colour matrices) is put together here byte by byte; Pillow still says what it is.
Every `*_cases` function yields (file name, bytes); size() gives (width, height) of the next picture.
"""

import io
import struct
import zlib

import numpy as np
from PIL import Image

import media_pictures as mp

# ---- sources


def photo(size, rng):
    return Image.fromarray(mp.photo(*size, rng))


def with_alpha(size, rng):
    image = photo(size, rng)
    alpha = mp.photo(*size, rng)[:, :, 0]
    alpha[alpha < 90] = 0  # whole areas, as in logos
    image.putalpha(Image.fromarray(alpha))
    return image


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


# ---- EXIF


def exif_block(orientation, endian, kind=3, count=1, tag=0x0112):
    """A TIFF header and a directory of three tags; kind, count and tag can be made wrong."""
    value = struct.pack(endian + ("HH" if kind == 3 else "I"), *((orientation, 0) if kind == 3 else (orientation,)))
    entries = [
        struct.pack(endian + "HHI4s", 0x010F, 2, 4, b"qvl\0"),
        struct.pack(endian + "HHI4s", tag, kind, count, value),
        struct.pack(endian + "HHIHH", 0x0128, 3, 1, 2, 0),
    ]
    head = b"II*\0" if endian == "<" else b"MM\0*"
    return head + struct.pack(endian + "IH", 8, 3) + b"".join(entries) + bytes(4)


def jpeg_with_exif(data, block):
    body = b"Exif\0\0" + block
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def png_with_exif(data, block, behind=False):
    at = data.rindex(b"IEND") - 4 if behind else 33
    return data[:at] + mp.chunk(b"eXIf", block) + data[at:]


def exif_cases(rng, size):
    for endian, order in (("<", "le"), (">", "be")):
        for value in range(1, 9):
            block = exif_block(value, endian)
            yield f"exif_{value}_{order}.jpg", jpeg_with_exif(save(photo(size(), rng), "JPEG", quality=60), block)
            plain = save(photo(size(), rng), "PNG")
            yield f"exif_{value}_{order}.png", png_with_exif(plain, block, behind=value % 2 == 0)
            yield f"exif_{value}_{order}.webp", save(photo(size(), rng), "WEBP", lossless=value > 4, exif=block)


# ---- XMP


def jpeg_with_xmp(data, text):
    body = b"http://ns.adobe.com/xap/1.0/\0" + text
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def png_with_xmp(data, text, behind=False):
    at = data.rindex(b"IEND") - 4 if behind else 33
    return data[:at] + mp.chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0en\0\0" + text) + data[at:]


def xmp_cases(rng, size):
    """XMP that says what to turn, alone, beside EXIF that does not say, and beside EXIF that says otherwise."""
    for value in (1, 2, 3, 5, 6, 8, 9):
        form = f'tiff:Orientation="{value}"' if value % 2 else f"<tiff:Orientation>{value}</tiff:Orientation>"
        text = f"<x:xmpmeta tiff:Orientation='3'><rdf:Description {form} tiff:Orientation=\"4\"/>".encode()
        for beside, block in (("alone", b""), ("beside", exif_block(7, "<", tag=0x0111)), ("exif", exif_block(7, "<"))):
            name, behind = f"xmp_{value}_{beside}", value % 2 == 0
            jpeg = jpeg_with_xmp(save(photo(size(), rng), "JPEG", quality=60), text)
            yield f"{name}.jpg", jpeg_with_exif(jpeg, block) if block else jpeg
            png = png_with_xmp(save(photo(size(), rng), "PNG"), text, behind)
            yield f"{name}.png", png_with_exif(png, block, not behind) if block else png
            yield f"{name}.webp", save(photo(size(), rng), "WEBP", lossless=behind, xmp=text, exif=block)
        yield f"xmp_{value}.tif", save(photo(size(), rng), "TIFF", tiffinfo={700: text})
        tags = {700: text, 0x0112: 7}
        yield f"xmp_{value}_tag.tif", save(photo(size(), rng), "TIFF", tiffinfo=tags)
    yield from odd_xmp_cases(rng, size)


def odd_xmp_cases(rng, size):
    """Which of several blocks counts, and what a PNG's XMP may look like. Pillow's own reading of each is the measure."""
    texts = [b'tiff:Orientation="%d"' % value for value in (6, 8)]
    jpeg = save(photo(size(), rng), "JPEG", quality=60)
    yield "xmp_two.jpg", jpeg_with_xmp(jpeg_with_xmp(jpeg, texts[0]), texts[1])
    yield "xmp_tag_9.tif", save(photo(size(), rng), "TIFF", tiffinfo={700: texts[0], 0x0112: 9})
    png = save(photo(size(), rng), "PNG")
    yield "xmp_two.png", png_with_xmp(png_with_xmp(png, texts[0]), texts[1])
    yield "exif_two.png", png_with_exif(png_with_exif(png, exif_block(6, "<")), exif_block(8, "<"))
    key = b"XML:com.adobe.xmp\0"
    bodies = {"method": key + b"\0\7\0\0" + texts[0], "flag_2": key + b"\2\0\0\0" + texts[0], "keyword": key,
              "flag": key + b"\0", "language": key + b"\0\0en", "translated": key + b"\0\0\0" + texts[0],
              "other": b"XML:com.adobe.xmq\0\0\0\0\0" + texts[0], "empty": key + b"\0\0\0\0"}
    for name, body in bodies.items():
        yield f"xmp_{name}.png", png[:33] + mp.chunk(b"iTXt", body) + png[33:]
    yield "xmp_behind_end.png", png + mp.chunk(b"iTXt", bodies["method"])


# ---- WebP


def riff(chunks):
    body = b"".join(name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_frame_on_canvas(canvas, place, image, alpha):
    """An animation of one frame away from the corner."""
    still = save(image, "WEBP", lossless=True, exact=True)
    body = still[12:]
    frame = struct.pack("<I", place[0] // 2)[:3] + struct.pack("<I", place[1] // 2)[:3]
    frame += struct.pack("<I", image.width - 1)[:3] + struct.pack("<I", image.height - 1)[:3] + b"\x64\0\0\0" + body
    flags = 0x02 | (0x10 if alpha else 0)
    extended = bytes([flags, 0, 0, 0]) + struct.pack("<I", canvas[0] - 1)[:3] + struct.pack("<I", canvas[1] - 1)[:3]
    return riff([(b"VP8X", extended), (b"ANIM", b"\xff\x80\x40\xff\0\0"), (b"ANMF", frame)])


def webp_cases(rng, size):
    kinds = {"lossy": {"quality": 80}, "lossy_10": {"quality": 10}, "lossless": {"lossless": True}}
    for name, options in kinds.items():
        yield f"rgb_{name}.webp", save(photo(size(), rng), "WEBP", **options)
        yield f"rgba_{name}.webp", save(with_alpha(size(), rng), "WEBP", **options)
    yield "rgba_exact.webp", save(with_alpha(size(), rng), "WEBP", lossless=True, exact=True)
    yield "rgba_alpha_quality.webp", save(with_alpha(size(), rng), "WEBP", quality=70, alpha_quality=20)
    yield "gray.webp", save(photo(size(), rng).convert("L"), "WEBP", quality=70)
    yield "one_pixel.webp", save(photo((1, 1), rng), "WEBP", quality=70)
    for make, name in ((photo, "rgb"), (with_alpha, "rgba")):
        here = size()
        frames = [make(here, rng) for _ in range(3)]
        for lossless in (False, True):
            kind = "lossless" if lossless else "lossy"
            yield f"animated_{name}_{kind}.webp", save(
                frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=lossless, quality=60)
    width, height = size()
    small = with_alpha((width, height), rng)
    yield "frame_rgba.webp", webp_frame_on_canvas((width + 11, height + 9), (4, 6), small, True)
    yield "frame_rgb.webp", webp_frame_on_canvas((width + 5, height), (2, 0), photo((width, height), rng), False)


# ---- GIF


def gif(canvas, place, indices, colours, rng, transparent=None, interlaced=False, where=("global",), before=b""):
    """One frame of indices at place. The palettes have `colours` colours, which may be fewer than there are indices."""
    height, width = indices.shape
    grey = Image.frombytes("P", (width, height), indices.astype(np.uint8).tobytes())
    grey.putpalette(list(range(256)) * 3)
    codes = save(grey, "GIF", interlace=int(interlaced))
    bits = max(1, (colours - 1).bit_length())

    def palette(place_name):
        return rng.integers(0, 256, 3 << bits).astype(np.uint8).tobytes() if place_name in where else b""

    flags = 0x80 | (bits - 1)
    out = b"GIF89a" + struct.pack("<HHBBB", *canvas, flags if "global" in where else 0, 1, 0)
    out += palette("global") + before
    if transparent is not None:
        out += b"\x21\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
    out += b"," + struct.pack("<HHHH", *place, width, height)
    out += bytes([(flags if "local" in where else 0) | (0x40 if interlaced else 0)]) + palette("local")
    return out + codes[gif_codes_at(codes):]


def gif_codes_at(data):
    """Where the first frame's code size stands."""
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    while data[at] != 0x2C:
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    flags = data[at + 9]
    return at + 10 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)


def gif_cases(rng, size):
    for colours in (2, 5, 16, 200):
        image = photo(size(), rng).quantize(colours)
        yield f"colours_{colours}.gif", save(image, "GIF", interlace=0)
        yield f"colours_{colours}_transparent.gif", save(image, "GIF", interlace=1, transparency=colours // 2)
    yield "gray.gif", save(photo(size(), rng).convert("L"), "GIF")
    yield "bits.gif", save(photo(size(), rng).convert("1"), "GIF")
    yield "one_pixel.gif", save(photo((1, 1), rng).quantize(2), "GIF")
    here = size()
    frames = [with_alpha(here, rng) for _ in range(3)]
    yield "animated.gif", save(frames[0], "GIF", save_all=True, append_images=frames[1:], loop=0, comment=b"three")
    places = {"global": ("global",), "local": ("local",), "both": ("global", "local"), "none": ()}
    for transparent in (None, 0, 3, 200):
        for name, where in places.items():
            width, height = size()
            indices = rng.integers(0, 12, (height, width))  # of 8 colours
            shift = (0, 0) if name == "both" else (3, 2)
            canvas = (width + 7, height + 5) if name != "local" else (width, height)  # local: beyond the canvas
            tail = "opaque" if transparent is None else f"transparent_{transparent}"
            data = gif(canvas, shift, indices, 8, rng, transparent, transparent == 3, where, b"\x21\xfe\x02hi\0\0")
            yield f"frame_{name}_{tail}.gif", data


# ---- BMP


def bmp(width, height, bits, rng, compression=0, header=40, colours=0, masks=(), top_down=False, pixels=None):
    entries = (colours or 1 << bits) if bits <= 8 else 0
    palette = b"".join(
        rng.integers(0, 256, 3).astype(np.uint8).tobytes() + (b"" if header == 12 else b"\0") for _ in range(entries))
    if pixels is None:
        pixels = rng.integers(0, 256, (width * bits + 31) // 32 * 4 * height).astype(np.uint8).tobytes()
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        tall = -height if top_down else height
        info = struct.pack("<IiiHHII", header, width, tall, 1, bits, compression, len(pixels))
        info += struct.pack("<iiII", 2835, 2835, colours, 0)
        all_masks = struct.pack(f"<{len(masks)}I", *masks)
        info += all_masks if header == 40 else all_masks.ljust(header - 40, b"\0")
    at = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + info + palette + pixels


def bmp_runs(width, height, bits, rng):
    """Run-length codes of all kinds: pairs, literals, jumps, ends of rows."""
    out = b""
    for y in range(height):
        x = 0
        while x < width:
            count = int(rng.integers(1, min(width - x, 20) + 1))
            kind = rng.integers(0, 3)
            if kind == 0 and count >= 3:
                literal = rng.integers(0, 256, count if bits == 8 else (count + 1) // 2).astype(np.uint8).tobytes()
                out += bytes([0, count]) + literal + bytes(len(literal) % 2)
            elif kind == 1 and y + 3 < height and x + 2 < width and rng.random() < 0.2:
                out += bytes([0, 2, 1, 0])
                count = 1
            else:
                out += bytes([count, int(rng.integers(0, 256))])
            x += count
        out += b"\0\0"
    return out + b"\0\1"


BMP_MASKS = {
    "bgrx": (32, (0xFF0000, 0xFF00, 0xFF, 0)),
    "xbgr": (32, (0xFF000000, 0xFF0000, 0xFF00, 0)),
    "bgxr": (32, (0xFF000000, 0xFF00, 0xFF, 0)),
    "abgr": (32, (0xFF000000, 0xFF0000, 0xFF00, 0xFF)),
    "rgba": (32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
    "bgra": (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    "bgar": (32, (0xFF000000, 0xFF00, 0xFF, 0xFF0000)),
    "none": (32, (0, 0, 0, 0)),
    "565": (16, (0xF800, 0x7E0, 0x1F, 0)),
    "555": (16, (0x7C00, 0x3E0, 0x1F, 0)),
    "24": (24, (0xFF0000, 0xFF00, 0xFF, 0)),
}


def bmp_cases(rng, size):
    for mode in ("1", "L", "RGB"):
        yield f"pillow_{mode}.bmp", save(photo(size(), rng).convert(mode), "BMP")
    yield "pillow_RGBA.bmp", save(with_alpha(size(), rng), "BMP")
    yield "pillow_P.bmp", save(photo(size(), rng).quantize(17), "BMP")
    for bits in (1, 4, 8, 16, 24, 32):
        yield f"bits_{bits}.bmp", bmp(*size(), bits, rng)
        header = (52, 56, 64, 108, 124)[bits % 5]
        yield f"bits_{bits}_top_down.bmp", bmp(*size(), bits, rng, top_down=True, header=header)
        if bits in (1, 4, 8, 24):
            yield f"bits_{bits}_os2.bmp", bmp(*size(), bits, rng, header=12)
    yield "colours_3.bmp", bmp(*size(), 8, rng, colours=3)
    for name, (bits, masks) in BMP_MASKS.items():
        header = 124 if masks[3] or name == "none" else 108
        yield f"masks_{name}.bmp", bmp(*size(), bits, rng, 3, header, masks=masks)
    yield "masks_565_short.bmp", bmp(*size(), 16, rng, 3, 40, masks=BMP_MASKS["565"][1][:3])
    for bits, compression in ((8, 1), (4, 2)):
        width, height = size()
        runs = bmp_runs(width, height, bits, rng)
        yield f"runs_{bits}.bmp", bmp(width, height, bits, rng, compression, pixels=runs)
        runs = bmp_runs(width, height, bits, rng)
        yield f"runs_{bits}_top_down.bmp", bmp(width, height, bits, rng, compression, pixels=runs, top_down=True)


# ---- TIFF


def pack_bits(row):
    """PackBits without runs."""
    return b"".join(bytes([len(row[i:i + 128]) - 1]) + row[i:i + 128] for i in range(0, len(row), 128))


class Tiff:
    """A TIFF file of samples [height, width, channels] in strips or tiles; endian "<" or ">"."""

    def __init__(self, samples, bits, photometric, endian="<", tile=None, rows=None, planar=False, compression=1,
                 predictor=1, fill_order=1, **tags):
        self.bits, self.endian, self.compression = bits, endian, compression
        self.predictor, self.fill_order = predictor, fill_order
        height, width, channels = samples.shape
        rows = rows or height
        planes = [samples[:, :, i:i + 1] for i in range(channels)] if planar else [samples]
        cut = (lambda plane: self._tiles(plane, *tile)) if tile else (lambda plane: self._strips(plane, rows))
        blocks = [block for plane in planes for block in cut(plane)]
        ids = {"extra": 338, "orientation": 274, "colour_map": 320}
        self.tags = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * channels), 259: (3, [compression]),
                     262: (3, [photometric]), 277: (3, [channels]), 284: (3, [2 if planar else 1])}
        self.tags |= {ids[name]: (3, list(values)) for name, values in tags.items()}
        if predictor != 1:
            self.tags[317] = (3, [predictor])
        if fill_order != 1:
            self.tags[266] = (3, [fill_order])
        self.tags |= {322: (4, [tile[0]]), 323: (4, [tile[1]])} if tile else {278: (4, [rows])}
        self.data = self._file(blocks, 324 if tile else 273)

    def _strips(self, plane, rows):
        return [self._pack(plane[y:y + rows]) for y in range(0, plane.shape[0], rows)]

    def _tiles(self, plane, width, height):
        whole = np.pad(plane, ((0, -plane.shape[0] % height), (0, -plane.shape[1] % width), (0, 0)))
        return [self._pack(whole[y:y + height, x:x + width])
                for y in range(0, plane.shape[0], height) for x in range(0, plane.shape[1], width)]

    def _pack(self, part):
        kind = {8: np.dtype("u1"), 16: np.dtype(self.endian + "u2")}.get(self.bits)
        rows = []
        for row in part:
            if kind is None:
                bits = (row.reshape(-1, 1) >> np.arange(self.bits - 1, -1, -1)) & 1
                packed = np.packbits(bits.astype(np.uint8)).tobytes()
            else:
                if self.predictor == 2:
                    row = np.diff(row, axis=0, prepend=0) & ((1 << self.bits) - 1)
                packed = row.astype(kind).tobytes()
            rows.append(pack_bits(packed) if self.compression == 32773 else packed)
        data = b"".join(rows)
        data = zlib.compress(data) if self.compression == 8 else data
        return bytes(int(f"{byte:08b}"[::-1], 2) for byte in data) if self.fill_order == 2 else data

    def _file(self, blocks, offsets_tag):
        out = bytearray((b"II*\0" if self.endian == "<" else b"MM\0*") + bytes(4))

        def add(data):
            out.extend(bytes(len(out) % 2))
            out.extend(data)
            return len(out) - len(data)

        self.tags[offsets_tag] = (4, [add(block) for block in blocks])
        self.tags[offsets_tag + (1 if offsets_tag == 324 else 6)] = (4, [len(block) for block in blocks])
        entries = []
        for tag, (kind, values) in sorted(self.tags.items()):
            data = struct.pack(f"{self.endian}{len(values)}{'H' if kind == 3 else 'I'}", *values)
            value = data.ljust(4, b"\0") if len(data) <= 4 else struct.pack(self.endian + "I", add(data))
            entries.append(struct.pack(self.endian + "HHI", tag, kind, len(values)) + value)
        at = add(struct.pack(self.endian + "H", len(entries)) + b"".join(entries) + bytes(4))
        struct.pack_into(self.endian + "I", out, 4, at)
        return bytes(out)


def tiff_kinds(rng, size, endian="<"):
    """(name, samples, bits, photometric, tags) of every kind of pixel that is read and that Pillow reads, too."""

    def samples(bits, channels):
        width, height = size()
        return rng.integers(0, 1 << bits, (height, width, channels))

    for bits in (1, 2, 4, 8, 16):
        yield f"gray_{bits}", samples(bits, 1), bits, 1, {}
        if bits < 16:
            yield f"gray_{bits}_inverted", samples(bits, 1), bits, 0, {}
        if bits <= 8:
            colours = rng.integers(0, 65536, 3 << bits)
            yield f"palette_{bits}", samples(bits, 1), bits, 3, {"colour_map": colours}
    yield "gray_8_extra", samples(8, 2), 8, 1, {"extra": [0]}
    yield "gray_8_alpha", samples(8, 2), 8, 1, {"extra": [2]}
    yield "palette_8_alpha", samples(8, 2), 8, 3, {"extra": [2], "colour_map": rng.integers(0, 65536, 768)}
    for bits in (8, 16):
        yield f"rgb_{bits}", samples(bits, 3), bits, 2, {}
        yield f"cmyk_{bits}", samples(bits, 4), bits, 5, {}
        yield f"rgb_{bits}_extra", samples(bits, 4), bits, 2, {"extra": [0]}
        yield f"rgb_{bits}_alpha", samples(bits, 4), bits, 2, {"extra": [2]}
        yield f"rgb_{bits}_premultiplied", samples(bits, 4), bits, 2, {"extra": [1]}
    yield "rgb_8_alpha_extra", samples(8, 5), 8, 2, {"extra": [2, 0]}


def tiff_cases(rng, size):
    layouts = [{}, {"compression": 8, "rows": 5}, {"compression": 32773, "rows": 3, "endian": ">"},
               {"tile": (16, 16), "compression": 8, "endian": ">"}]
    for i, (name, samples, bits, photometric, tags) in enumerate(tiff_kinds(rng, size)):
        yield f"{name}.tif", Tiff(samples, bits, photometric, **layouts[i % len(layouts)], **tags).data
    for bits in (8, 16):
        width, height = size()
        samples = rng.integers(0, 1 << bits, (height, width, 3))
        # Uncompressed planes of 16 bits are the one thing that Pillow misreads.
        yield f"planar_{bits}.tif", Tiff(samples, bits, 2, planar=True, rows=4, compression=8).data
        yield f"planar_tiled_{bits}.tif", Tiff(samples, bits, 2, planar=True, tile=(32, 16), compression=8).data
        yield f"predictor_{bits}.tif", Tiff(samples, bits, 2, predictor=2, compression=8, endian="<>"[bits == 8]).data
    width, height = size()
    yield "tiled_raw.tif", Tiff(rng.integers(0, 256, (height, width, 3)), 8, 2, tile=(16, 32)).data
    yield "fill_order.tif", Tiff(rng.integers(0, 2, (height, width, 1)), 1, 1, fill_order=2).data
    for value in range(1, 9):
        width, height = size()
        samples = rng.integers(0, 256, (height, width, 3))
        data = Tiff(samples, 8, 2, "<>"[value % 2], orientation=[value], compression=(1, 8)[value % 3 == 0]).data
        yield f"orientation_{value}.tif", data
    for compression in ("tiff_lzw", "tiff_deflate", "packbits", "jpeg", "lzma", "zstd"):
        yield f"pillow_{compression}.tif", save(photo(size(), rng), "TIFF", compression=compression)
    yield "pillow_lzw_palette.tif", save(photo(size(), rng).quantize(30), "TIFF", compression="tiff_lzw")
    yield "pillow_jpeg_gray.tif", save(photo(size(), rng).convert("L"), "TIFF", compression="jpeg")
    yield "pillow_cmyk.tif", save(photo(size(), rng).convert("CMYK"), "TIFF")
    yield "pillow_LA.tif", save(with_alpha(size(), rng).convert("LA"), "TIFF", compression="tiff_lzw")
    for compression in ("group3", "group4", "tiff_ccitt"):
        yield f"pillow_{compression}.tif", save(photo(size(), rng).convert("1"), "TIFF", compression=compression)


# ---- AVIF


def with_matrix(data, matrix, full_range=None, primaries=1):
    """The same file saying that its colours were made by another matrix (a code point of H.273)."""
    data = bytearray(data)
    at = data.index(b"nclx") + 4
    struct.pack_into(">H", data, at, primaries)
    struct.pack_into(">H", data, at + 4, matrix)
    if full_range is not None:
        data[at + 6] = 0x80 if full_range else 0
    return bytes(data)


def avif_cases(rng, size):
    for sampling in ("4:2:0", "4:2:2", "4:4:4", "4:0:0"):
        for span in ("full", "limited"):
            image = photo(size(), rng)
            image = image.convert("L") if sampling == "4:0:0" else image
            name = f"{sampling.replace(':', '')}_{span}.avif"
            yield name, save(image, "AVIF", subsampling=sampling, range=span, quality=80)
    for matrix in (1, 2, 5, 9):
        data = save(photo(size(), rng), "AVIF", subsampling="4:2:0", quality=70)
        for full in (False, True):
            yield f"matrix_{matrix}_{'full' if full else 'limited'}.avif", with_matrix(data, matrix, full)
    yield "matrix_12_bt2020.avif", with_matrix(save(photo(size(), rng), "AVIF"), 12, True, 9)
    yield "matrix_0.avif", with_matrix(save(photo(size(), rng), "AVIF", subsampling="4:4:4"), 0, True)
    yield "lossless.avif", save(photo(size(), rng), "AVIF", subsampling="4:4:4", quality=100)
    yield "one_pixel.avif", save(photo((1, 1), rng), "AVIF")
    for value in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = value
        yield f"turned_{value}.avif", save(photo(size(), rng), "AVIF", exif=exif)
    here = size()
    frames = [photo(here, rng) for _ in range(2)]
    yield "animated.avif", save(frames[0], "AVIF", save_all=True, append_images=frames[1:])


def all_cases(rng, size):
    for cases in (exif_cases, webp_cases, gif_cases, bmp_cases, tiff_cases, avif_cases, xmp_cases):
        yield from cases(rng, size)
