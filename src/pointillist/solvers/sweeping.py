"""Sweeps over codes until little moves, or until few violate: whole or by tiles of which several threads take one each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pointillist.backends import sweeps
from pointillist.backends.bundles import Bundles
from pointillist.model.problem import Problem
from pointillist.model.sharing import map_in_order
from pointillist.solvers.base import Mapper
from pointillist.solvers.cutting import Cutters, Part
from pointillist.solvers.scanning import clean_positions
from pointillist.solvers.staging import Ring, Stage, stage_of


class WorkingCodes(NamedTuple):
    """The codes of a working set and what the descent on each of them needs."""

    values: NDArray
    curvatures: NDArray
    penalties: NDArray
    clean: NDArray  # whether a code meets weights of one only
    nonnegative: bool
    ridge: float
    plain: bool  # whether all weights are one or zero
    bundles: Bundles | None = None  # for codes that are updated together, where that is worth its time


class Effort(NamedTuple):
    """How long to sweep; see `CoordinateDescent`. A tile gets so many sweeps at most before the next cut.

    Plain sweeps at the end make the residual `smooth`: extrapolated ones leave small swings, which cost little of the
    objective and much of a bound.
    """

    target: float
    extra: int
    max_sweeps: int
    sweeps_a_tile: int = 3
    smooth: int = 0


@dataclass(frozen=True, eq=False)
class Ground:
    """What all sweeps over codes of signal i share; large signals are cut into tiles."""

    problem: Problem
    i: int
    cutters: Cutters

    @cached_property
    def weights(self) -> NDArray:
        """The weights as a flat padded signal."""
        geometry, dtype = self.problem.geometry, self.problem.filters.dtype
        given = self.problem.weights_of(self.i)
        ones = np.ones((geometry.channels, *geometry.signal), dtype) if given is None else given
        return geometry.spread(ones.astype(dtype))

    @cached_property
    def _ring(self) -> Ring:
        return Ring(self.problem.geometry, self.problem.operator.layout, self.weights)

    @cached_property
    def _kinds(self) -> tuple[NDArray, bool]:
        """Which positions have a whole box of weight one, and whether all weights are one or zero."""
        given = self.problem.weights_of(self.i)
        clean = clean_positions(self.problem.geometry, None if given is None else self.weights)
        return clean, given is None or bool(np.all((given == 0) | (given == 1)))

    def working(self, codes: NDArray, values: NDArray, ridge: float = 0.0, raised: float = 1.0) -> WorkingCodes:
        """What sweeps over some codes need, with penalties that are `raised` so many times; they change the values."""
        clean_everywhere, plain = self._kinds
        clean = clean_everywhere[codes % self.problem.geometry.n_positions]
        curvatures = self.problem.operator.curvatures(codes, self.weights, clean)
        penalties = (raised * self.problem.penalty_at(codes)).astype(values.dtype)
        bundles = self.problem.operator.bundles
        return WorkingCodes(values, curvatures, penalties, clean, self.problem.nonnegative, ridge, plain, bundles)

    def stage(self, codes: NDArray, residual: NDArray, *, strips: bool = False) -> Stage:
        """Where some codes lie; sweeps may change the residual, which is flat and padded.

        Where codes are spread out and hardly change any more, `strips` take fewer sweeps than tiles.
        """
        if self.problem.geometry.boundary == "circular":
            return self._ring.stage(codes, residual)
        geometry, layout = self.problem.geometry, self.problem.operator.layout
        cutter = self.cutters.strips if strips else self.cutters.tiles
        return stage_of(geometry, layout, codes, residual, self.weights, cutter)


def descend(stage: Stage, codes: WorkingCodes, effort: Effort, mapper: Mapper) -> None:
    """Sweep over all codes until no move exceeds the target, with extrapolated sweeps over the non-zeros between.

    A signal in several tiles is gone through again and again, cut in other ways each time, and each tile gets a few sweeps.
    """
    whole, tiled = len(stage.cuts[0].tiles) <= 1, _TiledCodes(stage, codes, mapper)
    most = effort.max_sweeps if whole else min(effort.max_sweeps, effort.sweeps_a_tile)
    for turn in range(1 if whole else effort.max_sweeps):
        if tiled.sweep(turn, effort.target, effort.extra, most) < effort.target:
            break
    for turn in range(effort.smooth):
        tiled.sweep(turn)


def project(stage: Stage, codes: WorkingCodes, times: int, mapper: Mapper) -> None:
    """Sweep over codes from zero, some times, so that fewer of them violate |Dᵀr| ≤ λ for the residual of the stage.

    A code that begins at zero takes from the residual just what exceeds its penalty: a projection onto its condition. Since
    each sweep forgets what the last one took, nothing is ever given back. The values of the last sweep are left.
    """
    tiled = _TiledCodes(stage, codes, mapper)
    for _ in range(times):
        codes.values[:] = 0
        tiled.sweep(0)


class _TiledCodes:
    """The codes of a stage, put side by side for each tile when it is first swept over.

    What lies side by side is gone through in a fraction of the time, and to put it there takes as long as a sweep does.
    """

    def __init__(self, stage: Stage, codes: WorkingCodes, mapper: Mapper) -> None:
        self.stage, self.codes, self.mapper = stage, codes, mapper
        self._beside: dict[int, tuple[Any, ...]] = {}  # by the identity of a tile, which the stage keeps

    def sweep(self, turn: int, target: float = 0.0, extra: int = 0, most: int = 1) -> float:
        """Sweep over all tiles, cut in another way each turn, each at most so often; returns the largest first move."""
        tiles, after = self.stage.cuts[turn % len(self.stage.cuts)]
        work = partial(self._sweep_tile, target, extra, most)
        return max(map_in_order(self.mapper, work, tiles, after), default=0.0)

    def _sweep_tile(self, target: float, extra: int, most: int, part: Part) -> float:
        stage, codes, (members, region) = self.stage, self.codes, part
        if id(members) not in self._beside:
            self._beside[id(members)] = self._put_beside(members)
        places, curvatures, penalties, clean = self._beside[id(members)]
        values = codes.values if places is stage.places else codes.values[members]
        moved = sweeps.descend(
            stage.layout, places, curvatures, penalties, values.dtype.type(codes.ridge), clean, stage.weights,
            codes.nonnegative, values, stage.residual, target, extra, most, region, codes.plain, codes.bundles,
        )  # fmt: skip
        if places is not stage.places:
            codes.values[members] = values
        return moved

    def _put_beside(self, members: NDArray) -> tuple[Any, ...]:
        """The places, curvatures, penalties and kinds of some of the codes."""
        stage, codes = self.stage, self.codes
        if len(members) == len(codes.values):
            return stage.places, codes.curvatures, codes.penalties, codes.clean
        places = stage.places._replace(bases=stage.places.bases[members], starts=stage.places.starts[members])
        return places, codes.curvatures[members], codes.penalties[members], codes.clean[members]
