"""Whether there is anything in a signal to code or to learn from: the one test of it, for all layers."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pointillist.model.geometry import sizes
from pointillist.model.large import walked


def why_unusable(
    signal: NDArray, least: Sequence[int] = (), *, gaps: bool = True, constant: bool = False
) -> str | None:
    """Say what makes a signal useless, as the end of a sentence that begins with its name; None where it is usable.

    Parameters
    ----------
    signal : ([channels,] *space) array
    least : sequence of int
        Size of the filters; a smaller signal is useless.
    gaps : bool
        Whether some samples may be NaN, which marks those that were not seen.
    constant : bool
        Whether a constant signal is welcome: it can be coded, but nothing can be learned from it.
    """
    if signal.size == 0:
        return f"is empty, its shape is {signal.shape}: leave it out"
    if any(samples < size for samples, size in zip(signal.shape[-len(least) :], least, strict=False)):
        return f"is {sizes(signal.shape)}, smaller than the filters, {sizes(least)}: use smaller ones"
    low, high, missing = np.nan, np.nan, False
    for _, rows in walked(signal[None]):
        part = signal[rows]
        bottom, top = extremes(part)
        low, high = np.fmin(low, bottom), np.fmax(high, top)
        missing = missing or (not gaps and bool(np.isnan(part).any()))
    if np.isinf(low) or np.isinf(high):
        return "holds infinite samples: replace them first, by NaN for instance"
    if np.isnan(low):
        return "is NaN everywhere, nothing of it was seen: leave it out"
    if missing:
        return "holds NaN: replace those samples first"
    if not constant and within_rounding(float(low), float(high), signal.dtype):
        return "is constant, there is nothing in it: leave it out"
    return None


def is_constant(signal: NDArray) -> bool:
    """Whether the samples that were seen differ by no more than rounding."""
    return within_rounding(*extremes(signal), signal.dtype)


def extremes(array: NDArray) -> tuple[float, float]:
    """The smallest and the largest number of an array, those that are NaN left out; NaN where all of them are."""
    smallest, largest = cast(Any, np.fmin), cast(Any, np.fmax)  # their annotations are wrong in NumPy 2.5
    return float(smallest.reduce(array, axis=None)), float(largest.reduce(array, axis=None))


def within_rounding(low: float, high: float, dtype: np.dtype) -> bool:
    """Whether two samples are so close, as samples of that type, that they may be the same; true for NaN."""
    unit = np.finfo(dtype).eps if dtype.kind == "f" else 0.0
    return not high - low > 8 * unit * max(abs(low), abs(high))
