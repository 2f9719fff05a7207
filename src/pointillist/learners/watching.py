"""Callbacks to look at a run while it goes: its records as lines of JSON, or as TensorBoard events."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from pointillist.learners.packing import finite

_MEASURES = ("objective", "nnz", "gap", "replaced", "validation_objective", "seconds")


class JsonLog:
    """Append every step's record to a file, one line each, at once readable.

    A resumed run does again what came after its checkpoint: lines from the first step on that it reports are dropped, also
    one that was cut short, so that the file ends as that of a run that nothing interrupted.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def __call__(self, info: dict[str, Any]) -> bool:
        """A learner's callback; it never asks to stop."""
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
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The records in a file that `JsonLog` writes, but for a last line that is not complete yet."""
    records = []
    for line in Path(path).read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            records.append(json.loads(line))
    return records


class TensorBoardEvents:
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
        """A learner's callback; it never asks to stop."""
        for name in _MEASURES:
            if info.get(name) is not None:
                self._writer.add_scalar(name, float(info[name]), int(info["iteration"]))
        self._writer.flush()
        return False

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _writer_class() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("TensorBoard events need a writer: pip install 'pointillist[watch]'") from error
    return SummaryWriter
