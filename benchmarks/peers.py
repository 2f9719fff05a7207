"""SPORCO, run as well as we know how: planned multi-threaded FFTW, numexpr, float32, no statistics inside the clock.

Its problem is the circular one. What a solver returns is the sparse variable (Y of its ADMM), and that is what is valued:
the objective of its own statistics, at X, comes down far more slowly and would make it look worse than it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.rivals import FIXED, QUIET, as_sporco

from benchmarks.inputs import PENALTY
from paper import rivals

ONLINE = {"tuned": rivals.TUNED, "its default steps": rivals.DEFAULT}
"""Settings of the online learner, on the CPU and in the CuPy port."""


@dataclass(frozen=True)
class Coding:
    """A setting of SPORCO's coders."""

    name: str
    method: str = "admm"
    options: dict[str, Any] = field(default_factory=dict)

    def solver(
        self, images: NDArray, filters: NDArray, iterations: int, *, penalty: float = PENALTY, **options: Any
    ) -> Any:
        """SPORCO's solver object for (n, *space) images."""
        settings = {"MaxMainIter": iterations, **self.options, **options}
        if self.method == "pgm":
            # The exact Lipschitz constant, the largest step that surely converges.
            spectra = np.fft.rfftn(filters, images.shape[1:], range(1, images.ndim))
            settings["L"] = float(np.max(np.sum(np.abs(spectra) ** 2, axis=0)))
        kind = import_module(f"sporco.{self.method}.cbpdn").ConvBPDN
        chosen = kind.Options({**QUIET, **settings})
        return kind(as_sporco(filters), as_sporco(images), penalty, chosen, dimK=1, dimN=images.ndim - 1)

    def encode(self, images: NDArray, filters: NDArray, iterations: int, *, penalty: float = PENALTY) -> NDArray:
        """The codes after so many iterations: what is timed."""
        solver = self.solver(images, filters, iterations, penalty=penalty)
        solver.solve()
        return solver.getcoef()


CODINGS = [
    *(Coding(f"ADMM, ρ = {rho:g}", options={"rho": rho, **FIXED}) for rho in (5.0, 7.0, 10.0, 20.0, 50.0)),
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
    import sporco.fft as sporco_fft

    space, axes = solver.cri.Nv, solver.cri.axisN
    misfit = solver.Sf - np.sum(solver.Df * sporco_fft.rfftn(codes, space, axes), axis=-1, keepdims=True)
    correlation = sporco_fft.irfftn(np.conj(solver.Df) * misfit, space, axes)
    residual = sporco_fft.irfftn(misfit, space, axes).astype(np.float64)
    n_images = residual.size // int(np.prod(space))
    residual = residual.reshape(-1, n_images)
    signal = np.asarray(solver.S, np.float64).reshape(-1, n_images)
    steepest = np.max(np.abs(correlation).reshape(-1, n_images, correlation.shape[-1]), axis=(0, 2))
    penalty = float(solver.lmbda)
    price = penalty * np.sum(np.abs(codes), axis=(0, 1, 2, 4), dtype=np.float64)
    objective = 0.5 * np.sum(residual**2, axis=0) + price
    scale = np.minimum(1.0, penalty / steepest)
    dual = scale * np.sum(residual * signal, axis=0) - 0.5 * scale**2 * np.sum(residual**2, axis=0)
    return objective, (objective - dual) / objective
