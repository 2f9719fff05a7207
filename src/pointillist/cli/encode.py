"""``pointillist encode``: a model and files in, sparse codes and their certificates out."""

from __future__ import annotations

import csv
import io
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pointillist as pt
from pointillist.cli.console import (
    Progress,
    Stopped,
    check_memory,
    check_outputs,
    count,
    duration,
    in_bytes,
    is_interruption,
    leaving,
    say,
    say_left_out,
    show_log,
    table,
    tell,
    warn,
    write,
)
from pointillist.cli.options import (
    AsJson,
    Channels,
    CheckpointEvery,
    Device,
    Failing,
    Jobs,
    MaxMemory,
    Model,
    OnError,
    OnlyPlan,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Solver,
    Verbose,
    number_that,
    positive,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.parts import CodedRun, CodedSignal
    from pointillist.cli.reading import Item, SignalReader

DASH = Path("-")
"""Standard output."""
_COLUMNS = ("name", "shape", "objective", "gap", "status", "nonzeros", "psnr", "seconds", "reason")
"""Columns of the CSV file; of a signal that was left out only the name, the status "skipped" and the reason."""
_ON_DEVICE = 256
"""Signals that a GPU is given at a time."""
_PLAN_GROUPS = 2


_tolerance = number_that(lambda value: 0 < value < 1, "must lie between 0 and 1; 0.001 is the default")


@leaving("no codes were written")
def encode(
    model: Model,
    paths: Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The codes file to write.", metavar="FILE.safetensors")
    ] = Path("codes.safetensors"),
    penalty: Annotated[
        float | None,
        typer.Option(callback=positive, metavar="NUMBER", help="Price of a code.", show_default="the model's"),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(callback=_tolerance, metavar="NUMBER", help="Relative gap to reach.", show_default="the model's"),
    ] = None,
    reconstruction: Annotated[
        Path | None, typer.Option(help="Also write what the codes make of each image, as PNG.", metavar="DIR")
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Also write every code as a line: where, which filter. - is standard output.",
            metavar="FILE.csv",
        ),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            metavar="HZ",
            help="Samples in a second, for --events.",
            show_default="as the times in a table say, or 1",
        ),
    ] = None,
    channels: Channels = None,
    solver: Solver = None,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: CheckpointEvery = None,
    resume: Resume = False,
    csv_table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Also write objective, gap, status, codes and seconds of every signal. - is standard output.",
            metavar="FILE.csv",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write signals as sparse codes of a model's filters, prepared as the model's training signals were.

    With --checkpoint-every or --resume a run that was ended goes on where it stopped, by the same command and --resume.
    """
    import numpy as np

    from pointillist.cli.parts import CodedRun, run_identity
    from pointillist.cli.reading import SignalReader, box_of, file_stem, wanted_by
    from pointillist.data.sources.derived import DEFAULT_CACHE

    show_log(quiet=quiet, verbose=verbose)
    if as_json + (events == DASH) + (csv_table == DASH) > 1:
        raise ValueError("only one of --json, --events - and --csv - can have standard output: name files")
    check_outputs({"--output": output, "--events": events, "--csv": csv_table})
    learned = pt.load(model)
    if sampling_rate is not None and events is None:
        raise ValueError("--sampling-rate is for the times of events: say where to with --events FILE.csv")
    if sampling_rate is not None and len(box_of(learned)) != 1:
        raise ValueError("--sampling-rate is for signals in time, of one dimension: leave it out")
    if reconstruction is not None:
        if len(box_of(learned)) != 2 or (learned.channels and learned.filters_.shape[1] != 3):
            raise ValueError("--reconstruction writes images, but the filters are not those of images: leave it out")
        if reconstruction.exists() and not reconstruction.is_dir():
            raise NotADirectoryError(f"--reconstruction {reconstruction} is a file: give a folder")
    chosen = {"penalty": penalty, "tol": tol, "solver": solver and solver.value, "device": device}
    learned.set_params(n_jobs=jobs, **{name: value for name, value in chosen.items() if value is not None})
    layout = None if channels is None else channels.value
    wanted = wanted_by(learned, model, paths, layout=layout, on_error=on_error.value, recursive=recursive)
    reader = SignalReader(wanted, box_of(learned))
    if events is not None and sampling_rate is None:
        sampling_rate = _rate_of(reader.source.sampling_rates, quiet=quiet)
    # The number of threads is no part of what the codes depend on.
    identity = run_identity(model, {**chosen, "channels": wanted.layout}, reader.source.describe())
    coded = CodedRun(output, every=checkpoint_every, resume=resume, identity=identity, touch=not plan)
    ahead = DEFAULT_CACHE if max_memory is None else max_memory // 4
    if plan:
        _show_plan(learned, reader, coded, ahead)
        return
    taken: set[str] = set()
    if reconstruction is not None:
        reconstruction.mkdir(parents=True, exist_ok=True)
        for row in coded.rows:
            file_stem(row.name, taken)
    try:
        with Progress("encoding", 1, quiet=quiet) as progress:
            for group, result, rows in _encoded(learned, reader, coded, ahead, progress.show):
                for i, item in enumerate(group if reconstruction is not None else ()):
                    decode = partial(learned.inverse_transform, result.codes[i])
                    path = Path(reconstruction or "", f"{file_stem(item.name, taken)}.png")
                    _write_picture(path, item, result.residuals[i], decode, wanted.normalise)
                coded.add(result.codes.on_host(), rows, group[-1].number + 1)
                if max_memory is not None:
                    advice = "take fewer --jobs, a higher --penalty, or fewer files at a time"
                    check_memory(max_memory, "coding", advice)
        if not coded.rows:
            raise ValueError(
                f"none of the {len(reader)} signals can be used; the first: {coded.left_out()[0]['reason']}"
            )
        coded.notice_others()
        codes = pt.SparseCodes.concatenate(coded.codes)
        about = {
            "model": str(model),
            "penalty": np.asarray(learned.penalty).tolist(),
            "boundary": learned.boundary,
            "preprocessing": learned.preprocessing_,
        }
        _save(codes, output, about, coded)
    except BaseException as error:
        coded.write()
        if is_interruption(error):
            kept = (
                f"{len(coded.rows)} of {count(len(reader), 'signal')} are coded and kept: go on with the same command"
            )
            undone = f"{kept} and --resume" if coded.kept and coded.rows else "no codes were written"
            raise Stopped(undone, getattr(error, "number", None)) from None
        raise
    if events is not None:
        _write_events(codes.events(sampling_rate=sampling_rate or 1.0), events)
    if csv_table is not None:
        _write_table(coded, csv_table)
    if as_json:
        facts = {"output": str(output), **about, "signals": [asdict(row) for row in coded.rows]}
        write(json.dumps({**facts, "skipped": coded.left_out()}, indent=2, ensure_ascii=False).split("\n"))
    coded.clear()
    if quiet:
        return
    piped = as_json or DASH in (csv_table, events)  # standard output is for another program to read
    print_ = tell if piped else say
    if not piped:
        _show_table(coded)
    skipped = f" ({len(coded.skipped)} skipped)" if coded.skipped else ""
    print_(f"wrote the codes of {count(len(coded.rows), 'signal')}{skipped} to {output}")
    if events not in (None, DASH):
        print_(f"wrote {count(codes.nnz, 'event')} to {events}")
    if csv_table not in (None, DASH):
        print_(f"wrote a table of the signals to {csv_table}")
    if reconstruction is not None:
        print_(f"wrote {count(len(taken), 'picture')} to {reconstruction}")
    short = [row.status for row in coded.rows if row.status != "converged"]
    if short:
        warn(f"{len(short)} of {len(coded.rows)} signals did not converge: {pt.Status(short[0]).advice}")


def _rate_of(rates: frozenset[float], *, quiet: bool) -> float | None:
    """Samples in a second that the files themselves say."""
    if len(rates) > 1:
        several = ", ".join(f"{rate:g}" for rate in sorted(rates))
        raise ValueError(
            f"the times in these tables say that a second has {several} samples: give --sampling-rate, or encode them apart"
        )
    for rate in rates:
        if not quiet:
            tell(f"times of events: a second has {rate:g} samples, as the tables say")
    return next(iter(rates), None)


def _encoded(
    model: pt.BatchCSC | pt.OnlineCSC,
    reader: SignalReader,
    coded: CodedRun,
    ahead: int,
    show: Callable[[float], None] = lambda done: None,
) -> Iterator[tuple[list[Item], pt.Result, list[CodedSignal]]]:
    """Encode signals from the next one on, as many at a time as keep all threads busy; `coded` takes what is left out."""
    from sklearn.exceptions import ConvergenceWarning

    from pointillist.cli.parts import CodedSignal
    from pointillist.cli.reading import groups
    from pointillist.parallel import effective_jobs

    on_device = model.device != "cpu"
    together = _ON_DEVICE if on_device else 4 * effective_jobs(model.n_jobs)
    for group in groups(reader.read_ahead(coded.next, coded.skipped, ahead), together, on_device=on_device):
        signals, start = [item.signal for item in group], group[0].number
        share = group[-1].number + 1 - start
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so, signal by signal
            result = model.encode(signals, progress=partial(_shown, show, start / len(reader), share / len(reader)))
        seconds = (time.perf_counter() - begin) / sum(signal.size for signal in signals)
        rows = [
            CodedSignal(
                item.name,
                list(item.signal.shape),
                float(result.objective[i]),
                float(result.gap[i]),
                result.codes[i].nnz,
                _decibels(item.signal, result.residuals[i]),
                result.statuses[i].value,
                seconds * item.signal.size,
            )
            for i, item in enumerate(group)
        ]
        yield group, result, rows


def _shown(show: Callable[[float], None], first: float, share: float, done: float) -> None:
    show(first + share * done)


def _decibels(signal: NDArray, residual: NDArray) -> float | None:
    """PSNR of what was seen, with its range as peak, from what the codes leave; None where that is no number.

    Signals that are left in files are gone through in bands.
    """
    import numpy as np

    from pointillist.arrays import walked
    from pointillist.validation import extremes

    ends, missing = [], 0
    for _, rows in walked(signal[None]):
        ends.append(extremes(signal[rows]))
        missing += int(np.count_nonzero(np.isnan(signal[rows])))
    span = float(np.nanmax(ends) - np.nanmin(ends))
    error = sum(float(np.sum(np.square(residual[band], dtype=np.float64))) for band in walked(residual))
    if span == 0 or error == 0:
        return None
    return 10 * float(np.log10(span**2 * (residual.size - missing) / error))


def _show_plan(model: pt.BatchCSC | pt.OnlineCSC, reader: SignalReader, coded: CodedRun, ahead: int) -> None:
    """Code some signals and say what the rest will need: by what these took, reading counted, and compiling not."""
    from pointillist.kernels.compiling import working_time
    from pointillist.system import memory_peak

    before, first, begin = len(coded.rows), coded.next, working_time()
    for group, result, new in islice(_encoded(model, reader, coded, ahead), _PLAN_GROUPS):
        coded.add(result.codes, new, group[-1].number + 1)
    rows = coded.rows[before:]
    if not rows and first < len(reader):
        raise ValueError(f"none of the {len(reader)} signals can be used; the first: {coded.left_out()[0]['reason']}")
    seconds, scale = working_time() - begin, (len(reader) - first) / max(coded.next - first, 1)
    codes = 12 * sum(row.nonzeros for row in coded.rows[:before]) + 12 * scale * sum(row.nonzeros for row in rows)
    done = f", {first:,} of them coded already" if first else ""
    say(
        f"{count(len(reader), 'signal')}{done}",
        f"time: about {duration(seconds * scale)}; the first {count(len(rows), 'signal')} took {seconds:.2g} s",
        f"memory: {in_bytes(memory_peak() + 2 * codes)} at its peak, of which {in_bytes(2 * codes)} for the codes",
        "nothing was written",
    )


def _save(codes: pt.SparseCodes, output: Path, about: dict[str, Any], coded: CodedRun) -> None:
    """Write the codes file; seconds are no part of it, which is to be the same again."""
    rows = [
        {name: value for name, value in asdict(row).items() if name not in ("name", "seconds")} for row in coded.rows
    ]
    pt.save_codes(codes, output, {**about, "signals": rows, "skipped": coded.left_out()})


def _write_events(found: NDArray, path: Path) -> None:
    from pointillist.storage import event_lines, write_events

    write(event_lines(found)) if path == DASH else write_events(found, path)


def _write_table(coded: CodedRun, path: Path) -> None:
    """Write a line of CSV for every signal, to a file or to standard output."""
    from pointillist.storage import atomic_path

    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "shape": "x".join(map(str, row.shape))} for row in coded.rows)
    writer.writerows({**one, "status": "skipped"} for one in coded.left_out())
    if path == DASH:
        write(text.getvalue().splitlines())
        return
    with atomic_path(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8", newline="", errors="replace")


def _show_table(coded: CodedRun) -> None:
    """Print a line for every signal, and what was left out."""
    from pointillist.reprs import sizes

    say(
        table(
            ("signal", "size", "objective", "relative gap", "non-zeros", "PSNR", "status"),
            (
                (
                    row.name,
                    sizes(row.shape),
                    f"{row.objective:,.2f}",
                    f"{row.gap:.1e}",
                    f"{row.nonzeros:,}",
                    "–" if row.psnr is None else f"{row.psnr:.2f} dB",
                    row.status,
                )
                for row in coded.rows
            ),
            left=("signal", "status"),
        )
    )
    say_left_out([one["reason"] for one in coded.left_out()], "codes")


def _write_picture(path: Path, item: Item, residual: NDArray, decode: Callable[[], Any], normalise: str) -> None:
    """Write what codes make of an image, from it and what they leave of it; where it was not seen, they are decoded."""
    import numpy as np

    from pointillist.plot.style import save_image

    signal = item.signal
    fit = signal - residual.reshape(signal.shape)
    if np.isnan(fit).any():
        fit = np.where(np.isnan(signal), decode()[0], fit)
    # Files hold 0 to 1; contrast-normalised signals have no such range, so the signal's own is used.
    low, high = (0.0, 1.0) if normalise == "none" else np.percentile(signal, [0.5, 99.5])
    pixels = np.round(255 * np.clip((fit - low) / max(high - low, 1e-12), 0, 1)).astype(np.uint8)
    save_image(np.moveaxis(pixels, 0, -1) if signal.ndim == 3 else pixels, path)
