"""The neutral judge: every dictionary, whoever learned it, is valued by one exact coder with all clocks stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from paper.inputs import PENALTY
from pointillist.metrics import psnr
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import encode

TOL = 1e-3
LARGE = 0.1
"""The paper counts codes from this size on."""

Images = Sequence[NDArray] | NDArray
Due = Callable[[int], bool]
"""True where the filters are kept after the step of that number."""


@dataclass(frozen=True)
class Judgement:
    """Worth of a dictionary on some images."""

    objective: float  # of all images together
    psnr: float  # their mean, in dB
    each_psnr: list[float]
    each_large: list[int]  # codes of at least 0.1 of each image
    nonzeros: int = 0  # codes of all images together

    @property
    def large(self) -> int:
        """Codes of at least 0.1, of all images together."""
        return sum(self.each_large)


def judge(images: Images, filters: NDArray, penalty: float = PENALTY, **options: Any) -> Judgement:
    """Code images with a dictionary, certified to a relative gap of 1e-3 (true excess about 1e-5)."""
    norms = np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    result = exact(images, (filters / np.maximum(1.0, norms)).astype(np.float32), penalty, **options)
    each = [psnr(image, image - left[0]) for image, left in zip(images, result.residuals, strict=True)]
    large = [int(np.sum(np.abs(values) >= LARGE)) for values in result.codes.values]
    return Judgement(float(np.sum(result.objective)), float(np.mean(each)), each, large, result.codes.nnz)


def exact(images: Images, filters: NDArray, penalty: float, **options: Any) -> Result:
    """`encode` to the judge's tolerance; float32 may stall a little above it, which changes no digit shown."""
    return quiet_encode(images, filters, penalty, tol=TOL, **options)


def quiet_encode(images: Images, filters: NDArray, penalty: float = PENALTY, **options: Any) -> Result:
    """`encode` without a warning where it stops before it converges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return encode(images, filters, penalty, **options)


@dataclass
class Trajectory:
    """Progress of a learner: seconds of learning, signals seen, and its filters then."""

    name: str
    seconds: list[float] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    filters: list[NDArray] = field(default_factory=list)

    def add(self, seconds: float, seen: int, filters: NDArray) -> None:
        """Keep a copy of the filters."""
        self.seconds.append(float(seconds))
        self.seen.append(int(seen))
        self.filters.append(np.array(filters, np.float32))

    def judged(self, images: Images) -> list[Judgement]:
        """Every kept dictionary, valued on `images`."""
        return [judge(images, filters) for filters in self.filters]


def follow(
    model: Any,
    images: NDArray,
    name: str,
    *,
    due: Due = lambda step: True,
    stop: Callable[[Trajectory, float], bool] = lambda trajectory, seconds: False,
    **fit: Any,
) -> Trajectory:
    """Fit one of our learners and keep its filters after every step that is `due`, and after the last.

    `stop` is asked after every step, with what was kept so far and the seconds of learning; learning ends when it is true.
    `fit` is what else the learner's `fit` is given.
    """
    trajectory = Trajectory(name)
    compile_step(model, images)

    def keep(info: dict[str, Any]) -> bool:
        if due(info["iteration"]):
            trajectory.add(info["seconds"], info["n_seen"], model.filters_)
        return stop(trajectory, info["seconds"])

    model.fit(images, callbacks=(keep,), **fit)
    last = model.history_[-1]
    if trajectory.seen[-1:] != [last["n_seen"]]:
        trajectory.add(last["seconds"], last["n_seen"], model.filters_)
    return trajectory


def compile_step(model: Any, images: NDArray) -> None:
    """Let a copy of a learner make one step, so that the first step that is timed finds its kernels compiled."""
    clone(model).fit(images[:2], callbacks=(lambda info: True,))


def drawn(n_images: int, passes: int) -> list[int]:
    """The image of every step of online learning: all of them in random order, anew in every pass."""
    return [int(i) for number in range(passes) for i in np.random.default_rng(number).permutation(n_images)]


def powers_of_two(step: int) -> bool:
    """The paper examines filters at steps 1, 2, 4, 8 and so on."""
    return step & (step - 1) == 0
