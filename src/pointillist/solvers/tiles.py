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
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.large import LARGE, release, scratch, walked
from pointillist.parallel import Mapper, one_blas_thread
from pointillist.problem import Geometry, Problem
from pointillist.solvers.base import Result, Solution, Solver, collect
from pointillist.solvers.blocks import BlockCodes, Blocks, Place, alone
from pointillist.solvers.coordinate_descent import TUNING, CoordinateDescent, HostWorkingSet, solve_by_rounds
from pointillist.solvers.scanning import DescentState
from pointillist.solvers.tilecertificate import Certifier
from pointillist.solvers.tileviews import TileView, Whole

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""

_FIRST_EXCESS, _FALL = 0.2, 0.15
"""By how much ratios may exceed one after the first pass, and what part of that after the next."""
_UNSEEN = 0.3
"""Violations up to this share of a pass's excess are not looked for before the last passes."""
_MAX_PASSES = 100
_MARGIN = 0.8
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


def _is_large(geometry: Geometry) -> bool:
    samples = geometry.channels * prod(geometry.signal)
    large = geometry.n_positions >= LARGE or samples >= _MANY_CHANNELS * LARGE
    return large and geometry.boundary != "circular"


@dataclass(frozen=True, eq=False)
class _Visit:
    """The outcome of solving one tile.

    It holds the tile's codes, bounds of its ratios (*grid), how much ratios can have risen at all positions that reach its
    samples, and the rounds that it took.
    """

    tile: tuple[slice, ...]
    view: TileView
    codes: NDArray
    values: NDArray
    found: NDArray
    rise: NDArray
    rounds: int


class _Done(NamedTuple):
    """Progress of a pass: the share of its colours that are solved, and the most rounds that a tile of the last took."""

    share: float
    rounds: int


def _first_goal(tol: float) -> float:
    """The excess of ratios at which a certificate is worth its time: a point that is shrunk locally bears much."""
    return min(7 * tol, _FIRST_EXCESS) if tol <= TUNING.loose else 1.5 * tol


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
        self.codes = BlockCodes(self.blocks, signal.dtype)
        # The largest |Dᵀr| / λ of each block; infinite where it is not known.
        self.ratio = np.full(self.blocks.counts, np.inf)
        self.residual = scratch(signal, signal.shape, signal.dtype)
        for band in walked(signal, self.residual):
            self.residual[band] = signal[band] if self.weights is None else self.weights[band] * signal[band]
        bounds = scratch(signal, self.geometry.grid, signal.dtype)
        bounds[:] = np.inf
        self.whole = Whole(self.problem, signal, self.weights, self.residual, bounds)
        self.certifier = Certifier(self.whole, self.blocks, self.codes, state, settings.tol, i)
        self.started = begin is not None
        if begin is not None:
            self._begin(*begin)

    def _begin(self, codes: NDArray, values: NDArray) -> None:
        kept = values > 0 if self.problem.nonnegative else values != 0
        everywhere = tuple(slice(0, n) for n in self.blocks.counts)
        values = values[kept].astype(self.signal.dtype)
        self.codes.replace(codes[kept], values, everywhere, self.blocks.box(everywhere))
        for block in np.ndindex(self.blocks.counts):
            view = self._view(alone(block))
            indices, own = view.local(*self.codes.of(alone(block)))
            if len(indices):
                fit = view.problem.operator.synthesise(indices, own)
                view.put(view.residual - (fit if view.weights is None else view.weights * fit))

    def _view(self, tile: tuple[slice, ...], margin: int = 0) -> TileView:
        return TileView(self.whole, self.blocks.box(tile, margin))

    def run(self) -> Solution:
        tol = self.settings.coder.tol
        floor = _SMALLEST_EXCESS * float(np.finfo(self.signal.dtype).eps)
        # Borders are not worth much effort before both sides are good: all of the signal gets better pass by pass.
        excess, goal, rounds = _FIRST_EXCESS / _FALL, max(_first_goal(tol), floor), 0
        planned = max(1, math.ceil(math.log(goal / excess) / math.log(_FALL)))
        for passes in range(_MAX_PASSES):
            excess = max(excess * _FALL, goal)
            for done in self._pass(
                self.blocks.shift(passes), excess, self.certifier.allowed - 1 if excess == goal else _UNSEEN * excess
            ):
                rounds += done.rounds
                # Until the goal is near every planned pass counts alike; then what counts is how much is settled.
                share = done.share if excess > goal else float(np.mean(self.ratio <= 1 + goal))
                self._report((min(passes, planned - 1) + share) / planned)
            if excess > goal or np.any(self.ratio > 1 + excess):
                continue
            found = self.certifier.certificate(float(np.max(self.ratio)), self.mapper)
            if found.gap <= tol or goal <= floor or not np.isfinite(found.objective):
                break
            reached = min(goal, float(np.max(self.ratio)) - 1)
            goal = max(reached * min(tol / found.gap, _MARGIN) * _MARGIN, floor)
        else:
            found = self.certifier.certificate(float(np.max(self.ratio)), self.mapper)
        codes, values = self.codes.of(tuple(slice(0, n) for n in self.blocks.counts))
        order = np.argsort(codes)
        return Solution(codes[order], values[order], found, rounds)

    def _report(self, share: float) -> None:
        if self.settings.progress is not None:
            self.settings.progress((self.i + share) / self.n_signals)

    def _pass(self, shift: Place, excess: float, negligible: float) -> Iterator[_Done]:
        """Solve all tiles that are not settled, colour by colour."""
        colours = self.blocks.colours(shift)
        for number, tiles in enumerate(colours, 1):
            todo = [tile for tile in tiles if np.max(self.ratio[tile]) > 1 + excess]
            rounds = [0]
            for visit in self.mapper(lambda tile: self._visit(tile, excess, negligible), todo):
                near = self.blocks.near(visit.tile, self.blocks.overlap + max(self.geometry.filter) - 1)
                self.codes.replace(visit.codes, visit.values, near, visit.view.box)
                visit.view.raise_bounds(visit.found, visit.rise)
                for block in self.blocks.inside(near):
                    self.ratio[block] = np.max(self.whole.bounds[self.blocks.box(alone(block))])
                rounds.append(visit.rounds)
                self._release()
            yield _Done(number / len(colours), max(rounds))

    def _release(self) -> None:
        """Let go of what was read of the files that the signal and its residual may lie in."""
        release(self.signal, self.residual, self.whole.bounds)

    def _visit(self, tile: tuple[slice, ...], excess: float, negligible: float) -> _Visit:
        view = self._view(tile, self.blocks.overlap)
        near = self.blocks.near(tile, self.blocks.overlap)
        codes, values = view.local(*self.codes.of(near, view.box))
        signal = view.left_for(codes, values)
        bounds, known, coder = self.whole.bounds[view.box].ravel(), None, self.settings.coder
        if np.all(np.isfinite(bounds)):
            known = (bounds, view.geometry.spread(view.residual))
        if known or self.started:  # codes are spread out already
            coder = replace(coder, cells=coder.cells[-1:])
        sets = HostWorkingSet(
            coder, coder.prepare(view.problem), 0, signal, (codes, values), map,
            certifies=False, known=known, negligible=negligible,
        )  # fmt: skip
        found = solve_by_rounds(sets, coder, lambda look: look.ratio + sets.rounding > 1 + _MARGIN * excess)
        rise = self.state.rises(view.touching, view.touching.spread(view.put(found.residuals[0])))
        ratios = (sets.best + sets.slack + sets.best.dtype.type(sets.rounding)).reshape(view.geometry.grid)
        indices, values = view.whole(found.codes.indices[0]), found.codes.values[0]
        return _Visit(tile, view, indices, values, ratios, rise, int(found.iterations[0]))
