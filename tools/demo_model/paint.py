"""Scenes and clips as pixels: masks of shapes and letters, moved, turned and scaled onto a plain ground.

plan_* chooses every number on the CPU (numpy); paint draws a whole batch at once where its masks are (torch).
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont

import scenes

MASK = 64  # pixels of a mask's side
SLOTS = 6  # things in one picture, at most: letters of a word
RGB = {"red": (220, 40, 40), "green": (40, 170, 60), "blue": (40, 80, 220), "yellow": (240, 210, 40),
       "orange": (245, 140, 30), "purple": (140, 60, 180), "black": (20, 20, 20), "pink": (250, 140, 190)}
FONTS = tuple(f"/usr/share/fonts/truetype/{name}.ttf" for name in (  # Debian: fonts-dejavu, -liberation, -freefont-ttf
    "dejavu/DejaVuSans", "dejavu/DejaVuSans-Bold", "dejavu/DejaVuSerif", "dejavu/DejaVuSerif-Bold",
    "dejavu/DejaVuSansMono", "dejavu/DejaVuSansMono-Bold", "dejavu/DejaVuSans-Oblique", "liberation/LiberationSans-Regular",
    "liberation/LiberationSerif-Regular", "liberation/LiberationSerif-Bold", "liberation/LiberationSansNarrow-Bold",
    "liberation/LiberationMono-Bold", "freefont/FreeSerifItalic", "freefont/FreeMonoBold"))


# ---- masks

def form_mask(form):
    side = MASK * 8
    image = Image.new("L", (side, side), 0)
    draw = ImageDraw.Draw(image)
    low, high, middle = side * 0.06, side * 0.94, side / 2

    def around(count, radius, turn=0.0):
        return [(middle + radius(i) * math.sin(turn + 2 * math.pi * i / count),
                 middle - radius(i) * math.cos(turn + 2 * math.pi * i / count)) for i in range(count)]

    if form == "circle":
        draw.ellipse((low, low, high, high), fill=255)
    elif form == "ring":
        draw.ellipse((low, low, high, high), fill=255)
        draw.ellipse((side * 0.26, side * 0.26, side * 0.74, side * 0.74), fill=0)
    elif form == "square":
        draw.rectangle((side * 0.1, side * 0.1, side * 0.9, side * 0.9), fill=255)
    elif form == "triangle":
        draw.polygon([(middle, low), (high, side * 0.88), (low, side * 0.88)], fill=255)
    elif form == "diamond":
        draw.polygon([(middle, low), (side * 0.85, middle), (middle, high), (side * 0.15, middle)], fill=255)
    elif form == "cross":
        draw.rectangle((side * 0.37, low, side * 0.63, high), fill=255)
        draw.rectangle((low, side * 0.37, high, side * 0.63), fill=255)
    elif form == "star":
        draw.polygon(around(10, lambda i: side * (0.19 if i % 2 else 0.46)), fill=255)
    elif form == "heart":
        t = np.linspace(0, 2 * math.pi, 90)
        x = 16 * np.sin(t) ** 3
        y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
        draw.polygon(list(zip(middle + side * 0.028 * x, middle - side * 0.028 * y)), fill=255)
    return np.asarray(image.resize((MASK, MASK), Image.LANCZOS))


def letter_mask(letter, font):
    side = MASK * 4
    image = Image.new("L", (side, side), 0)
    draw = ImageDraw.Draw(image)
    box = draw.textbbox((0, 0), letter, font=font)
    draw.text((side / 2 - (box[0] + box[2]) / 2, side / 2 - (box[1] + box[3]) / 2), letter, font=font, fill=255)
    return np.asarray(image.resize((MASK, MASK), Image.LANCZOS))


def make_masks():
    """uint8 [shapes, then letters of each font; MASK, MASK]."""
    masks = [form_mask(form) for form in scenes.SHAPES]
    for path in FONTS:
        font = ImageFont.truetype(path, MASK * 4 - 20)
        masks += [letter_mask(letter, font) for letter in scenes.LETTERS]
    return np.stack(masks)


# ---- what goes where

class Plan:
    """Everything that painting count pictures of height x width needs."""

    def __init__(self, count, height, width, rng):
        self.height, self.width = height, width
        ground = rng.uniform(170, 255, (count, 1)) + rng.uniform(-12, 12, (count, 3))
        self.ground = ground.clip(0, 255).astype(np.float32)
        self.noise = rng.uniform(0, 6, count).astype(np.float32)
        self.mask = np.zeros((SLOTS, count), np.int64)
        self.affine = np.tile(np.array([[1, 0, 9], [0, 1, 9]], np.float32), (SLOTS, count, 1, 1))  # outside
        self.color = np.zeros((SLOTS, count, 3), np.float32)

    def put(self, slot, i, mask, x, y, radius, angle, color):
        """x, y in -1..1, radius in pixels."""
        sx, sy = radius / (self.width / 2), radius / (self.height / 2)
        c, s = math.cos(angle), math.sin(angle)
        aspect = self.height / self.width
        a, b, d, e = c / sx, s / sx * aspect, -s / sy / aspect, c / sy
        self.affine[slot, i] = ((a, b, -a * x - b * y), (d, e, -d * x - e * y))
        self.mask[slot, i], self.color[slot, i] = mask, color


def near(color, rng):
    return np.array(RGB[color], np.float32) + rng.uniform(-18, 18, 3)


def radius_of(shape, side, rng):
    low, high = (0.15, 0.18) if shape.size == "small" else (0.27, 0.31)
    return rng.uniform(low, high) * side / 2


def turn_of(shape, rng):
    most = 0.12 if shape.form in ("square", "diamond") else 0.2
    return rng.uniform(-most, most)


def plan_shapes(plan, i, scene, rng):
    side = min(plan.height, plan.width)
    for slot, shape in enumerate(scene.shapes):
        row, column = divmod(shape.cell, 3)
        x, y = ((place + 0.5) / 3 * 2 - 1 + rng.uniform(-0.1, 0.1) for place in (column, row))
        plan.put(slot, i, scenes.SHAPES.index(shape.form), x, y, radius_of(shape, side, rng), turn_of(shape, rng),
                 near(shape.color, rng))


def plan_text(plan, i, scene, rng):
    count = len(scene.text)
    radius = rng.uniform(0.75, 1.0) * min(plan.height / 4, plan.width / 2 / (0.72 * count + 0.4))
    step = radius * 2 * 0.72 / (plan.width / 2)
    x, y = rng.uniform(-0.06, 0.06) - step * (count - 1) / 2, rng.uniform(-0.4, 0.4)
    first = len(scenes.SHAPES) + rng.integers(len(FONTS)) * len(scenes.LETTERS)
    color = near(scene.color, rng)
    for slot, letter in enumerate(scene.text):
        plan.put(slot, i, first + scenes.LETTERS.index(letter), x + slot * step, y, radius, 0.0, color)


def plan_scenes(shown, height, width, rng):
    plan = Plan(len(shown), height, width, rng)
    for i, scene in enumerate(shown):
        (plan_text if scene.text else plan_shapes)(plan, i, scene, rng)
    return plan


def plan_clips(clips, height, width, rng):
    """Frames of all clips after one another."""
    frames = len(clips[0].seconds)
    plan = Plan(len(clips) * frames, height, width, rng)
    for i, clip in enumerate(clips):
        first = i * frames
        plan.ground[first:first + frames] = plan.ground[first]
        side = min(height, width)
        radius, angle, color = radius_of(clip.shape, side, rng), turn_of(clip.shape, rng), near(clip.shape.color, rng)
        dx, dy = list(scenes.MOVES.values())[clip.answer] if clip.kind == "move" else (0, 0)
        reach, x, y = rng.uniform(0.35, 0.6), rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3)
        for k in range(frames):
            if clip.visible[k]:
                along = reach * (2 * k / (frames - 1) - 1)
                plan.put(0, first + k, scenes.SHAPES.index(clip.shape.form), dx * along if dx else x,
                         dy * along if dy else y, radius, angle, color)
    return plan


# ---- pixels

def paint(plan, masks):
    """masks: float 0..1 [n, 1, MASK, MASK]. Returns whole numbers 0..255 as float [count, 3, height, width]."""
    on = masks.device
    count, height, width = len(plan.noise), plan.height, plan.width
    image = torch.as_tensor(plan.ground, device=on)[:, :, None, None].expand(count, 3, height, width).clone()
    for slot in range(SLOTS):
        used = np.flatnonzero(plan.affine[slot, :, 0, 2] != 9)
        if not len(used):
            continue
        places = F.affine_grid(torch.as_tensor(plan.affine[slot, used], device=on), (len(used), 1, height, width),
                               align_corners=False)
        cover = F.grid_sample(masks[torch.as_tensor(plan.mask[slot, used], device=on)], places, mode="bilinear",
                              padding_mode="zeros", align_corners=False)
        color = torch.as_tensor(plan.color[slot, used], device=on)[:, :, None, None]
        used = torch.as_tensor(used, device=on)
        image[used] = image[used] * (1 - cover) + color * cover
    noise = torch.as_tensor(plan.noise, device=on)[:, None, None, None]
    return (image + torch.randn_like(image) * noise).clamp(0, 255).round()


def patch_rows(frames, pairs):
    """Pictures [n, 3, h, w] (pairs False: each is its own pair) or frames, two and two, to rows [.., 1536] in merge order."""
    if not pairs:
        frames = frames[:, None].expand(-1, 2, -1, -1, -1)
    else:
        frames = frames.unflatten(0, (-1, 2))
    count, _, _, height, width = frames.shape
    rows = (frames / 255 - 0.5) / 0.5
    rows = rows.reshape(count, 2, 3, height // 32, 2, 16, width // 32, 2, 16)
    return rows.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, 1536)
