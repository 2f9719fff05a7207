"""A mended picture beside what it was: PSNR where there is a reference, both drawn, and both as they are for a preview."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles import Photograph
from pointillist.plot.style import bare, new_figure, save_figure, title
from pointillist.reprs import sizes

_GAP = 8  # white pixels between the two halves of a preview
_ROWS = 256  # compared at a time, so that no copy of a large picture is made


def psnr_before_and_after(
    before: NDArray[Any], mended: NDArray[Any], reference: Photograph | None, name: Path | None
) -> tuple[float | None, float | None]:
    """PSNR before and after, where there is something to compare with."""
    if reference is None:
        return None, None
    if reference.shape != mended.shape[:2]:
        raise ValueError(f"--reference {name} is {sizes(reference.shape)}, the answer {sizes(mended.shape[:2])}")
    return _decibels(reference, before), _decibels(reference, mended)


def _decibels(reference: Photograph, pixels: NDArray[Any]) -> float:
    """PSNR with the largest value of the type as peak, which is what people quote for photographs."""
    peak = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    error = count = 0.0
    for top in range(0, len(pixels), _ROWS):
        truth = reference.pixels[top : top + _ROWS].astype(np.float64) / reference.peak
        guess = pixels[top : top + _ROWS].astype(np.float64) / peak
        if truth.ndim != guess.ndim:
            truth, guess = (a if a.ndim == 3 else a[..., None] for a in (truth, guess))
        squares = (truth - guess) ** 2
        error, count = error + float(squares.sum()), count + squares.size
    return float("inf") if error == 0 else -10 * float(np.log10(error / count))


def draw_comparison(
    path: Path,
    before: NDArray[Any],
    mended: NDArray[Any],
    reference: Photograph | None,
    qualities: Sequence[float | None],
    peak: float,
) -> None:
    """Before and after, and the reference if there is one, side by side."""
    panels = [("Before", before, qualities[0], peak), ("After", mended, qualities[1], peak)]
    if reference is not None:
        panels.append(("Reference", reference.pixels, None, reference.peak))
    height = min(max(4.0 * mended.shape[0] / mended.shape[1], 1.5), 8.0)
    figure = new_figure(4.0 * len(panels) + 0.6, height + 0.8)
    for axes, (name, pixels, quality, top) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        bare(axes)
        axes.imshow(np.clip(pixels / np.float32(top), 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="antialiased")
        title(axes, name, f"PSNR {quality:.1f} dB" if quality is not None else " ")
    save_figure(figure, path, crop=True)


def side_by_side(before: NDArray[Any], after: NDArray[Any], peak: float) -> NDArray[np.uint8]:
    """Two pictures of one size beside each other, pixel by pixel, with 8 bits."""
    halves = [np.round(255 * np.clip(np.nan_to_num(half / peak), 0, 1)).astype(np.uint8) for half in (before, after)]
    if halves[0].ndim != halves[1].ndim:
        halves = [half if half.ndim == 3 else np.stack([half] * 3, axis=-1) for half in halves]
    gap = np.full((len(after), _GAP, *halves[0].shape[2:]), 255, np.uint8)
    return np.concatenate([halves[0], gap, halves[1]], axis=1)
