"""How well codes are solved for while filters are learned: roughly, and in the first steps with a ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointillist.solvers import make_solver
from pointillist.solvers.base import Solver
from pointillist.validation import check_arguments, is_number

_HABITS: dict[str, dict[str, Any]] = {
    # The paper's: ten ADMM iterations, whatever the gap.
    "admm": {"max_iter": 10, "tol": 0.0},
    "fft": {"max_iter": 10, "tol": 0.0},
    "cd": {"tol": 0.1},
}
"""Settings of named solvers while learning."""
_RIDGE_ROUNDS = {"max_iter": 3, "max_sweeps": 2, "extra": 0, "tol": 0.0}
"""How far codes with a ridge are solved, however small it has become: more cost time and learned no better filters."""
_LINE_ROUNDS = {"max_iter": 4, "max_sweeps": 3, "extra": 0, "tol": 0.0}
"""How far codes of one dimension, whose long filters overlap more, are solved: less learned filters that are 3% worse."""
_FEW, _ROUNDS_OF_FEW = 0.25, {"max_iter": 2, "max_sweeps": 3}
"""With no more than this share of all codes fewer rounds do: they learned filters as good in less time."""
_LEAST_RIDGE = 0.05
"""On a line a smaller ridge is none: codes are then solved to the usual tolerance."""


@dataclass(frozen=True)
class Ridge:
    """A ridge that fades while filters are learned by coordinate descent.

    In the first steps codes are solved for with ½ ridge z² added, so that neighbours share what they explain. Filters
    learned so are better on new signals and on the training signals. Signals that truly are sums of few filters want none:
    ``learning=0.1``.

    Parameters
    ----------
    strength : float
        The ridge of the first step.
    half_life : float or None
        Steps after which half of it is left; None is half of `max_iter` for `BatchCSC` and 10 mini-batches for `OnlineCSC`.
        From few signals, more steps learn filters that are better on others.

    Examples
    --------
    >>> import pointillist as pt
    >>> model = pt.OnlineCSC(n_filters=16, filter_size=8, learning=pt.Ridge(half_life=30))
    >>> model.set_params(learning__strength=2.0).learning
    Ridge(strength=2.0, half_life=30)
    """

    strength: float = 1.0
    half_life: float | None = None

    def __post_init__(self) -> None:
        if is_number(self.strength) and self.strength <= 0:
            raise ValueError(f"strength must be positive, got {self.strength}; to learn without a ridge: learning=0.1")
        check_arguments(strength=self.strength, half_life=self.half_life)


Learning = Ridge | float | None


def check_learning(solver: str | Solver, learning: Learning) -> None:
    """Refuse a pair of `solver` and `learning` of which one would not be used."""
    make_solver(solver)
    if learning is None:
        return
    if not isinstance(solver, str):
        raise ValueError(
            f"learning={learning!r} is for named solvers: leave it out, and give {solver!r} its own settings"
        )
    if isinstance(learning, Ridge):
        if solver != "cd":
            raise ValueError(
                f'Ridge is for solver="cd", got solver={solver!r}: leave learning out, or give a duality gap'
            )
    elif not is_number(learning) or learning < 0:
        raise ValueError(f"learning must be None, a Ridge or a relative duality gap such as 0.1, got {learning!r}")


def judging_solver(solver: str | Solver, tol: float | None) -> Solver:
    """The solver for codes that are to be right: those of held-out signals, and of signals that are transformed."""
    return make_solver(solver, tol=tol)


def learning_solver(
    solver: str | Solver, learning: Learning, step: int, half_life: float, ndim: int = 2, share: float = 1.0
) -> Solver:
    """Make the solver for a share of the codes in a step, for signals of `ndim` dimensions.

    `half_life` is that of a ridge that has none of its own.
    """
    if not isinstance(solver, str):
        return make_solver(solver)
    if learning is None and solver == "cd":
        learning = Ridge()
    if isinstance(learning, Ridge):
        half = half_life if learning.half_life is None else learning.half_life
        ridge = float(learning.strength) / (1 + (step / half) ** 2)
        if ndim == 1:
            return make_solver(
                solver, **({**_LINE_ROUNDS, "ridge": ridge} if ridge >= _LEAST_RIDGE else _HABITS[solver])
            )
        few = _ROUNDS_OF_FEW if share <= _FEW else {}
        return make_solver(solver, **{**_RIDGE_ROUNDS, **few, "ridge": ridge})
    return make_solver(solver, **(_HABITS[solver] if learning is None else {"tol": float(learning)}))
