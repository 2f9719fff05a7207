"""Sizes of filters, and the set they live in: the unit ball, perhaps a support, zero mean, no negative samples, a low rank.

In a dictionary of several sizes each filter has its own support inside the box of the largest. The centre of a filter of
size s is sample (s − 1) // 2; supports are placed so that all centres coincide, and a code's position means the same for
every size.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.low_rank import check_rank, nearest_of_rank
from pointillist.validation import is_integer


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
            supports = np.ones((1, *size), bool) if self.support is None else self.support
            check_rank(self.rank, channels, int(np.min(np.count_nonzero(supports.reshape(len(supports), -1), axis=1))))

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
