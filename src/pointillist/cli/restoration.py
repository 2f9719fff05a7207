"""The commands that mend pictures, as typer sees them; `restore` does what they say."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pointillist.cli.options import Failing, Jobs, OnError, Quiet, Verbose


class Noise(StrEnum):
    gaussian = "gaussian"
    salt_pepper = "salt_pepper"
    poisson = "poisson"


def _level(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive; it is a deviation in the picture's own units")
    return value


Pictures = Annotated[
    list[Path],
    typer.Argument(metavar="IN...", help="Pictures, .npy arrays, or folders of them.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File, or folder for several.", show_default="beside the input", metavar="OUT"),
]
Penalty = Annotated[str, typer.Option("--penalty", help="Price of a code: more is smoother.", metavar="NUMBER|5%|auto")]
Filters = Annotated[
    str | None,
    typer.Option(
        "--filters", help="A shipped dictionary or a model file.", show_default="shipped", metavar="NAME|MODEL"
    ),
]
Sigma = Annotated[
    float | None,
    typer.Option(callback=_level, help="Deviation of the noise, 25 of 255 for instance.", show_default="estimated"),
]
Reference = Annotated[
    Path | None,
    typer.Option("--reference", help="The undamaged picture (or a folder): prints PSNR.", metavar="FILE"),
]
Compare = Annotated[
    Path | None,
    typer.Option("--compare", help="Also draw before and after (a folder for several).", metavar="FILE.png"),
]


def _run(
    task: str,
    paths: list[Path],
    output: Path | None,
    penalty: str,
    filters: str | None,
    reference: Path | None,
    compare: Path | None,
    jobs: int | None,
    on_error: OnError,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> None:
    from pointillist.cli.restore import Request, run

    request = Request(task, paths, output, penalty, filters, reference, compare, jobs, on_error.value, options)
    run(request, quiet=quiet, verbose=verbose)


def inpaint(
    paths: Pictures,
    output: Output = None,
    mask: Annotated[
        Path | None, typer.Option("--mask", help="An image (or a folder): white is missing.", metavar="FILE")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help='Pixels of this colour are missing: "#ff00ff".', metavar="COLOUR")
    ] = None,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    jobs: Jobs = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fill in missing pixels.

    Without --mask or --key these are: pixels that are fully transparent; else NaN (float TIFF or .npy); else those
    of the one pure colour (magenta #ff00ff, green, red, cyan, blue or yellow) that more than 0.1 % of the pixels have.
    """
    if mask is not None and key is not None:
        raise typer.BadParameter("give either --mask or --key, not both")
    common = (paths, output, penalty, filters, reference, compare, jobs, on_error, quiet, verbose)
    _run("inpaint", *common, mask=mask, key=key)


def denoise(
    paths: Pictures,
    output: Output = None,
    sigma: Sigma = None,
    noise: Annotated[Noise, typer.Option(help="What kind it is.")] = Noise.gaussian,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    jobs: Jobs = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Remove noise."""
    common = (paths, output, penalty, filters, reference, compare, jobs, on_error, quiet, verbose)
    _run("denoise", *common, sigma=sigma, noise=noise.value)


def deblur(
    paths: Pictures,
    output: Output = None,
    psf: Annotated[
        Path | None, typer.Option("--psf", help="The blur: what it makes of a single white pixel.", metavar="FILE")
    ] = None,
    gaussian: Annotated[
        float | None,
        typer.Option(callback=_level, help="A Gaussian blur of this deviation in pixels.", metavar="SIGMA"),
    ] = None,
    motion: Annotated[
        str | None, typer.Option(help="A straight blur: pixels and degrees, 9,30.", metavar="LENGTH,ANGLE")
    ] = None,
    sigma: Sigma = None,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    jobs: Jobs = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Undo a known blur."""
    common = (paths, output, penalty, filters, reference, compare, jobs, on_error, quiet, verbose)
    _run("deblur", *common, psf=psf, gaussian=gaussian, motion=motion, sigma=sigma)


def superres(
    paths: Pictures,
    output: Output = None,
    factor: Annotated[int, typer.Option(min=2, max=8, help="How many times larger.")] = 2,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    jobs: Jobs = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Enlarge pictures and sharpen what was lost in between."""
    common = (paths, output, penalty, filters, reference, compare, jobs, on_error, quiet, verbose)
    _run("superres", *common, factor=factor)


COMMANDS = (inpaint, denoise, deblur, superres)
