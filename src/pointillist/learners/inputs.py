"""What users give to learners, as checked batches of signals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import any_resident, as_several, shape_of, to_host
from pointillist.learners.noticing import notice_axes
from pointillist.problem import check_penalty
from pointillist.reprs import shown
from pointillist.solvers.inputs import take_signals
from pointillist.validation import Signals, as_numbers, check_arguments, is_integer, why_unusable


@dataclass(frozen=True)
class Batch:
    """Checked signals (channels, *space) with their weights."""

    signals: list[NDArray]
    weights: list[NDArray] | None
    numbers: Sequence[int] | None = None  # of the signals among all that are learned from, where that is known
    skipped: tuple[str, ...] = ()  # why signals were left out

    def __len__(self) -> int:
        return len(self.signals)

    def numbered(self) -> "Batch":
        """The same signals as all that are learned from, each with its number."""
        return self if self.numbers is not None else replace(self, numbers=range(len(self)))

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
    X = X if any_resident(X) else as_several(X, "X")
    if isinstance(X, list | tuple) or any_resident(X):
        return X
    array = as_numbers(X, "X")
    if array.ndim < 2 + channels:
        several = ", channels" if channels else ""
        raise ValueError(
            f"X must have at least {2 + channels} axes, for signals{several} and their samples, got "
            f"{array.ndim}. Reshape your data: X[None] is a single signal"
        )
    if len(array) and array[0].size < 2:
        raise ValueError(
            f"X has {array[0].size} feature(s) (shape={array.shape}) while a minimum of 2 is required: a signal of one "
            "sample tells nothing"
        )
    return array


def to_learn_from(X: Any, filter_size: Any, channels: bool) -> tuple[Any, int]:
    """Signals as an array or a list of arrays, and their number of spatial axes; axes that seem mistaken are noticed."""
    X = as_arrays(X, channels)
    notice_axes(X, filter_size, channels)
    return X, spatial_axes(X, filter_size, channels)


def spatial_axes(X: Any, filter_size: Any, channels: bool) -> int:
    """Spatial dimensions, from the filter size if that tells, from the signals otherwise."""
    if isinstance(filter_size, tuple) and filter_size:
        if not all(is_integer(side) and side > 0 for side in filter_size):
            raise ValueError(f"filter_size must be a positive integer or a tuple of them, got {shown(filter_size)}")
        return len(filter_size)
    if len(X) == 0:
        raise ValueError("X is empty: give at least one signal")
    axes = len(shape_of(X[0], "X[0]"))
    if axes < 1 + channels:
        raise ValueError(f"X[0] must have at least {1 + channels} axes, got {axes}; add an axis: X[None]")
    return axes - int(channels)


def checked_batch(
    X: Signals,
    weights: Signals | None,
    ndim: int,
    channels: bool,
    device: str | None,
    skip_below: Sequence[int] | None = None,
    *,
    move: bool = False,
) -> Batch:
    """Signals to learn from, with weights of zero where NaN marks what was not seen.

    Signals that live on a device stay there where `device` names it; None brings them to the host. With `skip_below`, the
    size of the filters, signals that are smaller or useless otherwise are left out instead of refused. With `move` an array
    of several signals of the host goes to the device.
    """
    place = device or "cpu"
    if skip_below is None:
        return Batch(*take_signals(X, weights, ndim, channels=channels, device=place, to_learn=True, move=move))
    usable = _Usable(skip_below, channels)
    taken = take_signals(X, weights, ndim, channels=channels, device=place, to_learn=True, choose=usable)
    return Batch(*taken, usable.numbers, tuple(usable.reasons))


class _Usable:
    """Chooses the signals that something can be learned from, and keeps why it did not choose the others."""

    def __init__(self, least: Sequence[int], channels: bool) -> None:
        self._least, self._channels = least, channels
        self.numbers: list[int] = []
        self.reasons: list[str] = []

    def __call__(self, signals: list[NDArray], weights: list[NDArray] | None) -> Sequence[int]:
        for i, signal in enumerate(signals):
            seen = to_host(signal)
            if weights is not None:
                seen = np.where(to_host(weights[i]) > 0, seen, np.nan)
            reason = why_unusable(seen if self._channels else seen[0], self._least)
            if reason is None:
                self.numbers.append(i)
            else:
                self.reasons.append(f"X[{i}] {reason}")
        return self.numbers
