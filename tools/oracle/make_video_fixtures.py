"""Makes tests/fixtures/video: small clips, and what torchcodec, transformers' own video loader, and PyAV give for them.

    python make_video_fixtures.py [FOLDER]

Needs ffmpeg (Debian 12's 5.1, which torchcodec then uses too), torchcodec with torch, and av. Every frame of a clip is
noise and ramps with edges in its chroma, so that each step of the conversion to RGB shows. expected.json has for each
clip the frames' count, the rate, their seconds and the SHA-256 of their RGB bytes, from torchcodec where it reads
the clip right, else from PyAV; `pyav` says whether PyAV's bytes are the same.
"""
import hashlib
import json
import os
import subprocess
import sys

import av
import numpy as np
import torch
import torchcodec
from torchcodec.decoders import VideoDecoder

X264 = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-g", "6", "-crf", "20", "-threads", "1"]
X265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=6:bframes=3:frame-threads=1"]
TO_709 = ["-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]

# name: width, height, frames, ffmpeg's output options, and who says what is right
CLIPS = {
    "h264_420.mp4": (64, 48, 14, [*X264, "-pix_fmt", "yuv420p"]),
    "h264_420_width66.mp4": (66, 50, 5, [*X264, "-pix_fmt", "yuv420p"]),
    "h264_bt709.mp4": (64, 48, 5, [*TO_709, *X264, "-pix_fmt", "yuv420p"]),
    "h264_full_range.mp4": (64, 48, 5, ["-vf", "scale=out_range=full", *X264, "-pix_fmt", "yuvj420p"]),
    "h264_422.mkv": (64, 48, 5, [*X264, "-pix_fmt", "yuv422p"]),
    "h264_444_odd.mp4": (67, 45, 5, [*X264, "-pix_fmt", "yuv444p"]),
    "h264_10bit.mp4": (64, 48, 5, [*X264, "-pix_fmt", "yuv420p10le"]),
    "h264_gray.mp4": (64, 48, 5, [*X264, "-pix_fmt", "gray"]),
    "h264_rgb.mp4": (64, 48, 5, ["-c:v", "libx264rgb", "-preset", "veryfast", "-pix_fmt", "rgb24"]),
    "h264_rate_29.97.mp4": (32, 32, 13, ["-r", "30000/1001", *X264, "-pix_fmt", "yuv420p"]),
    "hevc.mp4": (64, 48, 20, [*X265, "-pix_fmt", "yuv420p"]),
    "hevc_10bit_bt709.mkv": (64, 48, 5, [*TO_709, *X265, "-pix_fmt", "yuv420p10le"]),
    "vp8.webm": (64, 48, 20, ["-c:v", "libvpx", "-auto-alt-ref", "1", "-lag-in-frames", "16", "-b:v", "500k"]),
    "vp9.webm": (64, 48, 20, ["-c:v", "libvpx-vp9", "-lag-in-frames", "16", "-b:v", "500k", "-row-mt", "0"]),
    "av1.mp4": (64, 48, 8, ["-c:v", "libaom-av1", "-cpu-used", "8", "-crf", "30"]),
    "ffv1_420_odd.mkv": (67, 45, 3, ["-c:v", "ffv1", "-pix_fmt", "yuv420p"]),
    "ffv1_alpha.mkv": (64, 48, 3, ["-c:v", "ffv1", "-pix_fmt", "yuva420p"]),
    "mjpeg.avi": (64, 48, 5, ["-c:v", "mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"]),
    "mpeg4.avi": (64, 48, 12, ["-c:v", "mpeg4", "-bf", "2", "-q:v", "4"]),
    "mpeg2.ts": (64, 48, 12, ["-c:v", "mpeg2video", "-bf", "2", "-q:v", "4"]),
    "h264.ts": (64, 48, 12, [*X264, "-pix_fmt", "yuv420p"]),
    "h264_cut_start.mp4": (64, 48, 20, None),
    "rotate90.mp4": (64, 48, 3, None),
    "rotate180.mp4": (64, 48, 3, None),
    "rotate270.mp4": (64, 48, 3, None),
}
# torchcodec 0.17 counts the packets of these in the order of the file, and gives other frames for their numbers.
BY_PYAV = {"mpeg4.avi", "mpeg2.ts", "h264.ts"}


def picture(width, height, number):
    """RGB: a moving ramp, edges of colour that are not on even columns, and noise."""
    y, x = np.mgrid[0:height, 0:width]
    frame = np.stack([x * 4 + number * 9, y * 5 + number * 3, (x + y) * 3 - number * 7], -1) % 256
    frame[(x + number) % 11 < 3] = [220, 30, 40]
    frame[(y + 2 * number) % 13 < 2] = [20, 60, 230]
    noise = np.random.default_rng(number).integers(-12, 13, frame.shape)
    return np.clip(frame + noise, 0, 255).astype(np.uint8)


def ffmpeg(arguments, data=None):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], input=data, check=True)


def make(name, folder):
    width, height, frames, options = CLIPS[name]
    path = f"{folder}/{name}"
    exact = ["-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1"]
    if name.startswith("rotate"):
        degrees = name[6:-4]
        ffmpeg(["-i", f"{folder}/h264_420.mp4", "-c", "copy", "-frames:v", str(frames),
                "-metadata:s:v", f"rotate={degrees}", *exact, path])
    elif name == "h264_cut_start.mp4":
        ffmpeg(["-ss", "0.32", "-i", f"{folder}/h264_420.mp4", "-c", "copy", *exact, path])
    else:
        data = b"".join(picture(width, height, i).tobytes() for i in range(frames))
        ffmpeg(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "25", "-i", "-", *options,
                *exact, path], data)


def by_torchcodec(path):
    decoder = VideoDecoder(path, seek_mode="exact", num_ffmpeg_threads=1)
    batch = decoder.get_frames_at(indices=list(range(decoder.metadata.num_frames)))
    frames = [f.permute(1, 2, 0).contiguous().numpy() for f in batch.data]
    return frames, batch.pts_seconds.tolist(), decoder.metadata.average_fps


def by_pyav(path):
    with av.open(path) as container:
        stream = container.streams.video[0]
        decoded = list(container.decode(stream))
        return [f.to_ndarray(format="rgb24") for f in decoded], [f.time for f in decoded], float(stream.average_rate)


def turned(frames, name):
    if not name.startswith("rotate"):
        return frames
    return [np.rot90(f, int(name[6:-4]) // 90) for f in frames]  # counter-clockwise: ffmpeg 5.1 writes it so


def describe(name, folder):
    path = f"{folder}/{name}"
    pyav, pyav_seconds, pyav_rate = by_pyav(path)
    pyav = turned(pyav, name)
    ours = name in BY_PYAV
    frames, seconds, rate = (pyav, pyav_seconds, pyav_rate) if ours else by_torchcodec(path)
    same = len(pyav) == len(frames) and all(np.array_equal(a, b) for a, b in zip(pyav, frames))
    return {
        "file": name, "width": frames[0].shape[1], "height": frames[0].shape[0], "average_fps": rate,
        "source": "PyAV" if ours else "torchcodec", "pyav": same,
        "seconds": [round(s - seconds[0], 9) for s in seconds],
        "sha256": [hashlib.sha256(np.ascontiguousarray(f).tobytes()).hexdigest() for f in frames],
    }


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else f"{here}/../../tests/fixtures/video"
    os.makedirs(folder, exist_ok=True)
    for name in CLIPS:
        make(name, folder)
    ffmpeg_version = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout.split()[2]
    versions = {"torchcodec": torchcodec.__version__, "torch": torch.__version__, "av": av.__version__,
                "ffmpeg": ffmpeg_version}
    clips = [describe(name, folder) for name in CLIPS]
    with open(f"{folder}/expected.json", "w", encoding="utf-8") as out:
        json.dump({"versions": versions, "clips": clips}, out, indent=1)
        out.write("\n")
    for clip in clips:
        print(clip["file"], len(clip["sha256"]), clip["average_fps"], "PyAV the same" if clip["pyav"] else "PyAV differs")


if __name__ == "__main__":
    main()
