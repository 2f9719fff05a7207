"""Callbacks to look at a run while it goes: its records as lines of JSON, or as TensorBoard events."""

import errno
import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from pointillist.storage import atomic_path, read_whole
from pointillist.storage.schema import anything, check_form, parse_json, whole

log = logging.getLogger(__name__)

_MEASURES = ("objective", "nnz", "gap", "replaced", "outliers", "validation_objective", "seconds")


class _Watcher:
    """A callback that looks on; a disk that is full or read-only does not stop the run."""

    path: Path
    _failed = False
    _write: Callable[[dict[str, Any]], None]

    def __call__(self, info: dict[str, Any]) -> bool:
        """Take in a step's record; a log never asks to stop."""
        try:
            if not self._failed:
                self._write(info)
        except OSError as error:
            self._failed, last, why = True, int(info["iteration"]) - 1, error.strerror or error
            log.warning("the log %s does not go on after step %d, learning does: %s", self.path, last, why)
        return False


class JsonLog(_Watcher):
    """Append every step's record to a file, as one line of JSON that can be read at once.

    A resumed run repeats the steps after its checkpoint. The lines of these steps, and one that was cut short, are dropped
    first, so that the file ends as that of a run that nothing interrupted. Where the file cannot be written any more, one
    warning says so, and the run goes on without it.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self._begun = Path(path), False

    def _write(self, info: dict[str, Any]) -> None:
        if not self._begun:
            step = int(info["iteration"])
            kept = [] if step <= 1 or not self.path.exists() else read_log(self.path)
            lines = b"".join(_line(one) for one in kept if one["iteration"] < step)
            if lines:
                with atomic_path(self.path) as temporary:
                    temporary.write_bytes(lines)
        line = _line(finite(info))
        # Without a buffer, which would fail again when it is closed; a full disk may take a part of the line.
        with FileIO(self.path, "a" if self._begun or lines else "w") as file:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._begun = True


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The records in a file that `JsonLog` writes, but for a last line that is not complete yet."""
    records = []
    for number, line in enumerate(read_whole(path, "log").splitlines(keepends=True), 1):
        if line.endswith(b"\n"):
            try:
                info = parse_json(line)
                check_form(info, {"iteration": whole(0), ...: anything}, "record")
            except ValueError as error:
                raise ValueError(f"line {number} of {path} is no record of a run: {error}") from error
            records.append(info)
    return records


def _line(info: Mapping[str, Any]) -> bytes:
    return (json.dumps(info, allow_nan=False) + "\n").encode()


def finite(info: Mapping[str, Any]) -> dict[str, Any]:
    """A step's record with None for NaN and infinity, which strict JSON cannot hold."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in info.items()}


class TensorBoardEvents(_Watcher):
    """Write every step's numbers as TensorBoard events, through tensorboardX or PyTorch, whichever is there.

    Parameters
    ----------
    folder : str or path
        Where TensorBoard looks: ``tensorboard --logdir FOLDER``.

    Raises
    ------
    ImportError
        If neither is installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise ImportError("TensorBoard events need a writer: pip install 'pointillist[watch]'") from error
        self.path, self._writer = Path(folder), SummaryWriter(str(folder))

    def _write(self, info: dict[str, Any]) -> None:
        for name in _MEASURES:
            if info.get(name) is not None:
                self._writer.add_scalar(name, float(info[name]), int(info["iteration"]))
        self._writer.flush()
