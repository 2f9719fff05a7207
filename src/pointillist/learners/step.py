"""One step of learning, as a value: encode a batch with the current filters, add its codes to the statistics, update.

A `Step` holds settings that were checked, and verbs that work on a `LearnerState`. Learners, checkpoints and the workers of
a cluster hold one; it knows nothing of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.arrays import is_cpu
from pointillist.codes import SparseCodes
from pointillist.data.damage import OnError, note_skipped, nothing_usable
from pointillist.data.sources import (
    ArraySource,
    IteratorSource,
    Stream,
    UnreadBatch,
    as_source,
    read_batch,
)
from pointillist.data.sources.base import Cache
from pointillist.dictionary.constraints import FilterConstraints, filter_shapes
from pointillist.dictionary.robust import Robust, Windows, cell_counts, error_limit, window_errors, without_outliers
from pointillist.dictionary.statistics import CodedBatch, Statistics, make_statistics
from pointillist.dictionary.update import (
    FilterUpdate,
    duplicate_filters,
    filters_in_turn,
    initial_filters,
    replace_filters,
    step_length,
    unused_filters,
)
from pointillist.kernels.compiling import working_time
from pointillist.problem import Geometry, check_penalty
from pointillist.reprs import shown
from pointillist.sampling import ALL, Sampling, as_draws, generator
from pointillist.solvers.base import Result, Solver
from pointillist.solvers.encoding import encode_signals, make_solver
from pointillist.validation import Batch, Signals, check_arguments, checked_batch, is_number, to_learn_from


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that learning was tuned by; ``python -m benchmarks.study`` and ``benchmarks.online`` measure them."""

    gap: float = 0.1
    """Relative duality gap of codes without a ridge: better codes learn no better filters in the same time."""
    few: float = 0.25
    """Share of all codes, at most, for which fewer rounds do: they learned filters as good in less time."""
    least_ridge: float = 0.05
    """Ridge below which codes of one dimension are solved to `gap` instead: their long filters overlap more."""
    searches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Steps in which duplicates are looked for: it takes a while, and a replaced filter needs steps to be learned."""
    steps: int = 60
    """Mini-batches after which filters look like something: passes are made until then where nobody says how many."""
    forgetting: float = 4.0
    """Power by which a stream forgets its early codes; measured by ``benchmarks.online``."""
    half_life: float = 10.0
    """Mini-batches after which half of the ridge is left."""
    latest: int = 256
    """Errors of windows that are kept: enough for a median, few enough to follow filters that improve."""
    remembered: int = 10_000
    """Windows that were left out and are remembered."""


TUNING = Tuning()
_ROUNDS: dict[str, Any] = {"cells": (3, 2, 1), "max_iter": 3, "max_sweeps": 2, "extra": 0, "tol": 0.0}
_ROUNDS_OF_FEW = {**_ROUNDS, "max_iter": 2, "max_sweeps": 3}
_ROUNDS_ON_A_LINE = {**_ROUNDS, "max_iter": 4, "max_sweeps": 3}


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


@dataclass(kw_only=True)
class Brief:
    """Part of a state that the codes of a step depend on; the workers of a cluster get it once a step."""

    filters: NDArray  # (n_filters, channels, *size)
    penalty: float | NDArray
    seed: int
    step: int = 0

    def brief(self) -> Brief:
        """A copy of this part alone."""
        return Brief(filters=self.filters, penalty=self.penalty, seed=self.seed, step=self.step)


def outlier_table(places: NDArray, errors: NDArray) -> NDArray:
    """Windows as a structured array, from their places (m, 1 + 2 · axes) and errors (m,).

    A place is the number of the signal, the first sample along each axis, and the sample after the last along each.
    """
    ndim = places.shape[1] // 2
    axes = np.int64, (ndim,)
    table = np.zeros(len(places), [("signal", np.int64), ("start", *axes), ("stop", *axes), ("error", np.float64)])
    table["signal"], table["error"] = places[:, 0], errors
    table["start"], table["stop"] = places[:, 1 : 1 + ndim], places[:, 1 + ndim :]
    return table


@dataclass
class WindowRecord:
    """The errors of the latest windows, by which windows are judged, and the windows that were left out.

    Attributes
    ----------
    errors : (n,) float64 array
        Oldest first; n is bounded.
    left : (m,) structured array
        The windows that were left out, as `outlier_table` makes it; m is bounded.
    """

    errors: NDArray
    left: NDArray

    @classmethod
    def empty(cls, ndim: int) -> Self:
        """A record for signals of so many axes in which nothing was judged."""
        return cls(np.zeros(0), outlier_table(np.zeros((0, 1 + 2 * ndim), np.int64), np.zeros(0)))

    def judge(self, windows: Sequence[Windows], numbers: Sequence[int], robust: Robust, step: int) -> list[NDArray]:
        """Find the outliers among the windows of each signal, and remember them under the numbers of the signals.

        The limit follows from the errors of this step and the latest ones before it; `step` counts the steps before. What
        was left out when the same signals were judged before is forgotten.
        """
        new = np.concatenate([one.errors.ravel() for one in windows])
        new = new[~np.isnan(new)]
        known = np.concatenate([self.errors, new])[-max(TUNING.latest, len(new)) :]
        self.errors = known[-TUNING.latest :]
        limit = error_limit(robust, known, step)
        outliers = [one.errors > limit for one in windows]
        found = [self.left[~np.isin(self.left["signal"], np.asarray(numbers))]]
        for number, one, chosen in zip(numbers, windows, outliers, strict=True):
            boxes = one.boxes(chosen)
            places = np.column_stack([np.full(len(boxes), number), boxes])
            found.append(outlier_table(places, one.errors[chosen]))
        self.left = np.concatenate(found)[-TUNING.remembered :]
        return outliers


@dataclass(kw_only=True, repr=False)
class LearnerState(Brief):
    """All that a learner carries from one step to the next."""

    statistics: Statistics
    constraints: FilterConstraints
    windows: WindowRecord  # empty unless learning is robust
    n_seen: int = 0
    seconds: float = 0.0
    usage: NDArray = field(default_factory=lambda: np.zeros(0))
    history: list[dict[str, Any]] = field(default_factory=list)

    def sort_by_use(self) -> None:
        """Reorder the filters by how much the codes used them, the most used first, and all that follows their order."""
        order = np.argsort(-self.usage, kind="stable")
        self.filters = np.ascontiguousarray(self.filters[order])
        self.usage = self.usage[order]
        self.statistics.permute(order)
        if np.ndim(self.penalty) in (1, self.filters.ndim - 1) and np.shape(self.penalty)[0] == len(order):
            self.penalty = np.asarray(self.penalty)[order]
        if self.constraints.support is not None:
            self.constraints = replace(self.constraints, support=self.constraints.support[order])


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """The settings of a step of learning, checked.

    Parameters
    ----------
    n_filters, filter_size, penalty, sampling, solver, boundary, channels, nonnegative, rank, robust, learning, tol, device
        As in `BatchCSC`.
    update : FilterUpdate
    half_life : float
        Steps after which half of the ridge is left, where `learning` does not say.
    forgetting : float
        γ: signal i counts i^γ − (i−1)^γ in the statistics.
    n_jobs : int
        Threads.
    home : str
        Where statistics live: "cpu" or the name of a CUDA device.
    """

    n_filters: Any
    filter_size: Any
    penalty: Any
    sampling: Sampling
    solver: str | Solver
    boundary: str
    channels: bool
    nonnegative: bool
    rank: int | None
    robust: Robust | None
    learning: Learning
    update: FilterUpdate
    tol: float | None
    half_life: float
    forgetting: float
    n_jobs: int
    device: str
    home: str

    def __post_init__(self) -> None:
        check_arguments(
            boundary=self.boundary, channels=self.channels, nonnegative=self.nonnegative, rank=self.rank, tol=self.tol
        )
        check_penalty(self.penalty)
        as_draws(self.sampling)
        make_solver(self.solver, tol=self.tol)
        learning, named = self.learning, isinstance(self.solver, str)
        if learning is not None and (not named or (isinstance(learning, Ridge) and self.solver != "cd")):
            raise ValueError(
                f'learning={learning!r} is not for solver={self.solver!r}: a Ridge is for "cd", a duality gap for all named '
                "solvers, and a solver object has settings of its own"
            )
        if not isinstance(learning, Ridge | None) and not (is_number(learning) and learning >= 0):
            raise ValueError(f"learning must be None, a Ridge or a relative duality gap such as 0.1, got {learning!r}")
        if self.robust is not None and not isinstance(self.robust, Robust):
            raise ValueError(f"robust must be None or a Robust, got {shown(self.robust)}")
        if self.rank is not None and not self.channels:
            raise ValueError(f"rank={self.rank} is over channels: give channels=True, or leave rank out")
        self.constraints()

    def constraints(self, support: NDArray | None = None) -> FilterConstraints:
        """The set that filters live in; `support` is (n_filters, *size), for filters of several sizes."""
        return FilterConstraints(self.update.zero_mean, self.update.nonnegative, support, self.rank)

    @property
    def resident(self) -> str | None:
        """The device that statistics live on; None is the host."""
        return None if is_cpu(self.home) else self.home

    def box(self, signal: NDArray) -> tuple[int, ...]:
        """The box that all filters fit into, which depends on the number of axes of a signal ([channels,] *space) only."""
        return filter_shapes(self.n_filters, self.filter_size, signal.ndim - int(self.channels)).box

    def check(self, X: Signals, weights: Signals | None = None, *, skip: bool = False, move: bool = False) -> Batch:
        """Check signals and weights of users against the settings and make a batch of them.

        With `skip` the batch is without the signals that nothing can be learned from, and says why. With `move` an array
        goes to the device that statistics live on.
        """
        X, ndim = to_learn_from(X, self.filter_size, self.channels)
        least = filter_shapes(self.n_filters, self.filter_size, ndim).box if skip else None
        return checked_batch(X, weights, ndim, self.channels, self.resident, least, move=move)

    def start(self, batch: Batch, seed: int, patches: Sequence[NDArray] | None = None) -> LearnerState:
        """A fresh state, with the first filters; `patches` is what to draw them from, the batch unless it is given."""
        channels, ndim = batch.signals[0].shape[0], batch.signals[0].ndim - 1
        shapes = filter_shapes(self.n_filters, self.filter_size, ndim)
        for signal in batch.signals:
            geometry = Geometry(signal.shape[1:], shapes.box, channels, self.boundary)
            if self.robust is not None:
                cell_counts(self.robust, geometry)  # refuses windows of another number of axes
        constraints = self.constraints(shapes.support())
        constraints.check_shape(channels, shapes.box)
        shape = (len(shapes.sizes), channels, *shapes.box)
        dtype = np.result_type(np.float32, *{signal.dtype for signal in batch.signals})
        drawn = batch.signals if patches is None else patches
        return LearnerState(
            filters=initial_filters(self.update.init, shape, constraints, drawn, generator(seed, 0), dtype),
            # A copy: reordering filters reorders their own penalties.
            penalty=float(self.penalty) if np.ndim(self.penalty) == 0 else np.array(self.penalty, np.float64),
            seed=seed,
            statistics=self.empty(shape),
            constraints=constraints,
            windows=WindowRecord.empty(ndim),
            usage=np.zeros(shape[0]),
        )

    def empty(self, shape: tuple[int, ...], sums: dict[str, NDArray] | None = None) -> Statistics:
        """Statistics for filters of shape (n_filters, channels, *size), empty or with given sums."""
        made = make_statistics(self.update.statistics, shape[0], shape[1], tuple(shape[2:]), self.home)
        if sums:
            made.load(sums)
        return made

    def coder(self, step: int, ndim: int) -> Solver:
        """The solver for the codes of a step, of signals of `ndim` dimensions: roughly, and at first with a ridge."""
        if not isinstance(self.solver, str):
            return self.solver
        if self.learning is None and self.solver != "cd":  # the paper's: ten iterations, whatever the gap
            return make_solver(self.solver, max_iter=10, tol=0.0)
        learning = Ridge() if self.learning is None else self.learning
        if not isinstance(learning, Ridge):
            return make_solver(self.solver, tol=float(learning))
        half = self.half_life if learning.half_life is None else learning.half_life
        ridge = float(learning.strength) / (1 + (step / half) ** 2)
        if ndim == 1:
            if ridge < TUNING.least_ridge:
                return make_solver(self.solver, tol=TUNING.gap)
            return make_solver(self.solver, **_ROUNDS_ON_A_LINE, ridge=ridge)
        rounds = _ROUNDS_OF_FEW if as_draws(self.sampling).share <= TUNING.few else _ROUNDS
        return make_solver(self.solver, **rounds, ridge=ridge)

    def encode(self, state: Brief, batch: Batch, start: SparseCodes | None = None) -> Result:
        """Solve for the codes of a batch in the next step."""
        if any(signal.shape[0] != state.filters.shape[1] for signal in batch.signals):
            raise ValueError(f"X must have {state.filters.shape[1]} channels, as before")
        coder = self.coder(state.step, state.filters.ndim - 2)
        solver = make_solver(coder, self.device, resident=self.resident is not None)
        return self._solve(state, batch, solver, draws=as_draws(self.sampling), step=state.step + 1, start=start)

    def objective(self, state: Brief, batch: Batch) -> float:
        """The objective of signals, summed, over all codes and to `tol`: what held-out signals are judged by."""
        solver = make_solver(self.solver, self.device, tol=self.tol)
        return float(np.sum(self._solve(state, batch, solver, draws=ALL).objective))

    def _solve(self, state: Brief, batch: Batch, solver: Solver, **more: Any) -> Result:
        return encode_signals(
            batch.signals,
            state.filters,
            state.penalty,
            weights=batch.weights,
            boundary=self.boundary,
            solver=solver,
            nonnegative=self.nonnegative,
            n_jobs=self.n_jobs,
            seed=state.seed,
            **more,
        )

    def learn(self, state: LearnerState, batch: Batch, result: Result, begin: float) -> dict[str, Any]:
        """Add the codes of a batch to the statistics, update the filters in `state`, and return the step's record.

        Parameters
        ----------
        state : LearnerState
            Changed in place.
        batch : Batch
        result : Result
            Its codes for the filters of `state`.
        begin : float
            When the step began, by `working_time`, which stands still while kernels are compiled.
        """
        if state.statistics.device != self.home:
            state.statistics = self.empty(state.filters.shape, state.statistics.arrays())
        coded = CodedBatch(batch.signals, batch.weights, result.codes, result.residuals, self.boundary)
        judged, replaced = {}, 0
        counts = np.diff(np.arange(state.n_seen, state.n_seen + len(batch) + 1, dtype=np.float64) ** self.forgetting)
        if self.robust is not None:
            numbers = range(state.n_seen, state.n_seen + len(batch)) if batch.numbers is None else batch.numbers
            coded, counts, judged["outliers"] = self._without_outliers(self.robust, state, coded, numbers, counts)
        state.step += 1
        state.n_seen += len(batch)
        if len(coded):
            state.statistics.add(coded, state.filters, counts, self.n_jobs)
            state.usage = state.usage + coded.codes.usage()
            turns, relaxation = None, 1.0
            if self.update.n_sweeps is None and self.rank is None:
                share = (
                    float(np.sum(counts)) / state.statistics.total
                )  # of the step's signals in all that were summed up
                turns = filters_in_turn(len(state.filters), state.step, share)
                relaxation = step_length(share, state.filters.ndim - 2)
            for _ in range(self.update.n_sweeps or 1):
                state.filters = state.statistics.sweep(
                    state.filters, state.constraints, turns, relaxation=relaxation, n_jobs=self.n_jobs
                )
            unused = self._unused(state) if self.update.replace_unused else np.empty(0, int)
            replaced = len(unused)
            if replaced:
                rng = generator(state.seed, state.step, 1)
                state.filters = replace_filters(state.filters, unused, coded.residuals, state.constraints, rng)
        state.seconds += working_time() - begin
        objectives = state.statistics.objectives(coded, state.filters, state.penalty) if len(coded) else 0.0
        return {
            "iteration": state.step,
            "seconds": state.seconds,
            "objective": float(np.sum(objectives)),
            "nnz": coded.codes.nnz,
            "gap": float(np.mean(result.gap)),
            "n_seen": state.n_seen,
            "replaced": replaced,
            **judged,
        }

    def _unused(self, state: LearnerState) -> NDArray:
        """Filters that no code uses and, now and then, those of a rank that duplicate others: these leave the statistics."""
        unused = unused_filters(state.statistics)
        if self.rank is None or state.step not in TUNING.searches:
            return unused
        duplicates = np.setdiff1d(duplicate_filters(state.filters, state.statistics, self.rank), unused)
        if len(duplicates):
            state.statistics.forget(duplicates)
        return np.union1d(unused, duplicates)

    def _without_outliers(
        self, robust: Robust, state: LearnerState, coded: CodedBatch, numbers: Sequence[int], counts: NDArray
    ) -> tuple[CodedBatch, NDArray, int]:
        """Codes without the windows that are outliers, what each signal that is left counts, and the number of outliers."""
        windows = window_errors(coded, state.filters, state.penalty, robust)
        outliers = state.windows.judge(windows, numbers, robust, state.step)
        counted = [one.outside(chosen) for one, chosen in zip(windows, outliers, strict=True)]
        left = [i for i, cells in enumerate(counted) if cells.any()]
        kept = without_outliers(coded, state.filters, counted, state.constraints.support)
        return kept, counts[left], sum(int(one.sum()) for one in outliers)


def default_passes(n_signals: int, batch_size: int) -> int:
    """Passes over so many signals that make `Tuning.steps` mini-batches at least."""
    return ceil(TUNING.steps / ceil(n_signals / batch_size))


class Feed:
    """Mini-batches of a run: of arrays, which are checked at once, or of a source, read as the run goes on.

    Parameters
    ----------
    X, weights, batch_size, n_epochs, on_error
        As `OnlineCSC` takes them.
    step : Step
        Checks signals; those of a source that are smaller than its filters are of no use.
    settings
        Further settings of the stream.

    Attributes
    ----------
    stream : Stream
        Which signals make up which batch, and how far the run is.
    whole : Batch or None
        All signals, where they are arrays.
    """

    def __init__(
        self,
        X: Any,
        weights: Any,
        step: Step,
        *,
        batch_size: int,
        n_epochs: int | None,
        on_error: OnError,
        **settings: Any,
    ) -> None:
        self._step, self.whole = step, None
        arrays = hasattr(X, "__array__") or hasattr(X, "__cuda_array_interface__") or scipy.sparse.issparse(X)
        if arrays or isinstance(X, Sequence):
            self.whole = step.check(X, weights, skip=on_error == "skip").numbered()
            if not len(self.whole):
                raise nothing_usable(self.whole.skipped)
            source: Any = ArraySource(self.whole.signals)
        elif weights is not None:
            raise ValueError("weights are for arrays: mark samples of a source that were not seen by NaN")
        else:
            source = as_source(X)
            settings |= {"least": step.box, "on_error": on_error}
        if n_epochs is None:
            n_epochs = 1 if isinstance(source, IteratorSource) else default_passes(len(source), batch_size)
        self.stream = Stream(source, batch_size=batch_size, n_epochs=n_epochs, **settings)
        if self.whole is not None:
            note_skipped(self.stream.skipped, self.whole.skipped)

    def __iter__(self) -> Iterator[Batch]:
        if self.whole is None:
            yield from map(self._step.check, self.stream)
            return
        for unread in self.stream.unread():
            self.stream.hand_out(unread)
            yield self.whole.take(unread.indices)

    def first(self) -> Batch:
        """All signals where they are at hand, else a first batch, which comes again when the feed is iterated over."""
        return self._step.check(self.stream.first()) if self.whole is None else self.whole

    @property
    def elsewhere(self) -> Stream | None:
        """The stream, where workers of a cluster can read its batches themselves; None otherwise."""
        return None if self.whole is not None or isinstance(self.stream.source, IteratorSource) else self.stream

    def patches(self) -> Sequence[NDArray] | None:
        """The signals that first filters can be drawn from; None for an iterator."""
        if self.whole is not None:
            return self.whole.signals
        return None if isinstance(self.stream.source, IteratorSource) else _Readable(self.stream, self._step)


class _Readable(Sequence[NDArray]):
    """The signals of a source as a sequence; for one that cannot be read or used the next that can."""

    def __init__(self, stream: Stream, step: Step) -> None:
        self._source, self._step, self._cache = stream.source, step, Cache(2**26)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return self._cache.get(int(index), lambda: self._usable(int(index)))

    def _usable(self, index: int) -> NDArray:
        for tried in range(index, index + len(self)):
            read = read_batch(self._source, UnreadBatch(0, 0, (tried % len(self),)), self._step.box, "skip")
            if read.signals:
                return self._step.check(read.signals).signals[0]
        raise nothing_usable(read.skipped)
