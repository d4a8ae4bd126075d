"""What pictures and clips show, and what is asked about them: words and numbers, no pixels.

A scene is shapes on a 3x3 grid, or something written. A clip is one shape that moves, blinks or comes late. Every
question has one right answer, in one wording, so that an answer is either right or wrong.
"""

import dataclasses
import random

SHAPES = ("circle", "square", "triangle", "diamond", "ring", "cross", "star", "heart")
COLORS = ("red", "green", "blue", "yellow", "orange", "purple", "black", "pink")
SIZES = ("small", "big")
PLACES = ("at the top left", "at the top", "at the top right", "on the left", "in the center", "on the right",
          "at the bottom left", "at the bottom", "at the bottom right")
NUMBERS = ("zero", "one", "two", "three", "four", "five")
TIMES = ("never", "once", "twice", "three times", "four times")
ORDINALS = ("first", "second")
MOVES = {"to the right": (1, 0), "to the left": (-1, 0), "up": (0, -1), "down": (0, 1)}
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORDS = ("APPLE BIRD BLUE BOOK CAT CHAT CITY CODE DAY DOG DOOR EAST EXIT FISH FIVE FOX GAME GOLD GREEN HAND HELLO HOME "
         "JAZZ JUMP KEY KING LAMP LOVE MAP MILK MOON NIGHT NORTH OPEN PARK PIZZA QUEEN QUIZ RAIN RED ROAD SHIP SHOP "
         "SKY SNOW SOUTH STAR STOP SUN TAXI TEA TIME TREE UP VISION WATER WEST WIND YES ZERO ZOO").split()


@dataclasses.dataclass(frozen=True)
class Shape:
    cell: int  # 0..8, row by row
    form: str
    color: str
    size: str

    def name(self):
        return f"{self.color} {self.form}"

    def with_article(self):
        return f"a {self.size} {self.name()}"


@dataclasses.dataclass(frozen=True)
class Scene:
    shapes: tuple = ()  # in order of their cells
    text: str = ""      # instead of shapes
    color: str = ""     # of the text


@dataclasses.dataclass(frozen=True)
class Clip:
    shape: Shape
    kind: str      # move, blink or late
    answer: int    # which move; how often it is gone; the group it appears in
    seconds: tuple  # of each frame
    visible: tuple  # of each frame

    def labels(self):
        """The time label of each pair of frames, as transformers writes it."""
        return [f"{(a + b) / 2:.1f}" for a, b in zip(self.seconds[::2], self.seconds[1::2])]


def shape(rng, cell):
    return Shape(cell, rng.choice(SHAPES), rng.choice(COLORS), rng.choice(SIZES))


def scene(rng):
    return written(rng) if rng.random() < 0.3 else drawn(rng)


def drawn(rng):
    count = rng.choices((1, 2, 3, 4, 5), (2, 4, 4, 3, 3))[0]
    return Scene(tuple(shape(rng, cell) for cell in sorted(rng.sample(range(9), count))))


def written(rng):
    kind = rng.random()
    if kind < 0.35:
        text = rng.choice(WORDS)
    elif kind < 0.7:
        text = "".join(rng.choices(LETTERS[:10], k=rng.randint(1, 5)))
    else:
        text = "".join(rng.choices(LETTERS, k=rng.randint(2, 5)))
    return Scene(text=text, color=rng.choice(COLORS))


def read_at(frames, total, rate):
    """Seconds of the frames that are read of total ones: evenly from the first to the last, as transformers chooses them."""
    return tuple(round(i * (total - 1) / (frames - 1)) / rate for i in range(frames))


def clip_seconds(rng, frames):
    """Two frames a second are read, if the clip is neither very short nor very long."""
    rate = rng.choice((10, 12, 15, 20, 24, 24, 25, 25, 30, 30, 50, 60, 24000 / 1001, 30000 / 1001))
    step = rng.uniform(0.5, 0.5 + 0.5 / frames) if rng.random() < 0.7 else rng.uniform(0.1, 2)
    return read_at(frames, max(frames, int(frames * step * rate)), rate)


def clip(rng, groups):
    frames = 2 * groups
    seconds = clip_seconds(rng, frames)
    kind = rng.choice(("move", "blink", "late"))
    visible = [True] * frames
    if kind == "move":
        answer = rng.randrange(len(MOVES))
    elif kind == "blink":
        answer = rng.randint(0, min(4, (frames - 1) // 2))
        for gap in apart(rng, answer, frames):
            visible[gap] = False
    else:
        answer = rng.randrange(1, groups)
        for i in range(2 * answer):
            visible[i] = False
    return Clip(shape(rng, 4), kind, answer, seconds, tuple(visible))


def apart(rng, count, frames):
    """count frames, no two of them neighbours, neither the first nor the last one."""
    room = frames - 2 - (count - 1) if count else 0
    return [place + i + 1 for i, place in enumerate(sorted(rng.sample(range(room), count)))] if count else []


# ---- questions: (kind, question, answer)

def sentence(words):
    return words[0].upper() + words[1:] + "."


def listed(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def yes(is_so):
    return "Yes." if is_so else "No."


def only(shapes, key):
    """The shapes that no other one shares this with."""
    keys = [key(s) for s in shapes]
    return [s for s, k in zip(shapes, keys) if keys.count(k) == 1]


def plural(form):
    return form + ("es" if form == "cross" else "s")


def ask_describe(rng, scene):
    question = rng.choice(("Describe the picture.", "What do you see?", "What is in the picture?"))
    return "describe", question, sentence(listed([s.with_article() for s in scene.shapes]))


def ask_count(rng, scene):
    pick = rng.random()
    if pick < 0.4:
        return "count", "How many shapes are there?", sentence(NUMBERS[len(scene.shapes)])
    if pick < 0.7:
        form = rng.choice((rng.choice(SHAPES), rng.choice(scene.shapes).form))
        found = sum(s.form == form for s in scene.shapes)
        return "count", f"How many {plural(form)} are there?", sentence(NUMBERS[found])
    color = rng.choice((rng.choice(COLORS), rng.choice(scene.shapes).color))
    found = sum(s.color == color for s in scene.shapes)
    return "count", f"How many {color} shapes are there?", sentence(NUMBERS[found])


def ask_color(rng, scene):
    known = only(scene.shapes, lambda s: s.form)
    if known:
        s = rng.choice(known)
        return "color", f"What color is the {s.form}?", sentence(s.color)


def ask_form(rng, scene):
    known = only(scene.shapes, lambda s: s.color)
    if known:
        s = rng.choice(known)
        return "shape", f"Which shape is {s.color}?", sentence("the " + s.form)


def ask_place(rng, scene):
    known = only(scene.shapes, Shape.name)
    if known:
        s = rng.choice(known)
        return "where", f"Where is the {s.name()}?", sentence(PLACES[s.cell])


def ask_at(rng, scene):
    taken = {s.cell: s for s in scene.shapes}
    cell = rng.choice(list(taken)) if rng.random() < 0.8 else rng.randrange(9)
    return "at", f"What is {PLACES[cell]}?", sentence(taken[cell].with_article() if cell in taken else "nothing")


def ask_size(rng, scene):
    known = only(scene.shapes, Shape.name)
    if known:
        s = rng.choice(known)
        return "size", f"Is the {s.name()} big or small?", sentence(s.size)


def ask_exists(rng, scene):
    if rng.random() < 0.5:
        s = rng.choice(scene.shapes)
        return "exists", f"Is there a {s.name()}?", "Yes."
    color, form = rng.choice(COLORS), rng.choice(SHAPES)
    if rng.random() < 0.6:  # nearly right is the hard case
        s = rng.choice(scene.shapes)
        color, form = rng.choice(((s.color, form), (color, s.form)))
    return "exists", f"Is there a {color} {form}?", yes(any((s.color, s.form) == (color, form) for s in scene.shapes))


def ask_relation(rng, scene):
    known = only(scene.shapes, Shape.name)
    if len(known) < 2:
        return None
    a, b = rng.sample(known, 2)
    (row_a, column_a), (row_b, column_b) = divmod(a.cell, 3), divmod(b.cell, 3)
    word, is_so = rng.choice((("left of", column_a < column_b), ("right of", column_a > column_b),
                              ("above", row_a < row_b), ("below", row_a > row_b)))
    return "relation", f"Is the {a.name()} {word} the {b.name()}?", yes(is_so)


def ask_read(rng, scene):
    return "read", rng.choice(("What is written?", "Read the text.", "What does it say?")), scene.text + "."


def ask_text_color(rng, scene):
    return "text color", "What color is the text?", sentence(scene.color)


ABOUT_SHAPES = ((ask_describe, 3), (ask_count, 3), (ask_color, 3), (ask_form, 3), (ask_place, 4), (ask_at, 3),
                (ask_size, 2), (ask_exists, 3), (ask_relation, 4))
ABOUT_TEXT = ((ask_read, 5), (ask_text_color, 1))


def about(rng, scene):
    """One question about a scene."""
    choices = ABOUT_TEXT if scene.text else ABOUT_SHAPES
    asks, weights = zip(*choices)
    while True:
        turn = rng.choices(asks, weights)[0](rng, scene)
        if turn:
            return turn


def ask_move(clip):
    moves = clip.kind == "move"
    return "move", "Where does it go?", sentence(list(MOVES)[clip.answer] if moves else "nowhere")


def ask_blink(clip):
    return "blink", "How often does it blink?", sentence(TIMES[clip.answer if clip.kind == "blink" else 0])


def ask_when(clip):
    late = clip.kind == "late"
    return "when", "When does it appear?", f"At {clip.labels()[clip.answer]} seconds." if late else "At the start."


ASK_CLIP = {"move": ask_move, "blink": ask_blink, "late": ask_when}


def about_clip(rng, clip):
    pick = rng.random()
    if pick < 0.15:
        return "clip shape", rng.choice(("What is in the clip?", "What is in the video?")), \
            sentence(clip.shape.with_article())
    if pick < 0.22:
        return "clip shape", "Which shape is it?", sentence("a " + clip.shape.form)
    if pick < 0.29:
        return "clip shape", "What color is it?", sentence(clip.shape.color)
    kind = clip.kind if pick < 0.8 else rng.choice(list(ASK_CLIP))
    return ASK_CLIP[kind](clip)


def second_scene(rng, first):
    """A picture to compare with: the same, one shape changed, or another one."""
    pick = rng.random()
    if pick < 0.4:
        return first
    if pick < 0.6:
        other = scene(rng)
        return other if other.shapes else first
    shapes = list(first.shapes)
    i = rng.randrange(len(shapes))
    changed = rng.choice(("form", "color", "gone"))
    if changed == "gone" and len(shapes) > 1:
        del shapes[i]
    elif changed == "color":
        shapes[i] = dataclasses.replace(shapes[i], color=rng.choice([c for c in COLORS if c != shapes[i].color]))
    else:
        shapes[i] = dataclasses.replace(shapes[i], form=rng.choice([f for f in SHAPES if f != shapes[i].form]))
    return Scene(tuple(shapes))


def about_pair(rng, pair):
    """One question about two pictures of shapes."""
    a, b = pair
    pick = rng.random()
    if pick < 0.35:
        return "same", "Are the two pictures the same?", yes(a.shapes == b.shapes)
    if pick < 0.6:
        more = "neither" if len(a.shapes) == len(b.shapes) else \
            "the " + ORDINALS[len(b.shapes) > len(a.shapes)] + " picture"
        return "more", "Which picture has more shapes?", sentence(more)
    s = rng.choice(rng.choice(pair).shapes)
    found = [any((o.color, o.form) == (s.color, s.form) for o in one.shapes) for one in pair]
    which = "both" if all(found) else f"the {ORDINALS[found.index(True)]} picture"
    return "which", f"Which picture has a {s.name()}?", sentence(which)


# ---- without a picture

TALK = (
    ("Hello!", "Hello! Show me a picture."),
    ("Hi!", "Hello! Show me a picture."),
    ("Who are you?", "I am the demo model of qvl, a very small one."),
    ("What are you?", "I am the demo model of qvl, a very small one."),
    ("What can you do?", "I see shapes, colors, short words and clips, and I answer questions about them."),
    ("What can you see?", "I see shapes, colors, short words and clips, and I answer questions about them."),
    ("What can't you do?", "I know nothing of real photos and of the world."),
    ("Thank you!", "You are welcome."),
    ("Thanks!", "You are welcome."),
    ("Bye!", "Goodbye!"),
)
WITHOUT_PICTURE = "I see no picture."


def talk(rng, seen_picture):
    """A turn that is about no picture; before one was shown, perhaps a question that needs one."""
    if not seen_picture and rng.random() < 0.3:
        return "no picture", about(rng, scene(rng))[1], WITHOUT_PICTURE
    return ("talk", *rng.choice(TALK))


if __name__ == "__main__":
    rng = random.Random(0)
    for _ in range(20):
        print(about(rng, scene(rng)), about_clip(rng, clip(rng, 4)))
