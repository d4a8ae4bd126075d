"""Makes tests/fixtures/lm_*.safetensors: language models as transformers computes them on the CPU, eager attention.

Needs torch and transformers. Weights and vision rows are formulas (generator.py), so a fixture holds outputs only.

    python3 tools/oracle/lm_fixtures.py OUT VECTORS [--only SHAPE ...]

Input. input_ids, token_types (0 text, 1 image, 2 video), position_ids [3, length], all I64. The embedding of a text token
is its row of embed_tokens; vision rows, in order, are u("lm.vision", [vision tokens, hidden]), their deepstack features
u("lm.deepstack.J", the same). Weights: shape, init and stored type are in the metadata, JSON under qvl_fixture.

Output, F32 unless said otherwise:
    layers.N, layers.N.PART, norm, logits   every stage of the prompt in f32; of the large models the rows listed in
                                            rows (I64), and only layers.N and logits; of tiny-vl-yarn only layers.N,
                                            its q and k, norm and logits: tiny-vl with rope_type yarn (lm_reference.py)
    argmax        I64 [length], of the logits of every entry
    greedy        I64 [steps], decoded through the cache; greedy_logits [steps, vocab]: of each step
    NAME/bf16_nmse  F64 [1]: transformers' own bf16 run against the f32 one, over all rows (large models)
    vectors/NAME  of the tiny models without yarn: what the published vectors say of the same prompt with the tower's features:
                  argmax, decode (I64), logits_last, decN and logits: F64 [sum, sum of sizes, first 6, last 4]
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

import generator
from lm_reference import Model, nmse, numpy_of, run


YARN_STRIDE = 53  # so that positions go beyond the original length


def vector_prompt(vectors):
    ids = np.array(vectors["ids"])
    types = np.where(ids == 60, 1, np.where(ids == 61, 2, 0))
    return ids, types, np.array(vectors["pos"])


def long_prompt(vocab):
    """Text, a picture of 14 x 10 tokens, text, one of 6 x 9, a video of three groups of 5 x 7 with text between, text."""
    ids, types, positions, at = [], [], [], 0

    def text(count):
        nonlocal at
        for _ in range(count):
            ids.append((len(ids) * 7919 + 13) % (vocab - 8))
            types.append(0)
            positions.append((at, at, at))
            at += 1

    def picture(kind, rows, columns):
        nonlocal at
        for row in range(rows):
            for column in range(columns):
                ids.append(510 if kind == 1 else 511)
                types.append(kind)
                positions.append((at, at + row, at + column))
        at += max(rows, columns)

    text(37)
    picture(1, 14, 10)
    text(61)
    picture(1, 6, 9)
    text(5)
    for _ in range(3):
        text(6)
        picture(2, 5, 7)
    text(40)
    return np.array(ids), np.array(types), np.array(positions).T.copy()


def inputs(model, ids, types):
    """Embeddings and deepstack features."""
    hidden, visual = model.config.hidden_size, types != 0
    count = int(visual.sum())
    embeds = model.embed(ids.tolist()).float().numpy().copy()
    embeds[visual] = generator.u("lm.vision", [count, hidden])
    return embeds, [generator.u(f"lm.deepstack.{j}", [count, hidden]) for j in range(model.deepstack)]


def greedy(model, embeds, positions, visual, deepstack, steps):
    """Ids and logits of steps decoded through the cache."""
    extra, tokens, rows = {}, [], []
    if deepstack:
        extra = dict(visual_pos_masks=torch.from_numpy(visual)[None], deepstack_visual_embeds=deepstack)
    with torch.no_grad():
        out = model.model(inputs_embeds=torch.from_numpy(embeds).to(model.dtype)[None], use_cache=True,
                          position_ids=torch.from_numpy(positions)[:, None], **extra)
        position = int(positions.max()) + 1
        for step in range(steps):
            logits = model.logits(out.last_hidden_state[:, -1])
            tokens.append(int(logits.argmax()))
            place = torch.full((3, 1, 1), position + step)
            out = model.model(inputs_embeds=model.embed([tokens[-1]])[None], position_ids=place, use_cache=True,
                              past_key_values=out.past_key_values)
            rows.append(numpy_of(model.logits(out.last_hidden_state[:, -1]))[0])
    return np.array(tokens), np.stack(rows)


def statistics(entry):
    return np.array([entry["sum"], entry["abs"], *entry["first"], *entry["last"]], dtype=np.float64)


def add_vectors(tensors, vectors):
    tensors["vectors/argmax"] = np.array(vectors["argmax"])
    tensors["vectors/decode"] = np.array([step["token"] for step in vectors["decode"]])
    tensors["vectors/logits_last"] = np.array(vectors["logits_last"], dtype=np.float64)
    tensors["vectors/logits"] = statistics(vectors["logits"])
    for name, entry in vectors["dec"].items():
        tensors[f"vectors/{name}"] = statistics(entry)


def add_bf16(tensors, shape, init, stored, found, embeds, positions, visual, deepstack):
    """The distance of transformers' own bf16."""
    half = Model(shape, init, stored, torch.bfloat16)
    half_found = run(half, torch.from_numpy(embeds), positions, visual, [torch.from_numpy(d) for d in deepstack], False)
    for name, values in found.items():
        if name == "logits" or name.count(".") == 1:
            tensors[f"{name}/bf16_nmse"] = np.array([nmse(half_found[name], values)])


def make(shape, vectors, out):
    tiny = shape.startswith("tiny")
    init, stored = ("quarter", "f32") if tiny else ("scaled", "bf16")
    model = Model(shape, init, stored, torch.float32)
    model.deepstack = 2 if tiny else 3
    ids, types, positions = vector_prompt(vectors) if tiny else long_prompt(model.config.vocab_size)
    yarn = shape.endswith("-yarn")
    if yarn:
        positions = positions * YARN_STRIDE
    visual = types != 0
    embeds, deepstack = inputs(model, ids, types)
    torches = [torch.from_numpy(d) for d in deepstack]
    found = run(model, torch.from_numpy(embeds), positions, visual, torches, tiny)
    tensors = {"input_ids": ids, "token_types": types, "position_ids": positions,
               "argmax": found["logits"].argmax(-1)}
    tensors["greedy"], tensors["greedy_logits"] = greedy(model, embeds, positions, visual, torches, 3 if tiny else 6)
    if yarn:
        tensors.update({name: values for name, values in found.items()
                        if name.count(".") < 2 or name.endswith((".q", ".k"))})
    elif tiny:
        tensors.update(found)
        add_vectors(tensors, vectors)
    else:
        rows = np.unique(np.linspace(0, len(ids) - 1, 12).astype(np.int64))
        tensors["rows"] = rows
        for name, values in found.items():
            if name == "logits" or name.count(".") == 1:
                tensors[name] = values[rows]
        add_bf16(tensors, shape, init, stored, found, embeds, positions, visual, deepstack)
    metadata = {"shape": shape, "init": init, "stored": stored, "torch": torch.__version__,
                "transformers": transformers.__version__}
    tensors = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    path = Path(out) / f"lm_{shape.replace('-', '_')}.safetensors"
    save_file(tensors, path, metadata={"qvl_fixture": json.dumps(metadata)})
    print(path, path.stat().st_size, "length", len(ids), "greedy", tensors["greedy"].tolist(),
          {k: float(v[0]) for k, v in tensors.items() if k.endswith("bf16_nmse")})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--only", nargs="*", default=["tiny-vl", "tiny-vlmoe", "tiny-vl-yarn", "lm-test", "lm-test-moe"])
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.set_grad_enabled(False)
    for shape in arguments.only:
        name = shape.removesuffix("-yarn").replace("-", "_")
        vectors = json.loads((arguments.vectors / f"{name}.json").read_text()) if shape.startswith("tiny") else None
        make(shape, vectors, arguments.out)


if __name__ == "__main__":
    main()
