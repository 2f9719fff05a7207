"""What callers may pass, checked by name: every error about an argument says which it is and what it should be."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pointillist.model.boundaries import BOUNDARIES
from pointillist.model.foreign import as_plain
from pointillist.model.large import converted


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


def shown(value: Any) -> str:
    """A value for an error message: short, and on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 60
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
    "n_epochs": _integer(1),
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
