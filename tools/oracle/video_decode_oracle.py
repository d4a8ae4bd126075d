"""Videos: qvl's frames against PyAV's, for clips that PyAV's encoders make here and for those of tests/fixtures/video.

Compared are the number of frames, their seconds, the average rate and the RGB bytes of every frame, and of a few that
are asked for alone. PyAV bundles FFmpeg 8, qvl is built with the system's; docs/VIDEO.md says where that shows.
"""
import glob
import hashlib
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import av
import numpy as np

DUMP = os.path.join(os.environ["QVL_BUILD_DIR"], "video_dump")
FIXTURES = os.path.join(os.environ["QVL_FIXTURES"], "video")

# container, encoder, pixel formats, options
KINDS = [
    ("mp4", "libx264", ["yuv420p", "yuv422p", "yuv444p", "yuvj420p"], {"preset": "veryfast", "bf": "3"}),
    ("mp4", "libx264", ["yuv420p"], {"preset": "veryfast", "bf": "2", "x264-params": "open-gop=1"}),
    ("matroska", "libx264", ["yuv420p", "yuv420p10le"], {"preset": "veryfast", "bf": "3"}),
    ("mpegts", "libx264", ["yuv420p"], {"preset": "veryfast", "bf": "3"}),
    # Without cutree: x265 4.2 writes behind its arrays where a picture is this small.
    ("mp4", "libx265", ["yuv420p"], {"preset": "ultrafast", "x265-params": "log-level=none:bframes=3:cutree=0"}),
    ("avi", "mpeg4", ["yuv420p"], {"bf": "2"}),
    ("webm", "libvpx-vp9", ["yuv420p", "yuv444p"], {"lag-in-frames": "12", "cpu-used": "8"}),
    ("matroska", "ffv1", ["yuv420p", "yuv422p", "bgr0", "yuv420p10le"], {}),
]
RATES = [Fraction(24), Fraction(25), Fraction(30), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(10)]


def make_clip(path, kind, rng):
    container, encoder, formats, options = kind
    pixel_format = rng.choice(formats)
    width, height = rng.randrange(32, 200), rng.randrange(32, 160)
    if encoder != "ffv1" and pixel_format != "yuv444p":
        width, height = width & ~1, height & ~1
    noise = np.random.default_rng(rng.randrange(1 << 30))
    with av.open(path, "w", format=container) as out:
        stream = out.add_stream(encoder, rate=rng.choice(RATES), options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
        stream.codec_context.gop_size = rng.choice([1, 5, 12, 60])
        stream.codec_context.thread_count = 1
        base = noise.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
        for i in range(rng.randrange(1, 60)):
            picture = np.roll(base, i, 1).repeat(8, 0).repeat(8, 1)[:height, :width]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            out.mux(stream.encode(frame.reformat(format=pixel_format)))
        out.mux(stream.encode())
    return f"{container} {encoder} {pixel_format} {width}x{height}"


def is_generic(frame):
    """Whether libswscale scales the chroma of such frames, as it does where it has no converter of its own."""
    odd = frame.height % 2 and frame.format.name in ("yuv420p", "yuvj420p")
    return bool(odd) or "10le" in frame.format.name


def by_pyav(path):
    """Frames, seconds, the rate, and whether the bytes must be equal. PyAV's FFmpeg puts chroma where H.264 and HEVC
    have it, to the left; torchcodec and the FFmpeg before it put it in the middle."""
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        frames = list(container.decode(stream))
        generic = is_generic(frames[0])
        options = {"interpolation": "BICUBIC"} if generic else {}
        options["threads"] = 1
        pixels = [f.to_ndarray(format="rgb24", **options) for f in frames]
        exact = not ("10le" in frames[0].format.name and stream.codec_context.name in ("h264", "hevc"))
        return pixels, [f.time for f in frames], stream.average_rate, exact


def dump(path, *arguments):
    options = [a for a in arguments if a.startswith("--")]
    frames = [a for a in arguments if not a.startswith("--")]
    done = subprocess.run([DUMP, "--alpha-drop", *options, path, *frames], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr.decode()}")
    return done.stdout


def near(path, frames):
    """Bytes that are not equal differ by where chroma is, which shows at its edges."""
    ours = np.frombuffer(dump(path, "--pixels"), np.uint8).reshape(len(frames), *frames[0].shape)
    return float(np.abs(ours.astype(int) - np.stack(frames)).mean()) < 10


def compare(path, rng):
    frames, seconds, rate, exact = by_pyav(path)
    lines = dump(path).decode().splitlines()
    head, rows = lines[0].split(), [line.split() for line in lines[1:]]
    faults = []
    if len(rows) != len(frames) or int(head[5]) != len(frames):
        faults.append(f"{len(rows)} frames, PyAV has {len(frames)}")
        return faults
    if Fraction(head[7]) != (rate or 0):
        faults.append(f"rate {head[7]}, PyAV has {rate}")
    hashes = [hashlib.sha256(f.tobytes()).hexdigest() for f in frames]
    for i, row in enumerate(rows):
        if seconds[i] is not None and abs(float(row[1]) - (seconds[i] - seconds[0])) > 1e-6:
            faults.append(f"frame {i} at {row[1]} s, PyAV has {seconds[i] - seconds[0]}")
        if exact and row[2] != hashes[i]:
            faults.append(f"frame {i} differs")
    if not exact and not near(path, frames):
        faults.append("frames are not near PyAV's")
    picks = sorted(rng.sample(range(len(frames)), min(4, len(frames))))
    for line in dump(path, *map(str, picks)).decode().splitlines()[1:]:
        number, _, digest = line.split()
        if digest != rows[int(number)][2]:
            faults.append(f"frame {number} asked for alone differs")
    return faults


def main():
    rng = random.Random(20)
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        clips = [(f, os.path.basename(f)) for f in sorted(glob.glob(f"{FIXTURES}/*")) if not f.endswith(".json")]
        for i in range(48):
            path = f"{folder}/{i}"
            clips.append((path, make_clip(path, KINDS[i % len(KINDS)], rng)))
        for path, what in clips:
            count += 1
            faults = compare(path, rng)
            failed += bool(faults)
            for fault in faults[:4]:
                print(f"{what}: {fault}")
    print(f"{count} clips compared with PyAV {av.__version__}, {failed} with differences")
    sys.exit(1 if failed or count < 70 else 0)


if __name__ == "__main__":
    main()
