"""SBCSC: learning from all signals at every iteration (the paper's Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pointillist.learners.base import Callback, ConvolutionalLearner, LearnerState
from pointillist.learners.device import placed
from pointillist.model.signals import Signals
from pointillist.solvers.base import Solver


class BatchCSC(ConvolutionalLearner):
    """Learn filters from a set of signals, all of them at every iteration.

    Parameters
    ----------
    n_filters : int or list of int
        Number of filters, K; a list counts the filters of each size.
    filter_size : int, tuple of int or list of these
        Filter shape; an integer serves every axis. A list makes filters of several sizes, ``[5, 11, 21]`` with
        ``n_filters=[20, 60, 20]``, each zero outside its own support, all centres on one sample.
    penalty : float or array
        λ, the price of a code.
    sampling : float in (0, 1]
        p, the fraction of codes solved for in an iteration; the paper's choice is 0.1 to 0.2. The default of all codes
        learns better filters in the same time, since `cd` solves for so few of them anyway.
    solver : str or solver object
        How codes are solved for: "cd" (coordinate descent), "admm" (the paper's), "fft" (circular reference), or a solver
        with settings of its own.
    boundary : {"same", "valid", "full", "circular"}
        Whether codes sit on the signal's own grid, where no filter leaves it, wherever one touches it, or wrap.
    channels : bool
        Whether the axis after the first holds channels.
    max_iter : int
        Iterations over all signals.
    min_change : float
        Stop when the objective changes by less than this fraction twice in a row; 0 never does. While the ridge fades the
        objective goes on changing: with ``ridge=0`` it settles sooner.
    init : {"random", "patches"} or array
        First filters.
    nonnegative, nonnegative_filters : bool
        Restrict codes, or filters, to be ≥ 0.
    zero_mean : bool
        Restrict filters to zero mean.
    statistics : {"toeplitz", "dense"}
        The small exact form with imputation at borders and gaps, or the full matrix.
    n_sweeps : int
        Passes over the filters in each update.
    replace_unused : bool
        Replace filters that no code uses by badly explained patches.
    tol : float or None
        Relative duality gap for `transform`, as in `encode`: None is 1e-3, or the solver object's own.
    learning_tol : float or None
        The same while learning; None is the solver's own habit (ADMM: ten iterations; coordinate descent: a few rounds
        with a ridge, or 0.1 without).
    ridge : float
        In the first steps of learning with ``solver="cd"``, codes are solved for with ½ ridge z² added, so that
        neighbours share what they explain; then it fades out. 1 learns better filters than 0, on new signals and on the
        training signals; 0 is right for signals that truly are sums of few filters.
    ridge_steps : float or None
        Steps after which half of the ridge is left; None is half of `max_iter`, or 10 mini-batches for `OnlineCSC`. From
        few signals, more steps learn filters that are better on others.
    callbacks : sequence of callables
        Each gets the iteration's record (a dict) and stops learning by returning True.
    n_jobs : int or None
        Threads, as in `encode`; -1 is all cores. The filters do not depend on it.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve and learn on a GPU; see `encode`.
    random_state : int, numpy Generator or None
        Seed of the first filters, the sampling and the order of signals; None draws one, kept in ``seed_``.

    Attributes
    ----------
    filters_ : (n_filters, [channels,] *size) array
        Norms at most 1, sorted by use.
    history_ : list of dict
        ``iteration``, ``seconds`` (of learning), ``objective`` (this iteration's codes with the updated filters),
        ``nnz``, ``gap``, ``n_seen``, ``replaced``, and ``validation_objective`` where asked for.
    usage_ : (n_filters,) array
        Sum of |codes| of each filter in the last iteration.
    n_iter_, n_seen_, seed_ : int
        Iterations done, signals seen (each time they are), the seed in use.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, sampling=0.5, max_iter=3, random_state=0).fit(signals)
    >>> model.filters_.shape
    (4, 5)
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
        max_iter: int = 12,
        min_change: float = 0.0,
        init: str | ArrayLike = "random",
        nonnegative: bool = False,
        nonnegative_filters: bool = False,
        zero_mean: bool = False,
        statistics: str = "toeplitz",
        n_sweeps: int = 1,
        replace_unused: bool = True,
        tol: float | None = None,
        learning_tol: float | None = None,
        ridge: float = 1.0,
        ridge_steps: float | None = None,
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = -1,
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
        self.max_iter = max_iter
        self.min_change = min_change
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
        self.ridge_steps = ridge_steps
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state

    def fit(
        self, X: Signals, y: Any = None, *, weights: Signals | None = None, validation: Signals | None = None
    ) -> Self:
        """Learn filters.

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array or list of arrays of any sizes
        y : ignored
        weights : like X, optional
            w ≥ 0 for the squared error; zero marks samples that were not seen. Without weights NaN in X does.
        validation : like X, optional
            Held-out signals, coded after every iteration with the training clock stopped.
        """
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter}")
        batch = placed(self._batch(X, weights), self._learning_device)
        held_out = None if validation is None else self._batch(validation, None)
        state = self._start(batch)
        for _ in range(self.max_iter):
            self._empty(state)
            info = self._learn(state, batch, np.ones(len(batch)), state.codes)
            if self._record(state, info, held_out) or self._settled(state):
                break
        self._sort_by_use(state)
        return self

    def _ridge_steps(self) -> float:
        """The ridge fades over the whole run: as long as it lasts, filters gain most on new signals."""
        return 0.5 * self.max_iter

    def _empty(self, state: LearnerState) -> None:
        n_filters, channels, *size = state.filters.shape
        state.statistics = self._statistics(n_filters, channels, tuple(size))
        state.usage = np.zeros(n_filters)

    def _settled(self, state: LearnerState) -> bool:
        recent = [info["objective"] for info in state.history[-3:]]
        if self.min_change <= 0 or len(recent) < 3:
            return False
        return all(abs(b - a) < self.min_change * abs(a) for a, b in pairwise(recent))
