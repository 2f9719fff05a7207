"""What the examples of this folder share: photographs as uint8, and pictures side by side in one PNG."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import pointillist as pt


def photograph(name: str, *, grey: bool = True) -> NDArray[np.uint8]:
    """A shipped photograph that no shipped dictionary was learned from, (height, width) or (height, width, 3)."""
    return np.round(255 * pt.photographs("test", grey=grey)[name]).astype(np.uint8)


def decibels(reference: NDArray, picture: NDArray) -> float:
    """PSNR with 255 as peak."""
    return 10 * float(np.log10(255**2 / np.mean((reference.astype(float) - picture.astype(float)) ** 2)))


def output(default: str) -> Path:
    """Where to write: ``--output FILE.png``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path(default))
    return parser.parse_args().output


def save(path: Path, reference: NDArray, **pictures: NDArray) -> None:
    """Draw the pictures and the reference side by side, and print how near each came."""
    panels = {name.replace("_", " "): picture for name, picture in pictures.items()}
    figure = Figure(figsize=(4 * (len(panels) + 1), 4.4 * reference.shape[0] / reference.shape[1] + 0.4), dpi=120)
    for axes, (name, picture) in zip(
        figure.subplots(1, len(panels) + 1), [*panels.items(), ("reference", reference)], strict=True
    ):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
        axes.set_axis_off()
        quality = "" if picture is reference else f", {decibels(reference, picture):.1f} dB"
        axes.set_title(f"{name}{quality}")
        print(f"{name}{quality}")
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")
