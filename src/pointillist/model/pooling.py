"""Features of fixed length from codes on grids of any shape: how much each filter is used in each region of a signal."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.model.arguments import check_arguments, is_integer, shown


def regions_along(regions: Any, ndim: int) -> tuple[int, ...]:
    """The number of regions along each of `ndim` axes, checked."""
    several = tuple(regions) if isinstance(regions, Sequence) and not isinstance(regions, str | bytes) else None
    counts = (regions,) * ndim if several is None else several
    whole = [is_integer(n) and int(n) > 0 for n in counts]
    if len(counts) != ndim or not all(whole):
        raise ValueError(
            f"regions must be a positive integer, or one for each of the {ndim} axes of the signals, got {shown(regions)}"
        )
    return tuple(int(n) for n in counts)


def pooled(
    indices: Sequence[NDArray],
    values: Sequence[NDArray],
    grids: Sequence[tuple[int, ...]],
    n_filters: int,
    *,
    how: str,
    regions: Any,
    signs: bool,
    dtype: np.dtype,
) -> NDArray:
    """Pool codes of several signals; see `SparseCodes.pool`. Returns an array (n_signals, n_filters · regions [· 2])."""
    check_arguments(how=how, signs=signs)
    ndim = len(grids[0]) if grids else 1
    parts = regions_along(regions, ndim)
    for grid in grids:
        if len(grid) != ndim:
            raise ValueError(f"pool needs signals of one number of axes, got {ndim} and {len(grid)}")
        if any(n > samples for n, samples in zip(parts, grid, strict=True)):
            raise ValueError(f"regions={shown(regions)} are more than there are positions, on a grid of shape {grid}")
    kinds = n_filters * (1 + bool(signs))
    out = np.zeros((len(indices), kinds * prod(parts)), dtype)
    for row, index, value, grid in zip(out, indices, values, grids, strict=True):
        kind, where = np.divmod(index, prod(grid))
        if signs:
            kind = 2 * kind + (value < 0)
        place = kind * prod(parts) + _region(where, grid, parts)
        row[:] = _reduced(place, np.abs(value), len(row), how)
        if how == "mean":
            row /= np.tile(_sizes(grid, parts), kinds)
    return out


def _region(where: NDArray, grid: tuple[int, ...], parts: tuple[int, ...]) -> NDArray:
    """The region that each flat position lies in: along an axis, position p of n lies in region p · parts // n."""
    number = np.zeros(len(where), np.int64)
    for position, samples, n in zip(np.unravel_index(where, grid), grid, parts, strict=True):
        number = number * n + position * n // samples
    return number


def _sizes(grid: tuple[int, ...], parts: tuple[int, ...]) -> NDArray:
    """Positions in every region, flat."""
    sizes = np.ones(1)
    for samples, n in zip(grid, parts, strict=True):
        along = np.bincount(np.arange(samples) * n // samples, minlength=n)
        sizes = np.outer(sizes, along).ravel()
    return sizes


def _reduced(place: NDArray, size: NDArray, length: int, how: str) -> NDArray:
    """One number for each of `length` places from the sizes of the codes there, in float64."""
    if how == "count":
        return np.bincount(place[size > 0], minlength=length).astype(np.float64)
    if how == "max":
        largest = np.zeros(length)
        np.maximum.at(largest, place, size)
        return largest
    return np.bincount(place, size.astype(np.float64), minlength=length)
