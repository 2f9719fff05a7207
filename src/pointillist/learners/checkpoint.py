"""Putting away the state of an online run and taking it up again, to the bit.

A checkpoint is a model file with statistics that also holds the place of its run in the stream, and what must not change
in between (arguments of `fit`, data, version), so that a run is never continued as another one.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from pointillist.errors import CheckpointError
from pointillist.kernels.compiling import environment
from pointillist.learners.base import ConvolutionalLearner, publish
from pointillist.learners.feed import Feed
from pointillist.learners.packing import changed_arrays, flat, pack, pack_parameters, unpack_state
from pointillist.learners.schema import check_checkpoint
from pointillist.learners.state import LearnerState
from pointillist.learners.step import Step
from pointillist.storage import CheckpointFolder, Stored, own_version
from pointillist.validation import as_path, check_arguments, is_integer

log = logging.getLogger(__name__)

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FREE = {"n_jobs", "n_epochs"}
"""Parameters that are not compared: threads do not change the bits, and passes are compared as the run counts them."""


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often `OnlineCSC.fit` puts away its state.

    Parameters
    ----------
    path : str or path
        The file that the run will end in, such as ``filters.safetensors``; its checkpoints are
        ``filters.checkpoint-<step>.safetensors`` beside it, the last two of them.
    every : int or str
        Steps, or a time: ``100``, ``"60s"``, ``"5m"``, ``"2h"``. It does not change what is learned. A checkpoint takes what
        the statistics do, 18 MB for 100 filters of 11×11 and 283 MB, about a second, for 400; learning waits for it.
    keep : bool
        Keep the checkpoints when the run has ended, with one of its very end, until `clear`. A run that a callback stopped
        always keeps them.
    record : mapping
        What JSON can hold and whoever resumes wants to know; see `peek`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt, tempfile
    >>> signals = np.random.default_rng(0).standard_normal((6, 60))
    >>> model = pt.OnlineCSC(n_filters=4, filter_size=5, penalty=0.5, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = model.fit(signals, checkpoint=pt.Checkpoints(f"{folder}/filters.safetensors"), resume=True)
    """

    path: str | os.PathLike[str]
    every: int | str = "60s"
    keep: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        as_path(self.path)
        check_arguments(keep=self.keep, record=self.record)
        parse_every(self.every)

    @property
    def folder(self) -> CheckpointFolder:
        return CheckpointFolder(self.path, check_checkpoint)

    def peek(self) -> dict[str, Any] | None:
        """The metadata of the newest good checkpoint (``step``, ``parameters``, ``record``, …), if there is one."""
        stored = self.folder.newest()
        return None if stored is None else stored.metadata

    def clear(self) -> None:
        """Remove the checkpoints."""
        self.folder.clear()

    def begin(self, *, resume: bool) -> Stored | None:
        """Find the checkpoint to go on from, if there is one; it is an error without `resume`. Half-written files go."""
        folder = self.folder
        found = folder.files()
        if found and not resume:
            raise ValueError(
                f"{found[0]} is a checkpoint of a run that has not ended: resume it (resume=True, --resume), or remove it"
            )
        folder.remove_leftovers()
        stored = folder.newest()
        if stored is None and resume:
            log.info("there is no checkpoint of %s yet: the run begins", self.path)
        return stored


def parse_every(every: int | str, counted: str = "steps") -> tuple[int | None, float | None]:
    """Steps, or what else is `counted`, or seconds between two checkpoints."""
    if is_integer(every) and every >= 1:
        return int(every), None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", every.strip()) if isinstance(every, str) else None
    if found is None or float(found[1]) <= 0 or (not found[2] and "." in found[1]):
        raise ValueError(f'every must be a number of {counted} or a time such as "60s", "5m" or "2h", got {every!r}')
    return (None, float(found[1]) * _UNITS[found[2]]) if found[2] else (int(found[1]), None)


class Keeper:
    """Writes the checkpoints of one run; a disk that is full or read-only does not stop it."""

    def __init__(self, checkpoints: Checkpoints, learner: ConvolutionalLearner, feed: Feed) -> None:
        self._checkpoints, self._learner, self._feed = checkpoints, learner, feed
        self._steps, self._seconds = parse_every(checkpoints.every)
        self._run = _run(feed)
        self._last = time.monotonic()
        self._failure = ""
        self._own = set(checkpoints.folder.files())

    def after_step(self, state: LearnerState, *, stop: bool) -> None:
        """Write if it is time, or if the run stops here."""
        if self._steps is not None:
            due = state.step % self._steps == 0
        else:
            due = self._seconds is not None and time.monotonic() - self._last >= self._seconds
        if due or stop:
            self.write(state)

    def finish(self, state: LearnerState) -> None:
        """Remove the checkpoints of a run that has ended, or keep them with one of its end if asked to."""
        if self._checkpoints.keep:
            self.write(state)
            return
        try:
            self._checkpoints.clear()
        except OSError as error:
            log.warning("the run has ended, but its checkpoints cannot be removed: %s", error)

    def write(self, state: LearnerState) -> None:
        """Write a checkpoint, or say why not; the last good one stays."""
        metadata, arrays = pack(self._learner, statistics=True)
        metadata |= {**self._run, "stream": self._feed.stream.place(), "record": dict(self._checkpoints.record)}
        begin = time.monotonic()
        try:
            self._notice_others()
            path = self._checkpoints.folder.write(state.step, metadata, arrays)
            self._own.add(path)
        except OSError as error:
            reason = error.strerror or str(error)
            if reason != self._failure:  # not after every step
                log.warning("no checkpoint at step %d, learning goes on: %s", state.step, error)
            self._failure = reason
        else:
            if self._failure:
                log.warning("checkpoints can be written again")
            self._failure = ""
            log.debug("checkpoint %s in %.2f s", path, time.monotonic() - begin)
        self._last = time.monotonic()

    def _notice_others(self) -> None:
        """Warn of checkpoints that this run neither found nor wrote, once for each."""
        others = set(self._checkpoints.folder.files()) - self._own
        if others:
            log.warning("%s is the checkpoint of another run to the same file: stop one of them", min(others))
        self._own |= others


def resumed_state(learner: ConvolutionalLearner, step: Step, feed: Feed, stored: Stored) -> LearnerState:
    """Return the state of a checkpoint, and let the feed go on from there.

    Raises
    ------
    CheckpointError
        If learner or data are not those of the checkpoint's run; the message names what differs.
    """
    _refuse_differences(learner, feed, stored)
    state = unpack_state(step, stored)
    feed.stream.go_to(stored.metadata["stream"])
    publish(learner, state)
    log.info("resuming from %s", stored.path)
    return state


def _refuse_differences(learner: ConvolutionalLearner, feed: Feed, stored: Stored) -> None:
    then, now = stored.metadata, _run(feed)
    packed, arrays = pack_parameters(learner, then["seed"])
    parameters, before = flat(packed), flat(then["parameters"])
    both = parameters.keys() & before.keys()  # where one has other settings altogether, their fields say nothing
    found = [
        *differences(before, parameters, only=both - _FREE),
        *[f"{name} holds other values" for name in changed_arrays(arrays, stored.arrays)],
        *differences(then["fit"], now["fit"]),
        *differences(then["data"], now["data"], "data: "),
        *differences({"version": stored.pointillist_version}, {"version": own_version()}, "pointillist "),
    ]
    if found:
        raise CheckpointError(
            f"{stored.path} belongs to another run: {'; '.join(found)}. Resume with what that had, or remove it"
        )
    others = differences(then["environment"], now["environment"])
    if others:
        log.warning("resuming in another environment, so the bits may differ: %s", "; ".join(others))


def _run(feed: Feed) -> dict[str, Any]:
    """What the bits of a run depend on besides the learner's parameters and the version of the package: for a checkpoint."""
    return {"fit": feed.run(), "data": feed.describe(), "environment": environment()}


def differences(
    then: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "", only: Set[str] | None = None
) -> list[str]:
    """What a run has become another one by, in words that name each entry; `only` some names may be looked at."""
    names = [name for name in {**then, **now} if (only is None or name in only) and then.get(name) != now.get(name)]
    return [f"{prefix}{name} is {now.get(name)!r}, was {then.get(name)!r}" for name in names]
