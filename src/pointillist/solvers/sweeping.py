"""Sweeps over a working set until little moves, whole or by tiles of which several threads take one each."""

from typing import NamedTuple

from numpy.typing import NDArray

from pointillist.backends import sweeps
from pointillist.backends.bundles import Bundles
from pointillist.solvers.base import Mapper
from pointillist.solvers.staging import Part, Stage


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
    """How long to sweep; see `CoordinateDescent`. A tile gets so many sweeps at most before the next cut."""

    target: float
    extra: int
    max_sweeps: int
    sweeps_a_tile: int = 3


def descend(stage: Stage, codes: WorkingCodes, effort: Effort, mapper: Mapper) -> None:
    """Sweep over all codes until no move exceeds the target, with extrapolated sweeps over the non-zeros between.

    A signal in several tiles is gone through again and again, cut in other ways each time, and each tile gets a few sweeps.
    """
    whole = sum(map(len, stage.partitions[0])) <= 1
    most = effort.max_sweeps if whole else min(effort.max_sweeps, effort.sweeps_a_tile)
    ridge = codes.values.dtype.type(codes.ridge)

    def work(part: Part) -> float:
        members, region = part
        return sweeps.descend(
            stage.layout, stage.places, codes.curvatures, codes.penalties, ridge, codes.clean, stage.weights,
            codes.nonnegative, codes.values, stage.residual, members, effort.target, effort.extra, most, region, codes.plain,
            codes.bundles,
        )  # fmt: skip

    for turn in range(1 if whole else effort.max_sweeps):
        partition = stage.partitions[turn % len(stage.partitions)]
        if max((moved for tiles in partition for moved in mapper(work, tiles)), default=0.0) < effort.target:
            break
