"""The map on a device: our lead over SPORCO's CuPy port, over penalties, sizes and numbers of filters.

Both solve SPORCO's own problem, the circular one, of 100×100 images, and both are judged by the mean relative excess of
twenty of them over optima that we certified. What a user gets who does not know the optimum is our certified answer.

SPORCO is given its best: ConvBPDN in float32 with `HighMemSolve`, without statistics, at each point with the ρ that needs
the fewest iterations (shares of its usual 50 λ + 1, then neighbours by factors of 1.5; AutoRho was never better on the CPU),
stopped as soon as its sparse variable is good enough, in the batch in which an image takes it the shortest time, images and
filters on the device before the clock starts and codes left there, the fastest of three runs. Ours is a call of `encode`
from NumPy to NumPy with its checks and transfers, the median of three. Runs that take long are timed twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper.judging import quiet_encode

from benchmarks.gpu_tuned import Port, Problem, rate, times, tune
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.map import COUNT_PENALTIES, COUNTS, N_PATCHES, filters_of, some_filters
from benchmarks.reach import CERTIFIED, EXCESS
from benchmarks.sporco_cupy import missing
from benchmarks.tables import heat_map
from pointillist.plot.page import cell_text
from pointillist.solvers.base import Result

N_FILTERS = 100
PENALTIES = (1.0, 0.3, 0.1, 0.03)
SIDES = (5, 7, 11, 15, 21, 31)
PRECISE = 1e-5
"""The tolerance that optima are found with; what is certified of them is in the table."""
TOLERANCES = (0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02, 0.01)
"""Ours: the first of them that is good enough counts."""
_NOTE = (
    "Images a second of encode on the device, from NumPy to NumPy, over those of SPORCO's CuPy port, its arrays there."
)


class Point(NamedTuple):
    """One point of the map."""

    penalty: float = PENALTY
    side: int = FILTER_SIZE
    count: int = N_FILTERS

    @property
    def images(self) -> int:
        """How many images are coded in one call of ours: as many as fill the device, fewer where they take long."""
        if self.side > 15:
            return 512
        return 2048 if self.penalty >= 0.3 else 1024


def points() -> dict[Point, str]:
    """All points with their names, each once: penalties first, and what is on several axes is named by its penalty."""
    penalties = {Point(penalty=penalty): f"λ = {penalty:g}" for penalty in PENALTIES}
    sizes = {Point(side=side): f"{side}×{side}" for side in SIDES}
    pairs = [(penalty, count) for penalty in COUNT_PENALTIES for count in COUNTS]
    numbers = {Point(penalty, count=count): f"{count} filters, λ = {penalty:g}" for penalty, count in pairs}
    return penalties | {point: name for point, name in (sizes | numbers).items() if point not in penalties}


class Ours(NamedTuple):
    """What `encode` does at a point: images a second to the excess at a tolerance, and to a certified gap."""

    images: float
    tol: float
    certified: float | None
    density: float


def device_map(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Lead over the best-tuned SPORCO on the device: circular 100×100 images, to a mean excess of 0.1% and certified."""
    reason = missing()
    rival = Port.on_device() if reason is None else f"not run: {reason}"
    chosen = list(points().items())
    rows = []
    for point, name in chosen[::6] if quick else chosen:
        begin = time.perf_counter()
        row = {"case": name, **measure(inputs, point, rival, device, quick=quick)}
        said = ", ".join(f"{column} {cell_text(cell)}" for column, cell in row.items())
        print(f"  {said} ({time.perf_counter() - begin:.0f} s)", flush=True)  # a run that is cut short has this
        rows.append(row)
    return rows


def measure(inputs: Inputs, point: Point, rival: Port | str, device: str, *, quick: bool = False) -> dict[str, Any]:
    """One row: both sides at a point; `rival` may be the reason why there is none."""
    images = np.concatenate([inputs.train, inputs.unseen])
    try:
        filters = _filters(inputs, point, 4 if quick else N_PATCHES, device)
        code = partial(quiet_encode, images, filters, point.penalty, boundary="circular", device=device)
        best = code(tol=PRECISE)
    except (ValueError, MemoryError) as error:  # a size that the engine does not take
        return _row(point, tolerance=f"refused: {error}")
    problem = Problem(images, filters, point.penalty, best.objective)
    ours = _ours(problem, device, len(images) if quick else point.images)
    row = _row(point, density=ours.density, ours=ours.images, tolerance=f"{ours.tol:g}", certified=ours.certified)
    row["optimum certified to"] = float(np.max(best.gap))
    return {**row, **(_theirs(problem, rival, ours) if isinstance(rival, Port) else {"SPORCO setting": rival})}


def _filters(inputs: Inputs, point: Point, n_patches: int, device: str) -> NDArray:
    if point.side == FILTER_SIZE:
        return some_filters(inputs, point.count)
    return filters_of(inputs, point.side, n_patches, device)


def _ours(problem: Problem, device: str, count: int) -> Ours:
    """The loosest tolerance that is good enough for the images on average, and the rates at it and at the certified gap."""

    def code(images: NDArray, tol: float) -> Result:
        how = {"tol": tol, "boundary": "circular", "device": device}
        return quiet_encode(images, problem.filters, problem.penalty, **how)

    def good(tol: float) -> bool:
        return float(np.mean(code(problem.images, tol).objective / problem.optimum - 1)) <= EXCESS

    def images_a_second(tol: float) -> float:
        code(batch, tol)  # compiles and takes the memory
        return len(batch) / float(np.median(times(lambda: code(batch, tol))))

    batch = np.resize(problem.images, (count, *problem.images.shape[1:]))
    tol = next((tol for tol in TOLERANCES if good(tol)), CERTIFIED)
    answer = code(problem.images, CERTIFIED)
    certified = images_a_second(CERTIFIED) if np.all(answer.gap <= CERTIFIED) else None
    return Ours(images_a_second(tol), tol, certified, answer.codes.nnz / problem.images.size)


def _theirs(problem: Problem, port: Port, ours: Ours) -> dict[str, Any]:
    """SPORCO's cells of a row, and the leads over it."""
    best = tune(port, problem)
    theirs = rate(port, problem, best)
    setting = f"{best.iterations} × ADMM, ρ = {best.rho:.3g}, {theirs.batch} at once"
    return {
        "SPORCO images/s": theirs.images,
        "SPORCO setting": setting if best.reached else f"not reached: {setting}",
        "lead": ours.images / theirs.images,
        "certified lead": None if ours.certified is None else ours.certified / theirs.images,
    }


def _row(
    point: Point,
    *,
    tolerance: str,
    density: float | None = None,
    ours: float | None = None,
    certified: float | None = None,
) -> dict[str, Any]:
    """The columns of a row in their order, without what SPORCO does."""
    return {
        "λ": point.penalty,
        "filter side": point.side,
        "filters": point.count,
        "codes a pixel": density,
        "SPORCO images/s": None,
        "SPORCO setting": None,
        "ours images/s": ours,
        "our tolerance": tolerance,
        "certified images/s": certified,
        "lead": None,
        "certified lead": None,
        "optimum certified to": None,
    }


def leads(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Heat maps of the rows' leads over penalties, sizes and numbers of filters; none where SPORCO was not run."""
    if all(row["lead"] is None for row in rows):
        return []
    found = {Point(row["λ"], row["filter side"], row["filters"]): row for row in rows}
    numbers = {
        f"λ = {penalty:g}, {name}": values
        for penalty in COUNT_PENALTIES
        for name, values in _strips(found, [Point(penalty, count=count) for count in COUNTS]).items()
    }
    by_penalty = _strips(found, [Point(penalty=penalty) for penalty in PENALTIES])
    by_size = _strips(found, [Point(side=side) for side in SIDES])
    return [
        heat_map("On the device: lead by penalty", "penalty λ", [f"{one:g}" for one in PENALTIES], by_penalty, _NOTE),
        heat_map(
            "On the device: lead by size of the filters", "side of a filter", [str(one) for one in SIDES], by_size
        ),
        heat_map("On the device: lead by number of filters", "filters", [str(one) for one in COUNTS], numbers),
    ]


def _strips(found: Mapping[Point, Mapping[str, Any]], strip: Sequence[Point]) -> dict[str, list[float | None]]:
    """Both leads along a strip of points, None where they were not measured."""
    columns = {f"to {EXCESS:.1%}": "lead", f"certified to {CERTIFIED:.1%}": "certified lead"}
    return {name: [found.get(point, {}).get(column) for point in strip] for name, column in columns.items()}
