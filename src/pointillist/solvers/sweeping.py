"""Sweeps over codes until little moves, or until few violate; threads share them strip by strip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels import sweeps
from pointillist.kernels.combining import MEMORY, make_memory
from pointillist.kernels.sweeps import Codes, Effort
from pointillist.kernels.team import disperse, make_team
from pointillist.parallel import Mapper, SharedMap
from pointillist.problem import Problem
from pointillist.solvers.scanning import clean_positions
from pointillist.solvers.staging import Field, Stage

_WORTH_HELP = 2**17
"""Products of a sweep from which on other threads help with it: it takes so long that they arrive before its end."""


@dataclass(frozen=True, eq=False)
class Ground:
    """What all sweeps over codes of signal i share, in the field of its geometry."""

    problem: Problem
    i: int
    field: Field
    _crew: _Crew = dataclass_field(default_factory=lambda: _Crew())

    @cached_property
    def weights(self) -> NDArray:
        """The weights as a flat padded signal."""
        geometry, dtype = self.problem.geometry, self.problem.filters.dtype
        given = self.problem.weights_of(self.i)
        ones = np.ones((geometry.channels, *geometry.signal), dtype) if given is None else given
        return geometry.spread(ones.astype(dtype))

    @cached_property
    def _laid_weights(self) -> NDArray:
        return self.field.laid(self.weights)

    @cached_property
    def _steps(self) -> NDArray:
        """Room for the steps of extrapolated sweeps."""
        return np.zeros((MEMORY + 1, len(self._laid_weights)), self.problem.filters.dtype)

    @cached_property
    def _clean(self) -> NDArray:
        """Which positions have a whole box of weight one."""
        given = self.problem.weights_of(self.i)
        return clean_positions(self.problem.geometry, None if given is None else self.weights)

    @cached_property
    def is_binary(self) -> bool:
        """Whether all weights are one or zero."""
        given = self.problem.weights_of(self.i)
        return given is None or bool(np.all((given == 0) | (given == 1)))

    def codes(self, codes: NDArray, values: NDArray, raised: float = 1.0) -> Codes:
        """What sweeps over some codes need, with penalties that are `raised` so many times; they change the values."""
        clean = self._clean[codes % self.problem.geometry.n_positions]
        curvatures = self.problem.operator.curvatures(codes, self.weights, clean)
        penalties = (raised * self.problem.penalty_at(codes)).astype(values.dtype)
        return Codes(values, curvatures, penalties, clean)

    def stage(self, codes: NDArray, residual: NDArray) -> Stage:
        """Where codes lie that are in the order of their positions; sweeps may change the flat padded residual."""
        return self.field.stage(codes, residual, self._laid_weights)

    def sweep(self, stage: Stage, codes: Codes, effort: Effort, mapper: Mapper, ridge: float = 0.0) -> None:
        """Sweep over all codes until no move exceeds the target, with extrapolated sweeps over the non-zeros between.

        Plain sweeps at the end make the residual smooth: extrapolated ones leave small swings, which cost little of the
        objective and much of a bound.
        """
        problem, operator, n_strips = self.problem, self.problem.operator, len(stage.strips.reached)
        dtype = codes.values.dtype
        steps = self._steps if effort.extra > 0 else np.zeros((MEMORY + 1, 0), dtype)
        memory = make_memory(steps, len(codes.values), n_strips)
        compared = effort.extra > 0 and self.is_binary
        compared = compared and sweeps.can_compare(stage.layout, len(codes.values), stage.residual, effort.target)
        work = partial(
            sweeps.descend, layout=stage.layout, places=stage.places, codes=codes,
            ridge=dtype.type(ridge), nonnegative=problem.nonnegative, residual=stage.residual, weights=stage.weights,
            compared=compared, strips=stage.strips, memory=memory, effort=effort, bundles=operator.bundles,
        )  # fmt: skip
        products = len(codes.values) * problem.filters[0].size
        useful = sweeps.useful_threads(stage.layout, stage.strips) if products >= _WORTH_HELP else 1
        self._crew.run(work, useful, mapper)

    def inside(self, stage: Stage) -> NDArray:
        """What a stage's residual has become, as a signal (channels, *space)."""
        return self.field.inside(stage.residual)

    def project(self, stage: Stage, codes: Codes, times: int, mapper: Mapper) -> None:
        """Sweep over codes from zero, some times, so that fewer of them violate |Dᵀr| ≤ λ for the residual of the stage.

        A code that begins at zero takes from the residual just what exceeds its penalty: a projection onto its condition.
        Since each sweep forgets what the last one took, nothing is ever given back. The values of the last sweep are left.
        """
        self.sweep(stage, codes, Effort(0.0, 0, 0, times, forgetting=True), mapper)


class _Crew:
    """The threads that sweep over one signal."""

    def __init__(self) -> None:
        self._alone = False  # since a helper was late

    def run(self, work: Callable[..., None], useful: int, mapper: Mapper) -> None:
        """Lead work that so many threads are useful for, with those of a mapper that come in time."""
        team, n_threads = make_team(), 1
        if isinstance(mapper, SharedMap) and not self._alone:
            n_threads = min(useful, mapper.n_jobs)
            for rank in range(1, n_threads):
                mapper.ask(partial(work, rank, n_threads, team))
        try:
            work(0, n_threads, team)
        finally:
            self._alone |= disperse(team)
