"""Live where torch is installed (not part of the tests): transformers' tower against qvl, every stage, in float32.

    QVL_BUILD_DIR=build python3 tools/oracle/tower_torch_oracle.py [SHAPE ...]

Needs what tower_fixtures.py needs. Without arguments the four tiny models and the shape "demo"; a published shape of
generator.py works too, with a single picture and a clip.
"""

import os
import sys
import tempfile

import torch
import transformers

import generator
import qvl_ctypes
import tower_fixtures
from tower_cases import DEMO_CASES, TINY_CASES, compare, compare_features, input_rows, write_model

LARGE_CASES = {"image": [[1, 8, 8]], "video": [[2, 4, 8]]}


def check_shape(shape, folder):
    tiny = shape.startswith("tiny-")
    init, dtype = ("quarter", "f32") if tiny else ("scaled", "bf16")
    cases = TINY_CASES if tiny else DEMO_CASES if shape == "demo" else LARGE_CASES
    write_model(folder, shape, init, dtype)
    tower = tower_fixtures.build(shape, generator.tower(shape, init, dtype), torch.float32, "eager", torch.device("cpu"))
    good = True
    with qvl_ctypes.Model(folder, dtype="F32") as model:
        for case, grids in cases.items():
            taps = {}
            features = model.vision_encode(input_rows(shape, case, grids), grids, taps=taps)
            stages = tower_fixtures.run(tower, shape, case, grids, inner=True)
            good &= compare(f"{shape} {case}", taps, stages)
            good &= compare_features(features, stages)
    return good


def main():
    tower_fixtures.exact_settings()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    shapes = sys.argv[1:] or ["tiny-vl", "tiny-35", "tiny-vlmoe", "tiny-35moe", "demo"]
    with tempfile.TemporaryDirectory() as folder:
        good = [check_shape(shape, os.path.join(folder, shape)) for shape in shapes]
    print("all stages agree" if all(good) else "stages differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
