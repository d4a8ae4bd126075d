"""Live: qvl's fingerprint against hashlib, in every form a folder can have; and folders that mlx-vlm wrote.

1. random_model's folders in every naming generation, layout and number of shards: qvl, C, and fingerprint.py, Python,
   agree, and all forms of one model have one fingerprint.
2. mlx-vlm loads a Hugging Face folder and saves it in its own way: other names, other layout. qvl reads what it wrote
   and finds the same fingerprint and, in float32, the same bits of features. (Not for tiny-vlmoe: mlx-vlm 0.7.10 wants
   the language model's experts in an older order than transformers 5 writes them in.)
3. mlx-vlm quantises the tower: qvl refuses it with the name of a tensor and its type.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_vlm import utils as mlx_vlm

import qvl_ctypes as qvl
from fingerprint import fingerprint
from tower_cases import input_rows

BUILD = Path(os.environ.get("QVL_BUILD_DIR", qvl.REPOSITORY / "build"))
NAMINGS = ("hf", "visual", "mlx", "stray", "flat", "sidecar")
LAYOUTS = ("hf", "mlx", "flat")
GRIDS = [[1, 4, 6], [2, 4, 4]]


def write_model(folder, *flags):
    subprocess.run([BUILD / "random_model", *flags, folder], check=True)
    return folder


def ours(folder, memory=None):
    with qvl.Model(folder, "headers") as model:
        return model.fingerprint(memory)


def check_forms(scratch):
    good, compared = True, 0
    for shape, dtype in itertools.product(("tiny-vl", "tiny-35", "tiny-vlmoe", "tiny-35moe", "demo"), ("bf16", "f32")):
        seen = set()
        for naming, layout, shards in itertools.product(NAMINGS, LAYOUTS, ("1", "3")):
            folder = write_model(scratch / f"{shape}-{dtype}-{naming}-{layout}-{shards}", "--shape", shape, "--dtype",
                                 dtype, "--naming", naming, "--layout", layout, "--shards", shards)
            theirs = fingerprint(folder)
            found = {ours(folder), ours(folder, scratch / "memory"), ours(folder, scratch / "memory")}
            if found != {theirs}:
                print(f"DIFFERENT {folder.name}: {found}, hashlib {theirs}")
                good = False
            compared += 1
            seen.add(theirs)
            shutil.rmtree(folder)
        print(f"{shape} {dtype}: {' '.join(seen)}")
        good &= len(seen) == 1
    print(f"{compared} folders, each computed, computed to be remembered, remembered")
    return good and ours(qvl.REPOSITORY / "models/demo") == fingerprint(qvl.REPOSITORY / "models/demo")


def complete_config(folder):
    """mlx-vlm wants rope_theta where Qwen3-VL's files had it at first; qvl does not look at text_config."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    text = config["text_config"]
    text.setdefault("rope_theta", text["rope_parameters"]["rope_theta"])
    text.setdefault("rope_scaling", {**text["rope_parameters"], "type": "default"})
    path.write_text(json.dumps(config))


def save_as_mlx(model, source, folder):
    folder.mkdir()
    mlx_vlm.save_weights(folder, model)
    for path in source.glob("*.json"):
        if "index" not in path.name:
            shutil.copy(path, folder)
    return folder


def features(folder, shape):
    with qvl.Model(folder, dtype="F32") as model:
        result = model.vision_encode(input_rows(shape, "mixed", GRIDS), GRIDS)
        return [result["embeds"], *result["deepstack"]], model.info.tensor_prefix, model.info.tensor_layout


def check_mlx_writer(scratch):
    good = True
    for shape in ("tiny-vl", "tiny-35", "tiny-35moe"):
        source = write_model(scratch / shape, "--shape", shape, "--dtype", "f32")
        complete_config(source)
        written = save_as_mlx(mlx_vlm.load_model(source, lazy=True), source, scratch / f"{shape}-mlx")
        a, _, _ = features(source, shape)
        b, prefix, layout = features(written, shape)
        same = ours(source) == ours(written) == fingerprint(written) and (prefix, layout) == (b"vision_tower.", b"mlx")
        same &= len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b))
        print(f"{shape} written by mlx-vlm: {prefix.decode()}*, {layout.decode()} layout,",
              "same fingerprint and features" if same else "DIFFERENT")
        good &= same
    return good


def check_mlx_quantised(scratch):
    source = write_model(scratch / "whole", "--shape", "demo")
    complete_config(source)
    model = mlx_vlm.load_model(source, lazy=True)
    nn.quantize(model.vision_tower, group_size=32, bits=4,
                class_predicate=lambda _, module: isinstance(module, nn.Linear))
    written = save_as_mlx(model, source, scratch / "quantised")
    try:
        ours(written)
    except qvl.QvlError as error:
        print(f"quantised by mlx: {error}")
        return error.status == "unsupported" and "has dtype U32: it is quantised (MLX" in error.message
    print("QUANTISED TOWER ACCEPTED")
    return False


def main():
    mx.set_default_device(mx.cpu)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        good = [check_forms(scratch), check_mlx_writer(scratch), check_mlx_quantised(scratch)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
