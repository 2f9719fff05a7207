"""Lower bounds of the optimum from dual points that are moved where the residual violates, and nowhere else.

Any θ with |D_jᵀθ| ≤ λ_j for all codes bounds the optimum from below. The residual divided by its largest ratio |D_jᵀr| / λ_j
is such a point, but a single bad position shrinks all of it. Feasibility is local: from a residual that is nearly optimal,
projections onto the conditions that it violates, one after the other, lead to a point that violates hardly any within a few
sweeps. They cost about as much of the bound as was violated on average, where shrinking costs as much as was violated at
most. What a scan of the moved point still finds above one is shrunk globally, so that the bound holds whatever was done
before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.parallel import Mapper
from pointillist.problem import Geometry, inner, relative_gap
from pointillist.solvers.scanning import DescentState, are_few
from pointillist.solvers.sweeping import SweepContext


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that decide when a dual point is moved, and how far (1.07 to 2.6 together, `benchmarks.ablation`)."""

    allowed: float = 0.5
    """Violations of a moved point up to this share of the tolerance are left to the scale of the whole."""
    sweeps: tuple[int, ...] = (4, 6, 8)
    """Projections onto all violated conditions, then onto those around what still violates, then once more."""
    usual: float = 4.0
    """The gap of a projected point over the mean violation; it is two to seven."""
    hopeful: float = 1.6
    """A point is moved when the gap that is expected of it is so many tolerances at most."""
    again: float = 4.0
    """A point is moved a second time when its gap is so many tolerances at most."""


TUNING = Tuning()


class DualBound:
    """Bounds of the optimum of signal i from its dual points (channels, *space), for a gap of `tol`.

    `objective` is that of the codes now, without the problem's constant; gaps are relative to the whole of it.
    """

    def __init__(self, state: DescentState, i: int, signal: NDArray, tol: float, sweeps: SweepContext) -> None:
        self.state, self.signal, self.tol, self.sweeps = state, signal, tol, sweeps
        self.weights, self.constant = state.problem.weights_of(i), state.problem.constant_of(i)
        self.objective, self.lowest = np.inf, -np.inf

    def gap(self, point: NDArray, ratio: float) -> float:
        """The gap of a point whose ratios |Dᵀθ| / λ are at most `ratio`."""
        seen = point
        if self.weights is not None:
            seen = np.divide(point, self.weights, out=np.zeros_like(point), where=self.weights > 0)
        loss, energy = 0.5 * inner(point, seen), inner(point, self.signal)
        return relative_gap(self.objective, loss, energy, ratio, self.constant)

    def told(self, gap: float = np.inf) -> float:
        """The smallest gap that is known of, with one that was just found."""
        total = self.objective + self.constant
        if gap < np.inf:
            self.lowest = max(self.lowest, total * (1 - gap))
            return gap
        return max(0.0, 1 - self.lowest / total) if total > 0 else 0.0

    def is_hopeful(self, ratios: NDArray, codes: NDArray) -> bool:
        """True if a point with these largest ratios of all positions is worth moving."""
        return self.expected_tolerances(ratios, codes) <= TUNING.hopeful

    def expected_tolerances(self, ratios: NDArray, codes: NDArray) -> float:
        """About the gap, in tolerances, that a projected point will have, from its largest ratio at each position."""
        violation = float(np.sum(np.maximum(ratios - 1, 0), dtype=np.float64))
        return TUNING.usual * violation / max(len(codes), 1) / max(self.tol, 1e-300)

    def tightened(
        self, point: NDArray, ratios: NDArray, winner: NDArray, rounding: float, codes: NDArray, mapper: Mapper
    ) -> float:
        """The gap of a point that is moved where it violates, as far as that is worth a scan.

        `ratios` are upper bounds of the point's at all positions, `winner` the filters that have them, `rounding` bounds
        their rounding, and `codes` are those that are not zero. The codes that violate give way, one a position, and those
        of `codes` around them. Only such positions are scanned that the change can have brought above what is allowed.
        """
        state, geometry, gap = self.state, self.state.problem.geometry, np.inf
        flat, winner = geometry.spread(point.astype(ratios.dtype)), winner.copy()
        for _ in range(2):
            positions = np.flatnonzero(ratios > 1 + rounding + 0.5 * self._room(point, rounding))
            violating = winner[positions].astype(np.int64) * geometry.n_positions + positions
            near = codes[_around(geometry, violating)[codes % geometry.n_positions]]
            (point, violation), before = self.project(point, np.union1d(violating, near), rounding), flat
            if self.gap(point, 1 + rounding + violation) > self.tol:
                break
            flat = geometry.spread(point.astype(ratios.dtype))
            slack = ratios.dtype.type(state.rounding(geometry, flat))
            ratios = ratios + state.rises(geometry, flat - before).ravel()
            positions = np.flatnonzero(ratios > 1 + TUNING.allowed * self.tol)
            if state.can_screen and are_few(positions, ratios):
                state.scan_positions(flat, positions, ratios, winner, mapper)
                ratios[positions] += slack
            else:
                state.scan(flat, ratios, winner, mapper)
                ratios += slack
            gap = min(gap, self.gap(point, float(np.max(ratios))))
            if gap <= self.tol or gap > TUNING.again * self.tol:
                break
        return gap

    def project(self, point: NDArray, codes: NDArray, rounding: float = 0.0) -> tuple[NDArray, float]:
        """Move a point until few of the codes violate, as long as the gap can be reached from there.

        Returns the point, and by how much its ratios exceed one at least.
        """
        geometry, violation = self.state.problem.geometry, 0.0
        codes = codes[np.argsort(codes % geometry.n_positions, kind="stable")]
        for times in TUNING.sweeps if len(codes) else ():
            point, left = self.sweeps.project(codes, point, times)
            violation = float(np.max(left, initial=0))
            hot = left > 0.5 * self._room(point, rounding)
            if self.gap(point, 1 + rounding) > self.tol or not hot.any():
                break
            codes = codes[_around(geometry, codes[hot])[codes % geometry.n_positions]]
        return point, violation

    def _room(self, point: NDArray, rounding: float) -> float:
        """Excess of the ratios of a point over one that is allowed, about: a little where its gap is too large anyway."""
        return max(self.tol - self.gap(point, 1 + rounding), 0.05 * self.tol)


def _around(geometry: Geometry, codes: NDArray) -> NDArray:
    """Which positions, flat, have filters that may overlap with some codes."""
    found = np.zeros(geometry.grid, np.uint8)
    found.reshape(-1)[codes % geometry.n_positions] = 1
    mode = "wrap" if geometry.boundary == "circular" else "constant"
    for axis, side in enumerate(geometry.filter):
        found = maximum_filter1d(found, 2 * side - 1, axis, mode=mode)
    return found.reshape(-1) > 0


def shrunk(geometry: Geometry, residual: NDArray, ratios: NDArray) -> NDArray:
    """Divide every sample of a residual (channels, *space) by the largest ratio around it, where that exceeds one.

    `ratios` has an upper bound of |Dᵀr| / λ for each grid position, flat; the boundary is not circular.
    """
    around = np.zeros(geometry.padded, ratios.dtype)
    around[tuple(slice(n) for n in geometry.grid)] = ratios.reshape(geometry.grid)
    for axis, side in enumerate(geometry.filter):  # the largest in a box that ends at each place
        around = maximum_filter1d(around, side, axis, mode="constant", origin=(side - 1) // 2)
    inside = tuple(slice(o, o + n) for o, n in zip(geometry.offset, geometry.signal, strict=True))
    return residual / np.maximum(around[inside], 1)
