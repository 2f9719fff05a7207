"""Two workers against one on this machine, and what a step costs: ``python -m benchmarks.cluster [--quick]``.

Every worker is a process with one thread that reads its own part of a file; the client has no thread to spare on two cores,
as it would on a cluster. The figures feed the cost model in docs/cluster.md.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.inputs import FILTER_SIZE, PENALTY
from benchmarks.measure import waiting
from benchmarks.tables import Table
from pointillist.data.sources import NpySource
from pointillist.learners.cluster import local_cluster

WARM_UP = 2


def measured(context: Context) -> Table:
    """Throughput for several batch sizes, with one process, one worker and two; the filters must be the same."""
    table = Table(
        "Online learning on a local Dask cluster, workers of one thread",
        ["batch", "where", "images/s", "against one worker", "s/step", "waiting", "client", "kB/image", "filters"],
        note="waiting: for codes of the workers; client: all else, which is statistics, update, objective and Dask; "
        "kB/image: signal, codes and residual, pickled",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patches.npy"
        np.save(path, context.inputs.patches("train", context.pick(600, 16)))
        for batch in context.pick((20, 100), (4,)):
            rates: dict[str, float] = {}
            first = None
            for workers, where in enumerate(("this process", "one worker", "two workers")):
                found = _pass(context, NpySource(path), batch, workers)
                first = found["filters"] if first is None else first
                rates[where] = found["rate"]
                ratio = found["rate"] / rates["one worker"] if "one worker" in rates else None
                same = "the same bits" if np.array_equal(found["filters"], first) else "DIFFERENT"
                times = [found[name] for name in ("step", "waiting", "client", "kilobytes")]
                table.add(batch, where, found["rate"], ratio, *times, same)
                context.say(f"batch {batch}, {where}: {found['rate']:.1f} images/s, {same}")
    return table


def _pass(context: Context, source: NpySource, batch: int, workers: int) -> dict[str, Any]:
    """One pass over the images: the median step after the first few, and what the client did in a step."""
    count, ends = context.inputs.scale.n_filters, [time.perf_counter()]
    fit = {"callbacks": [lambda info: ends.append(time.perf_counter())]}
    model = pt.OnlineCSC(count, FILTER_SIZE, PENALTY, batch_size=batch, random_state=0, n_jobs=1)
    some, waited = np.stack([source.read(i) for i in range(8)]), None
    if workers:
        with local_cluster(workers) as client:
            client.wait_for_workers(workers)
            # Kernels are compiled or loaded by every worker before the clock starts.
            pt.OnlineCSC(count, FILTER_SIZE, PENALTY, batch_size=8).fit(some, cluster=client)
            waited = waiting(lambda: model.fit(source, cluster=client, **fit)) / model.n_iter_
    else:
        model.fit(source, **fit)
    step = float(np.median(np.diff(ends)[WARM_UP:]))
    client_side = None if waited is None else step - waited
    answer = some, pt.encode(some, model.filters_, PENALTY, tol=0.1)
    kilobytes = len(pickle.dumps(answer, protocol=5)) / len(some) / 1e3
    times = {"step": step, "waiting": waited, "client": client_side}
    return {"rate": batch / step, **times, "kilobytes": kilobytes, "filters": model.filters_}


def main() -> None:
    context = Context.of(parser("benchmarks.cluster", __doc__).parse_args())
    context.write("cluster", [measured(context)])


if __name__ == "__main__":
    main()
