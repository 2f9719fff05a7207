"""The filters from the statistics: projected block coordinate descent, first guesses, and care for unused filters."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.backends.devices import to_host
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import Statistics

log = logging.getLogger(__name__)


def update_filters(filters: NDArray, sums: Statistics, constraints: FilterConstraints, *, n_sweeps: int = 1) -> NDArray:
    """Minimise ½ dᵀCd − Bᵀd over feasible filters, one filter at a time, starting from the current ones.

    Each step is a projected gradient step with the block's own Lipschitz bound, so the surrogate never rises.

    Parameters
    ----------
    filters : (n_filters, channels, *size) array
    sums : Statistics
    constraints : FilterConstraints
    n_sweeps : int
        Passes over all filters; the paper does one, warm started.

    Returns
    -------
    (n_filters, channels, *size) array, of the precision that was given
    """
    for _ in range(n_sweeps):
        filters = sums.sweep(filters, constraints)
    return filters


def unused_filters(sums: Statistics) -> NDArray:
    """Filters whose codes carry next to no energy."""
    energies = sums.energies()
    return np.flatnonzero(energies <= 1e-9 * np.max(energies, initial=0.0))


def replace_filters(
    filters: NDArray,
    unused: NDArray,
    residuals: Sequence[NDArray],
    constraints: FilterConstraints,
    rng: np.random.Generator,
) -> NDArray:
    """Put the worst-explained patches of the residuals in the place of unused filters.

    Candidates are drawn at random positions; those with the most energy win, each used once.
    """
    if len(unused) == 0:
        return filters
    candidates = draw_patches(residuals, filters.shape[2:], 10 * len(unused), rng)
    energies = np.sum(candidates.reshape(len(candidates), -1) ** 2, axis=1)
    best = candidates[np.argsort(-energies, kind="stable")[: len(unused)]]
    fresh = filters.copy()
    for k, patch in zip(unused, best, strict=True):
        fresh[k] = constraints.unit(patch, k)
    log.info("replaced %d unused filters by patches of the residual: %s", len(unused), unused.tolist())
    return fresh


def draw_patches(signals: Sequence[NDArray], size: tuple[int, ...], count: int, rng: np.random.Generator) -> NDArray:
    """Patches (count, channels, *size) at random places of random signals."""
    patches = []
    for i in rng.integers(len(signals), size=count):
        signal = signals[i]
        corner = [rng.integers(n - s + 1) for n, s in zip(signal.shape[1:], size, strict=True)]
        window = tuple(slice(c, c + s) for c, s in zip(corner, size, strict=True))
        patches.append(to_host(signal[(slice(None), *window)]))
    return np.stack(patches)


def initial_filters(
    init: str | ArrayLike,
    shape: tuple[int, ...],
    constraints: FilterConstraints,
    signals: Sequence[NDArray],
    rng: np.random.Generator,
    dtype: np.dtype,
) -> NDArray:
    """First filters (n_filters, channels, *size), feasible.

    ``"random"`` is the paper's: Gaussian samples, normalised. ``"patches"`` takes the liveliest of randomly drawn patches
    of the signals. An array (n_filters, [channels,] *size) is taken as it is, once projected.
    """
    if isinstance(init, str):
        if init == "random":
            return constraints.normalise(rng.standard_normal(shape)).astype(dtype)
        if init == "patches":
            drawn = draw_patches(signals, shape[2:], 4 * shape[0], rng)
            liveliness = np.var(drawn.reshape(len(drawn), -1), axis=1)
            chosen = drawn[np.sort(np.argsort(-liveliness, kind="stable")[: shape[0]])]
            noise = 1e-3 * rng.standard_normal(shape)  # a flat patch would stay zero under zero_mean
            return constraints.normalise(chosen + noise).astype(dtype)
        raise ValueError(f'init must be "random", "patches" or an array, got {init!r}')
    given = np.asarray(init, dtype)
    if given.shape == (shape[0], *shape[2:]) and shape[1] == 1:
        given = given[:, None]
    if given.shape != shape:
        raise ValueError(f"init has shape {given.shape}, the filters need {shape}")
    if not np.all(np.isfinite(given)):
        raise ValueError("init holds NaN or infinity")
    return np.stack([constraints.project(one, k) for k, one in enumerate(given)]).astype(dtype)
