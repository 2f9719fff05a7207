"""The complexity claims: how the time of a coding step and of a filter update grows with p, K, M and D."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from paper.frequency import circular_codes
from paper.inputs import PENALTY
from paper.judging import exact, quiet_encode
from paper.lab import Lab, Outcome
from paper.timing import exponent, shortest
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.dictionary.statistics import CodedBatch, make_statistics
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Cell, SideBySide, Table, Text, Verdict
from pointillist.sampling import Draws
from pointillist.solvers import CoordinateDescent, SampledADMM

TITLE = "Complexity: time against p, K, M and D"
SAMPLING = 0.1
SLACK = 0.15
"""Excess of a fitted exponent over the claimed one that is allowed: fits over a few sizes are no better than that."""

ADMM, OURS, FFT, UPDATE = "ADMM with conjugate gradients", "our default solver", "frequency domain", "filter update"
CLAIMED = {"p": 1.0, "K": 1.0, "M": 1.0, "D": 1.0}
CLAIMED_UPDATE = {"K": 2.0, "M": 2.0, "D": 0.0}
_COLOURS = {ADMM: "c1", OURS: "c0", FFT: "c3", UPDATE: "c2"}
_NAMES = {"p": "p, sampled share", "K": "K, filters", "M": "M, samples of a filter", "D": "D, pixels"}

Times = dict[str, list[float]]
Case = tuple[NDArray, NDArray, float]
"""An image, filters, and the sampled share of codes."""


def run(lab: Lab) -> Outcome:
    """Time a coding step and a filter update while one quantity grows and the others stay."""
    scale, image = lab.scale, lab.inputs.train[0]
    bank = lab.inputs.start(max(*scale.counts, scale.n_filters))
    base = bank[: scale.n_filters]
    sizes: dict[str, list[float]] = {
        "p": [float(p) for p in scale.fractions],
        "K": [float(count) for count in scale.counts],
        "M": [float(side**2) for side in scale.sides],
        "D": [float(side**2) for side in scale.signals],
    }
    cases: dict[str, list[Case]] = {
        "p": [(image, base, p) for p in scale.fractions],
        "K": [(image, bank[:count], SAMPLING) for count in scale.counts],
        "M": [(image, lab.inputs.start(scale.n_filters, side), SAMPLING) for side in scale.sides],
        "D": [(lab.inputs.large(side), base, SAMPLING) for side in scale.signals],
    }
    found: dict[str, Times] = {}
    for axis, some in cases.items():
        lab.say(f"time against {axis}")
        found[axis] = _grow(some, scale.repeats, spatial_only=axis == "p")
    fits = {(name, axis): exponent(sizes[axis], times[name]) for axis, times in found.items() for name in times}
    charts = [_chart(axis, sizes[axis], times) for axis, times in found.items()]
    words = (
        f"One image; unless it grows, p = {SAMPLING:g}, K = {scale.n_filters}, M = {scale.filter_size}², "
        f"D = {image.shape[0]}². Random filters, which make the most codes. Times are the shortest of {scale.repeats}; "
        "an exponent is the slope of a straight line through the logarithms."
    )
    return Outcome(TITLE, _verdicts(fits), [Text(words), SideBySide(charts[:2]), SideBySide(charts[2:]), _table(fits)])


def _grow(cases: Sequence[Case], repeats: int, *, spatial_only: bool) -> Times:
    """Seconds of every kind of step for each case."""
    works: dict[str, Callable[[NDArray, NDArray, float], Callable[[], object]]] = {
        ADMM: lambda image, filters, p: (
            lambda: quiet_encode(
                [image],
                filters,
                sampling=Draws(p, "codes"),
                solver=SampledADMM(max_iter=10, tol=0.0, quadratic="cg"),
                random_state=0,
            )
        ),
        OURS: lambda image, filters, p: (
            lambda: quiet_encode(
                [image], filters, sampling=Draws(p, "codes"), solver=CoordinateDescent(tol=0.05), random_state=0
            )
        ),
    }
    if not spatial_only:
        works[FFT] = lambda image, filters, p: lambda: circular_codes(image[None], filters)
        works[UPDATE] = lambda image, filters, p: _updating(image, filters)
    return {name: [shortest(work(*case), repeats) for case in cases] for name, work in works.items()}


def _updating(image: NDArray, filters: NDArray) -> Callable[[], object]:
    """An update of the filters by what the codes of one image leave for them."""
    bank = np.ascontiguousarray(filters[:, None])
    result = exact([image], filters, PENALTY, sampling=Draws(SAMPLING, "codes"), random_state=0)
    sums = make_statistics("toeplitz", len(bank), 1, filters.shape[1:])
    sums.add(CodedBatch([image[None]], None, result.codes, result.residuals), bank, np.ones(1))
    return lambda: sums.sweep(bank, FilterConstraints())


def _chart(axis: str, sizes: list[float], times: Times) -> Chart:
    curves = [Curve(name, sizes, values, _COLOURS[name]) for name, values in times.items()]
    return Chart(f"Time against {axis}", _NAMES[axis], "seconds", curves, log_x=True, log_y=True)


def _table(fits: dict[tuple[str, str], float]) -> Table:
    axes = list(_NAMES)
    rows: list[list[Cell]] = [
        [name, *[f"{fits[name, axis]:.2f}" if (name, axis) in fits else None for axis in axes]]
        for name in (ADMM, OURS, FFT, UPDATE)
    ]
    claims: list[list[Cell]] = [
        ["claimed for coding, at most", *[f"{CLAIMED[axis]:.0f}" for axis in axes]],
        ["claimed for the filter update, at most", None, *[f"{CLAIMED_UPDATE[axis]:.0f}" for axis in axes[1:]]],
    ]
    note = (
        "The paper's √τ, the condition number of the coding problem, is not held fixed: it is part of what is measured."
    )
    return Table(["time ~ size^…", *axes], [*rows, *claims], "Fitted exponents", note)


def _verdicts(fits: dict[tuple[str, str], float]) -> list[Verdict]:
    verdicts = []
    for name in (ADMM, OURS):
        found = {axis: fits[name, axis] for axis in CLAIMED}
        verdicts.append(bounded_verdict(f"A coding step takes time O(pKMD) ({name})", "p K M D √τ", found, CLAIMED))
    update = {axis: fits[UPDATE, axis] for axis in CLAIMED_UPDATE}
    claim = "A filter update takes time O(K²M²), whatever the number of pixels"
    return [*verdicts, bounded_verdict(claim, "K² M²", update, CLAIMED_UPDATE)]


def bounded_verdict(claim: str, paper: str, found: dict[str, float], claimed: dict[str, float]) -> Verdict:
    """Verdict that no fitted exponent lies clearly above the claimed one."""
    above = [axis for axis in claimed if found[axis] > claimed[axis] + SLACK]
    limits = ", ".join(f"{axis} {claimed[axis]:.0f}" for axis in claimed)
    which = "none lies" if not above else " and ".join(above) + (" lies" if len(above) == 1 else " lie")
    exponents = " ".join(f"{axis}^{value:.2f}" for axis, value in found.items())
    because = f"the claim bounds the exponents by {limits}; {which} more than {SLACK} above."
    return Verdict(claim, paper, exponents, not above, because)
