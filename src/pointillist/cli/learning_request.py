"""What the user asked ``pointillist learn`` for, and whether that can be done at all."""

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pointillist.cli.inputs import Wanted
from pointillist.dictionary.constraints import filter_shapes
from pointillist.errors import CheckpointError
from pointillist.learners.checkpoint import Checkpoints
from pointillist.learners.plan import parse_bytes
from pointillist.solvers import make_solver
from pointillist.storage import check_writable, stamp
from pointillist.storage.schema import record, whole

log = logging.getLogger(__name__)

_PLAN = record({name: whole(0) for name in ("batch_size", "n_jobs", "cache", "prefetch")}, others=True)
"""What a memory limit chose, in the record of a checkpoint."""
_ONLY_FOR = {
    "n_epochs": ("online", "--epochs", "--iterations"),
    "batch_size": ("online", "--batch", ""),
    "forgetting": ("online", "--forgetting", ""),
    "max_iter": ("batch", "--iterations", "--epochs"),
}


@dataclass(frozen=True)
class Survival:
    """Whether and how a run writes checkpoints and is resumed; None and False mean that it does not."""

    every: str | None = None
    resume: bool = False

    def checkpoints(self, output: Path, record: dict[str, Any] | None = None) -> Checkpoints | None:
        """Where checkpoints of a run that ends in `output` lie, None without any."""
        if self.every is None and not self.resume:
            return None
        return Checkpoints(output, every=self.every or "60s", keep=True, record=record or {})

    def clear(self, output: Path) -> None:
        """Remove the checkpoints of a run whose model is saved, or say why they stay."""
        checkpoints = self.checkpoints(output)
        try:
            if checkpoints is not None:
                checkpoints.clear()
        except OSError as error:
            log.warning("the model is saved, but checkpoints of the run cannot be removed: %s", error)

    def resumed_record(self, output: Path) -> dict[str, Any]:
        """What the run that is resumed recorded about its plan; empty where nothing is resumed."""
        checkpoints = self.checkpoints(output)
        stored = checkpoints.peek() if checkpoints is not None and self.resume else None
        recorded = {} if stored is None else stored["record"]
        try:
            if recorded.get("limit") is not None:
                _PLAN(recorded, "record")
        except ValueError as error:
            raise CheckpointError(f"the checkpoint of {output} is not one of pointillist learn: {error}") from error
        return recorded


@dataclass(frozen=True)
class LearnRequest:
    """What the user asked ``pointillist learn`` for; `optional` holds None where the learner's own default serves."""

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

    @property
    def box(self) -> tuple[int, ...]:
        """The box that all filters fit into; a signal must not be smaller."""
        return filter_shapes(self.parameters["n_filters"], self.parameters["filter_size"], self.wanted.ndim).box

    @property
    def limit(self) -> int | None:
        """Bytes of memory to stay within, None without a limit."""
        return None if self.max_memory is None else parse_bytes(self.max_memory)

    @cached_property
    def held_out(self) -> Wanted:
        """Which signals are held out, and how to prepare them: as those that are learned from, but whole."""
        return replace(self.wanted, paths=self.validation, crops=None)

    def output_stamp(self) -> tuple[int, ...] | None:
        """What changes when somebody writes the output."""
        return stamp(self.output)

    def check(self) -> None:
        """Refuse everything that can be known to fail before the work begins."""
        for name, (mode, option, instead) in _ONLY_FOR.items():
            if self.optional.get(name) is not None and self.mode != mode:
                remedy = f"use {instead}" if instead else "leave it out"
                raise ValueError(f"{option} is for --mode {mode}: {remedy}, or change the mode")
        if self.mode == "batch" and self.survival != Survival():
            raise ValueError(
                "--checkpoint-every and --resume are for --mode online: leave them out, or change the mode"
            )
        if self.scheduler is not None and self.workers is not None:
            raise ValueError("--workers starts a cluster on this machine, --scheduler names one: give one of them")
        if self.mode == "batch" and (self.scheduler is not None or self.workers is not None):
            raise ValueError("--scheduler and --workers are for --mode online: leave them out, or change the mode")
        if self.optional.get("rank") is not None and not self.parameters["channels"]:
            raise ValueError(
                "--rank is over channels: say where they are with --channels, or --colour, or leave it out"
            )
        if self.optional["solver"] is not None:
            make_solver(self.optional["solver"])
        # These raise where what they are made from makes no sense.
        _ = self.box, self.limit, self.survival.checkpoints(self.output)
        files = [path for path in (self.output, self.mosaic, self.report, self.log) if path is not None]
        for path in files:
            check_writable(path)
        if len(set(files)) < len(files):
            raise ValueError("--output, --mosaic, --report and --log name the same file: give them different names")
