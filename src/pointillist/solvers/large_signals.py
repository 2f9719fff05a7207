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
from itertools import pairwise, product
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pointillist.arrays import LARGE, release, scratch, walked
from pointillist.codes import SparseCodes
from pointillist.parallel import Mapper, one_blas_thread
from pointillist.problem import Certificate, Geometry, Problem, inner, relative_gap
from pointillist.solvers.base import Result, Solution, Solver, collect
from pointillist.solvers.coordinate_descent import CoordinateDescent, HostWorkingSet, solve_by_rounds
from pointillist.solvers.scanning import DescentState

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""
Place = tuple[int, ...]
Tile = tuple[slice, ...]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of the descent by tiles, measured with ``python -m benchmarks.large``."""

    first_excess: float = 0.2
    """By how much ratios may exceed one after the first pass: borders are not worth much before both sides are good."""
    fall: float = 0.15
    """Part of that by which they may after each further pass."""
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
        What solves a tile, without a ridge; its `tol` is the relative gap of the whole signal.
    side : int, optional
        Side of a block; a tile has two. By default a tile has some 2^18 positions, 512² in a picture.
    progress : callable, optional
        Called with the share of the signal that is settled, after every colour of tiles.
    """

    takes_start: ClassVar[bool] = True

    coder: CoordinateDescent = field(default_factory=CoordinateDescent)
    side: int | None = None
    progress: Progress | None = None

    @property
    def tol(self) -> float:
        """The relative gap to reach."""
        return self.coder.tol

    def prepare(self, problem: Problem) -> DescentState:
        """Lay out what all signals share; problems are neither circular nor sampled."""
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
    geometry = problem.geometry
    samples = geometry.channels * prod(geometry.signal)
    large = geometry.n_positions >= LARGE or samples >= TUNING.many_channels * LARGE
    if not large or problem.drawn is not None or geometry.boundary == "circular":
        return solver
    if not isinstance(solver, CoordinateDescent) or solver.ridge > 0:  # which would not come to rest tile by tile
        return solver
    return TiledDescent(coder=solver, progress=progress)


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
    codes : dict
        Of each block its codes, (1 + ndim, n) filters and positions, and their values.
    """

    def __init__(self, settings: TiledDescent, state: DescentState, i: int, signal: NDArray, mapper: Mapper) -> None:
        self.coder, self.state, self.problem, self.mapper = settings.coder, state, state.problem, mapper
        self.signal, self.weights, self.constant = signal, self.problem.weights_of(i), self.problem.constant_of(i)
        self.blocks = Blocks.of(self.problem.geometry, settings.side)
        nothing = np.empty((1 + len(self.blocks.counts), 0), np.int64), np.empty(0, signal.dtype)
        self.codes = {block: nothing for block in np.ndindex(self.blocks.counts)}
        self.ratio = np.full(self.blocks.counts, np.inf)
        self.residual = scratch(signal, signal.shape, signal.dtype)
        for band in walked(signal, self.residual):
            self.residual[band] = signal[band] if self.weights is None else self.weights[band] * signal[band]
        self.bounds = scratch(signal, self.problem.geometry.grid, signal.dtype)
        self.bounds[:] = np.inf

    def solve(self, begin: tuple[NDArray, NDArray] | None, report: Progress) -> Solution:
        """Solve from codes and their values, or from zero; `report` is told the share that is settled."""
        tol, rounds, tuning, geometry = self.coder.tol, 0, TUNING, self.problem.geometry
        shape, everywhere = (self.problem.n_filters, *geometry.grid), tuple(slice(0, n) for n in self.blocks.counts)
        if begin is not None:
            self._begin(np.array(np.unravel_index(begin[0], shape)), begin[1])
        floor = tuning.smallest_excess * float(np.finfo(self.signal.dtype).eps)
        goal, excess = max(1.5 * tol, floor), tuning.first_excess / tuning.fall
        planned = max(1, math.ceil(math.log(goal / excess) / math.log(tuning.fall)))
        for passes in range(tuning.passes):
            excess = max(excess * tuning.fall, goal)
            colours = self.blocks.colours(self.blocks.shift(passes))
            for number, tiles in enumerate(colours, 1):
                rounds += self._solve_tiles(tiles, excess)
                report(min((passes + number / len(colours)) / planned, 1.0))
            if excess > goal or np.any(self.ratio > 1 + excess):
                continue
            found = self.certificate()
            if found.gap <= tol or goal <= floor or not np.isfinite(found.objective):
                break
            reached = min(goal, float(np.max(self.ratio)) - 1)
            goal = max(reached * min(tol / found.gap, tuning.margin) * tuning.margin, floor)
        else:
            found = self.certificate()
        places, values = self._codes_of(everywhere)
        codes = np.ravel_multi_index(tuple(places), shape)
        order = np.argsort(codes)
        return Solution(codes[order], values[order], found, rounds)

    def _codes_of(self, tile: Tile, box: Tile | None = None) -> tuple[NDArray, NDArray]:
        """Codes of the blocks of a tile, perhaps only those with positions in a box, and their values."""
        places, values = zip(*(self.codes[block] for block in blocks_of(tile)), strict=True)
        codes, amounts = np.concatenate(places, axis=1), np.concatenate(values)
        if box is None:
            return codes, amounts
        kept = within(codes, box)
        return codes[:, kept], amounts[kept]

    def _replace(self, codes: NDArray, values: NDArray, tile: Tile, box: Tile) -> None:
        """Give codes to the blocks of a tile that own them, instead of those that these had in a box."""
        owners = codes[1:].T // self.blocks.side
        for block in blocks_of(tile):
            before, old = self.codes[block]
            kept, own = ~within(before, box), np.all(owners == block, axis=1)
            self.codes[block] = np.hstack([before[:, kept], codes[:, own]]), np.hstack([old[kept], values[own]])

    def _begin(self, codes: NDArray, values: NDArray) -> None:
        kept = values > 0 if self.problem.nonnegative else values != 0
        everywhere = tuple(slice(0, n) for n in self.blocks.counts)
        self._replace(codes[:, kept], values[kept].astype(self.signal.dtype), everywhere, self.blocks.box(everywhere))
        for block in self.codes:
            view = TileView(self, self.blocks.box(alone(block)))
            fit = view.problem.operator.synthesise(*view.local(*self.codes[block]))
            view.put(view.residual - (fit if view.weights is None else view.weights * fit))

    def _solve_tiles(self, tiles: list[Tile], excess: float) -> int:
        """Solve those tiles of one colour that are not settled, side by side; returns the most rounds that one took."""
        rounds, overlap, sizes = 0, self.blocks.overlap, self.problem.geometry.filter
        todo = [tile for tile in tiles if np.max(self.ratio[tile]) > 1 + excess]

        def visit(tile: Tile) -> tuple["TileView", Result, NDArray, NDArray]:
            view = TileView(self, self.blocks.box(tile, overlap))
            codes, values = view.local(*self._codes_of(self.blocks.near(tile, overlap), view.box))
            signal, bounds = view.left_for(codes, values), self.bounds[view.box].ravel()
            known = (bounds, view.geometry.spread(view.residual)) if np.all(np.isfinite(bounds)) else None
            state = self.coder.prepare(view.problem)
            sets = HostWorkingSet(self.coder, state, 0, signal, (codes, values), map, certifies=False, known=known)
            found = solve_by_rounds(
                sets, self.coder, lambda look: look.ratio + sets.rounding > 1 + TUNING.margin * excess
            )
            touching = replace(view.geometry, boundary="full")  # all positions whose filters reach a sample of the tile
            rise = self.state.rises(touching, touching.spread(view.put(found.residuals[0]))).reshape(touching.grid)
            return view, found, sets.best + sets.slack + sets.best.dtype.type(sets.rounding), rise

        for tile, (view, found, ratios, rise) in zip(todo, self.mapper(visit, todo), strict=True):
            near = self.blocks.near(tile, overlap + max(sizes) - 1)
            self._replace(view.whole(found.codes.indices[0]), found.codes.values[0], near, view.box)
            first = [s.start - f + 1 for s, f in zip(view.box, sizes, strict=True)]
            spans = [(max(a, 0), min(a + n, g)) for a, n, g in zip(first, rise.shape, self.bounds.shape, strict=True)]
            inside = tuple(slice(low - a, high - a) for (low, high), a in zip(spans, first, strict=True))
            self.bounds[tuple(slice(*span) for span in spans)] += rise[inside]
            self.bounds[view.box] = ratios.reshape(view.geometry.grid)
            for block in blocks_of(near):
                self.ratio[block] = np.max(self.bounds[self.blocks.box(alone(block))])
            rounds = max(rounds, int(found.iterations[0]))
            release(self.signal, self.residual, self.bounds)
        return rounds

    def certificate(self) -> Certificate:
        """Worth of all codes together, block by block; the residual, divided by its largest ratio, is the dual point."""
        price, sums = 0.0, np.zeros(3)
        for block, worth in zip(self.codes, self.mapper(self._worth, list(self.codes)), strict=True):
            codes, values = self.codes[block]
            flat: Any = np.ravel_multi_index(tuple(codes), (self.problem.n_filters, *self.problem.geometry.grid))
            price, sums = price + self.problem.price(flat, values), sums + worth
            release(self.signal, self.residual, self.bounds)
        objective, loss, energy = (float(one) for one in (price + sums[0], *sums[1:]))
        gap = relative_gap(objective, loss, energy, float(np.max(self.ratio)), self.constant)
        return Certificate(objective + self.constant, gap, self.residual)

    def _worth(self, block: Place) -> tuple[float, float, float]:
        """Sums in float64 over a block's own samples, those that its positions begin at.

        They are ½ Σ w (x − Dz)², from the codes that reach them, and for the residual r as it is kept ½ Σ r² / w and Σ r x.
        """
        geometry, side, own = self.problem.geometry, self.blocks.side, [slice(None)]
        for c, o, n, count in zip(block, geometry.offset, geometry.signal, self.blocks.counts, strict=True):
            first = min(max(c * side - o, 0), n) if c else 0
            own.append(slice(first, n if c == count - 1 else max(min((c + 1) * side - o, n), first)))
        there = tuple(own)
        reach = [-(-(f - 1) // side) for f in geometry.filter]
        tile = tuple(slice(max(c - r, 0), c + 1) for c, r in zip(block, reach, strict=True))
        view = TileView(self, self.blocks.box(tile))
        fit = view.problem.operator.synthesise(*view.local(*self._codes_of(tile)), dtype=np.float64)
        moved = (slice(s.start - a, s.stop - a) for s, a in zip(there[1:], view.first, strict=True))
        difference = self.signal[there] - fit[(slice(None), *moved)]
        point = self.residual[there].astype(np.float64)
        energy = inner(point, self.signal[there])
        if self.weights is None:
            return 0.5 * inner(difference, difference), 0.5 * inner(point, point), energy
        weights = self.weights[there]
        seen = np.divide(point, weights, out=np.zeros_like(point), where=weights > 0)
        return 0.5 * inner(weights * difference, difference), 0.5 * inner(point, seen), energy


class TileView:
    """A tile as a problem of its own: its codes, on the samples that they reach.

    `first` is the sample that it begins at along each axis; what its codes reach may lie outside of the signal, with weight
    zero.
    """

    def __init__(self, large: LargeSignal, box: Tile) -> None:
        problem, geometry = large.problem, large.problem.geometry
        self.large, self.box = large, box
        lengths = tuple(s.stop - s.start + f - 1 for s, f in zip(box, geometry.filter, strict=True))
        self.geometry = Geometry(lengths, geometry.filter, geometry.channels, "valid")
        self.first = [s.start - o for s, o in zip(box, geometry.offset, strict=True)]
        spans = [(a, max(a, 0), min(a + m, n)) for a, m, n in zip(self.first, lengths, geometry.signal, strict=True)]
        self.outer = (slice(None), *(slice(low, high) for _, low, high in spans))
        self.inside = (slice(None), *(slice(low - a, high - a) for a, low, high in spans))
        self.residual, penalty, seen = self._cut(large.residual), problem.penalty, large.weights
        if seen is None and self.residual[self.inside].shape != self.residual.shape:
            seen = np.broadcast_to(np.ones(1, self.residual.dtype), large.signal.shape)
        self.weights = None if seen is None else self._cut(seen)
        if penalty.shape[1] > 1:
            maps = penalty.reshape(-1, *geometry.grid)[(slice(None), *box)]
            penalty = np.ascontiguousarray(maps.reshape(len(maps), -1))
        self.problem = replace(problem, geometry=self.geometry, weights=self.weights, penalty=penalty, constants=None)

    def _cut(self, array: NDArray) -> NDArray:
        out = np.zeros((self.geometry.channels, *self.geometry.signal), array.dtype)
        out[self.inside] = array[self.outer]
        return out

    def local(self, codes: NDArray, values: NDArray) -> tuple[NDArray, NDArray]:
        """Filters and positions of the whole grid as the tile's own flat codes, ascending, with their values."""
        moved = [codes[0], *(axis - s.start for axis, s in zip(codes[1:], self.box, strict=True))]
        flat = np.ravel_multi_index(tuple(moved), (self.large.problem.n_filters, *self.geometry.grid))
        order = np.argsort(flat)
        return flat[order], values[order]

    def whole(self, codes: NDArray) -> NDArray:
        """The tile's own flat codes as filters and positions of the whole grid, in the order given."""
        filters, *position = np.unravel_index(codes, (self.large.problem.n_filters, *self.geometry.grid))
        return np.array([filters, *(axis + s.start for axis, s in zip(position, self.box, strict=True))])

    def left_for(self, codes: NDArray, values: NDArray) -> NDArray:
        """The signal without what all codes but the tile's explain: what these have to."""
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


@dataclass(frozen=True)
class Blocks:
    """A grid of positions cut into blocks of equal sides; the last ones may be smaller."""

    geometry: Geometry
    side: int

    @classmethod
    def of(cls, geometry: Geometry, side: int | None) -> "Blocks":
        """Blocks of a side, or of the side that suits the number of channels."""
        positions = TUNING.block_positions / max(1, geometry.channels / TUNING.block_channels)
        wanted = round(positions ** (1 / len(geometry.grid))) if side is None else side
        # A tile between two others must keep what these reach apart.
        return cls(geometry, max(wanted, -(-max(geometry.filter) // 2)))

    @cached_property
    def counts(self) -> Place:
        """Number of blocks along each axis."""
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
        """Tiles as slices of blocks, by colour; tiles of one colour reach disjoint samples.

        They are pairs of blocks along each axis, with single ones at the ends where these do not come out even.
        """
        axes = []
        for count, one in zip(self.counts, shift, strict=True):
            edges = [0, *range(2 - one, count, 2), count] if count > 1 else [0, count]
            axes.append([slice(*pair) for pair in pairwise(edges)])
        parities = product((0, 1), repeat=len(axes))
        colours = [list(product(*(spans[p::2] for spans, p in zip(axes, parity, strict=True)))) for parity in parities]
        return [tiles for tiles in colours if tiles]

    def box(self, tile: Tile, margin: int = 0) -> Tile:
        """Positions of the blocks of a tile, and so many around them."""
        spans = zip(tile, self.geometry.grid, strict=True)
        return tuple(slice(max(s.start * self.side - margin, 0), min(s.stop * self.side + margin, g)) for s, g in spans)

    def near(self, tile: Tile, margin: int) -> Tile:
        """A tile with all blocks that have positions within a margin around it."""
        more, spans = -(-margin // self.side), zip(tile, self.counts, strict=True)
        return tuple(slice(max(s.start - more, 0), min(s.stop + more, count)) for s, count in spans)


def alone(block: Place) -> Tile:
    """A tile of one block."""
    return tuple(slice(c, c + 1) for c in block)


def blocks_of(tile: Tile) -> Iterator[Place]:
    """The blocks of a tile."""
    return product(*(range(s.start, s.stop) for s in tile))


def within(codes: NDArray, box: Tile) -> NDArray:
    """True for the codes, (1 + ndim, n) filters and positions, whose positions lie in a box."""
    inside = np.ones(codes.shape[1], bool)
    for axis, span in zip(codes[1:], box, strict=True):
        inside &= (axis >= span.start) & (axis < span.stop)
    return inside
