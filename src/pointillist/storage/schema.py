"""Checks from which the schemas of files are put together: metadata and arrays before anything uses them.

A check takes a value and the name of its entry, and raises a ValueError that names the entry. What has passed is trusted.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Check = Callable[[Any, str], None]

DEPTH = 32
"""Levels of lists and mappings that metadata may have."""
_LARGEST = 2**63 - 1


def leaf(words: str, holds: Callable[[Any], bool]) -> Check:
    """A check by a predicate that must not raise; `words` say what is wanted."""

    def check(value: Any, name: str) -> None:
        if not holds(value):
            raise ValueError(f"{name} must be {words}, got {reprlib.repr(value)}")

    return check


anything = leaf("anything", lambda value: True)
nothing = leaf("null", lambda value: value is None)
text = leaf("text", lambda value: isinstance(value, str))
flag = leaf("true or false", lambda value: isinstance(value, bool))
mapping = leaf("a mapping", lambda value: isinstance(value, dict))


def is_number(value: Any, least: float = -math.inf) -> bool:
    """True if a value is a number that a float can hold, finite and not less than `least`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308 and least <= value


def number(least: float = -math.inf) -> Check:
    """A finite number."""
    words = "a finite number" if least == -math.inf else f"a finite number of at least {least:g}"
    return leaf(words, lambda value: is_number(value, least))


def whole(least: int, most: int | None = _LARGEST) -> Check:
    """An integer between bounds; a `most` of None is any, however large."""
    words = f"a whole number of at least {least}" + ("" if most in (None, _LARGEST) else f" and at most {most}")
    return leaf(words, lambda value: type(value) is int and least <= value and (most is None or value <= most))


def one_of(values: Collection[str]) -> Check:
    """One of some words."""
    return leaf(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def either(words: str, *checks: Check) -> Check:
    """A value that passes one of several checks; `words` name them all."""

    def passes(check: Check, value: Any) -> bool:
        try:
            check(value, "")
        except ValueError:
            return False
        return True

    return leaf(words, lambda value: any(passes(check, value) for check in checks))


def list_of(inner: Check) -> Check:
    """A list, every entry of which passes a check."""

    def check(value: Any, name: str) -> None:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list, got {reprlib.repr(value)}")
        for i, item in enumerate(value):
            inner(item, f"{name}[{i}]")

    return check


def mapping_of(inner: Check) -> Check:
    """A mapping, every value of which passes a check."""

    def check(value: Any, name: str) -> None:
        mapping(value, name)
        for key, item in value.items():
            inner(item, f"{name}[{reprlib.repr(key)}]")

    return check


def record(
    required: Mapping[str, Check], optional: Mapping[str, Check] | None = None, *, others: bool = False
) -> Check:
    """A mapping with entries of given names, each of which passes its check; `others` allows further ones."""
    known = {**required, **(optional or {})}

    def check(value: Any, name: str) -> None:
        mapping(value, name)
        for key in required:
            if key not in value:
                raise ValueError(f"{name} has no entry {key!r}")
        for key, item in value.items():
            if key in known:
                known[key](item, f"{name}.{key}")
            elif not others:
                raise ValueError(f"{name} has an entry {reprlib.repr(key)}, which it must not have")

    return check


def check_array(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    kinds: str,
    shape: tuple[int | None, ...] | None = None,
    least: float = -math.inf,
) -> NDArray[Any]:
    """The array of a name, once it is sure to be of a kind, of a shape (None is any length), finite and not too small.

    Parameters
    ----------
    arrays : mapping from name to array
    name : str
    kinds : str
        Letters of NumPy's ``dtype.kind``.
    shape : tuple, optional
    least : float
        The smallest value allowed.
    """
    if name not in arrays:
        raise ValueError(f"array {name} is missing")
    array = arrays[name]
    if array.dtype.kind not in kinds:
        raise ValueError(f"array {name} must not be of type {array.dtype}")
    if shape is not None and (
        array.ndim != len(shape)
        or any(side not in (None, length) for side, length in zip(shape, array.shape, strict=True))
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"array {name} must have shape ({wanted}), got {array.shape}")
    if array.size and not (np.isfinite(array).all() and array.min() >= least):
        raise ValueError(f"array {name} holds values that are not finite, or less than {least:g}")
    return array


def parse_json(words: str | bytes, *, nan: bool = False) -> Any:
    """JSON values from a stranger: each key once, no more than `DEPTH` levels, NaN and infinity only where allowed.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    try:
        parsed = json.loads(words, object_pairs_hook=_unique, parse_constant=None if nan else _no_constant)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    level = [parsed]
    for _ in range(DEPTH + 1):
        inside = [one for one in level if isinstance(one, list | dict)]
        level = [item for one in inside for item in (one.values() if isinstance(one, dict) else one)]
    if level:
        raise ValueError(f"lists and mappings are nested more than {DEPTH} levels deep")
    return parsed


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("JSON has a key twice")
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON must not hold {name}")
