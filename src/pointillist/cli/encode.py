"""``pointillist encode`` and ``pointillist anomalies``: a model and files in, sparse codes or scores of every sample out.

A run of coding that may be resumed puts parts of its work away, each a codes file beside the one that it will write. It also
says what the run is, so that none is continued as another one. Signals are coded one by one: where a run was cut does not
change a bit of the codes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import pointillist as pt
from pointillist.cli.console import (
    Progress,
    Stopped,
    check_memory,
    check_outputs,
    count,
    is_interruption,
    leaving,
    number,
    say,
    say_left_out,
    say_plan,
    show_log,
    table,
    tell,
    warn,
    warn_of_others,
    write,
    write_json,
)
from pointillist.cli.options import (
    AsJson,
    Channels,
    CheckpointEvery,
    Device,
    Failing,
    Folder,
    Jobs,
    MaxMemory,
    Model,
    OnlyPlan,
    Overwrite,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Seed,
    Solver,
    Verbose,
    number_that,
    positive,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.reading import Item, SignalReader

log = logging.getLogger(__name__)

DASH = Path("-")
"""Standard output."""
_COLUMNS = ("name", "shape", "objective", "gap", "status", "nonzeros", "psnr", "seconds", "reason")
"""Columns of the CSV file; of a signal that was left out only the name, the status "skipped" and the reason."""
_ON_DEVICE = 256, 2**26
"""Signals, and samples, that a GPU is given at a time at most."""
_PLAN_GROUPS = 2


_tolerance = number_that(lambda value: 0 < value < 1, "must lie between 0 and 1; 0.001 is the default")


@leaving("no codes were written")
def encode(
    model: Model,
    paths: Paths,
    output: Annotated[
        Path, Option("--output", "-o", help="The codes file to write.", metavar="FILE.safetensors")
    ] = Path("codes.safetensors"),
    penalty: Annotated[
        float | None,
        Option(callback=positive, metavar="NUMBER", help="Price of a code.", show_default="the model's"),
    ] = None,
    tol: Annotated[
        float | None,
        Option(callback=_tolerance, metavar="NUMBER", help="Relative gap to reach.", show_default="the model's"),
    ] = None,
    reconstruction: Annotated[
        Path | None, Option(help="Also write what the codes make of each image, as PNG.", metavar="DIR")
    ] = None,
    events: Annotated[
        Path | None,
        Option(
            help="Also write every code as a line: where, which filter. - is standard output.",
            metavar="FILE.csv",
        ),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        Option(
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
    on_error: Failing = "raise",
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: CheckpointEvery = None,
    resume: Resume = False,
    csv_table: Annotated[
        Path | None,
        Option(
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

    from pointillist.cli.reading import file_stem, reader_for
    from pointillist.data.sources.base import DEFAULT_CACHE
    from pointillist.storage import event_lines

    show_log(quiet=quiet, verbose=verbose)
    if as_json + (events == DASH) + (csv_table == DASH) > 1:
        raise ValueError("only one of --json, --events - and --csv - can have standard output: name files")
    check_outputs({"--output": output, "--events": events, "--csv": csv_table})
    learned = pt.load(model)
    axes = learned.filters_.ndim - 1 - learned.channels
    if sampling_rate is not None and events is None:
        raise ValueError("--sampling-rate is for the times of events: say where to with --events FILE.csv")
    if sampling_rate is not None and axes != 1:
        raise ValueError("--sampling-rate is for signals in time, of one dimension: leave it out")
    if reconstruction is not None:
        if axes != 2 or (learned.channels and learned.filters_.shape[1] != 3):
            raise ValueError("--reconstruction writes images, but the filters are not those of images: leave it out")
        if reconstruction.exists() and not reconstruction.is_dir():
            raise NotADirectoryError(f"--reconstruction {reconstruction} is a file: give a folder")
    chosen = {"penalty": penalty, "tol": tol, "solver": solver, "device": device}
    learned.set_params(n_jobs=jobs, **{name: value for name, value in chosen.items() if value is not None})
    reader = reader_for(learned, model, paths, channels, on_error=on_error, recursive=recursive)
    rates = reader.source.sampling_rates
    if events is not None and sampling_rate is None and rates:
        if len(rates) > 1:
            several = ", ".join(f"{rate:g}" for rate in sorted(rates))
            raise ValueError(
                f"the times in these tables say that a second has {several} samples: give --sampling-rate, or encode them "
                "apart"
            )
        (sampling_rate,) = rates
        if not quiet:
            tell(f"times of events: a second has {sampling_rate:g} samples, as the tables say")
    run = CodedRun(learned, reader, output)
    parts = run.folder.files()
    if parts and not resume:
        raise ValueError(f"{parts[-1]} is a part of a run that has not ended: go on with --resume, or remove it")
    if checkpoint_every is not None or resume:
        # The number of threads is no part of what the codes depend on.
        run.take_up(model, {**chosen, "channels": reader.wanted.layout}, checkpoint_every or "60s", plan=plan)
    ahead = DEFAULT_CACHE if max_memory is None else max_memory // 4
    if plan:
        _show_plan(run, ahead)
        return
    taken: set[str] = set()
    if reconstruction is not None:
        reconstruction.mkdir(parents=True, exist_ok=True)
        for row in run.rows:
            file_stem(row["name"], taken)

    def after(group: list[Item], result: pt.Result) -> None:
        for i, item in enumerate(group if reconstruction is not None else ()):
            path = Path(reconstruction or "", f"{file_stem(item.name, taken)}.png")
            decode = partial(learned.inverse_transform, result.codes[i])
            _write_picture(path, item.signal, result.residuals[i], decode, reader.wanted.normalise)
        if max_memory is not None:
            advice = "take fewer --jobs, a higher --penalty, or fewer files at a time"
            check_memory(max_memory, "coding", advice)

    try:
        with Progress("encoding", 1, quiet=quiet) as progress:
            run.encode(ahead, after, progress.show)
        codes = pt.SparseCodes.concatenate(run.codes)
        about = {
            "model": str(model),
            "penalty": np.asarray(learned.penalty).tolist(),
            "boundary": learned.boundary,
            "preprocessing": learned.preprocessing_,
        }
        # Seconds are no part of the file, which is to be the same again, and names are in the codes.
        facts = [{name: row[name] for name in row if name not in ("name", "seconds")} for row in run.rows]
        warn_of_others(output, run.before, "codes")
        pt.save_codes(codes, output, {**about, "signals": facts, "skipped": run.left_out()})
    except BaseException as error:
        run.write()
        if is_interruption(error) and run.kept and run.rows:
            kept = f"{len(run.rows)} of {count(len(reader.source), 'signal')} are coded and kept"
            raise Stopped(f"{kept}: go on with the same command and --resume") from None
        raise
    if events is not None:
        _write_lines(event_lines(codes.events(sampling_rate=sampling_rate or 1.0)), events)
    if csv_table is not None:
        rows = [{**row, "shape": "x".join(map(str, row["shape"]))} for row in run.rows]
        _write_lines(_csv_lines(_COLUMNS, rows + [{**one, "status": "skipped"} for one in run.left_out()]), csv_table)
    if as_json:
        write_json({"output": str(output), **about, "signals": run.rows, "skipped": run.left_out()})
    if run.kept:
        run.folder.clear()
    if quiet:
        return
    piped = as_json or DASH in (csv_table, events)  # standard output is for another program to read
    if not piped:
        _show_table(run)
    skipped = f" ({len(run.skipped)} skipped)" if run.skipped else ""
    lines = [f"wrote the codes of {count(len(run.rows), 'signal')}{skipped} to {output}"]
    also = [(events, count(codes.nnz, "event")), (csv_table, "a table of the signals")]
    also.append((reconstruction, count(len(taken), "picture")))
    lines += [f"wrote {made} to {path}" for path, made in also if path not in (None, DASH)]
    (tell if piped else say)(*lines)
    short = [row["status"] for row in run.rows if row["status"] != "converged"]
    if short:
        warn(f"{len(short)} of {len(run.rows)} signals did not converge: {pt.Status(short[0]).advice}")


class CodedRun:
    """Signals that a run has coded, in order, what it left out, and its parts, if they are kept.

    Parameters
    ----------
    learned : BatchCSC or OnlineCSC
    reader : SignalReader
    output : Path
        The codes file that the run will write.

    Attributes
    ----------
    codes : list of SparseCodes
    rows : list of dict
        Facts about each coded signal; its seconds are its share, by samples, of those that it was coded with.
    skipped : dict
        Name of a signal that was left out and why, by its number.
    next : int
        Number of the signal to go on with.
    kept : bool
        True if parts are written.
    """

    def __init__(self, learned: pt.BatchCSC | pt.OnlineCSC, reader: SignalReader, output: Path) -> None:
        from pointillist.storage import PartFolder, stamp

        self.learned, self.reader = learned, reader
        self.codes: list[pt.SparseCodes] = []
        self.rows: list[dict[str, Any]] = []
        self.skipped: dict[int, tuple[str, str]] = {}
        self.next, self.kept = 0, False
        self.folder, self.before = PartFolder(output), stamp(output)

    def take_up(self, model: Path, settings: dict[str, Any], every: str, *, plan: bool) -> None:
        """Go on behind the parts that there are, and write others as often as `every` says, as `Checkpoints` takes it.

        Raises CheckpointError if they are those of another run, of another model file or other settings. A plan leaves them
        as they are.
        """
        from pointillist.learners.checkpoints import parse_every
        from pointillist.storage import own_version, read_whole

        digest = hashlib.sha256(read_whole(model, "model")).hexdigest()
        data = self.reader.source.describe()
        self._identity = {"model": digest, **settings, "data": data, "pointillist": own_version()}
        self._signals, self._seconds = parse_every(every)
        for path, codes, metadata in self.folder.read():
            _refuse_others(path, metadata, self._identity)
            if metadata["first"] != self.next or len(metadata["signals"]) != len(codes):
                log.warning("%s does not follow the part before it; going on from there", path)
                break
            self.codes.append(codes)
            self.rows += metadata["signals"]
            self.skipped |= {one["number"]: (one["name"], one["reason"]) for one in metadata["skipped"]}
            self.next = metadata["next"]
        self._last, self._written = time.monotonic(), (len(self.codes), len(self.rows), self.next)
        self.kept = not plan
        if self.kept:
            self.folder.drop_from(self.next)

    def encode(
        self,
        ahead: int,
        after: Callable[[list[Item], pt.Result], None] = lambda group, result: None,
        show: Callable[[float], None] = lambda done: None,
        most: int | None = None,
    ) -> None:
        """Encode signals from the next one on, as many at a time as keep all threads busy, and write parts in between.

        At most `most` groups are encoded; `after` is called for each before it counts as coded.
        """
        from sklearn.exceptions import ConvergenceWarning

        from pointillist.parallel import effective_jobs

        learned, total = self.learned, len(self.reader.source)
        together = (4 * effective_jobs(learned.n_jobs), inf) if learned.device == "cpu" else _ON_DEVICE
        for group in islice(self.reader.groups(self.next, self.skipped, ahead, *together), most):
            signals, start = [item.signal for item in group], group[0].number
            share = group[-1].number + 1 - start

            def shown(done: float, start: int = start, share: int = share) -> None:
                show((start + share * done) / total)

            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so, signal by signal
                result = learned.encode(signals, progress=shown)
            seconds = (time.perf_counter() - begin) / sum(signal.size for signal in signals)
            after(group, result)
            codes = result.codes.on_host()
            codes.names = [item.name for item in group]
            self.codes.append(codes)
            self.rows += [
                {
                    "name": item.name,
                    "shape": list(item.signal.shape),
                    "objective": float(result.objective[i]),
                    "gap": float(result.gap[i]),
                    "nonzeros": len(codes.indices[i]),
                    "psnr": _decibels(item.signal, result.residuals[i]),
                    "status": result.statuses[i].value,
                    "seconds": seconds * item.signal.size,
                }
                for i, item in enumerate(group)
            ]
            self.next = group[-1].number + 1
            if self.kept:
                new, waited = len(self.rows) - self._written[1], time.monotonic() - self._last
                if new >= (self._signals or inf) or waited >= (self._seconds or inf):
                    self.write()

    def left_out(self) -> list[dict[str, str]]:
        """Signals that were left out, and why, as JSON has them."""
        return [{"name": name, "reason": reason} for _, (name, reason) in sorted(self.skipped.items())]

    def write(self) -> None:
        """Write what was coded since the last part, or say why that cannot be done; the run goes on."""
        if not self.kept or self._written[2] == self.next:
            return
        parts, rows, first = self._written
        skipped = [
            {"number": number, "name": name, "reason": reason}
            for number, (name, reason) in self.skipped.items()
            if first <= number < self.next
        ]
        metadata = {"first": first, "next": self.next, "signals": self.rows[rows:], "skipped": skipped}
        try:
            codes = pt.SparseCodes.concatenate(self.codes[parts:])
            self.folder.write(first, codes, {**metadata, "run": self._identity})
            self._written = (len(self.codes), len(self.rows), self.next)
        except OSError as error:
            log.warning("the codes so far cannot be put away, coding goes on: %s", error)
        self._last = time.monotonic()


def _refuse_others(path: Path, metadata: dict[str, Any], identity: dict[str, Any]) -> None:
    """Raise CheckpointError for what is no part of a run, and for a part of another run."""
    from pointillist.learners.checkpoints import differences
    from pointillist.storage.schema import anything, check_form, mapping, text, whole

    form = {
        "first": whole(0),
        "next": whole(0),
        "run": {"data": mapping, ...: anything},
        "signals": [mapping],
        "skipped": [{"number": whole(0), "name": text, "reason": text}],
        ...: anything,
    }
    try:
        check_form(metadata, form, "metadata")
    except ValueError as error:
        raise pt.CheckpointError(f"{path} is not a part of pointillist encode: {error}") from error
    then = metadata["run"]
    data = differences(then["data"], identity["data"], "data: ")
    found = [*differences({**then, "data": None}, {**identity, "data": None}), *data]
    if found:
        raise pt.CheckpointError(
            f"{path} belongs to another run: {'; '.join(found)}. Resume with what that had, or remove it"
        )


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


def _show_plan(run: CodedRun, ahead: int) -> None:
    """Code some signals and say what the rest will need: by what these took, reading counted, and compiling not."""
    from rich.filesize import decimal

    from pointillist.kernels.compiling import working_time
    from pointillist.system import memory_peak

    coded, first, total, begin = len(run.rows), run.next, len(run.reader.source), working_time()
    run.encode(ahead, most=_PLAN_GROUPS)
    seconds, scale = working_time() - begin, (total - first) / max(run.next - first, 1)
    taken = len(run.rows) - coded
    nonzeros = [row["nonzeros"] for row in run.rows]
    codes = 24 * (sum(nonzeros[:coded]) + scale * sum(nonzeros[coded:]))
    say_plan(
        f"{count(total, 'signal')}{f', {first:,} of them coded already' if first else ''}",
        seconds * scale,
        f"{count(taken, 'signal')} took {seconds:.2g} s",
        memory_peak() + codes,
        f", of which {decimal(int(codes))} for the codes",
    )


def _write_lines(lines: Iterable[str], path: Path) -> None:
    """Write lines to a file, completely or not at all, or to standard output."""
    from pointillist.storage import atomic_path

    if path == DASH:
        write(lines)
        return
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="", errors="replace") as file:
        file.writelines(f"{line}\n" for line in lines)


def _csv_lines(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> list[str]:
    """Lines of a table in CSV, names first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().split("\n")[:-1]


def _show_table(run: CodedRun) -> None:
    """Print a line for every signal, and what was left out."""
    from pointillist.reprs import sizes

    headings = ("signal", "size", "objective", "relative gap", "non-zeros", "PSNR", "status")
    lines = []
    for row in run.rows:
        quality = "–" if row["psnr"] is None else f"{row['psnr']:.2f} dB"
        figures = [f"{row['objective']:,.2f}", f"{row['gap']:.1e}", f"{row['nonzeros']:,}", quality]
        lines.append([row["name"], sizes(row["shape"]), *figures, row["status"]])
    say(table(headings, lines, left=("signal", "status")))
    say_left_out([one["reason"] for one in run.left_out()], "codes")


def _write_picture(path: Path, signal: NDArray, residual: NDArray, decode: Callable[[], Any], normalise: str) -> None:
    """Write what codes make of an image, from it and what they leave of it; where it was not seen, they are decoded."""
    import numpy as np

    from pointillist.plot.pictures import save_image

    fit = signal - residual.reshape(signal.shape)
    if np.isnan(fit).any():
        fit = np.where(np.isnan(signal), decode()[0], fit)
    # Files hold 0 to 1; contrast-normalised signals have no such range, so the signal's own is used.
    low, high = (0.0, 1.0) if normalise == "none" else np.percentile(signal, [0.5, 99.5])
    pixels = np.round(255 * np.clip((fit - low) / max(high - low, 1e-12), 0, 1)).astype(np.uint8)
    save_image(np.moveaxis(pixels, 0, -1) if signal.ndim == 3 else pixels, path)


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
    on_error: Failing = "raise",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say how strange every sample of series or images is, list what stands out, and draw it.

    The folder gets the scores as .npy files, events.csv and the page anomalies.html.
    """
    import numpy as np

    from pointillist.cli.reading import SignalReader, Wanted, file_stem, reader_for
    from pointillist.plot.reports import event_columns, event_row, write_anomaly_report
    from pointillist.storage import atomic_path, check_writable

    show_log(quiet=quiet, verbose=verbose)
    if (model is None) == (size is None):
        raise ValueError(
            "give either --model, a model that was learned, or --size, to learn from the series themselves"
        )
    if model is not None and nonnegative is not None:
        raise ValueError("--nonnegative and --signed are for --size: a model has its own signs, leave them out")
    how: dict[str, Any] = {"on_error": on_error, "recursive": recursive}
    learned = None if model is None else pt.load(model)
    if model is None or learned is None:
        baseline = int(size or 0)
        reader = SignalReader(Wanted(paths, 1, "none", layout=channels, **how), (baseline,))
    else:
        baseline = int(learned.preprocessing_.get("baseline", 0))
        reader = reader_for(learned, model, paths, channels, **how)
    names, signals = reader.read_all()
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give a folder")
    output.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    targets = [output / f"{file_stem(name, taken)}-scores.npy" for name in names]
    for path in [*targets, output / EVENTS, output / PAGE, *([output / MODEL] if model is None else [])]:
        check_writable(path)
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists already: give --overwrite to replace it, or another folder by --output"
            )
    several = reader.wanted.layout is not None
    if baseline:
        signals = pt.remove_baseline(signals, baseline, channels=several)
    if learned is None:
        if not quiet:
            tell(f"learning filters of {size} samples from {count(len(names), 'signal')}")
        signs = {"nonnegative": nonnegative is not False, "channels": several}
        learned = pt.learn_windows(signals, baseline, n_jobs=jobs, random_state=seed, **signs)
    learned.set_params(n_jobs=jobs, device=device)
    with Progress("scoring", 1, quiet=quiet) as progress:
        found = pt.anomaly_score(signals, learned, false_alarms=false_alarms, progress=progress.show)
    columns = event_columns(len(found.extent))
    rows = [event_row(names[int(event["signal"])], event) for event in found.events()]
    events = [dict(zip(columns, row, strict=True)) for row in rows]
    for target, score in zip(targets, found.scores, strict=True):
        with atomic_path(target) as temporary, open(temporary, "wb") as file:
            np.save(file, score.astype(np.float32))
    _write_lines(_csv_lines(columns, events), output / EVENTS)
    if model is None:
        prepared = {"normalise": "none", "baseline": found.extent[0]} | (
            {} if channels is None else {"channels": channels}
        )
        pt.save(learned, output / MODEL, preprocessing=prepared)
    write_anomaly_report(output / PAGE, names, signals, found)
    if as_json:
        highest = [
            {"name": name, "highest": float(score.max()), "above": int(np.count_nonzero(score > found.threshold))}
            for name, score in zip(names, found.scores, strict=True)
        ]
        write_json({"output": str(output), "threshold": found.threshold, "signals": highest, "events": events})
    elif not quiet:
        strongest = sorted(events, key=lambda event: -float(event["score"]))[:_MOST_SHOWN]
        if strongest:
            cells = [
                [number(cell) if isinstance(cell, float) else str(cell) for cell in one.values()] for one in strongest
            ]
            say(table(columns, cells, left=("signal", "cause")))
        if len(rows) > len(strongest):
            say(f"the strongest {len(strongest)} of {len(rows):,}; {output / EVENTS} has all of them")
        say(
            f"{count(len(rows), 'event')} above {found.threshold:.3g} nats in {count(len(names), 'signal')}; "
            f"wrote the scores, {EVENTS} and {PAGE} to {output}"
        )
