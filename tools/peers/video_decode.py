"""Times and weighs reading a long clip: qvl, PyAV, and decoding alone, taking turns on the same file.

    python3 tools/peers/video_decode.py --build build [--clip FILE] [--minutes 10] [--fps 2] [--threads 2] [--runs 3]

Needs PyAV (av) and ffmpeg. Without --clip a 1080p H.264 clip (x264, keyint 250, 30 frames a second; thirty seconds of it,
over and over) is made once and kept in the cache folder. Each program runs as a process of its own; its time is that of
the processors, which other work on the machine disturbs less than the clock's, and its memory the most it had.

    decode   ffmpeg decodes all frames and throws them away
    frames   qvl's frames at --fps, as RGB (video_dump of the build)
    qvl      qvl preprocess: from the file to pixel_values_videos
    pyav     PyAV decodes all frames and makes RGB arrays of those at --fps
    transformers  its loader with PyAV and its video processor: from the file to pixel_values_videos (torch, torchvision)
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYAV = """
import sys, av
path, step, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with av.open(path) as container:
    stream = container.streams.video[0]
    stream.thread_type, stream.codec_context.thread_count = "AUTO", threads
    frames = [f.to_ndarray(format="rgb24") for i, f in enumerate(container.decode(stream)) if i % step == 0]
print(len(frames))
"""

TRANSFORMERS = """
import functools, sys, torch
from transformers import Qwen3VLVideoProcessor
from transformers.video_utils import load_video
torch.set_num_threads(int(sys.argv[2]))
processor = Qwen3VLVideoProcessor()
choose = functools.partial(processor.sample_frames, fps=float(sys.argv[3]))
video, metadata = load_video(sys.argv[1], backend="pyav", sample_indices_fn=choose)
values = processor(videos=[video], video_metadata=[metadata], do_sample_frames=False, return_tensors="pt")
print(values["pixel_values_videos"].shape, values["video_grid_thw"])
"""


def make_clip(folder, minutes):
    part, whole = folder / "part.mp4", folder / f"h264_1080p_{minutes}min.mp4"
    if not whole.exists():
        folder.mkdir(parents=True, exist_ok=True)
        picture = "mandelbrot=s=1920x1080:rate=30:maxiter=200:start_scale=0.3:end_scale=0.05:end_pts=900"
        ffmpeg = ["ffmpeg", "-v", "error", "-y"]
        subprocess.run([*ffmpeg, "-f", "lavfi", "-i", picture, "-vf", "noise=alls=4:allf=t,format=yuv420p", "-t", "30",
                        "-c:v", "libx264", "-g", "250", part], check=True)
        subprocess.run([*ffmpeg, "-stream_loop", str(2 * minutes - 1), "-i", part, "-c", "copy", whole], check=True)
        part.unlink()
    return whole


def measure(command):
    """Seconds of processors and of the clock, and the most memory in MiB."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"failed: {' '.join(map(str, command[:3]))}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--clip", type=Path)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--fps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="of decode, frames, qvl, pyav, transformers")
    options = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "qvl" / "peers"
    clip = options.clip or make_clip(cache, options.minutes)
    step = 30 // options.fps
    count = int(subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=nb_frames",
                                "-of", "csv=p=0", clip], capture_output=True, text=True, check=True).stdout.strip(" ,\n"))
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            "decode": ["ffmpeg", "-v", "error", "-threads", str(options.threads), "-i", clip, "-f", "null", "-"],
            "frames": [options.build / "video_dump", clip, *map(str, range(0, count, step))],
            "qvl": [options.build / "qvl", "preprocess", clip, "-o", f"{folder}/out.safetensors"],
            "pyav": [sys.executable, "-c", PYAV, clip, str(step), str(options.threads)],
            "transformers": [sys.executable, "-c", TRANSFORMERS, clip, str(options.threads), str(options.fps)],
        }
        names = options.only or list(programs)
        results = {name: [] for name in names}
        for _ in range(options.runs):
            for name in names:
                results[name].append(measure(programs[name]))
    base = statistics.median(r[0] for r in results[names[0]])
    for name in names:
        cpu, wall = (statistics.median(r[i] for r in results[name]) for i in (0, 1))
        print(f"{name:12} {cpu:8.1f} s of processors ({cpu / base:.2f} of {names[0]}) {wall:8.1f} s"
              f" {max(r[2] for r in results[name]):8.0f} MiB")


if __name__ == "__main__":
    main()
