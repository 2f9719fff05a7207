"""The default solver: a working set of codes and coordinate descent on the residual, with a certificate as stopping rule.

The codes are so sparse that most of the work is finding them. Each round scans the correlations of the residual with every
(sampled) filter position, takes the violators of |Dᵀr| ≤ λ into the working set, and descends on it until little moves: one
inner product and, if a code moves, one addition of a filter, with the best step in the span of the last moves after each
sweep. The scan also yields the duality gap, evaluated in float64 but for the correlations, whose rounding is bounded. When
few codes violate, the next rounds look for violators among those that nearly did. Far from the optimum, rounds are for
larger penalties first.

`solve_by_rounds` decides who is done, how far to descend and what the answers are worth, for many signals at once, on the
host (`HostWorkingSet`) and on devices alike. `sweeping` has the sweeps, `scanning` the scans.

`DualBound` certifies. Any θ with |D_jᵀθ| ≤ λ_j for all codes bounds the optimum from below. The residual divided by its
largest ratio |D_jᵀr| / λ_j is such a point, but a single bad position shrinks all of it. Feasibility is local: from a
residual that is nearly optimal, projections onto the conditions that it violates, one after the other, lead to a point that
violates hardly any within a few sweeps. They cost about as much of the bound as was violated on average, where shrinking
costs as much as was violated at most. What a scan of the moved point still finds above one is shrunk globally, so that the
bound holds whatever was done before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.codes import SparseCodes
from pointillist.kernels.scan import merge
from pointillist.kernels.sweep import Effort
from pointillist.parallel import Mapper, SharedMap, one_blas_thread, parallel
from pointillist.problem import Certificate, Geometry, Problem, certificate, inner, relative_gap, worst_ratio
from pointillist.reprs import shown
from pointillist.solvers.base import Result, check_numbers, merge_results, rescaled_number, result_of
from pointillist.solvers.one_dimensional import can_follow, solve_following
from pointillist.solvers.scanning import DescentState, NearViolators
from pointillist.solvers.sweeping import SweepContext
from pointillist.validation import is_integer


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the rounds; what they are worth is measured by `benchmarks.ablation`."""

    stalled_rounds: int = 5
    """Rounds without a smaller objective after which a signal is given up: rounding is all that is left."""
    settled_rounds: int = 8
    """Rounds after which descents go further, in inverse proportion to their number: codes that are left hang together."""
    raised: float = 2.5
    """First rounds are for penalties so large that the largest correlation is so many times as large, at most, …"""
    falling: float = 0.6
    """… and for this part of those of the last round (1.14 to 1.9 where penalties are small)."""
    guess: float = 0.25
    """Tolerance from which on a few codes do, and no round is for larger penalties."""
    loose: float = 0.02
    """Tolerance above which the plain dual point is enough: it says how much effort to make, not how good the answer is."""
    negligible: float = 0.07
    """Codes smaller than this share of their penalty are dropped at the end of a solve with a ridge."""
    passes: int = 3
    """Passes over the working set, at most, in a round that looked at near violators only."""
    smooth: int = 2
    """Plain sweeps at the end of such a round, which smooth the residual."""
    new_codes: float = 4.0
    """A round takes up so many times as many codes of large filters as there are, at most (1.1 to 1.3 at 51×51)."""
    thread_products: int = 2**23
    """Products of a scan from which on threads share the work on a signal: a tenth of a millisecond, time after time."""
    thread_products_with_ridge: int = 2**26
    """Products with a ridge: every round scans all codes, and does little else."""
    screened: int = 2**11
    """Products of a position from which on those are scanned alone that may violate: 1.1 to 1.3 where filters are many or
    large, 0.8 for 32 of 5×5."""
    near_violation: float = 0.4
    """Largest violation of the last scan for which near violators are kept."""
    allowed: float = 0.5
    """Violations of a moved dual point up to this share of the tolerance are left to the scale of the whole."""
    projections: int = 4
    """Projections of a dual point onto each of the conditions that it violates, and those around (1.07 to 2.6)."""
    usual: float = 4.0
    """The gap of a projected point over the mean violation; it is two to seven."""
    hopeful: float = 1.6
    """A point is moved when the gap that is expected of it is so many tolerances at most."""


TUNING = Tuning()


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent:
    """Solver by coordinate descent on a working set of codes, the default.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach. The true excess is usually a hundred times smaller.
    max_iter : int
        Rounds (scan, then descent) at most.
    min_iter : int
        Rounds at least, even if the gap is small enough before: that of no codes at all may be, for a rough tolerance.
    cells : tuple of int
        Side of the cells that take one new code each, for the first rounds; the last entry serves all later ones. Coarse
        cells spread the first codes out instead of crowding them around the strongest edges.
    inner : float
        Descent in a round stops when no code moves more than this share of the largest violation, and goes further in late
        rounds. Signals of one dimension with few filters have their own cells and share, but with a ridge
        (`one_dimensional`).
    max_sweeps, extra : int
        Passes over the working set in a round at most, each followed by up to `extra` over the non-zeros. Between two scans
        of all codes rounds have three passes at most, up to twice as many extra ones, and plain ones at the end.
    ridge : float
        Solve with ½ ridge z² added, for `max_iter` rounds: codes that share what they explain with their neighbours. Filters
        learned from such codes are better on new signals; the reported objective and gap stay those of the problem
        without it, so a tolerance is not to be expected: it is a habit of learning, no elastic net.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> solver = pt.solvers.CoordinateDescent(tol=1e-6)
    >>> pt.encode(np.eye(1, 30, 9), [[0.6, 0.8]], penalty=0.1, solver=solver).status.value
    'converged'
    """

    takes_start: ClassVar[bool] = True

    tol: float = 1e-3
    max_iter: int = 200
    min_iter: int = 0
    cells: tuple[int, ...] = (1,)
    inner: float = 0.5
    max_sweeps: int = 20
    extra: int = 6
    ridge: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)
        whole = isinstance(self.cells, tuple | list) and all(map(is_integer, self.cells))
        if not whole or not self.cells or min(self.cells) < 1:
            raise ValueError(f"cells must be a tuple of positive integers, got {shown(self.cells)}")

    def rescaled(self, power: int) -> Self:
        """These settings for w ‖d‖² divided by 2 to the `power`."""
        return self if self.ridge == 0 else replace(self, ridge=rescaled_number(self.ridge, power))

    def prepare(self, problem: Problem) -> DescentState:
        """Lay out what all signals of the problem share."""
        return DescentState(problem)

    def solve(
        self, state: DescentState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space), from zero or from `start`.

        Several signals are solved side by side; threads share a single large one.
        """
        if can_follow(state.problem):
            found, is_crowded = solve_following(state.problem, self, signals, start, n_jobs)
            if not is_crowded:
                return found
            start = found.codes

        def one(i: int, mapper: Mapper = map) -> Result:
            begin = None if start is None else (start.indices[i], start.values[i])
            return solve_by_rounds(HostWorkingSet(self, state, i, signals[i], begin, mapper), self)

        least = TUNING.thread_products_with_ridge if self.ridge > 0 else TUNING.thread_products
        if len(signals) >= n_jobs or n_jobs == 1 or state.scan_size < least:
            results = parallel(one, range(len(signals)), n_jobs)
        else:
            with one_blas_thread():
                results = [one(i, SharedMap(n_jobs)) for i in range(len(signals))]
        return merge_results(results, list(zip(range(len(signals)))))


class RoundReport(NamedTuple):
    """Certificates and largest ratios of some signals, float64 arrays with an entry for each of them."""

    objective: NDArray
    gap: NDArray  # relative to the objective, with all rounding counted in
    ratio: NDArray  # max |Dᵀr| / λ, up to rounding


def solve_by_rounds(
    sets: Any, settings: CoordinateDescent, is_open: Callable[[RoundReport], NDArray] | None = None
) -> Result:
    """Descend until no signal is open any more, or only such that stall or have had all their rounds.

    `sets` has the working sets of several signals of one problem, with the methods of `HostWorkingSet`; `active` lists the
    signals that a call is about, and what is given or returned for them has an entry for each. Signals are open while their
    gap exceeds the tolerance. With another rule `is_open` the gap is of no interest, and is not evaluated again at the end.

    Where the largest correlation is many times the penalty, a round is for a penalty that is raised to a part of it: codes
    that are many and hang together for the penalty itself are found step by step, each with few sweeps. A round descends to
    a share of what its worst violator asks for: a working set that lacks codes which violate much is not worth many sweeps.
    """
    count, ridged, tuning = sets.n_signals, settings.ridge > 0, TUNING
    objective, gap, iterations = np.empty(count), np.empty(count), np.empty(count, int)
    lowest, tightest, stalled = np.full(count, np.inf), np.full(count, np.inf), np.zeros(count, int)
    raised = np.full(count, np.inf if sets.raises and not ridged and settings.tol < tuning.guess else 1.0)
    active, short = np.arange(count), np.zeros(count, bool)
    for rounds in numbers():
        found = sets.look(active, last=rounds == settings.max_iter)
        objective[active], gap[active], iterations[active] = found.objective, found.gap, rounds
        is_close = ~(found.gap > settings.tol if is_open is None else is_open(found))
        # A certificate may be rough: the last round is always for the penalties themselves.
        is_raised = np.isfinite(raised[active]) & (raised[active] > 1)
        short[active] = ~is_close | is_raised | (rounds < settings.min_iter)
        if not ridged:  # with a ridge another objective falls
            # Near the optimum the gap still falls when the objective has no digits left to fall.
            better = (found.objective < lowest[active] * (1 - 1e-10)) | (found.gap < 0.9 * tightest[active])
            stalled[active] = np.where(better, 0, stalled[active] + 1)
            lowest[active] = np.minimum(lowest[active], found.objective)
            tightest[active] = np.fmin(tightest[active], found.gap)
        going = short[active] & (stalled[active] <= tuning.stalled_rounds) & (rounds < settings.max_iter)
        active, ratio, is_close = active[going], found.ratio[going], is_close[going]
        if len(active) == 0:
            break
        # Penalties come down in time for the last round that there is.
        most = np.where(is_close, 1.0, tuning.falling ** -min(settings.max_iter - 1 - rounds, 64))
        raised[active] = np.clip(np.minimum(ratio / tuning.raised, tuning.falling * raised[active]), 1.0, most)
        violation = np.maximum(ratio / raised[active] - 1, 0.0)
        if ridged:  # rounds are counted: a violation counts as one penalty at most
            violation = np.minimum(violation, 1.0)
        share = settings.inner * min(1.0, tuning.settled_rounds / max(rounds, 1))
        targets = raised[active] * np.maximum(share * violation, 4 * sets.epsilon) * sets.problem.smallest_penalty
        smallest = tuning.negligible if ridged and rounds + 1 == settings.max_iter else None
        sets.descend(active, settings.cells[min(rounds, len(settings.cells) - 1)], targets, raised[active], smallest)
    indices, values = sets.collect()
    for i in np.flatnonzero(short).tolist() if not ridged and is_open is None else ():
        # Perhaps only the bound on rounding stood in the way.
        exact = sets.recheck(i, indices[i], values[i])
        if exact is not None:
            # The bound of the optimum stands; the objective that it was told beside may have been rounded.
            bound = objective[i] * (1 - gap[i])
            objective[i], gap[i] = exact.objective, np.fmin(np.maximum(0.0, 1 - bound / exact.objective), exact.gap)
    return result_of(sets.problem, indices, values, objective, gap, iterations, sets.residuals(), settings.tol)


class HostWorkingSet:
    """The codes of signal i while they are solved for on the CPU: what `solve_by_rounds` asks for one signal.

    `ratio` is the largest |Dᵀr| / λ that the last look found, `rounding` a bound on its rounding so far. `known` are upper
    bounds of the ratios of all positions and the flat padded residual that they hold for, where there are some before the
    first look. Where nothing `certifies`, gaps are right but plain: dual points stay where they are, no near violators are
    kept, and no round is for a larger penalty.

    Attributes
    ----------
    epsilon : float
        The relative rounding error of the numbers that are descended on.
    raises : bool
        The first rounds may be for larger penalties: not where codes are given to start from.
    """

    n_signals = 1

    def __init__(
        self,
        settings: CoordinateDescent,
        state: DescentState,
        i: int,
        signal: NDArray,
        begin: tuple[NDArray, NDArray] | None,
        mapper: Mapper,
        *,
        certifies: bool = True,
        known: tuple[NDArray, NDArray] | None = None,
    ) -> None:
        self.settings, self.state, self.i, self.signal, self.mapper = settings, state, i, signal, mapper
        self.problem, self.geometry, self.weights = state.problem, state.problem.geometry, state.problem.weights_of(i)
        self.epsilon = float(np.finfo(signal.dtype).eps)
        self.certifies = certifies and settings.ridge == 0 and settings.tol <= TUNING.loose
        self.raises = certifies and begin is None
        self.codes, self.values = np.empty(0, np.int64), np.empty(0, signal.dtype)
        if begin is not None:  # from those that the sample and the sign allow, in the order of their positions
            codes, values = begin
            kept = values > 0 if self.problem.nonnegative else values != 0
            if self.problem.sample is not None:
                kept &= np.isin(codes, self.problem.sample)
            kept = np.flatnonzero(kept)
            kept = kept[np.argsort(codes[kept] % self.geometry.n_positions, kind="stable")]
            self.codes, self.values = codes[kept], values[kept].astype(signal.dtype)
        self.exact: NDArray = signal  # w (x − Dz) in float64; `residual` is padded, in the signal's precision
        self.residual: NDArray = signal
        n_positions = self.geometry.n_positions
        self.best = np.zeros(n_positions, signal.dtype)  # ratio of the last scan of a position
        self.winner = np.zeros(n_positions, np.int32)  # and its filter
        self.slack = np.zeros(n_positions, signal.dtype)  # how much the ratio can have risen since
        self.scanned: NDArray | None = None  # residual of the last scan
        self.ratio, self.rounding = np.inf, 0.0
        self.screens = state.can_screen and (not certifies or self.problem.filters.size >= TUNING.screened)
        if known is not None and self.screens:
            self.best[:], self.scanned = known
        self.seen = self.best, self.winner  # where violators are taken from
        self.near: NearViolators | None = None
        self.sweeps = SweepContext(self.problem, i, mapper)
        self.bound = DualBound(state, i, signal, settings.tol, self.sweeps)

    def look(self, active: NDArray, *, last: bool) -> RoundReport:
        """Compute the residual from the codes, scan it, and certify the codes; `last` says that nothing is done about them.

        Near violators may be all that is looked at, as long as the objective falls and no certificate is in sight. With a
        ridge nobody waits for a gap; that of the last look is a bound without a scan.
        """
        fit, bound = self.problem.operator.synthesise(self.codes, self.values, dtype=np.float64), self.bound
        difference = np.subtract(self.signal, fit, out=fit)
        self.exact = difference if self.weights is None else self.weights * difference
        self.residual = self.geometry.spread(self.exact.astype(self.values.dtype))
        objective = 0.5 * inner(self.exact, difference) + self.problem.price(self.codes, self.values)
        falls, bound.objective = objective < bound.objective * (1 - 1e-9), objective
        gap = np.inf
        if self.settings.ridge > 0 and not last:
            self.state.scan(self.residual, self.best, self.winner, self.mapper)
            self.ratio, self.scanned = float(np.max(self.best)), self.residual.copy()
        elif self.settings.ridge > 0:
            rises = self.state.rises(self.geometry, self.residual - self.scanned)
            self.ratio = float(np.max(self.best + rises))
            gap = bound.gap(self.exact, self.ratio + self.state.rounding(self.geometry, self.residual))
        elif self.near is None or not falls or last:
            gap = self._certified_gap(self.exact, self.residual)
        else:
            self.ratio = self.near.look(self.residual)
            self.seen = self.near.best, self.near.winner
            point = self._promising_point(self.near)
            if point is not None:
                gap = self._certified_gap(point, self.geometry.spread(point.astype(self.values.dtype)))
        return RoundReport(*np.array([[objective + bound.constant], [bound.least(gap)], [self.ratio]]))

    def _promising_point(self, near: NearViolators) -> NDArray | None:
        """A dual point that certifies the codes as far as the near violators tell, if there is one nearby."""
        bound = self.bound
        if bound.gap(self.exact, self.ratio) <= bound.tol:
            return self.exact
        if bound.expected(near.best, self.codes) > TUNING.hopeful:
            return None
        point, violation = bound.project(self.exact, near.above(1 - 0.3 * (self.ratio - 1)))
        return point if bound.gap(point, 1 + violation) <= bound.tol else None

    def _certified_gap(self, point: NDArray, flat: NDArray) -> float:
        """Scan a dual point, given flat and padded too, and find its gap; violators are taken from what it finds."""
        expected, near, bound = self.ratio, self.near, self.bound
        rounding = self._scan(flat)
        ratios = self.best + self.slack
        self.ratio, self.seen = float(np.max(ratios)), (self.best, self.winner)
        gap = bound.gap(point, self.ratio + rounding)
        if self.certifies and gap > bound.tol and bound.expected(ratios, self.codes) <= TUNING.hopeful:
            ratios += ratios.dtype.type(rounding)
            gap = min(gap, bound.tightened(point, ratios, self.winner, rounding, self.codes, self.mapper))
        if self.certifies and gap > bound.tol >= bound.gap(point, self.ratio):  # only rounding stands in the way
            correlations = self.problem.exact_operator.correlate(point, self.problem.sample)
            gap = min(gap, bound.gap(point, worst_ratio(self.problem, correlations)))
        if near is not None and self.ratio - 1 > 1.5 * (expected - 1):
            self.near = None  # others violate by now
        if near is not None and point is not self.exact:  # it was not the residual that was scanned
            is_nearer = near.best > self.best
            self.seen = np.maximum(near.best, self.best), np.where(is_nearer, near.winner, self.winner)
            self.ratio = max(self.ratio, expected)
        return gap

    def _scan(self, flat: NDArray) -> float:
        """Bring `best` up to date for a flat padded point; returns a bound of its rounding.

        Where the ratio of the last scan plus all that it can have risen since stays below one, no code can violate, so
        nothing there needs to be known: a safe rule. `slack` counts these changes.
        """
        state, rounding = self.state, self.state.rounding(self.geometry, flat)
        self.rounding, stale = max(self.rounding, rounding), None
        if self.scanned is not None and self.screens:
            self.slack += state.rises(self.geometry, flat - self.scanned)
            stale = np.flatnonzero(self.best + self.slack > 1 - 2 * self.rounding)
        self.scanned = flat.copy()
        if self.certifies and self.near is None and state.can_list and self.ratio - 1 <= TUNING.near_violation:
            self.near = state.scan_for_near(flat, self.ratio - 1, self.best, self.winner, self.mapper)
            self.slack[:] = 0
        else:
            self.slack[state.scan(flat, self.best, self.winner, self.mapper, stale)] = 0
        return rounding

    def descend(
        self, active: NDArray, cell: int, targets: NDArray, raised: NDArray, smallest: float | None = None
    ) -> None:
        """Take the best violator of every cell of positions in, and sweep until no code moves more than the target.

        Penalties are multiplied with what is `raised`. Codes that end at zero are dropped, and those that are smaller than
        a share `smallest` of their penalty. Of large filters, which take long to visit, only the worst violators are taken
        where they are many beside the codes so far.
        """
        settings, factor, (best, winner) = self.settings, float(raised[0]), self.seen
        positions = np.arange(len(best)) if cell == 1 else _best_of_cells(best, self.geometry.grid, cell)
        positions = positions[best[positions] > best.dtype.type(factor * (1 + 4 * self.epsilon))]
        if self.state.transforms is not None and settings.ridge == 0:
            most = int(max(TUNING.new_codes * len(self.codes), len(best) / 8, 1))
            if len(positions) > most:
                positions = np.sort(positions[np.argsort(-best[positions], kind="stable")[:most]])
        n_positions = self.geometry.n_positions
        fresh = winner[positions].astype(np.int64) * n_positions + positions
        self.codes, self.values = merge(self.codes, self.values, fresh, n_positions, self.problem.n_filters)
        effort = Effort(float(targets[0]), settings.extra, settings.max_sweeps)
        if self.near is not None:
            # Looking for violators takes little, and few are missing: what is left are slow swings.
            expected = self.bound.expected(best, self.codes)
            passes = max(1, round(min(expected, TUNING.passes)))
            effort = Effort(effort.target, 2 * effort.extra, min(effort.max_sweeps, passes), plain=TUNING.smooth)
        self.sweeps.sweep(self.codes, self.values, self.residual, effort, factor, settings.ridge)
        kept = self.values != 0
        if smallest is not None:
            kept = np.abs(self.values) >= smallest * self.problem.penalty_at(self.codes)
        self.codes, self.values = self.codes[kept], self.values[kept]

    def collect(self) -> tuple[list[NDArray], list[NDArray]]:
        """Ascending flat indices of the non-zero codes of every signal, and their values."""
        order = np.argsort(self.codes)
        return [self.codes[order]], [self.values[order]]

    def recheck(self, i: int, indices: NDArray, values: NDArray) -> Certificate | None:
        """Evaluate the codes of signal i in float64 throughout; None where that is not worth its time."""
        found = certificate(self.problem, self.i, self.signal, indices, values)
        self.exact = found.residual
        return found

    def residuals(self) -> list[NDArray]:
        """w (x − Dz) of every signal, (channels, *space)."""
        return [self.exact.astype(self.values.dtype, copy=False)]


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

    def least(self, gap: float) -> float:
        """The smallest gap that is known of, with one that was just found."""
        total = self.objective + self.constant
        self.lowest = max(self.lowest, total * (1 - gap))
        return max(0.0, 1 - self.lowest / total) if total > 0 else 0.0

    def expected(self, ratios: NDArray, codes: NDArray) -> float:
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
        state, geometry = self.state, self.state.problem.geometry
        room = max(self.tol - self.gap(point, 1 + rounding), 0.05 * self.tol)  # for ratios above one, about
        positions = np.flatnonzero(ratios > 1 + rounding + 0.5 * room)
        violating = winner[positions].astype(np.int64) * geometry.n_positions + positions
        near = codes[_around(geometry, violating)[codes % geometry.n_positions]]
        moved, violation = self.project(point, np.union1d(violating, near))
        if self.gap(moved, 1 + rounding + violation) > self.tol:
            return np.inf
        flat, before = (geometry.spread(one.astype(ratios.dtype)) for one in (moved, point))
        ratios, winner = ratios + state.rises(geometry, flat - before), winner.copy()
        positions = np.flatnonzero(ratios > 1 + TUNING.allowed * self.tol)
        scanned = state.scan(flat, ratios, winner, mapper, positions)
        ratios[scanned] += ratios.dtype.type(state.rounding(geometry, flat))
        return self.gap(moved, float(np.max(ratios)))

    def project(self, point: NDArray, codes: NDArray) -> tuple[NDArray, float]:
        """Move a point until few of the codes violate; returns it, and by how much its ratios exceed one at least."""
        if len(codes) == 0:
            return point, 0.0
        codes = codes[np.argsort(codes % self.state.problem.geometry.n_positions, kind="stable")]
        moved, left = self.sweeps.project(codes, point, TUNING.projections)
        return moved, float(np.max(left))


def _around(geometry: Geometry, codes: NDArray) -> NDArray:
    """True for the positions, flat, whose filters may overlap with some codes."""
    found = np.zeros(geometry.grid, np.uint8)
    found.reshape(-1)[codes % geometry.n_positions] = 1
    mode = "wrap" if geometry.boundary == "circular" else "constant"
    for axis, side in enumerate(geometry.filter):
        found = maximum_filter1d(found, 2 * side - 1, axis, mode=mode)
    return found.reshape(-1) > 0


def _best_of_cells(best: NDArray, grid: tuple[int, ...], cell: int) -> NDArray:
    """The position with the largest of some positive ratios in each cell, ascending."""
    sides, ndim = [-(-n // cell) for n in grid], len(grid)
    room = np.zeros([cell * side for side in sides], best.dtype)
    room[tuple(map(slice, grid))] = best.reshape(grid)
    axes = [*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]
    blocks = room.reshape([n for side in sides for n in (side, cell)]).transpose(axes).reshape(-1, cell**ndim)
    within = np.unravel_index(np.argmax(blocks, axis=1), (cell,) * ndim)
    corners = np.unravel_index(np.arange(len(blocks)), sides)
    places = [np.minimum(cell * c + w, n - 1) for c, w, n in zip(corners, within, grid, strict=True)]
    return np.sort(np.ravel_multi_index(places, grid))
