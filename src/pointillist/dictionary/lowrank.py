"""The update of filters of low rank over channels: a step of the shapes, then one of the patterns, filter by filter.

Filter k is U V with orthonormal columns in U (channels, rank), so that ‖U V‖ = ‖V‖. Both steps are projected gradient steps
with a Lipschitz constant of their own: the surrogate never rises. Zero mean and support act on the rows of V, and the
second step keeps them, since its filters stay in the span of these rows.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.factors import factorise, orthonormal

_FLAT = 1e-10
"""A filter whose patterns the surrogate does not bend by more than this, relative to its shapes, keeps its patterns."""

Factors = tuple[NDArray, NDArray]
"""Patterns (n_filters, channels, rank) and shapes (n_filters, rank, n_taps) of all filters, in float64."""


class Slopes(Protocol):
    """Derivatives of the surrogate ½ dᵀCd − Bᵀd by the factors of one filter, G being (C d)_k − B_k."""

    def of_shapes(self, factors: Factors, k: int) -> NDArray:
        """Uᵀ G, of shape (rank, n_taps)."""

    def of_patterns(self, factors: Factors, k: int, rows: NDArray) -> tuple[NDArray, float]:
        """G Wᵀ, of shape (channels, rank), for orthonormal rows W, and the largest eigenvalue of W C_kk Wᵀ."""


def sweep_factors(
    slopes: Slopes, lipschitz: NDArray, filters: NDArray, constraints: FilterConstraints, rank: int
) -> NDArray:
    """One pass over all filters (n_filters, channels, *size); those whose Lipschitz constant is zero stay as they are."""
    size, moved = filters.shape[2:], filters.copy()
    patterns, shapes = factorise(filters.reshape(*filters.shape[:2], -1).astype(np.float64), rank)
    of_shapes = replace(constraints, rank=None)
    for k in np.flatnonzero(lipschitz > 0).tolist():
        step = shapes[k] - slopes.of_shapes((patterns, shapes), k) / lipschitz[k]
        shapes[k] = of_shapes.project(step.reshape(rank, *size), k).reshape(rank, -1)
        scales, rows = _row_basis(shapes[k])
        slope, curvature = slopes.of_patterns((patterns, shapes), k, rows)
        if curvature > _FLAT * lipschitz[k]:
            columns = _in_ball(patterns[k] @ scales - slope / curvature, constraints.nonnegative)
            patterns[k], scales = orthonormal(columns)
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


def _in_ball(columns: NDArray, nonnegative: bool) -> NDArray:
    """The nearest columns in the unit ball, and perhaps without negative entries."""
    inside = np.maximum(columns, 0) if nonnegative else columns
    return inside / max(1.0, float(np.linalg.norm(inside)))
