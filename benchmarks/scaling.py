"""How time and memory grow with pixels, filters, filter size, sampling and the number of images."""

from __future__ import annotations

from typing import Any

import numpy as np

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.measure import apart, best_of, exponent
from benchmarks.plots import Figure
from benchmarks.tables import Report, Table

TOL = 0.05


def run(context: Context) -> Report:
    inputs, quick = context.inputs, context.quick
    report = Report(settings={"tol": TOL})
    summary = Table("Growth: cost ~ size^exponent", ["of", "with", "from", "to", "exponent"])

    def grow(size: str, cost: str, xs: list[float], costs: list[float], unit: str) -> None:
        """One line of the summary and one curve."""
        summary.add(cost, size, xs[0], xs[-1], exponent(xs, costs))
        report.figures.append(
            Figure(
                "_".join(["scaling", *cost.split(), *size.split()]),
                f"{cost} over {size}",
                size,
                unit,
                {"": (xs, costs)},
                log_y=True,
            )
        )

    sides = [32, 64] if quick else [64, 128, 256, 512, 1024]
    context.say("pixels")
    table = Table("One image of growing size", ["side", "encode s", "µs per pixel", "peak MB"], note=f"tol {TOL}")
    done = [apart("benchmarks.scaling:encode_large", side=side, quick=quick) for side in sides]
    for side, cost in zip(sides, done, strict=True):
        table.add(side, cost["seconds"], 1e6 * cost["seconds"] / side**2, cost["peak_mb"])
    table.note += f"; {done[0]['import_mb']:.0f} MB of the peak are Python and its libraries"
    report.tables.append(table)
    pixels = [float(side**2) for side in sides]
    grow("pixels", "encoding time", pixels, [cost["seconds"] for cost in done], "s")
    # Bytes beyond the libraries', for the sizes where they show.
    extra = [max(cost["peak_mb"] - cost["import_mb"], 1.0) for cost in done]
    grow("pixels", "encoding memory", pixels[-3:], extra[-3:], "MB")

    image = inputs.unseen[:1]
    counts = [8, 16, 32] if quick else [25, 50, 100, 200, 400]
    context.say("filters")
    table = Table("More filters, one image", ["filters", "encode s", "learning step s"])
    encoding, learning = [], []
    for count in counts:
        filters = inputs.overcomplete[:count]
        encoding.append(best_of(lambda f=filters: pt.encode(image, f, PENALTY, tol=TOL), 3))
        learning.append(_step(image, inputs.start(count), sampling=0.1))
        table.add(count, encoding[-1], learning[-1])
    report.tables.append(table)
    grow("filters", "encoding time", [float(c) for c in counts], encoding, "s")
    grow("filters", "learning time", [float(c) for c in counts], learning, "s")

    lengths = [5, 11] if quick else [5, 7, 11, 15, 21]
    context.say("filter size")
    table = Table("Larger filters, one image", ["side", "encode s", "learning step s"])
    encoding, learning = [], []
    for length in lengths:
        filters = _patches(inputs.train, inputs.n_filters, length)
        encoding.append(best_of(lambda f=filters: pt.encode(image, f, PENALTY, tol=TOL), 3))
        learning.append(_step(image, filters, sampling=0.1))
        table.add(length, encoding[-1], learning[-1])
    table.note = "Patches of the training images as filters; samples of a filter grow as the square of its side."
    report.tables.append(table)
    grow("filter side", "encoding time", [float(s) for s in lengths], encoding, "s")
    grow("filter side", "learning time", [float(s) for s in lengths], learning, "s")

    fractions = [0.1, 1.0] if quick else [0.05, 0.1, 0.2, 0.5, 1.0]
    context.say("sampling")
    table = Table("Sampling, one image", ["p", "encode s", "learning step s"])
    encoding, learning = [], []
    for p in fractions:
        encoding.append(
            best_of(lambda p=p: pt.encode(image, inputs.filters, PENALTY, sampling=p, tol=TOL, random_state=0), 3)
        )
        learning.append(_step(image, inputs.filters, sampling=p))
        table.add(f"{p:g}", encoding[-1], learning[-1])
    report.tables.append(table)
    grow("sampling", "encoding time", fractions, encoding, "s")
    grow("sampling", "learning time", fractions, learning, "s")

    totals = [2, 4] if quick else [10, 40, 160]
    context.say("images")
    table = Table("More images, online", ["images", "learning s", "s per image", "peak MB"])
    done = [apart("benchmarks.scaling:learn_many", count=count, quick=quick) for count in totals]
    for count, cost in zip(totals, done, strict=True):
        table.add(count, cost["seconds"], cost["seconds"] / count, cost["peak_mb"])
    report.tables.append(table)
    grow("images", "online time", [float(c) for c in totals], [cost["seconds"] for cost in done], "s")
    grow("images", "online memory", [float(c) for c in totals], [cost["peak_mb"] for cost in done], "MB")
    report.tables.insert(0, summary)
    return report


def _step(image: np.ndarray, filters: np.ndarray, sampling: float) -> float:
    """Shortest time of a learning step with one image, from given filters."""
    update = pt.FilterUpdate(init=filters)
    model = pt.OnlineCSC(len(filters), filters.shape[1], PENALTY, sampling=sampling, update=update, random_state=0).fit(
        image, n_epochs=4
    )
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
    return {"seconds": best_of(lambda: pt.encode(image, inputs.filters, PENALTY, tol=TOL), 1 if side > 512 else 2)}


def learn_many(count: int, quick: bool) -> dict[str, Any]:
    """Time of one online pass in this process, images made one batch at a time."""
    inputs = Inputs(quick=quick)
    model = pt.OnlineCSC(inputs.n_filters, FILTER_SIZE, PENALTY, random_state=0)
    model.set_params(update__init=inputs.start(inputs.n_filters))
    for i in range(0, count + 2, 2):  # the first pair warms up
        model.partial_fit(inputs.train[[i % len(inputs.train), (i + 1) % len(inputs.train)]])
    return {"seconds": model.history_[-1]["seconds"] - model.history_[0]["seconds"]}
