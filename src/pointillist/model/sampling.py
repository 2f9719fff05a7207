"""Which codes an iteration solves for: a fresh Bernoulli(p) choice of all filters and positions."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

Draw = Callable[[int, tuple[int, ...], float, int, int], NDArray | None]
"""A function with the arguments and the answer of `draw_sample`."""

_MOST_COMING = 4
_coming: dict[tuple[Any, ...], Future[NDArray | None]] = {}
_lock = Lock()
_SEARCHED = 0.333333333333333333333333
"""From this probability on, geometric numbers are not drawn by way of exponential ones."""


def generator(seed: int, *key: int) -> np.random.Generator:
    """A counter-based generator keyed by a seed and any counters, the same on every machine."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))


def seed_from(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    """A seed for `generator` from what people pass as ``random_state``; None draws a fresh one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, np.timedelta64):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise ValueError(f"random_state must be None, an integer or a numpy Generator, got {type(random_state).__name__}")


def check_sampling(sampling: float) -> float:
    """The sampling rate as a float in (0, 1]."""
    if not isinstance(sampling, (int, float, np.integer, np.floating)) or not 0 < sampling <= 1:
        raise ValueError(f"sampling must lie in (0, 1], got {sampling!r}")
    return float(sampling)


def draw_sample(n_filters: int, grid: tuple[int, ...], sampling: float, seed: int, step: int) -> NDArray | None:
    """Flat indices, ascending, of codes ``(n_filters, *grid)`` each chosen with probability `sampling`.

    The choice depends on the seed, the step and the grid only. None means all codes (``sampling=1``).
    """
    if sampling >= 1:
        return None
    rng = generator(seed, step, *grid)
    count = n_filters * prod(grid)
    expected = count * sampling
    chosen = np.empty(0, np.int64)
    last = -1
    # Bernoulli trials by their geometric waiting times: the cost follows p, not the number of codes.
    while last < count:
        draws = int(max(expected - len(chosen), 0) + 6 * np.sqrt(max(expected, 1.0)) + 16)
        more = last + np.cumsum(_waits(rng, sampling, draws))
        chosen = np.concatenate([chosen, more])
        last = int(chosen[-1])
    return chosen[: np.searchsorted(chosen, count)]


def draw_ahead(n_filters: int, grid: tuple[int, ...], sampling: float, seed: int, step: int) -> NDArray | None:
    """Return what `draw_sample` does, and begin to draw the sample of the next step in a thread."""
    if sampling >= 1:
        return None
    key = n_filters, grid, sampling, seed
    with _lock:
        waiting = _coming.pop((*key, step), None)
        if len(_coming) >= _MOST_COMING:
            _coming.clear()
        _coming[*key, step + 1] = _drawer().submit(draw_sample, *key, step + 1)
    return draw_sample(*key, step) if waiting is None else waiting.result()


@cache
def _drawer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="pointillist-draw")


def _waits(rng: np.random.Generator, sampling: float, draws: int) -> NDArray:
    """Geometric waiting times, ``rng.geometric(sampling, draws)`` to the bit, with one logarithm for all of them."""
    if sampling >= _SEARCHED:
        return rng.geometric(sampling, draws)
    return np.ceil(rng.standard_exponential(draws) / -np.log1p(-sampling)).astype(np.int64)


def sample_bytes(n_codes: int, sampling: float, itemsize: int) -> int:
    """Bytes that a sample of so many codes takes; a large one is also kept as a mask."""
    if sampling >= 1:
        return 0
    return int(64 * sampling * n_codes) + (itemsize * n_codes if sampling > 0.25 else 0)
