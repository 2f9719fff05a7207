"""What batch and online learners share: the three lines of a step (encode, add, update) and the estimator's face."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pointillist.backends.devices import is_cpu
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import Statistics, ToeplitzStatistics, make_statistics
from pointillist.dictionary.support import filter_shapes
from pointillist.dictionary.update import initial_filters, replace_filters, unused_filters, update_filters
from pointillist.learners.device import DeviceStatistics
from pointillist.learners.state import Batch, CodesHere, Coding, LearnerState, StepCodes
from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import BOUNDARIES, Geometry
from pointillist.model.operators import synthesise
from pointillist.model.problem import Problem, broadcast_penalty, inner
from pointillist.model.sampling import check_sampling, generator, seed_from
from pointillist.model.signals import Signals, group_by_shape
from pointillist.solvers import make_solver
from pointillist.solvers.base import Result, Solver, check_jobs, effective_jobs
from pointillist.solvers.device import on_device
from pointillist.solvers.encoding import decode, encode, encode_signals
from pointillist.solvers.inputs import take_signals, take_unseen
from pointillist.solvers.tiles import Progress

log = logging.getLogger(__name__)

Callback = Callable[[dict[str, Any]], bool | None]

_RIDGE_ROUNDS = {"max_iter": 4, "max_sweeps": 3, "extra": 0, "tol": 0.0}
"""How far codes with a ridge are solved: more rounds cost time and learned no better filters (measured)."""
_LEAST_RIDGE = 0.05
"""A smaller ridge is none: codes are then solved to the learning tolerance."""


class ConvolutionalLearner(TransformerMixin, BaseEstimator):
    """Base of the learners; see `BatchCSC` and `OnlineCSC` for the parameters."""

    _learning_settings: ClassVar[dict[str, dict[str, Any]]] = {
        # The paper's: ten ADMM iterations, whatever the gap.
        "admm": {"max_iter": 10, "tol": 0.0},
        "fft": {"max_iter": 10, "tol": 0.0},
        "cd": {"tol": 0.1},
    }

    n_filters: Any
    filter_size: Any
    penalty: Any
    sampling: float
    solver: str | Solver
    boundary: str
    channels: bool
    init: str | ArrayLike
    nonnegative: bool
    nonnegative_filters: bool
    zero_mean: bool
    statistics: str
    n_sweeps: int
    replace_unused: bool
    tol: float | None
    learning_tol: float | None
    ridge: float
    ridge_steps: float | None
    callbacks: Sequence[Callback]
    n_jobs: int | None
    device: str
    random_state: int | np.random.Generator | None

    def transform(self, X: Signals, weights: Signals | None = None) -> SparseCodes:
        """Sparse codes of signals for the learned filters, solved to `tol` over all codes (no sampling).

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array or list of arrays
        weights : like X, optional
            Zero marks samples that were not seen; without weights NaN does.

        Returns
        -------
        SparseCodes
        """
        return self.encode(X, weights).codes

    def fit_transform(self, X: Signals, y: Any = None, *, weights: Signals | None = None, **fit: Any) -> SparseCodes:
        """`fit`, then `transform` of the same signals with the same weights."""
        return self.fit(X, y, weights=weights, **fit).transform(X, weights)

    def encode(self, X: Signals, weights: Signals | None = None, *, progress: Progress | None = None) -> Result:
        """Like `transform`, with objective, duality gap, status and residuals; `progress` as in `pointillist.encode`."""
        check_is_fitted(self, "filters_")
        if weights is None:
            weights = self._unseen(X)
        return encode(
            X,
            self.filters_,
            self.penalty if np.ndim(self.penalty) == 0 else self.penalty_,  # an array follows its filters' order
            weights=weights,
            boundary=self.boundary,
            solver=self.solver,
            tol=self.tol,
            channels=self.channels,
            nonnegative=self.nonnegative,
            n_jobs=self.n_jobs,
            device=self.device,
            progress=progress,
        )

    def _unseen(self, X: Signals) -> list[NDArray] | None:
        """Weights of zero where X is NaN, None where it never is."""
        ndim = self.filters_.ndim - 1 - self.channels
        return take_unseen(X, ndim, channels=self.channels, device=self.device)

    def inverse_transform(self, codes: SparseCodes) -> NDArray | list[NDArray]:
        """Signals from codes: an array when they share a shape, a list otherwise."""
        check_is_fitted(self, "filters_")
        return decode(codes, self.filters_, boundary=self.boundary, channels=self.channels)

    def score(self, X: Signals, y: Any = None, weights: Signals | None = None) -> float:
        """Minus the mean objective per signal sample: higher is better.

        It compares dictionaries for *one* penalty. It cannot choose the penalty, because the penalty is part of the
        objective: the smallest one always scores best. Choose that by what the codes are for (restoration error on
        held-out samples, sparsity).
        """
        result = self.encode(X, weights)
        samples = sum(residual.size for residual in result.residuals)
        return -float(np.sum(result.objective)) / samples

    def _check_parameters(self) -> None:
        if self.boundary not in BOUNDARIES:
            raise ValueError(f"boundary must be one of {', '.join(BOUNDARIES)}, got {self.boundary!r}")
        check_sampling(self.sampling)
        if self.n_sweeps < 1:
            raise ValueError(f"n_sweeps must be at least 1, got {self.n_sweeps}")
        if self.penalty is None or not np.all(np.asarray(self.penalty, float) > 0):
            raise ValueError(f"penalty must be positive, got {self.penalty!r}")
        if not self.ridge >= 0:
            raise ValueError(f"ridge must not be negative, got {self.ridge}")
        if self.ridge_steps is not None and not self.ridge_steps > 0:
            raise ValueError(f"ridge_steps must be positive, got {self.ridge_steps}")
        check_jobs(self.n_jobs)
        is_cpu(self.device)

    def _batch(self, X: Signals, weights: Signals | None) -> Batch:
        """Check signals and weights against the parameters."""
        device = self._learning_device or "cpu"
        return Batch(*take_signals(X, weights, self._ndim(X), channels=self.channels, device=device, to_learn=True))

    @property
    def _learning_device(self) -> str | None:
        """The device that statistics live on; None is the host, where also the codes of a cluster come together."""
        shared = getattr(self, "cluster", None) is not None
        return None if is_cpu(self.device) or shared or self.statistics != "toeplitz" else self.device

    def _ndim(self, X: Signals) -> int:
        """Spatial dimensions, from the filter size if that tells, from the signals otherwise."""
        if isinstance(self.filter_size, tuple):
            return len(self.filter_size)
        if not hasattr(X, "__len__") or len(X) == 0:
            raise ValueError("X is empty: give at least one signal")
        ndim = np.ndim(X[0]) - int(self.channels)
        if ndim < 1:
            raise ValueError(
                f"X must have at least {2 + self.channels} axes, for signals and their samples, got {1 + np.ndim(X[0])}; "
                "add an axis for a single signal: X[None]"
            )
        return ndim

    def _start(self, batch: Batch, seed: int | None = None, patches: Sequence[NDArray] | None = None) -> LearnerState:
        """A fresh state, with the first filters; `patches` is what to draw them from, the batch unless it is given."""
        self._check_parameters()
        channels, ndim = batch.signals[0].shape[0], batch.signals[0].ndim - 1
        shapes = filter_shapes(self.n_filters, self.filter_size, ndim)
        size = shapes.box
        for signal in batch.signals:
            Geometry(signal.shape[1:], size, channels, self.boundary)
        constraints = FilterConstraints(self.zero_mean, self.nonnegative_filters, shapes.support())
        seed = seed_from(self.random_state) if seed is None else seed
        shape = (len(shapes.sizes), channels, *size)
        dtype = np.result_type(np.float32, *{signal.dtype for signal in batch.signals})
        drawn = batch.signals if patches is None else patches
        filters = initial_filters(self.init, shape, constraints, drawn, generator(seed, 0), dtype)
        sums = self._statistics(shape[0], channels, size)
        return LearnerState(filters, sums, constraints, self._penalty(), seed, usage=np.zeros(shape[0]))

    def _statistics(self, n_filters: int, channels: int, size: tuple[int, ...]) -> Statistics:
        """Empty statistics, on the device where that knows them."""
        if self._learning_device:
            return DeviceStatistics(n_filters, channels, size, self._learning_device)
        return make_statistics(self.statistics, n_filters, channels, size)

    def _move_statistics(self, state: LearnerState) -> None:
        """Follow a change of the parameter `device`."""
        sums, (n_filters, channels, *size) = state.statistics.arrays(), state.filters.shape
        state.statistics = self._statistics(n_filters, channels, tuple(size))
        state.statistics.restore(sums)

    def _penalty(self) -> float | NDArray:
        """The penalty as it is used, a copy: reordering filters reorders their own penalties."""
        return float(self.penalty) if np.ndim(self.penalty) == 0 else np.array(self.penalty, np.float64)

    def _solver(self, step: int) -> Solver:
        """The solver for a step's codes: a named one works as its `_learning_settings` say, an object as it is."""
        settings = self._learning_settings.get(self.solver, {}) if isinstance(self.solver, str) else {}
        if self.learning_tol is not None:
            settings = {**settings, "tol": self.learning_tol}
        elif self.solver == "cd":
            half = self._ridge_steps() if self.ridge_steps is None else self.ridge_steps
            ridge = float(self.ridge) / (1 + (step / half) ** 2)
            if ridge >= _LEAST_RIDGE:
                settings = {**_RIDGE_ROUNDS, "ridge": ridge}
        return on_device(make_solver(self.solver, **settings), self.device, resident=self._learning_device is not None)

    def _ridge_steps(self) -> float:
        """Steps after which the ridge is half of what it was at first, unless `ridge_steps` says so."""
        return 10.0

    def _learn(
        self, state: LearnerState, batch: Batch, image_weights: NDArray, start: SparseCodes | None = None
    ) -> dict[str, Any]:
        """One step: encode the batch with the current filters, add its statistics, update the filters."""
        begin = time.perf_counter()
        codes = CodesHere(self, batch, self._encode(state, batch, start))
        state.codes = codes.result.codes
        return self._take_in(state, codes, image_weights, begin)

    def _encode(self, state: Coding, batch: Batch, start: SparseCodes | None = None) -> Result:
        """Codes for the next step."""
        if any(signal.shape[0] != state.filters.shape[1] for signal in batch.signals):
            raise ValueError(f"X must have {state.filters.shape[1]} channels, as before")
        return encode_signals(
            batch.signals,
            state.filters,
            state.penalty,
            weights=batch.weights,
            sampling=float(self.sampling),
            boundary=self.boundary,
            solver=self._solver(state.step),
            nonnegative=self.nonnegative,
            n_jobs=effective_jobs(self.n_jobs),
            seed=state.seed,
            step=state.step + 1,
            start=start,
        )

    def _take_in(self, state: LearnerState, codes: StepCodes, image_weights: NDArray, begin: float) -> dict[str, Any]:
        """What a step does once its codes are known; `begin` is when the step began."""
        if isinstance(state.statistics, DeviceStatistics) != (self._learning_device is not None):
            self._move_statistics(state)
        codes.add_to(state, image_weights)
        state.step += 1
        state.n_seen += len(codes)
        state.usage = state.usage + codes.usage()
        state.filters = update_filters(state.filters, state.statistics, state.constraints, n_sweeps=self.n_sweeps)
        unused = unused_filters(state.statistics) if self.replace_unused else np.empty(0, int)
        if len(unused):
            rng = generator(state.seed, state.step, 1)
            state.filters = replace_filters(state.filters, unused, codes.residuals(), state.constraints, rng)
        state.seconds += time.perf_counter() - begin
        return {
            "iteration": state.step,
            "seconds": state.seconds,
            "objective": codes.objective(state),
            "nnz": codes.nnz,
            "gap": codes.gap,
            "n_seen": state.n_seen,
            "replaced": len(unused),
        }

    def _problem(self, filters: NDArray, penalty: float | NDArray, batch: Batch, i: int) -> Problem:
        geometry = Geometry(batch.signals[i].shape[1:], filters.shape[2:], filters.shape[1], self.boundary)
        weights = None if batch.weights is None else batch.weights[i]
        price = broadcast_penalty(penalty, len(filters), geometry)
        return Problem(filters=filters, geometry=geometry, penalty=price, weights=weights)

    def _groups(self, state: LearnerState, batch: Batch) -> Iterator[tuple[list[int], Problem, list[NDArray] | None]]:
        """Signals of one shape, the problem that they share but for its weights, and these."""
        for members in group_by_shape(batch.signals):
            weights = None if batch.weights is None else [batch.weights[i] for i in members]
            yield members, self._problem(state.filters, state.penalty, batch, members[0]), weights

    def _runs(self, state: LearnerState, batch: Batch) -> Iterator[tuple[list[int], Problem, list[NDArray] | None]]:
        """The same for signals of one shape that follow each other, so that their order is kept."""
        for _, run in groupby(range(len(batch)), lambda i: batch.signals[i].shape):
            members = list(run)
            weights = None if batch.weights is None else [batch.weights[i] for i in members]
            yield members, self._problem(state.filters, state.penalty, batch, members[0]), weights

    def _add(self, state: LearnerState, batch: Batch, result: Result, image_weights: NDArray) -> None:
        sums, codes = state.statistics, result.codes
        if isinstance(sums, ToeplitzStatistics | DeviceStatistics):
            parts = self._groups if isinstance(sums, DeviceStatistics) else self._runs
            for members, problem, weights in parts(state, batch):
                some, residuals = codes[members], [result.residuals[i] for i in members]
                sums.add_all(problem, (some.indices, some.values), residuals, image_weights[members], weights)
            return
        for i, signal in enumerate(batch.signals):
            problem, residual = self._problem(state.filters, state.penalty, batch, i), result.residuals[i]
            sums.add(problem, 0, signal, codes.indices[i], codes.values[i], residual, float(image_weights[i]))

    def _objectives(self, state: LearnerState, batch: Batch, codes: SparseCodes) -> NDArray:
        """Objective of each signal for given codes and the current filters, in float64."""
        objectives = np.empty(len(batch))
        if isinstance(state.statistics, DeviceStatistics):
            for members, problem, weights in self._groups(state, batch):
                some, signals = codes[members], [batch.signals[i] for i in members]
                given = (some.indices, some.values)
                objectives[members] = state.statistics.objectives(problem, given, signals, weights)
            return objectives
        filters = state.filters.astype(np.float64)
        shapes = [signal.shape[1:] for signal in batch.signals]
        fits = synthesise(codes, filters, shapes, filters.shape[1], self.boundary)
        for i, (signal, fit) in enumerate(zip(batch.signals, fits, strict=True)):
            squares = (signal - fit) ** 2
            loss = 0.5 * float(np.sum(squares if batch.weights is None else batch.weights[i] * squares))
            price = self._problem(filters, state.penalty, batch, i).penalty_at(codes.indices[i])
            objectives[i] = loss + inner(price, np.abs(codes.values[i]))
        return objectives

    def _record(self, state: LearnerState, info: dict[str, Any], validation: Batch | None) -> bool:
        """Append to the history, with the clock stopped; true when a callback asks to stop."""
        if validation is not None:
            held_out = encode_signals(
                validation.signals,
                state.filters,
                state.penalty,
                weights=validation.weights,
                sampling=1.0,
                boundary=self.boundary,
                solver=on_device(make_solver(self.solver, tol=self.tol), self.device),
                nonnegative=self.nonnegative,
                n_jobs=effective_jobs(self.n_jobs),
                seed=state.seed,
            )
            info["validation_objective"] = float(np.sum(held_out.objective))
        state.history.append(info)
        log.info("iteration %(iteration)d: objective %(objective).6g, %(nnz)d non-zeros", info)
        self._publish(state)
        return any([bool(callback(dict(info))) for callback in self.callbacks])

    def _publish(self, state: LearnerState) -> None:
        """Set the fitted attributes, so that whatever interrupts learning leaves a usable model."""
        self.filters_ = state.filters if self.channels else state.filters[:, 0]
        self.history_ = state.history
        self.n_iter_ = state.step
        self.n_seen_ = state.n_seen
        self.seed_ = state.seed
        self.usage_ = state.usage
        self.penalty_ = state.penalty

    def _sort_by_use(self, state: LearnerState) -> None:
        """Reorder the filters by how much the codes used them, the most used first."""
        order = np.argsort(-state.usage, kind="stable")
        state.filters = np.ascontiguousarray(state.filters[order])
        state.usage = state.usage[order]
        state.statistics.permute(order)
        if np.ndim(state.penalty) in (1, state.filters.ndim - 1) and np.shape(state.penalty)[0] == len(order):
            state.penalty = np.asarray(state.penalty)[order]
        if state.constraints.support is not None:
            state.constraints = replace(state.constraints, support=state.constraints.support[order])
        self._publish(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filters_")

    @property
    def n_parameters_(self) -> int:
        """Number of learned samples in all filters."""
        check_is_fitted(self, "filters_")
        return prod(self.filters_.shape)
