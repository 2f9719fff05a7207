"""Putting away the state of an online run and taking it up again, to the bit.

A checkpoint holds all that a step depends on: filters, statistics, counters, the seed, the position in the stream. It also
holds what must not change in between (settings, data, version), so that a run is never continued as another one. Files are
the storage layer's business.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pointillist.backends.devices import processor
from pointillist.dictionary.constraints import FilterConstraints
from pointillist.errors import CheckpointError
from pointillist.learners.base import ConvolutionalLearner, LearnerState
from pointillist.learners.packing import finite, number_or_array, pack_parameters, with_nan
from pointillist.storage import CheckpointFolder, StoredCheckpoint, own_version

if TYPE_CHECKING:
    from pointillist.learners.feed import Feed

log = logging.getLogger(__name__)

_STATISTICS = "statistics."
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FREE = ("n_jobs", "random_state")
"""Settings that may change between two parts of a run: neither threads nor the seed's origin change its bits."""


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
        parse_every(self.every)

    @property
    def folder(self) -> CheckpointFolder:
        return CheckpointFolder(self.path)

    def peek(self) -> dict[str, Any] | None:
        """The facts of the newest good checkpoint (``step``, ``parameters``, ``record``, ...), None where there is none."""
        stored = self.folder.newest()
        return None if stored is None else stored.facts

    def clear(self) -> None:
        """Remove the checkpoints."""
        self.folder.clear()

    def begin(self, *, resume: bool) -> StoredCheckpoint | None:
        """What to go on from; clears away what a killed run left unfinished."""
        folder = self.folder
        found = folder.files()
        if found and not resume:
            raise ValueError(
                f"{found[0]} is a checkpoint of a run that has not ended: resume it (resume=True, --resume), or remove it"
            )
        folder.sweep()
        stored = folder.newest()
        if stored is None and resume:
            log.info("there is no checkpoint of %s yet: the run begins", self.path)
        return stored


def parse_every(every: int | str) -> tuple[int | None, float | None]:
    """Steps or seconds between two checkpoints."""
    if isinstance(every, int | np.integer) and not isinstance(every, bool) and every >= 1:
        return int(every), None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", every.strip()) if isinstance(every, str) else None
    if found is None or float(found[1]) <= 0 or (not found[2] and "." in found[1]):
        raise ValueError(f'every must be a number of steps or a time such as "60s", "5m" or "2h", got {every!r}')
    return (None, float(found[1]) * _UNITS[found[2]]) if found[2] else (int(found[1]), None)


class Keeper:
    """Writes the checkpoints of one run; a disk that is full or read-only does not stop it."""

    def __init__(self, checkpoints: Checkpoints, learner: ConvolutionalLearner, feed: Feed) -> None:
        self._checkpoints, self._learner, self._feed = checkpoints, learner, feed
        self._steps, self._seconds = parse_every(checkpoints.every)
        self._data = feed.describe()
        self._last = time.monotonic()
        self._failure = ""

    def after_step(self, state: LearnerState, *, stop: bool) -> None:
        """Write if it is time, or if the run stops here."""
        if self._steps is not None:
            due = state.step % self._steps == 0
        else:
            due = self._seconds is not None and time.monotonic() - self._last >= self._seconds
        if due or stop:
            self.write(state)

    def finish(self, state: LearnerState) -> None:
        """The run has come to its end."""
        if self._checkpoints.keep:
            self.write(state)
            return
        try:
            self._checkpoints.clear()
        except OSError as error:
            log.warning("the run has ended, but its checkpoints cannot be removed: %s", error)

    def write(self, state: LearnerState) -> None:
        """Write a checkpoint, or say why not; the last good one stays."""
        facts, arrays = pack_state(self._learner, state)
        facts |= {"stream": self._feed.stream.state(), "data": self._data, "record": dict(self._checkpoints.record)}
        begin = time.monotonic()
        try:
            path = self._checkpoints.folder.write(state.step, facts, arrays)
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


def pack_state(learner: ConvolutionalLearner, state: LearnerState) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """All that a run depends on, but for its data: facts for JSON, and arrays."""
    parameters, arrays = pack_parameters(learner)
    history = json.dumps([finite(info) for info in state.history], allow_nan=False).encode()
    arrays |= {
        "filters": state.filters,
        "usage": state.usage,
        "penalty": np.asarray(state.penalty, np.float64),
        # Not with the facts: these are limited in size, the history of a run of days is not.
        "history": np.frombuffer(history, np.uint8),
    }
    arrays |= {_STATISTICS + name: np.asarray(array) for name, array in state.statistics.arrays().items()}
    if state.constraints.support is not None:
        arrays["support"] = state.constraints.support
    facts = {
        "class": type(learner).__name__,
        "parameters": parameters,
        "seed": state.seed,
        "step": state.step,
        "n_seen": state.n_seen,
        "seconds": state.seconds,
        "version": own_version(),
        "environment": environment(),
    }
    return facts, arrays


def restore(learner: ConvolutionalLearner, feed: Feed, stored: StoredCheckpoint) -> LearnerState:
    """The state of a checkpoint, for a learner and data that are those of its run; the feed goes on from there.

    Raises
    ------
    CheckpointError
        If they are not; the message names what differs.
    """
    facts, arrays = stored.facts, stored.arrays
    learner.seed_ = facts["seed"]
    _refuse_differences(learner, feed, stored)
    filters = arrays["filters"]
    sums = learner._statistics(len(filters), filters.shape[1], filters.shape[2:])
    sums.restore({k.removeprefix(_STATISTICS): v for k, v in arrays.items() if k.startswith(_STATISTICS)})
    constraints = FilterConstraints(learner.zero_mean, learner.nonnegative_filters, arrays.get("support"))
    state = LearnerState(
        filters,
        sums,
        constraints,
        number_or_array(arrays["penalty"]),
        facts["seed"],
        step=facts["step"],
        n_seen=facts["n_seen"],
        seconds=facts["seconds"],
        usage=arrays["usage"],
        history=[with_nan(info) for info in json.loads(arrays["history"].tobytes())],
    )
    feed.stream.restore(facts["stream"])
    learner._publish(state)
    log.info("resuming from %s", stored.path)
    return state


def environment() -> dict[str, str]:
    """Whatever else the bits of a run may depend on."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
        "machine": platform.machine(),
        "processor": processor(),
    }


def _refuse_differences(learner: ConvolutionalLearner, feed: Feed, stored: StoredCheckpoint) -> None:
    facts = stored.facts
    parameters, arrays = pack_parameters(learner)
    kept = {name: value for name, value in parameters.items() if name not in _FREE}
    if isinstance(learner.random_state, int | np.integer):
        kept["random_state"] = int(learner.random_state)
    then = {name: facts["parameters"].get(name) for name in kept}
    differences = _differences(then, kept)
    differences += [
        f"{name.partition('.')[2]} holds other values"
        for name, array in arrays.items()
        if not np.array_equal(array, stored.arrays.get(name, np.empty(0)))
    ]
    differences += _differences(facts["data"], feed.describe(), "data: ")
    differences += _differences({"version": facts["version"]}, {"version": own_version()}, "pointillist ")
    if differences:
        raise CheckpointError(
            f"{stored.path} belongs to another run: {'; '.join(differences)}. Resume with what that had, or remove it"
        )
    others = _differences(facts["environment"], environment())
    if others:
        log.warning("resuming in another environment, so the bits may differ: %s", "; ".join(others))


def _differences(then: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return [f"{prefix}{name} is {now.get(name)!r}, was {then.get(name)!r}" for name in names]
