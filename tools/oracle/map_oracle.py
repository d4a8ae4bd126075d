"""Live: `qvl encode --map` against numpy's singular value decomposition of the features that the same run wrote.

Pictures and a clip of several sizes, towers of several widths, both dtypes. Colours may differ by one level, where a
value lies between two. A component whose variance another one has as well is not compared: any turn of the two is right.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import qvl_ctypes as qvl

BUILD = Path(os.environ.get("QVL_BUILD_DIR", qvl.REPOSITORY / "build"))
CLIP = qvl.REPOSITORY / "tests/fixtures/video/vp9.webm"
# Of random_model, and the side of a token in pixels. The last is a published tower, cut to its first block.
SHAPES = (("demo", 32, ()), ("tiny-vl", 8, ()), ("tiny-35", 8, ()), ("qwen3.5-2b", 32, ("--depth", "1")))
SIZES = ((1, 2), (3, 1), (2, 2), (5, 3), (11, 7), (32, 20))  # in tokens
NONE, NEAR = 1e-12, 1e-6


def levels_of(scores):
    low, high = np.percentile(scores, [1, 99])
    if high - low <= 1e-9 * np.ptp(scores):
        low, high = scores.min(), scores.max()
    return np.floor(255 * np.clip((scores - low) / (high - low), 0, 1) + 0.5).astype(int)


def expected_levels(features):
    """Levels [tokens, 3], and which of the three can be compared."""
    tokens = len(features)
    left, lengths, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    variances = np.append(lengths**2, [0.0] * 4) / lengths[0]**2
    levels, clear = np.full((tokens, 3), 128), []
    for k in range(3):
        if k >= tokens - 1 or variances[k] <= NONE:
            clear.append(k >= tokens - 1 or variances[k] < NONE / 100)
            continue
        gaps = [variances[k] - variances[k + 1]] + ([variances[k - 1] - variances[k]] if k else [])
        clear.append(min(gaps) > NEAR)
        scores = left[:, k]
        farthest = np.argmax(np.abs(scores) >= np.abs(scores).max() * (1 - NEAR))
        levels[:, k] = levels_of(scores if scores[farthest] >= 0 else -scores)
    return levels, clear


def compare(name, features, grid, side, picture):
    """How many components were compared; None: they differ."""
    rows, columns = grid[0] * grid[1] // 2, grid[2] // 2
    expected, clear = expected_levels(features)
    if picture.shape != (rows * side, columns * side, 3):
        print(f"DIFFERENT {name}: the map is {picture.shape}, {rows} x {columns} tokens")
        return None
    squares = picture.reshape(rows, side, columns, side, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1, 3)
    found = squares[:, 0].astype(int)
    if (squares != squares[:, :1]).any():
        print(f"DIFFERENT {name}: a token is not one colour")
        return None
    off = np.abs(found - expected).max(axis=0)
    if any(off[k] > 1 for k in range(3) if clear[k]):
        print(f"DIFFERENT {name}: levels are off by {off}")
        return None
    return sum(clear)


def run(model, side, source, scratch, dtype, size):
    output, drawn = scratch / "features.safetensors", scratch / "map.png"
    subprocess.run([BUILD / "qvl", "encode", source, "-m", model, "-q", "--no-cache", "--dtype", dtype, "--size",
                    f"{side * size[0]}x{side * size[1]}", "-o", output, "--map", drawn], check=True, stdout=subprocess.DEVNULL)
    tensors = qvl.load_tensors(output)
    kind = "video" if "video_embeds" in tensors else "image"
    return compare(f"{model.name} {source.name} {dtype} {size}", tensors[f"{kind}_embeds"].astype(np.float64),
                   tensors[f"{kind}_grid_thw"][0], side, np.asarray(Image.open(drawn)))


def main():
    random = np.random.default_rng(10)
    compared = components = 0
    good = True
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for shape, side, flags in SHAPES:
            model = scratch / shape
            subprocess.run([BUILD / "random_model", "--shape", shape, *flags, model], check=True)
            for dtype in ("f32", "bf16"):
                for size in SIZES:
                    picture = scratch / "picture.png"
                    pixels = random.integers(0, 256, (4 * size[1], 4 * size[0], 3), dtype=np.uint8)
                    Image.fromarray(pixels).resize((side * size[0], side * size[1])).save(picture)
                    for source in (picture, CLIP) if size == SIZES[3] else (picture,):
                        clear = run(model, side, source, scratch, dtype, size)
                        good &= clear is not None
                        compared += 1
                        components += clear or 0
    print(f"{compared} maps, {components} of {3 * compared} components can be told from others")
    return good and components > 2.8 * compared


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
