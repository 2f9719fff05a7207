"""What learners carry from step to step, and what a step works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import Statistics
from pointillist.model.codes import SparseCodes
from pointillist.solvers.base import Result

if TYPE_CHECKING:
    from pointillist.learners.base import ConvolutionalLearner


@dataclass
class LearnerState:
    """All that a learner carries from one step to the next."""

    filters: NDArray  # (n_filters, channels, *size)
    statistics: Statistics
    constraints: FilterConstraints
    penalty: float | NDArray
    seed: int
    step: int = 0
    n_seen: int = 0
    seconds: float = 0.0
    usage: NDArray = field(default_factory=lambda: np.zeros(0))
    codes: SparseCodes | None = None  # of the last step
    history: list[dict[str, Any]] = field(default_factory=list)


class Coding(Protocol):
    """What the codes of a step depend on, besides the signals; a `LearnerState` has it all."""

    filters: NDArray
    penalty: float | NDArray
    seed: int
    step: int


@dataclass(frozen=True)
class Batch:
    """Checked signals (channels, *space) with their weights."""

    signals: list[NDArray]
    weights: list[NDArray] | None

    def __len__(self) -> int:
        return len(self.signals)

    def take(self, chosen: Sequence[int]) -> Batch:
        weights = None if self.weights is None else [self.weights[i] for i in chosen]
        return Batch([self.signals[i] for i in chosen], weights)


class StepCodes(Protocol):
    """The codes of a step, wherever they are: all that a learner asks of them."""

    def __len__(self) -> int: ...
    def add_to(self, state: LearnerState, image_weights: NDArray) -> None: ...
    def usage(self) -> NDArray: ...
    def residuals(self) -> Sequence[NDArray]: ...
    def objective(self, state: LearnerState) -> float: ...
    @property
    def nnz(self) -> int: ...
    @property
    def gap(self) -> float: ...


@dataclass(frozen=True)
class CodesHere:
    """Codes in this process."""

    learner: ConvolutionalLearner
    batch: Batch
    result: Result

    def __len__(self) -> int:
        return len(self.batch)

    def add_to(self, state: LearnerState, image_weights: NDArray) -> None:
        self.learner._add(state, self.batch, self.result, image_weights)

    def usage(self) -> NDArray:
        return self.result.codes.usage()

    def residuals(self) -> Sequence[NDArray]:
        return self.result.residuals

    def objective(self, state: LearnerState) -> float:
        return float(np.sum(self.learner._objectives(state, self.batch, self.result.codes)))

    @property
    def nnz(self) -> int:
        return self.result.codes.nnz

    @property
    def gap(self) -> float:
        return float(np.mean(self.result.gap))
