"""Dual points that are moved a little, by multiples of filters, until hardly any of some codes violates |Dᵀθ| ≤ λ.

At the optimum the condition of every non-zero code holds with equality, and sweeps come near to that slowly where codes
overlap. A bound needs no equality. From a residual that is nearly optimal, projections onto the conditions that it violates,
one after the other, lead to a point that violates none within a few sweeps, and cost about as much of the bound as was
violated on average, where shrinking costs as much as was violated at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.parallel import Mapper
from pointillist.problem import Geometry
from pointillist.solvers.dual import Goal, Move, Moved
from pointillist.solvers.sweeping import Ground

_SWEEPS = (4, 6, 8)
"""Sweeps over all codes, then over those around what still violated, then once more."""
_FURTHER = 1.5
"""Sweeps over some of the codes take so many times what a projection would: these few are stubborn."""
_USUAL = 4.0
"""The gap of a projected point over the mean violation."""
_ROOM = 0.5
"""Violations that cost at most this share of what the gap is below the tolerance are left to the scale of the whole."""


@dataclass(frozen=True, eq=False)
class Projector:
    """Moves dual points of one signal."""

    ground: Ground
    mapper: Mapper

    def project(self, goal: Goal, point: NDArray, codes: NDArray) -> Moved:
        """Move a point until few of the codes violate, as long as the goal can be reached from there."""
        geometry, violation = self.ground.problem.geometry, 0.0
        codes = codes[np.argsort(codes % geometry.n_positions, kind="stable")]
        for turn, times in enumerate(_SWEEPS if len(codes) else ()):
            point, left = self._swept(point, codes, times, _FURTHER if turn else 1.0)
            violation = float(np.max(left, initial=0))
            hot = left > _ROOM * goal.room(point)
            if goal.gap(point) > goal.tol or not hot.any():
                break
            codes = codes[_around(geometry, codes[hot])[codes % geometry.n_positions]]
        return Moved(point, violation)

    def _swept(self, point: NDArray, codes: NDArray, times: int, factor: float) -> tuple[NDArray, NDArray]:
        """Sweep some times; returns the point then, and by how much each code violated when it was last met."""
        problem, dtype = self.ground.problem, self.ground.problem.filters.dtype
        working = self.ground.codes(codes, np.zeros(len(codes), dtype))
        working = working._replace(curvatures=working.curvatures / dtype.type(factor))
        stage = self.ground.stage(codes, problem.geometry.spread(point.astype(dtype)))
        self.ground.project(stage, working, times, self.mapper)
        left = np.abs(working.values) * working.curvatures / working.penalties
        # Wherever rounding has led to is a point as good as any.
        return self.ground.inside(stage).astype(np.float64), left

    def correction(self, goal: Goal, support: NDArray) -> Move:
        """What moves points towards where no code violates.

        The codes that violate give way, one a position, and those of the support around them.
        """
        geometry = self.ground.problem.geometry

        def move(point: NDArray, ratios: NDArray, winner: NDArray) -> Moved:
            positions = np.flatnonzero(ratios > 1 + goal.rounding + _ROOM * goal.room(point))
            violating = winner[positions].astype(np.int64) * geometry.n_positions + positions
            near = support[_around(geometry, violating)[support % geometry.n_positions]]
            return self.project(goal, point, np.union1d(violating, near))

        return move


def expected_gap(ratios: NDArray, codes: NDArray) -> float:
    """About the gap that a point will have when it is projected, from its largest ratio at each position.

    It is twice to seven times the sum of the violations for each code, as a rule.
    """
    return _USUAL * float(np.sum(np.maximum(ratios - 1, 0), dtype=np.float64)) / max(len(codes), 1)


def _around(geometry: Geometry, codes: NDArray) -> NDArray:
    """Which positions, flat, have filters that may overlap with some codes."""
    found = np.zeros(geometry.grid, np.uint8)
    found.reshape(-1)[codes % geometry.n_positions] = 1
    mode = "wrap" if geometry.boundary == "circular" else "constant"
    for axis, side in enumerate(geometry.filter):
        found = maximum_filter1d(found, 2 * side - 1, axis, mode=mode)
    return found.reshape(-1) > 0
