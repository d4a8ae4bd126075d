"""Pictures and clips as files. Needs ffmpeg with libx264 for clips."""

import subprocess

import numpy as np
import torch
from PIL import Image

import paint
import scenes

FRAME_RATE = 24  # of clips; a frame of the plan stays for half a second, so that two frames a second find each of them


def load_masks(path):
    return torch.as_tensor(np.load(path)["masks"]).float()[:, None] / 255


def painted(plan, masks, noise=True):
    """uint8 [pictures, height, width, 3]. Without noise files are small."""
    if not noise:
        plan.noise[:] = 0
    return paint.paint(plan, masks).byte().permute(0, 2, 3, 1).cpu().numpy()


def write_picture(path, pixels):
    Image.fromarray(pixels).save(path, optimize=True)


def write_clip(path, frames):
    write_frames(path, np.repeat(frames, FRAME_RATE // 2, 0), "rgb24", "-c:v", "libx264", "-crf", "12", "-pix_fmt", "yuv420p",
                 "-threads", "1", "-fflags", "+bitexact", "-flags", "+bitexact")


def write_frames(path, frames, pixels, *how):
    height, width = frames.shape[1:3]
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", pixels, "-s", f"{width}x{height}", "-r",
               str(FRAME_RATE), "-i", "-", *how, str(path)]
    subprocess.run(command, input=frames.tobytes(), check=True)


class Studio:
    """A folder and the chances by which scenes become files in it; its methods return parts of a chat's message."""

    def __init__(self, folder, masks, seed, noise):
        self.folder, self.masks, self.noise = folder, masks, noise
        self.numbers = np.random.default_rng(seed)

    def paint(self, plan):
        return painted(plan, self.masks, self.noise)

    def picture(self, name, scene, size):
        write_picture(self.folder / name, self.paint(paint.plan_scenes([scene], *size, self.numbers))[0])
        return {"type": "image", "image": name}

    def clip(self, name, clip, size):
        write_clip(self.folder / name, self.paint(paint.plan_clips([clip], *size, self.numbers)))
        return {"type": "video", "video": name}


def messages_of(turns):
    """A chat of turns (pictures or clips, question, answer); the last answer is left out."""
    messages = []
    for shown, question, answer in turns:
        messages += [{"role": "user", "content": [*shown, {"type": "text", "text": question}]},
                     {"role": "assistant", "content": answer}]
    return messages[:-1]


def clip_seconds(frames):
    """When the frames of such a clip stand that are read."""
    return scenes.read_at(frames, frames * FRAME_RATE // 2, FRAME_RATE)
