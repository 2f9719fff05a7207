"""Files of pictures that a task mends one by one: which are read and written, checked before any work; crops, previews."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from pointillist.cli.console import Progress, Stopped, count, number, say, show_log, table
from pointillist.cli.reading import found_files
from pointillist.data.photofiles import READABLE_SUFFIXES, Metadata, answer_suffix, check_format, photograph_size
from pointillist.kernels.compiling import working_time
from pointillist.plot.style import bare, new_figure, save_figure, title
from pointillist.reprs import sizes
from pointillist.storage import check_writable, load_model

log = logging.getLogger(__name__)

OWN = ("inpainted", "denoised", "deblurred", "enlarged", "coloured", "preview")
"""Words at the end of the names of answers; files of such names are left out of folders."""
_PREVIEW_SIDE = 512
_PREVIEW_STEP = 32  # pixels by which the window of a preview is moved
_PREVIEW_GAP = 8  # white pixels between its halves
_PREVIEW_MARK = ("Software", "pointillist preview")
"""Text in the file of a preview, by which a later one knows that it may take its place."""


@dataclass(frozen=True, eq=False)
class Marks:
    """The missing pixels of a photograph (height, width), and by what they are known."""

    missing: NDArray[np.bool_]
    how: str


@dataclass(frozen=True, eq=False)
class Answer:
    """Mended pixels with their alpha, if that is another one, and what to say and to show beside them."""

    pixels: NDArray[Any]
    details: pt.Details
    note: str
    before: NDArray[Any]
    alpha: NDArray[Any] | None = None


@dataclass(frozen=True)
class Task:
    """The work of a command on one photograph.

    Attributes
    ----------
    word : str
        The end of the names of its answers.
    mend : callable
        Works on a photograph or a crop of it, with its marks, and settings for the library's function.
    find : callable
        Looks for missing pixels of the whole photograph.
    factor : int
        How many times larger an answer is.
    """

    word: str
    mend: Callable[..., Answer]
    find: Callable[[pt.Photograph, Job], Marks | None] = lambda photograph, job: None
    factor: int = 1


@dataclass(frozen=True)
class Crop:
    """A rectangle of a picture, in pixels from its upper left corner."""

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Crop:
        """``100,50,400,300``: 400 pixels wide and 300 high, 100 from the left and 50 from the top."""
        try:
            crop = cls(*(int(number) for number in text.split(",")))
        except (ValueError, TypeError):
            crop = cls(-1, -1, -1, -1)
        if min(crop.left, crop.top) < 0 or min(crop.width, crop.height) < 1:
            raise ValueError(
                f"--crop {text!r} is not X,Y,W,H: write 100,50,400,300 for 400×300 pixels from column 100, row 50"
            )
        return crop

    def of(self, array: NDArray[Any], factor: int = 1) -> NDArray[Any]:
        """Cut this rectangle out of an array (height, width, ...) that is `factor` times as large as the picture."""
        rows = slice(factor * self.top, factor * (self.top + self.height))
        columns = slice(factor * self.left, factor * (self.left + self.width))
        return np.ascontiguousarray(array[rows, columns])


@dataclass(frozen=True)
class Job:
    """One photograph to mend with the files that belong to it."""

    source: Path
    inside: Path  # the subfolder of what was searched, which its answer goes to as well
    target: Path
    reference: Path | None
    mask: Path | None
    compare: Path | None
    save_mask: Path | None


def mend_files(given: dict[str, Any], task: Task) -> None:
    """Mend every file that a command was given; the first that cannot be mended stops it unless it shall be skipped."""
    request = SimpleNamespace(**({"mask": None, "save_mask": None} | given))
    show_log(quiet=request.quiet, verbose=request.verbose)
    crop = None if request.crop is None else Crop.parse(request.crop)
    jobs, failed = _jobs(request, task, crop)
    settings = {"penalty": request.penalty, "n_jobs": request.jobs, "device": request.device, "return_details": True}
    if request.filters is not None:
        path = Path(request.filters)
        stored = load_model(path).arrays["filters"].astype(np.float32) if path.exists() else None
        settings["filters"] = pt.load_filters(request.filters) if stored is None else stored
    rows: list[list[str]] = []
    try:
        with Progress("mending", len(jobs), quiet=request.quiet) as progress:
            for done, job in enumerate(jobs):
                name = str(job.source) if len(jobs) == 1 else f"{done + 1}/{len(jobs)}: {job.source}"
                try:
                    settings["progress"] = lambda share, done=done, name=name: progress.show(done + share, name)
                    rows.append(_one(request, job, task, crop, settings))
                except (ValueError, OSError) as error:
                    if request.on_error == "raise":
                        raise
                    failed += 1
                    log.warning("skipped: %s", error)
    except KeyboardInterrupt as error:
        undone = f"{len(rows)} of {len(jobs)} pictures were written"
        if len(jobs) == 1:
            undone = f"nothing was written for {jobs[0].source}"
        raise Stopped(undone, getattr(error, "number", None)) from None
    if not rows:
        raise ValueError(f"none of the {count(failed, 'file')} could be mended")
    if not request.quiet:
        judged = ["PSNR before", "after"] if request.reference is not None else []
        headings = ["picture", "size", "what", "penalty", "seconds", *judged, "written to"]
        say(table(headings, rows, left=("picture", "written to")))


def _jobs(request: Any, task: Task, crop: Crop | None) -> tuple[list[Job], int]:
    """Match sources, answers, masks and references, and complain before any work is done.

    Returns the jobs, and how many files were found unusable already and skipped.
    """
    sources: list[tuple[Path, Path]] = []
    several = len(request.paths) > 1
    for path, found in zip(
        request.paths, found_files(request.paths, READABLE_SUFFIXES, request.recursive), strict=True
    ):
        files = [Path(file) for file in found.files]
        if not found.named:
            several = True
            others = [file for file in files if file.stem.rpartition("-")[2] not in OWN]
            if not others:
                kind = "folder" if path.is_dir() else "pattern"
                raise ValueError(
                    f"{kind} {path} holds only pictures that pointillist wrote: name those to mend one by one"
                )
            if len(others) < len(files):
                own = count(len(files) - len(others), "picture")
                log.warning("%s: %s that pointillist wrote skipped", path, own)
            files = others
        sources += [(file, file.parent.relative_to(found.root)) for file in files]
    jobs, skipped = [], 0
    for source, inside in sources:
        several_or = len(sources) if several else 0
        target = _target(request, task, source, inside, several_or)
        compare = _drawn(request.compare, "--compare", ".png", source, inside, several_or)
        save_mask = _drawn(request.save_mask, "--save-mask", "-mask.png", source, inside, several_or)
        try:
            reference = _partner(request.reference, source, inside, "--reference")
            mask = _partner(request.mask, source, inside, "--mask")
            job = Job(source, inside, target, reference, mask, compare, save_mask)
            _check_sizes(job, crop, task.factor)
        except (ValueError, OSError) as error:
            if request.on_error == "raise":
                raise
            skipped += 1
            log.warning("skipped: %s", error)
            continue
        jobs.append(job)
    _check_names(request, jobs)
    return jobs, skipped


def _target(request: Any, task: Task, source: Path, inside: Path, several: int) -> Path:
    """The file that an answer is written to; `several` is how many there are, 0 where a single one was named."""
    output, preview = request.output, "-preview.png"
    if output is None:
        cut = "" if request.crop is None else "-crop"
        return source.with_name(
            source.stem + (preview if request.preview else f"{cut}-{task.word}{answer_suffix(source)}")
        )
    if several or output.is_dir():
        if output.exists() and not output.is_dir():
            raise NotADirectoryError(f"--output {output} is a file: give a folder for {count(several, 'file')}")
        return _named(output, inside, source, preview if request.preview else answer_suffix(source))
    check_format(output)
    return output.with_name(output.stem + preview) if request.preview else output


def _drawn(given: Path | None, option: str, end: str, source: Path, inside: Path, several: int) -> Path | None:
    """The file that a picture beside an answer goes to: the one given, or one in the folder given."""
    if given is None:
        return None
    if not several:
        check_format(given)
        return given
    if given.suffix:
        raise ValueError(f"{option} {given} is one file: give a folder for {count(several, 'file')}")
    return _named(given, inside, source, end)


def _named(folder: Path, inside: Path, source: Path, end: str) -> Path:
    """The file for a source in a folder, in the same subfolder there, which is made."""
    (folder / inside).mkdir(parents=True, exist_ok=True)
    return folder / inside / f"{source.stem}{end}"


def _partner(given: Path | None, source: Path, inside: Path, option: str) -> Path | None:
    """The file itself, or from a folder the one that is named like the source, in the same subfolder."""
    if given is None:
        return None
    if not given.exists():
        raise FileNotFoundError(f"{option} {given} does not exist")
    if not given.is_dir():
        return given
    place = given / inside
    named = [path for path in place.glob("*") if path.stem == source.stem and path.is_file()]
    if not named:
        raise FileNotFoundError(f"{option} {place} holds no file named {source.stem}")
    return min(named)


def _check_sizes(job: Job, crop: Crop | None, factor: int) -> None:
    """Raise if mask, reference or crop do not fit the picture; only the heads of the files are read."""
    if crop is None and job.mask is None and job.reference is None:
        return
    height, width = photograph_size(job.source)
    if crop is not None and (crop.top + crop.height > height or crop.left + crop.width > width):
        named = f"{crop.left},{crop.top},{crop.width},{crop.height}"
        raise ValueError(f"--crop {named} reaches out of {job.source}, which has {width}×{height} pixels")
    for option, path, times in (("--mask", job.mask, 1), ("--reference", job.reference, factor)):
        if path is not None and (size := photograph_size(path)) != (times * height, times * width):
            of = f"the answer to {job.source}" if times > 1 else str(job.source)
            raise ValueError(
                f"{option} {path} has {size[1]}×{size[0]} pixels, {of} {times * width}×{times * height}: they must agree"
            )


def _check_names(request: Any, jobs: list[Job]) -> None:
    """Raise if an answer cannot be written, or would take the place of an input, another answer or an older file."""
    pairs = [(path, job) for job in jobs for path in (job.target, job.compare, job.save_mask) if path is not None]
    for name, times in Counter(path.resolve() for path, _ in pairs).items():
        if times > 1:
            rivals = " and ".join(dict.fromkeys(str(job.source) for path, job in pairs if path.resolve() == name))
            raise ValueError(
                f"{rivals} would be written to {name.name} more than once: mend them one by one, each with its own --output"
            )
    read = {path.resolve() for job in jobs for path in (job.source, job.mask, job.reference) if path is not None}
    for path, _ in pairs:
        if path.resolve() in read:
            raise ValueError(f"{path} would be written over the input of that name: give another name by --output")
        check_writable(path)
        if path.exists() and not request.overwrite and not (request.preview and _is_preview(path)):
            raise FileExistsError(f"{path} exists already: give --overwrite to replace it, or another name by --output")


def _is_preview(path: Path) -> bool:
    """True for a file that an earlier preview wrote."""
    try:
        with Image.open(path) as image:
            return image.info.get(_PREVIEW_MARK[0]) == _PREVIEW_MARK[1]
    except OSError:
        return False


def _one(request: Any, job: Job, task: Task, crop: Crop | None, settings: dict[str, Any]) -> list[str]:
    """Read, mend and write one picture; its line in the table."""
    photograph = pt.read_photograph(job.source)
    for note in photograph.notes:
        log.warning("%s: %s", job.source, note)
    if not request.preview:
        check_format(job.target, photograph.pixels.dtype)
    reference = None if job.reference is None else pt.read_photograph(job.reference)
    begin = working_time()
    try:
        marks = task.find(_plain(photograph), job)
        if request.preview and crop is None:
            crop = _preview_crop(photograph.shape, None if marks is None else marks.missing)
        if crop is not None:
            if marks is not None:
                marks = replace(marks, missing=crop.of(marks.missing))
                if marks.missing.all():
                    raise ValueError("every pixel of --crop is marked as missing: choose a larger one")
            if reference is not None:
                reference = replace(reference, pixels=crop.of(reference.pixels, task.factor), alpha=None)
            photograph = photograph.cropped(crop.top, crop.left, crop.height, crop.width)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = task.mend(_plain(photograph), marks, **settings)
    except ValueError as error:
        message = str(error).replace("colour=", "--key")
        raise ValueError(message if str(job.source) in message else f"{job.source}: {message}") from error
    seconds = working_time() - begin
    qualities = [] if reference is None else [_decibels(reference, one) for one in (answer.before, answer.pixels)]
    if request.preview:
        _write_preview(photograph, answer, job.target)
    else:
        pt.write_photograph(photograph.with_pixels(answer.pixels, answer.alpha), job.target)
    if job.compare is not None:
        _draw_comparison(job.compare, answer, reference, qualities, photograph.peak)
    penalty = number(answer.details.penalty) if np.isfinite(answer.details.penalty) else "–"
    judged = [f"{quality:.2f} dB" for quality in qualities]
    words = [str(job.source), sizes(answer.pixels.shape[:2]), answer.note, penalty, f"{seconds:.1f}"]
    return [*words, *judged, str(job.target)]


def _plain(photograph: pt.Photograph) -> pt.Photograph:
    """The photograph with grey pixels if its colour channels are all alike, so that one is worked on instead of three."""
    pixels = photograph.pixels
    floating = pixels.dtype.kind == "f"
    if pixels.ndim == 2 or not all(
        np.array_equal(some[..., 0], some[..., channel], equal_nan=floating)
        for some in (pixels[::16], pixels)  # a few rows tell most pictures in colour
        for channel in (1, 2)
    ):
        return photograph
    return replace(photograph, pixels=np.ascontiguousarray(pixels[..., 0]))


def read_mask(path: Path) -> NDArray[np.bool_]:
    """A mask image as booleans: what is opaque if some of it is transparent, else what is white, or brighter than half."""
    mask = pt.read_photograph(path)
    if mask.alpha is not None and np.ptp(mask.alpha) > 0:
        return mask.alpha >= mask.peak / 2
    pixels = mask.pixels
    bright = pixels if pixels.ndim == 2 else pixels.astype(np.float32).mean(axis=-1)
    return bright >= mask.peak / 2


def _preview_crop(shape: tuple[int, int], missing: NDArray[np.bool_] | None) -> Crop:
    """The middle of a picture, or the window of it with the most missing pixels, in steps."""
    height, width = (min(_PREVIEW_SIDE, side) for side in shape)
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    if missing is not None and missing.any():
        bins = [np.arange(0, side, _PREVIEW_STEP) for side in shape]
        sums = np.add.reduceat(np.add.reduceat(missing, bins[0], axis=0, dtype=np.int64), bins[1], axis=1)
        window = [max(1, min(side // _PREVIEW_STEP, n)) for side, n in zip((height, width), sums.shape, strict=True)]
        totals = np.lib.stride_tricks.sliding_window_view(sums, window).sum(axis=(2, 3))
        row, column = np.unravel_index(np.argmax(totals), totals.shape)
        top, left = (
            min(int(row) * _PREVIEW_STEP, shape[0] - height),
            min(int(column) * _PREVIEW_STEP, shape[1] - width),
        )
    return Crop(left, top, width, height)


def _write_preview(photograph: pt.Photograph, answer: Answer, path: Path) -> None:
    """Before and after beside each other, with the photograph's own colours and nothing else of its metadata."""
    before, peak = answer.before, photograph.peak
    if photograph.shape == before.shape[:2]:
        before = photograph.pixels  # as people saw it: white where pixels are transparent
        if photograph.alpha is not None:
            clear = photograph.alpha == 0
            before = np.where(clear if before.ndim == 2 else clear[..., None], before.dtype.type(peak), before)
    halves = [
        np.round(255 * np.clip(np.nan_to_num(half / peak), 0, 1)).astype(np.uint8) for half in (before, answer.pixels)
    ]
    if photograph.pixels.ndim == 3 or halves[0].ndim != halves[1].ndim:
        halves = [half if half.ndim == 3 else np.stack([half] * 3, axis=-1) for half in halves]
    gap = np.full((len(halves[0]), _PREVIEW_GAP, *halves[0].shape[2:]), 255, np.uint8)
    text = (b"tEXt", "\0".join(_PREVIEW_MARK).encode())
    metadata = Metadata(icc=photograph.metadata.icc, chunks=(text,))
    pt.write_photograph(pt.Photograph(np.concatenate([halves[0], gap, halves[1]], axis=1), metadata=metadata), path)


def _decibels(reference: pt.Photograph, pixels: NDArray[Any]) -> float:
    """PSNR with the largest value of the type as peak, which is what people quote for photographs."""
    peak = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1
    truth, guess = reference.pixels / np.float32(reference.peak), pixels / np.float32(peak)
    if truth.ndim != guess.ndim:
        truth, guess = (a if a.ndim == 3 else a[..., None] for a in (truth, guess))
    error = float(np.mean(np.square(truth - guess, dtype=np.float32), dtype=np.float64))
    return float("inf") if error == 0 else -10 * float(np.log10(error))


def _draw_comparison(
    path: Path, answer: Answer, reference: pt.Photograph | None, qualities: list[float], peak: float
) -> None:
    """Before and after, and the reference if there is one, side by side."""
    words = [f"PSNR {quality:.1f} dB" for quality in qualities] or [" ", " "]
    panels = [("Before", answer.before, words[0], peak), ("After", answer.pixels, words[1], peak)]
    if reference is not None:
        panels.append(("Reference", reference.pixels, " ", reference.peak))
    height = min(max(4.0 * answer.pixels.shape[0] / answer.pixels.shape[1], 1.5), 8.0)
    figure = new_figure(4.0 * len(panels) + 0.6, height + 0.8)
    for axes, (name, pixels, quality, top) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        bare(axes)
        axes.imshow(np.clip(pixels / np.float32(top), 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="antialiased")
        title(axes, name, quality)
    save_figure(figure, path, crop=True)
