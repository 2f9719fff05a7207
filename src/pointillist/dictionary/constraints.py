"""The set that filters live in: the unit ball, and optionally a support, zero mean or non-negative samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    """

    zero_mean: bool = False
    nonnegative: bool = False
    support: NDArray | None = None

    def __post_init__(self) -> None:
        if self.zero_mean and self.nonnegative:
            raise ValueError("zero_mean and nonnegative filters exclude each other: only zero satisfies both")

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
        return np.maximum(filter_, 0) if self.nonnegative else filter_
