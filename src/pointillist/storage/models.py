"""The model file: filters, further arrays and metadata in one safetensors file.

Nothing in it is pickled, so that reading a file from a stranger runs no code. What the metadata mean is up to
the learners that write them.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from pointillist.errors import ModelFileError
from pointillist.storage.files import atomic_path

FORMAT = "pointillist-model"
FORMAT_VERSION = 1

_KEY = "pointillist"
_FILTERS = "filters"
_FLOATS = ("float16", "float32", "float64")
_NUMBERS = (*_FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class StoredModel:
    """What a model file holds.

    Attributes
    ----------
    filters : array (n_filters, ...)
        float16, float32 or float64, as saved.
    metadata : dict
        JSON values: settings, counters, provenance.
    arrays : dict from name to array
        Further arrays, such as the statistics a learner resumes from.
    created : str
        When the file was written, ISO 8601, UTC.
    pointillist_version : str
        The version that wrote it.
    """

    filters: NDArray[np.floating[Any]]
    metadata: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    created: str = ""
    pointillist_version: str = ""


def save_model(
    path: str | os.PathLike[str],
    filters: NDArray[np.floating[Any]],
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a model file; an existing file is replaced only once the new one is complete.

    Parameters
    ----------
    path : str or path
    filters : array (n_filters, ...)
        float16, float32 or float64, finite; the type is kept.
    metadata : mapping
        Strings, finite numbers, booleans, None, and lists and mappings of these. NumPy scalars and arrays
        become plain numbers and lists, tuples become lists.
    arrays : mapping from name to array, optional
        Further arrays of numbers or booleans; the name "filters" is taken.

    Raises
    ------
    ValueError
        If something cannot be stored; the message names it.
    OSError
        If the file cannot be written.
    """
    tensors = {_FILTERS: _checked_filters(np.asarray(filters))}
    for name, array in (arrays or {}).items():
        if name in (_FILTERS, "__metadata__"):
            raise ValueError(f'arrays must not use the reserved name "{name}": choose another name')
        tensors[name] = _storable(np.asarray(array), f'arrays["{name}"]', _NUMBERS)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "pointillist_version": own_version(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "metadata": plain(metadata, "metadata"),
    }
    content = save(tensors, {_KEY: json.dumps(header, allow_nan=False)})
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    StoredModel

    Raises
    ------
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    ModelFileError
        If the file is truncated, of another kind, or written in a newer format.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such model file: {path}")
    if not path.is_file():
        raise ModelFileError(f"{path} is not a file: give the model file itself")
    # Opened first because safetensors reports a missing permission less clearly.
    with path.open("rb"):
        pass
    header, tensors = _read(path)
    try:
        filters = _checked_filters(tensors.pop(_FILTERS))
    except (KeyError, ValueError) as error:
        reason = "it holds no filters" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"{path} is a damaged model file: {reason}") from error
    return StoredModel(
        filters=filters,
        metadata=header["metadata"],
        arrays=tensors,
        created=str(header.get("created", "")),
        pointillist_version=str(header.get("pointillist_version", "")),
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with safe_open(path, framework="numpy") as file:
            # The header comes first: a newer format may hold tensors that this version cannot read.
            header = _checked_header(file.metadata() or {}, path)
            return header, {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except ModelFileError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is truncated or not a pointillist model file: {reason}") from error


def _checked_header(entries: Mapping[str, str], path: Path) -> dict[str, Any]:
    if _KEY not in entries:
        raise ModelFileError(f"{path} is a safetensors file, but not one written by pointillist")
    try:
        header = json.loads(entries[_KEY])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is a damaged model file: its metadata are not JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a pointillist model: its metadata do not say {FORMAT}")
    number = header.get("format_version")
    if type(number) is not int or number < 1:
        raise ModelFileError(f"{path} is a damaged model file: its format_version is {number!r}")
    if number > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {number}, this pointillist reads up to {FORMAT_VERSION}: upgrade it"
        )
    if not isinstance(header.get("metadata"), dict):
        raise ModelFileError(f"{path} is a damaged model file: its metadata are missing")
    return header


def _checked_filters(filters: NDArray[Any]) -> NDArray[Any]:
    filters = _storable(filters, "filters", _FLOATS)
    if filters.ndim < 2 or filters.size == 0:
        raise ValueError(f"filters must have shape (n_filters, ...) and hold samples, got {filters.shape}")
    if not np.isfinite(filters).all():
        raise ValueError("filters hold NaN or infinity")
    return filters


def _storable(array: NDArray[Any], name: str, types: tuple[str, ...]) -> NDArray[Any]:
    if array.dtype.name not in types:
        raise ValueError(f"{name} has type {array.dtype}: convert it to one of {', '.join(types)}")
    # safetensors stores little-endian samples in C order.
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def plain(value: Any, name: str) -> Any:
    """Convert to what JSON can hold without loss, or raise naming the entry that cannot be held."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, which JSON cannot hold: store None or a string instead")
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{name} has the key {key!r}, which is not a string")
        return {key: plain(item, f'{name}["{key}"]') for key, item in value.items()}
    raise ValueError(f"{name} is a {type(value).__name__}, which JSON cannot hold: convert it first")


def own_version() -> str:
    """The version of this package, or "unknown" where it was not installed."""
    try:
        return version("pointillist")
    except PackageNotFoundError:
        return "unknown"
