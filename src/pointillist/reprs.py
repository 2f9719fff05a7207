"""Representations of settings and results: in a line or two, with the shapes of arrays instead of their samples."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np


def shown(value: Any, most: int = 60) -> str:
    """A value on one line, cut where it is long, for error messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]}…"


def short(value: Any) -> str:
    """A value on one line: arrays by shape and type, lists and dicts of arrays by their number, texts cut."""
    if (isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")) and value.size > 4:
        return f"array({sizes(value.shape)} {value.dtype})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {short(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and any(hasattr(one, "shape") for one in value):
        return f"[{len(value)} arrays]"
    return shown(value, 10_000 if is_dataclass(value) else 80)


class ShortRepr:
    """A base of dataclasses (with ``repr=False``) that show their fields by `short`."""

    shows_defaults: ClassVar[bool] = True
    """True if fields that have their default are shown."""

    def __repr__(self) -> str:
        known: Any = fields(self)  # type: ignore[arg-type]
        given = {one.name: getattr(self, one.name) for one in known if one.repr}
        if not self.shows_defaults:
            given = {
                one.name: given[one.name] for one in known if one.repr and not is_same(given[one.name], one.default)
            }
        return f"{type(self).__name__}({', '.join(f'{name}={short(value)}' for name, value in given.items())})"


def is_same(value: Any, default: Any) -> bool:
    """True if a value is a default, for certain: an array never is."""
    return type(value) is type(default) and not hasattr(value, "shape") and bool(value == default)


def sizes(shape: Sequence[int]) -> str:
    """Write a size such as (11, 11) as ``11×11``."""
    return "×".join(str(axis) for axis in shape)


def filters_in_words(shape: Sequence[int], channels: bool, noun: str = "") -> str:
    """Say how many filters there are and of which size, as ``8 of 96 in 64 channels``; `noun` follows the number."""
    size = sizes(shape[1 + channels :])
    return f"{shape[0]} {noun}of {size}" + (f" in {shape[1]} channels" if channels else "")
