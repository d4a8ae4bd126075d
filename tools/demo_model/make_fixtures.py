"""Draws tests/fixtures/demo: what the tests ask the demo model about.

    python3 make_fixtures.py OUT --masks masks.npz [--seed 1]

Writes pictures (PNG) and clips (H.264, by ffmpeg) without noise, a chat for each question, and wanted.json: the right answers,
which follow from how the scenes were made, and of some pictures the same picture in other formats. Another --seed draws
others. Needs torch and Pillow 13 with AVIF.
"""

import argparse
import dataclasses
import json
import random
import shutil
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageOps, ImageStat

import media
import paint
import scenes

SIZES = ((256, 256), (192, 320), (320, 192), (224, 288), (288, 224), (192, 192))
PAIR_SIZES = ((192, 192), (192, 256))
KINDS = {"describe": 3, "count": 2, "color": 1, "shape": 1, "where": 2, "at": 2, "size": 1, "exists": 2, "relation": 2,
         "read": 3, "text color": 1}  # how many of each
PAIR_KINDS = {"same": 2, "more": 1, "which": 1}
CLIP_KINDS = {"clip shape": 1, "move": 2, "blink": 2, "when": 2}
GROUPS = 4  # of clips
SMALL = ("color-1",)  # the scalar kernels are asked about it
VERSIONED = ("describe-1", "describe-2", "where-1", "read-1")
UPRIGHT_BY = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
              5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
              8: Image.Transpose.ROTATE_90}
ORIENTATION = 0x0112  # in EXIF


def picture_on_white(studio, name, scene, size):
    """The picture, and the same as shapes on a transparent ground, under which black is stored."""
    plan = paint.plan_scenes([scene], *size, studio.numbers)
    plan.ground[:] = 255
    on_white = studio.paint(plan)[0]
    plan.ground[:] = 0
    on_black = studio.paint(plan)[0].astype(np.float32)
    cover = 1 - (on_white - on_black).mean(axis=2, keepdims=True) / 255
    color = (on_black / np.maximum(cover, 1 / 255)).clip(0, 255) * (cover > 0)
    media.write_picture(studio.folder / name, on_white)
    return Image.fromarray(on_white), Image.fromarray(np.concatenate((color, cover * 255), 2).round().astype(np.uint8))


# ---- what is asked

def draw_scene(rng):
    scene = scenes.scene(rng)
    return scene, scenes.about(rng, scene)


def draw_pair(rng):
    first = scenes.drawn(rng)
    pair = first, scenes.second_scene(rng, first)
    return pair, scenes.about_pair(rng, pair)


def draw_clip(rng):
    clip = dataclasses.replace(scenes.clip(rng, GROUPS), seconds=media.clip_seconds(2 * GROUPS))
    return clip, scenes.about_clip(rng, clip)


def draw_talk(rng):
    return None, scenes.talk(rng, False)


class Fixture:
    def __init__(self, studio, rng):
        self.studio, self.rng, self.cases, self.versions = studio, rng, [], []
        self.taken = set()

    def draw(self, source, kind):
        """What source shows, and a turn of this kind whose answer no other one has. A description is of three at least."""
        while True:
            shown, turn = source(self.rng)
            if turn[0] == kind and (kind, turn[2]) not in self.taken and (kind != "describe" or len(shown.shapes) > 2):
                self.taken.add((kind, turn[2]))
                return shown, turn[1:]

    def add(self, name, kind, turns):
        (self.studio.folder / f"{name}.json").write_text(json.dumps(media.messages_of(turns), indent=1) + "\n")
        self.cases.append({"chat": f"{name}.json", "kind": kind, "answer": turns[-1][2]})

    def about_scenes(self):
        rng = self.rng
        for kind, count in KINDS.items():
            for number in range(1, count + 1):
                name = f"{kind.replace(' ', '_')}-{number}"
                scene, turn = self.draw(draw_scene, kind)
                if name in VERSIONED:
                    medium = self.in_all_formats(name, scene)
                else:
                    size = SIZES[-1] if name in SMALL else rng.choice(SIZES)
                    medium = self.studio.picture(f"{name}.png", scene, size)
                self.add(name, kind, [([medium], *turn)])

    def in_all_formats(self, name, scene):
        if scene.text:  # black, so that it looks the same in grey
            scene = dataclasses.replace(scene, color="black")
        pictures = picture_on_white(self.studio, f"{name}.png", scene, (192, 320))
        files = save_versions(self.studio.folder, name, *pictures, all_of_them=name == VERSIONED[0], gray=bool(scene.text))
        self.versions.append({"chat": f"{name}.json", "picture": f"{name}.png", "files": files})
        return {"type": "image", "image": f"{name}.png"}

    def about_pairs(self):
        rng = self.rng
        for kind, count in PAIR_KINDS.items():
            for number in range(1, count + 1):
                name, size = f"{kind}-{number}", rng.choice(PAIR_SIZES)
                pair, turn = self.draw(draw_pair, kind)
                shown = [self.studio.picture(f"{name}{part}.png", scene, size) for part, scene in zip("ab", pair)]
                self.add(name, kind, [(shown, *turn)])

    def about_clips(self):
        for kind, count in CLIP_KINDS.items():
            for number in range(1, count + 1):
                name = f"{kind.replace(' ', '_')}-{number}"
                clip, turn = self.draw(draw_clip, kind)
                self.add(name, kind, [([self.studio.clip(f"{name}.mp4", clip, (128, 128))], *turn)])

    def conversations(self):
        """About nothing, and later turns: of a picture, of a picture that comes late, of a clip."""
        rng, studio = self.rng, self.studio
        for name, kind in (("talk-1", "talk"), ("talk-2", "talk"), ("no_picture-1", "no picture")):
            self.add(name, kind, [((), *self.draw(draw_talk, kind)[1])])
        scene, turn = self.draw(draw_scene, "describe")
        picture = studio.picture("later-1.png", scene, rng.choice(SIZES))
        self.add("later-1", "later turns", [([picture], *turn), ((), *scenes.talk(rng, True)[1:]),
                                            ((), *scenes.ask_count(rng, scene)[1:])])
        scene, turn = self.draw(draw_scene, "read")
        picture = studio.picture("later-2.png", scene, rng.choice(SIZES))
        self.add("later-2", "later turns", [((), *self.draw(draw_talk, "talk")[1]), ([picture], *turn)])
        clip, turn = self.draw(draw_clip, "move")
        self.add("later-3", "later turns", [([studio.clip("later-3.mp4", clip, (128, 128))], *turn),
                                            ((), "What color is it?", scenes.sentence(clip.shape.color))])


# ---- the same picture in other formats

def save_versions(folder, name, image, transparent, all_of_them, gray):
    """Files that show image on white; transparent is the same as shapes on nothing. Returns their names."""
    files = []

    def save(suffix, picture, **how):
        files.append(f"{name}-{suffix}")
        picture.save(folder / files[-1], **how)
        check(folder / files[-1], image)

    for orientation, by in UPRIGHT_BY.items():
        if all_of_them or orientation in (3, 6):
            save(f"turned_{orientation}.jpg", stored_for(by, image), exif=exif_of(orientation), quality=92, subsampling=0)
    save("alpha.png", transparent)
    save("cmyk.jpg", image.convert("CMYK"), quality=92, subsampling=0)
    save("palette.png", image.quantize(64, dither=Image.Dither.NONE))
    files.append(f"{name}-16_bit.png")
    media.write_frames(folder / files[-1], np.asarray(image)[None] * np.uint16(257), "rgb48le", "-frames:v", "1")
    check(folder / files[-1], image)
    if gray:
        sixteen = Image.fromarray(np.asarray(image.convert("L")) * np.uint16(257))
        save("gray_16_bit.png", sixteen)
        save("gray_alpha.png", transparent.convert("LA"))
    if all_of_them:
        save("alpha.webp", transparent, lossless=True)
        save("turned_6.png", stored_for(UPRIGHT_BY[6], image), exif=exif_of(6))
        save("hole.png", with_hole(image))
        save("hole.gif", with_hole(image))
        save("cmyk.tif", image.convert("CMYK"), compression="tiff_lzw")
        save("plain.webp", image, quality=95)
        save("plain.avif", image, quality=90, subsampling="4:4:4")
    return files


def stored_for(by, image):
    """What a reader turns upright by the transposition `by`."""
    quarter = {Image.Transpose.ROTATE_90: Image.Transpose.ROTATE_270, Image.Transpose.ROTATE_270: Image.Transpose.ROTATE_90}
    return image.transpose(quarter.get(by, by))


def exif_of(orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def with_hole(image):
    """As a palette whose white is transparent, and black underneath."""
    palette = image.quantize(64, dither=Image.Dither.NONE)
    white = palette.getpixel((0, 0))
    colors = palette.getpalette()
    colors[3 * white:3 * white + 3] = 0, 0, 0
    palette.putpalette(colors)
    palette.info["transparency"] = white
    return palette


def check(path, image):
    """Pillow must find the same picture in the file."""
    found = ImageOps.exif_transpose(Image.open(path))
    if found.mode == "I;16":
        found = Image.fromarray((np.asarray(found) >> 8).astype(np.uint8))
    found = found.convert("RGBA" if found.has_transparency_data else "RGB")
    ground = Image.new("RGB", found.size, "white")
    ground.paste(found, mask=found.getchannel("A") if found.mode == "RGBA" else None)
    mean = max(ImageStat.Stat(ImageChops.difference(ground, image)).mean)
    assert ground.size == image.size and mean < 3, (path, ground.size, mean)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--masks", required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.out.exists() and not (options.out / "wanted.json").exists():
        parser.error(f"{options.out} holds something else; it would be emptied")
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    studio = media.Studio(options.out, media.load_masks(options.masks), options.seed, noise=False)
    fixture = Fixture(studio, random.Random(options.seed))
    fixture.about_scenes()
    fixture.about_pairs()
    fixture.about_clips()
    fixture.conversations()
    tree = {"made_by": f"tools/demo_model/make_fixtures.py --seed {options.seed}", "cases": fixture.cases,
            "versions": fixture.versions}
    (options.out / "wanted.json").write_text(json.dumps(tree, indent=1) + "\n")


if __name__ == "__main__":
    main()
