"""Forms of metadata and arrays in files, checked before anything uses them; what has passed is trusted.

A form looks like what it stands for: a list has the form of each of its entries, ``[text]``, and a mapping those of its
entries by their names, ``{"name": text}``; ``...`` stands for all names that are not listed.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.validation import is_number

DEPTH = 32
"""Levels of lists and mappings that metadata may have."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Leaf:
    """Form of a single value: the words for it, and a predicate that must not raise."""

    words: str
    holds: Callable[[Any], bool]


anything = Leaf("anything", lambda value: True)
text = Leaf("text", lambda value: isinstance(value, str))
flag = Leaf("true or false", lambda value: isinstance(value, bool))
mapping: dict[Any, Leaf] = {...: anything}


def number(least: float = -math.inf, *, null: bool = False) -> Leaf:
    """A finite number; or null, where that is allowed."""
    words = "a finite number" + ("" if least == -math.inf else f" of at least {least:g}") + " or null" * null
    return Leaf(words, lambda value: (is_number(value) and value >= least) or (null and value is None))


def whole(least: int, most: float = _LARGEST) -> Leaf:
    """An integer between bounds; `most` can be infinite."""
    return Leaf(f"a whole number of at least {least}", lambda value: type(value) is int and least <= value <= most)


def one_of(values: Collection[str]) -> Leaf:
    """One of some words."""
    return Leaf(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def check_form(value: Any, form: Any, name: str) -> None:
    """Raise ValueError, with the name of the entry, unless a JSON value has a form."""
    if not isinstance(form, Leaf) and not isinstance(value, type(form)):
        words = "a list" if isinstance(form, list) else "a mapping"
        raise ValueError(f"{name} must be {words}, got {reprlib.repr(value)}")
    if isinstance(form, list):
        for i, item in enumerate(value):
            check_form(item, form[0], f"{name}[{i}]")
    elif isinstance(form, dict):
        for key in form:
            if key is not ... and key not in value:
                raise ValueError(f"{name} has no entry {key!r}")
        for key, item in value.items():
            if key in form:
                check_form(item, form[key], f"{name}.{key}")
            elif ... in form:
                check_form(item, form[...], f"{name}[{reprlib.repr(key)}]")
            else:
                raise ValueError(f"{name} has an entry {reprlib.repr(key)}, which it must not have")
    elif not form.holds(value):
        raise ValueError(f"{name} must be {form.words}, got {reprlib.repr(value)}")


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
    """JSON values from a stranger: no more than `DEPTH` levels, NaN and infinity only where allowed.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    try:
        parsed = json.loads(words, parse_constant=None if nan else _no_constant)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    level = [parsed]
    for _ in range(DEPTH + 1):
        inside = [one for one in level if isinstance(one, list | dict)]
        level = [item for one in inside for item in (one.values() if isinstance(one, dict) else one)]
    if level:
        raise ValueError(f"lists and mappings are nested more than {DEPTH} levels deep")
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON must not hold {name}")
