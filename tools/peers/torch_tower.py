"""Times transformers' vision tower on torch's CPU beside qvl's, on the same sizes and threads, taking turns.

    python3 tools/peers/torch_tower.py [--qvl build/qvl] [--random-model build/random_model] [--threads 2] [--dtype bf16]
        [--runs 3] [SIZE ...]

Needs torch and transformers. Both run the tower of Qwen3.5-27B (27 blocks of 1152) with random weights, from patch rows
to features: qvl's own bench, and Qwen3_5VisionModel with sdpa attention. Prints medians and ratios.
"""

import time

import torch
import transformers
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5VisionConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionModel

import tower_pairs


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


def main():
    parser = tower_pairs.parser(__doc__)
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[arguments.dtype]
    model = build(dtype)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {arguments.threads} threads, "
          f"{arguments.dtype}")
    tower_pairs.compare("torch", lambda side: lambda: torch_seconds(model, side, dtype), arguments, arguments.dtype)


if __name__ == "__main__":
    main()
