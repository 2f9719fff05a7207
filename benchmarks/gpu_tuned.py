"""SPORCO's CuPy port at its best for one problem: the ρ that needs the fewest iterations, in the batch that is the quickest.

Its codes are judged on the device, in float64, while no clock is running. Only `Port.on_device` knows CuPy: with another
port, the same functions run SPORCO itself on NumPy's arrays, which is how they are tested where there is no device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper.rivals import FIXED, QUIET
from paper.timing import seconds

from benchmarks.reach import EXCESS
from benchmarks.sporco_cupy import PORT
from benchmarks.tuned import SHARES, quickest

LIMIT = 600
"""Iterations at most."""
FEW = 8
"""Images that ρ is chosen with, as one batch; the iterations are counted with all images."""
COARSE, FINE = 25, 100
"""How finely iterations are told apart: to one part in 25 while ρ is chosen, and in 100 when they are counted."""
BATCHES = (1000, 4000, 16000)
"""Maps of codes (images times filters) of the batches that are tried: 10, 40 and 160 images with 100 filters."""
PROBE = 20
"""Iterations that batches are compared by."""
GAIN = 0.98
"""Of the time per image of a batch, what a larger one must fall below to be worth its own run."""
LONG = 5.0
"""Seconds from which on a run is timed twice, not three times."""
_ARRAYS = 20
"""Arrays of the size of its codes that its iteration needs at once, about: its own, and those that CuPy makes on the way."""


@dataclass(frozen=True)
class Port:
    """SPORCO with the arrays that it takes."""

    module: Any
    """CuPy, or NumPy in its stead."""
    package: str
    wait: Callable[[], Any]
    """Returns when the device has done what it was told to."""
    free: Callable[[], float]
    """Bytes that arrays may take."""

    @classmethod
    def on_device(cls) -> Port:
        """The CuPy port on the current device."""
        cupy = import_module("cupy")
        pool = cupy.get_default_memory_pool()
        device = cupy.cuda.Device()
        return cls(cupy, PORT, device.synchronize, lambda: device.mem_info[0] + pool.free_bytes())

    def moved(self, stack: NDArray, dtype: Any = np.float32) -> Any:
        """(n, H, W) on the device as SPORCO orders it, (H, W, n)."""
        return self.module.asarray(np.ascontiguousarray(np.moveaxis(stack, 0, -1), dtype))

    def solver(self, images: Any, filters: Any, penalty: float, rho: float, iterations: int, **options: Any) -> Any:
        """Its coder of several images in one batch, both arrays moved before; nothing is reported while it runs."""
        kind = import_module(f"{self.package}.admm.cbpdn").ConvBPDN
        settings = {**QUIET, **FIXED, "rho": rho, "MaxMainIter": iterations, **options}
        return kind(filters, images, penalty, kind.Options(settings), dimK=1)


@dataclass(frozen=True)
class Problem:
    """Images (n, H, W) whose circular optima are known."""

    images: NDArray
    filters: NDArray
    penalty: float
    optimum: NDArray

    @property
    def few(self) -> Problem:
        """The same with a few of the images, from all over."""
        some = np.linspace(0, len(self.images) - 1, min(FEW, len(self.images))).astype(int)
        return replace(self, images=self.images[some], optimum=self.optimum[some])


class Best(NamedTuple):
    """The ρ that brings the mean excess down in the fewest iterations; `reached` is false where these do not suffice."""

    rho: float
    iterations: int
    reached: bool


class Rate(NamedTuple):
    """Images a second, in batches of so many."""

    images: float
    batch: int


def tune(port: Port, problem: Problem, limit: int = LIMIT, shares: Sequence[float] = SHARES) -> Best:
    """Choose ρ with a few images, then count the iterations that all of them need on average."""
    usual, few = 50 * problem.penalty + 1, problem.few

    def needed(rho: float, most: int) -> int | None:
        return iterations_to(port, few, rho, most, COARSE)

    best, _ = quickest(needed, usual, limit, shares)
    if best is None:
        return Best(shares[0] * usual, limit, False)
    count = iterations_to(port, problem, best[0], limit, FINE)
    return Best(best[0], count or limit, count is not None)


def iterations_to(port: Port, problem: Problem, rho: float, limit: int, resolution: int) -> int | None:
    """Iterations until the mean relative excess of its sparse variable is small enough; None if it is not within the limit.

    Codes are judged so often that the count is too large by at most one part in `resolution`.
    """
    if limit < 1:
        return None
    excess = judge_of(port, problem)
    found: list[int] = []

    def look(solver: Any) -> bool:
        done = solver.k + 1
        due = done == limit or done % max(1, done // resolution) == 0
        if due and excess(solver.Y) <= EXCESS:
            found.append(done)
        return bool(found)

    images, filters = port.moved(problem.images), port.moved(problem.filters)
    port.solver(images, filters, problem.penalty, rho, limit, Callback=look).solve()
    return found[0] if found else None


def judge_of(port: Port, problem: Problem) -> Callable[[Any], float]:
    """The mean relative excess, as a function of codes (H, W, 1, n, K) that live where the port's arrays do."""
    module = port.module
    signals, best = port.moved(problem.images, np.float64), module.asarray(problem.optimum)
    shape = problem.images.shape[1:]
    spectra = module.fft.rfft2(port.moved(problem.filters, np.float64), s=shape, axes=(0, 1))[:, :, None]

    def excess(codes: Any) -> float:
        precise = codes[:, :, 0].astype(np.float64)
        transformed = module.fft.rfft2(precise, axes=(0, 1)) * spectra
        fits = module.fft.irfft2(transformed.sum(axis=-1), s=shape, axes=(0, 1))
        losses = 0.5 * ((signals - fits) ** 2).sum(axis=(0, 1))
        objectives = losses + problem.penalty * module.abs(precise).sum(axis=(0, 1, 3))
        return float((objectives / best - 1).mean())

    return excess


def rate(port: Port, problem: Problem, best: Best) -> Rate:
    """Images a second with the best setting: the fastest of several runs, in the quickest of several batches.

    Images and filters are on the device before the clock starts, and codes stay there; making the solver is part of a run.
    """
    runs = {count: _run(port, problem, best.rho, count) for count in batches(port, problem)}
    batch = smallest({count: _probed(run) / count for count, run in runs.items()})
    return Rate(batch / min(times(lambda: runs[batch](best.iterations))), batch)


def batches(port: Port, problem: Problem) -> list[int]:
    """Numbers of images that are tried in one batch: what the device has room for, one at least."""
    n_filters = len(problem.filters)
    room = int(port.free() // (_ARRAYS * 4 * n_filters * problem.images[0].size))
    return sorted({max(1, min(maps // n_filters, room)) for maps in BATCHES})


def smallest(times_each: dict[int, float]) -> int:
    """The smallest batch that no larger one is clearly quicker than, by seconds an image of batches in ascending order."""
    chosen, *others = times_each
    for count in others:
        if times_each[count] < GAIN * times_each[chosen]:
            chosen = count
    return chosen


def times(work: Callable[[], Any]) -> list[float]:
    """Wall times of three runs, of two where they take long; what is compiled at a first run is so already."""
    first = seconds(work)
    return [first, *(seconds(work) for _ in range(1 if first > LONG else 2))]


def _probed(run: Callable[[int], None]) -> float:
    run(2)  # plans the transforms and takes the memory
    return min(times(lambda: run(PROBE)))


def _run(port: Port, problem: Problem, rho: float, count: int) -> Callable[[int], None]:
    """A run of so many iterations on as many images, which are on the device before."""
    images = port.moved(np.resize(problem.images, (count, *problem.images.shape[1:])))
    filters = port.moved(problem.filters)

    def run(iterations: int) -> None:
        port.solver(images, filters, problem.penalty, rho, iterations).solve()
        port.wait()

    return run
