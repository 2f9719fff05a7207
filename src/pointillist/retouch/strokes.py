"""Brush strokes, as the page sends them, drawn into a mask of the photograph's full size.

Coordinates are those of the photograph: the pixel in row i and column j covers the square from (j, i) to (j + 1, i + 1).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


def draw_mask(steps: Sequence[Mapping[str, Any]], shape: tuple[int, int], found: Mapping[int, Mask]) -> Mask:
    """The mask that steps of painting lead to, one after the other.

    Parameters
    ----------
    steps : sequence of mappings
        ``{"kind": "paint" or "erase", "radius": r, "points": [x, y, x, y, …]}`` is a stroke along those points,
        ``{"kind": "found", "id": n}`` adds a mask from `found`, ``{"kind": "clear"}`` takes everything away.
    shape : (height, width)
        Shape of the photograph.
    found : mapping from int to (height, width) bool array
        Masks that were found earlier.

    Returns
    -------
    (height, width) bool array
        True where a pixel's centre was painted over last.

    Examples
    --------
    >>> from pointillist.retouch.strokes import draw_mask
    >>> line = {"kind": "paint", "radius": 1, "points": [1.5, 2.5, 6.5, 2.5]}
    >>> draw_mask([line], (5, 8), {}).astype(int)
    array([[0, 0, 0, 0, 0, 0, 0, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [1, 1, 1, 1, 1, 1, 1, 1],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    mask = np.zeros(shape, bool)
    for step in steps:
        kind = step.get("kind")
        if kind in ("paint", "erase"):
            _stroke(mask, *_read(step), kind == "paint")
        elif kind == "found" and step.get("id") in found:
            mask |= found[step["id"]]
        elif kind == "clear":
            mask[:] = False
        else:
            raise ValueError(f"step {kind!r} of the painting is not known: reload the page")
    return mask


def _read(step: Mapping[str, Any]) -> tuple[NDArray[np.float64], float]:
    """The points (n, 2) and the radius of a stroke, checked."""
    try:
        points = np.asarray(step["points"], np.float64).reshape(-1, 2)
        radius = float(step["radius"])
    except (KeyError, TypeError, ValueError):
        raise ValueError("a stroke of the painting has no points or no radius: reload the page") from None
    if len(points) == 0 or len(points) > 500_000 or not np.isfinite(points).all() or not 0 < radius < 1e5:
        raise ValueError("a stroke of the painting has impossible points or radius: reload the page")
    return points, max(radius, 0.75)  # which reaches at least one pixel's centre, wherever it is put


def _stroke(mask: Mask, points: NDArray[np.float64], radius: float, value: bool) -> None:
    """Set what lies within `radius` of the line through the points."""
    for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
        # Short segments keep the window around a long slanting line small.
        segments = max(1, ceil(hypot(*(end - start)) / (4 * radius + 16)))
        corners = start + np.linspace(0, 1, segments + 1)[:, None] * (end - start)
        for one, other in pairwise(corners):
            _capsule(mask, one, other, radius, value)


def _capsule(mask: Mask, start: NDArray[np.float64], end: NDArray[np.float64], radius: float, value: bool) -> None:
    """Set the pixels whose centres lie within `radius` of a straight segment."""
    low, high = np.minimum(start, end) - radius, np.maximum(start, end) + radius
    left, top = (max(0, floor(edge)) for edge in low)
    right, bottom = (min(size, ceil(edge)) for edge, size in zip(high, mask.shape[::-1], strict=True))
    if left >= right or top >= bottom:
        return
    x = np.arange(left, right) + 0.5 - start[0]
    y = np.arange(top, bottom)[:, None] + 0.5 - start[1]
    across, down = end - start
    length = across**2 + down**2
    along = np.clip((x * across + y * down) / length, 0, 1) if length > 0 else 0.0
    near = (x - along * across) ** 2 + (y - along * down) ** 2 <= radius**2
    mask[top:bottom, left:right][near] = value
