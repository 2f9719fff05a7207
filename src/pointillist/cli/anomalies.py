"""``pointillist anomalies``: files in, a score for every sample, a table of events and a page about them out."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from pointillist.anomalies import AnomalyScore, anomaly_score, learn_windows, remove_baseline
from pointillist.cli.console import count, number, say, show_log, tell
from pointillist.cli.inputs import Wanted, layout_of, normalisation, read_to_encode
from pointillist.cli.progress import picture_progress
from pointillist.data.damage import OnError
from pointillist.data.paths import TABLE_SUFFIXES
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.persistence import load, save
from pointillist.plot.anomalies import event_columns, event_row, write_anomaly_report
from pointillist.storage import atomic_path, check_writable

_MOST_SHOWN = 10
EVENTS, PAGE, MODEL = "events.csv", "anomalies.html", "model.safetensors"
"""Names of the files in the folder of answers."""


@dataclass(frozen=True)
class AnomaliesRequest:
    """What the user asked ``pointillist anomalies`` for: a model, or the size of filters to learn from the series."""

    paths: list[Path]
    model: Path | None
    size: int | None
    output: Path
    false_alarms: float
    seed: int
    jobs: int
    device: str
    on_error: OnError
    overwrite: bool
    recursive: bool | None = None
    layout: str | None = None
    nonnegative: bool | None = None


def run(request: AnomaliesRequest, *, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Score, write and tabulate."""
    show_log(quiet=quiet, verbose=verbose)
    if (request.model is None) == (request.size is None):
        raise ValueError(
            "give either --model, a model that was learned, or --size, to learn from the series themselves"
        )
    if request.model is not None and request.nonnegative is not None:
        raise ValueError("--nonnegative and --signed are for --size: a model has its own signs, leave them out")
    names, signals, model, targets = _prepared(request, quiet=quiet)
    with picture_progress("scoring", 1, quiet=quiet) as progress:
        progress.begin("scoring")
        found = anomaly_score(signals, model, false_alarms=request.false_alarms, progress=progress.share)
    _write(request, model, names, signals, found, targets)
    if not quiet:
        _summarise(request, names, found, as_json=as_json)


def _prepared(
    request: AnomaliesRequest, *, quiet: bool
) -> tuple[list[str], list[NDArray], BatchCSC | OnlineCSC, list[Path]]:
    """Names and signals without their baselines, the model that judges them, and the files for the scores."""
    if request.model is None:
        size = request.size or 0
        names, signals = read_to_encode(_wanted(request, 1, "none", request.layout), (size,))
        targets = _targets(request, names)
        if not quiet:
            tell(f"learning filters of {size} samples from {count(len(names), 'signal')}")
        several = request.layout is not None
        signals = remove_baseline(signals, size, channels=several)
        model = learn_windows(
            signals,
            size,
            channels=several,
            nonnegative=request.nonnegative is not False,
            n_jobs=request.jobs,
            random_state=request.seed,
        )
        return names, signals, model.set_params(device=request.device), targets
    loaded = load(request.model).set_params(n_jobs=request.jobs, device=request.device)
    shape, normalise = loaded.filters_.shape[1 + loaded.channels :], normalisation(loaded.preprocessing_)
    layout = layout_of(loaded, request.model, request.layout)
    names, signals = read_to_encode(_wanted(request, len(shape), normalise, layout), shape)
    targets = _targets(request, names)
    if "baseline" in loaded.preprocessing_:
        signals = remove_baseline(signals, int(loaded.preprocessing_["baseline"]), channels=loaded.channels)
    return names, signals, loaded, targets


def _wanted(request: AnomaliesRequest, ndim: int, normalise: str, layout: str | None) -> Wanted:
    return Wanted(request.paths, ndim, normalise, request.on_error, layout=layout, recursive=request.recursive)


def _targets(request: AnomaliesRequest, names: list[str]) -> list[Path]:
    """The file for the scores of each signal; all files of the answer are checked before any work."""
    if request.output.exists() and not request.output.is_dir():
        raise NotADirectoryError(f"--output {request.output} is a file: give a folder")
    request.output.mkdir(parents=True, exist_ok=True)
    taken: dict[str, int] = {}
    targets = []
    for name in names:
        stem = _stem(name)
        taken[stem] = taken.get(stem, 0) + 1
        again = f"-{taken[stem]}" if taken[stem] > 1 else ""
        targets.append(request.output / f"{stem}{again}-scores.npy")
    own = [EVENTS, PAGE] + [MODEL] * (request.model is None)
    for path in [*targets, *(request.output / name for name in own)]:
        check_writable(path)
        if path.exists() and not request.overwrite:
            raise FileExistsError(
                f"{path} exists already: give --overwrite to replace it, or another folder by --output"
            )
    return targets


def _stem(name: str) -> str:
    """What the files of a signal are called: of ``r.npy[3]`` r-3, of the column ``r.csv::left`` r-left."""
    file, _, entry = name.partition("[")
    path, _, column = name.partition("::")
    if Path(path).suffix.lower() in TABLE_SUFFIXES:
        file, entry = path, re.sub(r"[^\w.-]+", "_", column)
    return Path(file).stem + (f"-{entry.rstrip(']')}" if entry else "")


def _write(
    request: AnomaliesRequest,
    model: BatchCSC | OnlineCSC,
    names: list[str],
    signals: list[NDArray],
    found: AnomalyScore,
    targets: list[Path],
) -> None:
    for target, score in zip(targets, found.scores, strict=True):
        with atomic_path(target) as temporary, open(temporary, "wb") as file:
            np.save(file, score.astype(np.float32))
    with (
        atomic_path(request.output / EVENTS) as temporary,
        open(temporary, "w", newline="", encoding="utf-8", errors="replace") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(event_columns(len(found.extent)))
        writer.writerows(event_row(names[int(event["signal"])], event) for event in found.events())
    if request.model is None:
        prepared = {"normalise": "none", "baseline": found.extent[0]}
        layout = {} if request.layout is None else {"channels": request.layout}
        save(model, request.output / MODEL, preprocessing=prepared | layout)
    write_anomaly_report(request.output / PAGE, names, signals, found)


def _summarise(request: AnomaliesRequest, names: list[str], found: AnomalyScore, *, as_json: bool) -> None:
    events = found.events()
    if as_json:
        say(*json.dumps(_facts(request, names, found, events), indent=2, ensure_ascii=False).split("\n"))
        return
    strongest = events[np.argsort(-events["score"], kind="stable")][:_MOST_SHOWN]
    columns = event_columns(len(found.extent))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns:
        table.add_column(heading, justify="left" if heading in ("signal", "cause") else "right", overflow="fold")
    for event in strongest:
        table.add_row(*(_cell(cell) for cell in event_row(names[int(event["signal"])], event)))
    if len(events):
        say(table)
    if len(events) > len(strongest):
        say(f"the strongest {len(strongest)} of {len(events):,}; {request.output / EVENTS} has all of them")
    say(
        f"{count(len(events), 'event')} above {found.threshold:.3g} nats in {count(len(names), 'signal')}; "
        f"wrote the scores, {EVENTS} and {PAGE} to {request.output}"
    )


def _cell(cell: str | int | float) -> str:
    return number(cell) if isinstance(cell, float) else str(cell)


def _facts(request: AnomaliesRequest, names: list[str], found: AnomalyScore, events: NDArray) -> dict[str, Any]:
    columns = event_columns(len(found.extent))
    rows = [event_row(names[int(event["signal"])], event) for event in events]
    return {
        "output": str(request.output),
        "threshold": found.threshold,
        "signals": [
            {"name": name, "highest": float(score.max()), "above": int(np.count_nonzero(score > found.threshold))}
            for name, score in zip(names, found.scores, strict=True)
        ],
        "events": [dict(zip(columns, row, strict=True)) for row in rows],
    }
