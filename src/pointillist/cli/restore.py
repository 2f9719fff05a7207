"""``pointillist inpaint``, ``denoise``, ``deblur``, ``superres`` and ``demosaic``: damaged pictures in, mended pictures out.

Finding what is missing and the mending itself are done elsewhere; here files are matched with answers, and people told.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from pointillist import restore
from pointillist.cli import kernels
from pointillist.cli.comparison import draw_comparison, psnr_before_and_after
from pointillist.cli.console import count, err, number, out, show_log
from pointillist.cli.inputs import sizes
from pointillist.cli.pictures import (
    Picture,
    check_format,
    coloured,
    default_suffix,
    find_marked,
    fringes,
    grown,
    parse_key,
    plain_beside,
    read_mask,
    read_picture,
    write_picture,
)
from pointillist.cli.progress import counting_progress, is_live
from pointillist.data import load_filters
from pointillist.data.loading import IMAGE_SUFFIXES, expand
from pointillist.storage import check_writable, load_model

log = logging.getLogger(__name__)

_FORGOTTEN, _FEW = 0.002, 20
"""Fringes, as part of the marked pixels and in number, from which on people are told."""

_WORDS = {
    "inpaint": "inpainted",
    "denoise": "denoised",
    "deblur": "deblurred",
    "superres": "enlarged",
    "demosaic": "coloured",
}


@dataclass(frozen=True)
class Request:
    """What the user asked for; `task` is the command, `options` are its own."""

    task: str
    paths: list[Path]
    output: Path | None
    penalty: str
    filters: str | None
    reference: Path | None
    compare: Path | None
    jobs: int | None
    device: str
    on_error: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One file with the files that belong to it."""

    source: Path
    target: Path | None  # None: beside the source, once its type is known
    reference: Path | None
    mask: Path | None
    compare: Path | None


@dataclass(frozen=True)
class Row:
    """One picture's line in the table."""

    job: Job
    target: Path
    shape: tuple[int, ...]
    note: str
    penalty: str
    seconds: float
    before: float | None
    after: float | None


Mend = Callable[[Picture, Job], tuple[NDArray[Any], Any, str, NDArray[Any]]]
"""From a picture to the mended pixels, the details, a note, and what it looked like before."""


def run(request: Request, *, quiet: bool, verbose: bool) -> None:
    """Mend every file; the first that cannot be mended stops the command unless it shall be skipped."""
    show_log(quiet=quiet, verbose=verbose)
    jobs = _plan(request)
    mend = _TASKS[request.task](request, _settings(request))
    rows, failed = [], 0
    with counting_progress(request.task, len(jobs), quiet=quiet or len(jobs) == 1) as progress:
        for done, job in enumerate(jobs, 1):
            try:
                rows.append(_one(request, job, mend))
            except (ValueError, OSError) as error:
                if request.on_error == "raise":
                    raise
                failed += 1
                log.warning("skipped: %s", error)
            progress(done)
            if not quiet and len(jobs) > 1 and not is_live():
                err().print(f"{done}/{len(jobs)}: {job.source}", markup=False, soft_wrap=True)
    if not rows:
        raise ValueError(f"none of the {count(failed, 'file')} could be mended")
    if not quiet:
        _summarise(rows)


def _settings(request: Request) -> dict[str, Any]:
    """What all pictures share: filters, penalty, threads, device."""
    settings: dict[str, Any] = {"n_jobs": request.jobs, "device": request.device}
    if request.filters is not None:
        path = Path(request.filters)
        settings["filters"] = (
            load_model(path).filters.astype(np.float32) if path.exists() else load_filters(request.filters)
        )
    settings["penalty"] = _price(request.penalty)
    return settings


def _price(text: str) -> float | str:
    """A number, "auto" or a percentage, as the library takes them."""
    try:
        return text if text == "auto" else f"{float(text[:-1]):g}%" if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f'--penalty {text!r} is not a number, a percentage such as "5%", or "auto"') from None


def _plan(request: Request) -> list[Job]:
    """Match sources, targets, masks and references, and complain before any work is done."""
    sources = expand(request.paths, IMAGE_SUFFIXES | {".npy"})
    several = len(sources) > 1 or any(path.is_dir() for path in request.paths)
    mask = request.options.get("mask")
    targets: list[Path | None]
    if request.output is None:
        targets = [None] * len(sources)
    elif several or request.output.is_dir():
        if request.output.exists() and not request.output.is_dir():
            raise NotADirectoryError(
                f"--output {request.output} is a file: give a folder for {count(len(sources), 'file')}"
            )
        request.output.mkdir(parents=True, exist_ok=True)
        targets = [request.output / source.with_suffix("").name for source in sources]
    else:
        check_format(request.output)
        check_writable(request.output)
        if request.output.resolve() == sources[0].resolve():
            raise ValueError(f"--output {request.output} is the input itself: give another name")
        targets = [request.output]
    if len(set(targets)) < len([target for target in targets if target is not None]):
        raise ValueError(f"several files would be written under one name in {request.output}: mend them one by one")
    if request.compare is not None:
        if several and request.compare.suffix:
            raise ValueError(
                f"--compare {request.compare} is one file: give a folder for {count(len(sources), 'file')}"
            )
        if several:
            request.compare.mkdir(parents=True, exist_ok=True)
        else:
            check_writable(request.compare)
    return [
        Job(
            source,
            target,
            _partner(request.reference, source, "--reference"),
            _partner(mask, source, "--mask"),
            request.compare / f"{source.stem}.png" if several and request.compare is not None else request.compare,
        )
        for source, target in zip(sources, targets, strict=True)
    ]


def _partner(given: Path | None, source: Path, option: str) -> Path | None:
    """The file itself, or from a folder the one that is named like the source."""
    if given is None or given.is_file():
        return given
    if not given.exists():
        raise FileNotFoundError(f"{option} {given} does not exist")
    named = [path for path in sorted(given.iterdir()) if path.stem == source.stem and path.is_file()]
    if not named:
        raise FileNotFoundError(f"{option} {given} holds no file named {source.stem}")
    return named[0]


def _one(request: Request, job: Job, mend: Mend) -> Row:
    picture = read_picture(job.source)
    for note in picture.notes:
        log.warning("%s: %s", job.source, note)
    if picture.transparent is not None and request.task != "inpaint":
        log.warning("%s: its transparency is not kept", job.source)
    target = _target(request, job, picture)
    reference = None if job.reference is None else read_picture(job.reference)
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mended, details, note, before = mend(picture, job)
    except ValueError as error:
        raise ValueError(str(error) if str(job.source) in str(error) else f"{job.source}: {error}") from error
    seconds = time.perf_counter() - begin
    qualities = psnr_before_and_after(before, mended, reference, job.reference)
    write_picture(mended, target)
    if job.compare is not None:
        draw_comparison(job.compare, before, mended, reference, qualities, picture.peak)
    return Row(job, target, mended.shape[:2], note, _penalty(details), seconds, *qualities)


def _target(request: Request, job: Job, picture: Picture) -> Path:
    suffix = default_suffix(job.source, picture.pixels)
    if job.target is None:
        target = job.source.with_name(f"{job.source.stem}-{_WORDS[request.task]}{suffix}")
    elif job.target == request.output:
        target = job.target
    else:
        target = job.target.with_name(job.target.name + suffix)
    if target.resolve() == job.source.resolve():
        raise ValueError(f"{target} would be written over the input: give another folder by --output")
    check_format(target, picture.pixels)
    check_writable(target)
    return target


def _penalty(details: Any) -> str:
    values = np.atleast_1d(np.asarray(getattr(details, "penalty", np.nan), np.float64)).ravel()
    return " ".join(number(float(value)) for value in dict.fromkeys(values.tolist()) if np.isfinite(value)) or "–"


def _inpaint(request: Request, settings: dict[str, Any]) -> Mend:
    key = request.options.get("key")
    colour = None if key is None else parse_key(key)

    def mend(picture: Picture, job: Job) -> tuple[NDArray[Any], Any, str, NDArray[Any]]:
        used = colour
        if job.mask is not None:
            missing, how = read_mask(job.mask, picture, job.source), "masked"
        elif colour is not None:
            missing, how = coloured(picture, colour, request.options["fuzz"]), str(key)
            if not missing.any():
                raise ValueError(f"{job.source} has no pixels of --key {key}")
        else:
            missing, how = find_marked(picture, job.source)
            used = parse_key(how) if how.startswith("#") else None
        missing = _with_fringes(picture, missing, used, how, request.options, job.source)
        picture = plain_beside(picture, missing)
        before = np.array(picture.pixels)
        before[missing] = 0
        mended, details = restore.inpaint(picture.pixels, missing, return_details=True, **settings)
        return mended, details, f"{100 * np.mean(missing):.1f} % missing ({how})", before

    return mend


def _with_fringes(
    picture: Picture,
    missing: NDArray[np.bool_],
    colour: tuple[int, int, int] | None,
    how: str,
    options: dict[str, Any],
    name: Path,
) -> NDArray[np.bool_]:
    """The missing pixels with those like them and around them that were asked for; says where some look forgotten."""
    fuzz, grow = options["fuzz"], options["grow"]
    if fuzz > 0 and colour is None:
        raise ValueError(
            f"{name} does not mark missing pixels by a colour ({how}): leave --fuzz out, --grow serves here too"
        )
    marked = missing
    if fuzz > 0 and colour is not None:
        missing = missing | coloured(picture, colour, fuzz)
    missing = grown(missing, grow)
    if missing.all() and not marked.all():
        raise ValueError(f"{name}: no pixel is left to fill in from: give less --fuzz or --grow")
    left = 0 if colour is None or fuzz > 0 or grow > 0 else fringes(picture, missing, colour)
    if left > max(_FORGOTTEN * np.sum(marked), _FEW):
        log.warning(
            "%s: %d more pixels have some of the colour %s, as a soft brush or text leaves it; --fuzz 50 --grow 1 takes "
            "such pixels as missing too", name, left, how,
        )  # fmt: skip
    return missing


def _denoise(request: Request, settings: dict[str, Any]) -> Mend:
    sigma, noise, gain = (request.options[name] for name in ("sigma", "noise", "gain"))

    def mend(picture: Picture, job: Job) -> tuple[NDArray[Any], Any, str, NDArray[Any]]:
        mended, details = restore.denoise(
            picture.pixels, sigma, noise=noise, gain=gain, return_details=True, **settings
        )
        level = getattr(details, "sigma", None) if sigma is None else sigma
        note = noise.replace("_", " and ") + ("" if level is None else f", σ = {number(float(level))}")
        return mended, details, note, picture.pixels

    return mend


def _deblur(request: Request, settings: dict[str, Any]) -> Mend:
    sigma = request.options["sigma"]
    options = {name: request.options[name] for name in _KERNELS if request.options[name] is not None}
    if len(options) != 1:
        raise ValueError("give the blur by one of --psf FILE, --gaussian SIGMA and --motion LENGTH,ANGLE")
    name, value = next(iter(options.items()))
    psf = _KERNELS[name](value)

    def mend(picture: Picture, job: Job) -> tuple[NDArray[Any], Any, str, NDArray[Any]]:
        mended, details = restore.deblur(picture.pixels, psf, sigma=sigma, return_details=True, **settings)
        return mended, details, f"{name} blur of {sizes(psf.shape)}", picture.pixels

    return mend


_KERNELS: dict[str, Callable[[Any], NDArray[np.float64]]] = {
    "psf": kernels.read,
    "gaussian": kernels.gaussian,
    "motion": kernels.parse_motion,
}


def _superres(request: Request, settings: dict[str, Any]) -> Mend:
    factor = request.options["factor"]

    def mend(picture: Picture, job: Job) -> tuple[NDArray[Any], Any, str, NDArray[Any]]:
        mended, details = restore.super_resolve(picture.pixels, factor, return_details=True, **settings)
        before = np.repeat(np.repeat(picture.pixels, factor, axis=0), factor, axis=1)
        return mended, details, f"×{factor}", before

    return mend


def _demosaic(request: Request, settings: dict[str, Any]) -> Mend:
    pattern = request.options["pattern"]

    def mend(picture: Picture, job: Job) -> tuple[NDArray[Any], Any, str, NDArray[Any]]:
        if picture.pixels.ndim != 2:
            raise ValueError(f"{job.source} is in colour already: a mosaic is grey")
        mended, details = restore.demosaic(picture.pixels, pattern, return_details=True, **settings)
        return mended, details, pattern, picture.pixels

    return mend


_TASKS: dict[str, Callable[[Request, dict[str, Any]], Mend]] = {
    "inpaint": _inpaint,
    "denoise": _denoise,
    "deblur": _deblur,
    "superres": _superres,
    "demosaic": _demosaic,
}


def _summarise(rows: list[Row]) -> None:
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
        quality = (
            [] if not judged else ["–" if value is None else f"{value:.2f} dB" for value in (row.before, row.after)]
        )
        cells = [
            str(row.job.source),
            sizes(row.shape),
            row.note,
            row.penalty,
            f"{row.seconds:.1f}",
            *quality,
            str(row.target),
        ]
        table.add_row(*[cell.replace("[", r"\[") for cell in cells])
    out().print(table)
