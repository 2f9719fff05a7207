"""The command that scores anomalies, as typer sees it; what it does lies in `anomalies`, imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from pointillist.cli.options import (
    Channels,
    Device,
    Failing,
    Folder,
    Jobs,
    OnError,
    Paths,
    Quiet,
    Recursive,
    Seed,
    Verbose,
)


def _false_alarms(value: float) -> float:
    if not 0 < value < 0.5:
        raise typer.BadParameter(f"{value} is not in (0, 0.5); 0.01 lets one normal sample in a hundred pass")
    return value


def anomalies(
    paths: Paths,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m", metavar="FILE.safetensors", help="A model file that learn wrote.", show_default=False
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Instead of a model: learn filters of N samples from these series.",
            show_default=False,
        ),
    ] = None,
    channels: Channels = None,
    nonnegative: Annotated[
        bool | None,
        typer.Option(
            "--nonnegative/--signed",
            help="With --size: whether a filter is there or not, or may also be upside down.",
            show_default="nonnegative",
        ),
    ] = None,
    output: Folder = Path("anomalies"),
    false_alarms: Annotated[
        float,
        typer.Option(callback=_false_alarms, metavar="SHARE", help="Normal samples that may lie above the threshold."),
    ] = 0.01,
    seed: Seed = 0,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say how strange every sample of series or images is, list what stands out, and draw it.

    The folder gets the scores as .npy files, events.csv and the page anomalies.html.
    """
    from pointillist.cli.anomalies import AnomaliesRequest, run

    request = AnomaliesRequest(
        paths=paths,
        model=model,
        size=size,
        output=output,
        false_alarms=false_alarms,
        seed=seed,
        jobs=jobs,
        device=device,
        on_error=on_error.value,
        overwrite=overwrite,
        recursive=recursive,
        layout=None if channels is None else channels.value,
        nonnegative=nonnegative,
    )
    run(request, as_json=as_json, quiet=quiet, verbose=verbose)
