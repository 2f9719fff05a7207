"""Anomalies in electrocardiograms, beside published detectors: ``POINTILLIST_DATA=DIR python -m benchmarks.anomalies``.

DIR/ecg holds recordings as .npz files with ``signal`` and ``anomaly``. One setting serves all of them apart from the
length of a beat; the marks are used for the table only. Published figures are those of the TSB-UAD benchmark. Where
stumpy is installed, it finds discords in the same recordings: large values of the matrix profile of windows of a beat.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.tables import Table

BEATS = {"mba_805": 99, "mba_806": 77}
PUBLISHED = {
    "mba_805": {"NormA": 0.775, "isolation forest": 0.720, "PCA": 0.702, "matrix profile": 0.057},
    "mba_806": {"NormA": 0.663, "isolation forest": 0.095, "PCA": 0.072, "matrix profile": 0.310},
}

PREFIX = 40_000
"""Samples of a recording up to which plain distances are computed: twenty minutes for a whole one."""


def scored(series: NDArray, beat: int, seed: int) -> pt.AnomalyScore:
    """Scores of a series, from nothing but the series and the length of a beat."""
    signals = pt.remove_baseline(series[None], beat)
    return pt.anomaly_score(signals, pt.learn_windows(signals, beat, random_state=seed))


def areas(context: Context, folder: Path) -> Table:
    """Areas under the precision-recall curve and the ROC curve, over seeds, beside the published ones."""
    rivals = list(next(iter(PUBLISHED.values())))
    columns = ["recording", "beat", "least", "mean", "least ROC", "seconds", *rivals]
    table = Table("area under the precision-recall curve", columns)
    for name, beat in BEATS.items():
        stored = np.load(folder / f"{name}.npz")
        precision, roc, seconds = [], [], []
        for seed in range(context.pick(5, 1)):
            begin = time.perf_counter()
            score = scored(stored["signal"], beat, seed).scores[0]
            seconds.append(time.perf_counter() - begin)
            precision.append(float(average_precision_score(stored["anomaly"], score)))
            roc.append(float(roc_auc_score(stored["anomaly"], score)))
            context.say(f"{name}, seed {seed}: {precision[-1]:.3f}")
        ours = [min(precision), float(np.mean(precision)), min(roc), float(np.median(seconds))]
        table.add(name, beat, *ours, *[PUBLISHED[name][rival] for rival in rivals])
    return table


def changed(context: Context, folder: Path) -> Table:
    """The area when the beat's length is wrong, when half of the recording is missing, and with noise."""
    columns = ["recording", "beat −10%", "beat +10%", "first half", "second half", "noise 0.2 σ"]
    table = Table("area under the precision-recall curve, seed 0, recordings changed", columns)
    for name, beat in BEATS.items():
        stored = np.load(folder / f"{name}.npz")
        series, marks = stored["signal"].astype(np.float64), stored["anomaly"]
        half = len(series) // 2
        noise = 0.2 * series.std() * np.random.default_rng(0).standard_normal(len(series))
        cases = [
            (series, marks, round(0.9 * beat)),
            (series, marks, round(1.1 * beat)),
            (series[:half], marks[:half], beat),
            (series[half:], marks[half:], beat),
            (series + noise, marks, beat),
        ]
        found = []
        for one, known, length in cases:
            score = scored(one.astype(np.float32), length, 0).scores[0]
            found.append(float(average_precision_score(known, score)))
            context.say(f"{name}: {found[-1]:.3f}")
        table.add(name, *found)
    return table


def discords(context: Context, folder: Path) -> Table:
    """Area and time beside stumpy's matrix profiles, of a part of the recordings and of all."""
    names = ["ours", "stumpy", "stumpy, plain"]
    columns = ["recording", "samples", *names, *(f"{name}, s" for name in names)]
    note = (
        "Seconds of the processor, without compilation. stumpy's profile is that of windows normalised to mean 0 and "
        f"deviation 1, as is usual, or of plain distances, up to {PREFIX:,} samples. A window's value counts at its middle."
    )
    table = Table("area under the precision-recall curve beside the matrix profile", columns, note=note)
    for name, beat in BEATS.items():
        stored = np.load(folder / f"{name}.npz")
        for samples in context.pick((PREFIX, len(stored["signal"])), (5000,)):
            series, marks = stored["signal"][:samples], stored["anomaly"][:samples]
            detectors = [_score, partial(matrix_profile, normalize=True)]
            if not context.quick and samples <= PREFIX:
                detectors.append(partial(matrix_profile, normalize=False))
            found: list[tuple[float | None, ...]] = [_timed(one, series, marks, beat) for one in detectors]
            found += [(None, None)] * (len(names) - len(found))
            table.add(name, samples, *(area for area, _ in found), *(seconds for _, seconds in found))
            context.say(f"{name}, {samples:,} samples: {found}")
    return table


def matrix_profile(series: NDArray, window: int, *, normalize: bool) -> NDArray:
    """The distance of the window around each sample to the one that is most like it, by stumpy."""
    import stumpy

    found = stumpy.stump(series.astype(np.float64), window, normalize=normalize)[:, 0].astype(np.float64)
    return np.pad(found, (window // 2, window - 1 - window // 2), mode="edge")


def _score(series: NDArray, beat: int) -> NDArray:
    return scored(series, beat, 0).scores[0]


def _timed(detector: Callable[..., NDArray], series: NDArray, marks: NDArray, beat: int) -> tuple[float, float]:
    """Area under the precision-recall curve, and seconds of the processor."""
    detector(series[:2000], beat)  # compiles
    begin = time.process_time()
    score = detector(series, beat)
    return float(average_precision_score(marks, score)), time.process_time() - begin


def main() -> None:
    arguments = parser("benchmarks.anomalies", __doc__ or "", quick="one seed, recordings as they are").parse_args()
    context = Context.of(arguments)
    folder = Path(os.environ.get("POINTILLIST_DATA", "")) / "ecg"
    if not folder.is_dir():
        raise SystemExit("POINTILLIST_DATA must name a folder that holds ecg/")
    tables = [areas(context, folder)]
    if not context.quick:
        tables.append(changed(context, folder))
    if find_spec("stumpy") is None:
        context.say("stumpy is not installed and is left out: pip install stumpy")
    else:
        tables.append(discords(context, folder))
    context.write("anomalies", tables)


if __name__ == "__main__":
    main()
