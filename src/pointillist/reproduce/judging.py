"""The neutral judge: every dictionary, whoever learned it, is valued by one exact coder with all clocks stopped."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.model.metrics import psnr
from pointillist.reproduce.inputs import PENALTY
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import encode

TOL = 1e-3
LARGE = 0.1
"""The paper counts codes from this size on."""


@dataclass(frozen=True)
class Judgement:
    """Objective of all images together, their mean PSNR, and for each image its PSNR and the codes of at least 0.1."""

    objective: float
    psnr: float
    each_psnr: list[float]
    each_large: list[int]


def judge(images: Sequence[NDArray] | NDArray, filters: NDArray, penalty: float = PENALTY) -> Judgement:
    """Code images with a dictionary, certified to a relative gap of 1e-3 (true excess about 1e-5)."""
    norms = np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    result = exact(images, (filters / np.maximum(1.0, norms)).astype(np.float32), penalty)
    each = [psnr(image, image - left[0]) for image, left in zip(images, result.residuals, strict=True)]
    large = [int(np.sum(np.abs(values) >= LARGE)) for values in result.codes.values]
    return Judgement(float(np.sum(result.objective)), float(np.mean(each)), each, large)


def exact(images: Sequence[NDArray] | NDArray, filters: NDArray, penalty: float, **options: Any) -> Result:
    """`encode` to the judge's tolerance; float32 may stall a little above it, which changes no digit shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return encode(images, filters, penalty, tol=TOL, **options)


@dataclass
class Path:
    """What a learner reached, and when: seconds of learning, signals seen, and its filters then."""

    name: str
    seconds: list[float] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    filters: list[NDArray] = field(default_factory=list)

    def add(self, seconds: float, seen: int, filters: NDArray) -> None:
        self.seconds.append(float(seconds))
        self.seen.append(int(seen))
        self.filters.append(np.array(filters, np.float32))

    def judged(self, images: Sequence[NDArray] | NDArray) -> list[Judgement]:
        """Every kept dictionary, valued on `images`."""
        return [judge(images, filters) for filters in self.filters]


def follow(
    model: Any, images: NDArray, name: str, *, due: Callable[[int], bool] = lambda step: True, **fit: Any
) -> Path:
    """Fit one of our learners and keep its filters after every step that is `due`, and after the last."""
    path = Path(name)
    last: list[dict[str, Any]] = []

    def keep(info: dict[str, Any]) -> bool:
        last[:] = [info]
        if due(info["iteration"]):
            path.add(info["seconds"], info["n_seen"], model.filters_)
        return False

    model.fit(images, callbacks=(keep,), **fit)
    if path.seen[-1:] != [last[0]["n_seen"]]:
        path.add(last[0]["seconds"], last[0]["n_seen"], model.filters_)
    return path


def powers_of_two(step: int) -> bool:
    """The paper examines filters at steps 1, 2, 4, 8 and so on."""
    return step & (step - 1) == 0


def first_at_most(times: Sequence[float], values: Sequence[float], level: float) -> float | None:
    """The first time whose value is at most `level`, None if there is none; nothing is interpolated."""
    return next((t for t, value in zip(times, values, strict=True) if value <= level), None)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log cost over log size: cost ~ size^exponent."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def shortest(work: Callable[[], Any], repeats: int) -> float:
    """The shortest of several wall times, after one call to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)
