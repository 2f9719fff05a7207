"""The commands that mend pictures, as typer sees them; `mending` does what they say."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pointillist.cli.options import Device, Failing, Jobs, OnError, Quiet, Recursive, Verbose

Noise = StrEnum("Noise", "gaussian salt_pepper outliers poisson")
Damage = StrEnum("Damage", "dust scratches text")
Method = StrEnum("Method", "auto neighbours codes")
Blurs = StrEnum("Blurs", "motion gaussian")
Pattern = StrEnum("Pattern", {"RGGB": "RGGB", "BGGR": "BGGR", "GRBG": "GRBG", "GBRG": "GBRG"})


def _positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive")
    return value


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
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")]
CropOption = Annotated[
    str | None, typer.Option(help="Mend and write only this part, to try settings.", metavar="X,Y,W,H")
]
Preview = Annotated[
    bool,
    typer.Option(
        "--preview",
        help="Only write NAME-preview.png: a part before and after, side by side; the most damaged part, or --crop.",
    ),
]
Penalty = Annotated[str, typer.Option(help="Price of a code: more is smoother.", metavar="NUMBER|5%|auto")]
Filters = Annotated[
    str | None, typer.Option(help="A shipped dictionary or a model file.", show_default="shipped", metavar="NAME|MODEL")
]
Sigma = Annotated[
    float | None,
    typer.Option(
        callback=_positive,
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


def _shared(
    paths: Pictures,
    output: Output = None,
    penalty: Penalty = "auto",
    filters: Filters = None,
    reference: Reference = None,
    compare: Compare = None,
    crop: CropOption = None,
    preview: Preview = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The options that all these commands share; only the signature is used."""


def _command(own: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """A command with the options that `own` checks and returns, between those that all commands share."""
    particular = inspect.signature(own).parameters
    paths, output, *shared = inspect.signature(_shared).parameters.values()

    def command(*, quiet: bool, verbose: bool, **given: Any) -> None:
        from pointillist.cli.jobs import RestoreRequest
        from pointillist.cli.mending import run

        options = own(**{name: given.pop(name) for name in particular})
        run(RestoreRequest(task=own.__name__, options=options, **given), quiet=quiet, verbose=verbose)

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
        typer.Option(help="An image (or a folder): white, or what is opaque in it, is missing.", metavar="FILE"),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help='Pixels of this colour are missing: magenta, "#f0f", white, ...', metavar="COLOUR"),
    ] = None,
    find: Annotated[
        list[Damage] | None, typer.Option(metavar="dust|scratches|text", help="Look for such damage; may be repeated.")
    ] = None,
    sensitivity: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="SHARE", help="--find: 0 takes what is beyond doubt, 1 much else too."),
    ] = 0.5,
    tolerance: Annotated[
        str, typer.Option(help="How far from the colour a mark may be; auto allows for JPEG.", metavar="%|auto")
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
) -> dict[str, Any]:
    """Fill in missing pixels; all others stay as they are, bit for bit.

    Without --mask, --key or --find these are: pixels that are fully transparent; else NaN (float TIFF or .npy); else those
    of the one saturated colour (magenta #ff00ff, green, red, cyan, blue or yellow) that marks anything, in JPEGs too.
    """
    if sum(one is not None and one != [] for one in (mask, key, find)) > 1:
        raise typer.BadParameter("give one of --mask, --key and --find, not several")
    if sensitivity != 0.5 and not find:
        raise typer.BadParameter("--sensitivity is for damage that --find looks for")
    if (tolerance != "auto" or not fringe) and (mask is not None or find):
        raise typer.BadParameter("--tolerance and --no-fringe are for marks of a colour: leave out --mask and --find")
    return {
        "mask": mask,
        "key": key,
        "find": tuple(dict.fromkeys(kind.value for kind in find or [])),
        "sensitivity": sensitivity,
        "tolerance": _share(tolerance),
        "fringe": fringe,
        "grow": grow,
        "save_mask": save_mask,
        "texture": texture,
        "method": method.value,
    }


def _share(text: str) -> float | str:
    """A percentage as a share of full scale, or "auto"."""
    try:
        value = 0.0 if text == "auto" else float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"--tolerance {text!r} is neither auto nor a percentage from 0 to 100")
    return text if text == "auto" else value


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
    if gain != 1.0 and noise is not Noise.poisson:
        raise typer.BadParameter(f"--gain is for counts: give --noise poisson, not {noise.value}")
    return {"noise": noise.value, "sigma": sigma, "gain": gain}


@_command
def deblur(
    psf: Annotated[
        Path | None, typer.Option(help="The blur: what it makes of a single white pixel.", metavar="FILE")
    ] = None,
    gaussian: Annotated[
        float | None,
        typer.Option(callback=_positive, help="A Gaussian blur of this deviation in pixels.", metavar="SIGMA"),
    ] = None,
    motion: Annotated[
        str | None, typer.Option(help="A straight blur: pixels and degrees, 9,30.", metavar="LENGTH,ANGLE")
    ] = None,
    estimate: Annotated[
        Blurs | None, typer.Option(help="Find such a blur in the picture.", metavar="motion|gaussian")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Undo the blur even if it does not seem to fit.")] = False,
    sigma: Sigma = None,
) -> dict[str, Any]:
    """Undo a blur that is given, or found in the picture.

    A blur that is not the picture's own makes ringing out of it; then nothing is written, and the command says why.
    """
    kind = None if estimate is None else estimate.value
    return {"psf": psf, "gaussian": gaussian, "motion": motion, "estimate": kind, "force": force, "sigma": sigma}


@_command
def super_resolve(
    factor: Annotated[int, typer.Option(min=2, max=8, metavar="N", help="How many times larger.")] = 2,
) -> dict[str, Any]:
    """Enlarge pictures and sharpen what was lost in between."""
    return {"factor": factor}


@_command
def demosaic(
    pattern: Annotated[Pattern, typer.Option(help="Colours of the upper left 2×2 pixels, row by row.")] = Pattern.RGGB,
) -> dict[str, Any]:
    """Colour pictures from the raw mosaic of a sensor."""
    return {"pattern": pattern.value}


COMMANDS = (inpaint, denoise, deblur, super_resolve, demosaic)
