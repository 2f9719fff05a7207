"""``pointillist learn``: files in, model file out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.cli import planning
from pointillist.cli.console import count, err, number, out, show_log, warn
from pointillist.cli.inputs import CACHE, Wanted, open_inputs, read_all, sizes
from pointillist.cli.progress import learning_progress
from pointillist.cli.stopping import GracefulStop
from pointillist.data.sources import KeptSource, Source, Stream
from pointillist.data.sources.survey import survey
from pointillist.dictionary.support import filter_shapes
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.base import Callback
from pointillist.learners.checkpoint import Checkpoints
from pointillist.learners.persistence import save
from pointillist.learners.plan import Plan, parse_bytes
from pointillist.learners.watching import JsonLog, TensorBoardEvents
from pointillist.report import save_mosaic
from pointillist.solvers import make_solver
from pointillist.storage import check_writable

# Filters start to look like something after some dozens of steps; a small folder needs several passes for that.
AUTOMATIC_STEPS = 60
VALIDATIONS = 12
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
    only_plan: bool = False
    max_memory: str | None = None
    survival: Survival = field(default_factory=Survival)
    log: Path | None = None
    tensorboard: Path | None = None


def run(request: Request, *, quiet: bool, verbose: bool) -> None:
    """Learn, save and summarise."""
    show_log(quiet=quiet, verbose=verbose)
    _check(request)
    source = open_inputs(request.wanted)
    held_out = _held_out(request, source)
    _look_through(request, source)
    model = make_learner(request, len(source))
    plan = _plan(request, model, source, held_out)
    if request.only_plan:
        planning.show(plan, request.output)
        return
    if not quiet:
        err().print(f"plan: {plan.line()}", markup=False, soft_wrap=True)
        planning.warn_early(plan, request.output)
    checkpoints = request.survival.checkpoints(request.output, plan.record())
    with _watching(request) as callbacks:
        stopped, skipped = _learn(request, model, source, held_out, plan, checkpoints, callbacks, quiet=quiet)
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
    if not quiet:
        _summarise(request, model, len(source), skipped, stopped)


def _learn(
    request: Request,
    model: BatchCSC | OnlineCSC,
    source: Source,
    held_out: list[NDArray] | None,
    plan: Plan,
    checkpoints: Checkpoints | None,
    callbacks: Sequence[Callback],
    *,
    quiet: bool,
) -> tuple[bool, dict[str, int]]:
    """Fit as planned; whether a signal ended it early, and what was left out."""
    if isinstance(model, BatchCSC):
        signals, skipped = read_all(source, request.wanted, _box(request))
        return fit(model, signals, held_out, quiet=quiet, callbacks=callbacks), skipped
    model.set_params(batch_size=plan.run.batch_size)
    if plan.given_up:
        source = open_inputs(request.wanted, cache=plan.run.cache)
    how: dict[str, Any] = {
        "on_unreadable": request.wanted.on_unreadable,
        "prefetch": plan.run.prefetch,
        "checkpoint": checkpoints,
        "resume": request.survival.resume,
    }
    stopped = fit(model, source, held_out, quiet=quiet, callbacks=callbacks, **how)
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

    `signals` is a list of arrays or, for online learning, a source; `how` is for `OnlineCSC.fit`.
    """
    steps = n_steps(model, len(signals))
    with GracefulStop(announce=not quiet) as stop, learning_progress(steps, quiet=quiet) as progress:
        model.set_params(callbacks=[progress, *callbacks, stop])
        if isinstance(model, OnlineCSC):
            model.fit(signals, validation=held_out, validation_every=max(1, steps // validations), **how)
        else:
            model.fit(signals, validation=held_out)
        model.set_params(callbacks=())
        # A request during the very last step changed nothing.
        return stop.requested and len(model.history_) < steps


def make_learner(request: Request, n_signals: int) -> BatchCSC | OnlineCSC:
    """The learner that the request describes."""
    given = {name: value for name, value in request.optional.items() if value is not None}
    if request.mode == "batch":
        return BatchCSC(**request.parameters, **given)
    if "n_epochs" not in given:
        given["n_epochs"] = ceil(AUTOMATIC_STEPS / ceil(n_signals / given.get("batch_size", 1)))
    return OnlineCSC(**request.parameters, **given)


def n_steps(model: BatchCSC | OnlineCSC, n_signals: int) -> int:
    """Steps that `fit` takes unless it is stopped."""
    if isinstance(model, OnlineCSC):
        return model.n_epochs * ceil(n_signals / model.batch_size)
    return model.max_iter


def _check(request: Request) -> None:
    """Everything that can be known to fail before the work begins."""
    for name, (mode, option, instead) in _ONLY_FOR.items():
        if request.optional.get(name) is not None and request.mode != mode:
            remedy = f"use {instead}" if instead else "leave it out"
            raise ValueError(f"{option} is for --mode {mode}: {remedy}, or change the mode")
    if request.mode == "batch" and request.survival != Survival():
        raise ValueError("--checkpoint-every and --resume are for --mode online: leave them out, or change the mode")
    if request.optional["solver"] is not None:
        make_solver(request.optional["solver"])
    _box(request)
    if request.max_memory is not None:
        parse_bytes(request.max_memory)
    request.survival.checkpoints(request.output)
    files = [path for path in (request.output, request.mosaic, request.log) if path is not None]
    for path in files:
        check_writable(path)
    if len(set(files)) < len(files):
        raise ValueError("--output, --mosaic and --log name the same file: give them different names")


def _box(request: Request) -> tuple[int, ...]:
    parameters = request.parameters
    return filter_shapes(parameters["n_filters"], parameters["filter_size"], request.wanted.ndim).box


def _held_out(request: Request, source: Source) -> list[NDArray] | None:
    if not request.validation:
        return None
    wanted = Wanted(request.validation, request.wanted.ndim, request.wanted.normalise, request.wanted.on_unreadable)
    others = open_inputs(wanted)
    if request.wanted.crops is None:
        both = sorted({source.name(i) for i in range(len(source))} & {others.name(i) for i in range(len(others))})
        if both:
            warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    return read_all(others, wanted, _box(request))[0]


def _look_through(request: Request, source: Source) -> None:
    """Find what cannot be used before the work begins, where that is to stop it and all signals fit into memory anyway."""
    if request.wanted.on_unreadable == "skip" or not isinstance(source, KeptSource):
        return
    seen = survey(source)
    if seen.n_signals * seen.samples * 8 <= CACHE:
        for _ in Stream(source, shuffle=False, least=_box(request)):
            pass


def _plan(request: Request, model: BatchCSC | OnlineCSC, source: Source, held_out: list[NDArray] | None) -> Plan:
    limit = None if request.max_memory is None else parse_bytes(request.max_memory)
    checkpoints = request.survival.checkpoints(request.output)
    if request.survival.resume and checkpoints is not None:
        # What a limit chose for the run that is resumed stays chosen: it is part of what was learned.
        stored = checkpoints.peek()
        if stored is not None and "batch_size" in stored.get("record", {}):
            model.set_params(batch_size=int(stored["record"]["batch_size"]))
    return planning.make_plan(
        model,
        source,
        request.wanted,
        box=_box(request),
        n_steps=n_steps(model, len(source)),
        held_out=planning.samples(held_out),
        checkpoints=checkpoints is not None,
        limit=limit,
    )


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
    request: Request, model: BatchCSC | OnlineCSC, n_signals: int, skipped: dict[str, int], stopped: bool
) -> None:
    last = model.history_[-1]
    lines = []
    if stopped:
        again = "; go on with the same command and --resume" if request.survival != Survival() else ""
        lines.append(f"stopped early, after step {model.n_iter_} of {n_steps(model, n_signals)}{again}")
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
    written = [request.output, request.mosaic, request.log, request.tensorboard]
    lines.append(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
    lines.append(f"next: pointillist show {request.output}")
    out().print("\n".join(lines), markup=False, soft_wrap=True)


def _left_out(skipped: dict[str, int]) -> list[str]:
    if not skipped:
        return []
    shown = [f"  {why}" for why in list(skipped)[:NAMED]]
    more = [f"  and {len(skipped) - NAMED} more, which the model file lists"] if len(skipped) > NAMED else []
    return [f"left out {count(len(skipped), 'signal')}:", *shown, *more]
