"""The door: what users pass, checked once and by name; every error says which argument it is and what it should be.

Signals, weights and filters become arrays ``(channels, *space)``. The checks are the same wherever the arrays live; a
`Namespace` says how they are made there.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pointillist.arrays import Rows, as_plain, as_several
from pointillist.large import converted, largest, scratch, walked
from pointillist.reprs import shown, sizes


def as_numbers(given: Any, name: str, dtype: DTypeLike | None = None) -> NDArray:
    """Anything that is like an array as a NumPy array of real numbers, perhaps of another type.

    Masked entries of a masked array become NaN, which marks what was not seen wherever such a thing is known and is refused
    elsewhere; see `as_plain` for what else may be given. Errors call the argument by `name`.
    """
    array = as_plain(given, name)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name} must hold real numbers: Complex data not supported, got {array.dtype}; give its parts as channels"
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got {_kind(given, array)}")
    if not array.dtype.isnative:
        array = (
            converted(array[None], array.dtype.newbyteorder("="))[0]
            if array.ndim
            else array.astype(array.dtype.newbyteorder("="))
        )
    with np.errstate(over="ignore"):
        return array if dtype is None else array.astype(dtype, copy=False)


def as_list(given: Any, name: str) -> list[Any]:
    """Anything that can be gone through as a list, but no text; errors call it by `name`."""
    if isinstance(given, str | bytes | type) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        raise ValueError(f"{name} must be a list or something like it, got {shown(given)}")
    try:
        return list(given)
    except Exception as error:  # of any kind: what is gone through may be anybody's object
        raise ValueError(f"{name} cannot be gone through: {error}") from error


def as_path(given: Any, name: str = "path") -> Path:
    """A text or a path as a path; errors call it by `name`. Numbers, which Python takes for open files, are refused."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {shown(given)}")
    if "\0" in str(given):
        raise ValueError(f"{name} holds a null character, which no file's name has: {shown(given)}")
    return Path(given)


def check_index(index: Any, count: int) -> None:
    """Refuse a number of a signal that there is not; negative ones count from the end."""
    if not is_integer(index):
        raise TypeError(f"index must be an integer, got {shown(index)}")
    if not -count <= int(index) < count:
        raise IndexError(f"index must be less than {count}, the number of signals, got {shown(index)}")


def _kind(given: Any, array: NDArray) -> str:
    """What was given, in a word or two."""
    return str(array.dtype) if isinstance(given, np.ndarray) else type(given).__name__


BOUNDARIES = ("valid", "same", "full", "circular")


@dataclass(frozen=True)
class Rule:
    """What values an argument may have, in words and as a test."""

    text: str
    allows: Callable[[Any], bool]


def check_arguments(**given: Any) -> None:
    """Refuse values that an argument of that name cannot have, wherever it stands; names without a rule pass."""
    for name, value in given.items():
        rule = _RULES.get(name)
        if rule is not None and not rule.allows(value):
            raise ValueError(f"{name} must be {rule.text}, got {shown(value)}")


_LARGEST_NUMBER, _LARGEST_INTEGER = 1e300, 2**31 - 1


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is one finite real number, and not a truth value."""
    if type(value) is float:  # which most are, and which needs no look at what counts as a number
        return abs(value) <= _LARGEST_NUMBER
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_ | np.timedelta64):
        return False
    try:
        return abs(float(value)) <= _LARGEST_NUMBER  # NumPy would bring the bound to the value's own type, and warn
    except OverflowError:
        return False


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number by its type; truth values and lengths of time, which count as such, are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def _number(text: str, test: Callable[[Any], bool] = lambda value: True) -> Rule:
    return Rule(text, lambda value: is_number(value) and test(value))


def _integer(least: int) -> Rule:
    def allows(value: Any) -> bool:
        return is_number(value) and isinstance(value, Integral) and least <= int(value) <= _LARGEST_INTEGER

    return Rule("a positive integer, at least 1" if least else "an integer, not negative", allows)


def _or_none(rule: Rule) -> Rule:
    return Rule(f"None or {rule.text}", lambda value: value is None or rule.allows(value))


def _one_of(*choices: str) -> Rule:
    words = ", ".join(f'"{choice}"' for choice in choices)
    return Rule(f"one of {words}", lambda value: isinstance(value, str) and value in choices)


_FLAG = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
_POSITIVE = _number("a positive, finite number", lambda value: value > 0)
_NOT_NEGATIVE = _number("a finite number, not negative", lambda value: value >= 0)
_SHARE = _number("a number between 0 and 1", lambda value: 0 <= value <= 1)
_INSIDE = _number("a number in (0, 1)", lambda value: 0 < value < 1)
_ANY_INTEGER = Rule("an integer, not negative", lambda value: is_integer(value) and value >= 0)
_MAPPING = Rule("None or a mapping", lambda value: value is None or isinstance(value, Mapping))
_CALLABLES = Rule(
    "a list or tuple of callables", lambda value: isinstance(value, list | tuple) and all(map(callable, value))
)
_FLAGS = (
    "as_frame", "channels", "debias", "deviations", "force", "fringe", "grey", "keep", "keep_seen", "keep_start",
    "nonnegative", "replace_unused", "resume", "return_details", "shuffle", "signs", "warm_start", "zero_mean",
)  # fmt: skip
_RULES: dict[str, Rule] = dict.fromkeys(_FLAGS, _FLAG) | {
    "alpha": _POSITIVE,
    "angle": _number("a finite number of degrees"),
    "batch_size": _integer(1),
    "batched": _or_none(_FLAG),
    "boundary": _one_of(*BOUNDARIES),
    "cache": _ANY_INTEGER,
    "callbacks": _CALLABLES,
    "columns": _or_none(_integer(1)),
    "depth": _or_none(_integer(0)),
    "channel_axis": Rule(
        'None, "auto" or an axis',
        lambda value: value is None or (isinstance(value, str) and value == "auto") or _integer(-9).allows(value),
    ),
    "check_every": _integer(1),
    "count": _integer(1),
    "data_range": _or_none(_number("a positive number, at most 1e30", lambda value: 0 < value <= 1e30)),
    "epoch": _ANY_INTEGER,
    "extra": _integer(0),
    "false_alarms": _number("a number in (0, 0.5)", lambda value: 0 < value < 0.5),
    "forgetting": _or_none(_number("a number, at least 1", lambda value: value >= 1)),
    "fraction": _or_none(_INSIDE),
    "gain": _POSITIVE,
    "grow": _integer(0),
    "how": _one_of("sum", "mean", "max", "count"),
    "half_life": _or_none(_POSITIVE),
    "height": _integer(1),
    "inner": _INSIDE,
    "iterations": _integer(0),
    "left": _integer(0),
    "max_iter": _integer(1),
    "max_sweeps": _integer(1),
    "metadata": _MAPPING,
    "min_change": _NOT_NEGATIVE,
    "min_iter": _integer(0),
    "n_epochs": _or_none(_integer(1)),
    "n_filters": _integer(0),
    "n": _or_none(_integer(1)),
    "n_sweeps": _or_none(_integer(1)),
    "n_windows": _integer(1),
    "ndim": _integer(1),
    "opacity": _SHARE,
    "prefetch": _integer(0),
    "preprocessing": _MAPPING,
    "progress": Rule("None or a callable", lambda value: value is None or callable(value)),
    "rank": _or_none(_integer(1)),
    "record": _MAPPING,
    "recursive": _or_none(_FLAG),
    "relaxation": _number("a number in (0, 2)", lambda value: 0 < value < 2),
    "rho": _or_none(_POSITIVE),
    "ridge": _NOT_NEGATIVE,
    "sampling_rate": _POSITIVE,
    "seed": _ANY_INTEGER,
    "sensitivity": _SHARE,
    "sigma": _or_none(_NOT_NEGATIVE),
    "smallest": _or_none(_INSIDE),
    "strength": _POSITIVE,
    "texture": _SHARE,
    "threshold": _number("a finite number"),
    "tile": _integer(1),
    "tol": _or_none(_NOT_NEGATIVE),
    "top": _integer(0),
    "validation_every": _integer(1),
    "verbose": Rule(
        "True, False or an integer, not negative", lambda value: _FLAG.allows(value) or _integer(0).allows(value)
    ),
    "warm_up": _integer(0),
    "width": _integer(1),
}
"""One rule for every name, since a name means the same everywhere; a function may ask for more."""


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
