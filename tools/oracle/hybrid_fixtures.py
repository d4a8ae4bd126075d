"""Makes tests/fixtures/hybrid_*.safetensors: the language models of the Qwen3.5 family as transformers computes them.

Needs torch and transformers (the CPU is enough) and the built random_model, which writes the models' folders; transformers
opens them as it opens published ones.   python3 tools/oracle/hybrid_fixtures.py RANDOM_MODEL OUT [SHAPE ...]

A case is one prompt. Its arrays, under CASE/:
    ids, types          I64 [T]       input_ids and mm_token_type_ids; images before videos where both are
    image_grid_thw, video_grid_thw    I64 [n, 3], where there are any. Patch rows: generator.patch_rows("CASE", item, ..) with
                        items numbered over images, then videos; the case vectors has the vectors' own names
    rows                I64           the rows that the arrays below keep
    positions           I64 [3, rows], and delta I64 [1]
    layers.N            F32 [rows, h] output of layer N; of the mid models only 0, 3, 6, 7
    layers.N.core       F32 [rows, Hv*dv]  of linear attention: output of the delta rule
    layers.N.gated      F32 [rows, Hv*dv]  after the gated norm; of full attention layers.N.attn [rows, heads*hd], gated
    layers.N.state      F32 [Hv, dk, dv] after the last token; of the mid models every 16th row of dk, layers 0 and 6
    norm                F32 [rows, h] after the last norm
    logits              F32 [rows, vocab], argmax I64 [T] of every position
    decode              I64 [steps] greedy tokens through the cache, decode_logits F32 [steps, vocab] after each of them
    NAME/bf16           F64 [1]       NMSE of transformers' own bfloat16 run, over all positions, for logits, norm, layers.N
core, gated, attn and state are of the tiny models only.
"""

import argparse
import json
import platform
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers import AutoModelForImageTextToText

import generator

INIT = {"tiny-35": ("quarter", "f32"), "tiny-35moe": ("quarter", "f32"), "tiny-35-yarn": ("quarter", "f32"),
        "mid-35": ("scaled", "bf16"), "mid-35moe": ("scaled", "bf16")}
# tiny-35-yarn: tiny-35 with these in its rope_parameters; of the stages only layers.3, norm and logits.
YARN = dict(rope_type="yarn", factor=2.5, original_max_position_embeddings=64, attention_factor=1.3, beta_fast=4,
            beta_slow=0.02)
TOKENS = {"tiny": dict(start=58, end=59, image=60, video=61, text=57), "mid": dict(start=508, end=509, image=510, video=511,
                                                                                  text=505)}


def text(count, salt):
    """Token numbers that repeat and vary: a multiplicative walk, reduced to the text ids by the caller."""
    return [(salt + 7919 * i + i * i * 31) for i in range(count)]


CASES = {
    "one": text(1, 5),
    "words": text(200, 77),
    "media": text(40, 3) + [("image", (1, 8, 12))] + text(25, 11) + [("video", (3, 6, 8))] + text(60, 9) +
             [("image", (1, 20, 14))] + text(90, 1),
    "long": text(1500, 19) + [("image", (1, 16, 16))] + text(1434, 23),
}


def expand(parts, tokens, merge=2):
    """ids, types, image grids, video grids. A video's groups stand apart, as in a prompt with time stamps."""
    ids, types, images, videos = [], [], [], []
    for part in parts:
        if isinstance(part, int):
            ids.append(part % tokens["text"])
            types.append(0)
            continue
        kind, (t, h, w) = part
        (images if kind == "image" else videos).append([t, h, w])
        for _ in range(t):
            pads = h * w // merge**2
            ids += [tokens["start"]] + [tokens[kind]] * pads + [tokens["end"]]
            types += [0] + [1 if kind == "image" else 2] * pads + [0]
    return ids, types, images, videos


def vectors_case(folder, shape):
    """The published vectors' own prompt."""
    name = shape.removesuffix("-yarn").replace("-", "_")
    with open(Path(folder) / f"{name}.json") as file:
        given = json.load(file)
    types = [1 if t == 60 else 2 if t == 61 else 0 for t in given["ids"]]
    return given["ids"], types, [[1, 4, 6]], [[2, 4, 4]]


def patch_rows(case, item, grid, kind, config):
    if case == "vectors":
        return generator.patch_rows(kind, 0, grid, config)
    return generator.patch_rows(case, item, grid, config)


class Run:
    """One call of the model, and what its stages put out."""

    def __init__(self, model, stages):
        self.model, self.stages, self.found, self.hooks = model, stages, {}, []

    def keep(self, name, tensor):
        array = tensor.detach().float().numpy()
        self.found[name] = array.reshape(-1, array.shape[-1]).copy()

    def watch(self):
        language = self.model.model.language_model
        for n, layer in enumerate(language.layers):
            self.hooks.append(layer.register_forward_hook(
                lambda _m, _a, out, n=n: self.keep(f"layers.{n}", out[0] if isinstance(out, tuple) else out)))
            if self.stages:
                self.watch_inside(n, layer)
        self.hooks.append(language.norm.register_forward_hook(lambda _m, _a, out: self.keep("norm", out)))

    def watch_inside(self, n, layer):
        def before(module, name, heads=1):
            def keep(_module, args):
                array = args[0].detach().float().numpy()
                self.found[f"layers.{n}.{name}"] = array.reshape(-1, heads * array.shape[-1]).copy()
            self.hooks.append(module.register_forward_pre_hook(keep))

        if hasattr(layer, "linear_attn"):
            before(layer.linear_attn.norm, "core", layer.linear_attn.num_v_heads)
            before(layer.linear_attn.out_proj, "gated")
        else:
            before(layer.self_attn.o_proj, "attn")

    def close(self):
        for hook in self.hooks:
            hook.remove()


def inputs_of(case, ids, types, images, videos, config, dtype):
    """The model's arguments."""
    inputs = {"input_ids": torch.tensor([ids]), "mm_token_type_ids": torch.tensor([types], dtype=torch.int32),
              "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    for kind, grids, first, rows, name in (("image", images, 0, "pixel_values", "image_grid_thw"),
                                           ("video", videos, len(images), "pixel_values_videos", "video_grid_thw")):
        if grids:
            values = [patch_rows(case, first + i, grid, kind, config) for i, grid in enumerate(grids)]
            inputs[rows] = torch.from_numpy(np.concatenate(values)).to(dtype)
            inputs[name] = torch.tensor(grids)
    return inputs


def nmse(values, reference):
    values, reference = values.astype(np.float64), reference.astype(np.float64)
    return float(((values - reference) ** 2).sum() / (reference**2).sum())


def states(cache, model):
    """S of every linear layer after the call."""
    found = {}
    for n, kind in enumerate(model.config.text_config.layer_types):
        if kind == "linear_attention":
            state = cache.layers[n].recurrent_states
            found[f"layers.{n}.state"] = (state[0] if isinstance(state, dict) else state)[0].float().numpy().copy()  # decoding goes on in place
    return found


def run_case(case, model, prompt, stages, steps):
    ids, types, images, videos = prompt
    config = generator.SHAPES[model.shape.removesuffix("-yarn")][1]
    run = Run(model, stages)
    run.watch()
    inputs = inputs_of(case, ids, types, images, videos, config, model.dtype)
    out = model(**inputs, use_cache=True)
    run.close()
    found = run.found
    found["logits"] = out.logits[0].float().numpy()
    if not steps:
        return found
    found.update(states(out.past_key_values, model))
    media = {name: torch.tensor(grids) for name, grids in (("image_grid_thw", images), ("video_grid_thw", videos))
             if grids}
    if media:
        positions, delta = model.model.get_rope_index(inputs["input_ids"], mm_token_type_ids=inputs["mm_token_type_ids"],
                                                      **media)
    else:
        positions, delta = torch.arange(len(ids)).expand(3, 1, -1), torch.tensor([[0]])
    found["positions"], found["delta"] = positions[:, 0].numpy(), delta.reshape(1).numpy()
    token, tokens, after = out.logits[0, -1].argmax(), [], []
    for step in range(steps):
        tokens.append(int(token))
        position = torch.full((3, 1, 1), len(ids) + step + int(delta))
        out = model(input_ids=token.view(1, 1), past_key_values=out.past_key_values, position_ids=position, use_cache=True)
        after.append(out.logits[0, -1].float().numpy())
        token = out.logits[0, -1].argmax()
    found["decode"], found["decode_logits"] = np.array(tokens), np.stack(after)
    return found


def sample(count, kept):
    """All positions of a short prompt; else the ends, the chunk boundaries and some between."""
    if count <= kept:
        return list(range(count))
    wanted = {0, 1, 62, 63, 64, 65, count - 2, count - 1} | {int(i) for i in np.linspace(2, count - 3, kept - 8)}
    return sorted(i for i in wanted if 0 <= i < count)


def fixture(shape, folder, vectors):
    init, dtype = INIT[shape]
    tiny = shape.startswith("tiny")
    cases = {"vectors": vectors_case(vectors, shape)} if tiny else {
        case: expand(parts, TOKENS["mid"]) for case, parts in CASES.items()}
    models = {}
    for kind in (torch.float32, torch.bfloat16):
        model = AutoModelForImageTextToText.from_pretrained(folder, dtype=kind, attn_implementation="eager").eval()
        model.shape = shape
        models[kind] = model
    arrays = {}
    for case, prompt in cases.items():
        exact = run_case(case, models[torch.float32], prompt, tiny, 3)
        rough = run_case(case, models[torch.bfloat16], prompt, False, 0)
        rows = sample(len(prompt[0]), 100 if tiny else 14)
        keep = {"ids": np.array(prompt[0]), "types": np.array(prompt[1]), "rows": np.array(rows),
                "argmax": exact["logits"].argmax(-1)}
        for name, grids in (("image_grid_thw", prompt[2]), ("video_grid_thw", prompt[3])):
            if grids:
                keep[name] = np.array(grids)
        for name, array in exact.items():
            if shape.endswith("-yarn") and name.startswith("layers.") and name != "layers.3":
                continue
            if not tiny and name.startswith("layers.") and name.split(".")[1] not in "0367":
                continue
            if name.endswith(".state"):
                keep[name] = array if tiny else array[:, ::16]
            elif name == "positions":
                keep[name] = array[:, rows]
            elif name in ("delta", "decode", "decode_logits"):
                keep[name] = array
            else:
                keep[name] = array[rows]
        for name, array in rough.items():
            if name not in keep:
                continue
            keep[name + "/bf16"] = np.array([nmse(array, exact[name])])
        print(f"{shape} {case}: {len(prompt[0])} tokens, bf16 logits {nmse(rough['logits'], exact['logits']):.2g}, "
              f"decode {exact['decode']}")
        arrays.update({f"{case}/{name}": np.ascontiguousarray(array) for name, array in keep.items()})
    return arrays


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("random_model")
    parser.add_argument("out")
    parser.add_argument("shapes", nargs="*", default=list(INIT))
    parser.add_argument("--vectors", required=True, help="folder of tiny_35.json and tiny_35moe.json")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    about = {"torch": torch.__version__, "transformers": transformers.__version__, "python": platform.python_version(),
             "device": "cpu", "attention": "eager"}
    for shape in arguments.shapes:
        init, dtype = INIT[shape]
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / shape
            plain = shape.removesuffix("-yarn")
            subprocess.run([arguments.random_model, "--shape", plain, "--init", init, "--dtype", dtype, folder], check=True)
            if plain != shape:
                config = json.loads((folder / "config.json").read_text())
                config["text_config"]["rope_parameters"].update(YARN)
                (folder / "config.json").write_text(json.dumps(config))
            arrays = fixture(shape, folder, arguments.vectors)
        path = Path(arguments.out) / f"hybrid_{shape.replace('-', '_')}.safetensors"
        save_file(arrays, path, metadata={"qvl_fixture": json.dumps({**about, "shape": shape, "init": init, "dtype": dtype})})
        print(path, path.stat().st_size)


main()
