"""Makes tests/fixtures/delta_rule.safetensors: the gated delta rule as transformers computes it on the CPU.

Needs torch and transformers.   python3 tools/oracle/delta_fixtures.py OUT

Inputs are formulas of u (generator.py), so the fixture holds outputs only. Per case CASE, T rows, Hk and Hv heads, widths
dk and dv (CASE/shape, I64 [5]: T, Hk, Hv, dk, dv):
    q, k, v = u("CASE.q", [T, Hk, dk]), u("CASE.k", [T, Hk, dk]), u("CASE.v", [T, Hv, dv])
    beta    = (1 + u("CASE.beta", [T, Hv])) / 2
    g       = log decays of x = u("CASE.g", [T, Hv]), by the case: DECAYS below; float64, rounded to float32
Outputs, at the rows CASE/rows (I64); s: state after the last row, rows 0, 5, 10, .. of dk.
    CASE/chunk, CASE/recurrent      F32 [rows, Hv, dv]   torch_chunk_gated_delta_rule, torch_recurrent_gated_delta_rule
    CASE/out                        F64 [rows, Hv, dv]   the recurrence in float64
    CASE/chunk/s, recurrent/s, s    [Hv, ceil(dk/5), dv]
"""

import json
import platform
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers.models.qwen3_5.modeling_qwen3_5 import (torch_chunk_gated_delta_rule,
                                                          torch_recurrent_gated_delta_rule)

import generator

DECAYS = {
    "mild": lambda x: -0.05 * (1 + x),
    "strong": lambda x: -15.0 * (1 + x),
    "mixed": lambda x: np.where(x > 0.9, -600.0, -0.02 * (1 + x)),
}

CASES = {"mild": (150, 2, 6, 16, 24), "strong": (131, 2, 4, 8, 8), "mixed": (200, 1, 2, 128, 128)}


def inputs(case):
    rows, key_heads, value_heads, dk, dv = CASES[case]

    def u(name, *shape):
        return generator.u(f"{case}.{name}", shape)

    g = DECAYS[case](u("g", rows, value_heads).astype(np.float64)).astype(np.float32)
    beta = ((1 + u("beta", rows, value_heads).astype(np.float64)) / 2).astype(np.float32)
    return (u("q", rows, key_heads, dk), u("k", rows, key_heads, dk), u("v", rows, value_heads, dv), g, beta)


def double(q, k, v, g, beta):
    """The recurrence of language_model.md section 4 in float64."""
    q, k, v, g, beta = (x.astype(np.float64) for x in (q, k, v, g, beta))
    rows, value_heads, dv = v.shape
    ratio, dk = value_heads // q.shape[1], q.shape[2]

    def unit(x):
        return np.repeat(x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6), ratio, 1)

    q, k = unit(q) * dk**-0.5, unit(k)
    s, out = np.zeros((value_heads, dk, dv)), np.zeros((rows, value_heads, dv))
    for t in range(rows):
        s *= np.exp(g[t])[:, None, None]
        d = beta[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", s, k[t]))
        s += k[t][:, :, None] * d[:, None, :]
        out[t] = np.einsum("hkv,hk->hv", s, q[t])
    return out, s


def run(case):
    rows = CASES[case][0]
    sample = sorted(set(range(0, rows, 9)) | {r for b in range(64, rows, 64) for r in (b - 1, b, b + 1)} | {rows - 1})
    arrays = inputs(case)
    tensors = [torch.from_numpy(x)[None] for x in arrays]
    found = {f"{case}/shape": np.array(CASES[case]), f"{case}/rows": np.array(sample)}
    out, s = double(*arrays)
    found[f"{case}/out"], found[f"{case}/s"] = out[sample], s[:, ::5]
    for name, rule in (("chunk", torch_chunk_gated_delta_rule), ("recurrent", torch_recurrent_gated_delta_rule)):
        theirs, state = rule(*tensors, output_final_state=True, use_qk_l2norm_in_kernel=True)
        theirs, state = theirs[0].numpy(), state[0].numpy()
        print(f"{case}: transformers' {name} to float64: out {((theirs - out) ** 2).sum() / (out**2).sum():.2g}, "
              f"state {((state - s) ** 2).sum() / (s**2).sum():.2g}")
        found[f"{case}/{name}"], found[f"{case}/{name}/s"] = theirs[sample], state[:, ::5]
    return found


def main():
    torch.set_grad_enabled(False)
    found = {}
    for case in CASES:
        found.update({name: np.ascontiguousarray(value) for name, value in run(case).items()})
    about = {"torch": torch.__version__, "transformers": transformers.__version__, "python": platform.python_version()}
    path = Path(sys.argv[1]) / "delta_rule.safetensors"
    save_file(found, path, metadata={"qvl_fixture": json.dumps(about)})
    print(path, path.stat().st_size)


main()
