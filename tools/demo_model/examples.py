"""Makes the pictures and the clip in examples/ that are for the demo model, with the generator of its training scenes.

    python3 examples.py FOLDER --masks masks.npz

What is shown stands here; where exactly, how large and how turned, the fixed seed says. Without noise the files are small.
"""

import argparse
from pathlib import Path

import media
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--masks", required=True)
    options = parser.parse_args()
    masks = media.load_masks(options.masks)

    def studio():  # each file by its own chances: those that show the same have it in the same places
        return media.Studio(options.folder, masks, SEED, noise=False)

    studio().picture("shapes.png", SHAPES, (256, 256))
    studio().picture("word.png", WORD, (192, 320))
    studio().picture("before.png", BEFORE, (192, 192))
    studio().picture("after.png", AFTER, (192, 192))
    studio().clip("moves.mp4", MOVES, (128, 192))


if __name__ == "__main__":
    main()
