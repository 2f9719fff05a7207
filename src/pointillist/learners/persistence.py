"""Learned models and codes as files: an estimator to a model file and back, sparse codes likewise.

What the metadata of a model mean is decided here; the bytes are the business of the storage layer. Nothing is pickled.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import FilterConstraints
from pointillist.errors import ModelFileError
from pointillist.learners.base import ConvolutionalLearner, LearnerState
from pointillist.learners.batch import BatchCSC
from pointillist.learners.online import OnlineCSC
from pointillist.learners.packing import finite, number_or_array, pack_parameters, unpack_parameter, with_nan
from pointillist.storage import load_model, save_model

PathLike = str | os.PathLike[str]

_CLASSES: dict[str, type[BatchCSC] | type[OnlineCSC]] = {"BatchCSC": BatchCSC, "OnlineCSC": OnlineCSC}
_STATISTICS = "statistics."
_USAGE = "usage"
_PENALTY = "fitted.penalty"
_SUPPORT = "support"


def save(
    estimator: ConvolutionalLearner,
    path: PathLike,
    *,
    preprocessing: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    resume: bool = False,
) -> None:
    """Write a learned model: its filters, parameters, history and how the signals were prepared.

    Parameters
    ----------
    estimator : BatchCSC or OnlineCSC
        Fitted, also partly (an interrupted `fit`).
    path : str or path
        Replaced only once the new file is complete; ``.safetensors`` by custom.
    preprocessing : mapping, optional
        What was done to the signals, such as ``{"normalise": "contrast"}``; `load` gives it back as ``preprocessing_``.
    extra : mapping, optional
        Anything else that JSON can hold, such as where the data came from; back as ``extra_``.
    resume : bool
        Whether to store the statistics of an `OnlineCSC` too, so that `partial_fit` goes on exactly where it stopped. They
        take about 4 K² (2h − 1)(2w − 1) bytes, 18 MB for 100 filters of 11×11.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, max_iter=2, random_state=0).fit(signals)
    >>> pt.save(model, "filters.safetensors", preprocessing={"normalise": "none"})
    >>> pt.load("filters.safetensors").preprocessing_
    {'normalise': 'none'}

    Raises
    ------
    ValueError
        If the estimator is not fitted, or something cannot be stored.
    OSError
        If the file cannot be written.
    """
    name = type(estimator).__name__
    if _CLASSES.get(name) is not type(estimator):
        raise ValueError(f"estimator must be one of {', '.join(_CLASSES)}, got {estimator!r}")
    if not hasattr(estimator, "filters_"):
        raise ValueError("estimator has learned nothing yet: call fit first")
    parameters, arrays = pack_parameters(estimator)
    arrays[_USAGE] = np.asarray(estimator.usage_, np.float64)
    arrays[_PENALTY] = np.asarray(estimator.penalty_, np.float64)
    arrays |= _pack_state(estimator, resume)
    metadata = {
        "class": name,
        "parameters": parameters,
        "preprocessing": dict(preprocessing or {}),
        "history": [finite(info) for info in estimator.history_],
        "n_iter": estimator.n_iter_,
        "n_seen": estimator.n_seen_,
        "seed": estimator.seed_,
        "extra": dict(extra or {}),
    }
    save_model(path, estimator.filters_, metadata, arrays)


def load(path: PathLike) -> BatchCSC | OnlineCSC:
    """Read a model that `save` wrote, ready for `transform`, `inverse_transform`, `score` and `partial_fit`.

    `partial_fit` of a model saved without ``resume=True`` starts from its filters, but with empty statistics.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    BatchCSC or OnlineCSC
        With ``preprocessing_`` and ``extra_`` besides the usual attributes.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> signals = np.random.default_rng(0).standard_normal((3, 60))
    >>> model = pt.BatchCSC(n_filters=4, filter_size=5, penalty=0.5, max_iter=2, random_state=0).fit(signals)
    >>> pt.save(model, "filters.safetensors")
    >>> again = pt.load("filters.safetensors")
    >>> bool(np.all(again.filters_ == model.filters_))
    True

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file is not a model, or not one of an estimator.
    """
    stored = load_model(path)
    facts = stored.metadata
    if facts.get("class") not in _CLASSES:
        raise ModelFileError(f"{path} is no model of a learner: its class is {facts.get('class')!r}")
    try:
        parameters = {name: unpack_parameter(value, stored.arrays) for name, value in facts["parameters"].items()}
        estimator = _CLASSES[facts["class"]](**parameters)
        history = [with_nan(info) for info in facts["history"]]
        filters = stored.arrays["filters"] if estimator.channels else stored.arrays["filters"][:, None]
        state = LearnerState(
            filters,
            estimator._statistics(len(filters), filters.shape[1], filters.shape[2:]),
            FilterConstraints(estimator.zero_mean, estimator.nonnegative_filters, stored.arrays.get(_SUPPORT)),
            number_or_array(stored.arrays[_PENALTY]),
            int(facts["seed"]),
            step=int(facts["n_iter"]),
            n_seen=int(facts["n_seen"]),
            seconds=float(history[-1]["seconds"]) if history else 0.0,
            usage=stored.arrays[_USAGE],
            history=history,
        )
        sums = {k.removeprefix(_STATISTICS): v for k, v in stored.arrays.items() if k.startswith(_STATISTICS)}
        if sums:
            state.statistics.restore(sums)
        preprocessing, extra = dict(facts.get("preprocessing", {})), dict(facts.get("extra", {}))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is a damaged model file: {type(error).__name__}: {reason}") from error
    estimator._publish(state)
    if isinstance(estimator, OnlineCSC):
        estimator._state = state
    estimator.preprocessing_ = preprocessing
    estimator.extra_ = extra
    return estimator


def _pack_state(estimator: ConvolutionalLearner, resume: bool) -> dict[str, NDArray]:
    """What `partial_fit` needs besides the filters."""
    state = getattr(estimator, "_state", None)
    if state is None:
        if resume:
            raise ValueError("resume=True is for OnlineCSC: BatchCSC starts every iteration with empty statistics")
        return {}
    sums = state.statistics.arrays() if resume else {}
    arrays = {_STATISTICS + name: np.asarray(array) for name, array in sums.items()}
    if state.constraints.support is not None:
        arrays[_SUPPORT] = state.constraints.support
    return arrays
