"""Learning from data of which a tenth is foreign: ``python -m benchmarks.robust``.

Signals are sums of a few planted filters. In a tenth of them, cut out anywhere, other filters take their place, with five
times the amplitude. The table says how well the planted filters are found from the clean signals, from the foreign ones
with all windows counting, and with `Robust`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.tables import Findings, Table

PENALTY, NOISE, AMPLITUDE, SHARE = 0.3, 0.05, 5.0, 0.1
PLANTED, LEARNED = 5, 7
"""Filters that signals are made of, and filters that are learned: two more, so that clean signals give all of them."""


@dataclass(frozen=True)
class Case:
    """Signals of one kind."""

    name: str
    size: tuple[int, ...]  # of the planted filters; those learned are half as long again
    space: tuple[int, ...]
    n_signals: int
    density: float  # codes of a sample
    patch: int  # samples of a foreign patch along each axis
    n_epochs: int

    @property
    def learned(self) -> tuple[int, ...]:
        return tuple(3 * side // 2 for side in self.size)


CASES = (
    Case("long recordings", (24,), (2000,), 8, 0.02, 200, 10),
    Case("short epochs", (24,), (200,), 80, 0.02, 200, 4),
    Case("images", (8, 8), (96, 96), 8, 0.006, 32, 10),
)


def main() -> None:
    options = parser("benchmarks.robust", __doc__ or "", quick="one seed of short epochs, few iterations")
    context = Context.of(options.parse_args())
    findings = run(context)
    context.write("robust", findings.tables, **findings.settings)


def run(context: Context) -> Findings:
    seeds, cases = context.pick(range(5), range(1)), context.pick(CASES, CASES[1:2])
    columns = ["signals", "learner", "clean", "foreign", "foreign, robust", "robust / clean", "found", "wrongly", "s"]
    table = Table(
        f"Recovery of {PLANTED} planted filters by {LEARNED}, mean of {len(seeds)} seeds (worst in brackets)",
        columns,
        note=f"{SHARE:.0%} of the samples are replaced by patches of other filters, {AMPLITUDE:g} times as large. Recovery "
        "is the correlation of filters, best over shifts and signs, matched one to one. Of the foreign samples `found` were "
        "left out when they were last judged, of the others `wrongly`. Seconds are of all fits of a seed.",
    )
    for case in cases:
        for learner in ("BatchCSC", "OnlineCSC"):
            context.say(f"{case.name}, {learner}")
            begin = time.perf_counter()
            rows = np.array([compare(case, learner, seed, context.pick(40, 4)) for seed in seeds])
            seconds = (time.perf_counter() - begin) / len(seeds)
            scores = [
                f"{mean:.3f} ({worst:.3f})" for mean, worst in zip(rows.mean(0)[:3], rows.min(0)[:3], strict=True)
            ]
            clean, _, robust, found, wrongly = rows.mean(axis=0)
            table.add(case.name, learner, *scores, f"{robust / clean:.3f}", f"{found:.0%}", f"{wrongly:.1%}", seconds)
    return Findings([table], settings={"penalty": PENALTY, "noise": NOISE, "seeds": list(seeds)})


def compare(case: Case, learner: str, seed: int, iterations: int) -> tuple[float, ...]:
    """Recovery from clean signals, from foreign ones, and by robust learning; shares of samples left out."""
    rng = np.random.default_rng(seed)
    truth, foreign = (smooth_filters(rng, PLANTED, case.size) for _ in range(2))
    clean = [sparse_sum(rng, truth, case.space, case.density) for _ in range(case.n_signals)]
    mixed, masks = contaminated(rng, clean, foreign, case)
    settings = {"seed": seed, "iterations": iterations}
    scores = [
        pt.recovery_score(learned(case, learner, signals, robust, **settings).filters_, truth)
        for signals, robust in ((clean, None), (mixed, None))
    ]
    model = learned(case, learner, mixed, pt.Robust(), **settings)
    left = [np.zeros(mask.shape, bool) for mask in masks]
    for one in model.outliers_:
        left[one["signal"]][box(one["start"], one["stop"])] = True
    out, is_foreign = np.stack(left), np.stack(masks)
    scores.append(pt.recovery_score(model.filters_, truth))
    return (*scores, float(out[is_foreign].mean()), float(out[~is_foreign].mean()))


def learned(
    case: Case, learner: str, signals: Sequence[NDArray], robust: pt.Robust | None, *, seed: int, iterations: int
) -> Any:
    """A fitted learner."""
    settings: dict[str, Any] = {"learning": 0.1, "robust": robust, "random_state": seed}
    if learner == "BatchCSC":
        return pt.BatchCSC(LEARNED, case.learned, PENALTY, max_iter=iterations, **settings).fit(signals)
    return pt.OnlineCSC(LEARNED, case.learned, PENALTY, **settings, n_epochs=case.n_epochs).fit(signals)


def smooth_filters(rng: np.random.Generator, count: int, size: tuple[int, ...]) -> NDArray:
    """Random filters (count, *size) of norm one, smooth, that fade towards their ends."""
    filters, taper = rng.standard_normal((count, *size)), np.ones(())
    for axis, side in enumerate(size, start=1):
        taper = np.multiply.outer(taper, np.hanning(side + 2)[1:-1])
        kernel = np.array([1, 4, 6, 4, 1]).reshape([-1 if a == axis else 1 for a in range(filters.ndim)])
        filters = fftconvolve(filters, kernel, mode="same", axes=axis)
    filters = filters * taper
    return filters / np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))


def sparse_sum(
    rng: np.random.Generator, filters: NDArray, space: tuple[int, ...], density: float, amplitude: float = 1.0
) -> NDArray:
    """A signal (*space): noise, and sparse codes for filters, of either sign and one to two amplitudes large."""
    signal = NOISE * rng.standard_normal(space)
    for one in filters:
        spikes = amplitude * rng.choice([-1, 1], space) * (1 + rng.random(space))
        signal += fftconvolve(np.where(rng.random(space) < density / len(filters), spikes, 0), one, mode="same")
    return signal


def contaminated(
    rng: np.random.Generator, clean: Sequence[NDArray], foreign: NDArray, case: Case
) -> tuple[list[NDArray], list[NDArray]]:
    """Signals with patches of foreign filters in the place of a share of their samples, and where these are."""
    signals, masks = [signal.copy() for signal in clean], [np.zeros(signal.shape, bool) for signal in clean]
    wanted = SHARE * sum(mask.size for mask in masks)
    side = np.minimum(case.patch, case.space)
    while sum(int(mask.sum()) for mask in masks) < wanted:
        i = rng.integers(len(signals))
        corner = rng.integers(np.array(case.space) - side + 1)
        place = box(corner, corner + side)
        if not masks[i][place].any():
            signals[i][place] = sparse_sum(rng, foreign, tuple(side), 1.5 * case.density, AMPLITUDE)
            masks[i][place] = True
    return signals, masks


def box(start: NDArray, stop: NDArray) -> tuple[slice, ...]:
    return tuple(slice(int(first), int(end)) for first, end in zip(start, stop, strict=True))


if __name__ == "__main__":
    main()
