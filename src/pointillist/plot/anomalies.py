"""The page about anomalies: each signal with its score, the strongest events from near, and a table of all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pointillist.anomalies import AnomalyScore
from pointillist.plot.blocks import (
    Block,
    Chart,
    Curve,
    Fact,
    Facts,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
)
from pointillist.plot.charts import stacked, strongest
from pointillist.plot.page import write_page
from pointillist.plot.pictures import between, contrast_limits, image_picture, picture

_MOST_SIGNALS, _MOST_CLOSE, _MOST_ROWS = 8, 6, 200
_COLUMNS = 700
"""Points of a curve over a whole series: each stands for the smallest and the largest sample of a stretch."""
_MOST_CHANNELS = 6
"""Channels that are drawn one below the other: those with the most energy."""
_AROUND = 4
"""Surroundings of an event of a series that are shown, in filter lengths on either side."""
_MARK = np.array([217, 119, 43])
"""The colour of scores and of frames around events in pictures."""
AXES = {1: ("",), 2: ("_y", "_x"), 3: ("_z", "_y", "_x")}
"""Endings of the names of an event's places, by the number of axes."""


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
    samples = sum(score.size for score in found.scores)
    above = sum(int(np.count_nonzero(score > found.threshold)) for score in found.scores)
    numbers = [
        Fact(f"{len(events):,}", "event" if len(events) == 1 else "events", "above the threshold"),
        Fact(f"{found.threshold:.3g}", "nats, the threshold", "of the score"),
        Fact(f"{100 * above / samples:.2g} %", "of the samples above it", f"of {samples:,}"),
    ]
    sections = [
        Section("In numbers", [Facts(numbers)]),
        Section("Signals and scores", _overview(names, signals, found, events)),
    ]
    if len(events):
        strongest = events[np.argsort(-events["score"], kind="stable")]
        if len(found.extent) == 1:
            sections.append(Section("The strongest events", _close(names, signals, found, strongest)))
        sections.append(Section("Events", [_table(names, strongest)]))
    summary = (
        f"{len(signals):,} signal{'s' * (len(signals) != 1)} judged by a learned model: a sample is strange where much is "
        "left unexplained, or where the explanation is dear. Scores are in nats."
    )
    return Page("Anomalies", summary, sections)


def event_columns(axes: int) -> list[str]:
    """Names of an event's columns in a table, for signals of so many axes."""
    places = [f"{name}{end}" for name in ("start", "stop", "peak") for end in AXES[axes]]
    return ["signal", *places, "score", "cause"]


def event_row(name: str, event: np.void) -> list[str | int | float]:
    """The cells of an event under `event_columns`; `name` is its signal's."""
    places = [int(place) for field in ("start", "stop", "peak") for place in np.ravel(event[field])]
    return [name, *places, float(event["score"]), str(event["cause"])]


def _overview(names: Sequence[str], signals: Sequence[NDArray], found: AnomalyScore, events: NDArray) -> list[Block]:
    peaks = [float(score.max()) for score in found.scores]
    shown = sorted(np.argsort(peaks, kind="stable")[::-1][:_MOST_SIGNALS])
    blocks: list[Block] = []
    if len(shown) < len(signals):
        blocks.append(Text(f"The {len(shown)} signals with the highest scores, of {len(signals):,}."))
    for i in shown:
        mine = events[events["signal"] == i]
        series = len(found.extent) == 1
        one = _series(names[i], signals[i], found, i) if series else _pictures(names[i], signals[i], found, i, mine)
        blocks.append(SideBySide(one))
    return blocks


def _series(name: str, signal: NDArray, found: AnomalyScore, i: int) -> list[Block]:
    samples, score = _envelope(found.scores[i])
    words = f"The score; events lie above the threshold of {found.threshold:.3g} nats."
    judged = Chart(
        "",
        "sample",
        "score (nats)",
        [Curve("score", samples, score, "c1")],
        {"threshold": found.threshold},
        caption=words,
    )
    return [_traces(name, signal, {"signal": None}, "The whole series."), judged]


def _traces(title: str, signal: NDArray, parts: Mapping[str, NDArray | None], caption: str) -> Chart:
    """A series as one line, or a line for each of its strongest channels, one below the other.

    Each of the parts is a curve through some samples, or through all of them for None, with gaps between the channels.
    """
    known, several = np.nan_to_num(np.atleast_2d(signal)), signal.ndim > 1
    shown = strongest(known, _MOST_CHANNELS)
    above = stacked(known[shown])
    lines = np.atleast_2d(signal)[shown] + (above if several else 0)
    curves = []
    for number, (label, places) in enumerate(parts.items()):
        drawn = [_envelope(line) if places is None else (places, line[places]) for line in lines]
        x = [np.append(one, one[-1:]) for one, _ in drawn]
        y = [np.append(values, [np.nan] * len(values[-1:])) for _, values in drawn]
        curves.append(Curve(label, np.concatenate(x)[:-1], np.concatenate(y)[:-1], f"c{number}"))
    if len(shown) < len(known):
        caption += f" The {len(shown)} strongest of {len(known):,} channels are shown."
    rows = dict(zip(map(str, shown), above[:, 0].tolist(), strict=True)) if several else {}
    return Chart(title, "sample", "channel" if several else "value", curves, caption=caption, rows=rows)


def _envelope(series: NDArray) -> tuple[NDArray, NDArray]:
    """Places and values of a curve that shows the extremes of every stretch of a long series."""
    if len(series) <= 2 * _COLUMNS:
        return np.arange(len(series)), np.asarray(series, np.float64)
    edges = np.linspace(0, len(series), _COLUMNS + 1).astype(int)[:-1]
    low, high = np.fmin.reduceat(series, edges), np.fmax.reduceat(series, edges)
    return np.repeat(edges, 2), np.stack([low, high], axis=1).astype(np.float64).ravel()


def _close(names: Sequence[str], signals: Sequence[NDArray], found: AnomalyScore, strongest: NDArray) -> list[Block]:
    charts: list[Block] = []
    for event in strongest[:_MOST_CLOSE]:
        i, around = int(event["signal"]), _AROUND * found.extent[0]
        places = np.arange(max(event["peak"] - around, 0), min(event["peak"] + around, signals[i].shape[-1]))
        inside = places[(places >= event["start"]) & (places < event["stop"])]
        words = f"{event['score']:.3g} nats at sample {event['peak']:,}, mostly {event['cause']}."
        charts.append(_traces(names[i], signals[i], {"signal": places, "event": inside}, words))
    return [SideBySide(charts[k : k + 2]) for k in range(0, len(charts), 2)]


def _pictures(name: str, signal: NDArray, found: AnomalyScore, i: int, events: NDArray) -> list[Block]:
    """An image with frames around its events, beside its scores; of a volume the slice with the highest score.

    Channels are drawn as their mean, and samples that were not seen as the mean of those that were.
    """
    score, boxes = found.scores[i], [(one["start"], one["stop"]) for one in events]
    filled = np.nan_to_num(signal, nan=float(np.nanmean(signal)))
    image = np.mean(filled, axis=0) if signal.ndim > score.ndim else filled
    where = ""
    while score.ndim > 2:
        depth = int(np.unravel_index(int(np.argmax(score)), score.shape)[0])
        boxes = [(start[1:], stop[1:]) for start, stop in boxes if start[0] <= depth < stop[0]]
        score, image, where = score[depth], image[depth], f", slice {depth}"
    caption = f"{name}{where}, events framed"
    limits = contrast_limits(image)
    if not boxes:
        return [image_picture(image, caption, limits=limits, caption=f"{name}{where}, no event."), _heat(score, found)]
    grey = np.round(255 * between(image, *limits)).astype(np.uint8)
    framed = np.repeat(grey[..., None], 3, axis=-1)
    for start, stop in boxes:
        top, left = np.maximum(start - 1, 0)
        bottom, right = np.minimum(stop, np.array(score.shape) - 1)
        framed[top : bottom + 1, [left, right]] = _MARK
        framed[[top, bottom], left : right + 1] = _MARK
    return [picture(framed, caption, caption=f"{caption}."), _heat(score, found)]


def _heat(score: NDArray, found: AnomalyScore) -> Picture:
    """Scores as a picture: white is nothing, full colour three times the threshold or more."""
    share = np.clip(score / (3 * max(found.threshold, 1e-12)), 0, 1)[..., None]
    pixels = np.round(255 * (1 - share) + _MARK * share).astype(np.uint8)
    return picture(pixels, "the score of every sample", caption="The score: full colour is three times the threshold.")


def _table(names: Sequence[str], strongest: NDArray) -> Table:
    axes = strongest["peak"].shape[1] if strongest["peak"].ndim == 2 else 1
    rows = [event_row(names[int(event["signal"])], event) for event in strongest[:_MOST_ROWS]]
    note = f"The strongest {_MOST_ROWS} of {len(strongest):,}." if len(strongest) > _MOST_ROWS else ""
    return Table(event_columns(axes), rows, note=note)
