"""Missing pixels filled in tile by tile: only what is damaged is read, converted and worked on.

Each tile gets a first guess without holes, coded with filters where its missing pixels are scattered and interpolated
where they lie together, and from it the conditional mean of its missing pixels (`neighbourhood`). The inside of large
holes comes from the picture at half the size, filled in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

from pointillist.restore.levels import doubled, halved, without_holes
from pointillist.restore.neighbourhood import DEEPEST, SURROUNDINGS, predicted
from pointillist.restore.tiling import Box, inside, run_all, share_of, tiles_with, widened
from pointillist.solvers.tiles import Progress

TILE, LARGE_TILE = 128, 512
"""Sides of a tile: where missing pixels lie together, and where they are scattered: coding is faster on large tiles."""

_SCATTERED = 0.5  # share of the seen pixels that have a missing neighbour, from which on missing ones are scattered
_COARSE_SHARE = 0.1  # of the work, as progress counts it
_BAND = 256  # rows that are halved at a time; even

Guess = Callable[[NDArray, NDArray, Box, int], NDArray]
"""Takes planes (channels, height, width), which of their pixels are seen (height, width), the box of the picture that they
are and a number of threads; returns the mean of the channels without holes, (height, width)."""

Sink = Callable[[NDArray, NDArray, NDArray, NDArray | None], None]
"""Takes rows (n,), columns (n,), values (channels, n) in units of full scale, and their deviations (n,) or None."""


@dataclass(frozen=True, eq=False)
class Holed:
    """Planes (channels, height, width) in a scale of their own, and which pixels (height, width) are missing in all."""

    planes: NDArray
    missing: NDArray
    scale: float = 1.0

    def crop(self, box: Box) -> NDArray:
        """Planes of a box in float64 and in units of full scale, zero where missing."""
        return np.where(self.missing[box], 0.0, self.planes[(slice(None), *box)].astype(np.float64)) / self.scale


@dataclass(frozen=True, eq=False)
class Filling:
    """How pixels are filled in.

    Attributes
    ----------
    coded : callable or None
        Makes the first guess of tiles whose missing pixels are scattered; None interpolates everywhere.
    everywhere : bool
        Whether `coded` serves all tiles.
    trust : callable
        How much of the coded guess itself is in the answer among scattered pixels, from 0 to 1; the rest is what neighbours
        make of it.
    texture : float
        How much of the texture that means lack is taken from nearby.
    n_jobs : int
    deviations : bool
        Whether the sink gets deviations.
    progress : callable or None
    """

    coded: Guess | None = None
    everywhere: bool = False
    trust: Callable[[], float] = lambda: 0.0
    texture: float = 0.0
    n_jobs: int = 1
    deviations: bool = False
    progress: Progress | None = field(default=None)


@dataclass(frozen=True, eq=False)
class _Coarse:
    """The picture at half the size, from which pixels deep in holes are taken.

    deep: (height, width) bool, of the picture itself; planes: (channels, half the height, half the width) float32, without
    holes; deviation: (half the height, half the width) float32, or None.
    """

    deep: NDArray
    planes: NDArray
    deviation: NDArray | None


def fill(holed: Holed, filling: Filling, sink: Sink) -> None:
    """Give every missing pixel to the sink, tile by tile and from several threads."""
    deep = _deep(holed.missing)
    coarse = None if deep is None else _coarse(holed, deep, filling)
    side = LARGE_TILE if filling.coded is not None and scattered(holed.missing) else TILE
    boxes = tiles_with(holed.missing, side)
    alone = len(boxes) == 1

    def work(tile: Box) -> None:
        _fill_tile(tile, holed, coarse, filling, filling.n_jobs if alone else 1, sink)

    begin = 0.0 if coarse is None else _COARSE_SHARE
    run_all(work, boxes, filling.n_jobs, share_of(filling.progress, begin, 1.0))


def _fill_tile(tile: Box, holed: Holed, coarse: _Coarse | None, filling: Filling, n_jobs: int, sink: Sink) -> None:
    outer = widened(tile, SURROUNDINGS, holed.missing.shape)
    core = inside(tile, outer)
    planes, missing = holed.crop(outer), holed.missing[outer]
    deep = np.zeros_like(missing) if coarse is None else coarse.deep[outer]
    if coarse is not None and np.any(deep):
        planes[:, deep] = doubled(coarse.planes, outer)[:, deep]
    known = ~missing | deep
    wanted = np.zeros_like(missing)
    wanted[core] = ~known[core]
    light = np.mean(planes, axis=0)
    lone = scattered(missing)
    if filling.coded is not None and (filling.everywhere or lone):
        guess = filling.coded(planes, ~missing, outer, n_jobs)
    else:
        guess = without_holes(light[None], known[None])[0]
    guess = np.where(known, light, guess)
    values, deviation = predicted(
        planes, wanted, known, guess,
        texture=filling.texture, scattered=lone, n_jobs=n_jobs, deviations=filling.deviations,
    )  # fmt: skip
    if filling.coded is not None and lone:
        values[:, wanted] += filling.trust() * (guess[wanted] - np.mean(values[:, wanted], axis=0))
    if coarse is not None and coarse.deviation is not None and deviation is not None and np.any(deep):
        deviation[deep] = doubled(coarse.deviation[None], outer)[0, deep]
    rows, columns = np.nonzero(missing[core])
    inner = (rows + core[0].start, columns + core[1].start)
    spread = None if deviation is None else deviation[inner]
    sink(rows + tile[0].start, columns + tile[1].start, values[:, inner[0], inner[1]], spread)


def scattered(missing: NDArray) -> bool:
    """Whether most of the seen pixels have a missing neighbour, as when pixels are lost one by one."""
    return bool(np.count_nonzero(beside(missing)) > _SCATTERED * np.count_nonzero(~missing))


def beside(missing: NDArray) -> NDArray:
    """Seen pixels (height, width) with a missing one among their eight neighbours."""
    near = missing.copy()
    near[1:] |= missing[:-1]
    near[:-1] |= missing[1:]
    around = near.copy()
    around[:, 1:] |= near[:, :-1]
    around[:, :-1] |= near[:, 1:]
    return around & ~missing


def _deep(missing: NDArray) -> NDArray | None:
    """Pixels that lie deeper in a hole than the neighbourhood reaches; None where there are none."""
    deep = missing.view(np.uint8)
    for axis in (0, 1):
        deep = minimum_filter1d(deep, 2 * DEEPEST + 1, axis=axis, mode="constant", cval=1)
    return deep.view(bool) if np.any(deep) else None


def _coarse(holed: Holed, deep: NDArray, filling: Filling) -> _Coarse:
    """The picture at half the size, filled in as well."""
    planes, known = _halved(holed)
    deviation = np.zeros(known.shape, np.float32) if filling.deviations else None

    def keep(rows: NDArray, columns: NDArray, values: NDArray, spread: NDArray | None) -> None:
        planes[:, rows, columns] = values
        if deviation is not None and spread is not None:
            deviation[rows, columns] = spread

    progress = share_of(filling.progress, 0.0, _COARSE_SHARE)
    fill(Holed(planes, ~known), replace(filling, coded=None, everywhere=False, progress=progress), keep)
    return _Coarse(deep, planes, deviation)


def _halved(holed: Holed) -> tuple[NDArray, NDArray]:
    """Planes at half the size, float32 in units of full scale, and which pixels are known there; made band by band."""
    height, width = holed.missing.shape
    bands = [(slice(top, min(top + _BAND, height)), slice(0, width)) for top in range(0, height, _BAND)]
    halves = [halved(holed.crop(band).astype(np.float32), ~holed.missing[None, band[0]]) for band in bands]
    return np.concatenate([planes for planes, _ in halves], axis=1), np.concatenate([known[0] for _, known in halves])
