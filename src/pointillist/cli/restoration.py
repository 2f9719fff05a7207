"""The commands that mend pictures, as typer sees them; `restore` does what they say."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pointillist.cli.options import Device, Failing, Jobs, OnError, Quiet, Verbose


class Noise(StrEnum):
    gaussian = "gaussian"
    salt_pepper = "salt_pepper"
    outliers = "outliers"
    poisson = "poisson"


class Pattern(StrEnum):
    RGGB = "RGGB"
    BGGR = "BGGR"
    GRBG = "GRBG"
    GBRG = "GBRG"


def _positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive")
    return value


def _part(value: float) -> float:
    if not 0 <= value <= 100:  # not a number is neither
        raise typer.BadParameter(f"{value} does not lie between 0 and 100")
    return value


def _level(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive; it is a deviation in the picture's own units")
    return value


Pictures = Annotated[
    list[Path],
    typer.Argument(
        metavar="IN...",
        help="Pictures, .npy arrays, or folders of them; camera raw and HEIC with the extras raw and heif.",
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
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")]
CropOption = Annotated[
    str | None,
    typer.Option("--crop", help="Mend and write only this part, to try settings.", metavar="X,Y,W,H"),
]
Preview = Annotated[
    bool,
    typer.Option(
        "--preview",
        help="Only write NAME-preview.png: a part before and after, side by side; the most damaged part, or --crop.",
    ),
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


def _mend(
    task: str,
    options: dict[str, Any],
    paths: Pictures,
    output: Output = None,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: CropOption = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    device: Device = "cpu",
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    from pointillist.cli.jobs import Request
    from pointillist.cli.restore import run

    request = Request(
        task=task,
        paths=paths,
        output=output,
        penalty=penalty,
        filters=filters,
        reference=reference,
        compare=compare,
        jobs=jobs,
        device=device,
        on_error=on_error.value,
        options=options,
        overwrite=overwrite,
        crop=crop,
        preview=preview,
    )
    run(request, quiet=quiet, verbose=verbose)


def _command(own: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """A command with the options that `own` checks and returns, between those that all commands share."""
    particular = inspect.signature(own).parameters
    _, _, paths, output, *shared = inspect.signature(_mend).parameters.values()

    def command(**given: Any) -> None:
        options = own(**{name: given.pop(name) for name in particular})
        _mend(own.__name__, options, **given)

    command.__name__, command.__doc__ = own.__name__, own.__doc__
    parameters = [paths, output, *particular.values(), *shared]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@_command
def inpaint(
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask", help="An image (or a folder): white, or what is opaque in it, is missing.", metavar="FILE"
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help='Pixels of this colour are missing: "#ff00ff".', metavar="COLOUR")
    ] = None,
    fuzz: Annotated[
        float,
        typer.Option(
            "--fuzz", callback=_part, help="How near to the colour: 50 for soft brushes and text.", metavar="%"
        ),
    ] = 0.0,
    grow: Annotated[int, typer.Option("--grow", min=0, max=100, help="Also so many pixels around.", metavar="N")] = 0,
) -> dict[str, Any]:
    """Fill in missing pixels.

    Without --mask or --key these are: pixels that are fully transparent; else NaN (float TIFF or .npy); else those
    of the one pure colour (magenta #ff00ff, green, red, cyan, blue or yellow) that more than 0.1 % of the pixels have.
    """
    if mask is not None and key is not None:
        raise typer.BadParameter("give either --mask or --key, not both")
    if mask is not None and fuzz:
        raise typer.BadParameter("--fuzz is about a colour, which --mask is not")
    return {"mask": mask, "key": key, "fuzz": fuzz / 100, "grow": grow}


@_command
def denoise(
    noise: Annotated[
        Noise,
        typer.Option(help="gaussian; salt_pepper: pixels at either end of the range; outliers of any value; poisson."),
    ] = Noise.gaussian,
    sigma: Sigma = None,
    gain: Annotated[
        float, typer.Option(callback=_positive, help="poisson: counts in one unit of the picture.", metavar="COUNTS")
    ] = 1.0,
) -> dict[str, Any]:
    """Remove noise."""
    if sigma is not None and noise is not Noise.gaussian:
        raise typer.BadParameter(f"--sigma is the strength of Gaussian noise, which --noise {noise.value} is not")
    return {"noise": noise.value, "sigma": sigma, "gain": gain}


@_command
def deblur(
    psf: Annotated[
        Path | None, typer.Option("--psf", help="The blur: what it makes of a single white pixel.", metavar="FILE")
    ] = None,
    gaussian: Annotated[
        float | None,
        typer.Option(callback=_positive, help="A Gaussian blur of this deviation in pixels.", metavar="SIGMA"),
    ] = None,
    motion: Annotated[
        str | None, typer.Option(help="A straight blur: pixels and degrees, 9,30.", metavar="LENGTH,ANGLE")
    ] = None,
    sigma: Sigma = None,
) -> dict[str, Any]:
    """Undo a known blur."""
    return {"psf": psf, "gaussian": gaussian, "motion": motion, "sigma": sigma}


@_command
def superres(
    factor: Annotated[int, typer.Option(min=2, max=8, help="How many times larger.")] = 2,
) -> dict[str, Any]:
    """Enlarge pictures and sharpen what was lost in between."""
    return {"factor": factor}


@_command
def demosaic(
    pattern: Annotated[Pattern, typer.Option(help="Colours of the upper left 2×2 pixels, row by row.")] = Pattern.RGGB,
) -> dict[str, Any]:
    """Colour pictures from the raw mosaic of a sensor."""
    return {"pattern": pattern.value}


COMMANDS = (inpaint, denoise, deblur, superres, demosaic)
