"""Decoding against Pillow, live: every JPEG and PNG kind as random pictures, byte for byte, and cut files.

    python tools/oracle/media_oracle.py [--seed N]

Pillow's wheel has a libjpeg-turbo of its own, newer than Debian's; both versions are printed.
"""

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, features

import media_pictures as mp
import qvl_ctypes as qvl


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
    """(name, bytes, expected) of every colour type, depth, interlacing and transparency."""
    names = {mp.GRAY: "gray", mp.RGB: "rgb", mp.PALETTE: "palette", mp.GRAY_ALPHA: "gray-alpha", mp.RGBA: "rgba"}
    for colour, name in names.items():
        for depth in mp.DEPTHS[colour]:
            for interlaced in (False, True):
                for transparent in (False, True) if colour in (mp.GRAY, mp.RGB, mp.PALETTE) else (False,):
                    png = mp.random_png(colour, depth, *random_size(rng), rng, interlaced, transparent)
                    tail = ("-interlaced" if interlaced else "") + ("-trns" if transparent else "")
                    yield f"{name}-{depth}{tail}.png", png.data, png.rgb()
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
        yield f"pillow-{mode}.png", out.getvalue(), mp.pillow_rgb(out.getvalue())


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


def check_pictures(folder, cases):
    """Each as a file and as bytes. Returns what is wrong."""
    faults = []
    for name, data, expected in cases:
        path = folder / name
        path.write_bytes(data)
        for source in (path, data):
            try:
                fault = difference(qvl.read_image(source), expected)
            except qvl.QvlError as error:
                fault = str(error)
            if fault:
                faults.append(f"{name}: {fault}")
    return faults


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
            got, expected = read_or_none(qvl.read_image, data[:count]), read_or_none(mp.pillow_rgb, data[:count])
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


def debian_libjpeg():
    found = subprocess.run(["pkg-config", "--modversion", "libjpeg"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "of unknown version"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(np.random.SeedSequence().entropy % (1 << 32)))
    seed = parser.parse_args().seed
    rng = np.random.default_rng(seed)
    print(f"seed {seed}; Pillow {Image.__version__} with libjpeg-turbo {features.version('libjpeg_turbo')}, "
          f"qvl with libjpeg-turbo {debian_libjpeg()}")

    jpegs = list(jpeg_cases(rng))
    cases = [(name, data, mp.pillow_rgb(data)) for name, data in jpegs] + list(png_cases(rng))
    with tempfile.TemporaryDirectory() as folder:
        faults = check_pictures(Path(folder), cases)
    print(f"{len(cases)} pictures, {len(jpegs)} JPEG and {len(cases) - len(jpegs)} PNG, each as file and as bytes")
    small = [case for case in jpegs if len(case[1]) < 2500]
    faults += check_cuts([small[i] for i in rng.permutation(len(small))[:8]])

    for fault in faults[:40]:
        print("DIFFERENT", fault)
    print(f"{len(faults)} differences" if faults else "all equal")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
