"""Two workers against one on this machine, and what a step costs: ``python -m benchmarks.cluster [--quick]``.

Every worker is a process with one thread that reads its own part of a file; the client has no thread to spare on two cores,
as it would on a cluster. The figures feed the cost model in docs/cluster.md and scripts/simulate_cluster.py.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console

import pointillist as pt
from benchmarks import measure, tables
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.tables import Report, Table
from pointillist.data.sources import NpySource
from pointillist.learners.cluster import local_cluster
from pointillist.learners.step import Step

WARM_UP = 2


def run(context: Context) -> Report:
    """Throughput for several batch sizes, with one process, one worker and two; the filters must be the same."""
    count = context.count(600, 16)
    table = Table(
        "Online learning on a local Dask cluster, workers of one thread",
        ["batch", "where", "images/s", "against one worker", "s/step", "encoding", "client", "kB/image", "filters"],
        note="encoding: what the client waits for; client: statistics, update, objective; the rest is Dask",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patches.npy"
        np.save(path, context.inputs.natural("train", count))
        for batch in (20, 100) if not context.quick else (4,):
            rates: dict[str, float] = {}
            first = None
            for workers in (0, 1, 2):
                found = _measure(context, NpySource(path), batch, workers)
                first = found["filters"] if first is None else first
                where = ("this process", "one worker", "two workers")[workers]
                rates[where] = found["rate"]
                ratio = found["rate"] / rates["one worker"] if "one worker" in rates else None
                same = "the same bits" if np.array_equal(found["filters"], first) else "DIFFERENT"
                times = [found[name] for name in ("step", "encoding", "client", "bytes")]
                table.add(batch, where, found["rate"], ratio, *times, same)
                context.say(f"batch {batch}, {where}: {found['rate']:.1f} images/s, {same}")
    return Report([table])


def _measure(context: Context, source: NpySource, batch: int, workers: int) -> dict[str, Any]:
    """One pass; medians over the steps after the first few."""
    model = pt.OnlineCSC(context.inputs.n_filters, FILTER_SIZE, PENALTY, batch_size=batch, random_state=0, n_jobs=1)
    with _watching() as (times, sizes):
        if workers:
            with local_cluster(workers) as client:
                client.wait_for_workers(workers)
                # Kernels are compiled or loaded by every worker before the clock starts.
                warm = pt.OnlineCSC(context.inputs.n_filters, FILTER_SIZE, PENALTY, batch_size=8)
                warm.fit(np.stack([source.read(i) for i in range(8)]), cluster=client)
                times.clear()
                model.fit(source, cluster=client)
        else:
            model.fit(source)
    steps = np.array(times[WARM_UP:])
    whole, client_side = np.median(steps[:, 0]), np.median(steps[:, 1])
    return {
        "rate": batch / whole,
        "step": whole,
        "client": client_side,
        "encoding": whole - client_side,
        "bytes": sizes[-1] / 1e3,
        "filters": model.filters_,
    }


@contextmanager
def _watching() -> Iterator[tuple[list[tuple[float, float]], list[float]]]:
    """Note how long steps take, in all and on the client, and how many bytes a signal brings back from the workers."""
    times: list[tuple[float, float]] = []
    sizes: list[float] = []
    plain = Step.learn

    def learn(step: Step, state: Any, codes: Any, counts: Any, begin: float) -> dict[str, Any]:
        now = time.perf_counter()
        info = plain(step, state, codes, counts, begin)
        end = time.perf_counter()
        times.append((end - begin, end - now))
        sizes.append(len(pickle.dumps(codes.coded, protocol=5)) / len(codes))
        return info

    with mock.patch.object(Step, "learn", learn):
        yield times, sizes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if Console().is_terminal else 160)
    context = Context(Inputs(arguments.quick), arguments.output, lambda text: console.print(f"  [dim]{text}[/dim]"))
    report = run(context)
    for table in report.tables:
        tables.show(table, console)
    record = {"facts": measure.facts(), **report.as_dict()}
    (arguments.output / "cluster.json").write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
