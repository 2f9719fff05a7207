"""The door: what users pass, checked once and by name; every error says which argument it is and what it should be.

Numbers, lists, paths and settings come first, then signals, weights and filters, which become arrays
``(channels, *space)``, and what learners are given. Signals are checked where they live: a `Place` says how arrays are
made and measured there.
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pointillist.arrays import (
    Rows,
    any_resident,
    as_plain,
    as_several,
    converted,
    extent,
    group_by_shape,
    is_cpu,
    is_mapped,
    is_resident,
    members_of,
    rows,
    scratch,
    shape_of,
    stacked,
    to_host,
    walked,
)
from pointillist.cuda.device import Device, open_device
from pointillist.reprs import shown, sizes

BOUNDARIES = ("valid", "same", "full", "circular")
_LARGEST_NUMBER, _LARGEST_INTEGER = 1e300, 2**31 - 1


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
        kind = array.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise ValueError(f"{name} must hold real numbers, got {kind}")
    if not array.dtype.isnative:
        native = array.dtype.newbyteorder("=")
        array = converted(array[None], native)[0] if array.ndim else array.astype(native)
    with np.errstate(over="ignore"):
        return array if dtype is None else array.astype(dtype, copy=False)


def as_list(given: Any, name: str) -> list[Any]:
    """Anything that can be gone through as a list, but no text; errors call it by `name`."""
    if type(given) is list:
        return given.copy()
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


def is_number(value: Any) -> TypeGuard[float]:
    """True if a value is one finite real number, and not a truth value."""
    if type(value) is float:  # which most are, and which needs no look at what counts as a number
        return abs(value) <= _LARGEST_NUMBER
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_ | np.timedelta64):
        return False
    try:
        return abs(float(value)) <= _LARGEST_NUMBER  # NumPy would bring the bound to the value's own type, and warn
    except OverflowError:
        return False


def is_integer(value: Any) -> TypeGuard[int]:
    """True if a value is a whole number by its type; truth values and lengths of time, which count as such, are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


@dataclass(frozen=True)
class Rule:
    """Values that an argument may have, in words and by kind and range.

    `kind` is float, int or bool for finite numbers, whole numbers and truth values, a tuple of texts for one of these, or a
    test; numbers lie from `low` to `high`, strictly between them where `inside`.
    """

    text: str
    kind: Any
    low: float = -_LARGEST_NUMBER
    high: float = _LARGEST_NUMBER
    inside: bool = False
    optional: bool = False

    def allows(self, value: Any) -> bool:
        """True if an argument may have this value."""
        if value is None and self.optional:
            return True
        if self.kind is bool:
            return isinstance(value, bool | np.bool_)
        if isinstance(self.kind, tuple):
            return isinstance(value, str) and value in self.kind
        if self.kind is float or self.kind is int:
            if not (is_number(value) if self.kind is float else is_integer(value)):
                return False
            number = self.kind(value)  # NumPy would bring the bounds to the value's own type, and warn
            return self.low < number < self.high if self.inside else self.low <= number <= self.high
        return bool(self.kind(value))


def check_arguments(**given: Any) -> None:
    """Refuse values that an argument of that name cannot have, wherever it stands; names without a rule pass."""
    for name, value in given.items():
        rule = _RULES.get(name)
        if rule is not None and not rule.allows(value):
            text = f"None or {rule.text}" if rule.optional else rule.text
            raise ValueError(f"{name} must be {text}, got {shown(value)}")


def _is_source(value: Any) -> bool:
    return not isinstance(value, type) and all(hasattr(value, verb) for verb in ("read", "name", "describe"))


def _are_integers(values: Any, least: int) -> bool:
    return isinstance(values, list | tuple) and all(is_integer(value) and value >= least for value in values)


def _one_of(*choices: str) -> Rule:
    return Rule("one of " + ", ".join(f'"{choice}"' for choice in choices), choices)


_SOURCE = "a source, such as ArraySource(arrays) or open_source(path)"
_FLAG = Rule("True or False", bool)
_POSITIVE = Rule("a positive, finite number", float, 0, np.inf, inside=True)
_NOT_NEGATIVE = Rule("a finite number, not negative", float, 0)
_INSIDE = Rule("a number in (0, 1)", float, 0, 1, inside=True)
_NATURAL = Rule("an integer, not negative", int, 0, _LARGEST_INTEGER)
_COUNT = Rule("a positive integer, at least 1", int, 1, _LARGEST_INTEGER)
_TABLE: dict[str, Rule] = {
    "as_frame channels debias deviations force fringe grey keep keep_residual keep_seen nonnegative overwrite": _FLAG,
    "reject_by_annotation replace_unused resume return_details show shuffle signs warm_start zero_mean": _FLAG,
    "batched recursive": replace(_FLAG, optional=True),
    "batch_size check_every count height max_iter max_sweeps n_passes": _COUNT,
    "n_windows ndim scale tile validation_every width": _COUNT,
    "columns n n_epochs n_sweeps rank": replace(_COUNT, optional=True),
    "extra grow iterations left min_iter n_filters prefetch top warm_up": _NATURAL,
    "depth": replace(_NATURAL, optional=True),
    "cache epoch seed": replace(_NATURAL, high=np.inf),
    "alpha duration gain sampling_rate strength": _POSITIVE,
    "half_life rho": replace(_POSITIVE, optional=True),
    "min_change ridge": _NOT_NEGATIVE,
    "sigma tol": replace(_NOT_NEGATIVE, optional=True),
    "opacity sensitivity texture": Rule("a number between 0 and 1", float, 0, 1),
    "inner": _INSIDE,
    "fraction smallest": replace(_INSIDE, optional=True),
    "false_alarms": Rule("a number in (0, 0.5)", float, 0, 0.5, inside=True),
    "relaxation": Rule("a number in (0, 2)", float, 0, 2, inside=True),
    "forgetting": Rule("a number, at least 1", float, 1, optional=True),
    "data_range": Rule("a positive number, at most 1e30", float, 1e-300, 1e30, optional=True),
    "angle": Rule("a finite number of degrees", float),
    "threshold": Rule("a finite number", float),
    "boundary": _one_of(*BOUNDARIES),
    "how": _one_of("sum", "mean", "max", "count"),
    "on_error": _one_of("raise", "skip"),
    "array column dataset name": Rule("a text", lambda value: isinstance(value, str)),
    "source": Rule(_SOURCE, _is_source),
    "sources": Rule(f"a list of which each is {_SOURCE}", lambda values: all(map(_is_source, values))),
    "corner": Rule("a tuple of integers, not negative", lambda value: _are_integers(value, 0)),
    "size": Rule("a tuple of positive integers", lambda value: _are_integers(value, 1)),
    "progress": Rule("a callable", callable, optional=True),
    "metadata preprocessing record": Rule("a mapping", lambda value: isinstance(value, Mapping), optional=True),
    "callbacks": Rule(
        "a list or tuple of callables", lambda value: isinstance(value, list | tuple) and all(map(callable, value))
    ),
    "channel_axis": Rule(
        'None, "auto" or an axis', lambda value: value is None or is_integer(value) or str(value) == "auto"
    ),
    "verbose": Rule(
        "True, False or an integer, not negative", lambda value: _FLAG.allows(value) or _NATURAL.allows(value)
    ),
}
_RULES = {name: rule for names, rule in _TABLE.items() for name in names.split()}
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
    for _, band in walked(signal[None]):
        part = signal[band]
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
    """True if the samples that were seen differ by no more than rounding."""
    return within_rounding(*extremes(signal), signal.dtype)


def extremes(array: NDArray) -> tuple[float, float]:
    """The smallest and the largest number of an array, those that are NaN left out; NaN where all of them are."""
    smallest, largest = cast(Any, np.fmin), cast(Any, np.fmax)  # their annotations are wrong in NumPy 2.5
    return float(smallest.reduce(array, axis=None)), float(largest.reduce(array, axis=None))


def within_rounding(low: float, high: float, dtype: np.dtype) -> bool:
    """True if two samples are so close, as samples of that type, that they may be the same; true for NaN."""
    unit = np.finfo(dtype).eps if dtype.kind == "f" else 0.0
    return not high - low > 8 * unit * max(abs(low), abs(high))


Signals = NDArray | Sequence[ArrayLike]


class Place:
    """A home in which arrays are checked, here NumPy's, on the host; large ones are walked in bands."""

    xp: Any = np

    def array(self, given: Any, name: str) -> Any:
        """Anything like an array of real numbers as an array of this place; errors call it by `name`."""
        return as_numbers(given, name)

    def full(self, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array broadcast to a shape, contiguous and in a precision; the array itself where it is all that."""
        return converted(array if array.shape == shape else np.broadcast_to(array, shape), dtype)

    def split(self, whole: Any, dtype: Any) -> list[Any]:
        """The entries of an array along its first axis, contiguous and in a precision."""
        if is_mapped(whole):
            return [converted(one, dtype) for one in whole]
        return rows(np.ascontiguousarray(whole, dtype))

    def seen_only(self, signals: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """Copies of the signals that are zero where their weights are."""
        seen = []
        for signal, weight in zip(signals, weights, strict=True):
            out = scratch(signal, signal.shape, signal.dtype)
            for band in walked(signal, weight, out):
                out[band] = np.where(weight[band] > 0, signal[band], signal.dtype.type(0))
            seen.append(out)
        return seen


class DevicePlace(Place):
    """CuPy's arrays on one device, looked at shape by shape: a device answers slowly to many small questions."""

    def __init__(self, device: Device) -> None:
        self.device, self.xp = device, device.cupy

    def array(self, given: Any, name: str) -> Any:
        taken = self.device.take(given, name)
        if taken.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers, got {taken.dtype}")
        return taken

    def full(self, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.xp.ascontiguousarray(self.xp.broadcast_to(array, shape).astype(dtype, copy=False))

    def split(self, whole: Any, dtype: Any) -> list[Any]:
        return rows(self.full(whole, whole.shape, dtype))

    def seen_only(self, signals: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        seen: list[Any] = [None] * len(signals)
        for members in group_by_shape(signals):
            x, w = (stacked(members_of(arrays, members)) for arrays in (signals, weights))
            for i, one in zip(members, rows(self.xp.where(w > 0, x, x.dtype.type(0))), strict=True):
                seen[i] = one
        return seen


HOST = Place()


def bounds(arrays: Sequence[Any]) -> NDArray:
    """Smallest and largest sample of each array, (2, n) float64 on the host, wherever the arrays live; NaN where one is."""
    if isinstance(arrays, Rows):
        return arrays.extents
    if not is_resident(arrays[0]):
        return np.array([extent(one) for one in arrays], np.float64).T
    found = np.empty((2, len(arrays)))
    for members in group_by_shape(arrays):
        flat = stacked(members_of(arrays, members)).reshape(len(members), -1)
        found[:, members] = to_host(flat.min(axis=1)), to_host(flat.max(axis=1))
    return found


def stay_resident(signals: Any, device: str) -> bool:
    """True if signals live on a device and are to be solved for there."""
    return not is_cpu(device) and any_resident(signals)


@contextmanager
def place_of(signals: Any, weights: Any, device: str, *, move: bool = False) -> Iterator[tuple[Any, Any, Place]]:
    """Signals and weights, and the place where they are checked: a device if they live there and it is asked for.

    Everything else comes to the host. With `move` one array of eight signals or more goes to the device, where it is
    checked faster, if it takes a tenth of the free memory at most.
    """
    stays, moves = stay_resident(signals, device), False
    if not stays and move and weights is None and not is_cpu(device):
        plain = type(signals) is np.ndarray and signals.dtype.kind in "fiub" and not is_mapped(signals)
        if plain and signals.ndim > 1 and len(signals) >= 8 and signals.size > 0:
            taken = signals.size * kept_precision(signals.dtype).itemsize
            moves = taken <= 0.1 * open_device(device).free_memory()
    if not stays and not moves:
        host = [
            [to_host(one) for one in given] if isinstance(given, list | tuple) else to_host(given)
            for given in (signals, weights)
        ]
        yield host[0], host[1], HOST
        return
    opened = open_device(device)
    opened.settle()  # whoever made the arrays may still be at it, on a stream of its own
    with opened.use():
        given = opened.upload(signals, kept_precision(signals.dtype)) if moves else signals
        yield given, weights, DevicePlace(opened)
        opened.wait()  # the solver's streams are others


def trusted(
    signals: Any, filters: ArrayLike, weights: Any, *, channels: bool, device: str = "cpu", move: bool = False
) -> tuple[list[NDArray], NDArray, list[NDArray] | None]:
    """Signals (channels, *space), filters (n_filters, channels, *size) and weights, checked; unseen samples become zero.

    Signals that live on a device stay there if `device` is one. Without weights NaN marks what was not seen. With `move`
    an array of several signals of one channel goes to the device, see `place_of`.
    """
    bank = as_filters(filters, channels=channels)
    # Signals of many channels may be projected first, on the host.
    with place_of(signals, weights, device, move=move and bank.shape[1] == 1) as (given, given_weights, place):
        arrays = checked_signals(given, bank.ndim - 2, channels=channels, place=place)
        for i, array in enumerate(arrays):
            if array.shape[0] != bank.shape[1]:
                raise ValueError(f"signals[{i}] has {array.shape[0]} channels, the filters have {bank.shape[1]}")
        weights = as_weights(given_weights, arrays, channels=channels, place=place)
        arrays, seen = take_seen(arrays, weights, place=place)
        return arrays, bank, seen


def checked_signals(
    signals: Any, ndim: int, *, channels: bool, name: str = "signals", place: Place = HOST
) -> list[NDArray]:
    """Check signals, an array or a list of them, and give each the shape ``(channels, *space)``, `ndim` of them spatial.

    Without `channels` the arrays have no such axis. What was float64 stays so, everything else becomes float32; NaN and
    infinity pass (see `take_seen`). Errors call the signals by `name`.
    """
    several = as_several(signals, name) if place is HOST else signals
    if not hasattr(several, "ndim") and (not isinstance(several, Sequence) or isinstance(several, str | bytes)):
        raise ValueError(f"{name} must be an array or a list of arrays, got {type(several).__name__}")
    wanted = 1 + channels + ndim
    if hasattr(several, "ndim"):
        several = place.array(several, name)
        if several.ndim != wanted:
            space = {1: "length", 2: "height, width", 3: "depth, height, width"}.get(ndim, "*space")
            axes = f"n_signals, channels, {space}" if channels else f"n_signals, {space}"
            raise ValueError(
                f"{name} must have {wanted} axes ({axes}) for filters of {ndim} dimensions, "
                f"got an array of shape {several.shape}"
                + (f"; add an axis for a single signal: {name}[None]" if several.ndim == wanted - 1 else "")
            )
        if several.size == 0:
            raise ValueError(f"{name} is empty, its shape is {several.shape}: give at least one signal")
        return place.split(several if channels else several[:, None], kept_precision(several.dtype))
    if len(several) == 0:
        raise ValueError(f"{name} is empty: give at least one signal")
    signals = []
    for i, given in enumerate(several):
        array = place.array(given, f"{name}[{i}]")
        if array.size == 0:
            raise ValueError(f"{name}[{i}] is empty, its shape is {array.shape}")
        if array.ndim != wanted - 1:
            raise ValueError(
                f"{name}[{i}] must have {wanted - 1} axes, got shape {array.shape}; the filters have {ndim} dimensions"
            )
        array = array if channels else array[None]
        signals.append(place.full(array, array.shape, kept_precision(array.dtype)))
    return signals


def kept_precision(dtype: Any) -> np.dtype:
    """The precision that arrays are worked on in: float64 where that was given, float32 otherwise."""
    return np.dtype(np.float64 if np.dtype(dtype).newbyteorder("=") == np.float64 else np.float32)


def take_seen(
    signals: list[NDArray], weights: list[NDArray] | None, name: str = "signals", place: Place = HOST
) -> tuple[list[NDArray], list[NDArray] | None]:
    """Signals that are zero where they were not seen, and weights that are zero there; None where all was seen.

    Without weights NaN marks what was not seen. Other samples that are not finite are refused.
    """
    finite = np.isfinite(bounds(signals)).all()
    if weights is None:
        if finite:
            return signals, None
        weights = [(~place.xp.isnan(signal)).astype(signal.dtype) for signal in signals]
        unseen = bounds(weights)[1] == 0
        _refuse(unseen, f"{name}[{{}}] is NaN everywhere: nothing of that signal was seen; leave it out")
    seen = place.seen_only(signals, weights)
    if not finite:
        bad = ~np.isfinite(bounds(seen)).all(axis=0)
        _refuse(bad, f"{name}[{{}}] holds NaN or infinite samples that count; give weights that are zero there")
    return seen, weights


def check_varied(signals: list[NDArray], weights: list[NDArray] | None, name: str, place: Place = HOST) -> None:
    """Refuse signals that are the same wherever they were seen."""
    low = high = bounds(signals)
    if weights is not None:
        low, high = (
            bounds([place.xp.where(w > 0, x, end) for x, w in zip(signals, weights, strict=True)])
            for end in (np.inf, -np.inf)
        )
    pairs = zip(low[0].tolist(), high[1].tolist(), signals, strict=True)
    same = np.array([within_rounding(a, b, one.dtype) for a, b, one in pairs])
    _refuse(same, f"{name}[{{}}] is constant, there is nothing in it: leave it out, or fit with on_error='skip'")


def _refuse(found: NDArray, message: str) -> None:
    """Raise an error about the first signal of which something bad was found; the message gets its number."""
    if found.any():
        raise ValueError(message.format(int(np.argmax(found))))


def as_weights(
    weights: Any, signals: list[NDArray], *, channels: bool, place: Place = HOST, all_seen: bool = True
) -> list[NDArray] | None:
    """One weight array for each signal, of the signal's shape, checked; None stays None.

    `weights` is one array for each signal, or a single one that all signals share. Weights without the channel axis
    serve all channels. Signals that share a weight array go on sharing it. With `all_seen` something of every signal must
    have been seen.
    """
    if weights is None:
        return None
    several = as_several(weights, "weights") if place is HOST else weights
    if hasattr(several, "ndim"):
        several = place.array(several, "weights")
        first = tuple(signals[0].shape)
        if several.shape in (first, first[1:]):
            if channels and several.shape == (len(signals), *first[1:]) and len(signals) > 1:
                raise ValueError(
                    f"weights of shape {several.shape} could be one for each signal or one for each channel; give them "
                    f"the shape {(len(signals), *first)}"
                )
            several = [several] * len(signals)
    listed = isinstance(several, Sequence) and not isinstance(several, str | bytes)
    if not listed and not getattr(several, "ndim", 0):
        raise ValueError(f"weights must be an array or a list of arrays, got {type(weights).__name__}")
    several = list(several)
    if len(several) != len(signals):
        raise ValueError(f"weights must hold one array for each of the {len(signals)} signals, got {len(several)}")
    made: dict[Any, Any] = {}
    keys = [(id(one), signal.shape, signal.dtype) for one, signal in zip(several, signals, strict=True)]
    for i, (key, given, signal) in enumerate(zip(keys, several, signals, strict=True)):
        if key not in made:
            weight = place.array(given, f"weights[{i}]")
            if weight.shape not in (signal.shape, signal.shape[1:]):
                raise ValueError(
                    f"weights[{i}] has shape {weight.shape}, the signal {signal.shape[1:]}; they must agree"
                )
            made[key] = place.full(weight, signal.shape, signal.dtype)
    measured = dict(zip(made, bounds(list(made.values())).T, strict=True))
    low, high = np.array([measured[key] for key in keys]).T
    _refuse(~((low >= 0) & (high < np.inf)), "weights[{}] must be finite and not negative")
    if all_seen:
        _refuse(high == 0, "weights[{}] is zero everywhere: nothing of that signal was seen")
    return [made[key] for key in keys]


def as_filters(filters: ArrayLike, *, channels: bool, name: str = "filters") -> NDArray:
    """Check filters and give them the shape ``(n_filters, channels, *size)``."""
    array = as_numbers(to_host(filters), name)
    if array.dtype.kind == "b" or array.ndim < 2 + channels:
        axes = "n_filters, channels" if channels else "n_filters"
        raise ValueError(f"{name} must be a real array ({axes}, *size), got {array.dtype} of shape {array.shape}")
    if array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite and not empty")
    array = np.ascontiguousarray(array, kept_precision(array.dtype))
    return array if channels else array[:, None]


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
        """These signals as all that are learned from, each with its number."""
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
    """True if samples are like their neighbours along both axes, in what rows and columns do not have in common.

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
