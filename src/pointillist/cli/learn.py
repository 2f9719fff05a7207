"""``pointillist learn``: files in, model file out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.cli import planning
from pointillist.cli.console import count, err, number, out, show_log, warn
from pointillist.cli.inputs import Wanted, open_inputs, read_all, sizes
from pointillist.cli.progress import learning_progress
from pointillist.cli.stopping import GracefulStop
from pointillist.data.sources import KeptSource, Source, Stream
from pointillist.data.sources.stream import Part, read_part
from pointillist.data.sources.survey import Survey, survey
from pointillist.dictionary.support import filter_shapes
from pointillist.learners import BatchCSC, FilterUpdate, OnlineCSC
from pointillist.learners.base import Callback
from pointillist.learners.checkpoint import Checkpoints
from pointillist.learners.cluster import local_cluster
from pointillist.learners.persistence import save
from pointillist.learners.plan import Plan, parse_bytes
from pointillist.learners.watching import JsonLog, TensorBoardEvents
from pointillist.report import Example, save_mosaic, write_learning_report
from pointillist.solvers import make_solver
from pointillist.solvers.base import effective_jobs
from pointillist.storage import check_writable

# Filters start to look like something after some dozens of steps; a small folder needs several passes for that.
AUTOMATIC_STEPS = 60
VALIDATIONS = 12
_SHOWN = 4  # signals in a report
NAMED = 20
"""Skipped files that the summary names; the model file lists all of them."""

_ONLY_FOR = {
    "n_epochs": ("online", "--epochs", "--iterations"),
    "batch_size": ("online", "--batch", ""),
    "forgetting": ("online", "--forgetting", ""),
    "max_iter": ("batch", "--iterations", "--epochs"),
}


@dataclass(frozen=True)
class Survival:
    """How a run is put away and taken up again; None and False are not at all."""

    every: str | None = None
    resume: bool = False

    def checkpoints(self, output: Path, record: dict[str, Any] | None = None) -> Checkpoints | None:
        if self.every is None and not self.resume:
            return None
        return Checkpoints(output, every=self.every or "60s", keep=True, record=record or {})


@dataclass(frozen=True)
class Request:
    """What the user asked for; `optional` holds None where the learner's own default serves."""

    wanted: Wanted
    output: Path
    mode: str
    parameters: dict[str, Any]
    optional: dict[str, Any]
    validation: list[Path]
    mosaic: Path | None
    report: Path | None = None
    only_plan: bool = False
    max_memory: str | None = None
    survival: Survival = field(default_factory=Survival)
    scheduler: str | None = None
    workers: int | None = None
    log: Path | None = None
    tensorboard: Path | None = None


def run(request: Request, *, quiet: bool, verbose: bool) -> None:
    """Learn, save and summarise."""
    show_log(quiet=quiet, verbose=verbose)
    _check(request)
    source = open_inputs(request.wanted)
    model = make_learner(request)
    n_epochs = count_epochs(request, len(source))
    others = _held_out(request, source)
    seen = survey(source)
    plan = _plan(request, model, n_epochs, source, seen, others)
    if plan.limit is not None:
        source = open_inputs(request.wanted, cache=plan.run.cache)
    held_out = None if others is None else read_all(others, request.wanted, _box(request))[0]
    if seen.keepable * plan.run.itemsize <= plan.run.cache:
        _look_through(request, source)
    plan = planning.time_it(plan, model, source, seen, request.wanted)
    if request.only_plan:
        planning.show(plan, request.output)
        return
    if not quiet:
        err().print(f"plan: {plan.line()}", markup=False, soft_wrap=True)
        planning.warn_early(plan, request.output)
    checkpoints = request.survival.checkpoints(request.output, plan.record())
    how: dict[str, Any] = {"n_epochs": n_epochs, "prefetch": plan.run.prefetch, "checkpoint": checkpoints}
    with _watching(request) as callbacks, _cluster(request) as cluster:
        how |= {"callbacks": callbacks, "cluster": cluster}
        stopped, skipped = _learn(request, model, source, held_out, how, quiet=quiet)
    data = _data_summary(request, source, skipped)
    save(
        model,
        request.output,
        preprocessing={"normalise": request.wanted.normalise},
        extra={"data": data, "plan": plan.record(), "stopped_early": stopped},
    )
    if checkpoints is not None and not stopped:
        checkpoints.clear()
    if request.mosaic is not None:
        save_mosaic(request.mosaic, model.filters_)
    if request.report is not None:
        about = {name: str(value) for name, value in data.items()} | {"normalise": request.wanted.normalise}
        write_learning_report(request.report, model, _examples(request, source, held_out), data=about)
    if not quiet:
        _summarise(request, model, n_steps(model, len(source), n_epochs), len(source), skipped, stopped)


def _learn(
    request: Request,
    model: BatchCSC | OnlineCSC,
    source: Source,
    held_out: list[NDArray] | None,
    how: dict[str, Any],
    *,
    quiet: bool,
) -> tuple[bool, dict[str, int]]:
    """Fit as planned, `how` being for `OnlineCSC.fit`; whether a signal ended it early, and what was left out."""
    if isinstance(model, BatchCSC):
        signals, skipped = read_all(source, request.wanted, _box(request))
        return fit(model, signals, held_out, quiet=quiet, callbacks=how["callbacks"]), skipped
    on_error = "skip" if request.wanted.on_unreadable == "skip" else "raise"
    stopped = fit(model, source, held_out, quiet=quiet, on_error=on_error, resume=request.survival.resume, **how)
    return stopped, model.skipped_


def fit(
    model: BatchCSC | OnlineCSC,
    signals: Any,
    held_out: list[NDArray] | None,
    *,
    quiet: bool,
    validations: int = VALIDATIONS,
    callbacks: Sequence[Callback] = (),
    **how: Any,
) -> bool:
    """Fit with progress, judging the held-out signals about `validations` times; true when a signal ended it early.

    `signals` is a list of arrays or, for online learning, a source; `how` is for the learner's `fit`.
    """
    steps = n_steps(model, len(signals), how.get("n_epochs", 1))
    with GracefulStop(announce=not quiet) as stop, learning_progress(steps, quiet=quiet) as progress:
        how["callbacks"] = [progress, *callbacks, stop]
        if isinstance(model, OnlineCSC) and held_out is not None:
            how["validation_every"] = max(1, steps // validations)
        model.fit(signals, validation=held_out, **how)
        # A request during the very last step changed nothing.
        return stop.requested and len(model.history_) < steps


def make_learner(request: Request) -> BatchCSC | OnlineCSC:
    """The learner that the request describes."""
    given = {name: value for name, value in request.optional.items() if value is not None and name != "n_epochs"}
    update = FilterUpdate(init=given.pop("init", "random"), forgetting=given.pop("forgetting", None))
    return (BatchCSC if request.mode == "batch" else OnlineCSC)(**request.parameters, **given, update=update)


def count_epochs(request: Request, n_signals: int) -> int:
    """Passes over the signals: as asked for, or enough for some dozens of steps."""
    given, batch_size = request.optional.get("n_epochs"), request.optional.get("batch_size") or 1
    return int(given or ceil(AUTOMATIC_STEPS / ceil(n_signals / batch_size)))


def n_steps(model: BatchCSC | OnlineCSC, n_signals: int, n_epochs: int) -> int:
    """Steps that `fit` takes unless it is stopped."""
    if isinstance(model, OnlineCSC):
        return n_epochs * ceil(n_signals / model.batch_size)
    return model.max_iter


def _check(request: Request) -> None:
    """Everything that can be known to fail before the work begins."""
    for name, (mode, option, instead) in _ONLY_FOR.items():
        if request.optional.get(name) is not None and request.mode != mode:
            remedy = f"use {instead}" if instead else "leave it out"
            raise ValueError(f"{option} is for --mode {mode}: {remedy}, or change the mode")
    if request.mode == "batch" and request.survival != Survival():
        raise ValueError("--checkpoint-every and --resume are for --mode online: leave them out, or change the mode")
    if request.scheduler is not None and request.workers is not None:
        raise ValueError("--workers starts a cluster on this machine, --scheduler names one: give one of them")
    if request.mode == "batch" and (request.scheduler is not None or request.workers is not None):
        raise ValueError("--scheduler and --workers are for --mode online: leave them out, or change the mode")
    if request.optional["solver"] is not None:
        make_solver(request.optional["solver"])
    _box(request)
    if request.max_memory is not None:
        parse_bytes(request.max_memory)
    request.survival.checkpoints(request.output)
    files = [path for path in (request.output, request.mosaic, request.report, request.log) if path is not None]
    for path in files:
        check_writable(path)
    if len(set(files)) < len(files):
        raise ValueError("--output, --mosaic, --report and --log name the same file: give them different names")


def _box(request: Request) -> tuple[int, ...]:
    parameters = request.parameters
    return filter_shapes(parameters["n_filters"], parameters["filter_size"], request.wanted.ndim).box


def _held_out(request: Request, source: Source) -> Source | None:
    if not request.validation:
        return None
    wanted = Wanted(request.validation, request.wanted.ndim, request.wanted.normalise, request.wanted.on_unreadable)
    others = open_inputs(wanted)
    if request.wanted.crops is None:
        both = sorted({source.name(i) for i in range(len(source))} & {others.name(i) for i in range(len(others))})
        if both:
            warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    return others


def _look_through(request: Request, source: Source) -> None:
    """Find what cannot be used before the work begins, where that is to stop it; all signals fit into memory."""
    if request.wanted.on_unreadable == "stop" and isinstance(source, KeptSource):
        for _ in Stream(source, shuffle=False, least=_box(request)):
            pass


def _plan(
    request: Request,
    model: BatchCSC | OnlineCSC,
    n_epochs: int,
    source: Source,
    seen: Survey,
    others: Source | None,
) -> Plan:
    """What the run needs; the model is given what a limit chose."""
    checkpoints = request.survival.checkpoints(request.output)
    stored = checkpoints.peek() if checkpoints is not None and request.survival.resume else None
    # What a limit chose for the run that is resumed stays chosen: it is part of what was learned.
    chosen = {} if stored is None else stored.get("record", {})
    if chosen.get("limit") is not None:
        model.set_params(batch_size=int(chosen["batch_size"]))
    held_out = 0 if others is None else int(survey(others).keepable)
    plan = planning.size_up(
        model,
        source,
        seen,
        request.wanted,
        box=_box(request),
        n_steps=n_steps(model, len(source), n_epochs),
        held_out=held_out,
        checkpoints=checkpoints is not None,
        limit=None if request.max_memory is None or chosen else parse_bytes(request.max_memory),
    )
    if chosen:
        run = replace(plan.run, prefetch=int(chosen["prefetch"]), cache=int(chosen["cache"]))
        plan = replace(plan, run=run, limit=chosen["limit"])
    if isinstance(model, OnlineCSC) and plan.given_up:
        model.set_params(batch_size=plan.run.batch_size)
    if plan.run.n_jobs < effective_jobs(model.n_jobs):
        model.set_params(n_jobs=plan.run.n_jobs)
    return plan


@contextmanager
def _cluster(request: Request) -> Iterator[Any]:
    """Where the request says that codes are solved for, None where that is here; workers last as long as the context."""
    with ExitStack() as stack:
        cluster: Any = request.scheduler
        if request.workers is not None:
            cluster = stack.enter_context(local_cluster(request.workers))
        yield cluster


@contextmanager
def _watching(request: Request) -> Iterator[list[Callback]]:
    """The callbacks that write down how the run goes."""
    with ExitStack() as stack:
        callbacks: list[Callback] = []
        if request.log is not None:
            callbacks.append(stack.enter_context(JsonLog(request.log)))
        if request.tensorboard is not None:
            callbacks.append(stack.enter_context(TensorBoardEvents(request.tensorboard)))
        yield callbacks


def _examples(request: Request, source: Source, held_out: list[NDArray] | None) -> list[Example]:
    """Some signals for the report; what cannot be read is passed over."""
    shown = [Example(f"validation {i}", signal, held_out=True) for i, signal in enumerate(held_out or [])][:_SHOWN]
    for index in range(len(source)):
        if len(shown) >= _SHOWN:
            break
        read = read_part(source, Part(0, index, (index,)), _box(request), "skip")
        shown += [Example(source.name(index), signal) for signal in read.signals]
    return shown


def _data_summary(request: Request, source: Source, skipped: dict[str, int]) -> dict[str, Any]:
    wanted = request.wanted
    crops = {} if wanted.crops is None else {"crops": wanted.crops, "crop_size": list(wanted.crop_size)}
    return {
        "paths": [str(path) for path in wanted.paths],
        "signals": len(source) - (len(skipped) if wanted.crops is None else 0),
        **crops,
        "skipped": list(skipped),
        "validation": [str(path) for path in request.validation],
    }


def _summarise(
    request: Request, model: BatchCSC | OnlineCSC, steps: int, n_signals: int, skipped: dict[str, int], stopped: bool
) -> None:
    last = model.history_[-1]
    lines = []
    if stopped:
        again = "; go on with the same command and --resume" if request.survival != Survival() else ""
        lines.append(f"stopped early, after step {model.n_iter_} of {steps}{again}")
    crops = request.wanted.crops is not None
    used = model.n_seen_ if crops else n_signals - len(skipped)
    left_out = f" ({len(skipped)} skipped)" if skipped else ""
    lines.append(
        f"learned {len(model.filters_)} filters of {sizes(model.filters_.shape[1:])} from "
        f"{count(used, 'crop' if crops else 'signal')}{left_out} in {last['seconds']:.1f} s, {count(model.n_iter_, 'step')}"
    )
    which = "of the last mini-batch" if request.mode == "online" else "of all signals"
    lines.append(f"objective {which} {number(last['objective'])}, {last['nnz']:,} non-zeros")
    judged = [info["validation_objective"] for info in model.history_ if "validation_objective" in info]
    if judged:
        lines.append(f"objective of the held-out signals {number(judged[0])} → {number(judged[-1])}")
    lines += _left_out(skipped)
    written = [request.output, request.mosaic, request.report, request.log, request.tensorboard]
    lines.append(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
    lines.append(f"next: pointillist show {request.output}")
    out().print("\n".join(lines), markup=False, soft_wrap=True)


def _left_out(skipped: dict[str, int]) -> list[str]:
    if not skipped:
        return []
    shown = [f"  {why}" for why in list(skipped)[:NAMED]]
    more = [f"  and {len(skipped) - NAMED} more, which the model file lists"] if len(skipped) > NAMED else []
    return [f"left out {count(len(skipped), 'signal')}:", *shown, *more]
