"""The command that codes signals, as typer sees it; what it does lies in `encode`, imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from pointillist.cli.options import (
    Channels,
    Device,
    Failing,
    Jobs,
    MaxMemory,
    Model,
    OnError,
    OnlyPlan,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Solver,
    Verbose,
    positive,
)


def _tolerance(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value} must lie between 0 and 1; 0.001 is the default")
    return value


def _rate(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not positive; 1000 says that a second has a thousand samples")
    return value


def encode(
    model: Model,
    paths: Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The codes file to write.", metavar="FILE.safetensors")
    ] = Path("codes.safetensors"),
    penalty: Annotated[
        float | None,
        typer.Option(callback=positive, metavar="NUMBER", help="Price of a code.", show_default="the model's"),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(callback=_tolerance, metavar="NUMBER", help="Relative gap to reach.", show_default="the model's"),
    ] = None,
    reconstruction: Annotated[
        Path | None, typer.Option(help="Also write what the codes make of each image, as PNG.", metavar="DIR")
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Also write every code as a line: where, which filter. - is standard output.",
            metavar="FILE.csv",
            allow_dash=True,
        ),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(
            callback=_rate,
            metavar="HZ",
            help="Samples in a second, for --events.",
            show_default="as the times in a table say, or 1",
        ),
    ] = None,
    channels: Channels = None,
    solver: Solver = None,
    jobs: Jobs = -1,
    device: Device = "cpu",
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Put codes away: every 60s, 5m, or 100 signals.", show_default="never"),
    ] = None,
    resume: Resume = False,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Also write objective, gap, status, codes and seconds of every signal. - is standard output.",
            metavar="FILE.csv",
            allow_dash=True,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write signals as sparse codes of a model's filters, prepared as the model's training signals were.

    With --checkpoint-every or --resume a run that was ended goes on where it stopped, by the same command and --resume.
    """
    from pointillist.cli.encode import run
    from pointillist.cli.encode_request import EncodeRequest
    from pointillist.cli.learning_request import Survival

    request = EncodeRequest(
        model=model,
        paths=paths,
        output=output,
        settings={"penalty": penalty, "tol": tol, "solver": solver, "n_jobs": jobs, "device": device},
        on_error=on_error.value,
        reconstruction=reconstruction,
        layout=None if channels is None else channels.value,
        events=events,
        sampling_rate=sampling_rate,
        recursive=recursive,
        only_plan=plan,
        max_memory=max_memory,
        survival=Survival(checkpoint_every, resume),
        table=table,
        as_json=as_json,
    )
    run(request, quiet=quiet, verbose=verbose)
