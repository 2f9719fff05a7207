"""The page about one's own run of a learner: filters, convergence, reconstructions, usage, time and memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.codes import SparseCodes
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.metrics import psnr
from pointillist.plot.blocks import (
    Block,
    Chart,
    Compare,
    Curve,
    Fact,
    Facts,
    NamedValues,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
    Trace,
    Waveforms,
)
from pointillist.plot.charts import HELD_OUT, convergence_chart, signal_trace, waveform_words
from pointillist.plot.page import fact_items, facts, peak_mb, write_page
from pointillist.plot.pictures import contrast_limits, cut_of, image_picture, mosaic_picture
from pointillist.solvers.base import Result

_MOST_EXAMPLES = 4
_LARGEST = {1: 4096, 2: 384, 3: 64}
"""The middle of an example that is coded and shown, in samples along each axis, for 1, 2 and 3 dimensions."""
_SHOWN_SAMPLES, _SHOWN_FILTERS = 600, 8
"""Samples of a signal in time that are shown, or so many lengths of a filter where that is more."""


@dataclass(frozen=True)
class Example:
    """A signal to show.

    Parameters
    ----------
    name : str
        Where it came from.
    signal : array ([channels,] *space)
        Its samples as the model saw them.
    held_out : bool
        Whether it was kept from learning.
    stored : array ([3,] *space), optional
        The photograph before it was prepared for the model, for signals of two axes. Black is 0 and white 1, unless
        there are samples beyond.
    """

    name: str
    signal: NDArray
    held_out: bool = False
    stored: NDArray | None = None


def write_learning_report(
    path: str | os.PathLike[str],
    model: BatchCSC | OnlineCSC,
    examples: Sequence[Example],
    *,
    title: str = "What was learned",
    data: Mapping[str, str] | None = None,
) -> None:
    """Write a self-contained HTML page about a fitted learner.

    Parameters
    ----------
    path : str or path
    model : fitted BatchCSC or OnlineCSC
    examples : sequence of Example
        Up to four are coded and shown, held-out ones first, of large ones the middle.
    title : str
    data : mapping of str to str
        What to say about the signals, beside the model's own parameters.
    """
    write_page(learning_page(model, examples, title=title, data=data), path)


def learning_page(
    model: BatchCSC | OnlineCSC,
    examples: Sequence[Example],
    *,
    title: str = "What was learned",
    data: Mapping[str, str] | None = None,
) -> Page:
    """The page that `write_learning_report` writes."""
    if not getattr(model, "history_", None):
        raise ValueError("model was not fitted, or was loaded without its history: fit it first")
    chosen = sorted(examples, key=lambda example: not example.held_out)[:_MOST_EXAMPLES]
    shown = [_coded(model, example) for example in chosen]
    filters = model.filters_
    size = "×".join(str(side) for side in filters.shape[1 + model.channels :])
    last = model.history_[-1]
    sections = [Section("In numbers", [_numbers(model, shown)])]
    if shown and shown[0].stored is not None:
        sections.append(Section("An example", [SideBySide(_pictures(shown[0]))]))
    sections += [Section("Filters", [_filters(model)]), Section("Convergence", _convergence(model))]
    if "outliers" in last:
        sections.append(Section("Left out", _left_out(model)))
    if shown:
        sections.append(Section("Reconstructions", _reconstructions(shown, filters.shape[-1])))
    sections += [
        Section("Usage of the filters", _usage(model)),
        Section("Settings and machine", [NamedValues({**dict(data or {}), **_settings(model), **fact_items(facts())})]),
    ]
    summary = (
        f"{len(filters)} filters of {size} learned in {last['seconds']:.1f} s and {model.n_iter_:,} steps. "
        "Signals are written as sparse points of these filters; every reconstruction below comes with a certificate."
    )
    return Page(title, summary, sections)


@dataclass(frozen=True)
class _Coded:
    """An example, or its middle, as it was coded."""

    name: str
    held_out: bool
    signal: NDArray
    fit: NDArray
    result: Result
    stored: NDArray | None

    @property
    def codes(self) -> SparseCodes:
        return self.result.codes.on_host()

    @property
    def gap(self) -> float:
        return float(self.result.gap[0])

    @property
    def psnr(self) -> float:
        return psnr(self.signal, self.fit)

    @property
    def words(self) -> str:
        kind = "held out" if self.held_out else "used for learning"
        return f"{self.psnr:.1f} dB from {self.codes.nnz:,} non-zeros; {kind}."


def _coded(model: BatchCSC | OnlineCSC, example: Example) -> _Coded:
    space = example.signal.shape[int(model.channels) :]
    sides = tuple(min(side, _LARGEST[len(space)]) for side in space)
    middle = tuple(slice((side - kept) // 2, (side + kept) // 2) for side, kept in zip(space, sides, strict=True))
    signal = example.signal[(slice(None), *middle) if model.channels else middle]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so
        result = model.encode([signal])
    stored = example.stored
    if stored is not None:
        stored = np.nan_to_num(stored[(slice(None), *middle) if stored.ndim > len(middle) else middle])
    name = example.name if sides == space else f"{example.name} (its middle)"
    fit = model.inverse_transform(result.codes)[0]
    return _Coded(name, example.held_out, np.nan_to_num(signal), fit, result, stored)


def _numbers(model: BatchCSC | OnlineCSC, shown: Sequence[_Coded]) -> Facts:
    last = model.history_[-1]
    memory = peak_mb()
    rank = model.rank
    kind = "" if rank is None else f"of rank {rank}, "
    numbers = [
        Fact(f"{len(model.filters_):,}", "filters", f"{kind}sorted by use"),
        Fact(f"{last['seconds']:.1f} s", "of learning", f"{model.n_iter_:,} steps, {model.n_seen_:,} signals coded"),
    ]
    if memory is not None:
        numbers.append(Fact(f"{memory:,.0f} MB", "of memory at most", "the whole process, libraries included"))
    if shown:
        best = "held-out" if shown[0].held_out else "training"
        same = [one for one in shown if one.held_out == shown[0].held_out]
        quality = np.mean([one.psnr for one in same])
        share = np.mean([one.codes.nnz / one.signal.size for one in same])
        numbers += [
            Fact(f"{quality:.1f} dB", f"PSNR of {best} signals", f"mean of {len(same)}"),
            Fact(f"{100 * share:.1f} %", "codes for each sample", "non-zeros over samples"),
            Fact(f"{100 * max(one.gap for one in shown):.2g} %", "from the optimum at most", "certified duality gap"),
        ]
    return Facts(numbers)


def _filters(model: BatchCSC | OnlineCSC) -> Picture | Waveforms:
    if model.filters_.ndim - model.channels == 2:
        waves = model.filters_ if model.channels else model.filters_[:, None]
        return Waveforms(waves, f"The most used first, from left to right. {waveform_words(waves)}")
    words = "The most used first, from left to right. Each has its own scale: mid-grey is zero."
    return mosaic_picture(model.filters_, channels=model.channels, caption=words)


def _convergence(model: BatchCSC | OnlineCSC) -> list[Block]:
    history = model.history_
    training = convergence_chart({"training signals": history}, "objective", "iteration")
    scatters, line = len(training.curves) > 1, training.curves[-1].y
    words = f"each mini-batch a dot, the line their running mean: {line[0]:,.0f} → {line[-1]:,.0f}"
    charts: list[Block] = [replace(training, title="Training signals", caption=words if scatters else _change(line))]
    if sum(info.get(HELD_OUT) is not None for info in history) > 1:
        chart = convergence_chart({"held out": history}, HELD_OUT, "seconds")
        curve = replace(chart.curves[0], colour="c1")
        words = _change(curve.y)
        charts.insert(0, replace(chart, title="Held-out signals", y="objective", curves=[curve], caption=words))
    else:
        steps = [info["iteration"] for info in history]
        counts = Curve("non-zeros", steps, [info["nnz"] for info in history], "c2")
        charts.append(Chart("Codes that are not zero", "step", "number", [counts]))
    trend = (
        "Every step sees other signals, so its objective goes up and down; the running mean shows the trend."
        if scatters
        else "Codes and filters are improved in turns, so the objective falls."
    )
    return [Text(f"{trend} The clock stands still while held-out signals are judged."), SideBySide(charts)]


def _change(values: Sequence[float] | NDArray) -> str:
    change = 100 * (values[-1] / values[0] - 1) if values[0] else 0.0
    return f"{values[0]:,.0f} → {values[-1]:,.0f} ({change:+.1f} %)"


def _left_out(model: BatchCSC | OnlineCSC) -> list[Block]:
    history = [info for info in model.history_ if "outliers" in info]
    counts = [int(info["outliers"]) for info in history]
    signals = len(np.unique(model.outliers_["signal"])) if hasattr(model, "outliers_") else 0
    words = (
        f"Windows whose error is an outlier count nothing in a step: {counts[-1]:,} were left out of the last step and "
        f"{sum(counts):,} of all {len(counts):,}. When signals were last judged, windows of {signals:,} of them were "
        "left out. Objectives are those of what counts."
    )
    curve = Curve("windows", [info["iteration"] for info in history], counts, "c3")
    return [Text(words), Chart("Windows left out of each step", "step", "number", [curve])]


def _reconstructions(shown: Sequence[_Coded], taps: int) -> list[Block]:
    rows = [
        [
            one.name,
            "held out" if one.held_out else "training",
            f"{one.psnr:.2f}",
            one.codes.nnz,
            f"{100 * one.codes.nnz / one.signal.size:.2f} %",
            f"{one.gap:.1e}",
            one.result.status.value,
        ]
        for one in shown
    ]
    columns = ["signal", "kind", "PSNR (dB)", "non-zeros", "of samples", "relative gap", "status"]
    note = (
        "The gap bounds how far the objective of these codes can lie above the optimum. PSNR takes the range as peak."
    )
    if len(shown[0].codes.grids[0]) == 1:
        return [*(_trace(one, taps) for one in shown), Table(columns, rows, note=note)]
    if shown[0].stored is None:
        return [SideBySide([_comparison(one) for one in shown]), Table(columns, rows, note=note)]
    # The first is on top of the page already.
    return [*(SideBySide(_pictures(one)) for one in shown[1:]), Table(columns, rows, note=note)]


def _pictures(one: _Coded) -> list[Block]:
    """The photograph as it is, beside what the model saw of it and made of that."""
    comparison = _comparison(one)
    if one.stored is None:
        return [comparison]
    beyond = one.stored.min() < 0 or one.stored.max() > 1
    limits = contrast_limits(one.stored) if beyond else (0.0, 1.0)
    alt = f"{one.name}, as it is"
    photograph = image_picture(one.stored, alt, limits=limits, caption="The photograph as it is.", title=one.name)
    return [photograph, comparison]


def _comparison(one: _Coded) -> Block:
    place, words = cut_of(one.signal, len(one.codes.grids[0]))
    signal, fit = one.signal[place], one.fit[place]
    caption = f"{one.words} Shown: {words}." if words else one.words
    limits = contrast_limits(signal)
    before = image_picture(signal, f"{one.name}, as the model saw it", limits=limits)
    after = image_picture(fit, f"{one.name}, reconstruction from its codes", limits=limits)
    if one.stored is None:
        return Compare(before, after, one.name, caption)
    return Compare(before, after, "As the model saw it, and from its codes", caption, "normalised")


def _trace(one: _Coded, taps: int) -> Trace:
    """The middle of a signal in time, in the numbers of the samples of what was coded."""
    length = one.signal.shape[-1]
    shown = min(length, max(_SHOWN_SAMPLES, _SHOWN_FILTERS * taps))
    first = (length - shown) // 2
    spikes = "A spike is a code: in the row of its filter, at the filter's centre, as high as the code is strong."
    caption = f"{one.words} {spikes}"
    return signal_trace(one.name, one.signal, one.fit, one.codes, first=first, last=first + shown, caption=caption)


def _usage(model: BatchCSC | OnlineCSC) -> list[Block]:
    usage = np.sort(np.asarray(model.usage_, np.float64))[::-1]
    total = usage.sum()
    if not total:
        return [Text("No code is different from zero: the penalty is too high for these signals.")]
    share = 100 * usage / total
    ranks = np.arange(1, len(share) + 1)
    few = max(1, len(share) // 10)
    rare = int(np.sum(share < 0.1 * share.mean()))
    words = (
        f"The {few} most used of {len(share)} filters carry {share[:few].sum():.0f} % of all codes (by size); "
        f"{rare or 'none'} of them {'are' if rare > 1 else 'is'} used less than a tenth of the average."
    )
    if rare > len(share) / 4:
        words += " So many rare ones say that fewer filters, or more signals, would do."
    each = Chart(
        "Share of each filter", "filter, by use", "% of the codes", [Curve("share", ranks, share, "c0", "bars")]
    )
    running = Chart("Added up", "filters", "% of the codes", [Curve("share", ranks, np.cumsum(share), "c2")])
    return [Text(words), SideBySide([each, running])]


def _settings(model: BatchCSC | OnlineCSC) -> dict[str, str]:
    settings = {"learner": type(model).__name__}
    parameters = model.get_params(deep=True)
    for name, value in parameters.items():
        if any(other.startswith(f"{name}__") for other in parameters):
            continue  # its fields stand for it
        settings[name] = f"array {np.shape(value)}" if isinstance(value, np.ndarray) else str(value)
    return settings | {"seed used": str(model.seed_)}
