"""Makes models/demo/check: the reference results that `qvl check` compares a machine with.

    python tools/oracle/tower_fixtures.py OUT --only bundled      # needs torch
    python tools/oracle/make_check.py OUT/tower_bundled.safetensors

Reads the bundled tower's stages and the fixtures in tests/fixtures (made by the other scripts here, their versions are
stated in each group) and runs what needs no torch: transformers' smart_resize and mlx-vlm's image processor. The format is described at the
top of cli/cmd_check.c. Pictures are those of preprocess_cases.formula.
"""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLImageProcessor
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save_file
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

import preprocess_cases as cases
from tower_cases import BOUND

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
CHECK = ROOT / "models" / "demo" / "check"

PICTURES = ["rgb_444.jpg", "rgb_422.jpg", "rgb_420.jpg", "rgb_progressive_420.jpg", "rgb_restart.jpg", "gray.jpg",
            "rgb_8.png", "gray_8.png"]
# height, width; the last is refused.
SIZES = [(1, 1), (16, 16), (16, 2048), (26, 28), (48, 48), (80, 112), (333, 500), (427, 640), (720, 1280),
         (1080, 1920), (2160, 3840), (3024, 4032), (5000, 5000), (10, 2000), (1, 200), (1, 201)]
MLX_SIZES = [(1, 1), (7, 5), (256, 384), (333, 500), (97, 1023)]
LARGEST = 1 << 19  # pixels of a bundled case: the check should take a second


def read_json(name):
    return json.loads((FIXTURES / name).read_text())


def picture_group():
    found = read_json("media/expected.json")
    expected = {entry["file"]: entry for entry in found["pictures"]}
    group = {"kind": "picture", "reference": "Pillow " + found["made_with"]["Pillow"], "cases": []}
    for name in PICTURES:
        shutil.copyfile(FIXTURES / "media" / name, CHECK / name)
        entry = expected[name]["default"]
        group["cases"].append({"file": name, "size": [entry["width"], entry["height"]], "sha256": entry["sha256"]})
    return group


def resized(height, width, limits):
    try:
        new_height, new_width = smart_resize(height, width, 32, *limits)
    except ValueError:
        return None
    return [new_width, new_height]


def smart_resize_group():
    return {"kind": "smart_resize", "reference": "transformers " + version("transformers"), "factor": 32,
            "cases": [{"size": [width, height], "limits": list(limits), "result": resized(height, width, limits)}
                      for height, width in SIZES for limits in (cases.REAL_LIMITS, cases.CLASS_LIMITS)]}


def small_formula(fixture, count, *sides):
    chosen = [case for case in fixture["cases"]
              if case["kind"] == "formula" and case["height"] * case["width"] <= LARGEST
              and all(case[a] * case[b] <= LARGEST for a, b in sides)]
    return chosen[:count]


def resize_group(fixture, preset, reference):
    chosen = small_formula(fixture, 12, ("out_height", "out_width"))
    return {"kind": "resize", "preset": preset, "reference": reference,
            "cases": [{"size": [case["width"], case["height"]], "to": [case["out_width"], case["out_height"]],
                       "sha256": case["sha256"]} for case in chosen]}


def pixel_values_group(fixture, preset, key, reference):
    """The cases with the limits of published folders and their normalisation, which is the demo model's too."""
    chosen = [case for case in small_formula(fixture, None)
              if (case["min_pixels"], case["max_pixels"]) == cases.REAL_LIMITS and case["mean"] == [0.5] * 3
              and case["std"] == [0.5] * 3 and case["shape"][0] * case["shape"][1] <= 6 * LARGEST]
    return {"kind": "pixel_values", "preset": preset, "reference": reference, "limits": list(cases.REAL_LIMITS),
            "cases": [{"size": [case["width"], case["height"]], "grid": case["grid"][1:], "sha256": case[key]}
                      for case in chosen]}


def mlx_group():
    processor = Qwen3VLImageProcessor(min_pixels=cases.REAL_LIMITS[0], max_pixels=cases.REAL_LIMITS[1])
    group = {"kind": "pixel_values", "preset": "mlx", "reference": "mlx-vlm " + version("mlx-vlm"),
             "limits": list(cases.REAL_LIMITS), "cases": []}
    for height, width in MLX_SIZES:
        found = processor(images=[Image.fromarray(cases.formula(height, width))])
        values = np.asarray(found["pixel_values"])
        assert values.dtype == np.float32
        grid = np.asarray(found["image_grid_thw"]).tolist()[0]
        group["cases"].append({"size": [width, height], "grid": grid[1:], "sha256": cases.sha256(values)})
    return group


def tower_groups(path):
    """The case `small` of the bundled model: the f32 bound is the design's, the bf16 one transformers' own error."""
    with safe_open(path, "numpy") as file:
        made = json.loads(file.metadata()["qvl_fixture"])
        found = {name[len("small/"):]: file.get_tensor(name) for name in file.keys()}
    inputs = {name: found.pop(name) for name in ("pixel_values", "grid_thw")}
    stages = {name: values for name, values in found.items() if values.dtype == np.float32}
    reference = f"transformers {made['transformers']}, torch {made['torch']}"
    save_file(stages | {"pixel_values": inputs["pixel_values"], "image_grid_thw": inputs["grid_thw"]},
              CHECK / "tower.safetensors", metadata={"reference": reference})
    (CHECK / "tower.safetensors").chmod(0o644)
    exact = [{"stage": name, "bound": BOUND} for name in sorted(stages)]
    rounded = [{"stage": name, "bound": float(found[name + "/bf16_nmse"].max())}
               for name in sorted(stages) if name + "/bf16_nmse" in found]
    return [{"kind": "tower", "dtype": dtype, "file": "tower.safetensors", "reference": reference, "cases": chosen}
            for dtype, chosen in (("f32", exact), ("bf16", rounded))]


def write_lines(path, groups):
    """One case a line, so that differences can be read."""
    parts = []
    for group in groups:
        head = json.dumps({key: value for key, value in group.items() if key != "cases"})
        lines = ",\n".join("  " + json.dumps(case) for case in group["cases"])
        parts.append(head[:-1] + ', "cases": [\n' + lines + "]}")
    path.write_text('{"made_by": "tools/oracle/make_check.py", "groups": [\n' + ",\n".join(parts) + "\n]}\n")


def main():
    shutil.rmtree(CHECK, ignore_errors=True)
    CHECK.mkdir(parents=True)
    torch_resize, pillow_resize = read_json("torch_resize.json"), read_json("pillow_resize.json")
    pixels = read_json("torch_pixel_values.json")
    torch, both = torch_resize["versions"], pixels["versions"]
    groups = [
        picture_group(),
        smart_resize_group(),
        resize_group(torch_resize, "transformers", f"torchvision {torch['torchvision']}, torch {torch['torch']}"),
        resize_group(pillow_resize, "transformers-pil", "Pillow " + pillow_resize["versions"]["pillow"]),
        pixel_values_group(pixels, "transformers", "torch_sha256",
                           f"transformers {both['transformers']}, torchvision {both['torchvision']}"),
        pixel_values_group(pixels, "transformers-pil", "pil_sha256",
                           f"transformers {both['transformers']}, Pillow {both['pillow']}"),
        mlx_group(),
        *tower_groups(sys.argv[1]),
    ]
    write_lines(CHECK / "check.json", groups)
    for group in groups:
        print(f"{group['kind']} {group.get('preset', group.get('dtype', ''))}: {len(group['cases'])} cases, "
              f"{group['reference']}")


if __name__ == "__main__":
    main()
