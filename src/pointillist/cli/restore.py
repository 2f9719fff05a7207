"""The commands that mend pictures: ``inpaint``, ``denoise``, ``deblur``, ``super-resolve``, ``demosaic`` and ``app``.

Each checks its own options and makes of them the `Task` for one photograph; `mending` does that to all files.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, update_wrapper
from inspect import Signature, signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from typer import Argument, Option

import pointillist as pt
from pointillist.cli.console import Stopped, number, received, say, show_log, tell
from pointillist.cli.options import (
    Device,
    Failing,
    Jobs,
    Overwrite,
    Quiet,
    Recursive,
    Verbose,
    checked,
    positive,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.mending import Job

    Marks = tuple[NDArray[Any], str]
    """The missing pixels of a photograph (height, width), and by what they are known."""

log = logging.getLogger(__name__)

Damage = StrEnum("Damage", "dust scratches text")  # typer takes no list of literals


class Answer(NamedTuple):
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
    mend : callable
        Works on a photograph or a crop of it, with its marks, and settings for the library's function.
    find : callable
        Looks for missing pixels of the whole photograph, with so many threads.
    factor : int
        How many times larger an answer is.
    """

    mend: Callable[..., Answer]
    find: Callable[[pt.Photograph, Job, int], Marks] | None = None
    factor: int = 1


@checked
def _penalty(text: str) -> str:
    from pointillist.restore.engine import parse_penalty

    parse_penalty(text)
    return text


@checked
def _crop(text: str) -> Any:
    """Left, top, width and height of ``100,50,400,300``."""
    found = re.fullmatch(r"(\d+),(\d+),([1-9]\d*),([1-9]\d*)", text)
    if found is None:
        raise ValueError(f"{text!r} is not X,Y,W,H: write 100,50,400,300 for 400×300 pixels from column 100, row 50")
    return tuple(map(int, found.groups()))


@checked
def _share(text: str) -> Any:
    """A percentage as a share of full scale, or "auto"."""
    try:
        return text if text == "auto" else float(text.removesuffix("%")) / 100
    except ValueError:
        raise ValueError(f"{text!r} is neither auto nor a percentage from 0 to 100") from None


@checked
def _motion(text: str) -> Any:
    """Kernel of ``9,30``: a motion of nine pixels at 30 degrees."""
    try:
        length, angle = (float(number) for number in text.split(","))
        return pt.motion_kernel(length, angle)
    except ValueError:
        raise ValueError(f"{text!r} is not LENGTH,ANGLE: write 9,30 for nine pixels at 30 degrees") from None


Sigma = Annotated[
    float | None,
    Option(
        callback=positive,
        metavar="NUMBER",
        help="Deviation of the noise, 25 of 255 for instance.",
        show_default="estimated",
    ),
]


def _files(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="IN...",
            help="Pictures, .npy arrays, folders, or 'photos/**/*.jpg'; camera raw and HEIC with the extras raw and heif.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="File, or folder for several. The name says the format; metadata are kept.",
            show_default="beside the input, in its format",
            metavar="OUT",
        ),
    ] = None,
) -> None:
    """Options of all commands that stand before those of each."""


def _settings(
    penalty: Annotated[
        str, Option(callback=_penalty, help="Price of a code: more is smoother.", metavar="NUMBER|5%|auto")
    ] = "auto",
    filters: Annotated[
        str | None,
        Option(help="A shipped dictionary or a model file.", show_default="shipped", metavar="NAME|MODEL"),
    ] = None,
    reference: Annotated[
        Path | None, Option(help="The undamaged picture (or a folder): prints PSNR.", metavar="FILE")
    ] = None,
    compare: Annotated[
        Path | None, Option(help="Also draw before and after (a folder for several).", metavar="FILE.png")
    ] = None,
    crop: Annotated[
        Any, Option(parser=_crop, help="Mend and write only this part, to try settings.", metavar="X,Y,W,H")
    ] = None,
    preview: Annotated[
        bool,
        Option(
            "--preview",
            help="Only write NAME-preview.png: a part before and after, side by side; the most damaged part, or --crop.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = "raise",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Options of all commands that stand behind those of each."""


WORDS: list[str] = []
"""The words at the end of the names of answers, one for each command."""


def _mends(word: str) -> Callable[[Callable[..., Task]], Callable[..., None]]:
    """Decorate a task with the word that the names of its answers end in; it becomes a command."""
    WORDS.append(word)
    return partial(_command, word)


def _command(word: str, task: Callable[..., Task]) -> Callable[..., None]:
    """The command that does to all files the task that is made of its own options, which stand among those of all."""
    before, own, behind = (signature(one, eval_str=True).parameters for one in (_files, task, _settings))

    def command(**given: Any) -> None:
        from pointillist.cli.mending import mend_files

        made = task(**{name: given[name] for name in own})
        mend_files(SimpleNamespace(**{"mask": None, "save_mask": None} | given), made, word)

    update_wrapper(command, task)
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in [*before.values(), *own.values(), *behind.values()]]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


@_mends("inpainted")
def inpaint(
    mask: Annotated[
        Path | None,
        Option(help="An image (or a folder): white, or what is opaque in it, is missing.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None,
        Option(help='Pixels of this colour are missing: magenta, "#f0f", white, ...', metavar="COLOUR"),
    ] = None,
    find: Annotated[
        list[Damage] | None,
        Option(metavar="dust|scratches|text", help="Look for such damage; may be repeated."),
    ] = None,
    sensitivity: Annotated[
        float,
        Option(min=0, max=1, metavar="SHARE", help="--find: 0 takes what is beyond doubt, 1 much else too."),
    ] = 0.5,
    tolerance: Annotated[
        Any,
        Option(parser=_share, help="How far from the colour a mark may be; auto allows for JPEG.", metavar="%|auto"),
    ] = "auto",
    fringe: Annotated[
        bool, Option("--fringe/--no-fringe", help="Whether soft edges of marks are taken as missing too.")
    ] = True,
    grow: Annotated[int, Option(min=0, max=100, help="Also so many pixels around.", metavar="N")] = 0,
    save_mask: Annotated[
        Path | None, Option(help="Also write what is missing, in white (a folder for several).", metavar="FILE")
    ] = None,
    texture: Annotated[
        float,
        Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="How much texture from nearby: 0 is nearest to the truth, 1 looks like it.",
        ),
    ] = 0.0,
    method: Annotated[
        Literal["auto", "neighbours", "codes"],
        Option(
            help="By the neighbourhood, by sparse codes alone, or by both where that is best.",
        ),
    ] = "auto",
) -> Task:
    """Fill in missing pixels; all others stay as they are, bit for bit.

    Without --mask, --key or --find these are: pixels that are fully transparent; else NaN (float TIFF or .npy); else those
    of the one saturated colour (magenta #ff00ff, green, red, cyan, blue or yellow) that marks anything, in JPEGs too.
    """
    if sum(map(bool, (mask, key, find))) > 1:
        raise ValueError("give one of --mask, --key and --find, not several")
    if sensitivity != 0.5 and not find:
        raise ValueError("--sensitivity is for damage that --find looks for")
    if (tolerance != "auto" or not fringe) and (mask or find):
        raise ValueError("--tolerance and --no-fringe are for marks of a colour: leave out --mask and --find")
    import numpy as np

    from pointillist.cli.mending import read_mask
    from pointillist.retouch.damage import find_damage
    from pointillist.retouch.marks import find_key, find_marks, grey_beside, grown, parse_colour

    if key is not None:
        parse_colour(key)
    kinds = tuple(one.value for one in dict.fromkeys(find or []))

    def marked(photograph: pt.Photograph, job: Job, jobs: int) -> Marks:
        pixels, alpha = photograph.pixels, photograph.alpha
        holes = ~np.isfinite(pixels.reshape(*photograph.shape, -1)).all(axis=-1)
        nothing = ""
        if job.mask is not None:
            missing, how, nothing = read_mask(job.mask), "masked", f"--mask {job.mask} marks nothing"
        elif kinds:
            missing, how = find_damage(pixels, kinds, sensitivity=sensitivity, n_jobs=jobs), " and ".join(kinds)
            nothing = f"no {' or '.join(kinds)} found"
        elif key is None and alpha is not None and not alpha.all():
            missing, how = alpha == 0, "transparent"
        elif key is None and holes.any():
            missing, how = holes, "NaN"
        else:
            how = key or find_key(pixels) or ""
            if not how:
                raise ValueError(
                    f"{job.source} marks no pixels as missing: give --mask FILE, --key COLOUR or --find dust, or make them "
                    "transparent or magenta (#ff00ff)"
                )
            missing = find_marks(pixels, how, tolerance=tolerance, fringe=fringe)
            if not missing.any():
                raise ValueError(f"{job.source} has no pixels of --key {key}")
        if not missing.any():
            log.warning("%s: %s, the picture stays as it is", job.source, nothing)
        missing = grown(missing, grow)
        if missing.all():
            raise ValueError(f"{job.source}: every pixel is marked as missing, no pixel is left to fill in from")
        if job.save_mask is not None:
            pt.write_photograph(pt.Photograph(missing.astype(np.uint8) * np.uint8(255)), job.save_mask)
        return missing, how

    def mend(photograph: pt.Photograph, marks: Marks, **settings: Any) -> Answer:
        missing, how = marks
        pixels, alpha = grey_beside(photograph.pixels, missing), photograph.alpha
        before = pixels.copy()
        before[missing] = 0
        mended, details = pt.inpaint(pixels, missing, method=method, texture=texture, **settings)
        if alpha is not None and how == "transparent":
            alpha = np.where(missing, alpha.dtype.type(photograph.peak), alpha)
        return Answer(mended, details, f"{100 * np.mean(missing):.1f} % missing ({how})", before, alpha)

    return Task(mend, marked)


@_mends("denoised")
def denoise(
    noise: Annotated[
        Literal["gaussian", "salt_pepper", "outliers", "poisson"],
        Option(help="gaussian; salt_pepper: pixels at either end of the range; outliers of any value; poisson."),
    ] = "gaussian",
    sigma: Sigma = None,
    gain: Annotated[
        float, Option(callback=positive, help="poisson: counts in one unit of the picture.", metavar="COUNTS")
    ] = 1.0,
) -> Task:
    """Remove noise."""
    if sigma is not None and noise != "gaussian":
        raise ValueError(f"--sigma is the strength of Gaussian noise, which --noise {noise} is not")
    if gain != 1.0 and noise != "poisson":
        raise ValueError(f"--gain is for counts: give --noise poisson, not {noise}")

    def mend(photograph: pt.Photograph, marks: None, **settings: Any) -> Answer:
        mended, details = pt.denoise(photograph.pixels, sigma, noise=noise, gain=gain, **settings)
        level = "" if details.sigma is None else f", σ = {number(float(details.sigma))}"
        return Answer(mended, details, f"{noise.replace('_', ' and ')}{level}", photograph.pixels)

    return Task(mend)


@_mends("deblurred")
def deblur(
    psf: Annotated[Path | None, Option(help="The blur: what it makes of a single white pixel.", metavar="FILE")] = None,
    gaussian: Annotated[
        float | None,
        Option(callback=positive, help="A Gaussian blur of this deviation in pixels.", metavar="SIGMA"),
    ] = None,
    motion: Annotated[
        Any, Option(parser=_motion, help="A straight blur: pixels and degrees, 9,30.", metavar="LENGTH,ANGLE")
    ] = None,
    estimate: Annotated[Literal["motion", "gaussian"] | None, Option(help="Find such a blur in the picture.")] = None,
    force: Annotated[bool, Option("--force", help="Undo the blur even if it does not seem to fit.")] = False,
    sigma: Sigma = None,
) -> Task:
    """Undo a blur that is given, or found in the picture.

    A blur that is not the picture's own makes ringing out of it; then nothing is written, and the command says why.
    """
    given = {"psf": psf, "gaussian": gaussian, "motion": motion, "estimate": estimate}
    kinds = [name for name, value in given.items() if value is not None]
    if len(kinds) != 1:
        raise ValueError(
            "give the blur by one of --psf FILE, --gaussian SIGMA and --motion LENGTH,ANGLE, or let it be found by "
            "--estimate motion or --estimate gaussian"
        )
    from pointillist.cli.mending import read_kernel
    from pointillist.reprs import sizes

    known = motion if gaussian is None else pt.gaussian_kernel(gaussian)
    if psf is not None:
        known = read_kernel(psf)

    def mend(photograph: pt.Photograph, marks: None, **settings: Any) -> Answer:
        kernel, name = known, f"{kinds[0]} blur"
        if estimate is not None:
            found = pt.estimate_blur(photograph.pixels, estimate, sigma=sigma)
            if not found.confidence > 0:
                raise ValueError(
                    f"no {estimate} blur was found: the picture seems to be sharp, or blurred in another way"
                )
            numbers = f"{found.length:.1f},{found.angle:.0f}" if found.sigma is None else f"{found.sigma:.2f}"
            kernel, name = found.kernel, f"{estimate} blur (--{estimate} {numbers})"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.BlurMisfitWarning)  # the sentence below says it in the command's words
            mended, details = pt.deblur(photograph.pixels, kernel, sigma=sigma, force=force, **settings)
        if details.misfit is not None:
            raise ValueError(
                f"the {name} does not seem to be this picture's own ({details.misfit}); nothing was written. "
                "--estimate motion or gaussian looks for the blur, --force undoes this one all the same"
            )
        return Answer(mended, details, f"{name} of {sizes(kernel.shape)}", photograph.pixels)

    return Task(mend)


@_mends("enlarged")
def super_resolve(
    factor: Annotated[int, Option(min=2, max=8, metavar="N", help="How many times larger.")] = 2,
) -> Task:
    """Enlarge pictures and sharpen what was lost in between."""

    def repeated(array: NDArray[Any]) -> NDArray[Any]:
        return array.repeat(factor, axis=0).repeat(factor, axis=1)

    def mend(photograph: pt.Photograph, marks: None, **settings: Any) -> Answer:
        mended, details = pt.super_resolve(photograph.pixels, factor, **settings)
        alpha = None if photograph.alpha is None else repeated(photograph.alpha)
        return Answer(mended, details, f"×{factor}", repeated(photograph.pixels), alpha)

    return Task(mend, factor=factor)


@_mends("coloured")
def demosaic(
    pattern: Annotated[
        Literal["RGGB", "BGGR", "GRBG", "GBRG"], Option(help="Colours of the upper left 2×2 pixels, row by row.")
    ] = "RGGB",
) -> Task:
    """Colour pictures from the raw mosaic of a sensor."""

    def mend(photograph: pt.Photograph, marks: None, **settings: Any) -> Answer:
        if photograph.pixels.ndim != 2:
            raise ValueError("the picture is in colour already: a mosaic is grey")
        mended, details = pt.demosaic(photograph.pixels, pattern, **settings)
        return Answer(mended, details, pattern, photograph.pixels)

    return Task(mend)


COMMANDS = (inpaint, denoise, deblur, super_resolve, demosaic)


def app(
    picture: Annotated[
        Path | None, Argument(metavar="[PICTURE]", help="A photograph to begin with.", show_default=False)
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, metavar="N", help="Where to listen.", show_default="a free one")] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address, but do not open it.")] = False,
) -> None:
    """Mend photographs on a page in the browser: paint over the damage, compare, download.

    The page is for this machine alone, and nothing leaves it. Ctrl-C ends it.
    It needs a web server: pip install 'pointillist[app]'
    """
    import webbrowser

    from pointillist.retouch.server import serve
    from pointillist.retouch.session import THREADS

    show_log()

    def ready(address: str, once: str) -> None:
        say(f"open {address}")
        tell("Photographs stay on this machine. Ctrl-C ends it.", style="dim")
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page says what matters to its reader
            serve(picture, port=port, ready=ready)
    except KeyboardInterrupt:
        tell("stopped; nothing was left behind")
        if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
            # Work that did not stop when it was told to: nobody will ask for its answer.
            sys.stdout.flush()
            os._exit(128 + received[-1])
        raise Stopped from None
