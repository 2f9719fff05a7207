"""Writing painted over photographs, with the truth about it: captions, dates and marks of one or two flat colours.

The fonts are those that come with Matplotlib.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from benchmarks.painted import VISIBLE, Scarred

Plane = NDArray[np.float32]

TEXTS_PER_MEGAPIXEL = 4
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Oblique", "STIXGeneral")
_SMALLEST, _LARGEST = 12, 60  # size of a font, in pixels
_WORDS = (
    "Summer holidays", "Lake Constance 1987", "all that glitters is not gold", "12.08.1994", "'98 7 23", "PREVIEW",
    "Copyright Ann Miller", "sample, do not copy", "The old bridge at noon", "10:45 AM", "Grandmother & Tim", "DSC_0042",
    "www.example.com", "Für Helene", "Garden party, June 2003", "NOT FOR SALE",
)  # fmt: skip
_COLOURS = (
    (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.95, 0.2), (1.0, 0.55, 0.1), (0.9, 0.1, 0.1),
    (0.2, 0.3, 0.9), (0.85, 0.85, 0.85), (0.1, 0.6, 0.2),
)  # fmt: skip
_FAINTEST = 0.25  # difference between the colour and the mean of what lies below it, in one channel


def written(picture: NDArray[np.uint8], seed: int) -> Scarred:
    """Captions and dates written anywhere, four in a megapixel and at least two; a third has a rim or a shadow."""
    rng = np.random.default_rng(seed)
    values = picture.astype(np.float32) / 255
    labels = np.zeros(picture.shape[:2], np.int32)
    count = max(2, round(TEXTS_PER_MEGAPIXEL * labels.size / 1e6))
    for number in range(1, count + 1):
        fill, rim = _caption(rng, picture.shape[1] - 8)
        top, left = (int(rng.integers(4, max(n - s - 4, 5))) for n, s in zip(labels.shape, fill.shape, strict=True))
        box = (slice(top, top + fill.shape[0]), slice(left, left + fill.shape[1]))
        below = values[box].copy()
        fill, rim = (cover[: below.shape[0], : below.shape[1]] for cover in (fill, rim))
        if labels[box].any():
            continue
        paint = _colour(rng, below.mean(axis=(0, 1)))
        edge = np.full(3, float(paint.mean() < 0.5), np.float32)
        mixed = below + rim[..., None] * (edge - below)
        mixed = mixed + fill[..., None] * (paint - mixed)
        labels[box][np.max(np.abs(mixed - below), axis=-1) > VISIBLE] = number
        values[box] = mixed
    return Scarred(np.rint(values * 255).astype(np.uint8), labels)


def _caption(rng: np.random.Generator, widest: int) -> tuple[Plane, Plane]:
    """How much of each pixel letters cover, and how much their rim or shadow does."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    name, text = str(rng.choice(FONTS)), str(rng.choice(_WORDS))
    size = int(np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST))))
    size = min(size, int(1.6 * widest / len(text)))
    font = ImageFont.truetype(str(folder / f"{name}.ttf"), size)
    kind = rng.choice(["plain", "plain", "plain", "plain", "rim", "shadow"])
    width = 1 + size // 24 if kind == "rim" else 0
    box = font.getbbox(text, stroke_width=width)
    extent = int(box[2] - box[0]) + 12, int(box[3] - box[1]) + 12

    def drawn(stroke: int) -> Plane:
        sheet = Image.new("L", extent)
        ImageDraw.Draw(sheet).text((6 - box[0], 6 - box[1]), text, fill=255, font=font, stroke_width=stroke)
        return np.asarray(sheet, np.float32) / 255

    fill = drawn(0)
    away = 1 + size // 20
    rims = {"plain": np.zeros_like(fill), "rim": drawn(width), "shadow": np.roll(fill, (away, away), (0, 1))}
    return fill, rims[str(kind)]


def _colour(rng: np.random.Generator, under: NDArray) -> Plane:
    """A colour that differs from what lies below it."""
    while True:
        paint = np.array(_COLOURS[rng.integers(len(_COLOURS))], np.float32)
        if np.max(np.abs(paint - under)) > _FAINTEST:
            return paint
