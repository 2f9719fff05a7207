"""Coding signals of many channels, alphacsc's coordinate descent beside us: ``python -m benchmarks.channels``.

Non-negative codes for a tenth of the largest penalty, valid boundary, one signal, one thread each. alphacsc (LGCD, Moreau et
al. 2018) runs with its own default tolerance; ours has the loosest tolerance of a ladder whose codes are as good. Both are
valued by one function in float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.signal
from numpy.typing import NDArray
from paper.timing import seconds

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.measure import in_turns
from benchmarks.tables import Findings, Table

N_FILTERS, TAPS = 5, 128
RARE, DENSE = 3e-3, 3e-2
"""Events of each filter in a sample."""
LADDER = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 1e-4, 1e-5, 1e-6)
CASES = ((1, 10_000), (5, 10_000), (50, 10_000), (204, 10_000), (1, 100_000), (5, 100_000), (50, 100_000))
MILLION = ((1, 1_000_000), (5, 1_000_000))


def simulate(channels: int, samples: int, rate: float, seed: int = 0) -> tuple[NDArray, NDArray, NDArray]:
    """A signal (channels, samples) of rank-one events in noise, and the patterns and shapes of its filters."""
    rng = np.random.default_rng(seed)
    shapes = np.cumsum(rng.standard_normal((N_FILTERS, TAPS)), axis=1)
    shapes = (shapes - shapes.mean(axis=1, keepdims=True)) * np.hanning(TAPS)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    patterns = rng.standard_normal((N_FILTERS, channels))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    signal = np.zeros((channels, samples), np.float32)
    for pattern, shape in zip(patterns, shapes, strict=True):
        events = np.where(rng.random(samples - TAPS + 1) < rate, rng.uniform(1, 3, samples - TAPS + 1), 0)
        signal += np.multiply.outer(pattern, scipy.signal.oaconvolve(events, shape)).astype(np.float32)
    signal += 0.1 * signal.std() * rng.standard_normal(signal.shape, np.float32)
    return signal, patterns, shapes


def value(signal: NDArray, patterns: NDArray, shapes: NDArray, penalty: float, codes: NDArray) -> float:
    """½ ‖x − Dz‖² + λ Σ z of dense codes (n_filters, positions), in float64."""
    fit = np.zeros(signal.shape)
    for pattern, shape, one in zip(patterns, shapes, codes, strict=True):
        fit += np.multiply.outer(pattern, scipy.signal.oaconvolve(one, shape))
    return 0.5 * float(np.sum((signal - fit) ** 2)) + penalty * float(np.sum(np.abs(codes)))


def run(context: Context) -> Findings:
    table = Table(
        f"Coding to alphacsc's objective, ms, {N_FILTERS} filters of {TAPS} samples, one thread",
        [
            "channels",
            "samples",
            "events",
            "filters",
            "ours",
            "certified 1e-3",
            "alphacsc",
            "ratio",
            "ratio certified",
            "excess of alphacsc",
        ],
        note="Medians of runs in turns. The excess of alphacsc's objective is over an optimum certified to 1e-6.",
    )
    cases = [(rate, *case) for rate in (RARE, DENSE) for case in CASES if rate == RARE or case[1] == 10_000]
    for rate, channels, samples in cases[:2] if context.quick else [*cases, *((RARE, *case) for case in MILLION)]:
        for kind in ("rank one", "full"):
            if kind == "full" and (channels == 1 or samples > 10_000):
                continue  # alphacsc itself works with rank one there
            events = "rare" if rate == RARE else "overlapping"
            context.say(f"{channels} channels, {samples} samples, {events} events, {kind}")
            table.add(channels, samples, events, kind, *_race(simulate(channels, samples, rate), kind))
            context.show(table)
    return Findings(tables=[table], settings={"rates": [RARE, DENSE], "taps": TAPS, "filters": N_FILTERS})


def _race(made: tuple[NDArray, NDArray, NDArray], kind: str) -> list[float]:
    """Times in ms of ours to alphacsc's objective, ours certified and alphacsc's; their ratios; the excess of alphacsc."""
    signal, patterns, shapes = made
    filters = np.einsum("kp,kt->kpt", patterns, shapes).astype(np.float32)
    options = {"channels": True, "boundary": "valid", "nonnegative": True}
    penalty = 0.1 * float(pt.max_penalty(signal[None], filters, **options)[0])
    theirs = _alphacsc(signal, patterns, shapes, penalty, kind)
    goal = value(signal, patterns, shapes, penalty, theirs())

    def ours(tol: float) -> Callable[[], pt.Result]:
        return lambda: pt.encode(signal[None], filters, penalty, tol=tol, n_jobs=1, **options)

    best = float(ours(1e-6)().objective[0])
    tol = next(tol for tol in LADDER if _reaches(ours(tol)(), signal, patterns, shapes, penalty, goal))
    slow = seconds(theirs) > 10
    times = in_turns({"ours": ours(tol), "certified": ours(1e-3), "alphacsc": theirs}, 1 if slow else 5)
    mine, certified, other = (1e3 * times[name] for name in ("ours", "certified", "alphacsc"))
    return [mine, certified, other, other / mine, other / certified, goal / best - 1]


def _reaches(
    result: pt.Result, signal: NDArray, patterns: NDArray, shapes: NDArray, penalty: float, goal: float
) -> bool:
    codes = result.codes.to_dense()[0].astype(np.float64)
    return value(signal, patterns, shapes, penalty, codes) <= goal * (1 + 1e-7)


def _alphacsc(signal: NDArray, patterns: NDArray, shapes: NDArray, penalty: float, kind: str) -> Callable[[], NDArray]:
    from alphacsc.update_z_multi import update_z_multi  # compiles at import

    filters = np.hstack([patterns, shapes]) if kind == "rank one" else np.einsum("kp,kt->kpt", patterns, shapes)
    X = signal[None].astype(np.float64)
    options = {"solver": "lgcd", "solver_kwargs": {"tol": 1e-3, "max_iter": 10**9}, "positive": True}
    return lambda: update_z_multi(X, filters, penalty, random_state=0, **options)[0][0]


def main() -> None:
    context = Context.of(parser("benchmarks.channels", __doc__).parse_args())
    warnings.simplefilter("ignore")
    context.write("channels", run(context).tables)


if __name__ == "__main__":
    main()
