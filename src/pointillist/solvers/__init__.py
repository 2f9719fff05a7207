"""Solvers for the codes, behind one protocol: `prepare(problem)` once, `solve(state, signals)` often."""

from dataclasses import replace
from typing import Any

from pointillist.solvers.admm import SampledADMM
from pointillist.solvers.base import Result, Solver, Status
from pointillist.solvers.descent import CoordinateDescent
from pointillist.solvers.frequency import FrequencyADMM

SOLVERS: dict[str, Any] = {"cd": CoordinateDescent, "admm": SampledADMM, "fft": FrequencyADMM}

__all__ = ["SOLVERS", "CoordinateDescent", "FrequencyADMM", "Result", "SampledADMM", "Solver", "Status", "make_solver"]


def make_solver(solver: "str | Solver", **settings: Any) -> Solver:
    """A solver from its name, with settings that are not None, or the given solver as it is.

    Settings that a named solver does not have are an error; a solver object keeps its own.
    """
    if not isinstance(solver, str):
        if not (hasattr(solver, "prepare") and hasattr(solver, "solve")):
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}")
        return solver
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    return replace(SOLVERS[solver](), **{name: value for name, value in settings.items() if value is not None})
