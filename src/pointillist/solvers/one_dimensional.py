"""Signals of one dimension, whose correlations with all filters are kept up to date by a table of inner products.

Elsewhere a round of descent scans all positions, and for short signals calls of Python take longer than all kernels. Here a
signal is correlated with the filters once, and all rounds on many signals are one call of a kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import oaconvolve

from pointillist.codes import SparseCodes
from pointillist.kernels import correlation
from pointillist.kernels.correlation import Bank, Rules
from pointillist.parallel import parallel
from pointillist.problem import Problem
from pointillist.solvers.base import Result, result_of


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Tuned numbers of descent on correlations, measured with ``python -m benchmarks.ablation``."""

    filters: int = 20
    """Filters for each channel up to which all correlations are worth following: a move changes those with every filter."""
    small: int = 2**14
    """Correlations of a signal up to which any number of filters is: calls of Python would take longer."""
    correlations: int = 2**23
    """Correlations of a signal that are kept at most: 64 MiB."""
    inner_products: int = 2**22
    """Entries of the table of inner products at most: 32 MiB."""
    clean: float = 0.75
    """Share of the positions inside of signals that must meet weights of one only: others have products of their own."""
    neighbours: tuple[int, float] = (40, 1 / 8)
    """Codes that overlap with a code on average, for each channel, from which on descent on the residual is faster: so many,
    or this part of a filter's samples."""
    transformed: int = 256
    """Samples of a filter from which on the first correlations are taken by transforms: half of the time at 1,000."""
    batch: int = 2**18
    """Correlations of the signals that one call of the kernel takes: enough for its entry to count for nothing."""
    share: float = 0.2
    """Part of the largest violation that sweeps of a round are followed up to; 0.4 takes up to 1.45 times as long."""
    extra: int = 2
    """Times `CoordinateDescent.extra` that the non-zeros are swept over: sweeps cost little beside the rest (1.2)."""
    rounded: int = 16
    """Units of rounding, beside its norm, that a filter may differ by from the product of a pattern and a shape."""
    hopeful: float = 10.0
    """Gap, in tolerances, below which a dual point is projected (1.2 to 1.4 where codes overlap)."""
    part: int = 2**15
    """Inner products of codes that are swept over, and extrapolated, together; a quarter takes up to 1.4 times as long."""


TUNING = Tuning()


def can_follow(problem: Problem) -> bool:
    """True if a problem is of one dimension, without a circle or a sample, and its correlations are few, by counts alone."""
    geometry, tuning, count = problem.geometry, TUNING, problem.n_filters * problem.geometry.n_positions
    if len(geometry.grid) > 1 or geometry.boundary == "circular":
        return False
    if problem.drawn is not None or problem.penalty.shape[1] > 1 or count > tuning.correlations:
        return False
    if problem.n_filters**2 * (2 * geometry.filter[0] - 1) > tuning.inner_products:
        return False
    if problem.n_filters > tuning.filters * geometry.channels and count > tuning.small:
        return False
    inside = geometry.signal[0] - geometry.filter[0] + 1
    return problem.weights is None or np.sum(_clean(problem)[1]) >= tuning.clean * inside * len(_clean(problem)[1])


def _clean(problem: Problem) -> tuple[NDArray, NDArray]:
    """Padded weights (n or 1, channels or 1, samples), and positions (n or 1, n_positions) that meet only ones."""
    geometry, taps, given = problem.geometry, problem.geometry.filter[0], problem.weights
    weights = np.zeros((1, 1, *geometry.padded) if given is None else (*given.shape[:-1], *geometry.padded))
    weights = weights.reshape(-1, *weights.shape[-2:])
    inside = slice(geometry.offset[0], geometry.offset[0] + geometry.signal[0])
    weights[..., inside] = 1 if given is None else given
    ones = np.zeros((len(weights), geometry.padded[0] + 1), np.int64)
    np.cumsum((weights == 1).all(axis=1), axis=1, out=ones[:, 1:])
    return weights, ones[:, taps:] - ones[:, :-taps] == taps


def inner_products(filters: NDArray) -> NDArray:
    """Inner products of filters (n_filters, channels, taps), as (n_filters, 2 taps − 1, n_filters).

    Entry (k, δ + taps − 1, l) belongs to filter l shifted by δ against filter k.
    """
    size = 2 * filters.shape[2]
    spectra = np.fft.rfft(filters, size, axis=2)
    around = np.fft.irfft(np.einsum("kcf,lcf->kfl", spectra, spectra.conj()), size, axis=1)
    return np.roll(around, size // 2 - 1, axis=1)[:, :-1]


class Products(NamedTuple):
    """Patterns over channels and shapes in time, whose products filters (n_filters, channels, taps) are up to rounding."""

    patterns: NDArray  # (n_filters, channels)
    shapes: NDArray  # (n_filters, taps)
    lost: float  # largest norm of what a filter is besides


def as_products(filters: NDArray, unit: float) -> Products | None:
    """Patterns and shapes of filters of rank one, which were rounded to so many units; None for others."""
    if filters.shape[1] == 1:
        return None
    strongest = np.argmax(np.einsum("kct,kct->kt", filters, filters), axis=1)
    patterns = filters[np.arange(len(filters)), :, strongest]
    norms = np.linalg.norm(patterns, axis=1, keepdims=True)
    patterns = patterns / np.where(norms > 0, norms, 1)
    shapes = np.einsum("kc,kct->kt", patterns, filters)
    lost = np.linalg.norm(filters - patterns[:, :, None] * shapes[:, None], axis=(1, 2))
    if np.any(lost > TUNING.rounded * unit * np.linalg.norm(shapes, axis=1)):
        return None
    return Products(patterns, shapes, float(np.max(lost)))


def make_bank(problem: Problem) -> Bank:
    """The filters of a problem, divided by their penalties, with all that descent on correlations needs of them."""
    penalties = problem.penalty[:, 0].copy()
    filters = np.ascontiguousarray(problem.filters / penalties[:, None, None])
    n_filters, channels, taps = filters.shape
    turned = np.zeros((channels, taps + 6, n_filters))
    turned[:, 3:-3] = filters[:, :, ::-1].transpose(1, 2, 0)
    table = np.ascontiguousarray(inner_products(filters)).reshape(n_filters, -1)
    return Bank(filters, turned.reshape(channels, -1), table, penalties, 0.0)


def solve_following(
    problem: Problem,
    settings: Any,
    signals: Sequence[NDArray],
    start: SparseCodes | None,
    n_jobs: int,
) -> tuple[Result, bool]:
    """Solve a problem that `can_follow` allows; tell too whether codes became too many to go on.

    `settings` are those of `CoordinateDescent`.
    """
    geometry, bank, tuning = problem.geometry, make_bank(problem), TUNING
    products = as_products(bank.filters, float(np.finfo(problem.filters.dtype).eps))
    if products is not None:
        bank = bank._replace(lost=products.lost)
    weights, clean = _clean(problem)
    taps, ridged = geometry.filter[0], settings.ridge > 0
    cells = settings.cells if ridged else [max(taps >> turn, 1) for turn in range(2, max(taps.bit_length(), 3))]
    most = max(tuning.neighbours[0], tuning.neighbours[1] * taps)
    rules = Rules(
        settings.tol, settings.max_iter, settings.min_iter, settings.max_sweeps, settings.extra * tuning.extra,
        settings.ridge, problem.nonnegative, np.array(cells), settings.inner if ridged else tuning.share,
        tuning.hopeful, tuning.part, int(most * geometry.channels),
    )  # fmt: skip
    step = max(1, tuning.batch // (problem.n_filters * geometry.n_positions))

    def work(first: int) -> list[tuple[NDArray, NDArray, NDArray, NDArray]]:
        some = range(first, min(first + step, len(signals)))
        own = slice(first, first + step) if problem.has_own_weights else slice(None)
        inside = slice(geometry.offset[0], geometry.offset[0] + geometry.signal[0])
        padded = np.zeros((len(some), geometry.channels, geometry.padded[0]))
        for room, i in zip(padded, some, strict=True):
            room[:, inside] = signals[i]
        residuals = padded * weights[own]
        correlations = np.empty((len(some), geometry.padded[0] + taps - 1, problem.n_filters))
        if products is not None:
            mixed = np.zeros((len(some), geometry.padded[0] + 2 * taps - 2, problem.n_filters))
            inner = slice(taps - 1, taps - 1 + geometry.padded[0])
            np.matmul(residuals.transpose(0, 2, 1), products.patterns.T, out=mixed[:, inner])
            correlation.correlate_products(np.tile(products.shapes.T, 64), mixed, correlations)
        elif taps >= tuning.transformed:
            turned = bank.filters.transpose(1, 2, 0)[:, ::-1]
            correlations = oaconvolve(residuals[..., None], turned[None], axes=2).sum(axis=1)
        else:
            correlation.correlate(bank, residuals, correlations)
        codes = [_taken(problem, start, i) for i in some]
        bounds = np.cumsum([0, *(len(indices) for indices, _ in codes)])
        outcomes = np.empty((len(some), 4))
        outcomes[:, 0] = [problem.constant_of(i) for i in some]
        bounds, places, values = correlation.solve(
            bank, rules, padded, weights[own], clean[own], correlations, bounds,
            np.concatenate([indices for indices, _ in codes]), np.concatenate([values for _, values in codes]),
            residuals, outcomes,
        )  # fmt: skip
        positions, owners = np.divmod(places, problem.n_filters)
        indices = owners * geometry.n_positions + positions
        order = np.lexsort((indices, np.repeat(np.arange(len(some)), np.diff(bounds))))
        indices, values, left = indices[order], values[order], residuals[..., inside].astype(values.dtype)
        ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        return [(indices[a:b], values[a:b], left[i], outcomes[i]) for i, (a, b) in enumerate(ends)]

    found = [one for batch in parallel(work, range(0, len(signals), step), n_jobs) for one in batch]
    objectives, gaps, rounds, crowded = np.array([outcome for *_, outcome in found]).T
    indices, values, residuals, _ = (list(column) for column in zip(*found, strict=True))
    result = result_of(problem, indices, values, objectives, gaps, rounds.astype(int), residuals, settings.tol)
    return result, bool(crowded.any())


def _taken(problem: Problem, start: SparseCodes | None, i: int) -> tuple[NDArray, NDArray]:
    """Codes of signal i to start from and their values, in the kernel's order."""
    if start is None:
        return np.empty(0, np.int64), np.empty(0, problem.filters.dtype)
    values = start.values[i].astype(problem.filters.dtype)
    kept = values > 0 if problem.nonnegative else values != 0
    owners, positions = np.divmod(start.indices[i][kept], problem.geometry.n_positions)
    places = positions * problem.n_filters + owners
    order = np.argsort(places)
    return places[order], values[kept][order]
