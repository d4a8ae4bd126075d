"""Makes tests/fixtures/prompt/conversations.json: ids, token types, positions and deltas as transformers has them.

    python3 tools/oracle/prompt_fixtures.py DEMO_FOLDER DEMO_35_FOLDER

Needs torch, transformers, Pillow and tokenizers; the two folders are `random_model --shape demo` and `--shape demo-35`,
whose vocabularies stand for the two generations. A case has its request and hashes (SHA-256 of little-endian int64).
Videos are grids with frame numbers; their time stamps come from transformers' processor.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

import prompt_cases as cases

OUT = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "prompt" / "conversations.json"
MODELS = {"qwen3_vl": "Qwen3VLModel", "qwen3_5": "Qwen3_5Model"}
PER_TEMPLATE = 32


def rope_index(model, ids, types, image_grids, video_grids):
    """transformers' own."""
    def tensor(array):
        return torch.tensor(array) if len(array) else None
    positions, delta = model.get_rope_index(
        torch.tensor(ids)[None], torch.tensor(types)[None], tensor(image_grids), tensor(video_grids))
    return positions[:, 0].numpy(), int(delta)


def make_case(reference, model, family, case):
    template = cases.template_text(case.template)
    ids, types, image_grids, video_grids = reference.expected(case, template)
    positions, delta = rope_index(model, ids, types, image_grids, video_grids)
    own_positions, own_delta = cases.rope_index(types, image_grids, video_grids)
    assert np.array_equal(positions, own_positions) and delta == own_delta
    chat, pictures, videos = cases.request(case, reference.timestamps)
    return {
        "family": family, "template": case.template, "chat": chat, "pictures": pictures,
        "videos": [{"grid": grid, "timestamps": stamps} for _, grid, stamps in videos],
        "length": len(ids), "delta": delta, "ids": cases.sha256(ids), "types": cases.sha256(types),
        "positions": cases.sha256(positions),
    }


def main():
    made = []
    for family, folder in zip(MODELS, sys.argv[1:3]):
        config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            model = getattr(transformers, MODELS[family])(config)
        reference = cases.Reference(folder)
        for case in cases.conversations(family, PER_TEMPLATE):
            made.append(make_case(reference, model, family, case))
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in made)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"versions": {json.dumps(versions)}, "limits": {list(cases.LIMITS)}, "cases": [\n{lines}\n]}}\n',
                   encoding="utf-8")
    print(f"{len(made)} conversations, {sum(len(c['pictures']) for c in made)} pictures, "
          f"{sum(len(c['videos']) for c in made)} videos, {sum(c['length'] for c in made)} tokens")


if __name__ == "__main__":
    main()
