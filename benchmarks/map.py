"""The map: how many times as fast as the best-tuned SPORCO we are, over penalties, sizes and numbers of filters.

Both solve the circular problem. SPORCO's time is that to a true excess of 0.1%, with the best ρ and the better number of
threads at each point. Ours is that to the same excess, and that to a certified gap of 0.1%, which SPORCO has no notion of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import tuned
from benchmarks.context import Context
from benchmarks.inputs import FILTER_SIZE, PENALTY, Inputs
from benchmarks.measure import in_turns, threads
from benchmarks.peers import Coding
from benchmarks.reach import CERTIFIED, EXCESS, Optimum, Task, optimum_of, reach
from benchmarks.tables import Findings, Table, chart, heat_map

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01)
SIDES = (5, 7, 11, 15, 21, 31, 51, 71, 101)
COUNTS = (25, 100, 400)
COUNT_PENALTIES = (1.0, 0.1)
LARGER = 200
"""Side of the image that filters of several sizes are used on."""
LINE, TAPS, N_LONG = 108_000, 1000, 10
"""A signal in time, and filters for it."""
VOLUME, CUBE, N_CUBES = 64, 15, 20
"""Sides of a volume and of filters for it."""
N_PATCHES, BATCH_SIZE = 40, 4
LIMIT = 1500
"""Iterations of SPORCO at most."""
EARLIER = Path(__file__).parents[1] / "docs" / "benchmarks" / "93-map.json"
"""The record of an earlier run, whose best ρ of each point is the first that is tried: iterations depend on no machine."""
PATIENCE = 90.0
"""Seconds that repeated runs of one point take, about; they are two at least."""
_NOTE = (
    "The shortest of several runs in turns, one call each; construction is part of a call, compilation and planning of "
    "transforms are not. SPORCO: ConvBPDN in float32, time until the objective of its sparse variable exceeds the optimum "
    "by 0.1%, with the best ρ that was found (or AutoRho), and the better of one and all threads. The search for ρ begins "
    "with the best of an earlier run, which tried shares of SPORCO's usual one from 0.02 to 2, and goes on to neighbours by "
    "factors of 1.5 until none needs fewer iterations; points that are new try all shares. Ours likewise, and until "
    "a relative duality gap of 0.1% is certified; the better of n_jobs=1 and all. Leads: SPORCO's time over ours. "
    "Gap / excess: what our certificate said where the excess was reached."
)
_OF_SIZES = (
    f"Filters of other sizes than 11×11 are those of 11×11, resized and then learned online from {N_PATCHES} patches in "
    f"batches of {BATCH_SIZE}; those that are larger than patches from four put together."
)
_OF_DIMENSIONS = (
    "The line is an electrocardiogram (without the larger data rows of patches), the volume natural patches side by side, "
    "smoothed across; filters are learned from them."
)
_OF_COUNTS = "Fewer filters are a regular choice of more; where there are more than 100, they are another dictionary."
_COLUMNS = [
    "case", "codes a pixel", "SPORCO ms", "SPORCO setting", "ours ms", "our setting", "certified ms", "lead",
    "certified lead", "gap / excess",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One point of the map; its images are coded in one call."""

    name: str
    images: NDArray
    filters: NDArray
    penalty: float


class Outcome(NamedTuple):
    """What was measured at a point, times in seconds of a call."""

    name: str
    density: float
    theirs: float
    their_setting: str
    reached: bool
    ours: float
    our_setting: str
    certified: float
    slack: float
    tried: dict[str, int | None]
    exactness: float
    """The relative gap to which the optimum was certified."""

    @property
    def leads(self) -> tuple[float, float]:
        """How many times as fast we are to the true excess and to the certified gap."""
        return self.theirs / self.ours, self.theirs / self.certified

    def row(self) -> list[Any]:
        """Cells of the table."""
        times = [1e3 * one for one in (self.theirs, self.ours, self.certified)]
        setting = self.their_setting if self.reached else f"not reached: {self.their_setting}"
        return [
            self.name, self.density, times[0], setting, times[1], self.our_setting, times[2], *self.leads, self.slack
        ]  # fmt: skip


def run(context: Context) -> Findings:
    """Measure every part of the map."""
    if context.quick:
        tuned.plan_quickly()
    inputs = context.inputs
    found = Findings(settings={"excess": EXCESS, "certified": CERTIFIED, "ρ shares": tuned.SHARES, "points": {}})
    penalties = context.pick(PENALTIES, (1.0, 0.1))
    sides = context.pick(SIDES, (5, 11))
    full = inputs.scale.n_filters
    counts = context.pick(COUNTS, (full // 2, full))
    image = inputs.train[:1]
    small = f"{image.shape[1]}×{image.shape[2]}"

    strip = _measure(
        context, found, f"Penalties: {full} filters of 11×11, {small}", _by_penalty(inputs, penalties), _NOTE
    )
    _draw(found, "Lead by penalty", "penalty λ", penalties, strip, chart_too=True)

    larger = context.pick(LARGER, 64)
    title = f"Sizes: {full} filters, λ = {PENALTY:g}, {larger}×{larger} put together from images"
    strip = _measure(context, found, title, _by_size(context, sides, larger), _OF_SIZES)
    _draw(found, "Lead by size of the filters", "side of a filter", sides, strip, chart_too=True)

    strips = {}
    for penalty in COUNT_PENALTIES[: context.pick(2, 1)]:
        title = f"Numbers of filters: 11×11, λ = {penalty:g}, {small}"
        strips[f"λ = {penalty:g}, "] = _measure(context, found, title, _by_count(inputs, counts, penalty), _OF_COUNTS)
    rows = {f"{first}{row}": values for first, strip in strips.items() for row, values in _rows(strip).items()}
    found.maps.append(heat_map("Lead by number of filters", "filters", [str(one) for one in counts], rows))

    ten = Case(f"{len(inputs.train)} images", inputs.train, inputs.filters, PENALTY)
    _measure(context, found, f"Several images in one call: {full} filters of 11×11, λ = 1, {small}", iter([ten]))
    _measure(context, found, f"Lines and volumes, λ = {PENALTY:g}", _by_dimension(context), _OF_DIMENSIONS)
    return found


def _measure(context: Context, found: Findings, title: str, cases: Iterator[Case], note: str = "") -> list[Outcome]:
    table = Table(f"{title}, to {EXCESS:.1%}, at most {threads()} threads", _COLUMNS, note=note)
    outcomes = []
    for case in cases:
        name = f"{title}: {case.name}"
        context.say(name)
        shares = context.pick(first_shares(name, case.penalty), (0.2,))
        outcome = measure(case, context.pick(LIMIT, 200), context.pick(5, 2), shares)
        table.add(*outcome.row())
        found.settings["points"][name] = {"iterations": outcome.tried, "optimum certified to": outcome.exactness}
        outcomes.append(outcome)
        context.say(f"{outcome.leads[0]:.1f} times as fast, certified {outcome.leads[1]:.1f}")
    found.tables.append(table)
    context.write("map", found.tables, show=False, settings=found.settings)  # a run that is cut short has this
    return outcomes


@cache
def earlier() -> dict[str, Any]:
    """What the earlier run found at each point; nothing where there is no record of it."""
    if not EARLIER.is_file():
        return {}
    return json.loads(EARLIER.read_text())["experiments"]["map"]["settings"]["points"]


def first_shares(point: str, penalty: float) -> tuple[float, ...]:
    """The shares of SPORCO's usual ρ with which the search at a point begins."""
    if point not in earlier():
        return tuned.SHARES
    best = tuned.best_rho(earlier()[point]["iterations"])
    return tuned.SHARES if best is None else (best / tuned.usual_rho(penalty),)


def measure(case: Case, limit: int, repeats: int, shares: tuple[float, ...] = tuned.SHARES) -> Outcome:
    """Tune SPORCO, find our quickest call, and time all of them in turns."""
    task = Task(case.images, case.filters, case.penalty, "circular")
    optimum = optimum_of(task)
    reached = reach(task, optimum)
    answer = task.solve(pt.solvers.CoordinateDescent(tol=CERTIFIED))
    level = float(optimum.objective[0] * (1 + EXCESS))
    rival = tuned.tune(case.images[0], case.filters, case.penalty, level, limit, shares)
    works = _calls_of(rival, case, optimum, limit)
    for jobs in sorted({1, threads()}):
        certifying = pt.solvers.CoordinateDescent(tol=CERTIFIED)
        works[f"certified|tol = {CERTIFIED:g}, n_jobs={jobs}"] = partial(task.solve, certifying, jobs)
        for name, solver in reached.solvers.items():
            works[f"ours|{name}, n_jobs={jobs}"] = partial(task.solve, solver, jobs)
    round_of_all = sum(in_turns(works, 1).values())  # compiles, and plans transforms
    times = in_turns(works, int(np.clip(PATIENCE / round_of_all, 2, repeats)), summary=min)
    sporco, certified = _shortest(times, "sporco"), _shortest(times, "certified")
    ours = min(_shortest(times, "ours"), certified)  # what is certified lies within the excess
    return Outcome(
        case.name, answer.codes.nnz / case.images.size, sporco[0], sporco[1], rival.reached, ours[0], ours[1], certified[0],
        reached.gap / max(reached.excess, 1e-12), rival.tried, optimum.gap,
    )  # fmt: skip


def _calls_of(rival: tuned.Tuned, case: Case, optimum: Optimum, limit: int) -> dict[str, Callable[[], Any]]:
    """Calls of SPORCO with every setting and number of threads; several images in one call, or one by one."""
    levels = optimum.objective * (1 + EXCESS)
    calls: dict[str, Callable[[], Any]] = {}
    for coding, first in rival.settings:
        counts = [first]
        for image, level in zip(case.images[1:], levels[1:], strict=True):
            needed = tuned.iterations_to(coding, image, case.filters, case.penalty, float(level), limit)
            counts.append(needed or limit)
        stacks = {"": [case.images]}
        if len(counts) > 1:  # one by one, each with as many iterations as it needs
            stacks = {", in one call": [case.images], ", one by one": [image[None] for image in case.images]}
        for way, stack in stacks.items():
            each = [max(counts)] if len(stack) == 1 else counts
            for count in sorted({1, threads()}):
                name = f"sporco|{max(counts)} × {coding.name}, {count} thread(s){way}"
                calls[name] = partial(_code, coding, stack, each, case, count)
    return calls


def _code(coding: Coding, stacks: list[NDArray], counts: list[int], case: Case, n_threads: int) -> None:
    """One run of SPORCO over stacks of images, with the iterations of each: what is timed."""
    tuned.use_threads(n_threads)
    for stack, count in zip(stacks, counts, strict=True):
        coding.encode(stack, case.filters, count, penalty=case.penalty)


def _shortest(times: dict[str, float], side: str) -> tuple[float, str]:
    """The shortest time of a side and the name of its call."""
    return min((spent, name.partition("|")[2]) for name, spent in times.items() if name.startswith(f"{side}|"))


def _by_penalty(inputs: Inputs, penalties: tuple[float, ...]) -> Iterator[Case]:
    for penalty in penalties:
        yield Case(f"λ = {penalty:g}", inputs.train[:1], inputs.filters, penalty)


def _by_size(context: Context, sides: tuple[int, ...], larger: int) -> Iterator[Case]:
    image = mosaic(context.inputs.train, larger)[None]
    for side in sides:
        filters = filters_of(context.inputs, side, context.pick(N_PATCHES, 4))
        yield Case(f"{side}×{side}", image, filters, PENALTY)


def _by_count(inputs: Inputs, counts: tuple[int, ...], penalty: float) -> Iterator[Case]:
    for count in counts:
        yield Case(str(count), inputs.train[:1], some_filters(inputs, count), penalty)


def _by_dimension(context: Context) -> Iterator[Case]:
    inputs = context.inputs
    samples, taps = context.pick((LINE, TAPS), (2000, 50))
    line = inputs.line(samples)
    model = pt.OnlineCSC(N_LONG, taps, PENALTY, batch_size=2, random_state=0, n_epochs=2).fit(line.reshape(N_LONG, -1))
    yield Case(f"{samples:,} samples, {N_LONG} × {taps:,}", line[None], model.filters_, PENALTY)
    side, cube = context.pick((VOLUME, CUBE), (16, 5))
    volume, update = inputs.volumes(1, side), pt.FilterUpdate(init="patches")
    model = pt.OnlineCSC(N_CUBES, cube, PENALTY, update=update, random_state=0, n_epochs=2).fit(volume)
    yield Case(f"{side}×{side}×{side}, {N_CUBES} × {cube}×{cube}×{cube}", volume, model.filters_, PENALTY)


def some_filters(inputs: Inputs, count: int) -> NDArray:
    """So many filters of 11×11: a regular choice of the usual ones, or of the larger dictionary where these are too few."""
    filters = inputs.overcomplete if count > len(inputs.filters) else inputs.filters
    return np.ascontiguousarray(filters[np.linspace(0, len(filters) - 1, count).astype(int)])


def mosaic(images: NDArray, side: int) -> NDArray:
    """One image (side, side), put together from images (n, h, w) that are repeated where they do not suffice."""
    count = -(-side // min(images.shape[1:]))
    rows = np.resize(images, (count, count, *images.shape[1:]))
    return np.ascontiguousarray(
        np.block([[list(row)] for row in rows]).reshape(-1, count * images.shape[2])[:side, :side]
    )


def filters_of(inputs: Inputs, side: int, n_patches: int = N_PATCHES, device: str = "cpu") -> NDArray:
    """Filters of another size: those of 11×11 resized, and then learned from a few patches."""
    filters = inputs.filters
    if side == FILTER_SIZE:
        return filters
    resized = scipy.ndimage.zoom(filters, (1, side / FILTER_SIZE, side / FILTER_SIZE), order=3)
    resized /= np.linalg.norm(resized, axis=(1, 2), keepdims=True)
    update = pt.FilterUpdate(init=resized.astype(np.float32))
    model = pt.OnlineCSC(
        len(filters), side, PENALTY, batch_size=BATCH_SIZE, update=update, random_state=0, device=device
    )
    patches = inputs.patches("train", n_patches)
    if side > min(patches.shape[1:]):
        patches = np.stack([mosaic(patches[i : i + 4], 2 * patches.shape[1]) for i in range(0, n_patches, 4)])
    return np.asarray(model.fit(patches).filters_)


def _rows(strip: list[Outcome]) -> dict[str, list[float]]:
    return {
        f"to {EXCESS:.1%}": [one.leads[0] for one in strip],
        f"certified to {CERTIFIED:.1%}": [one.leads[1] for one in strip],
    }


def _draw(
    found: Findings, title: str, label: str, values: tuple[float, ...], strip: list[Outcome], *, chart_too: bool
) -> None:
    """Add a strip of the heat map, and a chart of the same leads."""
    rows = _rows(strip)
    found.maps.append(heat_map(title, label, [f"{value:g}" for value in values], rows))
    if chart_too:
        curves = {name: (list(values), leads) for name, leads in rows.items()}
        levels = {"as fast as SPORCO": 1.0, "10 times": 10.0}
        found.charts.append(chart(title, label, "times as fast as SPORCO", curves, levels=levels, log_y=True))
