"""Callbacks to look at a run while it goes: its records as lines of JSON, or as TensorBoard events."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TextIO

_MEASURES = ("objective", "nnz", "gap", "replaced", "validation_objective", "seconds")


class _Watcher:
    """A callback that is closed at the end of a ``with`` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class JsonLog(_Watcher):
    """Append every step's record to a file, as one line of JSON that can be read at once.

    A resumed run repeats the steps after its checkpoint. The lines of these steps, and one that was cut short, are dropped
    first, so that the file ends as that of a run that nothing interrupted.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def __call__(self, info: dict[str, Any]) -> bool:
        """Take in a step's record; a log never asks to stop."""
        if self._file is None:
            self._drop_from(int(info["iteration"]))
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(json.dumps(finite(info), allow_nan=False) + "\n")
        self._file.flush()
        return False

    def _drop_from(self, step: int) -> None:
        kept = [] if step <= 1 or not self.path.exists() else read_log(self.path)
        lines = [json.dumps(info, allow_nan=False) + "\n" for info in kept if info["iteration"] < step]
        self.path.write_text("".join(lines), encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The records in a file that `JsonLog` writes, but for a last line that is not complete yet."""
    records = []
    for line in Path(path).read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            records.append(json.loads(line))
    return records


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
        self._writer = _writer_class()(str(folder))

    def __call__(self, info: dict[str, Any]) -> bool:
        """Take in a step's record; a log never asks to stop."""
        for name in _MEASURES:
            if info.get(name) is not None:
                self._writer.add_scalar(name, float(info[name]), int(info["iteration"]))
        self._writer.flush()
        return False

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()


def _writer_class() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("TensorBoard events need a writer: pip install 'pointillist[watch]'") from error
    return SummaryWriter
