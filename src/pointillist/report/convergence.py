"""How learning went: the objective against the clock and against the iterations.

The record that learners keep (`history_`) is drawn as it is; nothing is computed anew.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.report.blocks import Chart, Curve
from pointillist.report.charts import draw_chart
from pointillist.report.style import new_figure, save_figure, title

History = Sequence[Mapping[str, Any]]
_HELD_OUT = "validation_objective"
_CLOCKS = {"seconds": "seconds of learning", "iteration": "iteration"}


def plot_convergence(history: History, path: str | os.PathLike[str]) -> None:
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
    rows = [[chart(history, clock) for clock in _CLOCKS] for chart in (held_out_chart, training_chart)]
    charts = [[one for one in row if one is not None] for row in rows if row[0] is not None]
    figure = new_figure(9.5, 3.4 * len(charts))
    for line, row in zip(figure.subplots(len(charts), 2, squeeze=False, sharey="row"), charts, strict=True):
        for axes, chart in zip(line, row, strict=True):
            draw_chart(axes, chart)
            axes.set_xlim(left=0)
        values = np.concatenate([np.asarray(curve.y) for curve in row[0].curves])
        if np.min(values) < 0.5 * np.max(values):
            line[0].set_ylim(bottom=0)
        title(line[0], row[0].title, row[0].caption)
    save_figure(figure, path)


def held_out_chart(history: History, clock: str) -> Chart | None:
    """The objective of held-out signals over "seconds" or "iteration"; None where it was not recorded."""
    judged = [info for info in history if info.get(_HELD_OUT) is not None]
    if not judged:
        return None
    values = [float(info[_HELD_OUT]) for info in judged]
    curve = Curve("held out", [info[clock] for info in judged], values, "c1")
    return Chart("Held-out signals", _CLOCKS[clock], "objective", [curve], caption=_change(values))


def training_chart(history: History, clock: str) -> Chart:
    """The objective of the training signals over "seconds" or "iteration", with a running mean where it scatters."""
    across = [info[clock] for info in history]
    values = np.array([info["objective"] for info in history], np.float64)
    curves, words = [Curve("training signals", across, values)], _change(values)
    if _scatters(values):
        smooth = _running_mean(values)
        curves = [Curve("each mini-batch", across, values, style="dots"), Curve("running mean", across, smooth)]
        words = f"each mini-batch a dot, the line their running mean: {smooth[0]:,.0f} → {smooth[-1]:,.0f}"
    return Chart("Training signals", _CLOCKS[clock], "objective", curves, caption=words)


def _scatters(values: NDArray) -> bool:
    """Whether the values jump up and down more than they descend."""
    return len(values) >= 8 and bool(np.mean(np.diff(values) > 0) > 0.25)


def _running_mean(values: NDArray) -> NDArray:
    """Means over a sixth of the values around each."""
    half = max(2, len(values) // 12)
    starts = np.maximum(np.arange(len(values)) - half, 0)
    ends = np.minimum(np.arange(len(values)) + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[ends] - sums[starts]) / (ends - starts)


def _change(values: Sequence[float] | NDArray) -> str:
    change = 100 * (values[-1] / values[0] - 1) if values[0] else 0.0
    return f"{values[0]:,.0f} → {values[-1]:,.0f} ({change:+.1f} %)"
