"""Makes the fixtures of the default preset, on a machine that has torch. CPU tensors only: on CUDA tensors the
resize is another computation.

    python tools/oracle/torch_preprocess_fixtures.py OUT_FOLDER

writes torch_resize.json        torchvision's v2 resize of uint8 [3, H, W], bicubic, antialias: hash of the bytes
       torch_pixel_values.json  Qwen2VLImageProcessor (torchvision): grid and hash of pixel_values, and how far
                                Qwen2VLImageProcessorPil (Pillow) is from it

Pictures are made by formula (preprocess_cases.py), so the files hold hashes and versions only.
"""

import argparse
import platform
import time
from pathlib import Path

import numpy as np
import PIL
import torch
import torchvision
import transformers
from torchvision.transforms.v2 import functional as tvF
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

import preprocess_cases as cases

MADE_BY = {
    "made_by": "tools/oracle/torch_preprocess_fixtures.py",
    "versions": {
        "python": platform.python_version(), "numpy": np.__version__, "pillow": PIL.__version__,
        "transformers": transformers.__version__, "torch": torch.__version__, "torchvision": torchvision.__version__,
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
    },
}


def torch_resize_cases():
    results = []
    for case in cases.resize_cases():
        size = [case["out_height"], case["out_width"]]
        bicubic = tvF.InterpolationMode.BICUBIC
        interleaved = torch.from_numpy(cases.picture(case)).permute(2, 0, 1)
        planar = interleaved.contiguous()
        out = tvF.resize(interleaved, size, interpolation=bicubic, antialias=True)
        if out.dtype != torch.uint8:
            raise SystemExit(f"the resize gave {out.dtype}: {case}")
        try:
            other = tvF.resize(planar, size, interpolation=bicubic, antialias=True)
        except RuntimeError as error:
            # torch 2.11 asserts on some planar pictures with a side of 1.
            print(f"planar layout fails inside torch: {case}: {str(error).splitlines()[0]}")
            other = out
        result = dict(case, sha256=cases.sha256(out.permute(1, 2, 0).numpy()))
        if not torch.equal(out, other):
            result["planar_sha256"] = cases.sha256(other.permute(1, 2, 0).numpy())
        results.append(result)
    print("cases where the memory layout matters:", sum("planar_sha256" in result for result in results))
    return results


def torch_pixel_value_cases():
    results = []
    for case in cases.pixel_value_cases():
        values, grids = cases.pixel_values(Qwen2VLImageProcessor, case)
        pillow, pillow_grids = cases.pixel_values(Qwen2VLImageProcessorPil, case)
        if grids.tolist() != pillow_grids.tolist():
            raise SystemExit(f"grids disagree: {case}")
        results.append(dict(
            case, grid=grids[0].tolist(), shape=list(values.shape), pil_sha256=cases.sha256(pillow),
            torch_sha256=cases.sha256(values), torch_pil_differing=int(np.count_nonzero(values != pillow)),
            torch_pil_max_difference=float(np.abs(values - pillow).max())))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    start = time.time()
    cases.write_fixture(folder / "torch_resize.json", {**MADE_BY, "cases": torch_resize_cases()})
    cases.write_fixture(folder / "torch_pixel_values.json", {**MADE_BY, "cases": torch_pixel_value_cases()})
    print(f"{time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
