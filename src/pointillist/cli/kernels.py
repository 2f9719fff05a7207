"""Blurs by name or from a file, as kernels of sum one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles import read_photograph
from pointillist.restore.kernels import gaussian_kernel as gaussian
from pointillist.restore.kernels import motion_kernel as motion

__all__ = ["gaussian", "motion", "parse_motion", "read"]


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
