"""Arrays and JSON metadata as one file, with everything that is checked when it is written and when it is read.

A file is in the safetensors format, which other tools read too, and nothing in it is pickled: reading a stranger's file runs
no code. No other module opens such files. What the arrays and the metadata mean is up to whoever writes them.
"""

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
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
from pointillist.storage.schema import DEPTH, anything, mapping, parse_json, record, text
from pointillist.validation import as_path

FORMAT_VERSION = 2

_HEADER, _CHECKSUM, _PREFIX = "pointillist", "sha256", "pointillist-"
_HEADER_LIMIT = 45 * 10**6
"""Bytes of metadata. The safetensors format allows 100 MB in front of the arrays, and quotation marks count twice there."""
_HEADER_ROOM = 10**8
_TYPES = (
    "float16", "float32", "float64", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
_SCHEMA = record(
    {"format": text, "format_version": anything, "pointillist_version": text, "created": text, "metadata": mapping}
)


@dataclass(frozen=True)
class Stored:
    """What a file holds.

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
    tensors = {name: _storable(np.asarray(array), name) for name, array in arrays.items()}
    header = json.dumps(
        {
            "format": f"{_PREFIX}{kind}",
            "format_version": FORMAT_VERSION,
            "pointillist_version": own_version(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "metadata": _plain(metadata, "metadata"),
        },
        allow_nan=False,
    )
    if len(header) > _HEADER_LIMIT:
        raise ValueError(
            f"metadata take {len(header):,} bytes, at most {_HEADER_LIMIT:,} fit: store long lists as arrays"
        )
    with atomic_path(path, family=family) as temporary:
        _save(tensors, temporary, {_HEADER: header, _CHECKSUM: _checksum(header, tensors)})


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
    check_regular(path, f"{kind} file", ModelFileError)
    _check_head(path, f"{kind} file")
    try:
        with safe_open(path, framework="numpy") as file:
            entries = file.metadata() or {}
            # The header comes first: another format may hold arrays that this version cannot read.
            header = _checked_header(entries, path, kind)
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        if entries.get(_CHECKSUM) != _checksum(entries[_HEADER], arrays):
            raise ModelFileError(f"{path} is damaged: its checksum is wrong")
        _SCHEMA(header, "header")
        for name, array in arrays.items():
            _check_type(array, name)
        return Stored(path, header["metadata"], arrays, header["created"], header["pointillist_version"])
    except ModelFileError:
        raise
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        _raise_as_failure(error, path)
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is damaged: truncated, or not a {kind} file of pointillist: {reason}") from error


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a file is, such as "model" or "codes", from its header alone.

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If no version of this package can have written it.
    """
    path = as_path(path)
    check_regular(path, "file of pointillist", ModelFileError)
    _check_head(path, "file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = parse_json((file.metadata() or {}).get(_HEADER, "null"))
    except (SafetensorError, OSError, ValueError) as error:
        _raise_as_failure(error, path)
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{path} is damaged: truncated, or not a file of pointillist: {reason}") from error
    written = header.get("format") if isinstance(header, dict) else None
    if not isinstance(written, str) or not written.startswith(_PREFIX):
        raise ModelFileError(f"{path} is a safetensors file, but not one written by pointillist")
    return written.removeprefix(_PREFIX)


def own_version() -> str:
    """The version of this package, or "unknown" where it was not installed or cannot be read."""
    try:
        found: str | None = version("pointillist")  # None where its metadata are there, but nobody may read them
    except (PackageNotFoundError, OSError):
        found = None
    return found or "unknown"


def _check_head(path: Path, what: str) -> None:
    """Raise an error unless a file can be opened and begins as the format does: safetensors would map any file, whole."""
    with path.open("rb") as stream:
        try:
            length, size = int.from_bytes(stream.read(8), "little"), stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read as a {what}: {error.strerror}") from error
    if not 2 <= length <= min(size - 8, _HEADER_ROOM):
        raise ModelFileError(f"{path} is damaged: truncated, or not a {what} of pointillist: its header is missing")


def _checked_header(entries: Mapping[str, str], path: Path, kind: str) -> dict[str, Any]:
    header = parse_json(entries.get(_HEADER, "null"))
    if not isinstance(header, dict) or "format" not in header:
        raise ModelFileError(f"{path} is a safetensors file, but not one written by pointillist")
    if header["format"] != f"{_PREFIX}{kind}":
        raise ModelFileError(f"{path} holds {header['format']}, not {_PREFIX}{kind}: give a {kind} file")
    if header.get("format_version") != FORMAT_VERSION:
        raise FileVersionError(
            f"{path} is in format {header.get('format_version')!r}, this version of pointillist reads {FORMAT_VERSION}: "
            "use the version that wrote it, or write it again with this one"
        )
    return header


def _save(tensors: dict[str, NDArray[Any]], path: Path, entries: dict[str, str]) -> None:
    try:
        save_file(tensors, path, entries)
    except SafetensorError as error:
        _raise_as_failure(error, path)
        raise


def _raise_as_failure(error: Exception, path: Path) -> None:
    """Raise an OSError if a disk or the system has failed: that says nothing of what the file holds."""
    # safetensors reports a full disk in an exception of its own, with the number in its text only.
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, SafetensorError) and (found := re.search(r"os error (\d+)", str(error))):
        number = int(found[1])
    if number is not None and number != errno.EINVAL:  # which an empty file gives
        raise OSError(number, os.strerror(number), str(path)) from error


def _checksum(header: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the header and of every array with its name, type and shape."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def _storable(array: NDArray[Any], name: str) -> NDArray[Any]:
    if name == "__metadata__":
        raise ValueError('no array may have the reserved name "__metadata__": choose another name')
    _check_type(array, name)
    # safetensors stores little-endian samples in C order.
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _check_type(array: NDArray[Any], name: str) -> None:
    if array.dtype.name not in _TYPES:
        raise ValueError(f"{name} has type {array.dtype}: convert it to one of {', '.join(_TYPES)}")


def _plain(value: Any, name: str, levels: int = DEPTH) -> Any:
    """Convert to what JSON can hold without loss, or raise naming the entry that cannot be held."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, which JSON cannot hold: store None or a string instead")
        return value
    if isinstance(value, list | tuple | Mapping) and levels < 0:
        raise ValueError(f"metadata are nested more than {DEPTH} levels deep: store them flatter")
    if isinstance(value, list | tuple):
        return [_plain(item, f"{name}[{i}]", levels - 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{name} has the key {key!r}, which is not a string")
        return {key: _plain(item, f'{name}["{key}"]', levels - 1) for key, item in value.items()}
    raise ValueError(f"{name} is a {type(value).__name__}, which JSON cannot hold: convert it first")
