"""A signal too large to be solved whole: tiles of blocks that take turns and share one residual.

The grid is cut into blocks, and every code belongs to one of them. A tile is two blocks along each axis and a few positions
around them; what is left for its codes to explain is an ordinary problem on the samples that they reach, which coordinate
descent solves from where they stand. Tiles of one colour reach disjoint samples and are solved side by side. Every pass
shifts the tiles by a block along other axes, so that what was a border becomes the middle. For each position a bound on
|Dᵀr| / λ is kept, which a change nearby raises: what cannot violate is not looked at again. Once all bounds are small, one
certificate holds for the whole signal, and there are no seams. Only the signal, its residual, these bounds and the sparse
codes are kept whole, all but the codes perhaps in files.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.ndimage import maximum_filter1d

from pointillist.arrays import LARGE, release, scratch, walked
from pointillist.codes import SparseCodes
from pointillist.parallel import Mapper, one_blas_thread
from pointillist.problem import Certificate, Geometry, Problem, inner, relative_gap
from pointillist.solvers import coordinate_descent
from pointillist.solvers.base import Result, Solution, Solver, collect
from pointillist.solvers.coordinate_descent import CoordinateDescent, HostWorkingSet, solve_by_rounds
from pointillist.solvers.scanning import DescentState

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""
Answer = TypeVar("Answer")
Place = tuple[int, ...]
Tile = tuple[slice, ...]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the descent by tiles, measured with ``python -m benchmarks.large``."""

    first_excess: float = 0.2
    """By how much ratios may exceed one after the first pass: borders are not worth much before both sides are good."""
    fall: float = 0.15
    """What part of that they may after the next."""
    unseen: float = 0.3
    """Violations up to this share of a pass's excess are not looked for before the last passes."""
    passes: int = 100
    margin: float = 0.8
    """Share of the tolerance that a tile is solved to, so that what its neighbours change need not bring it back."""
    many_channels: int = 4
    """A signal with more channels counts as large by its samples too: from so many times `LARGE` on."""
    smallest_excess: int = 16
    """Units of rounding that a ratio comes down to."""
    block_positions: int = 2**16
    """Positions of a block, of signals with up to `block_channels`; fewer with more channels: memory follows the samples."""
    block_channels: int = 8
    overlap: int = 16
    """Positions around a tile that are solved with it: its codes would otherwise explain what belongs beyond its border."""


TUNING = Tuning()


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
                large = LargeSignal(self, state, i, signal, mapper)

                def report(share: float, i: int = i) -> None:
                    if self.progress is not None:
                        self.progress((i + share) / len(signals))

                solutions.append(large.solve(begin, report))
        return collect(state.problem, solutions, self.coder.tol)


def by_tiles(solver: Solver, problem: Problem, progress: Progress | None) -> Solver:
    """The solver that a problem of this size calls for: large ones are solved by tiles where the solver can."""
    small = problem.drawn is not None or not _is_large(problem.geometry)
    if small or not isinstance(solver, CoordinateDescent) or solver.ridge > 0:
        return solver
    return TiledDescent(coder=solver, progress=progress)


def _is_large(geometry: Geometry) -> bool:
    samples = geometry.channels * prod(geometry.signal)
    large = geometry.n_positions >= LARGE or samples >= TUNING.many_channels * LARGE
    return large and geometry.boundary != "circular"


class LargeSignal:
    """A large signal being solved: tiles take turns on one residual and on bounds of the ratios |Dᵀr| / λ.

    Attributes
    ----------
    residual : (channels, *space) array
        w (x − Dz), which tiles write to.
    bounds : (*grid) array
        Upper bounds of |Dᵀr| / λ at all positions, with all rounding counted in; infinite where nothing is known.
    ratio : (*counts) array
        The largest of each block.
    """

    def __init__(self, settings: TiledDescent, state: DescentState, i: int, signal: NDArray, mapper: Mapper) -> None:
        self.coder, self.state, self.problem, self.mapper = settings.coder, state, state.problem, mapper
        self.signal, self.weights, self.constant = signal, self.problem.weights_of(i), self.problem.constant_of(i)
        self.blocks = Blocks.of(self.problem.geometry, settings.side)
        self.everywhere = tuple(slice(0, n) for n in self.blocks.counts)
        self.codes = BlockCodes(self.blocks, signal.dtype)
        self.ratio = np.full(self.blocks.counts, np.inf)
        self.residual = scratch(signal, signal.shape, signal.dtype)
        for band in walked(signal, self.residual):
            self.residual[band] = signal[band] if self.weights is None else self.weights[band] * signal[band]
        self.bounds = scratch(signal, self.problem.geometry.grid, signal.dtype)
        self.bounds[:] = np.inf
        self.allowed = (
            1 + coordinate_descent.TUNING.allowed * self.coder.tol
        )  # the dual point is not shrunk locally below

    def solve(self, begin: tuple[NDArray, NDArray] | None, report: Progress) -> Solution:
        """Solve from codes and their values, or from zero; `report` is told the share that is settled."""
        tol, rounds, tuning = self.coder.tol, 0, TUNING
        if begin is not None:
            self._begin(*begin)
        floor = tuning.smallest_excess * float(np.finfo(self.signal.dtype).eps)
        # The excess at which a certificate is worth its time: a point that is shrunk locally bears much.
        goal = max(min(7 * tol, tuning.first_excess) if self._shrinks else 1.5 * tol, floor)
        excess = tuning.first_excess / tuning.fall
        planned = max(1, math.ceil(math.log(goal / excess) / math.log(tuning.fall)))
        for passes in range(tuning.passes):
            excess = max(excess * tuning.fall, goal)
            negligible = self.allowed - 1 if excess == goal else tuning.unseen * excess
            colours = self.blocks.colours(self.blocks.shift(passes))
            for number, tiles in enumerate(colours, 1):
                rounds += self._solve_tiles(tiles, excess, negligible, begin is not None)
                # Until the goal is near every planned pass counts alike; then what counts is how much is settled.
                share = number / len(colours) if excess > goal else float(np.mean(self.ratio <= 1 + goal))
                report((min(passes, planned - 1) + share) / planned)
            if excess > goal or np.any(self.ratio > 1 + excess):
                continue
            found = self.certificate()
            if found.gap <= tol or goal <= floor or not np.isfinite(found.objective):
                break
            reached = min(goal, float(np.max(self.ratio)) - 1)
            goal = max(reached * min(tol / found.gap, tuning.margin) * tuning.margin, floor)
        else:
            found = self.certificate()
        codes, values = self.codes.of(self.everywhere)
        order = np.argsort(codes)
        return Solution(codes[order], values[order], found, rounds)

    @property
    def _shrinks(self) -> bool:
        """True if the tolerance is so tight that dual points are shrunk locally."""
        return self.coder.tol <= coordinate_descent.TUNING.loose

    def _begin(self, codes: NDArray, values: NDArray) -> None:
        kept = values > 0 if self.problem.nonnegative else values != 0
        values = values[kept].astype(self.signal.dtype)
        self.codes.replace(codes[kept], values, self.everywhere, self.blocks.box(self.everywhere))
        for block in np.ndindex(self.blocks.counts):
            view = self._view(block)
            indices, own = view.local(*self.codes.of(alone(block)))
            if len(indices):
                fit = view.problem.operator.synthesise(indices, own)
                view.put(view.residual - (fit if view.weights is None else view.weights * fit))

    def _view(self, block: Place) -> "TileView":
        return TileView(self, self.blocks.box(alone(block)))

    def _solve_tiles(self, tiles: list[Tile], excess: float, negligible: float, started: bool) -> int:
        """Solve those tiles of one colour that are not settled, side by side; returns the most rounds that one took."""
        rounds, overlap = 0, self.blocks.overlap
        todo = [tile for tile in tiles if np.max(self.ratio[tile]) > 1 + excess]

        def visit(tile: Tile) -> tuple["TileView", Result, NDArray, NDArray]:
            view = TileView(self, self.blocks.box(tile, overlap))
            codes, values = view.local(*self.codes.of(self.blocks.near(tile, overlap), view.box))
            signal, bounds = view.left_for(codes, values), self.bounds[view.box].ravel()
            known = (bounds, view.geometry.spread(view.residual)) if np.all(np.isfinite(bounds)) else None
            spread_out = known is not None or started
            coder = replace(self.coder, cells=self.coder.cells[-1:]) if spread_out else self.coder
            sets = HostWorkingSet(
                coder, coder.prepare(view.problem), 0, signal, (codes, values), map,
                certifies=False, known=known, negligible=negligible,
            )  # fmt: skip
            found = solve_by_rounds(sets, coder, lambda look: look.ratio + sets.rounding > 1 + TUNING.margin * excess)
            rise = self.state.rises(view.touching, view.touching.spread(view.put(found.residuals[0])))
            return view, found, sets.best + sets.slack + sets.best.dtype.type(sets.rounding), rise

        for tile, (view, found, ratios, rise) in zip(todo, self.mapper(visit, todo), strict=True):
            near = self.blocks.near(tile, overlap + max(self.problem.geometry.filter) - 1)
            self.codes.replace(view.whole(found.codes.indices[0]), found.codes.values[0], near, view.box)
            view.raise_bounds(ratios.reshape(view.geometry.grid), rise)
            for block in product(*[range(s.start, s.stop) for s in near]):
                self.ratio[block] = np.max(self.bounds[self.blocks.box(alone(block))])
            rounds = max(rounds, int(found.iterations[0]))
            release(self.signal, self.residual, self.bounds)
        return rounds

    def certificate(self) -> Certificate:
        """What all codes together are worth, block by block.

        The residual is the dual point, shrunk as a whole by its largest ratio or, for a tight tolerance, each sample by the
        ratios around it.
        """
        codes, values = self.codes.of(self.everywhere)
        objective = sum(self._walk(self._loss)) + inner(self.problem.penalty_at(codes), np.abs(values))
        size, energy = np.sum(list(self._walk(lambda block: self._worth(block, self._view(block)))), axis=0)
        gap = relative_gap(objective, size, energy, float(np.max(self.ratio)), self.constant)
        if gap > self.coder.tol and self._shrinks:
            list(self._walk(self._refresh))
            pieces = np.array(list(self._walk(self._shrunk)))
            size, energy = np.sum(pieces[:, :2], axis=0)
            gap = min(gap, relative_gap(objective, size, energy, float(np.max(pieces[:, 2])), self.constant))
        return Certificate(objective + self.constant, gap, self.residual)

    def _walk(self, work: Callable[[Place], Answer]) -> Iterator[Answer]:
        """Answers to work on all blocks, in their order."""
        for answer in self.mapper(work, list(np.ndindex(self.blocks.counts))):
            yield answer
            release(self.signal, self.residual, self.bounds)

    def _loss(self, block: Place) -> float:
        """½ Σ w (x − Dz)² in float64 over a block's own samples, from the codes that reach them."""
        reach = [-(-(f - 1) // self.blocks.side) for f in self.problem.geometry.filter]
        tile = tuple(slice(max(c - r, 0), c + 1) for c, r in zip(block, reach, strict=True))
        view = TileView(self, self.blocks.box(tile))
        fit = view.problem.operator.synthesise(*view.local(*self.codes.of(tile)), dtype=np.float64)
        own, there = self._samples(block, view)
        difference = self.signal[there] - fit[own]
        return 0.5 * inner(difference if self.weights is None else self.weights[there] * difference, difference)

    def _samples(self, block: Place, view: "TileView") -> tuple[Tile, Tile]:
        """The samples that a block's positions begin at, which are its own: in a view of it, and in the signal."""
        own = [slice(None)]
        for c, box, inside, count in zip(block, view.box, view.inside[1:], self.blocks.counts, strict=True):
            first = c * self.blocks.side - box.start
            last = inside.stop if c == count - 1 else first + self.blocks.side
            own.append(slice(max(first, inside.start), max(min(last, inside.stop), first, inside.start)))
        moved = zip(own[1:], view.inside[1:], view.outer[1:], strict=True)
        there = (slice(None), *(slice(o.start - i.start + u.start, o.stop - i.start + u.start) for o, i, u in moved))
        return tuple(own), there

    def _worth(self, block: Place, view: "TileView", point: NDArray | None = None) -> tuple[float, float]:
        """½ Σ θ² / w and Σ θ x in float64 over a block's own samples, for a point θ on its view, or the residual."""
        own, there = self._samples(block, view)
        theta = (view.residual if point is None else point)[own].astype(np.float64)
        energy = inner(theta, self.signal[there])
        if self.weights is None:
            return 0.5 * inner(theta, theta), energy
        weights = self.weights[there]
        seen = weights > 0
        return 0.5 * inner(theta[seen], theta[seen] / weights[seen]), energy

    def _refresh(self, block: Place) -> None:
        """Scan those positions of a block again whose bound is large: changes nearby raise bounds more than ratios."""
        view = self._view(block)
        bounds = self.bounds[view.box]
        bounds[:] = self._scanned(view, view.residual, bounds.ravel()).reshape(bounds.shape)

    def _shrunk(self, block: Place) -> tuple[float, float, float]:
        """The worth of the residual shrunk by the ratios around each sample, and the largest ratio that this leaves."""
        view = self._view(block)
        bounds = view.bounds()
        point = shrunk(view.touching, view.residual, bounds.ravel() / bounds.dtype.type(self.allowed))
        rise = self.state.rises(view.geometry, view.geometry.spread(point - view.residual))
        own = tuple(slice(f - 1, g - f + 1) for f, g in zip(view.geometry.filter, bounds.shape, strict=True))
        ratios = self._scanned(view, point, bounds[own].ravel() + rise)
        return (*self._worth(block, view, point), float(np.max(ratios)))

    def _scanned(self, view: "TileView", point: NDArray, bounds: NDArray) -> NDArray:
        """Bounds of the ratios of a point on a view's samples; positions whose bound was too large are scanned."""
        positions = np.flatnonzero(bounds > self.allowed)
        if len(positions) == 0:
            return bounds
        state, winner = DescentState(view.problem), np.empty(bounds.shape, np.int32)
        flat = view.geometry.spread(point.astype(bounds.dtype))
        rounding = bounds.dtype.type(state.rounding(view.geometry, flat))
        bounds = bounds.copy()
        bounds[state.scan(flat, bounds, winner, map, positions)] += rounding
        return bounds


class TileView:
    """A tile as a problem of its own: its codes, on the samples that they reach."""

    def __init__(self, large: LargeSignal, box: Tile) -> None:
        problem, geometry = large.problem, large.problem.geometry
        self.large, self.box = large, box
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
        self.residual = self._cut(large.residual)
        seen = large.weights
        if seen is None and not all(a >= 0 and b <= n for a, b, n in spans):
            seen = np.broadcast_to(np.ones(1, self.residual.dtype), large.signal.shape)
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
        moved = renumbered(codes, self.large.problem.geometry.grid, self.geometry.grid, [-s.start for s in self.box])
        order = np.argsort(moved)
        return moved[order], values[order]

    def whole(self, codes: NDArray) -> NDArray:
        """Codes in the tile's own numbers as codes of the whole grid, in the order given."""
        return renumbered(codes, self.geometry.grid, self.large.problem.geometry.grid, [s.start for s in self.box])

    def left_for(self, codes: NDArray, values: NDArray) -> NDArray:
        """What the tile's codes have to explain: the signal without what all other codes explain."""
        left = self.residual.astype(np.float64)
        if self.weights is not None:
            left = np.divide(left, self.weights, out=np.zeros_like(left), where=self.weights > 0)
        left += self.problem.operator.synthesise(codes, values, dtype=np.float64)
        return left.astype(self.residual.dtype)

    def put(self, residual: NDArray) -> NDArray:
        """Write the tile's residual to the shared one; returns how it changed."""
        fresh = residual.astype(self.residual.dtype)
        self.large.residual[self.outer] = fresh[self.inside]
        return fresh - self.residual

    @property
    def touching(self) -> Geometry:
        """All positions whose filters reach one of the tile's samples."""
        return replace(self.geometry, boundary="full")

    def bounds(self) -> NDArray:
        """The bounds of the ratios at all positions of `touching`, zero where the whole grid has none."""
        out = np.zeros(self.touching.grid, self.large.bounds.dtype)
        here, inside = self._around()
        out[inside] = self.large.bounds[here]
        return out

    def raise_bounds(self, found: NDArray, rise: NDArray) -> None:
        """Write what was found at the tile's positions, (*grid), and add a rise at the others of `touching`."""
        here, inside = self._around()
        self.large.bounds[here] += rise.reshape(self.touching.grid)[inside]
        self.large.bounds[self.box] = found

    def _around(self) -> tuple[Tile, Tile]:
        """Positions of `touching` that the whole grid has: where they lie in it, and where in `touching`."""
        here, inside = [], []
        for s, f, n in zip(self.box, self.geometry.filter, self.large.bounds.shape, strict=True):
            first, last = s.start - f + 1, s.stop + f - 1
            here.append(slice(max(first, 0), min(last, n)))
            inside.append(slice(max(-first, 0), min(last, n) - first))
        return tuple(here), tuple(inside)


@dataclass(frozen=True)
class Blocks:
    """A grid of positions cut into blocks of equal sides; the last ones may be smaller."""

    geometry: Geometry
    side: int

    @classmethod
    def of(cls, geometry: Geometry, side: int | None) -> "Blocks":
        ndim = len(geometry.grid)
        positions = TUNING.block_positions / max(1, geometry.channels / TUNING.block_channels)
        wanted = round(positions ** (1 / ndim)) if side is None else side
        # A tile between two others must keep what these reach apart.
        return cls(geometry, max(wanted, -(-max(geometry.filter) // 2)))

    @cached_property
    def counts(self) -> Place:
        return tuple(-(-g // self.side) for g in self.geometry.grid)

    @property
    def overlap(self) -> int:
        """Positions around a tile that are solved with it; tiles of one colour reach disjoint samples all the same."""
        return min(TUNING.overlap, (2 * self.side - max(self.geometry.filter) + 1) // 2)

    def shift(self, number: int) -> Place:
        """Blocks by which the tiles of a pass are shifted along each axis: in turn all ways, opposite ones together.

        With fewer of them some positions would always lie at the border of a tile, along one axis or another.
        """
        ways = list(product((0,), *[(0, 1)] * (len(self.counts) - 1)))
        way = ways[number // 2 % len(ways)]
        return way if number % 2 == 0 else tuple(1 - s for s in way)

    def colours(self, shift: Place) -> list[list[Tile]]:
        """Tiles as slices of blocks, by colour; tiles of one colour reach disjoint samples."""
        edges = [_edges(count, one) for count, one in zip(self.counts, shift, strict=True)]
        colours = []
        for parity in product((0, 1), repeat=len(edges)):
            axes = [spans[first::2] for spans, first in zip(edges, parity, strict=True)]
            tiles = list(product(*axes))
            if tiles:
                colours.append(tiles)
        return colours

    def box(self, tile: Tile, margin: int = 0) -> Tile:
        """Positions of the blocks of a tile, and so many around them."""
        spans = zip(tile, self.geometry.grid, strict=True)
        return tuple(slice(max(s.start * self.side - margin, 0), min(s.stop * self.side + margin, g)) for s, g in spans)

    def near(self, tile: Tile, margin: int) -> Tile:
        """A tile with all blocks that have positions within a margin around it."""
        more = -(-margin // self.side)
        return tuple(
            slice(max(s.start - more, 0), min(s.stop + more, count)) for s, count in zip(tile, self.counts, strict=True)
        )

    def contains(self, box: Tile, codes: NDArray) -> NDArray:
        """Which codes have their positions in a box."""
        inside = np.ones(len(codes), bool)
        for axis, span in zip(
            np.unravel_index(codes % self.geometry.n_positions, self.geometry.grid), box, strict=True
        ):
            inside &= (axis >= span.start) & (axis < span.stop)
        return inside

    def number(self, codes: NDArray) -> NDArray:
        """Flat number of the block that owns each code."""
        positions = np.unravel_index(codes % self.geometry.n_positions, self.geometry.grid)
        return np.ravel_multi_index([axis // self.side for axis in positions], self.counts)


class BlockCodes:
    """The codes that each block owns."""

    def __init__(self, blocks: Blocks, dtype: DTypeLike) -> None:
        self.blocks = blocks
        nothing = (np.empty(0, np.int64), np.empty(0, dtype))
        self._codes = {block: nothing for block in np.ndindex(blocks.counts)}

    def of(self, tile: Tile, box: Tile | None = None) -> tuple[NDArray, NDArray]:
        """Codes of the blocks of a tile, perhaps only those with positions in a box, and their values."""
        own = [self._codes[block] for block in product(*[range(s.start, s.stop) for s in tile])]
        codes, values = (np.concatenate(arrays) for arrays in zip(*own, strict=True))
        if box is None:
            return codes, values
        kept = self.blocks.contains(box, codes)
        return codes[kept], values[kept]

    def replace(self, codes: NDArray, values: NDArray, tile: Tile, box: Tile) -> None:
        """Give codes to the blocks of a tile that own them, instead of those that these had in a box."""
        number = self.blocks.number(codes)
        order = np.argsort(number, kind="stable")
        codes, values, number = codes[order], values[order], number[order]
        for block in product(*[range(s.start, s.stop) for s in tile]):
            flat = int(np.ravel_multi_index(block, self.blocks.counts))
            first, last = np.searchsorted(number, [flat, flat + 1])
            before, worth = self._codes[block]
            kept = ~self.blocks.contains(box, before)
            self._codes[block] = (
                np.concatenate([before[kept], codes[first:last]]),
                np.concatenate([worth[kept], values[first:last]]),
            )


def alone(block: Place) -> Tile:
    """A tile of one block."""
    return tuple(slice(c, c + 1) for c in block)


def _edges(count: int, shift: int) -> list[slice]:
    """Pairs of blocks along an axis, with single ones at the ends where they do not come out even."""
    starts = [0, *range(2 - shift, count, 2)] if count > 1 else [0]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def renumbered(codes: NDArray, grid: Place, other: Place, shift: list[int]) -> NDArray:
    """Flat codes on `grid` as flat codes on `other`, whose positions differ by a shift."""
    n_filters = int(codes.max()) // int(np.prod(grid)) + 1 if len(codes) else 1
    filters, *position = np.unravel_index(codes, (n_filters, *grid))
    moved = [axis + s for axis, s in zip(position, shift, strict=True)]
    return np.ravel_multi_index([filters, *moved], (n_filters, *other))


def shrunk(geometry: Geometry, residual: NDArray, ratios: NDArray) -> NDArray:
    """Divide every sample of a residual (channels, *space) by the largest ratio around it, where that exceeds one.

    `ratios` has an upper bound of |Dᵀr| / λ for each grid position, flat; the boundary is not circular.
    """
    around = np.zeros(geometry.padded, ratios.dtype)
    around[tuple(slice(n) for n in geometry.grid)] = ratios.reshape(geometry.grid)
    for axis, side in enumerate(geometry.filter):  # the largest in a box that ends at each place
        around = maximum_filter1d(around, side, axis, mode="constant", origin=(side - 1) // 2)
    inside = tuple(slice(o, o + n) for o, n in zip(geometry.offset, geometry.signal, strict=True))
    return residual / np.maximum(around[inside], 1)
