"""Parameters and history of a learner as JSON values and arrays, for whatever file holds them. Nothing is pickled."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.base import ConvolutionalLearner
from pointillist.learners.coding import Ridge
from pointillist.solvers import SOLVERS

log = logging.getLogger(__name__)

_ARRAY = "parameter."
_DEFAULT_SOLVER = "cd"
_KNOWN = {made.__name__: made for made in (*SOLVERS.values(), FilterUpdate, Ridge)}
"""Settings that a file may hold."""


def pack_parameters(estimator: ConvolutionalLearner) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Parameters as JSON can hold them, and those that are arrays apart."""
    arrays: dict[str, NDArray] = {}
    given = estimator.get_params(deep=False)
    if not isinstance(given["random_state"], int | np.integer):
        given["random_state"] = estimator.seed_
    return {name: _pack(name, value, arrays) for name, value in given.items()}, arrays


def _pack(name: str, value: Any, arrays: dict[str, NDArray]) -> Any:
    """A parameter for JSON; arrays are put into `arrays`, and settings become their class and fields."""
    if name in ("penalty", "update.init") and not isinstance(value, str) and np.ndim(value) > 0:
        arrays[_ARRAY + name] = np.asarray(value, np.float64)
        return {"array": _ARRAY + name}
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: _pack(f"{name}.{one.name}", getattr(value, one.name), arrays) for one in fields(value)}
        return {"class": type(value).__name__, "settings": own}
    if name == "solver" and not isinstance(value, str):
        return {"class": type(value).__name__, "settings": None}
    return _mark_tuples(value)


def _mark_tuples(value: Any) -> Any:
    """JSON knows lists only, but the filter sizes (5, 11) and [5, 11] mean different things."""
    if isinstance(value, tuple):
        return {"tuple": [_mark_tuples(item) for item in value]}
    return [_mark_tuples(item) for item in value] if isinstance(value, list) else value


def unpack_parameter(value: Any, arrays: Mapping[str, NDArray]) -> Any:
    if isinstance(value, list):
        return [unpack_parameter(item, arrays) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "tuple" in value:
        return tuple(unpack_parameter(item, arrays) for item in value["tuple"])
    return arrays[value["array"]] if "array" in value else _make_settings(value, arrays)


def _make_settings(description: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Any:
    kind, settings = description["class"], description["settings"]
    if kind not in _KNOWN or settings is None:
        # The filters are worth more than the solver that found them, so this is no error.
        log.warning("solver %s is not one of the package: the model uses %r instead", kind, _DEFAULT_SOLVER)
        return _DEFAULT_SOLVER
    return _KNOWN[kind](**{name: unpack_parameter(value, arrays) for name, value in settings.items()})


def finite(info: Mapping[str, Any]) -> dict[str, Any]:
    """A history record with None for NaN and infinity, which JSON cannot hold."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in info.items()}


def with_nan(info: Mapping[str, Any]) -> dict[str, Any]:
    return {k: math.nan if v is None else v for k, v in info.items()}


def number_or_array(value: NDArray) -> float | NDArray:
    return float(value) if value.ndim == 0 else value
