"""Products of neighbouring codes, the sums C of `ToeplitzStatistics`, for several signals of one shape at a time.

C is larger than a processor's caches; what belongs to one filter is not. Going filter by filter through the codes of many
signals, each part of C is fetched once for all of them. Every sum is still added up in the order of the signals, so that
its bits do not depend on how many are taken together.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import statistics
from pointillist.parallel import SharedMap
from pointillist.problem import Geometry

_WORTH_THREADS = 150_000
"""Pairs from which on threads share them: about a millisecond, beside which waking threads is little."""
_TOGETHER = 2**18
"""Positions of signals that are taken together: 26 signals of 100×100 (measured; more gain hardly anything)."""
_CODE = 120
"""Bytes of a code while pairs are added: its filter, place, values and orders, and what these are made from."""

_Layer = tuple[tuple[int, ...], NDArray, NDArray, NDArray, NDArray, NDArray]
"""Grid of a signal, and of its codes the filters, positions in the stack, values, weighted values, whether own."""


def bytes_together(n_positions: int, n_signals: int, density: float) -> int:
    """Bytes that `add_pairs` takes at its peak for signals with so many positions and codes at each of them."""
    positions = min(n_signals, max(1, _TOGETHER // n_positions)) * n_positions
    return 4 * positions + int(density * positions) * _CODE


def add_pairs(
    geometry: Geometry,
    n_filters: int,
    indices: Sequence[NDArray],
    values: Sequence[NDArray],
    weights: Sequence[float],
    out: NDArray,
    n_jobs: int = 1,
) -> None:
    """Add weight · z_i z_j for every pair of codes of a signal closer than a filter.

    Parameters
    ----------
    geometry : Geometry
        Of all signals.
    n_filters : int
    indices, values : sequences of arrays
        Codes of each signal, flat.
    weights : sequence of float
        How much each signal counts.
    out : (n_pairs, shifts) float64 array
        C; `ToeplitzStatistics.pairs` says what is where.
    n_jobs : int
        Threads; the sums do not depend on it.
    """
    count = max(1, _TOGETHER // geometry.n_positions)
    for first in range(0, len(indices), count):
        some = slice(first, first + count)
        layers = list(_layers(geometry, indices[some], values[some], weights[some]))
        _add_layers(geometry, n_filters, layers, out, n_jobs)


def _add_layers(geometry: Geometry, n_filters: int, layers: list[_Layer], out: NDArray, n_jobs: int) -> None:
    """Add the pairs of signals that are stacked like layers of one: codes of two of them never meet."""
    shape = (len(layers), *layers[0][0])
    filters, positions, value, weighted, own = (np.concatenate(some) for some in list(zip(*layers, strict=True))[1:])
    order = np.argsort(positions, kind="stable")
    filters, positions, own = filters[order], positions[order], own[order]
    rows, columns = np.divmod(positions, shape[-1])
    coordinates = np.stack(np.unravel_index(np.arange(prod(shape[:-1])), shape[:-1]), axis=1)
    leading = np.array(list(product([0], *[range(1 - s, s) for s in geometry.filter[:-1]])), np.int64)
    owners = np.argsort(filters, kind="stable")
    owners = owners[own[owners]]
    arrays = (owners, filters, columns, value[order], weighted[order], statistics.first_at(positions, prod(shape)))
    shapes = (rows, coordinates, np.array(shape), np.array((1, *geometry.filter)), leading)

    def work(span: tuple[int, int]) -> None:
        statistics.add_pairs(*arrays, *shapes, *span, out)

    pairs = len(filters) ** 2 * prod(2 * s - 1 for s in geometry.filter) / prod(shape)  # as if codes lay evenly
    threads = n_jobs if pairs >= _WORTH_THREADS else 1
    # Each thread owns filters and so rows of C: the sums are the same for any number of threads.
    parts = 1 if threads == 1 else 2 * threads  # the first have more pairs than the last
    spans = _balanced(np.bincount(filters, minlength=n_filters), parts)
    SharedMap(threads)(work, spans)


def _layers(
    geometry: Geometry, indices: Sequence[NDArray], values: Sequence[NDArray], weights: Sequence[float]
) -> Iterator[_Layer]:
    """Make the layer of each signal."""
    for number, (index, value, weight) in enumerate(zip(indices, values, weights, strict=True)):
        filters, positions = np.divmod(index, geometry.n_positions)
        value = value.astype(np.float64)
        shape, own = geometry.grid, np.ones(len(filters), bool)
        if geometry.boundary == "circular":
            shape, sources, positions = _on_circle(positions, shape, geometry.filter)
            filters, value, own = filters[sources], value[sources], np.arange(len(sources)) < len(filters)
        yield shape, filters, positions + number * prod(shape), value, weight * value, own


def _on_circle(
    positions: NDArray, grid: tuple[int, ...], size: tuple[int, ...]
) -> tuple[tuple[int, ...], NDArray, NDArray]:
    """Codes on a circular grid, followed by copies beyond the border of those that codes at the other end meet there.

    Returns the widened grid, for every code the number of its original (the originals come first) and its position.
    """
    wide = tuple(g + 2 * (s - 1) for g, s in zip(grid, size, strict=True))
    places = np.stack(np.unravel_index(positions, grid)) + np.array(size)[:, None] - 1
    sources = np.arange(len(positions))
    for axis, (g, s) in enumerate(zip(grid, size, strict=True)):
        low, high = places[axis] < 2 * (s - 1), places[axis] >= g
        step = np.zeros((len(grid), 1), places.dtype)
        step[axis] = g
        places = np.concatenate([places, places[:, low] + step, places[:, high] - step], axis=1)
        sources = np.concatenate([sources, sources[low], sources[high]])
    return wide, sources, np.ravel_multi_index(tuple(places), wide)


def _balanced(counts: NDArray, parts: int) -> list[tuple[int, int]]:
    """Ranges of filters with about equally many codes."""
    work = np.cumsum(counts)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts).tolist()
    bounds = [0, *cuts, len(counts)]
    return [(first, last) for first, last in pairwise(bounds) if first < last]
