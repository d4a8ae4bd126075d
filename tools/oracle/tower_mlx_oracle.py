"""Live: the vision tower of mlx-vlm against qvl, in float32 on the CPU, stage by stage, on the four tiny models.

qvl reads the folder that build/random_model writes, mlx-vlm the same weights from generator.py. Pictures, clips and
several items in one call. Every stage of mlx-vlm must be there in qvl, within the bound of tower_cases.py.

Two differences of mlx-vlm are known and handled here:
  - It interpolates positions with linspace(0, S-1, n); transformers, and qvl with it, compute i*(S-1)/(n-1). In
    float32 that is a difference of an ulp of the source coordinate, NMSE 1e-13, inside the bound.
  - 0.7.10's copy of the tower for qwen3_vl_moe has the two GELU forms the wrong way round (erf in the blocks, tanh in
    the mergers, where transformers and mlx-vlm's other towers have tanh and erf). They are set right before comparing.
"""

import importlib
import os
import sys
import tempfile

import mlx.core as mx
import mlx.nn as nn
import numpy as np

import generator
import qvl_ctypes
from tower_cases import TINY_CASES, compare, compare_features, input_rows, write_model


class Watched:
    """A module of mlx whose input or output is also handed to a function."""

    def __init__(self, module, before=None, after=None):
        self.module, self.before, self.after = module, before, after

    def __call__(self, x, **arguments):
        if self.before:
            self.before(x)
        result = self.module(x, **arguments)
        if self.after:
            self.after(result)
        return result


class MlxTower:
    def __init__(self, shape):
        self.model_type, config = generator.SHAPES[shape]
        self.depth, self.stages = config["depth"], {}
        package = f"mlx_vlm.models.{self.model_type}"
        config_class = importlib.import_module(package + ".config").VisionConfig
        model_class = importlib.import_module(package + ".vision").VisionModel
        self.model = model_class(config_class(model_type=self.model_type, **config))
        # qwen3_5's towers inherit that of qwen3_vl: the rotary function is where the methods were written.
        self.module = sys.modules[model_class.rot_pos_emb.__module__]
        weights = {name: mx.array(value) for name, value in generator.tower(shape, "quarter", "f32").items()}
        self.model.load_weights(list(self.model.sanitize(weights).items()), strict=True)
        if self.model_type == "qwen3_vl_moe":
            self.set_activations_right()
        self.watch()

    def set_activations_right(self):
        for block in self.model.blocks:
            block.mlp.act_fn = nn.GELU(approx="tanh")
        for merger in [self.model.merger, *self.model.deepstack_merger_list]:
            merger.act_fn = nn.GELU()

    def keep(self, name):
        def store(value):
            self.stages[name] = np.array(value)
        return store

    def keep_value(self, name, heads):
        def store(qkv):
            width = qkv.shape[1] // 3
            self.stages[name] = np.array(qkv[:, 2 * width:]).reshape(len(qkv), heads, width // heads)
        return store

    def watch(self):
        model = self.model
        model.patch_embed = Watched(model.patch_embed, after=self.keep("patch_embed"))
        for index, block in enumerate(model.blocks):
            name = f"blocks.{index}"
            block.norm1 = Watched(block.norm1, after=self.keep(name + ".norm1"))
            block.norm2 = Watched(block.norm2, after=self.keep(name + ".norm2"))
            block.attn.qkv = Watched(block.attn.qkv, after=self.keep_value(name + ".v", block.attn.num_heads))
            block.attn.proj = Watched(block.attn.proj, before=self.keep(name + ".attn"))
            block.mlp.linear_fc2 = Watched(block.mlp.linear_fc2, before=self.keep(name + ".mlp"))
            model.blocks[index] = Watched(block, self.keep("hidden") if index == 0 else None, self.keep(name))

    def run(self, rows, grids):
        """Every stage by qvl's tap names. q and k come from the rotary function, which blocks call in order."""
        self.stages, rotated = {}, []
        rotate = self.module.apply_rotary_pos_emb_vision

        def watched_rotate(tensor, freqs):
            result = rotate(tensor, freqs)
            rotated.append(np.array(result)[0, 0])
            return result

        grid = mx.array(grids)
        self.module.apply_rotary_pos_emb_vision = watched_rotate
        try:
            merged, deepstack = self.model(mx.array(rows), grid)
        finally:
            self.module.apply_rotary_pos_emb_vision = rotate
        self.stages["pos_embed"] = np.array(self.model.fast_pos_embed_interpolate(grid))
        self.stages["merged"] = np.array(merged)
        for index, feature in enumerate(deepstack):
            self.stages[f"deepstack.{index}"] = np.array(feature)
        for index in range(self.depth):
            self.stages[f"blocks.{index}.q"], self.stages[f"blocks.{index}.k"] = rotated[2 * index:2 * index + 2]
        return self.stages


def check_shape(shape, folder):
    write_model(folder, shape, "quarter", "f32")
    tower = MlxTower(shape)
    good = True
    with qvl_ctypes.Model(folder, dtype="F32") as model:
        for case, grids in TINY_CASES.items():
            rows, taps = input_rows(shape, case, grids), {}
            features = model.vision_encode(rows, grids, taps=taps)
            stages = tower.run(rows, grids)
            good &= compare(f"{shape} {case}", taps, stages)
            good &= compare_features(features, stages)
    return good


def main():
    mx.set_default_device(mx.cpu)
    mx.disable_compile()  # compiled functions need a C++ compiler on the machine
    shapes = [shape for shape in generator.SHAPES if shape.startswith("tiny-")]
    with tempfile.TemporaryDirectory() as folder:
        good = [check_shape(shape, os.path.join(folder, shape)) for shape in shapes]
    print("all stages agree" if all(good) else "stages differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
