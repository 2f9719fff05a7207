"""Large pictures restored piece by piece: pieces overlap, and where they do one fades into the next.

What holds for the whole picture (its scale, the strength of its noise, the penalty) is found on a montage of crops first, so
that all pieces are treated alike. Memory is that of the picture, the answer and a few pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.restore.engine import Details, Settings
from pointillist.restore.pictures import open_canvas
from pointillist.restore.reporting import joined_details
from pointillist.restore.tiling import Box, cells, in_turn, inside, widened
from pointillist.solvers.base import effective_jobs

LARGE = 2**21
"""Pixels from which on a picture is restored in pieces."""

PIECE = 512
"""Side of a piece of the answer, in pixels."""

_SMALLEST = 64  # side of a piece at least; over it pieces fade in and out
_FADE = 16  # pixels beyond a piece over which it fades out
_CROPS = 4  # crops along each side of a montage
_CROP = 256

Restore = Callable[[NDArray, int], tuple[NDArray, Details]]
"""From a crop of the picture and a number of threads to the restored crop."""


@dataclass(frozen=True, eq=False)
class Large:
    """A picture of many pixels, with channels (if any) on the last axis."""

    image: NDArray
    axis: int | None  # where its channels lay

    @property
    def shape(self) -> tuple[int, int]:
        return self.image.shape[0], self.image.shape[1]

    def montage(self, period: int = 1) -> NDArray:
        """Crops from all over the picture, set side by side: a small picture with the same noise and contrasts.

        They begin at multiples of `period` rows and columns.
        """
        tops, lefts = (np.linspace(0, n - min(_CROP, n), _CROPS).astype(int) // period * period for n in self.shape)
        strips = [np.concatenate([self.image[t : t + _CROP, s : s + _CROP] for s in lefts], axis=1) for t in tops]
        return np.concatenate(strips, axis=0)

    def restored(
        self, restore: Restore, settings: Settings, *, margin: int, factor: int = 1, channels: int | None = None
    ) -> NDArray | tuple[NDArray, Details]:
        """Restore all pieces, each with a margin around it, and put them together.

        `factor` is how many times larger the answer is; `channels` how many it has where that is not as in the picture.
        """
        tail = self.image.shape[2:] if channels is None else (channels,)
        total = np.zeros((factor * self.shape[0], factor * self.shape[1], *tail), np.float32)
        tiles = cells(self.shape, _side(factor))
        jobs = effective_jobs(settings.n_jobs)

        def work(tile: Box) -> tuple[Box, NDArray, Details]:
            outer = widened(tile, margin + _FADE, self.shape)
            answer, details = restore(np.ascontiguousarray(self.image[outer]), jobs if len(tiles) == 1 else 1)
            faded = widened(tile, _FADE, self.shape)
            part = answer[_scaled(inside(faded, outer), factor)].astype(np.float32)
            weights = _weights(tile, faded, self.shape, factor)
            return _scaled(faded, factor), part * weights.reshape(*weights.shape, *[1] * len(tail)), details

        found = []
        for box, part, details in in_turn(work, tiles, jobs, settings.progress):
            total[box] += part
            found.append(details)
        return self._finished(total, found, settings)

    def _finished(self, total: NDArray, found: list[Details], settings: Settings) -> NDArray | tuple[NDArray, Details]:
        dtype = self.image.dtype
        if dtype.kind == "u":
            np.rint(total, out=total)
            np.clip(total, 0, np.iinfo(dtype).max, out=total)
        answer = total.astype(dtype)
        if self.axis is not None:
            answer = np.moveaxis(answer, -1, self.axis)
        return (answer, joined_details(found)) if settings.return_details else answer


def is_large(shape: tuple[int, int], factor: int = 1) -> bool:
    """Whether a picture, enlarged so many times, is to be restored in pieces."""
    return shape[0] * shape[1] * factor**2 >= LARGE


def as_large(image: ArrayLike, settings: Settings, factor: int = 1) -> Large | None:
    """A picture that is to be restored in pieces, or None for others; what is no picture is left for others to refuse.

    Pictures with holes as large as a piece are restored whole, since nothing was seen there to restore the piece from.
    """
    array = np.asarray(image)
    if array.ndim not in (2, 3) or array.size * factor**2 < LARGE:
        return None
    canvas = open_canvas(array, channel_axis=settings.channel_axis, data_range=settings.data_range)
    if not is_large(canvas.shape, factor) or _with_hole(canvas.missing, _side(factor)):
        return None
    return Large(array if canvas.axis is None else np.moveaxis(array, canvas.axis, -1), canvas.axis)


def _side(factor: int) -> int:
    """Side of a piece of a picture that is enlarged so many times."""
    return max(PIECE // factor, _SMALLEST)


def _with_hole(missing: NDArray, side: int) -> bool:
    """Whether a piece misses all samples of a channel."""
    if not np.any(missing):
        return False
    return any(np.any(np.all(missing[(slice(None), *box)], axis=(1, 2))) for box in cells(missing.shape[1:], side))


def _scaled(box: Box, factor: int) -> Box:
    rows, columns = (slice(factor * ends.start, factor * ends.stop) for ends in box)
    return rows, columns


def _weights(tile: Box, faded: Box, shape: tuple[int, int], factor: int) -> NDArray:
    """Weights of a piece, which add up to one over all pieces: rising from zero around inner borders, one elsewhere."""
    lines = []
    for ends, wide, n in zip(tile, faded, shape, strict=True):
        middles = (np.arange(factor * wide.start, factor * wide.stop) + 0.5) / factor
        rising = np.ones(len(middles)) if ends.start == 0 else (middles - ends.start + _FADE) / (2 * _FADE)
        falling = np.ones(len(middles)) if ends.stop == n else (ends.stop + _FADE - middles) / (2 * _FADE)
        lines.append(np.clip(np.minimum(rising, falling), 0, 1))
    return np.outer(lines[0], lines[1]).astype(np.float32)
