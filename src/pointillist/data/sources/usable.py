"""Whether there is anything to learn from a signal."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pointillist.errors import UnusableSignalError


def check_usable(signal: NDArray, least: Sequence[int], name: Callable[[], str]) -> None:
    """Raise `UnusableSignalError` where there is nothing to learn from a signal; NaN marks samples that were not seen."""
    if len(least) and any(samples < size for samples, size in zip(signal.shape[-len(least) :], least, strict=True)):
        reason = f"is {_sizes(signal.shape)}, smaller than the filters, {_sizes(least)}: use smaller ones"
        raise UnusableSignalError(f"{name()} {reason}")
    if np.isinf(signal).any():
        raise UnusableSignalError(f"{name()} holds infinite samples: replace them first, by NaN for instance")
    if np.isnan(signal).all():
        raise UnusableSignalError(f"{name()} is NaN everywhere, nothing of it was seen: leave it out")
    if is_constant(signal):
        raise UnusableSignalError(f"{name()} is constant, there is nothing in it: leave it out")


def is_constant(signal: NDArray) -> bool:
    """Whether the samples that were seen differ by no more than rounding."""
    low, high = float(np.fmin.reduce(signal, axis=None)), float(np.fmax.reduce(signal, axis=None))
    unit = np.finfo(signal.dtype).eps if signal.dtype.kind == "f" else 0.0
    return not high - low > 8 * unit * max(abs(low), abs(high))


def _sizes(shape: Sequence[int]) -> str:
    return "×".join(str(axis) for axis in shape)
