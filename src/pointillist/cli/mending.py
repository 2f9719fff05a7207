"""The run of a command that mends pictures: damaged pictures in, mended pictures out.

What is read and written is settled by `jobs`, what is done to a picture by `tasks`; here one picture after the other goes
through, and people are told.
"""

import logging
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from pointillist.cli.comparison import draw_comparison, psnr_before_and_after, side_by_side
from pointillist.cli.console import count, number, say, show_log, tell
from pointillist.cli.cropping import Crop, preview_crop
from pointillist.cli.jobs import PREVIEW_MARK, Job, RestoreRequest, make_jobs
from pointillist.cli.pictures import plain
from pointillist.cli.progress import is_live, picture_progress
from pointillist.cli.stopping import Interrupted
from pointillist.cli.tasks import Answer, Marks, Progress, Task, make_task
from pointillist.data import load_filters
from pointillist.data.photofiles import Metadata, Photograph, check_format, read_photograph, write_photograph
from pointillist.kernels.compiling import working_time
from pointillist.reprs import sizes
from pointillist.storage import load_model

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MendedPicture:
    """One picture's line in the table."""

    job: Job
    shape: tuple[int, ...]
    note: str
    penalty: str
    seconds: float
    before: float | None
    after: float | None


def run(request: RestoreRequest, *, quiet: bool, verbose: bool) -> None:
    """Mend every file; the first that cannot be mended stops the command unless it shall be skipped."""
    show_log(quiet=quiet, verbose=verbose)
    jobs, failed = make_jobs(request)
    task = make_task(request, _settings(request))
    rows: list[MendedPicture] = []
    try:
        with picture_progress(request.task.replace("_", "-"), len(jobs), quiet=quiet) as progress:
            for done, job in enumerate(jobs, 1):
                progress.begin(str(job.source))
                try:
                    rows.append(_one(request, job, task, progress.share))
                except (ValueError, OSError) as error:
                    if request.on_error == "raise":
                        raise
                    failed += 1
                    log.warning("skipped: %s", error)
                progress.end()
                if not quiet and len(jobs) > 1 and not is_live():
                    tell(f"{done}/{len(jobs)}: {job.source}")
    except KeyboardInterrupt:
        raise Interrupted(_left_undone(jobs, rows)) from None
    if not rows:
        raise ValueError(f"none of the {count(failed, 'file')} could be mended")
    if not quiet:
        _summarise(rows)


def _left_undone(jobs: list[Job], rows: list[MendedPicture]) -> str:
    """Say what Ctrl-C left undone, as the end of a sentence."""
    if len(jobs) == 1:
        return f"nothing was written for {jobs[0].source}"
    return f"{len(rows)} of {len(jobs)} pictures were written"


def _settings(request: RestoreRequest) -> dict[str, Any]:
    """Settings of all pictures: filters, penalty, threads, device."""
    settings: dict[str, Any] = {"n_jobs": request.jobs, "device": request.device}
    if request.filters is not None:
        path = Path(request.filters)
        settings["filters"] = (
            load_model(path).arrays["filters"].astype(np.float32) if path.exists() else load_filters(request.filters)
        )
    settings["penalty"] = _penalty(request.penalty)
    return settings


def _penalty(text: str) -> float | str:
    """Read a penalty: a number, "auto" or a percentage, as the library takes them."""
    try:
        return text if text == "auto" else f"{float(text[:-1]):g}%" if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f'--penalty {text!r} is not a number, a percentage such as "5%", or "auto"') from None


def _one(request: RestoreRequest, job: Job, task: Task, progress: Progress) -> MendedPicture:
    """Read, mend and write one picture."""
    photograph = read_photograph(job.source)
    for note in photograph.notes:
        log.warning("%s: %s", job.source, note)
    if not request.preview:
        check_format(job.target, photograph.pixels.dtype)
    reference = None if job.reference is None else read_photograph(job.reference)
    begin = working_time()
    try:
        marks = task.find(plain(photograph), job)
        crop = job.crop
        if request.preview and crop is None:
            crop = preview_crop(photograph.shape, None if marks is None else marks.missing)
        if crop is not None:
            photograph, marks, reference = _cropped(crop, request.factor, photograph, marks, reference)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = task.mend(plain(photograph), marks, progress)
    except ValueError as error:
        raise ValueError(str(error) if str(job.source) in str(error) else f"{job.source}: {error}") from error
    seconds = working_time() - begin
    qualities = psnr_before_and_after(answer.before, answer.pixels, reference, job.reference)
    if request.preview:
        _write_preview(photograph, answer, job.target)
    else:
        write_photograph(photograph.with_pixels(answer.pixels, answer.alpha), job.target)
    if job.compare is not None:
        draw_comparison(job.compare, answer.before, answer.pixels, reference, qualities, photograph.peak)
    penalty = answer.details.penalty
    return MendedPicture(
        job, answer.pixels.shape[:2], answer.note, number(penalty) if np.isfinite(penalty) else "–", seconds, *qualities
    )


def _cropped(
    crop: Crop, factor: int, photograph: Photograph, marks: Marks | None, reference: Photograph | None
) -> tuple[Photograph, Marks | None, Photograph | None]:
    """Crop photograph, mask and reference to the same rectangle; the reference is `factor` times as large."""
    if marks is not None:
        marks = replace(marks, missing=crop.of(marks.missing))
        if marks.missing.all():
            raise ValueError(f"every pixel of --crop {crop} is marked as missing: choose a larger one")
    if reference is not None:
        reference = replace(reference, pixels=crop.of(reference.pixels, factor), alpha=None)
    return photograph.cropped(crop.top, crop.left, crop.height, crop.width), marks, reference


def _write_preview(photograph: Photograph, answer: Answer, path: Path) -> None:
    """Before and after beside each other, with the photograph's own colours and nothing else of its metadata."""
    text = (b"tEXt", "\0".join(PREVIEW_MARK).encode())
    metadata = Metadata(icc=photograph.metadata.icc, chunks=(text,))
    pixels = side_by_side(_seen_before(photograph, answer), answer.pixels, photograph.peak)
    if pixels.ndim == 2 and photograph.pixels.ndim == 3:
        pixels = np.repeat(pixels[..., None], 3, axis=-1)
    write_photograph(Photograph(pixels, metadata=metadata), path)


def _seen_before(photograph: Photograph, answer: Answer) -> NDArray[Any]:
    """The picture before it was mended, as people saw it: white where pixels are transparent."""
    if photograph.shape != answer.before.shape[:2]:
        return answer.before
    if photograph.alpha is None:
        return photograph.pixels
    clear = photograph.alpha == 0
    white = photograph.pixels.dtype.type(photograph.peak)
    return np.where(clear if photograph.pixels.ndim == 2 else clear[..., None], white, photograph.pixels)


def _summarise(rows: list[MendedPicture]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("picture", overflow="fold")
    for heading in ("size", "what", "penalty", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    judged = any(row.after is not None for row in rows)
    if judged:
        table.add_column("PSNR before", justify="right", no_wrap=True)
        table.add_column("after", justify="right", no_wrap=True)
    table.add_column("written to", overflow="fold")
    for row in rows:
        words = [str(row.job.source), sizes(row.shape), row.note, row.penalty, f"{row.seconds:.1f}"]
        if judged:
            words += ["–" if value is None else f"{value:.2f} dB" for value in (row.before, row.after)]
        table.add_row(*words, str(row.job.target))
    say(table)
