"""Where the time goes, in encoding and in online learning, on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.measure import profiled
from benchmarks.tables import Findings, Table

LEAST = 0.02
"""Share of the time from which a function is listed."""


def run(context: Context) -> Findings:
    """Profile encoding and learning, function by function of the package."""
    inputs = context.inputs
    images, count = inputs.unseen, inputs.scale.n_filters
    update = pt.FilterUpdate(init=inputs.start(count))
    model = pt.OnlineCSC(count, FILTER_SIZE, PENALTY, update=update, n_jobs=1, random_state=0)
    works: dict[str, Callable[[], Any]] = {
        "encoding, tol 0.05": lambda: pt.encode(images, inputs.filters, PENALTY, tol=0.05, n_jobs=1),
        "encoding, tol 1e-3": lambda: pt.encode(images, inputs.filters, PENALTY, tol=1e-3, n_jobs=1),
        "online learning": lambda: model.fit(inputs.train),
        "online learning, p = 0.1": lambda: model.set_params(sampling=0.1).fit(inputs.train),
    }
    table = Table(
        "Where the time goes, one thread",
        ["work", "function", "ms per image", "share"],
        note="Wall time inside a function of the package, with kernels and libraries that it calls itself.",
    )
    for name, work in works.items():
        context.say(name)
        work()
        total, parts = profiled(work)
        for function, spent in parts.items():
            if spent >= LEAST * total:
                table.add(name, function, 1e3 * spent / len(images), f"{spent / total:.1%}")
        table.add(name, "all", 1e3 * total / len(images), "100.0%")
    return Findings([table])
