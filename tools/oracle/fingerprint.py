"""The fingerprint of a folder's vision tower, as src/model/fingerprint.h defines it, with the standard library only.

    python fingerprint.py FOLDER...

It reads what qvl reads and trusts it: nothing is checked here.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

PREFIXES = ("model.visual.", "visual.", "vision_tower.", "model.language_model.visual.")
PARTS = ("patch_embed.", "pos_embed.", "blocks.", "merger.", "deepstack_merger_list.")  # of a tower without prefix
BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def files_of(folder):
    """The sidecar, else the single file, else every shard of the index."""
    for name in ("optiq/optiq_vision.safetensors", "model.safetensors"):
        if (folder / name).exists():
            return [folder / name]
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    return [folder / name for name in sorted(set(index["weight_map"].values()))]


def tensors_of(path):
    """name, dtype, shape, bytes of every tensor of a file."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        yield name, entry["dtype"], entry["shape"], raw[begin:end]


def canonical_name(name):
    """Without the prefix; None for a tensor that is not the tower's."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix):]
    return name if name.startswith(PARTS) else None


def canonical_patch(config, dtype, shape, data):
    """Shape and bytes of patch_embed.proj.weight in Hugging Face layout."""
    patch, frames = config.get("patch_size", 16), config.get("temporal_patch_size", 2)
    wanted = [config["hidden_size"], 3, frames, patch, patch]
    if len(shape) == 5 and shape != wanted:  # MLX: channels last
        size, rows, pixels = BYTES[dtype], shape[0], frames * patch * patch
        row = pixels * 3 * size
        data = b"".join(
            data[d * row + (pixel * 3 + channel) * size:][:size]
            for d in range(rows) for channel in range(3) for pixel in range(pixels))
    return wanted, data


def tower_of(folder):
    """{canonical name: (dtype, shape, bytes)} in Hugging Face layout."""
    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text())["vision_config"]
    tower = {}
    for path in files_of(folder):
        for full_name, dtype, shape, data in tensors_of(path):
            name = canonical_name(full_name)
            if name is None or name == "rotary_pos_emb.inv_freq":
                continue
            if name == "patch_embed.proj.weight":
                shape, data = canonical_patch(config, dtype, shape, data)
            tower[name] = (dtype, shape, data)
    return tower


def fingerprint(folder):
    lines = ["qvl tower fingerprint 1\n"]
    for name, (dtype, shape, data) in sorted(tower_of(folder).items()):
        dimensions = ", ".join(str(n) for n in shape)
        lines.append(f"{name} {dtype} [{dimensions}] {hashlib.sha256(data).hexdigest()}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(fingerprint(argument), argument)
