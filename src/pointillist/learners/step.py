"""One step of learning: encode a batch with the current filters, add its codes to the statistics, update the filters.

A `Step` is a value: settings that were checked, and verbs that work on a `LearnerState`. Learners, checkpoints and the
workers of a cluster hold one. It knows nothing of scikit-learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.cuda.device import is_cpu
from pointillist.dictionary.constraints import FilterConstraints, filter_shapes
from pointillist.dictionary.robust import Robust, cell_counts
from pointillist.dictionary.statistics import CodedBatch, Statistics, make_statistics
from pointillist.dictionary.update import (
    FilterUpdate,
    duplicate_filters,
    filters_in_turn,
    initial_filters,
    replace_filters,
    step_length,
    unused_filters,
    update_filters,
)
from pointillist.learners.coding import Learning, check_learning, judging_solver, learning_solver
from pointillist.learners.inputs import Batch, check_coding, checked_batch, to_learn_from
from pointillist.learners.state import CodesHere, Coding, LearnerState, StepCodes, what_counts
from pointillist.problem import Geometry
from pointillist.reprs import shown
from pointillist.sampling import ALL, Draws, Sampling, as_draws, generator
from pointillist.solvers.base import Result, Solver
from pointillist.solvers.device import on_device
from pointillist.solvers.encoding import encode_signals
from pointillist.validation import Signals, check_arguments

_SEARCHES = (1, 2, 4, 8, 16, 32, 64)
"""Steps in which duplicates are looked for: it takes a while, and a filter that is replaced needs steps to be learned."""


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
    n_jobs: int
    device: str
    home: str

    def __post_init__(self) -> None:
        check_coding(
            self.penalty, boundary=self.boundary, channels=self.channels, nonnegative=self.nonnegative, tol=self.tol
        )
        as_draws(self.sampling)
        check_learning(self.solver, self.learning)
        judging_solver(self.solver, self.tol)
        check_arguments(rank=self.rank)
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
        filters = initial_filters(self.update.init, shape, constraints, drawn, generator(seed, 0), dtype)
        # A copy: reordering filters reorders their own penalties.
        penalty = float(self.penalty) if np.ndim(self.penalty) == 0 else np.array(self.penalty, np.float64)
        return LearnerState(filters, self.empty(shape), constraints, penalty, seed, usage=np.zeros(shape[0]))

    def empty(self, shape: tuple[int, ...], sums: dict[str, NDArray] | None = None) -> Statistics:
        """Statistics for filters of shape (n_filters, channels, *size), empty or with given sums."""
        made = make_statistics(self.update.statistics, shape[0], shape[1], tuple(shape[2:]), self.home)
        if sums:
            made.load(sums)
        return made

    def encode(self, state: Coding, batch: Batch, start: SparseCodes | None = None) -> Result:
        """Solve for the codes of a batch in the next step."""
        if any(signal.shape[0] != state.filters.shape[1] for signal in batch.signals):
            raise ValueError(f"X must have {state.filters.shape[1]} channels, as before")
        draws = as_draws(self.sampling)
        ndim = state.filters.ndim - 2
        solver = learning_solver(self.solver, self.learning, state.step, self.half_life, ndim, draws.share)
        coder = on_device(solver, self.device, resident=self.resident is not None)
        ahead = self.resident is not None
        return self._solve(state, batch, coder, draws, step=state.step + 1, ahead=ahead, start=start)

    def objective(self, state: Coding, batch: Batch) -> float:
        """The objective of signals, summed, over all codes and to `tol`: what held-out signals are judged by."""
        coder = on_device(judging_solver(self.solver, self.tol), self.device)
        return float(np.sum(self._solve(state, batch, coder, ALL).objective))

    def _solve(self, state: Coding, batch: Batch, solver: Solver, draws: Draws, **more: Any) -> Result:
        return encode_signals(
            batch.signals,
            state.filters,
            state.penalty,
            weights=batch.weights,
            draws=draws,
            boundary=self.boundary,
            solver=solver,
            nonnegative=self.nonnegative,
            n_jobs=self.n_jobs,
            seed=state.seed,
            **more,
        )

    def coded(self, batch: Batch, result: Result) -> CodedBatch:
        """Put a batch and its codes together as a `CodedBatch`, for statistics."""
        return CodedBatch(batch.signals, batch.weights, result.codes, result.residuals, self.boundary)

    def codes(self, batch: Batch, result: Result) -> CodesHere:
        """Put a batch and its codes together as `StepCodes`, for `learn`."""
        return CodesHere(self.coded(batch, result), float(np.mean(result.gap)), self.n_jobs, batch.numbers)

    def learn(self, state: LearnerState, codes: StepCodes, counts: NDArray, begin: float) -> dict[str, Any]:
        """Take in the codes of a step, update the filters, and return the step's record.

        Parameters
        ----------
        state : LearnerState
            Changed in place.
        codes : StepCodes
        counts : (n_signals,) array
            How much each signal counts in the statistics.
        begin : float
            When the step began, by `LearnerState.now`.
        """
        if state.statistics.device != self.home:
            state.statistics = self.empty(state.filters.shape, state.statistics.arrays())
        gap, seen, judged = codes.gap, len(codes), {}
        if self.robust is not None:
            codes, counts, judged["outliers"] = what_counts(self.robust, state, codes, counts)
        state.step += 1
        state.n_seen += seen
        replaced = self._take_in(state, codes, counts) if len(codes) else 0
        state.seconds += state.now() - begin
        return {
            "iteration": state.step,
            "seconds": state.seconds,
            "objective": codes.objective(state) if len(codes) else 0.0,
            "nnz": codes.nnz,
            "gap": gap,
            "n_seen": state.n_seen,
            "replaced": replaced,
            **judged,
        }

    def _take_in(self, state: LearnerState, codes: StepCodes, counts: NDArray) -> int:
        """Add codes to the statistics, improve the filters, and replace unused ones; returns how many were replaced."""
        codes.add_to(state, counts)
        state.usage = state.usage + codes.usage()
        sweeps, chosen, relaxation = self.update.n_sweeps, None, 1.0
        if sweeps is None and self.rank is None:
            share = float(np.sum(counts)) / state.statistics.total
            chosen = filters_in_turn(len(state.filters), state.step, share)
            relaxation = step_length(share, state.filters.ndim - 2)
        state.filters = update_filters(
            state.filters,
            state.statistics,
            state.constraints,
            n_sweeps=sweeps or 1,
            chosen=chosen,
            relaxation=relaxation,
            n_jobs=self.n_jobs,
        )
        unused = self._useless(state) if self.update.replace_unused else np.empty(0, int)
        if len(unused):
            rng = generator(state.seed, state.step, 1)
            state.filters = replace_filters(state.filters, unused, codes.residuals(), state.constraints, rng)
        return len(unused)

    def _useless(self, state: LearnerState) -> NDArray:
        """Filters that no code uses and, now and then, those of a rank that duplicate others: these leave the statistics."""
        unused, rank = unused_filters(state.statistics), self.rank
        if rank is None or state.step not in _SEARCHES:
            return unused
        duplicates = np.setdiff1d(duplicate_filters(state.filters, state.statistics, rank), unused)
        if len(duplicates):
            state.statistics.retire(state.filters, duplicates)
        return np.union1d(unused, duplicates)
