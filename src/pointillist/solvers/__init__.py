"""Solvers for the codes, behind one protocol: `prepare(problem)` once, `solve(state, signals)` often."""

from typing import Any

from pointillist.solvers.admm import SampledADMM
from pointillist.solvers.base import Result, Solver, Status
from pointillist.solvers.coordinate_descent import CoordinateDescent
from pointillist.solvers.fourier_admm import FrequencyADMM

SOLVERS: dict[str, Any] = {"cd": CoordinateDescent, "admm": SampledADMM, "fft": FrequencyADMM}

__all__ = ["CoordinateDescent", "FrequencyADMM", "SampledADMM", "Solver"]  # what `pt.solvers` shows


def make_solver(solver: "str | Solver", **settings: Any) -> Solver:
    """A solver from its name and settings, or the given solver object as it is.

    Settings that are None stand for the solver's own; any other beside a solver object is an error, since the object has
    its own.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver](**given)
    if isinstance(solver, str) or not (hasattr(solver, "prepare") and hasattr(solver, "solve")):
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}")
    for name, value in given.items():
        raise ValueError(
            f"{name}={value!r} would have no effect: a solver object has its own {name}; leave {name} out, or write "
            f"solver={type(solver).__name__}({name}={value!r})"
        )
    return solver
