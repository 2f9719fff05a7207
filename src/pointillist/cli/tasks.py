"""What each restoration command does to one photograph: find what is missing, then mend it.

Files, crops, progress and tables are the business of the modules around it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist import restore
from pointillist.cli import kernels
from pointillist.cli.console import number
from pointillist.cli.inputs import sizes
from pointillist.cli.jobs import Job, Request
from pointillist.cli.pictures import coloured, find_marked, fringes, grown, parse_key, plain_beside, read_mask
from pointillist.data.photofiles import Photograph

log = logging.getLogger(__name__)

_FORGOTTEN, _FEW = 0.002, 20
"""Fringes, as part of the marked pixels and in number, from which on people are told."""

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Marks:
    """The missing pixels of a photograph (height, width), and by what they are known."""

    missing: NDArray[np.bool_]
    how: str


@dataclass(frozen=True, eq=False)
class Answer:
    """Mended pixels with their alpha, if that is another one, and what to say and to show beside them."""

    pixels: NDArray[Any]
    details: Any
    note: str
    before: NDArray[Any]
    alpha: NDArray[Any] | None = None


@dataclass(frozen=True)
class Task:
    """A command's two verbs; `find` looks at the whole photograph, `mend` works on it or on a part of it."""

    mend: Callable[[Photograph, Marks | None, Progress | None], Answer]
    find: Callable[[Photograph, Job], Marks | None] = lambda photograph, job: None


def make_task(request: Request, settings: dict[str, Any]) -> Task:
    """The task of a command; complains about its options."""
    return _TASKS[request.task](request, settings)


def _inpaint(request: Request, settings: dict[str, Any]) -> Task:
    key = request.options.get("key")
    colour = None if key is None else parse_key(key)

    def find(photograph: Photograph, job: Job) -> Marks:
        used = colour
        if job.mask is not None:
            missing, how = read_mask(job.mask, photograph, job.source), "masked"
        elif colour is not None:
            missing, how = coloured(photograph, colour, request.options["fuzz"]), str(key)
            if not missing.any():
                raise ValueError(f"{job.source} has no pixels of --key {key}")
        else:
            missing, how = find_marked(photograph, job.source)
            used = parse_key(how) if how.startswith("#") else None
        return Marks(_with_fringes(photograph, missing, used, how, request.options, job.source), how)

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        if marks is None:
            raise ValueError("nothing is marked as missing")
        missing = marks.missing
        photograph = plain_beside(photograph, missing)
        before = np.array(photograph.pixels)
        before[missing] = 0
        mended, details = restore.inpaint(
            photograph.pixels, missing, return_details=True, progress=progress, **settings
        )
        alpha = photograph.alpha
        if alpha is not None and marks.how == "transparent":
            alpha = np.where(missing, alpha.dtype.type(photograph.peak), alpha)
        return Answer(mended, details, f"{100 * np.mean(missing):.1f} % missing ({marks.how})", before, alpha)

    return Task(mend, find)


def _with_fringes(
    photograph: Photograph,
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
        missing = missing | coloured(photograph, colour, fuzz)
    missing = grown(missing, grow)
    if missing.all():
        advice = "" if marked.all() else ": give less --fuzz or --grow"
        raise ValueError(f"{name}: every pixel is marked as missing, no pixel is left to fill in from{advice}")
    left = 0 if colour is None or fuzz > 0 or grow > 0 else fringes(photograph, missing, colour)
    if left > max(_FORGOTTEN * np.sum(marked), _FEW):
        log.warning(
            "%s: %d more pixels have some of the colour %s, as a soft brush or text leaves it; --fuzz 50 --grow 1 takes "
            "such pixels as missing too", name, left, how,
        )  # fmt: skip
    return missing


def _denoise(request: Request, settings: dict[str, Any]) -> Task:
    sigma, noise, gain = (request.options[name] for name in ("sigma", "noise", "gain"))

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        mended, details = restore.denoise(
            photograph.pixels, sigma, noise=noise, gain=gain, return_details=True, progress=progress, **settings
        )
        level = getattr(details, "sigma", None) if sigma is None else sigma
        note = noise.replace("_", " and ") + ("" if level is None else f", σ = {number(float(level))}")
        return Answer(mended, details, note, photograph.pixels)

    return Task(mend)


def _deblur(request: Request, settings: dict[str, Any]) -> Task:
    sigma = request.options["sigma"]
    options = {name: request.options[name] for name in _KERNELS if request.options[name] is not None}
    if len(options) != 1:
        raise ValueError("give the blur by one of --psf FILE, --gaussian SIGMA and --motion LENGTH,ANGLE")
    name, value = next(iter(options.items()))
    psf = _KERNELS[name](value)

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        mended, details = restore.deblur(
            photograph.pixels, psf, sigma=sigma, return_details=True, progress=progress, **settings
        )
        return Answer(mended, details, f"{name} blur of {sizes(psf.shape)}", photograph.pixels)

    return Task(mend)


_KERNELS: dict[str, Callable[[Any], NDArray[np.float64]]] = {
    "psf": kernels.read,
    "gaussian": kernels.gaussian,
    "motion": kernels.parse_motion,
}


def _superres(request: Request, settings: dict[str, Any]) -> Task:
    factor = request.factor

    def repeated(array: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(np.repeat(array, factor, axis=0), factor, axis=1)

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        mended, details = restore.super_resolve(
            photograph.pixels, factor, return_details=True, progress=progress, **settings
        )
        alpha = None if photograph.alpha is None else repeated(photograph.alpha)
        return Answer(mended, details, f"×{factor}", repeated(photograph.pixels), alpha)

    return Task(mend)


def _demosaic(request: Request, settings: dict[str, Any]) -> Task:
    pattern = request.options["pattern"]

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        if photograph.pixels.ndim != 2:
            raise ValueError("the picture is in colour already: a mosaic is grey")
        mended, details = restore.demosaic(
            photograph.pixels, pattern, return_details=True, progress=progress, **settings
        )
        return Answer(mended, details, pattern, photograph.pixels)

    return Task(mend)


_TASKS: dict[str, Callable[[Request, dict[str, Any]], Task]] = {
    "inpaint": _inpaint,
    "denoise": _denoise,
    "deblur": _deblur,
    "superres": _superres,
    "demosaic": _demosaic,
}
