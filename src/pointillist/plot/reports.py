"""Pages about one's own data: a run of a learner, and what is anomalous in signals."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from sklearn.exceptions import ConvergenceWarning

from pointillist.anomalies import AnomalyScore
from pointillist.codes import SparseCodes
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.metrics import psnr
from pointillist.plot.figures import (
    HELD_OUT,
    Chart,
    Curve,
    Trace,
    Waveforms,
    convergence_chart,
    series_chart,
    signal_trace,
    waveform_words,
)
from pointillist.plot.page import (
    Block,
    Cell,
    Compare,
    Fact,
    Facts,
    NamedValues,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
    fact_items,
    facts,
    peak_mb,
    write_page,
)
from pointillist.plot.pictures import between, contrast_limits, cut_of, image_picture, mosaic_picture, picture

_MOST_EXAMPLES = 4
_LARGEST = {1: 4096, 2: 384, 3: 64}
"""The middle of an example that is coded and shown, in samples along each axis, for 1, 2 and 3 dimensions."""
_SHOWN_SAMPLES, _SHOWN_FILTERS = 600, 8
"""Samples of a signal in time that are shown, or so many lengths of a filter where that is more."""
_MOST_SIGNALS, _MOST_CLOSE, _MOST_ROWS = 8, 6, 200
"""Signals with their scores, strongest events from near, and rows of the table on a page about anomalies."""
_MOST_CHANNELS = 6
"""Channels of a scored series that are drawn one below the other: those with the most energy."""
_AROUND = 4
"""Surroundings of an event of a series that are shown, in filter lengths on either side."""
_MARK = (217, 119, 43)
"""The colour of scores and of frames around events in pictures."""


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
    write_page(learning_page(model, examples, title, data), path)


def learning_page(
    model: BatchCSC | OnlineCSC,
    examples: Sequence[Example],
    title: str = "What was learned",
    data: Mapping[str, str] | None = None,
) -> Page:
    """The page that `write_learning_report` writes."""
    if not getattr(model, "history_", None):
        raise ValueError("model was not fitted, or was loaded without its history: fit it first")
    chosen = sorted(examples, key=lambda example: not example.held_out)[:_MOST_EXAMPLES]
    shown = [_coded(model, example) for example in chosen]
    size = "×".join(str(side) for side in model.filters_.shape[1 + model.channels :])
    last = model.history_[-1]
    sections = [Section("In numbers", [_numbers(model, shown)])]
    if shown and shown[0].stored is not None:
        sections.append(Section("An example", [SideBySide(_pictures(shown[0]))]))
    sections += [Section("Filters", [_filters(model)]), Section("Convergence", _convergence(model))]
    if shown:
        sections.append(Section("Reconstructions", _reconstructions(shown, model.filters_.shape[-1])))
    settings = {**(data or {}), **_settings(model), **fact_items(facts())}
    sections += [
        Section("Usage of the filters", _usage(model)),
        Section("Settings and machine", [NamedValues(settings)]),
    ]
    summary = (
        f"{len(model.filters_)} filters of {size} learned in {last['seconds']:.1f} s and {model.n_iter_:,} steps. "
        "Signals are written as sparse points of these filters; every reconstruction below comes with a certificate."
    )
    return Page(title, summary, sections)


class _Coded(NamedTuple):
    """An example, or its middle, as it was coded."""

    name: str
    held_out: bool
    signal: NDArray
    stored: NDArray | None
    fit: NDArray
    codes: SparseCodes
    gap: float
    status: str
    psnr: float
    words: str


def _coded(model: BatchCSC | OnlineCSC, example: Example) -> _Coded:
    space = example.signal.shape[int(model.channels) :]
    kept = [min(side, _LARGEST[len(space)]) for side in space]
    middle: Any = (..., *(slice((side - k) // 2, (side + k) // 2) for side, k in zip(space, kept, strict=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so
        result = model.encode([example.signal[middle]])
    codes, signal = result.codes.on_host(), np.nan_to_num(example.signal[middle])
    fit = model.inverse_transform(codes)[0]
    quality = psnr(signal, fit)
    kind = "held out" if example.held_out else "used for learning"
    return _Coded(
        name=example.name if signal.shape == example.signal.shape else f"{example.name} (its middle)",
        held_out=example.held_out,
        signal=signal,
        stored=None if example.stored is None else np.nan_to_num(example.stored[middle]),
        fit=fit,
        codes=codes,
        gap=float(result.gap[0]),
        status=result.status.value,
        psnr=quality,
        words=f"{quality:.1f} dB from {codes.nnz:,} non-zeros; {kind}.",
    )


def _numbers(model: BatchCSC | OnlineCSC, shown: Sequence[_Coded]) -> Facts:
    seconds, memory = model.history_[-1]["seconds"], peak_mb()
    kind = "" if model.rank is None else f"of rank {model.rank}, "
    numbers = [
        Fact(f"{len(model.filters_):,}", "filters", f"{kind}sorted by use"),
        Fact(f"{seconds:.1f} s", "of learning", f"{model.n_iter_:,} steps, {model.n_seen_:,} signals coded"),
    ]
    if memory is not None:
        numbers.append(Fact(f"{memory:,.0f} MB", "of memory at most", "the whole process, libraries included"))
    if shown:
        kind = "held-out" if shown[0].held_out else "training"
        alike = [one for one in shown if one.held_out == shown[0].held_out]
        share = np.mean([one.codes.nnz / one.signal.size for one in alike])
        numbers += [
            Fact(f"{np.mean([one.psnr for one in alike]):.1f} dB", f"PSNR of {kind} signals", f"mean of {len(alike)}"),
            Fact(f"{100 * share:.1f} %", "codes for each sample", "non-zeros over samples"),
            Fact(f"{100 * max(one.gap for one in shown):.2g} %", "from the optimum at most", "certified duality gap"),
        ]
    return Facts(numbers)


def _filters(model: BatchCSC | OnlineCSC) -> Picture | Waveforms:
    words = "The most used first, from left to right."
    if model.filters_.ndim - model.channels == 2:
        waves = model.filters_ if model.channels else model.filters_[:, None]
        return Waveforms(waves, f"{words} {waveform_words(waves)}")
    words += " Each has its own scale: mid-grey is zero."
    return mosaic_picture(model.filters_, channels=model.channels, caption=words)


def _convergence(model: BatchCSC | OnlineCSC) -> list[Block]:
    """A chart of all that was recorded of the steps, with the first value and the last."""
    charts = []
    for title, quantity, clock in (
        ("Held-out signals", HELD_OUT, "seconds"),
        ("Training signals", "objective", "iteration"),
        ("Codes that are not zero", "nnz", "iteration"),
        ("Windows left out", "outliers", "iteration"),
    ):
        if any(info.get(quantity) is not None for info in model.history_):
            chart = convergence_chart({title: model.history_}, quantity, clock)
            values = chart.curves[-1].y
            charts.append(replace(chart, title=title, caption=f"{values[0]:,.0f} → {values[-1]:,.0f}"))
    words = (
        "Where every step sees other signals, its objective goes up and down, and the running mean shows the trend. "
        "The clock stands still while held-out signals are judged."
    )
    return [Text(words), SideBySide(charts)]


def _reconstructions(shown: Sequence[_Coded], taps: int) -> list[Block]:
    columns = ["signal", "kind", "PSNR (dB)", "non-zeros", "of samples", "relative gap", "status"]
    rows: list[list[Cell]] = []
    for one in shown:
        kind, share = "held out" if one.held_out else "training", f"{100 * one.codes.nnz / one.signal.size:.2f} %"
        rows.append([one.name, kind, f"{one.psnr:.2f}", one.codes.nnz, share, f"{one.gap:.1e}", one.status])
    note = (
        "The gap bounds how far the objective of these codes can lie above the optimum. PSNR takes the range as peak."
    )
    table = Table(columns, rows, note=note)
    if len(shown[0].codes.grids[0]) == 1:
        return [*(_trace(one, taps) for one in shown), table]
    if shown[0].stored is None:
        return [SideBySide([block for one in shown for block in _pictures(one)]), table]
    # The first is on top of the page already.
    return [*(SideBySide(_pictures(one)) for one in shown[1:]), table]


def _pictures(one: _Coded) -> list[Block]:
    """Picture as the model saw it and from its codes, beside the photograph as it is where there is one."""
    place, words = cut_of(one.signal, len(one.codes.grids[0]))
    caption = f"{one.words} Shown: {words}." if words else one.words
    limits = contrast_limits(one.signal[place])
    before = image_picture(one.signal[place], f"{one.name}, as the model saw it", limits=limits)
    after = image_picture(one.fit[place], f"{one.name}, reconstruction from its codes", limits=limits)
    if one.stored is None:
        return [Compare(before, after, one.name, caption)]
    beyond = one.stored.min() < 0 or one.stored.max() > 1
    limits = contrast_limits(one.stored) if beyond else (0.0, 1.0)
    words = "The photograph as it is."
    photograph = image_picture(one.stored, f"{one.name}, as it is", limits=limits, caption=words, title=one.name)
    return [photograph, Compare(before, after, "As the model saw it, and from its codes", caption, "normalised")]


def _trace(one: _Coded, taps: int) -> Trace:
    """The middle of a signal in time, in the numbers of the samples of what was coded."""
    length = one.signal.shape[-1]
    shown = min(length, max(_SHOWN_SAMPLES, _SHOWN_FILTERS * taps))
    first = (length - shown) // 2
    spikes = "A spike is a code: in the row of its filter, at the filter's centre, as high as the code is strong."
    part = slice(first, first + shown)
    return signal_trace(one.name, one.signal, one.fit, one.codes, part, f"{one.words} {spikes}")


def _usage(model: BatchCSC | OnlineCSC) -> list[Block]:
    usage = np.sort(np.asarray(model.usage_, np.float64))[::-1]
    share = 100 * usage / (usage.sum() or 1.0)
    few, rare = max(1, len(share) // 10), int(np.sum(share < 0.1 * share.mean()))
    words = (
        f"The {few} most used of {len(share)} filters carry {share[:few].sum():.0f} % of all codes (by size). Used less "
        f"than a tenth of the average: {rare or 'none'}; where these are many, fewer filters or more signals would do."
    )
    bars = Curve("share", np.arange(1, len(share) + 1), share, "c0", "bars")
    return [Text(words), Chart("Share of each filter", "filter, by use", "% of the codes", [bars])]


def _settings(model: BatchCSC | OnlineCSC) -> dict[str, str]:
    settings = {"learner": type(model).__name__, "seed used": str(model.seed_)}
    for name, value in model.get_params(deep=False).items():
        settings[name] = f"array {value.shape}" if isinstance(value, np.ndarray) else str(value)
    return settings


def write_anomaly_report(
    path: str | os.PathLike[str], names: Sequence[str], signals: Sequence[NDArray], found: AnomalyScore
) -> None:
    """Write a self-contained HTML page about anomaly scores.

    Parameters
    ----------
    path : str or path
    names : sequence of str
        One for each signal.
    signals : sequence of arrays ([channels,] *space)
        As they were scored.
    found : AnomalyScore
    """
    write_page(anomaly_page(names, signals, found), path)


def anomaly_page(names: Sequence[str], signals: Sequence[NDArray], found: AnomalyScore) -> Page:
    """The page that `write_anomaly_report` writes."""
    events = found.events()
    strongest = events[np.argsort(-events["score"], kind="stable")]
    samples = sum(score.size for score in found.scores)
    above = sum(int(np.count_nonzero(score > found.threshold)) for score in found.scores)
    numbers = [
        Fact(f"{len(events):,}", "event" if len(events) == 1 else "events", "above the threshold"),
        Fact(f"{found.threshold:.3g}", "nats, the threshold", "of the score"),
        Fact(f"{100 * above / samples:.2g} %", "of the samples above it", f"of {samples:,}"),
    ]
    peaks = [float(score.max()) for score in found.scores]
    shown = sorted(np.argsort(peaks, kind="stable")[::-1][:_MOST_SIGNALS])
    series = len(found.extent) == 1
    overview: list[Block] = [Text(f"The signals with the highest scores, {len(shown)} of {len(signals):,}.")]
    for i in shown:
        draw = _series if series else _framed
        overview.append(SideBySide(draw(names[i], signals[i], found.scores[i], events[events["signal"] == i], found)))
    sections = [Section("In numbers", [Facts(numbers)]), Section("Signals and scores", overview)]
    if len(events):
        if series:
            charts = [_close(names, signals, event, found.extent[0]) for event in strongest[:_MOST_CLOSE]]
            sections.append(Section("The strongest events", [SideBySide(charts)]))
        rows = [event_row(names[int(event["signal"])], event) for event in strongest[:_MOST_ROWS]]
        note = f"The strongest {_MOST_ROWS} of {len(events):,}." if len(events) > _MOST_ROWS else ""
        sections.append(Section("Events", [Table(event_columns(len(found.extent)), rows, note=note)]))
    summary = (
        f"{len(signals):,} signal{'s' * (len(signals) != 1)} judged by a learned model: a sample is strange where much is "
        "left unexplained, or where the explanation is dear. Scores are in nats."
    )
    return Page("Anomalies", summary, sections)


def event_columns(axes: int) -> list[str]:
    """Names of an event's columns in a table, for signals of so many axes."""
    ends = [""] if axes == 1 else ["_z", "_y", "_x"][3 - axes :]
    return ["signal", *(f"{name}{end}" for name in ("start", "stop", "peak") for end in ends), "score", "cause"]


def event_row(name: str, event: np.void) -> list[str | int | float]:
    """The cells of an event under `event_columns`; `name` is its signal's."""
    places = [int(place) for field in ("start", "stop", "peak") for place in np.ravel(event[field])]
    return [name, *places, float(event["score"]), str(event["cause"])]


def _series(name: str, signal: NDArray, score: NDArray, events: NDArray, found: AnomalyScore) -> list[Block]:
    whole = series_chart(name, {("signal", "c0"): signal}, most=_MOST_CHANNELS, caption="The whole series.")
    words = f"The score; events lie above the threshold of {found.threshold:.3g} nats."
    judged = series_chart("", {("score", "c1"): score}, caption=words)
    return [whole, replace(judged, y="score (nats)", levels={"threshold": found.threshold})]


def _close(names: Sequence[str], signals: Sequence[NDArray], event: np.void, taps: int) -> Chart:
    """An event of a series and what lies around it."""
    first, last = max(int(event["peak"]) - _AROUND * taps, 0), int(event["peak"]) + _AROUND * taps
    part = signals[int(event["signal"])][..., first:last]
    places = first + np.arange(part.shape[-1])
    inside = np.where((places >= event["start"]) & (places < event["stop"]), part, np.nan)
    words = f"{event['score']:.3g} nats at sample {event['peak']:,}, mostly {event['cause']}."
    lines = {("signal", "c0"): part, ("event", "c1"): inside}
    return series_chart(names[int(event["signal"])], lines, first, _MOST_CHANNELS, words)


def _framed(name: str, signal: NDArray, score: NDArray, events: NDArray, found: AnomalyScore) -> list[Block]:
    """An image with frames around its events, beside its scores; of a volume the slice with the highest score.

    Channels are drawn as their mean, and samples that were not seen as the mean of those that were.
    """
    boxes = [(one["start"], one["stop"]) for one in events]
    filled = np.nan_to_num(signal, nan=float(np.nanmean(signal)))
    image = filled.mean(axis=0) if signal.ndim > score.ndim else filled
    if score.ndim == 3:
        depth = int(np.unravel_index(int(np.argmax(score)), score.shape)[0])
        boxes = [(start[1:], stop[1:]) for start, stop in boxes if start[0] <= depth < stop[0]]
        score, image, name = score[depth], image[depth], f"{name}, slice {depth}"
    grey = np.round(255 * between(image, *contrast_limits(image))).astype(np.uint8)
    framed = Image.fromarray(grey).convert("RGB")
    for (top, left), (bottom, right) in boxes:
        ImageDraw.Draw(framed).rectangle((left, top, right - 1, bottom - 1), outline=_MARK)
    share = np.clip(score / (3 * max(found.threshold, 1e-12)), 0, 1)[..., None]
    heat = np.round(255 * (1 - share) + np.array(_MARK) * share).astype(np.uint8)
    words = f"{name}, {'events framed' if boxes else 'no event'}"
    scores = "The score: full colour is three times the threshold."
    return [
        picture(np.asarray(framed), words, caption=f"{words}."),
        picture(heat, "the score of every sample", caption=scores),
    ]
