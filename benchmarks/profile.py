"""Where the time goes, in encoding and in online learning, on one thread."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pointillist as pt
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.tables import Report, Table

# (part, end of the file's path, function): cumulative times, each inside none of the others but as `INSIDE` says.
PARTS = (
    ("scan", "solvers/descent.py", "scan"),
    ("descent", "solvers/descent.py", "_descend"),
    ("working set", "solvers/descent.py", "_enlarge"),
    ("certificate", "solvers/descent.py", "_look"),
    ("statistics", "dictionary/toeplitz.py", "add"),
    ("dictionary sweep", "dictionary/update.py", "update_filters"),
    ("record", "dictionary/statistics.py", "host_objectives"),
)
INSIDE = {"certificate": "scan"}


def run(context: Context) -> Report:
    inputs = context.inputs
    images = inputs.unseen
    model = pt.OnlineCSC(inputs.n_filters, FILTER_SIZE, PENALTY, n_jobs=1, random_state=0)
    model.set_params(update__init=inputs.start(inputs.n_filters))
    works: dict[str, Callable[[], Any]] = {
        "encoding, tol 0.05": lambda: pt.encode(images, inputs.filters, PENALTY, tol=0.05, n_jobs=1),
        "encoding, tol 1e-3": lambda: pt.encode(images, inputs.filters, PENALTY, tol=1e-3, n_jobs=1),
        "online learning": lambda: model.fit(inputs.train),
        "online learning, p = 1": lambda: model.set_params(sampling=1.0).fit(inputs.train),
    }
    names = [name for name, _, _ in PARTS] + ["other"]
    table = Table(
        "Where the time goes, one thread",
        ["work", "ms per image", *names],
        note="Shares of the wall time; “record” is the objective in the history, which learning's own clock leaves out.",
    )
    for name, work in works.items():
        context.say(name)
        work()
        total, parts = _profile(work)
        shares = [parts[part] / total for part in names]
        table.add(name, 1e3 * total / len(images), *[f"{share:.1%}" for share in shares])
    return Report([table])


def _profile(work: Callable[[], Any]) -> tuple[float, dict[str, float]]:
    """Seconds of a call and of its parts."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    stats = pstats.Stats(profiler)
    parts = dict.fromkeys([name for name, _, _ in PARTS], 0.0)
    for (file, _, function), (_, _, _, cumulative, _) in stats.stats.items():  # type: ignore[attr-defined]
        for name, ending, wanted in PARTS:
            if function == wanted and file.replace("\\", "/").endswith(f"pointillist/{ending}"):
                parts[name] += cumulative
    for outer, inner in INSIDE.items():
        parts[outer] -= parts[inner]
    total = float(stats.total_tt)  # type: ignore[attr-defined]
    return total, {**parts, "other": total - sum(parts.values())}
