"""Times Pillow and numpy at preprocessing beside qvl, on the same picture, one thread, taking turns.

    python3 tools/peers/pillow_preprocess.py [--runs 7] [--size 1024]

Needs Pillow and numpy; the library through tools/oracle/qvl_ctypes.py (QVL_BUILD_DIR). A 4000x3000 JPEG: decode, resize to
SIZE x SIZE, normalise and cut into patch rows. The resized pixels of both are compared and must be equal.
"""

import argparse
import io
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import PIL
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
import qvl_ctypes as qvl  # noqa: E402

PATCH, MERGE = 16, 2


def photo():
    y, x = np.mgrid[0:3000, 0:4000].astype(np.float32)
    planes = [np.sin(x / (37 + 11 * c)) * 60 + np.cos(y / (53 + 7 * c)) * 60 + 128 for c in range(3)]
    noise = np.random.default_rng(1).normal(0, 6, (3000, 4000, 3))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def rows_of(pixels):
    """Normalise and patchify as a careful numpy program does it."""
    side = pixels.shape[0] // PATCH
    values = (pixels.astype(np.float32) / 127.5 - 1.0).transpose(2, 0, 1)
    blocks = values.reshape(3, side // MERGE, MERGE, PATCH, side // MERGE, MERGE, PATCH)
    blocks = blocks.transpose(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None]
    return np.repeat(blocks, 2, axis=5).reshape(side * side, -1)


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--size", type=int, default=1024)
    arguments = parser.parse_args()
    size = arguments.size
    file = io.BytesIO()
    Image.fromarray(photo()).save(file, "JPEG", quality=90)
    data = file.getvalue()
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    steps = {"decode": [], "resize": [], "resize, normalise, cut": []}
    model = qvl.Model(os.environ.get("QVL_MODEL", "models/demo"), level="config", threads=1)
    for _ in range(arguments.runs):
        theirs, image = timed(lambda: np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
        ours, (own, _) = timed(qvl.read_image, data)
        assert np.array_equal(image, own)
        steps["decode"].append((theirs, ours))
        picture = Image.fromarray(pixels)
        theirs, resized = timed(lambda: np.asarray(picture.resize((size, size), Image.BICUBIC)))
        ours, own = timed(qvl.resize, pixels, size, size, "transformers-pil", 1)
        assert np.array_equal(resized, own)
        steps["resize"].append((theirs, ours))
        theirs_rows, _ = timed(rows_of, resized)
        ours, _ = timed(lambda: model.preprocess(
            [pixels], preset="transformers-pil", width=size, height=size))
        steps["resize, normalise, cut"].append((theirs + theirs_rows, ours))
    print(f"Pillow {PIL.__version__}, numpy {np.__version__}, one thread, medians of {arguments.runs}, 4000x3000 to "
          f"{size}x{size}")
    for name, pairs in steps.items():
        theirs, ours = (statistics.median(column) for column in zip(*pairs))
        print(f"{name:24} Pillow {1e3 * theirs:7.1f} ms   qvl {1e3 * ours:7.1f} ms   ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
