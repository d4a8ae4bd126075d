"""Times Pillow and numpy at preprocessing beside qvl, on the same picture, taking turns: Pillow on one thread, qvl on one and
on several.

    python3 tools/peers/pillow_preprocess.py [--runs 7] [--size 1024] [--threads 2]

Needs Pillow and numpy; the library through tools/oracle/qvl_ctypes.py (QVL_BUILD_DIR). A 4000x3000 JPEG: decode, resize to
SIZE x SIZE, normalise and cut into patch rows. The resized pixels of both are compared and must be equal.
"""

import argparse
import io
import os
import statistics
import sys
import time
from ctypes import byref
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


def seconds_of(model, function, sources, how):
    """Of a call of qvl_preprocess or qvl_preprocess_inputs, the median of five in a row. No copy into a numpy array."""
    options = qvl._options(qvl.PreprocessOptions, qvl.lib.qvl_preprocess_options_init, how)
    times = []
    for _ in range(5):
        patches, error = qvl.Patches(), qvl.Error()
        start = time.perf_counter()
        status = function(model._model, sources, 1, byref(options), byref(patches), byref(error))
        times.append(time.perf_counter() - start)
        qvl._check(status, error)
        qvl.lib.qvl_patches_free(byref(patches))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    size = arguments.size
    file = io.BytesIO()
    Image.fromarray(photo()).save(file, "JPEG", quality=90)
    data = file.getvalue()
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    models = [qvl.Model(os.environ.get("QVL_MODEL", "models/demo"), level="config", threads=threads)
              for threads in (1, arguments.threads)]
    decode, resize, rows, file_to_rows = [], [], [], []
    how = {"preset": qvl.PRESETS["transformers-pil"], "width": size, "height": size}
    images, inputs = qvl._image_views([pixels]), qvl._inputs_of([data])
    for _ in range(arguments.runs):
        theirs, image = timed(lambda: np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
        ours, (own, _) = timed(qvl.read_image, data)
        assert np.array_equal(image, own)
        decode.append((theirs, ours, ours))
        picture = Image.fromarray(pixels)
        theirs, resized = timed(lambda: np.asarray(picture.resize((size, size), Image.BICUBIC)))
        ours, own = timed(qvl.resize, pixels, size, size, "transformers-pil", 1)
        ours_more, _ = timed(qvl.resize, pixels, size, size, "transformers-pil", arguments.threads)
        assert np.array_equal(resized, own)
        resize.append((theirs, ours, ours_more))
        theirs_rows, _ = timed(rows_of, resized)
        rows.append((theirs + theirs_rows, *(seconds_of(m, qvl.lib.qvl_preprocess, images[0], how) for m in models)))
        file_to_rows.append((decode[-1][0] + rows[-1][0],
                             *(seconds_of(m, qvl.lib.qvl_preprocess_inputs, inputs[0], how) for m in models)))
    print(f"Pillow {PIL.__version__}, numpy {np.__version__}, medians of {arguments.runs}, 4000x3000 to {size}x{size}")
    for name, times in (("decode", decode), ("resize", resize), ("resize, normalise, cut", rows),
                        ("file to rows", file_to_rows)):
        theirs, ours, ours_more = (statistics.median(column) for column in zip(*times))
        print(f"{name:24} Pillow {1e3 * theirs:7.1f} ms   qvl {1e3 * ours:7.1f} ms (ratio {theirs / ours:.2f})   "
              f"with {arguments.threads} threads {1e3 * ours_more:7.1f} ms ({ours / ours_more:.2f} times as fast)")


if __name__ == "__main__":
    main()
