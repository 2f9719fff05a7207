"""Where the codes of a working set lie in a padded signal; codes of a circle come round to its other side."""

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.descent import locate
from pointillist.kernels.layout import SPARE_SAMPLES, Layout, strides_of
from pointillist.kernels.sweeps import Strips
from pointillist.kernels.updates import Circle, Places
from pointillist.kernels.vectors import width_of
from pointillist.problem import Geometry
from pointillist.solvers.strips import StripPlan, strip_plan


class Stage(NamedTuple):
    """All that a descent on a working set needs to know of its places; the residual and the weights are flat."""

    layout: Layout
    places: Places
    residual: NDArray
    weights: NDArray
    strips: Strips


class Field:
    """Makes stages for signals of a geometry."""

    def __init__(self, geometry: Geometry, layout: Layout) -> None:
        self.geometry, self.layout = geometry, layout

    @cached_property
    def plan(self) -> StripPlan:
        """How the signals are cut into strips."""
        return strip_plan(self.geometry, (self.geometry.channels, *self.geometry.padded), self.geometry.padded)

    def laid(self, flat: NDArray) -> NDArray:
        """A flat padded signal as it is descended on."""
        return flat

    def inside(self, laid: NDArray) -> NDArray:
        """What is descended on as a signal (channels, *space)."""
        return self.geometry.inside(laid)

    def places(self, codes: NDArray) -> Places:
        """Where codes lie."""
        bases, starts = np.empty_like(codes), np.empty_like(codes)
        locate(self.layout, codes, bases, starts)
        return Places(bases, starts)

    def stage(self, codes: NDArray, residual: NDArray, weights: NDArray) -> Stage:
        """The stage for codes in the order of their positions, with a flat padded residual and weights that are laid."""
        strips = self.plan.strips(codes % self.geometry.n_positions)
        return Stage(self.layout, self.places(codes), self.laid(residual), weights, strips)


class Ring(Field):
    """Makes stages for circular signals: samples without padding, but for the first of each row behind its end again.

    Where a code lies is looked up by its row and its column, for which all that there is to know is worked out once.
    """

    def __init__(self, geometry: Geometry, layout: Layout) -> None:
        super().__init__(geometry, layout)
        lanes, around, length = width_of(layout.run_lanes), geometry.signal, geometry.signal[-1]
        doubled = min(lanes, geometry.filter[-1]) - 1
        # Behind each row is room for a run, so that closing a seam in one never waits for the row before.
        self.shape = (geometry.channels, *around[:-1], length + lanes)
        self._step = len(layout.run_offsets) * lanes  # from filter to filter in the runs
        self._row_ways, self._column_ways, offsets = _ways(geometry, self.shape, lanes)
        self._seams = _seams(geometry, lanes, doubled)
        none, runs_a_row = np.empty(0, np.int64), -(-geometry.filter[-1] // lanes)
        self._circle = Circle(none, offsets, none, none, runs_a_row, length, doubled)

    @cached_property
    def plan(self) -> StripPlan:
        """How the signals are cut into strips."""
        return strip_plan(self.geometry, self.shape, self.geometry.signal, self._circle.doubled)

    def laid(self, flat: NDArray) -> NDArray:
        """A copy of a padded signal without what it holds twice, but for the first samples of each row behind its end."""
        geometry, shape = self.geometry, self.shape
        box = flat[: geometry.channels * prod(geometry.padded)].reshape(geometry.channels, *geometry.padded)
        closed = np.zeros(prod(shape) + SPARE_SAMPLES, flat.dtype)
        inside = (*(slice(n) for n in shape[:-1]), slice(geometry.signal[-1] + self._circle.doubled))
        closed[: prod(shape)].reshape(shape)[inside] = box[inside]
        return closed

    def inside(self, laid: NDArray) -> NDArray:
        """What is descended on as a signal (channels, *space)."""
        circle = laid[: prod(self.shape)].reshape(self.shape)[..., : self.geometry.signal[-1]]
        return np.roll(circle, [-o for o in self.geometry.offset], range(1, circle.ndim))

    def places(self, codes: NDArray) -> Places:
        """Where codes lie."""
        filters, positions = np.divmod(codes, self.geometry.n_positions)
        rows, columns = np.divmod(positions, self.geometry.signal[-1])
        circle = self._circle._replace(
            ways=self._row_ways[rows] + self._column_ways[columns], seams=self._seams[columns], columns=columns
        )
        return Places(rows * self.shape[-1] + columns, filters * self._step, circle)


def field_of(geometry: Geometry, layout: Layout) -> Field:
    """What makes stages for a geometry."""
    return (Ring if geometry.boundary == "circular" else Field)(geometry, layout)


def _ways(geometry: Geometry, shape: tuple[int, ...], lanes: int) -> tuple[NDArray, NDArray, NDArray]:
    """Where the runs of codes lie relative to their bases: offsets, and where among them those of a code begin.

    Runs that leave the circle come round to its other side. Which of them do depends on how near the end a code is along
    each axis; where its offsets begin is a sum of two numbers, of its row and of its column.
    """
    steps = [1] * (len(geometry.signal) - 1) + [lanes]
    # For each axis: how many runs come before the end, and which of these numbers each position has.
    firsts: list[NDArray] = []
    own: list[NDArray] = []
    for n, f, step in zip(geometry.signal, geometry.filter, steps, strict=True):
        before = np.minimum(-(-(n - np.arange(n)) // step), -(-f // step))
        first, kind = np.unique(before, return_inverse=True)
        firsts.append(first)
        own.append(kind)
    strides, kinds = strides_of(shape), [len(first) for first in firsts]
    offsets = np.broadcast_to(strides[0] * np.arange(geometry.channels), (*kinds, geometry.channels))
    for axis, (first, n, f, step, stride) in enumerate(
        zip(firsts, geometry.signal, geometry.filter, steps, strides[1:], strict=True)
    ):
        along = np.arange(-(-f // step))
        of_kind = (step * along - n * (along >= first[:, None])) * stride
        of_kind = of_kind.reshape([kinds[axis] if a == axis else 1 for a in range(len(kinds))] + [1, len(along)])
        offsets = (offsets[..., None] + of_kind).reshape(*kinds, -1)
    count, row_ways = offsets.shape[-1], np.zeros((), np.int64)
    for axis in range(len(kinds) - 1):
        row_ways = row_ways[..., None] + own[axis] * (count * prod(kinds[axis + 1 :]))
    return row_ways.reshape(-1), own[-1] * count, offsets.reshape(-1)


def _seams(geometry: Geometry, lanes: int, doubled: int) -> NDArray:
    """The seam of codes at each column: so many first samples of their rows they change behind the end, or −1."""
    length, size = geometry.signal[-1], geometry.filter[-1]
    whole = lanes * -(-size // lanes)
    size = whole if whole <= length else size  # bundles of codes fill their runs
    column = np.arange(length)
    last = column + lanes * ((length - 1 - column) // lanes)  # where the last run begins that does not come round
    behind = np.maximum(np.minimum(last + lanes, column + size) - length, 0)
    return np.where((column < doubled) | (column + size > length), behind, -1)
