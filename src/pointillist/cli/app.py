"""The commands and their options, as typer sees them; what they do lies in the modules that they import when called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pointillist.cli import coding, judging, restoration
from pointillist.cli.helping import PlainCommand, PlainGroup
from pointillist.cli.options import (
    Channels,
    Colour,
    Device,
    Failing,
    Folder,
    Jobs,
    MaxMemory,
    Model,
    OnError,
    OnlyPlan,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Seed,
    Solver,
    Verbose,
    positive,
    sampled,
    signal_axes,
)

app = typer.Typer(
    name="pointillist",
    cls=PlainGroup,
    help="Learn small filters from images, write any image as a few sparse points of them, and mend pictures.",
    epilog="Start with: pointillist demo --output demo-output",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Mode = StrEnum("Mode", "online batch")
Init = StrEnum("Init", "random patches")
Normalise = StrEnum("Normalise", "contrast none")
Boundary = StrEnum("Boundary", [(name, name) for name in ("valid", "same", "full", "circular")])  # type: ignore[misc]
_SAME = Boundary("same")


def _forgetting(value: float | None) -> float | None:
    if value is not None and not 1 <= value < float("inf"):
        raise typer.BadParameter(f"{value} must be at least 1; 1 averages over all signals, 2 forgets faster")
    return value


def _size(text: str) -> Any:
    """Read a filter size: ``11``, ``7x11`` for an oblong filter, ``5,11,21`` for several sizes."""
    try:
        sizes = [tuple(int(axis) for axis in one.lower().split("x")) for one in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or any(axis < 1 for size in sizes for axis in size):
        raise typer.BadParameter(f"{text!r} is not a size; write 11, 7x11, or 5,11,21 for several sizes")
    plain = [size[0] if len(size) == 1 else size for size in sizes]
    return plain[0] if len(plain) == 1 else plain


def _sides(size: Any, axes: int) -> Any:
    """A size in so many dimensions; one that says its sides, or that has several sizes, stays as it is."""
    return (size,) * axes if isinstance(size, int) else size


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pointillist {version('pointillist')}")
        raise typer.Exit


Mosaic = Annotated[Path | None, typer.Option(help="Also draw the filters.", metavar="FILE.png")]


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from; works anywhere.")] = False,
) -> None:
    pass


@app.command(cls=PlainCommand)
def learn(
    paths: Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", metavar="FILE.safetensors")
    ] = Path("filters.safetensors"),
    filters: Annotated[int, typer.Option(min=1, metavar="N", help="Number of filters.")] = 100,
    size: Annotated[
        Any, typer.Option(parser=_size, metavar="SIZE", help="11, 7x11, or 5,11,21 for several sizes.")
    ] = "11",
    penalty: Annotated[
        float, typer.Option(callback=positive, metavar="NUMBER", help="Price of a code: more is sparser.")
    ] = 1.0,
    sampling: Annotated[
        str,
        typer.Option(
            callback=sampled,
            metavar="SHARE[,KIND]",
            help="Fraction of codes solved for in a step; KIND says which are drawn together: bundles (the default), codes, "
            "positions, stretches or cells.",
        ),
    ] = "1",
    mode: Annotated[Mode, typer.Option(help="A few signals in each step, or all of them.")] = Mode.online,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="online: passes over the signals.", show_default="enough for 60 steps"),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="batch: iterations over all signals.", show_default="12")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="online: signals in a step.", show_default="1")
    ] = None,
    forgetting: Annotated[
        float | None, typer.Option(callback=_forgetting, metavar="NUMBER", help="online: 1 or more.", show_default="4")
    ] = None,
    seed: Seed = 0,
    solver: Solver = None,
    boundary: Annotated[Boundary, typer.Option(help="Where codes may sit at the borders.")] = _SAME,
    init: Annotated[Init, typer.Option(help="The first filters.")] = Init.random,
    normalise: Annotated[
        Normalise | None,
        typer.Option(
            help="Preparation of the signals, recorded in the model.",
            show_default="contrast; none for recordings with channels",
        ),
    ] = None,
    ndim: Annotated[
        int | None,
        typer.Option(min=1, max=3, metavar="N", help="Axes but for channels.", show_default="2; 1 with --channels"),
    ] = None,
    channels: Channels = None,
    colour: Colour = False,
    rank: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With channels: rank of a filter.", show_default="any")
    ] = None,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="Codes without signs: a filter is there or not.")
    ] = False,
    robust: Annotated[
        bool, typer.Option("--robust", help="Leave windows out of a step whose error is an outlier.")
    ] = False,
    crops: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Learn from so many random crops in a pass.", show_default="whole signals"
        ),
    ] = None,
    crop_size: Annotated[
        Any, typer.Option(parser=_size, metavar="SIZE", help="Size of a crop: 64, or 64x48.", show_default="100")
    ] = None,
    validation: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Held-out files or folders to follow; may be repeated.")
    ] = None,
    jobs: Jobs = -1,
    device: Device = "cpu",
    mosaic: Mosaic = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page about the run.", metavar="FILE.html")] = None,
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Put the run's state away: 60s, 5m, or 100 steps.", show_default="never"),
    ] = None,
    resume: Resume = False,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Encode on a Dask cluster: tcp://host:8786.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Encode in so many processes of this machine.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="A line of JSON for every step.", metavar="FILE.jsonl")] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="TensorBoard events.", metavar="DIR")] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn filters from signals and write a model file.

    Ctrl-C finishes the current step and saves what was learned until then; a second one aborts.
    """
    from pointillist.cli.inputs import Wanted
    from pointillist.cli.learn import run
    from pointillist.cli.learning_request import LearnRequest, Survival

    if crop_size is not None and crops is None:
        raise typer.BadParameter("--crop-size is for random crops: say how many with --crops")
    side = 100 if crop_size is None else crop_size
    axes, layout = signal_axes(ndim, channels, colour)
    usual = "none" if layout is not None and axes == 1 else "contrast"
    wanted = Wanted(
        paths=paths,
        ndim=axes,
        normalise=usual if normalise is None else normalise.value,
        on_error=on_error.value,
        crops=crops,
        crop_size=_sides(side, axes),
        seed=seed,
        layout=layout,
        recursive=recursive,
    )
    run(
        LearnRequest(
            wanted=wanted,
            output=output,
            mode=mode.value,
            parameters={
                "n_filters": filters,
                "filter_size": [_sides(one, axes) for one in size] if isinstance(size, list) else _sides(size, axes),
                "penalty": penalty,
                "sampling": sampling,
                "boundary": boundary.value,
                "channels": layout is not None,
                "nonnegative": nonnegative,
                "random_state": seed,
                "n_jobs": jobs,
                "device": device,
            },
            optional={
                "solver": solver,
                "n_epochs": epochs,
                "max_iter": iterations,
                "batch_size": batch,
                "forgetting": forgetting,
                "init": init.value,
                "rank": rank,
                "robust": robust or None,
            },
            validation=validation or [],
            mosaic=mosaic,
            report=report,
            only_plan=plan,
            max_memory=max_memory,
            survival=Survival(checkpoint_every, resume),
            scheduler=scheduler,
            workers=workers,
            log=log,
            tensorboard=tensorboard,
        ),
        quiet=quiet,
        verbose=verbose,
    )


app.command(cls=PlainCommand)(coding.encode)
app.command(cls=PlainCommand)(judging.anomalies)


@app.command(cls=PlainCommand)
def show(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The image to write.", show_default="MODEL.png", metavar="FILE.png"),
    ] = None,
) -> None:
    """Draw the filters of a model side by side."""
    from pointillist.cli.inspect import show_filters

    show_filters(model, output)


@app.command(cls=PlainCommand)
def info(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            help="Model files, checkpoints, codes files, or folders of them, as of a run.",
            show_default=False,
        ),
    ],
    recursive: Recursive = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say how a model was learned, how far a run is, or what was coded."""
    from pointillist.cli.console import show_log
    from pointillist.cli.inspect import describe

    show_log()
    describe(paths, recursive=recursive, as_json=as_json)


@app.command(cls=PlainCommand)
def demo(output: Folder = Path("demo-output"), seed: Seed = 0, jobs: Jobs = -1, quiet: Quiet = False) -> None:
    """Learn filters from the photographs that come with the package, and draw what came out."""
    from pointillist.cli.demo import run

    run(output, seed=seed, jobs=jobs, quiet=quiet)


@app.command("app", cls=PlainCommand, rich_help_panel="Mend pictures with the shipped dictionary")
def page(
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
    from pointillist.cli.serving import run

    run(picture, port=port, browser=not no_browser)


for _command in restoration.COMMANDS:
    app.command(cls=PlainCommand, rich_help_panel="Mend pictures with the shipped dictionary")(_command)
