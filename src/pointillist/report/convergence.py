"""How learning went: the objective against the clock and against the iterations.

The record that learners keep (`history_`) is drawn as it is; nothing is computed anew.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pointillist.report.style import BLUE, INK, ORANGE, new_figure, save_figure, tidy, title

_CLOCKS = (("seconds", "seconds of learning"), ("iteration", "iteration"))
HELD_OUT = "validation_objective"


def plot_convergence(history: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw the objective over time and over iterations, and that of held-out signals where it was recorded.

    The objective of an online learner is that of its current mini-batch. As batches differ, the points scatter; a running
    mean shows the trend.

    Parameters
    ----------
    history : list of dict
        `history_` of a learner.
    path : str or path
        Ends in .png, .pdf or .svg.
    """
    if not history:
        raise ValueError("history is empty: nothing was learned yet")
    held_out = [info for info in history if info.get(HELD_OUT) is not None]
    rows = [(history, "objective", "Training signals", BLUE)]
    if held_out:
        rows.insert(0, (held_out, HELD_OUT, "Held-out signals", ORANGE))
    figure = new_figure(9.5, 3.4 * len(rows))
    grid = figure.subplots(len(rows), 2, squeeze=False, sharey="row")
    for line, (records, name, heading, colour) in zip(grid, rows, strict=True):
        values = np.array([info[name] for info in records], np.float64)
        # Held-out signals are the same every time, so what moves there is not scatter.
        scattered = name != HELD_OUT and scatters(values)
        for axes, (clock, label) in zip(line, _CLOCKS, strict=True):
            _curve(axes, np.array([info[clock] for info in records], np.float64), values, colour, scattered)
            axes.set_xlabel(label, fontsize=9, color=INK)
        line[0].set_ylabel("objective", fontsize=9, color=INK)
        line[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        title(line[0], heading, _detail(values, scattered))
    save_figure(figure, path)


def _curve(axes: Axes, clock: NDArray, values: NDArray, colour: str, scattered: bool) -> None:
    tidy(axes)
    if scattered:
        axes.plot(clock, values, "o", color=colour, markersize=3.5, alpha=0.3, markeredgewidth=0)
        axes.plot(clock, running_mean(values), color=colour, linewidth=1.8)
    else:
        marker = "o" if len(values) <= 60 else ""
        axes.plot(clock, values, marker=marker, color=colour, markersize=4, linewidth=1.8, clip_on=False)
    axes.margins(x=0.02)
    axes.set_xlim(left=0)
    if np.min(values) < 0.5 * np.max(values):
        axes.set_ylim(bottom=0)


def scatters(values: NDArray) -> bool:
    """Whether the values jump up and down more than they descend."""
    if len(values) < 8:
        return False
    rises = np.diff(values) > 0
    return bool(np.mean(rises) > 0.25)


def running_mean(values: NDArray) -> NDArray:
    """Means over a sixth of the values around each."""
    half = max(2, len(values) // 12)
    starts = np.maximum(np.arange(len(values)) - half, 0)
    ends = np.minimum(np.arange(len(values)) + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[ends] - sums[starts]) / (ends - starts)


def _detail(values: NDArray, scattered: bool) -> str:
    if scattered:
        smooth = running_mean(values)
        return f"each mini-batch a dot, the line their running mean: {smooth[0]:,.0f} → {smooth[-1]:,.0f}"
    change = 100 * (values[-1] / values[0] - 1) if values[0] else 0.0
    return f"{values[0]:,.0f} → {values[-1]:,.0f} ({change:+.1f} %)"
