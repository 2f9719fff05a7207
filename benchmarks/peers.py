"""SPORCO, run as well as we know how: planned multi-threaded FFTW, numexpr, float32, no statistics inside the clock.

Its problem is the circular one. What a solver returns is the sparse variable (Y of its ADMM), and that is what is valued:
the objective of its own statistics, at X, comes down far more slowly and would make it look worse than it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numexpr
import numpy as np
import sporco.fft as sporco_fft
from numpy.typing import NDArray
from sporco.admm import cbpdn as admm_cbpdn
from sporco.dictlrn import cbpdndl
from sporco.pgm import cbpdn as pgm_cbpdn

from benchmarks.inputs import PENALTY
from benchmarks.judge import Trajectory
from benchmarks.measure import in_turns, threads
from pointillist.reproduce import rivals
from pointillist.reproduce.rivals import FIXED, QUIET, as_ours, as_sporco


@dataclass(frozen=True)
class Coding:
    """A setting of SPORCO's coders."""

    name: str
    method: str = "admm"
    options: dict[str, Any] = field(default_factory=dict)

    def solver(self, images: NDArray, filters: NDArray, iterations: int, **options: Any) -> Any:
        """SPORCO's solver object for (n, H, W) images."""
        dictionary, stack = as_sporco(filters), as_sporco(images)
        kind = {"admm": admm_cbpdn.ConvBPDN, "pgm": pgm_cbpdn.ConvBPDN}[self.method]
        settings = {**QUIET, "MaxMainIter": iterations, **self.options, **options}
        if self.method == "pgm":
            # The exact Lipschitz constant, the largest step that surely converges.
            spectra = np.fft.rfft2(filters, s=images.shape[1:])
            settings["L"] = float(np.max(np.sum(np.abs(spectra) ** 2, axis=0)))
        return kind(dictionary, stack, PENALTY, kind.Options(settings), dimK=1)

    def encode(self, images: NDArray, filters: NDArray, iterations: int) -> NDArray:
        """The codes after so many iterations: what is timed."""
        solver = self.solver(images, filters, iterations)
        solver.solve()
        return solver.getcoef()


def use_threads(count: int) -> None:
    """How many threads SPORCO's transforms and array expressions take."""
    sporco_fft.pyfftw_threads = count
    numexpr.set_num_threads(count)


def choose_threads(images: NDArray, filters: NDArray, iterations: int = 10) -> int:
    """All threads or one, whichever codes these images faster: small transforms lose more by waiting than they gain."""
    if threads() == 1:
        return 1
    coding = Coding("trial", options={"rho": 10.0, **FIXED})

    def work(count: int) -> Callable[[], Any]:
        def code() -> None:
            use_threads(count)
            coding.encode(images, filters, iterations)

        code()
        return code

    times = in_turns({str(count): work(count) for count in (1, threads())}, 3)
    best = int(min(times, key=lambda count: min(times[count])))
    use_threads(best)
    return best


CODINGS = [
    Coding("ADMM, ρ = 5", options={"rho": 5.0, **FIXED}),
    Coding("ADMM, ρ = 7", options={"rho": 7.0, **FIXED}),
    Coding("ADMM, ρ = 10", options={"rho": 10.0, **FIXED}),
    Coding("ADMM, ρ = 20", options={"rho": 20.0, **FIXED}),
    Coding("ADMM, ρ = 50", options={"rho": 50.0, **FIXED}),
    Coding("ADMM, AutoRho", options={"rho": 10.0, "AutoRho": {"Enabled": True}}),
    Coding("PGM (FISTA)", method="pgm"),
]


@dataclass(frozen=True)
class Point:
    """Where a coder stands after some iterations: objective and relative duality gap of every image."""

    iteration: int
    seconds: float
    objective: NDArray
    gap: NDArray


def trace(
    coding: Coding,
    images: NDArray,
    filters: NDArray,
    *,
    iterations: int,
    every: int = 3,
    objective: NDArray | float = -np.inf,
    gap: float = 0.0,
) -> list[Point]:
    """Follow a coder, its clock stopped while it is valued, until every image reaches `objective` and `gap`."""
    points: list[Point] = []
    paused = 0.0

    def value(solver: Any) -> bool:
        nonlocal paused
        done = solver.k + 1
        if done % every and done != iterations:
            return False
        begin = time.perf_counter()
        objectives, gaps = _value(solver, solver.Y if coding.method == "admm" else solver.X)
        points.append(Point(done, begin - start - paused, objectives, gaps))
        paused += time.perf_counter() - begin
        return bool(np.all(objectives <= objective) or np.all(gaps <= gap))

    start = time.perf_counter()
    coding.solver(images, filters, iterations, Callback=value).solve()
    return points


def iterations_to(points: Sequence[Point], optimum: NDArray, excess: float) -> int | None:
    """Iterations until every image lies within `excess` of its optimum, interpolated between the points; None if never."""
    worst = [float(np.max(point.objective / optimum - 1)) for point in points]
    for i, (point, value) in enumerate(zip(points, worst, strict=True)):
        if value <= excess:
            if i == 0 or value <= 0:
                return point.iteration
            slope = (np.log(value) - np.log(worst[i - 1])) / (point.iteration - points[i - 1].iteration)
            return int(np.ceil(point.iteration + (np.log(excess) - np.log(value)) / slope))
    return None


def _value(solver: Any, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Objective and relative duality gap of every image of SPORCO's circular problem."""
    space, axes = solver.cri.Nv, solver.cri.axisN
    misfit = solver.Sf - np.sum(solver.Df * sporco_fft.rfftn(codes, space, axes), axis=-1, keepdims=True)
    correlation = sporco_fft.irfftn(np.conj(solver.Df) * misfit, space, axes)
    residual = sporco_fft.irfftn(misfit, space, axes).astype(np.float64)
    n_images = residual.size // int(np.prod(space))
    residual = residual.reshape(-1, n_images)
    signal = np.asarray(solver.S, np.float64).reshape(-1, n_images)
    steepest = np.max(np.abs(correlation).reshape(-1, n_images, correlation.shape[-1]), axis=(0, 2))
    price = PENALTY * np.sum(np.abs(codes), axis=(0, 1, 2, 4), dtype=np.float64)
    objective = 0.5 * np.sum(residual**2, axis=0) + price
    scale = np.minimum(1.0, PENALTY / steepest)
    dual = scale * np.sum(residual * signal, axis=0) - 0.5 * scale**2 * np.sum(residual**2, axis=0)
    return objective, (objective - dual) / objective


ONLINE = {"tuned": rivals.TUNED, "its default steps": rivals.DEFAULT}


def learn_online(setting: str, train: NDArray, start: NDArray, held_out: NDArray, *, passes: int) -> Trajectory:
    """SPORCO's online learner, valued after every pass over the images."""
    learner = rivals.sporco_online(start, ONLINE[setting])
    trajectory = Trajectory(f"SPORCO {setting}")
    for number in range(passes):
        for i in np.random.default_rng(number).permutation(len(train)):
            learner.solve(train[i])
        elapsed = learner.timer.elapsed("solve_wo_eval")
        trajectory.add(elapsed, as_ours(learner.getdict()), held_out)
    return trajectory


@dataclass(frozen=True)
class BatchLearning:
    """A setting of SPORCO's batch learners.

    Only consensus was tuned, over three pairs of ρ (10, 20, 50) and σ (of the dictionary; 1, 10); the others take its best.
    """

    name: str
    method: str
    rho: float
    sigma: float | None = None


BATCH = [
    BatchLearning("consensus", "cns", 50.0, 10.0),
    BatchLearning("proximal gradient", "pgm", 50.0),
]


class BatchLearner:
    """One of SPORCO's batch learners, which can be carried on."""

    def __init__(self, setting: BatchLearning, train: NDArray, start: NDArray) -> None:
        self.setting = setting
        update: dict[str, Any] = {"FastSolve": True, "DataType": np.float32}
        update |= {"Backtrack": None, "L": 1000.0} if setting.sigma is None else {"rho": setting.sigma, "AutoRho": _OFF}
        settings = {
            "AccurateDFid": False,
            "MaxMainIter": 10**6,
            "CBPDN": {"FastSolve": True, "DataType": np.float32, "rho": setting.rho, **FIXED},
            "CCMOD": update,
        }
        how = {"xmethod": "admm", "dmethod": setting.method}
        options = cbpdndl.ConvBPDNDictLearn.Options(settings, **how)
        options.update({"Callback": self._callback})
        self.learner = cbpdndl.ConvBPDNDictLearn(as_sporco(start), as_sporco(train), PENALTY, options, dimK=1, **how)
        self.snapshots: list[tuple[float, NDArray]] = []
        self._until = 0.0

    def run(self, until: float) -> None:
        """Learn on until the learner's clock, which stands still while it evaluates, shows `until` seconds."""
        self._until = until
        self.learner.solve()

    def _callback(self, learner: Any) -> bool:
        seconds = learner.timer.elapsed("solve_wo_eval")
        self.snapshots.append((seconds, as_ours(learner.getdict())))
        return seconds >= self._until

    def at(self, seconds: float) -> tuple[float, NDArray]:
        """The first snapshot at or after a time, or the last there is."""
        return next((s for s in self.snapshots if s[0] >= seconds), self.snapshots[-1])


_OFF = {"Enabled": False}
