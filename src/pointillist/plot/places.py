"""Where a plot goes: a figure of its own, or Axes that the caller has, whose place is divided where it needs several.

A figure of its own is made by pyplot, so that it is shown as any other, in a notebook or by the caller's ``plt.show()``.
Nothing here shows it, and no setting of matplotlib is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import FigureBase
from matplotlib.font_manager import FontProperties
from matplotlib.gridspec import GridSpec, GridSpecBase

from pointillist.plot.charts import DARK_COLOURS, FILE_COLOURS
from pointillist.reprs import shown


def one_place(ax: Any, width: float, height: float) -> Axes:
    """The Axes that were given, or those of a new figure of that size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise ValueError(f"ax must be Axes of matplotlib, got {shown(ax)}")
    return ax


def several_places(
    ax: Any,
    count: int,
    size: tuple[float, float],
    make: Callable[[FigureBase, GridSpecBase], Sequence[Axes]],
    **grid: Any,
) -> list[Axes]:
    """So many Axes: those that were given, or `make` of a grid in place of the one that was given or of a new figure.

    Parameters
    ----------
    ax : Axes, array or list of `count` Axes, or None
    count : int
    size : tuple of float
        Width and height in inches of a new figure.
    make : callable
        Makes the Axes of a figure on a grid.
    **grid
        What `divided` takes.
    """
    several = list(ax.flat) if isinstance(ax, np.ndarray) else list(ax) if isinstance(ax, list | tuple) else None
    if several is None:
        place = one_place(ax, *size)
        return list(make(place.figure, divided(place, **grid)))
    if len(several) != count or not all(isinstance(one, Axes) for one in several):
        raise ValueError(f"ax must be one Axes of matplotlib, or {count} of them, got {shown(ax)}")
    return several


def divided(ax: Axes, **grid: Any) -> GridSpecBase:
    """A grid of places instead of Axes, which are emptied but for their title; `grid` is what GridSpec takes."""
    ax.set_axis_off()
    place = ax.get_subplotspec()
    if place is not None:
        return place.subgridspec(grid.pop("nrows"), grid.pop("ncols"), **grid)
    box = ax.get_position()
    return GridSpec(left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, **grid)


def colours_on(ax: Axes) -> dict[str, str]:
    """Colours that can be read on the paper of a figure, light or dark."""
    red, green, blue, alpha = to_rgba(ax.figure.figure.get_facecolor())
    if alpha < 0.5:  # the page around it decides; the caller's colour of text suits that
        red, green, blue = (1 - part for part in to_rgba(rcParams["text.color"])[:3])
    return FILE_COLOURS if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.4 else DARK_COLOURS


def text_size() -> float:
    """The size in points of numbers at axes, as the caller's settings have it."""
    return float(FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points())
