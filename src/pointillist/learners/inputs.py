"""What users give to learners, as checked batches of signals, and axes that look as if they meant something else.

The number of axes of a signal follows from the data unless `filter_size` is a tuple. One picture taken for rows, or colours
taken for space, is noticed here; a tuple settles what is meant.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import any_resident, as_several, shape_of, to_host
from pointillist.reprs import shown
from pointillist.validation import (
    Signals,
    as_numbers,
    as_weights,
    check_varied,
    checked_signals,
    is_integer,
    place_of,
    take_seen,
    why_unusable,
)


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
    """Signals as an array or a list of arrays, and their number of spatial axes; axes that seem mistaken are noticed.

    The filter size tells that number if it is a tuple, the signals do otherwise.
    """
    X = as_arrays(X, channels)
    sides = filter_size if isinstance(filter_size, list) else [filter_size]
    if sides and all(isinstance(side, Integral) for side in sides) and len(X) > 0 and not any_resident(X):
        _refuse_colours_last(X, max(sides), channels)
        if not channels and isinstance(X, np.ndarray) and X.ndim == 2 and _looks_like_a_picture(X):
            warnings.warn(
                f"X of shape {X.shape} looks like one picture, but its {len(X)} rows are taken for signals of one "
                f"dimension. Give X[None] to learn from a picture; filter_size=({sides[0]},) says that rows are meant",
                UserWarning,
                stacklevel=2,
            )
    if isinstance(filter_size, tuple) and filter_size:
        if not all(is_integer(side) and side > 0 for side in filter_size):
            raise ValueError(f"filter_size must be a positive integer or a tuple of them, got {shown(filter_size)}")
        return X, len(filter_size)
    if len(X) == 0:
        raise ValueError("X is empty: give at least one signal")
    axes = len(shape_of(X[0], "X[0]"))
    if axes < 1 + channels:
        raise ValueError(f"X[0] must have at least {1 + channels} axes, got {axes}; add an axis: X[None]")
    return X, axes - int(channels)


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
    skip = skip_below is not None
    with place_of(X, weights, device or "cpu", move=move and not skip) as (given, given_weights, place):
        signals = checked_signals(given, ndim, channels=channels, name="X", place=place)
        seen = as_weights(given_weights, signals, channels=channels, place=place, all_seen=not skip)
        numbers, reasons = None, []
        if skip_below is not None:
            numbers = []
            for i, signal in enumerate(signals):
                host = to_host(signal) if seen is None else np.where(to_host(seen[i]) > 0, to_host(signal), np.nan)
                reason = why_unusable(host if channels else host[0], skip_below)
                if reason is None:
                    numbers.append(i)
                else:
                    reasons.append(f"X[{i}] {reason}")
            signals, seen = [signals[i] for i in numbers], None if seen is None else [seen[i] for i in numbers]
            if not signals:
                return Batch([], None, numbers, tuple(reasons))
        signals, seen = take_seen(signals, seen, "X", place)
        check_varied(signals, seen, "X", place)
        return Batch(signals, seen, numbers, tuple(reasons))


def _refuse_colours_last(X: Any, filter_size: Any, channels: bool) -> None:
    """Refuse signals whose last axis, of three or four samples beside eight or more, seems to hold colours."""
    shape = shape_of(X[0], "X[0]")
    if len(shape) < 2 or shape[-1] not in (3, 4) or min(shape[:-1]) < 8:
        return
    one_picture = f"pt.as_signals({'X' if hasattr(X, 'ndim') else 'X[0]'}) for one picture, "
    several = "pt.as_signals(list(X)) for pictures" if len(shape) == 3 else "np.moveaxis(X, -1, 1) for series"
    explicit = tuple(int(min(filter_size, samples)) for samples in shape[channels:])
    raise ValueError(
        f"X[0] of shape {shape} seems to have its {shape[-1]} colours or channels behind its samples, and they come first "
        f"here. Give {one_picture if len(shape) == 2 and not channels else ''}{several}, with channels=True; if the last "
        f"axis is one of space, say so by a tuple: filter_size={explicit}"
    )


def _looks_like_a_picture(X: NDArray) -> bool:
    """Whether samples are like their neighbours along both axes, in what rows and columns do not have in common.

    Rows that are recordings are not more like the next one than like any other, once their mean is taken out. At most 256
    rows and columns, from the middle, are compared.
    """
    short, long = sorted(X.shape)
    if short < 16 or long > 8 * short:
        return False
    part = np.array(X[tuple(slice(max(n // 2 - 128, 0), n // 2 + 128) for n in X.shape)], np.float64)
    part[~np.isfinite(part)] = np.nan
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows and columns of which nothing was seen
        part -= np.nanmean(part, axis=0)
        part -= np.nanmean(part, axis=1, keepdims=True)
    part = np.nan_to_num(part, nan=0.0, posinf=0.0, neginf=0.0)
    likeness = []
    for lines in (part, part.T):  # the correlation of every row, or column, with the next
        above, below = lines[:-1], lines[1:]
        size = np.sqrt(float(np.sum(above**2)) * float(np.sum(below**2)))
        likeness.append(float(np.sum(above * below)) / size if np.isfinite(size) and size > 0 else 0.0)
    return min(likeness) > 0.3
