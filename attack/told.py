"""Answers and arguments as something to be compared bit by bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
from matplotlib.artist import Artist
from matplotlib.axes import Axes

import pointillist as pt

TIMED = {"seconds"}
"""What differs from run to run."""


def told(value: Any) -> Any:
    """An answer as something to be compared, with the layout of its arrays."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Axes):
        return told([np.asarray(line.get_ydata()) for line in value.get_lines()])
    if isinstance(value, Artist):
        return type(value).__name__
    if scipy.sparse.issparse(value):
        return told([value.indices, value.data, value.indptr])
    if isinstance(value, pt.SparseCodes):
        return told([value.indices, value.values, value.grids, value.names])
    if isinstance(value, dict):
        return {str(key): told(one) for key, one in value.items() if key not in TIMED}
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if _is_learner(value):  # its settings, the number of threads among them, are no answer
        return {key: told(one) for key, one in vars(value).items() if key.endswith("_") and key != "state_"}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: told(getattr(value, one.name)) for one in dataclasses.fields(value) if one.name not in TIMED}
    if isinstance(value, float | int | str | bool | None | np.generic):
        return repr(value)
    return type(value).__name__


def _is_learner(value: Any) -> bool:
    return hasattr(value, "fit") and not isinstance(value, type)


def _array(value: np.ndarray) -> Any:
    if value.dtype == object:
        return told(list(value.flat))
    return value.dtype.str, value.shape, bool(value.flags.c_contiguous), np.ascontiguousarray(value).tobytes()


def held(value: Any, depth: int = 6) -> Any:
    """The bytes of all arrays in an argument, and what lists and dictionaries hold: none of it may be changed.

    What lies deeper than `depth` is not looked at: a list may hold itself.
    """
    if depth == 0:
        return id(value)
    if isinstance(value, np.ma.MaskedArray):
        return _bytes(value.data), _bytes(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.strides, _bytes(value)
    if isinstance(value, np.ndarray):
        return [held(one, depth - 1) for one in value.flat]
    if scipy.sparse.issparse(value):
        return _bytes(value.toarray())
    if isinstance(value, pt.SparseCodes):
        return held(value.indices), held(value.values), list(value.grids)
    if isinstance(value, dict):
        return {key: held(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [held(one, depth - 1) for one in value]
    if _is_learner(value):
        return {key: held(one, depth - 1) for key, one in vars(value).items()}
    return id(value)


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()
