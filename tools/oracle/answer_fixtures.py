"""Makes tests/fixtures/answers.json: what transformers' generate() says, greedy, f32, on the CPU.

Needs torch and transformers, and a build of qvl for the random model (random_model --shape demo), pixel values and ids, all of
which other fixtures hold to transformers.

    python3 tools/oracle/answer_fixtures.py BUILD_FOLDER OUT

A case is a question, perhaps about examples/scene.jpg, perhaps with a repetition penalty. ids: of the answer, at most 60, the stop
token included. Tokens that never come out (docs/ASK.md) are suppressed.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

SCENE = Path(__file__).resolve().parents[2] / "examples" / "scene.jpg"
NEVER = ["<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<|fim_pad|>"]
MAX_NEW_TOKENS = 60


def qvl(build, *arguments):
    subprocess.run([build / "qvl", *arguments, "-q"], check=True, stdout=subprocess.DEVNULL)


def generate(model, build, work, question, picture, penalty, never):
    content = [{"type": "text", "text": question}]
    if picture:
        content.insert(0, {"type": "image", "image": str(SCENE)})
    (work / "chat.json").write_text(json.dumps([{"role": "user", "content": content}]))
    qvl(build, "prompt", work / "chat.json", "-m", work / "model", "--dtype", "f32", "-o", work / "prompt.safetensors")
    prompt = load_file(work / "prompt.safetensors")
    inputs = {"input_ids": prompt["input_ids"], "attention_mask": torch.ones_like(prompt["input_ids"]),
              "mm_token_type_ids": prompt["mm_token_type_ids"]}
    if picture:
        qvl(build, "preprocess", SCENE, "-m", work / "model", "-o", work / "pixels.safetensors")
        pixels = load_file(work / "pixels.safetensors")
        inputs.update(pixel_values=pixels["pixel_values"], image_grid_thw=pixels["image_grid_thw"])
    with torch.no_grad():
        out = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_NEW_TOKENS, suppress_tokens=never,
                             repetition_penalty=penalty)
    return out[0, prompt["input_ids"].shape[1]:].tolist()


def main():
    build, out = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        subprocess.run([build / "random_model", "--shape", "demo", work / "model"], check=True)
        model = Qwen3VLForConditionalGeneration.from_pretrained(work / "model", dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(work / "model")
        never = [tokenizer.convert_tokens_to_ids(token) for token in NEVER]
        cases = [dict(question=question, picture=picture, repetition_penalty=penalty,
                      ids=generate(model, build, work, question, picture, penalty, never))
                 for question in ("Hello", "What is on the table?") for picture in (False, True)
                 for penalty in (1.0, 1.3)]
    made_by = dict(transformers=transformers.__version__, torch=torch.__version__, python=platform.python_version())
    out.write_text('{"made_by": %s,\n"cases": [\n' % json.dumps(made_by) + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
