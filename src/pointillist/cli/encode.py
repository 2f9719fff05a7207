"""``pointillist encode``: a model and files in, sparse codes and their certificates out.

A run that may be resumed puts parts of its work away, each a codes file beside the one that it will write, which also says
what the run is, so that none is continued as another one. Signals are coded one by one: where a run was cut does not change
a bit of the codes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable
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
    in_bytes,
    is_interruption,
    leaving,
    say,
    say_left_out,
    say_plan,
    show_log,
    table,
    tell,
    warn,
    warn_of_others,
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
    on_error: Failing = OnError.stop,
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
    from pointillist.storage import own_version, read_whole

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
    chosen = {"penalty": penalty, "tol": tol, "solver": solver and solver.value, "device": device}
    learned.set_params(n_jobs=jobs, **{name: value for name, value in chosen.items() if value is not None})
    layout = None if channels is None else channels.value
    reader = reader_for(learned, model, paths, layout, on_error=on_error.value, recursive=recursive)
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
    # The number of threads is no part of what the codes depend on.
    identity = {
        "model": hashlib.sha256(read_whole(model, "model")).hexdigest(),
        **chosen,
        "channels": reader.wanted.layout,
        "data": reader.source.describe(),
        "pointillist": own_version(),
    }
    run = CodedRun(learned, reader, output, every=checkpoint_every, resume=resume, plan=plan, identity=identity)
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
        if reconstruction is not None:
            for i, item in enumerate(group):
                path = reconstruction / f"{file_stem(item.name, taken)}.png"
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
        if is_interruption(error):
            kept = f"{len(run.rows)} of {count(len(reader.source), 'signal')} are coded and kept"
            undone = f"{kept}: go on with the same command and --resume"
            words = undone if run.kept and run.rows else "no codes were written"
            raise Stopped(words, getattr(error, "number", None)) from None
        raise
    if events is not None:
        from pointillist.storage import event_lines

        _write_lines(event_lines(codes.events(sampling_rate=sampling_rate or 1.0)), events)
    if csv_table is not None:
        _write_lines(_csv_lines(run), csv_table)
    if as_json:
        lines = {"output": str(output), **about, "signals": run.rows, "skipped": run.left_out()}
        write(json.dumps(lines, indent=2, ensure_ascii=False).split("\n"))
    if run.kept:
        run.folder.clear()
    if quiet:
        return
    piped = as_json or DASH in (csv_table, events)  # standard output is for another program to read
    print_ = tell if piped else say
    if not piped:
        _show_table(run)
    skipped = f" ({len(run.skipped)} skipped)" if run.skipped else ""
    print_(f"wrote the codes of {count(len(run.rows), 'signal')}{skipped} to {output}")
    if events not in (None, DASH):
        print_(f"wrote {count(codes.nnz, 'event')} to {events}")
    if csv_table not in (None, DASH):
        print_(f"wrote a table of the signals to {csv_table}")
    if reconstruction is not None:
        print_(f"wrote {count(len(taken), 'picture')} to {reconstruction}")
    short = [row["status"] for row in run.rows if row["status"] != "converged"]
    if short:
        warn(f"{len(short)} of {len(run.rows)} signals did not converge: {pt.Status(short[0]).advice}")


class CodedRun:
    """Signals that a run has coded, in order, what it left out, and its parts; without `every` and `resume` there are none.

    Raises ValueError if there are parts, but nothing is to be resumed, and CheckpointError if they are those of another run.

    Parameters
    ----------
    learned : BatchCSC or OnlineCSC
    reader : SignalReader
    output : Path
        The codes file that the run will write.
    every : str or None
        How often parts are written, as `Checkpoints` takes it.
    resume : bool
    plan : bool
        Parts are read, but neither written nor removed.
    identity : dict
        Everything that the codes depend on.

    Attributes
    ----------
    codes : list of SparseCodes
    rows : list of dict
        Facts about each coded signal; its seconds are its share, by samples, of those that it was coded with.
    skipped : dict
        Name of a signal that was left out and why, by its number.
    next : int
        Number of the signal to go on with.
    """

    def __init__(
        self,
        learned: pt.BatchCSC | pt.OnlineCSC,
        reader: SignalReader,
        output: Path,
        *,
        every: str | None,
        resume: bool,
        plan: bool,
        identity: dict[str, Any],
    ) -> None:
        from pointillist.learners.checkpoints import parse_every
        from pointillist.storage import PartFolder, stamp

        self.learned, self.reader, self._identity = learned, reader, identity
        self.codes: list[pt.SparseCodes] = []
        self.rows: list[dict[str, Any]] = []
        self.skipped: dict[int, tuple[str, str]] = {}
        self.next = 0
        self.kept = not plan and (every is not None or resume)
        self.folder, self.before = PartFolder(output), stamp(output)
        self._every, self._seconds = parse_every(every or "60s")
        self._failure = ""
        files = self.folder.files()
        if files and not resume:
            raise ValueError(f"{files[-1]} is a part of a run that has not ended: go on with --resume, or remove it")
        for path, codes, metadata in self.folder.read() if resume else ():
            _refuse_others(path, metadata, self._identity)
            if metadata["first"] != self.next or len(metadata["signals"]) != len(codes):
                log.warning("%s does not follow the part before it; going on from there", path)
                break
            self.codes.append(codes)
            self.rows += metadata["signals"]
            self.skipped |= {one["number"]: (one["name"], one["reason"]) for one in metadata["skipped"]}
            self.next = metadata["next"]
        if self.kept:
            self.folder.drop_from(self.next)
        self._last, self._written = time.monotonic(), (len(self.codes), len(self.rows), self.next)

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
                    "nonzeros": result.codes[i].nnz,
                    "psnr": _decibels(item.signal, result.residuals[i]),
                    "status": result.statuses[i].value,
                    "seconds": seconds * item.signal.size,
                }
                for i, item in enumerate(group)
            ]
            self.next = group[-1].number + 1
            if self._every is None:
                due = time.monotonic() - self._last >= (self._seconds or 0.0)
            else:
                due = len(self.rows) - self._written[1] >= self._every
            if due:
                self.write()

    def left_out(self) -> list[dict[str, str]]:
        """Signals that were left out, and why, as JSON has them."""
        return [{"name": name, "reason": reason} for _, (name, reason) in sorted(self.skipped.items())]

    def write(self) -> None:
        """Write what was coded since the last part, or say why that cannot be done; the run goes on."""
        parts, rows, first = self._written
        if not self.kept or first == self.next:
            return
        skipped = [
            {"number": number, "name": name, "reason": reason}
            for number, (name, reason) in self.skipped.items()
            if first <= number < self.next
        ]
        metadata = {"first": first, "next": self.next, "signals": self.rows[rows:], "skipped": skipped}
        try:
            codes = pt.SparseCodes.concatenate(self.codes[parts:])
            self.folder.write(first, codes, {**metadata, "run": self._identity})
        except OSError as error:
            reason = error.strerror or str(error)
            if reason != self._failure:  # not after every signal
                log.warning("the codes so far cannot be put away, coding goes on: %s", error)
            self._failure = reason
        else:
            self._failure, self._written = "", (len(self.codes), len(self.rows), self.next)
        self._last = time.monotonic()


def _refuse_others(path: Path, metadata: dict[str, Any], identity: dict[str, Any]) -> None:
    """Raise CheckpointError for what is no part of a run, and for a part of another run."""
    from pointillist.learners.checkpoints import differences
    from pointillist.storage.schema import anything, check_form, mapping, number, one_of, text, whole

    signal = {"name": text, "shape": [whole(1)], "objective": number(), "gap": number(), "nonzeros": whole(0)}
    signal |= {
        "psnr": number(null=True),
        "status": one_of([status.value for status in pt.Status]),
        "seconds": number(0),
    }
    form = {
        "first": whole(0),
        "next": whole(0),
        "run": {"data": mapping, ...: anything},
        "signals": [signal],
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
        f", of which {in_bytes(codes)} for the codes",
    )


def _write_lines(lines: Iterable[str], path: Path) -> None:
    """Write lines to a file, completely or not at all, or to standard output."""
    from pointillist.storage import atomic_path

    if path == DASH:
        write(lines)
        return
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="", errors="replace") as file:
        file.writelines(f"{line}\n" for line in lines)


def _csv_lines(run: CodedRun) -> list[str]:
    """A line of CSV for every signal, after one of names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "shape": "x".join(map(str, row["shape"]))} for row in run.rows)
    writer.writerows({**one, "status": "skipped"} for one in run.left_out())
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
