"""SOCSC: learning from a stream of small batches through two surrogate statistics (the paper's Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.learners.base import Batch, Callback, ConvolutionalLearner, LearnerState
from pointillist.model.sampling import generator
from pointillist.model.signals import Signals
from pointillist.solvers.base import Solver


class OnlineCSC(ConvolutionalLearner):
    """Learn filters from mini-batches; memory does not grow with the number of signals.

    Parameters
    ----------
    batch_size : int
        Signals in a mini-batch.
    n_epochs : int
        Passes over the signals given to `fit`.
    shuffle : bool
        Whether `fit` draws the signals in random order, anew in every pass.
    forgetting : float
        γ ≥ 1: signal i enters the statistics with weight i^γ − (i−1)^γ. 1 is the paper's average over all signals; larger
        values forget the early, bad codes faster and learn better filters in the same time. Given the same codes the result
        does not depend on how signals are split into batches.
    n_filters, filter_size, penalty, sampling, solver, boundary, channels, init, nonnegative, nonnegative_filters
        As in `BatchCSC`.
    zero_mean, statistics, n_sweeps, replace_unused, tol, learning_tol, ridge, callbacks, n_jobs, device, random_state
        As in `BatchCSC`.

    Attributes
    ----------
    filters_, history_, usage_, n_iter_, n_seen_, seed_
        As in `BatchCSC`; one iteration is one mini-batch, and `usage_` sums over all of them.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((6, 60))
    >>> model = pt.OnlineCSC(n_filters=4, filter_size=5, penalty=0.5, batch_size=2, random_state=0)
    >>> for batch in np.split(signals, 3):
    ...     model = model.partial_fit(batch)
    >>> model.n_seen_
    6
    """

    def __init__(
        self,
        n_filters: int | list[int] = 100,
        filter_size: int | tuple[int, ...] | list[Any] = 11,
        penalty: float | ArrayLike = 1.0,
        *,
        sampling: float = 1.0,
        solver: str | Solver = "cd",
        boundary: str = "same",
        channels: bool = False,
        batch_size: int = 1,
        n_epochs: int = 1,
        shuffle: bool = True,
        forgetting: float = 3.0,
        init: str | ArrayLike = "random",
        nonnegative: bool = False,
        nonnegative_filters: bool = False,
        zero_mean: bool = False,
        statistics: str = "toeplitz",
        n_sweeps: int = 1,
        replace_unused: bool = True,
        tol: float = 1e-3,
        learning_tol: float | None = None,
        ridge: float = 1.0,
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_filters = n_filters
        self.filter_size = filter_size
        self.penalty = penalty
        self.sampling = sampling
        self.solver = solver
        self.boundary = boundary
        self.channels = channels
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.forgetting = forgetting
        self.init = init
        self.nonnegative = nonnegative
        self.nonnegative_filters = nonnegative_filters
        self.zero_mean = zero_mean
        self.statistics = statistics
        self.n_sweeps = n_sweeps
        self.replace_unused = replace_unused
        self.tol = tol
        self.learning_tol = learning_tol
        self.ridge = ridge
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Signals,
        y: Any = None,
        *,
        weights: Signals | None = None,
        validation: Signals | None = None,
        validation_every: int = 1,
    ) -> Self:
        """Learn filters from the signals in mini-batches, starting afresh.

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array or list of arrays of any sizes
        y : ignored
        weights : like X, optional
            w ≥ 0 for the squared error; zero marks samples that were not seen. Without weights NaN in X does.
        validation : like X, optional
            Held-out signals, coded after every `validation_every` mini-batches with the training clock stopped.
        """
        if self.batch_size < 1 or self.n_epochs < 1:
            raise ValueError(f"batch_size and n_epochs must be at least 1, got {self.batch_size} and {self.n_epochs}")
        batch = self._batch(X, weights)
        held_out = None if validation is None else self._batch(validation, None)
        state = self._state = self._start(batch)
        for chosen in self._plan(len(batch), state.seed):
            due = (state.step + 1) % validation_every == 0
            if self._step(state, batch.take(chosen), held_out if due else None):
                break
        self._sort_by_use(state)
        return self

    def partial_fit(self, X: Signals, y: Any = None, *, weights: Signals | None = None) -> Self:
        """One step with one mini-batch of any size; the order of the filters stays as it is.

        The first call makes the first filters; later ones go on, also after `fit`.
        """
        batch = self._batch(X, weights)
        if not hasattr(self, "_state"):
            self._state = self._start(batch)
        self._step(self._state, batch, None)
        return self

    def _step(self, state: LearnerState, batch: Batch, validation: Batch | None) -> bool:
        info = self._learn(state, batch, self._image_weights(state.n_seen, len(batch)))
        return self._record(state, info, validation)

    def _image_weights(self, seen: int, count: int) -> NDArray:
        """Weights i^γ − (i−1)^γ of the next signals: their sum telescopes, whatever the batches."""
        if not self.forgetting >= 1:
            raise ValueError(f"forgetting must be at least 1, got {self.forgetting}")
        powers = np.arange(seen, seen + count + 1, dtype=np.float64) ** self.forgetting
        return np.diff(powers)

    def _plan(self, count: int, seed: int) -> list[list[int]]:
        batches = []
        for epoch in range(self.n_epochs):
            order = generator(seed, epoch, 2).permutation(count) if self.shuffle else np.arange(count)
            batches += [order[i : i + self.batch_size].tolist() for i in range(0, count, self.batch_size)]
        return batches
