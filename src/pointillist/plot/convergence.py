"""Course of learning: the objective against the clock and against the iterations.

The record that learners keep (`history_`) is drawn as it is; nothing is computed anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.plot.blocks import Chart, Curve

History = Sequence[Mapping[str, Any]]
_HELD_OUT = "validation_objective"
_CLOCKS = {"seconds": "seconds of learning", "iteration": "step"}
_NAMES = {
    "objective": "objective",
    _HELD_OUT: "objective of held-out signals",
    "gap": "relative duality gap",
    "nnz": "codes that are not zero",
    "outliers": "windows left out",
    "replaced": "filters replaced",
}


def convergence_chart(histories: Mapping[str, History], quantity: str = "objective", clock: str = "seconds") -> Chart:
    """One quantity of one or several histories over "seconds" or "iteration", which scatter or not.

    Parameters
    ----------
    histories : mapping of str to history
        `history_` of learners, by what their curves are called.
    quantity : str
        What of a history's records is drawn; those that lack it are passed over.
    clock : {"seconds", "iteration"}
    """
    curves: list[Curve] = []
    smoothed = False
    for number, (name, history) in enumerate(histories.items()):
        rows = [info for info in history if info.get(quantity) is not None]
        if not rows:
            known = sorted({one for info in history for one in info if one in _NAMES})
            words = ", ".join(f'"{one}"' for one in known) or "nothing"
            raise ValueError(f"quantity must be something that was recorded, {words}, got {quantity!r} ({name})")
        across, values = [info[clock] for info in rows], np.array([info[quantity] for info in rows], np.float64)
        colour, style = f"c{number % 8}", "line" if number < 8 else "dashed"
        if quantity != "objective" or not _scatters(values):
            curves.append(Curve(name, across, values, colour, style))
            continue
        if len(histories) == 1:
            curves.append(Curve("each mini-batch", across, values, colour, "dots"))
            name = "running mean"
        smoothed = True
        curves.append(Curve(name, across, _running_mean(values), colour, style))
    label = _NAMES.get(quantity, quantity) + (", running mean" if smoothed and len(histories) > 1 else "")
    return Chart("", _CLOCKS[clock], label, curves, log_y=quantity == "gap")


def held_out_chart(history: History, clock: str) -> Chart | None:
    """The objective of held-out signals over "seconds" or "iteration"; None where it was not recorded."""
    if not any(info.get(_HELD_OUT) is not None for info in history):
        return None
    chart = convergence_chart({"held out": history}, _HELD_OUT, clock)
    curve = replace(chart.curves[0], colour="c1")
    return replace(chart, title="Held-out signals", y="objective", curves=[curve], caption=_change(curve.y))


def training_chart(history: History, clock: str) -> Chart:
    """The objective of the training signals over "seconds" or "iteration", with a running mean where it scatters."""
    chart = convergence_chart({"training signals": history}, "objective", clock)
    words, last = _change(chart.curves[-1].y), np.asarray(chart.curves[-1].y)
    if len(chart.curves) > 1:
        words = f"each mini-batch a dot, the line their running mean: {last[0]:,.0f} → {last[-1]:,.0f}"
    return replace(chart, title="Training signals", caption=words)


def _scatters(values: NDArray) -> bool:
    """True if the values jump up and down more than they descend."""
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
