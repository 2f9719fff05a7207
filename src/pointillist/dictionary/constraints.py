"""The set that filters live in: the unit ball, and optionally a support, zero mean, non-negative samples or a low rank."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.factors import check_rank, nearest_of_rank


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
