"""SOCSC: learning from a stream of small batches through two surrogate statistics (the paper's Algorithm 2)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.data.damage import OnError, noted, skips
from pointillist.data.sources import Source
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.base import Callback, ConvolutionalLearner, publish
from pointillist.learners.checkpoint import Checkpoints, Keeper, resumed_state
from pointillist.learners.cluster import coded_steps, connect
from pointillist.learners.coding import Learning
from pointillist.learners.device import ahead
from pointillist.learners.feed import Feed, open_feed
from pointillist.learners.state import LearnerState, StepCodes
from pointillist.learners.step import Step
from pointillist.sampling import Sampling, seed_from
from pointillist.solvers.base import Solver
from pointillist.validation import Signals, check_arguments

_FORGETTING = 4.0
_HALF_LIFE = 10.0


class OnlineCSC(ConvolutionalLearner):
    """Learn filters from mini-batches; memory does not grow with the number of signals.

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
    batch_size : int
        Signals in a mini-batch of `fit`.
    n_epochs : int or None
        Passes of `fit` over the signals. None is as many as make 60 mini-batches, and one where nobody knows how many
        signals there are.
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
        One record for each mini-batch: ``iteration``, ``seconds`` (of learning), ``objective`` (its codes with the updated
        filters), ``nnz``, ``gap``, ``n_seen``, ``replaced``, and where asked for ``validation_objective`` and ``outliers``
        (windows that were left out; objective and non-zeros are those of the others).
    usage_ : (n_filters,) array
        Sum of |codes| of each filter in all mini-batches.
    outliers_ : structured array
        With `robust`: the windows that were left out when their signal was last learned from, the latest 10,000 of them.
        ``signal`` is the number of the signal in X where `fit` had arrays, and how many signals were seen before it
        otherwise; ``start`` and ``stop`` are the first sample of the window along each axis and the one after its last,
        ``error`` is its error.
    n_iter_, n_seen_, seed_ : int
        Mini-batches done, signals seen (each time they are), the seed in use.
    n_features_in_ : int
        Samples of a signal, in all channels, where all signals of an array had as many. Others may be coded all the same.
    feature_names_in_ : array of str
        Names of these samples, where X was a table.
    skipped_ : dict from str to int
        Why signals were left out by `fit` or `partial_fit`, and how often: arrays once a call, those of a source every time
        they are read.
    state_ : LearnerState
        What `partial_fit` goes on from.

    Notes
    -----
    What concerns a run rather than a model is an argument of `fit`, also scikit-learn's `verbose` and `warm_start`.

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
        sampling: Sampling = 1.0,
        solver: str | Solver = "cd",
        boundary: str = "same",
        channels: bool = False,
        nonnegative: bool = False,
        rank: int | None = None,
        robust: Robust | None = None,
        learning: Learning = None,
        update: FilterUpdate | None = None,
        batch_size: int = 1,
        n_epochs: int | None = None,
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
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Signals | Source | Iterable[Any],
        y: Any = None,
        *,
        weights: Signals | None = None,
        validation: Signals | None = None,
        validation_every: int = 1,
        shuffle: bool = True,
        on_error: OnError = "raise",
        prefetch: int = 2,
        callbacks: Sequence[Callback] = (),
        cluster: Any = None,
        checkpoint: Checkpoints | None = None,
        resume: bool = False,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> Self:
        """Learn filters from the signals in mini-batches, starting afresh.

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array, list of arrays of any sizes, source, or any iterable of signals
            Arrays are checked at once; a source is read as the run goes on, so that memory does not grow with it. NaN marks
            samples that were not seen.
        y : ignored
        weights : like X, optional
            For arrays: w ≥ 0 for the squared error; zero marks samples that were not seen.
        validation : array or list of arrays, optional
            Held-out signals, coded with the training clock stopped.
        validation_every : int
            Mini-batches after which the held-out signals are coded again.
        shuffle : bool
            Whether the signals come in random order, anew in every pass; an iterable keeps its own order.
        on_error : {"raise", "skip"}
            Whether a signal that cannot be read or used (constant, smaller than the filters, NaN everywhere) is an error,
            or is left out and counted in ``skipped_``.
        prefetch : int
            For sources: mini-batches that are read ahead.
        callbacks : sequence of callables
            Each gets a mini-batch's record (a dict) and stops learning by returning True.
        cluster : dask.distributed.Client, str or None
            Where to encode: on the workers of a Dask cluster, named by its client or its scheduler's address. The filters do
            not depend on it (with ``solver="cd"``, to the bit). That takes ``pip install 'pointillist[cluster]'``. Whoever
            reaches a scheduler can run code on it and on its workers: use an address of a network that you trust, or a
            client with TLS, ``Client(address, security=Security(...))``.
        checkpoint : Checkpoints, optional
            Where to put away the state of the run, and how often.
        resume : bool
            Go on from the newest checkpoint: the filters become, to the bit, those of a run that nothing interrupted. Where
            there is no checkpoint yet the run begins.
        verbose : bool or int
            How much is printed: True or 1 tells of steps 1, 2, 5, 10, 20, … and of the last one, 2 of every step. All steps
            are logged in any case, by the logger "pointillist".
        warm_start : bool
            Whether learning begins with the filters of the last `fit`, where there was one, as it would with
            ``FilterUpdate(init=model.filters_)``; all else begins afresh. To go on with what was summed up, too, use
            `partial_fit`.

        Returns
        -------
        self
        """
        step = self.training_step(shared=cluster is not None)
        run = {"shuffle": shuffle, "prefetch": prefetch}
        asked = {"callbacks": callbacks, "resume": resume, "validation_every": validation_every}
        step, printed = self._begin(step, verbose=verbose, warm_start=warm_start, **run, **asked)
        if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
            raise TypeError(f"checkpoint must be None or Checkpoints, got {type(checkpoint).__name__}")
        if resume and checkpoint is None:
            raise ValueError("resume needs checkpoint: say where the checkpoints are")
        if validation is None and validation_every != 1:
            raise ValueError("validation_every needs validation: give the signals that are held out")
        if resume and warm_start:
            raise ValueError("warm_start begins a new run and resume goes on with another: leave one of them out")
        held_out = self._held_out(step, validation)
        stored = None if checkpoint is None else checkpoint.begin(resume=resume)
        seed = seed_from(self.random_state) if stored is None else stored.metadata["seed"]
        feed = open_feed(
            X, weights, step, on_error=on_error, batch_size=self.batch_size, n_epochs=self.n_epochs, seed=seed, **run
        )
        if feed.whole is not None:
            self._note_features(X, feed.whole)
        if stored is None:
            self.state_ = step.start(feed.first(), seed, feed.patches())
        else:
            self.state_ = resumed_state(self, step, feed, stored)
        state = self.state_
        keeper = None if checkpoint is None else Keeper(checkpoint, self, feed)
        stop = False
        with closing(self._coded(step, feed, state, cluster, keep_place=keeper is not None)) as coded:
            for begin, codes in coded:
                info = step.learn(state, codes, signal_counts(self.update, state.n_seen, len(codes)), begin)
                judged = None
                if held_out is not None and state.step % validation_every == 0:
                    judged = step.objective(state, held_out)
                stop = self._record(state, info, [*callbacks, printed], judged)
                if keeper is not None:
                    keeper.after_step(state, stop=stop)
                if stop:
                    break
        if keeper is not None and not stop:
            keeper.finish(state)
        printed.close()
        self.skipped_ = dict(feed.stream.skipped)
        state.sort_by_use()
        publish(self, state)
        return self

    def partial_fit(
        self, X: Signals, y: Any = None, *, weights: Signals | None = None, on_error: OnError = "raise"
    ) -> Self:
        """One step with one mini-batch of any size; the order of the filters stays as it is.

        The first call makes the first filters; later ones go on, also after `fit`.

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array or list of arrays of any sizes
        y : ignored
        weights : like X, optional
            w ≥ 0 for the squared error; zero marks samples that were not seen. Without weights NaN in X does.
        on_error : {"raise", "skip"}
            Whether a signal that nothing can be learned from is an error, or is left out and counted in ``skipped_``. A
            mini-batch of which nothing is left changes nothing.

        Returns
        -------
        self
        """
        step = self.training_step()
        batch = step.check(X, weights, skip=skips(on_error), move=True)
        self.skipped_ = noted(getattr(self, "skipped_", {}), batch.skipped)
        if not len(batch):
            return self
        if not hasattr(self, "state_"):
            self.state_ = step.start(batch, seed_from(self.random_state))
            self._note_features(X, batch)
        state = self.state_
        begin = state.now()
        result = step.encode(state, batch)
        counts = signal_counts(self.update, state.n_seen, len(batch))
        self._record(state, step.learn(state, step.codes(batch, result), counts, begin))
        return self

    def training_step(self, *, shared: bool = False) -> Step:
        check_arguments(batch_size=self.batch_size, n_epochs=self.n_epochs)
        return super().training_step(shared=shared)

    def _half_life(self) -> float:
        return _HALF_LIFE

    def _coded(
        self, step: Step, feed: Feed, state: LearnerState, cluster: Any, *, keep_place: bool
    ) -> Generator[tuple[float, StepCodes], None, None]:
        """Yield for each batch when its step began, and its codes for the filters that `state` has by then."""
        if cluster is not None:
            with connect(cluster) as client:
                yield from coded_steps(client, step, self.batch_size, feed, state)
            return
        # The place in a stream that is read ahead of the run cannot be put away.
        for batch in feed if keep_place else ahead(feed, step.resident):
            begin = state.now()
            yield begin, step.codes(batch, step.encode(state, batch))


def signal_counts(update: FilterUpdate | None, seen: int, count: int) -> NDArray:
    """How much the next signals count in the statistics: i^γ − (i−1)^γ for signal i, γ being the forgetting."""
    forgetting = _FORGETTING if update is None or update.forgetting is None else update.forgetting
    return np.diff(np.arange(seen, seen + count + 1, dtype=np.float64) ** forgetting)
