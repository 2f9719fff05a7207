"""Codes for any list of signals: groups them by shape, makes each group's problem and hands it to a solver."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.arrays import kind_of, stacked, to_host
from pointillist.codes import SparseCodes
from pointillist.cuda.device import is_cpu
from pointillist.parallel import effective_jobs
from pointillist.problem import Geometry, Problem, broadcast_penalty, check_penalty
from pointillist.sampling import ALL, Draws, Sampling, as_draws, draw_ahead, draw_sample, seed_from
from pointillist.solvers import make_solver
from pointillist.solvers.base import Result, Solver, Status, merge_results
from pointillist.solvers.device import on_device
from pointillist.solvers.inputs import stay_resident, take_signals
from pointillist.solvers.resident import of_kind
from pointillist.solvers.scaling import by_scale
from pointillist.solvers.solving import Progress, filter_span, largest_penalties, solve
from pointillist.validation import Signals, as_filters, check_arguments, group_by_shape


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
        a temporary file, in the folder that TMPDIR names. Any magnitude will do: extreme ones are divided by a power of
        two before they are solved for. NaN marks samples that were not seen, where there are no weights; so do the masked
        samples of a masked array.
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
    coder = on_device(make_solver(solver, tol=tol), device, resident=resident)
    bank = as_filters(to_host(filters), channels=channels)
    one = bank.shape[1] == 1  # those of many channels may be projected first, on the host
    arrays, seen = take_signals(signals, weights, bank.ndim - 2, channels=channels, device=device, move=one)
    _check_channels(arrays, bank)
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


def _check_channels(arrays: list[NDArray], bank: NDArray) -> None:
    for i, array in enumerate(arrays):
        if array.shape[0] != bank.shape[1]:
            raise ValueError(f"signals[{i}] has {array.shape[0]} channels, the filters have {bank.shape[1]}")


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
    ahead: bool = False,
    start: SparseCodes | None = None,
    progress: Progress | None = None,
) -> Result:
    """Encode signals that were checked already, each (channels, *space); `ahead`: the next step's sample is drawn too."""
    draw = draw_ahead if ahead else draw_sample
    dtype = np.result_type(filters.dtype, *{signal.dtype for signal in signals})
    results, places = [], []
    done, total = 0, sum(signal.size for signal in signals)
    span = filter_span(filters.astype(dtype, copy=False))
    for members, scale in by_scale(signals, filters, weights, check_penalty(penalty), solver):
        geometry = Geometry(signals[members[0]].shape[1:], filters.shape[2:], filters.shape[1], boundary)
        problem = scale.problem(
            Problem(
                filters=filters.astype(dtype, copy=False),
                geometry=geometry,
                penalty=broadcast_penalty(penalty, len(filters), geometry),
                weights=_shared_weights(weights, members),
                drawn=draw(len(filters), geometry.grid, draws, seed, step),
                nonnegative=nonnegative,
            )
        )
        chosen = scale.taken(signals, members, dtype)
        begin = None if start is None else scale.start(start[members], dtype)
        size = sum(signal.size for signal in chosen)
        share = _share_of(progress, done / total, size / total)
        own = filter_span(problem.filters) if span is not None and scale.filters.any() else span
        found = solve(scale.solver(solver), own, problem, chosen, begin, n_jobs, share)
        results.append(scale.restored(found, members))
        places.append(members)
        done += size
        if progress is not None:
            progress(done / total)
    return merge_results(results, places)


def _share_of(progress: Progress | None, first: float, share: float) -> Progress | None:
    return None if progress is None else lambda settled: progress(first + share * settled)


def _shared_weights(weights: list[NDArray] | None, members: list[int]) -> NDArray | None:
    """One array where all members share it, so that solvers can share their factors."""
    if weights is None:
        return None
    first = weights[members[0]]
    if all(weights[i] is first or np.array_equal(weights[i], first) for i in members[1:]):
        return first
    return stacked([weights[i] for i in members])


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
    bank = as_filters(to_host(filters), channels=channels)
    arrays, seen = take_signals(signals, weights, bank.ndim - 2, channels=channels)
    _check_channels(arrays, bank)
    factors, span = np.empty(len(arrays)), filter_span(bank)
    for members in group_by_shape(arrays):
        geometry = Geometry(arrays[members[0]].shape[1:], bank.shape[2:], bank.shape[1], boundary)
        problem = Problem(
            filters=bank,
            geometry=geometry,
            penalty=np.ones((len(bank), 1)),
            weights=None if seen is None else np.stack([seen[i] for i in members]),
            nonnegative=nonnegative,
        )
        factors[members] = largest_penalties(span, problem, [arrays[i] for i in members])
    if not np.isfinite(factors).all():
        raise ValueError("signals times filters overflow: divide one of them by some number")
    return factors
