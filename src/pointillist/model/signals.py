"""Checks of signals, weights and filters that users pass, which become arrays ``(channels, *space)``.

The checks are the same wherever the arrays live; a `Namespace` says how they are made there.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.kernels.devices import Rows
from pointillist.model.arguments import as_numbers
from pointillist.model.foreign import as_several
from pointillist.model.large import converted, largest, scratch, walked
from pointillist.model.usable import within_rounding

Signals = NDArray | Sequence[ArrayLike]


class Namespace:
    """The array operations that the checks need, here for NumPy; large arrays are walked in bands and may live in files.

    A subclass serves another library; `xp` is its module, with NumPy's functions.
    """

    xp: Any = np

    def array(self, given: Any, name: str) -> Any:
        """Convert anything like an array to an array of this library; errors call it by `name`."""
        return as_numbers(given, name)

    def full(self, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array broadcast to a shape, contiguous and in a precision; the array itself where it is all that."""
        return converted(array if array.shape == shape else np.broadcast_to(array, shape), dtype)

    def split(self, whole: Any, dtype: Any) -> list[Any]:
        """The entries of an array along its first axis, contiguous and in a precision."""
        return [converted(one, dtype) for one in whole]

    def count(self, test: Callable[[Any], Any], arrays: Sequence[Any]) -> NDArray:
        """For each array the number of its elements for which `test`, evaluated element by element, is true."""
        return np.array([sum(np.count_nonzero(test(one[band])) for band in walked(one)) for one in arrays], int)

    def all_finite(self, arrays: Sequence[Any]) -> bool:
        """Whether no sample of any array is infinite or NaN; both show in the largest, without an array of truths."""
        return all(math.isfinite(largest(one)) for one in arrays)

    def seen_only(self, signals: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """Copies of the signals that are zero where their weights are."""
        seen = []
        for signal, weight in zip(signals, weights, strict=True):
            out = scratch(signal, signal.shape, signal.dtype)
            for band in walked(signal, weight, out):
                out[band] = np.where(weight[band] > 0, signal[band], signal.dtype.type(0))
            seen.append(out)
        return seen

    def extents(self, signals: Sequence[Any], weights: Sequence[Any] | None) -> tuple[NDArray, NDArray]:
        """Smallest and largest sample of each signal, of those whose weight is not zero."""
        seen = signals if weights is None else [x[w > 0] for x, w in zip(signals, weights, strict=True)]
        return np.array([np.min(x) for x in seen]), np.array([np.max(x) for x in seen])


HOST = Namespace()


def checked_signals(
    signals: Any, ndim: int, *, channels: bool, name: str = "signals", space: Namespace = HOST
) -> list[NDArray]:
    """Check signals, an array or a list of them, and give each the shape ``(channels, *space)``, `ndim` of them spatial.

    Without `channels` the arrays have no such axis. What was float64 stays so, everything else becomes float32; NaN and
    infinity pass (see `take_seen`). Errors call the signals by `name`; `space` is where the arrays are to live.
    """
    signals = as_several(signals, name) if space is HOST else signals
    if not hasattr(signals, "ndim"):
        if not isinstance(signals, Sequence) or isinstance(signals, str | bytes):
            raise ValueError(f"{name} must be an array or a list of arrays, got {type(signals).__name__}")
        if len(signals) == 0:
            raise ValueError(f"{name} is empty: give at least one signal")
        return [_one(space.array(one, f"{name}[{i}]"), i, ndim, channels, name, space) for i, one in enumerate(signals)]
    whole = space.array(signals, name)
    if whole.ndim != 1 + channels + ndim:
        raise ValueError(
            f"{name} must have {1 + channels + ndim} axes {_axes(ndim, channels)} for filters of {ndim} dimensions, got an "
            f"array of shape {whole.shape}"
            + (f"; add an axis for a single signal: {name}[None]" if whole.ndim == channels + ndim else "")
        )
    if len(whole) == 0:
        raise ValueError(f"{name} is empty: give at least one signal")
    _check_numbers(whole, name)
    return space.split(whole if channels else whole[:, None], kept_precision(whole.dtype))


def _one(array: Any, i: int, ndim: int, channels: bool, name: str, space: Namespace) -> Any:
    _check_numbers(array, f"{name}[{i}]")
    if array.ndim != channels + ndim:
        raise ValueError(
            f"{name}[{i}] must have {channels + ndim} axes, got shape {array.shape}; the filters have {ndim} dimensions"
        )
    full = array if channels else array[None]
    return space.full(full, full.shape, kept_precision(array.dtype))


def _check_numbers(array: Any, name: str) -> None:
    if array.dtype.kind not in "fiub":  # of a device: NumPy's were looked at before
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    if array.size == 0:
        raise ValueError(f"{name} is empty, its shape is {array.shape}")


def kept_precision(dtype: Any) -> np.dtype:
    """The precision that arrays are worked on in: float64 where that was given, float32 otherwise."""
    return np.dtype(np.float64 if np.dtype(dtype).newbyteorder("=") == np.float64 else np.float32)


def take_seen(
    signals: list[NDArray], weights: list[NDArray] | None, name: str = "signals", space: Namespace = HOST
) -> tuple[list[NDArray], list[NDArray] | None]:
    """Signals that are zero where they were not seen, and weights that are zero there; None where all was seen.

    Without weights NaN marks what was not seen. Other samples that are not finite are refused.
    """
    if weights is None and space.all_finite(signals):
        return signals, None
    bad = space.count(lambda x: ~space.xp.isfinite(x), signals)
    if weights is None:
        weights = _unseen(signals, name, space)
    seen = space.seen_only(signals, weights)
    if bad.any():
        bad = space.count(lambda x: ~space.xp.isfinite(x), seen)
        _refuse(bad, f"{name}[{{}}] holds {{}} NaN or infinite samples that count; give weights that are zero there")
    return seen, weights


def _unseen(signals: list[NDArray], name: str, space: Namespace) -> list[NDArray]:
    """Weights of zero where signals are NaN and one elsewhere."""
    missing = space.count(space.xp.isnan, signals)
    sizes = np.array([signal.size for signal in signals])
    _refuse(missing == sizes, f"{name}[{{}}] is NaN everywhere: nothing of that signal was seen; leave it out")
    return [(~space.xp.isnan(signal)).astype(signal.dtype) for signal in signals]


def check_not_infinite(signals: list[NDArray]) -> None:
    """Refuse infinite samples, where NaN may mark what was not seen and nobody can give weights."""
    infinite = HOST.count(np.isinf, signals)
    _refuse(infinite, "signals[{}] holds {} infinite samples; write NaN in their place if they were not seen")


def check_varied(signals: list[NDArray], weights: list[NDArray] | None, name: str, space: Namespace = HOST) -> None:
    """Refuse signals that are the same wherever they were seen."""
    low, high = space.extents(signals, weights)
    same = [within_rounding(a, b, one.dtype) for a, b, one in zip(low.tolist(), high.tolist(), signals, strict=True)]
    _refuse(
        np.array(same), f"{name}[{{}}] is constant, there is nothing in it: leave it out, or fit with on_error='skip'"
    )


def _refuse(found: NDArray, message: str) -> None:
    """Raise an error about the first signal of which something bad was found; the message gets its number, and how much."""
    if found.any():
        i = int(np.flatnonzero(found)[0])
        raise ValueError(message.format(i, found[i]))


def as_weights(
    weights: Any, signals: list[NDArray], *, channels: bool, space: Namespace = HOST, all_seen: bool = True
) -> list[NDArray] | None:
    """One weight array for each signal, of the signal's shape, checked; None stays None.

    `weights` is one array for each signal, or a single one that all signals share. Weights without the channel axis
    serve all channels. Signals that share a weight array go on sharing it. With `all_seen` something of every signal must
    have been seen.
    """
    if weights is None:
        return None
    several = weights = as_several(weights, "weights") if space is HOST else weights
    if hasattr(weights, "ndim"):
        several = whole = space.array(weights, "weights")
        first = tuple(signals[0].shape)
        if whole.shape in (first, first[1:]):
            if channels and whole.shape == (len(signals), *first[1:]) and len(signals) > 1:
                raise ValueError(
                    f"weights of shape {whole.shape} could be one for each signal or one for each channel; give them the "
                    f"shape {(len(signals), *first)}"
                )
            several = [whole] * len(signals)
    listed = isinstance(several, Sequence) and not isinstance(several, str | bytes)
    if not listed and not getattr(several, "ndim", 0):
        raise ValueError(f"weights must be an array or a list of arrays, got {type(weights).__name__}")
    several = list(several)
    if len(several) != len(signals):
        raise ValueError(f"weights must hold one array for each of the {len(signals)} signals, got {len(several)}")
    made: dict[Any, Any] = {}
    full = []
    for i, (weight, signal) in enumerate(zip(several, signals, strict=True)):
        key = id(weight), signal.shape, signal.dtype
        if key not in made:
            made[key] = _one_weight(space.array(weight, f"weights[{i}]"), signal, i, space)
        full.append(made[key])
    bad = space.count(lambda w: ~space.xp.isfinite(w) | (w < 0), full)
    _refuse(bad, "weights[{}] must be finite and not negative")
    if all_seen:
        seen = space.count(lambda w: w > 0, full)
        _refuse(seen == 0, "weights[{}] is zero everywhere: nothing of that signal was seen")
    return full


def _one_weight(weight: Any, signal: NDArray, i: int, space: Namespace) -> Any:
    if weight.shape not in (signal.shape, signal.shape[1:]):
        raise ValueError(f"weights[{i}] has shape {weight.shape}, the signal {signal.shape[1:]}; they must agree")
    return space.full(weight, signal.shape, signal.dtype)


def group_by_shape(signals: Sequence[NDArray]) -> list[list[int]]:
    """Indices of the signals of each shape, in order of appearance."""
    if isinstance(signals, Rows):
        return [list(range(len(signals)))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, signal in enumerate(signals):
        groups.setdefault(signal.shape, []).append(i)
    return list(groups.values())


def as_filters(filters: ArrayLike, *, channels: bool) -> NDArray:
    """Check filters and give them the shape ``(n_filters, channels, *size)``."""
    array = as_numbers(filters, "filters")
    if array.dtype.kind == "b" or array.ndim < 2 + channels:
        raise ValueError(
            f"filters must be a real array {_axes(0, channels, 'n_filters')[:-1]}, *size), got {array.dtype} of shape "
            f"{array.shape}"
        )
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError("filters must be finite and not empty")
    array = np.ascontiguousarray(array, kept_precision(array.dtype))
    return array if channels else array[:, None]


def _axes(ndim: int, channels: bool, first: str = "n_signals") -> str:
    space = {1: "length", 2: "height, width", 3: "depth, height, width"}.get(ndim, "*space")
    names = [first] + ["channels"] * bool(channels) + ([space] if ndim else [])
    return f"({', '.join(names)})"
