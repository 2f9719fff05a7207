"""``pointillist learn``: signals in, a model file out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pointillist as pt
from pointillist.cli.console import (
    GracefulStop,
    Progress,
    Stopped,
    check_memory,
    check_outputs,
    count,
    duration,
    in_bytes,
    leaving,
    number,
    say,
    say_left_out,
    show_log,
    warn,
)
from pointillist.cli.options import (
    Channels,
    CheckpointEvery,
    Colour,
    Device,
    Failing,
    Jobs,
    MaxMemory,
    OnError,
    OnlyPlan,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Seed,
    Solver,
    Verbose,
    checked,
    number_that,
    positive,
    signal_axes,
    size_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.reading import Wanted
    from pointillist.data.sources import Source
    from pointillist.plot import Example

Mode = StrEnum("Mode", "online batch")
Init = StrEnum("Init", "random patches")
Normalise = StrEnum("Normalise", "contrast none")
Boundary = StrEnum("Boundary", "same valid full circular")

VALIDATIONS = 12
_PLAN_STEPS = 2
_SHOWN = 4  # signals in a report


@checked
def _sampled(value: str) -> Any:
    """A share of all codes as a number, or with a kind after a comma as `Draws`."""
    share, comma, kind = value.partition(",")
    try:
        draws = pt.Draws(float(share), kind) if comma else pt.Draws(float(share))
    except ValueError as error:
        raise ValueError(f"{value}: {error}; 0.1 solves for a tenth of the codes in every step") from None
    return draws if comma else draws.share


_forgetting = number_that(
    lambda value: 1 <= value < inf, "must be at least 1; 1 averages over all signals, 2 forgets faster"
)


def _sides(size: Any, axes: int) -> Any:
    """A size in so many dimensions; one that says its sides stays as it is, of several each is changed."""
    if isinstance(size, list):
        return [_sides(one, axes) for one in size]
    return (size,) * axes if isinstance(size, int) else size


@leaving("no model was saved")
def learn(
    paths: Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write.", metavar="FILE.safetensors")
    ] = Path("filters.safetensors"),
    filters: Annotated[int, typer.Option(min=1, metavar="N", help="Number of filters.")] = 100,
    size: Annotated[
        Any, typer.Option(parser=size_of, metavar="SIZE", help="11, 7x11, or 5,11,21 for several sizes.")
    ] = "11",
    penalty: Annotated[
        float, typer.Option(callback=positive, metavar="NUMBER", help="Price of a code: more is sparser.")
    ] = 1.0,
    sampling: Annotated[
        Any,
        typer.Option(
            parser=_sampled,
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
    boundary: Annotated[Boundary, typer.Option(help="Where codes may sit at the borders.")] = Boundary.same,
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
        Any, typer.Option(parser=size_of, metavar="SIZE", help="Size of a crop: 64, or 64x48.", show_default="100")
    ] = None,
    validation: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Held-out files or folders to follow; may be repeated.")
    ] = None,
    jobs: Jobs = -1,
    device: Device = "cpu",
    mosaic: Annotated[Path | None, typer.Option(help="Also draw the filters.", metavar="FILE.png")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page about the run.", metavar="FILE.html")] = None,
    recursive: Recursive = None,
    on_error: Failing = OnError.stop,
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: CheckpointEvery = None,
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
    from pointillist.cli.reading import Wanted, read_all
    from pointillist.learners.cluster import local_cluster
    from pointillist.learners.estimators import default_passes
    from pointillist.learners.watching import JsonLog, TensorBoardEvents
    from pointillist.storage import stamp

    show_log(quiet=quiet, verbose=verbose)
    only: dict[str, dict[str, Any]] = {
        "online": {"--epochs": epochs, "--batch": batch, "--forgetting": forgetting, "--resume": resume or None}
        | {"--checkpoint-every": checkpoint_every, "--scheduler": scheduler, "--workers": workers},
        "batch": {"--iterations": iterations},
    }
    for other, options in only.items():
        for option, value in options.items():
            if value is not None and mode != other:
                raise ValueError(f"{option} is for --mode {other}: leave it out, or change the mode")
    if scheduler is not None and workers is not None:
        raise ValueError("--workers starts a cluster on this machine, --scheduler names one: give one of them")
    if crop_size is not None and crops is None:
        raise ValueError("--crop-size is for random crops: say how many with --crops")
    axes, layout = signal_axes(ndim, channels, colour)
    if rank is not None and layout is None:
        raise ValueError("--rank is over channels: say where they are with --channels, or --colour, or leave it out")
    check_outputs({"--output": output, "--mosaic": mosaic, "--report": report, "--log": log})

    usual = "none" if layout is not None and axes == 1 else "contrast"
    wanted = Wanted(
        paths=paths,
        ndim=axes,
        normalise=usual if normalise is None else normalise.value,
        on_error=on_error.value,
        layout=layout,
        recursive=recursive,
        crops=crops,
        crop_size=_sides(100 if crop_size is None else crop_size, axes),
        seed=seed,
    )
    before = stamp(output)
    source = wanted.prepared(**({} if max_memory is None else {"cache": max_memory // 4}))
    given: dict[str, Any] = {"max_iter": iterations, "batch_size": batch, "n_epochs": epochs, "rank": rank}
    given |= {"solver": solver and solver.value, "robust": pt.Robust() if robust else None}
    update = pt.FilterUpdate(init=init.value, forgetting=forgetting)
    model = (pt.BatchCSC if mode == Mode.batch else pt.OnlineCSC)(
        n_filters=filters,
        filter_size=_sides(size, axes),
        penalty=penalty,
        sampling=sampling,
        boundary=boundary.value,
        channels=layout is not None,
        nonnegative=nonnegative,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        update=update,
        **{name: value for name, value in given.items() if value is not None},
    )
    held = replace(wanted, paths=validation, crops=None) if validation else None
    others = None if held is None else _held_out(held, wanted, source)
    checkpoint = None
    how: dict[str, Any] = {}
    if isinstance(model, pt.OnlineCSC):
        if checkpoint_every is not None or resume:
            checkpoint = pt.Checkpoints(output, every=checkpoint_every or "60s", keep=True)
        passes = model.n_epochs or default_passes(len(source), model.batch_size)
        steps = passes * ceil(len(source) / model.batch_size)
        how = {"on_error": wanted.on_error}
        how |= {} if plan else {"checkpoint": checkpoint, "resume": resume}
        _look_through(source, wanted, model)
    else:
        steps = model.max_iter
    held_out = None if others is None else read_all(others, wanted, _box(model, axes))[0]
    with ExitStack() as stack:
        callbacks: list[Callable[[dict[str, Any]], bool]] = []
        if workers is not None or scheduler is not None:
            how["cluster"] = scheduler or stack.enter_context(local_cluster(workers or 1))
        signals, skipped = (source, {}) if how else read_all(source, wanted, _box(model, axes))
        if plan:
            _show_plan(model, signals, steps, how)
            return
        if log is not None:
            callbacks.append(stack.enter_context(JsonLog(log)))
        if tensorboard is not None:
            callbacks.append(stack.enter_context(TensorBoardEvents(tensorboard)))
        if max_memory is not None:
            callbacks.append(_within(max_memory))
        stopped = fit(model, signals, held_out, steps=steps, quiet=quiet, callbacks=callbacks, **how)
    early = (
        stopped is not None and len(model.history_) < steps
    )  # a request during the very last step leaves nothing undone
    skipped = model.skipped_ if how else skipped
    if stamp(output) != before:
        warn(f"{output} was written by another program since this run began; this run's model takes its place")
    data: dict[str, Any] = {
        "paths": [str(path) for path in paths],
        "signals": len(source) - (len(skipped) if crops is None else 0),
        **({} if crops is None else {"crops": crops, "crop_size": list(wanted.crop_size)}),
        "skipped": list(skipped),
        "validation": [str(path) for path in validation or []],
    }
    prepared = {"normalise": wanted.normalise} | ({} if layout is None else {"channels": layout})
    pt.save(model, output, preprocessing=prepared, extra={"data": data, "stopped_early": early})
    if checkpoint is not None and not early:
        try:
            checkpoint.clear()
        except OSError as error:
            warn(f"the model is saved, but checkpoints of the run cannot be removed: {error}")
    if mosaic is not None:
        from pointillist.plot import save_mosaic

        save_mosaic(mosaic, model.filters_, channels=model.channels)
    if report is not None:
        from pointillist.plot import write_learning_report

        shown = [] if held is None or others is None else _examples(held, others, _SHOWN, model, held_out=True)
        shown += _examples(wanted, source, _SHOWN - len(shown), model, held_out=False)
        about = {name: str(value) for name, value in data.items()} | {"normalise": wanted.normalise}
        write_learning_report(report, model, shown, data=about)
    if not quiet:
        if early:
            again = "" if checkpoint is None else "; go on with the same command and --resume"
            say(f"stopped early, after step {model.n_iter_} of {steps}{again}")
        _summarise(model, count(model.n_seen_, "crop") if crops else count(data["signals"], "signal"), skipped)
        written = [output, mosaic, report, log, tensorboard]
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
        say(f"next: pointillist show {output}")
    if stopped is not None:
        raise Stopped(number=stopped)


def fit(
    model: pt.BatchCSC | pt.OnlineCSC,
    signals: Any,
    held_out: list[NDArray] | None,
    *,
    steps: int,
    quiet: bool,
    validations: int = VALIDATIONS,
    callbacks: Sequence[Callable[[dict[str, Any]], bool]] = (),
    prepare: Callable[[], object] = lambda: None,
    **how: Any,
) -> int | None:
    """Fit with progress, judging the held-out signals about `validations` times; returns the signal that ended it early.

    What `prepare` compiles is part of the progress; `how` is for the learner's `fit`.
    """
    if isinstance(model, pt.OnlineCSC) and held_out is not None:
        how["validation_every"] = max(1, steps // validations)
    with GracefulStop(announce=not quiet) as stop, Progress("learning", steps, quiet=quiet, unit="step") as progress:

        def show(info: dict[str, Any]) -> bool:
            words = f"objective {number(info['objective'])}, {info['nnz']:,} non-zeros"
            if "validation_objective" in info:
                words += f", held-out {number(info['validation_objective'])}"
            progress.show(int(info["iteration"]), words)
            return False

        prepare()
        model.fit(signals, validation=held_out, callbacks=[show, *callbacks, stop], **how)
        return stop.number


def _show_plan(model: pt.BatchCSC | pt.OnlineCSC, signals: Any, steps: int, how: dict[str, Any]) -> None:
    """Take two real steps and say what the run will need, by the time and the memory that they took, reading counted.

    Compiling is not counted, and neither is what drawing and reports take.
    """
    from pointillist.kernels.compiling import working_time
    from pointillist.system import memory_peak

    marks = [working_time()]

    def measure(info: dict[str, Any]) -> bool:
        marks.append(working_time())
        return len(marks) > _PLAN_STEPS

    model.fit(signals, callbacks=[measure], **how)
    taken = len(marks) - 1
    seconds = marks[-1] - marks[0] + (marks[-1] - marks[-2]) * (steps - taken)
    together = f" of {model.batch_size} of {len(signals):,} signals" if isinstance(model, pt.OnlineCSC) else ""
    say(
        f"{_filters(model)}: {count(steps, 'step')}{together}",
        f"time: about {duration(seconds)}; the first {count(taken, 'step')} took {marks[-1] - marks[0]:.2g} s",
        f"memory: {in_bytes(memory_peak() + _still_kept(signals, taken * getattr(model, 'batch_size', 0)))} at its peak",
        "nothing was written",
    )


def _still_kept(source: Any, seen: int) -> int:
    """Bytes of decoded signals that a source will keep besides those of the signals that were `seen`."""
    cache = getattr(source, "cache", None)
    if cache is None:
        return 0
    return int(max(0, min(cache.limit, cache.held / max(seen, 1) * len(source)) - cache.held))


def _within(limit: int) -> Callable[[dict[str, Any]], bool]:
    """A learner's callback that ends a run which takes more than so many bytes."""

    def check(info: dict[str, Any]) -> bool:
        advice = "take a smaller --batch, fewer or smaller filters, fewer --jobs, or --crops"
        check_memory(limit, f"step {info['iteration']}", advice)
        return False

    return check


def _held_out(held: Wanted, wanted: Wanted, source: Source) -> Source:
    """Held-out signals, prepared as those that are learned from, but whole."""
    others = held.prepared()
    if wanted.crops is None:
        names = {others.name(i) for i in range(len(others))}
        both = sorted(names.intersection(source.name(i) for i in range(len(source))))
        if both:
            warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    return others


def _look_through(source: Source, wanted: Wanted, model: pt.OnlineCSC) -> None:
    """Find what cannot be used before the work begins, where that is to stop it, as long as signals can be kept."""
    from pointillist.data.sources import KeptSource, Stream

    if wanted.on_error == "raise" and isinstance(source, KeptSource):
        for (signal,) in Stream(source, shuffle=False, least=lambda signal: _box(model, wanted.ndim)):
            if source.cache.held + signal.nbytes > source.cache.limit:
                break


def _box(model: pt.BatchCSC | pt.OnlineCSC, axes: int) -> tuple[int, ...]:
    """The box that all filters of a learner fit into."""
    from pointillist.dictionary.constraints import filter_shapes

    return filter_shapes(model.n_filters, model.filter_size, axes).box


def _examples(wanted: Wanted, source: Source, most: int, model: Any, *, held_out: bool) -> list[Example]:
    """Some signals for the report; what cannot be read is passed over."""
    from pointillist.data.sources import UnreadBatch, read_batch
    from pointillist.plot import Example

    shown: list[Example] = []
    photographs = wanted.photographs()
    for index in range(len(source)):
        if len(shown) >= most:
            break
        read = read_batch(source, UnreadBatch(0, index, (index,)), lambda signal: _box(model, wanted.ndim), "skip")
        for signal in read.signals:
            pixels = None if photographs is None else photographs.read(index)
            visible = pixels is not None and (pixels.ndim < 3 or len(pixels) == 3)  # grey or in colour
            shown.append(Example(source.name(index), signal, held_out, pixels if visible else None))
    return shown


def _filters(model: pt.BatchCSC | pt.OnlineCSC) -> str:
    """The filters of a learner in words, with what is special about the way they are updated."""
    from pointillist.reprs import filters_in_words

    special = [f"rank {model.rank}"] * (model.rank is not None) + ["robust"] * (model.robust is not None)
    words = f" ({', '.join(special)})" if special else ""
    return filters_in_words(model.filters_.shape, model.channels, "filters ") + words


def _summarise(model: pt.BatchCSC | pt.OnlineCSC, used: str, skipped: dict[str, int]) -> None:
    last = model.history_[-1]
    left_out = f" ({len(skipped)} skipped)" if skipped else ""
    say(f"learned {_filters(model)} from {used}{left_out} in {last['seconds']:.1f} s, {count(model.n_iter_, 'step')}")
    of = "of the last mini-batch" if isinstance(model, pt.OnlineCSC) else "of all signals"
    say(f"objective {of} {number(last['objective'])}, {last['nnz']:,} non-zeros")
    if "outliers" in last:
        left = [int(info["outliers"]) for info in model.history_]
        say(f"left {count(left[-1], 'window')} out of the last step as outliers, {sum(left):,} of all steps")
    judged = [info["validation_objective"] for info in model.history_ if "validation_objective" in info]
    if judged:
        say(f"objective of the held-out signals {number(judged[0])} → {number(judged[-1])}")
    say_left_out(list(skipped), "model")
