"""Makes tests/fixtures/tower_*.safetensors: the vision tower as transformers computes it, stage by stage.

Needs torch and transformers, and a CUDA device for the parts S, M and L (without one they run on the CPU and say so).
Weights and inputs are formulas (generator.py), so a fixture holds outputs only.

    python3 tools/oracle/tower_fixtures.py OUT [--only PART ...] [--vectors FOLDER]

Input rule. A case is one call of the tower with one or more items, and the prefix of its tensors' names.
    CASE/grid_thw   I64 [items, 3]
    input rows of item I = u(NAME, [t*h*w, columns]), where NAME is "pixel_values" for the case image,
    "pixel_values_videos" for the case video, and "CASE.I" ("mixed.0", "mixed.1", "odd.0", "small.0") for the others.
    Weights: generator.tower(SHAPE, INIT, DTYPE); the three are in the file's metadata, JSON under qvl_fixture.

Stages, all F32. rows = patches of the call, tokens = rows / 4, n = heads, hd = head width.
    CASE/patch_embed, pos_embed, hidden     [rows, d]      hidden = patch_embed + pos_embed
    CASE/blocks.N                           [rows, d]      output of block N
    CASE/blocks.N.norm1, .norm2             [rows, d]
    CASE/blocks.N.q, .k (after rotary), .v  [rows, n, hd]
    CASE/blocks.N.attn                      [rows, d]      before the output projection
    CASE/blocks.N.mlp                       [rows, inner]  after the activation
    CASE/deepstack.K, merged                [tokens, out]

    NAME/f64    F64: the same stage with everything computed in float64. Only the interpolation weights and the rotary
                frequencies stay the float32 values transformers makes.
    NAME/rows   a sample of a large stage: the rows listed in CASE/rows (CASE/token_rows for merged and deepstack), I64

Numbers of the large classes, F64. NMSE = sum (x - ref)^2 / sum ref^2, ref the F32 arrays of the same file.
    NAME/bf16_nmse, NAME/bf16_worst   [variants] transformers' own bfloat16 run against the array NAME, over all rows and
                                      of the worst row; variants in the order of metadata bf16_variants
    CASE/blocks/bf16_nmse             [depth, variants] every block, all rows
    CASE/blocks/norm                  [depth] Frobenius norm of each block's output

Files.
    tower_tiny_{vl,35,vlmoe,35moe}  quarter f32; on the CPU, eager attention. Cases image, video with all stages; mixed,
                                    odd without those inside blocks; f64 of blocks and merged for image and video.
    tower_demo                      scaled bf16-stored; CPU, eager. small with all stages; image, video merged, deepstack.
    tower_bundled                   the model in models/demo; CPU, eager. small without the stages inside blocks. Not in
                                    tests/fixtures: make_check.py makes of it what qvl check compares with.
    tower_S, tower_M, tower_L       scaled bf16-stored; float32 on the GPU with TF32 off, eager. merged, deepstack, samples.
"""

import argparse
import json
import os
import platform
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file

import generator
from tower_cases import DEMO_CASES, TINY_CASES, input_rows, nmse, worst_row

MODELS = {
    "qwen3_vl": ("Qwen3VLVisionModel", "Qwen3VLVisionConfig"),
    "qwen3_vl_moe": ("Qwen3VLMoeVisionModel", "Qwen3VLMoeVisionConfig"),
    "qwen3_5": ("Qwen3_5VisionModel", "Qwen3_5VisionConfig"),
    "qwen3_5_moe": ("Qwen3_5MoeVisionModel", "Qwen3_5MoeVisionConfig"),
    "qwen4_exp": ("Qwen4ExpVisionModel", "Qwen4ExpVisionConfig"),
}
GPU = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CPU = torch.device("cpu")


def exact_settings():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.set_grad_enabled(False)


# ------------------------------------------------------------------------------------------------ models


def model_classes(model_type):
    package = f"transformers.models.{model_type}"
    modeling = __import__(f"{package}.modeling_{model_type}", fromlist=["_"])
    configuration = __import__(f"{package}.configuration_{model_type}", fromlist=["_"])
    model_name, config_name = MODELS[model_type]
    return getattr(modeling, model_name), getattr(configuration, config_name)


def build(shape, weights, dtype, attention, device, model_type=None):
    """transformers' tower with the given weights, made in dtype as from_pretrained does: the rotary frequencies stay
    float32 whatever dtype is."""
    own_type, config = generator.SHAPES[shape]
    return build_tower(model_type or own_type, config, weights, dtype, attention, device)


def build_tower(model_type, config, weights, dtype, attention, device):
    model_class, config_class = model_classes(model_type)
    settings = {key: value for key, value in config.items() if key != "model_type"}
    if not settings["deepstack_visual_indexes"]:
        del settings["deepstack_visual_indexes"]
    model = model_class._from_config(config_class(**settings), dtype=dtype, attn_implementation=attention)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()}, strict=True)
    assert model.rotary_pos_emb.inv_freq.dtype == torch.float32
    assert model.config._attn_implementation == attention
    return model.to(device).eval()


@contextmanager
def float64_inside(model):
    """Lifts the float32 islands of a float64 model (rotary, softmax) to float64."""
    module = sys.modules[type(model).__module__]
    kept = module.apply_rotary_pos_emb_vision, module.eager_attention_forward
    rotary = model.rotary_pos_emb

    def angles(x, position_ids):
        freqs = position_ids[..., None].double() * rotary.inv_freq.double()
        return rotary.recomposition_frequencies(freqs.cos()), rotary.recomposition_frequencies(freqs.sin())

    def rotate(q, k, cos, sin):
        cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
        return q * cos + module.rotate_half(q) * sin, k * cos + module.rotate_half(k) * sin

    def attend(attention, query, key, value, attention_mask, scaling, **kwargs):
        weights = torch.softmax(query @ key.transpose(2, 3) * scaling, dim=-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    rotary.forward = angles
    module.apply_rotary_pos_emb_vision, module.eager_attention_forward = rotate, attend
    try:
        yield
    finally:
        module.apply_rotary_pos_emb_vision, module.eager_attention_forward = kept
        del rotary.forward


# ------------------------------------------------------------------------------------------------ stages


class Stages:
    """Runs a model once and keeps what its stages put out, as numpy arrays by stage name."""

    def __init__(self, model, inner):
        self.model, self.inner, self.found, self.hooks = model, inner, {}, []

    def keep(self, name, tensor):
        # numpy has no bfloat16; float32 holds its values.
        tensor = tensor.detach().to("cpu")
        self.found[name] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()

    def on_output(self, module, name):
        self.hooks.append(module.register_forward_hook(lambda _m, _args, out: self.keep(name, out)))

    def on_input(self, module, name):
        self.hooks.append(module.register_forward_pre_hook(lambda _m, args: self.keep(name, args[0])))

    def watch(self):
        self.on_output(self.model.patch_embed, "patch_embed")
        self.on_input(self.model.blocks[0], "hidden")
        for index, block in enumerate(self.model.blocks):
            name = f"blocks.{index}"
            self.on_output(block, name)
            if self.inner:
                self.on_output(block.norm1, name + ".norm1")
                self.on_output(block.norm2, name + ".norm2")
                self.on_input(block.attn.proj, name + ".attn")
                self.on_input(block.mlp.linear_fc2, name + ".mlp")
                self.watch_value(block, name)

    def watch_value(self, block, name):
        heads, width = block.attn.num_heads, block.attn.dim

        def value(_module, _args, qkv):
            self.keep(name + ".v", qkv[:, 2 * width:].reshape(len(qkv), heads, width // heads))

        self.hooks.append(block.attn.qkv.register_forward_hook(value))

    @contextmanager
    def watch_rotary(self):
        """q and k after rotary, by wrapping the function; blocks call it in order."""
        module = sys.modules[type(self.model).__module__]
        plain, calls = module.apply_rotary_pos_emb_vision, []

        def rotate(q, k, cos, sin):
            q, k = plain(q, k, cos, sin)
            if self.inner:
                self.keep(f"blocks.{len(calls)}.q", q)
                self.keep(f"blocks.{len(calls)}.k", k)
            calls.append(None)
            return q, k

        module.apply_rotary_pos_emb_vision = rotate
        try:
            yield
        finally:
            module.apply_rotary_pos_emb_vision = plain

    def positions(self, grid):
        """The interpolated table alone, by transformers' own two lines."""
        module, model = sys.modules[type(self.model).__module__], self.model
        indices, weights = module.get_vision_interpolation_indices_and_weights(
            grid, num_grid_per_side=model.num_grid_per_side, mode=model.interpolation_mode,
            align_corners=model.interpolation_align_corners, spatial_merge_size=model.config.spatial_merge_size)
        table = (model.pos_embed(indices) * weights[:, :, None]).sum(1)
        self.keep("pos_embed", table.to(model.pos_embed.weight.dtype))

    def run(self, rows, grids):
        device, dtype = self.model.pos_embed.weight.device, self.model.pos_embed.weight.dtype
        grid = torch.tensor(grids, device=device)
        self.watch()
        try:
            with self.watch_rotary():
                out = self.model(torch.from_numpy(rows).to(device=device, dtype=dtype), grid_thw=grid)
        finally:
            for hook in self.hooks:
                hook.remove()
        self.keep("merged", out.pooler_output)
        for index, feature in enumerate(getattr(out, "deepstack_features", None) or []):
            self.keep(f"deepstack.{index}", feature)
        self.positions(grid)
        if dtype == torch.float32:
            assert np.array_equal(self.found["patch_embed"] + self.found["pos_embed"], self.found["hidden"])
        return self.found


def run(model, shape, case, grids, inner=False):
    """stage -> array of one call; inner: also the stages inside blocks."""
    return Stages(model, inner).run(input_rows(shape, case, grids), grids)


# ------------------------------------------------------------------------------------------------- files


class Fixture:
    def __init__(self, name, shape, init, dtype, device):
        self.name, self.tensors, self.numbers = name, {}, {}
        self.metadata = {
            "made_by": "tools/oracle/tower_fixtures.py", "shape": shape, "init": init, "dtype": dtype,
            "transformers": transformers.__version__, "torch": torch.__version__, "numpy": np.__version__,
            "python": platform.python_version(), "tf32": "off",
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            "inputs": "rows of item I of CASE = u(NAME); NAME: image pixel_values, video pixel_values_videos, "
                      "else CASE.I; see tools/oracle/tower_fixtures.py",
        }

    def grid(self, case, grids):
        self.tensors[f"{case}/grid_thw"] = np.array(grids, dtype=np.int64)

    def stage(self, name, values, dtype=np.float32):
        assert np.isfinite(values).all(), name
        self.tensors[name] = np.ascontiguousarray(values, dtype=dtype)

    def number(self, name, value):
        self.numbers[name] = value
        print(f"  {self.name} {name} {value}", flush=True)

    def save(self, folder):
        path = folder / f"{self.name}.safetensors"
        # One key: the order of several is not kept, and the same run should give the same bytes.
        facts = json.dumps({**self.metadata, "numbers": self.numbers}, sort_keys=True)
        save_file(self.tensors, path, {"qvl_fixture": facts})
        path.chmod(0o644)
        print(f"  wrote {path.name}: {len(self.tensors)} tensors, {path.stat().st_size} bytes", flush=True)


def check_vectors(fixture, folder, kind):
    """Statistics that an older transformers gave for the same models: the worst distance of sum, first and last."""
    data = json.loads((folder / f"tiny_{kind}.json").read_text())
    worst = 0.0
    for case, key in (("image", "img"), ("video", "vid")):
        names = {"patch": "patch_embed", "merged": "merged"}
        names.update({f"blk{n}": f"blocks.{n}" for n in range(generator.SHAPES[f"tiny-{kind}"][1]["depth"])})
        wanted = {names[name]: stats for name, stats in data[f"vis_{key}"].items()}
        wanted.update({f"deepstack.{n}": stats for n, stats in enumerate(data.get(f"deepstack_{key}", []))})
        for name, stats in wanted.items():
            values = fixture.tensors[f"{case}/{name}"].astype(np.float64).ravel()
            worst = max(worst, np.abs(values[:6] - stats["first"]).max(), np.abs(values[-4:] - stats["last"]).max(),
                        abs(values.sum() - stats["sum"]) / max(1.0, stats["abs"]))
    merged = np.array(data["merged_img_full"])
    worst = max(worst, np.abs(fixture.tensors["image/merged"] - merged).max())
    fixture.number("vectors_worst", float(worst))
    assert worst < 2e-5, f"tiny_{kind}: {worst} away from the vectors"


def tiny(kind, out, vectors):
    torch.set_num_threads(1)
    shape = f"tiny-{kind}"
    weights = generator.tower(shape, "quarter", "f32")
    model = build(shape, weights, torch.float32, "eager", CPU)
    fixture = Fixture(f"tower_tiny_{kind}", shape, "quarter", "f32", CPU)
    for case, grids in TINY_CASES.items():
        fixture.grid(case, grids)
        full = case in ("image", "video")
        for name, values in run(model, shape, case, grids, inner=full).items():
            fixture.stage(f"{case}/{name}", values)
    if vectors:
        check_vectors(fixture, vectors, kind)
    if kind == "35":
        same_as_qwen4(fixture, shape, weights)
    exact = model.double()
    with float64_inside(exact):
        for case in ("image", "video"):
            for name, values in run(exact, shape, case, TINY_CASES[case]).items():
                assert values.dtype == np.float64, name
                if name == "merged" or name.startswith("blocks."):
                    fixture.stage(f"{case}/{name}/f64", values, np.float64)
                    fixture.number(f"{case}/{name} f32 to f64", nmse(fixture.tensors[f"{case}/{name}"], values))
    fixture.save(out)


def same_as_qwen4(fixture, shape, weights):
    """qwen4_exp's tower is the same module: its class gives the same values, where it can be imported."""
    try:
        model = build(shape, weights, torch.float32, "eager", CPU, model_type="qwen4_exp")
    except ImportError as error:
        fixture.number("qwen4_exp", f"not importable: {error}")
        return
    found = run(model, shape, "image", TINY_CASES["image"])
    assert np.array_equal(found["merged"], fixture.tensors["image/merged"])
    fixture.number("qwen4_exp", "image/merged equal")


def demo(out):
    torch.set_num_threads(1)
    weights = generator.tower("demo", "scaled", "bf16")
    model = build("demo", weights, torch.float32, "eager", CPU)
    fixture = Fixture("tower_demo", "demo", "scaled", "bf16", CPU)
    bf16 = build("demo", weights, torch.bfloat16, "sdpa", CPU)
    fixture.metadata["bf16_variants"] = "cpu-sdpa"
    for case, grids in DEMO_CASES.items():
        fixture.grid(case, grids)
        found, rounded = run(model, "demo", case, grids, inner=case == "small"), run(bf16, "demo", case, grids)
        for name, values in found.items():
            if case == "small" or name == "merged" or name.startswith("deepstack."):
                fixture.stage(f"{case}/{name}", values)
            if name == "merged" or name.startswith("deepstack."):
                fixture.stage(f"{case}/{name}/bf16_nmse", [nmse(rounded[name], values)], np.float64)
                fixture.stage(f"{case}/{name}/bf16_worst", [worst_row(rounded[name], values)], np.float64)
                fixture.number(f"{case}/{name} bf16 nmse", nmse(rounded[name], values))
    exact = model.double()
    with float64_inside(exact):
        for case, grids in DEMO_CASES.items():
            values = run(exact, "demo", case, grids)["merged"]
            fixture.number(f"{case}/merged f32 to f64", nmse(fixture.tensors[f"{case}/merged"], values))
    fixture.save(out)


def bundled(out):
    """Of the shape of any Qwen3-VL or Qwen3.5 folder; its weights are in one file."""
    torch.set_num_threads(1)
    folder = Path(__file__).resolve().parents[2] / "models/demo"
    whole = json.loads((folder / "config.json").read_text())
    model_type, config = whole["model_type"], whole["vision_config"]
    weights = {name.removeprefix(generator.PREFIX): value.float().numpy()
               for name, value in load_file(folder / "model.safetensors").items() if name.startswith(generator.PREFIX)}
    grids = DEMO_CASES["small"]
    rows = generator.patch_rows("small", 0, grids[0], config)
    fixture = Fixture("tower_bundled", "models/demo", "bundled", "bf16", CPU)
    fixture.metadata["bf16_variants"] = "cpu-sdpa"
    fixture.grid("small", grids)
    found, rounded = (Stages(build_tower(model_type, config, weights, dtype, attention, CPU), False).run(rows, grids)
                      for dtype, attention in ((torch.float32, "eager"), (torch.bfloat16, "sdpa")))
    fixture.stage("small/pixel_values", rows)
    for name, values in found.items():
        fixture.stage(f"small/{name}", values)
        if name == "merged" or name.startswith("deepstack."):
            fixture.stage(f"small/{name}/bf16_nmse", [nmse(rounded[name], values)], np.float64)
            fixture.number(f"small/{name} bf16 nmse", nmse(rounded[name], values))
    fixture.save(out)


# ------------------------------------------------------------------------------------------- large classes


def sample(count, wanted):
    """wanted row numbers spread over count, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, wanted).round().astype(np.int64))


def runs(shape, weights, cases):
    """case -> {"f32": stages, "f64": ..., "f32-cpu": ..., bf16 variants}; one model on a device at a time."""
    torch.set_num_threads(os.cpu_count())
    plan = [("f32", torch.float32, "eager", GPU), ("f64", torch.float64, "eager", GPU),
            ("f32-cpu", torch.float32, "eager", CPU), (f"{GPU.type}-sdpa", torch.bfloat16, "sdpa", GPU),
            (f"{GPU.type}-eager", torch.bfloat16, "eager", GPU)]
    if GPU.type == "cuda":
        plan.append(("cpu-sdpa", torch.bfloat16, "sdpa", CPU))
    found = {case: {} for case in cases}
    for variant, dtype, attention, device in plan:
        start = time.time()
        model = build(shape, weights, torch.float32 if dtype == torch.float64 else dtype, attention, device)
        if dtype == torch.float64:
            model = model.double()
            with float64_inside(model):
                for case, grids in cases.items():
                    found[case][variant] = run(model, shape, case, grids)
        else:
            for case, grids in cases.items():
                found[case][variant] = run(model, shape, case, grids)
        print(f"  {shape} {variant} {time.time() - start:.1f} s", flush=True)
        del model
    return found, [name for name, dtype, *_ in plan if dtype == torch.bfloat16]


def add_stage(fixture, case, name, rows, found, variants):
    """One stored array with the numbers of every other run against it. rows None: the whole stage."""
    pick = (lambda values: values) if rows is None else (lambda values: values[rows])
    label = f"{case}/{name}" if rows is None else f"{case}/{name}/rows"
    reference = pick(found["f32"][name])
    fixture.stage(label, reference)
    fixture.stage(f"{label}/bf16_nmse", [nmse(pick(found[v][name]), reference) for v in variants], np.float64)
    fixture.stage(f"{label}/bf16_worst", [worst_row(pick(found[v][name]), reference) for v in variants], np.float64)
    fixture.number(f"{label} bf16 nmse", fixture.tensors[f"{label}/bf16_nmse"].tolist())
    for other in ("f64", "f32-cpu"):
        fixture.number(f"{label} f32 to {other}", nmse(reference, pick(found[other][name])))


def add_blocks(fixture, case, depth, found, variants):
    blocks = [f"blocks.{n}" for n in range(depth)]
    reference = found["f32"]
    table = [[nmse(found[v][name], reference[name]) for v in variants] for name in blocks]
    fixture.stage(f"{case}/blocks/bf16_nmse", table, np.float64)
    fixture.stage(f"{case}/blocks/norm", [np.linalg.norm(reference[name].astype(np.float64)) for name in blocks],
                  np.float64)
    fixture.number(f"{case}/blocks f32 to f64", [nmse(reference[name], found["f64"][name]) for name in blocks])


def large(name, shape, cases, sampled, deepstack_rows, out):
    """sampled: stage -> number of rows kept, for every case; deepstack_rows 0 keeps all of deepstack."""
    start = time.time()
    weights = generator.tower(shape, "scaled", "bf16")
    print(f"  {shape} weights {time.time() - start:.1f} s", flush=True)
    found, variants = runs(shape, weights, cases)
    config = generator.SHAPES[shape][1]
    fixture = Fixture(name, shape, "scaled", "bf16", GPU)
    fixture.metadata["bf16_variants"] = ",".join(variants)
    for case, grids in cases.items():
        stages = found[case]
        fixture.grid(case, grids)
        patches, tokens = len(stages["f32"]["hidden"]), len(stages["f32"]["merged"])
        add_stage(fixture, case, "merged", None, stages, variants)
        token_rows = sample(tokens, deepstack_rows) if deepstack_rows else None
        for index in range(len(config["deepstack_visual_indexes"])):
            add_stage(fixture, case, f"deepstack.{index}", token_rows, stages, variants)
        if sampled:
            rows = sample(patches, sampled["rows"][case])
            fixture.stage(f"{case}/rows", rows, np.int64)
            fixture.stage(f"{case}/token_rows", token_rows, np.int64)
            for stage in sampled["stages"]:
                add_stage(fixture, case, stage, rows, stages, variants)
        add_blocks(fixture, case, config["depth"], stages, variants)
    fixture.save(out)


def parts(out, vectors):
    found = {f"tiny_{kind}": (lambda kind=kind: tiny(kind, out, vectors)) for kind in ("vl", "35", "vlmoe", "35moe")}
    found["demo"] = lambda: demo(out)
    found["bundled"] = lambda: bundled(out)
    found["S"] = lambda: large("tower_S", "qwen3.5-0.8b", {"image": [[1, 8, 8]]}, None, 0, out)
    found["M"] = lambda: large("tower_M", "qwen3-vl-2b", {"image": [[1, 8, 8]]}, None, 0, out)
    found["L"] = lambda: large(
        "tower_L", "qwen3-vl-30b-a3b", {"image": [[1, 16, 16]], "video": [[2, 8, 8]]},
        {"rows": {"image": 32, "video": 16}, "stages": ["hidden", "blocks.0", "blocks.8", "blocks.16", "blocks.26"]},
        16, out)
    return found


def main():
    parser = argparse.ArgumentParser(description="Makes tests/fixtures/tower_*.safetensors.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", help="parts: tiny_vl tiny_35 tiny_vlmoe tiny_35moe demo bundled S M L")
    parser.add_argument("--vectors", type=Path, help="folder of tiny_*.json to check the tiny models against")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    exact_settings()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, device {GPU}")
    failed = []
    for name, work in parts(arguments.out, arguments.vectors).items():
        if arguments.only and name not in arguments.only:
            continue
        start = time.time()
        print(f"{name}:", flush=True)
        try:
            work()
            print(f"{name} done in {time.time() - start:.1f} s", flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    print(f"failed: {failed}" if failed else "all parts done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
