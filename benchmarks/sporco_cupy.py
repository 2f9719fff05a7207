"""SPORCO's CuPy port on the same device, where it can be imported; figures measured before where it cannot.

Its problem is the circular one. Images are coded in one batch, filters and images are on the device before the clock
starts and codes stay there, nothing is reported inside the clock, and the fastest of three runs counts.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.timing import shortest

from benchmarks.inputs import PENALTY, Inputs
from benchmarks.peers import ONLINE
from paper import rivals
from pointillist.arrays import to_host

ITERATIONS = 100
BEFORE = {"encode 100": 68.0, "encode 400": 17.0}
"""Images a second on an H200, measured by hand: 100 ADMM iterations."""

PORT = "sporco.cupy"


def missing() -> str | None:
    """Why SPORCO cannot be run on the device, None if it can."""
    try:
        enabled = importlib.import_module(PORT).cupy_enabled()
    except ImportError as error:
        return f"sporco.cupy cannot be imported ({error})"
    return None if enabled else "sporco.cupy finds no device"


def encoding_rate(images: NDArray, filters: NDArray) -> float:
    """Images coded in a second with ρ = 10, its best of those tried."""
    cupy, there = importlib.import_module("cupy"), _moved(images, filters)

    def work() -> None:
        _code(*there)
        cupy.cuda.Device().synchronize()

    return len(images) / shortest(work, 3)


def excess(images: NDArray, filters: NDArray) -> float:
    """How far its codes are from those after thirty times as many iterations, relative, on average over the images."""
    first, last = (_objectives(images, filters, count) for count in (ITERATIONS, 30 * ITERATIONS))
    return float(np.mean(first / last - 1))


def _objectives(images: NDArray, filters: NDArray, iterations: int) -> NDArray:
    """Objectives of its circular problem, in float64."""
    codes = to_host(_code(*_moved(images, filters), iterations).getcoef()).astype(np.float64)
    codes = np.moveaxis(codes[:, :, 0], (2, 3), (0, 1))
    spectra = np.fft.fft2(filters.astype(np.float64), s=images.shape[1:])
    fits = np.fft.ifft2(np.sum(np.fft.fft2(codes) * spectra, axis=1)).real
    losses = 0.5 * np.sum((images - fits) ** 2, axis=(1, 2))
    return losses + PENALTY * np.sum(np.abs(codes), axis=(1, 2, 3))


def _moved(*arrays: NDArray) -> list[Any]:
    """Arrays on the device, their first axis last."""
    cupy = importlib.import_module("cupy")
    return [cupy.asarray(np.ascontiguousarray(np.moveaxis(array, 0, -1))) for array in arrays]


def _code(images: Any, filters: Any, iterations: int = ITERATIONS) -> Any:
    settings = {**rivals.FIXED, "MaxMainIter": iterations, "rho": 10.0}
    solver = rivals.coder(filters, images, settings, package=PORT)
    solver.solve()
    return solver


def online_rate(images: NDArray, start: NDArray, setting: str) -> float:
    """Images that it learns from in a second, one at a time, moved there one by one."""
    cupy = importlib.import_module("cupy")
    learner = rivals.online_learner(*_moved(start), ONLINE[setting], package=PORT)
    learner.solve(cupy.asarray(images[0]))
    begin = time.perf_counter()
    for image in images[1:]:
        learner.solve(cupy.asarray(image))
    cupy.cuda.Device().synchronize()
    return (len(images) - 1) / (time.perf_counter() - begin)


def rival(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """SPORCO's CuPy port on the same images."""
    reason = missing()
    if reason is not None:
        return [
            {"what": what, "images/s": rate, "excess": None, "source": f"measured before: {reason}"}
            for what, rate in BEFORE.items()
        ]
    several = np.concatenate([inputs.train, inputs.unseen])
    rows: list[dict[str, Any]] = []
    for filters in (inputs.filters, inputs.overcomplete):
        rate = encoding_rate(np.resize(several, (8 if quick else 40, *several.shape[1:])), filters)
        off = excess(several[:2], filters)
        rows.append({"what": f"encode {len(filters)}", "images/s": rate, "excess": off, "source": "this run"})
    stream = inputs.patches("train", 10 if quick else 60)
    for setting, steps in ONLINE.items():
        rate = online_rate(stream, inputs.start(100), setting)
        what = f"learn online 100, {setting}, {steps.iterations} iterations an image"
        rows.append({"what": what, "images/s": rate, "excess": None, "source": "this run"})
    return rows
