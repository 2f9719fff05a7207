"""Scans by Fourier transforms, for filters so large that these take fewer operations than sums over their samples.

Transforms are taken in float64, so that what they round is nothing beside the tolerance, or in the precision of the signal
where violations are large beside what that rounds. A circle is transformed as it is,
if its sides have small factors only; other signals in blocks that overlap by a filter, of which only the positions without
wrapped samples count.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import log2, prod

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from pointillist.kernels import fourier
from pointillist.kernels.fourier import LANES, TOGETHER
from pointillist.kernels.layout import flat_offsets, strides_of, whole_blocks
from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem

Box = tuple[slice, ...]

_COST = 18.0
"""Products of a direct scan that take as long as one sample of a transform, for each doubling of its length."""
_SPECTRA_BYTES = 2**27
"""Memory that the spectra of all filters may take; larger signals are transformed in blocks."""
_FILTERS_A_LINE = 8
"""Samples of a block of a signal of one dimension, beside those of a filter: longer lines leave the processor's caches."""
_COARSE = 4.0
"""A scan may be coarse when violations are so many times what that may round."""
_TERMS = 7  # rounding: of the residual, the spectra, the factors and the ratios, to the precision of the signal


def transforms_are_worth(problem: Problem) -> bool:
    """Whether scans by transforms take fewer operations than sums over the filters' samples, and not much memory."""
    geometry, n_filters = problem.geometry, problem.n_filters
    blocks = shape_of_blocks(geometry, n_filters)
    samples = prod(blocks)
    if _bytes(geometry, n_filters, samples) > 2 * _SPECTRA_BYTES:
        return False
    count = prod(-(-n // w) for n, w in zip(geometry.grid, _widths(geometry, blocks), strict=True))
    direct = geometry.n_positions * geometry.channels * prod(geometry.filter) * whole_blocks(n_filters)
    return _COST * count * samples * log2(max(samples, 2)) * _whole(n_filters) < direct


def shape_of_blocks(geometry: Geometry, n_filters: int) -> tuple[int, ...]:
    """Samples of a block along each axis: all of them, or a few filters' lengths of a large signal."""
    whole = _whole_axes(geometry)
    wanted = whole
    if len(whole) == 1:
        wanted = (min(whole[0], _FILTERS_A_LINE * geometry.filter[0]),)
    if _bytes(geometry, n_filters, prod(wanted)) > _SPECTRA_BYTES:
        room = prod(wanted) * _SPECTRA_BYTES / _bytes(geometry, n_filters, prod(wanted))
        side = int(room ** (1 / len(wanted)))
        wanted = tuple(min(n, max(2 * f, side)) for n, f in zip(wanted, geometry.filter, strict=True))
    axes = zip(wanted, whole, strict=True)
    return tuple(w if w == n and fourier.can_transform(w) else int(fft.next_fast_len(w, real=True)) for w, n in axes)


def _whole_axes(geometry: Geometry) -> tuple[int, ...]:
    """Samples of a block that serves all positions: what wraps around it is zero, or the other side of a circle."""
    if geometry.boundary == "circular":
        circles = zip(geometry.signal, geometry.padded, strict=True)
        return tuple(n if fourier.can_transform(n) else padded for n, padded in circles)
    axes = zip(geometry.signal, geometry.offset, geometry.padded, strict=True)
    return tuple(max(offset + n, padded - offset) for n, offset, padded in axes)


def _widths(geometry: Geometry, blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Positions along each axis that one block serves."""
    axes = zip(geometry.grid, blocks, _whole_axes(geometry), geometry.filter, strict=True)
    return tuple(n if b >= whole else b - f + 1 for n, b, whole, f in axes)


def _whole(n_filters: int) -> int:
    """Filters in as many whole groups that are transformed together as hold `n_filters`."""
    return -(-n_filters // TOGETHER) * TOGETHER


def _bytes(geometry: Geometry, n_filters: int, samples: int) -> int:
    """Bytes of the spectra of all filters, and of the transforms that are taken together."""
    return 8 * (_whole(n_filters) * geometry.channels + TOGETHER) * samples


@dataclass(frozen=True, eq=False)
class Transforms:
    """The spectra of a problem's filters, and the scan that uses them."""

    problem: Problem
    _arranged: dict[tuple[int, np.dtype], tuple[NDArray, NDArray]] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        return shape_of_blocks(self.problem.geometry, self.problem.n_filters)

    @cached_property
    def spectra(self) -> NDArray:
        """Spectra of the filters with which correlations are inverse transforms, divided by the number of samples.

        They are (groups, channels, *blocks, TOGETHER), with the first axis of the blocks behind the others: half of the
        filters of a group are the real parts of what is transformed, the others its imaginary parts.
        """
        filters, turned = self.problem.filters, (*self.blocks[1:], self.blocks[0])
        groups = _whole(len(filters)) // TOGETHER
        padded = np.zeros((groups * TOGETHER, *filters.shape[1:]), filters.dtype)
        padded[: len(filters)] = filters
        padded = np.moveaxis(padded.reshape(groups, TOGETHER, *filters.shape[1:]), (1, 3), (-1, -2))
        spectra = np.empty((groups, filters.shape[1], *turned, TOGETHER), filters.dtype)
        for place in np.ndindex(spectra.shape[:2]):
            spectra[place] = _transformed(padded[place] / float(prod(turned)), turned)
        return spectra

    @cached_property
    def largest_gain(self) -> float:
        """A bound of the factor by which a filter amplifies a frequency."""
        sums = np.sum(np.abs(self.problem.filters.astype(np.float64)), axis=tuple(range(2, self.problem.filters.ndim)))
        return float(np.sqrt(np.max(np.sum(sums**2, axis=1))))

    def rounding(self, residual: NDArray, *, coarse: bool = False) -> float:
        """A bound of what rounding can take from max |Dᵀr| / λ, for a coarse scan or an ordinary one."""
        problem = self.problem
        norm = float(np.sqrt(np.sum(residual.astype(np.float64) ** 2)))
        own = _TERMS * float(np.finfo(residual.dtype).eps) / 2 * problem.largest_norm
        unit = float(np.finfo(residual.dtype if coarse else np.float64).eps)
        transforms = 16 * log2(max(prod(self.blocks), 2)) * unit * self.largest_gain
        return (own + transforms) * norm / problem.smallest_penalty

    def may_be_coarse(self, residual: NDArray, violation: float) -> bool:
        """Whether a scan may be coarse, after one that found a violation."""
        return residual.dtype != np.float64 and violation > _COARSE * self.rounding(residual, coarse=True)

    def scan(
        self,
        residual: NDArray,
        factors: NDArray,
        best: NDArray,
        winner: NDArray,
        mapper: Mapper,
        *,
        coarse: bool = False,
    ) -> None:
        """For every position the largest |Dᵀr| · factor over the filters, and which filter it was.

        `residual` is flat and padded, `factors` (at least n_filters, 1 or n_positions); `best` and `winner` are flat. A
        coarse scan transforms in the precision of the residual.
        """
        geometry = self.problem.geometry
        padded = residual[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
        found, which = best.reshape(geometry.grid), winner.reshape(geometry.grid)
        shaped = self._arrange(factors, residual.dtype if coarse else np.dtype(np.float64))
        for positions in self._boxes():
            samples = tuple(slice(p.start, p.start + b) for p, b in zip(positions, self.blocks, strict=True))
            own = shaped[(slice(None), *positions)] if factors.shape[1] > 1 else shaped
            block = _Block(self, padded[(slice(None), *samples)], np.ascontiguousarray(own), found[positions].shape)
            found[positions], which[positions] = block.scan(mapper)

    def _arrange(self, factors: NDArray, dtype: np.dtype) -> NDArray:
        """Factors in some precision as (groups, 1 or *grid, TOGETHER), those of a group side by side."""
        kind = factors.shape[1], dtype
        given, arranged = self._arranged.get(kind, (None, None))
        if arranged is None or given is not factors:
            groups, grid = len(self.spectra), self.problem.geometry.grid
            full = np.zeros((groups * TOGETHER, factors.shape[1]), dtype)
            full[: self.problem.n_filters] = factors[: self.problem.n_filters]
            space = grid if factors.shape[1] > 1 else (1,) * len(grid)
            arranged = np.ascontiguousarray(np.moveaxis(full.reshape(groups, TOGETHER, *space), 1, -1))
            self._arranged[kind] = factors, arranged
        return arranged

    def _boxes(self) -> list[Box]:
        """The positions that each block serves."""
        grid, widths = self.problem.geometry.grid, _widths(self.problem.geometry, self.blocks)
        corners = product(*(range(0, n, w) for n, w in zip(grid, widths, strict=True)))
        return [
            tuple(slice(s, min(s + w, n)) for s, w, n in zip(corner, widths, grid, strict=True)) for corner in corners
        ]


def _transformed(samples: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Transforms of samples (*space, TOGETHER), with zeros behind them up to a shape."""
    numbers, reached = np.zeros((*shape, TOGETHER)), list(samples.shape[:-1])
    numbers[tuple(map(slice, reached))] = samples
    strides, (x, y) = strides_of(shape), np.empty((2, max(shape) * TOGETHER))
    for axis in reversed(range(len(shape))):  # along axes that are not transformed yet, all beyond is zero
        reached[axis] = 1
        line = fourier.line_of(shape[axis], np.float64)
        fourier.transform_lines(
            LANES, line, numbers.reshape(-1), flat_offsets(reached, strides), int(strides[axis]), x, y
        )
        reached[axis] = shape[axis]
    return numbers


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of a residual, samples (channels, *space), with what its positions (*kept) need to be scanned.

    Transforms are taken in the precision of the factors.
    """

    transforms: Transforms
    samples: NDArray
    factors: NDArray
    kept: tuple[int, ...]

    @cached_property
    def spectrum(self) -> NDArray:
        """The spectrum of the samples as real and imaginary parts, in the order of the filters' spectra."""
        axes, blocks = tuple(range(1, self.samples.ndim)), self.transforms.blocks
        numbers = np.moveaxis(fft.fftn(self.samples.astype(np.float64), blocks, axes), 1, -1)
        numbers = np.ascontiguousarray(numbers).reshape(len(self.samples), -1, blocks[0])
        return numbers.view(np.float64).reshape(*numbers.shape, 2).astype(self.factors.dtype, copy=False)

    def scan(self, mapper: Mapper) -> tuple[NDArray, NDArray]:
        """Largest ratios and their filters, (*kept) each."""
        groups = range(len(self.transforms.spectra))
        best, winner, numbers = self._room()
        if mapper is map:
            for group in groups:
                self._scan_group(group, best, winner, numbers)
        else:
            for ratios, filters in mapper(self._scan_alone, groups):
                better = ratios > best
                best[better], winner[better] = ratios[better], filters[better]
        return best.reshape(self.kept), winner.reshape(self.kept)

    def _room(self) -> tuple[NDArray, NDArray, NDArray]:
        """Ratios of zero, their filters, and room for what a group is transformed into along the first axis."""
        lines = self.kept[0] * prod(self.transforms.blocks[1:]) if len(self.kept) > 1 else prod(self.transforms.blocks)
        best = np.zeros(prod(self.kept), self.factors.dtype)
        return best, np.zeros(len(best), np.int32), np.empty(lines * TOGETHER, best.dtype)

    def _scan_alone(self, group: int) -> tuple[NDArray, NDArray]:
        best, winner, numbers = self._room()
        self._scan_group(group, best, winner, numbers)
        return best, winner

    def _scan_group(self, group: int, best: NDArray, winner: NDArray, numbers: NDArray) -> None:
        """Scan for the filters of a group, and keep what is better than the best so far."""
        blocks, kept, dtype = self.transforms.blocks, self.kept, self.factors.dtype
        if len(blocks) == 1:  # a line is a row
            blocks, kept = (1, *blocks), (1, *kept)
        lines = [fourier.line_of(n, dtype) for n in blocks]
        strides, (x, y) = strides_of(blocks), np.empty((2, max(blocks) * TOGETHER), dtype)
        spectra, spectrum = self.transforms.spectra[group].reshape(-1), self.spectrum
        spectrum = spectrum.reshape(len(spectrum), -1, blocks[0], 2)
        fourier.transform_products(LANES, lines[0], spectra, spectrum, kept[0], x, y, numbers)
        reached = [kept[0], *blocks[1:]]
        for axis in range(1, len(blocks) - 1):
            reached[axis] = 1
            fourier.transform_lines(
                LANES, lines[axis], numbers, flat_offsets(reached, strides), int(strides[axis]), x, y
            )
            reached[axis] = kept[axis]
        factors = self.factors[group].reshape(-1)
        fourier.transform_rows(
            LANES, lines[-1], numbers, flat_offsets(reached[:-1], strides[:-1]), kept[-1], factors,
            TOGETHER if len(factors) > TOGETHER else 0, group * TOGETHER, self.transforms.problem.nonnegative, x, y, best,
            winner,
        )  # fmt: skip
