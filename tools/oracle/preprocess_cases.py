"""Pictures made by formula, the lists of cases, and how a case runs: shared by the preprocessing oracles and the
scripts that make fixtures.

Everything is deterministic: a fixture names a picture by kind, height, width and seed, and the C tests make the
same bytes from the same four (tests/preprocess/support.c).
"""

import hashlib
import json
import random

import numpy as np
import PIL.Image

REAL_LIMITS = (65536, 16777216)  # what published preprocessor files say
CLASS_LIMITS = (3136, 1003520)  # transformers' class defaults
CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]


def formula(height, width):
    """(7x + 13y + 29c + (x*y mod 251) + ((11*((x div 5) xor (y div 3))) mod 256)) mod 256, as [height, width, 3]."""
    y, x, c = np.ogrid[:height, :width, :3]
    value = 7 * x + 13 * y + 29 * c + x * y % 251 + 11 * ((x // 5) ^ (y // 3)) % 256
    return (value % 256).astype(np.uint8)


def noise(height, width, seed):
    """The top byte of splitmix64 of (seed << 32) + byte index."""
    z = np.arange(height * width * 3, dtype=np.uint64) + np.uint64(seed << 32)
    z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(56)).astype(np.uint8).reshape(height, width, 3)


def extremes(height, width, seed):
    """Noise of 0 and 255 only: overshoot at every step, so clipping is exercised everywhere."""
    return np.where(noise(height, width, seed) < 128, 0, 255).astype(np.uint8)


def lines(height, width):
    """White vertical lines, one pixel wide, every fourth column: squeezing or swapping the sides shows."""
    x = np.arange(width)
    return np.broadcast_to(np.where(x % 4 == 0, 255, 0).astype(np.uint8)[None, :, None], (height, width, 3)).copy()


def checkerboard(height, width):
    y, x, c = np.ogrid[:height, :width, :3]
    return np.where((x + y + 0 * c) % 2 == 1, 255, 0).astype(np.uint8)


def white_pixel(height, width):
    """One white pixel in the middle of black."""
    array = np.zeros((height, width, 3), np.uint8)
    array[height // 2, width // 2] = 255
    return array


def ramp(height, width):
    """Red grows to the right, green downwards, blue falls with both."""
    y, x = np.ogrid[:height, :width]
    red, green = 255 * x // max(width - 1, 1) + 0 * y, 255 * y // max(height - 1, 1) + 0 * x
    return np.stack([red, green, 255 - (red + green) // 2], axis=2).astype(np.uint8)


PLAIN = {
    "formula": formula, "lines": lines, "checkerboard": checkerboard, "white_pixel": white_pixel, "ramp": ramp,
}
SEEDED = {"noise": noise, "extremes": extremes}


def picture(case):
    """The picture of a case: a dict with kind, height, width and seed (plain kinds ignore the seed)."""
    if case["kind"] in PLAIN:
        return PLAIN[case["kind"]](case["height"], case["width"])
    return SEEDED[case["kind"]](case["height"], case["width"], case["seed"])


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def resize_cases(seed=20, random_pairs=200):
    """At least 320 resizes {kind, height, width, seed, out_height, out_width}; random_pairs of them at random."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(random_pairs):  # any size to any size
        pairs.append([rng.randint(1, 700) for _ in range(4)])
    for _ in range(40):  # tiny on either side
        pairs.append([rng.randint(1, 8), rng.randint(1, 8), rng.randint(1, 8), rng.randint(1, 8)])
        pairs.append([rng.randint(1, 8), rng.randint(1, 8), 32 * rng.randint(1, 9), 32 * rng.randint(1, 9)])
    for _ in range(12):  # one axis unchanged
        h, w, other = rng.randint(1, 500), rng.randint(1, 500), rng.randint(1, 500)
        pairs.append([h, w, h, other])
        pairs.append([h, w, other, w])
    for _ in range(8):  # strips of a ratio near and beyond the limit of 200
        long, short = rng.randint(1000, 6400), rng.randint(1, 32)
        pairs.append([short, long, rng.randint(1, 64), rng.randint(1, 4000)])
        pairs.append([long, short, rng.randint(1, 4000), rng.randint(1, 64)])
    for _ in range(6):  # shrinking by 60 to 120 on both axes, then on one
        h, w, by = rng.randint(900, 1500), rng.randint(900, 1500), rng.randint(60, 120)
        pairs.append([h, w, max(1, h // by), max(1, w // by)])
        pairs.append([h, w // 8, max(1, h // by), w // 5])
    pairs += [
        [2700, 1800, 30, 20], [1, 1, 256, 256], [1, 1, 1, 1], [1, 2, 2, 1], [3, 3, 1, 1], [4096, 1, 1, 4096],
        [1, 6400, 32, 6400], [160, 640, 160, 640], [160, 640, 640, 160], [1365, 2048, 1376, 2048],
        [1080, 1920, 736, 1312], [333, 500, 320, 512], [245, 1380, 256, 1376],
    ]
    kinds = ("formula", "noise", "extremes")
    cases = [(kinds[i % 3], *pair) for i, pair in enumerate(pairs)]
    for kind in ("lines", "checkerboard", "white_pixel", "ramp"):  # up, down, mixed, odd
        for pair in [(160, 640, 256, 1024), (301, 433, 96, 160), (97, 35, 64, 224), (33, 31, 31, 33), (5, 7, 480, 672)]:
            cases.append((kind, *pair))
    for pair in [(3, 2, 900, 480), (2, 5, 520, 1220), (4, 3, 4, 750)]:
        cases.append(("extremes", *pair))  # largest weight just below 1, where torch's precision turns on half a unit
    names = ("kind", "height", "width", "out_height", "out_width")
    return [dict(zip(names, case), seed=i) for i, case in enumerate(cases)]


def pixel_value_cases():
    """At least 48 pictures {kind, height, width, seed, min_pixels, max_pixels, mean, std, rescale_factor}."""
    half, byte = [0.5] * 3, 1 / 255
    cases = []

    def add(kind, height, width, limits, mean=half, std=half, rescale_factor=byte):
        cases.append({
            "kind": kind, "height": height, "width": width, "seed": 1000 + len(cases),
            "min_pixels": limits[0], "max_pixels": limits[1],
            "mean": mean, "std": std, "rescale_factor": rescale_factor,
        })

    sizes = [
        (1, 1), (1, 2), (2, 1), (1, 200), (200, 1), (3, 3), (7, 5), (16, 16), (26, 28), (27, 257), (31, 33), (32, 32),
        (40, 8), (48, 80), (100, 150), (224, 150), (256, 384), (333, 500), (245, 1380), (10, 2000),
    ]
    for i, (height, width) in enumerate(sizes):
        add(("formula", "noise")[i % 2], height, width, REAL_LIMITS)
        add(("noise", "extremes", "formula")[i % 3], height, width, CLASS_LIMITS)
    add("noise", 640, 160, REAL_LIMITS)
    add("noise", 1080, 1920, CLASS_LIMITS)
    add("formula", 1300, 1100, CLASS_LIMITS)
    add("noise", 6400, 32, REAL_LIMITS)
    add("noise", 300, 400, (1, 1))
    add("noise", 300, 400, (1, 5000))
    add("formula", 77, 301, (40000, 41000))
    add("noise", 64, 64, (1000000, 1100000))
    add("noise", 90, 1800, (3136, 20000))
    add("noise", 123, 217, REAL_LIMITS, CLIP_MEAN, CLIP_STD)
    add("extremes", 217, 123, CLASS_LIMITS, CLIP_MEAN, CLIP_STD, 0.00392156862745098)
    add("noise", 200, 300, REAL_LIMITS, [0.1, 0.2, 0.3], [0.7, 0.8, 0.9], 1 / 127.5)
    add("noise", 200, 300, REAL_LIMITS, [-0.25, 0.0, 1.5], [1.25, 3.0, 0.011], 0.0123)
    return cases


def pixel_values(processor_class, case):
    """(pixel_values, grids) of a transformers image processor class for one of pixel_value_cases."""
    processor = processor_class(
        size={"shortest_edge": case["min_pixels"], "longest_edge": case["max_pixels"]},
        patch_size=16, temporal_patch_size=2, merge_size=2,
        image_mean=case["mean"], image_std=case["std"], rescale_factor=case["rescale_factor"],
    )
    # A PIL image, because the channel axis of a small array would be guessed.
    out = processor(images=[PIL.Image.fromarray(picture(case))], return_tensors=None)
    values, grids = np.asarray(out["pixel_values"]), np.asarray(out["image_grid_thw"])
    if values.dtype != np.float32:
        raise SystemExit(f"pixel_values are {values.dtype}")
    return values, grids


def write_fixture(path, value):
    """One entry per line of every list, so that differences between two runs can be read."""
    parts = []
    for key, entry in value.items():
        if isinstance(entry, list):
            text = "[\n" + ",\n".join(json.dumps(item) for item in entry) + "\n]"
        else:
            text = json.dumps(entry)
        parts.append(f"{json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(path)
