"""Draws the two bundled pictures: scene.jpg and chart.png. Needs Pillow (made with 13.0.0)."""

import os

from PIL import Image, ImageDraw

HERE = os.path.dirname(os.path.abspath(__file__))


def gradient(size, top, bottom):
    """A picture that changes from the top colour to the bottom colour."""
    width, height = size
    column = Image.new("RGB", (1, height))
    for y in range(height):
        t = y / (height - 1)
        column.putpixel((0, y), tuple(round(a + (b - a) * t) for a, b in zip(top, bottom)))
    return column.resize((width, height))


def scene():
    """An evening: sky, sun, hills, a lake, a house and trees. Drawn at twice the size, so that edges are smooth."""
    picture = gradient((1280, 854), (46, 84, 150), (250, 196, 140))
    draw = ImageDraw.Draw(picture)
    for radius, colour in ((150, (252, 205, 150)), (110, (254, 220, 160)), (75, (255, 240, 190))):
        draw.ellipse((900 - radius, 330 - radius, 900 + radius, 330 + radius), fill=colour)
    draw.polygon([(0, 560), (220, 330), (420, 520), (640, 280), (900, 540), (0, 640)], fill=(94, 92, 140))
    draw.polygon([(300, 600), (760, 420), (1280, 560), (1280, 640), (300, 640)], fill=(70, 76, 112))
    picture.paste(gradient((1280, 254), (214, 160, 140), (40, 66, 112)), (0, 600))
    for step in range(14):
        y, half = 612 + 12 * step, 120 - 6 * step
        draw.line((900 - half, y, 900 + half, y), fill=(255, 226, 170), width=3)
    draw.polygon([(0, 600), (420, 620), (560, 854), (0, 854)], fill=(46, 92, 60))
    draw.rectangle((150, 560, 330, 700), fill=(196, 84, 66))
    draw.polygon([(130, 565), (240, 470), (350, 565)], fill=(110, 50, 48))
    draw.rectangle((215, 620, 265, 700), fill=(70, 44, 40))
    for x in (168, 282):
        draw.rectangle((x, 590, x + 32, 622), fill=(255, 232, 150))
    for x, y in ((60, 660), (400, 720), (470, 800)):
        draw.rectangle((x - 6, y, x + 6, y + 50), fill=(80, 56, 40))
        for level in range(3):
            top = y - 110 + 40 * level
            half = 26 + 12 * level
            draw.polygon([(x - half, top + 60), (x, top), (x + half, top + 60)], fill=(24, 70 + 14 * level, 50))
    return picture.resize((640, 427), Image.Resampling.LANCZOS)


def chart():
    """Bars, grid lines and captions: sharp edges and thin strokes."""
    picture = Image.new("RGB", (400, 300), (255, 255, 255))
    draw = ImageDraw.Draw(picture)
    draw.text((130, 8), "Rainfall, millimetres", fill=(20, 20, 20))
    for value in range(0, 101, 20):
        y = 260 - 2 * value
        draw.line((40, y, 385, y), fill=(220, 220, 220))
        draw.text((12, y - 6), str(value), fill=(90, 90, 90))
    colours = ((31, 119, 180), (255, 127, 14), (44, 160, 44))
    for index, (month, value) in enumerate(zip("JFMAMJJASOND", (62, 48, 55, 40, 51, 66, 84, 73, 58, 69, 77, 70))):
        x = 48 + 28 * index
        draw.rectangle((x, 260 - 2 * value, x + 19, 260), fill=colours[index % 3])
        draw.text((x + 7, 266), month, fill=(20, 20, 20))
    draw.rectangle((40, 40, 385, 260), outline=(60, 60, 60))
    return picture


scene().save(os.path.join(HERE, "scene.jpg"), quality=88, subsampling="4:2:0")
chart().save(os.path.join(HERE, "chart.png"), optimize=True)
