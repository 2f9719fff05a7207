"""SBCSC: learning from all signals at every iteration (the paper's Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pointillist.codes import SparseCodes
from pointillist.data.damage import OnError, noted, nothing_usable, skips
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.base import Callback, ConvolutionalLearner, publish
from pointillist.learners.coding import Learning
from pointillist.learners.device import placed
from pointillist.learners.outliers import WindowRecord
from pointillist.learners.step import Step
from pointillist.sampling import Sampling, seed_from
from pointillist.solvers.base import Solver
from pointillist.validation import Signals, check_arguments


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
    sampling : float in (0, 1] or Draws
        p, the fraction of codes solved for in a step; the paper's choice is 0.1 to 0.2. `Draws` says which codes are drawn
        together; ``Draws(0.1, "codes")`` draws every code by itself, as the paper does.
    solver : str or solver object
        How codes are solved for: "cd" (coordinate descent), "admm" (the paper's), "fft" (circular reference), or a solver
        with settings of its own.
    boundary : {"same", "valid", "full", "circular"}
        Whether codes sit on the signal's own grid, where no filter leaves it, wherever one touches it, or wrap.
    channels : bool
        Whether the axis after the first holds channels.
    nonnegative : bool
        Restrict codes to be ≥ 0; for filters see `FilterUpdate`.
    rank : int or None
        Largest rank of a filter over its channels, for ``channels=True``: filter k is the sum of so many products
        ``patterns_[k, r]`` ⊗ ``shapes_[k, r]``. 1 suits events of one place of origin; None leaves filters free.
    robust : Robust or None
        Leave windows whose error is an outlier out of each step; None lets all of them count.
    learning : Ridge, float or None
        How well codes are solved for while learning. None is the named solver's habit: `Ridge` for "cd", ten iterations for
        "admm" and "fft"; a solver object works as it is. A number is the relative duality gap to reach.
    update : FilterUpdate or None
        How filters begin, and how they are updated and constrained; None is ``FilterUpdate()``.
    max_iter : int
        Iterations over all signals.
    tol : float or None
        Relative duality gap for `transform` and for held-out signals. None is 1e-3, or what a solver object says.
    n_jobs : int or None
        Threads: -1 is all cores, -2 all but one, None what the surrounding joblib context says. The filters do not depend
        on it.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve and learn on a GPU; see `encode`.
    random_state : int, numpy Generator or None
        Seed of the first filters, the sampling and the order of signals; None draws one, kept in ``seed_``.

    Attributes
    ----------
    filters_ : (n_filters, [channels,] *size) array
        Norms at most 1, sorted by use.
    patterns_, shapes_ : (n_filters, rank, channels) and (n_filters, rank, *size) arrays
        Patterns over channels and shapes whose products the filters are sums of, as `split_channels` gives them; only with
        a `rank`.
    history_ : list of dict
        One record for each iteration: ``iteration``, ``seconds`` (of learning), ``objective`` (its codes with the updated
        filters), ``nnz``, ``gap``, ``n_seen``, ``replaced``, and where asked for ``validation_objective`` and ``outliers``
        (windows that were left out; objective and non-zeros are those of the others).
    usage_ : (n_filters,) array
        Sum of |codes| of each filter in the last iteration.
    outliers_ : structured array
        With `robust`: the windows that were left out in the last iteration. ``signal`` is the number of the signal in X,
        ``start`` and ``stop`` are the first sample of the window along each axis and the one after its last, ``error`` is
        its error.
    n_iter_, n_seen_, seed_ : int
        Iterations done, signals seen (each time they are), the seed in use.
    n_features_in_ : int
        Samples of a signal, in all channels, where all signals of an array had as many. Others may be coded all the same.
    feature_names_in_ : array of str
        Names of these samples, where X was a table.
    skipped_ : dict from str to int
        Why signals were left out, and how often: once each.

    Notes
    -----
    What concerns a run rather than a model is an argument of `fit`, also scikit-learn's `verbose` and `warm_start`.

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
        sampling: Sampling = 1.0,
        solver: str | Solver = "cd",
        boundary: str = "same",
        channels: bool = False,
        nonnegative: bool = False,
        rank: int | None = None,
        robust: Robust | None = None,
        learning: Learning = None,
        update: FilterUpdate | None = None,
        max_iter: int = 12,
        tol: float | None = None,
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
        self.nonnegative = nonnegative
        self.rank = rank
        self.robust = robust
        self.learning = learning
        self.update = update
        self.max_iter = max_iter
        self.tol = tol
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
        min_change: float = 0.0,
        on_error: OnError = "raise",
        callbacks: Sequence[Callback] = (),
        verbose: int = 0,
        warm_start: bool = False,
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
        min_change : float
            Stop when the objective changes by less than this fraction twice in a row; 0 never does. While a ridge fades the
            objective goes on changing: with ``learning=0.1`` it settles sooner.
        on_error : {"raise", "skip"}
            Whether a signal that nothing can be learned from (constant, smaller than the filters, NaN everywhere) is an
            error, or is left out and counted in ``skipped_``.
        callbacks : sequence of callables
            Each gets the iteration's record (a dict) and stops learning by returning True.
        verbose : bool or int
            How much is printed: True or 1 tells of steps 1, 2, 5, 10, 20, … and of the last one, 2 of every step. All steps
            are logged in any case, by the logger "pointillist".
        warm_start : bool
            Whether learning begins with the filters of the last `fit`, where there was one, as it would with
            ``FilterUpdate(init=model.filters_)``; all else begins afresh.

        Returns
        -------
        self
        """
        asked = {"min_change": min_change, "callbacks": callbacks}
        step, printed = self._begin(self.training_step(), verbose=verbose, warm_start=warm_start, **asked)
        given = step.check(X, weights, skip=skips(on_error)).numbered()
        if not len(given):
            raise nothing_usable(given.skipped)
        self.skipped_ = noted({}, given.skipped)
        self._note_features(X, given)
        batch = placed(given, step.resident)
        held_out = self._held_out(step, validation)
        state = step.start(batch, seed_from(self.random_state))
        codes: SparseCodes | None = None
        for _ in range(self.max_iter):
            begin = state.now()
            state.statistics, state.usage = step.empty(state.filters.shape), np.zeros(len(state.filters))
            state.windows = WindowRecord()
            result = step.encode(state, batch, codes)
            codes = result.codes
            info = step.learn(state, step.codes(batch, result), np.ones(len(batch)), begin)
            judged = None if held_out is None else step.objective(state, held_out)
            if self._record(state, info, [*callbacks, printed], judged) or _settled(state.history, min_change):
                break
        printed.close()
        state.sort_by_use()
        publish(self, state)
        return self

    def training_step(self, *, shared: bool = False) -> Step:
        check_arguments(max_iter=self.max_iter)
        if getattr(self.update, "forgetting", None) is not None:
            raise ValueError("update has forgetting, which is for OnlineCSC: BatchCSC starts every iteration afresh")
        return super().training_step(shared=shared)

    def _half_life(self) -> float:
        """The ridge fades over the whole run: as long as it lasts, filters gain most on new signals."""
        return 0.5 * self.max_iter


def _settled(history: Sequence[dict[str, Any]], min_change: float) -> bool:
    """Whether the objective changed by less than a fraction twice in a row."""
    recent = [info["objective"] for info in history[-3:]]
    if min_change <= 0 or len(recent) < 3:
        return False
    return all(abs(b - a) < min_change * abs(a) for a, b in pairwise(recent))
