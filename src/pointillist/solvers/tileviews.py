"""A tile of a large signal as a problem of its own, on the samples that its codes reach."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pointillist.problem import Geometry, Problem
from pointillist.solvers.blocks import renumbered


@dataclass(frozen=True, eq=False)
class Whole:
    """What all tiles of a signal share.

    Attributes
    ----------
    problem : Problem
    signal : (channels, *space) array
    weights : (channels, *space) array or None
    residual : (channels, *space) array
        w (x − Dz), which tiles write to.
    bounds : (*grid) array
        Upper bounds of |Dᵀr| / λ at all positions, with all rounding counted in; infinite where nothing is known.
    """

    problem: Problem
    signal: NDArray
    weights: NDArray | None
    residual: NDArray
    bounds: NDArray


class TileView:
    """A tile as a problem of its own: its codes, on the samples that they reach."""

    def __init__(self, whole: Whole, box: tuple[slice, ...]) -> None:
        problem, geometry = whole.problem, whole.problem.geometry
        self._shared, self.box = whole, box
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
        self.residual = self._cut(whole.residual)
        seen = whole.weights
        if seen is None and not all(a >= 0 and b <= n for a, b, n in spans):
            seen = np.broadcast_to(np.ones(1, self.residual.dtype), whole.signal.shape)
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
        moved = renumbered(codes, self._shared.problem.geometry.grid, self.geometry.grid, [-s.start for s in self.box])
        order = np.argsort(moved)
        return moved[order], values[order]

    def whole(self, codes: NDArray) -> NDArray:
        """Codes in the tile's own numbers as codes of the whole grid, in the order given."""
        return renumbered(codes, self.geometry.grid, self._shared.problem.geometry.grid, [s.start for s in self.box])

    def left_for(self, codes: NDArray, values: NDArray) -> NDArray:
        """What the tile's codes have to explain: the signal without what all other codes explain."""
        left = self.residual.astype(np.float64)
        if self.weights is not None:
            left = np.divide(left, self.weights, out=np.zeros_like(left), where=self.weights > 0)
        left += self.problem.operator.synthesise_exactly(codes, values)
        return left.astype(self.residual.dtype)

    def put(self, residual: NDArray) -> NDArray:
        """Write the tile's residual to the shared one; returns how it changed."""
        fresh = residual.astype(self.residual.dtype)
        self._shared.residual[self.outer] = fresh[self.inside]
        return fresh - self.residual

    @property
    def touching(self) -> Geometry:
        """All positions whose filters reach one of the tile's samples."""
        return replace(self.geometry, boundary="full")

    def bounds(self) -> NDArray:
        """The bounds of the ratios at all positions of `touching`, zero where the whole grid has none."""
        out = np.zeros(self.touching.grid, self._shared.bounds.dtype)
        here, inside = self._around()
        out[inside] = self._shared.bounds[here]
        return out

    def own(self, array: NDArray) -> NDArray:
        """The tile's own positions of an array over those of `touching`."""
        return array[tuple(slice(f - 1, g - f + 1) for f, g in zip(self.geometry.filter, array.shape, strict=True))]

    def raise_bounds(self, found: NDArray, rise: NDArray) -> None:
        """Write what was found at the tile's positions, (*grid), and add a rise at the others of `touching`."""
        here, inside = self._around()
        self._shared.bounds[here] += rise[inside]
        self._shared.bounds[self.box] = found

    def _around(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Positions of `touching` that the whole grid has: where they lie in it, and where in `touching`."""
        here, inside = [], []
        for s, f, n in zip(self.box, self.geometry.filter, self._shared.bounds.shape, strict=True):
            first, last = s.start - f + 1, s.stop + f - 1
            here.append(slice(max(first, 0), min(last, n)))
            inside.append(slice(max(-first, 0), min(last, n) - first))
        return tuple(here), tuple(inside)
