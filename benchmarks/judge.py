"""Learners followed along their learning time, and when they are as good as another; the judge is the reproduction's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.report.blocks import Cell
from pointillist.reproduce.judging import Trajectory, follow, judge
from pointillist.reproduce.timing import first_at_most


@dataclass
class Descent:
    """Objectives of a learner's filters along its seconds of learning: of held-out and, if asked, of training images."""

    name: str
    seconds: list[float]
    values: list[float]
    trained: list[float] = field(default_factory=list)


def objective(images: NDArray, filters: NDArray) -> float:
    """Sum of the images' objectives for their best codes."""
    return judge(images, filters).objective


def valued(trajectory: Trajectory, held_out: NDArray, name: str) -> Descent:
    """What a learner has reached, by its objective on held-out images."""
    return Descent(name, trajectory.seconds, [one.objective for one in trajectory.judged(held_out)])


def descend(
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
) -> Descent:
    """Fit one of our learners, judging its filters after every `every` iterations.

    Learning stops after `limit` seconds (of learning, as the model's own history counts) or at the objective `target`. Given
    an objective `training`, the training images are judged too, and both must be reached. `fit` is for the learner's `fit`.
    """
    found = Descent(name, [], [])

    def value(trajectory: Trajectory) -> None:
        for filters in trajectory.filters[len(found.values) :]:
            found.values.append(objective(held_out, filters))
            if np.isfinite(training):
                found.trained.append(objective(train, filters))

    def stop(trajectory: Trajectory, seconds: float) -> bool:
        value(trajectory)
        reached = min(found.values[-1:], default=np.inf) <= target and min(found.trained[-1:], default=0.0) <= training
        return seconds > limit or reached

    trajectory = follow(model, train, name, due=lambda step: step % every == 0, stop=stop, **fit)
    value(trajectory)
    found.seconds = trajectory.seconds
    return found


def times_to(level: float, seconds: float, mine: Sequence[Descent], *, trained: bool = False) -> list[Cell]:
    """The end of a row: a rival's seconds to a level, ours of every learner, and how many times as fast our best is."""
    times = [first_at_most(one.seconds, one.trained if trained else one.values, level) for one in mine]
    fastest = min((t for t in times if t is not None), default=None)
    return [seconds, *times, fastest and seconds / fastest]


def curves(rivals: Sequence[Descent], mine: Sequence[Descent]) -> dict[str, tuple[list[float], list[float]]]:
    """Held-out objectives over seconds, for a chart."""
    named = {one.name: one for one in rivals} | {f"ours, {one.name}": one for one in mine}
    return {name: (one.seconds, one.values) for name, one in named.items()}
