"""What the file of a learner must hold, model or checkpoint; whoever unpacks it trusts what has passed here."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.dictionary.constraints import filter_shapes
from pointillist.dictionary.robust import Robust
from pointillist.dictionary.statistics import statistics_shapes
from pointillist.dictionary.update import FilterUpdate
from pointillist.errors import ModelFileError
from pointillist.learners.coding import Ridge
from pointillist.sampling import Draws
from pointillist.solvers import SOLVERS
from pointillist.storage import Stored, check_filters
from pointillist.storage.schema import (
    Check,
    anything,
    check_array,
    either,
    flag,
    is_number,
    leaf,
    list_of,
    mapping,
    mapping_of,
    nothing,
    number,
    one_of,
    parse_json,
    record,
    text,
    whole,
)
from pointillist.validation import BOUNDARIES

PARAMETER, STATISTICS, WINDOWS = "parameter.", "statistics.", "windows."
"""What the names of arrays begin with that are parameters, or belong to the statistics or the record of windows."""
SETTINGS = {made.__name__: made for made in (*SOLVERS.values(), FilterUpdate, Ridge, Robust, Draws)}
"""Classes of the package that a parameter can be an object of."""
CLASSES = ("BatchCSC", "OnlineCSC")

_LARGEST = 1e6
"""Learned filters have norms of at most one; much larger samples would overflow when signals are coded."""
_MOST = 2**31 - 1
_COUNT = whole(1, _MOST)
_RECORD = {"iteration": whole(0), "nnz": whole(0), "seconds": number(0)}
MOVED = ("rank", "robust")
"""Parameters of learners that were fields of `FilterUpdate` once, and in files of still earlier versions are not there."""
_MEASURED = ("objective", "validation_objective")
_PLACE = record({"epoch": whole(0), "offset": whole(0), "skipped": mapping_of(whole(0))})
_CHECKPOINT = {
    "fit": record({"n_epochs": whole(1), "shuffle": flag}),
    "data": mapping,
    "environment": mapping_of(text),
    "stream": _PLACE,
    "record": mapping,
}


def check_model(stored: Stored) -> None:
    """Raise ModelFileError, naming the entry, unless a file holds a learner that can be made again from it."""
    try:
        _check_model(stored)
    except ValueError as error:
        raise ModelFileError(f"{stored.path} is no model of a learner, or a damaged model file: {error}") from error


def check_checkpoint(stored: Stored) -> None:
    """Raise ModelFileError, naming the entry, unless a file holds a learner and the position of its run."""
    check_model(stored)
    try:
        record(_CHECKPOINT, others=True)(stored.metadata, "metadata")
        if not any(name.startswith(STATISTICS) for name in stored.arrays):
            raise ValueError("it holds no statistics")
    except ValueError as error:
        raise ModelFileError(f"{stored.path} is no checkpoint, or a damaged one: {error}") from error


def _check_model(stored: Stored) -> None:
    facts, arrays = stored.metadata, stored.arrays
    one_of(CLASSES)(facts.get("class"), "class")
    record(
        {"class": text, "parameters": _parameters(facts["class"], arrays)}
        | {"seed": whole(0, None), "step": whole(0), "n_seen": whole(0)},
        {"preprocessing": mapping, "extra": mapping, **_CHECKPOINT},
    )(facts, "metadata")
    check_filters(arrays.get("filters"))
    _check_arrays(facts["parameters"], arrays)
    read_history(arrays)


def check_shapes(learner: Any, filters: NDArray) -> None:
    """Raise ValueError unless a learner's parameters `n_filters` and `filter_size` are those of its filters."""
    count = learner.n_filters if np.ndim(learner.n_filters) == 0 else sum(learner.n_filters)
    size = filters.shape[1 + bool(learner.channels) :]
    # The number first: what a file asks for is not made before that is known to agree.
    if count != len(filters) or filter_shapes(learner.n_filters, learner.filter_size, len(size)).box != size:
        raise ValueError(
            f"n_filters={learner.n_filters} and filter_size={learner.filter_size} are not those of the filters, which are "
            f"{len(filters)} of size {size}"
        )


def read_history(arrays: Mapping[str, NDArray]) -> list[dict[str, Any]]:
    """The records of all steps; none where a file holds none."""
    if "history" not in arrays:
        return []
    history = parse_json(check_array(arrays, "history", "u", (None,)).tobytes(), nan=True)
    list_of(mapping)(history, "history")
    for i, info in enumerate(history):
        for name, check in _RECORD.items():
            check(info.get(name), f"history[{i}].{name}")
        for name, value in {"objective": None, **info}.items():
            known = _is_measured(value) or (name not in _MEASURED and (value is None or isinstance(value, str | bool)))
            if not known:
                raise ValueError(f"history[{i}].{name} must be a number, got {reprlib.repr(value)}")
    return history


def _is_measured(value: Any) -> bool:
    """Whether a value is a number; steps that diverged have recorded NaN and infinity."""
    return is_number(value) or (isinstance(value, float) and not math.isfinite(value))


def _check_arrays(parameters: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Raise ValueError unless all arrays fit the filters."""
    filters = arrays["filters"] if parameters["channels"] else arrays["filters"][:, None]
    if filters.ndim < 3:
        raise ValueError(f"filters of shape {arrays['filters'].shape} have no channels")
    if float(np.abs(filters).max()) > _LARGEST:
        raise ValueError(f"filters must lie between -{_LARGEST:g} and {_LARGEST:g}")
    n_filters, channels, *size = filters.shape
    check_array(arrays, "usage", "f", (n_filters,), least=0)
    if check_array(arrays, "penalty", "f", least=sys.float_info.min).ndim > filters.ndim - 1:
        raise ValueError("array penalty has too many axes")
    if "support" in arrays:
        check_array(arrays, "support", "b", (n_filters, *size))
    _check_windows(arrays, len(size))
    sums = [name for name in arrays if name.startswith(STATISTICS)]
    if sums:
        update = parameters["update"]
        own = update is not None and update["class"] == FilterUpdate.__name__
        kind = update["settings"]["statistics"] if own and update["settings"] else FilterUpdate.statistics
        shapes = statistics_shapes(kind, n_filters, channels, tuple(size))
        if {STATISTICS + name for name in shapes} != set(sums):
            raise ValueError(f"{kind} statistics must have the arrays {', '.join(shapes)}")
        for name, shape in shapes.items():
            check_array(arrays, STATISTICS + name, "f", shape)


def _check_windows(arrays: Mapping[str, NDArray], ndim: int) -> None:
    """Raise ValueError unless the record of windows is whole, where there is one."""
    names = {name for name in arrays if name.startswith(WINDOWS)}
    if names:
        if names != {WINDOWS + "errors", WINDOWS + "left", WINDOWS + "places"}:
            raise ValueError("the record of windows must have the arrays errors, left and places")
        check_array(arrays, WINDOWS + "errors", "f", (None,), least=0)
        left = check_array(arrays, WINDOWS + "left", "f", (None,), least=0)
        check_array(arrays, WINDOWS + "places", "i", (len(left), 1 + 2 * ndim), least=0)


def _parameters(kind: str, arrays: Mapping[str, NDArray]) -> Check:
    """The schema of the parameters, as they are packed, of a learner whose file has these arrays."""
    stored = [name for name, array in arrays.items() if name.startswith(PARAMETER) and _is_usable(array)]
    array = record({"array": one_of(stored)})
    positive = leaf("positive", lambda value: _all_numbers(value, sys.float_info.min))
    several = either("a list or tuple of whole numbers", list_of(_COUNT), record({"tuple": list_of(_COUNT)}))
    size = either("a size", _COUNT, several)
    settings = _settings(array)
    count = either("null or a whole number", nothing, _COUNT)
    length = {"BatchCSC": "max_iter", "OnlineCSC": "batch_size"}[kind]
    return record(
        {
            "n_filters": either("a number of filters, or one for each size", _COUNT, several),
            "filter_size": either("a number, a tuple of numbers, or a list of these", size, list_of(size)),
            "penalty": either("positive numbers", positive, array),
            "sampling": either("a number or settings", number(0), settings),
            "solver": either(f"one of {', '.join(SOLVERS)} or settings", one_of(SOLVERS), settings),
            "boundary": one_of(BOUNDARIES),
            "channels": flag,
            "nonnegative": flag,
            "learning": either("null, a number or settings", nothing, number(0), settings),
            "update": either("null or settings", nothing, settings),
            length: _COUNT,
            "tol": either("null or a number of at least 0", nothing, number(0)),
            "n_jobs": either("null or a number of threads", nothing, whole(-_MOST, 1024)),
            "device": text,
            "random_state": whole(0, None),
        },
        {"n_epochs": count, "rank": count, "robust": either("null or settings", nothing, settings)},
    )


def _settings(array: Check) -> Check:
    """An object of one of the package's classes with fields of the right types, or one of an unknown class."""
    either_number, sides = either("null or a number", nothing, number()), record({"tuple": list_of(_COUNT)})
    types: dict[Any, Check] = {
        int: whole(0, _MOST),
        float: number(),
        int | None: either("null or a whole number", nothing, _COUNT),
        float | None: either_number,
        bool: flag,
        str: text,
        tuple[int, ...]: sides,
        int | tuple[int, ...] | None: either("null, a number or a tuple of numbers", nothing, _COUNT, sides),
        str | ArrayLike: either("text or an array", text, array, leaf("numbers", _all_numbers)),
    }
    known: dict[str, Check] = {}

    def check(value: Any, name: str) -> None:
        record({"class": text, "settings": anything})(value, name)
        if value["settings"] is not None:
            known.get(value["class"], mapping)(value["settings"], f"{name}.settings")

    for kind, made in SETTINGS.items():
        hints = get_type_hints(made)
        known[kind] = record(
            {one.name: types[hints[one.name]] for one in fields(made)},
            {"rank": types[int | None], "robust": either("null or settings", nothing, check)}
            if made is FilterUpdate
            else {},
        )
    return check


def _all_numbers(value: Any, least: float = -math.inf) -> bool:
    """Whether a packed value is a number or a list or tuple of such values, however deep."""
    inside = value["tuple"] if isinstance(value, dict) and value.keys() == {"tuple"} else value
    if isinstance(inside, list):
        return bool(inside) and all(_all_numbers(item, least) for item in inside)
    return is_number(value, least)


def _is_usable(array: NDArray) -> bool:
    return array.dtype.kind in "biuf" and bool(np.isfinite(array).all())
