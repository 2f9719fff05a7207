"""Learning from one long signal: 10 filters of 50 samples from 10⁴ to 10⁶ samples: ``python -m benchmarks.series``.

The sizes are those of the scaling study of RoseCDL. The signal is a sum of rare events of ten smooth waveforms, and noise.
Ours learns online from windows of the signal; alphacsc (where it is installed, and on the CPU only) learns from the same
windows, all of them at every iteration. Both learn with the same penalty, and one exact coder values the filters of both on
the whole signal. What is compared is the time to the objective that alphacsc reaches.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.signal
from numpy.typing import NDArray

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.tables import Findings, Table

N_FILTERS, TAPS, RATE, NOISE = 10, 50, 2e-3, 0.1
PUBLISHED = {10_000: 15.0, 31_623: 16.0, 100_000: 33.0, 316_228: 68.0, 1_000_000: 203.0}
"""Seconds that the authors of RoseCDL publish for signals of so many samples, on an NVIDIA A40."""
WINDOW = 1000
ITERATIONS = 20
"""Those of alphacsc: its objective falls by less than 0.1% in each of the last ones."""


def simulate(samples: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    """A signal (samples,) of unit variance, and the waveforms (n_filters, taps) that it was made of."""
    rng = np.random.default_rng(seed)
    shapes = scipy.signal.fftconvolve(rng.standard_normal((N_FILTERS, 2 * TAPS)), np.hanning(12)[None], "same", axes=1)
    shapes = shapes[:, TAPS // 2 : TAPS // 2 + TAPS] * np.hanning(TAPS)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    signal = np.zeros(samples)
    for shape in shapes:
        events = np.where(rng.random(samples - TAPS + 1) < RATE, rng.uniform(1, 3, samples - TAPS + 1), 0)
        signal += scipy.signal.oaconvolve(events, shape)
    signal += NOISE * signal.std() * rng.standard_normal(samples)
    return (signal / signal.std()).astype(np.float32), shapes


def value(signal: NDArray, filters: NDArray, penalty: float, device: str) -> float:
    """The objective of the whole signal for filters brought to unit norm, by codes certified to 0.1%."""
    unit = filters / np.maximum(np.linalg.norm(filters, axis=1, keepdims=True), 1e-12)
    return float(
        pt.encode(signal[None], unit.astype(np.float32), penalty, nonnegative=True, device=device).objective[0]
    )


def learn(signal: NDArray, penalty: float, device: str, passes: float) -> tuple[NDArray, float]:
    """Our filters, and the seconds that they took; `passes` may be a part of one."""
    windows = signal[: len(signal) // WINDOW * WINDOW].reshape(-1, WINDOW)
    rng = np.random.default_rng(0)
    chosen = [windows[rng.permutation(len(windows))] for _ in range(int(np.ceil(passes)))]
    windows = np.concatenate(chosen)[: max(int(passes * len(windows)), 1)]
    batch_size = 64 if device != "cpu" else 10
    model = pt.OnlineCSC(
        N_FILTERS, TAPS, penalty, nonnegative=True, batch_size=min(batch_size, max(len(windows) // 20, 1)),
        update=pt.FilterUpdate(init="patches"), device=device, random_state=0,
    )  # fmt: skip
    begin = time.perf_counter()
    model.fit(windows, shuffle=False)
    return model.filters_, time.perf_counter() - begin


def run(context: Context, device: str, sizes: Sequence[int]) -> Findings:
    beside = device == "cpu" and importlib.util.find_spec("alphacsc") is not None
    table = Table(
        f"{N_FILTERS} filters of {TAPS} samples from one signal",
        ["samples", "passes", "ours, s", "objective", "recovery", "alphacsc, s", "its objective", "its recovery"],
        note=f"Objectives of the whole signal for filters of unit norm. alphacsc: {ITERATIONS} iterations of BatchCDL on "
        "windows of 1,000 samples. Ours: the smallest share of the signal, or number of passes, whose filters are as good.",
    )
    for samples in sizes:
        context.say(f"{samples} samples")
        table.rows.append(_row(samples, device, beside))
        context.show(table)
    return Findings(tables=[table, beside_published(table, device)])


def beside_published(table: Table, device: str) -> Table:
    """The seconds of our rows beside those that the authors of RoseCDL publish."""
    found = Table(
        "seconds of learning beside those that RoseCDL's authors publish",
        ["samples", "passes", f"ours on {device}, s", "recovery", "RoseCDL on an A40, s"],
        note="The sizes are the same, but neither the signals nor the machines are, and how good RoseCDL's filters are is "
        "not known here. Recovery is that of our filters beside the true ones.",
    )
    for samples, passes, seconds, _, recovery, *_ in table.rows:
        found.add(samples, passes, seconds, recovery, PUBLISHED.get(samples))
    return found


def _row(samples: int, device: str, beside: bool) -> list[Any]:
    signal, truth = simulate(samples)
    penalty = 0.1 * float(pt.max_penalty(signal[None], truth.astype(np.float32), nonnegative=True)[0])
    learn(signal, penalty, device, 0.1)  # compiles
    goal, theirs = np.inf, ["", "", ""]
    if beside:
        filters, spent = _alphacsc(signal, penalty)
        goal = value(signal, filters, penalty, device)
        theirs = [spent, goal, _recovery(filters, truth)]
    ladder = (0.1, 0.3, 1, 3, 10, 30) if beside else (1, 3, 10)
    for passes in ladder:
        filters, spent = learn(signal, penalty, device, passes)
        reached = value(signal, filters, penalty, device)
        if reached <= goal * (1 + 1e-4) and beside:
            break
    return [samples, passes, spent, reached, _recovery(filters, truth), *theirs]


def _recovery(filters: NDArray, truth: NDArray) -> float:
    return float(pt.recovery_score(filters, truth))


def _alphacsc(signal: NDArray, penalty: float) -> tuple[NDArray, float]:
    from alphacsc import BatchCDL

    windows = signal[: len(signal) // WINDOW * WINDOW].reshape(-1, 1, WINDOW).astype(np.float64)
    model = BatchCDL(
        N_FILTERS, TAPS, reg=penalty, lmbd_max="fixed", n_iter=ITERATIONS, n_jobs=2, rank1=False,
        D_init="chunk", eps=-np.inf, verbose=0, random_state=0,
    )  # fmt: skip
    begin = time.perf_counter()
    model.fit(windows)
    return model.D_hat_[:, 0], time.perf_counter() - begin


def main() -> None:
    options = parser("benchmarks.series", __doc__, quick=None)
    options.add_argument("--device", default="cpu")
    options.add_argument("--samples", type=int, nargs="+", default=[10_000, 31_623, 100_000, 316_228, 1_000_000])
    arguments = options.parse_args()
    context = Context.of(arguments)
    warnings.simplefilter("ignore")
    context.write("series", run(context, arguments.device, arguments.samples).tables)


if __name__ == "__main__":
    main()
