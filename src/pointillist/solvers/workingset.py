"""The codes of one signal while they are solved for on the CPU.

Each look computes the residual and scans it, or what nearly violated in the last scan, and certifies the codes; each descent
sweeps over the codes that are worked on. When to do which is decided in `rounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.descent import merge, pick
from pointillist.kernels.sweeps import Effort
from pointillist.parallel import Mapper
from pointillist.problem import Certificate, certificate, inner, relative_gap
from pointillist.solvers import dual, products
from pointillist.solvers.correlated import Aim, Followed, can_follow, follow, remainder
from pointillist.solvers.nearby import NearCodes, can_note, scan_exactly, scan_noting
from pointillist.solvers.projecting import Projector, expected_gap
from pointillist.solvers.rounds import Look, Schedule
from pointillist.solvers.scanning import DescentState, scan_rounding
from pointillist.solvers.starting import allowed_start
from pointillist.solvers.sweeping import Ground

_CLOSER = 0.25
"""Correlations are followed until violations are below the tolerance, and below this share of that in the next round."""
_FAR = 2.0**17
"""A residual is computed anew from the codes when violations are less than so many times the relative rounding error."""
_NEAR = 12.0
"""A dual point is shrunk locally when the gap is so many times the tolerance."""
_HOPEFUL = 1.6
"""A dual point is projected when the gap that is expected of it is so many times the tolerance at most."""
_CLOSE = 0.3
"""A projected point meets the noted codes that violate, or are closer to that than this share of the largest violation."""
_PASSES = 3
"""Passes over the working set in a round between two scans of all codes. There are fewer where the gap that is expected of a
projected point is fewer tolerances."""
_SMOOTH = 4
"""Plain sweeps at the end of such a round, which smooth the residual."""
_FEW_NEW, _FEW_OF_ALL = 4, 1 / 8
"""A round takes up so many times as many codes of large filters as there are, or as positions: visiting them takes long."""
_VISIBLE = 1e-9
"""Share that an objective has to fall by for violators to be looked for among nearly violating codes alone."""
_MISSED = 1.5
"""Codes are noted anew when a scan of all finds so many times the violation that those noted before had."""
LOOSE = 0.02
"""A larger tolerance says how much effort to make, not how good the answer is: it is judged by the plain dual point."""


@dataclass(frozen=True, kw_only=True)
class DescentSchedule(Schedule):
    """The settings of rounds and of the sweeps in them; see `CoordinateDescent`."""

    max_sweeps: int = 20
    extra: int = 6
    keep_start: bool = False


class HostWorkingSet:
    """The codes of signal i while they are solved for on the CPU: `WorkingSets` of one signal.

    `ratio` is the largest |Dᵀr| / λ that the last look found, `rounding` a bound on its rounding. `known` are upper bounds
    of the ratios of all positions and the flat padded residual that they hold for, where there are some before the first
    look. Violations up to `negligible` are not looked for.
    """

    n_signals = 1

    def __init__(
        self,
        settings: DescentSchedule,
        state: DescentState,
        i: int,
        signal: NDArray,
        begin: tuple[NDArray, NDArray] | None,
        mapper: Mapper,
        *,
        certifies: bool = True,
        known: tuple[NDArray, NDArray] | None = None,
        negligible: float = 0.0,
    ) -> None:
        self.settings, self.state, self.i, self.mapper = settings, state, i, mapper
        self.confirms = certifies and settings.ridge == 0 and not settings.keep_start
        self.certifies = self.confirms and settings.tol <= LOOSE
        self.problem, self.geometry = state.problem, state.problem.geometry
        self.signal = signal
        self.epsilon = float(np.finfo(signal.dtype).eps)
        self.weights = self.problem.weights_of(i)
        # Nobody waits for the gap of a ridge where few codes were drawn.
        self.loose = settings.ridge > 0 and self.problem.drawn is not None
        self.codes = np.empty(0, np.int64)
        self.values = np.empty(0, signal.dtype)
        self.beside = np.empty(0, np.int64)  # codes to consider beside the sample
        self.ratio, self.objective = np.inf, np.inf
        self.rounding = 0.0  # largest bound on the rounding of a ratio so far
        self.exact: NDArray = signal  # w (x − Dz) in float64; `residual` is padded, in the signal's precision
        self.residual: NDArray = signal
        self.left: NDArray | None = None  # what the last descent made of `exact`, up to its rounding
        self.coarse = False  # whether the next scan may be
        self.best = np.zeros(self.geometry.n_positions, signal.dtype)  # ratio of the last scan of a position
        self.winner = np.zeros(self.geometry.n_positions, np.int32)  # and its filter
        self.slack = np.zeros(self.geometry.n_positions, signal.dtype)  # how much the ratio can have risen since
        self.scanned: NDArray | None = None  # residual of the last scan
        self.negligible = negligible if state.can_screen else 0.0
        if known is not None and state.can_screen:
            self.best[:], self.scanned = known
        followable = certifies and settings.ridge == 0 and can_follow(self.problem)
        self.follows = state.followed if followable else None  # the scan of what is followed
        self.eased = certifies and begin is None and self.follows is None
        self.correlations = np.empty((0, 0))  # of the last scan, where they are followed
        self.followed: Followed | None = None  # what following them came to, until the next scan
        self.turns = 0
        self.ground = Ground(self.problem, i, state.field)
        self.projector = Projector(self.ground, mapper)
        self.worth, self.constant = dual.Worth(self.problem, i, signal), self.problem.constant_of(i)
        self.near: NearCodes | None = None  # codes that nearly violated in the last scan of all
        self.bound = -np.inf  # what the objective is at least, as far as is certain
        self.seen = self.best, self.winner  # where violators are taken from
        if begin is not None:
            self.codes, self.values, self.beside = allowed_start(
                self.problem, *begin, signal.dtype, settings.keep_start
            )

    def look(self, active: NDArray, *, last: bool) -> Look:
        """Compute the residual from the codes, scan it (or bound it by the last scan), and certify the codes.

        Codes that nearly violated in the last scan may be all that is looked at, as long as the objective falls and no
        certificate is in sight. With a ridge the last look alone is worth a certificate.
        """
        if self.settings.ridge > 0 and not last:
            return _told(np.inf, np.inf, self._scan_roughly())
        as_left = not last and self.left is not None and self.ratio - 1 > _FAR * self.epsilon
        found = self._look(last=last, as_left=as_left)
        if not as_left or found.gap[0] > self.settings.tol:
            return found
        self.objective = self._remain()[0] + inner(self.problem.penalty_at(self.codes), np.abs(self.values))
        return _bounded(self.objective + self.constant, self.bound, self.ratio)

    def _look(self, *, last: bool, as_left: bool) -> Look:
        """Look at the codes; where the residual is taken `as_left` by the last descent, the objective is rounded."""
        loss, energy, rounding = self._remain(as_left=as_left)
        objective = loss + inner(self.problem.penalty_at(self.codes), np.abs(self.values))
        falls, self.objective, total = objective < self.objective * (1 - _VISIBLE), objective, objective + self.constant
        if self.followed is not None:  # what correlations became may do: they are as good as their scan, nearly
            ratio = self.followed.ratio + self.followed.rounding + self.rounding
            gap = relative_gap(objective, loss, energy, ratio, self.constant)
            if gap <= self.settings.tol:
                return _told(total, gap, self.followed.ratio)
        if last and self.settings.ridge > 0:  # an upper bound without a scan
            rises = self.state.rises(self.geometry, self.residual - self.scanned, rough=self.loose)
            self.ratio = float(np.max(self.best + rises.ravel()))
            gap = relative_gap(objective, loss, energy, self.ratio + rounding, self.constant)
            return _told(total, gap, self.ratio)
        point, flat, exactly = self.exact, self.residual, False
        if self.near is not None and falls and not last:
            self.ratio = self.near.look(flat)
            self.seen = self.near.best, self.near.winner
            promising = self._promising()
            if promising is None:
                return _bounded(total, self.bound, self.ratio)
            point, flat, exactly = promising, self.geometry.spread(promising.astype(self.values.dtype)), True
            rounding = self.state.rounding(self.geometry, flat)
        return _told(total, self._certified_gap(point, flat, rounding, exactly=exactly), self.ratio)

    def _promising(self) -> NDArray | None:
        """A dual point that certifies the codes as far as the noted ones tell, if there is one nearby."""
        assert self.near is not None, "only noted codes can tell"
        goal = dual.Goal(self.worth, self.objective, self.settings.tol, 0.0)
        if goal.gap(self.exact, self.ratio - 1) <= goal.tol:
            return self.exact
        if expected_gap(self.near.best, self.codes) > _HOPEFUL * goal.tol:
            return None
        found = self.projector.project(goal, self.exact, self.near.above(1 - _CLOSE * (self.ratio - 1)))
        return found.point if goal.gap(*found) <= goal.tol else None

    def _scan_roughly(self) -> float:
        """Scan a residual that is computed in the signal's own precision; returns the largest ratio, up to rounding."""
        left = self.problem.operator.synthesise(self.codes, self.values)
        np.subtract(self.signal, left, out=left)
        self.residual = self.geometry.spread(left if self.weights is None else self.weights * left)
        self.state.scan(self.residual, self.best, self.winner, self.mapper)
        if len(self.beside):
            self.state.scan_codes(self.residual, self.beside, self.best, self.winner)
        self.scanned = self.residual.copy()
        return float(np.max(self.best))

    def _certified_gap(self, point: NDArray, flat: NDArray, rounding: float, *, exactly: bool) -> float:
        """Scan a dual point, given flat and padded too, and find its gap; violators are taken from what it finds.

        Rounding counts for nothing where ratios are to be found `exactly`.
        """
        expected, near, tol = self.ratio, self.near, self.settings.tol
        largest = self._scan(flat, rounding, point if exactly else None)
        unsure = self.coarse and self.worth.gap(self.objective, point, largest) > tol
        if unsure and self.worth.gap(self.objective, point, largest - rounding) <= tol:  # a finer scan may tell
            self.coarse, rounding = False, self.state.rounding(self.geometry, flat)
            largest = self._scan(flat, rounding)
        self.ratio = float(np.max(self.best + self.slack))
        goal = dual.Goal(self.worth, self.objective, tol, rounding)
        self.seen = self.best, self.winner
        gap = self.worth.gap(self.objective, point, largest)
        if self.certifies and gap > goal.tol:
            ratios = self.best + self.slack + self.best.dtype.type(rounding)
            if self.follows is not None:  # of few codes, or of many channels
                move = dual.shrink(self.geometry, goal.tol) if gap < _NEAR * goal.tol else None
            else:
                hopeful = expected_gap(self.best + self.slack, self.codes) <= _HOPEFUL * goal.tol
                move = self.projector.correction(goal, self.codes) if hopeful else None
            if move is not None:
                gap = min(gap, dual.local_gap(self.state, goal, point, ratios, self.winner.copy(), move, self.mapper))
        if near is not None and self.ratio - 1 > _MISSED * (expected - 1):
            self.near = None  # others violate by now
        if near is not None and point is not self.exact:  # it was not the residual that was scanned
            self.seen, self.ratio = near.merged(self.best, self.winner), max(self.ratio, expected)
        self.bound = max(self.bound, (self.objective + self.constant) * (1 - gap))
        return gap

    def _remain(self, *, as_left: bool = False) -> tuple[float, float, float]:
        """Compute the residual, or take it `as_left`; returns ½ Σ w (x − Dz)², Σ w x (x − Dz) and its scan's rounding."""
        if self.follows is not None:
            left = remainder(self.problem, self.signal, self.codes, self.values)
            self.exact, self.residual = left.exact, left.rounded
            rounding = scan_rounding(self.problem, self.follows.terms, left.largest, self.residual.dtype)
            return left.loss, left.energy, rounding
        if as_left and self.left is not None:
            difference = self.exact = self.left.astype(np.float64)
        else:
            difference = self.problem.operator.synthesise_exactly(self.codes, self.values)
            np.subtract(self.signal, difference, out=difference)
            self.exact = difference if self.weights is None else self.weights * difference
        self.residual = self.geometry.spread(self.exact.astype(self.values.dtype))
        transforms = self.state.transforms
        self.coarse = transforms is not None and transforms.may_be_coarse(self.residual, self.ratio - 1)
        rounding = self.state.rounding(self.geometry, self.residual, rough=self.loose, coarse=self.coarse)
        return 0.5 * inner(self.exact, difference), inner(self.exact, self.signal), rounding

    def prune(self, active: NDArray, share: float) -> None:
        self._keep(np.abs(self.values) >= share * self.problem.penalty_at(self.codes))

    def _keep(self, kept: NDArray) -> None:
        self.codes, self.values = self.codes[kept], self.values[kept]

    def collect(self) -> tuple[list[NDArray], list[NDArray]]:
        order = np.argsort(self.codes)
        return [self.codes[order]], [self.values[order]]

    def recheck(self, i: int, indices: NDArray, values: NDArray) -> Certificate | None:
        if len(self.beside):  # the certificate knows the sample only
            return None
        found = certificate(self.problem, self.i, self.signal, indices, values)
        self.exact = found.residual
        return found

    def residuals(self) -> list[NDArray]:
        return [self.exact.astype(self.values.dtype, copy=False)]

    def _scan(self, residual: NDArray, rounding: float, point: NDArray | None = None) -> float:
        """Bring `best` up to date and return a bound of the largest ratio; positions that cannot violate are screened out.

        A correlation changes by at most ‖d‖ times the change of the residual in its box. Where the ratio of the last scan
        plus all changes since stays below one, no code can violate, so nothing there needs to be known: a safe rule. The
        bound counts these changes in, and rounding; hardly any of it if the `point` is given that the residual is rounded
        from.
        """
        state = self.state
        self.rounding = max(self.rounding, rounding)
        if self.follows is not None:
            self.rounding = rounding  # of what is followed from here on
            self.best[:] = 0
            self.correlations = self.follows.correlations(residual, state.per_penalty, self.best, self.winner)
            return float(np.max(self.best)) + rounding
        if point is not None:
            self.slack[:], self.scanned = 0, residual.copy()
            return scan_exactly(state, point, residual, rounding, self.best, self.winner, self.mapper)
        stale = None
        if self.scanned is not None and self.state.can_screen:
            self.slack += self.state.rises(self.geometry, residual - self.scanned).ravel()
            stale = np.flatnonzero(self.best + self.slack > 1 + self.negligible - 2 * self.rounding)
        self.scanned = residual.copy()
        if self.certifies and self.near is None and can_note(state, self.ratio - 1):
            found = self.best, self.winner
            self.near = scan_noting(state, residual, self.ratio - 1, *found, self.mapper)
            self.slack[:] = 0
        elif stale is None or not dual.are_few(stale, self.best):
            state.scan(residual, self.best, self.winner, self.mapper, coarse=self.coarse)
            self.slack[:] = 0
        else:
            state.scan_positions(residual, stale, self.best, self.winner, self.mapper)
            self.slack[stale] = 0
        if len(self.beside):
            state.scan_codes(residual, self.beside, self.best, self.winner)
        return float(np.max(self.best + self.slack)) + rounding

    def enlarge(self, active: NDArray, cell: int, floors: NDArray) -> None:
        """Take the best violator of every cell into the working set, in the order of their positions.

        Cells are wider where these would be many beside the codes so far and take long to visit.
        """
        if self.follows is not None:  # violators are looked for between the sweeps
            return
        floor = self.best.dtype.type(max(floors[0], 1 + self.negligible))
        grid = np.array(self.geometry.grid)
        fresh = pick(*self.seen, grid, cell, floor)
        if self.state.transforms is not None and self.settings.ridge == 0:
            few = max(_FEW_NEW * len(self.codes), _FEW_OF_ALL * len(self.best), 1)
            while len(fresh) > few:
                cell += 1
                fresh = pick(*self.seen, grid, cell, floor)
        self.codes, self.values = merge(
            self.codes, self.values, fresh, self.geometry.n_positions, self.problem.n_filters
        )

    def descend(self, active: NDArray, targets: NDArray, raised: NDArray) -> None:
        """Sweep over the working set, tile by tile, until little moves; then drop the codes that ended at zero."""
        self.left = None
        if self.follows is not None:
            self._follow()
            return
        settings, target = self.settings, float(targets[0])
        codes = self.ground.codes(self.codes, self.values, float(raised[0]))
        if products.are_worth(self.geometry, self.problem.n_filters, self.codes % self.geometry.n_positions):
            self.values = products.descend(
                self.state.overlaps, self.problem.filters, self.geometry, self.codes, values=self.values,
                slopes=self.problem.operator.correlate_padded(self.residual, self.codes), curvatures=codes.curvatures,
                penalties=codes.penalties, clean=codes.clean, weights=self.ground.weights, ridge=settings.ridge,
                target=target, nonnegative=self.problem.nonnegative, extra=settings.extra, max_sweeps=settings.max_sweeps,
            )  # fmt: skip
            self._keep(self.values != 0)
            return
        effort = Effort(target, settings.extra, settings.max_sweeps)
        if self.near is not None:
            # Looking for violators takes little, and few are missing: what is left are slow swings.
            passes = max(1, round(min(expected_gap(self.seen[0], self.codes) / settings.tol, _PASSES)))
            effort = Effort(target, 2 * settings.extra, min(settings.max_sweeps, passes), plain=_SMOOTH)
        stage = self.ground.stage(self.codes, self.residual)
        self.ground.sweep(stage, codes, effort, self.mapper, settings.ridge)
        # To add large filters anew takes as long as a scan, and any filters longer than a look at noted codes.
        bundled = self.problem.operator.bundles is not None
        if self.confirms and self.ground.is_binary and (bundled or self.near is not None):
            self.left = self.ground.inside(stage)
        self._keep(self.values != 0)

    def _follow(self) -> None:
        """Descend on all that violates, again and again, on the correlations of the last scan."""
        settings, scan = self.settings, self.follows
        assert scan is not None, "only some scans keep correlations"
        aim = Aim(
            violation=settings.tol * _CLOSER**self.turns,
            smallest=4 * self.epsilon,
            cells=settings.cells[-1:] if self.turns else settings.cells,
            extra=settings.extra,
            max_sweeps=settings.max_sweeps,
        )
        found = follow(scan, self.correlations, self.codes, self.values, self.objective, aim)
        self.codes, self.values = found.codes, found.values
        self.turns += 1
        self.followed = found
        if found.crowded:
            self.follows, self.followed, self.correlations = None, None, np.empty((0, 0))


def _told(objective: float, gap: float, ratio: float) -> Look:
    """What a look at one signal found."""
    return Look(np.array([objective]), np.array([gap]), np.array([ratio]))


def _bounded(objective: float, bound: float, ratio: float) -> Look:
    """What a look tells of an objective that is known to be `bound` at least."""
    return _told(objective, max(0.0, 1 - bound / objective), ratio)
