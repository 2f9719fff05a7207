"""Patches of signals to begin filters with: drawn at random, and for filters of low rank chosen so that they differ."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import to_host
from pointillist.dictionary.factors import factorise, likeness

_CANDIDATES, _EXTRA = 4, 128
"""Patches drawn for each one that is chosen, and some more, which matter where few are chosen."""
_MOVES = 4
"""Times that a patch is moved to where its energy is; it sees more of an event each time."""
_ITERATIONS = 5
"""Products with a patch and its transpose that its factors take: patches have noise, and so any rank."""

_Place = tuple[int, tuple[int, ...]]
"""The number of a signal, and the corner of a window in it."""


def draw_patches(signals: Sequence[NDArray], size: tuple[int, ...], count: int, rng: np.random.Generator) -> NDArray:
    """Patches (count, channels, *size) at random places of random signals."""
    return np.stack([_window(signals, place, size) for place in _draw_places(signals, size, count, rng)])


def spread_patches(
    signals: Sequence[NDArray], size: tuple[int, ...], count: int, rank: int, rng: np.random.Generator
) -> NDArray:
    """Filters (count, channels, *size) of a rank, made from patches that explain as much as they can of many others.

    Random patches show the frequent and strong events several times, each at another shift. So every patch is moved until an
    event lies in its middle, and then those are chosen, one after the other, that explain most of all drawn patches, at any
    shift, that those before them do not.
    """
    places = _draw_places(signals, size, _CANDIDATES * count + _EXTRA, rng)
    drawn = [_centred_factors(signals, place, size, rank) for place in places]
    once = list({place: factors for place, *factors in drawn}.values())  # several patches end in one place
    found = once if len(once) >= count else [factors for _, *factors in drawn]
    patterns, shapes = (np.stack(some) for some in zip(*found, strict=True))
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


def _centred_factors(
    signals: Sequence[NDArray], place: _Place, size: tuple[int, ...], rank: int
) -> tuple[_Place, NDArray, NDArray]:
    """Where a patch lies once its energy lies in its middle, and there its patterns (channels, rank) and shapes."""
    i, corner = place
    patterns, shapes = _factors(_window(signals, place, size), rank)
    for _ in range(_MOVES):
        moved = tuple(
            min(max(c + m, 0), n - s)
            for c, m, n, s in zip(corner, _offset(shapes, size), signals[i].shape[1:], size, strict=True)
        )
        if moved == corner:
            break
        corner = moved
        patterns, shapes = _factors(_window(signals, (i, corner), size), rank)
    return (i, corner), patterns, shapes


def _factors(patch: NDArray, rank: int) -> tuple[NDArray, NDArray]:
    patterns, shapes = factorise(patch.reshape(1, len(patch), -1).astype(np.float64), rank, _ITERATIONS)
    return patterns[0], shapes[0]


def _offset(shapes: NDArray, size: tuple[int, ...]) -> list[int]:
    """How far the centre of the energy of shapes lies from the middle, along every axis."""
    energy = np.sum(shapes**2, axis=0)
    energy = np.maximum(energy - np.median(energy), 0).reshape(size)  # noise has as much of it everywhere
    total = float(np.sum(energy))
    if total == 0:
        return [0] * len(size)
    marginals = [np.sum(energy, axis=tuple(a for a in range(len(size)) if a != axis)) for axis in range(len(size))]
    return [round(float(np.arange(s) @ m) / total - (s - 1) / 2) for s, m in zip(size, marginals, strict=True)]


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
