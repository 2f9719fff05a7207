"""Random problems of all kinds, drawn in the same way by every version of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

import pointillist as pt

BOUNDARIES = ("same", "valid", "full", "circular")
SHAPES = (((60,), (5,)), ((80,), (17,)), ((14, 13), (3, 3)), ((16, 11), (5, 2)), ((5, 6, 5), (2, 3, 2)))
Problem = dict[str, Any]
"""The arguments of a call of `encode`."""


def draw(seed: int) -> Problem:
    """A problem of some kind."""
    rng = np.random.default_rng(seed)
    space, size = SHAPES[rng.integers(len(SHAPES))]
    dtype = (np.float32, np.float64)[rng.integers(2)]
    channels = bool(rng.random() < 0.2)
    colours, n_filters = (2,) if channels else (), int(rng.integers(1, 7))
    filters = rng.standard_normal((n_filters, *colours, *size)) / np.sqrt(np.prod(size))
    if rng.random() < 0.2:  # a smaller filter in the box of the others
        filters[0, ..., -1] = 0
    signals = rng.standard_normal((int(rng.integers(1, 3)), *colours, *space))
    signals[rng.random(signals.shape) < 0.3] = 0
    scale = 10 ** rng.uniform(-3, 3)
    weights = None
    if rng.random() < 0.4:
        weights = rng.uniform(0, 1, signals.shape) * (rng.random(signals.shape) < 0.8)
        first: Any = (slice(None), *[0] * (weights.ndim - 1))
        weights[first] = 1.0
        weights = weights.astype(dtype)
    return {
        "signals": (signals * scale).astype(dtype),
        "filters": filters.astype(dtype),
        "penalty": scale * 10 ** rng.uniform(-2.5, 0.2, n_filters if rng.random() < 0.3 else None),
        "weights": weights,
        "boundary": BOUNDARIES[rng.integers(4)],
        "solver": _solver(rng, dtype),
        "channels": channels,
        "nonnegative": bool(rng.random() < 0.3),
        "sampling": 0.5 if rng.random() < 0.3 else 1.0,
        "n_jobs": 1,
        "random_state": seed,
    }


def _solver(rng: np.random.Generator, dtype: Any) -> pt.solvers.CoordinateDescent:
    """Tolerances that rounding allows for; one solve in five is stopped early."""
    tol = float(10 ** rng.uniform(-5 if dtype == np.float32 else -8, -1))
    return pt.solvers.CoordinateDescent(tol=tol, max_iter=int(rng.integers(1, 6)) if rng.random() < 0.2 else 200)
