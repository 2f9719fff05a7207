"""Draw the pictures of the page *Signals in time* from what its own code leaves behind; seconds on two cores."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import pointillist as pt
from pointillist.plot.figures import BLUE, FAINT, GRID, INK, ORANGE, new_figure, save_figure, tidy, title

DOCS = Path(__file__).parents[1] / "docs"
COLOURS = (BLUE, ORANGE)


def run_page() -> dict[str, Any]:
    """Names and values after all Python blocks of the page have run, in a folder of their own."""
    text, names = (DOCS / "signals.md").read_text(encoding="utf-8"), dict[str, Any]()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
                exec(code, names)
            names["whole"] = np.array(names["whole"])
        finally:
            os.chdir(here)
    return names


def draw_events(page: dict[str, Any]) -> None:
    """Some seconds of one channel with the events in it, and the two filters."""
    rate, series, model = page["RATE"], page["series"], page["model"]
    truth = np.stack([page["usual"], page["early"]])
    order = pt.recovery_score(model.filters_, truth, return_details=True)[1].assignment
    events = model.transform([series]).events(sampling_rate=rate)
    events = events[events["amplitude"] > 0.5]
    peaks = np.abs(model.filters_).argmax(axis=1) - (model.filters_.shape[1] - 1) // 2
    events["time"] += peaks[events["filter"]] / rate
    figure = new_figure(12, 3.4)
    panels = figure.subplot_mosaic([["series", "series", "series", "usual"], ["series", "series", "series", "early"]])
    first, last = _lively(events, order[1], rate)
    shown, axes = slice(first * rate, last * rate), panels["series"]
    _quiet(axes)
    axes.plot(np.arange(len(series))[shown] / rate, series[shown], color=INK, linewidth=0.8)
    top = float(series[shown].max())
    for number, colour in zip(order, COLOURS, strict=True):
        some = events[(events["filter"] == number) & (events["time"] > first) & (events["time"] < last)]
        axes.scatter(some["time"], np.full(len(some), 1.18 * top), s=22 * some["amplitude"], color=colour)
    axes.set(xlim=(first, last), xlabel="seconds")
    title(axes, "A recording, and when each filter occurs in it")
    for name, number, colour in zip(("usual", "early"), order, COLOURS, strict=True):
        _waveform(panels[name], model.filters_[number], colour, rate)
        title(panels[name], f"Filter {number}")
    panels["usual"].set_xticklabels([])
    panels["early"].set_xlabel("seconds", fontsize=8.5)
    save_figure(figure, DOCS / "images" / "signals-events.png", crop=True)


def draw_patterns(page: dict[str, Any]) -> None:
    """Patterns over the channels and shapes in time of the rank-one filters, with the true ones behind."""
    rate, model, truth = page["RATE"], page["several"], page["truth"]
    patterns, shapes = pt.split_channels(truth)
    found = pt.recovery_score(model.filters_, truth, channels=True, return_details=True)[1]
    figure = new_figure(12, 4.2)
    panels = figure.subplots(2, 2, width_ratios=[2, 1])
    for k, (row, colour) in enumerate(zip(panels, COLOURS, strict=True)):
        number, shift = found.assignment[k], int(found.shifts[k, 0])
        sign = np.sign(model.patterns_[number, 0] @ patterns[k, 0])
        _quiet(row[0])
        row[0].bar(np.arange(32), patterns[k, 0], width=0.8, color=GRID)
        row[0].plot(np.arange(32), sign * model.patterns_[number, 0], "o", color=colour, markersize=4)
        row[0].set_xlim(-0.8, 31.8)
        time = np.arange(shapes.shape[2]) / rate
        row[1].plot(time, shapes[k, 0], color=GRID, linewidth=6, solid_capstyle="round")
        _waveform(row[1], sign * model.shapes_[number, 0], colour, rate, shift)
        title(row[0], f"Pattern of filter {number}", "dots: found; bars: true" if k == 0 else "")
        title(row[1], f"Shape of filter {number}", "thin: found; broad: true" if k == 0 else "")
    panels[1, 0].set_xlabel("channel", fontsize=8.5)
    panels[1, 1].set_xlabel("seconds", fontsize=8.5)
    save_figure(figure, DOCS / "images" / "signals-patterns.png", crop=True)


def _lively(events: NDArray, number: int, rate: int, seconds: int = 12) -> tuple[int, int]:
    """First and last second of the stretch with the most events of a filter."""
    times = events["time"][events["filter"] == number]
    counts = [np.count_nonzero((times > s + 1) & (times < s + seconds - 1)) for s in range(100)]
    return int(np.argmax(counts)), int(np.argmax(counts)) + seconds


def _waveform(axes: Axes, shape: NDArray, colour: str, rate: int, shift: int = 0) -> None:
    _quiet(axes)
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    axes.plot((np.arange(len(shape)) + shift) / rate, shape, color=colour, linewidth=2)


def _quiet(axes: Axes) -> None:
    tidy(axes)
    axes.grid(visible=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


if __name__ == "__main__":
    ran = run_page()
    draw_events(ran)
    draw_patterns(ran)
