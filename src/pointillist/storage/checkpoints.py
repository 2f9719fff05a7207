"""Checkpoints and parts: numbered files that a run puts away beside the one that it will write.

A run of learning has checkpoints, of which the newest few are kept: ``filters.safetensors`` has
``filters.checkpoint-00000120.safetensors``. A run of coding has parts, of which all are kept: ``codes.safetensors`` has
``codes.part-00000300.safetensors``. What the arrays and metadata mean is the business of others.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.errors import CheckpointError, FileVersionError, ModelFileError
from pointillist.storage.codec import MODEL, Stored, read_arrays, write_arrays
from pointillist.storage.codes import read_codes, write_codes
from pointillist.storage.files import remove_abandoned

log = logging.getLogger(__name__)

KEPT = 2
"""Checkpoints of a run that are kept: where the newest is damaged, the one before serves."""


class NumberedFiles:
    """Files of one run that lie beside the file that it will write, and bear its name and a number.

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

    def remove_leftovers(self) -> None:
        """Remove the temporary files of a run that was killed."""
        remove_abandoned(self.path.resolve().parent, self.path.resolve().name)

    def clear(self) -> None:
        """Remove all files of the run."""
        for path in self.files():
            path.unlink(missing_ok=True)
        self.remove_leftovers()

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
        write_arrays(path, MODEL, metadata, arrays, family=self.path)
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
        write_codes(codes, path, metadata, family=self.path)
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
