"""Filters of several sizes in one dictionary: each has its own support inside the box of the largest.

The centre of a filter of size s is sample (s − 1) // 2; supports are placed so that all centres coincide, and a code's
position means the same for every size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.validation import is_integer


@dataclass(frozen=True, eq=False)
class FilterShapes:
    """How many filters of which sizes a dictionary has.

    Attributes
    ----------
    sizes : list of tuple of int
        Spatial size of each filter, in order.
    box : tuple of int
        The largest size along each axis.
    """

    sizes: list[tuple[int, ...]]

    @property
    def box(self) -> tuple[int, ...]:
        return tuple(max(axis) for axis in zip(*self.sizes, strict=True))

    def support(self) -> NDArray | None:
        """(n_filters, *box) of bool, or None when all filters fill the box."""
        box = self.box
        if all(size == box for size in self.sizes):
            return None
        support = np.zeros((len(self.sizes), *box), bool)
        for one, size in zip(support, self.sizes, strict=True):
            corner = [(b - 1) // 2 - (s - 1) // 2 for b, s in zip(box, size, strict=True)]
            one[tuple(slice(c, c + s) for c, s in zip(corner, size, strict=True))] = True
        return support


def filter_shapes(n_filters: Any, filter_size: Any, ndim: int) -> FilterShapes:
    """Read the parameters `n_filters` and `filter_size` of a learner.

    `filter_size` is an integer, a tuple with one integer an axis, or a list of these for several sizes; then
    `n_filters` is a list with one count a size, or a number to be shared out evenly.
    """
    several = isinstance(filter_size, list)
    sizes = [_one_size(size, ndim) for size in (filter_size if several else [filter_size])]
    if not sizes:
        raise ValueError("filter_size is an empty list: give at least one size")
    counts = _counts(n_filters, len(sizes))
    return FilterShapes([size for size, count in zip(sizes, counts, strict=True) for _ in range(count)])


def _counts(n_filters: Any, n_sizes: int) -> Sequence[int]:
    if isinstance(n_filters, (list, tuple)):
        if len(n_filters) != n_sizes or any(not _is_count(count) for count in n_filters):
            raise ValueError(
                f"n_filters must hold one positive integer for each of the {n_sizes} sizes, got {n_filters!r}"
            )
        return [int(count) for count in n_filters]
    if not _is_count(n_filters) or n_filters < n_sizes:
        raise ValueError(f"n_filters must be a positive integer, one or more for each size, got {n_filters!r}")
    return [int(n_filters) // n_sizes + (i < int(n_filters) % n_sizes) for i in range(n_sizes)]


def _is_count(value: Any) -> bool:
    return is_integer(value) and 1 <= int(value) < 2**31


def _one_size(size: Any, ndim: int) -> tuple[int, ...]:
    axes = (size,) * ndim if _is_count(size) else size
    if not isinstance(axes, tuple) or len(axes) != ndim or not all(_is_count(s) for s in axes):
        raise ValueError(
            f"filter_size must be a positive integer, a tuple of {ndim} of them, or a list of several sizes, got {size!r}"
        )
    return tuple(int(s) for s in axes)
