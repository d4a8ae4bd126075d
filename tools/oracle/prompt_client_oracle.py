"""Live where torch is installed (not part of the tests): transformers' language model as a client of qvl.

    QVL_BUILD_DIR=build python3 tools/oracle/prompt_client_oracle.py

For tiny models of both generations, in float32: inputs_embeds, position_ids, and deepstack rows from qvl, fed to
transformers' language model, give the logits that transformers' whole model gives for the same conversation, pictures
preprocessed by its own Pillow processor. Needs torch, transformers, Pillow, safetensors.

With --fixture, writes tests/fixtures/prompt/client.safetensors: what transformers hands to its language model, and the
logits, for the conversations below.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.numpy import save_file
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

import prompt_cases
import qvl_ctypes
import qvl_prompts
from preprocess_cases import noise

BUILD = Path(os.environ.get("QVL_BUILD_DIR", prompt_cases.REPOSITORY / "build"))
OUT = prompt_cases.REPOSITORY / "tests" / "fixtures" / "prompt" / "client.safetensors"
BOUND = 1e-10
MODELS = {"demo": "Qwen3VLForConditionalGeneration", "demo-35": "Qwen3_5ForConditionalGeneration"}
# Messages, and the sizes [height, width] of the pictures that its parts take in order; picture i is noise of seed i.
CONVERSATIONS = {
    "text": ([{"role": "user", "content": "Tell me about numbers 1 and 23."}], []),
    "one": ([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}], [(260, 300)]),
    "many": ([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "First"}, {"type": "image"}, {"type": "image"}, {"type": "text", "text": "compare."}]},
        {"role": "assistant", "content": "They differ."},
        {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "image"}, {"type": "text", "text": "?"}]},
    ], [(64, 700), (300, 200), (256, 256)]),
}


def nmse(found, wanted):
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return float(((found - wanted) ** 2).sum() / (wanted**2).sum())


def whole_forward(model, reference, images, messages):
    """transformers from pictures to logits, and what its language model was given on the way."""
    pictures = images(images=[Image.fromarray(p) for p in messages[1]], return_tensors="np") if messages[1] else {}
    grids = pictures.get("image_grid_thw", np.zeros((0, 3), np.int64))
    text = reference.tokenizer.apply_chat_template(messages[0], tokenize=False, add_generation_prompt=True)
    replaced, _ = reference.processor.get_text_with_replacements(
        [text], [reference.processor.replace_image_token({"image_grid_thw": grids}, i) for i in range(len(grids))])
    ids = reference.tokenizer(replaced)["input_ids"]
    inputs = {"input_ids": torch.tensor(ids),
              "mm_token_type_ids": torch.tensor(np.array(reference.processor.create_mm_token_type_ids(ids)))}
    if len(grids):
        inputs.update(pixel_values=torch.tensor(pictures["pixel_values"]), image_grid_thw=torch.tensor(grids))
    given = {}
    hook = model.model.language_model.register_forward_pre_hook(
        lambda module, args, kwargs: given.update(kwargs), with_kwargs=True)
    with torch.no_grad():
        logits = model(**inputs).logits[0].numpy()
    hook.remove()
    return logits, given


def client_forward(model, prompt):
    """Logits of transformers' language model from what qvl made."""
    def tensor(array):
        return torch.tensor(array)
    extra = {}
    if prompt["deepstack"]:
        extra = {"visual_pos_masks": tensor(prompt["mm_token_type_ids"] != 0)[None],
                 "deepstack_visual_embeds": [tensor(rows) for rows in prompt["deepstack"]]}
    with torch.no_grad():
        hidden = model.model.language_model(
            inputs_embeds=tensor(prompt["inputs_embeds"])[None], position_ids=tensor(prompt["position_ids"])[:, None],
            **extra).last_hidden_state
        return model.lm_head(hidden)[0].numpy()


def check(shape, folder, kept):
    subprocess.run([BUILD / "random_model", "--shape", shape, "--dtype", "f32", folder], check=True)
    model = getattr(transformers, MODELS[shape]).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    reference = prompt_cases.Reference(folder)
    images = Qwen2VLImageProcessorPil.from_pretrained(folder)
    good = True
    with qvl_ctypes.Model(folder, dtype="F32") as opened, qvl_prompts.Prompter(opened) as prompter:
        for name, (messages, sizes) in CONVERSATIONS.items():
            pictures = [noise(*size, i) for i, size in enumerate(sizes)]
            wanted, given = whole_forward(model, reference, images, (messages, pictures))
            prompt = prompter.build(messages, pictures, preprocess={"preset": "transformers-pil"})
            positions = given.get("position_ids")  # None for text alone: counted
            positions = np.tile(np.arange(len(wanted)), (3, 1)) if positions is None else positions[-3:, 0].numpy()
            embeds = nmse(prompt["inputs_embeds"], given["inputs_embeds"][0].numpy())
            logits = nmse(client_forward(model, prompt), wanted)
            deep = [nmse(own, rows.numpy()) for own, rows in
                    zip(prompt["deepstack"], given.get("deepstack_visual_embeds") or [], strict=True)]
            same = np.array_equal(prompt["position_ids"], positions)
            good &= same and max([embeds, logits, *deep]) <= BOUND
            print(f"{shape} {name}: {len(wanted)} tokens, positions {'equal' if same else 'DIFFER'}, "
                  f"NMSE of embeddings {embeds:.2g}, deepstack {[f'{d:.2g}' for d in deep]}, logits {logits:.2g}")
            key = f"{shape}/{name}/"
            kept[key + "inputs_embeds"] = given["inputs_embeds"][0].numpy()
            kept[key + "position_ids"] = positions
            kept[key + "last_logits"] = wanted[-1]
            for i, rows in enumerate(given.get("deepstack_visual_embeds") or []):
                kept[f"{key}deepstack.{i}"] = rows.numpy()
    return good


def main():
    torch.manual_seed(0)
    kept = {}
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as parent:
        good = [check(shape, os.path.join(parent, shape), kept) for shape in MODELS]
    if "--fixture" in sys.argv:
        versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
        chats = {name: {"messages": messages, "pictures": sizes} for name, (messages, sizes) in CONVERSATIONS.items()}
        save_file({name: np.ascontiguousarray(array) for name, array in kept.items()}, OUT,
                  metadata={"versions": json.dumps(versions), "conversations": json.dumps(chats)})
        OUT.chmod(0o644)
    print("logits agree" if all(good) else "logits differ")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
