"""Filters from statistics: settings, projected block coordinate descent, first guesses, care for unused filters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.cuda.device import is_cpu
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.dense import DenseStatistics, dense_shapes
from pointillist.dictionary.device import DeviceStatistics
from pointillist.dictionary.factors import factorise, likeness
from pointillist.dictionary.patches import draw_patches, spread_patches
from pointillist.dictionary.statistics import Statistics
from pointillist.dictionary.toeplitz import ToeplitzStatistics, toeplitz_shapes
from pointillist.reprs import ShortRepr, shown
from pointillist.validation import check_arguments

log = logging.getLogger(__name__)

_DUPLICATES = (0.3, 0.9)
"""Squared cosines above which a filter of a rank duplicates another: one that is hardly used beside it, one used as much."""
_FEW = 32
"""Fewer filters are all updated in every step: that takes little time."""
_NEW, _TURNS = 0.1, 4
"""A step whose signals count less than this share of all updates a half of the filters; turns at most (measured)."""
_MUCH_NEW, _LONGER = 0.2, 1.8
"""A step whose signals count at least this share of all makes so many times longer updates (measured on pictures)."""
_NOTHING = 1e-6
"""The norm that a filter must keep under the constraints to count as more than rounding errors."""


class _Checked:
    """Names of arguments, checked before a frozen class takes them."""

    def __new__(cls, *args: object, **given: object) -> Self:
        """Say of `rank` and `robust` where they belong."""
        for name in {"rank", "robust"} & given.keys():
            raise TypeError(f"{name} is an argument of the learner: OnlineCSC({name}={given[name]!r})")
        return super().__new__(cls)


@dataclass(frozen=True, repr=False)
class FilterUpdate(ShortRepr, _Checked):
    """How learners update and constrain filters.

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
        if not isinstance(self.statistics, str) or self.statistics not in ("toeplitz", "dense"):
            raise ValueError(f'statistics must be "toeplitz" or "dense", got {self.statistics!r}')
        check_arguments(
            n_sweeps=self.n_sweeps, forgetting=self.forgetting, nonnegative=self.nonnegative, zero_mean=self.zero_mean,
            replace_unused=self.replace_unused,
        )  # fmt: skip
        FilterConstraints(self.zero_mean, self.nonnegative)  # refuses both


def statistics_device(kind: str, device: str) -> str:
    """Say where statistics live while codes are solved for on `device`: only "toeplitz" ones can live on a GPU."""
    return "cpu" if is_cpu(device) or kind != "toeplitz" else device


def as_update(given: FilterUpdate | None) -> FilterUpdate:
    """A filter update as learners take it; None is the usual one."""
    if given is not None and not isinstance(given, FilterUpdate):
        raise ValueError(f"update must be None or a FilterUpdate, got {shown(given)}")
    return given or FilterUpdate()


def make_statistics(kind: str, n_filters: int, channels: int, size: tuple[int, ...], device: str = "cpu") -> Statistics:
    """Empty statistics of a kind, "toeplitz" or "dense", on a device if that is a CUDA device."""
    if kind == "dense":
        return DenseStatistics(n_filters, channels, size)
    if is_cpu(device):
        return ToeplitzStatistics(n_filters, channels, size)
    return DeviceStatistics(n_filters, channels, size, device)


def statistics_bytes(kind: str, n_filters: int, channels: int, size: tuple[int, ...]) -> tuple[int, int]:
    """Bytes of a kind of statistics, and bytes that updating and reordering filters takes besides."""
    made = DenseStatistics if kind == "dense" else ToeplitzStatistics
    return made.bytes_for(n_filters, channels, size)


def statistics_shapes(kind: str, n_filters: int, channels: int, size: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays that a kind of statistics is stored as, by name."""
    return (dense_shapes if kind == "dense" else toeplitz_shapes)(n_filters, channels, size)


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
    turns = min(1 + int(_NEW / share), _TURNS) if share > 0 else _TURNS
    if n_filters < _FEW:
        turns = 1
    return np.arange(step % turns, n_filters, turns)


def step_length(share: float, ndim: int) -> float:
    """How many times as long as their bound says a step makes the updates of filters: longer where much is new.

    The bound is that of the steepest direction, and the first filters are far from good ones in all of them.

    Parameters
    ----------
    share : float
        What the signals of the step count, relative to all that the statistics hold.
    ndim : int
        Dimensions of the signals. On a line, where filters overlap more, nothing is longer.
    """
    return _LONGER if share >= _MUCH_NEW and ndim > 1 else 1.0


def update_filters(
    filters: NDArray,
    sums: Statistics,
    constraints: FilterConstraints,
    *,
    n_sweeps: int = 1,
    chosen: NDArray | None = None,
    relaxation: float = 1.0,
    n_jobs: int = 1,
) -> NDArray:
    """Minimise ½ dᵀCd − Bᵀd over feasible filters, one filter at a time, starting from the current ones.

    Each step is a projected gradient step with the block's own Lipschitz bound, so the surrogate never rises.

    Parameters
    ----------
    filters : (n_filters, channels, *size) array
    sums : Statistics
    constraints : FilterConstraints
    n_sweeps : int
        Passes over the filters; the paper does one, warm started.
    chosen : (n_chosen,) int array or None
        Numbers of the filters to update, ascending; None is all.
    relaxation : float
        How many times as long as the bound says steps are; less than two.
    n_jobs : int
        Threads; the filters do not depend on it.

    Returns
    -------
    (n_filters, channels, *size) array, of the precision that was given
    """
    for _ in range(n_sweeps):
        filters = sums.sweep(filters, constraints, chosen, relaxation=relaxation, n_jobs=n_jobs)
    return filters


def filter_bytes(n_samples: int, itemsize: int) -> int:
    """Bytes of filters with so many samples in all while they are updated: the old, the new, and sums in float64."""
    return n_samples * (8 * itemsize + 40)


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
        few, many = _DUPLICATES
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
    if len(unused) == 0:
        return filters
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
        if constraints.rank is not None:
            return _first_of_rank(shape, constraints, constraints.rank, signals, rng).astype(dtype)
        drawn = draw_patches(signals, shape[2:], 4 * shape[0], rng)
        liveliness = np.var(drawn.reshape(len(drawn), -1), axis=1)
        chosen = drawn[np.sort(np.argsort(-liveliness, kind="stable")[: shape[0]])]
        noise = 1e-3 * rng.standard_normal(shape)  # a flat patch would stay zero under zero_mean
        return constraints.normalise(chosen + noise).astype(dtype)
    given = np.asarray(init, dtype)
    if given.shape == (shape[0], *shape[2:]) and shape[1] == 1:
        given = given[:, None]
    if given.shape != shape:
        raise ValueError(f"init has shape {given.shape}, the filters need {shape}")
    if not np.all(np.isfinite(given)):
        raise ValueError("init holds NaN or infinity")
    return np.stack([constraints.project(one, k) for k, one in enumerate(given)]).astype(dtype)


def _first_of_rank(
    shape: tuple[int, ...],
    constraints: FilterConstraints,
    rank: int,
    signals: Sequence[NDArray],
    rng: np.random.Generator,
) -> NDArray:
    """First filters from patches of the signals; noise takes the place of a patch that the constraints leave nothing of."""
    filters = spread_patches(signals, shape[2:], shape[0], rank, rng)
    for k, patch in enumerate(filters):
        left = np.linalg.norm(constraints.project(patch / max(float(np.linalg.norm(patch)), _NOTHING), k))
        filters[k] = constraints.unit(patch if left > _NOTHING else rng.standard_normal(shape[1:]), k)
    return filters
