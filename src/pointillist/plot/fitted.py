"""What plots are given, checked: learners that were fitted, their filters and histories, and reconstructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes
from pointillist.plot.convergence import History
from pointillist.reprs import shown
from pointillist.validation import as_numbers


def fitted_filters(model: Any, channels: bool) -> tuple[NDArray, bool]:
    """The filters of a fitted learner or an array, and whether the axis after their first holds channels."""
    if not isinstance(model, BaseEstimator):
        return as_numbers(model, "model"), bool(channels)
    check_is_fitted(model, "filters_")
    if channels and not model.channels:
        raise ValueError("channels is for arrays of filters; this model has none: leave channels out")
    return model.filters_, bool(model.channels)


def checked_signal(signal: Any) -> NDArray:
    """A signal in float64 that holds something; NaN marks what was not seen."""
    array = as_numbers(signal, "signal", np.float64)
    if array.size == 0:
        raise ValueError(f"signal is empty, its shape is {array.shape}")
    if np.any(np.isinf(array)):
        raise ValueError("signal must not hold infinity")
    return array


def histories_of(models: Any) -> dict[str, History]:
    """Histories by name: of one learner or history, of several, or of those in a mapping."""
    if isinstance(models, Mapping):
        named = dict(models.items())
    elif isinstance(models, list | tuple) and not all(isinstance(one, Mapping) for one in models):
        named = {f"{_kind(one)} {number}": one for number, one in enumerate(models)}
    else:
        named = {_kind(models): models}
    if not named:
        raise ValueError("models is empty: give at least one fitted learner or history")
    return {str(name): _history(one) for name, one in named.items()}


def _kind(model: Any) -> str:
    return type(model).__name__ if isinstance(model, BaseEstimator) else "history"


def _history(model: Any) -> History:
    if isinstance(model, BaseEstimator):
        check_is_fitted(model, "history_")
        model = model.history_
    listed = isinstance(model, list | tuple) and all(
        isinstance(info, Mapping) and {"iteration", "seconds"} <= info.keys() for info in model
    )
    if not listed:
        raise ValueError(f"models must be fitted learners, or what they have as history_, got {shown(model)}")
    if not model:
        raise ValueError("models has an empty history: nothing was learned yet")
    return list(model)


def checked_fit(signal: NDArray, model: Any, codes: SparseCodes | None) -> tuple[NDArray, SparseCodes | None, int]:
    """The reconstruction of a signal, its codes, None where there are none, and the signal's axes but for channels."""
    if codes is not None and (not isinstance(codes, SparseCodes) or len(codes) != 1):
        what = f"those of {len(codes)}: index them, codes[0]" if isinstance(codes, SparseCodes) else shown(codes)
        raise ValueError(f"codes must be SparseCodes of one signal, got {what}")
    if isinstance(model, BaseEstimator):
        check_is_fitted(model, "filters_")
        if codes is None:
            _refuse_others(signal, model)
            codes = model.encode([signal]).codes
        fit = np.asarray(model.inverse_transform(codes.on_host())[0], np.float64)
        axes = model.filters_.ndim - 1 - int(model.channels)
    else:
        fit = as_numbers(model, "model", np.float64)
        axes = _axes(signal) if codes is None else len(codes.grids[0])
    if fit.shape != signal.shape:
        raise ValueError(f"model must give a reconstruction of the shape of signal, {signal.shape}, got {fit.shape}")
    if not np.all(np.isfinite(fit)):
        raise ValueError("model gives a reconstruction that holds NaN or infinity")
    return fit, None if codes is None else codes.on_host(), axes


def _refuse_others(signal: NDArray, model: BaseEstimator) -> None:
    """Raise unless the filters of a fitted learner can be those of a signal."""
    shape = model.filters_.shape[1:]
    size = shape[1:] if model.channels else shape
    small = any(samples < side for samples, side in zip(signal.shape[-len(size) :], size, strict=False))
    if signal.ndim != len(shape) or small or (model.channels and len(signal) != shape[0]):
        axes = f"{shape[0]} channels and then {len(size)}" if model.channels else f"{len(size)}"
        raise ValueError(
            f"signal must have {axes} axes, none shorter than the filters, {size}, for this model; got shape {signal.shape}"
        )


def _axes(signal: NDArray) -> int:
    """Axes of a signal but for channels, where nothing else tells: three planes are a picture in colour."""
    return 2 if signal.ndim == 3 and len(signal) == 3 else signal.ndim
