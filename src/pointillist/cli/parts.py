"""Parts of a run of ``pointillist encode`` that are put away, so that a run which was ended goes on where it stopped.

A part is a codes file beside the one that the run will write. It also says what the run is, so that none is continued as
another one. Signals are coded one by one: where a run was cut does not change a bit of the codes.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pointillist.cli.encode import Coded, CodedSignal
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


class Parts:
    """The parts of one run; without `every` and `resume` nothing is put away, and nothing is found.

    Parameters
    ----------
    output : Path
        The codes file that the run will write.
    every : str or None
        How often parts are written, as `Checkpoints` takes it.
    resume : bool
    identity : dict
        As `run_identity` gives it.
    """

    def __init__(self, output: Path, *, every: str | None, resume: bool, identity: dict[str, Any]) -> None:
        self.kept = every is not None or resume
        self._folder, self._resume, self._identity = PartFolder(output), resume, identity
        self._every, self._seconds = parse_every(every or "60s")
        self._codes: list[SparseCodes] = []
        self._rows: list[CodedSignal] = []
        self._first = self._next = 0
        self._last, self._failure, self._before = time.monotonic(), "", stamp(output)

    def begin(self, *, touch: bool = True) -> tuple[Coded, int]:
        """Signals that the run which is resumed has coded, and the number of the one to go on with.

        With `touch`, what a killed run left half-written is removed, and so are parts that are to be coded again. Raises
        ValueError if there are parts, but nothing is to be resumed, and CheckpointError if they are those of another run.
        """
        coded, files = Coded(), self._folder.files()
        if files and not self._resume:
            raise ValueError(f"{files[-1]} is a part of a run that has not ended: go on with --resume, or remove it")
        if touch and self.kept:
            self._folder.remove_leftovers()
        for path, codes, metadata in self._folder.read() if self._resume else ():
            self._refuse_others(path, metadata)
            if metadata["first"] != self._next or len(metadata["signals"]) != len(codes):
                log.warning("%s does not follow the part before it; going on from there", path)
                break
            coded.codes.append(codes)
            coded.rows += [CodedSignal(**entry) for entry in metadata["signals"]]
            coded.skipped |= {one["number"]: (one["name"], one["reason"]) for one in metadata["skipped"]}
            self._next = metadata["next"]
        self._first = self._next
        if touch and self.kept:
            self._folder.drop_from(self._next)
        return coded, self._next

    def add(self, codes: SparseCodes, rows: list[CodedSignal], following: int, coded: Coded) -> None:
        """Take note of signals that were coded, before signal `following`, and write a part if it is time to."""
        self._codes.append(codes)
        self._rows += rows
        self._next = following
        if self._every is not None:
            due = len(self._rows) >= self._every
        else:
            due = self._seconds is not None and time.monotonic() - self._last >= self._seconds
        if due:
            self.write(coded)

    def write(self, coded: Coded) -> None:
        """Write what was coded since the last part, or say why that cannot be done; the run goes on."""
        if not self.kept or not self._rows:
            return
        skipped = [
            {"number": number, "name": name, "reason": reason}
            for number, (name, reason) in coded.skipped.items()
            if self._first <= number < self._next
        ]
        rows = [asdict(row) for row in self._rows]
        metadata = {
            "first": self._first,
            "next": self._next,
            "run": self._identity,
            "signals": rows,
            "skipped": skipped,
        }
        try:
            self._folder.write(self._first, SparseCodes.concatenate(self._codes), metadata)
        except OSError as error:
            reason = error.strerror or str(error)
            if reason != self._failure:  # not after every signal
                log.warning("the codes so far cannot be put away, coding goes on: %s", error)
            self._failure = reason
        else:
            self._first, self._codes, self._rows, self._failure = self._next, [], [], ""
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
