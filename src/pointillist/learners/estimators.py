"""The learners, as scikit-learn's estimators: `BatchCSC` (the paper's Algorithm 1) and `OnlineCSC` (Algorithm 2).

Both repeat a `Step`: encode, add, update. What concerns a run rather than a model is an argument of `fit`. `save` and `load`
bring a fitted one to a file and back; `CodePooling` stands between a learner and a classifier in scikit-learn's pipelines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from inspect import signature
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes, regions_along
from pointillist.data.damage import OnError, note_skipped, nothing_usable
from pointillist.data.sources import Source
from pointillist.dictionary.constraints import filter_shapes, split_channels
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.errors import ModelFileError
from pointillist.kernels.compiling import working_time
from pointillist.learners.checkpoints import (
    Checkpoints,
    Keeper,
    check_model,
    pack,
    resumed_state,
    unpack_parameters,
    unpack_state,
)
from pointillist.learners.cluster import coded_steps, connect
from pointillist.learners.step import TUNING, Feed, LearnerState, Learning, Ridge, Step, WindowRecord
from pointillist.parallel import effective_jobs
from pointillist.reprs import is_same, short, shown, sizes
from pointillist.sampling import Sampling, seed_from
from pointillist.solvers.base import Result, Solver
from pointillist.solvers.encoding import Progress, decode, encode
from pointillist.solvers.explained_variance import ExplainedVariance, explained_variance
from pointillist.solvers.on_device import placed, prefetch
from pointillist.storage import load_model, save_model
from pointillist.validation import Batch, Signals, as_arrays, check_arguments

log = logging.getLogger(__name__)

Callback = Callable[[dict[str, Any]], bool | None]


class _Listed(type):
    """A class that lists what it is used by: scikit-learn's routing of metadata would fill four screens of ``help``."""

    def __dir__(cls) -> list[str]:
        hidden = {"get_metadata_routing", "set_output", *(one.name for one in fields(cls))}  # type: ignore[arg-type]
        return [
            name
            for name in super().__dir__()
            if name not in hidden and not name.startswith("__") and not name.endswith("_request")
        ]


@dataclass(eq=False, repr=False)
class ConvolutionalLearner(TransformerMixin, BaseEstimator, metaclass=_Listed):
    """Base of both learners: parameters by name, codes of signals for the learned filters."""

    fit: ClassVar[Callable[..., Any]]
    n_filters: int | list[int] = 100
    filter_size: int | tuple[int, ...] | list[Any] = 11
    penalty: float | ArrayLike = 1.0
    _: KW_ONLY
    sampling: Sampling = 1.0
    solver: str | Solver = "cd"
    boundary: str = "same"
    channels: bool = False
    nonnegative: bool = False
    rank: int | None = None
    robust: Robust | None = None
    learning: Learning = None
    update: FilterUpdate | None = None
    tol: float | None = None
    n_jobs: int | None = -1
    device: str = "cpu"
    random_state: int | np.random.Generator | None = None

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse arguments that concern a run rather than a model, and say that `fit` takes them."""
        for name in (parameters.keys() - signature(cls).parameters.keys()) & signature(cls.fit).parameters.keys():
            raise TypeError(f"{name} is an argument of fit: {cls.__name__}(...).fit(X, {name}={parameters[name]!r})")
        return super().__new__(cls)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters that differ from their defaults, on one line; arrays by their shapes."""
        every = not get_config()["print_changed_only"]
        given = [(one.name, getattr(self, one.name), one.default) for one in fields(self)]
        parts = [f"{name}={short(value)}" for name, value, default in given if every or not is_same(value, default)]
        return f"{type(self).__name__}({', '.join(parts)})"[:N_CHAR_MAX]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also the fields of settings and solver objects, as ``update__zero_mean``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        for name in list(parameters) if deep else ():
            settings = self._settings(name)
            if settings is not None:
                parameters |= {f"{name}__{one.name}": getattr(settings, one.name) for one in fields(settings)}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters `params`, also fields of settings by names such as ``robust__alpha``."""
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            owner, separator, own = name.partition("__")
            if separator:
                nested.setdefault(owner, {})[own] = value
        for owner, changes in nested.items():
            if owner not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {owner!r}")
            settings = self._settings(owner)
            known = [] if settings is None else [one.name for one in fields(settings)]
            for own in changes.keys() - set(known):
                named = f"{owner}={getattr(self, owner)!r}" if settings is None else type(settings).__name__
                raise ValueError(f"{owner}__{own} does not exist: {named} has {', '.join(known) or 'no fields'}")
            setattr(self, owner, replace(settings, **changes))  # all at once, because some exclude each other
        return self

    def _settings(self, name: str) -> Any:
        """Settings object of a parameter, the default one where it stands for None; None for a parameter without fields."""
        value = getattr(self, name)
        if value is None and name == "update":
            return FilterUpdate()
        if value is None and name == "learning" and self.solver == "cd":
            return Ridge()
        return value if is_dataclass(value) and not isinstance(value, type) else None

    def set_output(self, *, transform: Any = None) -> Self:
        """Leave codes as they are, whatever table a pipeline asks its steps for with `transform`."""
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return a name for each filter, ``filter0`` and so on; `input_features` is not used."""
        check_is_fitted(self, "filters_")
        return np.array([f"filter{k}" for k in range(len(self.filters_))], object)

    def transform(self, X: Signals, weights: Signals | None = None) -> SparseCodes:
        """Sparse codes of signals for the learned filters, solved to `tol` over all codes (no sampling).

        Parameters
        ----------
        X : (n_signals, [channels,] *space) array or list of arrays
        weights : like X, optional
            Zero marks samples that were not seen; without weights NaN does.
        """
        return self.encode(X, weights).codes

    def fit_transform(self, X: Signals, y: Any = None, *, weights: Signals | None = None, **fit: Any) -> SparseCodes:
        """Call `fit`, to which all further arguments `fit` go, then `transform` with the same X and `weights`."""
        return self.fit(X, y, weights=weights, **fit).transform(X, weights)

    def encode(self, X: Signals, weights: Signals | None = None, *, progress: Progress | None = None) -> Result:
        """Solve for codes as `transform` does, and return them with objective, duality gap, status and residuals.

        Samples of the signals `X` whose `weights` are zero were not seen; without weights NaN marks them. `progress` is
        called now and then with the share of the work that is done, from 0 to 1.
        """
        check_is_fitted(self, "filters_")
        # An array follows the order of its filters.
        penalty: Any = self.penalty if np.ndim(self.penalty) == 0 else self.penalty_
        return encode(
            as_arrays(X, self.channels),
            self.filters_,
            penalty,
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

    def inverse_transform(self, codes: SparseCodes) -> NDArray | list[NDArray]:
        """Signals from sparse `codes`: an array when they share a shape, a list otherwise."""
        check_is_fitted(self, "filters_")
        return decode(codes, self.filters_, boundary=self.boundary, channels=self.channels)

    def score(self, X: Signals, y: Any = None, weights: Signals | None = None) -> float:
        """Return minus the mean objective per sample of the signals `X`, whose `weights` may be given; higher is better.

        `y` is not used. The score compares dictionaries for *one* penalty. It cannot choose the penalty, which is part of
        the objective: the smallest one always scores best. Choose that by what the codes are for (restoration error on
        held-out samples, sparsity).
        """
        result = self.encode(X, weights)
        samples = sum(prod(residual.shape) for residual in result.residuals)
        return -float(np.sum(result.objective)) / samples

    def explained_variance(self, X: Signals, weights: Signals | None = None) -> ExplainedVariance:
        """Return how much of the energy of the signals `X` each filter explains; see `pointillist.explained_variance`.

        Samples of the signals whose `weights` are zero were not seen; without weights NaN marks them.
        """
        check_is_fitted(self, "filters_")
        X = as_arrays(X, self.channels)
        codes, around = self.transform(X, weights), self.boundary
        return explained_variance(X, self.filters_, codes, weights=weights, boundary=around, channels=self.channels)

    @property
    def patterns_(self) -> NDArray:
        """Patterns over channels (n_filters, rank, channels) of filters that were learned with a rank, of unit norm."""
        return self._factors()[0]

    @property
    def shapes_(self) -> NDArray:
        """Shapes (n_filters, rank, *size) that belong to the patterns; the largest sample of each is positive."""
        return self._factors()[1]

    def _factors(self) -> tuple[NDArray, NDArray]:
        check_is_fitted(self, "filters_")
        if self.rank is None:
            raise AttributeError(
                "patterns_ and shapes_ need filters of a rank: learn with rank=1, or use split_channels"
            )
        return split_channels(self.filters_, self.rank)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filters_")

    def __sklearn_tags__(self) -> Any:
        """Signals may have NaN, channels and more axes than two."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def _note_features(self, X: Any, batch: Batch) -> None:
        """Set scikit-learn's names and number of samples of a signal, where all signals have the same."""
        shapes = {signal.shape for signal in batch.signals}
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if len(shapes) == 1:
            self.n_features_in_ = prod(*shapes)
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, object)

    def _record(
        self, state: LearnerState, info: dict[str, Any], callbacks: Sequence[Callback] = (), verbose: int = 0
    ) -> bool:
        """Append to the history; true when a callback asks to stop."""
        state.history.append(info)
        log.info("iteration %(iteration)d: objective %(objective).6g, %(nnz)d non-zeros", info)
        if len(state.history) == 3 and not any(one["nnz"] for one in state.history):
            log.warning(
                "no code was non-zero in 3 steps: the penalty is too large for these signals, or sampling too small"
            )
        publish(self, state)
        _say(info, verbose)
        return any([bool(callback(dict(info))) for callback in callbacks])


def publish(learner: ConvolutionalLearner, state: LearnerState) -> None:
    """Set the fitted attributes, so that whatever interrupts learning leaves a usable model."""
    learner.filters_ = state.filters if learner.channels else state.filters[:, 0]
    learner.history_ = state.history
    learner.n_iter_ = state.step
    learner.n_seen_ = state.n_seen
    learner.seed_ = state.seed
    learner.usage_ = state.usage
    learner.penalty_ = state.penalty
    learner.__dict__.pop("outliers_", None)
    if learner.robust is not None:
        left = state.windows.left
        learner.outliers_ = left[np.argsort(left["signal"], kind="stable")]


def training_step(learner: BatchCSC | OnlineCSC, *, shared: bool = False) -> Step:
    """The step of learning that the parameters describe, checked; if `shared`, codes come together on the host."""
    update = FilterUpdate() if learner.update is None else learner.update
    if not isinstance(update, FilterUpdate):
        raise ValueError(f"update must be None or a FilterUpdate, got {shown(update)}")
    if isinstance(learner, BatchCSC):
        check_arguments(max_iter=learner.max_iter)
        if update.forgetting is not None:
            raise ValueError("update has forgetting, which is for OnlineCSC: BatchCSC starts every iteration afresh")
        # As long as the ridge of BatchCSC lasts, filters gain most on new signals: it fades over the whole run.
        half_life, forgetting = 0.5 * learner.max_iter, 1.0
    else:
        check_arguments(batch_size=learner.batch_size, n_epochs=learner.n_epochs)
        half_life, forgetting = TUNING.half_life, TUNING.forgetting if update.forgetting is None else update.forgetting
    given = {one.name: getattr(learner, one.name) for one in fields(Step) if hasattr(learner, one.name)}
    home = "cpu" if shared or update.statistics == "dense" else learner.device
    own = {"update": update, "half_life": half_life, "forgetting": forgetting, "home": home}
    return Step(**given | own | {"n_jobs": effective_jobs(learner.n_jobs)})


def _prepared(step: Step, before: NDArray | None, validation: Signals | None) -> tuple[Step, Batch | None]:
    """A step that begins with filters that were learned `before`, if any, and signals that are held out, checked."""
    if before is not None:
        size = before.shape[1 + step.channels :]
        shapes = filter_shapes(step.n_filters, step.filter_size, len(size))
        # Sorted by use, the learned filters are no longer in the order of several penalties or sizes.
        several = bool(np.ndim(step.penalty)) or isinstance(step.filter_size, list)
        if several or (len(shapes.sizes), shapes.box) != (len(before), size):
            raise ValueError(
                f"warm_start needs as many filters of one size as were learned before, {len(before)} of {sizes(size)}, and "
                f"one penalty for all of them, got n_filters={step.n_filters} and filter_size={step.filter_size}"
            )
        step = replace(step, update=replace(step.update, init=before))
    try:
        return step, None if validation is None else step.check(validation)
    except (ValueError, TypeError) as error:
        raise type(error)(f"validation cannot be coded: {error}") from error


def _say(info: dict[str, Any], verbose: int, *, last: bool = False) -> None:
    """Print a line about a step's record if `verbose` asks for it; that of the last step, too, unless it was printed."""
    number = str(info["iteration"])
    if not verbose or last == (verbose > 1 or (number[0] in "125" and not number[1:].strip("0"))):
        return
    held_out = f", held-out objective {info['validation_objective']:.6g}" if "validation_objective" in info else ""
    words = f"objective {info['objective']:.6g}{held_out}, {info['nnz']:,} codes, {info['seconds']:.1f} s"
    print(f"step {number}: {words}", flush=True)


@dataclass(eq=False, repr=False)
class BatchCSC(ConvolutionalLearner, auto_wrap_output_keys=None):  # codes are no table
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
        "cd" (coordinate descent), "admm" (the paper's), "fft" (circular reference), or an object with its own settings.
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
        How well codes are solved for while learning: a fading ridge, a relative duality gap, or the solver's habit, which is
        `Ridge` for "cd" and ten iterations for "admm" and "fft"; a solver object works as it is.
    update : FilterUpdate or None
        How filters begin, and how they are updated and constrained; None is ``FilterUpdate()``.
    max_iter : int
        Iterations over all signals.
    tol : float or None
        Relative duality gap for `transform` and for held-out signals. None is 1e-3, or what a solver object says.
    n_jobs : int or None
        Threads: -1 is all cores, -2 all but one, None what joblib's context says. The filters do not depend on it.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve and learn on a GPU; see `encode`.
    random_state : int, numpy Generator or None
        Seed of the first filters, the sampling and the order of signals; None draws one, kept in ``seed_``.

    Attributes
    ----------
    filters_ : (n_filters, [channels,] *size) array
        Norms at most 1, sorted by use.
    patterns_, shapes_ : (n_filters, rank, channels) and (n_filters, rank, *size) arrays
        Patterns over channels and shapes whose products the filters are sums of; only with a `rank`.
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
        Steps done, signals seen (each time they are), the seed in use.
    n_features_in_, feature_names_in_ : int and array of str
        Samples of a signal, in all channels, where all had as many, and their names, where X was a table.
    skipped_ : dict from str to int
        Why signals were left out, and how often.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, sampling=0.5, max_iter=3, random_state=0).fit(signals)
    >>> model.filters_.shape
    (4, 5)
    """

    max_iter: int = field(default=12, kw_only=True)

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
        step = training_step(self)
        check_arguments(
            min_change=min_change, callbacks=callbacks, verbose=verbose, warm_start=warm_start, on_error=on_error
        )
        step, held_out = _prepared(step, getattr(self, "filters_", None) if warm_start else None, validation)
        given = step.check(X, weights, skip=on_error == "skip").numbered()
        if not len(given):
            raise nothing_usable(given.skipped)
        self.skipped_: dict[str, int] = {}
        note_skipped(self.skipped_, given.skipped)
        self._note_features(X, given)
        batch = placed(given, step.resident)
        state = step.start(batch, seed_from(self.random_state))
        codes: SparseCodes | None = None
        for _ in range(self.max_iter):
            begin = working_time()
            state.statistics, state.usage = step.empty(state.filters.shape), np.zeros(len(state.filters))
            state.windows = WindowRecord.empty(state.filters.ndim - 2)
            result = step.encode(state, batch, codes)
            codes = result.codes
            info = step.learn(state, batch, result, begin)
            if held_out is not None:
                info["validation_objective"] = step.objective(state, held_out)
            recent = np.array([one["objective"] for one in state.history[-2:]] + [info["objective"]])
            settled = len(recent) == 3 and bool(np.all(np.abs(np.diff(recent)) < min_change * np.abs(recent[:-1])))
            if self._record(state, info, callbacks, verbose) or settled:
                break
        _say(state.history[-1], verbose, last=True)
        state.sort_by_use()
        publish(self, state)
        return self


@dataclass(eq=False, repr=False)
class OnlineCSC(ConvolutionalLearner, auto_wrap_output_keys=None):  # codes are no table
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
        "cd" (coordinate descent), "admm" (the paper's), "fft" (circular reference), or an object with its own settings.
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
        How well codes are solved for while learning: a fading ridge, a relative duality gap, or the solver's habit, which is
        `Ridge` for "cd" and ten iterations for "admm" and "fft"; a solver object works as it is.
    update : FilterUpdate or None
        How filters begin, and how they are updated and constrained; None is ``FilterUpdate()``.
    batch_size : int
        Signals in a mini-batch of `fit`.
    n_epochs : int or None
        Passes of `fit` over the signals. None is as many as make 60 mini-batches, and one of signals that nobody can count.
    tol : float or None
        Relative duality gap for `transform` and for held-out signals. None is 1e-3, or what a solver object says.
    n_jobs : int or None
        Threads: -1 is all cores, -2 all but one, None what joblib's context says. The filters do not depend on it.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve and learn on a GPU; see `encode`.
    random_state : int, numpy Generator or None
        Seed of the first filters, the sampling and the order of signals; None draws one, kept in ``seed_``.

    Attributes
    ----------
    filters_ : (n_filters, [channels,] *size) array
        Norms at most 1, sorted by use.
    patterns_, shapes_ : (n_filters, rank, channels) and (n_filters, rank, *size) arrays
        Patterns over channels and shapes whose products the filters are sums of; only with a `rank`.
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
        Steps done, signals seen (each time they are), the seed in use.
    n_features_in_, feature_names_in_ : int and array of str
        Samples of a signal, in all channels, where all had as many, and their names, where X was a table.
    skipped_ : dict from str to int
        Why signals were left out, and how often.
    state_ : LearnerState
        What `partial_fit` goes on from.

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

    batch_size: int = field(default=1, kw_only=True)
    n_epochs: int | None = field(default=None, kw_only=True)

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
            Where to encode: the workers of a Dask cluster, named by its client or its scheduler's address. The filters do
            not depend on it (with ``solver="cd"``, to the bit). Whoever reaches a scheduler can run code on it: use an
            address of a network that you trust, or a client with TLS. ``pip install 'pointillist[cluster]'``
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
            ``FilterUpdate(init=model.filters_)``. To go on with what was summed up, too, use `partial_fit`.
        """
        step = training_step(self, shared=cluster is not None)
        check_arguments(
            shuffle=shuffle, prefetch=prefetch, on_error=on_error, callbacks=callbacks, resume=resume,
            validation_every=validation_every, verbose=verbose, warm_start=warm_start,
        )  # fmt: skip
        if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
            raise TypeError(f"checkpoint must be None or Checkpoints, got {type(checkpoint).__name__}")
        if resume and checkpoint is None:
            raise ValueError("resume needs checkpoint: say where the checkpoints are")
        if validation is None and validation_every != 1:
            raise ValueError("validation_every needs validation: give the signals that are held out")
        if resume and warm_start:
            raise ValueError("warm_start begins a new run and resume goes on with another: leave one of them out")
        step, held_out = _prepared(step, getattr(self, "filters_", None) if warm_start else None, validation)
        stored = None if checkpoint is None else checkpoint.begin(resume=resume)
        seed = seed_from(self.random_state) if stored is None else stored.metadata["seed"]
        feed = Feed(
            X, weights, step, batch_size=self.batch_size, n_epochs=self.n_epochs, on_error=on_error,
            shuffle=shuffle, seed=seed, prefetch=prefetch,
        )  # fmt: skip
        if feed.whole is not None:
            self._note_features(X, feed.whole)
        if stored is None:
            self.state_ = step.start(feed.first(), seed, feed.patches())
        else:
            self.state_ = resumed_state(self, step, feed, stored)
            publish(self, self.state_)
        state = self.state_
        keeper = None if checkpoint is None else Keeper(checkpoint, self, feed)
        stop = False
        with closing(self._coded(step, feed, cluster, keep_place=keeper is not None)) as coded:
            for begin, batch, result in coded:
                info = step.learn(state, batch, result, begin)
                if held_out is not None and state.step % validation_every == 0:
                    info["validation_objective"] = step.objective(state, held_out)
                stop = self._record(state, info, callbacks, verbose)
                if keeper is not None:
                    keeper.after_step(state, stop=stop)
                if stop:
                    break
        if keeper is not None and not stop:
            keeper.finish(state)
        _say(state.history[-1], verbose, last=True)
        self.skipped_ = dict(feed.stream.skipped)
        state.sort_by_use()
        publish(self, state)
        return self

    def partial_fit(
        self, X: Signals, y: Any = None, *, weights: Signals | None = None, on_error: OnError = "raise"
    ) -> Self:
        """One step with one mini-batch `X` of any size; the order of the filters stays as it is.

        The first call makes the first filters; later ones go on, also after `fit`. Samples whose `weights` are zero were not
        seen; without weights NaN marks them. Signals that nothing can be learned from are an error, or with ``"skip"`` for
        `on_error` left out; a mini-batch of which nothing is left changes nothing. `y` is not used.
        """
        step = training_step(self)
        check_arguments(on_error=on_error)
        batch = step.check(X, weights, skip=on_error == "skip", move=True)
        self.skipped_ = dict(getattr(self, "skipped_", {}))
        note_skipped(self.skipped_, batch.skipped)
        if not len(batch):
            return self
        if not hasattr(self, "state_"):
            self.state_ = step.start(batch, seed_from(self.random_state))
            self._note_features(X, batch)
        state, begin = self.state_, working_time()
        self._record(state, step.learn(state, batch, step.encode(state, batch), begin))
        return self

    def _coded(
        self, step: Step, feed: Feed, cluster: Any, *, keep_place: bool
    ) -> Generator[tuple[float, Batch, Result], None, None]:
        """Yield for each batch when its step began, the batch, and its codes for the filters that ``state_`` has by then."""
        if cluster is not None:
            with connect(cluster) as client:
                yield from coded_steps(client, step, feed, self.state_)
            return
        # The place in a stream that is read ahead of the run cannot be put away.
        for batch in feed if keep_place or step.resident is None else prefetch(feed, step.resident):
            begin = working_time()
            yield begin, batch, step.encode(self.state_, batch)


_CLASSES: dict[str, type[BatchCSC] | type[OnlineCSC]] = {"BatchCSC": BatchCSC, "OnlineCSC": OnlineCSC}


def save(
    estimator: BatchCSC | OnlineCSC,
    path: str | os.PathLike[str],
    *,
    preprocessing: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    resume: bool = False,
) -> None:
    """Write a learned model: its filters, parameters, history and how the signals were prepared.

    Parameters
    ----------
    estimator : BatchCSC or OnlineCSC
        Fitted, also partly (an interrupted `fit`).
    path : str or path
        Replaced only once the new file is complete; ``.safetensors`` by custom.
    preprocessing : mapping, optional
        What was done to the signals, such as ``{"normalise": "contrast"}``; `load` gives it back as ``preprocessing_``.
    extra : mapping, optional
        Anything else that JSON can hold, such as where the data came from; back as ``extra_``.
    resume : bool
        Whether to store the statistics of an `OnlineCSC` too, so that `partial_fit` goes on exactly where it stopped. They
        take about 4 K² (2h − 1)(2w − 1) bytes, 18 MB for 100 filters of 11×11.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, max_iter=2, random_state=0).fit(signals)
    >>> pt.save(model, "filters.safetensors", preprocessing={"normalise": "none"})
    >>> pt.load("filters.safetensors").preprocessing_
    {'normalise': 'none'}

    Raises
    ------
    ValueError
        If the estimator is not fitted, or something cannot be stored.
    OSError
        If the file cannot be written.
    """
    check_arguments(preprocessing=preprocessing, resume=resume)
    if extra is not None and not isinstance(extra, Mapping):
        raise ValueError(f"extra must be None or a mapping, got {shown(extra)}")
    name = type(estimator).__name__
    if _CLASSES.get(name) is not type(estimator):
        raise ValueError(f"estimator must be one of {', '.join(_CLASSES)}, got {shown(estimator)}")
    if not hasattr(estimator, "filters_"):
        raise ValueError("estimator has learned nothing yet: call fit first")
    if resume and not isinstance(estimator, OnlineCSC):
        raise ValueError("resume=True is for OnlineCSC: BatchCSC starts every iteration with empty statistics")
    check_shapes(estimator, estimator.filters_)
    metadata, arrays = pack(estimator, statistics=resume)
    metadata |= {"preprocessing": dict(preprocessing or {}), "extra": dict(extra or {})}
    save_model(path, arrays.pop("filters"), metadata, arrays)


def load(path: str | os.PathLike[str]) -> BatchCSC | OnlineCSC:
    """Read a model that `save` wrote, ready for `transform`, `inverse_transform`, `score` and `partial_fit`.

    `partial_fit` of a model saved without ``resume=True`` starts from its filters, but with empty statistics. A checkpoint
    is a model, too: that of an unfinished run. Nothing in a file makes the model reach out of the process: it works on the
    CPU, wherever it was learned, until you say ``set_params(device="cuda")``.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    BatchCSC or OnlineCSC
        With ``preprocessing_`` and ``extra_`` besides the usual attributes.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, max_iter=2, random_state=0).fit(signals)
    >>> pt.save(model, "filters.safetensors")
    >>> again = pt.load("filters.safetensors")
    >>> bool(np.all(again.filters_ == model.filters_))
    True

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file is not a model, or not one of an estimator.
    """
    stored = load_model(path)
    check_model(stored)
    facts = stored.metadata
    try:
        parameters = unpack_parameters(facts["parameters"], stored.arrays)
        estimator = _CLASSES[facts["class"]](**(parameters | {"device": "cpu"}))
        check_shapes(estimator, stored.arrays["filters"])
        seed_from(estimator.random_state)
        state = unpack_state(training_step(estimator), stored)
    except (ValueError, TypeError) as error:  # as whoever takes a parameter refuses it
        raise ModelFileError(f"{path} is a damaged model file: {' '.join(str(error).split())}") from error
    except MemoryError as error:
        raise ModelFileError(f"{path} has more filters than this machine can go on learning: {error}") from error
    publish(estimator, state)
    if isinstance(estimator, OnlineCSC):
        estimator.state_ = state
    estimator.preprocessing_, estimator.extra_ = facts.get("preprocessing", {}), facts.get("extra", {})
    return estimator


def check_shapes(learner: Any, filters: NDArray) -> None:
    """Raise ValueError unless a learner's parameters `n_filters` and `filter_size` are those of its filters."""
    count = learner.n_filters if np.ndim(learner.n_filters) == 0 else sum(learner.n_filters)
    size = filters.shape[1 + bool(learner.channels) :]
    # The number first: what a file asks for is not made before that is known to agree.
    if count != len(filters) or filter_shapes(learner.n_filters, learner.filter_size, len(size)).box != size:
        raise ValueError(
            f"n_filters={learner.n_filters} and filter_size={learner.filter_size} are not those of the filters, which are "
            f"{len(filters)} of size {size}"
        )


@dataclass(eq=False, repr=False)
class CodePooling(TransformerMixin, BaseEstimator):
    """Pool the codes that a learner gives into features, as `SparseCodes.pool` does, for a classifier that comes next.

    Parameters
    ----------
    how : {"sum", "mean", "max", "count"}
        What is made of the ``|codes|`` of a filter in a region. "mean" does not grow with the size of a signal.
    regions : int or tuple of int
        Into how many equal parts each axis of a signal is cut; 1 pools over the whole signal.
    signs : bool
        Whether positive and negative codes are pooled apart, which makes twice as many features.

    Attributes
    ----------
    n_filters_ : int
        Filters of the codes that it was fitted to.
    regions_ : tuple of int
        Regions along each axis.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> slow, fast = np.sin(np.arange(60) / 4), np.sin(np.arange(60))
    >>> signals = np.array([slow, fast] * 10) + 0.1 * rng.standard_normal((20, 60))
    >>> learner = pt.OnlineCSC(n_filters=2, filter_size=9, penalty=0.5, random_state=0)
    >>> pipeline = make_pipeline(learner, pt.CodePooling(), LogisticRegression())
    >>> pipeline.fit(signals, [0, 1] * 10).score(signals, [0, 1] * 10)
    1.0
    """

    how: str = "sum"
    _: KW_ONLY
    regions: int | tuple[int, ...] = 1
    signs: bool = False

    def fit(self, X: SparseCodes, y: Any = None) -> Self:
        """Check the settings against the codes `X` and note how many features there are; `y` is not used."""
        check_arguments(how=self.how, signs=self.signs)
        codes = _codes(X)
        self.regions_ = regions_along(self.regions, len(codes.grids[0]))
        self.n_filters_ = codes.n_filters
        return self

    def transform(self, X: SparseCodes) -> NDArray[np.floating]:
        """Return the features (n_signals, n_features) of the codes `X`."""
        check_is_fitted(self)
        codes = _codes(X)
        if codes.n_filters != self.n_filters_:
            raise ValueError(f"X has codes of {codes.n_filters} filters, those of fit had {self.n_filters_}")
        return codes.pool(self.how, regions=self.regions, signs=self.signs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return a name for each feature, such as ``filter3_negative_region0``; `input_features` is not used."""
        check_is_fitted(self)
        signs = ("_positive", "_negative") if self.signs else ("",)
        places = [f"_region{i}" for i in range(prod(self.regions_))] if prod(self.regions_) > 1 else [""]
        names = [f"filter{k}{sign}{place}" for k in range(self.n_filters_) for sign in signs for place in places]
        return np.asarray(names, object)


def _codes(X: Any) -> SparseCodes:
    """Codes of at least one signal, or an error that says where they come from."""
    if isinstance(X, list | tuple) and X and all(isinstance(one, SparseCodes) for one in X):
        X = SparseCodes.concatenate(X)  # as scikit-learn selects signals of several sizes
    if not isinstance(X, SparseCodes):
        raise ValueError(f"X must be SparseCodes, which the transform of a learner gives, got {type(X).__name__}")
    if not len(X):
        raise ValueError("X is empty: give the codes of at least one signal")
    return X
