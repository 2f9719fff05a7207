"""Dual points that are moved where the residual violates, and nowhere else.

Any θ with |D_jᵀθ| ≤ λ_j for all codes bounds the optimum from below. The residual divided by its largest ratio |D_jᵀr| / λ_j
is such a point, but a single bad position shrinks all of it. Feasibility is local: each sample can be divided by the largest
ratio of the positions whose filters reach it, or multiples of filters can be subtracted (see `projecting`). What the next
scan still finds above one is shrunk globally, so that the bound holds whatever was done before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.parallel import Mapper
from pointillist.problem import Geometry, Problem, inner, relative_gap
from pointillist.solvers.scanning import DescentState

ALLOWED = 0.5
"""Violations of a local dual point up to this share of the tolerance are not shrunk one by one."""
_FURTHER, _MOVES = 4.0, 2
"""A point is moved a second time when the gap then is so many times the tolerance at most, and no more often."""
_LEAST_ROOM = 0.05
"""Share of the tolerance that violations may take at least: less takes many projections."""
_SCREENED = 0.6
"""Scan scattered positions instead of all when less than this share of them is left: they take 1.3 times as long each."""


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


@dataclass(frozen=True, eq=False)
class Goal:
    """A gap up to `tol` for codes with an objective, from points whose ratios are known up to a rounding."""

    worth: Worth
    objective: float
    tol: float
    rounding: float

    def gap(self, point: NDArray, violation: float = 0.0) -> float:
        """The gap of a point whose ratios exceed one by at most `violation`."""
        return self.worth.gap(self.objective, point, 1 + self.rounding + violation)

    def room(self, point: NDArray) -> float:
        """How much the ratios of a point may exceed one, about: a little where its gap is too large anyway."""
        return max(self.tol - self.gap(point), _LEAST_ROOM * self.tol)


class Moved(NamedTuple):
    """A dual point (channels, *space), and by how much its ratios exceed one at least, as far as is known."""

    point: NDArray
    violation: float = 0.0


Move = Callable[[NDArray, NDArray, NDArray], Moved]
"""Moves a point to where less is violated, given upper bounds of its ratios, flat, and the filters that have them."""


def local_gap(
    state: DescentState, goal: Goal, point: NDArray, ratios: NDArray, winner: NDArray, move: Move, mapper: Mapper
) -> float:
    """The gap of a point that is moved where it violates, as far as that is worth a scan.

    `ratios` are upper bounds of the point's, flat, and `winner` the filters that have them; the latter is overwritten.
    Violations below a share of the tolerance are left to the scale of the whole, and only such positions are scanned that
    the change can have brought above them.
    """
    geometry, gap, tol = state.problem.geometry, np.inf, goal.tol
    flat = geometry.spread(point.astype(ratios.dtype))
    allowed = ratios.dtype.type(1 + ALLOWED * tol)
    for _ in range(_MOVES):
        (point, violation), before = move(point, ratios, winner), flat
        if goal.gap(point, violation) > tol:
            break
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
        last, gap = gap, min(gap, goal.worth.gap(goal.objective, point, float(np.max(ratios))))
        if gap <= tol or gap > _FURTHER * tol or not gap < 0.7 * last:
            break
    return gap


def are_few(positions: NDArray, every: NDArray) -> bool:
    """Whether some positions are scanned faster by themselves than with all others."""
    return len(positions) < _SCREENED * len(every)


def shrink(geometry: Geometry, tol: float) -> Move:
    """What shrinks points where they violate by more than a share of the tolerance."""
    allowed = 1 + ALLOWED * tol
    return lambda point, ratios, _: Moved(shrunk(geometry, point, ratios / ratios.dtype.type(allowed)))


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
