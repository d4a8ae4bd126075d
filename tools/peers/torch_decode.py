"""Times transformers' Qwen3-VL text model on torch's CPU beside qvl's, on the same shape, type and threads.

    python3 tools/peers/torch_decode.py [--qvl build/qvl] [--random-model build/random_model] [--threads 2] [--layers 4]
        [--shape qwen3-vl-2b] [--runs 3]

Needs torch and transformers. Both run bf16 on layers of the published shape with random weights: a prefill of 1,024 entries with
logits of the last, then tokens one by one. qvl's times are those of its bench. Prints medians and ratios.
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
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

ROWS = 1024


def qvl_times(arguments, folder):
    subprocess.run([arguments.random_model, "--shape", arguments.shape, "--depth", "1", "--layers", str(arguments.layers),
                    folder], check=True)
    out = subprocess.run([arguments.qvl, "bench", "-m", folder, "--threads", str(arguments.threads), "--runs",
                          str(arguments.runs), "--json", "--quiet", "64x64"], check=True, capture_output=True).stdout
    times = json.loads(out)["language_model"]
    assert times["prefill_tokens"] == ROWS
    return times["prefill_seconds"], times["step_seconds"], times


def torch_times(arguments, folder):
    text = json.loads((Path(folder) / "config.json").read_text())["text_config"]
    text.pop("model_type")
    config = Qwen3VLTextConfig(**text)
    config._attn_implementation = "sdpa"
    model = Qwen3VLTextModel._from_config(config, dtype=torch.bfloat16).eval()
    prefills, steps = [], []
    for run in range(arguments.runs + 1):  # the first one warms
        embeds = torch.randn(1, ROWS, config.hidden_size, dtype=torch.bfloat16)
        start = time.perf_counter()
        out = model(inputs_embeds=embeds, use_cache=True)
        torch.nn.functional.linear(out.last_hidden_state[:, -1], model.embed_tokens.weight)
        prefills.append(time.perf_counter() - start)
        for _ in range(3):
            start = time.perf_counter()
            out = model(input_ids=torch.tensor([[1]]), use_cache=True, past_key_values=out.past_key_values)
            torch.nn.functional.linear(out.last_hidden_state[:, -1], model.embed_tokens.weight)
            steps.append(time.perf_counter() - start)
    return statistics.median(prefills[1:]), statistics.median(steps[3:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--qvl", default="build/qvl")
    parser.add_argument("--random-model", default="build/random_model")
    parser.add_argument("--shape", default="qwen3-vl-2b")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "model")
        qvl_prefill, qvl_step, times = qvl_times(arguments, folder)
        torch_prefill, torch_step = torch_times(arguments, folder)
    rate = times["step_bytes"] / qvl_step
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {arguments.shape}, {arguments.layers} layers, "
          f"{arguments.threads} threads, bf16")
    print(f"prefill of {ROWS}: qvl {qvl_prefill:.3f} s, torch {torch_prefill:.3f} s, {torch_prefill / qvl_prefill:.2f} times")
    print(f"a token: qvl {1e3 * qvl_step:.1f} ms, torch {1e3 * torch_step:.1f} ms, {torch_step / qvl_step:.2f} times; "
          f"qvl reads {1e-9 * rate:.1f} GB/s, {100 * rate / times['read_bytes_per_second']:.0f}% of reading alone")


if __name__ == "__main__":
    main()
