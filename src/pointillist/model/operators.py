"""Synthesis with a set of filters and its adjoint, for one geometry: D and Dᵀ of the problem.

`ConvolutionOperator` works on signals ``(channels, *space)``; solvers that keep flat padded residuals call the kernels
themselves with its `layout`.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import convolution
from pointillist.kernels.bundles import Bundles, bundle_spare, make_bundles
from pointillist.kernels.layout import Layout, Pairs, make_layout, make_pairs
from pointillist.model.boundaries import BOUNDARIES
from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import Geometry


class ConvolutionOperator:
    """D: codes → signal and Dᵀ: signal → codes.

    Parameters
    ----------
    filters : (n_filters, channels, *size) array
    geometry : Geometry
    """

    def __init__(self, filters: NDArray, geometry: Geometry) -> None:
        expected = (geometry.channels, *geometry.filter)
        if filters.shape[1:] != expected:
            raise ValueError(f"filters must have shape (n, *{expected}), got {filters.shape}")
        self.filters = np.ascontiguousarray(filters)
        self.geometry = geometry

    @cached_property
    def layout(self) -> Layout:
        return make_layout(self.filters, self.geometry.grid, self.geometry.padded)

    @cached_property
    def pairs(self) -> Pairs:
        """The filters as they are correlated with a signal at scattered positions."""
        return make_pairs(self.filters, self.geometry.padded)

    @cached_property
    def bundles(self) -> Bundles | None:
        """What updates share of codes that begin close together; None where filters are too small to be worth it."""
        around = self.geometry.signal[-1] if self.geometry.boundary == "circular" else None
        spare = bundle_spare(self.filters.shape, around)
        return make_bundles(self.layout, spare) if spare > 0 else None

    @property
    def n_codes(self) -> int:
        return len(self.filters) * self.geometry.n_positions

    @cached_property
    def _squares(self) -> NDArray:
        """Σ d² of every filter."""
        ones = np.ones(self.geometry.padded_length, self.filters.dtype)
        return self._weighted_squares(self.geometry.n_positions * np.arange(len(self.filters)), ones)

    def _weighted_squares(self, indices: NDArray, weights: NDArray) -> NDArray:
        out = np.empty(len(indices), self.filters.dtype)
        convolution.curvatures(self.layout, indices, weights, out)
        return out

    def curvatures(self, indices: NDArray, weights: NDArray, clean: NDArray) -> NDArray:
        """Σ w d² of some codes, for flat padded weights; those that are `clean` meet weights of one only."""
        found = self._squares[indices // self.geometry.n_positions]
        if not clean.all():
            found[~clean] = self._weighted_squares(indices[~clean], weights)
        return found

    def synthesise(self, indices: NDArray, values: NDArray) -> NDArray:
        """D z for sparse codes (flat indices and values), a signal (channels, *space)."""
        return self.geometry.gather(self.synthesise_padded(indices, values))

    def synthesise_exactly(self, indices: NDArray, values: NDArray) -> NDArray:
        """D z in float64, whatever the precision of the filters and the codes."""
        flat = np.zeros(self.geometry.padded_length)
        convolution.synthesise(self.layout, indices, values.astype(np.float64, copy=False), flat)
        return self.geometry.gather(flat)

    def synthesise_padded(self, indices: NDArray, values: NDArray) -> NDArray:
        """The flat padded signal of sparse codes, before the boundary cuts or folds it."""
        flat = np.zeros(self.geometry.padded_length, self.filters.dtype)
        convolution.synthesise(self.layout, indices, values.astype(flat.dtype, copy=False), flat)
        return flat

    def synthesise_dense(self, codes: NDArray) -> NDArray:
        """D z for dense codes (n_filters, *grid)."""
        flat = np.zeros(self.geometry.padded_length, self.filters.dtype)
        values = np.ascontiguousarray(codes, flat.dtype).reshape(-1)
        convolution.synthesise_dense(self.layout, values, flat)
        return self.geometry.gather(flat)

    def correlate(self, signal: NDArray, indices: NDArray | None = None) -> NDArray:
        """Dᵀ of a signal (channels, *space): (n_filters, *grid), or one value for each of `indices`."""
        flat = self.geometry.spread(np.ascontiguousarray(signal, self.filters.dtype))
        return self.correlate_padded(flat, indices)

    def correlate_padded(self, flat: NDArray, indices: NDArray | None = None) -> NDArray:
        """Compute Dᵀ of a flat padded signal, as `correlate` does for an unpadded one."""
        if indices is not None:
            out = np.empty(len(indices), flat.dtype)
            convolution.correlate(self.layout, indices, flat, out)
            return out
        rows = len(self.layout.row_bases)
        padded_filters = len(self.layout.blocks) // len(self.layout.taps)
        out = np.empty(padded_filters * self.geometry.n_positions, flat.dtype)
        convolution.correlate_dense(self.layout, flat, 0, rows, out)
        return out[: self.n_codes].reshape(len(self.filters), *self.geometry.grid)


def synthesise(
    codes: SparseCodes, filters: NDArray, shapes: Sequence[tuple[int, ...]], channels: int, boundary: str
) -> list[NDArray]:
    """Signals (channels, *space) of sparse codes, one for each of the spatial `shapes`."""
    filters = filters.astype(np.result_type(filters, codes.dtype), copy=False)
    operators: dict[tuple[int, ...], ConvolutionOperator] = {}
    signals = []
    for index, value, shape in zip(codes.indices, codes.values, shapes, strict=True):
        if shape not in operators:
            geometry = Geometry(shape, filters.shape[2:], channels, boundary)
            operators[shape] = ConvolutionOperator(filters, geometry)
        signals.append(operators[shape].synthesise(index, value))
    return signals


def signal_shape(grid: tuple[int, ...], filter_size: tuple[int, ...], boundary: str) -> tuple[int, ...]:
    """The signal's shape that a grid of codes belongs to."""
    if boundary not in BOUNDARIES:
        raise ValueError(f"boundary must be one of {', '.join(BOUNDARIES)}, got {boundary!r}")
    change = {"valid": 1, "same": 0, "full": -1, "circular": 0}[boundary]
    return tuple(g + change * (f - 1) for g, f in zip(grid, filter_size, strict=True))
