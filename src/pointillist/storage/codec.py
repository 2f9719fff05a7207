"""Arrays and JSON metadata as one file: models, codes, and the numbered files of runs that have not ended.

A file is in the safetensors format, which other tools read too, and nothing in it is pickled: reading a stranger's file runs
no code. No other module opens such files. What the metadata of a model mean is up to the learner that writes them.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pointillist.codes import SparseCodes
from pointillist.errors import CheckpointError, FileVersionError, ModelFileError
from pointillist.reprs import shown
from pointillist.storage.files import atomic_path, check_regular
from pointillist.storage.schema import check_array, check_form, mapping, parse_json
from pointillist.validation import as_path, check_arguments

log = logging.getLogger(__name__)

FORMAT_VERSION = 2
MODEL = "model"
"""Kind of files that hold filters: models and checkpoints."""
CODES = "codes"
KEPT = 2
"""Checkpoints of a run that are kept: where the newest is damaged, the one before serves."""

_HEADER, _CHECKSUM, _PREFIX = "pointillist", "sha256", "pointillist-"
_HEADER_LIMIT = 45 * 10**6
"""Bytes of metadata. The safetensors format allows 100 MB in front of the arrays, and quotation marks count twice there."""
_MOST_FILTERS = 2**24
"""Some sums over codes take memory for every filter, whether it is used or not."""


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

    Raises
    ------
    ValueError
        If the metadata cannot be stored.
    OSError
        If the file cannot be written.
    """
    as_path(path)
    # safetensors stores little-endian samples in C order.
    tensors = {
        name: np.asarray(one, np.asarray(one).dtype.newbyteorder("="), order="C") for name, one in arrays.items()
    }
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
    with atomic_path(path) as temporary:
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
        check_form(header["metadata"], mapping, "metadata")
        return Stored(path, header["metadata"], arrays, str(header["created"]), str(header["pointillist_version"]))


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
    """Write filters (n_filters, ...), finite and of float16, float32 or float64, and further arrays as a model file."""
    arrays = {"filters": np.asarray(filters), **(arrays or {})}
    check_filters(arrays)
    write_arrays(path, MODEL, metadata, arrays)


def load_model(path: str | os.PathLike[str]) -> Stored:
    """Read a model file or a checkpoint, as `read_arrays` does, also of version 0.1.

    ``arrays["filters"]`` is sure to be there and usable.
    """
    stored = _read_older(path, MODEL) or read_arrays(path, MODEL)
    try:
        check_filters(stored.arrays)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return stored


def check_filters(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless there are arrays of filters, which a model can have."""
    filters = check_array(arrays, "filters", "f")
    if filters.ndim < 2 or filters.size == 0:
        raise ValueError(f"filters must have shape (n_filters, ...) and hold samples, got {filters.shape}")


def own_version() -> str:
    """The version of this package, or "unknown" where it was not installed or cannot be read."""
    try:
        return version("pointillist") or "unknown"
    except (PackageNotFoundError, OSError):
        return "unknown"


def _raise_as_failure(error: Exception, path: Path) -> None:
    """Raise an OSError if a disk or the system has failed: that says nothing of what the file holds."""
    # safetensors reports a full disk in an exception of its own, with the number in its text only.
    told = re.search(r"os error (\d+)", str(error))
    number = error.errno if isinstance(error, OSError) else int(told[1]) if told else None
    if number not in (None, errno.EINVAL):  # which an empty file gives
        raise OSError(number, os.strerror(number), str(path)) from error


def checksum(header: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the header and of every array with its name, type and shape."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Lists and numbers of NumPy's values, and dictionaries of mappings, for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")


_UPDATE_OF_0_1 = ("init", "zero_mean", "nonnegative_filters", "statistics", "n_sweeps", "replace_unused", "forgetting")
"""Parameters of learners of version 0.1 that are settings of `FilterUpdate` now."""


def _read_older(path: str | os.PathLike[str], kind: str) -> Stored | None:
    """Contents of a model, checkpoint or codes file of version 0.1 as this version would store them; None for other files.

    Statistics and the place of a run are left out: learning goes on from the filters alone.
    """
    path = as_path(path)
    with _opened(path, f"{kind} file") as (file, _, header):
        was = str(header["format"]).removeprefix(_PREFIX)
        if header.get("format_version") != 1 or kind != {"checkpoint": MODEL}.get(was, was):
            return None
        names = [name for name in file.keys() if not name.startswith("statistics.")]  # noqa: SIM118
        arrays = {name: np.array(file.get_tensor(name)) for name in names}
        facts = parse_json(file.metadata()["facts"]) if was == "checkpoint" else header["metadata"]
        check_form(facts, mapping, "metadata")
        if kind == CODES:
            arrays["n_filters"] = np.array(header["n_filters"], np.int64)
        elif "class" in facts:
            history = facts["history"] if "history" in facts else parse_json(arrays["history"].tobytes())
            records = [{name: np.nan if one is None else one for name, one in info.items()} for info in history]
            arrays["history"] = np.frombuffer(json.dumps(records).encode(), np.uint8)
            if was == "checkpoint":
                facts |= {"n_iter": facts["step"], "preprocessing": {}, "extra": {}}
                if not facts["parameters"]["channels"]:
                    arrays["filters"] = arrays["filters"][:, 0]
            else:
                arrays["penalty"] = arrays.pop("fitted.penalty")
            kept = {name: facts[name] for name in ("class", "seed", "n_seen", "preprocessing", "extra")}
            facts = {**kept, "step": facts["n_iter"], "parameters": _parameters_of_0_1(facts["parameters"])}
        return Stored(path, facts, arrays, str(header.get("created", "unknown")), "0.1")


def _parameters_of_0_1(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a learner of version 0.1 by the names, and with the closest meanings, that this version has for them."""
    old = {name: value for name, value in packed.items() if name not in ("shuffle", "min_change")}
    settings = {name.removesuffix("_filters"): old.pop(name) for name in _UPDATE_OF_0_1 if name in old}
    ridge, half_life, learning = old.pop("ridge"), old.pop("ridge_steps"), old.pop("learning_tol")
    if isinstance(old["solver"], dict):  # an object, whose settings are others now
        log.warning('the solver of a model of version 0.1 is read without its settings, as "cd"')
        old["solver"] = "cd"
    if learning is None and old["solver"] == "cd":
        learning = {"class": "Ridge", "settings": {"strength": ridge, "half_life": half_life}} if ridge else 0.1
    old["n_jobs"] = -1 if old["n_jobs"] is None else old["n_jobs"]
    return {**old, "learning": learning, "update": {"class": "FilterUpdate", "settings": settings}}


def save_codes(codes: SparseCodes, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
    """Write sparse codes to a file.

    Parameters
    ----------
    codes : SparseCodes
    path : str or path
        Replaced only once the new file is complete.
    metadata : mapping, optional
        What JSON can hold. The entry ``names``, if there is one, holds the names of the signals, as ``codes.names`` does.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> pt.load_codes("codes.safetensors").nnz
    1
    """
    if not isinstance(codes, SparseCodes):
        raise TypeError(f"codes must be SparseCodes, got {shown(codes)}")
    check_arguments(metadata=metadata)
    metadata = metadata or {}
    names = metadata.get("names") if codes.names is None else codes.names
    if names != metadata.get("names", names):
        raise ValueError("metadata and codes hold different names: leave one of them out")
    SparseCodes(codes.indices, codes.values, codes.grids, codes.n_filters, names=names)  # raises where names do not fit
    named = {} if names is None else {"names": list(names)}
    arrays = {
        "indices": np.concatenate([np.empty(0, np.int64), *codes.indices]).astype(np.int64),
        "values": np.concatenate([np.empty(0, codes.dtype), *codes.values]),
        "offsets": np.cumsum([0, *map(len, codes.indices)], dtype=np.int64),
        "grids": np.asarray(codes.grids, np.int64),
        "n_filters": np.asarray(codes.n_filters, np.int64),
    }
    write_arrays(path, CODES, {**metadata, **named}, arrays)


def load_codes(path: str | os.PathLike[str]) -> SparseCodes:
    """Read sparse codes that `save_codes` or ``pointillist encode`` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    SparseCodes
        Its ``names`` are those of the signals: for ``pointillist encode`` the files that were coded, in order, with
        ``[i]`` behind the file for signal i of a stack. None where no names were stored.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> codes = pt.encode(np.eye(1, 30, 9), [[0.0, 1.0, 0.0]], penalty=0.1).codes
    >>> codes.names = ["peak.npy"]
    >>> pt.save_codes(codes, "codes.safetensors")
    >>> again = pt.load_codes("codes.safetensors")
    >>> again.nnz, again.names
    (1, ['peak.npy'])

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file holds no codes, or damaged ones.
    """
    return read_codes(path)[0]


def read_codes(path: str | os.PathLike[str]) -> tuple[SparseCodes, dict[str, Any]]:
    """Read codes as `load_codes` does, with everything that was recorded beside them."""
    stored = _read_older(path, CODES) or read_arrays(path, CODES)
    arrays, metadata = stored.arrays, stored.metadata
    try:
        flat = check_array(arrays, "indices", "i", (None,))
        check_array(arrays, "values", "f", flat.shape)
        offsets = check_array(arrays, "offsets", "i", (None,), least=0)
        n_signals = len(offsets) - 1
        ends = (int(offsets[0]), int(offsets[-1])) if len(offsets) else None
        if ends != (0, len(flat)) or np.any(np.diff(offsets) < 0):
            raise ValueError(f"array offsets must go up from 0 to {len(flat)}")
        grids = check_array(arrays, "grids", "i", (n_signals, None) if n_signals else (0,), least=1)
        n_filters = int(check_array(arrays, "n_filters", "i", (), least=1))
        if n_filters > _MOST_FILTERS:
            raise ValueError(f"n_filters must be at most {_MOST_FILTERS:,}, got {n_filters:,}")
        indices, values = (np.split(arrays[name], offsets[1:-1]) for name in ("indices", "values"))
        spaces = [tuple(grid) for grid in grids.tolist()]
        for index, space in zip(indices, spaces, strict=True):
            if len(index) and not 0 <= int(index.min()) <= int(index.max()) < n_filters * prod(space):
                raise ValueError("indices lie outside the grid")
        return SparseCodes(indices, values, spaces, n_filters, names=metadata.get("names")), metadata
    except ValueError as error:
        raise ModelFileError(f"{path} is a damaged codes file: {error}") from error


def load_codes_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Metadata recorded with codes: for ``pointillist encode`` the model, the penalty and one entry for each signal."""
    return read_codes(path)[1]


def write_events(table: NDArray, path: str | os.PathLike[str]) -> None:
    """Write a structured array of numbers as CSV with a line of names, completely or not at all.

    Parameters
    ----------
    table : structured array
        As `SparseCodes.events` gives it.
    path : str or path
        Replaced only once the new file is complete. Numbers are written so that reading them gives the same ones back.
    """
    with atomic_path(path) as temporary:
        _print_events(table, temporary)


def event_lines(table: NDArray) -> list[str]:
    """The lines of a structured array of numbers as CSV, names first."""
    text = io.StringIO()
    _print_events(table, text)
    return text.getvalue().splitlines()


def _print_events(table: NDArray, file: Path | io.StringIO) -> None:
    np.savetxt(file, table, "%s", ",", header=",".join(table.dtype.names or ()), comments="")


class NumberedFiles:
    """Files of one run that lie beside the file that it will write, and bear its name and a number.

    A run of learning has checkpoints, of which the newest few are kept: ``filters.safetensors`` has
    ``filters.checkpoint-00000120.safetensors``. A run of coding has parts, of which all are kept: ``codes.safetensors`` has
    ``codes.part-00000300.safetensors``.

    Parameters
    ----------
    path : str or path
        The file that the run will write.
    """

    word = "checkpoint"
    """Word before the number."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def file(self, number: int) -> Path:
        """Path of file `number`."""
        return self.path.with_name(f"{self.path.stem}.{self.word}-{number:08d}.safetensors")

    def files(self) -> list[Path]:
        """The files that are there, the newest first."""
        pattern = re.compile(rf"{re.escape(self.path.stem)}\.{self.word}-(\d{{8,}})\.safetensors")
        names = os.listdir(self.path.parent) if self.path.parent.is_dir() else []
        numbers = [int(match[1]) for match in map(pattern.fullmatch, names) if match]
        return [self.file(number) for number in sorted(numbers, reverse=True)]

    def clear(self) -> None:
        """Remove all files of a run that has ended, or say why they stay."""
        try:
            for path in self.files():
                path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the run has ended, but its %ss cannot be removed: %s", self.word, error)

    def _free(self, number: int) -> Path:
        """Path to write file `number` to: the name is ours, a link there is not to lead to somebody else's file."""
        path = self.file(number)
        if path.is_symlink():
            path.unlink()
        return path


class CheckpointFolder(NumberedFiles):
    """The checkpoints of one run, of which the newest few are kept.

    Parameters
    ----------
    path : str or path
    check : callable, optional
        Raises ModelFileError for what is no checkpoint, though the file is whole.
    """

    def __init__(self, path: str | os.PathLike[str], check: Callable[[Stored], None] | None = None) -> None:
        super().__init__(path)
        self._check = check

    def write(self, number: int, metadata: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write a checkpoint, then remove all but the newest few.

        Raises
        ------
        OSError
            If it cannot be written; the checkpoints that were there stay.
        """
        path = self._free(number)
        write_arrays(path, MODEL, metadata, arrays)
        try:
            for old in self.files()[KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            log.warning("an old checkpoint cannot be removed: %s", error)
        return path

    def newest(self) -> Stored | None:
        """The newest checkpoint that is whole, or None where there is none at all.

        Raises
        ------
        CheckpointError
            If all are damaged.
        FileVersionError
            If the newest whole one is in a format of another version.
        """
        found = self.files()
        for path in found:
            try:
                stored = read_arrays(path, MODEL)
                if self._check is not None:
                    self._check(stored)
                return stored
            except FileVersionError:
                raise
            except ModelFileError as error:
                log.warning("%s; trying the one before", error)
        if found:
            raise CheckpointError(f"all checkpoints of {self.path} are damaged: start again without resuming")
        return None


class PartFolder(NumberedFiles):
    """The parts of one run of coding: codes files, each numbered by the first of its signals."""

    word = "part"

    def write(self, number: int, codes: SparseCodes, metadata: Mapping[str, Any]) -> Path:
        """Write a part.

        Raises
        ------
        OSError
            If it cannot be written; the parts that were there stay.
        """
        path = self._free(number)
        save_codes(codes, path, metadata)
        return path

    def drop_from(self, number: int) -> None:
        """Remove the part of this number and all behind it: they are to be written again."""
        for path in self.files():
            if int(path.stem.rpartition("-")[2]) >= number:
                path.unlink(missing_ok=True)

    def read(self) -> Iterator[tuple[Path, SparseCodes, dict[str, Any]]]:
        """Yield the parts with their metadata in the order of their numbers, up to the first that is damaged.

        Raises
        ------
        FileVersionError
            If one is in a format of another version.
        """
        for path in reversed(self.files()):
            try:
                codes, metadata = read_codes(path)
            except FileVersionError:
                raise
            except ModelFileError as error:
                log.warning("%s; going on from the part before", error)
                return
            yield path, codes, metadata
