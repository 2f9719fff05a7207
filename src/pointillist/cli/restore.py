"""The commands that mend pictures: ``inpaint``, ``denoise``, ``deblur``, ``super-resolve``, ``demosaic`` and ``app``.

Each checks its own options and says by a `Task` what is done to one photograph; `mending` does that to all files.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pointillist as pt
from pointillist.cli.console import Stopped, exit_code, number, say, show_log, tell
from pointillist.cli.options import (
    Device,
    Failing,
    Jobs,
    OnError,
    Overwrite,
    Quiet,
    Recursive,
    Verbose,
    checked,
    positive,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.mending import Job, Marks

log = logging.getLogger(__name__)

Noise = StrEnum("Noise", "gaussian salt_pepper outliers poisson")
Damage = StrEnum("Damage", "dust scratches text")
Method = StrEnum("Method", "auto neighbours codes")
Blurs = StrEnum("Blurs", "motion gaussian")
Pattern = StrEnum("Pattern", {"RGGB": "RGGB", "BGGR": "BGGR", "GRBG": "GRBG", "GBRG": "GBRG"})

Pictures = Annotated[
    list[Path],
    typer.Argument(
        metavar="IN...",
        help="Pictures, .npy arrays, folders, or 'photos/**/*.jpg'; camera raw and HEIC with the extras raw and heif.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File, or folder for several. The name says the format; metadata are kept.",
        show_default="beside the input, in its format",
        metavar="OUT",
    ),
]
Crop = Annotated[str | None, typer.Option(help="Mend and write only this part, to try settings.", metavar="X,Y,W,H")]
Preview = Annotated[
    bool,
    typer.Option(
        "--preview",
        help="Only write NAME-preview.png: a part before and after, side by side; the most damaged part, or --crop.",
    ),
]
Filters = Annotated[
    str | None, typer.Option(help="A shipped dictionary or a model file.", show_default="shipped", metavar="NAME|MODEL")
]
Sigma = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        metavar="NUMBER",
        help="Deviation of the noise, 25 of 255 for instance.",
        show_default="estimated",
    ),
]
Reference = Annotated[
    Path | None, typer.Option(help="The undamaged picture (or a folder): prints PSNR.", metavar="FILE")
]
Compare = Annotated[
    Path | None, typer.Option(help="Also draw before and after (a folder for several).", metavar="FILE.png")
]


@checked
def _penalty(text: str) -> Any:
    """A penalty as the library takes it: a number, "auto" or a percentage."""
    try:
        return text if text == "auto" else f"{float(text[:-1]):g}%" if text.endswith("%") else positive(float(text))
    except ValueError:
        raise ValueError(f'{text!r} is not a number, a percentage such as "5%", or "auto"') from None


@checked
def _share(text: str) -> Any:
    """A percentage as a share of full scale, or "auto"."""
    try:
        value = 0.0 if text == "auto" else float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is neither auto nor a percentage from 0 to 100")
    return text if text == "auto" else value


@checked
def _motion(text: str) -> Any:
    """Kernel of ``9,30``: a motion of nine pixels at 30 degrees."""
    try:
        length, angle = (float(number) for number in text.split(","))
        return pt.motion_kernel(length, angle)
    except ValueError:
        raise ValueError(f"{text!r} is not LENGTH,ANGLE: write 9,30 for nine pixels at 30 degrees") from None


@checked
def _colour(text: str) -> str:
    from pointillist.retouch.marks import parse_colour

    parse_colour(text)
    return text


Penalty = Annotated[
    Any, typer.Option(parser=_penalty, help="Price of a code: more is smoother.", metavar="NUMBER|5%|auto")
]


def inpaint(
    paths: Pictures,
    output: Output = None,
    mask: Annotated[
        Path | None,
        typer.Option(help="An image (or a folder): white, or what is opaque in it, is missing.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            callback=_colour,
            help='Pixels of this colour are missing: magenta, "#f0f", white, ...',
            metavar="COLOUR",
        ),
    ] = None,
    find: Annotated[
        list[Damage] | None, typer.Option(metavar="dust|scratches|text", help="Look for such damage; may be repeated.")
    ] = None,
    sensitivity: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="SHARE", help="--find: 0 takes what is beyond doubt, 1 much else too."),
    ] = 0.5,
    tolerance: Annotated[
        Any,
        typer.Option(
            parser=_share, help="How far from the colour a mark may be; auto allows for JPEG.", metavar="%|auto"
        ),
    ] = "auto",
    fringe: Annotated[
        bool, typer.Option("--fringe/--no-fringe", help="Whether soft edges of marks are taken as missing too.")
    ] = True,
    grow: Annotated[int, typer.Option(min=0, max=100, help="Also so many pixels around.", metavar="N")] = 0,
    save_mask: Annotated[
        Path | None, typer.Option(help="Also write what is missing, in white (a folder for several).", metavar="FILE")
    ] = None,
    texture: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="How much texture from nearby: 0 is nearest to the truth, 1 looks like it.",
        ),
    ] = 0.0,
    method: Annotated[
        Method,
        typer.Option(
            metavar="auto|neighbours|codes",
            help="By the neighbourhood, by sparse codes alone, or by both where that is best.",
        ),
    ] = Method.auto,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: Crop = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fill in missing pixels; all others stay as they are, bit for bit.

    Without --mask, --key or --find these are: pixels that are fully transparent; else NaN (float TIFF or .npy); else those
    of the one saturated colour (magenta #ff00ff, green, red, cyan, blue or yellow) that marks anything, in JPEGs too.
    """
    given = locals()
    if sum(one is not None and one != [] for one in (mask, key, find)) > 1:
        raise typer.BadParameter("give one of --mask, --key and --find, not several")
    if sensitivity != 0.5 and not find:
        raise typer.BadParameter("--sensitivity is for damage that --find looks for")
    if (tolerance != "auto" or not fringe) and (mask is not None or find):
        raise typer.BadParameter("--tolerance and --no-fringe are for marks of a colour: leave out --mask and --find")
    import numpy as np

    from pointillist.cli.mending import Answer, Marks, Task, mend_files, read_mask
    from pointillist.retouch.damage import find_damage
    from pointillist.retouch.marks import find_marks, grey_beside, grown

    kinds = tuple(one.value for one in dict.fromkeys(find or []))

    def marked(photograph: pt.Photograph, job: Job) -> Marks:
        if job.mask is not None:
            missing, how = read_mask(job.mask), "masked"
            if not missing.any():
                log.warning("%s: --mask %s marks nothing, the picture stays as it is", job.source, job.mask)
        elif kinds:
            missing = find_damage(photograph.pixels, kinds, sensitivity=sensitivity, n_jobs=jobs)
            how = " and ".join(kinds)
            if not missing.any():
                log.warning("%s: no %s found, the picture stays as it is", job.source, " or ".join(kinds))
        elif key is not None:
            missing, how = find_marks(photograph.pixels, key, tolerance=tolerance, fringe=fringe), key
            if not missing.any():
                raise ValueError(f"{job.source} has no pixels of --key {key}")
        else:
            missing, how = _marked_by_itself(photograph, job.source, tolerance=tolerance, fringe=fringe)
        missing = grown(missing, grow)
        if missing.all():
            raise ValueError(f"{job.source}: every pixel is marked as missing, no pixel is left to fill in from")
        if job.save_mask is not None:
            pt.write_photograph(pt.Photograph(missing.astype(np.uint8) * np.uint8(255)), job.save_mask)
        return Marks(missing, how)

    def mend(photograph: pt.Photograph, marks: Marks | None, **settings: Any) -> Answer:
        assert marks is not None
        missing, alpha = marks.missing, photograph.alpha
        pixels = grey_beside(photograph.pixels, missing)
        before = pixels.copy()
        before[missing] = 0
        settings |= {"method": method.value, "texture": texture}
        mended, details = pt.inpaint(pixels, missing, **settings)
        if alpha is not None and marks.how == "transparent":
            alpha = np.where(missing, alpha.dtype.type(photograph.peak), alpha)
        return Answer(mended, details, f"{100 * np.mean(missing):.1f} % missing ({marks.how})", before, alpha)

    mend_files(given, Task("inpainted", mend, marked))


def _marked_by_itself(photograph: pt.Photograph, name: Path, **by_colour: Any) -> tuple[NDArray[Any], str]:
    """The missing pixels that a picture marks by itself, and by what; raises when it marks none."""
    import numpy as np

    from pointillist.retouch.marks import find_key, find_marks

    if photograph.alpha is not None and (photograph.alpha == 0).any():
        return photograph.alpha == 0, "transparent"
    if photograph.pixels.dtype.kind == "f":
        holes = ~np.isfinite(photograph.pixels)
        if holes.any():
            return holes if holes.ndim == 2 else holes.any(axis=-1), "NaN"
    key = find_key(photograph.pixels)
    if key is None:
        raise ValueError(
            f"{name} marks no pixels as missing: give --mask FILE, --key COLOUR or --find dust, or make them transparent "
            "or magenta (#ff00ff)"
        )
    return find_marks(photograph.pixels, key, **by_colour), key


def denoise(
    paths: Pictures,
    output: Output = None,
    noise: Annotated[
        Noise,
        typer.Option(help="gaussian; salt_pepper: pixels at either end of the range; outliers of any value; poisson."),
    ] = Noise.gaussian,
    sigma: Sigma = None,
    gain: Annotated[
        float, typer.Option(callback=positive, help="poisson: counts in one unit of the picture.", metavar="COUNTS")
    ] = 1.0,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: Crop = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Remove noise."""
    given = locals()
    if sigma is not None and noise is not Noise.gaussian:
        raise typer.BadParameter(f"--sigma is the strength of Gaussian noise, which --noise {noise.value} is not")
    if gain != 1.0 and noise is not Noise.poisson:
        raise typer.BadParameter(f"--gain is for counts: give --noise poisson, not {noise.value}")
    from pointillist.cli.mending import Answer, Task, mend_files

    def mend(photograph: pt.Photograph, marks: Marks | None, **settings: Any) -> Answer:
        mended, details = pt.denoise(photograph.pixels, sigma, noise=noise.value, gain=gain, **settings)
        level = "" if details.sigma is None else f", σ = {number(float(details.sigma))}"
        return Answer(mended, details, f"{noise.value.replace('_', ' and ')}{level}", photograph.pixels)

    mend_files(given, Task("denoised", mend))


def deblur(
    paths: Pictures,
    output: Output = None,
    psf: Annotated[
        Path | None, typer.Option(help="The blur: what it makes of a single white pixel.", metavar="FILE")
    ] = None,
    gaussian: Annotated[
        float | None,
        typer.Option(callback=positive, help="A Gaussian blur of this deviation in pixels.", metavar="SIGMA"),
    ] = None,
    motion: Annotated[
        Any, typer.Option(parser=_motion, help="A straight blur: pixels and degrees, 9,30.", metavar="LENGTH,ANGLE")
    ] = None,
    estimate: Annotated[
        Blurs | None, typer.Option(help="Find such a blur in the picture.", metavar="motion|gaussian")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Undo the blur even if it does not seem to fit.")] = False,
    sigma: Sigma = None,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: Crop = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Undo a blur that is given, or found in the picture.

    A blur that is not the picture's own makes ringing out of it; then nothing is written, and the command says why.
    """
    given = locals()
    if sum(one is not None for one in (psf, gaussian, motion, estimate)) != 1:
        raise ValueError(
            "give the blur by one of --psf FILE, --gaussian SIGMA and --motion LENGTH,ANGLE, or let it be found by "
            "--estimate motion or --estimate gaussian"
        )
    from pointillist.cli.mending import Answer, Task, mend_files
    from pointillist.reprs import sizes

    known, words = motion, "motion blur"
    if psf is not None:
        known, words = _read_kernel(psf), "psf blur"
    elif gaussian is not None:
        known, words = pt.gaussian_kernel(gaussian), "gaussian blur"

    def mend(photograph: pt.Photograph, marks: Marks | None, **settings: Any) -> Answer:
        kernel, name = (known, words) if estimate is None else _estimated(photograph.pixels, estimate.value, sigma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.BlurMisfitWarning)  # the sentence below says it in the command's words
            mended, details = pt.deblur(photograph.pixels, kernel, sigma=sigma, force=force, **settings)
        if details.misfit is not None:
            raise ValueError(
                f"the {name} does not seem to be this picture's own ({details.misfit}); nothing was written. "
                "--estimate motion or gaussian looks for the blur, --force undoes this one all the same"
            )
        return Answer(mended, details, f"{name} of {sizes(kernel.shape)}", photograph.pixels)

    mend_files(given, Task("deblurred", mend))


def _estimated(pixels: NDArray[Any], kind: str, sigma: float | None) -> tuple[NDArray[Any], str]:
    """The blur of that kind that a picture has, and what to call it."""
    found = pt.estimate_blur(pixels, kind, sigma=sigma)
    if not found.confidence > 0:
        raise ValueError(f"no {kind} blur was found: the picture seems to be sharp, or blurred in another way")
    if found.sigma is not None:
        return found.kernel, f"gaussian blur (--gaussian {found.sigma:.2f})"
    return found.kernel, f"motion blur (--motion {found.length:.1f},{found.angle:.0f})"


def _read_kernel(path: Path) -> NDArray[Any]:
    """A kernel of sum one from a grey image or a .npy file."""
    import numpy as np

    pixels = pt.read_photograph(path).pixels.astype(np.float64)
    if pixels.ndim == 3:
        pixels = pixels.mean(axis=-1)
    if not np.isfinite(pixels).all() or np.min(pixels) < 0 or pixels.sum() == 0:
        raise ValueError(f"--psf {path} is no blur: its values must be finite, not negative, and not all zero")
    return pixels / pixels.sum()


def super_resolve(
    paths: Pictures,
    output: Output = None,
    factor: Annotated[int, typer.Option(min=2, max=8, metavar="N", help="How many times larger.")] = 2,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: Crop = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Enlarge pictures and sharpen what was lost in between."""
    given = locals()
    from pointillist.cli.mending import Answer, Task, mend_files

    def repeated(array: NDArray[Any]) -> NDArray[Any]:
        return array.repeat(factor, axis=0).repeat(factor, axis=1)

    def mend(photograph: pt.Photograph, marks: Marks | None, **settings: Any) -> Answer:
        mended, details = pt.super_resolve(photograph.pixels, factor, **settings)
        alpha = None if photograph.alpha is None else repeated(photograph.alpha)
        return Answer(mended, details, f"×{factor}", repeated(photograph.pixels), alpha)

    mend_files(given, Task("enlarged", mend, factor=factor))


def demosaic(
    paths: Pictures,
    output: Output = None,
    pattern: Annotated[Pattern, typer.Option(help="Colours of the upper left 2×2 pixels, row by row.")] = Pattern.RGGB,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: Crop = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Colour pictures from the raw mosaic of a sensor."""
    given = locals()
    from pointillist.cli.mending import Answer, Task, mend_files

    def mend(photograph: pt.Photograph, marks: Marks | None, **settings: Any) -> Answer:
        if photograph.pixels.ndim != 2:
            raise ValueError("the picture is in colour already: a mosaic is grey")
        mended, details = pt.demosaic(photograph.pixels, pattern.value, **settings)
        return Answer(mended, details, pattern.value, photograph.pixels)

    mend_files(given, Task("coloured", mend))


COMMANDS = (inpaint, denoise, deblur, super_resolve, demosaic)


def app(
    picture: Annotated[
        Path | None, typer.Argument(metavar="[PICTURE]", help="A photograph to begin with.", show_default=False)
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Where to listen.", show_default="a free one")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, but do not open it.")] = False,
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
    except KeyboardInterrupt as error:
        ended = getattr(error, "number", signal.SIGINT)
        tell("stopped; nothing was left behind")
        if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
            # Work that did not stop when it was told to: nobody will ask for its answer.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_code(ended))
        raise Stopped(number=ended) from None
