"""The neutral judge: every dictionary, whoever learned it, is valued by one exact coder with the clock stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks.inputs import PENALTY

TOL = 1e-3


def objective(images: NDArray, filters: NDArray) -> float:
    """Sum of the images' objectives for their best codes, certified to a relative gap of 1e-3 (true excess about 1e-5)."""
    filters = filters / np.maximum(1.0, np.linalg.norm(filters, axis=(1, 2), keepdims=True))
    return float(np.sum(pt.encode(images, filters.astype(images.dtype), PENALTY, tol=TOL).objective))


def reconstruction_psnr(images: NDArray, filters: NDArray, penalty: float) -> tuple[float, float]:
    """Mean PSNR (dB, peak = range) of the reconstructions, and the share of codes that are not zero."""
    result = pt.encode(images, filters, penalty, tol=1e-3)
    fits = pt.decode(result.codes, filters)
    values = [pt.psnr(image, fit) for image, fit in zip(images, fits, strict=True)]
    return float(np.mean(values)), result.codes.nnz / (len(filters) * images.size)


@dataclass
class Trajectory:
    """Held-out objective along the learning time of one learner."""

    name: str
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    trained: list[float] = field(default_factory=list)
    filters: NDArray | None = None

    def add(self, seconds: float, filters: NDArray, images: NDArray) -> float:
        self.seconds.append(float(seconds))
        self.values.append(objective(images, filters))
        self.filters = np.array(filters)
        return self.values[-1]


def follow(
    model: Any,
    train: NDArray,
    held_out: NDArray,
    name: str,
    *,
    every: int = 1,
    limit: float = np.inf,
    target: float = -np.inf,
    training: float = np.inf,
    **fit: Any,
) -> Trajectory:
    """Fit one of our learners, judging its filters after every `every` iterations.

    Learning stops after `limit` seconds (of learning, as the model's own history counts) or at the objective `target`. Given
    an objective `training`, the training images are judged too, and both must be reached. `fit` is for the learner's `fit`.
    """
    trajectory = Trajectory(name)

    def judge(info: dict[str, Any]) -> bool:
        value, fitted = np.inf, True
        if info["iteration"] % every == 0:
            value = trajectory.add(info["seconds"], model.filters_, held_out)
            if np.isfinite(training):
                trajectory.trained.append(objective(train, model.filters_))
                fitted = trajectory.trained[-1] <= training
        return info["seconds"] > limit or (value <= target and fitted)

    model.fit(train, callbacks=(judge,), **fit)
    return trajectory
