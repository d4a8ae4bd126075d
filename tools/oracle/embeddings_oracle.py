"""Live: rows of embed_tokens that MLX quantised, as qvl reads them, against mlx.core.dequantize: equal bits.

4 and 8 bits, groups of 32 and 64, scales in float32, bfloat16 and float16; one file and shards.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np

import qvl_ctypes
import qvl_prompts

BUILD = Path(os.environ.get("QVL_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
TABLE = "language_model.model.embed_tokens"
TEXT = "What is 12 x 34? नमस्ते, 世界 🙂\n\tEnd."


def write_quantised(folder, bits, group, dtype, shards):
    """Replaces the random model's table by a quantised one, as mlx_lm stores it."""
    path = folder / "model.safetensors"
    tensors = mx.load(str(path))
    table = tensors.pop(TABLE + ".weight").astype(dtype)
    weight, scales, biases = mx.quantize(table, group_size=group, bits=bits)
    quantised = {TABLE + ".weight": weight, TABLE + ".scales": scales, TABLE + ".biases": biases}
    path.unlink()
    if shards:
        files = {"a.safetensors": tensors, "b.safetensors": quantised}
        names = ",".join(f'"{name}": "{file}"' for file, part in files.items() for name in part)
        (folder / "model.safetensors.index.json").write_text('{"weight_map": {' + names + "}}")
    else:
        files = {"model.safetensors": {**tensors, **quantised}}
    for file, part in files.items():
        mx.save_safetensors(str(folder / file), part)
    rows = mx.dequantize(weight, scales, biases, group_size=group, bits=bits)
    return np.array(rows.astype(mx.float32))


def check(parent, bits, group, dtype, shards):
    folder = Path(parent) / f"{bits}-{group}-{dtype}-{shards}"
    subprocess.run([BUILD / "random_model", "--naming", "mlx", folder], check=True)
    table = write_quantised(folder, bits, group, dtype, shards)
    with qvl_ctypes.Model(folder, dtype="F32") as model, qvl_prompts.Prompter(model) as prompter:
        prompt = prompter.build([{"role": "user", "content": TEXT}])
    wanted = table[prompt["input_ids"]]
    same = np.array_equal(prompt["inputs_embeds"].view(np.uint32), wanted.view(np.uint32))
    print(f"{bits} bits, groups of {group}, {dtype}, {'shards' if shards else 'one file'}: {wanted.shape} values "
          f"{'equal' if same else 'DIFFER'}")
    return same


def main():
    mx.set_default_device(mx.cpu)
    with tempfile.TemporaryDirectory() as parent:
        good = [check(parent, bits, group, dtype, shards) for bits in (4, 8) for group in (32, 64)
                for dtype in (mx.float32, mx.bfloat16, mx.float16) for shards in (False, True)]
    print("every bit equal" if all(good) else "rows differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
