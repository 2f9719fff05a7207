"""The default solver: a working set of codes and coordinate descent on the residual, with a certificate as stopping rule.

The codes are so sparse that most of the work is finding them. Each round scans the correlations of the residual with every
(sampled) filter position, keeps the best violator of |Dᵀr| ≤ λ in each cell of the grid, and descends on these and the
current support until little moves: one dot product and, if a code moves, one addition of a filter, with the best step in the
span of the last moves after each sweep. The scan also yields the duality gap, evaluated in float64 but for the correlations,
whose rounding is bounded. When few codes violate, the next rounds look for violators among those that nearly did.
Far from the optimum, rounds are for larger penalties first (`rounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.parallel import Mapper, SharedMap, one_blas_thread, parallel
from pointillist.problem import Problem
from pointillist.solvers.base import Result, merge_results
from pointillist.solvers.rounds import solve_by_rounds
from pointillist.solvers.scanning import DescentState, scan_size
from pointillist.solvers.workingset import DescentSchedule, HostWorkingSet

_WORTH_THREADS = 2**23
"""Products of a scan from which on threads share the work on a signal: a tenth of a millisecond, time after time."""
_WORTH_THREADS_WITH_RIDGE = 2**26
"""Products from which on threads share a scan for codes with a ridge: every round scans all codes, and does little else."""


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(DescentSchedule):
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
        cells first spread the codes out instead of crowding them around the strongest edges. Recordings of several
        channels with filters of rank one over them, and of one channel with up to six filters, get many such rounds
        between two scans, the first with coarser cells.
    inner : float
        Descent in a round stops when no code moves more than this share of the largest violation. The share is halved, down
        to a tenth, where violations hardly shrink.
    max_sweeps, extra : int
        Passes over the working set in a round at most, each followed by up to `extra` over the non-zeros. Between two scans
        of all codes rounds have three passes at most, up to twice as many extra ones, and plain ones at the end.
    keep_start : bool
        Add the codes that a solve starts from to the sample, instead of dropping those outside it.
    ridge : float
        Solve with ½ ridge z² added, for `max_iter` rounds: codes that share what they explain with their neighbours. Filters
        learned from such codes are better on new signals; the reported objective and gap stay those of the problem
        without it, so a tolerance is not to be expected.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> solver = pt.solvers.CoordinateDescent(tol=1e-6)
    >>> pt.encode(np.eye(1, 30, 9), [[0.6, 0.8]], penalty=0.1, solver=solver).status.value
    'converged'
    """

    takes_start: ClassVar[bool] = True

    def prepare(self, problem: Problem) -> DescentState:
        """Lay out what all signals of the problem share."""
        return DescentState(problem)

    def solve(
        self, state: DescentState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space), from zero or from `start`.

        Several signals are solved side by side; a single large one is shared out in tiles.
        """

        def one(i: int, mapper: Mapper) -> Result:
            begin = None if start is None else (start.indices[i], start.values[i])
            return solve_by_rounds(HostWorkingSet(self, state, i, signals[i], begin, mapper), self)

        least = _WORTH_THREADS_WITH_RIDGE if self.ridge > 0 else _WORTH_THREADS
        if len(signals) >= n_jobs or n_jobs == 1 or scan_size(state) < least:
            results = parallel(lambda i: one(i, map), range(len(signals)), n_jobs)
        else:
            with one_blas_thread():
                results = [one(i, SharedMap(n_jobs)) for i in range(len(signals))]
        return merge_results(results, [[i] for i in range(len(signals))])
