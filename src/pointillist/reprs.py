"""How settings and results show themselves: in a line or two, with the shapes of arrays instead of their samples."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

_LONGEST, _FEW = 80, 4
"""Characters of a value that are shown, and entries of an array that are shown one by one."""


def short(value: Any) -> str:
    """A value on one line: arrays by shape and type, lists and dicts of arrays by their number, texts cut."""
    if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        size = "×".join(map(str, value.shape))
        return f"array({size} {value.dtype})" if value.size > _FEW else " ".join(repr(value).split())
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {short(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and len(value) and any(hasattr(one, "shape") for one in value):
        return f"[{len(value)} arrays]"
    text = " ".join(repr(value).split())
    return text if is_dataclass(value) or len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class ShortRepr:
    """A base of dataclasses (with ``repr=False``) that show their fields by `short`."""

    shows_defaults: ClassVar[bool] = True
    """Whether fields that have their default are shown."""

    def __repr__(self) -> str:
        shown = [one for one in _fields(self) if self.shows_defaults or not _is_default(one, getattr(self, one.name))]
        return f"{type(self).__name__}({', '.join(f'{one.name}={short(getattr(self, one.name))}' for one in shown)})"


def _fields(value: Any) -> list[Field[Any]]:
    return [one for one in fields(value) if one.repr]


def _is_default(field: Field[Any], value: Any) -> bool:
    return field.default is not MISSING and is_same(value, field.default)


def is_same(value: Any, default: Any) -> bool:
    """Whether a value is a default, for certain: an array never is."""
    return type(value) is type(default) and not hasattr(value, "shape") and bool(value == default)


def shown(value: Any) -> str:
    """A value for an error message: short, and on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def sizes(shape: Sequence[int]) -> str:
    """Write a size such as (11, 11) as ``11×11``."""
    return "×".join(str(axis) for axis in shape)


def filters_in_words(shape: Sequence[int], channels: bool, noun: str = "") -> str:
    """Say how many filters there are and of which size, as ``8 of 96 in 64 channels``; `noun` follows the number."""
    size = sizes(shape[1 + channels :])
    return f"{shape[0]} {noun}of {size}" + (f" in {shape[1]} channels" if channels else "")
