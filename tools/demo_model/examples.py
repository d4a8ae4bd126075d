"""Makes the pictures and the clip in examples/ that are for the demo model, with the generator of its training scenes.

    python3 examples.py FOLDER --masks masks.npz

What is shown stands here; where exactly, how large and how turned, the fixed seed says. Without noise the files are small.
"""

import argparse
from pathlib import Path

import numpy as np

import media
import paint
import scenes

SEED = 1

SHAPES = scenes.Scene((scenes.Shape(0, "circle", "red", "big"), scenes.Shape(2, "star", "blue", "small"),
                       scenes.Shape(4, "triangle", "green", "big"), scenes.Shape(7, "heart", "yellow", "small")))
WORD = scenes.Scene(text="HELLO", color="purple")
BEFORE = scenes.Scene((scenes.Shape(1, "ring", "orange", "big"), scenes.Shape(3, "square", "blue", "small"),
                       scenes.Shape(5, "cross", "black", "big"), scenes.Shape(6, "heart", "red", "big")))
AFTER = scenes.Scene(BEFORE.shapes[:-1])  # the others stay where they are
FRAMES = 8
MOVES = scenes.Clip(scenes.Shape(4, "star", "orange", "big"), "move", list(scenes.MOVES).index("to the right"),
                    tuple(i / 2 for i in range(FRAMES)), (True,) * FRAMES)


def write_picture(path, scene, size, masks):
    plan = paint.plan_scenes([scene], *size, np.random.default_rng(SEED))
    media.write_picture(path, media.painted(plan, masks, noise=False)[0])


def write_clip(path, clip, size, masks):
    plan = paint.plan_clips([clip], *size, np.random.default_rng(SEED))
    media.write_clip(path, media.painted(plan, masks, noise=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--masks", required=True)
    options = parser.parse_args()
    masks = media.load_masks(options.masks)
    write_picture(options.folder / "shapes.png", SHAPES, (256, 256), masks)
    write_picture(options.folder / "word.png", WORD, (192, 320), masks)
    write_picture(options.folder / "before.png", BEFORE, (192, 192), masks)
    write_picture(options.folder / "after.png", AFTER, (192, 192), masks)
    write_clip(options.folder / "moves.mp4", MOVES, (128, 192), masks)


if __name__ == "__main__":
    main()
