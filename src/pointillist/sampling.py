"""Samples of the codes that iterations solve for: a fresh choice of all filters and positions, each code with probability p.

The paper draws every code by itself. Codes that are drawn together are scanned together, by vector instructions, which is
several times as fast; `Draws` says which. Whatever the kind, each code is drawn with probability p and each step draws
anew, so that the sums over codes that filters are learned from have the same expectations weighted alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.vectors import FILTERS_A_BLOCK
from pointillist.reprs import shown
from pointillist.validation import is_number

KINDS = ("codes", "bundles", "positions", "stretches", "cells")


@dataclass(frozen=True)
class Draws:
    """Draws of the codes of a step: the share of them, and which are drawn together.

    Parameters
    ----------
    share : float in (0, 1]
        p, the probability that a code is drawn.
    kind : {"bundles", "codes", "positions", "stretches", "cells"}
        What is drawn, with probability p. "bundles": eight filters at a position, filters 0 to 7, 8 to 15 and so on, each
        bundle spread evenly: at no more than one position of every cell of about 1/p positions. They learn at least as well
        as single codes and are scanned several times as fast. "codes": single codes, independently, as in the paper.
        "positions": all filters at a position. "stretches": eight filters at sixteen neighbouring positions along the last
        axis. "cells": all filters at the positions of a square of eight a side, a cube in volumes.

    Examples
    --------
    >>> import pointillist as pt
    >>> model = pt.OnlineCSC(n_filters=16, filter_size=8, sampling=pt.Draws(0.2, "codes"))
    >>> model.set_params(sampling__share=0.1).sampling
    Draws(share=0.1, kind='codes')
    """

    share: float
    kind: str = "bundles"

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {shown(self.kind)}")
        if not is_number(self.share) or not 0 < self.share <= 1:
            raise ValueError(f"share must lie in (0, 1], got {shown(self.share)}")


Sampling = float | Draws


class Blocks(NamedTuple):
    """Positions, ascending, for blocks of `FILTERS_A_BLOCK` filters; block b has positions[firsts[b] : lasts[b]]."""

    firsts: NDArray
    lasts: NDArray
    positions: NDArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Codes that may be non-zero, given by their flat indices (ascending int64) or by blocks of filters.

    `indices` has the flat ones either way; they are made of the blocks when somebody asks for them.
    """

    flat: NDArray | None = None
    blocks: Blocks | None = None
    n_filters: int = 0
    n_positions: int = 0

    def __len__(self) -> int:
        if self.blocks is None:
            return len(self.indices)
        members = np.minimum(self.n_filters - FILTERS_A_BLOCK * np.arange(len(self.blocks.firsts)), FILTERS_A_BLOCK)
        return int(np.dot(members, self.blocks.lasts - self.blocks.firsts))

    @cached_property
    def indices(self) -> NDArray:
        """Flat indices of the codes, ascending."""
        if self.blocks is None:
            return np.empty(0, np.int64) if self.flat is None else self.flat
        firsts, lasts, positions = self.blocks
        owners = np.arange(self.n_filters) // FILTERS_A_BLOCK
        parts = [k * self.n_positions + positions[firsts[b] : lasts[b]] for k, b in enumerate(owners)]
        return np.concatenate(parts)


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


def as_draws(sampling: Sampling) -> Draws:
    """Check what people pass as ``sampling``: a number stands for draws of the default kind."""
    if isinstance(sampling, Draws):
        return sampling
    if not is_number(sampling) or not 0 < sampling <= 1:
        raise ValueError(f"sampling must lie in (0, 1], got {shown(sampling)}")
    return Draws(float(sampling))


ALL = Draws(1.0)
"""All codes, in every step."""


def draw_sample(n_filters: int, grid: tuple[int, ...], draws: Draws, seed: int, step: int) -> Sample | None:
    """Draw some of the codes ``(n_filters, *grid)``; None means all of them (a share of 1).

    The choice depends on the seed, the step and the grid only.
    """
    if draws.share >= 1:
        return None
    rng, count = generator(seed, step, *grid), prod(grid)
    if draws.kind == "codes":
        return Sample(flat=_trials(n_filters * count, draws.share, rng))
    n_blocks = -(-n_filters // FILTERS_A_BLOCK)
    if draws.kind == "bundles" and draws.share >= 1e-6:
        blocks = _spread(n_blocks, grid, draws.share, rng)
    elif draws.kind == "bundles":  # so few that there is nothing to spread
        blocks = _split(_trials(n_blocks * count, draws.share, rng), n_blocks, count)
    elif draws.kind == "stretches":
        blocks = _split(_stretches(n_blocks, grid, draws.share, rng), n_blocks, count)
    else:
        chosen = _trials(count, draws.share, rng) if draws.kind == "positions" else _cells(grid, draws.share, rng)
        blocks = Blocks(np.zeros(n_blocks, np.int64), np.full(n_blocks, len(chosen)), chosen)
    return Sample(blocks=blocks, n_filters=n_filters, n_positions=count)


def _trials(count: int, share: float, rng: np.random.Generator) -> NDArray:
    """Those of so many numbers, ascending, that are chosen independently with a probability."""
    expected = count * share
    chosen = np.empty(0, np.int64)
    last = -1
    # Bernoulli trials by their geometric waiting times: the cost follows p, not the number of codes.
    while last < count:
        draws = int(max(expected - len(chosen), 0) + 6 * np.sqrt(max(expected, 1.0)) + 16)
        more = last + np.cumsum(np.minimum(rng.geometric(share, draws), count + 1))
        chosen = np.concatenate([chosen, more])
        last = int(chosen[-1])
    return chosen[: np.searchsorted(chosen, count)]


def _split(chosen: NDArray, n_blocks: int, n_positions: int) -> Blocks:
    """Blocks from ascending numbers block · n_positions + position."""
    bounds = np.searchsorted(chosen, n_positions * np.arange(n_blocks + 1))
    positions = chosen - np.repeat(n_positions * np.arange(n_blocks), np.diff(bounds))
    return Blocks(bounds[:-1], bounds[1:], positions)


def _spread(n_blocks: int, grid: tuple[int, ...], share: float, rng: np.random.Generator) -> Blocks:
    """At most one position in every cell for each block."""
    sides = spread_cell(len(grid), share)
    counts = tuple(2 + (length - 2) // side for length, side in zip(grid, sides, strict=True))
    # One number says whether a cell has a position, and which of them: 24 bits will do for cells that are not large.
    numbers = rng.random((n_blocks, prod(counts)), np.float32 if share > 1e-3 else np.float64)
    shifts = np.array(
        [rng.integers(side, size=n_blocks) for side in sides]
    )  # every block has cells that begin elsewhere
    which = (numbers / numbers.dtype.type(share)).astype(np.int64)
    blocks, cells = np.nonzero(which < prod(sides))
    within, corners = np.unravel_index(which[blocks, cells], sides), np.unravel_index(cells, counts)
    places = [
        side * corner - shift[blocks] + inside
        for side, corner, shift, inside in zip(sides, corners, shifts, within, strict=True)
    ]
    kept = np.all([(place >= 0) & (place < n) for place, n in zip(places, grid, strict=True)], axis=0)
    positions = np.ravel_multi_index([place[kept] for place in places], grid)
    return _split(np.sort(blocks[kept] * prod(grid) + positions), n_blocks, prod(grid))


def spread_cell(ndim: int, share: float) -> tuple[int, ...]:
    """The sides of the largest cell, as square as can be, with no more than 1 / share positions."""
    most = (1 + 1e-9) / share
    side = int((1 + 1e-9) * share ** (-1 / ndim))
    return (*[side] * (ndim - 1), int(most / side ** (ndim - 1)))


def _stretches(n_blocks: int, grid: tuple[int, ...], share: float, rng: np.random.Generator) -> NDArray:
    """Numbers block · n_positions + position, ascending, of stretches along the rows of a grid."""
    length = grid[-1]
    n_lines = n_blocks * prod(grid[:-1])
    a_line = 1 + -(-(length - 1) // 16)
    lines, numbers = np.divmod(_trials(n_lines * a_line, share, rng), a_line)
    begins = 16 * numbers - rng.integers(16, size=n_lines)[lines]
    places = begins[:, None] + np.arange(16)
    return (lines[:, None] * length + places)[(places >= 0) & (places < length)]


def _cells(grid: tuple[int, ...], share: float, rng: np.random.Generator) -> NDArray:
    """Positions, ascending, of the cells that are drawn."""
    cells = [(np.arange(side) + rng.integers(8)) // 8 for side in grid]
    counts = tuple(int(cell[-1]) + 1 for cell in cells)
    chosen = np.zeros(prod(counts), bool)
    chosen[_trials(prod(counts), share, rng)] = True
    return np.flatnonzero(chosen.reshape(counts)[np.ix_(*cells)])
