"""Learned models and codes as files: an estimator to a model file and back, sparse codes likewise.

What the metadata of a model mean is decided here; the bytes are the business of the storage layer. Nothing is pickled.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from pointillist.errors import ModelFileError
from pointillist.learners.base import ConvolutionalLearner, publish
from pointillist.learners.batch import BatchCSC
from pointillist.learners.online import OnlineCSC
from pointillist.learners.packing import finite, number_or_array, pack_parameters, unpack_parameter, with_nan
from pointillist.learners.state import LearnerState
from pointillist.model.codes import SparseCodes
from pointillist.storage import atomic_path, load_model, save_model

log = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]

_CLASSES: dict[str, type[BatchCSC] | type[OnlineCSC]] = {"BatchCSC": BatchCSC, "OnlineCSC": OnlineCSC}
_STATISTICS = "statistics."
_USAGE = "usage"
_PENALTY = "fitted.penalty"
_SUPPORT = "support"
_CODES_FORMAT = "pointillist-codes"
_CODES_VERSION = 1


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
        filters = stored.filters if estimator.channels else stored.filters[:, None]
        step = estimator.training_step()
        sums = {k.removeprefix(_STATISTICS): v for k, v in stored.arrays.items() if k.startswith(_STATISTICS)}
        state = LearnerState(
            filters,
            step.empty(filters.shape, sums),
            step.update.constraints(stored.arrays.get(_SUPPORT)),
            number_or_array(stored.arrays[_PENALTY]),
            int(facts["seed"]),
            step=int(facts["n_iter"]),
            n_seen=int(facts["n_seen"]),
            seconds=float(history[-1]["seconds"]) if history else 0.0,
            usage=stored.arrays[_USAGE],
            history=history,
        )
        preprocessing, extra = dict(facts.get("preprocessing", {})), dict(facts.get("extra", {}))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is a damaged model file: {type(error).__name__}: {reason}") from error
    publish(estimator, state)
    if isinstance(estimator, OnlineCSC):
        estimator.state_ = state
    estimator.preprocessing_ = preprocessing
    estimator.extra_ = extra
    return estimator


def _pack_state(estimator: ConvolutionalLearner, resume: bool) -> dict[str, NDArray]:
    """What `partial_fit` needs besides the filters."""
    state = getattr(estimator, "state_", None)
    if state is None:
        if resume:
            raise ValueError("resume=True is for OnlineCSC: BatchCSC starts every iteration with empty statistics")
        return {}
    sums = state.statistics.arrays() if resume else {}
    arrays = {_STATISTICS + name: np.asarray(array) for name, array in sums.items()}
    if state.constraints.support is not None:
        arrays[_SUPPORT] = state.constraints.support
    return arrays


def save_codes(codes: SparseCodes, path: PathLike, metadata: Mapping[str, Any] | None = None) -> None:
    """Write sparse codes: flat indices and values of all signals, and where each signal's begin.

    Parameters
    ----------
    codes : SparseCodes
    path : str or path
        Replaced only once the new file is complete.
    metadata : mapping, optional
        What JSON can hold, such as the names of the signals; see `load_codes_metadata`.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1
    """
    offsets = np.concatenate([[0], np.cumsum([len(index) for index in codes.indices])]).astype(np.int64)
    tensors = {
        "indices": np.concatenate([np.empty(0, np.int64), *codes.indices]).astype(np.int64),
        "values": np.concatenate([np.empty(0, codes.dtype), *codes.values]),
        "offsets": offsets,
        "grids": np.asarray(codes.grids, np.int64),
    }
    header = {
        "format": _CODES_FORMAT,
        "format_version": _CODES_VERSION,
        "n_filters": codes.n_filters,
        "metadata": dict(metadata or {}),
    }
    content = to_bytes(tensors, {"pointillist": json.dumps(header, allow_nan=False)})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def load_codes(path: PathLike) -> SparseCodes:
    """Read sparse codes that `save_codes` or ``pointillist encode`` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SparseCodes

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file holds no codes, or damaged ones.
    """
    header, tensors = _read_codes(path)
    try:
        offsets, grids = tensors["offsets"], tensors["grids"]
        n_filters = int(header["n_filters"])
        indices = np.split(tensors["indices"], offsets[1:-1])
        values = np.split(tensors["values"], offsets[1:-1])
        for index, grid in zip(indices, grids, strict=True):
            if len(index) and not 0 <= index.min() <= index.max() < n_filters * np.prod(grid):
                raise ValueError("indices lie outside the grid")
        return SparseCodes(indices, values, [tuple(grid) for grid in grids.tolist()], n_filters)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path} is a damaged codes file: {error}") from error


def load_codes_metadata(path: PathLike) -> dict[str, Any]:
    """What was recorded with the codes: for ``pointillist encode`` the model, the penalty and one entry for each signal."""
    return dict(_read_codes(path)[0].get("metadata", {}))


def _read_codes(path: PathLike) -> tuple[dict[str, Any], dict[str, NDArray]]:
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such codes file: {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("pointillist", "{}"))
            tensors = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except PermissionError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is truncated or not a codes file: {reason}") from error
    if not isinstance(header, dict) or header.get("format") != _CODES_FORMAT:
        raise ModelFileError(f"{path} holds no codes: write some with pointillist encode")
    if header.get("format_version") != _CODES_VERSION:
        raise ModelFileError(f"{path} is in codes format {header.get('format_version')!r}: upgrade pointillist")
    return header, tensors
