"""Learners in files: parameters and state as metadata and arrays, and the checkpoints of a run. Nothing is pickled.

A checkpoint is a model file with statistics that also holds the place of its run in the stream, and what must not change
in between (parameters, arguments of `fit`, data, version): a run is taken up again to the bit, and never as another one.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import reprlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.sources import ArraySource
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.errors import CheckpointError, ModelFileError
from pointillist.kernels.compiling import environment
from pointillist.learners.step import LearnerState, Ridge, Step, WindowRecord, outlier_table
from pointillist.sampling import Draws
from pointillist.solvers.encoding import SOLVERS
from pointillist.storage import CheckpointFolder, Stored, check_filters, own_version
from pointillist.storage.schema import (
    Leaf,
    anything,
    check_array,
    check_form,
    flag,
    mapping,
    one_of,
    parse_json,
    text,
    whole,
)
from pointillist.storage.schema import number as finite_number
from pointillist.validation import as_path, check_arguments

log = logging.getLogger(__name__)

PARAMETER, STATISTICS, WINDOWS = "parameter.", "statistics.", "windows."
"""Beginnings of the names of arrays that are parameters, or belong to the statistics or the record of windows."""
SETTINGS = {made.__name__: made for made in (*SOLVERS.values(), FilterUpdate, Ridge, Robust, Draws)}
"""Classes of the package that a parameter can be an object of."""
_LARGEST = 1e6
"""Learned filters have norms of at most one; much larger samples would overflow when signals are coded."""
_UNCOMPARED = {"n_jobs", "n_epochs"}
"""Parameters that may differ when a run is resumed: threads do not change the bits, and passes are compared as counted."""
_CHECKPOINT = {
    "fit": {"n_epochs": whole(1), "shuffle": flag},
    "data": mapping,
    "environment": {...: text},
    "stream": {"epoch": whole(0), "offset": whole(0), "skipped": {...: whole(0)}},
    "record": mapping,
}
_MEASURED = Leaf("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_NOTED = Leaf("a number, text or null", lambda value: isinstance(value, int | float | str | None))
# Steps that diverged have recorded NaN and infinity.
_HISTORY = [
    {"iteration": whole(0), "nnz": whole(0), "seconds": finite_number(0), "objective": _MEASURED, ...: _NOTED}
]  # fmt: skip
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def pack(learner: Any, *, statistics: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Metadata and arrays of a fitted learner; learning goes on exactly from there only with the statistics."""
    parameters, arrays = pack_parameters(learner, learner.seed_)
    arrays |= {
        "filters": learner.filters_,
        "usage": np.asarray(learner.usage_, np.float64),
        "penalty": np.asarray(learner.penalty_, np.float64),
        # Not among the metadata, whose size is limited: the history of a run of days is not.
        "history": np.frombuffer(json.dumps(learner.history_).encode(), np.uint8),
    }
    state: LearnerState | None = getattr(learner, "state_", None)
    if state is not None and state.constraints.support is not None:
        arrays["support"] = state.constraints.support
    if state is not None and statistics:
        arrays |= {STATISTICS + name: np.asarray(array) for name, array in state.statistics.arrays().items()}
    if hasattr(learner, "outliers_"):
        record = WindowRecord(np.zeros(0), learner.outliers_) if state is None else state.windows
        left = record.left
        arrays[WINDOWS + "errors"], arrays[WINDOWS + "left"] = record.errors, left["error"].copy()
        arrays[WINDOWS + "places"] = np.column_stack([left["signal"], left["start"], left["stop"]])
    metadata = {
        "class": type(learner).__name__,
        "parameters": parameters,
        "seed": learner.seed_,
        "step": learner.n_iter_,
        "n_seen": learner.n_seen_,
    }
    return metadata, arrays


def unpack_state(step: Step, stored: Stored) -> LearnerState:
    """The state that `pack` gave, from a file that was checked; its statistics are empty where the file holds none."""
    arrays, facts = stored.arrays, stored.metadata
    filters = arrays["filters"] if step.channels else arrays["filters"][:, None]
    penalty, history, windows = arrays["penalty"], read_history(arrays), WindowRecord.empty(filters.ndim - 2)
    if WINDOWS + "left" in arrays:
        table = outlier_table(arrays[WINDOWS + "places"], arrays[WINDOWS + "left"])
        windows = WindowRecord(arrays[WINDOWS + "errors"], table)
    statistics, sums = step.empty(filters.shape), _named(arrays, STATISTICS)
    if sums:
        for name, array in statistics.arrays().items():
            check_array(sums, name, "f", array.shape)
        statistics.load(sums)
    return LearnerState(
        filters=filters,
        penalty=float(penalty) if penalty.ndim == 0 else penalty,
        seed=facts["seed"],
        step=facts["step"],
        statistics=statistics,
        constraints=step.constraints(arrays.get("support")),
        n_seen=facts["n_seen"],
        seconds=history[-1]["seconds"] if history else 0.0,
        usage=arrays["usage"],
        history=history,
        windows=windows,
    )


def pack_parameters(learner: Any, seed: int) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The parameters as JSON values, and those of their values that are arrays; `seed` stands for a generator."""
    arrays: dict[str, NDArray] = {}
    given = learner.get_params(deep=False)
    if not isinstance(given["random_state"], int | np.integer):
        given["random_state"] = seed
    return {name: _packed(value, PARAMETER + name, arrays) for name, value in given.items()}, arrays


def _packed(value: Any, name: str, arrays: dict[str, NDArray]) -> Any:
    """A JSON value; arrays are put aside under `name`."""
    # JSON knows lists only, but the filter sizes (5, 11) and [5, 11] mean different things.
    if isinstance(value, tuple):
        return {"tuple": [_packed(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, list):
        return [_packed(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
    if is_dataclass(value):
        settings = {one.name: _packed(getattr(value, one.name), f"{name}.{one.name}", arrays) for one in fields(value)}
        return {"class": type(value).__name__, "settings": settings}
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return value
    if hasattr(value, "__array__"):
        arrays[name] = np.asarray(value)
        return {"array": name}
    return {"class": type(value).__name__, "settings": None}


def unpack_parameters(packed: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> dict[str, Any]:
    """The parameters that `pack_parameters` gave, but for objects of classes that are not the package's.

    The filters are worth more than, say, the solver that found them, so that such an object is no error: it is left out with
    a warning, and the learner's default takes its place. What a parameter may be, the learner checks.
    """
    packed = dict(packed)
    update = packed.get("update")
    if isinstance(update, Mapping) and isinstance(update.get("settings"), Mapping):
        # Files of earlier versions have rank and robust among the settings of the update.
        moved = {name: value for name, value in update["settings"].items() if name in ("rank", "robust")}
        kept = {name: value for name, value in update["settings"].items() if name not in moved}
        packed |= {"update": {**update, "settings": kept}, **moved}
    parameters = {}
    for name, value in packed.items():
        try:
            parameters[name] = _unpacked(value, arrays)
        except LookupError as error:
            log.warning("%s %s is not one of the package: the model has the default instead", name, error.args[0])
    return parameters


def _unpacked(value: Any, arrays: Mapping[str, NDArray]) -> Any:
    """A value from a file; LookupError for an object of a class that is not the package's."""
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"tuple"}:
        return tuple(_unpacked(item, arrays) for item in value["tuple"])
    if value.keys() == {"array"}:
        array = arrays.get(value["array"]) if str(value["array"]).startswith(PARAMETER) else None
        if array is None or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise ValueError(f"{reprlib.repr(value['array'])} is no array of a parameter")
        return array
    check_form(value, {"class": text, "settings": anything}, "parameters")
    if value["class"] not in SETTINGS or value["settings"] is None:
        raise LookupError(value["class"])
    check_form(value["settings"], mapping, value["class"])
    # Files of earlier versions have a setting of coordinate descent that is gone.
    kept = {name: item for name, item in value["settings"].items() if name != "keep_start"}
    return SETTINGS[value["class"]](**{name: _unpacked(item, arrays) for name, item in kept.items()})


def _named(arrays: Mapping[str, NDArray], prefix: str) -> dict[str, NDArray]:
    """The arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def check_model(stored: Stored) -> None:
    """Raise ModelFileError, naming the entry, unless a file holds a learner, whose parameters it checks by itself."""
    facts, arrays = stored.metadata, stored.arrays
    try:
        counts = {"seed": whole(0, math.inf), "step": whole(0), "n_seen": whole(0)}
        others = {name: mapping for name in ("preprocessing", "extra") if name in facts}
        place = _CHECKPOINT if "stream" in facts else {}
        learner = {"class": one_of(("BatchCSC", "OnlineCSC")), "parameters": {"channels": flag, ...: anything}}
        check_form(facts, {**learner, **counts, **others, **place}, "metadata")
        check_filters(arrays)
        filters = arrays["filters"] if facts["parameters"]["channels"] else arrays["filters"][:, None]
        if filters.ndim < 3:
            raise ValueError(f"filters of shape {arrays['filters'].shape} have no channels")
        if float(np.abs(filters).max()) > _LARGEST:
            raise ValueError(f"filters must lie between -{_LARGEST:g} and {_LARGEST:g}")
        n_filters, _, *size = filters.shape
        check_array(arrays, "usage", "f", (n_filters,), least=0)
        if check_array(arrays, "penalty", "f", least=sys.float_info.min).ndim > filters.ndim - 1:
            raise ValueError("array penalty has too many axes")
        if "support" in arrays:
            check_array(arrays, "support", "b", (n_filters, *size))
        if _named(arrays, WINDOWS):
            check_array(arrays, WINDOWS + "errors", "f", (None,), least=0)
            left = check_array(arrays, WINDOWS + "left", "f", (None,), least=0)
            check_array(arrays, WINDOWS + "places", "i", (len(left), 1 + 2 * len(size)), least=0)
        read_history(arrays)
    except ValueError as error:
        raise ModelFileError(f"{stored.path} is no model of a learner, or a damaged model file: {error}") from error


def check_checkpoint(stored: Stored) -> None:
    """Raise ModelFileError, naming the entry, unless a file holds a learner and the place of its run."""
    if "stream" not in stored.metadata or not _named(stored.arrays, STATISTICS):
        raise ModelFileError(f"{stored.path} is no checkpoint: it holds no place of a run, or no statistics")
    check_model(stored)


def read_history(arrays: Mapping[str, NDArray]) -> list[dict[str, Any]]:
    """The records of all steps; none where a file holds none."""
    if "history" not in arrays:
        return []
    history: list[dict[str, Any]] = parse_json(check_array(arrays, "history", "u", (None,)).tobytes(), nan=True)
    check_form(history, _HISTORY, "history")
    return history


@dataclass(frozen=True)
class Checkpoints:
    """Place and time at which `OnlineCSC.fit` puts away its state.

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
        """Find the checkpoint to go on from, if there is one; it is an error without `resume`."""
        folder = self.folder
        found = folder.files()
        if found and not resume:
            raise ValueError(
                f"{found[0]} is a checkpoint of a run that has not ended: resume it (resume=True, --resume), or remove it"
            )
        stored = folder.newest()
        if stored is None and resume:
            log.info("there is no checkpoint of %s yet: the run begins", self.path)
        return stored


def parse_every(every: int | str, counted: str = "steps") -> tuple[int | None, float | None]:
    """Steps, or what else is `counted`, or seconds between two checkpoints."""
    found = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?)\s*([smh])", str(every).strip())
    if found is None or float(found[1] or found[2]) == 0:
        raise ValueError(f'every must be a number of {counted} or a time such as "60s", "5m" or "2h", got {every!r}')
    return (int(found[1]), None) if found[1] else (None, float(found[2]) * _UNITS[found[3]])


class Keeper:
    """Writes the checkpoints of one run; a disk that is full or read-only does not stop it."""

    def __init__(self, checkpoints: Checkpoints, learner: Any, feed: Any) -> None:
        self._checkpoints, self._learner, self._stream = checkpoints, learner, feed.stream
        self._steps, self._seconds = parse_every(checkpoints.every)
        self._run, self._last, self._failure = _run(feed), time.monotonic(), ""

    def after_step(self, state: LearnerState, *, stop: bool) -> None:
        """Write if it is time, or if the run stops here."""
        late = self._seconds is not None and time.monotonic() - self._last >= self._seconds
        if stop or late or (self._steps is not None and state.step % self._steps == 0):
            self.write(state)

    def finish(self, state: LearnerState) -> None:
        """Remove the checkpoints of a run that has ended, or keep them with one of its end if asked to."""
        if self._checkpoints.keep:
            self.write(state)
        else:
            self._checkpoints.clear()

    def write(self, state: LearnerState) -> None:
        """Write a checkpoint, or say why not; the last good one stays."""
        metadata, arrays = pack(self._learner, statistics=True)
        metadata |= {**self._run, "stream": self._stream.place(), "record": dict(self._checkpoints.record)}
        failure = ""
        try:
            self._checkpoints.folder.write(state.step, metadata, arrays)
        except OSError as error:
            failure = error.strerror or str(error)
            if failure != self._failure:  # not after every step
                log.warning("no checkpoint at step %d, learning goes on: %s", state.step, error)
        self._failure, self._last = failure, time.monotonic()


def resumed_state(learner: Any, step: Step, feed: Any, stored: Stored) -> LearnerState:
    """Return the state of a checkpoint, and let the feed go on from there.

    Raises
    ------
    CheckpointError
        If learner or data are not those of the checkpoint's run; the message names what differs.
    """
    then, now = stored.metadata, _run(feed)
    packed, arrays = pack_parameters(learner, then["seed"])
    parameters, before = _flat(packed), _flat(then["parameters"])
    # Where one has other settings altogether, their fields say nothing.
    both = (parameters.keys() & before.keys()) - _UNCOMPARED
    changed = [
        name for name, array in arrays.items() if not np.array_equal(array, stored.arrays.get(name, np.empty(0)))
    ]
    found = [
        *differences(
            {name: before[name] for name in before if name in both}, {name: parameters[name] for name in both}
        ),
        *[f"{name.removeprefix(PARAMETER).replace('.', '__')} holds other values" for name in changed],
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
    feed.stream.go_to(then["stream"])
    log.info("resuming from %s", stored.path)
    return unpack_state(step, stored)


def _run(feed: Any) -> dict[str, Any]:
    """Settings that the bits of a run depend on besides the learner's parameters and the version of the package."""
    data = dict(feed.stream.source.describe())
    if feed.whole is not None and feed.whole.weights is not None:
        data["weights"] = ArraySource(feed.whole.weights).describe()["content"]
    fit = {"n_epochs": feed.stream.n_epochs, "shuffle": getattr(feed.stream, "shuffle", False)}
    return {"fit": fit, "data": data, "environment": environment()}


def _flat(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Packed parameters with the settings of objects under names such as ``update__zero_mean``."""
    flattened: dict[str, Any] = {}
    for name, value in packed.items():
        if isinstance(value, Mapping) and "class" in value:
            flattened[name] = value["class"]
            flattened |= _flat({f"{name}__{key}": item for key, item in (value["settings"] or {}).items()})
        else:
            flattened[name] = value
    return flattened


def differences(then: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Entries by which a run has become another one, in words."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return [f"{prefix}{name} is {now.get(name)!r}, was {then.get(name)!r}" for name in names]
