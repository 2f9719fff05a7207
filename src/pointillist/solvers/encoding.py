"""Codes for any list of signals, and signals from codes: `encode`, `decode`, `max_penalty` and `penalty_path`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.arrays import (
    Rows,
    as_cupy,
    converted,
    group_by_shape,
    is_cpu,
    is_resident,
    joined,
    kind_of,
    members_of,
    pieces,
    scratch,
    stacked,
    walked,
)
from pointillist.codes import SparseCodes
from pointillist.cuda.device import check_device
from pointillist.parallel import effective_jobs
from pointillist.problem import (
    Geometry,
    Problem,
    broadcast_penalty,
    lambda_max,
    signal_shape,
    synthesise,
)
from pointillist.reprs import shown
from pointillist.sampling import ALL, Draws, Sampling, as_draws, draw_sample, seed_from
from pointillist.solvers.admm import FrequencyADMM, SampledADMM
from pointillist.solvers.base import Result, Solver, Status, merge_results
from pointillist.solvers.channels import in_span
from pointillist.solvers.coordinate_descent import CoordinateDescent
from pointillist.solvers.large_signals import Progress, by_tiles
from pointillist.solvers.on_device import DeviceDescent, decode_resident, of_kind
from pointillist.validation import Signals, as_filters, as_numbers, bounds, check_arguments, stay_resident, trusted

SOLVERS: dict[str, Any] = {"cd": CoordinateDescent, "admm": SampledADMM, "fft": FrequencyADMM}


def make_solver(solver: str | Solver, device: str = "cpu", *, resident: bool = False, **settings: Any) -> Solver:
    """A solver from its name and settings, or the given solver object as it is, or its counterpart on a device.

    Settings that are None stand for the solver's own; any other beside a solver object is an error, since the object has
    its own. A device is looked for at once.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(solver, str) and solver in SOLVERS:
        made = SOLVERS[solver](**given)
    elif isinstance(solver, str) or not (hasattr(solver, "prepare") and hasattr(solver, "solve")):
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}")
    else:
        for name, value in given.items():
            raise ValueError(
                f"{name}={value!r} would have no effect: a solver object has its own {name}; leave {name} out, or write "
                f"solver={type(solver).__name__}({name}={value!r})"
            )
        made = solver
    if is_cpu(device):
        return made
    if isinstance(made, DeviceDescent):
        return replace(made, device=device, resident=resident)
    if not isinstance(made, CoordinateDescent):
        raise ValueError(f'device="{device}" solves with solver="cd" only, got {made!r}')
    check_device(device)
    return DeviceDescent(settings=made, device=device, resident=resident)


def encode(
    signals: Signals,
    filters: ArrayLike,
    penalty: float | NDArray = 1.0,
    *,
    weights: Signals | None = None,
    sampling: Sampling = 1.0,
    boundary: str = "same",
    solver: str | Solver = "cd",
    tol: float | None = None,
    channels: bool = False,
    nonnegative: bool = False,
    start: SparseCodes | None = None,
    n_jobs: int | None = -1,
    device: str = "cpu",
    random_state: int | np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Result:
    """Write signals as sparse codes of given filters, with a certificate for each.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of arrays of any sizes
        Large ones are coded tile by tile, in bounded memory beside the signal, its residual and the codes. A memory-mapped
        array (``np.load(file, mmap_mode="r")``, ``tifffile.memmap(file)``) is never read whole: its residual is kept in
        a temporary file, in the folder that TMPDIR names. Any magnitude will do, of filters as well: what is extreme is
        divided by powers of two before it is solved for. NaN marks samples that were not seen, where there are no weights;
        so do the masked samples of a masked array.
    filters : (n_filters, [channels,] *size) array
    penalty : float, (n_filters,) array or array that broadcasts against (n_filters, *grid)
        λ > 0: the price of a code. What you pass is what is used; see `max_penalty` for its scale.
    weights : like signals, or one array for all of them
        w ≥ 0, multiplying the squared error. Zero marks samples that were not seen; they may be NaN. Without weights NaN
        marks them.
    sampling : float in (0, 1] or Draws
        Probability that a code may be non-zero; `Draws` says which codes are drawn together, ``Draws(0.1, "codes")`` none.
    boundary : {"same", "valid", "full", "circular"}
        Whether codes sit on the signal's own grid, where no filter leaves it, wherever one touches it, or wrap.
    solver : str or solver object
        "cd" (coordinate descent), "admm" (the paper's), "fft" (circular reference), or for instance
        ``SampledADMM(max_iter=50)``.
    tol : float or None
        Relative duality gap to reach; None is 1e-3 for a named solver, and a solver object's own. A number beside a solver
        object is an error: give it to the object.
    channels : bool
        Whether the axis after the first holds channels, which share their codes.
    nonnegative : bool
        Restrict the codes to be ≥ 0.
    start : SparseCodes
        Codes of these signals to start from, for instance those of a larger penalty; for coordinate descent only.
    n_jobs : int or None
        Threads, as joblib counts them: -1 is all cores, -2 all but one, None what the surrounding joblib context says.
        Answers do not depend on it.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve on a GPU (coordinate descent, signals of up to three dimensions); that takes
        ``pip install 'pointillist[cuda]'``. Signals that live there (CuPy arrays, torch's CUDA tensors) then stay there:
        codes and residuals are arrays of the same kind. Answers are NumPy arrays otherwise.
    random_state : int, numpy Generator or None
        Seed of the sampling.
    progress : callable, optional
        Called now and then with the share of the work that is done, from 0 to 1: tile by tile for large signals.

    Returns
    -------
    Result
        ``codes``, ``objective`` and ``gap`` (one for each signal), ``status``, ``residuals``.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> rng = np.random.default_rng(0)
    >>> filters = rng.standard_normal((4, 5)) / 3
    >>> result = pt.encode(rng.standard_normal((2, 50)), filters, penalty=0.3)
    >>> result.status.value, bool(np.all(result.gap <= 1e-3))
    ('converged', True)
    """
    check_arguments(boundary=boundary, channels=channels, nonnegative=nonnegative, tol=tol, progress=progress)
    resident = stay_resident(signals, device)
    coder = make_solver(solver, device, resident=resident, tol=tol)
    arrays, bank, seen = trusted(signals, filters, weights, channels=channels, device=device, move=True)
    result = encode_signals(
        arrays,
        bank,
        penalty,
        weights=seen,
        draws=as_draws(sampling),
        boundary=boundary,
        solver=coder,
        nonnegative=nonnegative,
        start=None if start is None else _checked_start(start, coder, arrays, bank, boundary, device),
        n_jobs=effective_jobs(n_jobs),
        seed=0 if random_state is None and sampling == 1 else seed_from(random_state),
        progress=progress,
    )
    warn_unless_converged(result)
    return of_kind(result, kind_of(signals)) if resident else result


def _checked_start(
    start: SparseCodes, solver: Solver, signals: list[NDArray], filters: NDArray, boundary: str, device: str
) -> SparseCodes:
    """Check the codes to start from, and bring them to the host if that solves."""
    if not isinstance(start, SparseCodes):
        raise ValueError(f"start must be SparseCodes, got {type(start).__name__}")
    if not getattr(solver, "takes_start", False):
        raise ValueError(f'start would have no effect: {type(solver).__name__} begins at zero; use solver="cd"')
    grids = [Geometry(signal.shape[1:], filters.shape[2:], len(signal), boundary).grid for signal in signals]
    if start.n_filters != len(filters) or start.grids != grids:
        raise ValueError(
            f"start must hold codes of the same signals for the same filters and boundary: {len(filters)} filters on grids "
            f"of the shapes {sorted(set(grids))}, got {start!r} on {sorted(set(start.grids))}"
        )
    return start.on_host() if is_cpu(device) else start


@dataclass(frozen=True, eq=False)
class Scale:
    """The powers of two that the signals of one problem, their weights and each filter are divided by.

    The problem is homogeneous: signals divided by s, weights by ω and each filter by its own f, with the penalty of its
    codes divided by all three, have codes divided by s / f and an objective divided by ω s². Powers of two change no bits of
    what is computed. Filters get norms near one, so that a step of any code is a change of the residual of that size;
    signals stay as they are up to 2¹⁶, weights up to 2⁸. Whatever a `Problem` holds in such units is scaled in `problem`, or
    answers change with the magnitude of what users pass.
    """

    signals: int
    weights: int
    filters: NDArray  # (n_filters,) int64

    def problem(self, problem: Problem) -> Problem:
        """The problem in this scale; a penalty that is nothing beside the correlations is refused."""
        with np.errstate(over="ignore"):
            penalty = np.ldexp(problem.penalty, -(self.signals + self.weights + self.filters[:, None]))
        if np.min(penalty) < 2.0**-80:
            raise ValueError(
                f"penalty is so small, {np.min(problem.penalty):.2g}, that it is lost beside signals, filters and weights "
                "of this size; max_penalty tells their scale"
            )
        filters, weights = problem.filters, problem.weights
        if self.filters.any():
            filters = np.ldexp(filters, -self.filters.reshape(-1, *[1] * (filters.ndim - 1)))
        if weights is not None and self.weights:
            weights = np.ldexp(weights, -self.weights)
        # Beyond 2¹²⁰ a penalty forbids a code as well as at 2¹²⁰, which single precision holds.
        return replace(problem, filters=filters, penalty=np.minimum(penalty, 2.0**120), weights=weights)

    def taken(self, signals: list[NDArray], members: Sequence[int], dtype: np.dtype) -> list[NDArray]:
        """Some of the signals in a precision and in this scale."""
        some = members_of(signals, members)
        if isinstance(some, Rows) and self.signals == 0 and some.whole.dtype == dtype:
            return some
        kept = [one.astype(dtype, copy=False) if is_resident(one) else converted(one, dtype) for one in some]
        return [_times_power(one, -self.signals) for one in kept]

    def start(self, start: SparseCodes, dtype: np.dtype) -> SparseCodes:
        """Codes to start from in this scale."""
        values = self._moved(start, -1).astype(dtype)
        if not bool(np.isfinite(values).all()):
            raise ValueError("start holds codes that are far too large for these signals and filters")
        return start.replaced(start.indices, _parted(start, values))

    def restored(self, result: Result, members: Sequence[int]) -> Result:
        """The result for the signals, numbered `members`, as they were given; one that cannot be written is refused."""
        if not (self.signals or self.weights or self.filters.any()):
            return result
        codes, objective, residuals = result.codes, result.objective, result.residuals
        exact = self._moved(codes, 1)
        with np.errstate(over="ignore", under="ignore"):
            values = exact.astype(codes.dtype)
        if self.signals or self.weights:
            with np.errstate(over="ignore", under="ignore"):
                objective = np.ldexp(objective, self.weights + 2 * self.signals)
                residuals = [_times_power(residual, self.weights + self.signals) for residual in residuals]
            for i, before, after, residual in zip(members, result.objective, objective, residuals, strict=True):
                is_written = before == 0 or np.finfo(np.float64).tiny <= after < np.inf
                if np.isfinite(before) and not (is_written and bool(np.isfinite(residual).all())):
                    raise ValueError(
                        f"signals[{i}] is too {'small' if after < 1 else 'large'}, or its weights are: its objective or "
                        "residual cannot be written; bring signals and penalty, or weights and penalty, to another magnitude"
                    )
        kept = _parted(codes, values)
        if bool((exact != values).any()):  # a power of two changes no bits unless it leaves the range
            for i, one, rounded in zip(members, _parted(codes, exact), kept, strict=True):
                total = float(abs(one).sum())
                if np.isfinite(total) and not float(abs(one - rounded).sum()) <= 1e-10 * total:
                    raise ValueError(
                        f"signals[{i}] has codes that {codes.dtype} cannot hold, of {total:.2g} together: pass float64, or "
                        "filters of another magnitude"
                    )
        return replace(result, codes=codes.replaced(codes.indices, kept), objective=objective, residuals=residuals)

    def _moved(self, codes: SparseCodes, sign: int) -> Any:
        """All values of codes brought from this scale (`sign` 1) or to it (-1), flat and in float64."""
        powers: Any = sign * (self.signals - self.filters)
        index = joined(codes.indices) // prod(codes.grids[0])
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(
                joined(codes.values).astype(np.float64), (as_cupy(powers) if codes.resident else powers)[index]
            )


def by_scale(
    signals: Sequence[NDArray],
    filters: NDArray,
    weights: Sequence[NDArray] | None,
    penalty: float | NDArray,
    *,
    alike: bool,
) -> list[tuple[list[int], Scale]]:
    """Numbers of the signals that share shape and scale, in order of appearance, and that scale.

    All filters are divided by one number where they must be treated `alike`: one ridge, or one ρ, is for all their codes.
    """
    flat = filters.reshape(len(filters), -1).astype(np.float64)
    peaks = np.max(np.abs(flat), axis=1)
    peaks[peaks == 0] = 1  # squares of very large or small samples leave even float64
    norms = np.maximum(np.linalg.norm(flat / peaks[:, None], axis=1), 1)
    of_filters = np.rint(np.log2(norms) + np.log2(peaks)).astype(np.int64)
    if alike:
        if np.ptp(of_filters) > 40:
            raise ValueError(
                "filters differ so much in magnitude that ridge or rho cannot serve all of them: divide them by their norms"
            )
        of_filters = np.full(len(filters), of_filters.max())
    sizes = np.abs(bounds(signals)).max(axis=0)
    of_weights = np.zeros(len(signals), int) if weights is None else _powers(bounds(weights)[1], 16)
    of_signals = _powers(sizes, 8)
    of_signals[np.abs(of_signals) <= 16] = 0
    silent = sizes == 0  # any scale will do for these: one that suits the penalty
    if np.any(silent):
        of_signals[silent] = _powers(np.min(penalty), 1) - of_filters.max() - of_weights[silent]
    groups: dict[tuple[int, int, int], list[int]] = {}
    for number, same in enumerate(group_by_shape(signals)):
        for i in same:
            groups.setdefault((number, int(of_signals[i]), int(of_weights[i])), []).append(i)
    return [(members, Scale(signal, weight, of_filters)) for (_, signal, weight), members in groups.items()]


def _powers(sizes: NDArray | np.floating, step: int) -> NDArray:
    """Exponents of two that bring sizes near one, in multiples of a step; zero for zero."""
    return (step * np.rint(np.frexp(sizes)[1] / step)).astype(np.int64)


def _parted(codes: SparseCodes, flat: Any) -> list[Any]:
    """Values of all signals, one behind the other, signal by signal."""
    return pieces(flat, np.cumsum([0, *map(len, codes.indices)]).tolist())


def _times_power(array: NDArray, exponent: int) -> NDArray:
    """An array (channels, *space) times a power of two, in a file where it is in one; itself for 2⁰."""
    if exponent == 0:
        return array
    if is_resident(array):
        return np.ldexp(array, exponent)
    out = scratch(array, array.shape, array.dtype)
    for band in walked(array, out):
        np.ldexp(array[band], exponent, out=out[band])
    return out


def encode_signals(
    signals: list[NDArray],
    filters: NDArray,
    penalty: float | NDArray,
    *,
    weights: list[NDArray] | None,
    boundary: str,
    solver: Solver,
    n_jobs: int,
    draws: Draws = ALL,
    nonnegative: bool = False,
    seed: int = 0,
    step: int = 0,
    start: SparseCodes | None = None,
    progress: Progress | None = None,
) -> Result:
    """Encode signals that were checked already, each (channels, *space).

    Signals of one shape and one scale share a problem, and whatever a solver prepares for it.
    """
    dtype = np.result_type(filters, *{signal.dtype for signal in signals})
    filters = filters.astype(dtype, copy=False)
    results, places = [], []
    rescaled = getattr(solver, "rescaled", lambda power: solver)
    in_units = rescaled(1) is not solver  # some setting is in units of w ‖d‖²
    groups = by_scale(signals, filters, weights, penalty, alike=in_units)
    for number, (members, scale) in enumerate(groups):
        geometry = Geometry(signals[members[0]].shape[1:], filters.shape[2:], filters.shape[1], boundary)
        own = None
        if weights is not None:  # one array where all share it, so that solvers can share their factors
            first, *others = several = members_of(weights, members)
            same = all(one is first or np.array_equal(one, first) for one in others)
            own = first if same else stacked(several)
        problem = scale.problem(
            Problem(
                filters=filters,
                geometry=geometry,
                penalty=broadcast_penalty(penalty, len(filters), geometry),
                weights=own,
                drawn=draw_sample(len(filters), geometry.grid, draws, seed, step),
                nonnegative=nonnegative,
            )
        )
        chosen = scale.taken(signals, members, dtype)
        begin = None if start is None else scale.start(start[members], dtype)
        settled = None if progress is None else (lambda part, number=number: progress((number + part) / len(groups)))
        coder, projection = rescaled(scale.weights + 2 * int(scale.filters[0])), None
        if geometry.channels > 1:
            projection = in_span(problem, chosen)
        if projection is None:
            found = _solve(coder, problem, chosen, begin, n_jobs, settled)
        else:
            inside = _solve(coder, projection.smaller, projection.inside, begin, n_jobs, settled)
            found, tol = projection.restore(inside), getattr(coder, "tol", np.inf)
            if np.any((found.gap > tol) & (inside.gap <= tol)) or np.any(np.isinf(found.gap)):
                # Where rounding hides whether an answer is good enough, the last steps are made in all channels.
                begin = found.codes if getattr(coder, "takes_start", False) else None
                found = _solve(coder, problem, chosen, begin, n_jobs, None)
        results.append(scale.restored(found, members))
        places.append(members)
        if settled is not None:
            settled(1.0)
    return merge_results(results, places)


def _solve(
    solver: Solver,
    problem: Problem,
    signals: list[NDArray],
    start: SparseCodes | None,
    n_jobs: int,
    progress: Progress | None,
) -> Result:
    """Solve a problem as it is, by tiles where signals are large and the solver can."""
    coder = by_tiles(solver, problem, progress)
    found = coder.solve(coder.prepare(problem), signals, n_jobs=n_jobs, start=start)
    if not isinstance(found, Result) or len(found.statuses) != len(signals):
        raise TypeError(
            f"solver {type(solver).__name__}: solve must return a Result for all {len(signals)} signals, as certify "
            f"makes it, got {shown(found)}"
        )
    return found


def warn_unless_converged(result: Result) -> None:
    """Say so when a solver stopped before its tolerance."""
    if result.status is not Status.CONVERGED:
        short = sum(status is not Status.CONVERGED for status in result.statuses)
        warnings.warn(
            f"{short} of {len(result.statuses)} signals stopped at: {result.status.value}, largest relative gap "
            f"{np.max(result.gap):.2g}; {result.status.advice}",
            ConvergenceWarning,
            stacklevel=3,
        )


def max_penalty(
    signals: Signals,
    filters: ArrayLike,
    *,
    weights: Signals | None = None,
    boundary: str = "same",
    channels: bool = False,
    nonnegative: bool = False,
) -> NDArray:
    """λ_max of each signal: the smallest penalty whose answer is all zero. A tenth of it is a fair first guess.

    Parameters
    ----------
    signals : (n_signals, [channels,] *space) array or list of arrays of any sizes
        Signals that live on a device are brought to the host.
    filters : (n_filters, [channels,] *size) array
    weights : like signals, or one array for all of them
        w ≥ 0, multiplying the squared error. Zero marks samples that were not seen; they may be NaN. Without weights NaN
        marks them.
    boundary : {"same", "valid", "full", "circular"}
        Whether codes sit on the signal's own grid, where no filter leaves it, wherever one touches it, or wrap.
    channels, nonnegative : bool
        Whether the axis after the first holds channels, which share their codes; whether codes must be ≥ 0.

    Returns
    -------
    (n_signals,) float64 array

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals, filters = np.array([[0.0, 0.0, 5.0, 0.0, 0.0]]), np.array([[0.6, 0.8, 0.0]])
    >>> pt.max_penalty(signals, filters)
    array([4.])
    >>> pt.encode(signals, filters, penalty=4.0).codes.nnz
    0
    """
    check_arguments(boundary=boundary, channels=channels, nonnegative=nonnegative)
    arrays, bank, seen = trusted(signals, filters, weights, channels=channels)
    factors = np.empty(len(arrays))
    for members in group_by_shape(arrays):
        own = None if seen is None else np.stack([seen[i] for i in members])
        geometry = Geometry(arrays[members[0]].shape[1:], bank.shape[2:], bank.shape[1], boundary)
        problem = Problem(
            filters=bank,
            geometry=geometry,
            penalty=np.ones((len(bank), 1)),
            weights=own,
            nonnegative=nonnegative,
        )
        some = [arrays[i] for i in members]
        projection = in_span(problem, some)
        if projection is not None:
            problem, some = projection.smaller, projection.inside
        factors[members] = lambda_max(problem, some)
    if not np.isfinite(factors).all():
        raise ValueError("signals times filters overflow: divide one of them by some number")
    return factors


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
        top = float(np.max(max_penalty(signals, filters, **problem)))
        if top < np.finfo(np.float64).tiny:
            raise ValueError(
                "signals are zero wherever they were seen, or filters or weights are: every penalty gives zero codes"
            )
        # Rounding may leave a code at λ_max itself.
        values = top * (1 + 1e-6) * np.geomspace(1, smallest or 0.01, n or 10)
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


def decode(
    codes: SparseCodes, filters: ArrayLike, *, boundary: str = "same", channels: bool = False
) -> NDArray | list[NDArray]:
    """Signals from sparse codes: the sum of the filters that the codes place.

    Parameters
    ----------
    codes : SparseCodes
        Of n signals.
    filters : (n_filters, [channels,] *size) array
        Those that the codes were solved for.
    boundary : {"same", "valid", "full", "circular"}
        That of the codes.
    channels : bool
        Whether the axis after the first of `filters` holds channels.

    Returns
    -------
    (n_signals, [channels,] *space) array, or list of ([channels,] *space) arrays
        A list when the signals have several shapes. Codes that live on a device give signals there, of their kind.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.SparseCodes.from_dense(np.array([[[0.0, 0.0, 2.0, 0.0, 0.0]]]))
    >>> pt.decode(codes, [[1.0, 3.0, 1.0]])
    array([[0., 2., 6., 2., 0.]])
    """
    check_arguments(boundary=boundary, channels=channels)
    if not isinstance(codes, SparseCodes):
        raise ValueError(f"codes must be SparseCodes, got {type(codes).__name__}")
    bank = as_filters(filters, channels=channels)
    if len(bank) != codes.n_filters:
        raise ValueError(f"codes are for {codes.n_filters} filters, got {len(bank)}")
    if any(len(grid) != bank.ndim - 2 for grid in codes.grids):
        raise ValueError(
            f"filters have {bank.ndim - 2} dimensions, the grids of the codes {sorted({len(g) for g in codes.grids})}; they "
            "must agree (channels=True says that the axis after the first holds channels)"
        )
    shapes = [signal_shape(grid, bank.shape[2:], boundary) for grid in codes.grids]
    kind = kind_of(codes.values)
    if kind == "numpy":
        signals = synthesise(codes, bank, shapes, bank.shape[1], boundary)
    else:
        signals = decode_resident(codes, bank, shapes, boundary, kind)
    if not channels:
        signals = [signal[0] for signal in signals]
    return stacked(signals) if len(set(shapes)) == 1 else signals
