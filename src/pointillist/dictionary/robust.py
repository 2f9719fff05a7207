"""Windows of signals whose errors are outliers: how signals are cut, judged, and taken without such windows.

Nothing here keeps a record or knows of steps: that is the learners' part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import to_host
from pointillist.dictionary.statistics import CodedBatch
from pointillist.problem import ConvolutionOperator, Geometry
from pointillist.reprs import shown
from pointillist.validation import check_arguments, is_number


@dataclass(frozen=True)
class Robust:
    """Windows that count nothing in a step of learning, because their error is an outlier.

    After the codes of a step are solved for, every window gets its error: its part of the objective, ½ Σ w (x − Dz)² of its
    samples plus Σ λ|z| of the codes whose centre lies in it, for each sample that was seen. Samples of windows above a limit
    weigh nothing in the statistics of this step; the next step judges anew. What is left out is left out exactly: the
    samples have weight zero, and codes whose filters touch nothing else, which say nothing about the filters, do not enter
    the statistics. The objective, the usage and the non-zeros of a step are of what counts, and unused filters are
    replaced by patches of it.

    `BatchCSC` judges all windows of an iteration together, `OnlineCSC` those of a step beside the latest ones before it.

    Parameters
    ----------
    alpha : float
        The limit is the median of the errors plus `alpha` · 1.4826 · their median absolute deviation; smaller values leave
        out more. Where more than half of the errors are equal nothing is left out.
    fraction : float in (0, 1) or None
        Leave out this share of the windows instead, those with the largest errors; `alpha` then keeps its default.
    window : int, tuple of int or None
        Samples of a window along each axis, about: a signal is cut evenly, and windows overlap by half. Signals shorter than
        one and a half windows are one window. None is four filter lengths in one dimension, two in two and 1.6 in three.
        Most windows should hold some codes: where they do not, whatever happens is an outlier.
    warm_up : int
        Steps at the start in which nothing is left out. Filters that were learned from outliers explain later ones well,
        and these pass: more than a few such steps do harm, above all in `OnlineCSC`. Filters that are rare are found
        without any.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((20, 60))
    >>> signals[3] *= 20
    >>> model = pt.BatchCSC(4, 15, penalty=0.5, robust=pt.Robust(), max_iter=4, random_state=0).fit(signals)
    >>> model.outliers_["signal"], model.history_[-1]["outliers"]
    (array([3]), 1)
    """

    alpha: float = 3.5
    fraction: float | None = None
    window: int | tuple[int, ...] | None = None
    warm_up: int = 0

    def __post_init__(self) -> None:
        check_arguments(alpha=self.alpha, fraction=self.fraction, warm_up=self.warm_up)
        if self.fraction is not None and self.alpha != Robust.alpha:
            raise ValueError("fraction and alpha both say what is left out: give one of them")
        sides = self.window if isinstance(self.window, tuple) else (1 if self.window is None else self.window,)
        if not sides or not all(is_number(side) and isinstance(side, int | np.integer) and side >= 1 for side in sides):
            raise ValueError(
                f"window must be None, a positive integer or a tuple with one for each axis, got {shown(self.window)}"
            )


def error_limit(robust: Robust, errors: NDArray, step: int) -> float:
    """The largest error of a window that counts, by the errors (n,) of many windows; infinity where none is judged."""
    if step < robust.warm_up or not len(errors):
        return float("inf")
    if robust.fraction is not None:
        kept = len(errors) - int(robust.fraction * len(errors))
        return float(np.sort(errors)[kept - 1]) if kept < len(errors) else float("inf")
    middle = float(np.median(errors))
    deviation = float(np.median(np.abs(errors - middle)))
    return middle + float(robust.alpha) * 1.4826 * deviation if deviation > 0 else float("inf")


def cell_counts(robust: Robust, geometry: Geometry) -> tuple[int, ...]:
    """Number of cells, half of a window long each, along every axis of a signal; one where it is one window."""
    ndim = len(geometry.signal)
    sides = robust.window if isinstance(robust.window, tuple) else (robust.window,) * ndim
    if len(sides) != ndim:
        raise ValueError(f"robust has a window of {len(sides)} axes, {robust.window}, the signals have {ndim}")
    cells = []
    for n, side, length in zip(geometry.signal, sides, geometry.filter, strict=True):
        # Four filters side by side fit into a window: less is noisy, more is coarse (benchmarks.robust).
        wanted = round(4 ** (1 / ndim) * length) if side is None else side
        cells.append(1 if 2 * n < 3 * wanted else min(round(2 * n / wanted), n))
    return tuple(cells)


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of one signal with their errors.

    Windows overlap by half: along each axis, one is two cells long, or the whole signal where that is a single cell.

    Attributes
    ----------
    space : tuple of int
        Spatial shape of the signal.
    costs : (cells along each axis) float64 array
        ½ Σ w (x − Dz)² + Σ λ|z| of each cell.
    seen : (cells along each axis) float64 array
        How many samples of each cell were seen.
    """

    space: tuple[int, ...]
    costs: NDArray
    seen: NDArray

    @property
    def errors(self) -> NDArray:
        """(windows along each axis) mean error of the samples of a window that were seen; NaN where none was."""
        costs, seen = _joined(self.costs), _joined(self.seen)
        # Finite, so that what has overflowed can be stored and is an outlier.
        costs = np.minimum(costs, np.finfo(np.float64).max)
        return np.divide(costs, seen, out=np.full(seen.shape, np.nan), where=seen > 0)

    def boxes(self, chosen: NDArray) -> NDArray:
        """First samples of the chosen windows along each axis, and the samples after their last: (count, 2 · axes)."""
        firsts, ends = [], []
        for edge, place in zip(_edges(self.space, self.costs.shape), np.nonzero(chosen), strict=True):
            firsts.append(edge[place])
            ends.append(edge[np.minimum(place + 2, len(edge) - 1)])
        return np.stack([*firsts, *ends], axis=1)

    def outside(self, chosen: NDArray) -> NDArray:
        """(cells along each axis) True for cells that lie in none of the chosen windows; unseen ones count where none is."""
        if not chosen.any():
            return np.ones(self.costs.shape, bool)
        for axis, count in enumerate(self.costs.shape):
            if count > 1:
                sides = [(1, 1) if a == axis else (0, 0) for a in range(chosen.ndim)]
                padded = np.moveaxis(np.pad(chosen, sides), axis, 0)
                chosen = np.moveaxis(padded[:-1] | padded[1:], 0, axis)
        return ~chosen & (self.seen > 0)


def window_errors(batch: CodedBatch, filters: NDArray, penalty: float | NDArray, robust: Robust) -> list[Windows]:
    """The windows of every signal, with the errors of its codes for the filters that they were solved for."""
    codes, windows = batch.codes.on_host(), []
    host = replace(batch, codes=codes)
    for i in range(len(batch)):
        geometry = batch.geometry(filters, i)
        weights = None if batch.weights is None else to_host(batch.weights[i])
        edges = _edges(geometry.signal, cell_counts(robust, geometry))
        loss, seen = _losses(to_host(batch.residuals[i]), weights, edges)
        paid = _paid(geometry, edges, codes.indices[i], host.prices(filters, penalty, i))
        windows.append(Windows(geometry.signal, loss + paid, seen))
    return windows


def without_outliers(
    batch: CodedBatch, filters: NDArray, counted: Sequence[NDArray], support: NDArray | None
) -> CodedBatch:
    """A batch in which only some cells count.

    Signals of which no cell counts are left out altogether. In the others, samples of cells that do not count have
    weights and residuals of zero, and codes are dropped whose filter touches no sample that counts: the loss of the others
    does not depend on them, but the statistics, which impute what has no weight, would hold their filters back.

    Parameters
    ----------
    batch : CodedBatch
    filters : (n_filters, channels, *size) array
    counted : sequence of (cells along each axis) bool arrays
        Which cells of each signal count.
    support : None or (n_filters, *size) bool array
        The samples that each filter may use.
    """
    members = [i for i, cells in enumerate(counted) if cells.any()]
    some = batch.take(members)
    kept = [counted[i] for i in members]
    if all(cells.all() for cells in kept):
        return some
    codes = some.codes.on_host()
    indices, values = list(codes.indices), list(codes.values)
    residuals = [to_host(residual) for residual in some.residuals]
    ones = {residual.shape: np.ones(residual.shape, residual.dtype) for residual in residuals}  # shared by many
    weights = [ones[one.shape] for one in residuals] if some.weights is None else [to_host(one) for one in some.weights]
    # Ones where a filter may be: correlated with a mask they count the samples under each code.
    boxes = np.ones((len(filters), *filters.shape[2:])) if support is None else support
    boxes = boxes[:, None].astype(filters.dtype)
    for i, cells in enumerate(kept):
        if cells.all():
            continue
        geometry = some.geometry(filters, i)
        mask = cells
        for axis, edge in enumerate(_edges(geometry.signal, cells.shape)):
            mask = np.repeat(mask, np.diff(edge), axis=axis)
        weights[i], residuals[i] = weights[i] * mask, residuals[i] * mask
        operator = ConvolutionOperator(boxes, replace(geometry, channels=1))
        useful = operator.correlate(mask[None], indices[i]) > 0.5
        indices[i], values[i] = indices[i][useful], values[i][useful]
    return replace(some, weights=weights, residuals=residuals, codes=codes.replaced(indices, values))


def _joined(cells: NDArray) -> NDArray:
    """Sums of neighbouring cells, for each window."""
    for axis, count in enumerate(cells.shape):
        if count > 1:
            moved = np.moveaxis(cells, axis, 0)
            cells = np.moveaxis(moved[:-1] + moved[1:], 0, axis)
    return cells


def _edges(space: tuple[int, ...], counts: tuple[int, ...]) -> list[NDArray]:
    return [np.arange(count + 1) * n // count for n, count in zip(space, counts, strict=True)]


def _losses(residual: NDArray, weights: NDArray | None, edges: list[NDArray]) -> tuple[NDArray, NDArray]:
    """½ Σ w (x − Dz)² of each cell, from a residual w (x − Dz), and how many samples of it were seen."""
    squares = residual.astype(np.float64) ** 2
    weights = np.ones_like(squares) if weights is None else weights
    seen = weights > 0
    squares = np.divide(squares, weights, out=np.zeros_like(squares), where=seen)
    return 0.5 * _summed(squares.sum(axis=0), edges), _summed(seen.sum(axis=0, dtype=np.float64), edges)


def _summed(values: NDArray, edges: list[NDArray]) -> NDArray:
    """Sums over the cells of an array (*space)."""
    for axis, edge in enumerate(edges):
        values = np.add.reduceat(values, edge[:-1], axis=axis)
    return values


def _paid(geometry: Geometry, edges: list[NDArray], indices: NDArray, prices: NDArray) -> NDArray:
    """Σ λ|z| of the codes whose centre lies in each cell; a centre beyond the border belongs to the nearest."""
    corners = np.unravel_index(indices % geometry.n_positions, geometry.grid)
    shape = tuple(len(edge) - 1 for edge in edges)
    places = []
    for axis, (corner, edge) in enumerate(zip(corners, edges, strict=True)):
        centre = corner + (geometry.filter[axis] - 1) // 2 - geometry.offset[axis]
        places.append(np.searchsorted(edge, np.clip(centre, 0, geometry.signal[axis] - 1), side="right") - 1)
    flat = np.ravel_multi_index(tuple(places), shape)
    return np.bincount(flat, prices, minlength=prod(shape)).reshape(shape)
