"""How time and memory grow with pixels, filters, filter size, sampling and the number of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from paper.timing import exponent, shortest

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.measure import apart
from benchmarks.tables import Findings, Table, chart

TOL = 0.05


def run(context: Context) -> Findings:
    """Measure time and memory while one size grows and the others stay."""
    inputs, quick = context.inputs, context.quick
    found = Findings(settings={"tol": TOL})
    summary = Table("Growth: cost ~ size^exponent", ["of", "with", "from", "to", "exponent"])
    found.tables.append(summary)

    def grow(size: str, cost: str, xs: Sequence[float], costs: Sequence[float], unit: str) -> None:
        """Add one line to the summary and one curve."""
        summary.add(cost, size, xs[0], xs[-1], exponent(xs, costs))
        found.charts.append(chart(f"{cost} over {size}", size, unit, {"": (xs, costs)}, log_y=True))

    def encode_and_learn(
        title: str, size: str, column: str, cases: dict[float, dict[str, Any]], note: str = ""
    ) -> None:
        """Time encoding and a learning step of one image, for filters and shares of sampled codes by size."""
        context.say(size)
        table = Table(title, [column, "encode s", "learning step s"], note)
        encoding, learning = [], []
        for value, case in cases.items():
            given = {"sampling": 1.0, **case}
            encoding.append(
                shortest(lambda g=given: pt.encode(image, penalty=PENALTY, tol=TOL, random_state=0, **g), 3)
            )
            learning.append(_step(image, case["filters"], case.get("sampling", 0.1)))
            table.add(value, encoding[-1], learning[-1])
        found.tables.append(table)
        grow(size, "encoding time", list(cases), encoding, "s")
        grow(size, "learning time", list(cases), learning, "s")

    sides = context.pick([64, 128, 256, 512, 1024], [32, 64])
    context.say("pixels")
    done = [apart("benchmarks.scaling:encode_large", side=side, quick=quick) for side in sides]
    libraries = f"{done[0]['import_mb']:.0f} MB of the peak are Python and its libraries"
    columns = ["side", "encode s", "µs per pixel", "peak MB"]
    table = Table("One image of growing size", columns, note=f"tol {TOL}; {libraries}")
    for side, cost in zip(sides, done, strict=True):
        table.add(side, cost["seconds"], 1e6 * cost["seconds"] / side**2, cost["peak_mb"])
    found.tables.append(table)
    pixels = [float(side**2) for side in sides]
    grow("pixels", "encoding time", pixels, [cost["seconds"] for cost in done], "s")
    # Bytes beyond the libraries', for the sizes where they show.
    extra = [max(cost["peak_mb"] - cost["import_mb"], 1.0) for cost in done]
    grow("pixels", "encoding memory", pixels[-3:], extra[-3:], "MB")

    image = inputs.unseen[:1]
    counts = context.pick([25, 50, 100, 200, 400], [8, 16, 32])
    lengths = context.pick([5, 7, 11, 15, 21], [5, 11])
    fractions = context.pick([0.05, 0.1, 0.2, 0.5, 1.0], [0.1, 1.0])
    banks = {count: {"filters": inputs.overcomplete[:count]} for count in counts}
    encode_and_learn("More filters, one image", "filters", "filters", banks)
    note = "Patches of the training images as filters; samples of a filter grow as the square of its side."
    banks = {length: {"filters": _patches(inputs.train, inputs.scale.n_filters, length)} for length in lengths}
    encode_and_learn("Larger filters, one image", "filter side", "side", banks, note)
    banks = {p: {"filters": inputs.filters, "sampling": p} for p in fractions}
    encode_and_learn("Sampling, one image", "sampling", "p", banks)

    totals = context.pick([10, 40, 160], [2, 4])
    context.say("images")
    table = Table("More images, online", ["images", "learning s", "s per image", "peak MB"])
    done = [apart("benchmarks.scaling:learn_many", count=count, quick=quick) for count in totals]
    for count, cost in zip(totals, done, strict=True):
        table.add(count, cost["seconds"], cost["seconds"] / count, cost["peak_mb"])
    found.tables.append(table)
    grow("images", "online time", totals, [cost["seconds"] for cost in done], "s")
    grow("images", "online memory", totals, [cost["peak_mb"] for cost in done], "MB")
    return found


def _step(image: np.ndarray, filters: np.ndarray, sampling: float) -> float:
    """Shortest time of a learning step with one image, from given filters."""
    update = pt.FilterUpdate(init=filters)
    model = pt.OnlineCSC(
        len(filters), filters.shape[1], PENALTY, sampling=sampling, n_epochs=4, update=update, random_state=0
    )
    model.fit(image)
    times = np.diff([0.0, *[info["seconds"] for info in model.history_]])
    return float(min(times[1:]))


def _patches(images: np.ndarray, count: int, length: int) -> np.ndarray:
    """Filters of any size that look like images: random patches, scaled to norm one."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (length, length), axis=(1, 2))
    places = np.random.default_rng(0).integers(0, windows.shape[:3], (count, 3))
    filters = np.stack([windows[tuple(place)] for place in places])
    return np.ascontiguousarray(filters / np.linalg.norm(filters, axis=(1, 2), keepdims=True))


def encode_large(side: int, quick: bool) -> dict[str, Any]:
    """Time of encoding one image in this process."""
    inputs = Inputs(quick=quick)
    image = inputs.large(side)[None]
    return {"seconds": shortest(lambda: pt.encode(image, inputs.filters, PENALTY, tol=TOL), 1 if side > 512 else 2)}


def learn_many(count: int, quick: bool) -> dict[str, Any]:
    """Time of one online pass in this process, images made one batch at a time."""
    inputs = Inputs(quick=quick)
    start = inputs.start(inputs.scale.n_filters)
    model = pt.OnlineCSC(len(start), FILTER_SIZE, PENALTY, update=pt.FilterUpdate(init=start), random_state=0)
    for i in range(0, count + 2, 2):  # the first pair warms up
        model.partial_fit(inputs.train[[i % len(inputs.train), (i + 1) % len(inputs.train)]])
    return {"seconds": model.history_[-1]["seconds"] - model.history_[0]["seconds"]}
