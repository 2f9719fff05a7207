"""Sweeps over a working set: where its codes lie in a signal, how the signal is cut into strips, and who sweeps.

Signals are cut along their first axis into strips of a few colours. Codes of strips of one colour reach no sample in common,
so that threads sweep over them side by side; strips are the same for any number of threads, hence the bits are too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from pointillist.kernels.convolution import SPARE_SAMPLES, flat_offsets, row_offsets, run_width, strides_of
from pointillist.kernels.sweep import (
    MEMORY,
    MOST_ITEMS,
    Codes,
    Effort,
    Scene,
    Strips,
    descend,
    disperse,
    make_memory,
    make_team,
)
from pointillist.parallel import Mapper, SharedMap
from pointillist.problem import Geometry, Problem
from pointillist.solvers.scanning import box_sums


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers that decide how sweeps are done, but for `runs_in_turns` and `compared` nothing that they come to."""

    products_for_help: int = 2**17
    """Products of a sweep from which on other threads help with it: it takes so long that they arrive before its end."""
    patience: int = 2**17
    """Looks for the end of a last item, some tenth of a millisecond, after which a late helper gets no more work."""
    strip_positions: int = 1024
    """Positions of a strip at least: fewer are swept over in too little time to be shared out."""
    colours: int = 8
    """Colours of strips at most, where filters are long beside the signal: threads share sweeps over 51×51 at 150²."""
    runs_in_turns: int = 64
    """Runs of a filter up to which two places are swept over in turns: both must fit into the fastest cache."""
    compared: float = 0.001
    """Target of moves, beside the largest sample, from which on the residual is compared before and after a sweep instead of
    recording the step, if that is in less time: it rounds too much for smaller moves."""


TUNING = Tuning()


class Field:
    """Places of codes in the signals of a geometry as they are swept over, and their strips.

    A circle is unrolled: its padded signal holds the first samples of each axis again behind the last, and a margin of a
    filter around that takes up what belongs to nobody. A code near an end of an axis is added on the other side too.

    Codes of a strip reach no further than to the next one of its own colour, and neither does the padding of their last
    runs. Behind the last strip lies the first, around a circle or of the next channel, so that there are as many strips of
    each colour, or a single strip.
    """

    def __init__(self, geometry: Geometry, strip_positions: int) -> None:
        self.geometry, self.around = geometry, geometry.boundary == "circular"
        self.margin = tuple(f - 1 if self.around else 0 for f in geometry.filter)
        self.shape = (geometry.channels, *(n + 2 * m for n, m in zip(geometry.padded, self.margin, strict=True)))
        strides, width = strides_of(self.shape), run_width(geometry.filter[-1])
        self.offsets = row_offsets((geometry.channels, *geometry.filter), self.shape, width)
        self.filter_step = len(self.offsets) * width
        self.strides = strides[1:]
        self.corner = int(self.strides @ self.margin)
        self.row_bases = self.corner + flat_offsets(geometry.grid[:-1], strides[1:-1])
        positions, length = prod(geometry.grid[1:]), geometry.grid[0]
        reach = geometry.filter[0] + (width if len(geometry.grid) == 1 else 0)
        # Strips as long as filters need two colours, shorter ones more: between two of a colour lie all others.
        for n_colours in range(2, TUNING.colours + 1):
            shortest = max(-(-reach // (n_colours - 1)), -(-strip_positions // positions))
            count = n_colours * min(length // (n_colours * shortest), MOST_ITEMS // n_colours)
            if count > n_colours:
                break
        else:
            count = n_colours = 1
        borders = np.arange(count + 1) * length // count
        self.first_positions = borders * positions
        rows = self._rows(borders[:-1], strides)
        self._strips = Strips(n_colours, np.zeros(count + 1, np.int64), *rows)

    def _rows(self, borders: NDArray, strides: NDArray) -> tuple[NDArray, ...]:
        """First row of each strip, begin of each row, its samples and those that count, and the end of each strip's rows.

        What a circle holds twice belongs to the strip that has it first, and does not count.
        """
        held, last = self.geometry.padded, len(self.geometry.grid) - 1
        once = self.geometry.signal if self.around else held
        # A line is cut into pieces, other signals into slabs of one row along each further axis.
        again = once[0] + borders
        edges = np.arange(held[0] + 1) if last else np.unique([*borders, *again[again < held[0]], held[0]])
        begins, owners = edges[:-1], np.searchsorted(borders, edges[:-1] % once[0], "right") - 1
        order = np.argsort(owners, kind="stable")
        begins = begins[order, None]
        within = flat_offsets(
            (self.shape[0], *held[1:last]), np.delete(strides[: last + 1], 1) if last else strides[:1]
        )
        seen = np.zeros((self.shape[0], *held[1:last]), bool)
        seen[(slice(None), *map(slice, once[1:last]))] = True
        lengths = np.full((1, 1), held[-1]) if last else np.diff(edges)[order, None]
        counted = (once[-1] if last else lengths) * (begins < once[0]) * seen.ravel()
        starts = self.corner + strides[1] * begins + within
        bounds = len(within) * np.searchsorted(owners[order], np.arange(len(borders) + 1))
        lengths = np.broadcast_to(lengths, starts.shape)
        return bounds[:-1], starts.ravel(), lengths.ravel(), counted.ravel(), bounds[1:]

    def strips(self, positions: NDArray) -> Strips:
        """The strips of codes at positions in ascending order."""
        codes = np.searchsorted(positions, self.first_positions)
        own = codes[1:] > codes[:-1]
        before = np.arange(len(own)) - np.arange(self._strips.n_colours)[:, None]  # the first comes behind the last
        reached = own[before].any(axis=0)
        return self._strips._replace(codes=codes, ends=np.where(reached, self._strips.ends, self._strips.begins))

    def ghosts(self, positions: NDArray, bases: NDArray) -> tuple[NDArray, NDArray]:
        """Further places where codes begin, and where the ghosts of each code begin among these."""
        if not self.around:
            return np.empty(0, np.int64), np.zeros(len(positions) + 1, np.int64)
        sides = []
        for at, n, f, stride in zip(
            np.unravel_index(positions, self.geometry.grid), self.geometry.signal, self.geometry.filter, self.strides,
            strict=True,
        ):  # fmt: skip
            sides.append([(np.ones(len(at), bool), 0), (at < f - 1, n * stride), (at > n - f, -n * stride)])
        ways = list(product(*sides))[1:]
        codes, way = np.nonzero(np.stack([np.all([is_on for is_on, _ in one], axis=0) for one in ways], axis=1))
        shifts = np.array([sum(shift for _, shift in one) for one in ways])
        return bases[codes] + shifts[way], np.searchsorted(codes, np.arange(len(positions) + 1))

    def laid(self, flat: NDArray) -> NDArray:
        """A flat padded signal as it is swept over: a copy with margins around a circle, itself otherwise."""
        if not self.around:
            return flat
        inner, out = self.geometry.padded, np.zeros(prod(self.shape) + SPARE_SAMPLES, flat.dtype)
        self._inside(out)[...] = flat[: self.shape[0] * prod(inner)].reshape(self.shape[0], *inner)
        return out

    def unlaid(self, laid: NDArray) -> NDArray:
        """The part of what is swept over that is the signal itself (channels, *space)."""
        flat = np.ascontiguousarray(self._inside(laid)).reshape(-1) if self.around else laid
        return self.geometry.inside(flat).copy()

    def _inside(self, laid: NDArray) -> NDArray:
        cut = (slice(m, m + n) for m, n in zip(self.margin, self.geometry.padded, strict=True))
        return laid[: prod(self.shape)].reshape(self.shape)[(slice(None), *cut)]


@lru_cache(32)
def field_of(geometry: Geometry, strip_positions: int) -> Field:
    """The field of a geometry: every step of learning has a problem of its own, and all have one geometry."""
    return Field(geometry, strip_positions)


class SweepContext:
    """Weights, fields and threads that all sweeps over codes of signal i share."""

    def __init__(self, problem: Problem, i: int, mapper: Mapper) -> None:
        self.problem, self.mapper = problem, mapper
        self.field = field_of(problem.geometry, TUNING.strip_positions)
        geometry, dtype, given = problem.geometry, problem.filters.dtype, problem.weights_of(i)
        if given is None:
            given = np.ones((geometry.channels, *geometry.signal), dtype)
        self.weights = geometry.spread(given.astype(dtype, copy=False))  # flat and padded
        self._laid_weights = self.field.laid(self.weights)
        self._is_binary = bool(np.all((self.weights == 0) | (self.weights == 1)))
        uneven = box_sums(geometry, (self.weights != 1).astype(np.float32))
        self._clean = uneven.ravel() < 0.5  # whole boxes of weight one
        self._steps = np.zeros((MEMORY, len(self._laid_weights)), dtype)  # room for those of extrapolated sweeps
        self._alone = False  # since a helper was late

    def sweep(
        self,
        codes: NDArray,
        values: NDArray,
        residual: NDArray,
        effort: Effort,
        raised: float = 1.0,
        ridge: float = 0.0,
    ) -> tuple[NDArray, Codes]:
        """Sweep over codes in the order of their positions, with penalties `raised` so many times; changes their values.

        Plain sweeps at the end make the residual smooth: extrapolated ones leave small swings, which cost little of the
        objective and much of a bound. `residual` is flat and padded, and may be overwritten. Returns what it is then, laid
        out for sweeps, and what was swept over. A shared mapper's threads help if they come in time.
        """
        problem, field, tuning, dtype = self.problem, self.field, TUNING, values.dtype
        filters, positions = np.divmod(codes, problem.geometry.n_positions)
        grid_rows, columns = np.divmod(positions, problem.geometry.grid[-1])
        clean, bases = self._clean[positions], field.row_bases[grid_rows] + columns
        curvatures = problem.operator.curvatures(codes, self.weights, clean)
        penalties = (raised * problem.penalty_at(codes)).astype(dtype)
        ghosts = field.ghosts(positions, bases)
        working = Codes(values, curvatures, penalties, clean, bases, filters * field.filter_step, *ghosts)
        layout, strips, laid = problem.operator.layout, field.strips(positions), field.laid(residual)
        if not self._is_binary:
            np.divide(laid, self._laid_weights, out=laid, where=self._laid_weights > 0)
        scene = Scene(
            layout.run_lanes, layout.runs, field.offsets, working, dtype.type(ridge), problem.nonnegative, laid,
            self._laid_weights, strips, make_memory(self._steps, len(positions), len(strips.ends)),
            in_turns=len(field.offsets) <= tuning.runs_in_turns, most=1e-3 / float(np.finfo(dtype).eps),
        )  # fmt: skip
        samples = len(positions) * field.filter_step
        compared = effort.extra > 0 and samples > 4 * len(laid)
        compared = compared and effort.target > tuning.compared * max(float(laid.max()), -float(laid.min()))
        patience, team, n_threads = tuning.patience + samples, make_team(), 1
        work = partial(descend, scene=scene, compared=compared, effort=effort, patience=patience)
        long = len(positions) * problem.filters[0].size >= tuning.products_for_help
        if long and isinstance(self.mapper, SharedMap) and not self._alone:
            n_threads = min(len(strips.ends) // strips.n_colours, self.mapper.n_jobs)
            for rank in range(1, n_threads):
                self.mapper.ask(partial(work, rank, n_threads, team))
        try:
            work(0, n_threads, team)
        finally:
            self._alone |= disperse(team)
        laid *= self._laid_weights
        return laid, working

    def project(self, codes: NDArray, point: NDArray, times: int) -> tuple[NDArray, NDArray]:
        """Sweep over codes from zero, some times, so that fewer of them violate |Dᵀθ| ≤ λ for a point (channels, *space).

        A code that begins at zero takes from the point just what exceeds its penalty: a projection onto its condition.
        Since each sweep forgets what the last one took, nothing is ever given back. Returns the point then, and by how much
        each code violated when it was last met, beside its penalty.
        """
        dtype, effort = self.problem.filters.dtype, Effort(0.0, 0, 0, times - 1, forgetting=True)
        flat = self.problem.geometry.spread(point.astype(dtype))
        laid, working = self.sweep(codes, np.zeros(len(codes), dtype), flat, effort)
        # Wherever rounding has led to is a point as good as any.
        moved = self.field.unlaid(laid).astype(np.float64)
        return moved, np.abs(working.values) * working.curvatures / working.penalties
