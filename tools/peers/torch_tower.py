"""Times transformers' vision tower on torch's CPU beside qvl's, on the same sizes and threads, taking turns.

    python3 tools/peers/torch_tower.py [--qvl build/qvl] [--random-model build/random_model] [--threads 2] [--dtype bf16]
        [--runs 3] [SIZE ...]

Needs torch and transformers. Both run the tower of Qwen3.5-27B (27 blocks of 1152) with random weights, from patch rows
to features: qvl's own bench, and Qwen3_5VisionModel with sdpa attention. Prints medians and ratios.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5VisionConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionModel

SHAPE = "qwen3.5-27b"


def build(dtype):
    config = Qwen3_5VisionConfig(depth=27, hidden_size=1152, num_heads=16, intermediate_size=4304,
                                 out_hidden_size=5120, patch_size=16, num_position_embeddings=2304)
    return Qwen3_5VisionModel._from_config(config, dtype=dtype, attn_implementation="sdpa").eval()


def torch_seconds(model, side, dtype):
    grid = torch.tensor([[1, side // 16, side // 16]])
    rows = torch.randn((side // 16) ** 2, 1536, dtype=dtype)
    start = time.perf_counter()
    model(rows, grid_thw=grid)
    return time.perf_counter() - start


def qvl_seconds(program, folder, side, threads, dtype):
    out = subprocess.run(
        [program, "bench", "-m", folder, f"{side}x{side}", "--runs", "1", "--threads", str(threads), "--dtype", dtype,
         "--json", "--quiet"], check=True, capture_output=True, text=True).stdout
    result = json.loads(out)
    return result["kernels"], result["sizes"][0]["tower_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[512])
    parser.add_argument("--qvl", default="build/qvl")
    parser.add_argument("--random-model", default="build/random_model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[arguments.dtype]
    model = build(dtype)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {arguments.threads} threads, "
          f"{arguments.dtype}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "model")
        subprocess.run([arguments.random_model, "--shape", SHAPE, folder], check=True)
        for side in arguments.sizes:
            torch_seconds(model, side, dtype)
            pairs = []
            for _ in range(arguments.runs):
                kernels, ours = qvl_seconds(arguments.qvl, folder, side, arguments.threads, arguments.dtype)
                pairs.append((torch_seconds(model, side, dtype), ours))
            theirs, ours = (statistics.median(column) for column in zip(*pairs))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{side}x{side}: torch {theirs:.3f} s, qvl ({kernels}) {ours:.3f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
