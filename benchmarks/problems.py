"""Random problems of all kinds, small enough that exact answers are at hand, and what a certificate says of each.

Signals of one to three dimensions and of several magnitudes, all boundaries, weights with unseen samples, channels,
samples of the codes, non-negative codes, penalties of each filter, filters of several sizes, both precisions, and solves
that are stopped early. The exact answer is our float64 solve to a gap of 1e-10.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from benchmarks.reach import insist

BOUNDARIES = ("same", "valid", "full", "circular")
SHAPES = (((60,), (5,)), ((80,), (17,)), ((14, 13), (3, 3)), ((16, 11), (5, 2)), ((5, 6, 5), (2, 3, 2)))
ROUNDING = 1e-12
"""How far a float64 bound may lie above an optimum of the same size by rounding."""
EXACT = 1e-10
"""The relative gap that exact answers are to be certified to."""
_ROUNDING_OF_EXCESS = 1e-9
Problem = dict[str, Any]
"""The arguments of a call of `encode`."""


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


def draw(seed: int) -> Problem:
    """A problem of some kind."""
    rng = np.random.default_rng(seed)
    space, size = SHAPES[rng.integers(len(SHAPES))]
    dtype = (np.float32, np.float64)[rng.integers(2)]
    channels = bool(rng.random() < 0.2)
    colours, n_filters = (2,) if channels else (), int(rng.integers(1, 7))
    filters = rng.standard_normal((n_filters, *colours, *size)) / np.sqrt(np.prod(size))
    if rng.random() < 0.2:  # a smaller filter in the box of the others
        filters[0, ..., -1] = 0
    signals = rng.standard_normal((int(rng.integers(1, 3)), *colours, *space))
    signals[rng.random(signals.shape) < 0.3] = 0
    scale = 10 ** rng.uniform(-3, 3)
    weights = None
    if rng.random() < 0.4:
        weights = rng.uniform(0, 1, signals.shape) * (rng.random(signals.shape) < 0.8)
        first: Any = (slice(None), *[0] * (weights.ndim - 1))
        weights[first] = 1.0
        weights = weights.astype(dtype)
    return {
        "signals": (signals * scale).astype(dtype),
        "filters": filters.astype(dtype),
        "penalty": scale * 10 ** rng.uniform(-2.5, 0.2, n_filters if rng.random() < 0.3 else None),
        "weights": weights,
        "boundary": BOUNDARIES[rng.integers(4)],
        "solver": _solver(rng, dtype),
        "channels": channels,
        "nonnegative": bool(rng.random() < 0.3),
        "sampling": 0.5 if rng.random() < 0.3 else 1.0,
        "n_jobs": 1,
        "random_state": seed,
    }


def _solver(rng: np.random.Generator, dtype: Any) -> pt.solvers.CoordinateDescent:
    """Tolerances that rounding allows for; one solve in five is stopped early."""
    tol = float(10 ** rng.uniform(-5 if dtype == np.float32 else -8, -1))
    return pt.solvers.CoordinateDescent(tol=tol, max_iter=int(rng.integers(1, 6)) if rng.random() < 0.2 else 200)


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
