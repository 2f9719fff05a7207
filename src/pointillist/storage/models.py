"""The model file: filters, further arrays and metadata. What the metadata mean is up to the learners that write them."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.errors import ModelFileError
from pointillist.storage.codec import Stored, read_arrays, write_arrays

KIND = "model"


def save_model(
    path: str | os.PathLike[str],
    filters: NDArray[np.floating[Any]],
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a model file, as `write_arrays` does.

    Parameters
    ----------
    path : str or path
    filters : array (n_filters, ...)
        float16, float32 or float64, finite; the type is kept.
    metadata : mapping
    arrays : mapping from name to array, optional
        Further arrays; the name "filters" is taken.
    """
    if arrays and "filters" in arrays:
        raise ValueError('arrays must not use the reserved name "filters": choose another name')
    check_filters(np.asarray(filters))
    write_arrays(path, KIND, metadata, {"filters": filters, **(arrays or {})})


def load_model(path: str | os.PathLike[str]) -> Stored:
    """Read a model file or a checkpoint, as `read_arrays` does; ``arrays["filters"]`` is sure to be there and usable."""
    stored = read_arrays(path, KIND)
    try:
        check_filters(stored.arrays.get("filters"))
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return stored


def check_filters(filters: NDArray[Any] | None) -> None:
    """Raise ValueError unless an array can be the filters of a model; None is what a file without any has."""
    if filters is None:
        raise ValueError("it holds no filters")
    if filters.dtype.name not in ("float16", "float32", "float64"):
        raise ValueError(f"filters must be float16, float32 or float64, got {filters.dtype}")
    if filters.ndim < 2 or filters.size == 0:
        raise ValueError(f"filters must have shape (n_filters, ...) and hold samples, got {filters.shape}")
    if not np.isfinite(filters).all():
        raise ValueError("filters hold NaN or infinity")
