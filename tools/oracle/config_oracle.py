"""Live: what qvl reads from a folder's JSON files against transformers' AutoConfig and image processor.

Where transformers refuses at load or at the first picture, qvl must refuse at open.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import transformers
from transformers import AutoConfig
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

import qvl_ctypes as qvl

CONFIGS = Path(os.environ.get("QVL_FIXTURES", qvl.REPOSITORY / "tests/fixtures")) / "configs"
EDGES = {"shortest_edge": 65536, "longest_edge": 16777216}
HALVES = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "patch_size": 16}
SIZES = {"depth": 4, "hidden_size": 64, "num_heads": 4, "intermediate_size": 96, "deepstack_visual_indexes": [1]}

# preprocessor_config.json, processor_config.json; None: the file is not there.
PROCESSOR_FILES = [
    ({"size": EDGES, **HALVES}, None),
    ({"min_pixels": 1024, "max_pixels": 4096, **HALVES}, None),
    ({"size": EDGES, "min_pixels": 1024, **HALVES}, None),
    ({"size": EDGES, "max_pixels": 99999, **HALVES}, None),
    ({"size": EDGES, "max_pixels": None, **HALVES}, None),
    ({"min_pixels": 1024, **HALVES}, None),
    ({"max_pixels": 5000, **HALVES}, None),
    ({"size": None, **HALVES}, None),
    ({**HALVES}, None),
    ({"size": {"shortest_edge": 10}, "max_pixels": 500, **HALVES}, None),
    ({"size": {}, "min_pixels": 100, "max_pixels": 500, **HALVES}, None),
    ({"size": {"shortest_edge": 10}, **HALVES}, None),
    ({"size": {"longest_edge": 10}, **HALVES}, None),
    ({"size": {"height": 64, "width": 64}, **HALVES}, None),
    ({"size": {"shortest_edge": 0, "longest_edge": 10}, **HALVES}, None),
    ({"size": EDGES, "patch_size": 16}, None),
    ({"size": EDGES, **HALVES, "image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 0.3], "rescale_factor": 0.25}, None),
    (None, {"image_processor": {"size": EDGES, **HALVES}}),
    (None, {"image_processor": {"max_pixels": 2000, **HALVES}, "size": {"shortest_edge": 7, "longest_edge": 8}}),
    ({"size": {"shortest_edge": 7, "longest_edge": 8}, **HALVES}, {"image_processor": {"size": EDGES, **HALVES}}),
    ({"min_pixels": 7, "max_pixels": 8, **HALVES}, {"image_processor": {**HALVES}}),
    ({"size": {"shortest_edge": 7, "longest_edge": 8}, **HALVES}, {"processor_class": "Qwen3VLProcessor"}),
    ({"size": {"shortest_edge": 7, "longest_edge": 8}, **HALVES}, {"image_processor": None}),
]

# Keys of vision_config beside SIZES; None takes one away.
VISION_KEYS = [
    {},
    {"num_heads": None, "num_attention_heads": 8},
    {"rope_theta": 500},
    {"rope_parameters": {"rope_type": "axial", "rope_theta": 700.5}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 700.5}},
    {"rope_parameters": {"rope_theta": 700.5}, "rope_theta": 500},
    {"rope_parameters": {"rope_type": "axial"}, "rope_theta": 500},
    {"rope_scaling": {"type": "axial", "rope_theta": 900}, "rope_parameters": {"rope_theta": 700.5}},
    {"num_position_embeddings": 99, "out_hidden_size": 128, "patch_size": 8, "spatial_merge_size": 4},
    {"deepstack_visual_indexes": []},
    {"deepstack_visual_indexes": [0, 2, 3]},
]


def check_vision(folder, label):
    theirs = AutoConfig.from_pretrained(folder).vision_config
    with qvl.Model(folder, "config") as model:
        ours = model.info
        pairs = {name: (getattr(ours, name), getattr(theirs, name)) for name in (
            "depth", "hidden_size", "num_heads", "intermediate_size", "out_hidden_size", "in_channels", "patch_size",
            "temporal_patch_size", "spatial_merge_size", "num_position_embeddings")}
        pairs["deepstack"] = (list(ours.deepstack_indexes)[: ours.deepstack_count],
                              list(getattr(theirs, "deepstack_visual_indexes", None) or []))
        pairs["rope_theta"] = (ours.rope_theta, float(np.float32(theirs.rope_parameters["rope_theta"])))
        pairs["rope_type"] = ("axial", theirs.rope_parameters["rope_type"])
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if wrong:
        print(f"DIFFERENT {label}: {wrong} (qvl, transformers)")
    return not wrong


def read_theirs(folder):
    """None where a picture could not be processed."""
    processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
    size = processor.size
    if not size.shortest_edge or not size.longest_edge:
        return None
    return (size.shortest_edge, size.longest_edge, [float(np.float32(x)) for x in processor.image_mean],
            [float(np.float32(x)) for x in processor.image_std], processor.rescale_factor)


def read_ours(folder):
    try:
        with qvl.Model(folder, "config") as model:
            info = model.info
            return (info.image_limits.min_pixels, info.image_limits.max_pixels, list(info.image_mean),
                    list(info.image_std), info.rescale_factor)
    except qvl.QvlError as error:
        if error.status != "format":
            raise
        return None


def check_processor(folder, label):
    theirs, ours = read_theirs(folder), read_ours(folder)
    if theirs != ours:
        print(f"DIFFERENT {label}: qvl {ours}, transformers {theirs}")
    return theirs == ours


def in_folder(files, check, label):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if content is not None:
                Path(folder, name).write_text(json.dumps(content))
        return check(folder, label)


def changed(keys):
    return {key: value for key, value in {**SIZES, **keys}.items() if value is not None}


def main():
    published = sorted(path for path in CONFIGS.iterdir() if path.is_dir())
    config = {"model_type": "qwen3_vl", "vision_config": SIZES}
    good = [check_vision(folder, folder.name) and check_processor(folder, folder.name) for folder in published]
    print(f"published models: {sum(good)} of {len(good)} equal to transformers {transformers.__version__}")
    vision = [in_folder({"config.json": dict(config, vision_config=changed(keys))}, check_vision, keys)
              for keys in VISION_KEYS]
    print(f"vision_config variants: {sum(vision)} of {len(vision)} equal")
    files = [in_folder({"config.json": config, "preprocessor_config.json": plain, "processor_config.json": combined},
                       check_processor, (plain, combined)) for plain, combined in PROCESSOR_FILES]
    print(f"preprocessor files: {sum(files)} of {len(files)} equal")
    return 0 if good and all(good + vision + files) else 1


if __name__ == "__main__":
    sys.exit(main())
