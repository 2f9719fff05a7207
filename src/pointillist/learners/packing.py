"""Parameters and history of a learner as JSON values and arrays, for whatever file holds them. Nothing is pickled."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pointillist.solvers import SOLVERS

if TYPE_CHECKING:
    from pointillist.learners.base import ConvolutionalLearner

log = logging.getLogger(__name__)

_ARRAY = "parameter."
_DEFAULT_SOLVER = "cd"
_OF_THE_PROCESS = ("callbacks", "cluster")
"""Parameters that mean something to the running program only."""


def pack_parameters(estimator: ConvolutionalLearner) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Parameters as JSON can hold them, and those that are arrays apart."""
    plain: dict[str, Any] = {}
    arrays: dict[str, NDArray] = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _OF_THE_PROCESS:
            continue
        if name == "random_state" and not isinstance(value, int | np.integer):
            value = estimator.seed_
        if name == "solver" and not isinstance(value, str):
            value = _describe_solver(value)
        if name in ("init", "penalty") and not isinstance(value, str) and np.ndim(value) > 0:
            arrays[_ARRAY + name] = np.asarray(value, np.float64)
            value = {"array": _ARRAY + name}
        plain[name] = _mark_tuples(value)
    return plain, arrays


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
    return arrays[value["array"]] if "array" in value else _make_solver(value)


def _describe_solver(solver: Any) -> dict[str, Any]:
    known = is_dataclass(solver) and not isinstance(solver, type)
    settings = {name: _mark_tuples(value) for name, value in asdict(solver).items()} if known else None
    return {"class": type(solver).__name__, "settings": settings}


def _make_solver(description: Mapping[str, Any]) -> Any:
    known = {made.__name__: made for made in SOLVERS.values()}
    kind, settings = description["class"], description["settings"]
    if kind not in known or settings is None:
        # The filters are worth more than the solver that found them, so this is no error.
        log.warning("solver %s is not one of the package: the model uses %r instead", kind, _DEFAULT_SOLVER)
        return _DEFAULT_SOLVER
    return known[kind](**{name: unpack_parameter(value, {}) for name, value in settings.items()})


def finite(info: Mapping[str, Any]) -> dict[str, Any]:
    """A history record with None for NaN and infinity, which JSON cannot hold."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in info.items()}


def with_nan(info: Mapping[str, Any]) -> dict[str, Any]:
    return {k: math.nan if v is None else v for k, v in info.items()}


def number_or_array(value: NDArray) -> float | NDArray:
    return float(value) if value.ndim == 0 else value
