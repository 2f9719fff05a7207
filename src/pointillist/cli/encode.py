"""``pointillist encode``: a model and files in, sparse codes and their certificates out."""

import itertools
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from pointillist.cli.console import count, say, show_log, warn
from pointillist.cli.inputs import Wanted, normalisation, read_to_encode
from pointillist.cli.progress import picture_progress
from pointillist.data.skipping import OnError
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.persistence import load
from pointillist.model.codes import SparseCodes
from pointillist.model.geometry import sizes
from pointillist.model.large import LARGE, extent, walked
from pointillist.report.style import save_image
from pointillist.solvers.base import Result, Status, effective_jobs
from pointillist.storage import check_writable, save_codes, write_events

_ON_DEVICE, _SAMPLES_ON_DEVICE = 256, 2**26
"""Signals that a GPU is given at a time, and samples of them at most."""


@dataclass(frozen=True)
class EncodeRequest:
    """What the user asked ``pointillist encode`` for; `settings` holds None where the model's own parameter serves."""

    model: Path
    paths: list[Path]
    output: Path
    settings: dict[str, Any]
    reconstruction: Path | None
    on_error: OnError
    layout: str | None = None
    events: Path | None = None
    sampling_rate: float | None = None


@dataclass(frozen=True)
class CodedSignal:
    """What the table and the codes file say about one signal."""

    name: str
    shape: tuple[int, ...]
    objective: float
    gap: float
    nonzeros: int
    psnr: float | None
    status: Status


def run(request: EncodeRequest, *, quiet: bool, verbose: bool) -> None:
    """Encode, save and tabulate."""
    show_log(quiet=quiet, verbose=verbose)
    model = load(request.model)
    _check(request, model)
    model.set_params(**{name: value for name, value in request.settings.items() if value is not None})
    size = model.filters_.shape[1 + model.channels :]
    normalise = normalisation(model.preprocessing_)
    wanted = Wanted(request.paths, len(size), normalise, request.on_error, layout=_layout(request, model))
    names, signals = read_to_encode(wanted, size)
    pictures = None if request.reconstruction is None else _Pictures(request.reconstruction, normalise)
    codes, rows = _encode(model, names, signals, pictures, quiet=quiet)
    save_codes(codes, request.output, _metadata(request, model, rows))
    if request.events is not None:
        write_events(codes.events(sampling_rate=request.sampling_rate or 1.0), request.events)
    if not quiet:
        _summarise(request, rows, pictures)


def _check(request: EncodeRequest, model: BatchCSC | OnlineCSC) -> None:
    check_writable(request.output)
    _check_events(request, model)
    if request.reconstruction is None:
        return
    if model.filters_.ndim - model.channels != 3 or (model.channels and model.filters_.shape[1] != 3):
        raise ValueError("--reconstruction writes images, but the filters are not those of images: leave it out")
    if request.reconstruction.exists() and not request.reconstruction.is_dir():
        raise NotADirectoryError(f"--reconstruction {request.reconstruction} is a file: give a folder")


def _check_events(request: EncodeRequest, model: BatchCSC | OnlineCSC) -> None:
    if request.sampling_rate is not None and request.events is None:
        raise ValueError("--sampling-rate is for the times of events: say where to with --events FILE.csv")
    if request.events is None:
        return
    check_writable(request.events)
    if request.events.resolve() == request.output.resolve():
        raise ValueError("--events and --output name the same file: give them different names")
    if request.sampling_rate is not None and model.filters_.ndim - model.channels != 2:
        raise ValueError("--sampling-rate is for signals in time, of one dimension: leave it out")


def _layout(request: EncodeRequest, model: BatchCSC | OnlineCSC) -> str | None:
    """Where the channels of the signals lie: as the request says, or else as those did that the model learned from."""
    if not model.channels:
        if request.layout is not None:
            raise ValueError(f"{request.model} was learned from signals without channels: leave --channels out")
        return None
    layout = request.layout or model.preprocessing_.get("channels")
    if layout not in ("first", "last"):
        raise ValueError(f"{request.model} was learned from signals with channels: say --channels first, or last")
    return str(layout)


def _encode(
    model: BatchCSC | OnlineCSC, names: list[str], signals: list[NDArray], pictures: "_Pictures | None", *, quiet: bool
) -> tuple[SparseCodes, list[CodedSignal]]:
    """Encode a few signals at a time, as many as keep all threads busy, so that residuals do not pile up."""
    parts: list[SparseCodes] = []
    rows: list[CodedSignal] = []
    done, total = 0, sum(signal.size for signal in signals)
    with picture_progress("encoding", 1, quiet=quiet) as progress:
        progress.begin("encoding")
        together = 4 * effective_jobs(model.n_jobs) if model.device == "cpu" else _on_device(signals)
        for chunk in _chunks(signals, together):
            some = signals[chunk]
            size = sum(signal.size for signal in some)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so, signal by signal
                result = model.encode(some, progress=_part_of(progress.share, done / total, size / total))
            rows += _rows(names[chunk], some, result)
            if pictures is not None:
                pictures.write(names[chunk], some, result)
            parts.append(result.codes)
            done += size
    return SparseCodes.concatenate(parts), rows


def _on_device(signals: list[NDArray]) -> int:
    return max(1, min(_ON_DEVICE, _SAMPLES_ON_DEVICE // max(signal.size for signal in signals)))


def _part_of(progress: Callable[[float], None], first: float, share: float) -> Callable[[float], None]:
    return lambda settled: progress(first + share * settled)


def _chunks(signals: list[NDArray], most: int) -> list[slice]:
    """Divide signals into lists of at most so many, large signals each in a list of its own."""
    edges = [0]
    for i, signal in enumerate(signals):
        alone = signal.size >= LARGE or signals[i - 1].size >= LARGE
        if i > edges[-1] and (alone or i - edges[-1] == most):
            edges.append(i)
    return [slice(a, b) for a, b in itertools.pairwise([*edges, len(signals)])]


def _rows(names: list[str], signals: list[NDArray], result: Result) -> list[CodedSignal]:
    return [
        CodedSignal(
            name,
            signal.shape,
            float(result.objective[i]),
            float(result.gap[i]),
            result.codes[i].nnz,
            _decibels(signal, result.residuals[i]),
            result.statuses[i],
        )
        for i, (name, signal) in enumerate(zip(names, signals, strict=True))
    ]


def _decibels(signal: NDArray, residual: NDArray) -> float | None:
    """PSNR with the signal's range as peak, from what the codes leave; None for a constant signal."""
    low, high = extent(signal[None])
    error = sum(float(np.sum(np.square(residual[band], dtype=np.float64))) for band in walked(residual))
    if high == low:
        return None
    return float("inf") if error == 0 else 10 * float(np.log10((high - low) ** 2 * residual.size / error))


class _Pictures:
    """Writes reconstructions as PNG files to a folder, named after the signals."""

    def __init__(self, folder: Path, normalise: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._normalise = folder, normalise
        self._taken: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._taken)

    def write(self, names: list[str], signals: list[NDArray], result: Result) -> None:
        for name, signal, residual in zip(names, signals, result.residuals, strict=True):
            # Files hold 0 to 1; contrast-normalised signals have no such range, so the signal's own is used.
            low, high = (0.0, 1.0) if self._normalise == "none" else np.percentile(signal, [0.5, 99.5])
            fit = signal - (residual if signal.ndim == 3 else residual[0])
            pixels = np.round(255 * np.clip((fit - low) / max(high - low, 1e-12), 0, 1)).astype(np.uint8)
            save_image(np.moveaxis(pixels, 0, -1) if signal.ndim == 3 else pixels, self._path(name))

    def _path(self, name: str) -> Path:
        file, _, entry = name.partition("[")
        stem = Path(file).stem + (f"-{entry.rstrip(']')}" if entry else "")
        unique, number = stem, 2
        while unique in self._taken:
            unique, number = f"{stem}-{number}", number + 1
        self._taken.add(unique)
        return self._folder / f"{unique}.png"


def _metadata(request: EncodeRequest, model: BatchCSC | OnlineCSC, rows: list[CodedSignal]) -> dict[str, Any]:
    return {
        "model": str(request.model),
        "penalty": np.asarray(model.penalty).tolist(),
        "boundary": model.boundary,
        "preprocessing": model.preprocessing_,
        "signals": [{**asdict(row), "shape": list(row.shape), "status": row.status.value} for row in rows],
    }


def _summarise(request: EncodeRequest, rows: list[CodedSignal], pictures: _Pictures | None) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("signal", overflow="fold")
    for heading in ("size", "objective", "relative gap", "non-zeros", "PSNR"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            sizes(row.shape),
            f"{row.objective:,.2f}",
            f"{row.gap:.1e}",
            f"{row.nonzeros:,}",
            "–" if row.psnr is None else f"{row.psnr:.2f} dB",
            row.status.value,
        )
    say(table, f"wrote the codes of {count(len(rows), 'signal')} to {request.output}")
    if request.events is not None:
        say(f"wrote {count(sum(row.nonzeros for row in rows), 'event')} to {request.events}")
    if pictures is not None:
        say(f"wrote {count(pictures.count, 'picture')} to {request.reconstruction}")
    short = [row.status for row in rows if row.status is not Status.CONVERGED]
    if short:
        warn(f"{len(short)} of {len(rows)} signals did not converge: {short[0].advice}")
