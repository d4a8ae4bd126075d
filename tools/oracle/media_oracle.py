"""Decoding against Pillow, live and byte for byte: every kind of every format as random pictures, under the default
policies, under `--policy reference` and on a colour; what headers alone say; cut files; EXIF of all kinds,
alone and beside XMP.

    python tools/oracle/media_oracle.py [--seed N]

Pillow's wheel has decoders of its own, newer than Debian's; both versions are printed.
"""

import argparse
import collections
import io
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, features

import media_formats as mf
import media_pictures as mp
import qvl_ctypes as qvl

warnings.filterwarnings("ignore", "Corrupt EXIF data|Metadata Warning")  # that is what is tested

COLOUR = (200, 30, 90)
LIBRARIES = {  # as Pillow's features call them: as pkg-config does
    "libjpeg_turbo": "libjpeg", "webp": "libwebp", "libtiff": "libtiff-4", "avif": "libavcodec",
}


class Case:
    """A picture and what it must become; without expectations, what Pillow makes of its bytes."""

    def __init__(self, name, data, default=mp.default):
        self.name, self.data = name, data
        self.wanted = [
            ("reference", {}, mp.reference(data)),
            ("default", {}, default(data)),
            ("default", {"alpha_colour": COLOUR}, default(data, COLOUR)),
        ]


def random_size(rng):
    return tuple(int(n) for n in rng.integers(1, 68, 2))


def jpeg_cases(rng):
    """(name, bytes) of every sampling, quality and mode, at random sizes."""
    for quality in (1, 50, 100):
        for progressive in (False, True):
            options = {"quality": quality, "progressive": progressive}
            tail = f"q{quality}{'-progressive' if progressive else ''}.jpg"
            for sampling in ("4:4:4", "4:2:2", "4:2:0"):
                data = mp.jpeg(mp.photo(*random_size(rng), rng), subsampling=sampling, **options)
                yield f"{sampling.replace(':', '')}-{tail}", data
                restart = dict(options, restart_marker_blocks=int(rng.integers(1, 9)))
                data = mp.jpeg(mp.photo(*random_size(rng), rng), subsampling=sampling, **restart)
                yield f"{sampling.replace(':', '')}-restart-{tail}", data
            yield f"440-{tail}", mp.jpeg_440(*random_size(rng), rng, **options)
            columns, rows, trim = (int(n) for n in (rng.integers(1, 4), rng.integers(1, 9), rng.integers(0, 32)))
            yield f"411-{tail}", mp.jpeg_411(columns, rows, trim, rng, **options)
            yield f"gray-{tail}", mp.jpeg(mp.photo(*random_size(rng), rng)[:, :, 0], **options)
            width, height = random_size(rng)
            ink = np.concatenate([mp.photo(width, height, rng), mp.photo(width, height, rng)[:, :, :1]], -1)
            yield f"cmyk-{tail}", mp.jpeg(ink, **options)
            yield f"ycck-{tail}", mp.jpeg_ycck(*random_size(rng), rng, **options)
            yield f"untransformed-{tail}", mp.jpeg(mp.photo(*random_size(rng), rng), keep_rgb=True, **options)
    for sampling in ("4:4:4", "4:2:2", "4:2:0"):
        data = mp.jpeg(mp.photo(1203, 801, rng), subsampling=sampling, quality=85)
        yield f"large-{sampling.replace(':', '')}.jpg", data
        for width, height in ((1, 1), (1, 33), (33, 1), (2, 2), (3, 17)):
            data = mp.jpeg(mp.photo(width, height, rng), subsampling=sampling, quality=90)
            yield f"{width}x{height}-{sampling.replace(':', '')}.jpg", data


def png_cases(rng):
    """Every colour type, depth, interlacing and transparency."""
    names = {mp.GRAY: "gray", mp.RGB: "rgb", mp.PALETTE: "palette", mp.GRAY_ALPHA: "gray-alpha", mp.RGBA: "rgba"}
    for colour, name in names.items():
        for depth in mp.DEPTHS[colour]:
            for interlaced in (False, True):
                for transparent in (False, True) if colour in (mp.GRAY, mp.RGB, mp.PALETTE) else (False,):
                    png = mp.random_png(colour, depth, *random_size(rng), rng, interlaced, transparent)
                    tail = ("-interlaced" if interlaced else "") + ("-trns" if transparent else "")
                    yield Case(f"{name}-{depth}{tail}.png", png.data, lambda _, *colour, png=png: png.default(*colour))
    photo = Image.fromarray(mp.photo(*random_size(rng), rng))
    alpha = Image.fromarray(mp.photo(*photo.size, rng)[:, :, 0])
    with_alpha = photo.copy()
    with_alpha.putalpha(alpha)
    written = {mode: photo.convert(mode) for mode in ("1", "L", "P", "RGB")}
    written |= {"RGBA": with_alpha, "LA": with_alpha.convert("LA"), "P-alpha": with_alpha.quantize(40)}
    deep = rng.integers(0, 65536, (photo.height, photo.width)).astype("<u2")
    written["I16"] = Image.frombytes("I;16", photo.size, deep.tobytes())
    for mode, image in written.items():
        out = io.BytesIO()
        image.save(out, "PNG")
        yield Case(f"pillow-{mode}.png", out.getvalue())


def difference(got, expected):
    """None, or in words how two pictures differ."""
    if got.shape != expected.shape:
        return f"size {got.shape[1]} x {got.shape[0]}, expected {expected.shape[1]} x {expected.shape[0]}"
    if (got == expected).all():
        return None
    gap = np.abs(got.astype(int) - expected)
    y, x, c = (int(n) for n in np.argwhere(gap)[0])
    return (f"{np.count_nonzero(gap)} of {gap.size} samples differ, most by {gap.max()}; first at x {x} y {y} "
            f"channel {c}: {got[y, x, c]}, expected {expected[y, x, c]}")


def fault_of(source, policy, options, expected):
    """What is wrong with reading source, in words, or None."""
    try:
        got, facts = qvl.read_image(source, policy, **options)
        probed = qvl.probe_image(source, policy, **options)
    except qvl.QvlError as error:
        return str(error)
    if probed != facts:
        return f"the header alone says {probed}, reading says {facts}"
    return difference(got, expected)


def check_pictures(folder, cases):
    """Each as a file and as bytes, under all policies. Returns what is wrong."""
    faults = []
    for case in cases:
        path = folder / case.name
        path.write_bytes(case.data)
        for policy, options, expected in case.wanted:
            for source in (path, case.data):
                fault = fault_of(source, policy, options, expected)
                if fault:
                    faults.append(f"{case.name}, {policy} {options}: {fault}")
    return faults


def check_exif(rng, count=2000):
    """EXIF blocks, whole, odd and cut, half of them beside XMP: the same orientation as Pillow's; XMP's or none where
    Pillow gives up. A tag that says it has two values is malformed; Pillow would take the first."""
    kinds = (3, 4, 3, 4, 3, 4, 0, 14, 200)
    jpeg, faults, turned = mp.jpeg(mp.photo(3, 2, rng), quality=90), [], 0
    for _ in range(count):
        endian, kind, values = "<>"[rng.integers(2)], int(rng.choice(kinds)), int(rng.choice([1, 1, 1, 1, 0, 2]))
        block = mf.exif_block(int(rng.integers(0, 11)), endian, kind, values, int(rng.choice([0x0112, 0x0111])))
        block = block[:int(rng.choice([len(block), len(block), rng.integers(0, len(block))]))]
        xmp = int(rng.integers(0, 10)) if values < 2 and rng.integers(2) else None
        beside = jpeg if xmp is None else mf.jpeg_with_xmp(jpeg, b'tiff:Orientation="%d"' % xmp)
        data = mf.jpeg_with_exif(beside, block)
        try:
            expected = Image.open(io.BytesIO(data)).getexif().get(0x0112, 1) if values < 2 else 1
        except Exception:  # Pillow has many ways to give up here
            expected = xmp
        got = qvl.probe_image(data)["orientation"]
        turned += got != 1
        if got != (expected if expected in range(1, 9) else 1):
            faults.append(f"EXIF {block.hex()}, XMP {xmp}: orientation {got}, Pillow says {expected}")
    print(f"{count} EXIF blocks, {turned} of them with an orientation")
    return faults


def read_bytes(data):
    return qvl.read_image(data, "reference")[0]


def read_or_none(read, data):
    try:
        return read(data)
    except (OSError, SyntaxError, ValueError, qvl.QvlError):
        return None


def check_cuts(cases):
    """Cut JPEG files: what Pillow refuses is refused, what it reads is read, to the same bytes."""
    faults, cuts, whole = [], 0, 0
    for name, data in cases:
        for count in range(4, len(data)):
            got, expected = read_or_none(read_bytes, data[:count]), read_or_none(mp.reference, data[:count])
            cuts += 1
            if (got is None) != (expected is None):
                faults.append(f"{name} cut to {count} of {len(data)}: {'refused' if got is None else 'read'}")
            elif got is not None:
                whole += 1
                fault = difference(got, expected)
                if fault:
                    faults.append(f"{name} cut to {count} of {len(data)}: {fault}")
    print(f"{cuts} cut JPEG files, {whole} of them whole but for the end marker")
    return faults


def versions():
    for feature, package in LIBRARIES.items():
        found = subprocess.run(["pkg-config", "--modversion", package], capture_output=True, text=True, check=False)
        yield f"{feature} {features.version(feature)} ({found.stdout.strip() or 'unknown'})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(np.random.SeedSequence().entropy % (1 << 32)))
    seed = parser.parse_args().seed
    rng = np.random.default_rng(seed)
    print(f"seed {seed}; Pillow {Image.__version__}; its libraries (and qvl's): {', '.join(versions())}")

    jpegs = list(jpeg_cases(rng))
    cases = [Case(name, data) for name, data in jpegs] + list(png_cases(rng))
    cases += [Case(name, data) for name, data in mf.all_cases(rng, lambda: random_size(rng))]
    kinds = collections.Counter(case.name.rsplit(".", 1)[1] for case in cases)
    with tempfile.TemporaryDirectory() as folder:
        faults = check_pictures(Path(folder), cases)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"{len(cases)} pictures ({counts}), each as file and as bytes, under the default and the reference policies "
          "and on a colour")
    small = [case for case in jpegs if len(case[1]) < 2500]
    faults += check_cuts([small[i] for i in rng.permutation(len(small))[:8]])
    faults += check_exif(rng)

    for fault in faults[:40]:
        print("DIFFERENT", fault)
    print(f"{len(faults)} differences" if faults else "all equal")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
