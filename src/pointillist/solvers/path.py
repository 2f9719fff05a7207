"""Codes for a whole path of penalties, from the largest down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.reprs import shown
from pointillist.solvers import make_solver
from pointillist.solvers.base import Result, Solver
from pointillist.solvers.encoding import encode, max_penalty
from pointillist.validation import Signals, as_numbers, check_arguments

_N, _SMALLEST = 10, 0.01
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class PathPoint:
    """One penalty of a path and what coding with it gave.

    Attributes
    ----------
    penalty : float
        λ that the signals were coded with.
    result : Result
        What `encode` returned for it.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> point = pt.penalty_path(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalties=[0.1])[0]
    >>> point.penalty, point.result.codes.nnz
    (0.1, 1)
    """

    penalty: float
    result: Result


def penalty_path(
    signals: Signals,
    filters: ArrayLike,
    *,
    n: int | None = None,
    smallest: float | None = None,
    penalties: Sequence[float] | None = None,
    weights: Signals | None = None,
    boundary: str = "same",
    solver: str | Solver = "cd",
    tol: float | None = None,
    channels: bool = False,
    nonnegative: bool = False,
    n_jobs: int | None = -1,
    device: str = "cpu",
) -> list[PathPoint]:
    """Code signals for falling penalties; coordinate descent starts each from the codes of the one before.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of arrays of any sizes
    filters : (n_filters, [channels,] *size) array
    n : int, optional
        Number of penalties, 10 by default, evenly spaced in logarithm from the largest λ_max of the signals, where all codes
        are zero, down to `smallest` times it.
    smallest : float in (0, 1), optional
        The last penalty in units of the first, 0.01 by default.
    penalties : sequence of float, optional
        Penalties of your own instead of `n` and `smallest`, used from the largest down.
    weights : like signals, or one array for all of them
        w ≥ 0, multiplying the squared error. Zero marks samples that were not seen; they may be NaN. Without weights NaN
        marks them.
    boundary : {"same", "valid", "full", "circular"}
        Whether codes sit on the signal's own grid, where no filter leaves it, wherever one touches it, or wrap.
    solver : str or solver object
        "cd", "admm" or "fft", or for instance ``CoordinateDescent(max_iter=50)``.
    tol : float or None
        Relative duality gap to reach for each penalty; None is 1e-3 for a named solver, and a solver object's own.
    channels, nonnegative : bool
        Whether the axis after the first holds channels, which share their codes; whether codes must be ≥ 0.
    n_jobs : int or None
        Threads, as joblib counts them: -1 is all cores, -2 all but one, None what the surrounding joblib context says.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve on a GPU.

    Returns
    -------
    list of PathPoint
        ``penalty`` and ``result`` (a `Result`), the largest penalty first.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> rng = np.random.default_rng(0)
    >>> path = pt.penalty_path(rng.standard_normal((1, 60)), rng.standard_normal((3, 5)), n=4)
    >>> len(path), path[0].result.codes.nnz
    (4, 0)
    """
    check_arguments(n=n, smallest=smallest, tol=tol, boundary=boundary, channels=channels, nonnegative=nonnegative)
    coder = make_solver(solver, tol=tol)
    problem: dict[str, Any] = {
        "weights": weights, "boundary": boundary, "channels": channels, "nonnegative": nonnegative,
    }  # fmt: skip
    if penalties is None:
        values = _spaced(max_penalty(signals, filters, **problem), n, smallest)
    elif n is not None or smallest is not None:
        raise ValueError("n and smallest choose penalties where none are given: leave them out, or leave out penalties")
    else:
        values = np.sort(as_numbers(penalties, "penalties", np.float64).ravel())[::-1]
        if not len(values) or not np.all(np.isfinite(values)) or values[-1] <= 0:
            raise ValueError(f"penalties must be positive, finite numbers, one or more, got {shown(penalties)}")
    path: list[PathPoint] = []
    for value in values.tolist():
        start = path[-1].result.codes if path and getattr(coder, "takes_start", False) else None
        try:
            result = encode(signals, filters, value, solver=coder, start=start, n_jobs=n_jobs, device=device, **problem)
        except ValueError as error:
            if str(error).startswith("penalty "):
                name = "smallest" if penalties is None and smallest is not None else "penalties"
                raise ValueError(f"{name} asks for more than there is: {error}") from error
            raise
        path.append(PathPoint(value, result))
    return path


def _spaced(largest: NDArray, n: int | None, smallest: float | None) -> NDArray:
    """Penalties from the largest of all signals down."""
    n, smallest = _N if n is None else n, _SMALLEST if smallest is None else smallest
    top = float(np.max(largest))
    if top < _TINY:
        raise ValueError(
            "signals are zero wherever they were seen, or filters or weights are: every penalty gives zero codes"
        )
    # Rounding may leave a code at λ_max itself.
    return top * (1 + 1e-6) * np.geomspace(1, smallest, n)
