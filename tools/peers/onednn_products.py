"""Times oneDNN's bf16 products (those of torch, weights packed beforehand, GELU fused) beside qvl's, taking turns.

    python3 tools/peers/onednn_products.py [--threads 2] [--rounds 7] [ROWS ...]

Needs torch; the library through tools/oracle/qvl_ctypes.py (QVL_BUILD_DIR). Shapes are those of a tower of 27 blocks of 1152;
no weights are read, both sides multiply random numbers. qvl's rows are those of qvl_bench_kernels, with what the
tower does beside a product: adding to the stream, rotating and laying out heads, GELU. Prints medians, the median of each
round's ratio, the ratio of the fastest runs, and geometric means.
"""

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import qvl_ctypes as qvl  # noqa: E402

CONFIG = {
    "model_type": "qwen3_5",
    "image_token_id": 510, "video_token_id": 511, "vision_start_token_id": 508, "vision_end_token_id": 509,
    "vision_config": {
        "model_type": "qwen3_5", "depth": 27, "hidden_size": 1152, "hidden_act": "gelu_pytorch_tanh", "num_heads": 16,
        "intermediate_size": 4304, "in_channels": 3, "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2,
        "num_position_embeddings": 2304, "out_hidden_size": 5120, "deepstack_visual_indexes": [],
    },
}
# qvl's name of the kernel: n, k, GELU's form, rows per row
PRODUCTS = {
    "qkv, rotated": (3456, 1152, None, 1),
    "projection": (1152, 1152, None, 1),
    "fc1, GELU": (4304, 1152, "tanh", 1),
    "fc2": (1152, 4304, None, 1),
    "merger fc1, GELU": (4608, 4608, "none", 4),
    "merger fc2": (5120, 4608, None, 4),
}


class KernelTime(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 64), ("seconds", ctypes.c_double), ("flops", ctypes.c_double),
                ("peak", ctypes.c_double), ("share", ctypes.c_double), ("steady_runs", ctypes.c_int32)]


def qvl_products(model, rows):
    """Seconds of one run of each kernel, by the name without its sizes."""
    times, count, copy_rate = (KernelTime * 16)(), ctypes.c_size_t(), ctypes.c_double()
    error = qvl.Error()
    status = qvl.lib.qvl_bench_kernels(model._model, ctypes.c_int64(rows), 1, times, ctypes.byref(count),
                                       ctypes.byref(copy_rate), ctypes.byref(error))
    if status:
        sys.exit(error.message.decode())
    return {t.name.decode().rsplit(" ", 5)[0]: t.seconds for t in times[:count.value]}


def onednn_product(rows, n, k, gelu):
    x = torch.randn(rows, k, dtype=torch.bfloat16)
    weight = (torch.randn(n, k) * k ** -0.5).to(torch.bfloat16)
    bias = torch.randn(n).to(torch.bfloat16)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    activation = ("gelu", [], gelu) if gelu else ("none", [], "")
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, bias, *activation)


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(model, rows, rounds):
    calls = {name: onednn_product(rows // per, n, k, gelu) for name, (n, k, gelu, per) in PRODUCTS.items()}
    pairs = {name: [] for name in PRODUCTS}
    for call in calls.values():
        call()
    for _ in range(rounds):
        ours = qvl_products(model, rows)
        for name, call in calls.items():
            pairs[name].append((seconds(call), ours[name]))
    ratios, fastest = [], []
    for name, times in pairs.items():
        theirs, own = (statistics.median(column) for column in zip(*times))
        ratios.append(statistics.median(a / b for a, b in times))
        fastest.append(min(a for a, _ in times) / min(b for _, b in times))
        n, k, _, per = PRODUCTS[name]
        print(f"{name:18} {k} -> {n}, {rows // per:5} rows: oneDNN {1e3 * theirs:8.3f} ms, qvl {1e3 * own:8.3f} ms, "
              f"ratio {ratios[-1]:.2f}, of the fastest {fastest[-1]:.2f}")
    mean = statistics.geometric_mean
    print(f"{rows} rows: geometric means {mean(ratios):.2f} and {mean(fastest):.2f}, smallest {min(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", type=int, default=[1024, 4096])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(CONFIG))
        model = qvl.Model(folder, level="config", threads=arguments.threads)
        print(f"torch {torch.__version__}, {arguments.threads} threads, qvl on {model.info.kernels.decode()}")
        for rows in arguments.rows:
            measure(model, rows, arguments.rounds)


if __name__ == "__main__":
    main()
