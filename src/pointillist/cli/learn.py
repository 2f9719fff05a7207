"""``pointillist learn``: files in, model file out."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.cli.console import count, number, out, show_log, warn
from pointillist.cli.inputs import Inputs, read_inputs, sizes
from pointillist.cli.progress import learning_progress
from pointillist.cli.stopping import GracefulStop
from pointillist.dictionary.support import filter_shapes
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.persistence import save
from pointillist.report import Example, save_mosaic, write_learning_report
from pointillist.solvers import make_solver
from pointillist.storage import check_writable

# Filters start to look like something after some dozens of steps; a small folder needs several passes for that.
AUTOMATIC_STEPS = 60
VALIDATIONS = 12

_ONLY_FOR = {
    "n_epochs": ("online", "--epochs", "--iterations"),
    "batch_size": ("online", "--batch", ""),
    "forgetting": ("online", "--forgetting", ""),
    "max_iter": ("batch", "--iterations", "--epochs"),
}


@dataclass(frozen=True)
class Request:
    """What the user asked for; `optional` holds None where the learner's own default serves."""

    paths: list[Path]
    output: Path
    mode: str
    parameters: dict[str, Any]
    optional: dict[str, Any]
    normalise: str
    ndim: int
    validation: list[Path]
    mosaic: Path | None
    report: Path | None
    on_error: str


def run(request: Request, *, quiet: bool, verbose: bool) -> None:
    """Learn, save and summarise."""
    show_log(quiet=quiet, verbose=verbose)
    _check(request)
    inputs, held_out = _read(request)
    model = make_learner(request, len(inputs.signals))
    stopped = fit(model, inputs.signals, None if held_out is None else held_out.signals, quiet=quiet)
    save(
        model,
        request.output,
        preprocessing={"normalise": request.normalise},
        extra={"data": _data_summary(request, inputs), "stopped_early": stopped},
    )
    if request.mosaic is not None:
        save_mosaic(request.mosaic, model.filters_)
    if request.report is not None:
        _write_report(request.report, request, model, inputs, held_out)
    if not quiet:
        _summarise(request, model, inputs, stopped)


def fit(
    model: BatchCSC | OnlineCSC,
    signals: list[NDArray],
    held_out: list[NDArray] | None,
    *,
    quiet: bool,
    validations: int = VALIDATIONS,
) -> bool:
    """Fit with progress, judging the held-out signals about `validations` times; true when a signal ended it early."""
    steps = n_steps(model, len(signals))
    with GracefulStop(announce=not quiet) as stop, learning_progress(steps, quiet=quiet) as progress:
        model.set_params(callbacks=[progress, stop])
        if isinstance(model, OnlineCSC):
            model.fit(signals, validation=held_out, validation_every=max(1, steps // validations))
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
    if request.optional["solver"] is not None:
        make_solver(request.optional["solver"])
    _box(request)
    files = [path for path in (request.output, request.mosaic, request.report) if path is not None]
    for path in files:
        check_writable(path)
    if len(set(files)) < len(files):
        raise ValueError("--output, --mosaic and --report name the same file: give them different names")


def _box(request: Request) -> tuple[int, ...]:
    return filter_shapes(request.parameters["n_filters"], request.parameters["filter_size"], request.ndim).box


def _read(request: Request) -> tuple[Inputs, Inputs | None]:
    inputs = _read_from(request, request.paths)
    if not request.validation:
        return inputs, None
    held_out = _read_from(request, request.validation)
    both = sorted(set(inputs.names) & set(held_out.names))
    if both:
        warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    return inputs, held_out


def _read_from(request: Request, paths: list[Path]) -> Inputs:
    return read_inputs(
        paths, ndim=request.ndim, normalise=request.normalise, on_error=request.on_error, least=_box(request)
    )


def _write_report(
    path: Path, request: Request, model: BatchCSC | OnlineCSC, inputs: Inputs, held_out: Inputs | None
) -> None:
    examples = [Example(name, signal) for name, signal in zip(inputs.names, inputs.signals, strict=True)]
    if held_out is not None:
        examples += [Example(n, s, held_out=True) for n, s in zip(held_out.names, held_out.signals, strict=True)]
    data = {name: str(value) for name, value in _data_summary(request, inputs).items()}
    write_learning_report(path, model, examples, data={**data, "normalise": request.normalise})


def _data_summary(request: Request, inputs: Inputs) -> dict[str, Any]:
    return {
        "paths": [str(path) for path in request.paths],
        "signals": len(inputs.signals),
        "samples": sum(signal.size for signal in inputs.signals),
        "skipped": len(inputs.skipped),
        "validation": [str(path) for path in request.validation],
    }


def _summarise(request: Request, model: BatchCSC | OnlineCSC, inputs: Inputs, stopped: bool) -> None:
    last = model.history_[-1]
    lines = []
    if stopped:
        lines.append(f"stopped early, after step {model.n_iter_} of {n_steps(model, len(inputs.signals))}")
    skipped = f" ({len(inputs.skipped)} skipped)" if inputs.skipped else ""
    lines.append(
        f"learned {len(model.filters_)} filters of {sizes(model.filters_.shape[1:])} from "
        f"{count(len(inputs.signals), 'signal')}{skipped} in {last['seconds']:.1f} s, {count(model.n_iter_, 'step')}"
    )
    which = "of the last mini-batch" if request.mode == "online" else "of all signals"
    lines.append(f"objective {which} {number(last['objective'])}, {last['nnz']:,} non-zeros")
    judged = [info["validation_objective"] for info in model.history_ if "validation_objective" in info]
    if judged:
        lines.append(f"objective of the held-out signals {number(judged[0])} → {number(judged[-1])}")
    written = [str(path) for path in (request.output, request.mosaic, request.report) if path is not None]
    lines.append(f"wrote {' and '.join(written)}")
    lines.append(f"next: pointillist show {request.output}")
    out().print("\n".join(lines), markup=False, soft_wrap=True)
