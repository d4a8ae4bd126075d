"""Makes the preprocessing fixtures that need no torch.

    python tools/oracle/preprocess_fixtures.py VECTORS OUT_FOLDER

VECTORS is the project's reference file vectors/preprocess.json. Written are

    preprocess_vectors.json   the picture half of VECTORS, and smart_resize of more sizes
    pillow_resize.json        hashes of Pillow's bicubic resize of the cases that torch_resize.json has too
    pillow_pixel_values.json  Qwen2VLImageProcessorPil: grid and hash of pixel_values, same cases as for torch
"""

import argparse
import json
import platform
import random
from pathlib import Path

import numpy as np
import PIL
import PIL.Image
import transformers
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

import preprocess_cases as cases

MADE_BY = {
    "made_by": "tools/oracle/preprocess_fixtures.py",
    "versions": {
        "python": platform.python_version(), "numpy": np.__version__, "pillow": PIL.__version__,
        "transformers": transformers.__version__,
    },
}
RESIZE_KEYS = ("src", "dst", "src_sha256", "pil_sha256", "torch_u8_cpu_sha256", "torch_precision_bits")
PIXEL_KEYS = ("src", "grid_thw", "shape", "fast_sha256", "pil_sha256")
# preprocess.md, section 8: the 256 floats of mean 0.5, std 0.5, rescale 1/255.
TABLES = {
    "transformers": "b4925e7ab450610f0996fb5700e2b9cda8e3a8d98983df9659a9d9d6b952397b",
    "transformers-pil": "d15e8ce72284446496a6de66e8a4795818530b44cd2c3dd415077364535c3c1a",
    "mlx": "978c41cbf64857201e32ae6672eb149e8b8e1fb02c22fa722fc5ead3edf200d3",
}


def small_sizes(limits):
    """[height, width] of every size 1..40 x 1..40, height slowest."""
    sizes = []
    for height in range(1, 41):
        for width in range(1, 41):
            sizes.append(smart_resize(height, width, 32, *limits))
    return {"min_pixels": limits[0], "max_pixels": limits[1], "sizes": sizes}


def large_sizes(seed=3, count=400):
    """[height, width, min, max, [height, width]] where height * width is beyond 2^53.

    Half are squares under a limit that is a square: the exact side is whole, so the last bit of a quotient decides.
    """
    rng = random.Random(seed)
    sizes = []
    for i in range(count):
        height, width = rng.randint(2**27, 2**31), rng.randint(2**27, 2**31)
        limits = rng.choice([cases.REAL_LIMITS, (1, rng.randint(1, 2**53)), (rng.randint(2**40, 2**50), 2**53)])
        if i % 2:
            width, limits = height, (1, (32 * rng.randint(1, 3000)) ** 2)
        sizes.append([height, width, *limits, smart_resize(height, width, 32, *limits)])
    return sizes


def sizes_of_factor_28(seed=4, count=300):
    """[height, width, min, max, [height, width]] at the factor of Qwen2-VL, where the order of divisions shows.

    Limits are those that the exact computation hits with whole sides: 16 : 9 pictures, and blocks of that shape.
    """
    rng = random.Random(seed)
    sizes = []
    for i in range(count):
        scale, blocks = rng.randint(1, 2000), rng.randint(1, 40)
        height, width, area = 9 * scale, 16 * scale, 9 * 16 * (28 * blocks) ** 2
        limits = (1, area) if i % 2 else (area, 2**40)
        sizes.append([height, width, *limits, smart_resize(height, width, 28, *limits)])
    return sizes


def pillow_resize_cases():
    results = []
    for case in cases.resize_cases():
        image = PIL.Image.fromarray(cases.picture(case))
        out = image.resize((case["out_width"], case["out_height"]), PIL.Image.Resampling.BICUBIC)
        results.append(dict(case, sha256=cases.sha256(np.asarray(out))))
    return results


def pillow_pixel_value_cases():
    results = []
    for case in cases.pixel_value_cases():
        values, grids = cases.pixel_values(Qwen2VLImageProcessorPil, case)
        results.append(dict(case, grid=grids[0].tolist(), shape=list(values.shape), sha256=cases.sha256(values)))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    vectors = json.loads(arguments.vectors.read_text())
    folder = arguments.folder
    cases.write_fixture(folder / "preprocess_vectors.json", {
        **MADE_BY,
        "normalise_tables": TABLES,
        "resize": [{key: entry[key] for key in RESIZE_KEYS} for entry in vectors["resize"]],
        "image_pixel_values": [{key: e[key] for key in PIXEL_KEYS} for e in vectors["image_pixel_values"]],
        "image_smart_resize": vectors["image_smart_resize"],
        "large_sizes": large_sizes(),
        "sizes_of_factor_28": sizes_of_factor_28(),
        "small_sizes": [small_sizes(cases.REAL_LIMITS), small_sizes(cases.CLASS_LIMITS)],
    })
    cases.write_fixture(folder / "pillow_resize.json", {**MADE_BY, "cases": pillow_resize_cases()})
    cases.write_fixture(folder / "pillow_pixel_values.json", {**MADE_BY, "cases": pillow_pixel_value_cases()})


if __name__ == "__main__":
    main()
