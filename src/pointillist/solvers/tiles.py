"""A signal too large to be solved whole: tiles that own their codes, take turns, and share one residual.

The grid is cut into blocks, and every code belongs to one of them. A tile is two blocks along each axis; what is left for
its codes to explain is an ordinary problem on the samples that they reach, which coordinate descent solves from where they
stand. Tiles of one colour reach disjoint samples and are solved side by side. Every pass shifts the tiles by a block along
other axes, so that what was a border becomes the middle. For each block a bound on the violations of |Dᵀr| ≤ λ is kept,
which a change nearby raises; once all bounds are small, one certificate holds for the whole signal, and there are no seams.
Only the signal, its residual and the sparse codes are kept whole, the first two perhaps in files.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import Geometry
from pointillist.model.large import LARGE, release, scratch, walked
from pointillist.model.problem import Certificate, Problem, inner, relative_gap
from pointillist.solvers.base import Mapper, Result, Solution, Solver, collect, one_blas_thread
from pointillist.solvers.blocks import Blocks, Place, renumbered
from pointillist.solvers.descent import CoordinateDescent, HostWorkingSet
from pointillist.solvers.rounds import solve_by_rounds
from pointillist.solvers.scanning import DescentState

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""

_FIRST_EXCESS, _FALL, _FIRST_GOAL = 1.0, 0.3, 1.5
_MAX_PASSES = 100
_MARGIN = 0.7
"""A tile is solved to this share of the tolerance, so that what its neighbours change need not bring it back."""
_MANY_CHANNELS = 4
"""A signal with more channels counts as large by its samples too: from so many times `LARGE` on."""
_SMALLEST_EXCESS = 16  # ε: what rounding lets a ratio come down to


@dataclass(frozen=True, kw_only=True)
class TiledDescent:
    """Settings of the descent by tiles.

    Parameters
    ----------
    coder : CoordinateDescent
        What solves a tile; its `tol` is the relative gap of the whole signal.
    side : int, optional
        Side of a block; a tile has two. By default a tile has some 2^18 positions, 512² in a picture.
    progress : callable, optional
        Called with the share of the signal that is settled, after every colour of tiles.
    """

    takes_start: ClassVar[bool] = True

    coder: CoordinateDescent = field(default_factory=CoordinateDescent)
    side: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.side is not None and self.side < 1:
            raise ValueError(f"side must be a positive number of positions, got {self.side}")
        if self.coder.ridge > 0:
            raise ValueError("coder must have no ridge: it would not come to rest tile by tile")

    @property
    def tol(self) -> float:
        """The relative gap to reach."""
        return self.coder.tol

    def prepare(self, problem: Problem) -> DescentState:
        """Lay out what all signals share."""
        if problem.drawn is not None:
            raise ValueError("sampled problems are not solved by tiles: use solver=CoordinateDescent(...)")
        if problem.geometry.boundary == "circular":
            raise ValueError("circular problems are not solved by tiles: use solver=CoordinateDescent(...)")
        return self.coder.prepare(problem)

    def solve(
        self, state: DescentState, signals: Sequence[NDArray], *, n_jobs: int = 1, start: SparseCodes | None = None
    ) -> Result:
        """Solve for the codes of signals (channels, *space), one after the other, each by tiles side by side."""
        with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
            solutions = []
            for i, signal in enumerate(signals):
                begin = None if start is None else (start.indices[i], start.values[i])
                mapper: Mapper = pool.map if n_jobs > 1 else map
                solutions.append(_Tiling(self, state, i, signal, begin, mapper, len(signals)).run())
        return collect(state.problem, solutions, self.coder.tol)


def by_tiles(solver: Solver, problem: Problem, progress: Progress | None) -> Solver:
    """The solver that a problem of this size calls for: large ones are solved by tiles where the solver can."""
    small = problem.drawn is not None or not _is_large(problem.geometry)
    if small or not isinstance(solver, CoordinateDescent) or solver.ridge > 0:
        return solver
    return TiledDescent(coder=solver, progress=progress)


def solved_at_once(geometry: Geometry) -> Geometry:
    """The geometry of what coordinate descent works on at once: a whole signal or, of a large one, a tile's samples."""
    if not _is_large(geometry):
        return geometry
    side = 2 * Blocks.of(geometry, None).side
    axes = zip(geometry.signal, geometry.filter, strict=True)
    return replace(geometry, signal=tuple(min(length, side + 2 * (size - 1)) for length, size in axes))


def _is_large(geometry: Geometry) -> bool:
    samples = geometry.channels * prod(geometry.signal)
    large = geometry.n_positions >= LARGE or samples >= _MANY_CHANNELS * LARGE
    return large and geometry.boundary != "circular"


@dataclass(frozen=True, eq=False)
class _Visit:
    """The outcome of solving one tile: its codes, the largest ratio left, and how much its neighbours' can have risen."""

    tile: tuple[slice, ...]
    codes: NDArray
    values: NDArray
    ratio: float
    rises: dict[Place, float]
    rounds: int


class _Done(NamedTuple):
    """Progress of a pass: the share of its colours that are solved, and the most rounds that a tile of the last took."""

    share: float
    rounds: int


class _Tiling:
    """One large signal being solved."""

    def __init__(
        self,
        settings: TiledDescent,
        state: DescentState,
        i: int,
        signal: NDArray,
        begin: tuple[NDArray, NDArray] | None,
        mapper: Mapper,
        n_signals: int,
    ) -> None:
        self.settings, self.problem, self.i, self.mapper = settings, state.problem, i, mapper
        self.state, self.n_signals = state, n_signals
        self.geometry = state.problem.geometry
        self.blocks = Blocks.of(self.geometry, settings.side)
        self.signal, self.weights = signal, state.problem.weights_of(i)
        nothing = (np.empty(0, np.int64), np.empty(0, signal.dtype))
        self.codes = {block: nothing for block in np.ndindex(self.blocks.counts)}
        # The largest |Dᵀr| / λ of each block; infinite where it is not known.
        self.ratio = np.full(self.blocks.counts, np.inf)
        self.residual = scratch(signal, signal.shape, signal.dtype)
        for band in walked(signal, self.residual):
            self.residual[band] = signal[band] if self.weights is None else self.weights[band] * signal[band]
        if begin is not None:
            self._begin(*begin)

    def _begin(self, codes: NDArray, values: NDArray) -> None:
        kept = values > 0 if self.problem.nonnegative else values != 0
        self._share_out(
            codes[kept], values[kept].astype(self.signal.dtype), tuple(slice(0, n) for n in self.blocks.counts)
        )
        for block in self.codes:
            view = _TileView(self, tuple(slice(c, c + 1) for c in block))
            indices, own = view.local(*self.codes[block])
            if len(indices):
                fit = view.problem.operator.synthesise(indices, own)
                view.put(view.residual - (fit if view.weights is None else view.weights * fit))

    def run(self) -> Solution:
        tol = self.settings.coder.tol
        floor = _SMALLEST_EXCESS * float(np.finfo(self.signal.dtype).eps)
        # Borders are not worth much effort before both sides are good: all of the signal gets better pass by pass.
        excess, goal, rounds = _FIRST_EXCESS, max(_FIRST_GOAL * tol, floor), 0
        planned = max(1, math.ceil(math.log(goal / excess) / math.log(_FALL)))
        for passes in range(_MAX_PASSES):
            excess = max(excess * _FALL, goal)
            for done in self._pass(self.blocks.shift(passes), excess):
                rounds += done.rounds
                # Until the goal is near every planned pass counts alike; then what counts is how much is settled.
                share = done.share if excess > goal else float(np.mean(self.ratio <= 1 + goal))
                self._report((min(passes, planned - 1) + share) / planned)
            if excess > goal or np.any(self.ratio > 1 + excess):
                continue
            found = self._certificate()
            if found.gap <= tol or goal <= floor or not np.isfinite(found.objective):
                break
            goal = max(min(goal, goal * tol / found.gap) * _MARGIN, floor)
        else:
            found = self._certificate()
        codes, values = (np.concatenate(parts) for parts in zip(*self.codes.values(), strict=True))
        order = np.argsort(codes)
        return Solution(codes[order], values[order], found, rounds)

    def _report(self, share: float) -> None:
        if self.settings.progress is not None:
            self.settings.progress((self.i + share) / self.n_signals)

    def _pass(self, shift: Place, excess: float) -> Iterator[_Done]:
        """Solve all tiles that are not settled, colour by colour."""
        colours = self.blocks.colours(shift)
        for number, tiles in enumerate(colours, 1):
            todo = [tile for tile in tiles if np.max(self.ratio[tile]) > 1 + excess]
            rounds = [0]
            for visit in self.mapper(lambda tile: self._visit(tile, excess), todo):
                self._share_out(visit.codes, visit.values, visit.tile)
                self.ratio[visit.tile] = visit.ratio
                for block, rise in visit.rises.items():
                    self.ratio[block] += rise
                rounds.append(visit.rounds)
                self._release()
            yield _Done(number / len(colours), max(rounds))

    def _release(self) -> None:
        """Let go of what was read of the files that the signal and its residual may lie in."""
        release(self.signal, self.residual)

    def _visit(self, tile: tuple[slice, ...], excess: float) -> _Visit:
        view = _TileView(self, tile)
        codes, values = view.local(*self.of_tile(tile))
        signal = view.left_for(codes, values)
        coder = self.settings.coder
        if len(codes):
            coder = replace(coder, cells=coder.cells[-1:])  # codes are spread out already
        sets = HostWorkingSet(coder, coder.prepare(view.problem), 0, signal, (codes, values), map, certifies=False)
        found = solve_by_rounds(sets, coder, lambda look: look.ratio + sets.rounding > 1 + _MARGIN * excess)
        rises, rounds = {}, int(found.iterations[0])
        if rounds:
            change = view.put(found.residuals[0])
            rises = view.rises(
                self.blocks.neighbours(tile), self.state.rises(view.touching, view.touching.spread(change))
            )
        indices, values = view.whole(found.codes.indices[0]), found.codes.values[0]
        return _Visit(tile, indices, values, sets.ratio + sets.rounding, rises, rounds)

    def _share_out(self, codes: NDArray, values: NDArray, tile: tuple[slice, ...]) -> None:
        """Give codes to the blocks of a tile that own them."""
        number = self.blocks.number(codes)
        order = np.argsort(number, kind="stable")
        codes, values, number = codes[order], values[order], number[order]
        for block in product(*[range(s.start, s.stop) for s in tile]):
            flat = int(np.ravel_multi_index(block, self.blocks.counts))
            first, last = np.searchsorted(number, [flat, flat + 1])
            self.codes[block] = (codes[first:last], values[first:last])

    def _certificate(self) -> Certificate:
        """What all codes together are worth; the residual that all tiles share, scaled, is the dual point."""
        energy = size = 0.0
        for band in walked(self.signal, self.residual):
            residual = self.residual[band].astype(np.float64)
            energy += inner(residual, self.signal[band])
            if self.weights is None:
                size += 0.5 * inner(residual, residual)
            else:
                weights = self.weights[band]
                seen = weights > 0
                size += 0.5 * inner(residual[seen], residual[seen] / weights[seen])
        price = sum(inner(self.problem.penalty_at(codes), np.abs(values)) for codes, values in self.codes.values())
        losses = 0.0
        for loss in self.mapper(self._loss, self.codes):
            losses += loss
            self._release()
        objective, constant = losses + price, self.problem.constant_of(self.i)
        gap = relative_gap(objective, size, energy, float(np.max(self.ratio)), constant)
        return Certificate(objective + constant, gap, self.residual)

    def _loss(self, block: Place) -> float:
        """½ Σ w (x − Dz)² in float64 over the samples that a block's positions begin at, from the codes that reach them."""
        reach = [-(-(f - 1) // self.blocks.side) for f in self.geometry.filter]
        tile = tuple(slice(max(c - r, 0), c + 1) for c, r in zip(block, reach, strict=True))
        view = _TileView(self, tile)
        fit = view.problem.exact_operator.synthesise(*view.local(*self.of_tile(tile)))
        own = [slice(None)]
        for c, box, inside, count in zip(block, view.box, view.inside[1:], self.blocks.counts, strict=True):
            first = c * self.blocks.side - box.start
            last = inside.stop if c == count - 1 else first + self.blocks.side
            own.append(slice(max(first, inside.start), max(min(last, inside.stop), first, inside.start)))
        moved = zip(own[1:], view.inside[1:], view.outer[1:], strict=True)
        there = (slice(None), *(slice(o.start - i.start + u.start, o.stop - i.start + u.start) for o, i, u in moved))
        difference = self.signal[there] - fit[tuple(own)]
        return 0.5 * inner(difference if self.weights is None else self.weights[there] * difference, difference)

    def of_tile(self, tile: tuple[slice, ...]) -> tuple[NDArray, NDArray]:
        """Codes of the blocks of a tile, and their values."""
        own = [self.codes[block] for block in product(*[range(s.start, s.stop) for s in tile])]
        codes, values = (np.concatenate(arrays) for arrays in zip(*own, strict=True))
        return codes, values


class _TileView:
    """A tile as a problem of its own: its codes, on the samples that they reach."""

    def __init__(self, tiling: _Tiling, tile: tuple[slice, ...]) -> None:
        geometry, problem = tiling.geometry, tiling.problem
        self.tiling, self.box = tiling, tiling.blocks.box(tile)
        self.geometry = Geometry(
            tuple(s.stop - s.start + f - 1 for s, f in zip(self.box, geometry.filter, strict=True)),
            geometry.filter,
            geometry.channels,
            "valid",
        )
        # In the signal's own coordinates; what the codes reach may lie outside of it, with weight zero.
        first = [s.start - o for s, o in zip(self.box, geometry.offset, strict=True)]
        last = [f + n for f, n in zip(first, self.geometry.signal, strict=True)]
        spans = list(zip(first, last, geometry.signal, strict=True))
        self.outer = (slice(None), *(slice(max(a, 0), min(b, n)) for a, b, n in spans))
        self.inside = (slice(None), *(slice(max(-a, 0), min(b, n) - a) for a, b, n in spans))
        self.residual = self._cut(tiling.residual)
        whole = all(a >= 0 and b <= n for a, b, n in spans)
        seen = tiling.weights
        if seen is None and not whole:
            seen = np.broadcast_to(np.ones(1, self.residual.dtype), tiling.signal.shape)
        self.weights = None if seen is None else self._cut(seen)
        self.problem = replace(
            problem, geometry=self.geometry, weights=self.weights, penalty=self._penalty(problem), constants=None
        )

    def _cut(self, array: NDArray) -> NDArray:
        out = np.zeros((self.geometry.channels, *self.geometry.signal), array.dtype)
        out[self.inside] = array[self.outer]
        return out

    def _penalty(self, problem: Problem) -> NDArray:
        if problem.penalty.shape[1] == 1:
            return problem.penalty
        maps = problem.penalty.reshape(-1, *problem.geometry.grid)[(slice(None), *self.box)]
        return np.ascontiguousarray(maps.reshape(len(maps), -1))

    def local(self, codes: NDArray, values: NDArray) -> tuple[NDArray, NDArray]:
        """Codes of the whole grid in the tile's own numbers, ascending."""
        moved = renumbered(codes, self.tiling.geometry.grid, self.geometry.grid, [-s.start for s in self.box])
        order = np.argsort(moved)
        return moved[order], values[order]

    def whole(self, codes: NDArray) -> NDArray:
        """Codes in the tile's own numbers as codes of the whole grid, in the order given."""
        return renumbered(codes, self.geometry.grid, self.tiling.geometry.grid, [s.start for s in self.box])

    def left_for(self, codes: NDArray, values: NDArray) -> NDArray:
        """What the tile's codes have to explain: the signal without what all other codes explain."""
        left = self.residual.astype(np.float64)
        if self.weights is not None:
            left = np.divide(left, self.weights, out=np.zeros_like(left), where=self.weights > 0)
        left += self.problem.exact_operator.synthesise(codes, values.astype(np.float64))
        return left.astype(self.residual.dtype)

    def put(self, residual: NDArray) -> NDArray:
        """Write the tile's residual to the shared one; returns how it changed."""
        fresh = residual.astype(self.residual.dtype)
        self.tiling.residual[self.outer] = fresh[self.inside]
        return fresh - self.residual

    @property
    def touching(self) -> Geometry:
        """All positions whose filters reach one of the tile's samples."""
        return replace(self.geometry, boundary="full")

    def rises(self, blocks: Iterable[Place], rise: NDArray) -> dict[Place, float]:
        """The largest rise at the positions of each of some blocks, from that at all positions of `touching`."""
        found = {}
        for block in blocks:
            positions = self.tiling.blocks.box(tuple(slice(c, c + 1) for c in block))
            spans = zip(positions, self.box, self.geometry.filter, strict=True)
            here = rise[tuple(slice(max(p.start - b.start + f - 1, 0), p.stop - b.start + f - 1) for p, b, f in spans)]
            if here.size:
                found[block] = float(np.max(here))
        return found
