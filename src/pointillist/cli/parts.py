"""Parts of a run of ``pointillist encode`` that are put away, so that a run which was ended goes on where it stopped.

A part is a codes file beside the one that the run will write. It also says what the run is, so that none is continued as
another one. Signals are coded one by one: where a run was cut does not change a bit of the codes.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pointillist.codes import SparseCodes
from pointillist.errors import CheckpointError
from pointillist.learners.checkpoints import differences, parse_every
from pointillist.solvers.base import Status
from pointillist.storage import PartFolder, own_version, read_whole, stamp
from pointillist.storage.schema import anything, check_form, mapping, number, one_of, text, whole

log = logging.getLogger(__name__)

_FORM = {
    "first": whole(0),
    "next": whole(0),
    "run": {"data": mapping, ...: anything},
    "signals": [
        {
            "name": text,
            "shape": [whole(1)],
            "objective": number(),
            "gap": number(),
            "nonzeros": whole(0),
            "psnr": number(null=True),
            "status": one_of([status.value for status in Status]),
            "seconds": number(0),
        }
    ],
    "skipped": [{"number": whole(0), "name": text, "reason": text}],
    ...: anything,
}


def run_identity(model: Path, settings: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Everything that the codes of a run depend on; the number of threads and what is skipped may change."""
    digest = hashlib.sha256(read_whole(model, "model")).hexdigest()
    return {"model": digest, **settings, "data": data, "pointillist": own_version()}


@dataclass(frozen=True)
class CodedSignal:
    """Facts about one coded signal; `seconds` is its share, by samples, of the time of those that it was coded with."""

    name: str
    shape: list[int]
    objective: float
    gap: float
    nonzeros: int
    psnr: float | None
    status: str
    seconds: float


class CodedRun:
    """Signals that a run has coded, in order, what it left out, and its parts; without `every` and `resume` there are none.

    Raises ValueError if there are parts, but nothing is to be resumed, and CheckpointError if they are those of another run.

    Parameters
    ----------
    output : Path
        The codes file that the run will write.
    every : str or None
        How often parts are written, as `Checkpoints` takes it.
    resume : bool
    identity : dict
        As `run_identity` gives it.
    touch : bool
        False leaves the files as they are; else those of what is to be coded again go.

    Attributes
    ----------
    codes : list of SparseCodes
    rows : list of CodedSignal
    skipped : dict
        Name of a signal that was left out and why, by its number.
    next : int
        Number of the signal to go on with.
    """

    def __init__(
        self, output: Path, *, every: str | None, resume: bool, identity: dict[str, Any], touch: bool = True
    ) -> None:
        self.codes: list[SparseCodes] = []
        self.rows: list[CodedSignal] = []
        self.skipped: dict[int, tuple[str, str]] = {}
        self.next = 0
        self.kept = touch and (every is not None or resume)
        self._folder, self._identity, self._before = PartFolder(output), identity, stamp(output)
        self._every, self._seconds = parse_every(every or "60s")
        self._failure = ""
        files = self._folder.files()
        if files and not resume:
            raise ValueError(f"{files[-1]} is a part of a run that has not ended: go on with --resume, or remove it")
        for path, codes, metadata in self._folder.read() if resume else ():
            self._refuse_others(path, metadata)
            if metadata["first"] != self.next or len(metadata["signals"]) != len(codes):
                log.warning("%s does not follow the part before it; going on from there", path)
                break
            self.codes.append(codes)
            self.rows += [CodedSignal(**entry) for entry in metadata["signals"]]
            self.skipped |= {one["number"]: (one["name"], one["reason"]) for one in metadata["skipped"]}
            self.next = metadata["next"]
        if self.kept:
            self._folder.drop_from(self.next)
        self._last, self._written = time.monotonic(), (len(self.codes), len(self.rows), self.next)

    def left_out(self) -> list[dict[str, str]]:
        """Signals that were left out, and why, as JSON has them."""
        return [{"name": name, "reason": reason} for _, (name, reason) in sorted(self.skipped.items())]

    def add(self, codes: SparseCodes, rows: list[CodedSignal], following: int) -> None:
        """Take note of signals that were coded, before signal `following`, and write a part if it is time to."""
        codes.names = [row.name for row in rows]
        self.codes.append(codes)
        self.rows += rows
        self.next = following
        if self._every is None:
            due = time.monotonic() - self._last >= (self._seconds or 0.0)
        else:
            due = len(self.rows) - self._written[1] >= self._every
        if due:
            self.write()

    def write(self) -> None:
        """Write what was coded since the last part, or say why that cannot be done; the run goes on."""
        parts, rows, first = self._written
        if not self.kept or first == self.next:
            return
        skipped = [
            {"number": number, "name": name, "reason": reason}
            for number, (name, reason) in self.skipped.items()
            if first <= number < self.next
        ]
        signals = [asdict(row) for row in self.rows[rows:]]
        metadata = {"first": first, "next": self.next, "run": self._identity, "signals": signals, "skipped": skipped}
        try:
            self._folder.write(first, SparseCodes.concatenate(self.codes[parts:]), metadata)
        except OSError as error:
            reason = error.strerror or str(error)
            if reason != self._failure:  # not after every signal
                log.warning("the codes so far cannot be put away, coding goes on: %s", error)
            self._failure = reason
        else:
            self._failure, self._written = "", (len(self.codes), len(self.rows), self.next)
        self._last = time.monotonic()

    def notice_others(self) -> None:
        """Warn if somebody has written the output since the run began."""
        path = self._folder.path
        if stamp(path) != self._before:
            log.warning("%s was written by another program since this run began; this run's codes take its place", path)

    def clear(self) -> None:
        """Remove the parts of a run that has ended."""
        try:
            if self.kept:
                self._folder.clear()
        except OSError as error:
            log.warning("the codes are written, but parts of the run cannot be removed: %s", error)

    def _refuse_others(self, path: Path, metadata: dict[str, Any]) -> None:
        try:
            check_form(metadata, _FORM, "metadata")
        except ValueError as error:
            raise CheckpointError(f"{path} is not a part of pointillist encode: {error}") from error
        then, now = metadata["run"], self._identity
        data = differences(then["data"], now["data"], "data: ")
        found = [*differences({**then, "data": None}, {**now, "data": None}), *data]
        if found:
            raise CheckpointError(
                f"{path} belongs to another run: {'; '.join(found)}. Resume with what that had, or remove it"
            )
