"""Filters that are one pattern over channels times one shape each: how they are told, and scans that make use of it."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.correlated import Overlaps
from pointillist.kernels.layout import Layout, make_layout, register_width, whole_blocks
from pointillist.kernels.separable import SPARE_VECTORS, factor, mix, scan_mixed
from pointillist.kernels.vectors import ROWS_AT_ONCE, width_of
from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem
from pointillist.solvers.products import overlap_table

_LOST = 16
"""Units of rounding, beside its norm, that a filter may differ by from the product of its pattern and its shape."""
_WORTH = 0.6
"""The share of the products of a plain scan that a scan of mixed channels may take to be worth it."""


class Products(NamedTuple):
    """Patterns over channels and shapes, in float64, whose products filters are up to rounding."""

    patterns: NDArray  # (n_filters, channels), of unit norm
    shapes: NDArray  # (n_filters, *size)
    lost: NDArray  # (n_filters,) norms of what the filters are besides


def as_products(filters: NDArray) -> Products | None:
    """Patterns and shapes of filters (n_filters, channels, *size) of rank one over channels; None for any others."""
    n_filters, channels = filters.shape[:2]
    if channels == 1:
        return None
    flat = np.ascontiguousarray(filters).reshape(n_filters, channels, -1)
    patterns, shapes, lost = np.empty((n_filters, channels)), np.empty((n_filters, flat.shape[2])), np.empty(n_filters)
    if not factor(flat, _LOST * float(np.finfo(filters.dtype).eps) / 2, patterns, shapes, lost):
        return None
    return Products(patterns, shapes.reshape(n_filters, *filters.shape[2:]), lost)


def product_losses(filters: NDArray, patterns: NDArray, shapes: NDArray) -> NDArray:
    """Norms of what filters (n_filters, channels, samples) are besides the products of patterns and shapes, in float64."""
    rest = filters - patterns[:, :, None].astype(np.float64) * shapes[:, None].astype(np.float64)
    return np.sqrt(np.einsum("kcs,kcs->k", rest, rest))


@dataclass(frozen=True, eq=False)
class SeparableScan:
    """Patterns and shapes of a problem's filters, and the scan that uses them.

    Attributes
    ----------
    problem : Problem
        Its filters have rank one over channels.
    patterns : (n_filters, channels) array
    shapes : (n_filters, samples) array
        Both in the precision of the filters.
    """

    problem: Problem
    patterns: NDArray
    shapes: NDArray

    @classmethod
    def of(cls, problem: Problem) -> "SeparableScan | None":
        """The scan of a problem; None where its filters have a higher rank, or where it takes no fewer operations."""
        if not _is_worth(problem.geometry, problem.filters):
            return None
        found = as_products(problem.filters)
        if found is None:
            return None
        dtype = problem.filters.dtype
        return cls(problem, found.patterns.astype(dtype), found.shapes.reshape(len(found.shapes), -1).astype(dtype))

    @classmethod
    def plain(cls, problem: Problem) -> "SeparableScan":
        """The scan of a problem of one channel, whose filters are their own shapes."""
        n_filters = problem.n_filters
        return cls(problem, np.ones((n_filters, 1), problem.filters.dtype), problem.filters.reshape(n_filters, -1))

    @cached_property
    def layout(self) -> Layout:
        """Where the shapes lie in one channel of a padded signal."""
        geometry = self.problem.geometry
        return make_layout(self.shapes.reshape(-1, 1, *geometry.filter), geometry.grid, geometry.padded)

    @cached_property
    def terms(self) -> float:
        """Units of rounding that a correlation can be off by, times the norms of its filter and of what it meets.

        Sums over channels and samples are off by one unit for each term; what patterns and shapes lost adds to it.
        """
        unit = float(np.finfo(self.shapes.dtype).eps) / 2
        return self.patterns.shape[1] + self.shapes.shape[1] + 4 + 1.01 * self.lost / self.problem.largest_norm / unit

    @cached_property
    def lost(self) -> float:
        """The norm of what a filter is at most besides the product of its pattern and its shape."""
        flat = self.problem.filters.reshape(len(self.patterns), len(self.patterns[0]), -1).astype(np.float64)
        return float(np.max(product_losses(flat, self.patterns, self.shapes)))

    @cached_property
    def overlaps(self) -> Overlaps:
        """Inner products of the filters, for signals of one dimension."""
        patterns, shapes, geometry = (
            self.patterns.astype(np.float64),
            self.shapes.astype(np.float64),
            self.problem.geometry,
        )
        inner = patterns @ patterns.T
        table = overlap_table(shapes[:, None]) * inner[..., None]
        return Overlaps(table, shapes, inner, geometry.offset[0], geometry.offset[0] + geometry.signal[0])

    def scan(
        self,
        residual: NDArray,
        row_chunks: list[tuple[int, int]],
        factors: NDArray,
        best: NDArray,
        winner: NDArray,
        mapper: Mapper,
    ) -> None:
        """For every position the largest |Dᵀr| · factor over the filters, and which filter it was.

        `residual` is flat and padded, `factors` (at least n_filters, 1 or n_positions); `best` is zero at first.
        """
        geometry, layout, signed = self.problem.geometry, self.layout, self.problem.nonnegative
        samples = prod(geometry.padded)
        mixed = self._mixed(residual[: geometry.channels * samples].reshape(geometry.channels, samples), 0)
        nothing = np.empty((0, 0))

        def work(rows: tuple[int, int]) -> None:
            scan_mixed(layout, self.shapes, mixed, *rows, factors, signed, best, winner, nothing)

        list(mapper(work, row_chunks))

    def correlations(self, residual: NDArray, factors: NDArray, best: NDArray, winner: NDArray) -> NDArray:
        """Scan a residual (channels, samples) of one dimension, and return the correlations too.

        `factors`, `best` and `winner` are those of `scan`; the correlations (n_filters, n_positions) are float64.
        """
        geometry = self.problem.geometry
        mixed = self._mixed(residual, geometry.offset[0])
        found = np.empty((len(self.patterns), geometry.n_positions))
        scan_mixed(self.layout, self.shapes, mixed, 0, 1, factors, self.problem.nonnegative, best, winner, found)
        return found

    def _mixed(self, residual: NDArray, offset: int) -> NDArray:
        """The channels of a residual (channels, samples) mixed for each filter, as padded signals that begin at `offset`.

        One channel is mixed once for all of them.
        """
        spare = SPARE_VECTORS * width_of(self.layout.block_lanes)
        patterns = self.patterns if len(residual) > 1 else self.patterns[:1]
        mixed = np.empty((len(patterns), prod(self.problem.geometry.padded) + spare), residual.dtype)
        mix(patterns, residual, offset, mixed)
        return mixed


def _is_worth(geometry: Geometry, filters: NDArray) -> bool:
    """Whether mixing channels first takes far fewer products than a plain scan."""
    if geometry.channels == 1:
        return False
    block = ROWS_AT_ONCE * register_width(filters.dtype)
    taps, row = prod(geometry.filter), geometry.grid[-1]
    mixed = len(filters) * (taps * -(-row // block) * block / row + geometry.channels)
    plain = whole_blocks(len(filters)) * geometry.channels * taps
    return mixed < _WORTH * plain
