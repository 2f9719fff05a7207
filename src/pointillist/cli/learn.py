"""``pointillist learn``: signals in, a model file out; ``pointillist demo`` does that with the shipped photographs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

import pointillist as pt
from pointillist.cli.console import (
    GracefulStop,
    Progress,
    Stopped,
    check_memory,
    check_outputs,
    count,
    leaving,
    number,
    say,
    say_left_out,
    say_plan,
    show_log,
    tell,
    warn,
    warn_of_others,
)
from pointillist.cli.options import (
    Channels,
    CheckpointEvery,
    Colour,
    Device,
    Failing,
    Folder,
    Jobs,
    MaxMemory,
    OnlyPlan,
    Paths,
    Quiet,
    Recursive,
    Resume,
    Seed,
    Solver,
    Verbose,
    checked,
    positive,
    size_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pointillist.cli.reading import Wanted
    from pointillist.data.sources import Source
    from pointillist.plot import Example

Amount = partial(Option, min=1, metavar="N")
"""An option that counts."""

VALIDATIONS = 12
"""Times that held-out signals are judged in a run, about."""
_PLAN_STEPS = 2
_SHOWN = 4  # signals in a report

# Of the demo:
N_FILTERS, FILTER_SIZE, N_EPOCHS = 64, 11, 3
HELD_OUT = "camera"
CROP = 120  # about the side of the crops that photographs are cut into: many small steps learn sooner than few large
VALIDATION_SIDE = 176  # the middle of the held-out photograph is followed while learning, all of it judged at the end


@checked
def _sampled(value: str) -> Any:
    """A share of all codes as a number, or with a kind after a comma as `Draws`."""
    share, comma, kind = value.partition(",")
    try:
        return pt.Draws(float(share), kind) if comma else pt.Draws(float(share)).share
    except ValueError as error:
        raise ValueError(f"{value}: {error}; 0.1 solves for a tenth of the codes in every step") from None


def _sides(size: Any, axes: int) -> Any:
    """A size in so many dimensions; one that says its sides stays as it is, of several each is changed."""
    if isinstance(size, list):
        return [_sides(one, axes) for one in size]
    return (size,) * axes if isinstance(size, int) else size


@leaving("no model was saved")
def learn(
    paths: Paths,
    output: Annotated[
        Path, Option("--output", "-o", help="The model file to write.", metavar="FILE.safetensors")
    ] = Path("filters.safetensors"),
    filters: Annotated[int, Amount(help="Number of filters.")] = 100,
    size: Annotated[Any, Option(parser=size_of, metavar="SIZE", help="11, 7x11, or 5,11,21 for several sizes.")] = "11",
    penalty: Annotated[
        float, Option(callback=positive, metavar="NUMBER", help="Price of a code: more is sparser.")
    ] = 1.0,
    sampling: Annotated[
        Any,
        Option(
            parser=_sampled,
            metavar="SHARE[,KIND]",
            help="Fraction of codes solved for in a step; KIND says which are drawn together: bundles (the default), codes, "
            "positions, stretches or cells.",
        ),
    ] = "1",
    mode: Annotated[Literal["online", "batch"], Option(help="A few signals in each step, or all of them.")] = "online",
    epochs: Annotated[
        int | None,
        Amount(help="online: passes over the signals.", show_default="enough for 60 steps"),
    ] = None,
    iterations: Annotated[int | None, Amount(help="batch: iterations over all signals.", show_default="12")] = None,
    batch: Annotated[int | None, Amount(help="online: signals in a step.", show_default="1")] = None,
    forgetting: Annotated[float | None, Option(metavar="NUMBER", help="online: 1 or more.", show_default="4")] = None,
    seed: Seed = 0,
    solver: Solver = None,
    boundary: Annotated[
        Literal["same", "valid", "full", "circular"], Option(help="Where codes may sit at the borders.")
    ] = "same",
    init: Annotated[Literal["random", "patches"], Option(help="The first filters.")] = "random",
    normalise: Annotated[
        Literal["contrast", "none"] | None,
        Option(
            help="Preparation of the signals, recorded in the model.",
            show_default="contrast; none for recordings with channels",
        ),
    ] = None,
    ndim: Annotated[
        int | None,
        Option(min=1, max=3, metavar="N", help="Axes but for channels.", show_default="2; 1 with --channels"),
    ] = None,
    channels: Channels = None,
    colour: Colour = False,
    rank: Annotated[int | None, Amount(help="With channels: rank of a filter.", show_default="any")] = None,
    nonnegative: Annotated[
        bool, Option("--nonnegative", help="Codes without signs: a filter is there or not.")
    ] = False,
    robust: Annotated[bool, Option("--robust", help="Leave windows out of a step whose error is an outlier.")] = False,
    crops: Annotated[
        int | None,
        Amount(help="Learn from so many random crops in a pass.", show_default="whole signals"),
    ] = None,
    crop_size: Annotated[
        Any, Option(parser=size_of, metavar="SIZE", help="Size of a crop: 64, or 64x48.", show_default="100")
    ] = None,
    validation: Annotated[
        list[Path] | None, Option(metavar="PATH", help="Held-out files or folders to follow; may be repeated.")
    ] = None,
    jobs: Jobs = -1,
    device: Device = "cpu",
    mosaic: Annotated[Path | None, Option(help="Also draw the filters.", metavar="FILE.png")] = None,
    report: Annotated[Path | None, Option(help="Also write a page about the run.", metavar="FILE.html")] = None,
    recursive: Recursive = None,
    on_error: Failing = "raise",
    plan: OnlyPlan = False,
    max_memory: MaxMemory = None,
    checkpoint_every: CheckpointEvery = None,
    resume: Resume = False,
    scheduler: Annotated[
        str | None, Option(metavar="ADDRESS", help="Encode on a Dask cluster: tcp://host:8786.")
    ] = None,
    workers: Annotated[int | None, Amount(help="Encode in so many processes of this machine.")] = None,
    log: Annotated[Path | None, Option(help="A line of JSON for every step.", metavar="FILE.jsonl")] = None,
    tensorboard: Annotated[Path | None, Option(help="TensorBoard events.", metavar="DIR")] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn filters from signals and write a model file.

    Ctrl-C finishes the current step and saves what was learned until then; a second one aborts.
    """
    from pointillist.cli.reading import Wanted
    from pointillist.dictionary.constraints import filter_shapes
    from pointillist.learners.cluster import local_cluster
    from pointillist.learners.step import default_passes
    from pointillist.learners.watching import JsonLog, TensorBoardEvents
    from pointillist.storage import stamp

    show_log(quiet=quiet, verbose=verbose)
    online: dict[str, Any] = {
        "--epochs": epochs,
        "--batch": batch,
        "--forgetting": forgetting,
        "--resume": resume or None,
    }
    online |= {"--checkpoint-every": checkpoint_every, "--scheduler": scheduler, "--workers": workers}
    other, options = ("online", online)
    if mode == "online":
        other, options = "batch", {"--iterations": iterations}
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} is for --mode {other}: leave it out, or change the mode")
    if scheduler is not None and workers is not None:
        raise ValueError("--workers starts a cluster on this machine, --scheduler names one: give one of them")
    if crop_size is not None and crops is None:
        raise ValueError("--crop-size is for random crops: say how many with --crops")
    if colour and channels is not None:
        raise ValueError("--colour takes channels of pictures from where they lie, last: leave --channels out")
    if colour and ndim not in (None, 2):
        raise ValueError(f"--colour is for pictures, which have two axes: leave --ndim {ndim} out")
    layout = "last" if colour else channels
    axes = ndim or (1 if channels else 2)
    if rank is not None and layout is None:
        raise ValueError("--rank is over channels: say where they are with --channels, or --colour, or leave it out")
    check_outputs({"--output": output, "--mosaic": mosaic, "--report": report, "--log": log})

    usual = "none" if layout is not None and axes == 1 else "contrast"
    wanted = Wanted(
        paths=paths,
        ndim=axes,
        normalise=normalise or usual,
        on_error=on_error,
        layout=layout,
        recursive=recursive,
        crops=crops,
        crop_size=_sides(100 if crop_size is None else crop_size, axes),
        seed=seed,
    )
    before = stamp(output)
    source = wanted.prepared(**({} if max_memory is None else {"cache": max_memory // 4}))
    given: dict[str, Any] = {"max_iter": iterations, "batch_size": batch, "n_epochs": epochs, "rank": rank}
    given |= {"solver": solver, "robust": pt.Robust() if robust else None}
    model = (pt.BatchCSC if mode == "batch" else pt.OnlineCSC)(
        n_filters=filters,
        filter_size=_sides(size, axes),
        penalty=penalty,
        sampling=sampling,
        boundary=boundary,
        channels=layout is not None,
        nonnegative=nonnegative,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        update=pt.FilterUpdate(init=init, forgetting=forgetting),
        **{name: value for name, value in given.items() if value is not None},
    )
    box = filter_shapes(model.n_filters, model.filter_size, axes).box
    held = replace(wanted, paths=validation, crops=None) if validation else None
    others = None if held is None else held.prepared()
    if others is not None and crops is None:
        named = [{one.name(i) for i in range(len(one))} for one in (others, source)]
        both = sorted(named[0] & named[1])
        if both:
            warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    checkpoint = None
    how: dict[str, Any] = {}
    if isinstance(model, pt.OnlineCSC):
        if checkpoint_every is not None or resume:
            checkpoint = pt.Checkpoints(output, every=checkpoint_every or "60s", keep=True)
        passes = model.n_epochs or default_passes(len(source), model.batch_size)
        steps = passes * ceil(len(source) / model.batch_size)
        how = {"on_error": wanted.on_error}
        how |= {} if plan else {"checkpoint": checkpoint, "resume": resume}
    else:
        steps = model.max_iter
    held_out = None if others is None else _read_all(others, wanted, box)[0]
    with ExitStack() as stack:
        callbacks: list[Callable[[dict[str, Any]], bool]] = []
        if workers is not None or scheduler is not None:
            how["cluster"] = scheduler or stack.enter_context(local_cluster(workers or 1))
        signals, skipped = (source, {}) if how else _read_all(source, wanted, box)
        if plan:
            _show_plan(model, signals, steps, how)
            return
        if log is not None:
            callbacks.append(JsonLog(log))
        if tensorboard is not None:
            callbacks.append(TensorBoardEvents(tensorboard))
        if max_memory is not None:
            callbacks.append(partial(_within, max_memory))
        stopped = fit(model, signals, held_out, steps=steps, quiet=quiet, callbacks=callbacks, **how)
    # A request during the very last step leaves nothing undone.
    early = stopped and len(model.history_) < steps
    skipped = model.skipped_ if how else skipped
    warn_of_others(output, before, "model")
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
        checkpoint.clear()
    if mosaic is not None:
        from pointillist.plot import save_mosaic

        save_mosaic(mosaic, model.filters_, channels=model.channels)
    if report is not None:
        from pointillist.plot import write_learning_report

        shown = [] if held is None or others is None else _examples(held, others, _SHOWN, box, held_out=True)
        shown += _examples(wanted, source, _SHOWN - len(shown), box, held_out=False)
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
    if stopped:
        raise Stopped


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
) -> bool:
    """Fit with progress, judging the held-out signals about `validations` times; true if a signal asked to end it.

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
        return stop.asked


def _show_plan(model: pt.BatchCSC | pt.OnlineCSC, signals: Any, steps: int, how: dict[str, Any]) -> None:
    """Take two real steps and say what the run will need, by the time and the memory that they took, reading counted.

    Compiling is not counted, and neither is what drawing and reports take. A source will fill its cache.
    """
    from pointillist.kernels.compiling import working_time
    from pointillist.system import memory_peak

    marks = [working_time()]

    def measure(info: dict[str, Any]) -> bool:
        marks.append(working_time())
        return len(marks) > _PLAN_STEPS

    model.fit(signals, callbacks=[measure], **how)
    taken, spent = len(marks) - 1, marks[-1] - marks[0]
    together, memory = "", memory_peak()
    if isinstance(model, pt.OnlineCSC):
        together = f" of {model.batch_size} of {len(signals):,} signals"
        cache = getattr(signals, "cache", None)
        if cache is not None:
            kept = cache.held / (taken * model.batch_size) * len(signals)
            memory += max(0, int(min(cache.limit, kept)) - cache.held)
    say_plan(
        f"{_filters(model)}: {count(steps, 'step')}{together}",
        spent + (marks[-1] - marks[-2]) * (steps - taken),
        f"{count(taken, 'step')} took {spent:.2g} s",
        memory,
    )


def _within(limit: int, info: dict[str, Any]) -> bool:
    """A learner's callback that ends a run which takes more than so many bytes."""
    check_memory(
        limit, f"step {info['iteration']}", "take a smaller --batch, fewer or smaller filters, fewer --jobs, or --crops"
    )
    return False


def _read_all(source: Source, wanted: Wanted, box: Sequence[int]) -> tuple[list[NDArray], dict[str, int]]:
    """All usable signals of a source in memory, in order, and why others are not among them."""
    from pointillist.data.sources import Stream

    stream = Stream(source, shuffle=False, least=lambda signal: box, on_error=wanted.on_error)
    signals = [signal for batch in stream for signal in batch]
    if not signals:
        raise ValueError(f"none of the {len(source)} signals can be used; the first: {next(iter(stream.skipped))}")
    return signals, dict(stream.skipped)


def _examples(wanted: Wanted, source: Source, most: int, box: Sequence[int], *, held_out: bool) -> list[Example]:
    """Some signals for the report; what cannot be read is passed over."""
    from pointillist.data.sources import UnreadBatch, read_batch
    from pointillist.plot import Example

    shown: list[Example] = []
    photographs = wanted.photographs()
    for index in range(len(source)):
        if len(shown) >= most:
            break
        read = read_batch(source, UnreadBatch(0, index, (index,)), lambda signal: box, "skip")
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


def demo(output: Folder = Path("demo-output"), seed: Seed = 0, jobs: Jobs = -1, quiet: Quiet = False) -> None:
    """Learn filters from the photographs that come with the package, and draw what came out."""
    import numpy as np

    from pointillist.kernels.compiling import working_time
    from pointillist.plot import Example, save_mosaic, write_learning_report
    from pointillist.storage import check_writable

    show_log(quiet=quiet)
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give a folder")
    output.mkdir(parents=True, exist_ok=True)
    files = [output / name for name in ("filters.safetensors", "filters.png", "report.html")]
    for file in files:
        check_writable(file)
    begin = working_time()
    photographs = {name: pt.contrast_normalise(image) for name, image in pt.photographs("train").items()}
    train: list[NDArray] = []
    for image in photographs.values():
        rows, columns = (max(1, round(side / CROP)) for side in image.shape)
        for strip in np.array_split(image, rows):
            train += np.array_split(strip, columns, axis=1)
    photograph = pt.photographs("test")[HELD_OUT]
    test = pt.contrast_normalise(photograph)
    middle = tuple(slice(max(0, (side - VALIDATION_SIDE) // 2), (side + VALIDATION_SIDE) // 2) for side in test.shape)
    model = pt.OnlineCSC(N_FILTERS, FILTER_SIZE, n_epochs=N_EPOCHS, n_jobs=jobs, random_state=seed)
    if not quiet:
        tell(f"learning {N_FILTERS} filters of {FILTER_SIZE}×{FILTER_SIZE} from {len(train)} crops of photographs")
    steps = N_EPOCHS * len(train)
    stopped = fit(model, train, [test[middle]], steps=steps, quiet=quiet, validations=34, prepare=_compile)
    result = model.encode([test])
    early = stopped and len(model.history_) < steps
    data = {"signals": len(train), "paths": ["the shipped photographs"]}
    extra = {"data": data, "stopped_early": early}
    pt.save(model, files[0], preprocessing={"normalise": "contrast"}, extra=extra)
    save_mosaic(files[1], model.filters_)
    name, prepared = next(iter(photographs.items()))
    colour = np.moveaxis(pt.photographs("train", grey=False)[name], -1, 0)
    shown = [Example(HELD_OUT, test, held_out=True, stored=photograph), Example(name, prepared, stored=colour)]
    about = {"signals": f"{len(train)} crops of the shipped photographs, contrast-normalised"}
    write_learning_report(files[2], model, shown, title="Filters from a few photographs", data=about)
    if not quiet:
        quality = pt.psnr(test, test - result.residuals[0][0])
        say(
            f"learned {len(model.filters_)} filters in {model.history_[-1]['seconds']:.1f} s "
            f"({working_time() - begin:.1f} s with judging and drawing)",
            f"held-out photograph {HELD_OUT}: PSNR {quality:.1f} dB from {result.codes.nnz:,} non-zeros, "
            f"{100 * result.codes.nnz / test.size:.1f} % of its pixels",
            f"its codes are certified to be within {100 * result.gap[0]:.2g} % of the optimum ({result.status.value})",
            f"wrote {', '.join(file.name for file in files)} to {output}",
            f"open {files[2]} in a browser, then try your own: pointillist encode {files[0]} PHOTO.jpg",
            "or learn from a folder: pointillist learn FOLDER -o filters.safetensors --report report.html",
        )
    if stopped:
        raise Stopped


def _compile() -> None:
    """Compile scans and the update while a second process compiles sweeps, if one was begun: no kernels were on disk then.

    That is a step of a throw-away learner with made-up codes.
    """
    import numpy as np

    from pointillist.kernels.precompile import end_compiling, is_compiling
    from pointillist.learners.estimators import training_step

    if is_compiling():
        step = training_step(pt.OnlineCSC(8, FILTER_SIZE))
        batch = step.check(np.random.default_rng(0).standard_normal((1, 3 * FILTER_SIZE, 3 * FILTER_SIZE), np.float32))
        state = step.start(batch, 0)
        result = pt.encode(batch.signals[0], state.filters[:, 0], 1e6)  # scans, and nothing to sweep over
        codes = pt.SparseCodes([np.arange(2)], [np.ones(2, np.float32)], [(3 * FILTER_SIZE,) * 2], 8)
        step.learn(state, batch, replace(result, codes=codes), 0.0)
        end_compiling()
