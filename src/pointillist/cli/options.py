"""Options that several commands share, and how their values are checked."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class OnError(StrEnum):
    skip = "skip"
    stop = "raise"


class Layout(StrEnum):
    first = "first"
    last = "last"


def positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive; 1.0 is a fair start for contrast-normalised images")
    return value


def sampled(value: str) -> Any:
    """A share of all codes as a number, or with a kind after a comma as `Draws`."""
    from pointillist.sampling import Draws

    share, comma, kind = value.partition(",")
    try:
        draws = Draws(float(share), kind) if comma else Draws(float(share))
    except ValueError as error:
        raise typer.BadParameter(f"{value}: {error}; 0.1 solves for a tenth of the codes in every step") from None
    return draws if comma else draws.share


def _jobs(value: int) -> int:
    if value == 0:
        raise typer.BadParameter(f"{value} is not a number of threads; -1 uses every core, -2 all but one")
    return value


def _device(value: str) -> str:
    if value == "cpu":  # what the others need takes time to import
        return value
    from pointillist.solvers.device import check_device

    try:
        check_device(value)
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(str(error)) from error
    return value


def signal_axes(ndim: int | None, channels: Layout | None, colour: bool) -> tuple[int, str | None]:
    """Axes of a signal but for channels, and where its channels lie, None where it has none."""
    if not colour:
        return (2 if channels is None else 1) if ndim is None else ndim, None if channels is None else channels.value
    if channels is not None:
        raise typer.BadParameter("--colour takes channels of pictures from where they lie, last: leave --channels out")
    if ndim not in (None, 2):
        raise typer.BadParameter(f"--colour is for pictures, which have two axes: leave --ndim {ndim} out")
    return 2, Layout.last.value


Channels = Annotated[
    Layout | None,
    typer.Option(
        "--channels",
        metavar="first|last",
        help="Arrays are (channels, samples), or (samples, channels), as tables are.",
        show_default="no channels",
    ),
]
Colour = Annotated[
    bool,
    typer.Option("--colour", help="Pictures in colour: filters of red, green and blue. Arrays are (rows, columns, 3)."),
]
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATHS...",
        help="Image files, .npy arrays, TIFF stacks, STORE.zarr, FILE.h5::dataset, tables of series (.csv, .tsv), folders, "
        "or 'photos/**/*.jpg'.",
        show_default=False,
    ),
]
Recursive = Annotated[
    bool | None,
    typer.Option(
        "--recursive/--no-recursive",
        help="Whether files in subfolders of folders are read too.",
        show_default="no, but says how many there are",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that learn wrote.", show_default=False)]
Solver = Annotated[
    str | None, typer.Option(metavar="cd|admm", help="How codes are solved for.", show_default="the fastest")
]
MaxMemory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Stay within 2G, 500M, ..., or refuse.", show_default="no limit")
]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Say what the run will need, and do nothing.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the last run put its work away.")]
Folder = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A folder, made if it is missing.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Decides all that is random.")]
Jobs = Annotated[int, typer.Option("--jobs", callback=_jobs, help="Threads.", show_default="all cores", metavar="N")]
Device = Annotated[
    str, typer.Option("--device", callback=_device, help="Where codes are solved for.", metavar="cpu|cuda|cuda:N")
]
Failing = Annotated[
    OnError, typer.Option("--on-error", help="Whether what cannot be read or used stops the command or is skipped.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print what the package logs.")]
