"""Signals whose axes look as if they meant something else: one picture taken for rows, colours taken for space.

The number of axes of a signal follows from the data unless `filter_size` is a tuple, which settles what is meant, so that
nothing here speaks up then.
"""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import any_resident, shape_of

_COLOURS = (3, 4)
"""Entries of an axis of colours, with transparency or without."""
_SIDE = 8
"""The other axes of a signal have at least so many samples where its last one may hold colours."""
_PICTURE, _ELONGATED = 16, 8
"""The shortest side of what may be one picture, and how many times longer the other side may be."""
_LOOKED_AT = 256
"""Rows and columns, from the middle, that are compared."""
_ALIKE = 0.3
"""The correlation of neighbouring samples in a picture, along both of its axes."""


def notice_axes(X: Any, filter_size: Any, channels: bool) -> None:
    """Refuse colours behind the samples, and warn of a picture whose rows would be taken for signals.

    Parameters
    ----------
    X : array or list of arrays
    filter_size, channels
        As in `OnlineCSC`.
    """
    sizes = filter_size if isinstance(filter_size, list) else [filter_size]
    if not sizes or not all(isinstance(size, Integral) for size in sizes) or len(X) == 0 or any_resident(X):
        return
    _refuse_colours_last(X, max(sizes), channels)
    if not channels and isinstance(X, np.ndarray) and X.ndim == 2 and _looks_like_a_picture(X):
        warnings.warn(
            f"X of shape {X.shape} looks like one picture, but its {len(X)} rows are taken for signals of one dimension. "
            f"Give X[None] to learn from a picture; filter_size=({sizes[0]},) says that rows are meant",
            UserWarning,
            stacklevel=2,
        )


def _refuse_colours_last(X: Any, filter_size: Any, channels: bool) -> None:
    shape = shape_of(X[0], "X[0]")
    if len(shape) < 2 or shape[-1] not in _COLOURS or min(shape[:-1]) < _SIDE:
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
    """Whether samples are like their neighbours along both axes, in what rows and columns do not have in common.

    Rows that are recordings are not more like the next one than like any other, once their mean is taken out.
    """
    short, long = sorted(X.shape)
    if short < _PICTURE or long > _ELONGATED * short:
        return False
    middle = tuple(slice(max(n // 2 - _LOOKED_AT // 2, 0), n // 2 + _LOOKED_AT // 2) for n in X.shape)
    part = np.array(X[middle], np.float64)
    part[~np.isfinite(part)] = np.nan
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows and columns of which nothing was seen
        part -= np.nanmean(part, axis=0)
        part -= np.nanmean(part, axis=1, keepdims=True)
    part = np.nan_to_num(part, nan=0.0, posinf=0.0, neginf=0.0)
    return _likeness(part) > _ALIKE and _likeness(part.T) > _ALIKE


def _likeness(part: NDArray) -> float:
    """The correlation of every row with the next."""
    above, below = part[:-1], part[1:]
    size = np.sqrt(float(np.sum(above**2)) * float(np.sum(below**2)))
    return float(np.sum(above * below)) / size if np.isfinite(size) and size > 0 else 0.0
