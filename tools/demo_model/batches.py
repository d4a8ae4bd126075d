"""Batches: conversations of one layout and one picture size, planned on the CPU."""

import dataclasses
import random

import numpy as np

import paint
import scenes
import words

TEXT_ROOM = 168  # tokens of a conversation beside its media; 96 about something written


@dataclasses.dataclass(frozen=True)
class Layout:
    kind: str  # picture, written, pair, clip or talk
    height: int = 0
    width: int = 0
    groups: int = 1  # of a clip
    rows: int = 128  # conversations in a batch
    share: float = 1.0

    def media(self):
        """Media of one conversation, in temporal groups."""
        return {"picture": 1, "written": 1, "pair": 2, "clip": self.groups, "talk": 0}[self.kind]

    def tokens(self):
        return self.media() * (self.height // 32) * (self.width // 32)

    def length(self):
        labels = 12 * self.groups if self.kind == "clip" else 4 * self.media()
        room = 96 if self.kind == "written" else TEXT_ROOM
        return -(-(room + labels + self.tokens()) // 8) * 8


LAYOUTS = (
    *(Layout("picture", height, width, share=share) for height, width, share in (
        (256, 256, 4), (192, 320, 1), (320, 192, 1), (224, 288, 1), (288, 224, 1), (192, 192, 1), (288, 288, 1),
        (256, 352, 0.5), (352, 256, 0.5), (320, 320, 0.5))),
    *(Layout("written", height, width, rows=192, share=share) for height, width, share in (
        (256, 256, 2), (192, 320, 1), (192, 192, 0.5), (256, 352, 0.5), (320, 192, 0.5))),
    Layout("pair", 192, 192, rows=80, share=2), Layout("pair", 256, 256, rows=64, share=2),
    Layout("pair", 192, 256, rows=80, share=1.5),
    Layout("clip", 128, 128, 3, rows=96, share=1), Layout("clip", 128, 128, 4, rows=96, share=1),
    Layout("clip", 128, 128, 6, rows=64, share=1), Layout("clip", 160, 128, 5, rows=64, share=0.7),
    Layout("clip", 128, 192, 4, rows=64, share=0.7), Layout("talk", rows=64, share=0.3))


def small(layouts, rows):
    return tuple(dataclasses.replace(layout, rows=rows) for layout in layouts)


def question(rng, scene):
    """One question about a scene; the hardest kind more often than the others."""
    return (rng.random() < 0.3 and scene.shapes and scenes.ask_relation(rng, scene)) or scenes.about(rng, scene)


class Maker:
    def __init__(self, tokenizer, seed):
        self.rows = words.Rows(tokenizer)
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def fill(self, layout, media, first, more):
        """A conversation that begins with the turn `first` and goes on until it is nearly full."""
        rng, room = self.rng, layout.length()
        system = rng.choice(words.SYSTEM) if rng.random() < 0.15 else None
        row = self.rows.conversation([(media, *first[1:])], system)
        told = {first[1], first[0]}  # nothing twice: that would only teach to copy
        for _ in range(rng.choice((0, 1, 3, 9, 9, 9, 9))):
            kind, *turn = more()
            if turn[0] in told or (kind in ("describe", "read") and kind in told):
                continue
            if len(row.tokens) + self.rows.turn_tokens(*turn) > room:
                break
            row.turn((), *turn)
            told |= {kind, turn[0]}
        return row

    def make(self, layout):
        """(rows as arrays, plan to paint or None, kinds of the first turns)."""
        shown, rows, kinds = [], [], []
        for _ in range(layout.rows):
            getattr(self, layout.kind)(layout, shown, rows, kinds)
        arrays = words.batch(rows, layout.length(), self.rows.pad)
        if layout.kind == "talk":
            return arrays, None, kinds
        planner = paint.plan_clips if layout.kind == "clip" else paint.plan_scenes
        return arrays, planner(shown, layout.height, layout.width, self.numbers), kinds

    def one(self, layout, scene, shown, rows, kinds):
        rng, image = self.rng, ("image", layout.height // 32, layout.width // 32)
        turn = question(rng, scene)
        if rng.random() < 0.1:  # the picture comes with a later turn
            talk = scenes.talk(rng, False)
            row = self.rows.conversation([((), *talk[1:]), ((image,), *turn[1:])])
            kind = talk[0]
        else:
            kind = turn[0]
            row = self.fill(layout, (image,), turn,
                            lambda: scenes.talk(rng, True) if rng.random() < 0.04 else question(rng, scene))
        shown.append(scene)
        rows.append(row)
        kinds.append(kind)

    def picture(self, layout, *lists):
        self.one(layout, scenes.drawn(self.rng), *lists)

    def written(self, layout, *lists):
        self.one(layout, scenes.written(self.rng), *lists)

    def pair(self, layout, shown, rows, kinds):
        rng = self.rng
        image = ("image", layout.height // 32, layout.width // 32)
        if rng.random() < 0.25:  # one after the other: each question is about the one just shown
            a, b = scenes.scene(rng), scenes.scene(rng)
            (kind, *first), (_, *second) = scenes.about(rng, a), scenes.about(rng, b)
            row = self.rows.conversation([((image,), *first), ((image,), *second)])
        else:
            a = scenes.drawn(rng)
            b = scenes.second_scene(rng, a)
            if rng.random() < 0.5:
                a, b = b, a
            kind, *_ = turn = scenes.about_pair(rng, (a, b))
            row = self.fill(layout, (image, image), turn, lambda: scenes.about_pair(rng, (a, b)))
        shown.extend((a, b))
        rows.append(row)
        kinds.append(kind)

    def clip(self, layout, shown, rows, kinds):
        rng, clip = self.rng, scenes.clip(self.rng, layout.groups)
        video = ("video", tuple(clip.labels()), layout.height // 32, layout.width // 32)
        turn = scenes.about_clip(rng, clip)
        rows.append(self.fill(layout, (video,), turn, lambda: scenes.about_clip(rng, clip)))
        shown.append(clip)
        kinds.append(turn[0])

    def talk(self, layout, shown, rows, kinds):
        turn = scenes.talk(self.rng, False)
        rows.append(self.fill(layout, (), turn, lambda: scenes.talk(self.rng, False)))
        kinds.append(turn[0])
