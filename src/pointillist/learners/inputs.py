"""What users give to learners, as checked batches of signals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pointillist.backends.devices import any_resident
from pointillist.model.arguments import check_arguments
from pointillist.model.problem import check_penalty
from pointillist.model.signals import Signals
from pointillist.solvers.inputs import take_signals


@dataclass(frozen=True)
class Batch:
    """Checked signals (channels, *space) with their weights."""

    signals: list[NDArray]
    weights: list[NDArray] | None
    numbers: Sequence[int] | None = None  # of the signals among all that are learned from, where that is known

    def __len__(self) -> int:
        return len(self.signals)

    def numbered(self) -> "Batch":
        """The same signals as all that are learned from, each with its number."""
        return replace(self, numbers=range(len(self)))

    def take(self, chosen: Sequence[int]) -> "Batch":
        """Some of the signals."""
        weights = None if self.weights is None else [self.weights[i] for i in chosen]
        numbers = None if self.numbers is None else [self.numbers[i] for i in chosen]
        return Batch([self.signals[i] for i in chosen], weights, numbers)


def check_coding(penalty: Any, **settings: Any) -> None:
    """Check the penalty, and settings by the rules for their names."""
    check_arguments(**settings)
    check_penalty(penalty)


def as_arrays(X: Any, channels: bool) -> Any:
    """Signals as an array or a list of arrays; a table becomes an array, and what cannot hold signals is refused."""
    if scipy.sparse.issparse(X):
        raise TypeError("X is sparse, and sparse signals are not supported: give X.toarray()")
    if isinstance(X, list | tuple) or any_resident(X):
        return X
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind == "O":
        array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise ValueError(f"X: Complex data not supported, got {array.dtype}; give its parts as channels")
    if array.ndim < 2 + channels:
        raise ValueError(
            f"X must have at least {2 + channels} axes, for signals{', channels' * channels} and their samples, got "
            f"{array.ndim}. Reshape your data: X[None] is a single signal"
        )
    if len(array) and array[0].size < 2:
        raise ValueError(
            f"X has {array[0].size} feature(s) (shape={array.shape}) while a minimum of 2 is required: a signal of one "
            "sample tells nothing"
        )
    return array


def spatial_axes(X: Any, filter_size: Any, channels: bool) -> int:
    """Spatial dimensions, from the filter size if that tells, from the signals otherwise."""
    if isinstance(filter_size, tuple) and filter_size:
        return len(filter_size)
    if len(X) == 0:
        raise ValueError("X is empty: give at least one signal")
    ndim = np.ndim(X[0]) - int(channels)
    if ndim < 1:
        raise ValueError(f"X[0] must have at least {1 + channels} axes, got {np.ndim(X[0])}; add an axis: X[None]")
    return ndim


def checked_batch(X: Signals, weights: Signals | None, ndim: int, channels: bool, device: str | None) -> Batch:
    """Signals to learn from, with weights of zero where NaN marks what was not seen.

    Signals that live on a device stay there where `device` names it; None brings them to the host.
    """
    return Batch(*take_signals(X, weights, ndim, channels=channels, device=device or "cpu", to_learn=True))
