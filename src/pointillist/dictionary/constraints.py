"""Sizes of filters, and the set they live in: the unit ball, perhaps a support, zero mean, no negative samples, a low rank.

In a dictionary of several sizes each filter has its own support inside the box of the largest. The centre of a filter of
size s is sample (s − 1) // 2; supports are placed so that all centres coincide, and a code's position means the same for
every size.

A filter of a rank is a sum of channel patterns times shapes, U V with orthonormal columns in U (channels, rank), so that
‖U V‖ = ‖V‖. Its update makes a step of the shapes V, then one of the patterns U. Both are projected gradient steps with a
Lipschitz constant of their own: the surrogate never rises. Zero mean and support act on the rows of V, and the second step
keeps them, since its filters stay in the span of these rows. Full filters are what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.validation import as_filters, check_arguments, is_integer


@dataclass(frozen=True, eq=False)
class FilterConstraints:
    """Constraints on each filter, besides ‖d‖₂ ≤ 1.

    Parameters
    ----------
    zero_mean : bool
        Each channel of a filter sums to zero over its support.
    nonnegative : bool
        All samples are ≥ 0; excludes `zero_mean`.
    support : None or (n_filters, *size) bool array
        Where each filter may be non-zero, for filters of several sizes.
    rank : None or int
        The largest rank of a filter as a matrix (channels, samples); None is any.
    """

    zero_mean: bool = False
    nonnegative: bool = False
    support: NDArray | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.zero_mean and self.nonnegative:
            raise ValueError("zero_mean and nonnegative filters exclude each other: only zero satisfies both")
        if self.nonnegative and self.rank is not None and self.rank > 1:
            raise ValueError(
                f"nonnegative filters of rank={self.rank} cannot be learned: give rank=1, or leave one of them out"
            )

    def check_shape(self, channels: int, size: tuple[int, ...]) -> None:
        """Refuse a rank that filters of this shape, or the smallest of several sizes, cannot have."""
        if self.rank is not None:
            count = 1 if self.support is None else len(self.support)
            check_rank(self.rank, channels, int(self.flat_support(count, prod(size)).sum(axis=1).min()))

    def flat_support(self, n_filters: int, n_taps: int) -> NDArray:
        """(n_filters, n_taps) of bool: where each filter may be non-zero."""
        return np.ones((n_filters, n_taps), bool) if self.support is None else self.support.reshape(n_filters, n_taps)

    def project(self, filter_: NDArray, k: int) -> NDArray:
        """The nearest feasible filter to one (channels, *size); exact, for the sets are nested subspaces or cones."""
        inside = self._inside(filter_, k)
        norm = float(np.linalg.norm(inside))
        return inside / norm if norm > 1 else inside

    def unit(self, filter_: NDArray, k: int) -> NDArray:
        """A feasible filter of unit norm; one that the constraints annihilate stays zero."""
        inside = self._inside(filter_, k)
        norm = float(np.linalg.norm(inside))
        return inside / norm if norm > 0 else inside

    def normalise(self, filters: NDArray) -> NDArray:
        """Make every filter feasible and of unit norm, as `unit` does."""
        return np.stack([self.unit(one, k) for k, one in enumerate(filters)])

    def _inside(self, filter_: NDArray, k: int) -> NDArray:
        axes = tuple(range(1, filter_.ndim))
        if self.support is not None:
            filter_ = np.where(self.support[k], filter_, 0)
        if self.zero_mean:
            count = filter_[0].size if self.support is None else np.count_nonzero(self.support[k])
            centred = filter_ - filter_.sum(axis=axes, keepdims=True) / count
            filter_ = centred if self.support is None else np.where(self.support[k], centred, 0)
        filter_ = np.maximum(filter_, 0) if self.nonnegative else filter_
        if self.rank is None:
            return filter_
        # What is nearest to non-negative samples has none below zero, and keeps support and mean, but for its rounding.
        nearest = nearest_of_rank(filter_, self.rank)
        nearest = nearest if self.support is None else np.where(self.support[k], nearest, 0)
        return np.maximum(nearest, 0) if self.nonnegative else nearest


@dataclass(frozen=True, eq=False)
class FilterShapes:
    """Sizes of the filters of a dictionary.

    Attributes
    ----------
    sizes : list of tuple of int
        Spatial size of each filter, in order.
    box : tuple of int
        The largest size along each axis.
    """

    sizes: list[tuple[int, ...]]
    box: tuple[int, ...]

    def support(self) -> NDArray | None:
        """(n_filters, *box) of bool, or None when all filters fill the box."""
        if set(self.sizes) == {self.box}:
            return None
        support = np.zeros((len(self.sizes), *self.box), bool)
        for one, size in zip(support, self.sizes, strict=True):
            corner = [(b - 1) // 2 - (s - 1) // 2 for b, s in zip(self.box, size, strict=True)]
            one[tuple(slice(c, c + s) for c, s in zip(corner, size, strict=True))] = True
        return support


def filter_shapes(n_filters: Any, filter_size: Any, ndim: int) -> FilterShapes:
    """Read the parameters `n_filters` and `filter_size` of a learner.

    `filter_size` is an integer, a tuple with one integer an axis, or a list of these for several sizes; then
    `n_filters` is a list with one count a size, or a number to be shared out evenly.
    """
    sizes: list[tuple[int, ...]] = []
    for size in filter_size if isinstance(filter_size, list) else [filter_size]:
        axes = (size,) * ndim if _is_count(size) else size
        if not isinstance(axes, tuple) or len(axes) != ndim or not all(map(_is_count, axes)):
            raise ValueError(
                f"filter_size must be a positive integer, a tuple of {ndim} of them, or a list of several sizes, "
                f"got {size!r}"
            )
        sizes.append(tuple(map(int, axes)))
    if not sizes:
        raise ValueError("filter_size is an empty list: give at least one size")
    if isinstance(n_filters, list | tuple):
        if len(n_filters) != len(sizes) or not all(map(_is_count, n_filters)):
            raise ValueError(
                f"n_filters must hold one positive integer for each of the {len(sizes)} sizes, got {n_filters!r}"
            )
        counts = np.array(n_filters, int)
    elif not _is_count(n_filters) or n_filters < len(sizes):
        raise ValueError(f"n_filters must be a positive integer, one or more for each size, got {n_filters!r}")
    else:
        counts = (int(n_filters) + np.arange(len(sizes))[::-1]) // len(sizes)  # as equal as can be, the first larger
    every = np.repeat(np.arange(len(sizes)), counts).tolist()
    return FilterShapes([sizes[i] for i in every], tuple(map(max, zip(*sizes, strict=True))))


def _is_count(value: Any) -> bool:
    return is_integer(value) and 1 <= int(value) < 2**31


Factors = tuple[NDArray, NDArray]
"""Patterns (n_filters, channels, rank) and shapes (n_filters, rank, n_taps) of all filters, in float64."""


def split_channels(filters: ArrayLike, rank: int = 1) -> tuple[NDArray, NDArray]:
    """Split filters into channel patterns and shapes: ``filters[k] ≈ Σ_r patterns[k, r] ⊗ shapes[k, r]``.

    No other sum of so many products is nearer to a filter. It is the filter itself, to rounding, where that was learned with
    ``FilterUpdate(rank=rank)``.

    Parameters
    ----------
    filters : (n_filters, channels, *size) array_like
        Filters over channels, of any rank.
    rank : int
        Patterns, and shapes, of each filter; at most the number of channels and of samples in a channel.

    Returns
    -------
    patterns : (n_filters, rank, channels) array
        Of unit norm, and orthogonal within a filter.
    shapes : (n_filters, rank, *size) array
        The largest first; the largest absolute sample of each is positive.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> filters = np.multiply.outer([3.0, -4.0], [0.1, -0.2, 0.1])[None]
    >>> patterns, shapes = pt.split_channels(filters)
    >>> patterns.round(6).tolist(), shapes.round(6).tolist()
    ([[[-0.6, 0.8]]], [[[-0.5, 1.0, -0.5]]])
    """
    given = as_filters(filters, channels=True)
    if rank is None:
        raise ValueError("rank must be a positive integer, got None")
    check_arguments(rank=rank)
    n_filters, channels, *size = given.shape
    matrices = given.reshape(n_filters, channels, -1).astype(np.float64)
    check_rank(rank, channels, matrices.shape[2])
    patterns, shapes = _leading(matrices, rank)
    at = np.argmax(np.abs(shapes), axis=2)[..., None]
    signs = np.where(np.take_along_axis(shapes, at, axis=2) < 0, -1.0, 1.0)
    split = (signs * np.swapaxes(patterns, 1, 2)).astype(given.dtype)
    return split, (signs * shapes).reshape(n_filters, rank, *size).astype(given.dtype)


def check_rank(rank: int, channels: int, samples: int) -> None:
    """Refuse a rank that no filter of so many channels with so many samples each can have."""
    most = min(channels, samples)
    if rank > most:
        raise ValueError(
            f"rank={rank} is more than filters of {channels} channels with {samples} samples can have: give at most {most}"
        )


def nearest_of_rank(filter_: NDArray, rank: int) -> NDArray:
    """The filter of a rank that is nearest to one (channels, *size), by a truncated singular value decomposition."""
    matrix = filter_.reshape(len(filter_), -1).astype(np.float64)
    if rank >= min(matrix.shape):
        return filter_
    patterns, shapes = _leading(matrix, rank)
    return (patterns @ shapes).reshape(filter_.shape)


def factorise(filters: NDArray, rank: int, iterations: int = 1) -> tuple[NDArray, NDArray]:
    """Patterns with orthonormal columns and shapes whose products are filters of a rank, exact for such filters.

    A few products with the filters do it, without a singular value decomposition, and the same filters give the same bits:
    nothing but the filters need be stored.

    Parameters
    ----------
    filters : (n_filters, channels, n_taps) float64 array
    rank : int
    iterations : int
        Subspace iterations. One takes away the rounding errors of filters that were stored in a lower precision; with more
        the products come near to the nearest ones of the rank for any filters.

    Returns
    -------
    patterns : (n_filters, channels, rank) array
    shapes : (n_filters, rank, n_taps) array
    """
    rows = _largest_rows(filters, rank)
    patterns, _ = orthonormal(filters @ np.swapaxes(rows, 1, 2))
    for _ in range(iterations):
        rows, _ = orthonormal(np.swapaxes(filters, 1, 2) @ patterns)
        patterns, _ = orthonormal(filters @ rows)
    return patterns, np.swapaxes(patterns, 1, 2) @ filters


def orthonormal(columns: NDArray) -> tuple[NDArray, NDArray]:
    """QR decomposition of matrices (…, n, rank), with a diagonal of R that is never negative, so that signs are kept."""
    if columns.shape[-1] == 1:
        norms = np.sqrt(np.sum(columns**2, axis=-2, keepdims=True))
        first = np.zeros_like(columns)
        first[..., 0, :] = 1
        return np.where(norms > 0, columns / np.where(norms > 0, norms, 1.0), first), norms
    q, r = np.linalg.qr(columns)
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return q * signs[..., None, :], r * signs[..., :, None]


def likeness(patterns: NDArray, shapes: NDArray, size: tuple[int, ...]) -> NDArray:
    """Squared cosines of all pairs of filters, given by their factors, at the shift that makes them largest."""
    axes, span = tuple(range(2, 2 + len(size))), tuple(2 * s for s in size)
    norms = np.sqrt(np.sum(shapes**2, axis=(1, 2)))
    spectra = np.fft.rfftn(shapes.reshape(*shapes.shape[:2], *size), span, axes)
    cosines = np.empty((len(shapes), len(shapes)))
    for j, (pattern, spectrum) in enumerate(zip(patterns, spectra, strict=True)):
        # As the patterns of j see the others.
        seen = np.einsum("ks...,krs->kr...", np.conj(spectra), pattern.T @ patterns)
        products = np.fft.irfftn(np.sum(spectrum * seen, axis=1), span, tuple(a - 1 for a in axes))
        largest = np.max(np.abs(products).reshape(len(shapes), -1), axis=1)
        cosines[:, j] = largest / np.maximum(norms * norms[j], np.finfo(np.float64).tiny)
    return cosines**2


def _largest_rows(filters: NDArray, rank: int) -> NDArray:
    """Orthonormal rows (n_filters, rank, n_taps): channels of each filter, each time the one with the most energy left."""
    rest, rows = filters.copy(), np.zeros((len(filters), rank, filters.shape[2]))
    for i in range(rank):
        energies = np.einsum("kcm,kcm->kc", rest, rest)
        best = np.argmax(energies, axis=1)
        norms = np.sqrt(energies[np.arange(len(filters)), best])[:, None]
        rows[:, i] = rest[np.arange(len(filters)), best] / np.where(norms > 0, norms, 1.0)
        rest -= (rest @ rows[:, i, :, None]) * rows[:, None, i]
    return rows


def _leading(matrices: NDArray, rank: int) -> tuple[NDArray, NDArray]:
    """The largest singular vectors: (…, channels, rank), and (…, rank, n_taps) times their singular values."""
    left, sizes, right = np.linalg.svd(matrices, full_matrices=False)
    return left[..., :rank], sizes[..., :rank, None] * right[..., :rank, :]


def sweep_factors(
    shape_slope: Callable[[Factors, int], NDArray],
    pattern_slope: Callable[[Factors, int, NDArray], tuple[NDArray, float]],
    lipschitz: NDArray,
    filters: NDArray,
    constraints: FilterConstraints,
    rank: int,
) -> NDArray:
    """One pass over all filters (n_filters, channels, *size).

    Parameters
    ----------
    shape_slope : function of factors and k
        Uᵀ G of filter k, of shape (rank, n_taps), where G = (C d)_k − B_k.
    pattern_slope : function of factors, k and orthonormal rows W
        G Wᵀ, of shape (channels, rank), and the largest eigenvalue of W C_kk Wᵀ.
    lipschitz : (n_filters,) array
        Bounds of the curvatures; filters without any stay as they are.
    filters : (n_filters, channels, *size) array
    constraints : FilterConstraints
    rank : int
    """
    size, moved = filters.shape[2:], filters.copy()
    patterns, shapes = factorise(filters.reshape(*filters.shape[:2], -1).astype(np.float64), rank)
    of_shapes = replace(constraints, rank=None)
    for k in np.flatnonzero(lipschitz > 0).tolist():
        step = shapes[k] - shape_slope((patterns, shapes), k) / lipschitz[k]
        shapes[k] = of_shapes.project(step.reshape(rank, *size), k).reshape(rank, -1)
        scales, rows = _row_basis(shapes[k])
        slope, curvature = pattern_slope((patterns, shapes), k, rows)
        if curvature > 1e-10 * lipschitz[k]:  # else the surrogate does not bend the patterns
            columns = patterns[k] @ scales - slope / curvature
            columns = np.maximum(columns, 0) if constraints.nonnegative else columns
            patterns[k], scales = orthonormal(columns / max(1.0, float(np.linalg.norm(columns))))
            shapes[k] = scales @ rows
        moved[k] = (patterns[k] @ shapes[k]).reshape(filters.shape[1:])
    return moved


def _row_basis(shapes: NDArray) -> Factors:
    """Scales (rank, rank) and orthonormal rows with scales @ rows = shapes; rows that shapes do not span are zero."""
    if len(shapes) == 1:  # without a decomposition, which might change the signs of non-negative shapes
        norm = float(np.linalg.norm(shapes))
        return np.full((1, 1), norm), shapes / norm if norm > 0 else shapes
    left, sizes, _ = np.linalg.svd(shapes, full_matrices=False)
    spanned = sizes > np.finfo(np.float64).eps * shapes.shape[1] * sizes[0]
    sizes = np.where(spanned, sizes, 0.0)
    rows = (left.T @ shapes) * np.where(spanned, 1 / np.where(spanned, sizes, 1.0), 0.0)[:, None]  # keeps zeros exact
    return left * sizes, rows
