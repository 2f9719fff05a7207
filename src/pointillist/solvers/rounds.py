"""The rounds of coordinate descent: one algorithm for working sets on the host and on devices.

A round looks at all codes for what violates |Dᵀr| ≤ λ, enlarges the working sets by the best violators and descends on
them. Who is done, how far to descend and what the answers are worth is decided here, for many signals at once; where the
arrays live and how they are worked on is the business of `WorkingSets`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.problem import Certificate, Problem
from pointillist.reprs import shown
from pointillist.solvers.base import Result, check_numbers, judge
from pointillist.validation import is_integer

_STALLED_ROUNDS = 5
"""Rounds without a smaller objective after which a signal is given up: rounding is all that is left."""
_NEGLIGIBLE = 0.07
"""Codes smaller than this share of their penalty are dropped at the end of a solve with a ridge."""


_FIRST = 2
"""Rounds at least that are thorough, however few cells there are."""
_MOST_VIOLATION = 3.0
"""What a violation counts at most in thorough rounds, in penalties."""
_SETTLED_ROUNDS, _SLOW, _LEAST_SHARE = 8, 0.8, 0.1
"""After so many rounds, a violation that is still this part of the one two rounds before is slow; shares end at the last."""


_EASED, _EASING = 2.5, 0.6
"""A round's penalties are at least the largest correlation over the first, but at most this part of the last round's."""
_GUESS = 0.25
"""From this tolerance on a few codes do, and no round is for larger penalties."""


class Look(NamedTuple):
    """Certificates and largest ratios of some signals, float64 arrays with an entry for each of them."""

    objective: NDArray
    gap: NDArray  # relative to the objective, with all rounding counted in
    ratio: NDArray  # max |Dᵀr| / λ, up to rounding


class WorkingSets(Protocol):
    """Signals of one problem with their codes so far. `active` lists the signals that a verb is about."""

    problem: Problem
    n_signals: int
    epsilon: float
    """The relative rounding error of the numbers that are descended on."""
    eased: bool
    """Whether the first rounds may be for larger penalties: not where codes are given to start from."""

    def look(self, active: NDArray, *, last: bool) -> Look:
        """Evaluate the codes and scan for violators; `last` says that nothing will be done about them.

        A gap may be loose as long as it exceeds the tolerance and the look is not the last; with a ridge the last may be.
        """

    def enlarge(self, active: NDArray, cell: int, floors: NDArray) -> None:
        """Take the best code of every cell of positions into the working set if its ratio exceeds the signal's floor."""

    def descend(self, active: NDArray, targets: NDArray, raised: NDArray) -> None:
        """Sweep over the working sets until no code of a signal moves more than the signal's target.

        The penalties of a signal are multiplied with what `raised` has for it.
        """

    def prune(self, active: NDArray, share: float) -> None:
        """Set codes smaller than `share` of their penalty to zero."""

    def collect(self) -> tuple[list[Any], list[Any]]:
        """Ascending flat indices of the non-zero codes of every signal, and their values."""

    def recheck(self, i: int, indices: Any, values: Any) -> Certificate | None:
        """Evaluate the codes of signal i in float64 throughout; None where that is not worth its time."""

    def residuals(self) -> list[Any]:
        """w (x − Dz) of every signal, (channels, *space)."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The settings of the rounds; see `CoordinateDescent`."""

    tol: float = 1e-3
    max_iter: int = 200
    min_iter: int = 0
    cells: tuple[int, ...] = (3, 2, 1)
    inner: float = 0.5
    ridge: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)
        whole = isinstance(self.cells, tuple | list) and all(map(is_integer, self.cells))
        if not whole or not self.cells or min(self.cells) < 1:
            raise ValueError(f"cells must be a tuple of positive integers, got {shown(self.cells)}")

    def rescaled(self, power: int) -> Self:
        """These settings for w ‖d‖² divided by 2 to the `power`."""
        return self if self.ridge == 0 else replace(self, ridge=float(np.ldexp(self.ridge, -power)))


def solve_by_rounds(sets: WorkingSets, schedule: Schedule, is_open: Callable[[Look], NDArray] | None = None) -> Result:
    """Descend until no signal is open any more, or only such that stall or have had all their rounds.

    Signals are open while their gap exceeds the tolerance. With another rule `is_open` the gap is of no interest, and is
    not evaluated again at the end.
    """
    count, ridged = sets.n_signals, schedule.ridge > 0
    still_open = is_open or (lambda found: found.gap > schedule.tol)
    objective, gap, iterations, short = np.empty(count), np.empty(count), np.empty(count, int), np.empty(count, bool)
    active, stalled, rounds = np.arange(count), np.zeros(count, int), 0
    effort = _Effort(schedule, count, sets.eased and not ridged and schedule.tol < _GUESS)
    lowest, tightest = np.full(count, np.inf), np.full(count, np.inf)
    floor = 1 + 4 * sets.epsilon
    while True:
        found = sets.look(active, last=rounds == schedule.max_iter)
        ratio, close = found.ratio, ~still_open(found)
        # A certificate may be rough: the last round is always for the penalties themselves.
        unsettled = ~close | (rounds < schedule.min_iter) | effort.is_raised
        if not ridged:  # with a ridge another objective falls
            # Near the optimum the gap still falls when the objective has no digits left to fall.
            better = (found.objective < lowest * (1 - 1e-10)) | (found.gap < 0.9 * tightest)
            stalled = np.where(better, 0, stalled + 1)
            lowest, tightest = np.minimum(lowest, found.objective), np.fmin(tightest, found.gap)
        going = unsettled & (stalled <= _STALLED_ROUNDS) & (rounds < schedule.max_iter)
        if not going.all():
            ended = active[~going]
            objective[ended], gap[ended] = found.objective[~going], found.gap[~going]
            iterations[ended], short[ended] = rounds, unsettled[~going]
            if len(ended) == len(active):
                break
            active, ratio, close, stalled = active[going], ratio[going], close[going], stalled[going]
            lowest, tightest = lowest[going], tightest[going]
            effort.keep(going)
        raised = effort.ease(ratio, rounds, close)
        sets.enlarge(active, schedule.cells[min(rounds, len(schedule.cells) - 1)], raised * floor)
        sets.descend(active, effort.targets(ratio, rounds, sets.epsilon) * sets.problem.smallest_penalty, raised)
        rounds += 1
        if ridged and rounds == schedule.max_iter:
            sets.prune(active, _NEGLIGIBLE)
    indices, values = sets.collect()
    for i in np.flatnonzero(short).tolist() if not ridged and is_open is None else ():
        # Perhaps only the bound on rounding stood in the way.
        exact = sets.recheck(i, indices[i], values[i])
        if exact is not None:
            # The bound of the optimum stands; the objective that it was told beside may have been rounded.
            found_before = _gap_to(objective[i] * (1 - gap[i]), exact.objective)
            objective[i], gap[i] = exact.objective, np.fmin(found_before, exact.gap)
    statuses = tuple(judge(*one, schedule.tol) for one in zip(gap.tolist(), objective.tolist(), strict=True))
    codes = SparseCodes(indices, values, [sets.problem.geometry.grid] * count, sets.problem.n_filters)
    return Result(codes, objective, gap, statuses, iterations, sets.residuals())


def _gap_to(bound: float, objective: float) -> float:
    """The relative gap of an objective to what is at least the optimum; NaN where there is no such number."""
    return float(np.maximum(0.0, 1 - bound / objective)) if objective > 0 else np.nan


class _Effort:
    """How far each signal is descended on in a round: to a share of what its worst violator asks for.

    A working set that lacks codes which violate much is not worth many sweeps: more codes are. The first rounds, with coarse
    cells, are to spread few codes out and take little time, and those with a ridge are counted: there a violation counts
    as a few penalties at most, with a ridge as one. A signal whose violation hardly shrank in two rounds has codes that
    hang together: more rounds like these would not help it, and it gets half the share from then on.

    Where the largest correlation is many times the penalty, a round is for a penalty that is raised to a part of it: codes
    that are many and hang together for the penalty itself are found step by step, each with few sweeps.
    """

    def __init__(self, schedule: Schedule, count: int, eased: bool) -> None:
        self.thorough = (
            schedule.max_iter if schedule.ridge > 0 else max(len(schedule.cells) - 1, _FIRST)
        )  # so many rounds are
        self.most = 1.0 if schedule.ridge > 0 else _MOST_VIOLATION
        self.rounds = schedule.max_iter
        self.share = np.full(count, schedule.inner)
        self.raised = np.full(count, np.inf if eased else 1.0)
        self.before = np.full(count, np.inf), np.full(count, np.inf)  # violations two rounds ago, and one

    def keep(self, chosen: NDArray) -> None:
        """Go on with some of the signals."""
        self.share, self.before = self.share[chosen], (self.before[0][chosen], self.before[1][chosen])
        self.raised = self.raised[chosen]

    @property
    def is_raised(self) -> NDArray:
        """Whether the last round of each signal was for raised penalties."""
        return np.isfinite(self.raised) & (self.raised > 1)

    def ease(self, ratio: NDArray, rounds: int, close: NDArray) -> NDArray:
        """What the penalties of each signal are multiplied with in a round.

        That is one for signals that are close enough to be done after it, and for all in the last round that there is.
        """
        most = np.where(close, 1.0, _EASING ** -min(self.rounds - 1 - rounds, 64))
        self.raised = np.clip(np.minimum(ratio / _EASED, _EASING * self.raised), 1.0, most)
        return self.raised

    def targets(self, ratio: NDArray, rounds: int, epsilon: float) -> NDArray:
        """How little a code may move at the end of a round, for each signal, in units of the smallest penalty."""
        violation = np.maximum(ratio / self.raised - 1, 0.0)
        if rounds >= _SETTLED_ROUNDS:
            slow = violation > _SLOW * self.before[0]
            self.share = np.where(slow, np.maximum(0.5 * self.share, np.minimum(self.share, _LEAST_SHARE)), self.share)
            # What comes of it is seen in two rounds.
            self.before = self.before[0], np.where(slow, np.inf, self.before[1])
        self.before = self.before[1], np.where(self.raised > 1, np.inf, violation)
        counted = np.minimum(violation, self.most) if rounds < self.thorough else violation
        return self.raised * np.maximum(self.share * counted, 4 * epsilon)
