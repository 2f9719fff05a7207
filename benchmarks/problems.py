"""Random problems of all kinds, small enough that exact answers are at hand, and what a certificate says of each.

Signals of one to three dimensions and of several magnitudes, all boundaries, weights with unseen samples, channels,
samples of the codes, non-negative codes, penalties of each filter, filters of several sizes, both precisions, and solves
that are stopped early. The exact answer is our float64 solve to a gap of 1e-10.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from benchmarks.drawn import BOUNDARIES as BOUNDARIES
from benchmarks.drawn import Problem
from benchmarks.drawn import draw as draw
from benchmarks.reach import insist

ROUNDING = 1e-12
"""How far a float64 bound may lie above an optimum of the same size by rounding."""
EXACT = 1e-10
"""The relative gap that exact answers are to be certified to."""
_ROUNDING_OF_EXCESS = 1e-9


class Verdict(NamedTuple):
    """What the certificate of a problem is worth."""

    margin: float
    """How far the lower bound lies below the optimum, relative to it: the least 1 − objective (1 − gap) / optimum."""
    slack: float | None
    """The gap over the true excess of the same signal; None where the excess is but rounding."""
    gap: float
    """The largest of all signals."""
    tol: float
    converged: bool
    exactness: float
    """The largest gap of the answers that stand for the optima."""
    coded_margin: float | None
    """The margin over signals with codes; without codes a bound is the optimum itself. None where no signal has any."""


def kinds_of(problem: Problem) -> list[str]:
    """The kinds that a problem belongs to, in words."""
    kinds = {
        f"{np.ndim(problem['signals']) - 1 - problem['channels']} dimension(s)": True,
        str(problem["signals"].dtype): True,
        problem["boundary"]: True,
        "weights": problem["weights"] is not None,
        "channels": problem["channels"],
        "non-negative": problem["nonnegative"],
        "sampled": problem["sampling"] < 1,
        "penalty of each filter": np.ndim(problem["penalty"]) > 0,
        "filters of several sizes": bool(np.all(problem["filters"][0, ..., -1] == 0)),
        "stopped early": problem["solver"].max_iter < 200,
    }
    return [name for name, holds in kinds.items() if holds]


def examine(problem: Problem) -> Verdict:
    """Solve a problem as it is and exactly, and compare the certificate with the truth."""
    double = {key: problem[key].astype(np.float64) for key in ("signals", "filters")}
    if problem["weights"] is not None:
        double["weights"] = problem["weights"].astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = pt.encode(**problem)
        precise = {**problem, **double, "solver": pt.solvers.CoordinateDescent(tol=EXACT, max_iter=3000)}
        exact = insist(lambda start: pt.encode(**precise, start=start), EXACT)
    margins = 1 - result.objective * (1 - result.gap) / exact.objective
    worst = int(np.argmin(margins))
    excess = float(result.objective[worst] / exact.objective[worst] - 1)
    slack = float(result.gap[worst]) / excess if excess > _ROUNDING_OF_EXCESS else None
    converged = result.status is pt.Status.CONVERGED
    coded = margins[[len(indices) > 0 for indices in exact.codes.indices]]
    coded_margin = float(np.min(coded)) if len(coded) else None
    gap, exactness = float(np.max(result.gap)), float(np.max(exact.gap))
    return Verdict(float(margins[worst]), slack, gap, problem["solver"].tol, converged, exactness, coded_margin)
