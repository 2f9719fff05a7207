"""Checkpoint files: arrays and facts under one checksum, numbered, the newest few kept.

They lie beside the file that the run will write: ``filters.safetensors`` has ``filters.checkpoint-00000120.safetensors``.
What the arrays and facts mean is the business of the learners.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pointillist.errors import CheckpointError, DamagedCheckpointError
from pointillist.storage.files import atomic_path, remove_leftovers
from pointillist.storage.models import plain

log = logging.getLogger(__name__)

FORMAT = "pointillist-checkpoint"
FORMAT_VERSION = 1

_KEY = "pointillist"


@dataclass(frozen=True)
class StoredCheckpoint:
    """What a checkpoint file holds: facts as JSON values, and arrays."""

    path: Path
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class CheckpointFolder:
    """The checkpoints of one run.

    Parameters
    ----------
    path : str or path
        The file that the run will write; the checkpoints lie beside it and bear its name.
    last : int
        How many to keep.
    """

    def __init__(self, path: str | os.PathLike[str], last: int = 2) -> None:
        self.path, self.last = Path(path), last

    def file(self, number: int) -> Path:
        """Where checkpoint `number` lies."""
        return self.path.with_name(f"{self.path.stem}.checkpoint-{number:08d}.safetensors")

    def files(self) -> list[Path]:
        """The checkpoints that are there, the newest first."""
        pattern = re.compile(rf"{re.escape(self.path.stem)}\.checkpoint-(\d{{8,}})\.safetensors")
        folder = self.path.parent
        matches = [pattern.fullmatch(entry.name) for entry in folder.iterdir()] if folder.is_dir() else []
        numbers = sorted((int(match[1]) for match in matches if match is not None), reverse=True)
        return [self.file(number) for number in numbers]

    def write(self, number: int, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write a checkpoint, then remove all but the newest few.

        Raises
        ------
        OSError
            If it cannot be written; the checkpoints that were there stay.
        """
        tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        body = json.dumps(plain(facts, "facts"), allow_nan=False)
        header = {"format": FORMAT, "format_version": FORMAT_VERSION, "checksum": _checksum(body, tensors)}
        path = self.file(number)
        with atomic_path(path, family=self.path) as temporary:
            _save(tensors, temporary, {_KEY: json.dumps(header), "facts": body})
        self._prune(self.last)
        return path

    def newest(self) -> StoredCheckpoint | None:
        """The newest checkpoint that is whole, or None where there is none at all.

        Raises
        ------
        CheckpointError
            If all are damaged, or the newest whole one is in another format.
        """
        found = self.files()
        for path in found:
            try:
                return read_checkpoint(path)
            except DamagedCheckpointError as error:
                log.warning("%s; trying the one before", error)
        if found:
            raise CheckpointError(f"all checkpoints of {self.path} are damaged: start again without resuming")
        return None

    def sweep(self) -> None:
        """Remove the temporary files of a run that was killed."""
        remove_leftovers(self.path)

    def clear(self) -> None:
        """Remove all checkpoints of the run."""
        self._prune(0)
        self.sweep()

    def _prune(self, last: int) -> None:
        for path in self.files()[last:]:
            path.unlink(missing_ok=True)


def read_checkpoint(path: str | os.PathLike[str]) -> StoredCheckpoint:
    """Read a checkpoint and check that it holds what was written.

    Raises
    ------
    DamagedCheckpointError
        If it does not.
    CheckpointError
        If it is in a format of another version.
    """
    path = Path(path)
    try:
        with safe_open(path, framework="numpy") as file:
            entries = file.metadata() or {}
            header = json.loads(entries[_KEY])
            version = header["format_version"] if header["format"] == FORMAT else None
            if version != FORMAT_VERSION:
                raise CheckpointError(
                    f"{path} is a checkpoint of format {version}, this version of pointillist reads {FORMAT_VERSION}: "
                    "resume with the version that wrote it, or start again without resuming"
                )
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        if _checksum(entries["facts"], arrays) != header["checksum"]:
            raise DamagedCheckpointError(f"{path} is damaged: its checksum is wrong")
        return StoredCheckpoint(path, json.loads(entries["facts"]), arrays)
    except CheckpointError:
        raise
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise DamagedCheckpointError(f"{path} is damaged: {type(error).__name__}: {reason}") from error


def _save(tensors: dict[str, NDArray[Any]], path: Path, metadata: dict[str, str]) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        # safetensors reports a full disk in an exception of its own, with the number in its text only.
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def _checksum(facts: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the facts and of every array with its name, type and shape."""
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).data)
    return digest.hexdigest()
