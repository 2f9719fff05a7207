"""Arrays and JSON metadata as one file, with everything that is checked when it is written and when it is read.

A file is in the safetensors format, which other tools read too, and nothing in it is pickled: reading a stranger's file runs
no code. No other module opens such files. What the arrays and the metadata mean is up to whoever writes them.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pointillist.errors import FileVersionError, ModelFileError
from pointillist.storage.files import atomic_path, check_regular
from pointillist.storage.schema import check_form, mapping, parse_json, text, whole
from pointillist.validation import as_path

FORMAT_VERSION = 2
MODEL = "model"
"""Kind of files that hold filters: models and checkpoints."""

_HEADER, _CHECKSUM, _PREFIX = "pointillist", "sha256", "pointillist-"
_HEADER_LIMIT = 45 * 10**6
"""Bytes of metadata. The safetensors format allows 100 MB in front of the arrays, and quotation marks count twice there."""
_HEADER_ROOM = 10**8
_TYPES = (
    "float16", "float32", "float64", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
_FORM = {"format": text, "format_version": whole(1), "pointillist_version": text, "created": text, "metadata": mapping}


@dataclass(frozen=True)
class Stored:
    """Contents of a file.

    Attributes
    ----------
    path : Path
        Where it was read.
    metadata : dict
        JSON values.
    arrays : dict from name to array
        Writable, with the types and shapes that were written.
    created : str
        When the file was written, ISO 8601, UTC.
    pointillist_version : str
        The version that wrote it.
    """

    path: Path
    metadata: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    created: str
    pointillist_version: str


def write_arrays(
    path: str | os.PathLike[str],
    kind: str,
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    family: str | os.PathLike[str] | None = None,
) -> None:
    """Write a file; an existing one is replaced only once the new one is complete.

    Parameters
    ----------
    path : str or path
    kind : str
        What the file is, such as "model"; `read_arrays` refuses files of another kind.
    metadata : mapping
        Strings, finite numbers, booleans, None, and lists and mappings of these. NumPy scalars and arrays become plain
        numbers and lists, tuples become lists.
    arrays : mapping from name to array
        Arrays of numbers or booleans.
    family : str or path, optional
        As in `atomic_path`.

    Raises
    ------
    ValueError
        If something cannot be stored; the message names it.
    OSError
        If the file cannot be written.
    """
    as_path(path)
    if "__metadata__" in arrays:
        raise ValueError('no array may have the reserved name "__metadata__": choose another name')
    tensors = {name: np.asarray(array) for name, array in arrays.items()}
    _check_types(tensors)
    # safetensors stores little-endian samples in C order.
    tensors = {name: np.asarray(one, one.dtype.newbyteorder("="), order="C") for name, one in tensors.items()}
    header = {
        "format": f"{_PREFIX}{kind}",
        "format_version": FORMAT_VERSION,
        "pointillist_version": own_version(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "metadata": metadata,
    }
    try:
        text = json.dumps(header, allow_nan=False, default=_plain)
        parse_json(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"metadata cannot be stored: {error}; give text, finite numbers, lists and mappings"
        ) from error
    if len(text) > _HEADER_LIMIT:
        raise ValueError(
            f"metadata take {len(text):,} bytes, at most {_HEADER_LIMIT:,} fit: store long lists as arrays"
        )
    with atomic_path(path, family=family) as temporary:
        try:
            save_file(tensors, temporary, {_HEADER: text, _CHECKSUM: checksum(text, tensors)})
        except SafetensorError as error:
            _raise_as_failure(error, temporary)
            raise


def read_arrays(path: str | os.PathLike[str], kind: str) -> Stored:
    """Read a file and check that it holds what was written.

    Raises
    ------
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    FileVersionError
        If the file is in a format of another version.
    ModelFileError
        If the file is truncated, damaged, or of another kind.
    """
    path = as_path(path)
    with _opened(path, f"{kind} file") as (file, text, header):
        if header["format"] != f"{_PREFIX}{kind}":
            raise ModelFileError(f"{path} holds {header['format']}, not {_PREFIX}{kind}: give a {kind} file")
        if (form := header.get("format_version")) != FORMAT_VERSION:  # which may hold arrays that cannot be read here
            raise FileVersionError(
                f"{path} is in format {form!r}, this version of pointillist reads {FORMAT_VERSION}: "
                "use the version that wrote it, or write it again with this one"
            )
        arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        if file.metadata().get(_CHECKSUM) != checksum(text, arrays):
            raise ModelFileError(f"{path} is damaged: its checksum is wrong")
        check_form(header, _FORM, "header")
        _check_types(arrays)
        return Stored(path, header["metadata"], arrays, header["created"], header["pointillist_version"])


def kind_of(path: str | os.PathLike[str]) -> str:
    """Kind of a file, such as "model" or "codes", from its header alone.

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If no version of this package can have written it.
    """
    with _opened(as_path(path), "file") as (_, _, header):
        return str(header["format"]).removeprefix(_PREFIX)


@contextmanager
def _opened(path: Path, what: str) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """A file with its header, as text and parsed; whatever goes wrong inside is a `ModelFileError` that names it."""
    check_regular(path, what, ModelFileError)
    with path.open("rb") as stream:  # safetensors would map any file, whole
        try:
            length, size = int.from_bytes(stream.read(8), "little"), stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read as a {what}: {error.strerror}") from error
    if not 2 <= length <= min(size - 8, _HEADER_ROOM):
        raise ModelFileError(f"{path} is damaged: truncated, or not a {what} of pointillist: its header is missing")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_HEADER, "null")
            header = parse_json(text)
            if not isinstance(header, dict) or not str(header.get("format")).startswith(_PREFIX):
                raise ModelFileError(f"{path} is a safetensors file, but not one written by pointillist")
            yield file, text, header
    except ModelFileError:
        raise
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        _raise_as_failure(error, path)
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is damaged: truncated, or not a {what} of pointillist: {reason}") from error


def save_model(
    path: str | os.PathLike[str],
    filters: NDArray[np.floating[Any]],
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a model file, as `write_arrays` does; what the metadata mean is up to the learners that write them.

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
    write_arrays(path, MODEL, metadata, {"filters": filters, **(arrays or {})})


def load_model(path: str | os.PathLike[str]) -> Stored:
    """Read a model file or a checkpoint, as `read_arrays` does; ``arrays["filters"]`` is sure to be there and usable."""
    stored = read_arrays(path, MODEL)
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


def own_version() -> str:
    """The version of this package, or "unknown" where it was not installed or cannot be read."""
    try:
        found: str | None = version("pointillist")  # None where its metadata are there, but nobody may read them
    except (PackageNotFoundError, OSError):
        found = None
    return found or "unknown"


def _raise_as_failure(error: Exception, path: Path) -> None:
    """Raise an OSError if a disk or the system has failed: that says nothing of what the file holds."""
    # safetensors reports a full disk in an exception of its own, with the number in its text only.
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, SafetensorError) and (found := re.search(r"os error (\d+)", str(error))):
        number = int(found[1])
    if number is not None and number != errno.EINVAL:  # which an empty file gives
        raise OSError(number, os.strerror(number), str(path)) from error


def checksum(header: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the header and of every array with its name, type and shape."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def _check_types(arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES:
            raise ValueError(f"{name} has type {array.dtype}: convert it to one of {', '.join(_TYPES)}")


def _plain(value: Any) -> Any:
    """Lists and numbers of NumPy's values, and dictionaries of mappings, for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")
