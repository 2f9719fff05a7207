"""Scans by Fourier transforms, for filters so large that these take fewer operations than sums over their samples.

Transforms are taken in float64, so that what they round is nothing beside the tolerance. A circle is transformed as it is;
other signals in blocks that overlap by a filter, of which only the positions without wrapped samples count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import log2, prod

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from pointillist.model.geometry import Geometry
from pointillist.model.problem import Problem
from pointillist.solvers.base import Mapper

Box = tuple[slice, ...]

_COST = 45.0
"""Products of a direct scan that take as long as one sample of a transform, for each doubling of its length."""
_SPECTRA_BYTES = 2**27
"""Memory that the spectra of all filters may take; larger signals are transformed in blocks."""
_FILTERS_AT_ONCE = 8
_TERMS = 6  # rounding: of the residual, the factors and the ratios, to the precision of the signal


def transforms_are_worth(problem: Problem) -> bool:
    """Whether scans by transforms take fewer operations than sums over the filters' samples, and not much memory."""
    geometry = problem.geometry
    blocks = shape_of_blocks(geometry, len(problem.filters))
    samples = prod(blocks)
    if _bytes(geometry, len(problem.filters), samples) > 2 * _SPECTRA_BYTES:
        return False
    count = 1
    if geometry.boundary != "circular":
        count = prod(-(-n // (b - f + 1)) for n, b, f in _axes(geometry, blocks))
    taps = geometry.channels * prod(geometry.filter)
    return _COST * count * samples * log2(max(samples, 2)) < geometry.n_positions * taps


def shape_of_blocks(geometry: Geometry, n_filters: int) -> tuple[int, ...]:
    """Samples of a block along each axis: all of them, or a few filters' lengths of a large signal."""
    if geometry.boundary == "circular":
        return geometry.signal
    wanted = geometry.padded
    if _bytes(geometry, n_filters, prod(wanted)) > _SPECTRA_BYTES:
        room = prod(wanted) * _SPECTRA_BYTES / _bytes(geometry, n_filters, prod(wanted))
        side = int(room ** (1 / len(wanted)))
        wanted = tuple(min(n, max(2 * f, side)) for n, f in zip(wanted, geometry.filter, strict=True))
    return tuple(int(fft.next_fast_len(n, real=True)) for n in wanted)


def _bytes(geometry: Geometry, n_filters: int, samples: int) -> int:
    return 8 * n_filters * geometry.channels * samples


def _axes(geometry: Geometry, blocks: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    return zip(geometry.grid, blocks, geometry.filter, strict=True)


@dataclass(frozen=True, eq=False)
class Transforms:
    """The spectra of a problem's filters, and the scan that uses them."""

    problem: Problem

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        return shape_of_blocks(self.problem.geometry, self.problem.n_filters)

    @cached_property
    def spectra(self) -> NDArray:
        """Conjugate spectra of the filters, (n_filters, channels, *frequencies)."""
        axes = tuple(range(2, self.problem.filters.ndim))
        return np.conj(fft.rfftn(self.problem.filters.astype(np.float64), self.blocks, axes))

    @cached_property
    def largest_gain(self) -> float:
        """A bound of the factor by which a filter amplifies a frequency."""
        sums = np.sum(np.abs(self.problem.filters.astype(np.float64)), axis=tuple(range(2, self.problem.filters.ndim)))
        return float(np.sqrt(np.max(np.sum(sums**2, axis=1))))

    def rounding(self, residual: NDArray) -> float:
        """A bound of what rounding can take from max |Dᵀr| / λ."""
        problem = self.problem
        norm = float(np.sqrt(np.sum(residual.astype(np.float64) ** 2)))
        own = _TERMS * float(np.finfo(residual.dtype).eps) / 2 * problem.largest_norm
        transforms = 16 * log2(max(prod(self.blocks), 2)) * float(np.finfo(np.float64).eps) * self.largest_gain
        return (own + transforms) * norm / problem.smallest_penalty

    def scan(self, residual: NDArray, factors: NDArray, best: NDArray, winner: NDArray, mapper: Mapper) -> None:
        """For every position the largest |Dᵀr| · factor over the filters, and which filter it was.

        `residual` is flat and padded, `factors` (at least n_filters, 1 or n_positions); `best` and `winner` are flat.
        """
        geometry = self.problem.geometry
        padded = residual[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
        found, which = best.reshape(geometry.grid), winner.reshape(geometry.grid)
        local = factors.shape[1] > 1
        shaped = factors[: self.problem.n_filters].reshape(-1, *(geometry.grid if local else (1,) * len(geometry.grid)))

        def work(positions: Box) -> None:
            samples = tuple(slice(p.start, p.start + b) for p, b in zip(positions, self.blocks, strict=True))
            own = shaped[(slice(None), *positions)] if local else shaped
            self._scan_block(padded[(slice(None), *samples)], own, found[positions], which[positions])

        list(mapper(work, self._boxes()))

    def _boxes(self) -> list[Box]:
        """The positions that each block serves."""
        geometry = self.problem.geometry
        if geometry.boundary == "circular":
            return [tuple(slice(0, n) for n in geometry.grid)]
        starts = [range(0, n, b - f + 1) for n, b, f in _axes(geometry, self.blocks)]
        widths = [b - f + 1 for _, b, f in _axes(geometry, self.blocks)]
        corners = product(*starts)
        return [
            tuple(slice(s, min(s + w, n)) for s, w, n in zip(corner, widths, geometry.grid, strict=True))
            for corner in corners
        ]

    def _scan_block(self, samples: NDArray, factors: NDArray, best: NDArray, winner: NDArray) -> None:
        axes = tuple(range(1, samples.ndim))
        if self.problem.geometry.boundary == "circular":
            samples = samples[(slice(None), *(slice(n) for n in self.blocks))]
        spectrum = fft.rfftn(samples.astype(np.float64), self.blocks, axes)
        inside = tuple(slice(n) for n in best.shape)
        best[...] = 0
        for first in range(0, self.problem.n_filters, _FILTERS_AT_ONCE):
            some = self.spectra[first : first + _FILTERS_AT_ONCE]
            products = np.sum(some * spectrum, axis=1) if len(samples) > 1 else some[:, 0] * spectrum[0]
            ratios = fft.irfftn(products, self.blocks, axes, overwrite_x=True)[(slice(None), *inside)]
            ratios = ratios * factors[first : first + len(some)]
            if not self.problem.nonnegative:
                np.abs(ratios, out=ratios)
            largest = np.argmax(ratios, axis=0)
            value = np.take_along_axis(ratios, largest[None], axis=0)[0]
            better = value > best
            best[better] = value[better]
            winner[better] = largest[better] + first
