"""Learners followed along their learning time, and when they are as good as another; the judge is the reproduction's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.judging import Trajectory, follow, judge
from paper.timing import first_at_most

from pointillist.plot.page import Cell


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
    """Fit one of our learners for `limit` seconds, as its own history counts them, and judge its filters afterwards.

    Those of every `every`-th iteration are judged, in their order, until they reach the objective `target`. Given an
    objective `training`, the training images are judged too, and both must be reached. Rivals are judged when they have
    learned as well: a judge at work between the steps empties the caches that the next one finds. `fit` is for the learner's
    `fit`.
    """
    learned = follow(
        model, train, name, due=lambda step: step % every == 0, stop=lambda _, seconds: seconds > limit, **fit
    )
    found = Descent(name, [], [])
    for seconds, filters in zip(learned.seconds, learned.filters, strict=True):
        found.seconds.append(seconds)
        found.values.append(objective(held_out, filters))
        if np.isfinite(training):
            found.trained.append(objective(train, filters))
        if found.values[-1] <= target and min(found.trained[-1:], default=-np.inf) <= training:
            break
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
