"""Scans by Fourier transforms, for filters so large that these take fewer operations than sums over their samples.

Transforms are taken in float64, so that what they round is nothing beside the tolerance. A circle is transformed as it is,
if its sides have small factors only; other signals in blocks that overlap by a filter, of which only the positions without
wrapped samples count.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from pointillist.kernels import fourier
from pointillist.kernels.convolution import flat_offsets, strides_of, whole_blocks
from pointillist.kernels.fourier import LANES, TOGETHER
from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that decide where transforms are worth their time, and how signals are cut for them."""

    cost: float = 18.0
    """Products of a direct scan that take as long as one sample of a transform, for each doubling of its length."""
    spectra_bytes: int = 2**27
    """Memory that the spectra of all filters may take; larger signals are transformed in blocks."""
    filters_a_line: int = 8
    """Samples of a block of a signal of one dimension, beside those of a filter: longer ones leave the caches."""


TUNING = Tuning()


def is_worth_transforms(problem: Problem) -> bool:
    """True if scans by transforms take fewer operations than sums over the filters' samples, and not much memory."""
    geometry, n_filters = problem.geometry, problem.n_filters
    direct = geometry.channels * prod(geometry.filter) * whole_blocks(n_filters)  # products for a position
    transformed = TUNING.cost * _whole(n_filters)  # for a sample of a block, for each doubling of its length
    if transformed * log2(max(prod(geometry.filter), 2)) >= direct:  # a block is as large as a filter at least
        return False
    blocks = shape_of_blocks(geometry, n_filters)
    samples = prod(blocks)
    if _bytes(geometry, n_filters, samples) > 2 * TUNING.spectra_bytes:
        return False
    count = prod(-(-n // w) for n, w in zip(geometry.grid, _widths(geometry, blocks), strict=True))
    return transformed * count * samples * log2(max(samples, 2)) < direct * geometry.n_positions


def shape_of_blocks(geometry: Geometry, n_filters: int) -> tuple[int, ...]:
    """Samples of a block along each axis: all of them, or a few filters' lengths of a large signal."""
    wanted = whole = _whole_axes(geometry)
    if len(whole) == 1:
        wanted = (min(whole[0], TUNING.filters_a_line * geometry.filter[0]),)
    room = TUNING.spectra_bytes / _bytes(geometry, n_filters, prod(wanted))
    if room < 1:
        side = int((prod(wanted) * room) ** (1 / len(wanted)))
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


class FourierScan:
    """The spectra of a problem's filters, and the scan that uses them; `factors` are 1/λ, zero for codes that are masked."""

    def __init__(self, problem: Problem, factors: NDArray) -> None:
        self.problem, self.blocks = problem, shape_of_blocks(problem.geometry, problem.n_filters)
        self.groups, grid = _whole(problem.n_filters) // TOGETHER, problem.geometry.grid
        full = np.zeros((self.groups * TOGETHER, factors.shape[1]))
        full[: problem.n_filters] = factors[: problem.n_filters]
        space = grid if factors.shape[1] > 1 else (1,) * len(grid)
        self.factors = np.moveaxis(full.reshape(self.groups, TOGETHER, *space), 1, -1)

    @cached_property
    def spectra(self) -> NDArray:
        """Spectra of the filters with which correlations are inverse transforms, divided by the number of samples.

        They are (groups, channels, *blocks, TOGETHER), with the first axis of the blocks behind the others: half of the
        filters of a group are the real parts of what is transformed, the others its imaginary parts.
        """
        filters, turned = self.problem.filters, (*self.blocks[1:], self.blocks[0])
        padded = np.zeros((self.groups * TOGETHER, *filters.shape[1:]), filters.dtype)
        padded[: len(filters)] = filters
        padded = np.moveaxis(padded.reshape(self.groups, TOGETHER, *filters.shape[1:]), (1, 3), (-1, -2))
        spectra = np.empty((self.groups, filters.shape[1], *turned, TOGETHER), filters.dtype)
        for place in np.ndindex(spectra.shape[:2]):
            real, imaginary = np.split(padded[place] / float(prod(turned)), 2, axis=-1)
            found = fft.ifftn(real + 1j * imaginary, turned, range(len(turned)), norm="forward")
            spectra[place] = np.concatenate([found.real, found.imag], axis=-1)
        return spectra

    @cached_property
    def rounding_of_one(self) -> float:
        """A bound of what rounding can take from max |Dᵀr|, for a residual of norm one.

        Residual, spectra, factors and ratios are rounded to the precision of the signal, transforms to that of float64.
        """
        filters = self.problem.filters
        own, double = (float(np.finfo(dtype).eps) for dtype in (filters.dtype, np.float64))
        sums = np.sum(np.abs(filters.astype(np.float64)), axis=tuple(range(2, filters.ndim)))
        gain = float(np.sqrt(np.max(np.sum(sums**2, axis=1))))  # no frequency is amplified more
        return 3.5 * own * self.problem.largest_norm + 16 * log2(max(prod(self.blocks), 2)) * double * gain

    def scan(self, residual: NDArray, best: NDArray, winner: NDArray, mapper: Mapper) -> None:
        """For every position the largest |Dᵀr| · factor over the filters, and which filter it was.

        `residual` is flat and padded; `best` and `winner` are flat.
        """
        geometry, blocks, axes = self.problem.geometry, self.blocks, tuple(range(1, 1 + len(self.blocks)))
        padded = residual[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
        found, which = best.reshape(geometry.grid), winner.reshape(geometry.grid)
        widths = _widths(geometry, blocks)
        for corner in product(*(range(0, n, w) for n, w in zip(geometry.grid, widths, strict=True))):
            sides = zip(corner, widths, geometry.grid, blocks, strict=True)
            positions, samples = zip(*((slice(c, min(c + w, n)), slice(c, c + b)) for c, w, n, b in sides), strict=True)
            kept, here = found[positions].shape, padded[(slice(None), *samples)].astype(np.float64)
            # Real and imaginary parts, in the order of the filters' spectra.
            spectrum = np.moveaxis(fft.fftn(here, blocks, axes), 1, -1)
            spectrum = np.ascontiguousarray(spectrum).view(np.float64).reshape(len(here), -1, blocks[0], 2)
            own = self.factors[(slice(None), *positions)] if self.factors[0].size > TOGETHER else self.factors

            def work(group: int, spectrum: NDArray = spectrum, own: NDArray = own, kept: Any = kept) -> Any:
                ratios, filters = np.zeros(prod(kept)), np.zeros(prod(kept), np.int32)
                self._scan_group(group, spectrum, np.ascontiguousarray(own[group]).reshape(-1), kept, ratios, filters)
                return ratios.reshape(kept), filters.reshape(kept)

            most, names = np.zeros(kept), np.zeros(kept, np.int32)
            for ratios, filters in mapper(work, range(self.groups)):
                np.copyto(names, filters, where=ratios > most)
                np.maximum(most, ratios, out=most)
            found[positions], which[positions] = most, names

    def _scan_group(
        self, group: int, spectrum: NDArray, factors: NDArray, kept: tuple[int, ...], best: NDArray, winner: NDArray
    ) -> None:
        """Scan a block for the filters of a group."""
        blocks = self.blocks
        if len(blocks) == 1:  # a line is a row
            blocks, kept, spectrum = (1, *blocks), (1, *kept), spectrum.reshape(len(spectrum), -1, 1, 2)
        lines = [fourier.line_of(n, np.float64) for n in blocks]
        strides, (x, y) = strides_of(blocks), np.empty((2, max(blocks) * TOGETHER))
        numbers = np.empty(kept[0] * prod(blocks[1:]) * TOGETHER)
        spectra = self.spectra[group].reshape(-1)
        fourier.transform_products(LANES, lines[0], spectra, spectrum, kept[0], x, y, numbers)
        reached = [kept[0], *blocks[1:]]
        for axis in range(1, len(blocks) - 1):
            reached[axis] = 1
            fourier.transform_lines(
                LANES, lines[axis], numbers, flat_offsets(reached, strides), int(strides[axis]), x, y
            )
            reached[axis] = kept[axis]
        fourier.transform_rows(
            LANES, lines[-1], numbers, flat_offsets(reached[:-1], strides[:-1]), kept[-1], factors,
            TOGETHER if len(factors) > TOGETHER else 0, group * TOGETHER, self.problem.nonnegative, x, y, best, winner,
        )  # fmt: skip
