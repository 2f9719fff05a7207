"""Certificates against exact answers: hard problems at all magnitudes, and what is said of each must be true.

The lower bound that objective and gap give must not exceed the objective of any codes, in particular not that of codes
which are all but optimal. What is said to have converged must have a gap within its tolerance, everything must be finite,
and the objective must be that of the codes.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.problems import EXACT, ROUNDING, Problem
from benchmarks.reach import insist
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from attack import twists
from attack.base import Finding
from attack.watch import FORGIVEN, MEMORY, PATIENCE, Watch

NAME = "certificates"
OBJECTIVE = {"float32": 1e-5, "float64": 1e-9}
"""How far, relatively, an objective may lie from that of its codes."""
RESIDUAL = {"float32": 1e-4, "float64": 1e-9}
"""How far residuals may lie from those of the codes, beside the samples and codes that they are the differences of."""
_ROUNDS, _RESTARTS = 200, 3  # of the exact answer; one that is not quite exact is an upper bound all the same


class Certificates:
    """The attack on certificates."""

    name = NAME
    about = "bounds, objectives and statuses of hard problems at all magnitudes against exact answers"
    patience = FORGIVEN
    memory = MEMORY

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Solve one problem and compare its certificate with the truth."""
        return attempt(seed, folder / "attempt.txt")


def attempt(seed: int, note: Path | None = None) -> list[Finding]:
    """Make the attempt of a seed; what it is about is noted in a file before."""
    problem, names = quietly(lambda: twists.draw(seed))
    said = f"{problem['filters'].dtype} {problem['boundary']} {type(problem['solver']).__name__}: {', '.join(names)}"
    if note is not None:
        note.write_text(said)
    return [Finding(NAME, seed, kind, f"{said}: {title}", detail) for kind, title, detail in examined(problem)]


def examined(problem: Problem) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the answer to a problem: kind, title and detail of each fault."""
    watch = Watch()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
            result = pt.encode(**problem)
    except Warning as warning:
        yield "warning", f"{type(warning).__name__}: {warning}", traceback.format_exc()
        return
    except Exception as error:
        if not refusable(problem, error):
            yield "refused", f"{type(error).__name__}: {error}", traceback.format_exc()
        return
    if watch.seconds > PATIENCE:
        yield "hang", f"{watch.seconds:.1f} s", ""
    yield from faults(problem, result)


def refusable(problem: Problem, error: Exception) -> bool:
    """Whether an error is the right answer: to filters that do not fit in, codes beyond float32, nothing seen."""
    channels = problem["channels"]
    size = problem["filters"].shape[1 + channels :]
    smaller = any(
        side < least for one in problem["signals"] for side, least in zip(one.shape[channels:], size, strict=True)
    )
    if not isinstance(error, ValueError):
        return False
    return smaller or "float32 cannot hold" in str(error) or "nothing of that signal was seen" in str(error)


def faults(problem: Problem, result: pt.Result) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a result."""
    figures = {"objective": result.objective, "gap": result.gap}
    figures |= {f"codes of signal {i}": value for i, value in enumerate(result.codes.values)}
    figures |= {f"residual of signal {i}": one for i, one in enumerate(result.residuals)}
    bad = [name for name, one in figures.items() if not np.all(np.isfinite(one))]
    if bad:
        yield "not finite", f"{result.status.value}, not finite: {', '.join(bad)}", ""
        return
    tol = problem["solver"].tol
    for status, gap in zip(result.statuses, result.gap, strict=True):
        if status is pt.Status.CONVERGED and gap > tol:
            yield "bound", f"converged with a gap of {gap:.3g}, tolerance {tol:.3g}", ""
    if problem["nonnegative"] and any((value < 0).any() for value in result.codes.values):
        yield "sign", "negative codes", ""
    again, residuals = recomputed(problem, result.codes)
    if not np.allclose(result.objective, again, rtol=OBJECTIVE[problem["filters"].dtype.name], atol=0):
        yield "objective", f"off by {np.max(np.abs(result.objective / again - 1)):.3g}", f"{result.objective}\n{again}"
    yield from _residual_faults(problem, result, residuals)
    lower, optimum = result.objective * (1 - result.gap), exact(problem)
    if not np.all(lower <= optimum * (1 + ROUNDING)):
        worst = int(np.argmax(lower - optimum * (1 + ROUNDING)))
        title = f"bound of signal {worst} above the optimum by {lower[worst] / optimum[worst] - 1:.3g}"
        yield "bound", title, f"lower bounds {lower}\noptima {optimum}\ngaps {result.gap}"


def _residual_faults(problem: Problem, result: pt.Result, residuals: list[NDArray]) -> Iterator[tuple[str, str, str]]:
    allowed = RESIDUAL[problem["filters"].dtype.name]
    codes = result.codes
    sizes = pt.SparseCodes(codes.indices, [np.abs(value) for value in codes.values], codes.grids, codes.n_filters)
    sums = _made(problem, sizes, np.abs(problem["filters"]))
    for i, (own, other) in enumerate(zip(result.residuals, residuals, strict=True)):
        weights = problem["weights"]
        scale = float(np.max(np.abs(problem["signals"][i]))) + float(np.max(sums[i]))
        scale *= 1.0 if weights is None else float(np.max(weights[i]))
        off = float(np.max(np.abs(own.reshape(other.shape) - other)))
        if off > allowed * scale:
            yield "residual", f"residual of signal {i} off by {off / scale:.3g} of what it is the difference of", ""


def recomputed(problem: Problem, codes: pt.SparseCodes) -> tuple[NDArray, list[NDArray]]:
    """Objectives and residuals in float64, from the codes and the signals that they make."""
    objectives, residuals = [], []
    for i, fit in enumerate(_made(problem, codes, problem["filters"])):
        difference = problem["signals"][i].astype(np.float64) - fit
        weights = 1.0 if problem["weights"] is None else problem["weights"][i].astype(np.float64)
        index, value = codes.indices[i], np.abs(codes.values[i].astype(np.float64))
        objectives.append(
            0.5 * np.sum(weights * difference * difference) + np.sum(_prices(problem, codes, i, index) * value)
        )
        residuals.append(weights * difference)
    return np.array(objectives), residuals


def _made(problem: Problem, codes: pt.SparseCodes, filters: NDArray) -> list[NDArray]:
    """What codes make of filters in float64, of the shapes of the signals."""
    how = {name: problem[name] for name in ("boundary", "channels")}
    made = pt.decode(codes, filters.astype(np.float64), **how)
    return [np.asarray(one).reshape(signal.shape) for one, signal in zip(made, problem["signals"], strict=True)]


def _prices(problem: Problem, codes: pt.SparseCodes, i: int, index: NDArray) -> NDArray:
    """λ of codes of signal i."""
    positions = int(np.prod(codes.grids[i]))
    penalty = np.asarray(problem["penalty"], np.float64)
    if penalty.ndim < 2 and penalty.shape != (codes.n_filters, *codes.grids[i]):
        return np.broadcast_to(penalty, codes.n_filters)[index // positions]
    return np.broadcast_to(penalty, (codes.n_filters, *codes.grids[i])).reshape(-1)[index]


def exact(problem: Problem) -> NDArray:
    """Objectives of codes that are all but optimal, found in float64 where the problem is of ordinary size."""
    arrays = {key: problem[key] for key in ("signals", "filters", "weights") if problem[key] is not None}
    power = {key: _exponent(one) for key, one in arrays.items()}
    scaled = {key: _ldexp(one, -power[key]) for key, one in arrays.items()}
    ordinary = {
        **problem,
        **scaled,
        "penalty": np.ldexp(problem["penalty"], -sum(power.values())),
        "solver": pt.solvers.CoordinateDescent(tol=EXACT, max_iter=_ROUNDS),
        "start": None,
    }
    result = quietly(lambda: insist(lambda start: pt.encode(**{**ordinary, "start": start}), EXACT, restarts=_RESTARTS))
    objective, _ = recomputed(ordinary, result.codes)
    best: NDArray = np.ldexp(objective, 2 * power["signals"] + power.get("weights", 0))
    return best


def _exponent(array: Any) -> int:
    return int(np.frexp(max(float(np.max(np.abs(one))) for one in array) or 1.0)[1])


def _ldexp(array: Any, power: int) -> Any:
    """Arrays in float64, times a power of two."""
    if isinstance(array, list):
        return [_ldexp(one, power) for one in array]
    return np.ldexp(array.astype(np.float64), power)


def quietly(make: Callable[[], Any]) -> Any:
    """What a function returns; solvers may stop early in it without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make()
