"""Files of pictures that a task mends one by one: which are read and written, checked before any work; crops, previews."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from pointillist.cli.console import Progress, Stopped, count, number, say, show_log, table
from pointillist.cli.reading import found_files
from pointillist.cli.restore import WORDS
from pointillist.data.photofiles import READABLE_SUFFIXES, Metadata, answer_suffix, check_format, photograph_size
from pointillist.data.photofiles.photograph import WRITTEN
from pointillist.kernels.compiling import working_time
from pointillist.plot.figures import bare, new_figure, save_figure, title
from pointillist.reprs import sizes
from pointillist.storage import check_writable, load_model

if TYPE_CHECKING:
    from pointillist.cli.restore import Answer, Task

log = logging.getLogger(__name__)

OWN = (*WORDS, "preview")
"""Words at the end of the names of answers; files of such names are left out of folders."""
_PREVIEW_SIDE = 512
_PREVIEW_GAP = 8  # white pixels between its halves
_PREVIEW_MARK = ("Software", "pointillist preview")
"""Text in the file of a preview, by which a later one knows that it may take its place."""

Crop = tuple[int, int, int, int]
"""Left, top, width and height of a rectangle of a picture, in pixels from its upper left corner."""


class Job(NamedTuple):
    """One photograph to mend with the files that belong to it."""

    source: Path
    target: Path
    reference: Path | None
    mask: Path | None
    compare: Path | None
    save_mask: Path | None


def mend_files(request: Any, task: Task, word: str) -> None:
    """Mend every file that a command was given; the first that cannot be mended stops it unless it shall be skipped."""
    show_log(quiet=request.quiet, verbose=request.verbose)
    jobs, total = _jobs(request, task, word)
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
                settings["progress"] = lambda share, done=done, name=name: progress.show(done + share, name)
                try:
                    rows.append(_one(request, job, task, settings))
                except (ValueError, OSError) as error:
                    _skip(request, error)
    except KeyboardInterrupt:
        undone = f"{len(rows)} of {len(jobs)} pictures were written"
        if len(jobs) == 1:
            undone = f"nothing was written for {jobs[0].source}"
        raise Stopped(undone) from None
    if not rows:
        raise ValueError(f"none of the {count(total, 'file')} could be mended")
    if not request.quiet:
        judged = ["PSNR before", "after"] if request.reference is not None else []
        headings = ["picture", "size", "what", "penalty", "seconds", *judged, "written to"]
        say(table(headings, rows, left=("picture", "written to")))


def _skip(request: Any, error: Exception) -> None:
    """Warn of a picture that is left out, unless that is to stop the command."""
    if request.on_error == "raise":
        raise error
    log.warning("skipped: %s", error)


def _jobs(request: Any, task: Task, word: str) -> tuple[list[Job], int]:
    """Match sources, answers, masks and references, and complain before any work is done.

    Returns the jobs, of which those of unusable files are left out, and the number of all files.
    """
    sources: list[tuple[Path, Path]] = []
    several = len(request.paths) > 1
    for found in found_files(request.paths, READABLE_SUFFIXES, request.recursive):
        files = [Path(file) for file in found.files]
        if not found.named:
            several = True
            others = [file for file in files if file.stem.rpartition("-")[2] not in OWN]
            if not others:
                raise ValueError(
                    f"{found.root} holds only pictures that pointillist wrote: name those to mend one by one"
                )
            if len(others) < len(files):
                own = count(len(files) - len(others), "picture")
                log.warning("%s: %s that pointillist wrote skipped", found.root, own)
            files = others
        sources += [(file, file.parent.relative_to(found.root)) for file in files]
    jobs = []
    for source, inside in sources:
        end = "-preview.png" if request.preview else answer_suffix(source)
        target = _place(request, "output", end, source, inside, len(sources) * several)
        if target is None:
            crop = "" if request.crop is None else "-crop"
            target = source.with_name(f"{source.stem}{'' if request.preview else f'{crop}-{word}'}{end}")
        elif request.preview and target == request.output:
            target = target.with_name(f"{target.stem}{end}")
        compare = _place(request, "compare", ".png", source, inside, len(sources) * several)
        save_mask = _place(request, "save_mask", "-mask.png", source, inside, len(sources) * several)
        try:
            reference, mask = (_partner(request, option, source, inside) for option in ("reference", "mask"))
            job = Job(source, target, reference, mask, compare, save_mask)
            _check_sizes(job, request.crop, task.factor)
            jobs.append(job)
        except (ValueError, OSError) as error:
            _skip(request, error)
    _check_names(request, jobs)
    return jobs, len(sources)


def _place(request: Any, option: str, end: str, source: Path, inside: Path, several: int) -> Path | None:
    """The file that an option names; in a folder, or for `several` pictures, one for the source in the same subfolder."""
    given: Path | None = getattr(request, option)
    if given is None:
        return None
    if not (several or given.is_dir()):
        check_format(given)
        return given
    if given.suffix.lower() in WRITTEN:
        option = option.replace("_", "-")
        raise ValueError(f"--{option} {given} is one file: give a folder for {count(several, 'file')}")
    (given / inside).mkdir(parents=True, exist_ok=True)
    return given / inside / f"{source.stem}{end}"


def _partner(request: Any, option: str, source: Path, inside: Path) -> Path | None:
    """The file that an option names, or from a folder the one that is named like the source, in the same subfolder."""
    given: Path | None = getattr(request, option)
    if given is not None and not given.exists():
        raise FileNotFoundError(f"--{option} {given} does not exist")
    if given is None or not given.is_dir():
        return given
    named = [path for path in (given / inside).glob("*") if path.stem == source.stem and path.is_file()]
    if not named:
        raise FileNotFoundError(f"--{option} {given / inside} holds no file named {source.stem}")
    return min(named)


def _check_sizes(job: Job, crop: Crop | None, factor: int) -> None:
    """Raise if mask, reference or crop do not fit the picture; only the heads of the files are read."""
    if crop is None and job.mask is None and job.reference is None:
        return
    height, width = photograph_size(job.source)
    if crop is not None and (crop[0] + crop[2] > width or crop[1] + crop[3] > height):
        named = ",".join(map(str, crop))
        raise ValueError(f"--crop {named} reaches out of {job.source}, which has {width}×{height} pixels")
    for option, path, times in (("--mask", job.mask, 1), ("--reference", job.reference, factor)):
        if path is not None and (size := photograph_size(path)) != (times * height, times * width):
            of = f"the answer to {job.source}" if times > 1 else str(job.source)
            raise ValueError(
                f"{option} {path} has {size[1]}×{size[0]} pixels, {of} {times * width}×{times * height}: they must agree"
            )


def _check_names(request: Any, jobs: list[Job]) -> None:
    """Raise if an answer cannot be written, or would take the place of an input, another answer or an older file."""
    read = {path.resolve() for job in jobs for path in (job.source, job.mask, job.reference) if path is not None}
    written: dict[Path, Path] = {}
    pairs = [(path, job) for job in jobs for path in (job.target, job.compare, job.save_mask) if path is not None]
    for path, one in pairs:
        if path.resolve() in written:
            rivals = " and ".join(dict.fromkeys(map(str, (written[path.resolve()], one.source))))
            raise ValueError(
                f"{rivals} would be written to {path.name} more than once: mend them one by one, each with its own --output"
            )
        written[path.resolve()] = one.source
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


def _one(request: Any, job: Job, task: Task, settings: dict[str, Any]) -> list[str]:
    """Read, mend and write one picture; its line in the table."""
    photograph = pt.read_photograph(job.source)
    for note in photograph.notes:
        log.warning("%s: %s", job.source, note)
    if not request.preview:
        check_format(job.target, photograph.pixels.dtype)
    reference = None if job.reference is None else pt.read_photograph(job.reference).pixels
    crop, begin = request.crop, working_time()
    try:
        marks = task.find and task.find(_plain(photograph), job, request.jobs)
        if request.preview and crop is None:
            crop = _preview_crop(photograph.shape, marks and marks[0])
        if crop is not None:
            left, top, width, height = crop
            photograph = photograph.cropped(top, left, height, width)
            marks = marks and (_cut(marks[0], crop), marks[1])
            reference = None if reference is None else _cut(reference, crop, task.factor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = task.mend(_plain(photograph), marks, **settings)
    except ValueError as error:
        message = str(error).replace("colour=", "--key")
        raise ValueError(message if str(job.source) in message else f"{job.source}: {message}") from error
    seconds = working_time() - begin
    if request.preview:
        _write_preview(photograph, answer, job.target)
    else:
        pt.write_photograph(photograph.with_pixels(answer.pixels, answer.alpha), job.target)
    panels = {"Before": answer.before, "After": answer.pixels}
    judged = [] if reference is None else [f"{_decibels(reference, pixels):.2f} dB" for pixels in panels.values()]
    if job.compare is not None:
        _draw_comparison(job.compare, panels | ({} if reference is None else {"Reference": reference}), judged)
    penalty = number(answer.details.penalty) if np.isfinite(answer.details.penalty) else "–"
    words = [str(job.source), sizes(answer.pixels.shape[:2]), answer.note, penalty, f"{seconds:.1f}"]
    return [*words, *judged, str(job.target)]


def _plain(photograph: pt.Photograph) -> pt.Photograph:
    """The photograph with grey pixels if its colour channels are all alike, so that one is worked on instead of three."""
    pixels = photograph.pixels
    first, floating = pixels[..., :1], pixels.dtype.kind == "f"
    if pixels.ndim == 2 or not np.array_equal(pixels, np.broadcast_to(first, pixels.shape), equal_nan=floating):
        return photograph
    return replace(photograph, pixels=np.ascontiguousarray(pixels[..., 0]))


def _cut(array: NDArray[Any], crop: Crop, factor: int = 1) -> NDArray[Any]:
    """A rectangle of an array (height, width, ...) that is `factor` times as large as the picture."""
    left, top, width, height = (factor * side for side in crop)
    return np.ascontiguousarray(array[top : top + height, left : left + width])


def read_mask(path: Path) -> NDArray[np.bool_]:
    """A mask image as booleans: what is opaque if some of it is transparent, else what is white, or brighter than half."""
    mask = pt.read_photograph(path)
    shown = mask.pixels
    if mask.alpha is not None and np.ptp(mask.alpha) > 0:
        shown = mask.alpha
    return np.atleast_3d(shown).mean(axis=-1, dtype=np.float32) >= mask.peak / 2


def read_kernel(path: Path) -> NDArray[Any]:
    """A blur of sum one from a grey image or a .npy file."""
    pixels = np.atleast_3d(pt.read_photograph(path).pixels).mean(axis=-1, dtype=np.float64)
    if not np.isfinite(pixels).all() or np.min(pixels) < 0 or pixels.sum() == 0:
        raise ValueError(f"--psf {path} is no blur: its values must be finite, not negative, and not all zero")
    return pixels / pixels.sum()


def _preview_crop(shape: tuple[int, int], missing: NDArray[np.bool_] | None) -> Crop:
    """The middle of a picture, or the window of it with the most missing pixels."""
    sides = np.minimum(_PREVIEW_SIDE, shape)
    centre = np.array(shape) // 2
    if missing is not None:
        share = ndimage.uniform_filter(missing.astype(np.float32), sides, mode="constant")
        centre = np.array(np.unravel_index(np.argmax(share), shape)) if missing.any() else centre
    top, left = np.clip(centre - sides // 2, 0, shape - sides).tolist()
    return left, top, int(sides[1]), int(sides[0])


def _scaled(pixels: NDArray[Any]) -> NDArray[Any]:
    """Samples (height, width, channels) as shares of the largest value of their type; floating point ends at 1."""
    return np.atleast_3d(pixels) / np.float32(pt.Photograph(pixels).peak)


def _write_preview(photograph: pt.Photograph, answer: Answer, path: Path) -> None:
    """Before and after beside each other, with the photograph's own colours and nothing else of its metadata."""
    whole = photograph.shape == answer.before.shape[:2]
    before = _scaled(photograph.pixels if whole else answer.before)  # as people saw it: white where it is transparent
    if whole and photograph.alpha is not None:
        before[photograph.alpha == 0] = 1
    halves = [np.broadcast_to(half, (*half.shape[:2], 3)) for half in (before, _scaled(answer.pixels))]
    joined = np.concatenate([halves[0], np.ones((len(before), _PREVIEW_GAP, 3)), halves[1]], axis=1)
    pixels = np.round(255 * np.clip(np.nan_to_num(joined), 0, 1)).astype(np.uint8)
    icc = photograph.metadata.icc if photograph.pixels.ndim == 3 else None
    text = (b"tEXt", "\0".join(_PREVIEW_MARK).encode())
    pt.write_photograph(pt.Photograph(pixels, metadata=Metadata(icc=icc, chunks=(text,))), path)


def _decibels(reference: NDArray[Any], pixels: NDArray[Any]) -> float:
    """PSNR with the largest value of the type as peak, which is what people quote for photographs."""
    error = float(np.mean(np.square(_scaled(reference) - _scaled(pixels), dtype=np.float32), dtype=np.float64))
    return float("inf") if error == 0 else -10 * float(np.log10(error))


def _draw_comparison(path: Path, panels: dict[str, NDArray[Any]], judged: list[str]) -> None:
    """Pictures side by side, with the quality of the first two if there is a reference."""
    height, width = panels["After"].shape[:2]
    figure = new_figure(4.0 * len(panels) + 0.6, min(4.0 * height / width, 8.0) + 0.8)
    words = [f"PSNR {one}" for one in judged] + [" "] * len(panels)
    for axes, (name, pixels), detail in zip(figure.subplots(1, len(panels)), panels.items(), words, strict=False):
        bare(axes)
        axes.imshow(np.clip(_scaled(pixels), 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="antialiased")
        title(axes, name, detail)
    save_figure(figure, path, crop=True)
