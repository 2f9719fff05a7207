"""Damage as photographs have it: masks of scratches, dust, text, holes, lines, a torn corner and random pixels.

Widths and diameters are in pixels at every size of picture; what grows with the picture is the number of scars, to about
1.4% of its pixels. Scars in the sky lie where the picture is smooth, because that is where they show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_gradient_magnitude, minimum_filter, uniform_filter

SHARE = 0.014
"""Share of the pixels that are missing, except for random ones and for the corner of a large picture."""
LONGEST_CORNER = 400
"""Pixels along the sides of the torn corner of a large picture."""
_WORDS = ("The", "quick", "brown", "fox", "jumps", "over", "lazy", "dog,", "© 1987", "Holiday", "SAMPLE", "0123456789")

Point = tuple[float, float]


@dataclass
class Sheet:
    """A mask being drawn upon, and the places (x, y) that scars may be centred on, `None` for anywhere."""

    picture: Image.Image
    rng: np.random.Generator
    smooth: Smooth | None = None

    @property
    def pen(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.picture)

    def place(self) -> Point:
        """A point (x, y) where a scar may be centred."""
        if self.smooth is not None:
            return self.smooth.place(self.rng)
        width, height = self.picture.size
        return float(self.rng.uniform(0, width)), float(self.rng.uniform(0, height))


@dataclass(frozen=True)
class Smooth:
    """The smooth places of a picture, on a coarse grid.

    Attributes
    ----------
    calm : (rows, columns) bool array
        Whether the neighbourhood of a block is among the smoothest.
    block : int
        Side of a block of the picture, in pixels.
    """

    calm: NDArray[np.bool_]
    block: int

    @classmethod
    def of(cls, image: NDArray) -> Smooth:
        """The fifth of the picture with the smallest gradients around, of `image` (height, width[, 3]), 0 to 255."""
        grey = image.astype(np.float32) if image.ndim == 2 else image.astype(np.float32).mean(axis=-1)
        slopes = gaussian_gradient_magnitude(grey, 1.5)
        block = max(4, round(min(grey.shape) / 100))
        rows, columns = (n // block for n in grey.shape)
        coarse = slopes[: rows * block, : columns * block].reshape(rows, block, columns, block).max(axis=(1, 3))
        around = uniform_filter(coarse, 7, mode="nearest")
        calm = around <= np.quantile(around, 0.2)
        inner = minimum_filter(calm, 3, mode="nearest")
        return cls(inner if inner.any() else calm, block)

    def place(self, rng: np.random.Generator) -> Point:
        """A point (x, y) in a smooth block."""
        row, column = rng.choice(np.argwhere(self.calm))
        x, y = self.block * (np.array([column, row]) + rng.random(2))
        return float(x), float(y)

    def share(self, path: NDArray) -> float:
        """Share of the points (n, 2) of a path that lie in smooth blocks."""
        columns, rows = (path // self.block).astype(int).T
        inside = (rows >= 0) & (columns >= 0) & (rows < self.calm.shape[0]) & (columns < self.calm.shape[1])
        return float(np.sum(self.calm[rows[inside], columns[inside]]) / len(path))


Scar = Callable[[Sheet], float]
"""Draws one scar and says about how many pixels it takes."""


def damage(kind: str, shape: tuple[int, int], rng: np.random.Generator, image: NDArray | None = None) -> NDArray:
    """A mask of the given kind of damage.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    shape : (height, width)
        Size of the picture, in pixels.
    rng : numpy.random.Generator
        Says where the damage lies.
    image : (height, width[, 3]) array, optional
        The picture, needed for damage in the sky.

    Returns
    -------
    (height, width) bool array
        True where the picture is missing.

    Examples
    --------
    >>> mask = damage("scratches", (200, 300), np.random.default_rng(0))
    >>> mask.shape, 0.01 < mask.mean() < 0.03
    ((200, 300), True)
    """
    if kind in RANDOM:
        return rng.random(shape) < RANDOM[kind]
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if kind == "corner":
        return corner(shape, rng)
    if kind in SKY and image is None:
        raise ValueError(f"image must be given for {kind!r}: its smooth parts are where the damage goes")
    sheet = Sheet(Image.new("L", shape[::-1]), rng, Smooth.of(image) if kind in SKY and image is not None else None)
    return _covered(sheet, (SCARS | SKY)[kind])


def _covered(sheet: Sheet, scar: Scar) -> NDArray:
    """Scars until their share of the picture is reached; their pixels are counted after every round of drawing."""
    total = sheet.picture.width * sheet.picture.height
    while True:
        mask = np.asarray(sheet.picture) > 0
        lacking = SHARE * total - np.count_nonzero(mask)
        if lacking < 0.1 * SHARE * total:
            return mask
        while lacking > 0:
            lacking -= scar(sheet)


def _disc(sheet: Sheet, centre: Point, diameter: float) -> float:
    x, y = centre
    half = diameter / 2
    sheet.pen.ellipse([x - half, y - half, x + half - 1, y + half - 1], fill=255)
    return 0.785 * diameter**2


def holes(smallest: float, largest: float) -> Scar:
    """Round holes of diameters in pixels, drawn evenly."""
    return lambda sheet: _disc(sheet, sheet.place(), sheet.rng.uniform(smallest, largest))


def _stroke(sheet: Sheet, path: NDArray, width: int) -> float:
    """A path of points (n, 2) with round ends."""
    points = [(float(x), float(y)) for x, y in path]
    sheet.pen.line(points, fill=255, width=width, joint="curve")
    if width > 2:
        for end in (points[0], points[-1]):
            _disc(sheet, end, width)
    return width * float(np.sum(np.hypot(*np.diff(path, axis=0).T)))


def _straight(sheet: Sheet, shortest: float, longest: float) -> NDArray:
    """A line through a place, its length a share of the picture's shorter side."""
    side = min(sheet.picture.size)
    length, angle = side * sheet.rng.uniform(shortest, longest), sheet.rng.uniform(0, np.pi)
    steps = np.linspace(-0.5, 0.5, 12)[:, None] * length * np.array([np.cos(angle), np.sin(angle)])
    return np.array(sheet.place()) + steps


def _curved(sheet: Sheet) -> NDArray:
    """A hair: a path that turns by and by."""
    side, count = min(sheet.picture.size), 24
    length = side * sheet.rng.uniform(0.1, 0.5)
    turns = sheet.rng.uniform(0, 2 * np.pi) + np.cumsum(sheet.rng.normal(0.03, 0.12, count))
    return np.array(sheet.place()) + np.cumsum(length / count * np.stack([np.cos(turns), np.sin(turns)], 1), axis=0)


def scratch(sheet: Sheet) -> float:
    """A scratch or a hair, straight or curved, 2 to 12 pixels wide, more often thin than wide."""
    path = _curved(sheet) if sheet.rng.random() < 0.5 else _straight(sheet, 0.15, 0.7)
    return _stroke(sheet, path, int(np.round(2 * 6 ** sheet.rng.random())))


def line(sheet: Sheet) -> float:
    """A straight line 8 to 12 pixels wide; in the sky, the one of twenty that stays in smooth parts the longest."""
    paths = [_straight(sheet, 0.1, 0.5) for _ in range(1 if sheet.smooth is None else 20)]
    best = paths[0] if sheet.smooth is None else max(paths, key=sheet.smooth.share)
    return _stroke(sheet, best, int(sheet.rng.integers(8, 13)))


def words(sheet: Sheet) -> float:
    """A few words; any pixel that an anti-aliased letter touches is missing."""
    size = int(sheet.rng.choice([12, 16, 22, 30, 44, 60], p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05]))
    font = ImageFont.load_default(size)
    text = " ".join(sheet.rng.choice(_WORDS, sheet.rng.integers(1, 5)))
    box = font.getbbox(text)
    wide, high = sheet.picture.size
    place = sheet.rng.uniform(0, max(wide - box[2], 1)), sheet.rng.uniform(0, max(high - box[3], 1))
    sheet.pen.text(place, text, fill=255, font=font)
    return 0.35 * float((box[2] - box[0]) * (box[3] - box[1]))


def corner(shape: tuple[int, int], rng: np.random.Generator) -> NDArray:
    """A torn corner with a ragged edge."""
    side = min(float(np.sqrt(2 * SHARE * shape[0] * shape[1])), LONGEST_CORNER)
    walk = np.cumsum(rng.normal(0, 0.012 * side, round(side) + 1))
    walk -= np.linspace(0, walk[-1], len(walk))
    edge = np.maximum(side - np.arange(len(walk)) + walk, 0)
    mask = np.zeros(shape, bool)
    for row, length in enumerate(edge[: shape[0]]):
        mask[row, : round(length)] = True
    flips = [slice(None, None, int(step)) for step in rng.choice([-1, 1], 2)]
    return mask[flips[0], flips[1]]


SCARS: dict[str, Scar] = {
    "scratches": scratch,
    "dust": holes(2, 7),
    "text": words,
    "holes-12": holes(4, 12),
    "holes-30": holes(10, 30),
    "holes-40": holes(20, 40),
    "lines": line,
}
"""Kinds of many scars, anywhere."""
SKY: dict[str, Scar] = {"sky-holes": holes(10, 40), "sky-lines": line}
"""Kinds of scars in smooth parts."""
RANDOM = {"random-50": 0.5, "random-80": 0.8}
"""Shares of pixels missing at random."""
KINDS = (*SCARS, *SKY, "corner", *RANDOM)


def rounds(kinds: tuple[str, ...], megapixels: float) -> Iterator[str]:
    """The kinds that are tried at a size: no camera loses random pixels of more than two megapixels."""
    yield from (kind for kind in kinds if megapixels <= 2 or kind not in RANDOM)
