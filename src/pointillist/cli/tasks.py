"""What each restoration command does to one photograph: find what is missing, then mend it.

Files, crops, progress and tables are the business of the modules around it.
"""

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist import restore
from pointillist.cli.console import number
from pointillist.cli.jobs import Job, RestoreRequest
from pointillist.cli.pictures import marked_by_itself, read_mask
from pointillist.data.photofiles import Photograph, read_photograph, write_photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.reprs import sizes
from pointillist.retouch.damage import find_damage
from pointillist.retouch.marks import find_marks, grey_beside, grown, parse_colour

log = logging.getLogger(__name__)

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
    details: restore.Details
    note: str
    before: NDArray[Any]
    alpha: NDArray[Any] | None = None


@dataclass(frozen=True)
class Task:
    """What a command does: `find` looks for missing pixels of the photograph, `mend` works on it or on a crop of it."""

    mend: Callable[[Photograph, Marks | None, Progress | None], Answer]
    find: Callable[[Photograph, Job], Marks | None] = lambda photograph, job: None


def make_task(request: RestoreRequest, settings: dict[str, Any]) -> Task:
    """The task of a command; complains about its options."""
    return _TASKS[request.task](request, settings)


def _inpaint(request: RestoreRequest, settings: dict[str, Any]) -> Task:
    options = request.options
    own = {**settings, "method": options["method"], "texture": options["texture"]}
    if options["key"] is not None:
        try:
            parse_colour(options["key"])
        except ValueError as error:
            raise ValueError(f"--key {options['key']}: {error}") from error

    def find(photograph: Photograph, job: Job) -> Marks:
        marks = _found(photograph, job, options, settings["n_jobs"])
        missing = grown(marks.missing, options["grow"])
        if missing.all():
            raise ValueError(f"{job.source}: every pixel is marked as missing, no pixel is left to fill in from")
        if job.save_mask is not None:
            write_photograph(Photograph(missing.astype(np.uint8) * np.uint8(255)), job.save_mask)
        return Marks(missing, marks.how)

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        if marks is None:
            raise ValueError("nothing is marked as missing")
        missing = marks.missing
        pixels = grey_beside(photograph.pixels, missing)
        before = pixels.copy()
        before[missing] = 0
        mended, details = restore.inpaint(pixels, missing, return_details=True, progress=progress, **own)
        alpha = photograph.alpha
        if alpha is not None and marks.how == "transparent":
            alpha = np.where(missing, alpha.dtype.type(photograph.peak), alpha)
        return Answer(mended, details, f"{100 * np.mean(missing):.1f} % missing ({marks.how})", before, alpha)

    return Task(mend, find)


def _found(photograph: Photograph, job: Job, options: dict[str, Any], n_jobs: int) -> Marks:
    """The missing pixels by mask, by colour, as damage that is looked for, or as the picture marks them itself."""
    by_colour = {"tolerance": options["tolerance"], "fringe": options["fringe"]}
    if job.mask is not None:
        missing = read_mask(job.mask, photograph, job.source)
        if not missing.any():
            log.warning("%s: --mask %s marks nothing, the picture stays as it is", job.source, job.mask)
        return Marks(missing, "masked")
    if options["find"]:
        missing = find_damage(photograph.pixels, options["find"], sensitivity=options["sensitivity"], n_jobs=n_jobs)
        if not missing.any():
            log.warning("%s: no %s found, the picture stays as it is", job.source, " or ".join(options["find"]))
        return Marks(missing, " and ".join(options["find"]))
    if options["key"] is not None:
        missing = find_marks(photograph.pixels, options["key"], **by_colour)
        if not missing.any():
            raise ValueError(f"{job.source} has no pixels of --key {options['key']}")
        return Marks(missing, str(options["key"]))
    return Marks(*marked_by_itself(photograph, job.source, **by_colour))


def _denoise(request: RestoreRequest, settings: dict[str, Any]) -> Task:
    sigma, noise, gain = (request.options[name] for name in ("sigma", "noise", "gain"))

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        mended, details = restore.denoise(
            photograph.pixels, sigma, noise=noise, gain=gain, return_details=True, progress=progress, **settings
        )
        level = details.sigma
        note = noise.replace("_", " and ") + ("" if level is None else f", σ = {number(float(level))}")
        return Answer(mended, details, note, photograph.pixels)

    return Task(mend)


def _deblur(request: RestoreRequest, settings: dict[str, Any]) -> Task:
    options, sigma = request.options, request.options["sigma"]
    given = {name: options[name] for name in (*_KERNELS, "estimate") if options[name] is not None}
    if len(given) != 1:
        raise ValueError(
            "give the blur by one of --psf FILE, --gaussian SIGMA and --motion LENGTH,ANGLE, or let it be found by "
            "--estimate motion or --estimate gaussian"
        )
    name, value = next(iter(given.items()))
    known = None if name == "estimate" else (_KERNELS[name](value), f"{name} blur")

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        psf, words = known or _estimated(photograph.pixels, value, sigma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BlurMisfitWarning)  # the sentence below says it in the command's words
            mended, details = restore.deblur(
                photograph.pixels, psf, sigma=sigma, force=options["force"], return_details=True, progress=progress,
                **settings,
            )  # fmt: skip
        if details.misfit is not None:
            raise ValueError(
                f"the {words} does not seem to be this picture's own ({details.misfit}); nothing was written. "
                "--estimate motion or gaussian looks for the blur, --force undoes this one all the same"
            )
        return Answer(mended, details, f"{words} of {sizes(psf.shape)}", photograph.pixels)

    return Task(mend)


def _estimated(pixels: NDArray[Any], kind: str, sigma: float | None) -> tuple[NDArray[np.float64], str]:
    """The blur of that kind that a picture has, and what to call it."""
    found = restore.estimate_blur(pixels, kind, sigma=sigma)
    if not found.confidence > 0:
        raise ValueError(f"no {kind} blur was found: the picture seems to be sharp, or blurred in another way")
    if found.sigma is not None:
        return found.kernel, f"gaussian blur (--gaussian {found.sigma:.2f})"
    return found.kernel, f"motion blur (--motion {found.length:.1f},{found.angle:.0f})"


def parse_motion(text: str) -> NDArray[np.float64]:
    """Make the kernel that ``9,30`` describes: a motion of nine pixels at 30 degrees."""
    try:
        length, angle = (float(number) for number in text.split(","))
        return restore.motion_kernel(length, angle)
    except ValueError:
        raise ValueError(f"--motion {text!r} is not LENGTH,ANGLE: write 9,30 for nine pixels at 30 degrees") from None


def read_kernel(path: Path) -> NDArray[np.float64]:
    """A kernel of sum one from a grey image or a .npy file."""
    pixels = read_photograph(path).pixels.astype(np.float64)
    if pixels.ndim == 3:
        pixels = pixels.mean(axis=-1)
    if not np.isfinite(pixels).all() or np.min(pixels) < 0 or pixels.sum() == 0:
        raise ValueError(f"--psf {path} is no blur: its values must be finite, not negative, and not all zero")
    return pixels / pixels.sum()


_KERNELS: dict[str, Callable[[Any], NDArray[np.float64]]] = {
    "psf": read_kernel,
    "gaussian": restore.gaussian_kernel,
    "motion": parse_motion,
}


def _super_resolve(request: RestoreRequest, settings: dict[str, Any]) -> Task:
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


def _demosaic(request: RestoreRequest, settings: dict[str, Any]) -> Task:
    pattern = request.options["pattern"]

    def mend(photograph: Photograph, marks: Marks | None, progress: Progress | None) -> Answer:
        if photograph.pixels.ndim != 2:
            raise ValueError("the picture is in colour already: a mosaic is grey")
        mended, details = restore.demosaic(
            photograph.pixels, pattern, return_details=True, progress=progress, **settings
        )
        return Answer(mended, details, pattern, photograph.pixels)

    return Task(mend)


_TASKS: dict[str, Callable[[RestoreRequest, dict[str, Any]], Task]] = {
    "inpaint": _inpaint,
    "denoise": _denoise,
    "deblur": _deblur,
    "super_resolve": _super_resolve,
    "demosaic": _demosaic,
}
