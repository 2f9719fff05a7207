"""Filters from statistics: settings, projected block coordinate descent, first guesses, care for unused filters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.arrays import to_host
from pointillist.dictionary.constraints import FilterConstraints, factorise, likeness
from pointillist.dictionary.statistics import Statistics
from pointillist.reprs import ShortRepr
from pointillist.validation import check_arguments

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Filters that a step updates, lengths of its updates, and patches to begin with; measured by benchmarks.online."""

    few: int = 32
    """Fewer filters are all updated in every step: that takes little time."""
    new: float = 0.1
    """Share of all signals below which those of a step make it update filters in turn: a half of them at first."""
    turns: int = 4
    """Steps in which all filters have their turn, at most."""
    much_new: float = 0.2
    """Share of all signals from which on those of a step make its updates longer; measured on pictures."""
    longer: float = 1.8
    """Factor of the length of such updates."""
    duplicates: tuple[float, float] = (0.3, 0.9)
    """Squared cosines above which a filter of a rank duplicates another: one hardly used beside it, one used as much."""
    candidates: int = 4
    """Patches drawn for each filter of a rank, and for each of the first filters."""
    more_candidates: int = 128
    """Patches drawn besides for filters of a rank: they matter where few are chosen."""


TUNING = Tuning()


@dataclass(frozen=True, repr=False)
class FilterUpdate(ShortRepr):
    """Update of the filters of a learner, and their constraints.

    Parameters
    ----------
    init : {"random", "patches"} or (n_filters, [channels,] *size) array
        First filters: Gaussian noise, lively patches of the signals, or the given ones. With a `rank`, patches are chosen so
        that they differ, and the nearest filters of the rank take the place of given ones.
    nonnegative : bool
        Restrict filters to be ≥ 0; excludes `zero_mean`.
    zero_mean : bool
        Restrict each channel of a filter to zero mean.
    statistics : {"toeplitz", "dense"}
        The small exact form with imputation at borders and gaps, or the full matrix.
    n_sweeps : int or None
        Passes over the filters in each update. None is one. Where the signals of a step count much beside those before, as
        for `BatchCSC` and in the first twenty steps of `OnlineCSC`, its steps are longer, except on a line; where they count
        little, as for `OnlineCSC` after forty signals, filters hardly move, and it is over a half to a quarter of them, in
        turn.
    replace_unused : bool
        Replace filters that no code uses by badly explained patches; with a `rank`, in some of the first 64 steps, also
        those that duplicate others.
    forgetting : float or None
        γ ≥ 1, for `OnlineCSC` only: signal i enters the statistics with weight i^γ − (i−1)^γ. 1 is the paper's average over
        all signals; larger values forget the early, bad codes faster and learn better filters in the same time. Given the
        same codes the result does not depend on how signals are split into batches. None is 4.

    Examples
    --------
    >>> import pointillist as pt
    >>> model = pt.OnlineCSC(n_filters=16, filter_size=8, update=pt.FilterUpdate(zero_mean=True))
    >>> model.set_params(update__n_sweeps=2).update.zero_mean
    True
    """

    shows_defaults: ClassVar[bool] = False

    init: str | ArrayLike = "random"
    nonnegative: bool = False
    zero_mean: bool = False
    statistics: str = "toeplitz"
    n_sweeps: int | None = None
    replace_unused: bool = True
    forgetting: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.init, str) and self.init not in ("random", "patches"):
            raise ValueError(f'init must be "random", "patches" or an array, got {self.init!r}')
        if str(self.statistics) not in ("toeplitz", "dense"):
            raise ValueError(f'statistics must be "toeplitz" or "dense", got {self.statistics!r}')
        check_arguments(
            n_sweeps=self.n_sweeps, forgetting=self.forgetting, nonnegative=self.nonnegative, zero_mean=self.zero_mean,
            replace_unused=self.replace_unused,
        )  # fmt: skip
        FilterConstraints(self.zero_mean, self.nonnegative)  # refuses both


def filters_in_turn(n_filters: int, step: int, share: float) -> NDArray:
    """Numbers of the filters that a step updates: all where much is new, then every second, every third, …

    Parameters
    ----------
    n_filters : int
    step : int
        The number of the step, which says whose turn it is.
    share : float
        What the signals of the step count, relative to all that the statistics hold.
    """
    turns = min(1 + int(TUNING.new / share), TUNING.turns) if share > 0 else TUNING.turns
    if n_filters < TUNING.few:
        turns = 1
    return np.arange(step % turns, n_filters, turns)


def step_length(share: float, ndim: int) -> float:
    """Length of the updates of a step, in units of what the bound of the curvature says: longer where much is new.

    The bound is that of the steepest direction, and the first filters are far from good ones in all of them.

    Parameters
    ----------
    share : float
        What the signals of the step count, relative to all that the statistics hold.
    ndim : int
        Dimensions of the signals. On a line, where filters overlap more, nothing is longer.
    """
    return TUNING.longer if share >= TUNING.much_new and ndim > 1 else 1.0


def unused_filters(sums: Statistics) -> NDArray:
    """Filters whose codes carry next to no energy."""
    energies = sums.energies()
    return np.flatnonzero(energies <= 1e-9 * np.max(energies, initial=0.0))


def duplicate_filters(filters: NDArray, sums: Statistics, rank: int) -> NDArray:
    """Filters of a rank that are, at some shift, almost one whose codes carry more energy: they hide that one is missing."""
    patterns, shapes = factorise(filters.reshape(*filters.shape[:2], -1).astype(np.float64), rank)
    alike, energies = likeness(patterns, shapes, filters.shape[2:]), sums.energies()
    kept, dropped = list[int](), list[int]()
    for k in np.argsort(-energies, kind="stable").tolist():
        shares = energies[k] / np.maximum(energies[kept], np.finfo(np.float64).tiny)
        few, many = TUNING.duplicates
        (dropped if np.any(alike[k, kept] > few + (many - few) * shares) else kept).append(k)
    return np.array(sorted(dropped), int)


def replace_filters(
    filters: NDArray,
    unused: NDArray,
    residuals: Sequence[NDArray],
    constraints: FilterConstraints,
    rng: np.random.Generator,
) -> NDArray:
    """Put the worst-explained patches of the residuals in the place of unused filters.

    Candidates are drawn at random positions; those with the most energy win, each used once. Where filters have a rank,
    `spread_patches` chooses.
    """
    if constraints.rank is None:
        candidates = draw_patches(residuals, filters.shape[2:], 10 * len(unused), rng)
        energies = np.sum(candidates.reshape(len(candidates), -1) ** 2, axis=1)
        best = candidates[np.argsort(-energies, kind="stable")[: len(unused)]]
    else:
        best = spread_patches(residuals, filters.shape[2:], len(unused), constraints.rank, rng)
    fresh = filters.copy()
    for k, patch in zip(unused, best, strict=True):
        fresh[k] = constraints.unit(patch, k)
    log.info("replaced %d unused filters by patches of the residual: %s", len(unused), unused.tolist())
    return fresh


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
    of the signals or, where filters have a rank, those that `spread_patches` chooses. An array
    (n_filters, [channels,] *size) is taken as it is, once projected.
    """
    if isinstance(init, str) and init == "random":
        return constraints.normalise(rng.standard_normal(shape)).astype(dtype)
    if isinstance(init, str):
        if constraints.rank is None:
            drawn = draw_patches(signals, shape[2:], TUNING.candidates * shape[0], rng)
            liveliness = np.var(drawn.reshape(len(drawn), -1), axis=1)
            patches = drawn[np.sort(np.argsort(-liveliness, kind="stable")[: shape[0]])]
        else:
            patches = spread_patches(signals, shape[2:], shape[0], constraints.rank, rng)
        scale = np.std(patches, axis=tuple(range(1, len(shape))), keepdims=True)
        # A little noise is left of a patch that the constraints leave nothing of, such as a flat one of zero mean.
        noise = 1e-3 * np.where(scale > 0, scale, 1) * rng.standard_normal(shape)
        return constraints.normalise(patches + noise).astype(dtype)
    given = np.asarray(init, dtype)
    if given.shape == (shape[0], *shape[2:]) and shape[1] == 1:
        given = given[:, None]
    if given.shape != shape:
        raise ValueError(f"init has shape {given.shape}, the filters need {shape}")
    if not np.all(np.isfinite(given)):
        raise ValueError("init holds NaN or infinity")
    return np.stack([constraints.project(one, k) for k, one in enumerate(given)]).astype(dtype)


_Place = tuple[int, tuple[int, ...]]
"""The number of a signal, and the corner of a window in it."""


def draw_patches(signals: Sequence[NDArray], size: tuple[int, ...], count: int, rng: np.random.Generator) -> NDArray:
    """Patches (count, channels, *size) at random places of random signals."""
    return np.stack([_window(signals, place, size) for place in _draw_places(signals, size, count, rng)])


def spread_patches(
    signals: Sequence[NDArray], size: tuple[int, ...], count: int, rank: int, rng: np.random.Generator
) -> NDArray:
    """Filters (count, channels, *size) of a rank, made from patches that explain as much as they can of many others.

    Random patches show the frequent and strong events several times, each at another shift. So every patch is moved to have
    its event in the middle, and then those are chosen, one after the other, that explain most of all drawn patches, at any
    shift, that those before them do not.
    """
    count_drawn = TUNING.candidates * count + TUNING.more_candidates
    places = [_centred(signals, place, size) for place in _draw_places(signals, size, count_drawn, rng)]
    once = sorted(set(places))  # several patches end in one place
    drawn = np.stack([_window(signals, place, size) for place in (once if len(once) >= count else places)])
    # Patches have noise, and so any rank: several iterations come near to the nearest factors.
    matrices = drawn.reshape(*drawn.shape[:2], -1).astype(np.float64)
    patterns, shapes = factorise(matrices, rank, iterations=5)
    chosen = _representatives(patterns, shapes, size, count)
    return (patterns[chosen] @ shapes[chosen]).reshape(count, -1, *size)


def _draw_places(
    signals: Sequence[NDArray], size: tuple[int, ...], count: int, rng: np.random.Generator
) -> list[_Place]:
    numbers = rng.integers(len(signals), size=count).tolist()
    return [
        (i, tuple(int(rng.integers(n - s + 1)) for n, s in zip(signals[i].shape[1:], size, strict=True)))
        for i in numbers
    ]


def _window(signals: Sequence[NDArray], place: _Place, size: tuple[int, ...]) -> NDArray:
    i, corner = place
    return to_host(signals[i][(slice(None), *(slice(c, c + s) for c, s in zip(corner, size, strict=True)))])


def _centred(signals: Sequence[NDArray], place: _Place, size: tuple[int, ...]) -> _Place:
    """Place of the window near another one that has its energy in its middle."""
    i, corner = place
    for _ in range(4):  # it sees more of an event each time
        energy = np.sum(_window(signals, (i, corner), size).astype(np.float64) ** 2, axis=0)
        energy = np.maximum(energy - np.median(energy), 0)  # noise has as much of it everywhere
        if not energy.any():
            break
        ends = zip(corner, scipy.ndimage.center_of_mass(energy), signals[i].shape[1:], size, strict=True)
        corner = tuple(min(max(c + round(middle - (s - 1) / 2), 0), n - s) for c, middle, n, s in ends)
    return i, corner


def _representatives(patterns: NDArray, shapes: NDArray, size: tuple[int, ...], count: int) -> list[int]:
    """Numbers of the candidates that explain most of all of them, each what those before it do not."""
    norms = np.sqrt(np.sum(shapes**2, axis=(1, 2)))  # their squares would favour places where two events meet
    alike = likeness(patterns, shapes, size)
    explained, chosen = np.zeros(len(norms)), list[int]()
    for _ in range(count):
        gains = np.sum(norms[:, None] * np.maximum(alike - explained[:, None], 0), axis=0)
        gains[chosen] = -1
        chosen.append(int(np.argmax(gains)))
        explained = np.maximum(explained, alike[:, chosen[-1]])
    return chosen
