"""``pointillist anomalies``: files in, a score for every sample, a table of events and a page about them out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import pointillist as pt
from pointillist.cli.console import Progress, count, leaving, number, say, show_log, table, tell, write
from pointillist.cli.options import (
    AsJson,
    Channels,
    Device,
    Failing,
    Folder,
    Jobs,
    OnError,
    Overwrite,
    Paths,
    Quiet,
    Recursive,
    Seed,
    Verbose,
    number_that,
)

_MOST_SHOWN = 10
EVENTS, PAGE, MODEL = "events.csv", "anomalies.html", "model.safetensors"
"""Names of the files in the folder of answers."""


_false_alarms = number_that(
    lambda value: 0 < value < 0.5, "is not in (0, 0.5); 0.01 lets one normal sample in a hundred pass"
)


@leaving("no scores were written")
def anomalies(
    paths: Paths,
    model: Annotated[
        Path | None,
        Option("--model", "-m", metavar="FILE.safetensors", help="A model file that learn wrote.", show_default=False),
    ] = None,
    size: Annotated[
        int | None,
        Option(
            min=2,
            metavar="N",
            help="Instead of a model: learn filters of N samples from these series.",
            show_default=False,
        ),
    ] = None,
    channels: Channels = None,
    nonnegative: Annotated[
        bool | None,
        Option(
            "--nonnegative/--signed",
            help="With --size: whether a filter is there or not, or may also be upside down.",
            show_default="nonnegative",
        ),
    ] = None,
    output: Folder = Path("anomalies"),
    false_alarms: Annotated[
        float,
        Option(callback=_false_alarms, metavar="SHARE", help="Normal samples that may lie above the threshold."),
    ] = 0.01,
    seed: Seed = 0,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say how strange every sample of series or images is, list what stands out, and draw it.

    The folder gets the scores as .npy files, events.csv and the page anomalies.html.
    """
    import numpy as np

    from pointillist.cli.reading import SignalReader, Wanted, reader_for
    from pointillist.plot.reports import event_columns, event_row, write_anomaly_report
    from pointillist.storage import atomic_path

    show_log(quiet=quiet, verbose=verbose)
    if (model is None) == (size is None):
        raise ValueError(
            "give either --model, a model that was learned, or --size, to learn from the series themselves"
        )
    if model is not None and nonnegative is not None:
        raise ValueError("--nonnegative and --signed are for --size: a model has its own signs, leave them out")
    layout = None if channels is None else channels.value
    how: dict[str, Any] = {"layout": layout, "on_error": on_error.value, "recursive": recursive}
    if model is None:
        box: tuple[int, ...] = (int(size or 0),)
        names, signals = SignalReader(Wanted(paths, 1, "none", **how), box).read_all()
        targets = _targets(output, names, [EVENTS, PAGE, MODEL], overwrite=overwrite)
        if not quiet:
            tell(f"learning filters of {size} samples from {count(len(names), 'signal')}")
        signals = pt.remove_baseline(signals, box[0], channels=layout is not None)
        learned = pt.learn_windows(
            signals,
            box[0],
            channels=layout is not None,
            nonnegative=nonnegative is not False,
            n_jobs=jobs,
            random_state=seed,
        ).set_params(device=device)
    else:
        learned = pt.load(model).set_params(n_jobs=jobs, device=device)
        names, signals = reader_for(learned, model, paths, **how).read_all()
        targets = _targets(output, names, [EVENTS, PAGE], overwrite=overwrite)
        if "baseline" in learned.preprocessing_:
            signals = pt.remove_baseline(signals, int(learned.preprocessing_["baseline"]), channels=learned.channels)
    with Progress("scoring", 1, quiet=quiet) as progress:
        found = pt.anomaly_score(signals, learned, false_alarms=false_alarms, progress=progress.show)
    events, columns = found.events(), event_columns(len(found.extent))
    rows = [event_row(names[int(event["signal"])], event) for event in events]
    for target, score in zip(targets, found.scores, strict=True):
        with atomic_path(target) as temporary, open(temporary, "wb") as file:
            np.save(file, score.astype(np.float32))
    with (
        atomic_path(output / EVENTS) as temporary,
        open(temporary, "w", newline="", encoding="utf-8", errors="replace") as lines,
    ):
        csv.writer(lines).writerows([columns, *rows])
    if model is None:
        prepared = {"normalise": "none", "baseline": found.extent[0]} | ({} if layout is None else {"channels": layout})
        pt.save(learned, output / MODEL, preprocessing=prepared)
    write_anomaly_report(output / PAGE, names, signals, found)
    if as_json:
        facts = {
            "output": str(output),
            "threshold": found.threshold,
            "signals": [
                {"name": name, "highest": float(score.max()), "above": int(np.count_nonzero(score > found.threshold))}
                for name, score in zip(names, found.scores, strict=True)
            ],
            "events": [dict(zip(columns, row, strict=True)) for row in rows],
        }
        write(json.dumps(facts, indent=2, ensure_ascii=False).split("\n"))
    elif not quiet:
        strongest = [rows[i] for i in np.argsort(-events["score"], kind="stable")[:_MOST_SHOWN]]
        if strongest:
            cells = ([number(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in strongest)
            say(table(columns, cells, left=("signal", "cause")))
        if len(rows) > len(strongest):
            say(f"the strongest {len(strongest)} of {len(rows):,}; {output / EVENTS} has all of them")
        say(
            f"{count(len(rows), 'event')} above {found.threshold:.3g} nats in {count(len(names), 'signal')}; "
            f"wrote the scores, {EVENTS} and {PAGE} to {output}"
        )


def _targets(output: Path, names: list[str], own: list[str], *, overwrite: bool) -> list[Path]:
    """The file for the scores of each signal; all files of the answer are checked before any work."""
    from pointillist.cli.reading import file_stem
    from pointillist.storage import check_writable

    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give a folder")
    output.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    targets = [output / f"{file_stem(name, taken)}-scores.npy" for name in names]
    for path in [*targets, *(output / name for name in own)]:
        check_writable(path)
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists already: give --overwrite to replace it, or another folder by --output"
            )
    return targets
