"""SOCSC: learning from a stream of small batches through two surrogate statistics (the paper's Algorithm 2)."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.data.sources import ArraySource, IteratorSource, Source, as_source, make_stream
from pointillist.data.sources.stream import OnUnreadable
from pointillist.dictionary.support import filter_shapes
from pointillist.learners.base import Callback, ConvolutionalLearner
from pointillist.learners.checkpoint import Checkpoints, Keeper, restore
from pointillist.learners.cluster import coded_steps, connect
from pointillist.learners.device import ahead
from pointillist.learners.feed import Feed, Readable, in_memory
from pointillist.learners.state import Batch, CodesHere, LearnerState, StepCodes
from pointillist.model.sampling import seed_from
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
    cluster : dask.distributed.Client, str or None
        Where `fit` encodes: on the workers of a Dask cluster, named by its client or its scheduler's address. The filters do
        not depend on it (with ``solver="cd"``, to the bit). That takes ``pip install 'pointillist[cluster]'``.
    n_filters, filter_size, penalty, sampling, solver, boundary, channels, init, nonnegative, nonnegative_filters
        As in `BatchCSC`.
    zero_mean, statistics, n_sweeps, replace_unused, tol, learning_tol, ridge, ridge_steps, callbacks, n_jobs, device
        As in `BatchCSC`.
    random_state
        As in `BatchCSC`.

    Attributes
    ----------
    filters_, history_, usage_, n_iter_, n_seen_, seed_
        As in `BatchCSC`; one iteration is one mini-batch, and `usage_` sums over all of them.
    skipped_ : dict from str to int
        Why signals of a source were left out by `fit`, and how often.

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
        tol: float | None = None,
        learning_tol: float | None = None,
        ridge: float = 1.0,
        ridge_steps: float | None = None,
        callbacks: Sequence[Callback] = (),
        n_jobs: int | None = -1,
        device: str = "cpu",
        cluster: Any = None,
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
        self.ridge_steps = ridge_steps
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.device = device
        self.cluster = cluster
        self.random_state = random_state

    def fit(
        self,
        X: Signals | Source | Iterable[Any],
        y: Any = None,
        *,
        weights: Signals | None = None,
        validation: Signals | None = None,
        validation_every: int = 1,
        on_unreadable: OnUnreadable = "stop",
        prefetch: int = 2,
        checkpoint: Checkpoints | None = None,
        resume: bool = False,
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
            Held-out signals, coded after every `validation_every` mini-batches with the training clock stopped.
        on_unreadable : {"skip", "stop"}
            For sources: whether a signal that cannot be read or used is left out, counted in ``skipped_``, or an error.
        prefetch : int
            For sources: mini-batches that are read ahead.
        checkpoint : Checkpoints, optional
            Where to put away the state of the run, and how often.
        resume : bool
            Go on from the newest checkpoint: the filters become, to the bit, those of a run that nothing interrupted. Where
            there is no checkpoint yet the run begins.
        """
        if self.batch_size < 1 or self.n_epochs < 1:
            raise ValueError(f"batch_size and n_epochs must be at least 1, got {self.batch_size} and {self.n_epochs}")
        if resume and checkpoint is None:
            raise ValueError("resume needs checkpoint: say where the checkpoints are")
        held_out = None if validation is None else self._batch(validation, None)
        stored = None if checkpoint is None else checkpoint.begin(resume=resume)
        seed = seed_from(self.random_state) if stored is None else stored.facts["seed"]
        feed = self._feed(X, weights, seed, on_unreadable, prefetch)
        if stored is None:
            self._state = self._start(feed.first(), seed, feed.patches())
        else:
            self._check_parameters()
            self._state = restore(self, feed, stored)
        state = self._state
        keeper = None if checkpoint is None else Keeper(checkpoint, self, feed)
        stop = False
        # The position of a stream that is read ahead of the run cannot be put away.
        batches = ahead(feed, self._learning_device) if checkpoint is None else feed
        with closing(self._coded(feed, batches, state)) as coded:
            for begin, codes in coded:
                info = self._take_in(state, codes, self._image_weights(state.n_seen, len(codes)), begin)
                stop = self._record(state, info, held_out if state.step % validation_every == 0 else None)
                if keeper is not None:
                    keeper.after_step(state, stop=stop)
                if stop:
                    break
        if keeper is not None and not stop:
            keeper.finish(state)
        self.skipped_ = dict(feed.stream.skipped)
        self._sort_by_use(state)
        return self

    def partial_fit(self, X: Signals, y: Any = None, *, weights: Signals | None = None) -> Self:
        """One step with one mini-batch of any size; the order of the filters stays as it is.

        The first call makes the first filters; later ones go on, also after `fit`.
        """
        batch = self._batch(X, weights)
        if not hasattr(self, "_state"):
            self._state = self._start(batch)
        state = self._state
        info = self._learn(state, batch, self._image_weights(state.n_seen, len(batch)))
        self._record(state, info, None)
        return self

    def _feed(self, X: Any, weights: Signals | None, seed: int, on_unreadable: OnUnreadable, prefetch: int) -> Feed:
        whole: Batch | None = None
        least: tuple[int, ...] = ()
        if in_memory(X):
            whole = self._batch(X, weights)
            source: Source | IteratorSource = ArraySource(whole.signals)
        elif weights is not None:
            raise ValueError("weights are for arrays: mark samples of a source that were not seen by NaN")
        else:
            source = as_source(X)
            least = self._least(source)
        stream = make_stream(
            source,
            batch_size=self.batch_size,
            n_epochs=self.n_epochs,
            shuffle=self.shuffle,
            seed=seed,
            on_unreadable=on_unreadable,
            least=least,
            prefetch=prefetch,
        )
        return Feed(stream, whole, lambda signals: self._batch(signals, None))

    def _least(self, source: Source | IteratorSource) -> tuple[int, ...]:
        """The filters' box, where it can be known before the first batch: smaller signals are of no use."""
        if isinstance(source, IteratorSource) or len(source) == 0:
            return ()
        first = Readable(source, lambda signals: Batch([np.asarray(signals[0])], None))[0]
        return filter_shapes(self.n_filters, self.filter_size, first.ndim - int(self.channels)).box

    def _coded(
        self, feed: Feed, batches: Iterable[Batch], state: LearnerState
    ) -> Generator[tuple[float, StepCodes], None, None]:
        """For each batch when its step began, and its codes for the filters that `state` has by then."""
        if self.cluster is not None:
            with connect(self.cluster) as client:
                yield from coded_steps(client, self, feed, state)
            return
        for batch in batches:
            begin = time.perf_counter()
            yield begin, CodesHere(self, batch, self._encode(state, batch))

    def _image_weights(self, seen: int, count: int) -> NDArray:
        """Weights i^γ − (i−1)^γ of the next signals: their sum telescopes, whatever the batches."""
        if not self.forgetting >= 1:
            raise ValueError(f"forgetting must be at least 1, got {self.forgetting}")
        powers = np.arange(seen, seen + count + 1, dtype=np.float64) ** self.forgetting
        return np.diff(powers)
