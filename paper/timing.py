"""Wall times of work that is repeated, and what is read from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def repeated(work: Callable[[], Any], repeats: int) -> list[float]:
    """Wall times of several calls, after one call to warm up."""
    work()
    return [seconds(work) for _ in range(repeats)]


def shortest(work: Callable[[], Any], repeats: int) -> float:
    """The shortest of several wall times, after one call to warm up."""
    return min(repeated(work, repeats))


def first_at_most(times: Sequence[float], values: Sequence[float], level: float) -> float | None:
    """The first time whose value is at most `level`, None if there is none; nothing is interpolated."""
    return next((t for t, value in zip(times, values, strict=True) if value <= level), None)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of log cost over log size: cost ~ size^exponent."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
