"""Visible damage painted into photographs, with the truth about it: dust specks, scratches and hairs, and drawn lines.

Dust and scratches are soft-edged, partly transparent and of varied contrast, light or dark, as on scanned prints and
negatives. Drawn lines are opaque, of one colour and hard-edged, as paint programs leave them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

VISIBLE = 0.04
"""A pixel counts as damaged when the paint changed one of its channels by more than this part of full scale."""

CONTRASTS = (0.15, 0.6)
"""Change of brightness in the middle of a speck or scratch, as a part of full scale."""

DUST_PER_MEGAPIXEL = 100
SCRATCHES = 8
"""Scratches in a picture of 0.3 megapixels; their number grows with the picture's side."""

_FINE = 4  # samples per pixel and axis while painting


@dataclass(frozen=True)
class Scarred:
    """A damaged picture.

    Attributes
    ----------
    picture : (height, width, 3) uint8 array
    labels : (height, width) int32 array
        Zero where untouched, otherwise the number of the speck or scratch, from one.
    """

    picture: NDArray[np.uint8]
    labels: NDArray[np.int32]

    @property
    def mask(self) -> NDArray[np.bool_]:
        return self.labels > 0


def dusty(picture: NDArray[np.uint8], seed: int, sizes: tuple[float, float] = (2, 7), density: float = 1.0) -> Scarred:
    """Specks of irregular shape, so many pixels across, 100 in a megapixel and at least 20."""
    rng = np.random.default_rng(seed)
    count = max(20, round(density * DUST_PER_MEGAPIXEL * picture.shape[0] * picture.shape[1] / 1e6))
    stamps = []
    for _ in range(count):
        cover = _speck(rng.uniform(*sizes), rng)
        corner = [int(rng.integers(0, n - s)) for n, s in zip(picture.shape[:2], cover.shape, strict=True)]
        stamps.append((corner[0], corner[1], cover))
    return _painted(picture, stamps, rng)


def scratched(
    picture: NDArray[np.uint8], seed: int, widths: tuple[float, float] = (1, 6), density: float = 1.0
) -> Scarred:
    """Scratches and hairs, straight and curved, so many pixels wide and a twelfth to half of the picture long."""
    rng = np.random.default_rng(seed)
    side = float(np.sqrt(picture.shape[0] * picture.shape[1]))
    count = max(4, round(density * SCRATCHES * side / 550))
    stamps = [_line(picture.shape[:2], side, rng.uniform(*widths), rng) for _ in range(count)]
    return _painted(picture, stamps, rng)


def ruled(picture: NDArray[np.uint8], seed: int) -> Scarred:
    """Opaque lines of 1 to 7 pixels, straight and crooked, mostly white or black."""
    rng = np.random.default_rng(seed)
    height, width = picture.shape[:2]
    count = max(4, round(SCRATCHES * np.sqrt(height * width) / 550))
    sheet, labels = Image.fromarray(picture), Image.new("I", (width, height))
    for number in range(1, count + 1):
        angle = rng.choice([rng.uniform(0, np.pi), 0.0, np.pi / 2], p=[0.6, 0.2, 0.2])
        angles = angle + np.cumsum(rng.normal(0, 0.12 * (number % 2), 7))
        steps = rng.uniform(40, 250) / 7 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        bends = rng.uniform((0, 0), (width, height)) + np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        tones = (
            (255, 255, 255),
            (255, 255, 255),
            (0, 0, 0),
            (20, 20, 20),
            (235, 235, 225),
            tuple(rng.integers(0, 256, 3)),
        )
        colour = tuple(int(value) for value in tones[rng.integers(len(tones))])
        path, wide = [tuple(bend) for bend in bends], int(rng.integers(1, 8))
        ImageDraw.Draw(sheet).line(path, fill=colour, width=wide)
        ImageDraw.Draw(labels).line(path, fill=number, width=wide)
    return Scarred(np.asarray(sheet), np.asarray(labels).astype(np.int32))


def _speck(size: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """How much of each pixel an irregular speck covers, in a small square."""
    half = int(np.ceil(size)) + 3
    grid = (np.arange(2 * half * _FINE) + 0.5) / _FINE - half
    y, x = np.meshgrid(grid, grid, indexing="ij")
    turn, stretch = rng.uniform(0, np.pi), rng.uniform(1, 1.8)
    u, v = np.cos(turn) * x + np.sin(turn) * y, -np.sin(turn) * x + np.cos(turn) * y
    angle = np.arctan2(v, u)
    edge = sum(rng.normal(0, 0.22 / k) * np.cos(k * angle + rng.uniform(0, 2 * np.pi)) for k in range(1, 5))
    inside = np.hypot(u / np.sqrt(stretch), v * np.sqrt(stretch)) < size / 2 * np.clip(1 + edge, 0.4, 1.6)
    return _softened(inside.astype(np.float32), rng)


def _line(
    shape: tuple[int, ...], side: float, width: float, rng: np.random.Generator
) -> tuple[int, int, NDArray[np.float32]]:
    """Where the stamp of a scratch lies, and how much of each pixel it covers."""
    length = side * np.exp(rng.uniform(np.log(1 / 12), np.log(1 / 2)))
    steps = int(length * 2)
    bend = 0.0 if rng.random() < 0.3 else rng.choice([0.5, 1.5, 4.0])  # radians over the whole length
    turns = bend * np.interp(np.linspace(0, 1, steps), np.linspace(0, 1, 5), rng.uniform(-1, 1, 5)) * 0.5 / length
    angle = rng.uniform(0, 2 * np.pi) + np.cumsum(turns)
    y, x = np.cumsum(0.5 * np.sin(angle)), np.cumsum(0.5 * np.cos(angle))
    y += rng.uniform(2, shape[0] - 3) - y[steps // 2]
    x += rng.uniform(2, shape[1] - 3) - x[steps // 2]
    inside = (y > 0) & (y < shape[0] - 1) & (x > 0) & (x < shape[1] - 1)
    y, x = y[inside], x[inside]
    margin = int(width) + 4
    top, left = int(y.min()) - margin, int(x.min()) - margin
    extent = int(y.max()) + margin - top + 1, int(x.max()) + margin - left + 1
    free = np.ones((extent[0] * _FINE, extent[1] * _FINE), bool)
    rows, columns = ((y - top) * _FINE).astype(int), ((x - left) * _FINE).astype(int)
    free[rows, columns] = False
    apart = ndimage.distance_transform_edt(free) / _FINE
    cover = _softened((apart <= width / 2).astype(np.float32), rng)
    waves = ndimage.gaussian_filter1d(rng.standard_normal(len(y)), max(8, len(y) / 12))
    waves = np.clip(1 + 0.2 * waves / (np.std(waves) + 1e-9), 0.5, 1.0)
    along = np.zeros(extent, np.float32)
    along[(y - top).astype(int), (x - left).astype(int)] = waves
    near = ndimage.distance_transform_edt(along == 0, return_distances=False, return_indices=True)
    return top, left, cover * along[near[0], near[1]]


def _softened(fine: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    soft = ndimage.gaussian_filter(fine, rng.uniform(0.15, 0.8) * _FINE)
    rows, columns = soft.shape[0] // _FINE, soft.shape[1] // _FINE
    return soft.reshape(rows, _FINE, columns, _FINE).mean(axis=(1, 3))


def _painted(
    picture: NDArray[np.uint8], stamps: list[tuple[int, int, NDArray[np.float32]]], rng: np.random.Generator
) -> Scarred:
    values = picture.astype(np.float32) / 255
    labels = np.zeros(picture.shape[:2], np.int32)
    for number, (top, left, cover) in enumerate(stamps, 1):
        rows = slice(max(top, 0), min(top + cover.shape[0], len(values)))
        columns = slice(max(left, 0), min(left + cover.shape[1], values.shape[1]))
        cover = cover[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
        below = values[rows, columns]
        tone = float(np.average(below.mean(axis=-1), weights=cover + 1e-9))
        contrast = rng.uniform(*CONTRASTS)
        light = rng.random() < (0.5 if CONTRASTS[0] < tone < 1 - CONTRASTS[0] else float(tone < 0.5))
        paint = np.clip((rng.uniform(0.85, 1) if light else rng.uniform(0, 0.15)) + rng.normal(0, 0.02, 3), 0, 1)
        opacity = min(1.0, contrast / max(abs(float(paint.mean()) - tone), 0.05)) / max(float(cover.max()), 1e-3)
        mixed = below + np.minimum(opacity * cover, 1.0)[..., None] * (paint.astype(np.float32) - below)
        changed = np.abs(np.rint(mixed * 255) - np.rint(below * 255)).max(axis=-1) > VISIBLE * 255
        labels[rows, columns][changed] = number
        values[rows, columns] = mixed
    return Scarred(np.rint(values * 255).astype(np.uint8), labels)
