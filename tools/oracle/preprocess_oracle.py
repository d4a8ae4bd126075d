"""Live comparison of the preprocessing with the programs it follows. Exits non-zero on any difference.

    resize       qvl_resize against Pillow's Image.resize: every byte
    smart-resize qvl_smart_resize against transformers' function: every size, and what is refused
    pixel-values presets transformers-pil and mlx against Qwen2VLImageProcessorPil of transformers and
                 Qwen3VLImageProcessor of mlx-vlm: every bit

The default preset needs torch: tests/fixtures/torch_*.json stand in for it (torch_preprocess_fixtures.py).
"""

import json
import math
import random
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import PIL.Image
from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLImageProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

import preprocess_cases as cases
import qvl_ctypes as qvl


def fail(message):
    sys.exit(f"DIFFERENCE: {message}")


def compare_resizes():
    """The fixtures' kinds of cases from another seed, and a few more extreme."""
    list_of_cases = cases.resize_cases(seed=21, random_pairs=400)
    extreme = [(1, 4096, 700, 3), (4096, 1, 3, 700), (2, 3000, 3000, 2), (5000, 64, 40, 64), (64, 5000, 64, 40)]
    for i, (height, width, out_height, out_width) in enumerate(extreme):
        list_of_cases.append({
            "kind": "noise", "height": height, "width": width, "seed": 5000 + i,
            "out_height": out_height, "out_width": out_width})
    for i, case in enumerate(list_of_cases):
        array = cases.picture(case)
        size = case["out_width"], case["out_height"]
        expected = np.asarray(PIL.Image.fromarray(array).resize(size, PIL.Image.Resampling.BICUBIC))
        for preset in ("transformers-pil", "mlx"):
            found = qvl.resize(array, *size, preset=preset, threads=1 + i % 3)
            if not np.array_equal(found, expected):
                fail(f"{preset} {case}: {np.count_nonzero(found != expected)} bytes differ")
    print(f"resize: {len(list_of_cases)} size pairs equal to Pillow {PIL.__version__}, byte for byte")


def random_sides(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randint(1, 64), rng.randint(1, 64)
    if kind == 1:
        return rng.randint(1, 6000), rng.randint(1, 6000)
    if kind == 2:  # ties and their neighbours
        return 16 * rng.randint(1, 200) + rng.randint(-1, 1), 16 * rng.randint(1, 200) + rng.randint(-1, 1)
    if kind == 3:  # around the ratio limit
        short = rng.randint(1, 200)
        return rng.sample([short, 200 * short + rng.randint(-2, 2)], 2)
    if kind == 4:  # squares beyond 2^53 pixels
        return (rng.randint(2**27, 2**31),) * 2
    return rng.randint(1, 2**31), rng.randint(1, 2**31)


def random_limits(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return cases.REAL_LIMITS
    if kind == 1:
        return cases.CLASS_LIMITS
    if kind == 2:
        return rng.randint(1, 2**rng.randint(1, 40)), rng.randint(1, 2**rng.randint(1, 40))
    if kind == 3:
        return 1, (32 * rng.randint(1, 3000)) ** 2
    return tuple(sorted((rng.randint(1, 10**6), rng.randint(1, 10**7))))


def compare_smart_resize(count=30000):
    rng = random.Random(22)
    refused = 0
    for _ in range(count):
        height, width = random_sides(rng)
        limits = random_limits(rng)
        factor = rng.choice([32, 32, 32, 28, 1, 7, 48])
        question = f"smart_resize({height}, {width}, {factor}, {limits})"
        try:
            expected = smart_resize(height, width, factor, *limits)
        except ValueError:
            expected = None
        try:
            found = qvl.smart_resize(height, width, factor, *limits)
        except qvl.QvlError as error:
            found = None
            ratio = max(height, width) / min(height, width)
            if "above the limit of 200" not in error.message or ratio <= 200:
                fail(f"{question} was refused: {error}")
            refused += 1
        if found != expected:
            fail(f"{question} is {expected}, got {found}")
    print(f"smart_resize: {count} random sizes equal to transformers {version('transformers')}, of which {refused} are "
          "refused by both")


def model_folder(parent, case):
    """A folder with just what QVL_OPEN_CONFIG reads."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    vision = {
        "depth": 1, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 64,
        "in_channels": 3, "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2,
        "num_position_embeddings": 256, "deepstack_visual_indexes": [0], "hidden_act": "gelu_pytorch_tanh",
        "model_type": "qwen3_vl",
    }
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_vl", "vision_config": vision}))
    (folder / "preprocessor_config.json").write_text(json.dumps({
        "size": {"shortest_edge": case["min_pixels"], "longest_edge": case["max_pixels"]},
        "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": case["mean"], "image_std": case["std"], "rescale_factor": case["rescale_factor"],
    }))
    return folder


def mlx_pixel_values(case):
    processor = Qwen3VLImageProcessor(
        min_pixels=case["min_pixels"], max_pixels=case["max_pixels"], image_mean=case["mean"],
        image_std=case["std"], rescale_factor=case["rescale_factor"])
    out = processor([PIL.Image.fromarray(cases.picture(case))])
    return out["pixel_values"], out["image_grid_thw"]


def pixel_value_cases():
    """The fixtures' cases and random ones."""
    rng = random.Random(23)
    result = cases.pixel_value_cases()
    for i in range(40):
        limits = rng.choice([cases.REAL_LIMITS, cases.CLASS_LIMITS, (1, rng.randint(1024, 400000))])
        height = rng.randint(1, 600)
        width = rng.randint(math.ceil(height / 200), min(600, 200 * height))
        result.append({
            "kind": rng.choice(["formula", "noise", "extremes"]), "height": height, "width": width, "seed": 6000 + i,
            "min_pixels": limits[0], "max_pixels": limits[1],
            "mean": [0.5] * 3, "std": [0.5] * 3, "rescale_factor": 1 / 255})
    return result


def compare_arrays(preset, case, found, expected):
    (values, grids), (expected_values, expected_grids) = found, expected
    if not np.array_equal(grids, expected_grids):
        fail(f"{preset} {case}: grid {grids.tolist()}, expected {expected_grids.tolist()}")
    if values.shape != expected_values.shape or expected_values.dtype != np.float32:
        fail(f"{preset} {case}: {values.shape}, expected {expected_values.dtype} {expected_values.shape}")
    different = np.count_nonzero(values.view(np.uint32) != np.ascontiguousarray(expected_values).view(np.uint32))
    if different:
        fail(f"{preset} {case}: {different} of {values.size} values differ")


def compare_pixel_values(parent):
    list_of_cases = pixel_value_cases()
    for i, case in enumerate(list_of_cases):
        picture = cases.picture(case)
        with qvl.Model(model_folder(parent, case), level="config", threads=1 + i % 3) as model:
            found = model.preprocess([picture], preset="transformers-pil")
            compare_arrays("transformers-pil", case, found, cases.pixel_values(Qwen2VLImageProcessorPil, case))
            compare_arrays("mlx", case, model.preprocess([picture], preset="mlx"), mlx_pixel_values(case))
    print(f"pixel_values: {len(list_of_cases)} pictures equal bit for bit, transformers-pil to transformers "
          f"{version('transformers')} with Pillow {PIL.__version__}, mlx to mlx-vlm {version('mlx-vlm')}")


def compare_batch(parent):
    """Several pictures of different sizes in one call, in order."""
    case = dict(cases.pixel_value_cases()[0], min_pixels=3136, max_pixels=1003520)
    sizes = [(100, 150), (1, 1), (333, 500), (100, 150), (40, 8)]
    pictures = [cases.noise(height, width, 7000 + i) for i, (height, width) in enumerate(sizes)]
    processor = Qwen2VLImageProcessorPil(
        size={"shortest_edge": case["min_pixels"], "longest_edge": case["max_pixels"]}, patch_size=16,
        temporal_patch_size=2, merge_size=2, image_mean=case["mean"], image_std=case["std"])
    expected = processor(images=[PIL.Image.fromarray(picture) for picture in pictures], return_tensors=None)
    expected = np.asarray(expected["pixel_values"]), np.asarray(expected["image_grid_thw"])
    with qvl.Model(model_folder(parent, case), level="config", threads=2) as model:
        compare_arrays("transformers-pil", "batch", model.preprocess(pictures, preset="transformers-pil"), expected)
    print(f"pixel_values: {len(sizes)} pictures in one call equal too")


def main():
    print(f"qvl {qvl.version()} from {qvl.LIBRARY}")
    compare_resizes()
    compare_smart_resize()
    with tempfile.TemporaryDirectory() as parent:
        compare_pixel_values(parent)
        compare_batch(parent)


if __name__ == "__main__":
    main()
