"""Options that several commands share, each declared once, and the checks of their values.

Nothing slow is imported here: help appears at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

Layout = Literal["first", "last"]


def checked(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A check or a parser whose errors name the option; an option that is not given is not checked."""

    def convert(value: Any) -> Any:
        try:
            return None if value is None else check(value)
        except (ValueError, RuntimeError) as error:
            raise typer.BadParameter(str(error)) from error

    return convert


def number_that(holds: Callable[[float], bool], words: str) -> Callable[[Any], Any]:
    """The check that a property of a number `holds`; `words` follow the number where it does not."""

    def check(value: float) -> float:
        if not holds(value):
            raise ValueError(f"{value} {words}")
        return value

    return checked(check)


positive = number_that(lambda value: 0 < value < inf, "is not positive")


@checked
def size_of(text: str) -> Any:
    """Filter size: ``11``, ``7x11`` for an oblong filter, ``5,11,21`` for several sizes."""
    if re.fullmatch(r"[1-9]\d*([x,][1-9]\d*)*", text.lower()) is None:
        raise ValueError(f"{text!r} is not a size; write 11, 7x11, or 5,11,21 for several sizes")
    sizes = [tuple(int(axis) for axis in one.split("x")) for one in text.lower().split(",")]
    plain = [size[0] if len(size) == 1 else size for size in sizes]
    return plain[0] if len(plain) == 1 else plain


@checked
def bytes_of(text: str) -> int:
    """Bytes from ``2G``, ``1.5 GB``, ``500MB`` or a plain number; units are decimal, ``GiB`` and the like binary."""
    found = re.fullmatch(r"(\d*\.?\d+)\s*([kmgt]?)(i?)b?", text.strip().lower())
    amount = float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " ") if found else 0
    if amount < 1:
        raise ValueError(f"{text!r} is not a size such as 2G or 500MB")
    return int(amount)


@checked
def _device(value: str) -> str:
    if value != "cpu":  # what the others need takes time to import
        from pointillist.cuda.device import check_device

        check_device(value)
    return value


_jobs = number_that(lambda value: value != 0, "is not a number of threads; -1 uses every core, -2 all but one")


Paths = Annotated[
    list[Path],
    Argument(
        metavar="PATHS...",
        help="Image files, .npy arrays, TIFF stacks, STORE.zarr, FILE.h5::dataset, tables of series (.csv, .tsv), folders, "
        "or 'photos/**/*.jpg'.",
        show_default=False,
    ),
]
Model = Annotated[Path, Argument(metavar="MODEL", help="A model file that learn wrote.", show_default=False)]
Channels = Annotated[
    Layout | None,
    Option(
        help="Arrays are (channels, samples), or (samples, channels), as tables are.",
        show_default="no channels",
    ),
]
Colour = Annotated[
    bool,
    Option("--colour", help="Pictures in colour: filters of red, green and blue. Arrays are (rows, columns, 3)."),
]
Recursive = Annotated[
    bool | None,
    Option(
        "--recursive/--no-recursive",
        help="Whether files in subfolders of folders are read too.",
        show_default="no, but says how many there are",
    ),
]
Solver = Annotated[Literal["cd", "admm"] | None, Option(help="How codes are solved for.", show_default="the fastest")]
MaxMemory = Annotated[
    Any,
    Option(parser=bytes_of, metavar="SIZE", help="End where more is taken: 2G, 500M, ...", show_default="no limit"),
]
OnlyPlan = Annotated[bool, Option("--plan", help="Take two real steps, say what the run will need, and write nothing.")]
CheckpointEvery = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="Put the work away: every 60s, 5m, 100 steps or signals.",
        show_default="never",
    ),
]
Resume = Annotated[bool, Option("--resume", help="Go on where the last run put its work away.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace files that exist already.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
Folder = Annotated[Path, Option("--output", "-o", metavar="DIR", help="A folder, made if it is missing.")]
Seed = Annotated[int, Option(min=0, metavar="N", help="Decides all that is random.")]
Jobs = Annotated[int, Option(callback=_jobs, help="Threads.", show_default="all cores", metavar="N")]
Device = Annotated[str, Option(callback=_device, help="Where codes are solved for.", metavar="cpu|cuda|cuda:N")]
Failing = Annotated[
    Literal["skip", "raise"],
    Option("--on-error", help="Whether what cannot be read or used stops the command or is skipped."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print what the package logs.")]
