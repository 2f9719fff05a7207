"""The checkpoints of a run: model files with numbers, of which the newest few are kept.

They lie beside the file that the run will write: ``filters.safetensors`` has ``filters.checkpoint-00000120.safetensors``.
What the arrays and metadata mean is the business of the learners.
"""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointillist.errors import CheckpointError, FileVersionError, ModelFileError
from pointillist.storage.codec import Stored, read_arrays, write_arrays
from pointillist.storage.files import remove_leftovers
from pointillist.storage.models import KIND

log = logging.getLogger(__name__)

KEPT = 2
"""Checkpoints of a run that are kept: where the newest is damaged, the one before serves."""


class CheckpointFolder:
    """The checkpoints of one run.

    Parameters
    ----------
    path : str or path
        The file that the run will write; the checkpoints lie beside it and bear its name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

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

    def write(self, number: int, metadata: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
        """Write a checkpoint, then remove all but the newest few.

        Raises
        ------
        OSError
            If it cannot be written; the checkpoints that were there stay.
        """
        path = self.file(number)
        write_arrays(path, KIND, metadata, arrays, family=self.path)
        self._prune(KEPT)
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
                return read_arrays(path, KIND)
            except FileVersionError:
                raise
            except ModelFileError as error:
                log.warning("%s; trying the one before", error)
        if found:
            raise CheckpointError(f"all checkpoints of {self.path} are damaged: start again without resuming")
        return None

    def remove_leftovers(self) -> None:
        """Remove the temporary files of a run that was killed."""
        remove_leftovers(self.path)

    def clear(self) -> None:
        """Remove all checkpoints of the run."""
        self._prune(0)
        self.remove_leftovers()

    def _prune(self, kept: int) -> None:
        for path in self.files()[kept:]:
            path.unlink(missing_ok=True)
