"""A dual point that is shrunk where the residual violates, and nowhere else.

Any θ with |D_jᵀθ| ≤ λ_j for all codes bounds the optimum from below. The residual divided by its largest ratio |D_jᵀr| / λ_j
is such a point, but a single bad position shrinks all of it. Feasibility is local: each sample is divided by the largest
ratio of the positions whose filters reach it. What the next scan still finds above one is shrunk globally, so that the
bound holds whatever was done before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.model.geometry import Geometry
from pointillist.model.problem import Problem, inner, relative_gap
from pointillist.solvers.base import Mapper
from pointillist.solvers.scanning import DescentState

ALLOWED = 0.5
"""Violations of a local dual point up to this share of the tolerance are not shrunk one by one."""
_FURTHER, SHRINKS = 4.0, 2
"""A point is shrunk a second time when the gap then is so many times the tolerance at most, and no more often."""
_SCREENED = 0.6
"""Scan scattered positions instead of all when less than this share of them is left: they take 1.5 times as long each."""


@dataclass(frozen=True, eq=False)
class Worth:
    """Tells what dual points (channels, *space) are worth as bounds for signal i of a problem."""

    problem: Problem
    i: int
    signal: NDArray

    def gap(self, objective: float, point: NDArray, ratio: float) -> float:
        """The relative gap of codes with an objective, from a point whose ratios |Dᵀθ| / λ are at most `ratio`."""
        weights, seen = self.problem.weights_of(self.i), point
        if weights is not None:
            seen = np.divide(point, weights, out=np.zeros_like(point), where=weights > 0)
        loss, energy = 0.5 * inner(point, seen), inner(point, self.signal)
        return relative_gap(objective, loss, energy, ratio, self.problem.constant_of(self.i))


def local_gap(
    state: DescentState, worth: Worth, objective: float, point: NDArray, ratios: NDArray, tol: float, mapper: Mapper
) -> float:
    """The gap of a point that is shrunk where it violates, as far as that is worth a scan.

    `ratios` are upper bounds of the point's, flat. Violations below a share of the tolerance are left to the scale of the
    whole, and only such positions are scanned that the change can have brought above them.
    """
    geometry, gap = state.problem.geometry, np.inf
    winner, flat = np.empty(len(ratios), np.int32), geometry.spread(point.astype(ratios.dtype))
    allowed = ratios.dtype.type(1 + ALLOWED * tol)
    for _ in range(SHRINKS):
        point, before = shrunk(geometry, point, ratios / allowed), flat
        flat = geometry.spread(point.astype(ratios.dtype))
        positions = None
        if state.can_screen:
            ratios = ratios + state.rises(geometry, flat - before).ravel()
            positions = np.flatnonzero(ratios > allowed)
        if positions is not None and are_few(positions, ratios):
            state.scan_positions(flat, positions, ratios, winner, mapper)
            ratios[positions] += ratios.dtype.type(state.rounding(geometry, flat))
        else:
            state.scan(flat, ratios, winner, mapper)
            ratios += ratios.dtype.type(state.rounding(geometry, flat))
        last, gap = gap, min(gap, worth.gap(objective, point, float(np.max(ratios))))
        if gap <= tol or gap > _FURTHER * tol or not gap < 0.7 * last:
            break
    return gap


def are_few(positions: NDArray, every: NDArray) -> bool:
    """Whether some positions are scanned faster by themselves than with all others."""
    return len(positions) < _SCREENED * len(every)


def shrunk(geometry: Geometry, residual: NDArray, ratios: NDArray) -> NDArray:
    """Divide every sample of a residual (channels, *space) by the largest ratio around it, where that exceeds one.

    `ratios` has an upper bound of |Dᵀr| / λ for each grid position, flat.
    """
    found = ratios.reshape(geometry.grid)
    if geometry.boundary == "circular":
        around = _largest(found, geometry.filter, mode="wrap")
        around = np.roll(around, [-o for o in geometry.offset], range(found.ndim))
    else:
        around = np.zeros(geometry.padded, found.dtype)
        around[tuple(slice(n) for n in geometry.grid)] = found
        around = _largest(around, geometry.filter, mode="constant")
        around = around[tuple(slice(o, o + n) for o, n in zip(geometry.offset, geometry.signal, strict=True))]
    return residual / np.maximum(around, 1)


def _largest(values: NDArray, sides: tuple[int, ...], *, mode: str) -> NDArray:
    """The largest value in a box that ends at each place."""
    for axis, side in enumerate(sides):
        values = maximum_filter1d(values, side, axis, mode=mode, origin=(side - 1) // 2)
    return values
