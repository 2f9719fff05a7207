"""A learner's parameters and state as metadata and arrays of a file, and back. Nothing is pickled.

Models and checkpoints are packed here alike; a checkpoint adds the place of its run.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.learners.base import ConvolutionalLearner
from pointillist.learners.outliers import WindowRecord
from pointillist.learners.schema import MOVED, PARAMETER, SETTINGS, STATISTICS, WINDOWS, read_history
from pointillist.learners.state import LearnerState
from pointillist.learners.step import Step
from pointillist.storage import KEPT, Stored

log = logging.getLogger(__name__)

_RECORD = 220
"""Bytes of a step's record in a file."""


def pack(learner: ConvolutionalLearner, *, statistics: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
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
        record = WindowRecord.of(learner.outliers_) if state is None else state.windows
        ndim = learner.filters_.ndim - 1 - bool(learner.channels)
        arrays |= {WINDOWS + name: array for name, array in record.arrays(ndim).items()}
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
    sums = _named(arrays, STATISTICS)
    penalty, history = arrays["penalty"], read_history(arrays)
    return LearnerState(
        filters,
        step.empty(filters.shape, sums),
        step.constraints(arrays.get("support")),
        float(penalty) if penalty.ndim == 0 else penalty,
        facts["seed"],
        step=facts["step"],
        n_seen=facts["n_seen"],
        seconds=history[-1]["seconds"] if history else 0.0,
        usage=arrays["usage"],
        history=history,
        windows=WindowRecord(**_named(arrays, WINDOWS)),
    )


def pack_parameters(learner: ConvolutionalLearner, seed: int) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The parameters as JSON values, and those of their values that are arrays; `seed` stands for a generator."""
    arrays: dict[str, NDArray] = {}
    given = learner.get_params(deep=False)
    if not isinstance(given["random_state"], int | np.integer):
        given["random_state"] = seed
    return {name: _packed(value, PARAMETER + name, arrays) for name, value in given.items()}, arrays


def unpack_parameters(packed: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> dict[str, Any]:
    """The parameters that `pack_parameters` gave, but for objects of classes that are not the package's.

    The filters are worth more than, say, the solver that found them, so that such an object is no error: it is left out with
    a warning, and the learner's default takes its place.
    """
    parameters = {}
    update = packed["update"]
    if update is not None and update["settings"] is not None:
        # Files of earlier versions have rank and robust among the settings of the update.
        kept = {name: value for name, value in update["settings"].items() if name not in MOVED}
        moved = {name: value for name, value in update["settings"].items() if name in MOVED}
        packed = {**packed, "update": {**update, "settings": kept}, **moved}
    for name, value in packed.items():
        try:
            parameters[name] = _unpacked(value, arrays)
        except _UnknownClassError as error:
            log.warning("%s %s is not one of the package: the model has the default instead", name, error)
    return parameters


def flat(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Packed parameters with the settings of nested objects under names such as ``update__zero_mean``."""
    flattened: dict[str, Any] = {}
    for name, value in packed.items():
        if isinstance(value, Mapping) and "class" in value:
            flattened[name] = value["class"]
            flattened |= flat({f"{name}__{key}": item for key, item in (value["settings"] or {}).items()})
        else:
            flattened[name] = value
    return flattened


def changed_arrays(now: Mapping[str, NDArray], then: Mapping[str, NDArray]) -> list[str]:
    """Names, such as ``update__init``, of the parameters whose arrays have changed."""
    changed = [name for name, array in now.items() if not np.array_equal(array, then.get(name, np.empty(0)))]
    return [name.removeprefix(PARAMETER).replace(".", "__") for name in changed]


def bytes_on_disk(filters: int, n_steps: int, statistics: int | None = None) -> int:
    """The most bytes that the files of a run take.

    Parameters
    ----------
    filters : int
        Bytes of the filters.
    n_steps : int
    statistics : int or None
        Bytes of the statistics, where there are checkpoints: the kept ones, and the one that is being written.
    """
    model = filters + _RECORD * n_steps
    return model if statistics is None else model + (KEPT + 1) * (model + statistics)


def _named(arrays: Mapping[str, NDArray], prefix: str) -> dict[str, NDArray]:
    """The arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class _UnknownClassError(LookupError):
    """An object is of a class that cannot be made from a file."""


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


def _unpacked(value: Any, arrays: Mapping[str, NDArray]) -> Any:
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "tuple" in value:
        return tuple(_unpacked(item, arrays) for item in value["tuple"])
    if "array" in value:
        return arrays[value["array"]]
    if value["class"] not in SETTINGS or value["settings"] is None:
        raise _UnknownClassError(value["class"])
    return SETTINGS[value["class"]](**{name: _unpacked(item, arrays) for name, item in value["settings"].items()})
