"""Live: generator.py gives the same bits as the C generator, in the folders that build/random_model writes."""

import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import generator

REPOSITORY = Path(__file__).resolve().parents[2]

# --shape, --init, --dtype, --depth (None: all blocks; fewer keep the large classes quick), further arguments.
WHOLE = ("tiny-vl", "tiny-35", "tiny-vlmoe", "tiny-35moe", "demo", "demo-35")
FOLDERS = [(shape, init, dtype, None, []) for shape in WHOLE for init in ("quarter", "scaled")
           for dtype in ("f32", "bf16")]
FOLDERS += [("qwen3.5-0.8b", "scaled", "bf16", 2, []), ("qwen3-vl-2b", "scaled", "bf16", 1, ["--shards", "3"]),
            ("qwen3-vl-30b-a3b", "scaled", "f32", 1, [])]


def read_tensors(path):
    """name -> (dtype, shape, bits) of a safetensors file; bits are uint32 or uint16."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    kinds = {"F32": np.uint32, "BF16": np.uint16}
    return {name: (entry["dtype"], entry["shape"],
                   np.frombuffer(raw[8 + length:][slice(*entry["data_offsets"])], kinds[entry["dtype"]]))
            for name, entry in header.items()}


def expected_bits(name, shape, init, dtype, model_type):
    values = generator.weight(name, shape, init, "f32", model_type).ravel()
    return generator.to_bf16_bits(values) if dtype == "bf16" else values.view(np.uint32)


def wrong_names(names, shape, depth):
    """Tower tensors that are missing or not expected."""
    config = dict(generator.SHAPES[shape][1])
    if depth:
        config["deepstack_visual_indexes"] = [n for n in config["deepstack_visual_indexes"] if n < depth]
        config["depth"] = depth
    wanted = {generator.PREFIX + name: dims for name, dims in generator.tower_shapes(config).items()}
    return [name for name in set(wanted) | {n for n in names if n.startswith(generator.PREFIX)}
            if wanted.get(name) != names.get(name)]


def check_folder(folder, shape, init, dtype, depth):
    model_type = json.loads((folder / "config.json").read_text())["model_type"]
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(read_tensors(path))
    wrong = wrong_names({name: dims for name, (_, dims, _) in tensors.items()}, shape, depth)
    for name, (kind, dims, bits) in tensors.items():
        if kind.lower() != dtype or not np.array_equal(bits, expected_bits(name, dims, init, dtype, model_type)):
            wrong.append(name)
    if model_type != generator.SHAPES[shape][0]:
        wrong.append(f"model_type {model_type}")
    count = sum(bits.size for _, _, bits in tensors.values())
    print(f"{shape} {init} {dtype}: {len(tensors)} tensors, {count} values, {len(wrong)} differ {sorted(wrong)[:5]}")
    return not wrong and len(tensors) > 0


def main():
    tool = Path(os.environ.get("QVL_BUILD_DIR", REPOSITORY / "build")) / "random_model"
    good = []
    for shape, init, dtype, depth, extra in FOLDERS:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "model"
            depth_option = ["--depth", str(depth)] if depth else []
            subprocess.run([tool, "--shape", shape, "--init", init, "--dtype", dtype, *depth_option, *extra, folder],
                           check=True)
            good.append(check_folder(folder, shape, init, dtype, depth))
    print("every bit equal" if all(good) else "generators differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
