"""Live: safetensors files of qvl and of the Python package.

1. What qvl writes, the package reads: names, types, shapes, bytes, metadata.
2. What the package writes, qvl reads, with the same bytes.
3. What the package refuses, qvl refuses: damaged copies of good files. The other way round qvl may be stricter, and
   the reasons are counted.
"""

import ctypes
import json
import os
import random
import struct
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

import qvl_ctypes as qvl

MUTATIONS = 6000
# The package refuses 4.0 and -0 for an integer; to qvl they are the same number.
INTEGER_SPELLED_AS_FRACTION = "invalid type: floating point"
BITS = {
    "F32": 32, "BF16": 16, "F16": 16, "I64": 64, "U8": 8, "I32": 32, "F64": 64, "I16": 16, "I8": 8, "U16": 16,
    "U32": 32, "U64": 64, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
    "C64": 64, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
}


def save(path, tensors, metadata):
    """tensors: {name: (dtype name, shape, bytes)}"""
    views, kept = [], []
    for name, (dtype, shape, data) in tensors.items():
        buffer = ctypes.create_string_buffer(data, max(len(data), 1))
        kept.append(buffer)
        dims = (ctypes.c_int64 * qvl.MAX_DIMS)(*shape)
        views.append(qvl.Tensor(name.encode(), qvl.DTYPES[dtype], len(shape), dims, ctypes.addressof(buffer)))
    pairs = [text.encode() for pair in metadata.items() for text in pair]
    error = qvl.Error()
    status = qvl.lib.qvl_tensors_save(os.fsencode(path), (qvl.Tensor * len(views))(*views), len(views),
                                      (ctypes.c_char_p * len(pairs))(*pairs), len(metadata), ctypes.byref(error))
    if status:
        raise qvl.QvlError(qvl.STATUS[status], error.message.decode())


def load(path):
    """{name: (dtype name, shape, bytes)} as qvl reads it."""
    names = {number: name for name, number in qvl.DTYPES.items()}
    handle, error = ctypes.c_void_p(), qvl.Error()
    status = qvl.lib.qvl_tensor_file_open(os.fsencode(path), ctypes.byref(handle), ctypes.byref(error))
    if status:
        raise qvl.QvlError(qvl.STATUS[status], error.message.decode(errors="replace"))
    tensors = {}
    for i in range(qvl.lib.qvl_tensor_file_count(handle)):
        tensor = qvl.lib.qvl_tensor_file_get(handle, i)
        dtype, shape = names[tensor.dtype], list(tensor.shape[: tensor.ndim])
        size = int(np.prod(shape, dtype=np.int64)) * BITS[dtype] // 8
        tensors[tensor.name.decode()] = (dtype, shape, ctypes.string_at(tensor.data, size))
    qvl.lib.qvl_tensor_file_close(ctypes.byref(handle))
    return tensors


def check_writer(folder, rng):
    """Every element type, odd names, empty and scalar tensors."""
    tensors, path = {}, folder / "qvl.safetensors"
    for dtype in qvl.DTYPES:
        tensors[f'{dtype} "quoted" \\ é 😀\n'] = (dtype, [2, 4], rng.randbytes(BITS[dtype]))
    tensors["empty"] = ("F32", [3, 0], b"")
    tensors["scalar"] = ("I64", [], rng.randbytes(8))
    tensors[""] = ("U8", [1], b"\x05")
    metadata = {"format": "pt", "a \"note\"": "of two\nlines é"}
    save(path, tensors, metadata)
    raw = path.read_bytes()
    read = {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(raw)}
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    same = read == tensors and header["__metadata__"] == metadata and length % 8 == 0
    print(f"written by qvl, read by safetensors {safetensors.__version__}: {len(read)} tensors,",
          "equal" if same else "DIFFERENT")
    return same and load(path) == tensors


def check_reader(folder, rng):
    kinds = [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
    path, good = folder / "python.safetensors", 0
    for case in range(100):
        arrays = {}
        for i in range(rng.randrange(0, 20)):
            shape = [rng.randrange(0, 5) for _ in range(rng.randrange(0, 5))]
            values = np.frombuffer(rng.randbytes(int(np.prod(shape)) * 8), np.int64).reshape(shape)
            with np.errstate(over="ignore"):
                arrays[f"model.visual.blocks.{i}.{rng.randrange(9)}"] = values.astype(rng.choice(kinds))
        safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"} if case % 2 else None)
        read = load(path)
        good += set(read) == set(arrays) and all(
            read[n][1] == list(a.shape) and read[n][2] == a.tobytes() for n, a in arrays.items())
    print(f"written by safetensors, read by qvl: {good} of 100 files equal")
    return good == 100


def mutate(raw, rng):
    raw = bytearray(raw)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(raw))
        kind = rng.randrange(4)
        if kind == 0:
            raw[at] = rng.randrange(256)
        elif kind == 1:
            raw[at:at] = rng.choice([b" ", b",", b"0", b"{", b"\"", b"-", b"1", b"\x00", b".", b"e", b"\xff", b"\\"])
        elif kind == 2:
            del raw[at:at + rng.randrange(1, 5)]
        else:
            raw[at:at + 1] = rng.choice([b"9", b"[", b"}", b":", b"null", b"\\u0000", b"1e9", b"4.0"])
    if rng.random() < 0.7 and len(raw) >= 8:  # let most get past the length
        end = max(raw.rfind(b"}") + 1, 8)
        raw[:8] = struct.pack("<Q", end - 8)
    return bytes(raw)


def check_strictness(folder, rng):
    path = folder / "damaged.safetensors"
    seeds = []
    for _ in range(20):
        arrays = {f"t{i}": np.zeros([rng.randrange(0, 4) for _ in range(rng.randrange(3))], np.float32)
                  for i in range(rng.randrange(1, 4))}
        seeds.append(safetensors.numpy.save(arrays, {"format": "np"}))
    lax, stricter, refused, accepted, spelled = [], Counter(), 0, 0, 0
    for _ in range(MUTATIONS):
        raw = mutate(rng.choice(seeds), rng)
        path.write_bytes(raw)
        try:
            safetensors.deserialize(raw)
            theirs = None
        except Exception as error:  # the package raises its own type and UnicodeDecodeError
            theirs = str(error)
        try:
            load(path)
            ours = None
        except qvl.QvlError as error:
            ours = error.message
        refused += theirs is not None and ours is not None
        accepted += theirs is None and ours is None
        if theirs is None and ours is not None:
            stricter[ours.split(": ", 2)[-1][:24]] += 1
        if theirs is not None and ours is None:
            spelled += INTEGER_SPELLED_AS_FRACTION in theirs
            if INTEGER_SPELLED_AS_FRACTION not in theirs:
                lax.append((theirs, raw))
    print(f"{MUTATIONS} damaged files: both refuse {refused}, both accept {accepted}, qvl alone refuses "
          f"{sum(stricter.values())} {dict(stricter.most_common(6))}, qvl alone accepts {spelled} (an integer spelled "
          "4.0)")
    for theirs, raw in lax[:5]:
        print(f"ACCEPTED BY QVL ONLY: {theirs}: {raw!r}")
    return not lax and refused > MUTATIONS // 2 and accepted > 0


def main():
    rng = random.Random(5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        good = [check_writer(folder, rng), check_reader(folder, rng), check_strictness(folder, rng)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
