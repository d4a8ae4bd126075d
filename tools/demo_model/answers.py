"""Fresh scenes and clips as files, asked through qvl itself and through transformers.

    python3 answers.py make FOLDER [--count 2000] [--seed 77] --masks masks.npz
    python3 answers.py qvl FOLDER --model CHECKPOINT [--qvl build/qvl] [--dtype bf16]
    python3 answers.py transformers FOLDER --model CHECKPOINT
    python3 answers.py compare FOLDER

make writes pictures (PNG), clips (H.264, by ffmpeg) and one chat for each question; qvl and transformers (f32, greedy) write
their answers beside them; compare prints the share that is right by kind, and where the two differ.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import random
import subprocess
import sys
from pathlib import Path

import torch
from PIL import Image

import media
import scenes


# ---- making

SIZES = ((256, 256), (192, 320), (320, 192), (224, 288), (288, 224), (192, 192), (288, 288))
PAIR_SIZES = ((192, 192), (256, 256), (192, 256))


def about_scene(rng, name, studio):
    scene = scenes.scene(rng)
    return [studio.picture(f"{name}.png", scene, rng.choice(SIZES))], \
        [scenes.about(rng, scene) for _ in range(rng.choice((1, 1, 2, 3)))]


def about_pair(rng, name, studio):
    first, size = scenes.drawn(rng), rng.choice(PAIR_SIZES)
    pair = first, scenes.second_scene(rng, first)
    shown = [studio.picture(f"{name}{part}.png", scene, size) for part, scene in zip("ab", pair)]
    return shown, [scenes.about_pair(rng, pair)]


def about_clip(rng, name, studio):
    groups = rng.choice((3, 4, 6))
    clip = dataclasses.replace(scenes.clip(rng, groups), seconds=media.clip_seconds(2 * groups))
    size = rng.choice(((128, 128), (128, 192))) if groups < 6 else (128, 128)
    return [studio.clip(f"{name}.mp4", clip, size)], [scenes.about_clip(rng, clip)]


def about_nothing(rng, name, studio):
    return [], [scenes.talk(rng, False)]


def questions(rng, name, studio):
    """(kind, messages without the last answer, that answer)."""
    source = rng.choices((about_scene, about_pair, about_clip, about_nothing), (62, 16, 19, 3))[0]
    shown, turns = source(rng, name, studio)
    kind = "later turns" if len(turns) > 1 else turns[0][0]
    media_of_turns = [shown] + [[]] * (len(turns) - 1)
    messages = media.messages_of([(media_of_turn, *turn[1:]) for media_of_turn, turn in zip(media_of_turns, turns)])
    return kind, messages, turns[-1][2]


def make(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    studio = media.Studio(options.folder, media.load_masks(options.masks), options.seed, noise=True)
    with open(options.folder / "wanted.jsonl", "w") as wanted:
        for number in range(options.count):
            kind, messages, answer = questions(rng, f"{number:05}", studio)
            (options.folder / f"{number:05}.json").write_text(json.dumps(messages))
            print(json.dumps({"kind": kind, "answer": answer}), file=wanted)


# ---- asking

def ask_qvl(options, path):
    command = [options.qvl, "ask", "-m", options.model, "-q", "--no-cache", "--threads", "1", "--dtype", options.dtype, path.name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return done.stdout.rstrip("\n")


def run_qvl(options, paths):
    options.qvl, options.model = str(options.qvl.resolve()), str(options.model.resolve())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda path: ask_qvl(options, path), paths))


def decoded(path, processor):
    """Frames and metadata of a clip, through PyAV."""
    from transformers.video_utils import load_video
    choose = functools.partial(processor.video_processor.sample_frames, fps=2.0)
    return load_video(str(path), backend="pyav", sample_indices_fn=choose)


def run_transformers(options, paths):
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration
    processor = AutoProcessor.from_pretrained(options.model)
    model = Qwen3VLForConditionalGeneration.from_pretrained(options.model, dtype=torch.float32).eval()
    answers = []
    for path in paths:
        messages = json.loads(path.read_text())
        parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
        images = [Image.open(path.parent / part["image"]) for part in parts if part["type"] == "image"]
        clips = [decoded(path.parent / part["video"], processor) for part in parts if part["type"] == "video"]
        more = {"do_sample_frames": False}
        if clips:
            more |= {"videos": [frames for frames, _ in clips], "video_metadata": [about for _, about in clips]}
        text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = processor(text=[text], images=images or None, return_tensors="pt", **more)
        with torch.no_grad():
            out = model.generate(**inputs, do_sample=False, max_new_tokens=128)
        answers.append(processor.tokenizer.decode(out[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True))
    return answers


# ---- comparing

def compare(options):
    wanted = [json.loads(line) for line in open(options.folder / "wanted.jsonl")]
    given = {path.stem[len("answers-"):]: json.loads(path.read_text()) for path in sorted(options.folder.glob("answers-*.json"))}
    kinds = sorted({w["kind"] for w in wanted})
    print("kind".ljust(14), "count".rjust(6), *(name.rjust(14) for name in given))
    for kind in [*kinds, "all"]:
        rows = [i for i, w in enumerate(wanted) if kind in (w["kind"], "all")]
        shares = [sum(answers[i] == wanted[i]["answer"] for i in rows) / len(rows) for answers in given.values()]
        print(kind.ljust(14), str(len(rows)).rjust(6), *(f"{share:14.2%}" for share in shares))
    for i in range(len(wanted)):
        if len({answers[i] for answers in given.values()}) > 1:
            print(f"{i:05} {wanted[i]['kind']}: wanted {wanted[i]['answer']!r}", *(f"{n} {a[i]!r}" for n, a in given.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "qvl", "transformers", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--masks")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--qvl", type=Path, default=Path("build/qvl"))
    parser.add_argument("--dtype", default="bf16")
    options = parser.parse_args()
    needed = {"make": "masks", "qvl": "model", "transformers": "model"}.get(options.what)
    if needed and not getattr(options, needed):
        parser.error(f"{options.what} needs --{needed}")
    if options.what in ("make", "compare"):
        return make(options) if options.what == "make" else compare(options)
    paths = sorted(options.folder.glob("[0-9]*.json"))
    answers = (run_qvl if options.what == "qvl" else run_transformers)(options, paths)
    name = f"qvl-{options.dtype}" if options.what == "qvl" else "transformers"
    (options.folder / f"answers-{name}.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
