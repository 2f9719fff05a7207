"""Blurs by name or from a file, as kernels of sum one."""

from __future__ import annotations

from math import ceil, cos, radians, sin
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles import read_photograph

_STEPS = 32  # points drawn per pixel of a motion blur


def gaussian(sigma: float) -> NDArray[np.float64]:
    """A Gaussian of that deviation in pixels, cut off at three deviations."""
    radius = max(1, ceil(3 * sigma))
    line = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    kernel = np.outer(line, line)
    return kernel / kernel.sum()


def motion(length: float, angle: float) -> NDArray[np.float64]:
    """A straight line of `length` pixels, `angle` degrees anticlockwise from the horizontal, shared out between pixels."""
    radius = ceil(length / 2)
    kernel = np.zeros((2 * radius + 1, 2 * radius + 1))
    along = (np.arange(ceil(_STEPS * length)) + 0.5) / _STEPS
    along = along[along < length] - length / 2
    rows, columns = radius - along * sin(radians(angle)), radius + along * cos(radians(angle))
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    for row, column, share in (
        (top, left, (1 - down) * (1 - right)),
        (top, left + 1, (1 - down) * right),
        (top + 1, left, down * (1 - right)),
        (top + 1, left + 1, down * right),
    ):
        inside = (row >= 0) & (row < len(kernel)) & (column >= 0) & (column < len(kernel))
        np.add.at(kernel, (row[inside], column[inside]), share[inside])
    return kernel / kernel.sum()


def parse_motion(text: str) -> NDArray[np.float64]:
    """``9,30``: nine pixels long, at 30 degrees."""
    try:
        length, angle = (float(number) for number in text.split(","))
    except ValueError:
        length, angle = float("nan"), 0.0
    if not (1 <= length <= 1000 and np.isfinite(angle)):
        raise ValueError(f"--motion {text!r} is not LENGTH,ANGLE: write 9,30 for nine pixels at 30 degrees")
    return motion(length, angle)


def read(path: Path) -> NDArray[np.float64]:
    """A kernel from a grey image or a .npy file."""
    pixels = read_photograph(path).pixels.astype(np.float64)
    if pixels.ndim == 3:
        pixels = pixels.mean(axis=-1)
    if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.sum() == 0:
        raise ValueError(f"--psf {path} is no blur: its values must be finite, not negative, and not all zero")
    return pixels / pixels.sum()
