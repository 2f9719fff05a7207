"""What learners carry from step to step, and what a step works on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.robust import Robust, Windows, window_errors, without_outliers
from pointillist.dictionary.statistics import CodedBatch, Statistics
from pointillist.kernels.compiling import working_time
from pointillist.learners.outliers import WindowRecord


@dataclass(repr=False)
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
    history: list[dict[str, Any]] = field(default_factory=list)
    windows: WindowRecord = field(default_factory=WindowRecord)  # empty unless learning is robust

    def __repr__(self) -> str:
        size = "×".join(map(str, self.filters.shape))
        return f"LearnerState(filters {size}, after {self.step} steps and {self.n_seen} signals)"

    @staticmethod
    def now() -> float:
        """Seconds by the clock of `seconds`, which stands still while kernels are compiled."""
        return working_time()

    def sort_by_use(self) -> None:
        """Reorder the filters by how much the codes used them, the most used first, and all that follows their order."""
        order = np.argsort(-self.usage, kind="stable")
        self.filters = np.ascontiguousarray(self.filters[order])
        self.usage = self.usage[order]
        self.statistics.permute(order)
        if np.ndim(self.penalty) in (1, self.filters.ndim - 1) and np.shape(self.penalty)[0] == len(order):
            self.penalty = np.asarray(self.penalty)[order]
        if self.constraints.support is not None:
            self.constraints = replace(self.constraints, support=self.constraints.support[order])


class Coding(Protocol):
    """The attributes of a `LearnerState` that the codes of a step depend on; a cluster's `Brief` has them too."""

    filters: NDArray
    penalty: float | NDArray
    seed: int
    step: int


class StepCodes(Protocol):
    """What a step of learning asks of its codes, whether they are in this process or with the workers of a cluster."""

    def __len__(self) -> int: ...
    def add_to(self, state: LearnerState, counts: NDArray) -> None: ...
    def usage(self) -> NDArray: ...
    def residuals(self) -> Sequence[NDArray]: ...
    def objective(self, state: LearnerState) -> float: ...
    def windows(self, robust: Robust, state: LearnerState) -> list[Windows]: ...
    def without(self, counted: Sequence[NDArray], state: LearnerState) -> Self: ...
    @property
    def nnz(self) -> int: ...
    @property
    def gap(self) -> float: ...
    @property
    def numbers(self) -> Sequence[int] | None: ...


@dataclass(frozen=True)
class CodesHere:
    """The codes of a step in this process."""

    coded: CodedBatch
    gap: float
    n_jobs: int = 1
    numbers: Sequence[int] | None = None  # of the signals among all that are learned from, where that is known

    def __len__(self) -> int:
        return len(self.coded)

    def add_to(self, state: LearnerState, counts: NDArray) -> None:
        state.statistics.add(self.coded, state.filters, counts, self.n_jobs)

    def usage(self) -> NDArray:
        return self.coded.codes.usage()

    def residuals(self) -> Sequence[NDArray]:
        return self.coded.residuals

    def objective(self, state: LearnerState) -> float:
        return float(np.sum(state.statistics.objectives(self.coded, state.filters, state.penalty)))

    def windows(self, robust: Robust, state: LearnerState) -> list[Windows]:
        return window_errors(self.coded, state.filters, state.penalty, robust)

    def without(self, counted: Sequence[NDArray], state: LearnerState) -> Self:
        return replace(self, coded=without_outliers(self.coded, state.filters, counted, state.constraints.support))

    @property
    def nnz(self) -> int:
        return self.coded.codes.nnz


def what_counts(
    robust: Robust, state: LearnerState, codes: StepCodes, counts: NDArray
) -> tuple[StepCodes, NDArray, int]:
    """Judge the windows of a step; return its codes without the outliers, what each signal counts, and their number.

    Parameters
    ----------
    robust : Robust
    state : LearnerState
        As it is before the step; its record of windows is carried on.
    codes : StepCodes
    counts : (n_signals,) array
        How much each signal counts in the statistics.
    """
    windows = codes.windows(robust, state)
    outliers = state.windows.judge(windows, robust, state.step)
    numbers = range(state.n_seen, state.n_seen + len(codes)) if codes.numbers is None else codes.numbers
    state.windows.remember(numbers, windows, outliers)
    if not any(one.any() for one in outliers):
        return codes, counts, 0
    counted = [
        one.outside(chosen) if chosen.any() else np.ones(one.costs.shape, bool)
        for one, chosen in zip(windows, outliers, strict=True)
    ]
    members = [i for i, one in enumerate(counted) if one.any()]
    return codes.without(counted, state), counts[members], sum(int(one.sum()) for one in outliers)
