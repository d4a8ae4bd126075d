"""Makes the fixtures of videos, where torch, torchvision and transformers are installed. CPU tensors only.

    python tools/oracle/video_fixtures.py OUT_FOLDER VECTORS

writes video_frames.json  Qwen3VLVideoProcessor's own sample_frames and resize (the size it asks for), and
                          Qwen3VLProcessor's replace_video_token, on random clips and settings: indices, size, labels
       video_values.json  Qwen3VLVideoProcessor on clips of formula-made frames: grid and hash of pixel_values_videos
       video_vectors.json the half about videos of VECTORS, vectors/preprocess.json beside preprocess.md

Pictures are made by formula (preprocess_cases.py), so the files hold hashes and versions only.
"""

import argparse
import hashlib
import json
import logging
import platform
import random
import re
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torchvision
import transformers
from transformers.image_utils import SizeDict
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
from transformers.video_processing_utils import BaseVideoProcessor
from transformers.video_utils import VideoMetadata

import preprocess_cases as cases

SEED = 5
MADE_BY = {
    "made_by": "tools/oracle/video_fixtures.py", "seed": SEED,
    "versions": {
        "python": platform.python_version(), "numpy": np.__version__, "transformers": transformers.__version__,
        "torch": torch.__version__, "torchvision": torchvision.__version__,
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
    },
}
REAL, CLASS = (4096, 25165824), (131072, 786432)
RATES = [24.0, 25.0, 30.0, 50.0, 60.0, 24000 / 1001, 30000 / 1001, 60000 / 1001, 8.0, 10.0, 12.5, 15.0, 1.0, 0.5]


def choose(rng):
    """One clip and its settings. fps null and num_frames null stand for a folder that says so."""
    case = {
        "frames": rng.choice([rng.randint(1, 12), rng.randint(1, 400), rng.randint(1, 5000), rng.randint(1, 60000)]),
        "rate": rng.choice(RATES) if rng.random() < 0.7 else rng.uniform(0.2, 120),
        "width": rng.choice([rng.randint(1, 64), rng.randint(16, 700), rng.randint(300, 4096)]),
        "height": rng.choice([rng.randint(1, 64), rng.randint(16, 700), rng.randint(300, 4096)]),
        "temporal": 2 if rng.random() < 0.85 else 3, "fps": 2, "num_frames": 0, "min_frames": 4, "max_frames": 768,
    }
    limits = rng.choice([REAL, REAL, CLASS, (rng.randint(1, 10**6), rng.randint(10**6, 10**8))])
    case["min_pixels"], case["max_pixels"] = limits
    way = rng.random()
    if way < 0.35:
        case["fps"] = rng.choice([0.5, 1, 2, 3, 4, 5, 24, 30, 0.1, rng.uniform(0.05, 60)])
    elif way < 0.55:
        case["fps"], case["num_frames"] = 0, rng.choice([rng.randint(1, 16), rng.randint(1, 200)])
    elif way < 0.62:
        case["fps"] = 0
    if not case["num_frames"] and rng.random() < 0.5:
        case["min_frames"] = rng.randint(1, 20)
        case["max_frames"] = rng.randint(case["min_frames"], rng.choice([40, 800]))
    case["cap"] = rng.random() < 0.3
    case["max_frame_tokens"] = rng.choice([768, 768, rng.randint(1, 4000)])
    return case


def processor_of(case):
    return Qwen3VLVideoProcessor(
        size={"shortest_edge": case["min_pixels"], "longest_edge": case["max_pixels"]},
        fps=case["fps"] or None, num_frames=case["num_frames"] or None, min_frames=case["min_frames"],
        max_frames=case["max_frames"], temporal_patch_size=case["temporal"], cap_pixels_per_frame=case["cap"],
        max_video_tokens=case["max_frame_tokens"])


def target_size(processor, frames, case):
    """The size that resize asks of its base class; or why it does not get there."""
    asked = []
    original = BaseVideoProcessor.resize
    BaseVideoProcessor.resize = lambda self, image, size, **kwargs: asked.append((size.width, size.height)) or image
    try:
        processor.resize(
            torch.empty((1, frames, 3, case["height"], case["width"]), device="meta", dtype=torch.uint8),
            size=SizeDict(shortest_edge=case["min_pixels"], longest_edge=case["max_pixels"]), resample=3, factor=32,
            temporal_factor=case["temporal"], cap_pixels_per_frame=processor.cap_pixels_per_frame)
    except ValueError as error:
        return None, str(error)
    finally:
        BaseVideoProcessor.resize = original
    return asked[0], None


def labels_of(indices, case, size):
    groups = -(-len(indices) // case["temporal"])
    processor = SimpleNamespace(
        video_processor=SimpleNamespace(merge_size=2, temporal_patch_size=case["temporal"]), video_token="P",
        vision_start_token="", vision_end_token="")
    processor._calculate_timestamps = lambda *args: Qwen3VLProcessor._calculate_timestamps(processor, *args)
    metadata = SimpleNamespace(fps=case["rate"], frames_indices=list(indices))
    inputs = {"video_grid_thw": np.array([[groups, 2, 2]]), "video_metadata": [metadata]}
    return re.findall(r"<(.*?) seconds>", Qwen3VLProcessor.replace_video_token(processor, inputs, 0))


def frames_cases(count):
    rng, results = random.Random(SEED), []
    while len(results) < count:
        case = choose(rng)
        processor = processor_of(case)
        metadata = VideoMetadata(total_num_frames=case["frames"], fps=case["rate"])
        indices = processor.sample_frames(metadata, num_frames=processor.num_frames, fps=processor.fps).tolist()
        size, problem = target_size(processor, len(indices), case)
        labels = labels_of(indices, case, size)
        results.append(dict(
            case, count=len(indices), first=indices[:8],
            indices_sha256=hashlib.sha256(np.array(indices, "<i8").tobytes()).hexdigest(),
            labels=labels if len(labels) <= 8 else labels[:4] + labels[-4:],
            labels_sha256=hashlib.sha256(" ".join(labels).encode()).hexdigest(),
            size=list(size) if size else None, problem=problem))
    return results


# kind of frames, count, width, height, limits, temporal patch, sampling (fps, num_frames) or none, rate
VALUES = [
    ("formula", 5, 150, 100, REAL, 2, None, 8.0), ("noise", 1, 64, 64, REAL, 1, None, 8.0),
    ("noise", 2, 320, 180, REAL, 2, None, 30.0), ("noise", 3, 33, 65, CLASS, 2, None, 25.0),
    ("extremes", 4, 200, 120, CLASS, 2, None, 24.0), ("noise", 5, 96, 64, REAL, 3, None, 24.0),
    ("noise", 6, 64, 96, REAL, 3, None, 24.0), ("noise", 7, 257, 129, CLASS, 2, None, 30.0),
    ("extremes", 8, 40, 20, REAL, 2, None, 30.0), ("noise", 9, 300, 10, CLASS, 2, None, 30.0),
    ("noise", 30, 128, 96, REAL, 2, (2, 0), 10.0), ("noise", 25, 160, 90, CLASS, 2, (0, 7), 25.0),
    ("ramp", 12, 640, 360, REAL, 2, (3, 0), 12.0), ("lines", 4, 641, 161, REAL, 2, None, 2.0),
    ("noise", 48, 100, 80, (4096, 200000), 2, (1, 0), 24.0), ("noise", 10, 31, 500, REAL, 2, (2, 0), 10.0),
    ("extremes", 16, 512, 288, REAL, 2, (4, 0), 8.0), ("noise", 3, 256, 256, REAL, 2, None, 1.0),
    ("noise", 21, 90, 160, CLASS, 3, (5, 0), 21.0), ("noise", 6, 1280, 720, CLASS, 2, None, 30000 / 1001),
]


def frame_of(case, index):
    return cases.picture(dict(kind=case["kind"], height=case["height"], width=case["width"], seed=100 + index))


def values_cases():
    results = []
    for kind, count, width, height, limits, temporal, sampling, rate in VALUES:
        case = {"kind": kind, "frames": count, "width": width, "height": height, "min_pixels": limits[0],
                "max_pixels": limits[1], "temporal": temporal, "rate": rate,
                "fps": sampling[0] if sampling else 0, "num_frames": sampling[1] if sampling else 0}
        processor = Qwen3VLVideoProcessor(
            size={"shortest_edge": limits[0], "longest_edge": limits[1]}, temporal_patch_size=temporal,
            fps=case["fps"] or None, num_frames=case["num_frames"] or None, do_sample_frames=sampling is not None)
        clip = np.stack([frame_of(case, i) for i in range(count)])
        metadata = [{"total_num_frames": count, "fps": rate, "frames_indices": list(range(count))}]
        out = processor(clip, video_metadata=metadata, input_data_format="channels_last", return_metadata=True,
                        return_tensors="pt")
        values = out["pixel_values_videos"].numpy()
        indices = [int(i) for i in out["video_metadata"][0].frames_indices]
        assert values.dtype == np.float32
        results.append(dict(case, indices=indices, grid=out["video_grid_thw"][0].tolist(), shape=list(values.shape),
                            sha256=cases.sha256(values)))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("vectors", type=Path)
    arguments = parser.parse_args()
    folder, vectors = arguments.folder, json.loads(arguments.vectors.read_text())
    logging.disable(logging.WARNING)
    start = time.time()
    cases.write_fixture(folder / "video_frames.json", {**MADE_BY, "cases": frames_cases(700)})
    cases.write_fixture(folder / "video_values.json", {**MADE_BY, "cases": values_cases()})
    cases.write_fixture(folder / "video_vectors.json", {
        "made_by": MADE_BY["made_by"], "versions": {"transformers": "5.17.0", "torch": "2.11"},
        **{key: vectors[key] for key in ("video_smart_resize", "sample_frames", "video_pixel_values")}})
    print(f"{time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
