"""Learned models as files: an estimator to a model file and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.constraints import filter_shapes
from pointillist.errors import ModelFileError
from pointillist.learners.checkpoints import check_model, pack, unpack_parameters, unpack_state
from pointillist.learners.estimators import BatchCSC, OnlineCSC, publish, training_step
from pointillist.reprs import shown
from pointillist.sampling import seed_from
from pointillist.storage import load_model, save_model
from pointillist.validation import as_path, check_arguments

_CLASSES: dict[str, type[BatchCSC] | type[OnlineCSC]] = {"BatchCSC": BatchCSC, "OnlineCSC": OnlineCSC}


def save(
    estimator: BatchCSC | OnlineCSC,
    path: str | os.PathLike[str],
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
    as_path(path)
    check_arguments(preprocessing=preprocessing, resume=resume)
    if extra is not None and not isinstance(extra, Mapping):
        raise ValueError(f"extra must be None or a mapping, got {shown(extra)}")
    name = type(estimator).__name__
    if _CLASSES.get(name) is not type(estimator):
        raise ValueError(f"estimator must be one of {', '.join(_CLASSES)}, got {shown(estimator)}")
    if not hasattr(estimator, "filters_"):
        raise ValueError("estimator has learned nothing yet: call fit first")
    if resume and not isinstance(estimator, OnlineCSC):
        raise ValueError("resume=True is for OnlineCSC: BatchCSC starts every iteration with empty statistics")
    check_shapes(estimator, estimator.filters_)
    metadata, arrays = pack(estimator, statistics=resume)
    metadata |= {"preprocessing": dict(preprocessing or {}), "extra": dict(extra or {})}
    save_model(path, arrays.pop("filters"), metadata, arrays)


def load(path: str | os.PathLike[str]) -> BatchCSC | OnlineCSC:
    """Read a model that `save` wrote, ready for `transform`, `inverse_transform`, `score` and `partial_fit`.

    `partial_fit` of a model saved without ``resume=True`` starts from its filters, but with empty statistics. A checkpoint
    is a model, too: that of an unfinished run. Nothing in a file makes the model reach out of the process: it works on the
    CPU, wherever it was learned, until you say ``set_params(device="cuda")``.

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
    check_model(stored)
    facts = stored.metadata
    try:
        parameters = unpack_parameters(facts["parameters"], stored.arrays)
        estimator = _CLASSES[facts["class"]](**(parameters | {"device": "cpu"}))
        check_shapes(estimator, stored.arrays["filters"])
        seed_from(estimator.random_state)
        state = unpack_state(training_step(estimator), stored)
    except (ValueError, TypeError) as error:  # as whoever takes a parameter refuses it
        raise ModelFileError(f"{path} is a damaged model file: {' '.join(str(error).split())}") from error
    except MemoryError as error:
        raise ModelFileError(f"{path} has more filters than this machine can go on learning: {error}") from error
    publish(estimator, state)
    if isinstance(estimator, OnlineCSC):
        estimator.state_ = state
    estimator.preprocessing_, estimator.extra_ = facts.get("preprocessing", {}), facts.get("extra", {})
    return estimator


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
