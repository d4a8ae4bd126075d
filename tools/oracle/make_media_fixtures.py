"""Writes tests/fixtures/media: small pictures of every kind qvl reads, and what they must become.

    python tools/oracle/make_media_fixtures.py

expected.json holds, for each file, what its header says, and size and SHA-256 of the RGB8 bytes under the default
policies and under `--policy reference`, made with the versions it names.

Some files stay as they are, because Pillow cannot write them: deep_*.avif, of 10 and 12 bits, made by FFmpeg 5.1
(`ffmpeg -i PICTURE -pix_fmt yuv420p10le -c:v libaom-av1 -still-picture 1 -crf 20 FILE`), for which Pillow still says
what they are; and refused_grid.avif, made of two tiles by libavif 0.11 (`avifenc --grid 2x1`).
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image, features

import media_formats as mf
import media_pictures as mp

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "media"


def jpegs(rng):
    """name -> bytes"""
    photo = mp.photo
    ink = np.concatenate([photo(45, 29, rng), photo(45, 29, rng)[:, :, :1]], -1)
    progressive = {"progressive": True, "quality": 80}
    return {
        "rgb_444.jpg": mp.jpeg(photo(53, 37, rng), subsampling="4:4:4", quality=90),
        "rgb_422.jpg": mp.jpeg(photo(53, 37, rng), subsampling="4:2:2", quality=75),
        "rgb_420.jpg": mp.jpeg(photo(53, 37, rng), subsampling="4:2:0", quality=75),
        "rgb_420_multiple.jpg": mp.jpeg(photo(64, 48, rng), subsampling="4:2:0", quality=75),
        "rgb_440.jpg": mp.jpeg_440(53, 37, rng, quality=75),
        "rgb_411.jpg": mp.jpeg_411(2, 5, 11, rng, quality=75),
        "rgb_untransformed.jpg": mp.jpeg(photo(31, 23, rng), keep_rgb=True, quality=75),
        "rgb_quality_1.jpg": mp.jpeg(photo(40, 40, rng), quality=1),
        "rgb_quality_100.jpg": mp.jpeg(photo(40, 40, rng), quality=100),
        "rgb_restart.jpg": mp.jpeg(photo(67, 41, rng), subsampling="4:2:0", restart_marker_blocks=2),
        "rgb_restart_rows.jpg": mp.jpeg(photo(67, 41, rng), subsampling="4:2:2", restart_marker_rows=1),
        "rgb_progressive_420.jpg": mp.jpeg(photo(53, 37, rng), subsampling="4:2:0", **progressive),
        "rgb_progressive_444.jpg": mp.jpeg(photo(53, 37, rng), subsampling="4:4:4", **progressive),
        "rgb_progressive_restart.jpg": mp.jpeg(photo(53, 37, rng), restart_marker_blocks=3, **progressive),
        "gray.jpg": mp.jpeg(photo(53, 37, rng)[:, :, 0], quality=75),
        "gray_progressive.jpg": mp.jpeg(photo(19, 37, rng)[:, :, 0], **progressive),
        "cmyk.jpg": mp.jpeg(ink, quality=85),
        "ycck.jpg": mp.jpeg_ycck(45, 29, rng, quality=85),
        "one_pixel.jpg": mp.jpeg(photo(1, 1, rng), quality=90),
        "one_pixel_gray.jpg": mp.jpeg(photo(1, 1, rng)[:, :, 0], quality=90),
        "one_column.jpg": mp.jpeg(photo(1, 67, rng), quality=90),
        "one_row.jpg": mp.jpeg(photo(67, 1, rng), quality=90),
    }


def pngs(rng):
    """name -> Png"""
    names = {mp.GRAY: "gray", mp.RGB: "rgb", mp.PALETTE: "palette", mp.GRAY_ALPHA: "gray_alpha", mp.RGBA: "rgba"}
    pictures = {}
    for colour, name in names.items():
        for depth in mp.DEPTHS[colour]:
            pictures[f"{name}_{depth}.png"] = mp.random_png(colour, depth, 29, 23, rng)
            if colour in (mp.GRAY, mp.RGB, mp.PALETTE):
                pictures[f"{name}_{depth}_trns.png"] = mp.random_png(colour, depth, 29, 23, rng, transparent=True)
        depth = mp.DEPTHS[colour][0]
        pictures[f"{name}_{depth}_interlaced.png"] = mp.random_png(colour, depth, 21, 19, rng, True, True)
    pictures["rgb_8_photo.png"] = mp.Png(mp.photo(64, 48, rng), 8, mp.RGB, rng=rng)
    for width, height in ((1, 1), (2, 3), (4, 5), (5, 1), (1, 7)):
        pictures[f"rgb_8_interlaced_{width}x{height}.png"] = mp.random_png(mp.RGB, 8, width, height, rng, True)
    return pictures


def entry(name, data, default):
    """A picture of expected.json."""
    reference, image = mp.reference(data), Image.open(io.BytesIO(data))
    if image.format == "PNG":
        image.load()  # what stands behind the pixels, too
    orientation = image.getexif().get(0x0112, 1)
    orientation = orientation if orientation in range(1, 9) else 1
    facts = {"file": name, "format": {"WEBP": "WebP"}.get(image.format, image.format), "orientation": orientation}
    for policy, rgb in (("default", default), ("reference", reference)):
        size = {"width": rgb.shape[1], "height": rgb.shape[0]}
        facts[policy] = size | {"sha256": hashlib.sha256(rgb.tobytes()).hexdigest()}
    return facts


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.*"):
        if not old.name.startswith(("deep_", "refused_grid")):
            old.unlink()
    rng = np.random.default_rng(20240501)
    pictures = [(name, data, mp.default(data)) for name, data in jpegs(rng).items()]
    pictures += [(name, png.data, png.default()) for name, png in pngs(rng).items()]
    small = mf.all_cases(rng, lambda: tuple(int(n) for n in rng.integers(5, 21, 2)))
    pictures += [(name, data, mp.default(data)) for name, data in small]
    for path in sorted(FOLDER.glob("deep_*")):
        pictures.append((path.name, path.read_bytes(), mp.default(path.read_bytes())))
    entries = []
    for name, data, default in pictures:
        (FOLDER / name).write_bytes(data)
        entries.append(entry(name, data, default))
    alpha = mf.save(mf.with_alpha((16, 12), rng), "AVIF", quality=40)
    (FOLDER / "refused_alpha.avif").write_bytes(alpha)
    libraries = ("libjpeg_turbo", "webp", "libtiff", "avif")
    made_with = {"Pillow": Image.__version__} | {name: features.version(name) for name in libraries}
    lines = ",\n".join("  " + json.dumps(facts) for facts in entries)
    (FOLDER / "expected.json").write_text(f'{{"made_with": {json.dumps(made_with)},\n "pictures": [\n{lines}\n]}}\n')
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(entries)} pictures, {total} bytes in {FOLDER}")


if __name__ == "__main__":
    main()
