"""How learning on a cluster would scale to 1,000 workers: a small discrete simulation of one step after the other.

    python scripts/simulate_cluster.py [--filters 100] [--gigabits 10] [--batch-per-worker 20] ...

Workers take pieces as they become free; the scheduler hands tasks out one at a time; what comes back queues for the
client's link; the client adds statistics and updates the filters. Large batches are summed in a tree by the workers, by the
library's own rule. Defaults are what benchmarks/cluster.py measured; docs/cluster.md explains the terms.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

WORKERS = (1, 2, 4, 10, 30, 100, 300, 1000)


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes."""

    filters: int
    size: int
    encode: float  # seconds for one image on one thread
    spread: float  # standard deviation of its logarithm
    add: float  # seconds for the statistics of one image
    task: float  # seconds of the scheduler for one task
    returned: float  # bytes that come back for one image
    bandwidth: float  # bytes a second of every link
    latency: float  # seconds
    memory: float  # bytes a second at which statistics are added

    @property
    def statistics(self) -> float:
        return 8 * self.filters * (self.filters + 1) / 2 * (2 * self.size - 1) ** 2

    @property
    def update(self) -> float:
        """One pass over the filters reads the statistics once."""
        return self.statistics / 1.7e9

    @property
    def broadcast(self) -> float:
        return 4 * self.filters * self.size**2


@dataclass
class Step:
    """Where the time of one step went, in seconds."""

    broadcast: float
    encoding: float  # until the last code is known
    network: float  # from then until all is with the client
    client: float

    @property
    def total(self) -> float:
        return self.broadcast + self.encoding + self.network + self.client

    @property
    def limit(self) -> str:
        parts = {"encoding": self.encoding, "network": self.network + self.broadcast, "client": self.client}
        return max(parts, key=lambda name: parts[name])


def piece_size(costs: Costs, batch: int) -> int | None:
    """The library's rule: None where codes come back, else the size of a piece whose sums do."""
    if batch * costs.returned < max(costs.statistics, 2**26):
        return None
    return ceil(max(costs.statistics / (32 * costs.returned), batch / 2048))


def simulate(costs: Costs, workers: int, batch: int, rng: np.random.Generator) -> Step:
    """One step."""
    hops = ceil(log2(workers + 1))
    broadcast = hops * (costs.latency + costs.broadcast / costs.bandwidth)
    summed = piece_size(costs, batch)
    pieces = min(batch, 2 * workers) if summed is None else ceil(batch / summed)
    images = np.diff(np.linspace(0, batch, pieces + 1).astype(int))
    each = costs.encode + (0 if summed is None else costs.add)
    seconds = [float(np.sum(rng.lognormal(-0.5 * costs.spread**2, costs.spread, n))) * each for n in images]
    ends = _schedule(seconds, workers, costs.task)
    encoding = max(ends)
    if summed is None:
        arrived = _queue(ends, [n * costs.returned / costs.bandwidth + costs.latency for n in images])
        return Step(broadcast, encoding, arrived - encoding, batch * costs.add + costs.update)
    levels = ceil(log2(pieces)) if pieces > 1 else 0
    moved = costs.latency + costs.task + costs.statistics / costs.bandwidth
    network = levels * (moved + costs.statistics / costs.memory) + moved
    # A second round: the objective of the codes for the new filters.
    return Step(2 * broadcast + pieces * costs.task, encoding, network, costs.update + costs.statistics / costs.memory)


def _schedule(seconds: list[float], workers: int, task: float) -> list[float]:
    """When each piece is done: handed out one after the other, to whoever is free first."""
    free = [0.0] * min(workers, len(seconds))
    heapq.heapify(free)
    ends = []
    for i, length in enumerate(seconds):
        begin = max(heapq.heappop(free), (i + 1) * task)
        ends.append(begin + length)
        heapq.heappush(free, ends[-1])
    return ends


def _queue(ready: list[float], lengths: list[float]) -> float:
    """When the last of several transfers over one link ends."""
    clock = 0.0
    for begin, length in sorted(zip(ready, lengths, strict=True)):
        clock = max(clock, begin) + length
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filters", type=int, default=100)
    parser.add_argument("--size", type=int, default=11)
    parser.add_argument("--encode", type=float, default=0.024, help="seconds for an image on one thread")
    parser.add_argument("--add", type=float, default=0.005, help="seconds of the client for an image")
    parser.add_argument("--kilobytes", type=float, default=120, help="that come back for an image")
    parser.add_argument("--gigabits", type=float, default=10, help="of every link")
    parser.add_argument("--task", type=float, default=0.0005, help="seconds of the scheduler for a task")
    parser.add_argument("--batch-per-worker", type=int, nargs="+", default=[4, 20, 100])
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    costs = Costs(
        given.filters, given.size, given.encode, 0.25, given.add, given.task, 1e3 * given.kilobytes,
        given.gigabits * 1e9 / 8, 2e-4, 4e9,
    )  # fmt: skip
    print(
        f"statistics {costs.statistics / 1e6:.0f} MB, filters {costs.broadcast / 1e3:.0f} kB, one step of one worker:"
    )
    print(f"{'workers':>8} {'batch':>8} {'back as':>8} {'s/step':>8} {'images/s':>9} {'speed-up':>9} {'limit':>9}")
    one = 1 / (costs.encode + costs.add)
    for per_worker in given.batch_per_worker:
        for workers in WORKERS:
            rng = np.random.default_rng(0)
            batch = per_worker * workers
            steps = [simulate(costs, workers, batch, rng) for _ in range(given.steps)]
            total = float(np.mean([step.total for step in steps]))
            back = "codes" if piece_size(costs, batch) is None else "sums"
            rate = batch / total
            limit = max({step.limit for step in steps}, key=[step.limit for step in steps].count)
            print(f"{workers:8d} {batch:8d} {back:>8} {total:8.2f} {rate:9.0f} {rate / one:9.1f} {limit:>9}")
        print()


if __name__ == "__main__":
    main()
