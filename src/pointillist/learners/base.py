"""The base of both learners: a scikit-learn transformer with learned filters."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes
from pointillist.dictionary.low_rank import split_channels
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.statistics import statistics_device
from pointillist.dictionary.update import FilterUpdate, as_update
from pointillist.learners.coding import Learning
from pointillist.learners.inputs import Batch, as_arrays
from pointillist.learners.parameters import NestedParameters
from pointillist.learners.running import PrintedLines, first_step
from pointillist.learners.state import LearnerState
from pointillist.learners.step import Step
from pointillist.parallel import effective_jobs
from pointillist.solvers.base import Result, Solver
from pointillist.solvers.encoding import Progress, decode, encode
from pointillist.solvers.explained_variance import ExplainedVariance, explained_variance
from pointillist.validation import Signals

log = logging.getLogger(__name__)

_NOTHING_FOUND = 3
"""Steps at the start without any code after which the learner says so."""

Callback = Callable[[dict[str, Any]], bool | None]


class ConvolutionalLearner(TransformerMixin, NestedParameters, ABC):
    """What `BatchCSC` and `OnlineCSC` share; their constructors describe the parameters."""

    n_filters: Any
    filter_size: Any
    penalty: Any
    sampling: Any
    solver: str | Solver
    boundary: str
    channels: bool
    nonnegative: bool
    rank: int | None
    robust: Robust | None
    learning: Learning
    update: FilterUpdate | None
    tol: float | None
    n_jobs: int | None
    device: str
    random_state: int | np.random.Generator | None

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse arguments that concern a run rather than a model, and say that `fit` takes them."""
        for name in (parameters.keys() - signature(cls).parameters.keys()) & signature(cls.fit).parameters.keys():
            raise TypeError(f"{name} is an argument of fit: {cls.__name__}(...).fit(X, {name}={parameters[name]!r})")
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let `fit` say where an argument is that belongs to the constructor; codes are no table, so nothing wraps them."""
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)
        fit = cls.__dict__.get("fit")
        if fit is not None:
            cls.fit = _names_checked(fit)  # type: ignore[method-assign]

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, weights: Signals | None = None) -> Self:
        """Learn filters."""

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
        """Call `fit`, to which all further arguments `fit` go, then `transform` with the same X and `weights`."""
        return self.fit(X, y, weights=weights, **fit).transform(X, weights)

    def encode(self, X: Signals, weights: Signals | None = None, *, progress: Progress | None = None) -> Result:
        """Solve for codes as `transform` does, and return them with objective, duality gap, status and residuals.

        Samples of the signals `X` whose `weights` are zero were not seen; without weights NaN marks them. `progress` is
        called now and then with the share of the work that is done, from 0 to 1.
        """
        check_is_fitted(self, "filters_")
        X = as_arrays(X, self.channels)
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

    def training_step(self, *, shared: bool = False) -> Step:
        """The step of learning that the parameters describe, checked.

        Parameters
        ----------
        shared : bool
            Whether a cluster solves for the codes, which then come together on the host.
        """
        update = as_update(self.update)
        home = statistics_device(update.statistics, self.device)
        return Step(
            n_filters=self.n_filters,
            filter_size=self.filter_size,
            penalty=self.penalty,
            sampling=self.sampling,
            solver=self.solver,
            boundary=self.boundary,
            channels=self.channels,
            nonnegative=self.nonnegative,
            rank=self.rank,
            robust=self.robust,
            learning=self.learning,
            update=update,
            tol=self.tol,
            half_life=self._half_life(),
            n_jobs=effective_jobs(self.n_jobs),
            device=self.device,
            home="cpu" if shared else home,
        )

    @abstractmethod
    def _half_life(self) -> float:
        """Steps after which half of the ridge is left, where `learning` does not say."""

    def _begin(self, step: Step, *, verbose: int, warm_start: bool, **asked: Any) -> tuple[Step, PrintedLines]:
        """The step that a run begins with, and what tells of it; what else `fit` was asked is checked by its names."""
        return first_step(step, getattr(self, "filters_", None), warm_start, **asked), PrintedLines(verbose)

    def _held_out(self, step: Step, validation: Signals | None) -> Batch | None:
        """Signals that are held out, checked; errors say that it is about these."""
        if validation is None:
            return None
        try:
            return step.check(validation)
        except (ValueError, TypeError) as error:
            raise type(error)(f"validation cannot be coded: {error}") from error

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
        self, state: LearnerState, info: dict[str, Any], callbacks: Sequence[Callback] = (), judged: float | None = None
    ) -> bool:
        """Append to the history; true when a callback asks to stop."""
        if judged is not None:
            info["validation_objective"] = judged
        state.history.append(info)
        log.info("iteration %(iteration)d: objective %(objective).6g, %(nnz)d non-zeros", info)
        if len(state.history) == _NOTHING_FOUND and not any(one["nnz"] for one in state.history):
            log.warning(
                "no code was non-zero in %d steps: the penalty is too large for these signals, or sampling too small",
                _NOTHING_FOUND,
            )
        publish(self, state)
        return any([bool(callback(dict(info))) for callback in callbacks])

    @property
    def patterns_(self) -> NDArray:
        """Patterns over channels (n_filters, rank, channels) of filters that were learned with a rank, of unit norm."""
        return _factors(self)[0]

    @property
    def shapes_(self) -> NDArray:
        """Shapes (n_filters, rank, *size) that belong to the patterns; the largest sample of each is positive."""
        return _factors(self)[1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "filters_")

    def __sklearn_tags__(self) -> Any:
        """Signals may have NaN, channels and more axes than two."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


def _factors(learner: ConvolutionalLearner) -> tuple[NDArray, NDArray]:
    """Patterns and shapes of the learned filters."""
    check_is_fitted(learner, "filters_")
    if learner.rank is None:
        raise AttributeError("patterns_ and shapes_ need filters of a rank: learn with rank=1, or use split_channels")
    return split_channels(learner.filters_, learner.rank)


def _names_checked(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that says of the constructor's arguments where they belong."""

    @wraps(fit)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        for name in (given.keys() - signature(fit).parameters.keys()) & signature(type(self)).parameters.keys():
            raise TypeError(
                f"{name} is an argument of {type(self).__name__}(...), or set_params({name}={given[name]!r})"
            )
        return fit(self, *args, **given)

    return checked


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
        learner.outliers_ = state.windows.table(state.filters.ndim - 2)
