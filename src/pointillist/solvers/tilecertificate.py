"""The certificate of a large signal whose codes were found tile by tile, computed block by block."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.large import release
from pointillist.parallel import Mapper
from pointillist.problem import Certificate, inner, relative_gap
from pointillist.solvers.blocks import BlockCodes, Blocks, Place, alone
from pointillist.solvers.certificate import TUNING, shrunk
from pointillist.solvers.coordinate_descent import TUNING as ROUNDS
from pointillist.solvers.scanning import DescentState
from pointillist.solvers.tileviews import TileView, Whole

Answer = TypeVar("Answer")


class Certifier:
    """Says what the codes of signal i are worth, for a relative gap `tol` that is to be reached."""

    def __init__(
        self, whole: Whole, blocks: Blocks, codes: BlockCodes, state: DescentState, tol: float, i: int
    ) -> None:
        self.whole, self.blocks, self.codes, self.state, self.tol, self.i = whole, blocks, codes, state, tol, i
        self.allowed = 1 + TUNING.allowed * tol  # the ratio up to which the dual point is not shrunk locally

    def certificate(self, largest: float, mapper: Mapper) -> Certificate:
        """What all codes together are worth; the residual that all tiles share is the dual point, shrunk by its ratios.

        `largest` is a bound of all ratios. The point is shrunk as a whole by it or, for a tight tolerance, each sample by
        the ratios around it; see `shrunk`.
        """
        codes, values = self.codes.of(tuple(slice(0, n) for n in self.blocks.counts))
        price = inner(self.whole.problem.penalty_at(codes), np.abs(values))
        objective, constant = sum(self._walk(self._loss, mapper)) + price, self.whole.problem.constant_of(self.i)
        size, energy = np.sum(list(self._walk(self._plain, mapper)), axis=0)
        gap = relative_gap(objective, size, energy, largest, constant)
        if gap > self.tol and self.tol <= ROUNDS.loose:
            for _ in self._walk(self._refresh, mapper):
                pass
            pieces = np.array(list(self._walk(self._shrunk, mapper)))
            size, energy = np.sum(pieces[:, :2], axis=0)
            gap = min(gap, relative_gap(objective, size, energy, float(np.max(pieces[:, 2])), constant))
        return Certificate(objective + constant, gap, self.whole.residual)

    def _walk(self, work: Callable[[Place], Answer], mapper: Mapper) -> Iterator[Answer]:
        """Answers to work on all blocks, in their order."""
        for answer in mapper(work, list(np.ndindex(self.blocks.counts))):
            yield answer
            release(self.whole.signal, self.whole.residual, self.whole.bounds)

    def _view(self, tile: tuple[slice, ...]) -> TileView:
        return TileView(self.whole, self.blocks.box(tile))

    def _loss(self, block: Place) -> float:
        """½ Σ w (x − Dz)² in float64 over a block's own samples, from the codes that reach them."""
        reach = [-(-(f - 1) // self.blocks.side) for f in self.whole.problem.geometry.filter]
        tile = tuple(slice(max(c - r, 0), c + 1) for c, r in zip(block, reach, strict=True))
        view = self._view(tile)
        fit = view.problem.operator.synthesise_exactly(*view.local(*self.codes.of(tile)))
        own, there = self._samples(block, view)
        difference = self.whole.signal[there] - fit[own]
        return 0.5 * inner(
            difference if self.whole.weights is None else self.whole.weights[there] * difference, difference
        )

    def _samples(self, block: Place, view: TileView) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The samples that a block's positions begin at, which are its own: in a view of it, and in the signal."""
        own = [slice(None)]
        for c, box, inside, count in zip(block, view.box, view.inside[1:], self.blocks.counts, strict=True):
            first = c * self.blocks.side - box.start
            last = inside.stop if c == count - 1 else first + self.blocks.side
            own.append(slice(max(first, inside.start), max(min(last, inside.stop), first, inside.start)))
        moved = zip(own[1:], view.inside[1:], view.outer[1:], strict=True)
        there = (slice(None), *(slice(o.start - i.start + u.start, o.stop - i.start + u.start) for o, i, u in moved))
        return tuple(own), there

    def _plain(self, block: Place) -> tuple[float, float]:
        """½ Σ r² / w and Σ r x in float64 over a block's own samples."""
        view = self._view(alone(block))
        return self._worth(block, view, view.residual)

    def _worth(self, block: Place, view: TileView, point: NDArray) -> tuple[float, float]:
        """½ Σ θ² / w and Σ θ x in float64 over a block's own samples, for a dual point θ on those of its view."""
        own, there = self._samples(block, view)
        theta = point[own].astype(np.float64)
        energy = inner(theta, self.whole.signal[there])
        if self.whole.weights is None:
            return 0.5 * inner(theta, theta), energy
        weights = self.whole.weights[there]
        seen = weights > 0
        return 0.5 * inner(theta[seen], theta[seen] / weights[seen]), energy

    def _refresh(self, block: Place) -> None:
        """Scan those positions of a block again whose bound is large: changes nearby raise bounds more than ratios."""
        view = self._view(alone(block))
        bounds = self.whole.bounds[view.box]
        bounds[:] = self._scanned(view, view.residual, bounds.ravel()).reshape(bounds.shape)

    def _shrunk(self, block: Place) -> tuple[float, float, float]:
        """The worth of the residual shrunk by the ratios around each sample, and the largest ratio that this leaves."""
        view = self._view(alone(block))
        bounds = view.bounds()
        point = shrunk(view.touching, view.residual, bounds.ravel() / bounds.dtype.type(self.allowed))
        rise = self.state.rises(view.geometry, view.geometry.spread(point - view.residual))
        ratios = self._scanned(view, point, (view.own(bounds) + rise).ravel())
        return (*self._worth(block, view, point), float(np.max(ratios)))

    def _scanned(self, view: TileView, point: NDArray, bounds: NDArray) -> NDArray:
        """Bounds of the ratios of a point on a view's samples; positions whose bound was too large are scanned."""
        positions = np.flatnonzero(bounds > self.allowed)
        if len(positions):
            state, winner = DescentState(view.problem), np.empty(bounds.shape, np.int32)
            flat = view.geometry.spread(point.astype(bounds.dtype))
            rounding = bounds.dtype.type(state.rounding(view.geometry, flat))
            if state.can_screen:
                bounds = bounds.copy()
                state.scan_positions(flat, positions, bounds, winner, map)
                bounds[positions] += rounding
            else:
                bounds = np.empty_like(bounds)
                state.scan(flat, bounds, winner, map)
                bounds += rounding
        return bounds
